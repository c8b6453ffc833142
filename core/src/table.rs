//! [`Table`]: a sorted map that a rollback can copy without allocating.
//!
//! A prediction is rebuilt by `clone_from` many times a second. A `BTreeMap` frees and allocates its nodes each time;
//! pages of two plain vectors keep their allocations, and plain data is copied in blocks.
//!
//! ```text
//!   pages[..used]   [1 4 9 …] ─▶ [212 215 …] ─▶ [388 …]     at most 128 entries each, none empty
//!   pages[used..]   [] [] …                                  keep their allocations for later
//! ```
//!
//! Invariant: over `pages[..used]` the keys strictly increase, and no page there is empty. Page boundaries are
//! neither compared nor saved.

use alloc::vec::{self, Vec};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::iter::{FlatMap, FusedIterator, Zip};
use core::marker::PhantomData;
use core::slice;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The maximum number of entries per page. With 64-byte entries, a page is 8 KiB; moving it costs about as much as a
/// few cache misses.
const PAGE: usize = 128;

/// A map in key order, from a few entries to hundreds of thousands.
///
/// Cost: a lookup is two binary searches. Inserting and removing also move at most 127 entries and, about one time in
/// 64, the list of pages (appending the greatest key moves no entry). `clone_from` reuses allocations.
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
pub struct Table<K, V> {
    pages: Vec<Page<K, V>>,
    used: usize,
    len: usize,
}

/// Entries with consecutive keys: `values[i]` belongs to `keys[i]`.
#[derive(Debug)]
struct Page<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
}

type Position = (usize, usize);

impl<K, V> Page<K, V> {
    const fn new() -> Self {
        Page {
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }

    fn push(&mut self, key: K, value: V) {
        self.keys.push(key);
        self.values.push(value);
    }

    fn iter(&self) -> Zip<slice::Iter<'_, K>, slice::Iter<'_, V>> {
        self.keys.iter().zip(&self.values)
    }

    fn iter_mut(&mut self) -> Zip<slice::Iter<'_, K>, slice::IterMut<'_, V>> {
        self.keys.iter().zip(&mut self.values)
    }

    fn into_entries(self) -> Zip<vec::IntoIter<K>, vec::IntoIter<V>> {
        self.keys.into_iter().zip(self.values)
    }

    fn retain(&mut self, keep: &mut impl FnMut(&K, &mut V) -> bool) {
        let mut kept = 0;
        for index in 0..self.len() {
            if keep(&self.keys[index], &mut self.values[index]) {
                self.keys.swap(kept, index);
                self.values.swap(kept, index);
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept);
    }

    fn move_to(&mut self, at: usize, other: &mut Self) {
        other.keys.extend(self.keys.drain(at..));
        other.values.extend(self.values.drain(at..));
    }
}

impl<K, V> Table<K, V> {
    /// An empty table. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Table {
            pages: Vec::new(),
            used: 0,
            len: 0,
        }
    }

    /// An empty table with space for `capacity` entries if they are inserted in increasing order, or for half as many
    /// in any other order.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut table = Table::new();
        table.make_room(capacity);
        table
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the table has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries and keeps the allocations.
    pub fn clear(&mut self) {
        self.pages[..self.used].iter_mut().for_each(Page::clear);
        (self.used, self.len) = (0, 0);
    }

