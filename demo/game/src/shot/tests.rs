//! The shots of each weapon: as the player's own shots, as ghosts, and promoted.

use twinstep_core::frame::{Learned, PlayerSet};
use twinstep_core::{Key, PlayerId};

use super::super::testing::*;
use super::*;
use crate::{BarrelStage, BlastHit, Bomb, EnemyKind, Heading, Outcome, PIERCED_MAX, Pad, Query};

fn duel(health: i16) -> SoloGame {
    let mut game = with_player(quiet());
    player_mut(&mut game).at = Vec2::new(-5.0, -4.0);
    put_enemy(&mut game, 0, Vec2::new(0.0, -4.0));
    game.sim_mut().enemies[0].health = health;
    game.hold(
        ONE,
        Pad {
            aim: Heading::EAST,
            buttons: Pad::FIRE,
            ..Pad::default()
        },
    )
    .step();
    game.hold(ONE, Pad::default());
    game
}

#[test]
fn a_kill_is_credited_to_the_shooter() {
    let mut game = duel(1);
    let key = game.sim().enemies[0].key(0);
    let points = EnemyKind::Gunner.points();
    for _ in 0..12 {
        game.step();
        if game.effects().cues().contains(&(key, Cue::EnemyDied(0))) {
            assert!(
                game.effects()
                    .cues()
                    .contains(&(Key::player(ONE, 1).child(1), Cue::Hit(0)))
            );
            assert!(game.effects().cues().contains(&(
                key,
                Cue::Scored {
                    player: ONE,
                    points
                }
            )));
            assert_eq!(
                (player(&game).score, player(&game).kills),
                (u32::from(points), 1)
            );
            assert_eq!(game.sim().score, u32::from(points));
            assert!(game.sim().shots.is_empty(), "the shot is spent");
            return;
        }
    }
    panic!("the enemy lives: {:?}", game.sim().enemies[0]);
}

#[test]
fn a_non_lethal_shot_takes_health() {
    let mut game = duel(30);
    game.run(12);
    assert_eq!(game.sim().enemies[0].health, 30 - Weapon::Blaster.damage());
    assert_eq!(player(&game).score, 0);
}

/// Row 68.
#[test]
fn a_ghost_shot_ends_at_its_target_and_withholds_the_hit() {
    let mut game = duel(1);
    game.predict(
        PlayerSet::from_iter([TWO]),
        game.world().tick(),
        Learned::new(),
    );
    // ONE's input is not known here yet, so its shot is a guess.
    let born = game.sim().shots[0].born;
    game.sim_mut().shots[0].born = born + 1_000;
    let mut withheld = 0;
    for _ in 0..12 {
        withheld += u32::from(game.step().withheld());
    }
    assert_eq!(withheld, 1);
    assert_eq!(game.sim().enemies[0].health, 1);
    assert!(game.sim().shots.is_empty());
}

/// Row 70.
#[test]
fn a_promoted_remote_shot_hits_like_a_local_one() {
    let mut game = duel(1);
    let born = game.sim().shots[0].born;
    let mut learned = Learned::new();
    learned.note(ONE, born, born + 2);
    game.predict(PlayerSet::from_iter([TWO]), born + 2, learned);
    for _ in 0..12 {
        assert!(!game.step().withheld());
    }
    assert!(!game.sim().enemies[0].is_alive());
}

#[test]
fn walls_stop_shots() {
    let mut game = with_player(quiet());
    player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
    // Behind the wall at (−9.5, 0.5).
    put_enemy(&mut game, 0, Vec2::new(-7.0, 0.5));
    let health = game.sim().enemies[0].health;
    game.hold(
        ONE,
        Pad {
            aim: Heading::EAST,
            buttons: Pad::FIRE,
            ..Pad::default()
        },
    )
    .run(60);
    assert_eq!(game.sim().enemies[0].health, health);
    assert!(game.sim().shots.iter().all(|shot| shot.at.x < -10.0));
}

#[test]
fn a_shot_lights_a_barrel() {
    let mut game = with_player(quiet());
    player_mut(&mut game).at = rules().barrels[6] - Vec2::new(4.0, 0.0);
    game.hold(
        ONE,
        Pad {
            aim: Heading::EAST,
            buttons: Pad::FIRE,
            ..Pad::default()
        },
    )
    .run(12);
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Lit);
    assert_eq!(game.sim().barrels[6].by, Some(ONE));
}

fn fire(game: &mut SoloGame, weapon: Weapon) {
    player_mut(game).arm(weapon);
    let pad = Pad {
        aim: Heading::EAST,
        buttons: Pad::FIRE,
        ..Pad::default()
    };
    game.hold(ONE, pad).step();
    game.hold(ONE, Pad::default());
}

