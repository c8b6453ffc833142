//! Browser sessions over WebTransport (feature `web`).
//!
//! ```text
//!  browser ══ QUIC, TLS, HTTP/3 ══▶ WebLines ── datagram, from [100::n]:1 ──▶ ServerEndpoint, as from any UDP peer
//! ```
//!
//! A browser's connection carries the datagrams that UDP would carry, but no streams. Each connection has an address in
//! the discard-only prefix, so tickets, encryption, bounds, slots and bans work as for UDP. TLS is used because
//! browsers require it; no guarantee of Twinstep depends on it.
//!
//! Invariant: a connection whose client has not shown a valid ticket within [`TICKET_WITHIN`] is closed, and the number
//! of such connections is bounded, in total and for each address (`web/strangers.rs`).

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use twinstep_udp::{AddressPair, ServerAddress, WebAddress};

#[cfg(feature = "web")]
mod certificates;
#[cfg(feature = "web")]
mod lines;
#[cfg(feature = "web")]
mod strangers;

#[cfg(not(feature = "web"))]
pub(super) use absent::NoLines as WebLines;
#[cfg(feature = "web")]
pub(super) use lines::WebLines;

/// The time within which a new connection must present a valid ticket.
#[cfg(feature = "web")]
const TICKET_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

/// The configuration for browsers, which connect by WebTransport. Needs the feature `web`.
#[derive(Clone, Debug)]
pub struct WebConfig {
    /// The UDP address of QUIC. It needs its own port.
    pub listen: SocketAddr,
    /// The addresses that browsers dial. If empty: `listen`, or if that is not a specific address, the machines of
    /// [`HostConfig::public`](super::HostConfig::public) at the port of `listen`.
    pub public: Vec<ServerAddress>,
    /// The certificate.
    pub certificate: WebCertificate,
}

/// The certificate that a host shows to browsers.
#[derive(Clone, Debug)]
pub enum WebCertificate {
    /// The host creates the certificate, and tickets contain its hash. Browsers accept such a certificate for at most
    /// two weeks, so the next one is created a week ahead. With a file, a restarted host shows the same certificate.
    Made {
        /// The file in which certificates and their keys are kept.
        kept: Option<PathBuf>,
    },
    /// A certificate issued by an authority, in PEM. The files are read again every hour.
    Files {
        /// The certificate and its intermediates.
        chain: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

impl WebConfig {
    /// Listens at an address, with a certificate that lives as long as the host.
    #[must_use]
    pub fn new(listen: SocketAddr) -> WebConfig {
        WebConfig {
            listen,
            public: Vec::new(),
            certificate: WebCertificate::Made { kept: None },
        }
    }

    /// Checks that browsers can be accepted with this certificate. Does not listen on an address or write a file.
    ///
    /// # Errors
    /// If a certificate or key cannot be used, or the build does not have the feature `web`.
    pub fn check(&self) -> io::Result<()> {
        match &self.certificate {
            #[cfg(not(feature = "web"))]
            _ => Err(absent::no_browsers()),
            #[cfg(feature = "web")]
            WebCertificate::Made { kept } => {
                certificates::Certificates::stored(kept.as_deref()).map(drop)
            }
            #[cfg(feature = "web")]
            WebCertificate::Files { chain, key } => certificates::of_files(chain, key).map(drop),
        }
    }

    /// The addresses that browsers dial, if the socket is bound to `bound` and the host's own addresses are `public`.
    #[cfg(feature = "web")]
    fn dialled(&self, bound: SocketAddr, public: &[ServerAddress]) -> Vec<ServerAddress> {
        if !self.public.is_empty() {
            return self.public.clone();
        }
        if !bound.ip().is_unspecified() {
            return vec![bound.into()];
        }
        let mut all = Vec::new();
        for one in public.iter().map(|one| one.with_port(bound.port())) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }
}

/// Every network discards the prefix 100::/64 (RFC 6666), so no peer of the UDP socket has such an address.
const DISCARDED: [u16; 4] = [0x100, 0, 0, 0];

#[cfg(feature = "web")]
fn line_address(n: u64) -> SocketAddr {
    let ip = std::net::Ipv6Addr::from_bits(u128::from(DISCARDED[0]) << 112 | u128::from(n));
    SocketAddr::from((ip, 1))
}

/// Returns `true` for the addresses of browser connections. A datagram of the UDP socket cannot come from there.
pub(super) fn is_line(peer: SocketAddr) -> bool {
    matches!(peer, SocketAddr::V6(peer) if peer.ip().segments()[..4] == DISCARDED)
}

/// The local address of browser connections. It distinguishes their replies from UDP replies.
#[cfg(feature = "web")]
fn here() -> SocketAddr {
    line_address(0)
}

/// The totals of browser connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct WebTraffic {
    /// Connections open now.
    pub lines: u64,
    pub datagrams_in: u64,
    pub datagrams_out: u64,
    /// Datagrams that arrived faster than they were handled.
    pub lost: u64,
    /// Refused connections: too many had no valid ticket, in total or from one address.
    pub refused: u64,
    /// Connections without a valid ticket in time.
    pub mute: u64,
    /// Connections whose page opened a stream.
    pub streams: u64,
}

#[cfg_attr(not(feature = "web"), expect(dead_code, reason = "there are no lines"))]
pub(crate) enum Heard<'a> {
    Datagram(AddressPair, &'a [u8]),
    /// The connection was closed, or timed out.
    Gone(SocketAddr),
}

/// Called with the address for new tickets when the address or the certificates change.
pub(super) type OnWebChange = Box<dyn Fn(WebAddress) + Send + Sync>;

/// Replaces browser connections in a build without the feature `web`.
#[cfg(not(feature = "web"))]
mod absent {
    use std::task::{Context, Poll};
    use std::time::Duration;

