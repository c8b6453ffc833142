//! Layouts without a window: at every window size, text stays on the screen and does not overlap.

use std::sync::Arc;
use std::time::Duration;

use glam::{Vec2, vec2};
use powderkeg_game::{Cue, EnemyKind, Rules, ShowKey, Weapon};
use twinstep_client::{CueEvent, CueId, CueKind, SessionStats};
use twinstep_core::{Key, Mwc, PlayerId, Tick};
use twinstep_protocol::packet::presence::LinkQuality;

use super::*;
use crate::feed::Speed;
use crate::scene::effects::ViewEffects;
use crate::scene::palette::ColorMode;
use crate::scene::{Boss, NetSample, ReelState, ThingLook, ViewMember, ViewScene, ViewThing};
use crate::window::atlas::Atlas;
use crate::window::camera::{Camera, Focus};
use crate::window::rect::Rect;
use crate::window::screens::Screens;
use crate::window::screenshot::Screenshot;
use crate::window::settings::{SettingRow, Settings};

const SIZES: [(f32, f32); 7] = [
    (640.0, 360.0),
    (800.0, 600.0),
    (1_152.0, 648.0),
    (1_280.0, 720.0),
    (1_366.0, 768.0),
    (1_920.0, 1_080.0),
    (2_560.0, 1_440.0),
];

fn full(phase: RoundPhase) -> ViewScene {
    let mut scene = ViewScene::new(Arc::new(Rules::campaign()));
    scene.phase = phase;
    scene.phase_left = Some(3.0);
    scene.begins_left = Some(19.2);
    scene.wave = 8;
    scene.enemies_left = 188;
    scene.lives = 19;
    scene.score = 1_234_567;
    scene.boss = Some(Boss {
        health: 0.6,
        stage: 2,
    });
    scene.link = Some("perfect".to_owned());
    (scene.predicts, scene.smooths) = (false, false);
    let mut stats = SessionStats::default();
    stats.rtt_ms_p50 = 1_022;
    stats.rtt_ms = 1_022.4;
    stats.jitter_ms = 312.5;
    stats.loss = 0.25;
    stats.confirmed_ms_p50 = 1_022;
    stats.stall_ms = 123_456.0;
    scene.stats = Some(stats);
    scene.window.fills = 600;
    scene.window.held_ms = 9_999.0;
    scene.window.stall_ms = 9_999.0;
    scene.window.tick_ms = 16.7;
    scene.plots = vec![
        NetSample {
            rtt_ms: 1_022.0,
            resim_ticks: 2_400.0,
            ..NetSample::default()
        };
        90
    ];
    scene.notice = Some("no packet from the server for 12.5 s".to_owned());
    scene.team = (0..8).map(member).collect();
    scene.things = vec![
        ViewThing {
            key: ShowKey::Player {
                id: PlayerId(0),
                life: 1,
            },
            at: Vec2::ZERO,
            angle: 1.0,
            look: ThingLook::Player {
                is_safe: true,
                has_shield: true,
                health: 0.5,
            },
        },
        ViewThing {
            key: ShowKey::Enemy {
                slot: 0,
                life: 1,
                kind: EnemyKind::Boss,
            },
            at: vec2(3.0, 3.0),
            angle: 0.0,
            look: ThingLook::Plain,
        },
    ];
    scene
}

fn member(n: u8) -> ViewMember {
    ViewMember {
        id: PlayerId(n),
        name: format!("a player of the longest name {n}"),
        is_local: n < 2,
        is_here: n != 5,
        is_late: false,
        link: Some(LinkQuality {
            rtt_ms: 1_022,
            loss_percent: 25,
            margin_ticks: -9,
        }),
        is_ready: n.is_multiple_of(2),
        is_out: n == 4,
        has_shield: true,
        health: f32::from(n) / 8.0,
        weapon: Weapon::Thumper,
        ammo: Some(188),
        dash: 0.5,
        kills: 1_234,
        score: 1_234_567,
        lives: 188,
    }
}

fn busy(scene: &ViewScene) -> ViewEffects {
    let mut effects = ViewEffects::default();
    for (n, cue) in [
        Cue::PlayerDied(PlayerId(1)),
        Cue::Ready(PlayerId(3)),
        Cue::WaveCleared(7),
    ]
    .into_iter()
    .enumerate()
    {
        let event = CueEvent {
            id: CueId(n as u64),
            kind: CueKind::Started {
                tick: Tick(1),
                key: Key::new(1, 1),
                cue,
            },
        };
        effects.handle(Duration::from_millis(200), &event, scene, ColorMode::Safe);
    }
    effects
}

type Paint = fn(&mut Ui<'_>, &WindowPicture<'_>);

fn batch(size: (f32, f32), large: bool) -> Batch {
    let screen = Rect::new(0.0, 0.0, size.0, size.1);
    Batch::new(Atlas::new(
        Atlas::scale_for(screen.size, large),
        ColorMode::Safe,
    ))
}

