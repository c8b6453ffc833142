//! The rules by which an identity's ticket goes out of date. The order of tickets is the order in which the server saw
//! them; makers' clocks do not affect it.
//!
//! ```text
//!  maker      A0        B0                        0: generation; a maker's ticket starts a lineage of its own
//!  server     │ A1 A2   │ B1 B2                   reconnect tickets: the session's lineage, rising generations
//!  ───────────┴──┬──────┴────┬─────────▶
//!   A0 is used   │ A2 stored │ B0 is used
//!   A0 is safe   │ A2 is safe: A0, A1 are out of date
//!                            └ first use of B: all of A is out of date
//! ```
//!
//! A generation is *safe* once it opened a session that plays, or once its client reports that it stored the ticket
//! where a new process can find it. So, without a revocation, a lineage that the server has not seen is always valid,
//! even if its maker's clock is wrong, and a ticket that was used and then replaced is always refused.
//!
//! **The price**: a leaked ticket that has not been used is valid until it expires, even if its owner has used newer
//! ones since. Its first use ends the owner's session and invalidates the owner's tickets. So makers should give
//! tickets short lifetimes, and an operator who knows of a leak should revoke the tickets: see [`Lineages::revoke`].
//!
//! Invariants: the state of a lineage never goes back, so rulings can be applied twice and in any order, and the files
//! of two processes are merged by applying both. Only [`Lineages::refuses`] decides that a ticket is out of date: for
//! the transport's admissions, the match, its journal and the file next to the key.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

#[cfg(test)]
mod tests;

/// The longest lifetime of a ticket.
pub const TICKET_LIFE_MAX: Duration = Duration::from_secs(30 * 86_400);
/// The time for which a lineage is kept after its tickets have expired, in seconds. Setting a clock back by a day does
/// not make a ticket valid again.
pub const CLOCK_SLACK_S: u64 = 86_400;
/// The slack of a revocation, in milliseconds. If a maker's clock is ahead by more than this, the revocation misses
/// some of its earlier tickets.
pub const REVOKE_SLACK_MS: u64 = 5_000;
/// A lineage is recorded as alive for this many seconds beyond its newest ticket. So a session that gets a new ticket
/// every ten seconds is recorded only once an hour.
const HEADROOM_S: u64 = 3_600;
/// The safe generation of a lineage whose tickets are all out of date: above every real generation.
const WHOLE: u32 = u32::MAX;

/// A ticket's position in the order of its holder's tickets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// A random number. Reconnect tickets continue the lineage of their session.
    pub lineage: u64,
    /// 0 in a ticket from a maker. Each reconnect ticket of the lineage has a higher one.
    pub generation: u32,
    /// The time when the ticket was issued, in milliseconds since the Unix epoch, according to its maker's clock. Only
    /// a revocation uses it.
    pub issued_unix_ms: u64,
    /// The time when the ticket expires, in seconds since the Unix epoch, according to the server's clock.
    pub expires_unix_s: u64,
}

impl Stamp {
    /// Encodes a client's report that it stored this ticket: the lineage and the generation.
    #[must_use]
    pub fn stored(&self) -> [u8; 12] {
        let mut report = [0; 12];
        report[..8].copy_from_slice(&self.lineage.to_le_bytes());
        report[8..].copy_from_slice(&self.generation.to_le_bytes());
        report
    }

    /// Reads the report of a stored ticket: a lineage and a generation.
    #[must_use]
    pub fn read_stored(report: &[u8]) -> Option<(u64, u32)> {
        let report: &[u8; 12] = report.try_into().ok()?;
        let (lineage, generation) = report.split_first_chunk()?;
        let generation = generation.try_into().ok()?;
        Some((u64::from_le_bytes(*lineage), u32::from_le_bytes(generation)))
    }
}

/// The lineage, generation and expiry of a session's next reconnect ticket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextTicket {
    /// The lineage of the ticket; `None` for a new lineage.
    pub lineage: Option<u64>,
    pub generation: u32,
    /// The earliest possible date of the ticket, in milliseconds since the Unix epoch.
    pub issued_since_unix_ms: u64,
    /// The earliest possible expiry of the ticket, in seconds since the Unix epoch: that of the ticket that opened the
    /// session.
    pub expires_unix_s_min: u64,
}

