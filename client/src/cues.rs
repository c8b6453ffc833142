//! [`CueLedger`]: every sound and flash is started once and settled once, however often its tick is simulated again.
//!
//! ```text
//!              predicted / rebuilt                       the authority passes
//!   (unknown) ───────────────────▶ Started ──▶ open ──┬── has the cue, maybe ticks away ──▶ Confirmed { at }
//!       │                                             ├── nor has the prediction ─────────▶ Cancelled
//!       │ only the authority has it                   └── the prediction has it, moved ───▶ stays open
//!       └───────────────────────▶ Started, Confirmed
//! ```
//!
//! Invariant: `started = confirmed + cancelled + open`; a game that polls its events in time sees each cue of the
//! authority confirmed exactly once.
//!
//! A cue is identified by (key, value), and by its order among equal cues of a tick. It keeps its identity if a
//! correction moves it by at most [`CUE_DRIFT`](twinstep_core::bounds::CUE_DRIFT): an explosion shifted by three ticks
//! is not played twice. Equal cues are matched in this order: first the open cue at its expected tick, then the
//! earliest open cue that the prediction does not hold elsewhere; otherwise the cue is new. Only the authority settles
//! cues: a cue missing after one rebuild may reappear with the next one, so it stays open until its tick has passed.
//!
//! Cost: a binary search per cue, plus the open cues of the same key within the drift; no allocation once the buffers
//! have grown (but cloning a cue that owns heap memory allocates).

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use twinstep_core::bounds::{CUES_OPEN_MAX, PLAYERS_MAX, cue_drift_ticks};
use twinstep_core::turn::Cadence;
use twinstep_core::{Key, PlayerId, Tick, Wire};

/// The maximum number of events waiting for the game. Beyond it, cues are not delivered (law *Bounded*).
const EVENTS_MAX: usize = 4 * CUES_OPEN_MAX;

/// Initial capacity: the open cues of a busy screen.
const ROOM: usize = 256;

/// The id of a cue delivered by this client, with which a game can stop what it started. An id is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CueId(pub u64);

/// Something that happened to one cue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CueEvent<C> {
    /// The id of the cue.
    pub id: CueId,
    /// The event.
    pub kind: CueKind<C>,
}

/// An event in the life of a cue: `Started`, then either `Confirmed` or `Cancelled`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CueKind<C> {
    /// Show or play it now.
    Started {
        /// The tick that emitted the cue; older than the prediction's tick if a rebuild or the authority found it late.
        tick: Tick,
        /// The cause.
        key: Key,
        /// The game's cue.
        cue: C,
    },
    /// The cue happened.
    Confirmed {
        /// The tick at which the cue happened, at most [`cue_drift_ticks`](twinstep_core::bounds::cue_drift_ticks) ticks from the
        /// one with which it was started.
        at: Tick,
    },
    /// The cue did not happen: stop it, or fade it out.
    Cancelled,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct CueTotals {
    pub started: u64,
    pub confirmed: u64,
    pub cancelled: u64,
    /// Cues confirmed at a different tick from the one with which they were started.
    pub moved: u64,
    /// Times that a predicted cue was not started yet, because too many were open or unread. A cue counts each time that
    /// its tick is predicted.
    pub postponed: u64,
    /// Cues of the authority that were never started, because too many were unread, or waited to be due.
    pub dropped: u64,
}

struct Open<C> {
    key: Key,
    /// The tick with which the cue was started. The drift is measured from this tick.
    started: Tick,
    /// `None` until it is due; see [`CueLedger::show_until`].
    id: Option<CueId>,
    cue: C,
    /// The tick of the cue in the prediction that last contained it.
    expected: Tick,
    held: bool,
}

