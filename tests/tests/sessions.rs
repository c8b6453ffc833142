//! People come and go: drop and return by frames, by a world and from a fresh process; refusals; bounds that coming
//! back does not reset; joins that cost the others nothing. All in virtual time.

use std::sync::Arc;
use std::time::Duration;

use powderkeg::game::Game;
use twinstep_client::{Closed, Event, Progress, Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::simnet::LinkProfile;
use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, Tick};
use twinstep_server::config::Sealing;
use twinstep_server::peer::Stage;
use twinstep_server::{Look, MatchConfig, Output, PeerId, Referee};
use twinstep_tests::history::{Command, History};
use twinstep_tests::rig::{Play, Rig, RigConfig, Sticks};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn lan(seed: u64) -> RigConfig {
    RigConfig::new(seed, LinkProfile::LAN)
}

/// Milliseconds that a client stood still or was short of frames.
fn pauses<S: Play>(rig: &Rig<S>, client: usize) -> f64 {
    rig.stats(client).stall_ms
}

/// Runs until a client plays and has caught up; how long that took.
fn until_it_plays<S: Play>(rig: &mut Rig<S>, client: usize) -> Duration {
    let began = rig.now;
    while rig.game.stage(rig.clients[client].peer) != Some(Stage::Playing)
        || rig.clients[client].session.progress().is_some()
        || rig.clients[client].session.prediction().is_none()
    {
        rig.run(5 * MS);
        assert!(rig.now - began < 30 * SECOND, "it never plays");
    }
    rig.now - began
}

#[test]
fn a_client_that_lost_its_transport_goes_on_by_frames_and_the_others_notice_nothing() {
    let mut rig = Rig::<Game>::new(RigConfig::new(1, "rtt=60".parse().unwrap()));
    rig.run(8 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    let before: Vec<f64> = (1..4).map(|i| pauses(&rig, i)).collect();
    rig.cut(0);
    rig.run(1_200 * MS);
    let had = rig.stats(0).authority_tick;
    rig.redial(0);
    assert!(rig.clients[0].session.is_returning());
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0));
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.game.world().presence(player), Presence::Present);
    assert!(rig.stats(0).authority_tick > had + 100);
    for (i, before) in (1..4).zip(before) {
        assert_eq!(pauses(&rig, i), before, "client {i} stood still");
    }
    rig.converge();
}

#[test]
fn the_prediction_goes_on_while_the_server_is_lost() {
    let mut rig = Rig::<Game>::new(lan(2));
    rig.run(6 * SECOND);
    rig.cut(0);
    let before = rig.stats(0).prediction_tick;
    rig.run(SECOND / 2);
    let (after, authority) = (rig.stats(0).prediction_tick, rig.stats(0).authority_tick);
    assert!(after - before >= 28, "{} predicted ticks", after - before);
    rig.run(3 * SECOND);
    assert_eq!(
        rig.stats(0).prediction_tick,
        authority + 64,
        "up to its bound"
    );
    rig.redial(0);
    rig.converge();
}

#[test]
fn who_was_away_for_longer_than_frames_are_kept_goes_on_from_a_world() {
    let mut rig = Rig::<Game>::new(lan(3));
    rig.run(6 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    rig.cut(0);
    rig.run(5 * SECOND);
    rig.hang_up(0);
    rig.run(28 * SECOND);
    assert_eq!(rig.game.world().presence(player), Presence::Dropped);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (0, 1));
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.game.world().presence(player), Presence::Present);
    rig.converge();
}

/// Row 30: also a process that ended without a word.
#[test]
fn a_fresh_process_takes_its_seat_over_at_once_though_the_old_session_seems_alive() {
    let mut rig = Rig::<Game>::new(RigConfig::new(4, "rtt=60".parse().unwrap()));
    rig.run(8 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    let others: Vec<f64> = (1..4).map(|i| pauses(&rig, i)).collect();
    rig.restart(0);
    let took = until_it_plays(&mut rig, 0);
    assert!(took < SECOND, "{took:?}");
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.game.world().presence(player), Presence::Present);
    assert_eq!(rig.game.sessions(), 4);
    rig.run(SECOND);
    for (i, before) in (1..4).zip(others) {
        assert_eq!(pauses(&rig, i), before, "client {i} stood still");
    }
    rig.converge();
}

