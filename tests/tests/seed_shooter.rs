//! Additional rules of a shooter: predicted enemies, late kills, and deaths that owners decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{
    Arbiter, Command, Cue, Enemy, Game, Heading, Judge, Luck, Pad, Path, Rules, Tuning,
};
use twinstep_client::{CueKind, SessionConfig};
use twinstep_core::{Key, PlayerId, Tick};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::Claims;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Row 60: while no other player interferes, every predicted enemy equals the confirmed enemy of the same tick, field
/// by field.
#[test]
fn enemies_are_predicted_exactly_without_interference() {
    let mut config = RigConfig::new(60, LinkProfile::WAN);
    config.input_pattern = InputPattern::Still;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 12);
    let mut predicted: BTreeMap<Tick, Vec<Enemy>> = BTreeMap::new();
    let mut compared = 0;
    for _ in 0..4_000 {
        rig.run(MS * 4);
        let session = &rig.clients[0].session;
        let ahead = session.prediction().unwrap();
        let enemies = || ahead.sim().enemies.clone();
        predicted.entry(ahead.tick()).or_insert_with(enemies);
        let truth = session.authority().unwrap();
        if let Some(guess) = predicted.remove(&truth.tick()) {
            assert!(guess == truth.sim().enemies, "at {}", truth.tick());
            compared += 1;
        }
    }
    assert!(compared > 400, "{compared} ticks compared");
}

/// Row 61: other players kill enemies that this screen still shows alive. When a death appears in the confirmed world,
/// it appears in the prediction in the same call.
#[test]
fn a_late_kill_is_applied_immediately() {
    let mut rig = Rig::<Game>::new(RigConfig::new(61, LinkProfile::BAD));
    // (client, slot, life) of the enemies predicted to live, with the latest such tick.
    let mut alive: BTreeMap<(usize, usize, u32), Tick> = BTreeMap::new();
    let mut late = 0;
    while rig.now < SECOND * 30 {
        rig.run(MS * 4);
        for (i, client) in rig.clients.iter().enumerate() {
            let session = &client.session;
            let (Some(truth), Some(ahead)) = (session.authority(), session.prediction()) else {
                continue;
            };
            let both = truth.sim().enemies.iter().zip(&ahead.sim().enemies);
            for (slot, (is, shown)) in both.enumerate() {
                let name = (i, slot, is.life);
                if !is.is_alive() {
                    let shown_alive = shown.is_alive() && shown.life == is.life;
                    assert!(!shown_alive, "client {i} still shows enemy {slot}");
                    let last = alive.remove(&name);
                    late += u32::from(last.is_some_and(|tick| tick > truth.tick()));
                } else if shown.is_alive() && shown.life == is.life {
                    alive.insert(name, ahead.tick());
                }
            }
        }
    }
    assert!(late > 30, "{late} deaths arrived late");
}

/// Row 69: a ghost shot's withheld hit is corrected later: no prediction shows an enemy with more health than it has in
/// the confirmed world.
#[test]
fn a_ghost_shot_that_did_hit_is_corrected() {
    let mut rig = Rig::<Game>::new(RigConfig::new(69, LinkProfile::WAN));
    let mut wounded = 0;
    while rig.now < SECOND * 30 {
        rig.run(MS * 4);
        for client in &rig.clients {
            let session = &client.session;
            let (Some(truth), Some(ahead)) = (session.authority(), session.prediction()) else {
                continue;
            };
            for (is, shown) in truth.sim().enemies.iter().zip(&ahead.sim().enemies) {
                if is.life == shown.life {
                    assert!(shown.health <= is.health, "{shown:?}, but {is:?}");
                    wounded += u32::from(is.is_alive() && shown.health == is.health);
                }
            }
        }
    }
    let withheld: u64 = (0..4).map(|i| rig.stats(i).timeline.by_withheld).sum();
    assert!(withheld > 50, "{withheld} hits were held back");
    assert!(wounded > 10_000);
}