    /// All entries, in key order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let pages = self.pages[..self.used].iter();
        Iter {
            entries: pages.flat_map(Page::iter),
            left: self.len,
        }
    }

    /// All entries, in key order, with mutable values.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let pages = self.pages[..self.used].iter_mut();
        IterMut {
            entries: pages.flat_map(Page::iter_mut),
            left: self.len,
        }
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + DoubleEndedIterator {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in key order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + DoubleEndedIterator {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in key order, mutable.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> + DoubleEndedIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        let page = self.pages[..self.used].first()?;
        Some((page.keys.first()?, page.values.first()?))
    }

    /// The entry with the greatest key.
    #[must_use]
    pub fn last(&self) -> Option<(&K, &V)> {
        let page = self.pages[..self.used].last()?;
        Some((page.keys.last()?, page.values.last()?))
    }

    /// Removes and returns the entry with the least key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (self.len > 0).then(|| self.take((0, 0)))
    }

    /// Reserves space for `capacity` entries in total, as [`with_capacity`](Self::with_capacity) does.
    pub fn make_room(&mut self, capacity: usize) {
        for page in 0..capacity.div_ceil(PAGE) {
            if page == self.pages.len() {
                self.pages.push(Page::new());
            }
            let page_len = (capacity - page * PAGE).min(PAGE);
            let Page { keys, values } = &mut self.pages[page];
            keys.reserve(page_len.saturating_sub(keys.len()));
            values.reserve(page_len.saturating_sub(values.len()));
        }
    }

    /// Keeps the entries for which `keep` returns `true`. `keep` is called once for each entry, in key order.
    ///
    /// ```
    /// # use twinstep_core::Table;
    /// let mut hp: Table<u32, i32> = [(1, 5), (2, -3), (3, 8)].into_iter().collect();
    /// hp.retain(|_, hp| *hp > 0);
    /// assert!(hp.keys().eq(&[1, 3]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut filled = 0;
        self.len = 0;
        for page in 0..self.used {
            self.pages[page].retain(&mut keep);
            let len = self.pages[page].len();
            self.len += len;
            // Join neighbours that fill at most half a page, or a shrunken table would keep many small pages.
            let fits = |before: &Page<K, V>| before.len() + len <= PAGE / 2;
            if filled > 0 && fits(&self.pages[filled - 1]) {
                let [before, this] = self.two(filled - 1, page);
                this.move_to(0, before);
            } else if len > 0 {
                self.pages.swap(filled, page);
                filled += 1;
            }
        }
        self.used = filled;
    }

    fn two(&mut self, a: usize, b: usize) -> [&mut Page<K, V>; 2] {
        let (before, after) = self.pages.split_at_mut(b);
        [&mut before[a], &mut after[0]]
    }

    fn open(&mut self, at: usize) {
        if self.used == self.pages.len() {
            self.pages.push(Page::new());
        }
        self.pages[at..=self.used].rotate_right(1);
        self.used += 1;
    }

    fn close(&mut self, at: usize) {
        self.pages[at..self.used].rotate_left(1);
        self.used -= 1;
    }

    /// Inserts an entry at a position that keeps the order. Returns the entry's position.
    fn put(&mut self, (mut page, mut index): Position, key: K, value: V) -> Position {
        if page == self.used {
            self.open(page);
        } else if self.pages[page].len() == PAGE {
            self.open(page + 1);
            // After all other keys, start a new page instead of splitting, so that all pages stay full when keys
            // increase.
            let is_last = index == PAGE && page + 2 == self.used;
            let half = if is_last { PAGE } else { PAGE / 2 };
            let [full, next] = self.two(page, page + 1);
            full.move_to(half, next);
            // At `half` the entry goes to the end of the first page, which also keeps the order.
            if index > half || is_last {
                (page, index) = (page + 1, index - half);
            }
        }
        self.pages[page].keys.insert(index, key);
        self.pages[page].values.insert(index, value);
        self.len += 1;
        (page, index)
    }

    fn push(&mut self, key: K, value: V) {
        if self.used == 0 || self.pages[self.used - 1].len() == PAGE {
            self.open(self.used);
        }
        self.pages[self.used - 1].push(key, value);
        self.len += 1;
    }

    fn take(&mut self, (at, index): Position) -> (K, V) {
        let page = &mut self.pages[at];
        let entry = (page.keys.remove(index), page.values.remove(index));
        self.len -= 1;
        let len = self.pages[at].len();
        // Join two pages that together are at most half full, so that half a page is free before the next split.
        let fits = |other: &Page<K, V>| other.len() + len <= PAGE / 2;
        if len == 0 {
            self.close(at);
        } else if at + 1 < self.used && fits(&self.pages[at + 1]) {
            let [this, next] = self.two(at, at + 1);
            next.move_to(0, this);
            self.close(at + 1);
        }
        entry
    }
}

