//! Which tickets of an identity are out of date. The order is the one in which the server saw them; no clock of a maker
//! takes part in it.
//!
//! ```text
//!  maker      A0        B0                        0: generation; a ticket of a maker begins a lineage of its own
//!  server     │ A1 A2   │ B1 B2                   tickets to return with: the session's lineage, rising generations
//!  ───────────┴──┬──────┴────┬─────────▶
//!   A0 is used   │ A2 stored │ B0 is used
//!   A0 is safe   │ A2 is safe: A0, A1 are out of date
//!                            └ first use of B: all of A is out of date
//! ```
//!
//! A generation is *safe* once it opened a session that plays, or once its client reports that it stored the ticket where a
//! new process finds it. So a lineage that the server has not seen is always good, whatever the clock of its maker, and
//! what was used and replaced is good for nothing.
//!
//! **The price**: a ticket that leaked and that nobody has used is good until it expires, also if its owner has used
//! newer ones since. Its first use ends the owner's session, and makes the owner's tickets worthless. So makers give
//! tickets short lives, and an operator who knows of a leak revokes: see [`Lineages::revoke`].
//!
//! Invariants: what is known of a lineage only rises, so rulings may be applied twice and in any order, and files of two
//! processes are merged by applying both. [`Lineages::refuses`] is the only judge of "out of date": for the transport's
//! door, the match, its journal and the file beside the key.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

#[cfg(test)]
mod tests;

/// The longest life of a ticket.
pub const TICKET_LIFE_MAX: Duration = Duration::from_secs(30 * 86_400);
/// For how much longer than its tickets live a lineage is remembered, in seconds: a clock that is set back by a day revives
/// no ticket.
pub const CLOCK_SLACK_S: u64 = 86_400;
/// A revocation covers tickets made up to this long after it, in milliseconds by the maker's clock: the clocks of makers may
/// be ahead by this.
pub const REVOKE_SLACK_MS: u64 = 5_000;
/// A lineage is recorded as alive for this many seconds beyond its newest ticket, so that a session that is handed one in ten
/// seconds is recorded once an hour.
const HEADROOM_S: u64 = 3_600;
/// The generation below which all tickets of a lineage stand.
const WHOLE: u32 = u32::MAX;

/// The place of a ticket among those of its holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Random. Tickets to return with carry on the lineage of their session.
    pub lineage: u64,
    /// 0 for a ticket of a maker; rising in those to return with.
    pub generation: u32,
    /// When it was made, in milliseconds since the unix epoch, by its maker's clock. Only a revocation looks at it.
    pub made_unix_ms: u64,
    /// From when on it is worthless, in seconds since the unix epoch, by the server's clock.
    pub expires_unix_s: u64,
}

impl Stamp {
    /// A client's report of a ticket that it stored: its lineage and its generation.
    #[must_use]
    pub fn stored(&self) -> [u8; 12] {
        let mut report = [0; 12];
        report[..8].copy_from_slice(&self.lineage.to_le_bytes());
        report[8..].copy_from_slice(&self.generation.to_le_bytes());
        report
    }

    /// Reads such a report: a lineage and a generation.
    #[must_use]
    pub fn read_stored(report: &[u8]) -> Option<(u64, u32)> {
        let report: &[u8; 12] = report.try_into().ok()?;
        let (lineage, generation) = report.split_first_chunk()?;
        let generation = generation.try_into().ok()?;
        Some((u64::from_le_bytes(*lineage), u32::from_le_bytes(generation)))
    }
}

/// The lineage, generation and life of a session's next ticket to return with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextTicket {
    /// Its lineage; `None`: a new one.
    pub lineage: Option<u64>,
    /// Its generation.
    pub generation: u32,
    /// It is dated no earlier than this, in milliseconds since the unix epoch.
    pub made_unix_ms_min: u64,
    /// It lives at least until then, in seconds since the unix epoch: as long as the ticket by which its session came.
    pub expires_unix_s_min: u64,
}

/// Tickets of one holder that let nobody in from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Those of a lineage with a lower generation.
    Below {
        /// The lineage.
        lineage: u64,
        /// The lowest generation that is good; [`u32::MAX`]: none is.
        generation: u32,
        /// When its newest ticket expires, in seconds since the unix epoch, with room for some newer ones.
        until_unix_s: u64,
    },
    /// Those that were made before, by their makers' clocks.
    MadeBefore {
        /// In milliseconds since the unix epoch.
        unix_ms: u64,
    },
}