const FIRST: PlayerId = PlayerId(0);
const SPOT: Vec2 = Vec2::new(-33.0, -17.5);

fn level(orbit: Vec2, enemies: u16, shield_ticks: u32) -> Rules {
    Rules {
        half: Vec2::new(40.0, 24.0),
        walls: Vec::new(),
        barrels: Vec::new(),
        spawns: vec![SPOT - Vec2::X * 4.0, SPOT + Vec2::X * 4.0],
        orbits: vec![Path::Round {
            stops: vec![orbit],
            leg_ticks: 100,
        }],
        rounds: vec![Path::Round {
            stops: vec![SPOT],
            leg_ticks: 100,
        }],
        tuning: Tuning {
            enemy_arrival_ticks: 8,
            enemy_return_ticks: 6_000,
            shield_ticks,
            carry_percent: 0,
            ..Tuning::default()
        },
        ..Rules::arena(enemies)
    }
}

fn duel(rules: &Arc<Rules>, claims: Claims) -> Direct<Game> {
    let config = || SessionConfig::<Game>::new(rules.clone());
    let policies = MatchConfig {
        claims,
        ..MatchConfig::action()
    };
    let arbiter = Arbiter::new(rules, Luck::Seeded(5)).unwrap();
    let game = Game::new(rules, 5);
    let sessions = vec![config(), config()];
    let mut table = Direct::new(policies, game, rules.clone(), arbiter, sessions, 60);
    table.match_.set_referee(Judge);
    table.match_.keep_journal().unwrap();
    table.run(240, |_, _| Pad::default());
    table
}

fn east() -> Pad {
    Pad {
        walk: Heading::EAST,
        ..Pad::default()
    }
}

fn fire_west() -> Pad {
    Pad {
        aim: Heading::toward(-Vec2::X),
        buttons: Pad::FIRE,
        ..Pad::default()
    }
}

fn sapper(shield_ticks: u32) -> Arc<Rules> {
    Arc::new(level(Vec2::new(39.0, 23.0), 4, shield_ticks))
}

/// Rows 63 and 64: one player kills the sapper. The other player does not know that yet, and runs into the sapper on
/// its own screen. That player dies on all sides, because a step does not question a claim in its frame.
#[test]
fn a_crash_into_an_already_dead_enemy_still_kills() {
    let rules = sapper(1);
    let mut table = duel(&rules, Claims::OwnerOnly);
    let sapper = table.match_.world().sim().enemies[3].key(3);
    table.deaf_until[0] = table.now + MS * 600;
    table.run(60, |i, _| if i == 0 { east() } else { fire_west() });
    assert_eq!(table.match_.seat_stats(FIRST).claims, 1);
    table.run(30, |_, _| Pad::default());
    let mut replay = Replay::<Game>::open(&table.journal, &rules).unwrap();
    let (mut killed, mut died) = (None, None);
    while replay.step().unwrap() {
        let (frame, game) = (replay.frame(), replay.world().sim());
        let enemy = game.enemies.get(3);
        if enemy.is_some_and(|enemy| enemy.life == 1 && !enemy.is_alive()) {
            killed.get_or_insert(frame.tick);
        }
        for claim in &frame.claims {
            let word = Command::Died { by: sapper };
            assert_eq!((claim.player, claim.command), (FIRST, word));
            assert_eq!(died.replace(frame.tick), None, "it dies once");
            assert!(!game.players.get(&FIRST).unwrap().is_alive());
        }
    }
    let (killed, died) = (killed.unwrap(), died.unwrap());
    assert!(killed < died, "killed at {killed}, crashed into at {died}");
    for session in &table.sessions {
        let world = session.authority().unwrap();
        assert_eq!(world.digest().ok(), table.match_.digest_at(world.tick()));
        assert!(!world.sim().players.get(&FIRST).unwrap().is_alive());
    }
}

