//! [`CueLedger`]: every sound and flash is started once and settled once, however often its tick is
//! simulated again.
//!
//! ```text
//!              predicted / rebuilt                       the authority passes
//!   (unknown) ───────────────────▶ Started ──▶ open ──┬── it has it, maybe ticks away ──▶ Confirmed { at }
//!       │                                             ├── neither it nor the prediction ─▶ Cancelled
//!       │ brought by the authority alone              └── the prediction holds it, moved ▶ stays open
//!       └───────────────────────▶ Started, Confirmed
//! ```
//!
//! Invariant: `started = confirmed + cancelled + open`; a game that counts its events sees each cue of the
//! authority confirmed exactly once.
//!
//! Identity is (key, value), with an ordinal for repeats within a tick, and survives a move of up to
//! [`CUE_DRIFT_TICKS`]: the explosion that a correction shifts by three ticks is not heard twice. Which of
//! two equal cues moved is decided in three passes: who is where it was expected; then, in the order of
//! ticks, the earliest open one that nothing else holds; then it is a new one. Only the authority settles:
//! what a rebuild loses may be found again by the next one, so it waits until its tick is passed.
//!
//! Cost: a binary search per cue, plus the open cues of the same key within the drift; no allocation once
//! the buffers have grown (but cloning a cue that owns heap memory allocates).

use std::collections::VecDeque;
use std::mem;

use twinstep_core::bounds::{CUE_DRIFT_TICKS, CUES_OPEN_MAX};
use twinstep_core::{Key, Tick, Wire};

/// Events that wait for the game; beyond, cues are not delivered (law *Bounded*).
const EVENTS_MAX: usize = 4 * CUES_OPEN_MAX;

/// Cues that there is room for without allocating: what a busy screen has open.
const ROOM: usize = 256;

/// Names one delivered cue in this client, so that a game can stop what it started. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CueId(pub u64);

/// Something that happened to one cue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CueEvent<C> {
    /// Which delivered cue.
    pub id: CueId,
    /// What happened.
    pub kind: CueKind<C>,
}

/// The life of a cue: `Started`, then exactly one of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CueKind<C> {
    /// Show or play it now.
    Started {
        /// The tick that emitted it; older than the prediction's if a rebuild or the authority found it late.
        tick: Tick,
        /// What caused it.
        key: Key,
        /// What it is.
        cue: C,
    },
    /// It did happen.
    Confirmed {
        /// The tick at which it happened; up to [`CUE_DRIFT_TICKS`] from the one that it was started with.
        at: Tick,
    },
    /// It did not happen: stop it, or let it fade.
    Cancelled,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CueTotals {
    /// Delivered.
    pub started: u64,
    /// Settled as true.
    pub confirmed: u64,
    /// Settled as wrong.
    pub cancelled: u64,
    /// Of the confirmed ones: at another tick than the one they were started with.
    pub moved: u64,
    /// Predicted, but not delivered yet because too many were open or unread.
    pub postponed: u64,
    /// Cues of the authority that were never delivered because the game does not read its events.
    pub dropped: u64,
}

struct Open<C> {
    key: Key,
    /// The tick it was started with; its identity may drift from here, and it is overdue after it.
    started: Tick,
    id: CueId,
    cue: C,
    /// Where the prediction had it last.
    expected: Tick,
    /// Whether the current prediction has it, at `expected`.
    held: bool,
}

/// The sounds and flashes that a game plays: each is started once and settled once, however often its tick is simulated
/// again.
pub struct CueLedger<C: Wire> {
    /// By (key, started, id).
    open: Vec<Open<C>>,
    /// Cues of the authority that no open one was expected for; matched when the new prediction is known.
    unmatched: VecDeque<(Tick, Key, C)>,
    events: VecDeque<CueEvent<C>>,
    /// Cues of a rebuild that no open one was expected for. Empty between calls, kept for its buffer.
    strays: Vec<(Tick, Key, C)>,
    totals: CueTotals,
    jumped: bool,
}

impl<C: Wire> CueLedger<C> {
    /// Nothing open.
    #[must_use]
    pub fn new() -> Self {
        CueLedger {
            open: Vec::with_capacity(ROOM),
            unmatched: VecDeque::with_capacity(ROOM),
            events: VecDeque::with_capacity(2 * ROOM),
            strays: Vec::with_capacity(ROOM),
            totals: CueTotals::default(),
            jumped: false,
        }
    }

    /// Counts since the start.
    #[must_use]
    pub fn totals(&self) -> CueTotals {
        self.totals
    }

    /// Cues started and not settled, at most [`CUES_OPEN_MAX`].
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// The earliest tick that one of them was started for. Costs a look at each.
    #[must_use]
    pub fn open_since(&self) -> Option<Tick> {
        self.open.iter().map(|open| open.started).min()
    }

    /// The next event, oldest first.
    pub fn poll(&mut self) -> Option<CueEvent<C>> {
        self.events.pop_front()
    }

    /// The prediction simulated `tick` for the first time, on top of what it holds already.
    pub fn predicted(&mut self, tick: Tick, cues: &[(Key, C)]) {
        for (key, cue) in cues {
            self.hold(tick, *key, cue);
        }
    }

