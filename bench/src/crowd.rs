//! `crowd`: what a client's frame costs the game's thread where every turn brings a wrong guess, by where predictions are
//! rebuilt.
//!
//! ```text
//!  every 16.7 ms:  others' frames, the match  │ timed: Client::advance  │ sleep
//!                  not timed                  │ worker: rebuilds        │
//! ```
//!
//! A real client with its clock and its thread, 1,000 entities with their picture, packets in memory. In real time, for a
//! thread of its own is what is measured: so nothing else should run, and p99 is what a busy machine spoils first.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::cell::Cell;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_client::picture::{Poses, Smoothing, show_with};
use twinstep_client::{Client, Reconcile, Session, SessionConfig, Show};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::simnet::LinkProfile;
use twinstep_core::{Effects, Frame, Key, Never, Simulation, clone_fields};
use twinstep_server::config::Announce;
use twinstep_server::{Decision, Look, Match, MatchConfig, Output, PeerId};
use twinstep_udp::{SimulatedTransport, Transport};

use crate::simulation::{PLAYERS, Pad, Pads, Sticks};
use crate::table::{Format, Table, list, load, machine, number};

/// Entities.
const ENTITIES: usize = 1_000;
/// Neighbours that push each of them.
const NEIGHBOURS: usize = 8;
/// Round trip; with the turn and the margin it makes a lead of about 16 ticks.
const ROUND_TRIP: &str = "rtt=200,jitter=0,loss=0";
/// A frame.
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// Frames of a round until the clocks have settled.
const SETTLE: u32 = 240;
/// Frames of a round that count.
const COUNTED: u32 = 600;
/// Rounds of each row.
const ROUNDS: usize = 3;

/// What a step costs beyond its own work, in ns, in threads that do not say otherwise.
static EXTRA_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The match and the other players step for nothing: what they cost is not measured.
    static FREE: Cell<bool> = const { Cell::new(false) };
}

/// One of a crowd: where it is and where it goes, in 1/256 units.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Walker {
    at: [i32; 2],
    to: [i32; 2],
    health: i32,
}

/// The state.
#[derive(Debug, Serialize, Deserialize)]
struct Crowd {
    walkers: Vec<Walker>,
    players: [[i32; 2]; PLAYERS],
}

// What derived `Clone` lacks: the buffer is used again.
clone_fields!(Crowd { walkers, players });

impl Crowd {
    fn new() -> Self {
        let place = |n: usize| (n as i32).wrapping_mul(0x61c8_8647) >> 16;
        let walker = |n| Walker {
            at: [place(n), place(n + ENTITIES)],
            to: [0; 2],
            health: 100,
        };
        Crowd {
            walkers: (0..ENTITIES).map(walker).collect(),
            players: [[0; 2]; PLAYERS],
        }
    }

    /// Each walks to the nearest player, and away from its neighbours.
    fn walk(&mut self) {
        for n in 0..self.walkers.len() {
            let mut walker = self.walkers[n];
            let far = |to: &&[i32; 2]| {
                let by = |i: usize| i64::from(to[i] - walker.at[i]);
                by(0) * by(0) + by(1) * by(1)
            };
            let nearest = *self.players.iter().min_by_key(far).expect("four players");
            for neighbour in 1..=NEIGHBOURS {
                let other = &self.walkers[(n + neighbour) % self.walkers.len()];
                for i in 0..2 {
                    let apart = walker.at[i] - other.at[i];
                    if apart.abs() < 256 {
                        walker.to[i] += apart.signum() * (256 - apart.abs()) / 16;
                    }
                }
            }
            for (i, to) in nearest.into_iter().enumerate() {
                walker.to[i] += (to - walker.at[i]).signum() * 4;
                walker.to[i] = walker.to[i].clamp(-96, 96);
                walker.at[i] += walker.to[i];
            }
            walker.health -= i32::from(walker.at == nearest);
            self.walkers[n] = walker;
        }
    }
}

impl Simulation for Crowd {
    const NAME: &'static str = "crowd";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = Pad;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
        let began = Instant::now();
        for (player, pad) in frame.inputs() {
            let at = &mut self.players[player.index() % PLAYERS];
            at[0] = (at[0] + (pad.0 & 255) as i32 - 128).clamp(-32_000, 32_000);
            at[1] = (at[1] + (pad.0 >> 8 & 255) as i32 - 128).clamp(-32_000, 32_000);
        }
        self.walk();
        let extra = Duration::from_nanos(EXTRA_NS.load(Ordering::Relaxed));
        while !FREE.get() && began.elapsed() < extra {
            std::hint::spin_loop();
        }
    }
}

fn show() -> impl Show<Crowd> {
    show_with(|crowd: &Crowd, out: &mut Poses<u16, f32>| {
        for (n, walker) in crowd.walkers.iter().enumerate() {
            out.put(n as u16, walker.at[0] as f32);
        }
    })
}

