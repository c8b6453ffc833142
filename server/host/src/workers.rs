//! [`Workers`]: a few threads that run all matches of a host. An idle worker takes the match that is due first, runs a
//! round, and puts it back with its next due time.
//!
//! ```text
//!   due first                                      ┌──────── round ────────┐
//!  ┌─────────────────────────┐  worker 1 ── takes ─┤ match 7               ├─ puts back ─▶ due in 16 ms
//!  │ 7 │ 3 │ 12 │ 5 │ … heap │  worker 2 ── waits for the next due
//!  └─────────────────────────┘  (worker 3: lost in match 9, whose step does not return; 4 is there in its place)
//! ```
//!
//! One worker runs all matches as long as it can: each further thread that wakes costs more than the tick of a small
//! match. Another worker is woken when a match is late by [`LATE`], or when a match with long rounds is taken. A worker
//! that has been in one round for [`LOST`] no longer counts, and a new one may take its place. So even if one match
//! hangs, the others are late by tens of milliseconds, once. Go's scheduler treats system calls the same way (its
//! `sysmon` takes the processor away from a thread that stays in one).
//!
//! Invariant: a match is either with one worker or in its slot, so no two threads access it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use twinstep_protocol::packet::closed::CloseCode;

use super::clock::HostClock;
use super::logged;
use twinstep_server::internal::panic_message;

#[cfg(test)]
mod tests;

/// A match that is this late wakes another worker.
const LATE: Duration = Duration::from_millis(1);
/// A worker that is in one round for this long does not count until it returns.
pub(super) const LOST: Duration = Duration::from_millis(20);
/// If a match's rounds usually take longer than this, another worker is woken before it runs, to watch the heap.
const LONG: Duration = Duration::from_micros(300);
/// The time without a round, while a match is late, after which [`Workers`] report that matches no longer run.
const UNSERVED_MAX: Duration = Duration::from_secs(2);

/// The end of a match: the close code (`None` if the match was abandoned), or the message of a panic.
pub(super) type Ended = Result<Option<CloseCode>, String>;

pub(super) trait Playable: Send {
    fn round(&mut self) -> Next;
}

pub(super) enum Next {
    At(Duration),
    Over(Option<CloseCode>),
}

/// The id of a match's slot, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(u64);

impl SlotId {
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
pub(super) struct Workers(Arc<Shared>);

struct Shared {
    name: String,
    /// The maximum number of workers that are not lost.
    most: usize,
    clock: HostClock,
    state: Mutex<State>,
    work: Condvar,
    /// Notified when `Workers::rested` must return.
    rested: Notify,
    #[cfg(test)]
    is_starved: std::sync::atomic::AtomicBool,
}

#[derive(Default)]
struct State {
    slots: BTreeMap<SlotId, Slot>,
    /// The due times of slots. An entry is valid if the slot has the same time.
    due: BinaryHeap<Reverse<(Duration, SlotId)>>,
    /// The slots whose matches are with workers, and the start times of their rounds.
    out: Vec<(SlotId, Duration)>,
    threads: usize,
    idle: usize,
    /// The earliest time when an idle worker wakes without an event.
    watched: Option<Duration>,
    slots_made: u64,
    threads_made: u64,
    /// The number of rounds so far; `rounds_seen`: at the last check; `served_at`: when matches were last seen running.
    rounds: u64,
    rounds_seen: u64,
    served_at: Duration,
    is_shutting_down: bool,
}

struct Slot {
    match_: Option<Box<dyn Playable>>,
    due: Duration,
    is_woken: bool,
    usual: Duration,
    end: oneshot::Sender<Ended>,
}

impl Workers {
    /// Creates workers with at most `most` threads, not counting lost ones. Threads are started when there is work.
    pub(super) fn new(name: impl Into<String>, most: usize, clock: HostClock) -> Workers {
        Workers(Arc::new(Shared {
            name: name.into(),
            most: most.max(1),
            clock,
            state: Mutex::default(),
            work: Condvar::new(),
            rested: Notify::new(),
            #[cfg(test)]
            is_starved: Default::default(),
        }))
    }

    pub(super) fn slot(&self) -> SlotId {
        let mut state = self.0.lock();
        state.slots_made += 1;
        SlotId(state.slots_made)
    }

