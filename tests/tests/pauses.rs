//! Row 81: the game controls a match's speed and pauses. Players send requests, the referee decides, and all clients
//! switch at the same turn.

use std::time::Duration;

use powderkeg_game::{Game, ShowKey};
use twinstep_client::{CommandRefusal, Event, MatchRequest};
use twinstep_core::turn::Turn;
use twinstep_core::{PlayerId, Presence};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::{Laggards, Spectators, TickLength};
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;
const PAUSE: MatchRequest = MatchRequest::Pause;
const RESUME: MatchRequest = MatchRequest::Resume;

// A configuration with command delay `m` (0 for prediction) in which all policies react to late clients.
fn config(seed: u64, link: LinkProfile, m: u8) -> RigConfig {
    let mut policies = match m {
        0 => MatchConfig::action(),
        _ => MatchConfig {
            command_delay: m,
            ..MatchConfig::strategy()
        },
    };
    policies.laggards = Laggards::hold();
    policies.tick_length = TickLength::Adaptive {
        max: policies.tick * 2,
    };
    policies.spectators = Spectators {
        max: 16,
        delay_ticks: 0,
    };
    RigConfig {
        policies,
        clients: 4,
        journal: true,
        ..RigConfig::new(seed, link)
    }
}

// A match of four players after eight seconds of play.
fn world<S: Play>(seed: u64, link: LinkProfile, m: u8) -> Rig<S> {
    let mut rig = Rig::new(config(seed, link, m));
    rig.run(SECOND * 8);
    assert!(rig.all_play());
    rig
}

fn events<S: Play>(rig: &Rig<S>, client: usize) -> Vec<Event> {
    let is_one =
        |event: &&Event| matches!(event, Event::Request { .. } | Event::RequestRefused { .. });
    let events = rig.clients[client].events.iter().filter(is_one);
    events.cloned().collect()
}

fn turn<S: Play>(rig: &Rig<S>, client: usize) -> Turn {
    let session = &rig.clients[client].session;
    session.authority().expect("it plays").turn()
}

fn ask<S: Play>(rig: &mut Rig<S>, client: usize, request: MatchRequest) {
    let asked = rig.clients[client].session.request(0, request);
    assert_eq!(asked, Ok(()));
    rig.run(SECOND * 2);
}

/// Row 81.
#[test]
fn all_clients_switch_to_a_requested_double_speed_at_the_same_turn() {
    for m in [0, 2] {
        let mut rig = world::<History>(1, LinkProfile::WAN, m);
        let usual = rig.match_.config().tick;
        let fast = MatchRequest::Tick(usual / 2);
        rig.clients[2].session.request(0, fast).unwrap();
        // The last tick of the usual length and the first tick of the requested length, on each side.
        let mut between = [(0, u32::MAX); 5];
        rig.watch(SECOND * 4, |rig| {
            let clients = rig.clients.iter();
            let clients = clients.map(|client| client.session.authority().expect("it plays"));
            let worlds = clients.chain([rig.match_.world()]);
            for ((before, after), world) in between.iter_mut().zip(worlds) {
                match world.turn().cadence.requested_ns {
                    None => *before = world.tick().0,
                    Some(_) => *after = world.tick().0.min(*after),
                }
            }
        });
        let last = between.iter().map(|it| it.0).max();
        let first = between.iter().map(|it| it.1).min();
        assert!(
            last < first && between.iter().all(|it| it.1 < u32::MAX),
            "m = {m}: {between:?}"
        );
        let by = Some(PlayerId(2));
        for client in 0..4 {
            let request = Event::Request { by, request: fast };
            assert_eq!(events(&rig, client), [request], "m = {m}");
        }
        let before = rig.match_.world().tick();
        rig.run(SECOND * 4);
        let ticks = f64::from(rig.match_.world().tick() - before);
        let doubled = SECOND.as_secs_f64() * 8.0 / usual.as_secs_f64();
        assert!((ticks - doubled).abs() < doubled / 20.0, "{ticks} ticks");
        // A killed server continues at this speed.
        rig.crash(MS(50));
        (0..4).for_each(|client| rig.redial(client));
        rig.run(SECOND * 4);
        assert_eq!(rig.match_.world().turn().cadence.tick(), usual / 2);
        rig.converge();
        rig.check_journal();
    }
}

