//! The time that a client frame takes on the game thread when a step is expensive and every turn refutes a guess.
//! Predictions are rebuilt inline, or on a worker thread ([`Reconcile::Background`]).
//!
//! Frames run in real time, because the worker needs the time between them. Other work on the machine affects p99
//! first.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use twinstep_client::{Client, NoPicture, Reconcile, Session, SessionConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::Announce;
use twinstep_udp::{PACKET_MAX, SimulatedTransport, Transport};

use crate::effort::Effort;
use crate::game::{Blob, Pads, Seals, Sticks};
use crate::ours::Table;
use crate::process::Failed;
use crate::rows::{Row, Section};
use crate::subject::{FRAME, Plays};
use crate::turns::{Party, spent};

/// A step plays the blob this many times, which takes about 50 µs.
const PLAYS: u32 = 4_000;
const SETTLE_FRAMES: u32 = 60;

struct Threaded {
    client: Client<Blob, NoPicture, SimulatedTransport>,
    end: SimulatedTransport,
}

impl Threaded {
    fn new(how: Reconcile, plays: u32) -> Threaded {
        let line = "rtt=0,jitter=0,loss=0".parse().expect("a line in words");
        let (client, end) = SimulatedTransport::pair(line, 1);
        let mut config = SessionConfig::new(Arc::new(Seals::costly(plays))).reconcile(how);
        config.verify = false;
        let session = Session::new(config).expect("rules without a NaN");
        Threaded {
            client: Client::with_transport(client, session),
            end,
        }
    }
}

impl Plays for Threaded {
    fn handle(&mut self, now: Duration, packet: &[u8]) -> Result<(), Failed> {
        self.end.advance(now);
        Ok(self.end.send(packet)?)
    }

    fn advance(&mut self, now: Duration, pads: &mut Pads) -> Result<(), Failed> {
        Ok(self
            .client
            .advance_at(now, || Duration::ZERO, |_seat| pads.next())?)
    }

    fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        let mut packet = [0; PACKET_MAX];
        self.end.advance(now);
        let len = self.end.poll(&mut packet)?;
        out[..len].copy_from_slice(&packet[..len]);
        Some(len)
    }

    fn is_playing(&self) -> bool {
        self.client.session().is_playing()
    }

    fn rebuilds(&self) -> (u64, u64) {
        self.client.session().rebuilds()
    }
}

fn table(how: Reconcile, plays: u32) -> Table<Threaded> {
    let config = MatchConfig {
        announce: Announce::Never,
        ..MatchConfig::action()
    };
    let rules = Seals::costly(plays);
    Table::with(config, (Blob::new(4_096), rules), Sticks::Moving, || {
        Threaded::new(how, plays)
    })
}

/// The measurements of one round: p50, p99 and worst in ms, rebuilds per turn.
type Round = [f64; 4];

fn round(how: Reconcile, frames: u32) -> Round {
    let mut table = table(how, PLAYS);
    let (mut laps, mut next) = (Vec::new(), Instant::now());
    let mut before = table.counts();
    for frame in 0..SETTLE_FRAMES + frames {
        if frame == SETTLE_FRAMES {
            (before, laps) = (table.counts(), Vec::new());
        }
        // The match and the other clients run in the pause before the frame.
        table.match_tick();
        let wait = next.saturating_duration_since(Instant::now());
        sleep(wait.saturating_sub(Duration::from_millis(1)));
        while Instant::now() < next {
            std::hint::spin_loop();
        }
        next = (next + FRAME).max(Instant::now());
        laps.push(spent(|| table.first_frame()));
        table.other_frames();
    }
    let counts = table.counts() - before;
    assert_eq!(counts.faults, 0, "late inputs and desyncs");
    laps.sort_unstable();
    let ms = |at: usize| laps[at].as_secs_f64() * 1e3;
    let last = laps.len() - 1;
    let rebuilds = counts.rebuilds as f64 / counts.turns as f64;
    [ms(last / 2), ms(last * 99 / 100), ms(last), rebuilds]
}

pub(crate) fn measure(effort: &Effort) -> Section {
    let mut blob = Blob::new(4_096);
    let step = spent(|| (0..PLAYS).for_each(|_| blob.play([].into_iter())));
    let mut section = Section::new(
        "The game's thread, in real time",
        format!(
            "A frame of a client, 60 Hz, packets 8 ticks on their way, a wrong guess at every turn of two ticks, a step of {} µs; \
             rebuilt in the background and inline, in turns.",
            step.as_micros()
        ),
    );
    let pair =
        |_| [Reconcile::Background, Reconcile::Inline].map(|how| round(how, effort.thread_frames));
    let rounds: Vec<[Round; 2]> = (0..effort.socket_rounds).map(pair).collect();
    for (at, name, unit) in [
        (0, "frame p50", "ms"),
        (1, "frame p99", "ms"),
        (2, "frame worst", "ms"),
        (3, "rebuilds a turn", ""),
    ] {
        let of = |how: usize| rounds.iter().map(|round| round[how][at]).collect();
        let name = format!("game thread, {name}, rebuilt in the background");
        let row = Row::new(name, unit, of(0)).beside("inline", of(1));
        section.rows.push(row);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Meters;

    #[test]
    fn an_in_memory_client_rebuilds_in_five_of_nine_turns() {
        let mut table = table(Reconcile::Inline, 1);
        (0..100).for_each(|_| table.frame(&mut Meters::default()));
        let counts = table.counts();
        let due = crate::ours::rebuilds_due(counts.turns);
        assert!(due.contains(&counts.rebuilds), "{counts:?}");
        assert_eq!(counts.faults, 0);
    }
}
