//! [`KeyOrder`]: sorts the keys of each tick. Most of them come in the order of the previous tick.
//!
//! ```text
//!  earlier keys   f b d a      sorted  a₃ b₁ d₂ f₀
//!  keys           b d a c e    kept    a₂ b₀ d₁      new, sorted alone  c₃ e₄      merged  a₂ b₀ c₃ d₁ e₄
//! ```
//!
//! A game puts its bullets in order of age; from one tick to the next a few are gone, and a few are new at the end.

use core::mem;

/// A key is searched for at this many positions, in case new keys precede it.
const SEARCH: usize = 8;
const GONE: u32 = u32::MAX;

/// Each key once, with its index, in key order. Sorting indices moves less memory than sorting poses.
pub(super) struct KeyOrder<K> {
    keys: Vec<K>,
    sorted: Vec<(K, u32)>,
    earlier_keys: Vec<K>,
    earlier: Vec<(K, u32)>,
    /// The current index of each earlier key, or [`GONE`].
    places: Vec<u32>,
    new: Vec<(K, u32)>,
}

impl<K: Ord + Copy> KeyOrder<K> {
    pub(super) fn new() -> Self {
        KeyOrder {
            keys: Vec::new(),
            sorted: Vec::new(),
            earlier_keys: Vec::new(),
            earlier: Vec::new(),
            places: Vec::new(),
            new: Vec::new(),
        }
    }

    pub(super) fn sorted(&self) -> &[(K, u32)] {
        &self.sorted
    }

    /// Drops the keys, but keeps their sequence and order for the next sort.
    pub(super) fn clear(&mut self) {
        if !self.sorted.is_empty() {
            mem::swap(&mut self.keys, &mut self.earlier_keys);
            mem::swap(&mut self.sorted, &mut self.earlier);
        }
        self.keys.clear();
        self.sorted.clear();
    }

    /// Sorts at most `room` keys. Of equal keys the last index is kept. Costs a linear pass, and a sort of the new
    /// keys. It allocates only if `room` is larger than before.
    pub(super) fn sort(&mut self, keys: impl Iterator<Item = K>, room: usize) {
        self.clear();
        for list in [&mut self.keys, &mut self.earlier_keys] {
            list.reserve_exact(room.saturating_sub(list.len()));
        }
        for list in [&mut self.sorted, &mut self.earlier, &mut self.new] {
            list.reserve_exact(room.saturating_sub(list.len()));
        }
        let room_of_places = room.saturating_sub(self.places.len());
        self.places.reserve_exact(room_of_places);
        self.keys.extend(keys);
        self.find_earlier();
        self.new
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        self.new.dedup_by_key(|(key, _)| *key);
        let mut new = self.new.iter().copied().peekable();
        let kept = self.earlier.iter().filter(|_| !self.places.is_empty());
        for (key, was) in kept {
            let place = self.places[*was as usize];
            if place == GONE {
                continue;
            }
            while let Some(before) = new.next_if(|new| new.0 < *key) {
                self.sorted.push(before);
            }
            let twin = new.next_if(|new| new.0 == *key);
            let place = twin.map_or(place, |(_, twin)| twin.max(place));
            self.sorted.push((*key, place));
        }
        self.sorted.extend(new);
    }

    fn find_earlier(&mut self) {
        self.places.clear();
        self.new.clear();
        let mut next = 0;
        let mut add = |keys: &[K], from: usize| {
            let new = keys.iter().copied().zip(from as u32..);
            self.new.extend(new);
        };
        // A duplicate key is in the order only once, so the order does not show which of the two is meant.
        if self.earlier.len() == self.earlier_keys.len() {
            for key in &self.earlier_keys {
                let rest = &self.keys[next..];
                let near = rest.iter().take(SEARCH).position(|present| present == key);
                let Some(skipped) = near else {
                    self.places.push(GONE);
                    continue;
                };
                add(&rest[..skipped], next);
                next += skipped;
                self.places.push(next as u32);
                next += 1;
            }
        }
        add(&self.keys[next..], next);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::collections::BTreeMap;

    use twinstep_core::Mwc;

    use super::*;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Clone, Copy, Debug, Eq)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[test]
    fn any_sequence_is_sorted_and_keeps_the_last_of_equal_keys() {
        let mut luck = Mwc::seed(1);
        let mut order = KeyOrder::new();
        let mut keys: Vec<u32> = Vec::new();
        for round in 0..2_000 {
            for _ in 0..luck.below(12) {
                let at = luck.below(keys.len() as u32 + 1) as usize;
                // Every other hundred rounds have duplicate keys.
                let keys_max = if round / 100 % 2 == 0 { u32::MAX } else { 40 };
                keys.insert(at, luck.below(keys_max));
            }
            for _ in 0..luck.below(12).min(keys.len() as u32) {
                match luck.below(2) {
                    0 => drop(keys.remove(luck.below(keys.len() as u32) as usize)),
                    _ => drop(keys.swap_remove(luck.below(keys.len() as u32) as usize)),
                }
            }
            if luck.below(20) == 0 {
                keys.truncate(luck.below(3) as usize);
            }
            if luck.below(4) == 0 {
                order.clear();
            }
            order.sort(keys.iter().copied(), keys.len());
            let expected: BTreeMap<u32, u32> = keys.iter().copied().zip(0..).collect();
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(order.sorted(), expected, "round {round}");
        }
    }

    #[test]
    fn keys_in_the_sequence_of_the_last_tick_are_not_sorted_again() {
        const KEYS: usize = 3_000;
        let mut luck = Mwc::seed(2);
        let mut order = KeyOrder::new();
        let mut keys: Vec<Counted> = Vec::new();
        keys.resize_with(KEYS, || Counted(luck.below(u32::MAX)));
        let compared = |order: &mut KeyOrder<Counted>, keys: &[Counted]| {
            COMPARED.set(0);
            order.sort(keys.iter().copied(), keys.len());
            COMPARED.get()
        };
        assert!(compared(&mut order, &keys) > 8 * KEYS, "a first sort");
        for _ in 0..20 {
            keys.remove(luck.below(KEYS as u32) as usize);
            keys.push(Counted(luck.below(u32::MAX)));
            let compared = compared(&mut order, &keys);
            assert!(compared < 4 * KEYS, "{compared} comparisons");
        }
    }
}