/// Rows 63 and 90: a bullet kills the player that sees it, although on the server the enemy was dead before it fired,
/// and the bullet never existed there.
#[test]
fn a_bullet_of_an_already_dead_enemy_still_kills() {
    let mut rules = level(SPOT, 1, 1);
    rules.tuning.bullet_damage = rules.tuning.player_health;
    let rules = Arc::new(rules);
    let mut table = duel(&rules, Claims::OwnerOnly);
    let life = table.match_.world().sim().enemies[0].key(0);
    let fired = |table: &mut Direct<Game>| {
        let mut any = false;
        while let Some(event) = table.sessions[0].poll_cue() {
            any |= matches!(
                event.kind,
                CueKind::Started {
                    cue: Cue::Volley(0),
                    ..
                }
            );
        }
        any
    };
    fired(&mut table);
    while !fired(&mut table) {
        table.run(1, |_, _| Pad::default());
        assert!(table.now < SECOND * 60, "the gunner never fires");
    }
    // The next volley comes 50 to 79 ticks after this one; three shots kill within 20.
    table.run(26, |_, _| Pad::default());
    table.deaf_until[0] = Duration::MAX;
    for _ in 0..100 {
        let game = table.match_.world().sim();
        let is_dead = !game.enemies[0].is_alive();
        let aims = Pad {
            aim: Heading::EAST,
            ..Pad::default()
        };
        table.run(1, |i, _| match i {
            1 if !is_dead => fire_west(),
            // A player can be hurt once it acts.
            0 if is_dead => aims,
            _ => Pad::default(),
        });
    }
    let mut replay = Replay::<Game>::open(&table.journal, &rules).unwrap();
    let (mut bullets, mut killed, mut died) = (BTreeSet::new(), None, None);
    while replay.step().unwrap() {
        let (frame, game) = (replay.frame(), replay.world().sim());
        bullets.extend(game.bullets.iter().map(|bullet| bullet.key));
        if !game.enemies[0].is_alive() && game.enemies[0].life == 1 {
            killed.get_or_insert(frame.tick);
        }
        for claim in &frame.claims {
            let Command::Died { by } = claim.command else {
                panic!("{:?}", claim.command)
            };
            assert_eq!(claim.player, FIRST);
            assert!(!game.players.get(&FIRST).unwrap().is_alive());
            died.get_or_insert((frame.tick, by));
        }
    }
    let (died, by) = died.expect("it is hit");
    assert!(
        killed.unwrap() < died,
        "killed at {killed:?}, hit at {died}"
    );
    assert!((0..500).any(|n| life.child(n) == by), "by its bullet");
    assert!(!bullets.contains(&by), "a bullet that never was");
}

/// Rows 63 and 64, both policies: a client that never claims its death survives if only owners decide, and dies within
/// a fixed number of ticks after the touch if the referee also checks. An honest client dies once, by its own claim,
/// under either policy.
#[test]
fn no_player_is_immortal() {
    const WITHIN: u32 = 20;
    for (claims, budget_ticks) in [
        (Claims::OwnerOnly, 0),
        (Claims::OwnerWithin(WITHIN), 0),
        (Claims::OwnerOnly, 128),
        (Claims::OwnerWithin(WITHIN), 128),
    ] {
        let mut table = duel(&sapper(1), claims);
        // Without a prediction, a client does not detect touches and does not make claims.
        table.budget_ticks = budget_ticks;
        let (mut touched, mut died) = (None, None);
        for n in 0..100 {
            let east = n < 20;
            table.run(1, |i, _| {
                if i == 0 && east {
                    self::east()
                } else {
                    Pad::default()
                }
            });
            let world = table.match_.world();
            let player = world.sim().players.get(&FIRST).unwrap();
            if player.at.distance(SPOT) <= 1.0 {
                touched.get_or_insert(world.tick());
            }
            if !player.is_alive() {
                died.get_or_insert(world.tick());
            }
        }
        let touched = touched.expect("it walks into the sapper");
        println!("{claims:?}, {budget_ticks} steps: touched {touched}, died {died:?}");
        match (claims, budget_ticks) {
            (Claims::OwnerOnly, 0) => assert_eq!(died, None, "trusted"),
            (Claims::OwnerWithin(_), 0) => {
                let late = died.expect("it owed its death") - touched;
                assert!((WITHIN..=WITHIN + 3).contains(&late), "{late} ticks late");
            }
            _ => {
                let late = died.expect("it claimed its death") - touched;
                assert!(late < 10, "{late} ticks late");
            }
        }
        table.run(180, |_, _| Pad::default());
        let deaths = table.match_.world().sim().players.get(&FIRST).unwrap().life - 1;
        assert_eq!(deaths, u32::from(died.is_some()), "{claims:?}");
        assert_eq!(table.match_.seat_stats(FIRST).claims, u64::from(deaths));
    }
}

