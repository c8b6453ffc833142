//! [`Chunked`]: a long list that costs what changes of it, and not what there is of it.
//!
//! ```text
//!   authority    [ A ][ B ][ C ][ D ]        a copy shares all chunks …
//!                  │    │    │    │
//!   prediction   [ · ][ · ][ C'][ · ]        … but for those that either has changed since
//!                  7    2    ?    9          and a digest hashes those, and the digests of the others
//! ```
//!
//! A client copies its world at each rebuild, the server keeps copies of the last second, and both take digests. For a
//! plain `Vec` each of these passes over all of it.
//!
//! Invariants: all chunks but the last are full, so that two equal lists have equal digests however they came about; and
//! whoever changes a chunk has it alone, and forgets its digest.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut, Range};
use core::slice;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::digest::asking;
use crate::digest::known::Known;

/// A list of thousands of elements of which few change in a tick: tiles of a map that can be dug up, a voxel world, ground
/// that burns.
///
/// It is kept in chunks of `N` elements. What of n elements costs what:
///
/// | | a `Vec` | this |
/// |---|---|---|
/// | a copy, as at each rebuild (`clone_from`) | all n are copied | a look at n/N chunks; those that changed are shared |
/// | a digest | all n are hashed | the changed chunks, and 8 bytes for each chunk |
/// | the look for a NaN at each tick | each float | the changed chunks |
/// | a change | a store | a store and some 10 ns; the first one after a copy copies its chunk, and allocates |
/// | encoding, as for who joins | all n | all n |
///
/// The size of a world counts by what its digest hashes: so with a million elements in here it is still a small one, that is
/// digested at each turn, where a desync is found at once. What changes everywhere at each tick belongs into a `Vec`: of that not
/// more than 256 KiB a second are hashed, or all of it once, and of this all of it at each tick.
///
/// Encoded it is what a `Vec` of the same elements is. Its digests are others, so a game that changes over is another
/// [`VERSION`](crate::Simulation::VERSION).
///
/// ```
/// use twinstep_core::Chunked;
///
/// let mut ground: Chunked<u16> = Chunked::filled(7, 1_000_000); // one chunk in memory, which all share
/// let mut copy = ground.clone();
/// ground[123_456] = 0; // and now two
/// assert_eq!((ground[123_456], copy[123_456]), (0, 7));
/// copy.clone_from(&ground); // looks at 977 chunks, and shares one more
/// assert_eq!(copy, ground);
/// assert_eq!(ground.iter().filter(|tile| **tile == 0).count(), 1);
/// ```
///
/// # Panics
/// Like a slice, where an index is out of range. `N` must not be 0, which is an error at compile time.
pub struct Chunked<T, const N: usize = 1_024> {
    chunks: Vec<Arc<Chunk<T>>>,
    len: usize,
}

struct Chunk<T> {
    elements: Vec<T>,
    known: Known,
}

impl<T> Chunk<T> {
    fn new(elements: Vec<T>) -> Arc<Self> {
        let known = Known::default();
        Arc::new(Chunk { elements, known })
    }
}

/// For who wants to change it.
impl<T: Clone> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        Chunk {
            elements: self.elements.clone(),
            known: Known::default(),
        }
    }
}

/// The elements of a chunk, to be changed: it is copied if others have it too.
fn own<T: Clone>(chunk: &mut Arc<Chunk<T>>) -> &mut Vec<T> {
    let chunk = Arc::make_mut(chunk);
    chunk.known.forget();
    &mut chunk.elements
}

impl<T, const N: usize> Chunked<T, N> {
    const SOME: () = assert!(N > 0, "a chunk of no elements");

