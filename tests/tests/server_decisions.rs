//! Decisions that only the server makes, over whole matches of Powderkeg: tosses, secrets, and claims.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{
    Arbiter, BULLET_RADIUS, Command, Game, Heading, Item, Judge, Luck, Outcome, PLAYER_RADIUS, Pad,
    Pickup, Query, Rules, Weapon,
};
use twinstep_client::SessionConfig;
use twinstep_core::bounds::{OUTCOME_BYTES_MAX, PACKET_BYTES_MAX};
use twinstep_core::{Key, PlayerId, Tick, codec};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::powderkeg::CAMPAIGN;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::Admission;
use twinstep_server::config::{AnsweredBy, Claims};
use twinstep_server::{Decision, HookContext, MatchConfig, Output, Referee, Resolver, SessionId};

const SECOND: Duration = Duration::from_secs(1);
/// The number of ticks that the referee waits after a touch before it claims.
const WITHIN: u32 = 40;

/// Rows 50 and 52: the server decides once on the paths of objects thrown by a blast, and every copy and every replay
/// shows the same paths. Clients' guesses differ and are corrected.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn tosses_are_decided_once_and_replayed_on_every_client() {
    let mut config = RigConfig::new(50, LinkProfile::BAD);
    config.crowd = CAMPAIGN;
    config.fps = 60;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 100);
    let rules = <Game as twinstep_rig::rig::Play>::rules(CAMPAIGN);
    let mut replay = Replay::<Game>::open(&rig.journal, &rules).unwrap();
    let (mut tosses, mut thrown, mut largest, mut aloft) = (0, 0, 0, 0);
    while replay.step().unwrap() {
        for answer in &replay.frame().outcomes {
            if let Some(Outcome::Toss { throws }) = &answer.outcome {
                tosses += 1;
                thrown += throws.len();
                largest = largest.max(codec::size(&answer.outcome).unwrap());
            }
        }
        aloft += replay.world().sim().flights.len();
        for (prop, at) in replay.world().sim().lying() {
            let free = rules.place(at, prop.radius()).distance(at);
            assert!(free < 0.05, "{prop:?} lies {free} deep in a wall at {at}");
        }
    }
    println!("{tosses} tosses threw {thrown}, at most {largest} B; {aloft} ticks in the air");
    assert!(tosses >= 5 && thrown >= 8 && aloft > 100);
    assert!(largest <= OUTCOME_BYTES_MAX);
    let world = replay.world();
    assert_eq!(world.digest().ok(), rig.match_.digest_at(world.tick()));
    for i in 0..4 {
        assert_eq!(rig.clients[i].desync, None);
    }
}

struct Hunt {
    packets: Vec<Vec<Vec<u8>>>,
    worlds: Vec<Vec<u8>>,
    loot: Option<Item>,
}

/// Rows 51 and 52: if owners answer, the client of the player that lit a barrel decides on its hits and paths, and the
/// referee accepts plausible answers. Forged answers are refused, and the server decides instead.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn owners_may_resolve_their_blasts_and_tosses_and_cheaters_are_overruled() {
    for forge in [false, true] {
        let mut config = RigConfig::new(51, LinkProfile::WAN);
        config.crowd = CAMPAIGN;
        config.fps = 60;
        config.policies.answered_by = AnsweredBy::Owner;
        config.forge = forge;
        let mut rig = Rig::<Game>::new(config);
        rig.match_.set_referee(Judge);
        rig.run(SECOND * 60);
        let stats = rig.match_.stats();
        let (believed, refused) = (stats.owner_answers, stats.forged_answers);
        println!(
            "{} questions: {believed} believed, {refused} refused",
            stats.queries
        );
        assert!(if forge { refused > 10 } else { believed > 10 });
        if forge {
            // A toss without objects cannot be forged.
            assert!(believed * 4 <= refused, "forged answers entered the game");
        } else {
            assert!(refused * 20 <= believed, "honest answers were refused");
        }
        for client in &rig.clients {
            assert_eq!(client.desync, None);
        }
    }
}