fn row(enemies: u16) -> SoloGame {
    let mut game = with_player(quiet());
    player_mut(&mut game).at = Vec2::new(-8.0, -4.5);
    for slot in 0..enemies {
        let at = Vec2::new(-4.0 + f32::from(slot) * 1.5, -4.5);
        put_kind(&mut game, slot, EnemyKind::Boss, at);
    }
    game
}

fn lost(game: &SoloGame) -> Vec<i16> {
    let enemies = game.sim().enemies.iter();
    enemies
        .map(|enemy| enemy.full_health - enemy.health)
        .collect()
}

#[test]
fn a_scatter_fires_a_short_range_fan() {
    let mut game = row(0);
    fire(&mut game, Weapon::Scatter);
    let shots = &game.sim().shots;
    assert_eq!(shots.len(), 5);
    let angles: Vec<f32> = shots.iter().map(|shot| shot.step.y).collect();
    assert!(
        angles.is_sorted() && angles[2] == 0.0 && angles[4] > 0.1,
        "{angles:?}"
    );
    let keys: Vec<Key> = shots.iter().map(|shot| shot.key).collect();
    assert_eq!(keys, [1, 2, 3, 4, 5].map(|n| Key::player(ONE, n)));
    let fired = game.effects().cues().iter();
    assert_eq!(fired.count(), 1, "one cue for the fan");
    game.run(Weapon::Scatter.flight_ticks());
    assert!(game.sim().shots.is_empty());
}

#[test]
fn a_lance_hits_each_enemy_on_its_way_once_and_asks_for_a_crit_each_time() {
    let mut game = row(4);
    fire(&mut game, Weapon::Lance);
    let mut asked = Vec::new();
    for _ in 0..30 {
        asked.extend(game.step().asks().iter().map(|(key, query)| (*key, *query)));
    }
    assert_eq!(lost(&game), [Weapon::Lance.damage(); 4]);
    let slots = asked.iter().map(|(_, query)| match query {
        Query::Crit(strike) => (strike.slot, strike.by),
        other => panic!("{other:?}"),
    });
    assert!(slots.eq([0, 1, 2, 3].map(|slot| (slot, ONE))));
    // The owner's client is never asked for a secret.
    assert!(asked.iter().all(|(key, _)| key.owner().is_none()));
}

#[test]
fn a_lance_is_spent_after_its_maximum_number_of_hits() {
    let mut game = row(PIERCED_MAX as u16 + 2);
    fire(&mut game, Weapon::Lance);
    game.run(40);
    let hits = lost(&game).iter().filter(|lost| **lost > 0).count();
    assert_eq!(hits, PIERCED_MAX);
    assert!(game.sim().shots.is_empty());
}

#[test]
fn many_lances_leave_space_for_a_blast_in_a_ticks_queries() {
    let mut game = quiet();
    for n in 0..16 {
        game.join(PlayerId(n));
    }
    game.step();
    put_kind(&mut game, 0, EnemyKind::Boss, Vec2::ZERO);
    let now = game.world().tick();
    for n in 0..16 {
        let at = Vec2::ZERO;
        let shot = Shot::fired(PlayerId(n), 1, Weapon::Lance, at, Vec2::X, now, &rules());
        game.sim_mut().shots.push(shot);
    }
    let shell = Shot::fired(
        ONE,
        2,
        Weapon::Thumper,
        Vec2::ZERO,
        Vec2::ZERO,
        now,
        &rules(),
    );
    game.sim_mut().shots.push(Shot { ends: now, ..shell });
    let asks = game.step().asks();
    assert!(asks.len() < twinstep_core::bounds::ASKS_PER_TICK);
    assert!(
        asks.iter()
            .any(|(_, query)| matches!(query, Query::Blast { .. }))
    );
}

#[test]
fn a_shell_flies_over_walls_and_enemies_and_asks_for_its_blast_where_it_lands() {
    let mut game = with_player(quiet());
    player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
    // Before and behind the wall at (−9.5, 0.5).
    put_kind(&mut game, 0, EnemyKind::Gunner, Vec2::new(-12.0, 0.5));
    put_kind(&mut game, 1, EnemyKind::Gunner, Vec2::new(-3.5, 0.5));
    fire(&mut game, Weapon::Thumper);
    let mut asked = Vec::new();
    for _ in 0..Weapon::Thumper.flight_ticks() {
        asked.extend(game.step().asks().iter().map(|(key, query)| (*key, *query)));
    }
    let [(key, Query::Blast { bomb, at, .. })] = asked[..] else {
        panic!("{asked:?}");
    };
    let n = 1;
    assert_eq!(bomb, Bomb::Shell { owner: ONE, n });
    assert_eq!(
        key.owner(),
        Some(ONE),
        "its own client may answer where owners do"
    );
    let range = Weapon::Thumper.speed() * Weapon::Thumper.flight_ticks() as f32;
    assert!((at.to_vec2().x - (range - 14.0)).abs() < 0.5, "{at:?}");
    assert_eq!(lost(&game), [0, 0]);
    let hit = BlastHit::new(Victim::Enemy(1), 0);
    let hits = BlastHit::nearest([hit]);
    game.answer(key, Outcome::Blast { hits }).step();
    assert!(!game.sim().enemies[1].is_alive());
    let burst = Cue::Burst { owner: ONE, n };
    assert!(game.effects().cues().contains(&(key, burst)));
}