/// Row 21, over two transports: the match waits for the batches of who came back, and it has closed none yet.
#[test]
fn a_fresh_process_that_loses_its_server_at_once_does_not_hold_a_match_in_lockstep() {
    for seed in 60..64 {
        let config = RigConfig::strategy(seed, LinkProfile::LAN);
        let mut rig = Rig::<History>::new(RigConfig {
            policies: MatchConfig {
                command_delay: 4,
                sealing: Sealing::WaitForAll {
                    kick_after: 20 * SECOND,
                },
                ..config.policies
            },
            ..config
        });
        rig.run(6 * SECOND);
        rig.restart(0);
        while rig.game.stage(rig.clients[0].peer) != Some(Stage::Playing) {
            rig.run(5 * MS);
            assert!(rig.now < 8 * SECOND, "seed {seed}: it never plays");
        }
        rig.cut(0);
        rig.redial(0);
        rig.run(SECOND);
        assert_eq!(rig.returns(0), (1, 0), "it went on by frames");
        let turn = rig.game.world().turn();
        rig.run(2 * SECOND);
        let later = rig.game.world().turn().number;
        assert!(
            later >= turn.number + 6,
            "seed {seed}: turn {} became {later}",
            turn.number
        );
        rig.converge();
    }
}

#[test]
fn who_is_taken_over_reads_why() {
    let mut rig = Rig::<Game>::new(lan(5));
    rig.run(6 * SECOND);
    let elsewhere = rig.join("player 0");
    rig.run(SECOND);
    let said = Closed::Server(CloseCode::TakenOver);
    assert_eq!(rig.clients[0].session.closed(), Some(said));
    assert_eq!(rig.clients[elsewhere].session.seats(), [PlayerId(0)]);
    rig.clients.remove(0);
    for client in &mut rig.clients {
        client.restarted = true;
    }
    rig.converge();
}

/// What the server accepted it keeps, what it has not got is sent again; the rig checks that each command runs once.
#[test]
fn commands_survive_many_returns_in_order_and_once() {
    for seed in 0..6 {
        let mut rig = Rig::<History>::new(RigConfig::new(seed, LinkProfile::WAN));
        rig.run(6 * SECOND);
        for round in 0..12 {
            let client = round % 4;
            rig.cut(client);
            rig.run((100 + 300 * (round as u32 % 7)) * MS);
            rig.redial(client);
            rig.run(400 * MS);
        }
        rig.converge();
        let ran: u64 = (0..4).map(|i| rig.stats(i).commands_executed).sum();
        assert!(ran > 20, "{ran} commands");
        let returns: usize = (0..4).map(|i| rig.returns(i).0).sum();
        assert_eq!(returns, 12, "seed {seed}: all by frames");
    }
}

#[test]
fn a_second_loss_while_returning_is_one_more_try() {
    let mut rig = Rig::<Game>::new(lan(6));
    rig.run(6 * SECOND);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0));
    let told = |event: &&Event| matches!(event, Event::Reconnecting);
    assert_eq!(rig.clients[0].events.iter().filter(told).count(), 1);
    rig.converge();
}

#[test]
fn a_client_that_differs_comes_back_by_a_world() {
    let mut rig = Rig::<Game>::new(lan(7));
    rig.run(6 * SECOND);
    rig.flip(0);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (0, 1));
    rig.clients[0].flipped = false;
    rig.converge();
}

/// Tickets come as soon as a session plays, and every ten seconds.
#[test]
fn tickets_to_return_with_come_as_long_as_a_session_plays() {
    let mut rig = Rig::<Game>::new(lan(8));
    rig.run(SECOND);
    assert_eq!(rig.clients[0].tickets, 1);
    rig.run(30 * SECOND);
    assert_eq!(rig.clients[0].tickets, 4);
}

