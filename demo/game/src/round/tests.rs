//! Rounds from the lobby to the end, and on to the next round.

use std::collections::BTreeSet;

use glam::Vec2;

use super::super::testing::*;
use super::*;
use crate::{BarrelStage, Command, EnemyKind, Item, admit};

fn lobby() -> SoloGame {
    let mut game = solo(short());
    game.join(ONE).join(TWO).step();
    game
}

fn first_wave() -> SoloGame {
    let mut game = lobby();
    game.command(ONE, Command::Ready)
        .command(TWO, Command::Ready)
        .step();
    run_until(&mut game, RoundPhase::Wave);
    game
}

fn says(game: &SoloGame, cue: Cue) -> bool {
    game.effects().cues().iter().any(|(_, other)| *other == cue)
}

fn die(game: &mut SoloGame, id: PlayerId) {
    let by = Key::default();
    game.claim(id, Command::Died { by }).step();
}

#[test]
fn a_round_starts_when_all_are_ready() {
    let mut game = lobby();
    game.run(500);
    assert_eq!(game.sim().phase, RoundPhase::Lobby);
    game.command(ONE, Command::Ready).step();
    assert!(says(&game, Cue::Ready(ONE)));
    game.command(ONE, Command::Ready)
        .command(TWO, Command::Ready)
        .run(10);
    assert_eq!(game.sim().phase, RoundPhase::Lobby, "ONE took it back");
    game.command(ONE, Command::Ready).step();
    assert!(says(&game, Cue::Countdown));
    assert_eq!(
        (game.sim().phase, game.sim().round),
        (RoundPhase::Countdown, 1)
    );
    let tuning = &short().tuning;
    assert_eq!(game.sim().lives, tuning.lives + 2 * tuning.lives_per_player);
    game.run(tuning.countdown_ticks - 1);
    assert_eq!(game.sim().phase, RoundPhase::Countdown);
    game.step();
    assert!(says(&game, Cue::WaveBegan(1)));
    game.run(60);
    let coming = game.sim().enemies.iter().filter(|enemy| enemy.is_alive());
    assert_eq!(coming.count(), 3, "two for one player, and more for two");
}

#[test]
fn bots_wait_until_a_human_player_is_ready() {
    let mut bots = PlayerSet::default();
    bots.set(TWO, true);
    let mut game = lobby();
    assert!(game.sim().waits_for_persons(bots));
    game.command(ONE, Command::Ready).step();
    assert!(!game.sim().waits_for_persons(bots), "now they may follow");
    game.command(TWO, Command::Ready).step();
    run_until(&mut game, RoundPhase::Wave);
    assert!(!game.sim().waits_for_persons(bots), "nothing waits");
    let mut game = lobby();
    game.leave(ONE);
    game.step();
    assert!(!game.sim().waits_for_persons(bots), "among themselves");
}

#[test]
fn the_lobby_does_not_wait_for_absent_players() {
    for cut_off in [false, true] {
        let mut game = lobby();
        game.command(ONE, Command::Ready).run(5);
        assert_eq!(game.sim().phase, RoundPhase::Lobby);
        if cut_off {
            game.sim_mut().players.get_mut(&TWO).unwrap().is_away = true;
        } else {
            game.leave(TWO);
        }
        game.run(2);
        assert_eq!(game.sim().phase, RoundPhase::Countdown);
    }
}

/// A connected player that never gets ready does not hold up the others forever.
#[test]
fn a_round_starts_when_half_have_been_ready_for_a_while() {
    let mut game = lobby();
    let patience = short().tuning.patience_ticks;
    for id in [PlayerId(3), PlayerId(4)] {
        game.join(id);
    }
    game.command(ONE, Command::Ready).step();
    game.run(2 * patience);
    assert_eq!(
        game.sim().phase,
        RoundPhase::Lobby,
        "one of four is not enough"
    );
    assert_eq!(game.sim().begins_anyway(&short()), None);
    game.command(TWO, Command::Ready).step();
    let since = game.world().tick().back(1);
    let begins = game.sim().begins_anyway(&short());
    assert_eq!(begins, Some(since + patience));
    game.command(TWO, Command::Ready).run(10);
    assert_eq!(game.sim().begins_anyway(&short()), None, "TWO took it back");
    game.command(TWO, Command::Ready).run(patience);
    assert_eq!(game.sim().phase, RoundPhase::Lobby);
    game.step();
    assert_eq!(game.sim().phase, RoundPhase::Countdown);
}

