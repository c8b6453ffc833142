//! [`SendQueue`]: outgoing datagrams and their source addresses.
//!
//! Invariant: at most `limit` datagrams wait, and the steady state does not allocate: a popped datagram's buffer is
//! reused from the next [`SendQueue::pop`] onwards, and a dropped datagram's immediately.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// The peer's and the local address of a datagram, as a server sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPair {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The local address to which the peer sent. Replies must be sent from it, because a peer accepts replies only from
    /// the address that it dialled. `None` lets the system choose.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for AddressPair {
    fn from(peer: SocketAddr) -> AddressPair {
        AddressPair { peer, local: None }
    }
}

/// The queue of datagrams, see the [module](self). Pushed datagrams are sent from the address set last.
pub(crate) struct SendQueue {
    waiting: VecDeque<(AddressPair, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    handed_out: Vec<u8>,
    limit: usize,
    from: Option<IpAddr>,
}

impl SendQueue {
    pub(crate) fn new(limit: usize) -> SendQueue {
        SendQueue {
            waiting: VecDeque::new(),
            spare: Vec::new(),
            handed_out: Vec::new(),
            limit,
            from: None,
        }
    }

    /// Sets the local address from which the next datagrams are sent. `None` lets the system choose.
    pub(crate) fn leave_from(&mut self, local: Option<IpAddr>) {
        self.from = local;
    }

    /// Queues a copy of a datagram. Returns `false` if the queue is full.
    #[must_use]
    pub(crate) fn push(&mut self, peer: SocketAddr, datagram: &[u8]) -> bool {
        if self.waiting.len() >= self.limit {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(datagram);
        let local = self.from;
        self.waiting
            .push_back((AddressPair { peer, local }, buffer));
        true
    }

    /// Takes the oldest datagram. Its bytes stay readable until the next call.
    pub(crate) fn pop(&mut self) -> Option<(AddressPair, &[u8])> {
        let (path, buffer) = self.waiting.pop_front()?;
        self.spare
            .push(std::mem::replace(&mut self.handed_out, buffer));
        Some((path, &self.handed_out))
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (AddressPair, &[u8])> + Clone {
        self.waiting
            .iter()
            .map(|(path, buffer)| (*path, &buffer[..]))
    }

    /// Groups the datagrams by source address, keeping their order within each group.
    pub(crate) fn group(&mut self) {
        let mut waiting = self.waiting.iter();
        if !waiting.by_ref().is_sorted_by_key(|(path, _)| path.local) {
            self.waiting
                .make_contiguous()
                .sort_by_key(|(path, _)| path.local);
        }
    }

    /// Drops the `count` oldest datagrams, or all if there are fewer.
    pub(crate) fn drop_front(&mut self, count: usize) {
        let gone = self.waiting.drain(..count.min(self.waiting.len()));
        self.spare.extend(gone.map(|(_, buffer)| buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn waiting(queue: &SendQueue) -> Vec<(u16, &[u8])> {
        queue
            .iter()
            .map(|(path, bytes)| (path.peer.port(), bytes))
            .collect()
    }

    #[test]
    fn a_queue_keeps_order_and_refuses_when_full() {
        let mut queue = SendQueue::new(2);
        assert!(queue.push(peer(1), b"one"));
        assert!(queue.push(peer(2), b"two"));
        assert!(!queue.push(peer(3), b"three"));
        assert_eq!(queue.pop(), Some((peer(1).into(), &b"one"[..])));
        assert!(queue.push(peer(4), b"four"));
        assert_eq!(waiting(&queue), [(2, &b"two"[..]), (4, b"four")]);
        assert_eq!(queue.pop(), Some((peer(2).into(), &b"two"[..])));
        assert_eq!(queue.pop(), Some((peer(4).into(), &b"four"[..])));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_queue_drops_from_the_front() {
        let mut queue = SendQueue::new(3);
        for (port, bytes) in [(1, &b"one"[..]), (2, b"two"), (3, b"three")] {
            assert!(queue.push(peer(port), bytes));
        }
        queue.drop_front(2);
        assert_eq!(waiting(&queue), [(3, &b"three"[..])]);
        assert!(queue.push(peer(4), b"four"), "there is room again");
        assert_eq!(queue.pop(), Some((peer(3).into(), &b"three"[..])));
        queue.drop_front(9);
        assert_eq!((queue.iter().len(), queue.spare.len()), (0, 3));
    }

    #[test]
    fn datagrams_are_grouped_by_source_address() {
        let mut queue = SendQueue::new(4);
        for (port, host) in [(1, 2), (2, 1), (3, 2), (4, 1)] {
            queue.leave_from(Some(IpAddr::from([192, 0, 2, host])));
            assert!(queue.push(peer(port), b"bytes"));
        }
        queue.group();
        let ports = waiting(&queue).into_iter().map(|(port, _)| port);
        assert!(ports.eq([2, 4, 1, 3]));
    }

    #[test]
    fn a_queue_in_use_stops_allocating_buffers() {
        let mut queue = SendQueue::new(8);
        for round in 0..1_000 {
            assert!(queue.push(peer(1), &[round as u8; 100]));
            assert!(queue.pop().is_some());
        }
        assert!(
            queue.spare.len() <= 2,
            "{} spare buffers",
            queue.spare.len()
        );
    }
}