/// Heals and strikes are the identity's.
#[test]
fn coming_back_resets_no_bound() {
    let mut rig = Rig::<Game>::new(lan(9));
    rig.run(6 * SECOND);
    for heal in 0..4 {
        rig.flip(0);
        rig.run(11 * SECOND);
        assert_eq!(rig.game.stats().heals, heal + 1);
        rig.redial(0);
        rig.run(SECOND);
    }
    rig.flip(0);
    rig.run(11 * SECOND);
    let said = Closed::Server(CloseCode::Desync);
    assert_eq!(rig.clients[0].session.closed(), Some(said));
    assert_eq!(rig.game.stats().heals, 4);

    for strike in 0..9 {
        assert!(rig.clients[1].session.closed().is_none(), "{strike}");
        let peer = rig.clients[1].peer;
        rig.game.handle(rig.now, peer, &[1; 3]);
        if strike == 5 {
            rig.redial(1);
        }
    }
    assert_eq!(rig.game.stage(rig.clients[1].peer), None);
}

#[test]
fn an_identity_gets_a_world_once_in_five_seconds() {
    let mut rig = Rig::<Game>::new(lan(10));
    rig.run(6 * SECOND);
    rig.restart(0);
    assert!(until_it_plays(&mut rig, 0) < SECOND);
    rig.restart(0);
    let took = until_it_plays(&mut rig, 0);
    assert!((4 * SECOND..6 * SECOND).contains(&took), "{took:?}");
}

/// One round trip after its hello, whoever is not let in knows why.
fn refused<S: Play>(rig: &mut Rig<S>, client: usize) -> Option<Closed> {
    rig.run(60 * MS);
    rig.clients[client].session.closed()
}

/// Row 26: who begins from something else is refused before its first tick.
#[test]
fn who_differs_in_build_rules_game_or_wire_is_refused_in_one_round_trip() {
    let mut rig = Rig::<Game>::new(lan(11));
    rig.run(2 * SECOND);
    let other = Arc::new(Game::rules(7));
    let mut session = Session::<Game>::new(SessionConfig::new(other)).unwrap();
    let code = greet(&mut rig, &mut session, |_| {});
    assert_eq!(code, Some(CloseCode::WrongRules));
    assert!(session.authority().is_none());

    type Change = fn(&mut Vec<u8>);
    let changes: [(CloseCode, Change); 3] = [
        (CloseCode::WrongWire, |hello| hello[6] ^= 1),
        (CloseCode::WrongGame, |hello| hello[9] ^= 1),
        (CloseCode::WrongVersion, |hello| {
            let version = 9 + usize::from(hello[8]);
            hello[version] ^= 1;
        }),
    ];
    for (code, change) in changes {
        let rules = Arc::new(Game::rules(0));
        let mut session = Session::<Game>::new(SessionConfig::new(rules)).unwrap();
        assert_eq!(greet(&mut rig, &mut session, change), Some(code));
        let said = session.closed().map(|closed| closed.to_string());
        assert_eq!(said, Some(code.to_string()));
    }
}

/// A stranger's hello, changed, and what the match says to it at once.
fn greet(
    rig: &mut Rig<Game>,
    session: &mut Session<Game>,
    change: impl FnOnce(&mut Vec<u8>),
) -> Option<CloseCode> {
    let peer = PeerId(999);
    rig.game.connect(rig.now, peer, "stranger", 1).unwrap();
    let mut buffer = [0; PACKET_BYTES_MAX];
    let len = session.poll_transmit(rig.now, &mut buffer).unwrap();
    let mut hello = buffer[..len].to_vec();
    change(&mut hello);
    rig.game.handle(rig.now, peer, &hello);
    let mut closed = None;
    while let Some(output) = rig.game.poll() {
        match output {
            Output::Packet { peer: to, bytes } if to == peer => session.handle(rig.now, bytes),
            Output::Closed { peer: to, code } if to == peer => closed = Some(code),
            _ => {}
        }
    }
    closed
}