    /// Runs a match until it is over, then drops it. Returns a receiver for its end.
    ///
    /// # Errors
    /// If there is no worker, and the system refuses a thread.
    pub(super) fn run(
        &self,
        slot: SlotId,
        match_: Box<dyn Playable>,
    ) -> io::Result<oneshot::Receiver<Ended>> {
        let (end, ended) = oneshot::channel();
        let mut state = self.0.lock();
        // Before the match is stored, so that an error leaves nothing behind.
        match state.threads {
            0 => self.spawn(&mut state)?,
            _ => self.0.work.notify_one(),
        }
        let slot_state = Slot {
            match_: Some(match_),
            due: Duration::ZERO,
            is_woken: false,
            usual: Duration::ZERO,
            end,
        };
        state.slots.insert(slot, slot_state);
        state.push_due(Duration::ZERO, slot);
        self.report_busy(&state);
        Ok(ended)
    }

    pub(super) fn wake(&self, slot: SlotId) {
        let mut state = self.0.lock();
        let Some(known) = state.slots.get_mut(&slot) else {
            return;
        };
        if known.match_.is_none() {
            known.is_woken = true;
            return;
        }
        known.due = Duration::ZERO;
        state.push_due(Duration::ZERO, slot);
        self.0.work.notify_one();
        self.report_busy(&state);
    }

    /// Wakes the watcher of the workers if all of them are in a round while a match is due, because a round may hang.
    fn report_busy(&self, state: &State) {
        if state.idle == 0 {
            self.0.rested.notify_one();
        }
    }

    pub(super) fn wake_all(&self) {
        let slots: Vec<SlotId> = self.0.lock().slots.keys().copied().collect();
        for slot in slots {
            self.wake(slot);
        }
    }

    /// Waits until matches were run and none is due; or until a match is due now and all workers are in a round.
    pub(super) async fn rested(&self) {
        self.0.rested.notified().await;
    }

    /// The due time of the next match that is not with a worker.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.0.lock().first()
    }

    /// Starts or wakes a worker if a match is late. Returns `false` if matches no longer run. Must be called a hundred
    /// times a second; on an idle server, soon after [the next match](Workers::next_due) was due.
    pub(super) fn check(&self) -> bool {
        let now = self.0.clock.now();
        let mut state = self.0.lock();
        if state.is_late(now) {
            self.call(&mut state);
        }
        let rounds = state.rounds;
        if !state.is_late(now) || rounds != state.rounds_seen {
            (state.rounds_seen, state.served_at) = (rounds, now);
        }
        now.saturating_sub(state.served_at) < UNSERVED_MAX
    }

    /// Makes every match due now. Threads end when no match is left.
    pub(super) fn shut_down(&self) {
        let mut state = self.0.lock();
        state.is_shutting_down = true;
        let home: Vec<SlotId> = state.home().collect();
        for slot in &home {
            if let Some(known) = state.slots.get_mut(slot) {
                known.due = Duration::ZERO;
            }
            state.push_due(Duration::ZERO, *slot);
        }
        // All busy workers may be lost.
        if !home.is_empty()
            && state.idle == 0
            && let Err(error) = self.spawn(&mut state)
        {
            logged::error!(%error, "cannot start a thread to end the matches: the shutdown may not finish; check the thread limit (TasksMax)");
        }
        self.0.work.notify_all();
    }

    #[cfg(test)]
    pub(super) fn starve(&self, is_starved: bool) {
        let starved = &self.0.is_starved;
        starved.store(is_starved, std::sync::atomic::Ordering::Relaxed);
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.lock().slots.is_empty()
    }

    fn call(&self, state: &mut State) {
        if state.idle > 0 {
            return self.0.work.notify_one();
        }
        let lost = state.lost(self.0.clock.now());
        if state.threads - lost < self.0.most
            && let Err(error) = self.spawn(state)
        {
            logged::error!(%error, "cannot start another worker thread: ticks may be late; check the thread limit (TasksMax)");
        }
    }

    fn spawn(&self, state: &mut State) -> io::Result<()> {
        #[cfg(test)]
        if self.0.is_starved.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let name = format!("match-{}-{}", self.0.name, state.threads_made);
        let workers = self.clone();
        let thread = std::thread::Builder::new().name(name);
        thread.spawn(move || workers.work())?;
        state.threads += 1;
        state.threads_made += 1;
        Ok(())
    }

    fn work(&self) {
        let mut state = self.0.lock();
        let mut has_played = false;
        loop {
            let now = self.0.clock.now();
            if let Some((slot, match_, usual)) = state.take(now) {
                has_played = true;
                // During a long round, another worker must watch the heap.
                let has_more = usual > LONG && state.first().is_some();
                if has_more || state.is_late(now) {
                    self.call(&mut state);
                }
                drop(state);
                let played = play(match_);
                state = self.0.lock();
                let back = self.0.clock.now();
                let surplus = state.put_back(slot, played, now, back);
                // The worker had been lost and its replacement runs, so there is one thread too many.
                if surplus && state.threads > self.0.most + state.lost(back) {
                    break;
                }
            } else if state.is_shutting_down && state.home().next().is_none() {
                break;
            } else {
                if std::mem::take(&mut has_played) {
                    self.0.rested.notify_one();
                }
                // The notification may have taken a while.
                state = self.rest(state, self.0.clock.now());
            }
        }
        state.threads -= 1;
    }