    /// An empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        const { Self::SOME };
        Chunked {
            chunks: Vec::new(),
            len: 0,
        }
    }

    /// So many elements like this one. All full chunks are one in memory, until they change.
    #[must_use]
    pub fn filled(element: T, len: usize) -> Self
    where
        T: Clone,
    {
        let mut list = Chunked::new();
        if len >= N {
            let full = Chunk::new(alloc::vec![element.clone(); N]);
            list.chunks.resize(len / N, full);
        }
        if !len.is_multiple_of(N) {
            list.chunks.push(Chunk::new(alloc::vec![element; len % N]));
        }
        list.len = len;
        list
    }

    /// How many elements there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / N)?.elements.get(index % N)
    }

    /// The element at `index`, to be changed. Its chunk counts as changed from here on, so ask for what is to change only.
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T>
    where
        T: Clone,
    {
        if index >= self.len {
            return None;
        }
        own(&mut self.chunks[index / N]).get_mut(index % N)
    }

    /// All elements, in order.
    #[must_use]
    pub fn iter(&self) -> ChunkedIter<'_, T> {
        ChunkedIter {
            chunks: self.chunks.iter(),
            elements: [].iter(),
            left: self.len,
        }
    }

    /// The elements of a range, in order, by slices that each lie in one chunk: to look at many in a row.
    ///
    /// # Panics
    /// If the range is not within the list.
    pub fn slices(&self, range: Range<usize>) -> impl Iterator<Item = &[T]> {
        let (chunks, range) = self.covered(range);
        let slices = self.chunks[chunks.clone()].iter().zip(chunks);
        slices.map(move |(chunk, n)| &chunk.elements[part_of::<N>(n, &range)])
    }

    /// As [`slices`](Self::slices), to be changed: to change many in a row costs as little as in a `Vec`. All chunks that
    /// the iterator comes to count as changed.
    ///
    /// ```
    /// # use twinstep_core::Chunked;
    /// let mut ground: Chunked<u8> = Chunked::filled(1, 5_000);
    /// for row in ground.slices_mut(1_000..3_000) {
    ///     row.fill(0);
    /// }
    /// assert_eq!(ground.iter().map(|tile| usize::from(*tile)).sum::<usize>(), 3_000);
    /// ```
    ///
    /// # Panics
    /// If the range is not within the list.
    pub fn slices_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut [T]>
    where
        T: Clone,
    {
        let (chunks, range) = self.covered(range);
        let slices = self.chunks[chunks.clone()].iter_mut().zip(chunks);
        slices.map(move |(chunk, n)| &mut own(chunk)[part_of::<N>(n, &range)])
    }

    /// The chunks that a range of elements lies in.
    fn covered(&self, range: Range<usize>) -> (Range<usize>, Range<usize>) {
        let Range { start, end } = range;
        assert!(
            start <= end && end <= self.len,
            "expected a range within the {} elements, got {start}..{end}",
            self.len
        );
        match range.is_empty() {
            true => (0..0, range),
            false => (start / N..end.div_ceil(N), range),
        }
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: T)
    where
        T: Clone,
    {
        match self.chunks.last_mut() {
            Some(last) if !self.len.is_multiple_of(N) => own(last).push(element),
            _ => {
                let mut elements = Vec::with_capacity(if self.len == 0 { 0 } else { N });
                elements.push(element);
                self.chunks.push(Chunk::new(elements));
            }
        }
        self.len += 1;
    }

    /// Takes the last element.
    pub fn pop(&mut self) -> Option<T>
    where
        T: Clone,
    {
        let last = own(self.chunks.last_mut()?);
        let element = last.pop();
        if last.is_empty() {
            self.chunks.pop();
        }
        self.len -= 1;
        element
    }

    /// Drops all elements from `len` on; nothing if there are no more than these.
    pub fn truncate(&mut self, len: usize)
    where
        T: Clone,
    {
        if len >= self.len {
            return;
        }
        self.chunks.truncate(len.div_ceil(N));
        if let Some(last) = self.chunks.last_mut()
            && !len.is_multiple_of(N)
        {
            own(last).truncate(len % N);
        }
        self.len = len;
    }

    /// Drops all elements.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }
}

/// What of chunk `n` lies in a range of elements.
fn part_of<const N: usize>(n: usize, range: &Range<usize>) -> Range<usize> {
    let first = n * N;
    range.start.saturating_sub(first)..range.end.saturating_sub(first).min(N)
}

/// The elements of a list, in order.
#[derive(Clone)]
pub struct ChunkedIter<'a, T> {
    chunks: slice::Iter<'a, Arc<Chunk<T>>>,
    elements: slice::Iter<'a, T>,
    left: usize,
}

impl<'a, T> Iterator for ChunkedIter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(element) = self.elements.next() {
                self.left -= 1;
                return Some(element);
            }
            self.elements = self.chunks.next()?.elements.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }

    // Chunk by chunk, so that what is done with each element can be done for many at once.
    fn fold<B, F: FnMut(B, &'a T) -> B>(self, first: B, mut each: F) -> B {
        let folded = self.elements.fold(first, &mut each);
        self.chunks.fold(folded, |folded, chunk| {
            chunk.elements.iter().fold(folded, &mut each)
        })
    }
}

impl<T> ExactSizeIterator for ChunkedIter<'_, T> {}
impl<T> FusedIterator for ChunkedIter<'_, T> {}

impl<'a, T, const N: usize> IntoIterator for &'a Chunked<T, N> {
    type Item = &'a T;
    type IntoIter = ChunkedIter<'a, T>;

    fn into_iter(self) -> ChunkedIter<'a, T> {
        self.iter()
    }
}

impl<T, const N: usize> Index<usize> for Chunked<T, N> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        match self.get(index) {
            Some(element) => element,
            None => out_of_range(index, self.len),
        }
    }
}

