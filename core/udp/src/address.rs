//! [`ServerAddress`]: the address at which a client dials a server: an IP address, or a host name, which every dial
//! looks up ([`LookUp`]).
//!
//! Invariant: a name is valid for a resolver and in lower case, so that two names are equal if and only if their texts
//! are.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrayvec::ArrayString;
use xxhash_rust::xxh3::xxh3_64;

/// The longest host name, in bytes.
pub const HOST_MAX_BYTES: usize = 64;

/// The maximum number of a name's addresses to dial.
const LOOKED_UP_MAX: usize = 4;

const IPV4: u8 = 4;
const IPV6: u8 = 6;
const NAME: u8 = b'n';

/// The address at which a client dials a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerAddress {
    /// An IP address and a port.
    Socket(SocketAddr),
    /// A host name and a port. Every dial looks the name up, so the host's address may change.
    Name {
        /// The host name in lower case, for example `play.example.org`.
        host: ArrayString<HOST_MAX_BYTES>,
        /// The UDP port.
        port: u16,
    },
}

/// The error for a text that is not a server's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected ADDRESS:PORT or NAME:PORT (a name of at most {HOST_MAX_BYTES} bytes), such as 203.0.113.7:7777, [2001:db8::7]:7777 \
     or play.example.org:7777"
)]
pub struct NotAnAddress;

impl ServerAddress {
    /// The socket address. Returns `None` for a name.
    #[must_use]
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            ServerAddress::Socket(at) => Some(*at),
            ServerAddress::Name { .. } => None,
        }
    }

    /// The UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            ServerAddress::Socket(at) => at.port(),
            ServerAddress::Name { port, .. } => *port,
        }
    }

    /// The same machine, at another port.
    #[must_use]
    pub fn with_port(mut self, to: u16) -> ServerAddress {
        match &mut self {
            ServerAddress::Socket(at) => at.set_port(to),
            ServerAddress::Name { port, .. } => *port = to,
        }
        self
    }

    /// Returns `true` if both addresses belong to the same machine. Ports are ignored.
    #[must_use]
    pub fn is_machine_of(&self, other: &ServerAddress) -> bool {
        match (self, other) {
            (ServerAddress::Socket(one), ServerAddress::Socket(other)) => one.ip() == other.ip(),
            (ServerAddress::Name { host: one, .. }, ServerAddress::Name { host: other, .. }) => {
                one == other
            }
            _ => false,
        }
    }

    /// Looks up the current socket addresses. A name may have several. Blocks while the system's resolver works, so do
    /// not call this on a thread that others need.
    ///
    /// # Errors
    /// If the name is unknown, or there is no network.
    pub fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            ServerAddress::Socket(at) => Ok(vec![*at]),
            ServerAddress::Name { host, port } => {
                let found = (host.as_str(), *port).to_socket_addrs()?;
                Ok(found.take(LOOKED_UP_MAX).collect())
            }
        }
    }

    /// Writes kind, length and bytes. An IPv6 scope is left out, because it only concerns one machine.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let kind_at = out.len();
        out.extend([0, 0]);
        out.extend(self.port().to_le_bytes());
        out[kind_at] = match self {
            ServerAddress::Socket(at) => match at.ip() {
                IpAddr::V4(ip) => {
                    out.extend(ip.octets());
                    IPV4
                }
                IpAddr::V6(ip) => {
                    out.extend(ip.octets());
                    IPV6
                }
            },
            ServerAddress::Name { host, .. } => {
                out.extend(host.as_bytes());
                NAME
            }
        };
        out[kind_at + 1] = (out.len() - kind_at - 2) as u8;
    }

    pub(crate) fn read(bytes: &mut &[u8]) -> Option<ServerAddress> {
        let (&[kind, len], rest) = bytes.split_first_chunk()?;
        let (fields, rest) = rest.split_at_checked(usize::from(len))?;
        *bytes = rest;
        let (port, fields) = fields.split_first_chunk()?;
        let port = u16::from_le_bytes(*port);
        let ip: IpAddr = match kind {
            IPV4 => <[u8; 4]>::try_from(fields).ok()?.into(),
            IPV6 => <[u8; 16]>::try_from(fields).ok()?.into(),
            NAME => {
                let host = std::str::from_utf8(fields).ok()?;
                return ServerAddress::named(host, port).ok();
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, port).into())
    }

    /// The hash of this address, as stored in a sealed pass. The server compares it with the hashes of its own
    /// addresses.
    pub(crate) fn hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(4 + HOST_MAX_BYTES);
        self.write(&mut bytes);
        xxh3_64(&bytes)
    }

    fn named(host: &str, port: u16) -> Result<ServerAddress, NotAnAddress> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_label = |label: &str| {
            let inside = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
            (1..=63).contains(&label.len())
                && label.bytes().all(inside)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // A last label that consists only of digits is a mistyped IPv4 address.
        let ends_in_number = |label: &str| label.bytes().all(|c| c.is_ascii_digit());
        let is_name =
            host.split('.').all(is_label) && !host.rsplit('.').next().is_some_and(ends_in_number);
        let host = ArrayString::from(&host.to_ascii_lowercase()).map_err(|_| NotAnAddress)?;
        match is_name {
            true => Ok(ServerAddress::Name { host, port }),
            false => Err(NotAnAddress),
        }
    }
}