/// Row 81.
#[test]
fn a_pause_of_any_length_causes_no_stall_and_removes_no_player() {
    for m in [0, 2] {
        for (link, long) in [
            (LinkProfile::PERFECT, MS(700)),
            (LinkProfile::WAN, SECOND * 300),
            (LinkProfile::BAD, SECOND * 5),
        ] {
            let mut rig = world::<History>(2, link, m);
            let slowest = rig.match_.world().turn().cadence;
            let start: Vec<_> = (0..4).map(|client| rig.stats(client)).collect();
            rig.run(SECOND * 5);
            let before: Vec<_> = (0..4).map(|client| rig.stats(client)).collect();
            let held = rig.match_.stats().held;
            let waited: Vec<_> = (0..4)
                .map(|n| rig.match_.seat_stats(PlayerId(n)).waited)
                .collect();
            ask(&mut rig, 0, PAUSE);
            assert!(rig.match_.is_paused());
            let paused = rig.match_.world().tick();
            for client in 0..4 {
                let turn = turn(&rig, client);
                assert_eq!(turn.cadence.paused_by, Some(PlayerId(0)));
                assert_eq!(turn.began, paused, "m = {m}: all stop after one turn");
            }
            let stands: Vec<_> = (0..4).map(|client| rig.stats(client)).collect();
            rig.run(long);
            assert_eq!(rig.match_.world().tick(), paused);
            for (client, stood) in stands.iter().enumerate() {
                let stats = rig.stats(client);
                assert_eq!(stats.prediction_tick, stood.prediction_tick, "m = {m}");
                assert_eq!(stats.input_tick, stood.input_tick, "m = {m}");
            }
            ask(&mut rig, 2, RESUME);
            rig.run(SECOND);
            assert!(rig.match_.world().tick() > paused + 20);
            assert_eq!(rig.match_.world().present().len(), 4, "m = {m}");
            assert!(rig.match_.stats().paused >= long);
            assert_eq!(rig.match_.stats().held, held, "m = {m}");
            assert_eq!(rig.match_.world().turn().cadence.tick(), slowest.tick());
            for client in 0..4 {
                let (start, before, after) = (&start[client], &before[client], rig.stats(client));
                let seat = rig.match_.seat_stats(PlayerId(client as u8));
                assert!(seat.waited <= waited[client] + MS(50), "m = {m}: blamed");
                assert_eq!(after.stall_ms, before.stall_ms, "m = {m}");
                assert_eq!(after.heals, 0, "m = {m}");
                // Compared with the five seconds before the pause.
                let fills = (before.fills - start.fills, after.fills - before.fills);
                assert!(fills.1 <= fills.0 + 4, "m = {m}: {fills:?} fills");
                let rebuilds = |to: &twinstep_client::SessionStats| to.timeline.rebuilds;
                let usual = rebuilds(before) - rebuilds(start);
                let now = rebuilds(&after) - rebuilds(before);
                assert!(
                    now <= usual + 20,
                    "m = {m}: {usual} and then {now} rebuilds"
                );
                assert!(
                    after.paused_ms - before.paused_ms < 150.0,
                    "m = {m}: {} ms",
                    after.paused_ms - before.paused_ms
                );
            }
            rig.converge();
            rig.check_journal();
        }
    }
}

