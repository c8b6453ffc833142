//! Batches of datagrams: their buffers, and the parameters of the system calls for several datagrams.

use arrayvec::ArrayVec;
use twinstep_udp::{AddressPair, DATAGRAM_MAX};

/// The maximum number of datagrams per call. Above eight, a larger batch saves little time (bench/NOTES.md).
pub(crate) const BATCH_MAX: usize = 32;

/// Space for a datagram and one more byte, which reveals a datagram that is too large.
pub(super) type Buffer = [u8; DATAGRAM_MAX + 1];

pub(super) type Came = ArrayVec<(usize, AddressPair), BATCH_MAX>;

#[derive(Clone, Copy)]
pub(super) struct Kind {
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux is asked for many datagrams at once")
    )]
    pub(super) is_v6: bool,
    /// The kernel reports to which address of this machine each datagram was sent.
    pub(super) names_local: bool,
}
