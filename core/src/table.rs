//! [`Table`]: a sorted map that a rollback can copy without allocating.
//!
//! A prediction is rebuilt by `clone_from` many times a second. A `BTreeMap` frees and allocates its nodes each
//! time; two plain vectors keep what they have, and copy plain data as one block.
//!
//! Invariant: `keys` is strictly increasing and `values[i]` belongs to `keys[i]`.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A map in key order, for up to some thousand entries.
///
/// Costs for n entries: a look-up is one binary search; inserting and removing also move the entries behind it
/// (appending the greatest key moves none). `clone_from` reuses what is allocated.
///
/// ```
/// use twinstep_core::{PlayerId, Table};
/// let mut ammo = Table::new();
/// ammo.insert(PlayerId(1), 30);
/// ammo.insert(PlayerId(0), 12);
/// *ammo.get_or_insert_with(PlayerId(2), || 100) -= 1;
/// assert_eq!(ammo.get(&PlayerId(2)), Some(&99));
/// assert!(ammo.values().eq(&[12, 30, 99]));
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Table<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
}

impl<K, V> Table<K, V> {
    /// An empty table. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Table {
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// An empty table with room for `capacity` entries.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Table {
            keys: Vec::with_capacity(capacity),
            values: Vec::with_capacity(capacity),
        }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Removes all entries and keeps the room.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }

    /// All entries by increasing key.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.keys.iter().zip(&self.values)
    }

    /// All entries by increasing key; the values may be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.keys.iter().zip(&mut self.values)
    }

    /// All keys, increasing.
    pub fn keys(&self) -> core::slice::Iter<'_, K> {
        self.keys.iter()
    }

    /// All values by increasing key.
    pub fn values(&self) -> core::slice::Iter<'_, V> {
        self.values.iter()
    }

    /// All values by increasing key; they may be changed.
    pub fn values_mut(&mut self) -> core::slice::IterMut<'_, V> {
        self.values.iter_mut()
    }

    /// Keeps the entries for which `keep` says so; asks once for each, by increasing key. One pass.
    ///
    /// ```
    /// # use twinstep_core::Table;
    /// let mut hp: Table<u32, i32> = [(1, 5), (2, -3), (3, 8)].into_iter().collect();
    /// hp.retain(|_, hp| *hp > 0);
    /// assert!(hp.keys().eq(&[1, 3]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut kept = 0;
        for index in 0..self.keys.len() {
            if keep(&self.keys[index], &mut self.values[index]) {
                self.keys.swap(kept, index);
                self.values.swap(kept, index);
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept);
    }
}

impl<K: Ord, V> Table<K, V> {
    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.search(key).ok().map(|index| &self.values[index])
    }

    /// The value under `key`, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.search(key).ok().map(|index| &mut self.values[index])
    }

    /// Whether there is a value under `key`.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.search(key).is_ok()
    }

    /// Puts `value` under `key`; returns the value that was there before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.search(&key) {
            Ok(index) => Some(core::mem::replace(&mut self.values[index], value)),
            Err(index) => {
                self.keys.insert(index, key);
                self.values.insert(index, value);
                None
            }
        }
    }

    /// The value under `key`; if there is none yet, `make`'s.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let index = match self.search(&key) {
            Ok(index) => index,
            Err(index) => {
                self.values.insert(index, make());
                self.keys.insert(index, key);
                index
            }
        };
        &mut self.values[index]
    }

    /// Takes out the value under `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.search(key).ok()?;
        self.keys.remove(index);
        Some(self.values.remove(index))
    }

    fn search(&self, key: &K) -> Result<usize, usize> {
        // Entities are mostly born with growing keys: look at the end first.
        match self.keys.last() {
            Some(last) if last < key => Err(self.keys.len()),
            _ => self.keys.binary_search(key),
        }
    }
}

/// The entries of a table by increasing key.
pub type Iter<'a, K, V> = core::iter::Zip<core::slice::Iter<'a, K>, core::slice::Iter<'a, V>>;

/// The entries of a table by increasing key; the values may be changed.
pub type IterMut<'a, K, V> = core::iter::Zip<core::slice::Iter<'a, K>, core::slice::IterMut<'a, V>>;

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table::new()
    }
}

impl<K: Clone, V: Clone> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table {
            keys: self.keys.clone(),
            values: self.values.clone(),
        }
    }

    /// Allocates only if the capacity is too small or `V::clone_from` does (a `Vec`'s and a `String`'s do not; a
    /// tuple's and a derived one do, for each part that owns heap).
    fn clone_from(&mut self, source: &Self) {
        self.keys.clone_from(&source.keys);
        self.values.clone_from(&source.values);
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut Table<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K, V> IntoIterator for Table<K, V> {
    type Item = (K, V);
    type IntoIter = core::iter::Zip<alloc::vec::IntoIter<K>, alloc::vec::IntoIter<V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.into_iter().zip(self.values)
    }
}