#[test]
fn a_full_match_and_a_closed_one_say_so_and_let_their_players_return() {
    let mut rig = Rig::<Game>::new(lan(12));
    rig.run(6 * SECOND);
    rig.game.set_open(false);
    assert_eq!(rig.join_with("late", 1), Err(CloseCode::Shut));
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0), "who has a seat comes back");
    rig.game.set_open(true);
    for n in 4..8 {
        rig.join(&format!("player {n}"));
    }
    assert_eq!(rig.join_with("one too many", 1), Err(CloseCode::Full));
    assert_eq!(refused(&mut rig, 0), None);
    assert!(CloseCode::Full.to_string().contains("full"));
    assert!(CloseCode::Shut.to_string().contains("closed"));
}

/// Row 30: at any tick, and nobody else stands still.
#[test]
fn players_come_and_go_at_any_tick_and_nobody_else_pauses() {
    let mut rig = Rig::<Game>::new(RigConfig::new(13, "rtt=60".parse().unwrap()));
    rig.run(6 * SECOND);
    let before: Vec<f64> = (0..4).map(|i| pauses(&rig, i)).collect();
    for n in 0..6 {
        let newcomer = rig.join(&format!("guest {n}"));
        let took = until_it_plays(&mut rig, newcomer);
        assert!(took < SECOND, "{took:?}");
        rig.run((700 + 37 * n) * MS);
        rig.leave(newcomer);
        rig.run(211 * MS);
    }
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(pauses(&rig, i), before, "client {i} stood still");
        assert_eq!(rig.stats(i).heals, 0);
    }
    rig.converge();
}

/// "Seen to hold", point 4: 1,000 entities, 10 Mbit/s, 100 ms.
#[test]
fn joining_a_crowded_match_over_a_home_line_takes_two_seconds_at_most() {
    let line: LinkProfile = "rtt=100,kbit=10000".parse().unwrap();
    let mut config = RigConfig::new(14, line);
    config.crowd = 1_000;
    config.verify = false;
    config.sticks = Sticks::Sticky;
    let mut rig = Rig::<Game>::new(config);
    rig.run(8 * SECOND);
    let before: Vec<f64> = (0..4).map(|i| pauses(&rig, i)).collect();
    let newcomer = rig.join("late");
    let began = rig.now;
    let (mut bytes, mut ticks) = (None, None);
    while rig.game.stage(rig.clients[newcomer].peer) != Some(Stage::Playing)
        || rig.clients[newcomer].session.progress().is_some()
        || rig.clients[newcomer].session.prediction().is_none()
    {
        rig.run(5 * MS);
        match rig.clients[newcomer].session.progress() {
            Some(Progress::World {
                received_bytes,
                total_bytes,
            }) => {
                assert!(bytes <= Some(received_bytes) && received_bytes <= total_bytes);
                bytes = Some(received_bytes);
            }
            Some(Progress::CatchingUp {
                done_ticks,
                total_ticks,
            }) => {
                assert!(ticks <= Some(done_ticks) && done_ticks <= total_ticks);
                ticks = Some(done_ticks);
            }
            None => {}
        }
        assert!(rig.now - began < 10 * SECOND, "it never plays");
    }
    let took = rig.now - began;
    println!("joined in {took:?}; world of {bytes:?} bytes, {ticks:?} ticks since");
    assert!(took <= 2 * SECOND, "{took:?}");
    assert!(bytes > Some(10_000), "progress in bytes: {bytes:?}");
    assert!(ticks.is_some(), "progress in ticks");
    rig.run(2 * SECOND);
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(pauses(&rig, i), before, "client {i} stood still");
    }
}