/// A set of one holder's tickets, refused from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The tickets of a lineage with a lower generation.
    Below {
        lineage: u64,
        /// The lowest valid generation; [`u32::MAX`] if there is none.
        generation: u32,
        /// The time when the newest ticket of the lineage expires, in seconds since the Unix epoch, with a margin for
        /// some newer ones.
        until_unix_s: u64,
    },
    /// The tickets issued before a time, according to their makers' clocks.
    MadeBefore { unix_ms: u64 },
}

/// The tickets of one holder that the server has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineages {
    seen: BTreeMap<u64, Seen>,
    made_before_unix_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    safe: u32,
    /// The time when the newest ticket expires, or a later one.
    until_unix_s: u64,
    handed: u32,
}

impl Lineages {
    /// Returns `true` if a ticket is out of date: a newer one is safe, or it was revoked.
    #[must_use]
    pub fn refuses(&self, stamp: &Stamp) -> bool {
        let seen = self.seen.get(&stamp.lineage);
        seen.is_some_and(|seen| stamp.generation < seen.safe)
            || stamp.issued_unix_ms < self.made_before_unix_ms
    }

    /// Returns `true` if a generation of this lineage has ever been safe.
    #[must_use]
    pub fn has_seen(&self, lineage: u64) -> bool {
        self.seen.contains_key(&lineage)
    }

    /// The lowest valid generation of a lineage; [`u32::MAX`] if none is valid. Returns `None` if the lineage
    /// is unknown.
    #[must_use]
    pub fn safe(&self, lineage: u64) -> Option<u32> {
        self.seen.get(&lineage).map(|seen| seen.safe)
    }

    /// The earliest date that a ticket of this holder may have, in milliseconds since the Unix epoch: 0 without a
    /// revocation.
    #[must_use]
    pub fn issued_since_unix_ms(&self) -> u64 {
        self.made_before_unix_ms
    }

    /// Marks a ticket as safe: it opened a session that plays, or is stored where a new process can find it. The first
    /// safe ticket of a lineage ends all lineages seen before. Returns the new rulings.
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

    /// Records that a ticket was handed out. Returns a ruling if the lineage must be kept for longer, about once an
    /// hour.
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

    /// Revokes all lineages that the server has seen, and all tickets made before `made_before_unix_ms` (milliseconds
    /// since the Unix epoch, according to their maker's clock). Callers pass the current time plus [`REVOKE_SLACK_MS`].
    /// Returns the new rulings.
    ///
    /// This does not revoke an unused ticket whose maker's clock is ahead by more than the slack. New tickets of a
    /// maker whose clock is behind are also revoked, until its clock has passed that time.
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

    /// The next ticket for a session that was opened with the ticket `came_by` and now holds the ticket `newest`.
    #[must_use]
    pub fn next(&self, came_by: Option<&Stamp>, newest: Option<&Stamp>) -> NextTicket {
        // After a revocation a session gets a new lineage.
        let newest = newest.filter(|newest| self.safe(newest.lineage) != Some(WHOLE));
        let handed = newest.and_then(|newest| self.seen.get(&newest.lineage));
        let generation = newest.map(|newest| {
            let highest = handed.map_or(0, |seen| seen.handed.max(seen.safe));
            newest.generation.max(highest).saturating_add(1)
        });
        NextTicket {
            lineage: newest.map(|newest| newest.lineage),
            // Capped one below the value for the whole lineage, which takes a thousand years to reach.
            generation: generation.unwrap_or(0).min(WHOLE - 1),
            issued_since_unix_ms: self.made_before_unix_ms,
            expires_unix_s_min: came_by.map_or(0, |stamp| stamp.expires_unix_s),
        }
    }

    /// Applies a ruling from elsewhere or from an earlier process. Returns `true` if it changed anything.
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

    /// Drops entries that affect only expired tickets.
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
    /// The time when the ruling becomes obsolete, in seconds since the Unix epoch: by then all tickets that it refuses
    /// have expired.
    #[must_use]
    pub fn until_unix_s(&self) -> u64 {
        match *self {
            Ruling::Below { until_unix_s, .. } => until_unix_s,
            Ruling::MadeBefore { unix_ms } => revoked_until(unix_ms),
        }
    }