#[test]
fn an_idle_player_does_not_delay_a_lost_round() {
    let mut game = first_wave();
    game.sim_mut().lives = 0;
    die(&mut game, ONE);
    game.run(10);
    assert_eq!(
        game.sim().phase,
        RoundPhase::Wave,
        "TWO may just be thinking"
    );
    game.run(short().tuning.patience_ticks);
    assert_eq!(game.sim().phase, RoundPhase::Lost);
    game.command(ONE, Command::Ready)
        .run(short().tuning.patience_ticks + 2);
    assert_eq!(
        game.sim().phase,
        RoundPhase::Countdown,
        "and the next round begins"
    );
}

/// A player that leaves and joins again has no advantage over one that stays.
#[test]
fn a_joiner_waits_for_the_end_of_the_wave_if_no_life_is_left() {
    let mut game = first_wave();
    game.sim_mut().lives = 0;
    die(&mut game, ONE);
    game.leave(ONE).run(5).join(ONE).run(600);
    assert!(player(&game).is_out && !player(&game).is_alive());
    slay(&mut game);
    game.step();
    assert_eq!(game.sim().phase, RoundPhase::Lull);
    assert!(player(&game).is_alive() && !player(&game).is_out);
}

#[test]
fn a_returning_player_keeps_its_health() {
    for mut game in [first_wave(), with_player(quiet())] {
        player_mut(&mut game).health = 7;
        game.cut_off(ONE).run(20);
        assert!(!player(&game).is_alive() && player(&game).is_away);
        game.reconnect(ONE).step();
        assert_eq!((player(&game).health, player(&game).is_away), (7, false));
    }
}

#[test]
fn a_player_dropped_while_dead_still_respawns_at_the_same_time() {
    let wait = short().tuning.player_return_ticks;
    for away in [10, wait + 10] {
        let mut game = first_wave();
        die(&mut game, ONE);
        let lives = game.sim().lives;
        game.cut_off(ONE).run(away);
        assert!(
            !player(&game).is_alive(),
            "a player that is away is not in play"
        );
        game.reconnect(ONE).step();
        assert_eq!(player(&game).is_alive(), away > wait, "after {away} ticks");
        game.run(wait - 10);
        assert!(player(&game).is_alive());
        assert_eq!(game.sim().lives, lives, "a death costs one life");
    }
}

#[test]
fn an_eliminated_absent_player_reappears_on_return() {
    let mut game = first_wave();
    game.sim_mut().lives = 0;
    die(&mut game, ONE);
    game.cut_off(ONE).run(5);
    game.reconnect(ONE).run(5);
    assert!(
        player(&game).is_out,
        "returning alone does not bring it back"
    );
    game.cut_off(ONE).run(5);
    slay(&mut game);
    game.step();
    assert!(!player(&game).is_alive());
    game.reconnect(ONE).step();
    assert_eq!(player(&game).health, short().tuning.player_health);
}

/// The barrel has been replaced, so an answer to the query of the former one no longer matches it.
#[test]
fn a_barrel_with_an_open_query_is_whole_again_in_the_next_round() {
    let mut game = first_wave();
    let at = game.sim().barrels[6].at;
    player_mut(&mut game).at = at;
    game.command(ONE, Command::Light { barrel: 6 })
        .run(short().tuning.fuse_ticks + 1);
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Blasting);
    let open = game.world().open_queries();
    let blast = open
        .iter()
        .find(|open| matches!(open.query, crate::Query::Blast { .. }));
    let key = blast.expect("it was asked").key;
    game.sim_mut().phase = RoundPhase::Won;
    game.command(ONE, Command::Ready)
        .command(TWO, Command::Ready);
    run_until(&mut game, RoundPhase::Countdown);
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Whole);
    game.refuse(key).step();
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Whole);
}

