//! [`Schedule`]: "call me in x ticks", for entities that sleep and cost nothing until they wake.
//!
//! ```text
//!   due      front ─▶ (t5, 0) (t5, 1) (t9, 0) … ─▶ back     what wakes next is at the front
//!   by_key   (bear) ─▶ (t9, 0)   (door) ─▶ (t5, 1) …        finds a sleeper by its name
//! ```
//!
//! Invariant: both lists hold the same sleepers; `due` is sorted by (tick, order), `by_key` by key, and no key
//! stands twice. `order` counts within one tick only, starts anew when that tick empties, and is neither
//! compared nor saved: two schedules with the same sleepers in the same order are equal and have the same
//! bytes and digest, however they came about (law *Stable names*: no history of a shared counter shows).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::words::{Key, Tick};

/// Events that wait for their tick, each under a [`Key`] of its own; first in, first out within a tick.
///
/// Costs for n sleepers: nothing per tick ([`pop_due`](Schedule::pop_due) with nothing due looks at one entry);
/// to add, cancel or wake one, a binary search and the move of at most 32 n bytes by key, plus, except for
/// waking, at most half of the entries by due time. `clone_from` reuses what is allocated.
///
/// ```
/// use twinstep_core::{Key, Schedule, Tick};
/// let bear = Key::new(7, 0);
/// let mut timers = Schedule::new();
/// timers.at(Tick(5), bear, "wake");
/// assert_eq!(timers.pop_due(Tick(4)), None);
/// assert_eq!(timers.pop_due(Tick(5)), Some((bear, "wake")));
/// ```
pub struct Schedule<E> {
    due: VecDeque<Sleeper<E>>,
    by_key: Vec<Place>,
}

struct Sleeper<E> {
    tick: Tick,
    order: u64,
    key: Key,
    event: E,
}

#[derive(Clone, Copy)]
struct Place {
    key: Key,
    tick: Tick,
    order: u64,
}

impl<E> Schedule<E> {
    /// A schedule in which nothing sleeps. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Schedule {
            due: VecDeque::new(),
            by_key: Vec::new(),
        }
    }

    /// Wakes `event` at `tick`, after all that was scheduled for that tick before it.
    ///
    /// A key sleeps once: an event that already sleeps under `key` is replaced and returned, and the new one
    /// queues at the back. A tick that has passed is due at the next [`pop_due`](Schedule::pop_due).
    ///
    /// ```
    /// # use twinstep_core::{Key, Schedule, Tick};
    /// let mut timers = Schedule::new();
    /// let fuse = Key::new(1, 0);
    /// assert_eq!(timers.at(Tick(30), fuse, "bang"), None);
    /// assert_eq!(timers.at(Tick(60), fuse, "late bang"), Some("bang"));
    /// ```
    pub fn at(&mut self, tick: Tick, key: Key, event: E) -> Option<E> {
        let replaced = self.cancel(key);
        let end = self.due.partition_point(|sleeper| sleeper.tick <= tick);
        let order = match end.checked_sub(1).map(|last| &self.due[last]) {
            Some(last) if last.tick == tick => last.order + 1,
            _ => 0,
        };
        self.due.insert(
            end,
            Sleeper {
                tick,
                order,
                key,
                event,
            },
        );
        let place = self.by_key.partition_point(|place| place.key < key);
        self.by_key.insert(place, Place { key, tick, order });
        replaced
    }

    /// Takes the event under `key` out again, if it still sleeps.
    ///
    /// ```
    /// # use twinstep_core::{Key, Schedule, Tick};
    /// let mut timers = Schedule::new();
    /// let fuse = Key::new(1, 0);
    /// timers.at(Tick(30), fuse, "bang");
    /// assert_eq!(timers.cancel(fuse), Some("bang"));
    /// assert_eq!(timers.cancel(fuse), None);
    /// ```
    pub fn cancel(&mut self, key: Key) -> Option<E> {
        let place = self.forget(key)?;
        let index = self.index_of(place);
        self.due.remove(index).map(|sleeper| sleeper.event)
    }

    /// The next event that is due at `now` (its tick is `now` or earlier): by tick, then first in, first out.
    ///
    /// Call it in a loop, once per tick; what a woken event schedules for `now` comes out in the same loop.
    pub fn pop_due(&mut self, now: Tick) -> Option<(Key, E)> {
        if self.next_due()? > now {
            return None;
        }
        let sleeper = self.due.pop_front()?;
        self.forget(sleeper.key);
        Some((sleeper.key, sleeper.event))
    }

    /// The tick and the event of what sleeps under `key`.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<(Tick, &E)> {
        let place = self.by_key[self.search(key).ok()?];
        self.due
            .get(self.index_of(place))
            .map(|sleeper| (sleeper.tick, &sleeper.event))
    }

    /// The tick of the event that wakes next.
    #[must_use]
    pub fn next_due(&self) -> Option<Tick> {
        self.due.front().map(|sleeper| sleeper.tick)
    }

    /// How many events sleep.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether nothing sleeps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// All sleepers in the order in which they will wake.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Tick, Key, &E)> + DoubleEndedIterator {
        self.due
            .iter()
            .map(|sleeper| (sleeper.tick, sleeper.key, &sleeper.event))
    }

    fn search(&self, key: Key) -> Result<usize, usize> {
        self.by_key.binary_search_by_key(&key, |place| place.key)
    }

    fn forget(&mut self, key: Key) -> Option<Place> {
        self.search(key).ok().map(|index| self.by_key.remove(index))
    }

    fn index_of(&self, place: Place) -> usize {
        let index = self
            .due
            .partition_point(|s| (s.tick, s.order) < (place.tick, place.order));
        debug_assert!(
            self.due[index].key == place.key,
            "both lists hold the same sleepers"
        );
        index
    }
}