/// Row 14: a star. What one client does reaches the others by the server alone, over one connection each.
#[test]
fn each_client_holds_exactly_one_connection() {
    let mut rig = Rig::<Game>::new(lan(15));
    rig.run(6 * SECOND);
    assert_eq!(rig.game.sessions(), 4, "one session each");
    // Without the server nobody hears of anybody: authorities stand still at once.
    rig.stall(rig.now + SECOND);
    rig.run(20 * MS);
    let before: Vec<u32> = (0..4).map(|i| rig.stats(i).authority_tick).collect();
    rig.run(900 * MS);
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(rig.stats(i).authority_tick, before);
    }
    rig.run(2 * SECOND);
    rig.converge();
}

/// Row 78: an input reaches the others by its own path: up, until its tick is sealed and its turn is full, and down.
/// No client's acknowledgement is in between, however slow that client is.
#[test]
fn what_others_do_is_confirmed_after_their_path_only() {
    let delay = |slow: &str| {
        let mut rig = Rig::<Game>::new(RigConfig::new(16, "rtt=40".parse().unwrap()));
        rig.relink(3, slow.parse().unwrap());
        rig.run(6 * SECOND);
        // How far client 1's authority trails the input tick of client 0, both at one moment.
        let mut trails = Vec::new();
        for _ in 0..200 {
            rig.run(10 * MS);
            let (input, confirmed) = (rig.stats(0).input_tick, rig.stats(1).authority_tick);
            trails.push(f64::from(input) - f64::from(confirmed));
        }
        trails.iter().sum::<f64>() / trails.len() as f64 * 1_000.0 / 60.0
    };
    let quick = delay("rtt=40");
    // 20 ms up, the margin that the pace keeps, a turn of 2 ticks, 20 ms down.
    assert!((40.0..120.0).contains(&quick), "{quick:.1} ms");
    let with_a_slow_third = delay("rtt=400,jitter=40,loss=5");
    let more = with_a_slow_third - quick;
    assert!(more.abs() < 3.0, "a slow third client costs {more:.1} ms");
}

/// Whoever comes back is sent nothing but its welcome until it has spoken: frames would be lost on it.
#[test]
fn who_comes_back_gets_turns_only_after_its_first_word() {
    let mut rig = Rig::<Game>::new(lan(17));
    rig.run(6 * SECOND);
    rig.cut(0);
    rig.run(2 * SECOND);
    rig.redial(0);
    rig.freeze(0, rig.now + SECOND);
    let peer = rig.clients[0].peer;
    rig.run(900 * MS);
    assert_eq!(rig.game.stage(peer), Some(Stage::Greeting));
    assert_eq!(rig.game.bytes_down(peer).unwrap().packets, 0);
    rig.run(SECOND);
    assert_eq!(rig.game.stage(peer), Some(Stage::Playing));
    assert!(rig.game.world().tick() > Tick(400));
}

/// A server that was killed: the same sessions go on by frames, no command that was confirmed is lost, none runs twice
/// (the rig checks), and nobody waits for long.
#[test]
fn sessions_survive_a_killed_server() {
    for seed in 20..26 {
        let mut rig = Rig::<History>::new(RigConfig::new(seed, LinkProfile::WAN));
        rig.run(6 * SECOND);
        for _ in 0..4 {
            rig.crash(300 * MS);
            for client in 0..4 {
                rig.cut(client);
            }
            rig.run(SECOND);
            for client in 0..4 {
                rig.redial(client);
            }
            let began = rig.now;
            let tick = rig.game.world().tick();
            while rig.game.world().tick() < tick + 10 {
                rig.run(5 * MS);
                assert!(
                    rig.now - began < SECOND,
                    "seed {seed}: the match stands still"
                );
            }
            rig.run(2 * SECOND);
        }
        for client in 0..4 {
            assert_eq!(rig.returns(client), (4, 0), "seed {seed}, client {client}");
        }
        rig.converge();
    }
}