#[test]
fn a_drawn_player_stands_still_during_a_pause_and_does_not_jump_afterwards() {
    for (link, turn) in [(LinkProfile::WAN, 1), (LinkProfile::LAN, 3)] {
        let mut config = config(4, link, 0);
        config.policies.turn = twinstep_server::config::TurnLength::Fixed(turn);
        let mut rig = Rig::<Game>::new(config);
        rig.run(SECOND * 8);
        let mut last = [None::<(ShowKey, [f32; 2])>; 4];
        let mut leap = |rig: &mut Rig<Game>, time| {
            let mut longest: f32 = 0.0;
            rig.watch(time, |rig| {
                for (client, last) in last.iter_mut().enumerate() {
                    let session = &rig.clients[client].session;
                    let id = session.seats()[0];
                    let prediction = session.prediction().expect("it plays");
                    let life = prediction.sim().players.get(&id).map(|it| it.life);
                    let key = life.map(|life| ShowKey::Player { id, life });
                    let pose = key.and_then(|key| Some((key, session.pose(key)?.at.to_array())));
                    if let (Some((was, from)), Some((is, to))) = (*last, pose)
                        && was == is
                    {
                        let (x, y) = (from[0] - to[0], from[1] - to[1]);
                        longest = longest.max((x * x + y * y).sqrt());
                    }
                    *last = pose;
                }
            });
            longest
        };
        let usual = leap(&mut rig, SECOND * 5);
        assert!(usual > 0.0);
        rig.clients[0].session.request(0, PAUSE).unwrap();
        let into = leap(&mut rig, SECOND);
        let still = leap(&mut rig, SECOND * 4);
        rig.clients[0].session.request(0, RESUME).unwrap();
        let out_of = leap(&mut rig, SECOND);
        println!("turns of {turn}: usual {usual}, into {into}, still {still}, out of {out_of}");
        assert_eq!(still, 0.0, "turns of {turn}");
        assert!(into <= usual * 1.5 && out_of <= usual * 1.5);
        rig.converge();
    }
}

#[test]
fn single_steps_run_during_a_pause_and_clients_keep_their_lead() {
    for m in [0, 2] {
        let mut rig = world::<History>(5, LinkProfile::WAN, m);
        ask(&mut rig, 0, PAUSE);
        let paused = rig.match_.world().tick();
        let turn_ticks = u32::from(rig.match_.world().turn().cadence.turn_ticks);
        let lead = rig.stats(3).input_tick - rig.stats(3).authority_tick;
        let mut expected = 0;
        for ticks in [1, 10] {
            ask(&mut rig, 0, MatchRequest::Step(ticks));
            rig.run(SECOND * 2);
            expected += u32::from(ticks).div_ceil(turn_ticks) * turn_ticks;
            assert_eq!(rig.match_.world().tick() - paused, expected, "m = {m}");
            for client in 0..4 {
                assert_eq!(turn(&rig, client).began, paused + expected);
            }
            let stats = rig.stats(3);
            assert_eq!(stats.input_tick - stats.authority_tick, lead, "m = {m}");
        }
        assert!(rig.match_.is_paused());
        ask(&mut rig, 0, RESUME);
        ask(&mut rig, 0, MatchRequest::Step(1));
        assert!(!rig.match_.is_paused(), "a step does not pause");
        rig.converge();
        rig.check_journal();
    }
}

#[test]
fn a_refused_request_has_no_effect_and_its_player_gets_the_reason() {
    let mut rig = world::<History>(3, LinkProfile::WAN, 0);
    ask(&mut rig, 1, PAUSE);
    assert!(!rig.match_.is_paused());
    let refused = Event::RequestRefused {
        request: PAUSE,
        why: CommandRefusal::Referee(7),
    };
    assert_eq!(events(&rig, 1), [refused]);
    assert!(events(&rig, 0).is_empty());
    assert_eq!(rig.match_.stats().requests_refused, 1);
    // The host does not ask a referee.
    rig.match_.request(PAUSE).unwrap();
    rig.run(SECOND);
    let by_host = Event::Request {
        by: None,
        request: PAUSE,
    };
    assert_eq!(events(&rig, 0), [by_host]);
    assert_eq!(turn(&rig, 0).cadence.paused_by, None);
    assert!(rig.match_.is_paused());
    assert!(rig.match_.request(MatchRequest::Tick(MS(0))).is_err());
    rig.match_.request(RESUME).unwrap();
    rig.converge();
}