/// The tickets of one holder that the server has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineages {
    seen: BTreeMap<u64, Seen>,
    made_before_unix_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// The lowest generation that is good.
    safe: u32,
    /// When the newest ticket expires, or later.
    until_unix_s: u64,
    /// The highest generation that was handed out, as far as this process knows.
    handed: u32,
}

impl Lineages {
    /// Whether a ticket is out of date: a newer one is safe, or it was revoked.
    #[must_use]
    pub fn refuses(&self, stamp: &Stamp) -> bool {
        let seen = self.seen.get(&stamp.lineage);
        seen.is_some_and(|seen| stamp.generation < seen.safe)
            || stamp.made_unix_ms < self.made_before_unix_ms
    }

    /// Whether the lineage was seen: a generation of it was safe.
    #[must_use]
    pub fn has_seen(&self, lineage: u64) -> bool {
        self.seen.contains_key(&lineage)
    }

    /// The lowest generation of a lineage that is good; `None`: the lineage was not seen.
    #[must_use]
    pub fn safe(&self, lineage: u64) -> Option<u32> {
        self.seen.get(&lineage).map(|seen| seen.safe)
    }

    /// A ticket of this holder must be dated no earlier, in milliseconds since the unix epoch: 0 without a revocation.
    #[must_use]
    pub fn made_unix_ms_min(&self) -> u64 {
        self.made_before_unix_ms
    }

    /// A ticket is safe: it opened a session that plays, or is stored where a new process finds it. The first one of a
    /// lineage ends all lineages that were seen before. Returns what changed.
    pub fn make_safe(&mut self, stamp: &Stamp) -> Vec<Ruling> {
        if self.refuses(stamp) {
            return Vec::new();
        }
        let mut rulings = Vec::new();
        if !self.has_seen(stamp.lineage) {
            self.end_all(&mut rulings);
        }
        let until_unix_s = stamp.expires_unix_s.saturating_add(HEADROOM_S);
        self.rule(stamp, until_unix_s, &mut rulings);
        rulings
    }

    /// A ticket was handed out. Returns what changed: the lineage is to be remembered for longer, once in an hour or so.
    pub fn note_handed(&mut self, stamp: &Stamp) -> Option<Ruling> {
        let seen = self.seen.get_mut(&stamp.lineage)?;
        seen.handed = seen.handed.max(stamp.generation);
        if stamp.expires_unix_s <= seen.until_unix_s {
            return None;
        }
        let ruling = Ruling::Below {
            lineage: stamp.lineage,
            generation: seen.safe,
            until_unix_s: stamp.expires_unix_s.saturating_add(HEADROOM_S),
        };
        self.apply(&ruling).then_some(ruling)
    }

    /// All lineages that were seen are out of date, and so is what was made before that time, in milliseconds since the unix
    /// epoch, by the maker's clock: the time of now and [`REVOKE_SLACK_MS`]. Returns what changed.
    ///
    /// Not covered: a ticket that nobody has used, of a maker whose clock is ahead by more than the slack. Covered too
    /// much: what a maker makes whose clock is behind, for as long as it is behind.
    pub fn revoke(&mut self, made_before_unix_ms: u64) -> Vec<Ruling> {
        let mut rulings = Vec::new();
        self.end_all(&mut rulings);
        let ruling = Ruling::MadeBefore {
            unix_ms: made_before_unix_ms,
        };
        if self.apply(&ruling) {
            rulings.push(ruling);
        }
        rulings
    }

    /// The ticket after `newest`, which a session holds, for a session that came by `came_by`.
    #[must_use]
    pub fn next(&self, came_by: Option<&Stamp>, newest: Option<&Stamp>) -> NextTicket {
        let newest = newest.filter(|newest| self.safe(newest.lineage) != Some(WHOLE));
        let handed = newest.and_then(|newest| self.seen.get(&newest.lineage));
        let generation = newest.map(|newest| {
            let highest = handed.map_or(0, |seen| seen.handed.max(seen.safe));
            newest.generation.max(highest).saturating_add(1)
        });
        NextTicket {
            lineage: newest.map(|newest| newest.lineage),
            // One short of what would stand for the whole lineage: it is reached after a thousand years.
            generation: generation.unwrap_or(0).min(WHOLE - 1),
            made_unix_ms_min: self.made_before_unix_ms,
            expires_unix_s_min: came_by.map_or(0, |stamp| stamp.expires_unix_s),
        }
    }