    /// Combines two rulings of the same lineage, or two of the kind `MadeBefore`, into one.
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

/// The tickets of many holders that the server has seen. It keeps only entries that affect unexpired tickets, up to a
/// limit.
#[derive(Clone, Debug)]
pub struct LineageTable<K: Ord> {
    holders: BTreeMap<K, Lineages>,
    entries: usize,
    entries_max: usize,
    /// The number of entries at which expired ones are removed next.
    forget_at: usize,
}

/// The number of entries below which expired ones are not removed.
const FORGET_FROM: usize = 1_024;

impl<K: Ord + Clone> LineageTable<K> {
    /// An empty table for at most `entries_max` lineages. Beyond that, the lineages whose tickets expire first are
    /// dropped.
    #[must_use]
    pub const fn new(entries_max: usize) -> LineageTable<K> {
        LineageTable {
            holders: BTreeMap::new(),
            entries: 0,
            entries_max,
            forget_at: FORGET_FROM,
        }
    }

    /// The entry of a holder. Returns `None` if the table never had one or has dropped it (see [`tidy`](Self::tidy));
    /// it then refuses no ticket of this holder.
    #[must_use]
    pub fn get(&self, holder: &K) -> Option<&Lineages> {
        self.holders.get(holder)
    }

    #[must_use]
    pub fn refuses(&self, holder: &K, stamp: &Stamp) -> bool {
        self.get(holder)
            .is_some_and(|lineages| lineages.refuses(stamp))
    }

    /// Changes a holder's entry with one of [`Lineages`]' methods.
    pub fn change<R>(&mut self, holder: &K, change: impl FnOnce(&mut Lineages) -> R) -> R {
        let lineages = self.holders.entry(holder.clone()).or_default();
        let before = lineages.len();
        let changed = change(lineages);
        let after = lineages.len();
        // Add first: `after` may be smaller than `before`.
        self.entries = self.entries + after - before;
        if after == 0 {
            self.holders.remove(holder);
        }
        changed
    }

    pub fn apply(&mut self, holder: &K, ruling: &Ruling) -> bool {
        self.change(holder, |lineages| lineages.apply(ruling))
    }

    /// All rulings, in the order of the holders.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Ruling)> + '_ {
        rulings(self.holders.iter())
    }

    pub fn range(
        &self,
        holders: impl core::ops::RangeBounds<K>,
    ) -> impl Iterator<Item = (&K, Ruling)> + '_ {
        rulings(self.holders.range(holders))
    }

    pub fn retain(&mut self, stays: impl Fn(&K) -> bool) {
        self.holders.retain(|holder, _| stays(holder));
        self.entries = self.holders.values().map(Lineages::len).sum();
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Drops expired entries when they may be half of all entries; then, beyond the limit, those that expire first.
    /// Returns the number of unexpired entries dropped. If it is above 0, the limit is too small.
    pub fn tidy(&mut self, now_unix_s: u64) -> usize {
        if self.entries < self.forget_at.min(self.entries_max + 1) {
            return 0;
        }
        self.forget(now_unix_s);
        let mut lost = 0;
        if self.entries > self.entries_max {
            // Below the limit, so that the next entry does not cause another pass.
            lost = self.drop_oldest(self.entries - self.entries_max * 7 / 8);
        }
        self.forget_at = FORGET_FROM.max(self.entries * 2);
        lost
    }

    pub fn forget(&mut self, now_unix_s: u64) {
        self.holders.retain(|_, lineages| {
            lineages.forget(now_unix_s);
            lineages.len() > 0
        });
        self.entries = self.holders.values().map(Lineages::len).sum();
    }

    /// Drops the `count` entries that expire first, and possibly more. Returns the number dropped.
    fn drop_oldest(&mut self, count: usize) -> usize {
        let mut ends: Vec<u64> = self.iter().map(|(_, it)| it.until_unix_s()).collect();
        ends.sort_unstable();
        let Some(&last) = ends.get(count.saturating_sub(1)) else {
            return 0;
        };
        let before = self.entries;
        // Entries that expire together are dropped together.
        self.forget(last.saturating_add(CLOCK_SLACK_S));
        before - self.entries
    }
}

fn rulings<'t, K: 't>(
    holders: impl Iterator<Item = (&'t K, &'t Lineages)>,
) -> impl Iterator<Item = (&'t K, Ruling)> {
    holders.flat_map(|(holder, lineages)| lineages.rulings().map(move |ruling| (holder, ruling)))
}