#[test]
fn a_flood_of_requests_is_cut_off_for_its_player_only() {
    let mut rig = world::<History>(6, LinkProfile::LAN, 0);
    let mut sent = 0;
    for _ in 0..100 {
        for _ in 0..20 {
            sent += u64::from(rig.clients[0].session.request(0, RESUME).is_ok());
        }
        rig.run(MS(50));
    }
    let stats = rig.match_.stats();
    assert!(sent > 100, "only {sent} were sent");
    assert_eq!(stats.requests, 20, "in ten seconds");
    assert!(stats.requests_refused > 80);
    assert_eq!(rig.match_.world().present().len(), 4);
    let why = CommandRefusal::Bounds;
    let request = RESUME;
    assert!(events(&rig, 0).contains(&Event::RequestRefused { request, why }));
    ask(&mut rig, 2, PAUSE);
    assert!(rig.match_.is_paused(), "another player has its own limit");
    ask(&mut rig, 2, RESUME);
    rig.converge();
}

#[test]
fn players_join_leave_and_return_while_the_match_is_paused() {
    for m in [0, 2] {
        let mut rig = world::<History>(7, LinkProfile::WAN, m);
        let leaver = rig.clients[3].session.seats()[0];
        ask(&mut rig, 0, PAUSE);
        let paused = rig.match_.world().tick();
        let newcomer = rig.join("newcomer");
        let watcher = rig.join_with("watcher", 0).expect("there is room");
        rig.until_it_plays(newcomer);
        for client in [newcomer, watcher] {
            rig.run(SECOND);
            assert_eq!(turn(&rig, client).began, paused, "m = {m}");
            assert!(turn(&rig, client).cadence.paused);
        }
        rig.leave(watcher);
        rig.restart(2);
        rig.redial(1);
        rig.run(SECOND * 10);
        assert!(rig.match_.is_paused() && rig.all_play(), "m = {m}");
        assert_eq!(rig.match_.world().tick(), paused);
        rig.crash(MS(300));
        rig.run(MS(300));
        (0..rig.clients.len()).for_each(|client| rig.redial(client));
        rig.run(SECOND * 10);
        assert!(rig.match_.is_paused(), "m = {m}: it is resumed, and paused");
        assert_eq!(rig.match_.world().tick(), paused);
        rig.leave(3);
        rig.run(SECOND);
        // The player may resume the match, although no tick has let the player join yet.
        ask(&mut rig, newcomer - 1, RESUME);
        rig.run(SECOND * 3);
        assert!(rig.match_.world().tick() > paused + 20, "m = {m}");
        let newcomers = &rig.clients[newcomer - 1].session.seats()[0];
        assert_eq!(
            rig.match_.world().presence(*newcomers),
            Presence::Present,
            "m = {m}"
        );
        assert_eq!(
            rig.match_.world().presence(leaver),
            Presence::Absent,
            "m = {m}"
        );
        assert_eq!(rig.match_.world().present().len(), 4, "m = {m}");
        assert!((0..rig.clients.len()).all(|client| {
            rig.match_.stage(rig.clients[client].peer()) == Some(SessionStage::Playing)
        }));
        rig.converge();
        rig.check_journal();
    }
}

// A spectator with a delay would otherwise treat a pause as a late turn, and see the pause only after its end.
#[test]
fn a_delayed_spectator_sees_a_pause_with_its_delay_and_pauses_only_then() {
    let mut config = config(8, LinkProfile::LAN, 0);
    config.policies.spectators.delay_ticks = 180;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 8);
    let watcher = rig.join_with("watcher", 0).expect("there is room");
    rig.run(SECOND * 8);
    ask(&mut rig, 0, PAUSE);
    let paused = rig.match_.world().tick();
    assert!(turn(&rig, watcher).began < paused);
    rig.run(SECOND * 4);
    assert_eq!(turn(&rig, watcher).began, paused);
    let before = rig.stats(watcher);
    ask(&mut rig, 0, RESUME);
    assert_eq!(turn(&rig, watcher).began, paused, "its delay is kept");
    rig.run(SECOND * 4);
    let behind = rig.match_.world().tick() - turn(&rig, watcher).began;
    assert!((180..220).contains(&behind), "{behind} ticks behind");
    let paused_ms = rig.stats(watcher).paused_ms - before.paused_ms;
    assert!(paused_ms < 150.0, "{paused_ms} ms");
}

