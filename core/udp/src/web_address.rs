//! [`WebAddress`]: the address at which browsers dial a server, and the certificates that they accept there.
//!
//! ```text
//! play.example.org:7778,192.168.1.5:7778#<hex of the hash>,<hex of the next one's>
//! ```
//!
//! Invariant: at least one server. It is not sealed in a ticket, because it does not prove anything: a wrong address
//! only leads to a server that cannot open the ticket.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayVec;

use crate::address::ServerAddress;
use crate::claims::SERVERS_MAX;
use crate::secrets::{from_hex, to_hex};

/// The maximum number of certificates: the current one and the next one.
pub const WEB_HASHES_MAX: usize = 2;
const HASH_BYTES: usize = 32;

/// The address at which browsers dial a server with WebTransport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    servers: ArrayVec<ServerAddress, SERVERS_MAX>,
    hashes: ArrayVec<[u8; HASH_BYTES], WEB_HASHES_MAX>,
}

/// The error for a text that is not a web address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected ADDRESS[,ADDRESS...][#HASH[,HASH]]: 1 to {SERVERS_MAX} addresses, and 1 to {WEB_HASHES_MAX} SHA-256 hashes for a \
     self-signed certificate, such as play.example.org:7778#ab01…"
)]
pub struct NotAWebAddress;

impl WebAddress {
    /// All `servers` are dialled. `hashes` are the SHA-256 hashes of the certificates that a browser accepts there. If
    /// there are none, it accepts certificates signed by an authority.
    ///
    /// # Errors
    /// If there is no server, or more than [`SERVERS_MAX`] servers or [`WEB_HASHES_MAX`] hashes.
    pub fn new(
        servers: &[ServerAddress],
        hashes: &[[u8; 32]],
    ) -> Result<WebAddress, NotAWebAddress> {
        let web = WebAddress {
            servers: servers.try_into().map_err(|_| NotAWebAddress)?,
            hashes: hashes.try_into().map_err(|_| NotAWebAddress)?,
        };
        (!web.servers.is_empty())
            .then_some(web)
            .ok_or(NotAWebAddress)
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[ServerAddress] {
        &self.servers
    }

    /// The hashes of certificates, the current one first.
    #[must_use]
    pub fn hashes(&self) -> &[[u8; 32]] {
        &self.hashes
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.hashes.len() as u8);
        out.extend_from_slice(self.hashes.as_flattened());
        for server in &self.servers {
            server.write(out);
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<WebAddress> {
        let (&count, mut rest) = bytes.split_first()?;
        let mut hashes = ArrayVec::<_, WEB_HASHES_MAX>::new();
        for _ in 0..count {
            let (hash, behind) = rest.split_first_chunk()?;
            hashes.try_push(*hash).ok()?;
            rest = behind;
        }
        let mut servers = ArrayVec::<_, SERVERS_MAX>::new();
        while !rest.is_empty() {
            servers.try_push(ServerAddress::read(&mut rest)?).ok()?;
        }
        WebAddress::new(&servers, &hashes).ok()
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, server) in self.servers.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{server}")?;
        }
        for (n, hash) in self.hashes.iter().enumerate() {
            let before = if n > 0 { "," } else { "#" };
            write!(f, "{before}{}", to_hex(hash))?;
        }
        Ok(())
    }
}

impl FromStr for WebAddress {
    type Err = NotAWebAddress;

    fn from_str(text: &str) -> Result<WebAddress, NotAWebAddress> {
        let (servers, hashes) = match text.split_once('#') {
            Some((servers, hashes)) => (servers, Some(hashes)),
            None => (text, None),
        };
        let servers = servers.split(',').map(|one| one.parse().ok());
        let hash = |hex: &str| <[u8; HASH_BYTES]>::try_from(from_hex(hex)?).ok();
        let hashes = hashes.into_iter().flat_map(|all| all.split(',')).map(hash);
        let (servers, hashes): (Option<Vec<_>>, Option<Vec<_>>) =
            (servers.collect(), hashes.collect());
        match (servers, hashes) {
            (Some(servers), Some(hashes)) => WebAddress::new(&servers, &hashes),
            _ => Err(NotAWebAddress),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_address_survives_a_round_trip_through_text_and_bytes() {
        let (one, two) = ("a1".repeat(32), "0b".repeat(32));
        for text in [
            "127.0.0.1:7778".to_owned(),
            format!("play.example.org:7778,[2001:db8::5]:9#{one}"),
            format!("a:1,b:2,c:3,d:4#{one},{two}"),
        ] {
            let web: WebAddress = text.parse().unwrap();
            assert_eq!(web.to_string(), text);
            let mut bytes = Vec::new();
            web.write(&mut bytes);
            assert_eq!(WebAddress::read(&bytes), Some(web));
            for cut in 0..bytes.len() {
                let cut = WebAddress::read(&bytes[..cut]);
                assert_ne!(cut.map(|web| web.to_string()), Some(text.clone()));
            }
        }
    }

    #[test]
    fn a_text_that_is_not_a_web_address_is_refused() {
        let hash = "a1".repeat(32);
        for text in [
            String::new(),
            "#".to_owned(),
            format!("#{hash}"),
            "127.0.0.1".to_owned(),
            "a:1#".to_owned(),
            format!("a:1#{hash}00"),
            format!("a:1#{hash},{hash},{hash}"),
            "a:1,b:2,c:3,d:4,e:5".to_owned(),
        ] {
            assert_eq!(text.parse::<WebAddress>(), Err(NotAWebAddress), "{text:?}");
        }
    }
}
