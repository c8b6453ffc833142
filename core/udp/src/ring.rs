//! A bounded queue of byte strings that reuses their buffers.
//!
//! Invariant: at most `limit` strings wait, and in the steady state nothing is allocated: a string that was
//! handed out gives its buffer back at the next [`Ring::pop`], and one that was forgotten at once.

use std::collections::VecDeque;

/// Byte strings in order, each with a tag (an address, or nothing).
pub(crate) struct Ring<T> {
    waiting: VecDeque<(T, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    handed_out: Vec<u8>,
    limit: usize,
}

impl<T> Ring<T> {
    pub(crate) fn new(limit: usize) -> Ring<T> {
        Ring {
            waiting: VecDeque::new(),
            spare: Vec::new(),
            handed_out: Vec::new(),
            limit,
        }
    }

    /// Copies `bytes` to the end; `false`, and nothing is kept, when the ring is full.
    #[must_use]
    pub(crate) fn push(&mut self, tag: T, bytes: &[u8]) -> bool {
        if self.waiting.len() >= self.limit {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.waiting.push_back((tag, buffer));
        true
    }

    /// Takes the oldest string; its bytes stay readable until the next call.
    pub(crate) fn pop(&mut self) -> Option<(T, &[u8])> {
        let (tag, buffer) = self.waiting.pop_front()?;
        self.spare
            .push(std::mem::replace(&mut self.handed_out, buffer));
        Some((tag, &self.handed_out))
    }

    /// All that wait, the oldest first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (T, &[u8])> + Clone
    where
        T: Copy,
    {
        let waiting = self.waiting.iter();
        waiting.map(|(tag, buffer)| (*tag, &buffer[..]))
    }

    /// Puts strings with equal keys together; those keep their order.
    pub(crate) fn group_by<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        let mut waiting = self.waiting.iter();
        if !waiting.by_ref().is_sorted_by_key(|(tag, _)| key(tag)) {
            self.waiting
                .make_contiguous()
                .sort_by_key(|(tag, _)| key(tag));
        }
    }

    /// Forgets the `count` oldest, or all if there are fewer.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let gone = self.waiting.drain(..count.min(self.waiting.len()));
        self.spare.extend(gone.map(|(_, buffer)| buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn a_ring_keeps_order_and_refuses_when_full() {
        let mut ring = Ring::new(2);
        assert!(ring.push(1, b"one"));
        assert!(ring.push(2, b"two"));
        assert!(!ring.push(3, b"three"));
        assert_eq!(ring.pop(), Some((1, &b"one"[..])));
        assert!(ring.push(4, b"four"));
        assert_eq!(ring.pop(), Some((2, &b"two"[..])));
        assert_eq!(ring.pop(), Some((4, &b"four"[..])));
        assert_eq!(ring.pop(), None);
    }

    #[test]
    fn a_ring_shows_what_waits_and_forgets_from_the_front() {
        let mut ring = Ring::new(3);
        for (tag, bytes) in [(1, &b"one"[..]), (2, b"two"), (3, b"three")] {
            assert!(ring.push(tag, bytes));
        }
        assert!(
            ring.iter()
                .eq([(1, &b"one"[..]), (2, b"two"), (3, b"three")])
        );
        ring.drop_front(2);
        assert!(ring.iter().eq([(3, &b"three"[..])]));
        assert!(ring.push(4, b"four"), "there is room again");
        assert_eq!(ring.pop(), Some((3, &b"three"[..])));
        ring.drop_front(9);
        assert_eq!((ring.iter().len(), ring.spare.len()), (0, 3));
    }

    #[test]
    fn a_ring_in_use_stops_making_buffers() {
        let mut ring = Ring::new(8);
        for round in 0..1_000 {
            assert!(ring.push((), &[round as u8; 100]));
            assert!(ring.pop().is_some());
        }
        assert!(ring.spare.len() <= 2, "{} spare buffers", ring.spare.len());
    }
}