#[test]
fn a_shell_lands_inside_the_arena_and_outside_of_walls() {
    let rules = rules();
    let mut luck = twinstep_core::Mwc::seed(4);
    for _ in 0..300 {
        let mut game = with_player(quiet());
        let part = Vec2::new(luck.unit_f32(), luck.unit_f32()) * 2.0 - 1.0;
        player_mut(&mut game).at = rules.place(part * rules.half, 0.5);
        player_mut(&mut game).arm(Weapon::Thumper);
        let aim = Heading(luck.range(1..256) as u8);
        let buttons = Pad::FIRE;
        game.hold(
            ONE,
            Pad {
                aim,
                buttons,
                ..Pad::default()
            },
        )
        .step();
        while game.world().open_queries().is_empty() {
            game.step();
        }
        let Query::Blast { at, .. } = game.world().open_queries()[0].query else {
            panic!("a shell asks for a blast");
        };
        let at = at.to_vec2();
        assert!(rules.place(at, 0.2).distance(at) < 0.02, "{at}");
    }
}

#[test]
fn an_empty_weapon_is_replaced_by_the_first() {
    let mut game = row(0);
    player_mut(&mut game).arm(Weapon::Thumper);
    player_mut(&mut game).ammo = 1;
    let buttons = Pad::FIRE;
    game.hold(
        ONE,
        Pad {
            buttons,
            ..Pad::default()
        },
    )
    .step();
    assert_eq!(player(&game).weapon, Weapon::Blaster);
    assert_eq!(game.sim().shots[0].weapon, Weapon::Thumper);
    game.run(Weapon::Thumper.every_ticks());
    let blaster = game
        .sim()
        .shots
        .iter()
        .filter(|shot| shot.weapon == Weapon::Blaster);
    assert_eq!(
        blaster.count(),
        1,
        "not before the thumper would have fired again"
    );
}

/// Switches to the prediction of a screen where TWO is local, and ONE's input at the time of the shot is unknown.
fn elsewhere(game: &mut SoloGame) {
    let now = game.world().tick();
    for shot in &mut game.sim_mut().shots {
        shot.born = now + 1_000;
    }
    game.predict(PlayerSet::from_iter([TWO]), now, Learned::new());
}

/// Rows 68 and 69, for a lance's ghost, which flies on like the real shot.
#[test]
fn a_ghost_lance_pierces_enemies_and_withholds_each_hit() {
    let mut game = row(3);
    fire(&mut game, Weapon::Lance);
    elsewhere(&mut game);
    let (mut withheld, mut flew) = (0, 0);
    for _ in 0..40 {
        flew += game.sim().shots.len();
        let effects = game.step();
        withheld += u32::from(effects.withheld());
        assert!(effects.asks().is_empty() && effects.cues().is_empty());
    }
    assert_eq!((withheld, lost(&game)), (3, vec![0; 3]));
    assert!(flew > 20, "it was not spent on the first one");
}

/// Row 68.
#[test]
fn a_ghost_shell_lands_without_a_query_and_withholds_its_blast() {
    let mut game = row(0);
    fire(&mut game, Weapon::Thumper);
    elsewhere(&mut game);
    let mut withheld = 0;
    for _ in 0..60 {
        let effects = game.step();
        withheld += u32::from(effects.withheld());
        assert!(effects.asks().is_empty());
    }
    assert_eq!(withheld, 1);
    assert!(game.sim().shots.is_empty());
}

/// Row 70.
#[test]
fn shots_of_every_weapon_are_promoted_once_their_input_is_known() {
    for weapon in Weapon::ALL {
        let mut game = row(1);
        fire(&mut game, weapon);
        let born = game.sim().shots[0].born;
        let mut learned = Learned::new();
        learned.note(ONE, born, born + 2);
        game.predict(PlayerSet::from_iter([TWO]), born + 2, learned);
        let mut asked = 0;
        for _ in 0..60 {
            let effects = game.step();
            assert!(!effects.withheld(), "{weapon:?}");
            asked += effects.asks().len();
        }
        let does = (lost(&game)[0] > 0, asked > 0);
        let expected = match weapon {
            Weapon::Blaster | Weapon::Scatter => (true, false),
            Weapon::Lance => (true, true),
            Weapon::Thumper => (false, true),
        };
        assert_eq!(does, expected, "{weapon:?}");
    }
}