    use super::*;

    pub(super) fn no_browsers() -> io::Error {
        let words = "this build does not support browsers; build it with --features web";
        io::Error::new(io::ErrorKind::Unsupported, words)
    }

    pub(crate) enum NoLines {}

    impl NoLines {
        pub(crate) async fn start(
            _: &WebConfig,
            _: &[ServerAddress],
            _: OnWebChange,
        ) -> io::Result<NoLines> {
            Err(no_browsers())
        }

        pub(crate) fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
            match *self {}
        }

        pub(crate) fn rouse(&mut self, _: bool) {
            match *self {}
        }

        pub(crate) fn receive(&mut self, _: Duration, _: usize, _: impl FnMut(Heard<'_>)) -> usize {
            match *self {}
        }

        pub(crate) fn send(&mut self, _: SocketAddr, _: &[u8]) -> bool {
            match *self {}
        }

        pub(crate) fn advance(&mut self, _: Duration, _: impl Fn(SocketAddr) -> bool) {
            match *self {}
        }

        pub(crate) fn traffic(&self) -> WebTraffic {
            match *self {}
        }
    }
}

#[cfg(all(test, feature = "web"))]
mod tests {
    use super::*;

    #[test]
    fn browsers_dial_the_machines_of_the_host_at_the_web_port() {
        let at = |text: &str| text.parse::<ServerAddress>().unwrap();
        let bound = |text: &str| text.parse::<SocketAddr>().unwrap();
        let public = [
            at("play.example.org:7777"),
            at("192.0.2.7:7777"),
            at("192.0.2.7:9"),
        ];
        let mut config = WebConfig::new(bound("0.0.0.0:7778"));
        let lines = [at("play.example.org:7778"), at("192.0.2.7:7778")];
        assert_eq!(config.dialled(bound("0.0.0.0:7778"), &public), lines);
        let one = bound("127.0.0.1:7778");
        assert_eq!(config.dialled(one, &public), [ServerAddress::from(one)]);
        config.public = vec![at("web.example.org:443")];
        assert_eq!(config.dialled(one, &public), config.public);
    }

    #[test]
    fn browser_connections_have_addresses_in_the_discard_prefix() {
        assert!(
            [0, 1, 77, u64::MAX]
                .map(line_address)
                .into_iter()
                .all(is_line)
        );
        for other in [
            "[100:0:0:1::5]:1",
            "[::]:1",
            "[2001:db8::1]:1",
            "127.0.0.1:1",
        ] {
            assert!(!is_line(other.parse().unwrap()), "{other}");
        }
    }
}
