//! [`Socket`]: a UDP socket that never blocks, and sends and receives in batches: several datagrams per system call
//! where the kernel can do that (`host/socket/many.rs`), elsewhere one by one.
//!
//! While tokio has the socket registered, each datagram wakes its thread, even if no task polls. So under load the
//! socket is not registered.
//!
//! A socket bound to all addresses of its machine also records the destination address of each datagram, and sends the
//! response from there: clients drop responses from any other address. Implemented on Linux only. Elsewhere the system
//! chooses the source address, so a server with several addresses should listen at the one that players dial.
//!
//! Invariant: a batch that is not full has emptied the socket, and the next datagram wakes the task that polls.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::Interest;
use twinstep_udp::{AddressPair, DATAGRAM_MAX};

use super::logged;

mod batch;
#[cfg(target_os = "linux")]
mod many;
#[cfg(test)]
mod tests;

use batch::{BATCH_MAX, Buffer, Came, Kind};

/// After this many refusals of a batch, datagrams are sent one by one.
const REFUSALS_MAX: u8 = 8;

pub(super) struct Socket {
    inner: Inner,
    kind: Kind,
    /// `true` while the kernel is believed to take several datagrams per call.
    takes_many: bool,
    /// Consecutive batches that the kernel refused although it then took a single datagram.
    refusals: u8,
    buffers: Box<[Buffer; BATCH_MAX]>,
    came: Came,
    /// Pretends that the kernel refuses batches with this error.
    #[cfg(test)]
    refuses: Option<ErrorKind>,
}

enum Inner {
    /// Datagrams wake the task that polls.
    Rousing(tokio::net::UdpSocket),
    Quiet(UdpSocket),
}

impl Socket {
    pub(super) fn new(socket: tokio::net::UdpSocket) -> Socket {
        let at = socket.local_addr().ok().map(|at| at.ip());
        let is_v6 = at.is_some_and(|at| at.is_ipv6());
        let is_wild = at.is_some_and(|at| at.is_unspecified());
        let names_local = is_wild && many::name_local(&SockRef::from(&socket), is_v6);
        Socket {
            kind: Kind { is_v6, names_local },
            inner: Inner::Rousing(socket),
            takes_many: true,
            refusals: 0,
            buffers: Box::new([[0; DATAGRAM_MAX + 1]; BATCH_MAX]),
            came: Came::new(),
            #[cfg(test)]
            refuses: None,
        }
    }

