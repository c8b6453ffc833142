//! Row 81: the speed of a match and its pauses are the game's: players ask, the referee decides, and all clients switch
//! at one turn.

use std::time::Duration;

use twinstep_client::{CommandRefusal, Event, MatchRequest};
use twinstep_core::turn::Turn;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::Laggards;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A match of four players after some seconds of play, with the command delay `m` (0: prediction).
fn world(seed: u64, link: LinkProfile, m: u8) -> Rig<History> {
    let policies = match m {
        0 => MatchConfig::action(),
        _ => MatchConfig {
            command_delay: m,
            ..MatchConfig::strategy()
        },
    };
    let mut config = RigConfig {
        policies,
        clients: 4,
        journal: true,
        ..RigConfig::new(seed, link)
    };
    config.policies.laggards = Laggards::Hold {
        at_once: SECOND,
        per_minute: SECOND * 10,
        from: MS(300),
    };
    let mut rig = Rig::new(config);
    rig.run(SECOND * 8);
    assert!(rig.all_play());
    rig
}

fn events(rig: &Rig<History>, client: usize) -> Vec<Event> {
    let is_one =
        |event: &&Event| matches!(event, Event::Request { .. } | Event::RequestRefused { .. });
    let events = rig.clients[client].events.iter().filter(is_one);
    events.cloned().collect()
}

fn turn(rig: &Rig<History>, client: usize) -> Turn {
    let session = &rig.clients[client].session;
    session.authority().expect("it plays").turn()
}

/// Makes a request, and waits until all clients have played what it leads to.
fn ask(rig: &mut Rig<History>, client: usize, request: MatchRequest) {
    let asked = rig.clients[client].session.request(0, request);
    assert_eq!(asked, Ok(()));
    rig.run(SECOND * 2);
}

/// Row 81.
#[test]
fn a_player_asks_for_double_speed_and_all_switch_at_one_turn() {
    for m in [0, 2] {
        let mut rig = world(1, LinkProfile::WAN, m);
        let usual = rig.match_.config().tick;
        let fast = MatchRequest::Tick(usual / 2);
        rig.clients[2].session.request(0, fast).unwrap();
        let mut began = [None; 4];
        rig.watch(SECOND * 4, |rig| {
            for (client, began) in began.iter_mut().enumerate() {
                let turn = turn(rig, client);
                if turn.cadence.tick() == usual / 2 && began.is_none() {
                    *began = Some((turn.number, turn.began));
                }
            }
        });
        assert!(began[0].is_some() && began.iter().all(|at| *at == began[0]));
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
        rig.converge();
        rig.check_journal();
    }
}

/// Row 81.
#[test]
fn a_pause_of_any_length_costs_no_stall_and_no_player() {
    for m in [0, 2] {
        for (link, long) in [
            (LinkProfile::LAN, SECOND * 5),
            (LinkProfile::WAN, SECOND * 300),
            (LinkProfile::BAD, SECOND * 5),
        ] {
            let mut rig = world(2, link, m);
            ask(&mut rig, 0, MatchRequest::Pause);
            assert!(rig.match_.is_paused());
            let paused: Tick = rig.match_.world().tick();
            let before: Vec<_> = (0..4).map(|client| rig.stats(client)).collect();
            for client in 0..4 {
                let turn = turn(&rig, client);
                assert!(turn.cadence.paused, "m = {m}");
                assert_eq!(turn.cadence.paused_by, Some(PlayerId(0)));
                assert_eq!(turn.began, paused, "all stop after one turn");
            }
            rig.run(long);
            assert_eq!(rig.match_.world().tick(), paused);
            let stats: Vec<_> = (0..4).map(|client| rig.stats(client)).collect();
            for (before, stats) in before.iter().zip(&stats) {
                assert_eq!(before.prediction_tick, stats.prediction_tick, "m = {m}");
                assert_eq!(before.input_tick, stats.input_tick, "m = {m}");
            }
            ask(&mut rig, 2, MatchRequest::Resume);
            rig.run(SECOND * 3);
            assert!(rig.match_.world().tick() > paused + 40);
            assert_eq!(rig.match_.world().present().len(), 4, "m = {m}");
            for client in 0..4 {
                let (before, after) = (&before[client], rig.stats(client));
                assert_eq!(after.stall_ms, before.stall_ms, "m = {m}");
                assert!(after.fills <= before.fills + 4, "m = {m}");
                assert!(after.paused_ms - before.paused_ms < 150.0, "m = {m}");
                let rebuilds = after.timeline.rebuilds - before.timeline.rebuilds;
                assert!(rebuilds < 130, "m = {m}: {rebuilds} rebuilds");
            }
            rig.converge();
            rig.check_journal();
        }
    }
}

#[test]
fn a_refused_request_has_no_effect_and_its_player_gets_the_reason() {
    let mut rig = world(3, LinkProfile::WAN, 0);
    ask(&mut rig, 1, MatchRequest::Pause);
    assert!(!rig.match_.is_paused());
    let refused = Event::RequestRefused {
        request: MatchRequest::Pause,
        why: CommandRefusal::Referee(7),
    };
    assert_eq!(events(&rig, 1), [refused]);
    assert!(events(&rig, 0).is_empty());
    assert_eq!(rig.match_.stats().requests_refused, 1);
    rig.converge();
}
