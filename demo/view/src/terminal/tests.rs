//! The view as a whole: a real session and match in virtual time, drawn on a terminal in memory.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use glam::Vec2;
use powderkeg_game::{Cue, Pad, RoundPhase, Rules, ShowKey};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use twinstep_client::{CueEvent, CueId, CueKind};
use twinstep_core::{Key, Tick};

use super::*;
use crate::feed::{Playback, ReplayClock};
use crate::rehearsal::{Rehearsal, Setup};
use crate::scene::effects::CueFate;
use crate::scene::{Boss, ViewThing};

fn played(frames: u32) -> TerminalView {
    let rules = Arc::new(Rules::arena(24));
    let setup = Setup {
        bots: 1,
        ..Setup::new(Arc::clone(&rules), 11)
    };
    let mut feed = Feed::rehearsal(Rehearsal::new(&setup), Some("perfect".to_owned()));
    let mut view = TerminalView::new(&feed, true);
    view.ghosts = true;
    for key in ['d', 'l', ' '] {
        press(&mut feed, &mut view, KeyCode::Char(key));
    }
    play(&mut feed, &mut view, frames);
    view
}

fn empty() -> TerminalView {
    let setup = Setup::new(Arc::new(Rules::arena(24)), 11);
    TerminalView::new(&Feed::rehearsal(Rehearsal::new(&setup), None), true)
}

fn drawn(view: &TerminalView, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, view)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n")
        .collect()
}

#[test]
fn a_link_without_packets_is_shown_as_silent() {
    let mut view = played(240);
    assert_eq!(view.scene.loss(), "0.0 %");
    view.scene.silent = Duration::from_millis(501);
    let text = text(&drawn(&view, 120, 36));
    assert!(text.contains("silent"), "{text}");
}

#[test]
fn a_running_match_is_shown_on_the_screen() {
    let view = played(240);
    let text = text(&drawn(&view, 120, 36));
    let scene = &view.scene;
    assert_eq!(hud::banner_text(scene), None, "{text}");
    for expected in [
        "POWDERKEG",
        "@0",
        "p1",
        "■",
        "net: perfect",
        "rtt",
        "lead",
        "margin",
        "rebuilds",
        "others",
        "stalls",
        "up/s",
        "team: ",
        "Blaster",
        "bot-1",
        "dies",
        "confirmed",
        "WASD move",
        "1-5 link",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing:\n{text}");
    }
    assert!(scene.rates.bytes_down > 1_000.0, "{:?}", scene.rates);
    assert!(text.contains("loss") && !text.contains("silent"), "{text}");
    assert!(scene.plots.iter().any(|sample| sample.lead_ticks > 0.0));
    let ghosts = scene.ghosts.iter();
    assert_eq!(
        ghosts
            .filter(|(key, _)| matches!(key, ShowKey::Player { .. }))
            .count(),
        2
    );
}

#[test]
fn before_the_match_the_screen_shows_connecting() {
    let text = text(&drawn(&played(1), 80, 24));
    assert!(text.contains("connecting"), "{text}");
}

#[test]
fn walls_are_drawn_where_the_rules_place_them() {
    let view = empty();
    // One dot and a half per unit; the wall around (0, 8.25) is 10 units wide.
    let buffer = drawn(&view, 120, 36);
    let full = |at: Vec2| {
        let (columns, rows) = (84.0, 25.0);
        let x = 2.0 + (at.x + 40.0) / 80.0 * columns;
        let y = 1.0 + (24.0 - at.y) / 48.0 * rows;
        buffer[(x as u16, y as u16)].symbol() == "⣿"
    };
    assert!(full(Vec2::new(0.0, 8.25)) && full(Vec2::new(-22.0, 10.5)));
    assert!(!full(Vec2::ZERO) && !full(Vec2::new(0.0, 20.0)));
}

