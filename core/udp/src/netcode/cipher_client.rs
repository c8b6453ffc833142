//! [`CipherClient`]: the client's half of netcode. It dials the ticket's addresses in order, with new keys for each
//! address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use renetcode2::{ClientAuthentication, ConnectToken, DisconnectReason, NetcodeClient};

use super::{PRIVATE_BYTES, REQUEST, VERSION_INFO, is_netcodes, send_goodbyes};
use crate::aead::{NONCE_BYTES, TAG_BYTES};
use crate::dial::{DIAL_BYTES, RefusalReason, SessionKeys};
use crate::send_queue::SendQueue;
use crate::tickets::Ticket;
use crate::transport::CloseReason;

pub(crate) struct CipherClient {
    ticket: Ticket,
    server: usize,
    keys: SessionKeys,
    dial: [u8; DIAL_BYTES],
    netcode: NetcodeClient,
    refused: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CipherState {
    Connecting,
    Connected,
    Closed(CloseReason),
}

/// The address for a ticket that contains only names, before the socket's owner has looked them up.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

fn sockets(ticket: &Ticket) -> impl Iterator<Item = SocketAddr> + '_ {
    ticket.servers().filter_map(|server| server.socket())
}

impl CipherClient {
    pub(crate) fn new(ticket: &Ticket) -> CipherClient {
        CipherClient::at(ticket.clone(), 0)
    }

    fn at(ticket: Ticket, server: usize) -> CipherClient {
        let (keys, dial) = SessionKeys::draw(&ticket);
        let mut servers = [None; 32];
        servers[0] = sockets(&ticket).nth(server).or(Some(NOWHERE));
        let connect_token = ConnectToken {
            client_id: keys.session,
            version_info: VERSION_INFO,
            protocol_id: ticket.protocol_id(),
            create_timestamp: 0,
            // The server judges the lifetime by its own clock.
            expire_timestamp: u64::from(u32::MAX),
            xnonce: [0; NONCE_BYTES],
            socket_id: 0,
            server_addresses: servers,
            client_to_server_key: keys.up_key,
            server_to_client_key: keys.down_key,
            private_data: [0; PRIVATE_BYTES + TAG_BYTES],
            timeout_seconds: i32::from(ticket.timeout_s()),
        };
        let authentication = ClientAuthentication::Secure { connect_token };
        let netcode = NetcodeClient::new(Duration::ZERO, authentication);
        CipherClient {
            ticket,
            server,
            keys,
            dial,
            netcode: netcode.expect("only tokens made on the spot can fail"),
            refused: None,
        }
    }

    pub(crate) fn server(&self) -> SocketAddr {
        self.netcode.server_addr()
    }

    pub(crate) fn silence(&self) -> Duration {
        self.netcode.time_since_last_received_packet()
    }

    /// Handles a sane datagram from [`server`](CipherClient::server). Returns the payload, if the datagram contains
    /// one.
    pub(crate) fn handle<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        if is_netcodes(datagram) {
            return self.netcode.process_packet(datagram);
        }
        if self.netcode.is_connecting() {
            let reason = self.keys.read_refusal(datagram);
            self.refused = reason.map(|reason| match reason {
                RefusalReason::Full => CloseReason::Denied,
                RefusalReason::Expired => CloseReason::Expired,
                RefusalReason::Superseded => CloseReason::Superseded,
            });
        }
        None
    }

    /// Advances time and queues the datagrams due: dials, responses, keep-alives.
    pub(crate) fn advance(&mut self, elapsed: Duration, out: &mut SendQueue) {
        if self.netcode.is_disconnected() || self.refused.is_some() {
            return;
        }
        self.netcode.update(elapsed);
        let is_silent = self.state() == CipherState::Closed(CloseReason::NoAnswer);
        if is_silent && self.server + 1 < sockets(&self.ticket).count() {
            *self = CipherClient::at(self.ticket.clone(), self.server + 1);
        }
        if let Some((bytes, to)) = self.netcode.generate_ping() {
            let _ = match bytes[0] {
                // netcode's own request is never sent: the dial replaces it.
                REQUEST => out.push(to, &self.dial),
                _ => out.push(to, bytes),
            };
        }
    }

    #[must_use]
    pub(crate) fn seal(&mut self, payload: &[u8], out: &mut SendQueue) -> bool {
        self.netcode
            .generate_payload_packet(payload)
            .is_ok_and(|(to, sealed)| out.push(to, sealed))
    }

    pub(crate) fn disconnect(&mut self, out: &mut SendQueue) {
        if self.netcode.is_disconnected() {
            return;
        }
        let established = self.netcode.is_connected();
        if let Ok((to, goodbye)) = self.netcode.disconnect()
            && established
        {
            send_goodbyes(to, Some(goodbye), out);
        }
    }

    pub(crate) fn state(&self) -> CipherState {
        if let Some(reason) = self.refused {
            return CipherState::Closed(reason);
        }
        match self.netcode.disconnect_reason() {
            None if self.netcode.is_connected() => CipherState::Connected,
            None => CipherState::Connecting,
            Some(reason) => CipherState::Closed(match reason {
                DisconnectReason::ConnectTokenExpired => CloseReason::Expired,
                DisconnectReason::ConnectionTimedOut => CloseReason::TimedOut,
                DisconnectReason::ConnectionResponseTimedOut
                | DisconnectReason::ConnectionRequestTimedOut => CloseReason::NoAnswer,
                DisconnectReason::ConnectionDenied => CloseReason::Denied,
                DisconnectReason::DisconnectedByClient => CloseReason::ByClient,
                DisconnectReason::DisconnectedByServer => CloseReason::ByServer,
            }),
        }
    }
}