/// The sounds and flashes of a game: each is started once and settled once, however often its tick is simulated again.
pub struct CueLedger<C: Wire> {
    /// The open cues, sorted by (key, started), then in the order of their start.
    open: Vec<Open<C>>,
    /// Cues of the authority without a matching open cue; matched again when the new prediction is known.
    unmatched: VecDeque<(Tick, Key, C)>,
    events: VecDeque<CueEvent<C>>,
    /// Cues of a rebuild without a matching open cue. Empty between calls; kept for its buffer.
    strays: Vec<(Tick, Key, C)>,
    totals: CueTotals,
    drift: u32,
    jumped: bool,
    /// The first tick whose cues are not shown yet, for each player.
    due: [Tick; PLAYERS_MAX],
    // Confirmed cues that are not due.
    waiting: Vec<(Tick, Key, C)>,
}

impl<C: Wire> CueLedger<C> {
    /// Creates an empty ledger.
    #[must_use]
    pub fn new() -> Self {
        CueLedger {
            open: Vec::with_capacity(ROOM),
            unmatched: VecDeque::with_capacity(ROOM),
            events: VecDeque::with_capacity(2 * ROOM),
            strays: Vec::with_capacity(ROOM),
            totals: CueTotals::default(),
            drift: cue_drift_ticks(Cadence::DEFAULT.tick()),
            jumped: false,
            due: [Tick::MAX; PLAYERS_MAX],
            waiting: Vec::with_capacity(ROOM),
        }
    }

    /// Sets the length of a tick, which is 1/60 s by default.
    pub fn set_tick(&mut self, tick: Duration) {
        self.drift = cue_drift_ticks(tick);
    }

    /// Totals since the start.
    #[must_use]
    pub fn totals(&self) -> CueTotals {
        self.totals
    }

