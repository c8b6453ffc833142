//! Several datagrams per system call, `recvmmsg` and `sendmmsg`, with the local address to which each was sent, or from
//! which each is sent. The only module that uses nix.
//!
//! nix's headers cannot be sent between threads, so each thread has its own. A call sends from one address only, so the
//! caller groups datagrams by address.

use std::array;
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use arrayvec::ArrayVec;
use nix::cmsg_space;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrIn, SockaddrIn6,
    SockaddrLike, SockaddrStorage, recvmmsg, recvmsg, sendmmsg, sendmsg, setsockopt, sockopt,
};
use socket2::Socket;
use twinstep_udp::AddressPair;

use super::super::logged;
use super::batch::{BATCH_MAX, Buffer, Came, Kind};

type Headers = MultiHeaders<SockaddrStorage>;

/// Space for the destination address of a datagram, of either family.
const LOCAL_BYTES: usize = 64;

thread_local! {
    /// One set per kind of socket, because each call stores the length of the addresses in it, and the next call takes
    /// that length for the available space.
    static HEADERS: [RefCell<Headers>; 4] = array::from_fn(|at| RefCell::new(headers_for(at)));
    /// Headers for sending: without and with a source address.
    static OUT_V4: [RefCell<MultiHeaders<SockaddrIn>>; 2] = [
        RefCell::new(MultiHeaders::preallocate(BATCH_MAX, None)),
        RefCell::new(MultiHeaders::preallocate(BATCH_MAX, Some(cmsg_space!(in_pktinfo)))),
    ];
    static OUT_V6: [RefCell<MultiHeaders<SockaddrIn6>>; 2] = [
        RefCell::new(MultiHeaders::preallocate(BATCH_MAX, None)),
        RefCell::new(MultiHeaders::preallocate(BATCH_MAX, Some(cmsg_space!(in6_pktinfo)))),
    ];
}

fn headers_for(at: usize) -> Headers {
    let beside = (at >= 2).then(|| cmsg_space!(in_pktinfo, in6_pktinfo));
    MultiHeaders::preallocate(BATCH_MAX, beside)
}

/// Asks the kernel to report the destination address of each datagram. Returns `true` if it will.
pub(super) fn name_local(socket: &Socket, is_v6: bool) -> bool {
    let named = match is_v6 {
        true => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true),
        false => setsockopt(socket, sockopt::Ipv4PacketInfo, &true),
    };
    if let Err(error) = &named {
        logged::warn!(
            %error,
            "the system does not report the address that a player dialled, so replies may leave from another one; on a machine with several addresses, set --listen to the one that players dial"
        );
    }
    named.is_ok()
}

/// Receives waiting datagrams, as long as there is space.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] if no more are waiting. [`ErrorKind::Unsupported`] if the kernel cannot do this.
pub(super) fn receive(
    socket: &Socket,
    kind: Kind,
    room: &mut [Buffer],
    came: &mut Came,
) -> io::Result<()> {
    let at = usize::from(kind.is_v6) + 2 * usize::from(kind.names_local);
    HEADERS.with(|headers| {
        let mut headers = headers[at].borrow_mut();
        let mut is_cut = false;
        let took = receive_by(&mut headers, socket, room, came, &mut is_cut);
        if is_cut {
            // Each call also stores the length of the ancillary data.
            *headers = headers_for(at);
        }
        took
    })
}

fn receive_by(
    headers: &mut Headers,
    socket: &Socket,
    room: &mut [Buffer],
    came: &mut Came,
    is_cut: &mut bool,
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
    came.extend(taken.map(|one| {
        *is_cut |= one.flags.contains(MsgFlags::MSG_CTRUNC);
        (one.bytes, path_of(&one))
    }));
    match came.len() < wanted {
        // A further call would report `WouldBlock`; or an error cut the batch short, which the next call will report.
        true => Err(ErrorKind::WouldBlock.into()),
        false => Ok(()),
    }
}

pub(super) fn receive_one(socket: &Socket, buffer: &mut [u8]) -> io::Result<(usize, AddressPair)> {
    let mut beside = [0; LOCAL_BYTES];
    let mut slices = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    let one = recvmsg(fd, &mut slices, Some(&mut beside), MsgFlags::MSG_DONTWAIT)?;
    Ok((one.bytes, path_of(&one)))
}

