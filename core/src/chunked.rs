//! [`Chunked`]: a grid or other list of fixed length whose copies and digests are cheap while few elements change.
//!
//! ```text
//!   authority    [ A ][ B ][ C ][ D ]        a copy shares all chunks …
//!                  │    │    │    │
//!   prediction   [ · ][ · ][ C'][ · ]        … except those that either side has changed since
//!                  7    2    ?    9          and a digest hashes those, and the digests of the others
//! ```
//!
//! A client copies its world for each rebuild, the server keeps copies of the last second, and both compute digests.
//! With a plain `Vec`, each of these reads the whole list.
//!
//! Invariants: all chunks but the last are full, so two equal lists have equal digests even if their histories differ.
//! A chunk is unshared before it changes, and its cached digest is cleared.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::digest::asking;
use crate::digest::known::Known;

/// A list of thousands of elements, few of which change in a tick, such as the tiles of a diggable map, a voxel world,
/// or burning ground.
///
/// The length is fixed at creation. The elements are stored in chunks of `N`. The costs for n elements:
///
/// | | a `Vec` | `Chunked` |
/// |---|---|---|
/// | a copy, as for each rebuild (`clone_from`) | all n are copied | n/N chunks are compared; the changed ones are shared |
/// | a digest | all n are hashed | the changed chunks, and 8 bytes for each chunk |
/// | the check for NaN every tick | each float | the changed chunks |
/// | a change | a store | a store and about 10 ns; the first one after a copy copies its chunk, and allocates |
/// | encoding, as for a joining client | all n | all n |
///
/// A world's size is the number of bytes that its digest hashes. So a world with a million elements in a `Chunked`
/// still counts as small: it is digested every tick, and a desync in it is detected immediately. Data that changes
/// everywhere every tick belongs in a `Vec`: at most 256 KiB of a `Vec` are hashed per second, or the whole `Vec` once,
/// whereas a `Chunked` that changed everywhere is hashed in full every tick.
///
/// A `Chunked` is encoded like a `Vec` of the same elements. The digests differ, so a game that switches to `Chunked`
/// needs a new [`VERSION`](crate::Simulation::VERSION).
///
/// ```
/// use twinstep_core::Chunked;
///
/// let mut ground: Chunked<u16> = Chunked::filled(7, 1_000_000); // one chunk in memory, shared by all positions
/// let mut copy = ground.clone();
/// ground[123_456] = 0; // and now two
/// assert_eq!((ground[123_456], copy[123_456]), (0, 7));
/// copy.clone_from(&ground); // compares 977 chunks, and shares one more
/// assert_eq!(copy, ground);
/// assert_eq!(ground.iter().filter(|tile| **tile == 0).count(), 1);
/// ```
///
/// # Panics
/// If an index is out of range, as for a slice. `N` must not be 0, which is an error at compile time.
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

/// Clones a chunk for [`own`]. The clone is about to change, so its digest is unknown.
impl<T: Clone> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        Chunk {
            elements: self.elements.clone(),
            known: Known::default(),
        }
    }
}

fn own<T: Clone>(chunk: &mut Arc<Chunk<T>>) -> &mut Vec<T> {
    let chunk = Arc::make_mut(chunk);
    // An unshared chunk was not cloned, so it still has its digest.
    chunk.known.forget();
    &mut chunk.elements
}

impl<T, const N: usize> Chunked<T, N> {
    const SOME: () = assert!(N > 0, "a chunk of no elements");

    /// A list of `len` copies of `element`. All full chunks share one chunk in memory until they change.
    #[must_use]
    pub fn filled(element: T, len: usize) -> Self
    where
        T: Clone,
    {
        const { Self::SOME };
        let mut chunks = Vec::with_capacity(len.div_ceil(N));
        if len >= N {
            chunks.resize(len / N, Chunk::new(alloc::vec![element.clone(); N]));
        }
        if !len.is_multiple_of(N) {
            chunks.push(Chunk::new(alloc::vec![element; len % N]));
        }
        Chunked { chunks, len }
    }

    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the list has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / N)?.elements.get(index % N)
    }

    /// A mutable reference to the element at `index`. Its chunk then counts as changed, so call this only to change the
    /// element.
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
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| &chunk.elements)
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

impl<T, const N: usize> Clone for Chunked<T, N> {
    fn clone(&self) -> Self {
        Chunked {
            chunks: self.chunks.clone(),
            len: self.len,
        }
    }

    /// Allocates only if there are more chunks than ever before. Chunks that both lists already share cost one
    /// comparison.
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
        // Shared chunks are not compared: a valid state contains no NaN, which would differ from itself.
        let are_equal = |(one, two): (&Arc<Chunk<T>>, &Arc<Chunk<T>>)| {
            Arc::ptr_eq(one, two) || one.elements == two.elements
        };
        self.len == other.len && self.chunks.iter().zip(&other.chunks).all(are_equal)
    }
}

impl<T: Eq, const N: usize> Eq for Chunked<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Chunked<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T, const N: usize> FromIterator<T> for Chunked<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        const { Self::SOME };
        // Fused, because the loop polls once more after the end.
        let mut elements = elements.into_iter().fuse();
        let (mut chunks, mut len) = (Vec::new(), 0);
        loop {
            let chunk: Vec<T> = elements.by_ref().take(N).collect();
            if chunk.is_empty() {
                return Chunked { chunks, len };
            }
            len += chunk.len();
            chunks.push(Chunk::new(chunk));
        }
    }
}

/// Serialises as a list, with the same bincode bytes as a `Vec`.
impl<T: Serialize, const N: usize> Serialize for Chunked<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        asking::serialize(serializer, &PlainList(self), &Digests(&self.chunks))
    }
}

struct PlainList<'a, T, const N: usize>(&'a Chunked<T, N>);

impl<T: Serialize, const N: usize> Serialize for PlainList<'_, T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut elements = serializer.serialize_seq(Some(self.0.len))?;
        self.0
            .iter()
            .try_for_each(|element| elements.serialize_element(element))?;
        elements.end()
    }
}

/// The digested form. It needs no field for the list's length, which follows from the number of chunks and the length
/// of the last one.
struct Digests<'a, T>(&'a [Arc<Chunk<T>>]);

impl<T: Serialize> Serialize for Digests<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|chunk| ChunkDigest(chunk)))
    }
}

struct ChunkDigest<'a, T>(&'a Chunk<T>);

impl<T: Serialize> Serialize for ChunkDigest<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Chunk { elements, known } = self.0;
        match known.digest(elements) {
            Some(digest) => serializer.serialize_u64(digest),
            // The caller finds the reason while it serialises the elements.
            None => elements.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Chunked<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from_iter)
    }
}

#[cfg(test)]
mod tests;
