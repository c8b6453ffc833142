//! [`Workers`]: a few threads that run all matches of a host. Whoever is free takes the match that is due first, plays a
//! round of it, and puts it back with the time at which it is due again.
//!
//! ```text
//!   due first                                      ┌──────── round ────────┐
//!  ┌─────────────────────────┐  worker 1 ── takes ─┤ match 7               ├─ puts back ─▶ due in 16 ms
//!  │ 7 │ 3 │ 12 │ 5 │ … heap │  worker 2 ── waits for the next due
//!  └─────────────────────────┘  (worker 3: lost in match 9, whose step does not return; 4 is there in its place)
//! ```
//!
//! One worker does it all as long as it can: each thread more that wakes costs more than a small match's tick. Another one
//! is woken when a match is late by [`LATE`], or when a match is taken whose rounds are long. A worker that has been in one
//! round for [`LOST`] no longer counts, and a fresh one may take its place: so whatever a match does, the others are late by
//! a few hundredths of a second, once. Go's scheduler deals with system calls in the same way (its `sysmon` takes the
//! processor away from a thread that stays in one).
//!
//! Invariant: a match is with one worker, or at home in its slot; so no two threads ever see it.

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

/// A match that is late by so much makes another worker wake.
const LATE: Duration = Duration::from_millis(1);
/// A worker that is in one round for so long does not count until it is back.
pub(super) const LOST: Duration = Duration::from_millis(20);
/// Rounds that usually take longer than this have somebody else watch the heap meanwhile.
const LONG: Duration = Duration::from_micros(300);
/// Where a match is late and no round begins for so long, nobody runs matches any more.
const UNSERVED_MAX: Duration = Duration::from_secs(2);

/// How a match ended: why it is over (`None`: it was abandoned), or what its panic said.
pub(super) type Ended = Result<Option<CloseCode>, String>;

/// What workers run.
pub(super) trait Play: Send {
    /// Does what is to be done now.
    fn round(&mut self) -> Next;
}

/// What comes after a round.
pub(super) enum Next {
    /// Another one, when it is this late.
    At(Duration),
    /// None: it is over, for this reason; `None`: it was abandoned.
    Over(Option<CloseCode>),
}

/// Where a match has its place. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(u64);

impl SlotId {
    /// How many slots there were before.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// The workers of a host. Clones share them.
#[derive(Clone)]
pub(super) struct Workers(Arc<Shared>);

struct Shared {
    name: String,
    /// Workers that are not lost.
    most: usize,
    clock: HostClock,
    state: Mutex<State>,
    work: Condvar,
    /// Matches were run, and none is due.
    rested: Notify,
    /// As if the system had no thread left.
    #[cfg(test)]
    is_starved: std::sync::atomic::AtomicBool,
}

#[derive(Default)]
struct State {
    slots: BTreeMap<SlotId, Slot>,
    /// When slots are due. An entry counts if the slot says the same.
    due: BinaryHeap<Reverse<(Duration, SlotId)>>,
    /// What is with a worker, and since when.
    out: Vec<(SlotId, Duration)>,
    threads: usize,
    idle: usize,
    /// The earliest moment for which an idle worker wakes by itself.
    watched: Option<Duration>,
    slots_made: u64,
    threads_made: u64,
    /// Rounds that were begun: all, when that was looked at last, and when a match was last seen to be served.
    rounds: u64,
    rounds_seen: u64,
    served_at: Duration,
    is_shut: bool,
}

struct Slot {
    /// The match, if it is at home.
    match_: Option<Box<dyn Play>>,
    due: Duration,
    /// It was woken while it was with a worker.
    is_woken: bool,
    /// How long a round takes, about.
    usual: Duration,
    end: oneshot::Sender<Ended>,
}

impl Workers {
    /// At most `most` threads that are not lost; none before there is work.
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

    /// A place for a match that is about to be made.
    pub(super) fn slot(&self) -> SlotId {
        let mut state = self.0.lock();
        state.slots_made += 1;
        SlotId(state.slots_made)
    }

    /// Runs a match until it is over; then it is dropped, and its end is told.
    ///
    /// # Errors
    /// There is no thread to run anything, and none can be had.
    pub(super) fn run(
        &self,
        slot: SlotId,
        match_: Box<dyn Play>,
    ) -> io::Result<oneshot::Receiver<Ended>> {
        let (end, ended) = oneshot::channel();
        let mut state = self.0.lock();
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

    /// Has a match run now.
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

    /// A match is due at once: where every worker is in a round, whoever [looks](Workers::look) must know it, for that round may not
    /// end.
    fn report_busy(&self, state: &State) {
        if state.idle == 0 {
            self.0.rested.notify_one();
        }
    }

    /// Has every match run now.
    pub(super) fn wake_all(&self) {
        let slots: Vec<SlotId> = self.0.lock().slots.keys().copied().collect();
        for slot in slots {
            self.wake(slot);
        }
    }

    /// Waits until matches were run, and none is due any more; or until one is due at once and every worker is in a round.
    pub(super) async fn rested(&self) {
        self.0.rested.notified().await;
    }

    /// When the next match is due, of those that are not with a worker.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.0.lock().first()
    }