fn said(
    size: (f32, f32),
    phase: RoundPhase,
    is_replay: bool,
    paints: &[Paint],
) -> Vec<(Rect, String)> {
    said_by(&mut batch(size, false), size, phase, is_replay, paints)
}

fn said_by(
    batch: &mut Batch,
    size: (f32, f32),
    phase: RoundPhase,
    is_replay: bool,
    paints: &[Paint],
) -> Vec<(Rect, String)> {
    let screen = Rect::new(0.0, 0.0, size.0, size.1);
    let mut scene = full(phase);
    scene.now = Duration::from_secs(1);
    if is_replay {
        scene.replay = Some(ReelState {
            tick: Tick(0),
            part: 0.3,
            passed: Duration::from_secs(4_000),
            length: Duration::from_secs(35_999),
            speed: Speed::Quarter,
            is_paused: true,
        });
        scene.notice = None;
        scene.stats = None;
        scene
            .team
            .iter_mut()
            .for_each(|member| member.is_local = false);
    }
    let effects = busy(&scene);
    let (camera, settings) = (Camera::new(), Settings::default());
    let screens = Screens {
        netgraph: true,
        ghosts: true,
        ..Screens::default()
    };
    let picture = WindowPicture {
        scene: &scene,
        effects: &effects,
        camera: &camera,
        screens: &screens,
        settings: &settings,
        screen,
        frames: (59.7, true),
        is_alone: false,
        crosshair: Some(vec2(10.0, 10.0)),
        pointer: None,
    };
    batch.clear();
    let mut ui = Ui::new(batch, screen);
    paints.iter().for_each(|paint| paint(&mut ui, &picture));
    std::mem::take(&mut ui.said)
}