/// What was measured in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) worst_ms: f64,
    pub(crate) lead_ticks: f64,
    /// Wrong guesses that were rebuilt, and those overtaken by the next one, of each turn.
    pub(crate) rebuilds: f64,
    pub(crate) overtaken: f64,
    pub(crate) fills: u64,
    pub(crate) heals: u64,
}

/// A match of four; the first one is measured, the others only give it something to guess wrongly.
struct Table4<V: Show<Crowd>> {
    game: Match<Crowd>,
    client: Client<Crowd, V, SimulatedTransport>,
    others: Vec<(Session<Crowd>, Pads)>,
    /// When the client's next frame is due.
    next: Instant,
    pads: Pads,
    ends: Vec<SimulatedTransport>,
    wires: Vec<SimulatedTransport>,
}

fn table4(how: Reconcile) -> Table4<impl Show<Crowd>> {
    let policies = MatchConfig {
        announce: Announce::Never,
        ..MatchConfig::action()
    };
    let resolver =
        |_: &Look<'_, Crowd>, _: Key, never: &Never| -> Decision<Never> { match *never {} };
    let mut game =
        Match::new(policies, Crowd::new(), Arc::new(()), resolver).expect("a sound configuration");
    let profile: LinkProfile = ROUND_TRIP.parse().expect("a link in words");
    let (mut ends, mut wires): (Vec<_>, Vec<_>) = (0..PLAYERS)
        .map(|n| SimulatedTransport::pair(profile, n as u64))
        .unzip();
    for n in 0..PLAYERS {
        let name = format!("client {n}");
        game.connect(Duration::ZERO, PeerId(n as u64), &name, 1)
            .expect("a free seat");
    }
    let config = || {
        let mut config = SessionConfig::<Crowd>::new(Arc::new(()));
        config.verify = false;
        config
    };
    let smoothing = Smoothing {
        teleport: f32::INFINITY,
        muzzle: Duration::from_millis(100),
    };
    let mine = config().reconcile(how).show(show(), smoothing);
    let mine = Session::new(mine).expect("rules without a NaN");
    let others = (1..PLAYERS).map(|n| {
        let session = Session::new(config()).expect("rules without a NaN");
        (session, Pads::new(Sticks::Moving, n))
    });
    Table4 {
        game,
        client: Client::over(ends.remove(0), mine),
        others: others.collect(),
        next: Instant::now(),
        pads: Pads::new(Sticks::Moving, 0),
        wires: std::mem::take(&mut wires),
        ends,
    }
}

impl<V: Show<Crowd>> Table4<V> {
    /// All but the client that is measured, whose own clock is everybody's.
    fn others(&mut self, now: Duration) {
        FREE.set(true);
        let mut buffer = [0; PACKET_BYTES_MAX];
        for (end, (session, pads)) in self.ends.iter_mut().zip(&mut self.others) {
            end.advance(now);
            while let Some(len) = end.poll(&mut buffer) {
                session.handle(now, &buffer[..len]);
            }
            // No step for a prediction that nobody looks at.
            session
                .advance(now, 0, |_| pads.next())
                .expect("a session that plays");
            while let Some(len) = session.poll_transmit(now, &mut buffer) {
                let _ = end.send(&buffer[..len]);
            }
        }
        for (n, wire) in self.wires.iter_mut().enumerate() {
            wire.advance(now);
            while let Some(len) = wire.poll(&mut buffer) {
                self.game.handle(now, PeerId(n as u64), &buffer[..len]);
            }
        }
        self.game.advance(now);
        while let Some(output) = self.game.poll() {
            if let Output::Packet { peer, bytes } = output {
                let _ = self.wires[peer.0 as usize].send(bytes);
            }
        }
        FREE.set(false);
    }

    fn frame(&mut self) -> Duration {
        let began = Instant::now();
        let pads = &mut self.pads;
        self.client
            .advance(|_| pads.next())
            .expect("a client that plays");
        began.elapsed()
    }

    /// So many frames, one every [`FRAME`], also since the last one of those before; what each took of the game's thread.
    fn play(&mut self, frames: u32) -> Vec<Duration> {
        let frame = |_| {
            // The match and the others take their time out of the pause before the frame.
            self.others(self.client.now());
            let wait = self.next.saturating_duration_since(Instant::now());
            thread::sleep(wait.saturating_sub(Duration::from_millis(1)));
            while Instant::now() < self.next {
                std::hint::spin_loop();
            }
            self.next = (self.next + FRAME).max(Instant::now());
            self.frame()
        };
        (0..frames).map(frame).collect()
    }
}

