//! A watch over each match: whatever it does, the others play on.
//!
//! ```text
//!  a worker     catch_unwind(round) ──beat──beat──beat── … no more
//!  its watch    (a task of the host) ──look──look──look── … 10 times the same beat ─▶ condemned: it is over,
//!                                                            its players are told, its worker is given up
//! ```
//!
//! Looks are counted, not time: a process that was stopped as a whole has missed beats, but looks too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use twinstep_core::packet::hello::CloseCode;

use super::incidents::IncidentFiles;
use super::io::ToIo;
use super::logged;
use super::metrics::Entry;
use super::pulse::Pulse;
use super::workers::Ended;
use crate::incident::{Incident, Trouble};

/// The watch looks so often.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A match that shows the same beat so many times in a row stands still.
const SAME_BEATS_MAX: u32 = 10;

/// Watches over a match until it ends, and tells its players if it did not end by itself.
pub(super) async fn watch<E>(
    id: u64,
    mut end: oneshot::Receiver<Ended>,
    (pulse, entry): (Arc<Pulse>, Entry),
    files: IncidentFiles,
    (told, closing): (mpsc::Sender<ToIo>, watch::Receiver<Option<E>>),
    over: watch::Sender<Option<CloseCode>>,
) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut same) = (0, 0);
    let trouble = loop {
        tokio::select! {
            ended = &mut end => match ended {
                Ok(Ok(code)) => break Ok(code),
                Ok(Err(panic)) => {
                    entry.counts.note_panic();
                    break Err((Trouble::Match, panic));
                }
                Err(_) => break Err((Trouble::Match, "its worker is gone".to_owned())),
            },
            _ = looks.tick() => {
                let beats = pulse.beats();
                same = if beats == seen { same + 1 } else { 0 };
                seen = beats;
                // While a host ends its matches, each waits for its turn: how long, its host decides.
                let is_ending = closing.borrow().is_some();
                if same >= SAME_BEATS_MAX && !is_ending {
                    pulse.condemn();
                    let silence = LOOK_EVERY * SAME_BEATS_MAX;
                    break Err((Trouble::MatchHangs, format!("no beat for {silence:?}")));
                }
            }
        }
    };
    // What it counted is the process's from now on.
    drop(entry);
    let code = match trouble {
        Ok(Some(code)) => {
            logged::info!(id, reason = %code, "match ended");
            code
        }
        // As if the process had been killed: a word to its clients, and they would not come back.
        Ok(None) => return,
        Err((trouble, message)) => {
            let tick = pulse.shown().tick;
            files.write(&Incident::new(tick, trouble, &message));
            CloseCode::Fault
        }
    };
    let _ = told.send(ToIo::Over(id, code)).await;
    over.send_replace(Some(code));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::metrics::Ledger;

    /// A dropped server told its clients, now and then, that it was drained; they did not come back then.
    #[tokio::test]
    async fn the_clients_of_a_match_that_is_abandoned_hear_nothing() {
        for (ended, hears) in [(None, false), (Some(CloseCode::MatchOver), true)] {
            let (end, ends) = oneshot::channel();
            let (told, mut heard) = mpsc::channel(8);
            let (over, shown) = watch::channel(None);
            let files = IncidentFiles {
                id: 1,
                folder: None,
                journal: None,
                about: String::new(),
                told: Arc::default(),
                ledger: Ledger::default(),
            };
            end.send(Ok(ended)).unwrap();
            let entry = Ledger::default().enter();
            let closing = watch::channel(None::<()>).1;
            let ways = (told, closing);
            super::watch(1, ends, (Arc::default(), entry), files, ways, over).await;
            assert_eq!(heard.try_recv().is_ok(), hears);
            assert_eq!(*shown.borrow(), ended);
        }
    }
}