    /// Applies what was ruled elsewhere, or by an earlier process. Returns `true` if it was news.
    pub fn apply(&mut self, ruling: &Ruling) -> bool {
        match *ruling {
            Ruling::Below {
                lineage,
                generation,
                until_unix_s,
            } => {
                let seen = self.seen.get(&lineage);
                let before = seen.map(|seen| (seen.safe, seen.until_unix_s, seen.handed));
                let (safe, until, handed) = before.unwrap_or_default();
                let seen = Seen {
                    safe: safe.max(generation),
                    until_unix_s: until.max(until_unix_s),
                    handed,
                };
                self.seen.insert(lineage, seen);
                before != Some((seen.safe, seen.until_unix_s, seen.handed))
            }
            Ruling::MadeBefore { unix_ms } => {
                let is_news = unix_ms > self.made_before_unix_ms;
                self.made_before_unix_ms = unix_ms.max(self.made_before_unix_ms);
                is_news
            }
        }
    }

    /// All that is known, as rulings.
    pub fn rulings(&self) -> impl Iterator<Item = Ruling> + '_ {
        let below = self.seen.iter().map(|(lineage, seen)| Ruling::Below {
            lineage: *lineage,
            generation: seen.safe,
            until_unix_s: seen.until_unix_s,
        });
        let unix_ms = self.made_before_unix_ms;
        below.chain((unix_ms > 0).then_some(Ruling::MadeBefore { unix_ms }))
    }

    fn end_all(&mut self, rulings: &mut Vec<Ruling>) {
        for (lineage, seen) in &mut self.seen {
            if seen.safe != WHOLE {
                seen.safe = WHOLE;
                rulings.push(Ruling::Below {
                    lineage: *lineage,
                    generation: WHOLE,
                    until_unix_s: seen.until_unix_s,
                });
            }
        }
    }

    fn rule(&mut self, stamp: &Stamp, until_unix_s: u64, rulings: &mut Vec<Ruling>) {
        let known = self.seen.get(&stamp.lineage);
        let is_known = known.is_some_and(|seen| {
            seen.safe == stamp.generation && stamp.expires_unix_s <= seen.until_unix_s
        });
        let ruling = Ruling::Below {
            lineage: stamp.lineage,
            generation: stamp.generation,
            until_unix_s: known.map_or(until_unix_s, |seen| match stamp.expires_unix_s {
                expires if expires <= seen.until_unix_s => seen.until_unix_s,
                _ => until_unix_s,
            }),
        };
        if !is_known && self.apply(&ruling) {
            rulings.push(ruling);
        }
    }

    /// Forgets what beats only tickets that have expired.
    fn forget(&mut self, now_unix_s: u64) {
        self.seen
            .retain(|_, seen| now_unix_s < remembered_until(seen.until_unix_s));
        if now_unix_s >= remembered_until(revoked_until(self.made_before_unix_ms)) {
            self.made_before_unix_ms = 0;
        }
    }

    fn len(&self) -> usize {
        self.seen.len() + usize::from(self.made_before_unix_ms > 0)
    }
}

impl Ruling {
    /// Until when it is of use, in seconds since the unix epoch: no ticket that it refuses lives longer.
    #[must_use]
    pub fn until_unix_s(&self) -> u64 {
        match *self {
            Ruling::Below { until_unix_s, .. } => until_unix_s,
            Ruling::MadeBefore { unix_ms } => revoked_until(unix_ms),
        }
    }

    /// Both in one, if they are of one lineage, or both of what was made before: what is known only rises.
    #[must_use]
    pub fn and(self, other: Ruling) -> Ruling {
        match (self, other) {
            (
                Ruling::Below {
                    lineage,
                    generation,
                    until_unix_s,
                },
                Ruling::Below {
                    generation: other_generation,
                    until_unix_s: other_until_unix_s,
                    ..
                },
            ) => Ruling::Below {
                lineage,
                generation: generation.max(other_generation),
                until_unix_s: until_unix_s.max(other_until_unix_s),
            },
            (Ruling::MadeBefore { unix_ms }, Ruling::MadeBefore { unix_ms: other }) => {
                Ruling::MadeBefore {
                    unix_ms: unix_ms.max(other),
                }
            }
            _ => other,
        }
    }
}

fn revoked_until(unix_ms: u64) -> u64 {
    (unix_ms / 1_000).saturating_add(TICKET_LIFE_MAX.as_secs())
}

fn remembered_until(until_unix_s: u64) -> u64 {
    until_unix_s.saturating_add(CLOCK_SLACK_S)
}