/// Plays so many frames, after [`SETTLE`] that do not count, with steps that cost so much more than they do.
pub(crate) fn round(how: Reconcile, extra: Duration, counted: u32) -> Round {
    EXTRA_NS.store(extra.as_nanos() as u64, Ordering::Relaxed);
    let mut table = table4(how);
    table.play(SETTLE);
    let before = table.client.session.stats();
    let mut laps = Vec::new();
    let (mut lead, mut pieces) = (0.0, 0);
    for _ in 0..counted / 10 {
        laps.extend(table.play(10));
        let stats = table.client.session.stats();
        lead += f64::from(stats.prediction_tick.saturating_sub(stats.authority_tick));
        pieces += 1;
    }
    let after = table.client.session.stats();
    laps.sort_unstable();
    let ms = |lap: Duration| lap.as_secs_f64() * 1e3;
    let turns = f64::from(after.authority_tick - before.authority_tick) / 2.0;
    let (is, was) = (after.timeline, before.timeline);
    Round {
        p50_ms: ms(laps[laps.len() / 2]),
        p99_ms: ms(laps[laps.len() * 99 / 100]),
        worst_ms: ms(laps[laps.len() - 1]),
        lead_ticks: lead / f64::from(pieces),
        rebuilds: (is.rebuilds - was.rebuilds) as f64 / turns,
        overtaken: (is.overtaken - was.overtaken) as f64 / turns,
        fills: after.fills - before.fills,
        heals: after.heals - before.heals,
    }
}

/// Measures every row and writes the table.
pub(crate) fn run(format: Format, date: Option<&str>, out: &mut impl Write) -> fmt::Result {
    let mut table = Table::new(
        "A frame of the game's thread, ms",
        "1,000 entities with their picture, 60 Hz, turns of 2 ticks, round trip 200 ms, a wrong guess at every turn; the median \
         of three rounds of 600 frames, and in the last column of p99 the lowest and the highest; rebuilds and those that \
         were overtaken by the next wrong guess, a turn",
        &[
            "step, rebuilt",
            "p50",
            "p99",
            "p99 of rounds",
            "worst",
            "lead, ticks",
            "rebuilds",
            "overtaken",
            "inputs lost",
            "heals",
        ],
    );
    for (step, extra) in [
        ("as it is", Duration::ZERO),
        ("0.2 ms", Duration::from_micros(200)),
        ("2 ms", Duration::from_millis(2)),
        ("5 ms", Duration::from_millis(5)),
    ] {
        for (name, how) in [
            ("inline", Reconcile::Inline),
            ("in the background", Reconcile::Background),
        ] {
            let mut rounds: Vec<Round> = (0..ROUNDS).map(|_| round(how, extra, COUNTED)).collect();
            rounds.sort_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms));
            let (least, median, most) = (rounds[0], rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
            table.row([
                format!("{step}, {name}"),
                format!("{:.2}", median.p50_ms),
                format!("{:.2}", median.p99_ms),
                format!("{:.2}–{:.2}", least.p99_ms, most.p99_ms),
                format!("{:.2}", median.worst_ms),
                number(median.lead_ticks),
                format!("{:.2}", median.rebuilds),
                format!("{:.2}", median.overtaken),
                median.fills.to_string(),
                median.heals.to_string(),
            ]);
        }
    }
    let date = date.unwrap_or("date not given (--date)");
    match format {
        Format::Text => writeln!(out, "twinstep-bench crowd · {date}")?,
        Format::Markdown => writeln!(out, "`twinstep-bench crowd`, {date}\n")?,
    }
    let mut crowd = Crowd::new();
    let began = Instant::now();
    (0..1_000).for_each(|_| crowd.walk());
    let step_us = began.elapsed().as_secs_f64() * 1e3;
    let lines = [
        format!("Machine: {}; load {}.", machine(), load()),
        format!("The step as it is takes {} us.", number(step_us)),
        "Frames may take 4 ms for steps, the default: what does not fit costs lead.".to_owned(),
    ];
    list(format, lines.iter().map(String::as_str), out)?;
    writeln!(out)?;
    table.write(format, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is claimed to be a wrong guess at every turn, with 16 ticks of lead, is one: in virtual time.
    #[test]
    fn every_turn_is_guessed_wrongly_at_16_ticks_of_lead() {
        let mut table = table4(Reconcile::Inline);
        let mut before = None;
        for n in 0..440 {
            let now = FRAME * n;
            table.others(now);
            let pads = &mut table.pads;
            table
                .client
                .advance_at(now, |_| pads.next())
                .expect("a client that plays");
            if n == 300 {
                before = Some(table.client.session.stats());
            }
        }
        let (before, after) = (before.expect("300 frames"), table.client.session.stats());
        let turns = u64::from(after.authority_tick - before.authority_tick) / 2;
        let rebuilds = after.timeline.rebuilds - before.timeline.rebuilds;
        assert!(
            turns > 60 && rebuilds.abs_diff(turns) <= 1,
            "{rebuilds} of {turns}"
        );
        let lead = after.prediction_tick - after.authority_tick;
        assert!((15..=18).contains(&lead), "{lead} ticks");
        assert_eq!(after.heals, 0);
    }
}