    /// The prediction was rebuilt: `ticks` are all of its ticks, from the authority's next one, in order.
    ///
    /// Call it after [`confirmed`](Self::confirmed) of the ticks that caused the rebuild.
    pub fn rebuilt<'a>(&mut self, ticks: impl IntoIterator<Item = (Tick, &'a [(Key, C)])>) {
        for open in &mut self.open {
            open.held = false;
        }
        let mut strays = mem::take(&mut self.strays);
        for (tick, cues) in ticks {
            for (key, cue) in cues {
                match self.find(tick, *key, cue, |open| !open.held && open.expected == tick) {
                    Some(i) => self.open[i].held = true,
                    None => strays.push((tick, *key, cue.clone())),
                }
            }
        }
        // What the authority brought is older than every tick of the prediction, so it chooses first.
        self.match_unmatched();
        for (tick, key, cue) in strays.drain(..) {
            self.hold(tick, key, &cue);
        }
        self.strays = strays;
    }

    /// The authority stepped `tick`, and these are its cues.
    pub fn confirmed(&mut self, tick: Tick, cues: &[(Key, C)]) {
        for (key, cue) in cues {
            match self.find(tick, *key, cue, |open| open.held && open.expected == tick) {
                Some(i) => self.confirm(i, tick),
                None => {
                    // Only a rebuild that never ends gets here; then wait no longer for it.
                    if self.unmatched.len() == CUES_OPEN_MAX {
                        self.match_unmatched();
                    }
                    self.unmatched.push_back((tick, *key, cue.clone()));
                }
            }
        }
    }

    /// Settles all that the authority (its next tick is given) has passed. At the end of an advance, but not
    /// while a rebuild is unfinished: what the new prediction holds is what decides.
    pub fn settle(&mut self, authority: Tick) {
        for open in &mut self.open {
            open.held &= open.expected >= authority;
        }
        self.match_unmatched();
        let (jumped, events, totals) = (self.jumped, &mut self.events, &mut self.totals);
        self.open.retain(|open| {
            let stays = open.held || (open.started >= authority && !jumped);
            if !stays {
                totals.cancelled += 1;
                events.push_back(CueEvent {
                    id: open.id,
                    kind: CueKind::Cancelled,
                });
            }
            stays
        });
        self.jumped = false;
    }

    /// The client got another world, of tick `at` (a heal or a join): all before it is cancelled, and what
    /// is later stays open only if the prediction rebuilt from it (before the next settling) holds it.
    pub fn jump(&mut self, at: Tick) {
        self.match_unmatched();
        for open in &mut self.open {
            open.held = false;
        }
        self.settle(at);
        self.jumped = true;
    }

    /// The prediction has this cue at `tick`: an open one that moved there, or a new one.
    fn hold(&mut self, tick: Tick, key: Key, cue: &C) {
        if let Some(i) = self.find(tick, key, cue, |open| !open.held) {
            (self.open[i].held, self.open[i].expected) = (true, tick);
        } else if self.open.len() < CUES_OPEN_MAX && self.has_room_for(2) {
            let id = self.start(tick, key, cue.clone());
            let i = self
                .open
                .partition_point(|open| (open.key, open.started) <= (key, tick));
            let cue = cue.clone();
            self.open.insert(
                i,
                Open {
                    key,
                    started: tick,
                    id,
                    cue,
                    expected: tick,
                    held: true,
                },
            );
        } else {
            self.totals.postponed += 1;
        }
    }

    /// Gives each waiting cue of the authority to the earliest open one that may have moved there, else
    /// delivers it as new.
    fn match_unmatched(&mut self) {
        while let Some((tick, key, cue)) = self.unmatched.pop_front() {
            if let Some(i) = self.find(tick, key, &cue, |open| !open.held) {
                self.confirm(i, tick);
            } else if self.has_room_for(2) {
                let id = self.start(tick, key, cue);
                self.totals.confirmed += 1;
                self.events.push_back(CueEvent {
                    id,
                    kind: CueKind::Confirmed { at: tick },
                });
            } else {
                self.totals.dropped += 1;
            }
        }
    }

    /// The earliest open cue equal to this one, started within the drift of `tick`.
    fn find(
        &self,
        tick: Tick,
        key: Key,
        cue: &C,
        wanted: impl Fn(&Open<C>) -> bool,
    ) -> Option<usize> {
        let earliest = (key, tick.back(CUE_DRIFT_TICKS));
        let latest = (key, tick + CUE_DRIFT_TICKS);
        let first = self
            .open
            .partition_point(|open| (open.key, open.started) < earliest);
        let near = self.open[first..]
            .iter()
            .take_while(|open| (open.key, open.started) <= latest);
        near.enumerate()
            .find(|(_, open)| wanted(open) && open.cue == *cue)
            .map(|(i, _)| first + i)
    }

    /// Whether `events` more fit beside the one that each open cue is still owed.
    fn has_room_for(&self, events: usize) -> bool {
        self.events.len() + self.open.len() + events <= EVENTS_MAX
    }

    fn start(&mut self, tick: Tick, key: Key, cue: C) -> CueId {
        let id = CueId(self.totals.started);
        self.totals.started += 1;
        self.events.push_back(CueEvent {
            id,
            kind: CueKind::Started { tick, key, cue },
        });
        id
    }

    fn confirm(&mut self, i: usize, at: Tick) {
        let open = self.open.remove(i);
        self.totals.confirmed += 1;
        self.totals.moved += u64::from(open.started != at);
        self.events.push_back(CueEvent {
            id: open.id,
            kind: CueKind::Confirmed { at },
        });
    }
}

impl<C: Wire> Default for CueLedger<C> {
    fn default() -> Self {
        CueLedger::new()
    }
}

#[cfg(test)]
mod tests;