    /// Ready when a datagram may have arrived; never ready while wake-ups are off. Errors are returned by
    /// [`receive`](Socket::receive).
    pub(super) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.inner {
            Inner::Rousing(socket) => socket.poll_recv_ready(context).map(|_| ()),
            Inner::Quiet(_) => Poll::Pending,
        }
    }

    pub(super) fn rouse(&mut self, rouses: bool) {
        // Duplicates the descriptor. If no descriptor is left, the socket is unchanged, which only costs time.
        let changed = match &self.inner {
            Inner::Rousing(socket) if !rouses => SockRef::from(socket)
                .try_clone()
                .map(|socket| Inner::Quiet(socket.into())),
            Inner::Quiet(socket) if rouses => socket
                .try_clone()
                .and_then(tokio::net::UdpSocket::from_std)
                .map(Inner::Rousing),
            _ => return,
        };
        match changed {
            Ok(inner) => self.inner = inner,
            Err(error) => {
                logged::warn!(%error, "cannot duplicate the socket; continuing with more CPU use; check the limit of open files (LimitNOFILE)")
            }
        }
    }

    /// Receives waiting datagrams: no more than `at_most`, and no more than [`BATCH_MAX`]. [`came`](Socket::came)
    /// returns them until the next call. Returns `true` if no more are waiting.
    ///
    /// # Errors
    /// If the socket fails; never [`ErrorKind::WouldBlock`]. More datagrams may be waiting, and some may have been
    /// received before the error. Windows reports here that an earlier datagram reached no receiver, and that a
    /// datagram was too large.
    pub(super) fn receive(&mut self, at_most: usize) -> io::Result<bool> {
        self.came.clear();
        let room = &mut self.buffers[..at_most.min(BATCH_MAX)];
        let came = &mut self.came;
        let kind = self.kind;
        let mut many = |socket: SockRef<'_>| many::receive(&socket, kind, room, came);
        #[cfg(test)]
        let mut many = |socket: SockRef<'_>| match self.refuses {
            Some(reason) => Err(reason.into()),
            None => many(socket),
        };
        let took = match (&self.inner, self.takes_many) {
            (Inner::Rousing(socket), true) => {
                socket.try_io(Interest::READABLE, || many(socket.into()))
            }
            (Inner::Quiet(socket), true) => many(socket.into()),
            (Inner::Rousing(socket), false) => take_each(room, came, |buffer| {
                if kind.names_local {
                    let one = || many::receive_one(&SockRef::from(socket), buffer);
                    return socket.try_io(Interest::READABLE, one);
                }
                let (bytes, from) = socket.try_recv_from(buffer)?;
                Ok((bytes, from.into()))
            }),
            (Inner::Quiet(socket), false) => take_each(room, came, |buffer| {
                if kind.names_local {
                    return many::receive_one(&SockRef::from(socket), buffer);
                }
                let (bytes, from) = socket.recv_from(buffer)?;
                Ok((bytes, from.into()))
            }),
        };
        match took {
            Ok(()) => Ok(false),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            // The kernel does not support batches, or a sandbox forbids them.
            Err(error) if self.takes_many && is_refused(error.kind()) => {
                self.takes_many = false;
                self.receive(at_most)
            }
            Err(error) => Err(error),
        }
    }

    /// The datagrams of the last [`receive`](Socket::receive), in order of arrival.
    pub(super) fn came(&self) -> impl ExactSizeIterator<Item = (&[u8], AddressPair)> {
        let came = self.came.iter().zip(self.buffers.iter());
        came.map(|((bytes, path), buffer)| (&buffer[..*bytes], *path))
    }

    pub(super) fn send(&self, datagram: &[u8], path: AddressPair) -> io::Result<usize> {
        match path.local {
            Some(local) => many::send_one(&self.bare(), datagram, path.peer, local),
            None => self.bare().send_to(datagram, &path.peer.into()),
        }
    }

    /// Sends the first of these datagrams and, in the same call, as many of the following ones as the kernel takes, up
    /// to a different source address. Returns the number sent. There must be at least one datagram.
    ///
    /// # Errors
    /// If the first datagram cannot be sent. In that case, none is sent.
    pub(super) fn send_some<'a>(
        &mut self,
        mut datagrams: impl ExactSizeIterator<Item = (AddressPair, &'a [u8])> + Clone,
    ) -> io::Result<usize> {
        let mut may_be_refused = false;
        if self.refusals < REFUSALS_MAX && datagrams.len() > 1 {
            let many = || many::send(&self.bare(), self.kind, datagrams.clone());
            #[cfg(test)]
            let many = || match self.refuses {
                Some(reason) => Err(reason.into()),
                None => many(),
            };
            match many() {
                Ok(sent) => {
                    self.refusals = 0;
                    return Ok(sent);
                }
                Err(error) => may_be_refused = error.kind() != ErrorKind::WouldBlock,
            }
        }
        // Perhaps only the first datagram cannot be sent, and batches are fine.
        let (path, datagram) = datagrams.next().expect("a datagram");
        self.send(datagram, path)?;
        self.refusals += u8::from(may_be_refused);
        Ok(1)
    }

    /// The socket without tokio, for sending. After each [`rouse`](Socket::rouse) to `true` the socket is newly
    /// registered, and tokio refuses to send until the system has reported it as writable.
    fn bare(&self) -> SockRef<'_> {
        match &self.inner {
            Inner::Rousing(socket) => SockRef::from(socket),
            Inner::Quiet(socket) => SockRef::from(socket),
        }
    }
}

fn is_refused(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::Unsupported | ErrorKind::PermissionDenied)
}

/// Receives datagrams one by one until the buffers are used up or an error occurs.
fn take_each(
    room: &mut [Buffer],
    came: &mut Came,
    mut take: impl FnMut(&mut [u8]) -> io::Result<(usize, AddressPair)>,
) -> io::Result<()> {
    for buffer in room {
        came.push(take(buffer)?);
    }
    Ok(())
}

/// For systems that support neither batches nor the destination address of a datagram.
#[cfg(not(target_os = "linux"))]
mod many {
    use std::net::{IpAddr, SocketAddr};

    use socket2::Socket;

    use super::batch::{Buffer, Came, Kind};
    use super::{AddressPair, ErrorKind, io};

    pub(super) fn name_local(_: &Socket, _is_v6: bool) -> bool {
        false
    }

    pub(super) fn receive(_: &Socket, _: Kind, _: &mut [Buffer], _: &mut Came) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn receive_one(_: &Socket, _: &mut [u8]) -> io::Result<(usize, AddressPair)> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn send<'a>(
        _: &Socket,
        _: Kind,
        _: impl Iterator<Item = (AddressPair, &'a [u8])>,
    ) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn send_one(
        socket: &Socket,
        datagram: &[u8],
        peer: SocketAddr,
        _: IpAddr,
    ) -> io::Result<usize> {
        socket.send_to(datagram, &peer.into())
    }
}