#[test]
fn a_confirmed_blast_shows_more_than_a_guessed_one_and_a_cancelled_blast_disappears() {
    let mut view = played(60);
    let is_barrel = |thing: &&ViewThing| matches!(thing.key, ShowKey::Barrel { .. });
    let barrel = view.scene.things.iter().find(is_barrel);
    let ShowKey::Barrel { n, .. } = barrel.expect("the level has some").key else {
        unreachable!("a barrel")
    };
    let lit = |view: &TerminalView| {
        let braille = '\u{2801}'..='\u{28fe}';
        let dots = |cell: &&Cell| cell.symbol().chars().any(|sign| braille.contains(&sign));
        drawn(view, 120, 36).content.iter().filter(dots).count()
    };
    view.effects = ViewEffects::default();
    let began = view.scene.now;
    let nothing = lit(&view);
    let mut after = |ms: u64, kind: CueKind<Cue>| {
        let event = CueEvent { id: CueId(1), kind };
        let now = began + Duration::from_millis(ms);
        let TerminalView { effects, scene, .. } = &mut view;
        effects.advance(now);
        effects.handle(now, &event, scene, ColorMode::Safe);
        scene.now = began + Duration::from_millis(300);
        effects.advance(scene.now);
        (lit(&view), view.effects.lines.back().map(|line| line.fate))
    };
    let cue = CueKind::Started {
        tick: Tick(9),
        key: Key::default(),
        cue: Cue::Blast(n),
    };
    let (guessed, fate) = after(0, cue);
    assert_eq!(fate, Some(CueFate::Open));
    let (confirmed, fate) = after(10, CueKind::Confirmed { at: Tick(7) });
    assert_eq!(fate, Some(CueFate::Confirmed(-2)));
    let (cancelled, fate) = after(20, CueKind::Cancelled);
    assert_eq!(fate, Some(CueFate::Cancelled));
    assert!(
        nothing < guessed && guessed < confirmed && cancelled == nothing,
        "{nothing} {guessed} {confirmed} {cancelled}"
    );
}

#[test]
fn any_large_enough_terminal_shows_everything() {
    let view = played(120);
    for (width, height) in [
        (80, 24),
        (80, 60),
        (120, 36),
        (200, 24),
        (250, 80),
        (90, 200),
    ] {
        let text = text(&drawn(&view, width, height));
        for expected in [
            "POWDERKEG",
            "net:",
            "team:",
            "cues:",
            "WASD",
            "@0",
            "agreed",
        ] {
            assert!(
                text.contains(expected),
                "{expected:?} at {width} x {height}:\n{text}"
            );
        }
    }
}

#[test]
fn without_colour_the_picture_keeps_all_its_text() {
    let mut view = played(120);
    let colored = drawn(&view, 120, 36);
    view.color = false;
    let plain = drawn(&view, 120, 36);
    assert_eq!(text(&plain), text(&colored));
    assert!(colored.content.iter().any(|cell| cell.fg != Color::Reset));
    let is_plain = |cell: &Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
    assert!(plain.content.iter().all(is_plain));
}

#[test]
fn a_replay_shows_its_position_and_its_keys_work() {
    let rules = Arc::new(Rules::arena(24));
    let mut rehearsal = Rehearsal::new(&Setup::new(Arc::clone(&rules), 11));
    for _ in 0..1_200 {
        rehearsal.advance(|_| Pad::default()).unwrap();
    }
    let playback = Playback::open(rehearsal.journal().to_vec(), &rules).unwrap();
    let clock = ReplayClock::frames(Duration::from_millis(16));
    let mut feed = Feed::playback(playback, clock);
    let mut view = TerminalView::new(&feed, true);
    let mut after = |code: KeyCode| {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        view.press(Duration::ZERO, &key, &mut feed);
        view.advance(&mut feed).unwrap();
        view.look(&feed);
        assert!(!view.quits || code == KeyCode::Char('q'));
        text(&drawn(&view, 120, 36))
    };
    let middle = after(KeyCode::Char('5'));
    for expected in ["replay", "0:09 ", "0:19", "1x", "pause", "p3", "seek"] {
        assert!(
            middle.contains(expected),
            "{expected:?} is missing:\n{middle}"
        );
    }
    assert!(!middle.contains("rtt"), "{middle}");
    assert!(after(KeyCode::Char(' ')).contains("paused"));
    assert!(after(KeyCode::Right).contains("0:14 "));
    assert!(after(KeyCode::Char('+')).contains("2x"));
    after(KeyCode::Char('q'));
    assert!(view.quits);
}

#[test]
fn at_every_terminal_size_the_screen_shows_how_to_quit() {
    let (feed, view) = campaign();
    assert!(feed.replay().is_none());
    for (width, height) in [(79, 24), (40, 12), (30, 8), (20, 5), (12, 6)] {
        let words = text(&drawn(&view, width, height));
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let leaves = words.contains("press Q to quit") || words.contains("Q quits");
        assert!(leaves && words.contains("80"), "{width}x{height}: {words}");
    }
    for (width, height) in [(1, 1), (3, 2), (7, 1)] {
        drawn(&view, width, height);
    }
}

/// The campaign from the lobby on, with two local players at one terminal and a bot that gets ready.
fn campaign() -> (Feed, TerminalView) {
    campaign_with(1)
}

fn campaign_with(bots: usize) -> (Feed, TerminalView) {
    let rules = Arc::new(Rules::campaign());
    let setup = Setup {
        bots,
        seats: 2,
        names: vec!["Anna".to_owned(), "Bert".to_owned()],
        ..Setup::new(Arc::clone(&rules), 3)
    };
    let feed = Feed::rehearsal(Rehearsal::new(&setup), None);
    let view = TerminalView::new(&feed, true);
    (feed, view)
}

