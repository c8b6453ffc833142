use glam::Vec2;
use twinstep_core::Key;
use twinstep_core::frame::{Learned, PlayerSet};

use super::super::testing::*;
use super::*;
use crate::{PLAYER_RADIUS, Pad, Rules};

fn east() -> Pad {
    Pad {
        walk: Heading::EAST,
        ..Pad::default()
    }
}

/// Row 67: a remote player's shot is heard once that player's input has arrived, not while it is guessed.
#[test]
fn a_remote_shot_sounds_once_its_input_is_known() {
    let fire = Pad {
        buttons: Pad::FIRE,
        ..Pad::default()
    };
    for (is_known, locals) in [(false, TWO), (true, TWO), (false, ONE)] {
        let mut game = with_player(quiet());
        let now = game.world().tick();
        let mut learned = Learned::new();
        if is_known {
            learned.note(ONE, now, now);
        }
        game.predict(PlayerSet::from_iter([locals]), now, learned);
        game.hold(ONE, fire).step();
        assert_eq!(game.sim().shots.len(), 1);
        let cues = game.effects().cues();
        let heard = cues.iter().any(|(_, cue)| matches!(cue, Cue::Shot { .. }));
        assert_eq!(heard, is_known || locals == ONE);
    }
}

#[test]
fn a_walk_goes_where_the_stick_points_and_ends_at_walls() {
    let mut game = with_player(quiet());
    let from = player(&game).at;
    game.hold(ONE, east()).run(10);
    let speed = rules().tuning.walk_speed;
    assert!((player(&game).at.x - from.x - 10.0 * speed).abs() < 1e-4);
    // The wall at (−9.5, 0.5) starts at x = −10.5.
    player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
    game.run(60);
    assert!(
        (player(&game).at - Vec2::new(-11.0, 0.5)).length() < 1e-3,
        "{}",
        player(&game).at
    );
}

#[test]
fn players_stay_inside_the_arena_and_out_of_walls() {
    let mut game = with_player(quiet());
    let mut luck = twinstep_core::Mwc::seed(3);
    for _ in 0..4_000 {
        if luck.below(20) == 0 {
            game.hold(
                ONE,
                Pad {
                    walk: Heading(luck.below(256) as u8),
                    ..Pad::default()
                },
            );
            game.command(ONE, Command::Dash);
        }
        game.step();
        let at = player(&game).at;
        let inside = rules().half - PLAYER_RADIUS;
        assert!(at.abs().cmple(inside).all(), "{at}");
        for wall in &rules().walls {
            let gap = ((at - wall.center).abs() - wall.half)
                .max(Vec2::ZERO)
                .length();
            assert!(gap > PLAYER_RADIUS - 1e-3, "{at} is {gap} from {wall:?}");
        }
    }
}

#[test]
fn crates_are_in_the_way_until_they_break() {
    let rules = Rules {
        crates: vec![Vec2::new(2.0, 0.0)],
        ..rules()
    };
    let mut game = with_player(solo(rules));
    player_mut(&mut game).at = Vec2::ZERO;
    game.hold(ONE, east()).run(20);
    assert!((player(&game).at.x - (2.0 - 0.75 - PLAYER_RADIUS)).abs() < 1e-3);
    game.sim_mut().crates[0].health = 0;
    game.run(20);
    assert!(player(&game).at.x > 3.0);
}

#[test]
fn fire_rate_follows_the_weapon_and_shots_are_named_by_player_and_number() {
    let mut game = with_player(quiet());
    game.hold(
        ONE,
        Pad {
            buttons: Pad::FIRE,
            ..Pad::default()
        },
    )
    .run(15);
    let keys: Vec<Key> = game.sim().shots.iter().map(|shot| shot.key).collect();
    assert_eq!(keys, [1, 2, 3].map(|n| Key::player(ONE, n)));
}

#[test]
fn a_dash_is_faster_than_walking_and_has_a_cooldown() {
    let mut game = with_player(quiet());
    game.hold(ONE, east()).command(ONE, Command::Dash).step();
    assert_eq!(game.effects().cues().len(), 1);
    let from = player(&game).at.x;
    game.step();
    assert!((player(&game).at.x - from - rules().tuning.dash_speed).abs() < 1e-4);
    game.command(ONE, Command::Dash).step();
    assert!(
        game.effects().cues().is_empty(),
        "too early: nothing happens"
    );
    game.run(rules().tuning.dash_ticks);
    assert!(!player(&game).is_dashing(game.world().tick()));
}

#[test]
fn a_new_player_is_safe_until_it_acts_and_a_little_longer() {
    let mut game = with_player(quiet());
    game.run(1_000);
    assert!(!player(&game).is_vulnerable(game.world().tick()));
    game.hold(ONE, east()).step();
    assert!(!player(&game).is_vulnerable(game.world().tick()));
    game.run(rules().tuning.shield_ticks);
    assert!(player(&game).is_vulnerable(game.world().tick()));
}

#[test]
fn a_rejoining_player_reuses_no_key() {
    let fire = Pad {
        buttons: Pad::FIRE,
        ..Pad::default()
    };
    let mut game = with_player(quiet());
    let mut before = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let mut names = std::collections::BTreeSet::from([player(&game).life_key(ONE)]);
        game.hold(ONE, fire);
        for _ in 0..20 {
            game.step();
            names.extend(game.sim().shots.iter().map(|shot| shot.key));
        }
        assert!(names.len() > 3, "{names:?}");
        assert!(before.is_disjoint(&names));
        before.append(&mut names);
        game.leave(ONE).run(600);
        game.join(ONE).step();
    }
    game.leave(ONE).step();
    assert_eq!(game.sim().former.len(), 1);
}

#[test]
fn sixteen_players_join_and_leave() {
    let mut game = quiet();
    for n in 0..16 {
        game.join(PlayerId(n));
    }
    game.step();
    assert_eq!(game.sim().players.len(), 16);
    let places: std::collections::BTreeSet<_> = game
        .sim()
        .players
        .values()
        .map(|p| super::super::Point::of(p.at))
        .collect();
    assert_eq!(places.len(), 16, "no player appears on top of another");
    game.claim(PlayerId(7), Command::Died { by: Key::default() })
        .step();
    for n in 0..16 {
        game.leave(PlayerId(n));
    }
    game.run(500);
    assert!(game.sim().players.is_empty() && game.sim().timers.is_empty());
}