#[test]
fn text_stays_on_the_screen_and_does_not_overlap_at_any_window_size() {
    let cases: [(&str, RoundPhase, bool, &[Paint]); 10] = [
        (
            "playing",
            RoundPhase::Wave,
            false,
            &[
                hud::paint,
                hud::paint_notice,
                netgraph::paint,
                ghosts::legend,
            ],
        ),
        ("countdown", RoundPhase::Countdown, false, &[hud::paint]),
        ("replay", RoundPhase::Wave, true, &[hud::paint, reel::paint]),
        (
            "lobby",
            RoundPhase::Lobby,
            false,
            &[lobby::paint, hud::paint_notice],
        ),
        ("won", RoundPhase::Won, false, &[outcome::paint]),
        ("lost", RoundPhase::Lost, false, &[outcome::paint]),
        ("title", RoundPhase::Lobby, false, &[title::paint]),
        (
            "help",
            RoundPhase::Wave,
            false,
            &[|ui, _| help::paint(ui, true)],
        ),
        ("settings", RoundPhase::Wave, false, &[options::paint]),
        (
            "closing",
            RoundPhase::Wave,
            false,
            &[|ui, _| closing::paint(ui, "the server is gone\nsay `powderkeg join` again")],
        ),
    ];
    for (size, large) in SIZES
        .into_iter()
        .flat_map(|size| [(size, false), (size, true)])
    {
        let screen = Rect::new(0.0, 0.0, size.0, size.1);
        let mut batch = batch(size, large);
        for (name, phase, is_replay, paints) in cases {
            let said = said_by(&mut batch, size, phase, is_replay, paints);
            assert!(said.len() >= 3, "{name} says something");
            for (n, (rect, words)) in said.iter().enumerate() {
                assert!(
                    screen.holds(rect),
                    "{name} at {size:?}: {words:?} at {rect:?}"
                );
                for (other, others) in &said[..n] {
                    assert!(
                        !rect.overlaps(other),
                        "{name} at {size:?}: {words:?} over {others:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn clicks_hit_the_rows_of_the_settings_and_the_bar_of_a_replay() {
    for (size, large) in SIZES
        .into_iter()
        .flat_map(|size| [(size, false), (size, true)])
    {
        let screen = Rect::new(0.0, 0.0, size.0, size.1);
        let scale = Atlas::scale_for(screen.size, large);
        let rows = SettingRow::places(screen, scale);
        for (n, row) in rows.iter().enumerate() {
            assert!(screen.holds(row) && row.size.y > 8.0, "{size:?}: {row:?}");
            assert!(rows[..n].iter().all(|other| !other.overlaps(row)));
        }
        let bar = reel_bar(screen, scale);
        assert!(
            screen.holds(&bar) && bar.size.x > screen.size.x * 0.4,
            "{size:?}: {bar:?}"
        );
    }
}

#[test]
fn the_netgraph_hides_no_local_player_and_stays_in_place_if_possible() {
    for (size, large) in SIZES
        .into_iter()
        .flat_map(|size| [(size, false), (size, true)])
    {
        let screen = Rect::new(0.0, 0.0, size.0, size.1);
        let scale = Atlas::scale_for(screen.size, large);
        let mut scene = full(RoundPhase::Wave);
        scene.team.truncate(1);
        let mut at = 0;
        let (mut moves, mut all) = (0, 0);
        for step in 0..400 {
            // Back and forth over the whole screen.
            let way = vec2((step % 20) as f32 / 20.0, (step / 20) as f32 / 20.0);
            let own = Rect::around(way * screen.size, Vec2::splat(20.0 * scale));
            let now = free_place(at, screen, scale, &[own]);
            let (effects, camera, settings) =
                (ViewEffects::default(), Camera::new(), Settings::default());
            let screens = Screens {
                netgraph: true,
                netgraph_at: now,
                ..Screens::default()
            };
            let picture = WindowPicture {
                scene: &scene,
                effects: &effects,
                camera: &camera,
                screens: &screens,
                settings: &settings,
                screen,
                frames: (60.0, true),
                is_alone: false,
                crosshair: None,
                pointer: None,
            };
            let place = netgraph::place(&picture, scale).expect("there is room");
            assert!(
                screen.holds(&place) && !place.overlaps(&own),
                "{size:?} {own:?}"
            );
            (moves, all) = (moves + u32::from(now != at), all + 1);
            at = now;
        }
        assert!(moves < all / 5, "{size:?}: {moves} moves");
    }
}

#[test]
fn the_lobby_lists_all_players_including_disconnected_ones() {
    let said: Vec<String> = said((1_280.0, 720.0), RoundPhase::Lobby, false, &[lobby::paint])
        .into_iter()
        .map(|(_, words)| words)
        .collect();
    let count = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("READY"), count("not yet"), count("away")), (4, 3, 1));
    assert!(count("8 here") == 1 && count("1022 ms") == 8);
    assert_eq!(count("starts within 20 s"), 1);
}

#[test]
fn the_pointer_is_painted_after_everything_else() {
    let scene = full(RoundPhase::Wave);
    let effects = busy(&scene);
    let (camera, settings) = (Camera::new(), Settings::default());
    let screens = Screens {
        overlay: Some(Overlay::Settings),
        closing: Some("drained".to_owned()),
        ..Screens::default()
    };
    let mut picture = WindowPicture {
        scene: &scene,
        effects: &effects,
        camera: &camera,
        screens: &screens,
        settings: &settings,
        screen: Rect::new(0.0, 0.0, 1_280.0, 720.0),
        frames: (59.7, true),
        is_alone: true,
        crosshair: None,
        pointer: None,
    };
    let mut batch = Batch::new(Atlas::new(0.5, ColorMode::Safe));
    paint(&mut batch, &picture);
    let without = batch.corners.clone();
    picture.pointer = Some(vec2(600.0, 300.0));
    paint(&mut batch, &picture);
    let (below, pointer) = batch.corners.split_at(without.len());
    assert!(below == without && !pointer.is_empty());
}

/// `UPDATE_GOLDEN=1` rewrites the picture.
#[test]
fn a_fixed_scene_matches_the_golden_picture() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/window/paint/golden.png");
    let mut scene = full(RoundPhase::Wave);
    scene.boss = None;
    for (n, kind) in EnemyKind::ALL.into_iter().enumerate() {
        let slot = n as u16 + 1;
        scene.things.push(ViewThing {
            key: ShowKey::Enemy {
                slot,
                life: 1,
                kind,
            },
            at: vec2(n as f32 * 4.0 - 12.0, -15.0),
            angle: 0.4,
            look: ThingLook::Enemy {
                woken: 1.0,
                carries: n == 1,
            },
        });
    }
    let effects = busy(&scene);
    let (mut camera, settings) = (Camera::new(), Settings::default());
    let screens = Screens {
        netgraph: true,
        ghosts: true,
        ..Screens::default()
    };
    let screen = Rect::new(0.0, 0.0, 640.0, 360.0);
    let focus = Focus {
        whom: &[],
        aim: Vec2::ZERO,
        half: scene.rules.half,
        screen: screen.size,
    };
    camera.follow(&focus, 0.0, 0.0, &mut Mwc::seed(1));
    let picture = WindowPicture {
        scene: &scene,
        effects: &effects,
        camera: &camera,
        screens: &screens,
        settings: &settings,
        screen,
        frames: (59.7, true),
        is_alone: false,
        crosshair: Some(vec2(400.0, 120.0)),
        pointer: None,
    };
    let mut batch = batch((screen.size.x, screen.size.y), false);
    paint(&mut batch, &picture);
    let shot = Screenshot::of(&batch, settings.colors.floor(), screen.size);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        shot.save(golden.as_ref()).unwrap();
    }
    assert!(shot.resembles(golden.as_ref(), 2), "see {golden}");
}