fn crate_hunt(seed: u64) -> Hunt {
    let place = Vec2::new(-20.0, 0.0);
    let rules = Arc::new(Rules {
        walls: Vec::new(),
        barrels: Vec::new(),
        spawns: vec![place],
        crates: vec![place + Vec2::X * 4.0],
        ..Rules::arena(0)
    });
    let arbiter = Arbiter::new(&rules, Luck::Seeded(seed)).unwrap();
    let config = SessionConfig::<Game>::new(rules.clone());
    let policies = MatchConfig::action();
    let game = Game::new(&rules, 1);
    let mut table = Direct::new(policies, game, rules.clone(), arbiter, vec![config], 60);
    let fire = Pad {
        aim: Heading::EAST,
        buttons: Pad::FIRE,
        ..Pad::default()
    };
    let (mut packets, mut worlds) = (Vec::new(), Vec::new());
    for n in 0..300 {
        table.frame(|_, _| if n < 120 { Pad::default() } else { fire });
        for (_, bytes) in table.up.drain(..) {
            table.match_.handle(table.now, SessionId(0), &bytes);
        }
        table.match_.advance(table.now);
        let mut text = Vec::new();
        while let Some(output) = table.match_.poll() {
            if let Output::Packet { bytes, .. } = output {
                text.push(bytes.to_vec());
                table.sessions[0].handle(table.now, bytes);
            }
        }
        let sim = table.match_.world().sim();
        if !sim.crates[0].is_there() {
            let loot = |table: &Direct<Game>| {
                let pickups = &table.match_.world().sim().pickups;
                pickups.first().map(|pickup| pickup.item)
            };
            table.run(5, |_, _| Pad::default());
            let loot = loot(&table);
            return Hunt {
                packets,
                worlds,
                loot,
            };
        }
        packets.push(text);
        let mut bytes = Vec::new();
        codec::append(sim, &mut bytes).unwrap();
        worlds.push(bytes);
    }
    panic!("the crate never broke");
}

/// Servers with different random seeds send the client the same bytes until the crate breaks: the content is in no
/// packet and in no world.
#[test]
fn no_client_knows_a_crates_content_before_it_breaks() {
    let first = crate_hunt(0);
    let packets = &first.packets;
    assert!(packets.len() > 120);
    assert!(
        packets
            .iter()
            .flatten()
            .all(|packet| packet.len() <= PACKET_BYTES_MAX)
    );
    let mut loot = BTreeSet::from([format!("{:?}", first.loot)]);
    for seed in 1..12 {
        let other = crate_hunt(seed);
        assert!(
            other.packets == *packets,
            "packets of seed {seed} reveal the content"
        );
        assert!(
            other.worlds == first.worlds,
            "the world of seed {seed} reveals the content"
        );
        loot.insert(format!("{:?}", other.loot));
    }
    assert!(loot.len() >= 3, "all crates hold the same: {loot:?}");
}

/// Returns the health of a player at which another player, with a 300 ms round trip, fired a shell. On the shooter's
/// screen the shell lands on that player; on the server the player has turned back.
fn health_after_a_shell(resolver: impl Resolver<Game>) -> i16 {
    const SHOOTER: PlayerId = PlayerId(0);
    const TARGET: PlayerId = PlayerId(1);
    const LEGS: [Duration; 2] = [Duration::from_millis(150), Duration::ZERO];
    const FIRE: u32 = 400;
    const LANDS: u32 = FIRE + Weapon::Thumper.flight_ticks();
    let (shooter, target) = (Vec2::ZERO, Vec2::new(10.8, -16.0));
    let rules = Arc::new(Rules {
        walls: Vec::new(),
        barrels: Vec::new(),
        crates: Vec::new(),
        spawns: vec![shooter, target],
        ..Rules::arena(0)
    });
    let mut game = Game::new(&rules, 1);
    game.pickups.push(Pickup {
        key: Key::new(1, 1),
        item: Item::Weapon(Weapon::Thumper),
        at: shooter,
        ends: Tick::MAX,
    });
    let config = || SessionConfig::<Game>::new(rules.clone());
    let (policies, sessions) = (MatchConfig::action(), vec![config(), config()]);
    let mut table = Direct::new(policies, game, rules.clone(), resolver, sessions, 60);
    let walk = |now: u32| match now {
        // 100 ticks at 0.16 units each lead to the place where the shell lands.
        now if now + 100 < LANDS => Heading::NONE,
        now if now + 15 < LANDS => Heading::toward(Vec2::Y),
        now if now < LANDS => Heading::toward(-Vec2::Y),
        _ => Heading::NONE,
    };
    let mut shells = [None; 2];
    for _ in 0..600 {
        table.frame_over(&LEGS, |i, session| {
            let now = session.prediction().map_or(0, |world| world.tick().0);
            let fires = i == 0 && (FIRE..FIRE + 5).contains(&now);
            Pad {
                walk: if i == 1 { walk(now) } else { Heading::NONE },
                aim: Heading::EAST,
                buttons: if fires { Pad::FIRE } else { 0 },
            }
        });
        // The player's distance from the shell when it lands, on the shooter's screen and on the server.
        let screen = table.sessions[0].prediction().map(|world| world.sim());
        let games = [screen, Some(table.match_.world().sim())];
        for (i, game) in games.into_iter().enumerate() {
            let Some(game) = game else { continue };
            let shell = game.shots.first().map(|shot| shot.at);
            if let (Some(landed), None) = (std::mem::replace(&mut shells[i], shell), shell) {
                let away = game.players.get(&TARGET).unwrap().at.distance(landed);
                assert_eq!(away < 1.0, i == 0, "{away} away, on screen {i}");
            }
        }
    }
    let players = &table.match_.world().sim().players;
    assert_eq!(players.get(&SHOOTER).unwrap().shots, 1);
    players.get(&TARGET).unwrap().health
}