fn play(feed: &mut Feed, view: &mut TerminalView, frames: u32) -> String {
    for _ in 0..frames {
        view.advance(feed).unwrap();
        view.look(feed);
    }
    text(&drawn(view, 120, 36))
}

fn press(feed: &mut Feed, view: &mut TerminalView, code: KeyCode) {
    let key = KeyEvent::new(code, KeyModifiers::NONE);
    view.press(Duration::ZERO, &key, feed);
}

#[test]
fn the_lobby_shows_readiness_and_links_and_one_key_readies_all_local_players() {
    let (mut feed, mut view) = campaign();
    let lobby = play(&mut feed, &mut view, 180);
    for expected in [
        "lobby",
        "@Anna",
        "@Bert",
        "bot-1",
        "waits",
        " ms ",
        "R when you are ready",
        "R ready",
        "Enter fire",
    ] {
        assert!(
            lobby.contains(expected),
            "{expected:?} is missing:\n{lobby}"
        );
    }
    press(&mut feed, &mut view, KeyCode::Char('r'));
    let begun = play(&mut feed, &mut view, 30);
    assert!(begun.contains("get ready: "), "{begun}");
    let fought = play(&mut feed, &mut view, 600);
    for expected in ["wave 1 of ", "lives ", "Blaster", "Anna"] {
        assert!(
            fought.contains(expected),
            "{expected:?} is missing:\n{fought}"
        );
    }
}

#[test]
fn the_lobby_shows_the_time_to_the_round_once_half_are_ready() {
    let (mut feed, mut view) = campaign_with(2);
    let lobby = play(&mut feed, &mut view, 300);
    let words = "2 of 4 are ready; it starts anyway in ";
    assert!(lobby.contains(words), "{lobby}");
    let left = feed.begins_in().unwrap().as_secs_f32();
    let later = play(&mut feed, &mut view, 120);
    let passed = left - feed.begins_in().unwrap().as_secs_f32();
    assert!((1.8..2.2).contains(&passed), "{passed} s passed");
    let seconds = feed.begins_in().unwrap().as_secs_f32().ceil();
    assert!(later.contains(&format!("{words}{seconds} s")), "{later}");
}

#[test]
fn two_players_at_one_terminal_walk_independently() {
    let (mut feed, mut view) = campaign();
    play(&mut feed, &mut view, 120);
    let at = |feed: &Feed, seat: usize| {
        let id = feed.seats()[seat];
        feed.game().unwrap().players.get(&id).unwrap().at
    };
    let before = [at(&feed, 0), at(&feed, 1)];
    press(&mut feed, &mut view, KeyCode::Char('s'));
    press(&mut feed, &mut view, KeyCode::Up);
    play(&mut feed, &mut view, 20);
    assert!(at(&feed, 0).y < before[0].y - 1.0);
    assert!(at(&feed, 1).y > before[1].y + 1.0);
}

#[test]
fn a_boss_has_a_health_bar_and_the_results_list_the_best_player_first() {
    let (mut feed, mut view) = campaign();
    play(&mut feed, &mut view, 120);
    view.scene.phase = RoundPhase::Wave;
    view.scene.boss = Some(Boss {
        health: 0.5,
        stage: 0,
    });
    let fought = text(&drawn(&view, 120, 36));
    let bar = format!("BOSS {}{}", "█".repeat(12), "░".repeat(12));
    assert!(fought.contains(&bar), "{fought}");
    view.scene.phase = RoundPhase::Lost;
    view.scene.team[1].score = 900;
    view.scene.score = 1_200;
    for (width, height) in [(80, 24), (120, 36)] {
        let lost = text(&drawn(&view, width, height));
        assert!(lost.contains("LOST in wave"), "{lost}");
        let table = &lost[lost.find("1200 points").expect("the team's points")..];
        assert!(table.find("Bert") < table.find("Anna"), "{lost}");
    }
}

/// Finding C9: a right-to-left name does not reorder its neighbours.
#[test]
fn right_to_left_names_are_isolated_wherever_they_are_drawn() {
    let mut view = played(60);
    let name = "\u{5d0}\u{5d1}\u{5d2}";
    for member in &mut view.scene.team {
        name.clone_into(&mut member.name);
    }
    for phase in [
        RoundPhase::Endless,
        RoundPhase::Lobby,
        RoundPhase::Won,
        RoundPhase::Lost,
    ] {
        view.scene.phase = phase;
        let text = text(&drawn(&view, 120, 36));
        let isolated = format!("\u{2068}{name}\u{2069}");
        let count = text.matches(name).count();
        assert!(count >= view.scene.team.len(), "{phase:?}: {text}");
        assert_eq!(text.matches(&isolated).count(), count, "{phase:?}: {text}");
    }
    assert_eq!(hud::cells("\u{5d0}世界世界世界", 6), "\u{5d0}世界 ");
}