#[test]
fn players_are_not_hurt_before_the_first_wave_or_after_the_last() {
    let mut game = lobby();
    die(&mut game, ONE);
    game.claim(ONE, Command::Hurt { by: Key::default() }).step();
    assert_eq!(player(&game).health, short().tuning.player_health);
}

#[test]
fn a_late_joiner_appears_during_the_wave() {
    let mut game = first_wave();
    let late = PlayerId(7);
    game.join(late).run(2);
    assert!(game.sim().players.get(&late).unwrap().is_alive());
    assert_eq!(game.sim().phase, RoundPhase::Wave);
    let Err(refusal) = admit(game.sim(), &short(), late, &Command::Ready) else {
        panic!("there is nothing to be ready for");
    };
    assert!(refusal.to_string().contains("until it ends"));
}

#[test]
fn a_cleared_wave_is_followed_by_a_rest_and_the_next_wave() {
    let mut game = first_wave();
    game.run(60);
    slay(&mut game);
    game.step();
    assert_eq!(game.sim().phase, RoundPhase::Lull);
    assert!(says(&game, Cue::WaveCleared(1)));
    game.run(short().tuning.lull_ticks);
    assert_eq!((game.sim().phase, game.sim().wave), (RoundPhase::Wave, 2));
    assert!(says(&game, Cue::WaveBegan(2)));
}

#[test]
fn a_wave_is_not_cleared_while_enemies_are_still_to_come() {
    let mut game = first_wave();
    game.run(2);
    slay(&mut game);
    game.run(2);
    assert_eq!(game.sim().phase, RoundPhase::Wave);
}

#[test]
fn deaths_cost_lives_and_a_player_without_one_waits_for_the_end_of_the_wave() {
    let mut game = first_wave();
    game.sim_mut().lives = 1;
    die(&mut game, ONE);
    assert_eq!(game.sim().lives, 0);
    game.run(short().tuning.player_return_ticks);
    assert!(player(&game).is_alive(), "the last life");
    die(&mut game, ONE);
    assert!(player(&game).is_out);
    game.run(600);
    assert!(!player(&game).is_alive());
    assert_eq!(game.sim().phase, RoundPhase::Wave, "TWO fights on");
    slay(&mut game);
    game.step();
    assert_eq!(game.sim().phase, RoundPhase::Lull);
    assert!(player(&game).is_alive() && !player(&game).is_out);
}

#[test]
fn a_round_is_lost_when_all_are_dead_and_no_life_is_left() {
    let mut game = first_wave();
    game.sim_mut().lives = 1;
    die(&mut game, ONE);
    die(&mut game, TWO);
    game.run(10);
    assert_eq!(game.sim().phase, RoundPhase::Wave, "ONE comes back");
    game.run(short().tuning.player_return_ticks);
    die(&mut game, ONE);
    assert_eq!(game.sim().phase, RoundPhase::Lost);
    assert!(says(&game, Cue::Lost));
}

#[test]
fn a_round_is_not_lost_by_disconnections_and_ends_when_all_players_leave() {
    let mut game = first_wave();
    for player in game.sim_mut().players.values_mut() {
        player.health = 0;
        player.is_away = true;
    }
    game.run(300);
    assert_eq!(game.sim().phase, RoundPhase::Wave);
    game.leave(ONE).leave(TWO).run(2);
    assert_eq!(game.sim().phase, RoundPhase::Lobby);
    assert!(
        game.sim()
            .enemies
            .iter()
            .all(|enemy| !enemy.is_alive() && !enemy.is_coming)
    );
    assert!(game.sim().timers.is_empty());
}