/// Row 62: a gunner was killed before it fired, but this client did not know. The volley is cancelled, and none of its
/// bullets survives the correction.
#[test]
fn shots_of_a_dead_enemy_vanish() {
    // No player is hurt here.
    let rules = Arc::new(level(SPOT, 1, 100_000));
    let mut table = duel(&rules, Claims::OwnerOnly);
    let life = table.match_.world().sim().enemies[0].key(0);
    let names: BTreeSet<Key> = (0..200).map(|n| life.child(n)).collect();
    let mut open = BTreeMap::new();
    let mut cancelled = 0;
    let mut volleys = |table: &mut Direct<Game>| {
        let before = open.len();
        while let Some(event) = table.sessions[0].poll_cue() {
            match event.kind {
                CueKind::Started {
                    tick,
                    cue: Cue::Volley(0),
                    ..
                } => drop(open.insert(event.id, tick)),
                CueKind::Cancelled => cancelled += u32::from(open.remove(&event.id).is_some()),
                _ => {}
            }
        }
        (open.len() > before, cancelled)
    };
    // The age of its first volleys is unknown.
    volleys(&mut table);
    while !volleys(&mut table).0 {
        table.run(1, |_, _| Pad::default());
        assert!(table.now < SECOND * 60, "the gunner never fires");
    }
    // The next volley comes 50 to 79 ticks after this one; three shots kill within 20.
    table.run(22, |_, _| Pad::default());
    table.deaf_until[0] = Duration::MAX;
    let own = |table: &Direct<Game>| {
        let bullets = |world: &twinstep_core::World<Game>| -> BTreeSet<Key> {
            let keys = world.sim().bullets.iter().map(|bullet| bullet.key);
            keys.filter(|key| names.contains(key)).collect()
        };
        let session = &table.sessions[0];
        let worlds = (session.authority().unwrap(), session.prediction().unwrap());
        (bullets(worlds.0), bullets(worlds.1))
    };
    let mut orphan = false;
    for _ in 0..61 {
        table.run(1, |i, _| if i == 1 { fire_west() } else { Pad::default() });
        orphan |= volleys(&mut table).0;
        // The volley flies only briefly, so the check runs during its flight.
        if orphan && !table.match_.world().sim().enemies[0].is_alive() {
            break;
        }
    }
    assert!(orphan, "this screen has seen it fire");
    assert!(!table.match_.world().sim().enemies[0].is_alive());
    let (true_ones, shown) = own(&table);
    assert!(!shown.is_subset(&true_ones), "a bullet that never was");
    assert_eq!(volleys(&mut table).1, 0);
    table.deaf_until[0] = Duration::ZERO;
    let dead = |world: &twinstep_core::World<Game>| !world.sim().enemies[0].is_alive();
    while !dead(table.sessions[0].authority().unwrap()) {
        table.run(1, |_, _| Pad::default());
    }
    let (true_ones, shown) = own(&table);
    assert!(dead(table.sessions[0].prediction().unwrap()));
    assert!(shown.is_subset(&true_ones), "{shown:?} of {true_ones:?}");
    assert_eq!(volleys(&mut table).1, 1, "the volley is cancelled");
}