impl<E> Default for Schedule<E> {
    fn default() -> Self {
        Schedule::new()
    }
}

impl<E: Clone> Clone for Sleeper<E> {
    fn clone(&self) -> Self {
        Sleeper {
            event: self.event.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        (self.tick, self.order, self.key) = (source.tick, source.order, source.key);
        self.event.clone_from(&source.event);
    }
}

impl<E> Schedule<E> {
    /// Makes room for `sleepers` in all, so that up to as many allocate nothing.
    pub fn make_room(&mut self, sleepers: usize) {
        self.due.reserve(sleepers.saturating_sub(self.due.len()));
        self.by_key
            .reserve(sleepers.saturating_sub(self.by_key.len()));
    }
}

impl<E: Clone> Clone for Schedule<E> {
    fn clone(&self) -> Self {
        Schedule {
            due: self.due.clone(),
            by_key: self.by_key.clone(),
        }
    }

    /// Allocates only if the capacity is too small or `E::clone_from` does (a `Vec`'s and a `String`'s do not; a
    /// tuple's and a derived one do, for each part that owns heap).
    fn clone_from(&mut self, source: &Self) {
        // VecDeque's own clone_from drops and clones each event; this one lets events keep their heap.
        self.due.truncate(source.due.len());
        for (mine, theirs) in self.due.iter_mut().zip(&source.due) {
            mine.clone_from(theirs);
        }
        self.due.extend(source.due.range(self.due.len()..).cloned());
        self.by_key.clone_from(&source.by_key);
    }
}

impl<E: PartialEq> PartialEq for Schedule<E> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<E: Eq> Eq for Schedule<E> {}

impl<E: fmt::Debug> fmt::Debug for Schedule<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A map from key to (tick, event) in due order, so that a desync report names sleepers by key.
impl<E: Serialize> Serialize for Schedule<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(tick, key, event)| (key, (tick, event))))
    }
}

/// Refuses what is not in due order or holds a key twice.
impl<'de, E: Deserialize<'de>> Deserialize<'de> for Schedule<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InDueOrder(PhantomData))
    }
}

struct InDueOrder<E>(PhantomData<E>);