    /// Looks whether a match is late although somebody could run it, and says whether matches are run at all. To be called a
    /// hundred times a second; where nobody plays, soon after [the next match](Workers::next_due) was to be run.
    pub(super) fn look(&self) -> bool {
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

    /// Every match is due now, and threads end when nothing is left.
    pub(super) fn shut(&self) {
        let mut state = self.0.lock();
        state.is_shut = true;
        let home: Vec<SlotId> = state.home().collect();
        for slot in &home {
            if let Some(known) = state.slots.get_mut(slot) {
                known.due = Duration::ZERO;
            }
            state.push_due(Duration::ZERO, *slot);
        }
        // Those that are not idle may all be lost.
        if !home.is_empty()
            && state.idle == 0
            && let Err(error) = self.spawn(&mut state)
        {
            logged::error!(%error, "no thread to end the matches");
        }
        self.0.work.notify_all();
    }

    /// From now on the system has no thread for another worker; or has again.
    #[cfg(test)]
    pub(super) fn starve(&self, is_starved: bool) {
        let starved = &self.0.is_starved;
        starved.store(is_starved, std::sync::atomic::Ordering::Relaxed);
    }

    /// Whether no match is left.
    pub(super) fn is_done(&self) -> bool {
        self.0.lock().slots.is_empty()
    }

    /// Somebody is needed: wakes a worker that is idle, or starts one if there may be another.
    fn call(&self, state: &mut State) {
        if state.idle > 0 {
            return self.0.work.notify_one();
        }
        let lost = state.lost(self.0.clock.now());
        if state.threads - lost < self.0.most
            && let Err(error) = self.spawn(state)
        {
            logged::error!(%error, "no thread for another worker");
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

    /// What a worker does all its life.
    fn work(&self) {
        let mut state = self.0.lock();
        let mut has_played = false;
        loop {
            let now = self.0.clock.now();
            if let Some((slot, match_, usual)) = state.take(now) {
                has_played = true;
                let has_more = usual > LONG && state.first().is_some();
                if has_more || state.is_late(now) {
                    self.call(&mut state);
                }
                drop(state);
                let played = play(match_);
                state = self.0.lock();
                let back = self.0.clock.now();
                let surplus = state.put_back(slot, played, now, back);
                if surplus && state.threads > self.0.most + state.lost(back) {
                    break;
                }
            } else if state.is_shut && state.home().next().is_none() {
                break;
            } else {
                if std::mem::take(&mut has_played) {
                    self.0.rested.notify_one();
                }
                // Telling that may have taken a while.
                state = self.rest(state, self.0.clock.now());
            }
        }
        state.threads -= 1;
    }

    /// Waits until there may be something to do.
    fn rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        now: Duration,
    ) -> MutexGuard<'s, State> {
        state.idle += 1;
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

/// One round of a match: the match, and when it is due again; or how it ended.
fn play(mut match_: Box<dyn Play>) -> Result<(Box<dyn Play>, Duration), Ended> {
    let panicked = |panic: Box<dyn std::any::Any + Send>| Err(panic_message(&*panic).to_owned());
    let next = catch_unwind(AssertUnwindSafe(|| match_.round()));
    let ended = match next {
        Ok(Next::At(due)) => return Ok((match_, due)),
        Ok(Next::Over(code)) => Ok(code),
        Err(panic) => panicked(panic),
    };
    // It lets go of all that it holds before anybody hears of its end. What drops may be an author's.
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

    /// When the first match is due that is at home.
    fn first(&mut self) -> Option<Duration> {
        while let Some(&Reverse((due, slot))) = self.due.peek() {
            let counts = |known: &Slot| known.match_.is_some() && known.due == due;
            if self.slots.get(&slot).is_some_and(counts) {
                return Some(due);
            }
            self.due.pop();
        }
        None
    }

    /// Takes the match that is due first, if it is due now; how long its rounds take.
    fn take(&mut self, now: Duration) -> Option<(SlotId, Box<dyn Play>, Duration)> {
        self.first().filter(|due| *due <= now)?;
        let Reverse((_, slot)) = self.due.pop()?;
        let known = self.slots.get_mut(&slot)?;
        let match_ = known.match_.take()?;
        self.out.push((slot, now));
        self.rounds += 1;
        Some((slot, match_, known.usual))
    }

    /// A worker is back with what became of its match. Whether it had been lost.
    fn put_back(
        &mut self,
        slot: SlotId,
        played: Result<(Box<dyn Play>, Duration), Ended>,
        began: Duration,
        now: Duration,
    ) -> bool {
        let took = now.saturating_sub(began);
        self.out.retain(|(other, _)| *other != slot);
        match played {
            Ok((match_, due)) => {
                if let Some(known) = self.slots.get_mut(&slot) {
                    let woken = std::mem::take(&mut known.is_woken);
                    known.match_ = Some(match_);
                    known.usual = (known.usual * 7 + took) / 8;
                    known.due = match due {
                        _ if woken || self.is_shut => Duration::ZERO,
                        due => due,
                    };
                    let due = known.due;
                    self.push_due(due, slot);
                }
            }
            Err(ended) => {
                if let Some(known) = self.slots.remove(&slot) {
                    let _ = known.end.send(ended);
                }
            }
        }
        took >= LOST
    }

    /// Whether a match that is at home is late.
    fn is_late(&mut self, now: Duration) -> bool {
        self.first().is_some_and(|due| due + LATE < now)
    }

    /// Workers that do not count.
    fn lost(&self, now: Duration) -> usize {
        let is_lost = |(_, since): &&(SlotId, Duration)| now.saturating_sub(*since) >= LOST;
        self.out.iter().filter(is_lost).count()
    }

    fn home(&self) -> impl Iterator<Item = SlotId> {
        let home = self.slots.iter().filter(|(_, slot)| slot.match_.is_some());
        home.map(|(slot, _)| *slot)
    }
}