#[test]
fn the_last_wave_ends_with_its_boss_and_the_round_is_won() {
    let mut game = first_wave();
    game.run(60);
    slay(&mut game);
    run_until(&mut game, RoundPhase::Lull);
    run_until(&mut game, RoundPhase::Wave);
    game.run(60);
    let boss = game
        .sim()
        .enemies
        .iter()
        .position(|enemy| enemy.kind == EnemyKind::Boss);
    let boss = &mut game.sim_mut().enemies[boss.expect("a boss came")];
    assert!(boss.is_alive());
    boss.health = 1;
    let at = boss.at;
    put_shot(&mut game, ONE, at);
    game.run(2);
    assert_eq!(game.sim().phase, RoundPhase::Won);
    assert!(game.sim().enemies.iter().all(|enemy| !enemy.is_alive()));
    assert!(game.sim().bullets.is_empty());
    assert!(player(&game).score >= u32::from(EnemyKind::Boss.points()));
}

#[test]
fn the_next_round_resets_everything_but_the_keys() {
    let mut game = first_wave();
    game.run(60);
    let home = short().crates[0];
    let sim = game.sim_mut();
    sim.lives = 0;
    sim.crates[0].health = 0;
    sim.crates[1].at += 1.0;
    sim.barrels[2].stage = BarrelStage::Gone;
    sim.barrels[3].at += 1.0;
    sim.score = 70;
    put_bullet(&mut game, Key::new(7, 7), Vec2::ZERO);
    player_mut(&mut game).arm(super::super::Weapon::Lance);
    player_mut(&mut game).score = 70;
    let names = |game: &SoloGame| -> BTreeSet<Key> {
        let sim = game.sim();
        let enemies = sim.enemies.iter().zip(0..).map(|(enemy, n)| enemy.key(n));
        let barrels = sim.barrels.iter().zip(0..).map(|(barrel, n)| barrel.key(n));
        let crates = sim.crates.iter().zip(0..).map(|(chest, n)| chest.key(n));
        let players = sim.players.iter().map(|(id, player)| player.life_key(*id));
        let alive = enemies.filter(|key| key.n > 0);
        alive.chain(barrels).chain(crates).chain(players).collect()
    };
    let before = names(&game);
    die(&mut game, ONE);
    die(&mut game, TWO);
    assert_eq!(game.sim().phase, RoundPhase::Lost);
    game.command(ONE, Command::Ready)
        .command(TWO, Command::Ready)
        .run(10);
    assert_eq!(
        game.sim().phase,
        RoundPhase::Lost,
        "the result is shown for a while"
    );
    run_until(&mut game, RoundPhase::Countdown);
    let sim = game.sim();
    assert_eq!((sim.round, sim.wave, sim.score), (2, 0, 0));
    assert!(sim.bullets.is_empty() && sim.pickups.is_empty());
    assert_eq!(sim.crates[0].at, home);
    assert!(sim.crates.iter().all(|chest| chest.stands()));
    assert!(
        sim.barrels
            .iter()
            .all(|barrel| barrel.stage == BarrelStage::Whole)
    );
    assert_eq!(sim.barrels[3].at, short().barrels[3]);
    assert_eq!(
        (player(&game).score, player(&game).weapon),
        (0, Default::default())
    );
    assert!(player(&game).is_alive());
    run_until(&mut game, RoundPhase::Wave);
    game.run(60);
    assert!(before.is_disjoint(&names(&game)), "no key is used twice");
}

#[test]
fn a_boss_has_more_health_against_a_larger_team() {
    let health = |team: u8| {
        let mut game = solo(Rules {
            waves: short().waves.split_off(1),
            ..short()
        });
        for n in 0..team {
            game.join(PlayerId(n)).command(PlayerId(n), Command::Ready);
        }
        game.step();
        run_until(&mut game, RoundPhase::Wave);
        game.run(5);
        let boss = &game.sim().enemies[0];
        assert_eq!(boss.kind, EnemyKind::Boss);
        boss.full_health
    };
    let [one, four, eight] = [1, 4, 8].map(health);
    assert_eq!(one, EnemyKind::Boss.health());
    assert!(one < four && four < eight);
}

#[test]
fn an_extra_life_belongs_to_the_team() {
    let mut game = first_wave();
    let (lives, at) = (game.sim().lives, player(&game).at);
    put_item(&mut game, Item::Life, at);
    game.step();
    assert_eq!(game.sim().lives, lives + 1);
}