/// The tickets of many holders that the server has seen: only entries that matter for tickets that are alive, up to a bound.
#[derive(Clone, Debug)]
pub struct LineageTable<K: Ord> {
    holders: BTreeMap<K, Lineages>,
    /// Lineages and revocations of all holders.
    entries: usize,
    entries_max: usize,
    /// From this size on it is looked for what is over.
    forget_at: usize,
}

/// A table that is smaller is not looked through for what is over.
const FORGET_FROM: usize = 1_024;

impl<K: Ord + Clone> LineageTable<K> {
    /// Nothing is known. At most `entries_max` lineages are remembered; beyond that, those go whose tickets expire first.
    #[must_use]
    pub const fn new(entries_max: usize) -> LineageTable<K> {
        LineageTable {
            holders: BTreeMap::new(),
            entries: 0,
            entries_max,
            forget_at: FORGET_FROM,
        }
    }

    /// The entry of a holder; `None`: the server has seen no ticket of this holder, so all are good.
    #[must_use]
    pub fn get(&self, holder: &K) -> Option<&Lineages> {
        self.holders.get(holder)
    }

    /// Whether a ticket is out of date.
    #[must_use]
    pub fn refuses(&self, holder: &K, stamp: &Stamp) -> bool {
        self.get(holder)
            .is_some_and(|lineages| lineages.refuses(stamp))
    }

    /// Changes what is known of a holder, by one of the ways of [`Lineages`].
    pub fn change<R>(&mut self, holder: &K, change: impl FnOnce(&mut Lineages) -> R) -> R {
        let lineages = self.holders.entry(holder.clone()).or_default();
        let before = lineages.len();
        let changed = change(lineages);
        let after = lineages.len();
        self.entries = self.entries + after - before;
        if after == 0 {
            self.holders.remove(holder);
        }
        changed
    }

    /// Applies a ruling. Returns `true` if it was news.
    pub fn apply(&mut self, holder: &K, ruling: &Ruling) -> bool {
        self.change(holder, |lineages| lineages.apply(ruling))
    }

    /// All that is known, in the order of the holders.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Ruling)> + '_ {
        rulings(self.holders.iter())
    }

    /// The entries of a range of holders.
    pub fn range(
        &self,
        holders: impl core::ops::RangeBounds<K>,
    ) -> impl Iterator<Item = (&K, Ruling)> + '_ {
        rulings(self.holders.range(holders))
    }

    /// Forgets the holders of which `stays` is not true.
    pub fn retain(&mut self, stays: impl Fn(&K) -> bool) {
        self.holders.retain(|holder, _| stays(holder));
        self.entries = self.holders.values().map(Lineages::len).sum();
    }

    /// Lineages and revocations that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Forgets what is over, when it may be half of all, and what is beyond the bound. Costs nothing in between. Returns how
    /// many were forgotten that still mattered: the bound is too small.
    pub fn tidy(&mut self, now_unix_s: u64) -> usize {
        if self.entries < self.forget_at.min(self.entries_max + 1) {
            return 0;
        }
        self.forget(now_unix_s);
        let mut lost = 0;
        if self.entries > self.entries_max {
            lost = self.drop_oldest(self.entries - self.entries_max * 7 / 8);
        }
        self.forget_at = FORGET_FROM.max(self.entries * 2);
        lost
    }

    /// Forgets what is over.
    pub fn forget(&mut self, now_unix_s: u64) {
        self.holders.retain(|_, lineages| {
            lineages.forget(now_unix_s);
            lineages.len() > 0
        });
        self.entries = self.holders.values().map(Lineages::len).sum();
    }

    /// Forgets those that would be over first.
    fn drop_oldest(&mut self, count: usize) -> usize {
        let mut ends: Vec<u64> = self.iter().map(|(_, it)| it.until_unix_s()).collect();
        ends.sort_unstable();
        let Some(&last) = ends.get(count.saturating_sub(1)) else {
            return 0;
        };
        let before = self.entries;
        // Those that end together go together.
        self.forget(last.saturating_add(CLOCK_SLACK_S));
        before - self.entries
    }
}

fn rulings<'t, K: 't>(
    holders: impl Iterator<Item = (&'t K, &'t Lineages)>,
) -> impl Iterator<Item = (&'t K, Ruling)> {
    holders.flat_map(|(holder, lineages)| lineages.rulings().map(move |ruling| (holder, ruling)))
}
