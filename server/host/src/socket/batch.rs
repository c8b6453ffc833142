//! Batches of datagrams: their buffers, and the options of the kernel's calls that send or receive several at once.

use arrayvec::ArrayVec;
use twinstep_udp::{AddressPair, DATAGRAM_MAX};

/// Datagrams of one call, at most. From eight on a larger batch gains little (bench/NOTES.md).
pub(crate) const BATCH_MAX: usize = 32;

/// Room for a datagram, and for one byte more, which tells that it is too large.
pub(super) type Buffer = [u8; DATAGRAM_MAX + 1];

/// How long each datagram is that was taken, and which way it came.
pub(super) type Came = ArrayVec<(usize, AddressPair), BATCH_MAX>;

/// The properties of a socket that the kernel's calls depend on.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux is asked for many datagrams at once")
    )]
    pub(super) is_v6: bool,
    /// The kernel says with each datagram to which address of this machine it came.
    pub(super) names_local: bool,
}