    /// The number of cues started and not settled, at most [`CUES_OPEN_MAX`].
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.iter().filter(|open| open.id.is_some()).count()
    }

    /// Releases a player's cues (see [`Key::owner`]) of the ticks before `tick`, the tick at which the player is drawn.
    /// Later cues are started when they become due, unless they turn out wrong before. By default all cues are due.
    pub fn show_until(&mut self, player: PlayerId, tick: Tick) {
        self.due[player.index()] = tick;
        for i in 0..self.open.len() {
            let Open {
                id,
                key,
                expected,
                held,
                ..
            } = self.open[i];
            let is_due = key.owner() == Some(player) && self.is_due(expected, key);
            // A cue that the newest prediction does not hold was a wrong guess.
            if id.is_none() && held && is_due && self.has_room_for(1) {
                let cue = self.open[i].cue.clone();
                self.open[i].id = Some(self.start(expected, key, cue));
            }
        }
        let mut i = 0;
        while i < self.waiting.len() {
            let (at, key, _) = self.waiting[i];
            if key.owner() == Some(player) && self.is_due(at, key) {
                let (at, key, cue) = self.waiting.remove(i);
                self.start_confirmed(at, key, cue);
            } else {
                i += 1;
            }
        }
    }

    fn is_due(&self, tick: Tick, key: Key) -> bool {
        key.owner()
            .is_none_or(|player| tick < self.due[player.index()])
    }

    /// The earliest start tick of an open cue. Returns `None` if no cue is open. Visits each open cue.
    #[must_use]
    pub fn open_since(&self) -> Option<Tick> {
        self.open.iter().map(|open| open.started).min()
    }

    /// Returns the next event, oldest first.
    pub fn poll(&mut self) -> Option<CueEvent<C>> {
        self.events.pop_front()
    }

    /// Records the cues of a new tick of the prediction.
    pub fn predicted(&mut self, tick: Tick, cues: &[(Key, C)]) {
        for (key, cue) in cues {
            self.hold(tick, *key, cue);
        }
    }

    /// Replaces the prediction's cues: `ticks` are all ticks of the rebuilt prediction in order, starting at the
    /// authority's next tick.
    ///
    /// Call this after [`confirmed`](Self::confirmed) for the ticks that caused the rebuild.
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
        // The authority's cues are older than all of the prediction's, so they are matched first.
        self.match_unmatched();
        for (tick, key, cue) in strays.drain(..) {
            self.hold(tick, key, &cue);
        }
        self.strays = strays;
    }

    /// Records the cues of `tick`, which the authority stepped.
    pub fn confirmed(&mut self, tick: Tick, cues: &[(Key, C)]) {
        for (key, cue) in cues {
            match self.find(tick, *key, cue, |open| open.held && open.expected == tick) {
                Some(i) => self.confirm(i, tick),
                None => {
                    // The buffer fills in a very long rebuild, or in a burst of many cues; in that case stop waiting.
                    if self.unmatched.len() == CUES_OPEN_MAX {
                        self.match_unmatched();
                    }
                    self.unmatched.push_back((tick, *key, cue.clone()));
                }
            }
        }
    }

    /// Settles each open cue that the authority has passed; `authority` is its next tick. Call it at the end of an
    /// advance, but not while a rebuild is unfinished, because the new prediction decides which cues stay.
    pub fn settle(&mut self, authority: Tick) {
        for open in &mut self.open {
            // The authority has passed the expected tick without confirming the cue there.
            open.held &= open.expected >= authority;
        }
        self.match_unmatched();
        let (jumped, events, totals) = (self.jumped, &mut self.events, &mut self.totals);
        self.open.retain(|open| {
            let stays = open.held || (open.started >= authority && !jumped);
            if let Some(id) = open.id.filter(|_| !stays) {
                totals.cancelled += 1;
                events.push_back(CueEvent {
                    id,
                    kind: CueKind::Cancelled,
                });
            }
            stays
        });
        self.jumped = false;
    }

    /// Cancels the cues started before `at`, because the client received a new world of that tick (a heal or a join).
    /// Later cues stay open only if the prediction that is rebuilt before the next settling holds them.
    pub fn jump(&mut self, at: Tick) {
        self.match_unmatched();
        for open in &mut self.open {
            open.held = false;
        }
        self.settle(at);
        self.jumped = true;
    }

    /// Records that the prediction contains this cue at `tick`: an open cue that moved there, or a new one.
    fn hold(&mut self, tick: Tick, key: Key, cue: &C) {
        if let Some(i) = self.find(tick, key, cue, |open| !open.held) {
            (self.open[i].held, self.open[i].expected) = (true, tick);
        } else if self.open.len() < CUES_OPEN_MAX && self.has_room_for(2) {
            let is_due = self.is_due(tick, key);
            let id = is_due.then(|| self.start(tick, key, cue.clone()));
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

    /// Matches each waiting cue of the authority to the earliest open cue that may have moved there, or delivers it as
    /// new.
    fn match_unmatched(&mut self) {
        while let Some((tick, key, cue)) = self.unmatched.pop_front() {
            if let Some(i) = self.find(tick, key, &cue, |open| !open.held) {
                self.confirm(i, tick);
            } else {
                self.start_confirmed(tick, key, cue);
            }
        }
    }

    fn start_confirmed(&mut self, at: Tick, key: Key, cue: C) {
        let is_due = self.is_due(at, key);
        if !is_due && self.waiting.len() < CUES_OPEN_MAX {
            self.waiting.push((at, key, cue));
        } else if is_due && self.has_room_for(2) {
            let id = self.start(at, key, cue);
            self.totals.confirmed += 1;
            self.events.push_back(CueEvent {
                id,
                kind: CueKind::Confirmed { at },
            });
        } else {
            self.totals.dropped += 1;
        }
    }

    /// Finds the earliest open cue that equals `cue`, was started within the drift of `tick`, and is accepted by
    /// `wanted`.
    fn find(
        &self,
        tick: Tick,
        key: Key,
        cue: &C,
        wanted: impl Fn(&Open<C>) -> bool,
    ) -> Option<usize> {
        let earliest = (key, tick.back(self.drift));
        let latest = (key, tick + self.drift);
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

    /// Returns `true` if `events` more events fit, with one reserved for each open cue.
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
        let Some(id) = open.id else {
            return self.start_confirmed(at, open.key, open.cue);
        };
        self.totals.confirmed += 1;
        self.totals.moved += u64::from(open.started != at);
        self.events.push_back(CueEvent {
            id,
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