impl<K: Ord, V> Table<K, V> {
    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        let (page, index) = self.search(key).ok()?;
        Some(&self.pages[page].values[index])
    }

    /// A mutable reference to the value under `key`.
    #[must_use]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (page, index) = self.search(key).ok()?;
        Some(&mut self.pages[page].values[index])
    }

    /// Returns `true` if the table has a value under `key`.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.search(key).is_ok()
    }

    /// Inserts `value` under `key`. Returns the value that it replaces, if any.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.search(&key) {
            Ok((page, index)) => {
                let old = &mut self.pages[page].values[index];
                Some(core::mem::replace(old, value))
            }
            Err(place) => {
                self.put(place, key, value);
                None
            }
        }
    }

    /// The value under `key`. If there is none, inserts the result of `make`.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (page, index) = match self.search(&key) {
            Ok(place) => place,
            Err(place) => self.put(place, key, make()),
        };
        &mut self.pages[page].values[index]
    }

    /// Removes and returns the value under `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.search(key).ok()?;
        Some(self.take(place).1)
    }

    fn search(&self, key: &K) -> Result<Position, Position> {
        let pages = &self.pages[..self.used];
        let Some(last) = pages.last() else {
            return Err((0, 0));
        };
        // Entities are mostly created with increasing keys, so check the end first.
        if last.keys.last() < Some(key) {
            return Err((pages.len() - 1, last.len()));
        }
        let page = match pages {
            [_] => 0,
            _ => pages.partition_point(|page| page.keys.last() < Some(key)),
        };
        let found = pages[page].keys.binary_search(key);
        found
            .map(|index| (page, index))
            .map_err(|index| (page, index))
    }
}

/// Defines an iterator over the entries of pages that knows how many are left.
macro_rules! entries {
    ($doc:literal $name:ident<$($lt:lifetime,)? K, V>, $pages:ty, $page:ty, $entries:ty, $item:ty) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub struct $name<$($lt,)? K, V> {
            entries: FlatMap<$pages, $entries, fn($page) -> $entries>,
            left: usize,
        }

        impl<$($lt,)? K, V> Iterator for $name<$($lt,)? K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                let entry = self.entries.next()?;
                self.left -= 1;
                Some(entry)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }

            #[inline]
            fn fold<B, F: FnMut(B, $item) -> B>(self, start: B, next: F) -> B {
                self.entries.fold(start, next)
            }
        }

        impl<$($lt,)? K, V> DoubleEndedIterator for $name<$($lt,)? K, V> {
            fn next_back(&mut self) -> Option<$item> {
                let entry = self.entries.next_back()?;
                self.left -= 1;
                Some(entry)
            }
        }

        impl<$($lt,)? K, V> ExactSizeIterator for $name<$($lt,)? K, V> {}
        impl<$($lt,)? K, V> FusedIterator for $name<$($lt,)? K, V> {}
    };
}

entries!("The entries of a table by increasing key." Iter<'a, K, V>, slice::Iter<'a, Page<K, V>>, &'a Page<K, V>, Zip<slice::Iter<'a, K>, slice::Iter<'a, V>>, (&'a K, &'a V));
entries!("The entries of a table by increasing key; the values may be changed." IterMut<'a, K, V>, slice::IterMut<'a, Page<K, V>>, &'a mut Page<K, V>, Zip<slice::Iter<'a, K>, slice::IterMut<'a, V>>, (&'a K, &'a mut V));
entries!("The entries of a table by increasing key, with the table." IntoIter<K, V>, vec::IntoIter<Page<K, V>>, Page<K, V>, Zip<vec::IntoIter<K>, vec::IntoIter<V>>, (K, V));

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table::new()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for Table<K, V> {}

impl<K: Hash, V: Hash> Hash for Table<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len.hash(state);
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<K: Clone, V: Clone> Clone for Page<K, V> {
    fn clone(&self) -> Self {
        Page {
            keys: self.keys.clone(),
            values: self.values.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.keys.clone_from(&source.keys);
        self.values.clone_from(&source.values);
    }
}

impl<K: Clone, V: Clone> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table {
            pages: self.pages[..self.used].to_vec(),
            ..*self
        }
    }

    /// Allocates only if the capacity is too small or `V::clone_from` does. (`Vec` and `String` reuse their buffers; a
    /// tuple, or a type with a derived `Clone`, allocates for each part that owns heap memory.)
    fn clone_from(&mut self, source: &Self) {
        let theirs = &source.pages[..source.used];
        // Surplus pages keep their allocations for later.
        for page in self.pages[..self.used].iter_mut().skip(theirs.len()) {
            page.clear();
        }
        let there = self.pages.len().min(theirs.len());
        for (mine, theirs) in self.pages.iter_mut().zip(theirs) {
            mine.clone_from(theirs);
        }
        self.pages.extend_from_slice(&theirs[there..]);
        (self.used, self.len) = (source.used, source.len);
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
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter {
            // Pages starting at `used` are empty.
            entries: self.pages.into_iter().flat_map(Page::into_entries),
            left: self.len,
        }
    }
}

/// Of entries with equal keys, the last one is kept. Sorts once.
impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        let mut table = Table::with_capacity(entries.len());
        table.extend(entries);
        table
    }
}