fn path_of(one: &RecvMsg<'_, '_, SockaddrStorage>) -> AddressPair {
    // The kernel reports an address for each datagram.
    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let beside = one.cmsgs().into_iter().flatten();
    let mut local = beside.filter_map(|beside| match beside {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
        }
        _ => None,
    });
    // A multicast address cannot be a source; for datagrams that arrived before the option was set, the kernel reports
    // no address.
    let is_own = |local: &IpAddr| !local.is_multicast() && !local.is_unspecified();
    AddressPair {
        peer: one.address.and_then(address).unwrap_or(unspecified),
        local: local.find(is_own),
    }
}

/// Sends the first of these datagrams, and the following ones with the same source address, at most [`BATCH_MAX`].
/// Returns the number sent.
///
/// # Errors
/// If the first datagram cannot be sent. [`ErrorKind::Unsupported`] if the kernel cannot do this.
pub(super) fn send<'a>(
    socket: &Socket,
    kind: Kind,
    datagrams: impl Iterator<Item = (AddressPair, &'a [u8])>,
) -> io::Result<usize> {
    let mut datagrams = datagrams.take(BATCH_MAX).peekable();
    let local = datagrams.peek().and_then(|(path, _)| path.local);
    let same = datagrams.take_while(|(path, _)| path.local == local);
    let at = usize::from(local.is_some());
    match kind.is_v6 {
        true => OUT_V6.with(|out| {
            let as_v6 = |peer| match peer {
                SocketAddr::V6(peer) => Some(SockaddrIn6::from(peer)),
                SocketAddr::V4(_) => None,
            };
            send_by(&mut out[at].borrow_mut(), socket, local, same, as_v6)
        }),
        false => OUT_V4.with(|out| {
            let as_v4 = |peer| match peer {
                SocketAddr::V4(peer) => Some(SockaddrIn::from(peer)),
                SocketAddr::V6(_) => None,
            };
            send_by(&mut out[at].borrow_mut(), socket, local, same, as_v4)
        }),
    }
}

fn send_by<'a, S: SockaddrLike + Copy>(
    headers: &mut MultiHeaders<S>,
    socket: &Socket,
    local: Option<IpAddr>,
    datagrams: impl Iterator<Item = (AddressPair, &'a [u8])>,
    address: impl Fn(SocketAddr) -> Option<S>,
) -> io::Result<usize> {
    let mut contents = ArrayVec::<[IoSlice<'_>; 1], BATCH_MAX>::new();
    let mut addresses = ArrayVec::<Option<S>, BATCH_MAX>::new();
    for (path, datagram) in datagrams {
        let Some(to) = address(path.peer) else { break };
        contents.push([IoSlice::new(datagram)]);
        addresses.push(Some(to));
    }
    if contents.is_empty() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let from = local.map(Leaving::from);
    let mut beside = ArrayVec::<ControlMessage<'_>, 1>::new();
    beside.extend(from.as_ref().map(Leaving::as_message));
    let sent = sendmmsg(
        socket.as_raw_fd(),
        headers,
        &contents,
        &addresses,
        &beside,
        MsgFlags::MSG_DONTWAIT,
    )?;
    Ok(sent.count())
}

/// Sends one datagram from an address of this machine.
///
/// # Errors
/// If the socket fails.
pub(super) fn send_one(
    socket: &Socket,
    datagram: &[u8],
    peer: SocketAddr,
    local: IpAddr,
) -> io::Result<usize> {
    let from = Leaving::from(local);
    let contents = [IoSlice::new(datagram)];
    let to = SockaddrStorage::from(peer);
    let flags = MsgFlags::MSG_DONTWAIT;
    let beside = [from.as_message()];
    Ok(sendmsg(
        socket.as_raw_fd(),
        &contents,
        &beside,
        flags,
        Some(&to),
    )?)
}

/// The source address of a datagram, as a control message. The interface is left to the routing table.
enum Leaving {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

impl Leaving {
    fn as_message(&self) -> ControlMessage<'_> {
        match self {
            Leaving::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            Leaving::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        }
    }
}

impl From<IpAddr> for Leaving {
    fn from(local: IpAddr) -> Leaving {
        match local {
            IpAddr::V4(local) => Leaving::V4(in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: in_addr {
                    s_addr: u32::from_ne_bytes(local.octets()),
                },
                ipi_addr: in_addr { s_addr: 0 },
            }),
            IpAddr::V6(local) => Leaving::V6(in6_pktinfo {
                ipi6_addr: in6_addr {
                    s6_addr: local.octets(),
                },
                ipi6_ifindex: 0,
            }),
        }
    }
}

fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().copied();
    let v6 = storage.as_sockaddr_in6().copied();
    v4.map(|v4| SocketAddrV4::from(v4).into())
        .or(v6.map(|v6| SocketAddrV6::from(v6).into()))
}
