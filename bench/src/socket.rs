//! The socket of a peer's server.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// What our host asks for: some 40 ms of 2,000 players.
const HELD_BYTES: usize = 4 << 20;

/// A socket for a peer's server with as much room as our host gives to its own: with what the system gives by itself,
/// datagrams of some 250 players are lost between two looks of a server that looks once a tick.
pub(crate) fn bind(listen: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(listen)?;
    let room = socket2::SockRef::from(&socket);
    room.set_recv_buffer_size(HELD_BYTES)?;
    room.set_send_buffer_size(HELD_BYTES)?;
    Ok(socket)
}
