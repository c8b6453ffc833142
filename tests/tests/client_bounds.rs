//! Law Bounded, for clients: inputs stay within the window and all arrive, and unread events are bounded.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{EVENTS_MAX, Event, SessionConfig};
use twinstep_core::bounds::{DELAY_MAX, PACKETS_PER_SEND_MAX, input_window};
use twinstep_core::{Controls, Effects, Frame, Never, Simulation};
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::game_types;
use twinstep_server::MatchConfig;

const SECOND: u32 = 60;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wide(u64);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pad([u8; 16]);

impl Controls for Pad {}

impl Simulation for Wide {
    game_types!("wide", (), Pad, u8, Never, Never, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        let held = frame.inputs().map(|(_, pad)| u64::from(pad.0[0]));
        self.0 += held.sum::<u64>();
    }
}

fn table(policies: MatchConfig, seats: usize) -> Direct<Wide> {
    let sessions = vec![SessionConfig::<Wide>::new(Arc::new(()))];
    let mut table = Direct::with_seats(
        policies,
        Wide::default(),
        Arc::new(()),
        no_queries(),
        sessions,
        seats,
        60,
    );
    table.run(3 * SECOND, |_, _| Pad::default());
    assert!(table.sessions[0].prediction().is_some());
    table
}

fn restless(n: &mut u8) -> Pad {
    *n = n.wrapping_add(1);
    Pad([*n; 16])
}

/// Finding K8: the input delay kept growing while the client received no packet, so inputs left the window. With four
/// seats the client panicked; with one seat the server gave it strikes.
#[test]
fn inputs_stay_within_the_window_while_the_delay_grows_over_a_silent_link() {
    for seats in [1, 4] {
        let mut table = table(MatchConfig::action(), seats);
        let next = MatchConfig {
            delay_ticks: DELAY_MAX as u8,
            ..table.match_.config().clone()
        };
        table
            .match_
            .reconfigure(next)
            .expect("it may change in play");
        table.run(SECOND / 2, |_, _| Pad::default());
        table.deaf_until[0] = table.now + Duration::from_millis(2_500);
        let window = input_window(table.match_.config().tick);
        let (mut n, mut furthest) = (0, 0);
        for _ in 0..8 * SECOND {
            table.run(1, |_, _| restless(&mut n));
            let stats = table.sessions[0].stats();
            let reach = stats.input_tick - stats.authority_tick;
            assert!(reach <= window, "{seats} seats: {reach} ticks");
            furthest = furthest.max(reach);
        }
        assert_eq!(furthest, window, "it reaches the end of the window");
        assert_eq!(
            table.match_.stats().malformed,
            0,
            "{seats} seats: no strikes"
        );
        assert_eq!(table.sessions[0].closed(), None);
    }
}

/// Finding K16: an input that did not fit next to the newest ones was never sent. Here the server is frozen and does
/// not receive packets. When it resumes, it needs the oldest inputs first.
#[test]
fn inputs_larger_than_a_datagram_arrive_in_several_datagrams() {
    let mut table = table(MatchConfig::action(), 4);
    let mut n = 0;
    table.run(2 * SECOND, |_, _| restless(&mut n));
    let fills = table.sessions[0].stats().fills;
    for _ in 0..45 {
        table.frame(|_, _| restless(&mut n));
        table.up.clear();
    }
    let mut most = 0;
    for _ in 0..2 * SECOND {
        table.frame(|_, _| restless(&mut n));
        most = most.max(table.up.len());
        table.serve();
    }
    let fills = table.sessions[0].stats().fills - fills;
    // The server seals some ticks quickly before it receives packets again; the inputs for them are lost. Every other
    // input arrived.
    assert!(fills <= 4 * 8, "{fills} inputs were not in time");
    assert!(most > 1 && most <= PACKETS_PER_SEND_MAX, "{most} datagrams");
    assert_eq!(table.match_.stats().malformed, 0);
}

/// Finding K7: no budget limited the steps of a catch-up.
#[test]
fn a_catch_up_runs_in_bursts_and_shortens_only_the_lead() {
    let mut table = table(MatchConfig::action(), 1);
    table.budget_ticks = 4;
    table.deaf_until[0] = table.now + Duration::from_millis(900);
    table.run(55, |_, _| Pad::default());
    let (mut last, mut most, mut frames) = (0, 0, 0);
    loop {
        let before = table.sessions[0].stats();
        table.run(1, |_, _| Pad::default());
        let after = table.sessions[0].stats();
        if last > 0 {
            most = most.max(after.authority_tick - last);
            let steps = after.timeline.steps - before.timeline.steps;
            assert!(steps <= 4 + 3, "{steps} steps in a frame");
        }
        last = after.authority_tick;
        frames += 1;
        if table.match_.world().tick().0 - last < 4 {
            break;
        }
        assert!(frames < 40, "it catches up");
    }
    table.run(2 * SECOND, |_, _| Pad::default());
    let stats = table.sessions[0].stats();
    assert_eq!(stats.prediction_tick, stats.input_tick, "the lead is back");
}

/// Finding K18: a game that never polls events accumulated them all.
#[test]
fn unpolled_events_are_bounded_and_counted() {
    let mut table = table(MatchConfig::action(), 1);
    let mut given = 0;
    // The server accepts 20 commands a second and refuses the others.
    for _ in 0..10 * SECOND {
        given += u64::from(table.sessions[0].command(0, 7).is_ok());
        table.run(1, |_, _| Pad::default());
    }
    let stats = table.sessions[0].stats();
    assert!(
        stats.commands_refused > 300,
        "{} of {given}",
        stats.commands_refused
    );
    let mut last = None;
    let mut events = 0;
    while let Some(event) = table.sessions[0].poll_event() {
        events += 1;
        if let Event::CommandRefused { seq, .. } = event {
            assert!(last < Some(seq), "the newest are kept, in order");
            last = Some(seq);
        }
    }
    assert!(events <= EVENTS_MAX);
    // One event reports the join.
    assert_eq!(
        events as u64 + stats.events_dropped,
        stats.commands_refused + 1
    );
}