/// Without fsync a loss of power takes turns back that clients have seen. They go back too, and are told how far.
#[test]
fn who_is_ahead_of_a_server_that_lost_its_power_goes_back_and_is_told() {
    let mut rig = Rig::<Game>::new(lan(30));
    rig.run(7 * SECOND);
    let kept = rig.journal.len();
    rig.run(2 * SECOND);
    for client in 0..4 {
        // Until it is back its authority is one that no server has.
        rig.flip_excuse(client);
    }
    let seen = rig.stats(0).authority_tick;
    rig.lose_power(kept);
    let next = rig.game.world().tick().0;
    assert!(
        (115..=125).contains(&(seen - next)),
        "{seen} was seen, {next} is next"
    );
    for client in 0..4 {
        rig.redial(client);
    }
    rig.run(2 * SECOND);
    for client in 0..4 {
        let lost = rig.clients[client]
            .events
            .iter()
            .find_map(|event| match event {
                Event::Reconnected {
                    resumed: false,
                    lost_ticks,
                } => Some(*lost_ticks),
                _ => None,
            });
        let lost = lost.expect("it came back by a world");
        assert!(lost > 0 && lost <= seen + 2 - next, "{lost} ticks");
        rig.clients[client].flipped = false;
    }
    rig.run(4 * SECOND);
    assert!(rig.all_play());
    rig.converge();
}

/// Refuses whatever is ordered.
struct Never;

impl Referee<History> for Never {
    fn admit(&mut self, _: &Look<'_, History>, _: PlayerId, _: &Command, _: bool) -> bool {
        false
    }
}

/// A command that the referee refuses while its owner is away: the server holds it when the session ends, and looks at
/// it at its tick. The owner hears of it when it is back.
#[test]
fn a_refusal_that_came_while_its_owner_was_away_is_told_when_it_is_back() {
    let mut rig = Rig::<History>::new(RigConfig::new(5, "rtt=100".parse().unwrap()));
    rig.command(false);
    rig.run(4 * SECOND);
    rig.game.set_referee(Never);
    let before = rig.stats(0).commands_refused;
    let mut away = 0;
    // On its way, held, sealed: the session ends at each of these.
    for frames in 0..12 {
        let command = Command::Note(900 + frames);
        rig.clients[0].session.command(0, command).expect("a seat");
        rig.run(15 * MS * frames);
        rig.cut(0);
        rig.hang_up(0);
        rig.run(300 * MS);
        let refused = rig.stats(0).commands_refused;
        rig.redial(0);
        rig.run(2 * SECOND);
        away += u64::from(rig.stats(0).commands_refused > refused);
        assert_eq!(
            rig.stats(0).commands_refused - before,
            u64::from(frames) + 1,
            "the fate of a command that was given {frames} frames before its session ended is not told"
        );
    }
    assert!(away > 2, "only {away} were refused without a session");
}

/// What was refused is in no journal, so the server that takes a killed one's place does not know of it. Its owner sees
/// that a later command ran, and a player's commands run in the order given.
#[test]
fn a_refusal_that_died_with_its_server_is_seen_by_what_ran_later() {
    let (refused, admitted) = (
        |n: u32| Command::Note(3 + 17 * n),
        |n: u32| Command::Note(4 + 17 * n),
    );
    let mut rig = Rig::<History>::new(RigConfig::new(6, "rtt=100".parse().unwrap()));
    rig.command(false);
    rig.run(4 * SECOND);
    let events = |rig: &Rig<History>| {
        let told = |event: &&Event| matches!(event, Event::CommandRefused { .. });
        rig.clients[0].events.iter().filter(told).count() as u64
    };
    for n in 0..6 {
        let session = &mut rig.clients[0].session;
        session.command(0, refused(900 + n)).expect("a seat");
        session.command(0, admitted(900 + n)).expect("a seat");
        // It is held when the transport dies, and sealed before the server does.
        rig.run(15 * MS * (2 + n));
        rig.cut(0);
        rig.run(500 * MS);
        rig.crash(100 * MS);
        for client in 0..4 {
            rig.redial(client);
        }
        rig.run(3 * SECOND);
        let stats = rig.stats(0);
        let fates = (
            stats.commands_executed,
            stats.commands_refused,
            events(&rig),
        );
        let each = u64::from(n) + 1;
        assert_eq!(fates, (each, each, each), "after {n} kills");
    }
}