/// Row 79: a shell's hits are decided on its owner's screen. There the target walked on; on the server it turned back.
#[test]
fn a_shell_hits_the_player_under_it_on_its_owners_screen() {
    let arbiter = || Arbiter::new(&Rules::arena(0), Luck::Seeded(1)).unwrap();
    let now = |mut arbiter: Arbiter| {
        move |look: &HookContext<'_, Game>, key: Key, query: &Query| {
            Decision::Now(
                arbiter
                    .decide(look.sim(), look.rules(), key, query)
                    .unwrap(),
            )
        }
    };
    let full = Rules::arena(0).tuning.player_health;
    assert_eq!(
        health_after_a_shell(now(arbiter())),
        full,
        "by the server's present"
    );
    assert!(health_after_a_shell(arbiter()) < full / 2);
}

/// Returns `true` if a player is touched by a bullet: an independent implementation of the rule.
fn is_touched(game: &Game, player: PlayerId) -> bool {
    let who = game.players.get(&player).expect("a player");
    let reach = PLAYER_RADIUS + BULLET_RADIUS - 0.01;
    game.bullets
        .iter()
        .any(|bullet| bullet.at.distance(who.at) < reach)
}

/// The real referee, but asked about owed claims only every `every` ticks. It represents a client that sends a claim in
/// each of the other ticks; 8 claims a second are accepted.
struct SparseReferee {
    every: u32,
}

impl Referee<Game> for SparseReferee {
    fn admit(
        &mut self,
        look: &HookContext<'_, Game>,
        by: PlayerId,
        what: &Command,
        claim: bool,
    ) -> Admission {
        Judge.admit(look, by, what, claim)
    }

    fn owed(
        &mut self,
        look: &HookContext<'_, Game>,
        player: PlayerId,
        within: u32,
    ) -> Option<Command> {
        let is_asked = look.tick().0.is_multiple_of(self.every);
        is_asked.then(|| Judge.owed(look, player, within)).flatten()
    }
}

/// Rows 63 and 64 with a deadline: the referee hurts and kills clients that never make claims (because they run no
/// prediction) within a bounded time after a touch. The same holds for clients that hide behind other claims.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn hacked_clients_without_claims_die_within_the_bound() {
    for every in [1, 9] {
        never_claim(every);
    }
}