impl<K: Ord, V> Extend<(K, V)> for Table<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Serialises as a map in key order, with the same bincode bytes as a sequence of pairs.
impl<K: Serialize, V: Serialize> Serialize for Table<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len))?;
        for page in &self.pages[..self.used] {
            for (key, value) in page.iter() {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// Fails if the keys do not strictly increase.
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
        // Law Hostile wire: the claimed length reserves nothing; the table grows with the bytes present.
        let mut table = Table::new();
        while let Some((key, value)) = map.next_entry()? {
            let last = table.pages[..table.used].last();
            if last.is_some_and(|page| page.keys.last() >= Some(&key)) {
                return Err(A::Error::custom("a table's keys must strictly increase"));
            }
            table.push(key, value);
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

    fn decoded<K: Ord + serde::de::DeserializeOwned>(
        bytes: &[u8],
    ) -> Result<Table<K, u32>, CodecError> {
        codec::decode_whole(bytes)
    }

    /// Row 4: the copy's pages differ from the source's, also in size.
    #[test]
    fn clone_from_keeps_allocations() {
        let mut source: Table<u32, Vec<u32>> = (0..1_000).map(|n| (n, vec![n; 4])).collect();
        let mut copy: Table<u32, Vec<u32>> = Table::new();
        for n in 0..2_000 {
            copy.insert(n * 7 % 2_000, vec![n; 9]);
        }
        let places = |table: &Table<u32, Vec<u32>>| {
            let page = &table.pages[2];
            (
                table.pages.as_ptr(),
                page.keys.as_ptr(),
                page.values[7].as_ptr(),
            )
        };
        let before = places(&copy);
        copy.clone_from(&source);
        assert_eq!(copy, source);
        assert_eq!(places(&copy), before);
        source.retain(|key, _| *key > 700);
        copy.clone_from(&source);
        assert_eq!(copy, source);
        assert_eq!(copy.len(), 299);
    }

    #[test]
    fn pages_are_neither_compared_nor_saved() {
        let dense: Table<u32, u32> = (0..2_000).map(|n| (n, n)).collect();
        let mut sparse: Table<u32, u32> = Table::new();
        for n in 0..4_000 {
            sparse.insert(n * 1_301 % 4_000, n * 1_301 % 4_000);
        }
        sparse.retain(|key, _| *key < 2_000);
        assert_ne!(dense.pages[0].len(), sparse.pages[0].len());
        assert_eq!(dense, sparse);
        assert_eq!(bytes(&dense), bytes(&sparse));
    }

    #[test]
    fn pages_of_a_shrinking_table_are_joined_and_kept() {
        let mut table: Table<u32, u32> = (0..50_000).map(|n| (n, n)).collect();
        let pages = table.pages.len();
        for n in (0..50_000).filter(|n| n % 100 != 0) {
            assert_eq!(
                table.remove(&(n * 7_919 % 50_000)),
                Some(n * 7_919 % 50_000)
            );
        }
        assert_eq!(table.len(), 500);
        assert!(table.used <= 16, "{} pages", table.used);
        assert_eq!(table.pages.len(), pages);
    }

    #[test]
    fn the_last_entry_with_a_repeated_key_is_collected() {
        let table: Table<u8, char> = [(2, 'a'), (1, 'b'), (2, 'c')].into_iter().collect();
        assert_eq!(format!("{table:?}"), "{1: 'b', 2: 'c'}");
    }

    #[test]
    fn a_table_encodes_as_a_sequence_of_pairs() {
        let table: Table<u8, u32> = [(9, 1), (3, 500)].into_iter().collect();
        assert_eq!(bytes(&table), bytes(&vec![(3_u8, 500_u32), (9, 1)]));
    }

    #[test]
    fn hostile_bytes_with_unsorted_or_duplicate_keys_are_refused() {
        assert_eq!(
            decoded::<u8>(&bytes(&vec![(1_u8, 0_u32), (2, 0)]))
                .unwrap()
                .len(),
            2
        );
        for hostile in [vec![(2_u8, 0_u32), (1, 0)], vec![(1, 0), (1, 0)]] {
            assert_eq!(decoded::<u8>(&bytes(&hostile)), Err(CodecError::Malformed));
        }
        assert!(
            decoded::<u8>(&[252, 255, 255, 255, 255]).is_err(),
            "claims 4 G entries, brings none"
        );
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u32, u32),
        GetOrInsert(u32, u32),
        Remove(u32),
        Retain(u32),
        Change(u32, u32),
        RoundTrip,
        PopFirst,
        CloneFrom,
        Clear,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            40 => (any::<u32>(), any::<u32>()).prop_map(|(key, value)| Op::Insert(key, value)),
            2 => (any::<u32>(), any::<u32>()).prop_map(|(key, value)| Op::GetOrInsert(key, value)),
            3 => any::<u32>().prop_map(Op::Remove),
            1 => (2..6_u32).prop_map(Op::Retain),
            2 => (any::<u32>(), any::<u32>()).prop_map(|(key, value)| Op::Change(key, value)),
            1 => Just(Op::RoundTrip),
            2 => Just(Op::PopFirst),
            1 => Just(Op::CloneFrom),
            1 => Just(Op::Clear),
        ]
    }

    proptest! {
        #[test]
        fn a_table_behaves_like_a_btree_map(keys in prop_oneof![Just(32_u32), Just(2_000)], ops in prop::collection::vec(op(), 0..2_000)) {
            let [mut table, mut other] = [Table::new(), Table::<u32, u32>::new()];
            let mut model = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Insert(key, value) => {
                        let key = key % keys;
                        prop_assert_eq!(table.insert(key, value), model.insert(key, value));
                    }
                    Op::GetOrInsert(key, value) => {
                        let key = key % keys;
                        prop_assert_eq!(table.get_or_insert_with(key, || value), model.entry(key).or_insert(value));
                    }
                    Op::Remove(key) => prop_assert_eq!(table.remove(&(key % keys)), model.remove(&(key % keys))),
                    Op::Retain(of) => {
                        table.retain(|_, value| *value % of != 0);
                        model.retain(|_, value| *value % of != 0);
                    }
                    Op::Change(key, value) => {
                        let key = key % keys;
                        prop_assert_eq!(table.contains_key(&key), model.contains_key(&key));
                        prop_assert_eq!(
                            table.get_mut(&key).map(|old| core::mem::replace(old, value)),
                            model.get_mut(&key).map(|old| core::mem::replace(old, value))
                        );
                        prop_assert_eq!(table.get(&key), model.get(&key));
                    }
                    Op::RoundTrip => table = decoded(&bytes(&table)).unwrap(),
                    Op::PopFirst => prop_assert_eq!(table.pop_first(), model.pop_first()),
                    Op::CloneFrom => {
                        other.clone_from(&table);
                        core::mem::swap(&mut other, &mut table);
                    }
                    Op::Clear => {
                        table.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.first(), model.first_key_value());
                prop_assert_eq!(table.last(), model.last_key_value());
                prop_assert!(table.pages[..table.used].iter().all(|page| page.len() > 0));
            }
            prop_assert!(table.iter().eq(model.iter()));
            prop_assert!(table.iter().rev().eq(model.iter().rev()));
            prop_assert!(table.iter_mut().rev().eq(model.iter_mut().rev()));
            prop_assert!(table.into_iter().eq(model));
        }
    }
}
