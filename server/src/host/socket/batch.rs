//! What a socket and the kernel's calls for several datagrams share: a batch, its buffers, and what each call must know.

use arrayvec::ArrayVec;
use twinstep_udp::{AddressPair, DATAGRAM_MAX};

/// Datagrams of one call, at most. From eight on a larger batch gains little (bench/NOTES.md).
pub(crate) const BATCH_MAX: usize = 32;

/// Room for a datagram, and for one byte more, which tells that it is too large.
pub(super) type Buffer = [u8; DATAGRAM_MAX + 1];

/// How long each datagram is that was taken, and which way it came.
pub(super) type Came = ArrayVec<(usize, AddressPair), BATCH_MAX>;

/// What the kernel's calls have to know of a socket.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) is_v6: bool,
    /// The kernel says with each datagram to which address of this machine it came.
    pub(super) names_local: bool,
}