// In a paused match, no tick records that a player left. The player used to stay until it was dropped.
#[test]
fn a_player_that_left_during_a_pause_stays_removed_after_a_crash() {
    for m in [0, 2] {
        let mut rig = world::<History>(10, LinkProfile::WAN, m);
        let leaver = rig.clients[3].session.seats()[0];
        ask(&mut rig, 0, PAUSE);
        rig.leave(3);
        rig.run(SECOND);
        // Twice, because the next process must not lose the departure either.
        for _ in 0..2 {
            rig.crash(MS(50));
            (0..3).for_each(|client| rig.redial(client));
            rig.run(SECOND * 5);
            assert!(rig.match_.is_paused(), "m = {m}");
            assert!(!rig.match_.seat_holders().any(|who| who == "player 3"));
            assert_eq!(rig.match_.world().presence(leaver), Presence::Present);
        }
        ask(&mut rig, 0, RESUME);
        rig.run(MS(500));
        assert_eq!(rig.match_.world().presence(leaver), Presence::Absent);
        assert_eq!(rig.match_.world().present().len(), 3, "m = {m}");
        // The identity returns as the same player, and stays after a crash.
        let back = rig.join("player 3");
        rig.until_it_plays(back);
        assert_eq!(rig.clients[back].session.seats(), [leaver], "m = {m}");
        rig.run(SECOND);
        rig.crash(MS(50));
        (0..4).for_each(|client| rig.redial(client));
        rig.run(SECOND * 5);
        assert_eq!(rig.match_.world().present().len(), 4, "m = {m}");
        rig.converge();
        rig.check_journal();
    }
}

// A spectator plays turns as they arrive, so its margin is the time that they wait: 60 ms, give or take 24 ms.
#[test]
fn a_spectator_joining_during_a_pause_has_no_extra_delay() {
    for link in [LinkProfile::LAN, LinkProfile::WAN, LinkProfile::BAD] {
        let mut rig = world::<History>(11, link, 0);
        let before = rig.join_with("before", 0).expect("there is room");
        rig.run(SECOND * 5);
        ask(&mut rig, 0, PAUSE);
        let during = rig.join_with("during", 0).expect("there is room");
        rig.run(SECOND * 60);
        assert!(turn(&rig, during).cadence.paused);
        ask(&mut rig, 0, RESUME);
        rig.run(SECOND * 30);
        for watcher in [before, during] {
            let stats = rig.stats(watcher);
            let target = stats.margin_ticks_target;
            assert!((target - 3.6).abs() < 0.1, "{target} ticks of 1/60 s");
        }
        // The rig's checks also need the target margin of spectators.
        rig.converge();
    }
}

// No tick drops the players of a paused match.
#[test]
fn a_paused_match_without_players_counts_as_deserted_after_a_minute() {
    let mut rig = world::<History>(9, LinkProfile::LAN, 0);
    ask(&mut rig, 0, PAUSE);
    for client in 0..4 {
        rig.cut(client);
        rig.hang_up(client);
    }
    rig.run(SECOND * 55);
    assert!(!rig.match_.is_deserted(), "they may come back");
    rig.run(SECOND * 10);
    assert!(rig.match_.is_deserted());
    assert!(rig.match_.is_paused());
    (0..4).for_each(|client| rig.restart(client));
    rig.run(SECOND * 10);
    ask(&mut rig, 0, RESUME);
    rig.converge();
}