impl<'de, E: Deserialize<'de>> Visitor<'de> for InDueOrder<E> {
    type Value = Schedule<E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sleepers in due order, each key once")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Schedule<E>, A::Error> {
        // Law Hostile wire: the claimed length reserves nothing; the lists grow with the bytes that are there.
        let mut schedule = Schedule::new();
        while let Some((key, (tick, event))) = map.next_entry::<Key, (Tick, E)>()? {
            let order = match schedule.due.back() {
                Some(last) if tick < last.tick => {
                    return Err(A::Error::custom("a schedule's ticks must not decrease"));
                }
                Some(last) if tick == last.tick => last.order + 1,
                _ => 0,
            };
            schedule.due.push_back(Sleeper {
                tick,
                order,
                key,
                event,
            });
            schedule.by_key.push(Place { key, tick, order });
        }
        schedule.by_key.sort_unstable_by_key(|place| place.key);
        if schedule
            .by_key
            .windows(2)
            .any(|pair| pair[0].key == pair[1].key)
        {
            return Err(A::Error::custom("a schedule's keys must not repeat"));
        }
        Ok(schedule)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::{self, CodecError};

    fn key(of: u64) -> Key {
        Key::new(of, 0)
    }

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::append(value, &mut bytes).unwrap();
        bytes
    }

    fn decoded<E: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<Schedule<E>, CodecError> {
        codec::decode_whole(bytes)
    }

    fn drained(mut schedule: Schedule<u32>, now: Tick) -> Vec<u32> {
        core::iter::from_fn(|| schedule.pop_due(now).map(|(_, event)| event)).collect()
    }

    /// Row 4: at the tick, in a stable order.
    #[test]
    fn events_wake_by_tick_and_then_first_in_first_out() {
        let mut schedule = Schedule::new();
        for (tick, of) in [(9, 1), (5, 2), (9, 0), (5, 9), (7, 3)] {
            schedule.at(Tick(tick), key(of), of as u32);
        }
        assert_eq!(schedule.next_due(), Some(Tick(5)));
        assert_eq!(drained(schedule.clone(), Tick(4)), []);
        assert_eq!(drained(schedule.clone(), Tick(7)), [2, 9, 3]);
        assert_eq!(drained(schedule, Tick::MAX), [2, 9, 3, 1, 0]);
    }

    #[test]
    fn clone_from_keeps_what_is_allocated() {
        let mut source = Schedule::new();
        for of in 0..50 {
            source.at(Tick(of as u32 % 7), key(of), vec![of; 8]);
        }
        let mut copy = source.clone();
        source.pop_due(Tick(0));
        source.cancel(key(20));
        let [capacity, keys] = [copy.due.capacity(), copy.by_key.capacity()];
        let heap = copy.due[3].event.as_ptr();
        copy.clone_from(&source);
        assert_eq!(copy, source);
        assert_eq!(
            [copy.due.capacity(), copy.by_key.capacity()],
            [capacity, keys]
        );
        assert_eq!(copy.due[3].event.as_ptr(), heap);
    }

    #[test]
    fn hostile_bytes_out_of_order_or_with_a_key_twice_are_refused() {
        let wire = |sleepers: &[(u64, u32)]| {
            bytes(
                &sleepers
                    .iter()
                    .map(|&(of, tick)| (key(of), (Tick(tick), 0_u32)))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(decoded::<u32>(&wire(&[(2, 5), (1, 5)])).unwrap().len(), 2);
        assert_eq!(
            decoded::<u32>(&wire(&[(1, 5), (2, 4)])).err(),
            Some(CodecError::Malformed)
        );
        assert_eq!(
            decoded::<u32>(&wire(&[(1, 5), (2, 5), (1, 6)])).err(),
            Some(CodecError::Malformed)
        );
        assert!(
            decoded::<u32>(&[252, 255, 255, 255, 255]).is_err(),
            "claims 4 G sleepers, brings none"
        );
    }

    #[derive(Clone, Debug)]
    enum Op {
        At(u32, u64, u32),
        Cancel(u64),
        Pop(u32),
        RoundTrip,
        CloneFrom,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0..20_u32, 0..12_u64, any::<u32>()).prop_map(|(tick, of, event)| Op::At(tick, of, event)),
            2 => (0..12_u64).prop_map(Op::Cancel),
            3 => (0..20_u32).prop_map(Op::Pop),
            1 => Just(Op::RoundTrip),
            1 => Just(Op::CloneFrom),
        ]
    }

    proptest! {
        /// Row 4: cancelled, saved and copied in any order.
        #[test]
        fn a_schedule_does_what_a_naive_list_does(ops in prop::collection::vec(op(), 0..200)) {
            let mut schedule = Schedule::new();
            let mut other = Schedule::new();
            // The model: a list in order of insertion.
            let mut model: Vec<(Tick, Key, u32)> = Vec::new();
            for op in ops {
                match op {
                    Op::At(tick, of, event) => {
                        let old = model.iter().position(|sleeper| sleeper.1 == key(of)).map(|i| model.remove(i).2);
                        model.push((Tick(tick), key(of), event));
                        prop_assert_eq!(schedule.at(Tick(tick), key(of), event), old);
                    }
                    Op::Cancel(of) => {
                        let old = model.iter().position(|sleeper| sleeper.1 == key(of)).map(|i| model.remove(i).2);
                        prop_assert_eq!(schedule.cancel(key(of)), old);
                    }
                    Op::Pop(now) => {
                        // min_by_key takes the first of equals: first in, first out.
                        let next = (0..model.len()).min_by_key(|&i| model[i].0).filter(|&i| model[i].0 <= Tick(now));
                        let next = next.map(|i| model.remove(i)).map(|(_, key, event)| (key, event));
                        prop_assert_eq!(schedule.pop_due(Tick(now)), next);
                    }
                    Op::RoundTrip => schedule = decoded(&bytes(&schedule)).unwrap(),
                    Op::CloneFrom => {
                        other.clone_from(&schedule);
                        core::mem::swap(&mut other, &mut schedule);
                    }
                }
                let mut sorted = model.clone();
                sorted.sort_by_key(|sleeper| sleeper.0);
                prop_assert!(schedule.iter().eq(sorted.iter().map(|(tick, key, event)| (*tick, *key, event))));
                // What was cancelled, replaced or woken shows neither in equality nor in bytes.
                let mut fresh = Schedule::new();
                for (tick, key, event) in &sorted {
                    fresh.at(*tick, *key, *event);
                }
                prop_assert_eq!(&schedule, &fresh);
                prop_assert_eq!(bytes(&schedule), bytes(&fresh));
                prop_assert_eq!(schedule.len(), schedule.by_key.len());
                prop_assert_eq!(schedule.next_due(), sorted.first().map(|sleeper| sleeper.0));
            }
        }
    }
}
