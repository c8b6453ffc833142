//! Several datagrams at one call: `recvmmsg` and `sendmmsg`. The only module that names nix.
//!
//! rustix has only the one for sending. nix's headers for the other cannot go from thread to thread, so each thread that
//! receives keeps some.

use std::array;
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use arrayvec::ArrayVec;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use socket2::Socket;

use super::{BATCH_MAX, Buffer, Came};

type Headers = MultiHeaders<SockaddrStorage>;

thread_local! {
    /// One for sockets of IPv4 and one of IPv6: each call leaves in them how long the addresses were, and the next one takes
    /// that for the room that it has.
    static HEADERS: [RefCell<Headers>; 2] =
        array::from_fn(|_| RefCell::new(Headers::preallocate(BATCH_MAX, None)));
}

/// Takes what waits, as far as there is room.
///
/// # Errors
/// [`ErrorKind::WouldBlock`]: nothing waits any more. [`ErrorKind::Unsupported`]: the kernel does not do this.
pub(super) fn receive(
    socket: &Socket,
    is_v6: bool,
    room: &mut [Buffer],
    came: &mut Came,
) -> io::Result<()> {
    HEADERS.with(|headers| {
        let mut headers = headers[usize::from(is_v6)].borrow_mut();
        receive_by(&mut headers, socket, room, came)
    })
}

fn receive_by(
    headers: &mut Headers,
    socket: &Socket,
    room: &mut [Buffer],
    came: &mut Came,
) -> io::Result<()> {
    let wanted = room.len().min(BATCH_MAX);
    let mut buffers = room.iter_mut();
    let mut slices: [_; BATCH_MAX] = array::from_fn(|_| match buffers.next() {
        Some(buffer) => [IoSliceMut::new(buffer)],
        None => [IoSliceMut::new(&mut [])],
    });
    let flags = MsgFlags::MSG_DONTWAIT;
    let taken = recvmmsg(
        socket.as_raw_fd(),
        headers,
        &mut slices[..wanted],
        flags,
        None,
    )?;
    // The kernel names an address for each.
    let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let each = taken.map(|one| (one.bytes, one.address.and_then(address).unwrap_or(nobody)));
    came.extend(each);
    match came.len() < wanted {
        // It would say so if it were asked once more; or else an error cut the batch short, which the next call tells.
        true => Err(ErrorKind::WouldBlock.into()),
        false => Ok(()),
    }
}

/// Sends the first [`BATCH_MAX`] of these; how many went.
///
/// # Errors
/// The first one's. [`ErrorKind::Unsupported`]: the kernel does not do this.
pub(super) fn send<'a>(
    socket: &Socket,
    datagrams: impl Iterator<Item = (SocketAddr, &'a [u8])>,
) -> io::Result<usize> {
    let mut contents = ArrayVec::<(SocketAddrAny, [IoSlice<'_>; 1]), BATCH_MAX>::new();
    contents.extend(
        datagrams
            .take(BATCH_MAX)
            .map(|(to, datagram)| (to.into(), [IoSlice::new(datagram)])),
    );
    let mut nothing: [_; BATCH_MAX] = array::from_fn(|_| SendAncillaryBuffer::default());
    let beside = contents.iter().zip(&mut nothing);
    let mut headers: ArrayVec<MMsgHdr<'_>, BATCH_MAX> = beside
        .map(|((to, slices), nothing)| MMsgHdr::new_with_addr(to, slices, nothing))
        .collect();
    Ok(sendmmsg(socket, &mut headers, SendFlags::DONTWAIT)?)
}

fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().copied();
    let v6 = storage.as_sockaddr_in6().copied();
    v4.map(|v4| SocketAddrV4::from(v4).into())
        .or(v6.map(|v6| SocketAddrV6::from(v6).into()))
}
