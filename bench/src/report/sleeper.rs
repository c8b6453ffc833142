//! How late the machine itself makes a thread that does nothing but sleep: no server's ticks can be more punctual.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::thread;
use std::time::{Duration, Instant};

use crate::cores::{pin, two};
use crate::served::Lateness;

/// As far apart as the moments at which a server's matches are due: eight in a tick at 60 Hz.
const APART: Duration = Duration::from_micros(2_083);

/// Sleeps for so long on the server's core, a moment at a time. `None` if not once.
pub(super) fn lateness(time: Duration) -> Option<Lateness> {
    let sleeper = thread::spawn(move || {
        if let Some((servers, _)) = two() {
            pin(servers);
        }
        let began = Instant::now();
        let mut late_us = Vec::new();
        let mut due = APART;
        while due < time {
            thread::sleep(due.saturating_sub(began.elapsed()));
            let late = began.elapsed().saturating_sub(due);
            late_us.push(late.as_secs_f32() * 1e6);
            due += APART;
        }
        Lateness::of(late_us)
    });
    sleeper.join().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_at_each_moment_and_is_never_early() {
        let lateness = lateness(APART * 50 + APART / 2).expect("it slept");
        assert_eq!(lateness.seals, 50);
        assert!(lateness.p50_us > 0.0 && lateness.p50_us <= lateness.worst_us);
        assert!(super::lateness(APART).is_none());
    }
}