fn never_claim(every: u32) {
    let mut config = RigConfig::new(64, LinkProfile::WAN);
    config.crowd = 200;
    config.budget = 0;
    (config.fps, config.verify) = (60, false);
    config.policies.claims = Claims::OwnerWithin(WITHIN);
    let mut rig = Rig::<Game>::new(config);
    rig.match_.set_referee(SparseReferee { every });
    rig.run(SECOND * 40);
    let rules = Rules::arena(200);
    let mut replay = Replay::<Game>::open(&rig.journal, &rules).unwrap();
    // For each player that owes a claim: the tick since which it owes it, and its state at that tick.
    let mut debts = [None; 4];
    let (mut touches, mut deaths) = (0, 0);
    while replay.step().unwrap() {
        // `now` is the tick that was just stepped.
        let (game, now) = (replay.world().sim(), replay.world().tick().back(1));
        for (n, debt) in debts.iter_mut().enumerate() {
            let id = PlayerId(n as u8);
            let Some(who) = game.players.get(&id) else {
                continue;
            };
            let state = (who.life, who.is_alive(), who.safe_until);
            if let Some((since, then)) = *debt {
                if state != then {
                    touches += 1;
                    deaths += u32::from(!who.is_alive());
                    *debt = None;
                } else {
                    assert!(
                        now - since <= WITHIN + 2 + every,
                        "{id} owes since {since}, now {now}"
                    );
                }
            } else if who.is_vulnerable(now) && is_touched(game, id) {
                *debt = Some((now, state));
            }
        }
    }
    println!("{touches} touches were paid for, {deaths} of them by death");
    assert!(touches > 15 && deaths > 3);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn honest_claims_are_admitted_on_a_bad_link() {
    let mut config = RigConfig::new(63, LinkProfile::BAD);
    config.crowd = 120;
    config.input_pattern = InputPattern::Sticky;
    (config.fps, config.verify) = (60, false);
    config.policies.claims = Claims::OwnerWithin(WITHIN);
    let mut rig = Rig::<Game>::new(config);
    rig.match_.set_referee(Judge);
    rig.run(SECOND * 60);
    let claims: u64 = (0..4)
        .map(|n| rig.match_.seat_stats(PlayerId(n)).claims)
        .sum();
    let refused: u64 = (0..4).map(|i| rig.stats(i).claims_refused).sum();
    println!("{claims} claims in frames, {refused} refused");
    assert!(claims > 50);
    // A claim may arrive after its player died from a blast or through the referee's claim.
    assert!(refused * 20 <= claims, "{refused} refused of {claims}");
}

/// Asks the real referee every tick whether it would admit deaths of the first player by these causes.
struct Probe {
    names: Vec<Key>,
    verdicts: Sender<Vec<bool>>,
}

impl Referee<Game> for Probe {
    fn admit(&mut self, _: &HookContext<'_, Game>, _: PlayerId, _: &Command, _: bool) -> Admission {
        Admission::Refused(0)
    }

    fn owed(&mut self, look: &HookContext<'_, Game>, player: PlayerId, _: u32) -> Option<Command> {
        let admits = |by: &Key| {
            Judge.admit(look, player, &Command::Died { by: *by }, true) == Admission::Admitted
        };
        let verdicts = self.names.iter().map(admits).collect();
        self.verdicts.send(verdicts).expect("the test listens");
        None
    }
}

#[test]
fn a_claimed_death_by_a_distant_enemy_is_refused() {
    let place = Vec2::new(-33.0, -17.5);
    let stands = |at: Vec2| powderkeg_game::Path::Round {
        stops: vec![at],
        leg_ticks: 100,
    };
    for (offset, expected) in [
        (7.0, [true, true]),
        (20.0, [false, true]),
        (60.0, [false, false]),
    ] {
        let rules = Arc::new(Rules {
            walls: Vec::new(),
            barrels: Vec::new(),
            spawns: vec![place],
            orbits: vec![stands(place + Vec2::X * offset)],
            ..Rules::arena(1)
        });
        let arbiter = Arbiter::new(&rules, Luck::Seeded(1)).unwrap();
        let policies = MatchConfig {
            claims: Claims::OwnerWithin(WITHIN),
            ..MatchConfig::action()
        };
        let session = SessionConfig::<Game>::new(rules.clone());
        let game = Game::new(&rules, 1);
        let mut table = Direct::new(policies, game, rules, arbiter, vec![session], 60);
        table.run(200, |_, _| Pad::default());
        let enemy = table.match_.world().sim().enemies[0].key(0);
        let unknown = Key::new(77, 7);
        let (verdicts, heard) = channel();
        table.match_.set_referee(Probe {
            names: vec![enemy, unknown],
            verdicts,
        });
        table.run(10, |_, _| Pad::default());
        let verdicts = heard.try_iter().last().expect("it was asked");
        assert_eq!(verdicts, expected, "an enemy {offset} units away");
    }
}