    fn rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        now: Duration,
    ) -> MutexGuard<'s, State> {
        state.idle += 1;
        // One idle worker with a time-out is enough; it watches the earliest due time.
        let watches = state
            .first()
            .filter(|due| state.watched.is_none_or(|watched| *due < watched));
        let mut state = if let Some(due) = watches {
            state.watched = Some(due);
            let waited = self.0.work.wait_timeout(state, due.saturating_sub(now));
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.watched == Some(due) {
                state.watched = None;
            }
            state
        } else {
            let waited = self.0.work.wait(state);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        state.idle -= 1;
        state
    }
}

/// Runs one round. Returns the match with its next due time, or how it ended.
fn play(mut match_: Box<dyn Playable>) -> Result<(Box<dyn Playable>, Duration), Ended> {
    let panicked = |panic: Box<dyn std::any::Any + Send>| Err(panic_message(&*panic).to_owned());
    let next = catch_unwind(AssertUnwindSafe(|| match_.round()));
    let ended = match next {
        Ok(Next::At(due)) => return Ok((match_, due)),
        Ok(Next::Over(code)) => Ok(code),
        Err(panic) => panicked(panic),
    };
    // Dropped before its end is reported, so that all its resources are free by then. The drop may run an author's
    // code.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(match_)));
    Err(dropped.map_or_else(panicked, |()| ended))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push_due(&mut self, due: Duration, slot: SlotId) {
        self.due.push(Reverse((due, slot)));
    }

    /// The earliest due time of a match that is not with a worker.
    fn first(&mut self) -> Option<Duration> {
        while let Some(&Reverse((due, slot))) = self.due.peek() {
            let counts = |known: &Slot| known.match_.is_some() && known.due == due;
            if self.slots.get(&slot).is_some_and(counts) {
                return Some(due);
            }
            // An outdated entry: the match is with a worker, or was scheduled again.
            self.due.pop();
        }
        None
    }

    /// Takes the earliest due match, if it is due by `now`. Also returns the usual duration of the match's rounds.
    fn take(&mut self, now: Duration) -> Option<(SlotId, Box<dyn Playable>, Duration)> {
        self.first().filter(|due| *due <= now)?;
        let Reverse((_, slot)) = self.due.pop()?;
        let known = self.slots.get_mut(&slot)?;
        let match_ = known.match_.take()?;
        self.out.push((slot, now));
        self.rounds += 1;
        Some((slot, match_, known.usual))
    }

    /// Puts a match back after a round. Returns `true` if its worker had been lost.
    fn put_back(
        &mut self,
        slot: SlotId,
        played: Result<(Box<dyn Playable>, Duration), Ended>,
        began: Duration,
        now: Duration,
    ) -> bool {
        let took = now.saturating_sub(began);
        self.out.retain(|(other, _)| *other != slot);
        match played {
            Ok((match_, due)) => {
                if let Some(known) = self.slots.get_mut(&slot) {
                    // If the match was woken during its round, that wake-up must not be lost.
                    let woken = std::mem::take(&mut known.is_woken);
                    known.match_ = Some(match_);
                    known.usual = (known.usual * 7 + took) / 8;
                    known.due = match due {
                        _ if woken || self.is_shutting_down => Duration::ZERO,
                        due => due,
                    };
                    let due = known.due;
                    self.push_due(due, slot);
                }
            }
            Err(ended) => {
                if let Some(known) = self.slots.remove(&slot) {
                    // The host may no longer wait for the end.
                    let _ = known.end.send(ended);
                }
            }
        }
        took >= LOST
    }

    fn is_late(&mut self, now: Duration) -> bool {
        self.first().is_some_and(|due| due + LATE < now)
    }

    fn lost(&self, now: Duration) -> usize {
        let is_lost = |(_, since): &&(SlotId, Duration)| now.saturating_sub(*since) >= LOST;
        self.out.iter().filter(is_lost).count()
    }

    fn home(&self) -> impl Iterator<Item = SlotId> {
        let home = self.slots.iter().filter(|(_, slot)| slot.match_.is_some());
        home.map(|(slot, _)| *slot)
    }
}