impl<T: Clone, const N: usize> IndexMut<usize> for Chunked<T, N> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let len = self.len;
        match self.get_mut(index) {
            Some(element) => element,
            None => out_of_range(index, len),
        }
    }
}

#[cold]
fn out_of_range(index: usize, len: usize) -> ! {
    panic!("expected an index below {len}, got {index}")
}

impl<T, const N: usize> Default for Chunked<T, N> {
    fn default() -> Self {
        Chunked::new()
    }
}

impl<T, const N: usize> Clone for Chunked<T, N> {
    fn clone(&self) -> Self {
        Chunked {
            chunks: self.chunks.clone(),
            len: self.len,
        }
    }

    /// Allocates only if there are more chunks than ever before. Chunks that both share already are only looked at.
    fn clone_from(&mut self, source: &Self) {
        self.chunks.truncate(source.chunks.len());
        let (both, more) = source.chunks.split_at(self.chunks.len());
        for (chunk, source) in self.chunks.iter_mut().zip(both) {
            if !Arc::ptr_eq(chunk, source) {
                chunk.clone_from(source);
            }
        }
        self.chunks.extend_from_slice(more);
        self.len = source.len;
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Chunked<T, N> {
    fn eq(&self, other: &Self) -> bool {
        // What is shared is not compared: a part of a state holds no NaN that would differ from itself.
        let are_equal = |(one, two): (&Arc<Chunk<T>>, &Arc<Chunk<T>>)| {
            Arc::ptr_eq(one, two) || one.elements == two.elements
        };
        self.len == other.len && self.chunks.iter().zip(&other.chunks).all(are_equal)
    }
}

impl<T: Eq, const N: usize> Eq for Chunked<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Chunked<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T, const N: usize> FromIterator<T> for Chunked<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut elements = elements.into_iter().fuse();
        let mut list = Chunked::new();
        loop {
            let chunk: Vec<T> = elements.by_ref().take(N).collect();
            list.len += chunk.len();
            match chunk.len() {
                0 => return list,
                _ => list.chunks.push(Chunk::new(chunk)),
            }
        }
    }
}

impl<T, const N: usize> From<Vec<T>> for Chunked<T, N> {
    fn from(elements: Vec<T>) -> Self {
        elements.into_iter().collect()
    }
}

impl<T: Clone, const N: usize> Extend<T> for Chunked<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

/// A list; in bincode the very bytes of a `Vec`.
impl<T: Serialize, const N: usize> Serialize for Chunked<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        asking::serialize(serializer, &Elements(self), &Digests(&self.chunks))
    }
}

struct Elements<'a, T, const N: usize>(&'a Chunked<T, N>);

impl<T: Serialize, const N: usize> Serialize for Elements<'_, T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0)
    }
}

/// What a digest is taken of: how long the list is stands in that of the last chunk.
struct Digests<'a, T>(&'a [Arc<Chunk<T>>]);

impl<T: Serialize> Serialize for Digests<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|chunk| Digested(chunk)))
    }
}

struct Digested<'a, T>(&'a Chunk<T>);

impl<T: Serialize> Serialize for Digested<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Chunk { elements, known } = self.0;
        match known.digest(elements) {
            Some(digest) => serializer.serialize_u64(digest),
            // Whoever asks finds out why.
            None => elements.serialize(serializer),
        }
    }
}

/// Takes no more room than there are elements.
impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Chunked<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = List(PhantomData);
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_seq(list),
            false => deserializer.deserialize_tuple_struct(asking::NAME, 2, Asked(list)),
        }
    }
}

/// Reads the question, and the list.
struct Asked<V>(V);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Asked<List<T, N>> {
    type Value = Chunked<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing, and a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let question: Option<[u8; 0]> = fields.next_element()?;
        let list = fields.next_element_seed(self.0)?;
        let count = usize::from(question.is_some());
        list.ok_or_else(|| Error::invalid_length(count, &"nothing, and a list"))
    }
}

/// Reads the list.
struct List<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> serde::de::DeserializeSeed<'de> for List<T, N> {
    type Value = Chunked<T, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for List<T, N> {
    type Value = Chunked<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        // Law Hostile wire: of what is claimed, room is made for no more than a chunk.
        let mut list = Chunked::new();
        loop {
            let room = elements.size_hint().unwrap_or(0).min(N);
            let mut chunk = Vec::with_capacity(room);
            while chunk.len() < N
                && let Some(element) = elements.next_element()?
            {
                chunk.push(element);
            }
            list.len += chunk.len();
            let is_full = chunk.len() == N;
            if !chunk.is_empty() {
                list.chunks.push(Chunk::new(chunk));
            }
            if !is_full {
                return Ok(list);
            }
        }
    }
}

#[cfg(test)]
mod tests;
