//! When a match's ticks are due, even after its process froze; when a match is idle; and packets to silent clients.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::SessionConfig;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::testing::doc::Counter;
use twinstep_rig::direct::Direct;
use twinstep_server::{Decision, HookContext, Match, MatchConfig, Output, SessionId};

const SECOND: Duration = Duration::from_secs(1);

const MS: Duration = Duration::from_millis(1);

fn new_match() -> Match<Counter> {
    let no_resolver = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
    let config = MatchConfig::action();
    Match::new(config, Counter::default(), Arc::new(()), no_resolver).unwrap()
}

fn table() -> Direct<Counter> {
    let no_resolver = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
    let set = |_| SessionConfig::new(Arc::new(()));
    Direct::answered(
        MatchConfig::action(),
        Counter::default(),
        no_resolver,
        (0..1).map(set),
    )
}

/// The offset of the match's next due time within a tick, in nanoseconds. A match may be due earlier, to repeat
/// unacknowledged frames.
fn due_within_a_tick(match_: &Match<Counter>) -> u128 {
    match_.next_due().as_nanos() % match_.world().turn().cadence.tick().as_nanos()
}

/// Regression: all matches of a frozen process were due at the same moment after it resumed.
#[test]
fn matches_stay_staggered_after_a_stall_of_their_process() {
    for stood in [200, 333, 1_000, 60_001] {
        for began in [3, 5, 11] {
            let mut match_ = new_match();
            match_.advance(began * MS);
            let (due, tick) = (due_within_a_tick(&match_), match_.world().tick());
            let back = (began + stood) * MS;
            match_.advance(back);
            assert_eq!(due_within_a_tick(&match_), due, "{began}, {stood}");
            let length = match_.world().turn().cadence.tick();
            assert!(match_.next_due() > back && match_.next_due() - back <= length);
            assert_eq!(
                match_.world().tick(),
                tick + 1,
                "the rest is not made up for"
            );
            let slipped = match_.stats().slipped;
            assert!(slipped <= stood * MS && slipped + 2 * length > stood * MS);
        }
    }
}

#[test]
fn a_match_is_idle_without_players_or_if_all_are_silent_but_not_during_a_join() {
    let mut match_ = new_match();
    match_.advance(MS);
    assert!(match_.is_unacked());
    match_.connect(2 * MS, SessionId(1), "anna", 1).unwrap();
    assert!(!match_.is_unacked(), "she is about to say hello");
    match_.disconnect(SessionId(1));
    assert!(match_.is_unacked());
}

/// A client with a broken link dials over another path. Its second connection receives the match after its hello.
#[test]
fn a_match_of_silent_players_is_idle_but_not_while_a_player_redials() {
    let mut table = table();
    table.gather();
    assert!(!table.match_.is_unacked());
    let (match_, mut now) = (&mut table.match_, table.now);
    let silent_until = now + 2 * SECOND;
    while now < silent_until {
        now += SECOND / 60;
        match_.advance(now);
        while match_.poll().is_some() {}
    }
    assert!(match_.is_unacked(), "she was silent for two seconds");
    match_.connect(now, SessionId(9), "player 0", 1).unwrap();
    assert!(!match_.is_unacked(), "she dials again");
    match_.disconnect(SessionId(9));
    assert!(match_.is_unacked());
}

/// Runs the match for `time` while its player is silent. Returns the number of packets that the player is sent in the
/// second half of that time, and the size of the largest one in bytes.
fn packets_to_a_silent_player(table: &mut Direct<Counter>, time: Duration) -> (usize, usize) {
    let (began, until) = (table.now, table.now + time);
    let mut sizes = Vec::new();
    while table.now < until {
        table.now += SECOND / 60;
        table.match_.advance(table.now);
        while let Some(output) = table.match_.poll() {
            if let Output::Packet { bytes, .. } = output
                && table.now > began + time / 2
            {
                sizes.push(bytes.len());
            }
        }
    }
    (sizes.len(), sizes.into_iter().max().unwrap_or(0))
}

#[test]
fn a_silent_client_is_sent_less_and_less_and_catches_up_when_it_sends_again() {
    let mut table = table();
    table.gather();
    let (packets, largest) = packets_to_a_silent_player(&mut table, 3 * SECOND);
    assert!((12..=16).contains(&packets), "{packets} in 1.5 s");
    assert!(largest > 100, "the first frames that she lacks: {largest}");
    let (packets, largest) = packets_to_a_silent_player(&mut table, 6 * SECOND);
    assert!((5..=7).contains(&packets), "{packets} in 3 s");
    assert!(largest < 40, "no frames: {largest} bytes");
    let lacked = table.match_.world().tick();
    table.rest(SECOND);
    let known = table.sessions[0].authority().unwrap().tick();
    assert!(known > lacked, "{known:?}, and lacked up to {lacked:?}");
}

/// After a long silence on the downlink, the match sends few packets. But the client still sends, so it gets the
/// missing frames.
#[test]
fn a_sending_client_is_sent_all_missing_frames_after_a_long_dead_downlink() {
    let mut table = table();
    table.gather();
    let until = table.now + 7 * SECOND;
    let mut buffer = [0; PACKET_BYTES_MAX];
    while table.now < until {
        table.now += SECOND / 60;
        let session = &mut table.sessions[0];
        session
            .advance(table.now, 64, |_| Default::default())
            .unwrap();
        while let Some(len) = session.poll_transmit(table.now, &mut buffer) {
            table.match_.handle(table.now, SessionId(0), &buffer[..len]);
        }
        table.match_.advance(table.now);
        while table.match_.poll().is_some() {}
    }
    let lacked = table.match_.world().tick();
    table.rest(SECOND);
    let known = table.sessions[0].authority().unwrap().tick();
    assert!(known > lacked, "{known:?}, and lacked up to {lacked:?}");
}