impl From<SocketAddr> for ServerAddress {
    fn from(at: SocketAddr) -> ServerAddress {
        ServerAddress::Socket(at)
    }
}

impl PartialEq<SocketAddr> for ServerAddress {
    fn eq(&self, other: &SocketAddr) -> bool {
        self.socket() == Some(*other)
    }
}

impl FromStr for ServerAddress {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<ServerAddress, NotAnAddress> {
        if let Ok(at) = text.parse::<SocketAddr>() {
            return Ok(at.into());
        }
        let (host, port) = text.rsplit_once(':').ok_or(NotAnAddress)?;
        let port = port.parse().map_err(|_| NotAnAddress)?;
        ServerAddress::named(host, port)
    }
}

/// Prints the text form, like a [`SocketAddr`], because logs print lists of addresses.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Socket(at) => at.fmt(f),
            ServerAddress::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The longest time to wait for a resolver.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks up a ticket's host names for each dial, on a separate thread. The system's resolver may take a long time, and
/// a game's frame must not wait for it.
pub(crate) struct LookUp {
    sockets: Vec<ServerAddress>,
    began: Duration,
    /// In a mutex, so that the client is `Sync`.
    found: Mutex<Receiver<Vec<ServerAddress>>>,
}

impl LookUp {
    /// Starts the lookup. Returns `None` if no address is a host name.
    pub(crate) fn begin(
        servers: impl Iterator<Item = ServerAddress>,
        now: Duration,
    ) -> Option<LookUp> {
        let servers: Vec<ServerAddress> = servers.collect();
        let is_socket = |server: &ServerAddress| server.socket().is_some();
        let sockets: Vec<_> = servers.iter().copied().filter(is_socket).collect();
        if sockets.len() == servers.len() {
            return None;
        }
        let (answer, found) = sync_channel(1);
        let look = move || {
            // A name without an address must not prevent the others from being dialled.
            let sockets = servers
                .iter()
                .flat_map(|server| server.look_up().unwrap_or_default());
            // The client may have ended during the look-up.
            let _ = answer.send(sockets.map(ServerAddress::from).collect());
        };
        // If the thread cannot be started, only the IP addresses are dialled.
        let _ = thread::Builder::new()
            .name("twinstep-names".to_owned())
            .spawn(look);
        Some(LookUp {
            sockets,
            began: now,
            found: Mutex::new(found),
        })
    }

    /// The addresses, or `None` while they are being looked up; after [`PATIENCE`], only the IP addresses, if any.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Vec<ServerAddress>> {
        let found = self.found.get_mut().unwrap_or_else(PoisonError::into_inner);
        match found.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) if now.saturating_sub(self.began) < PATIENCE => None,
            Err(_) => Some(self.sockets.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_survive_a_round_trip_through_text_and_bytes() {
        for (text, shown) in [
            ("203.0.113.7:7777", "203.0.113.7:7777"),
            ("[2001:db8::7]:1", "[2001:db8::7]:1"),
            ("localhost:7777", "localhost:7777"),
            ("Play.Example.ORG.:65535", "play.example.org:65535"),
            ("my_host-1:7", "my_host-1:7"),
        ] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            let mut bytes = Vec::new();
            address.write(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(ServerAddress::read(&mut rest), Some(address));
            assert!(rest.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(ServerAddress::read(&mut &bytes[..end]), None, "{text} cut");
            }
            let other: ServerAddress = "other.example:7777".parse().unwrap();
            assert_ne!(address.hash(), other.hash());
        }
    }

    #[test]
    fn a_name_that_no_resolver_accepts_is_refused() {
        let long = format!("{}.{}:1", "a".repeat(40), "b".repeat(40));
        let label = format!("{}:1", "a".repeat(64));
        for text in [
            "",
            "host",
            "host:",
            ":7777",
            "host:65536",
            "host:x",
            "a..b:1",
            "-a:1",
            "a-:1",
            "a b:1",
            "é:1",
            "1.2.3:1",
            "1.2.3.4.5:1",
            "2001:db8::7:1",
            "http://a:1",
            &long,
            &label,
        ] {
            assert_eq!(text.parse::<ServerAddress>(), Err(NotAnAddress), "{text}");
        }
    }

    #[test]
    fn after_a_resolver_timeout_only_the_ip_addresses_are_dialled() {
        let look_up = |servers: &[&str]| {
            let servers = servers.iter().map(|at| at.parse().unwrap());
            LookUp::begin(servers, Duration::ZERO)
        };
        assert!(look_up(&["127.0.0.1:7"]).is_none());
        for (servers, sockets) in [
            (&["localhost:7", "127.0.0.1:7"][..], 1),
            (&["localhost:7"], 0),
        ] {
            let mut look_up = look_up(servers).unwrap();
            let (silent, found) = sync_channel(1);
            look_up.found = Mutex::new(found);
            assert!(look_up.poll(PATIENCE - Duration::from_millis(1)).is_none());
            assert_eq!(
                look_up.poll(PATIENCE).map(|found| found.len()),
                Some(sockets)
            );
            drop(silent);
            let polled = look_up.poll(Duration::ZERO);
            assert_eq!(polled.map(|found| found.len()), Some(sockets));
        }
    }
}