/// Of equal keys the last one stays. Sorts once.
impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let mut table = Table::with_capacity(entries.len());
        table.extend(entries);
        table
    }
}

/// Inserts one after the other.
impl<K: Ord, V> Extend<(K, V)> for Table<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// A map in key order; in bincode the very bytes of a sequence of pairs.
impl<K: Serialize, V: Serialize> Serialize for Table<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

/// Refuses keys that are not strictly increasing.
impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Table<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InKeyOrder(PhantomData))
    }
}

struct InKeyOrder<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for InKeyOrder<K, V> {
    type Value = Table<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("entries by strictly increasing key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<K, V>, A::Error> {
        // Law Hostile wire: the claimed length reserves nothing; the table grows with the bytes that are there.
        let mut table = Table::new();
        while let Some((key, value)) = map.next_entry()? {
            if table.keys.last().is_some_and(|last| *last >= key) {
                return Err(A::Error::custom("a table's keys must strictly increase"));
            }
            table.keys.push(key);
            table.values.push(value);
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::codec::{self, CodecError};

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::append(value, &mut bytes).unwrap();
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Table<u8, u32>, CodecError> {
        codec::decode_whole(bytes)
    }

    #[test]
    fn clone_from_keeps_what_is_allocated() {
        let source: Table<u32, Vec<u32>> = (0..40).map(|n| (n, vec![n; 4])).collect();
        let mut copy: Table<u32, Vec<u32>> = (0..60).map(|n| (n * 2, vec![n; 9])).collect();
        let places = |table: &Table<u32, Vec<u32>>| {
            (
                table.keys.as_ptr(),
                table.values.as_ptr(),
                table.values[7].as_ptr(),
                table.keys.capacity(),
            )
        };
        let before = places(&copy);
        copy.clone_from(&source);
        assert_eq!(copy, source);
        assert_eq!(places(&copy), before);
    }

    #[test]
    fn of_equal_keys_the_last_one_is_collected() {
        let table: Table<u8, char> = [(2, 'a'), (1, 'b'), (2, 'c')].into_iter().collect();
        assert_eq!(format!("{table:?}"), "{1: 'b', 2: 'c'}");
    }

    #[test]
    fn bytes_are_those_of_a_sequence_of_pairs() {
        let table: Table<u8, u32> = [(9, 1), (3, 500)].into_iter().collect();
        assert_eq!(bytes(&table), bytes(&vec![(3_u8, 500_u32), (9, 1)]));
    }

    #[test]
    fn hostile_bytes_unsorted_or_with_a_key_twice_are_refused() {
        assert_eq!(
            decoded(&bytes(&vec![(1_u8, 0_u32), (2, 0)])).unwrap().len(),
            2
        );
        for hostile in [vec![(2_u8, 0_u32), (1, 0)], vec![(1, 0), (1, 0)]] {
            assert_eq!(decoded(&bytes(&hostile)), Err(CodecError::Malformed));
        }
        assert!(
            decoded(&[252, 255, 255, 255, 255]).is_err(),
            "claims 4 G entries, brings none"
        );
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u8, u32),
        GetOrInsert(u8, u32),
        Remove(u8),
        Retain(u32),
        Change(u8, u32),
        RoundTrip,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Op::Insert(key, value)),
            2 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Op::GetOrInsert(key, value)),
            3 => any::<u8>().prop_map(Op::Remove),
            1 => (2..6_u32).prop_map(Op::Retain),
            2 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Op::Change(key, value)),
            1 => Just(Op::RoundTrip),
        ]
    }

    proptest! {
        #[test]
        fn a_table_does_what_a_btree_map_does(ops in prop::collection::vec(op(), 0..200)) {
            let mut table: Table<u8, u32> = Table::new();
            let mut model = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Insert(key, value) => {
                        let key = key % 32;
                        prop_assert_eq!(table.insert(key, value), model.insert(key, value));
                    }
                    Op::GetOrInsert(key, value) => {
                        let key = key % 32;
                        prop_assert_eq!(table.get_or_insert_with(key, || value), model.entry(key).or_insert(value));
                    }
                    Op::Remove(key) => prop_assert_eq!(table.remove(&(key % 32)), model.remove(&(key % 32))),
                    Op::Retain(of) => {
                        table.retain(|_, value| *value % of != 0);
                        model.retain(|_, value| *value % of != 0);
                    }
                    Op::Change(key, value) => {
                        let key = key % 32;
                        prop_assert_eq!(table.contains_key(&key), model.contains_key(&key));
                        prop_assert_eq!(
                            table.get_mut(&key).map(|old| core::mem::replace(old, value)),
                            model.get_mut(&key).map(|old| core::mem::replace(old, value))
                        );
                        prop_assert_eq!(table.get(&key), model.get(&key));
                    }
                    Op::RoundTrip => table = decoded(&bytes(&table)).unwrap(),
                }
                prop_assert!(table.iter().eq(model.iter()));
            }
        }
    }
}
