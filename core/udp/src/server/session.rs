//! [`ServerSession`]: one session of the server's endpoint, with its rate limit; [`ServerKey`]: the key of its ticket.

use std::time::Duration;

use twinstep_protocol::datagrams::{CUT_BYTES_MAX, Datagrams};
use twinstep_protocol::identity::SessionId;

use crate::aead::KEY_BYTES;
use crate::claims::Holder;
use crate::keys::TicketKey;
use crate::netcode::CipherServer;
use crate::send_queue::{AddressPair, SendQueue};

/// A session is served if no datagram was received from it for this long, so that a time-out is detected.
const QUIET_AFTER: Duration = Duration::from_millis(500);
/// A session gets keep-alives if no packet was sent to it for this long. Matches send to their clients twice a second,
/// so only other sessions need keep-alives.
const SENT_LATELY: Duration = Duration::from_millis(600);
/// The interval at which an idle session is served. Connecting sessions are served by every advance.
const TEND_EVERY: Duration = Duration::from_millis(250);

pub(super) struct ServerKey {
    pub(super) id: u64,
    pub(super) secret: [u8; KEY_BYTES],
    pub(super) cipher: CipherServer,
    /// Whether the key accepts tickets. Sessions of a closed key continue.
    pub(super) is_open: bool,
}

impl ServerKey {
    pub(super) fn new(
        key: &TicketKey,
        game: &str,
        wire_version: u32,
        sessions_max: usize,
    ) -> ServerKey {
        let id = key.protocol_id(game, wire_version);
        ServerKey {
            id,
            secret: *key.secret(),
            cipher: CipherServer::new(id, sessions_max),
            is_open: true,
        }
    }
}

pub(super) struct ServerSession {
    pub(super) key: usize,
    pub(super) slot: usize,
    /// The client's address, and the local address that the client dialled.
    pub(super) path: AddressPair,
    pub(super) bucket: TokenBucket,
    pub(super) datagrams: Datagrams,
    /// Whether a datagram has shown that the client knows that it is connected.
    pub(super) is_confirmed: bool,
    pub(super) admitted: Option<Duration>,
    pub(super) of: Holder,
    pub(super) is_settled: bool,
    /// Whether the identity had a seat when the session connected, and the session is not settled yet.
    pub(super) returns: bool,
    /// The highest sequence number of the session's authentic datagrams.
    pub(super) newest: u64,
    pub(super) received_at: Duration,
    pub(super) sent: Duration,
    /// When the cipher last served the session.
    pub(super) tended: Duration,
}

impl ServerSession {
    /// Returns `true` if the cipher must serve the session: it is connecting; or no datagram was received from it or no
    /// packet sent to it recently, and it was not served within `TEND_EVERY`.
    pub(super) fn needs_care(&self, now: Duration) -> bool {
        let is_quiet = self.is_untold(now) || now.saturating_sub(self.received_at) >= QUIET_AFTER;
        !self.is_confirmed || is_quiet && now.saturating_sub(self.tended) >= TEND_EVERY
    }

    /// Sends the probes and reports that detect which datagram sizes the session's path passes.
    pub(super) fn send_beside(
        &mut self,
        now: Duration,
        id: SessionId,
        keys: &mut [ServerKey],
        out: &mut SendQueue,
    ) {
        out.leave_from(self.path.local);
        let mut datagram = [0; CUT_BYTES_MAX];
        while let Some(bytes) = self.datagrams.poll(now, &mut datagram) {
            let cipher = &mut keys[self.key].cipher;
            // If the queue is full the datagram is lost, as on any network.
            let _ = cipher.seal(self.slot, id.0, &datagram[..bytes], out);
        }
    }

    pub(super) fn is_untold(&self, now: Duration) -> bool {
        now.saturating_sub(self.sent) >= SENT_LATELY
    }
}

/// The maximum number of datagrams per second from a session in the long run.
pub const DATAGRAMS_PER_SECOND: u64 = 150;
/// The maximum number of datagrams from a session in a burst after a pause.
pub const DATAGRAMS_BURST: u64 = 64;

/// The number of parts of a token. A nanosecond adds a whole number of parts.
const TOKEN: u64 = 1_000_000_000;

/// The rate limit of a session's datagrams: at most `BURST + RATE · t` in any span of `t` seconds.
pub(super) struct TokenBucket {
    parts: u64,
    filled_at: Duration,
}

impl TokenBucket {
    pub(crate) fn full(now: Duration) -> TokenBucket {
        TokenBucket {
            parts: DATAGRAMS_BURST * TOKEN,
            filled_at: now,
        }
    }

    pub(crate) fn take(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.filled_at);
        self.filled_at = self.filled_at.max(now);
        let filled = u64::try_from(elapsed.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_mul(DATAGRAMS_PER_SECOND);
        self.parts = self
            .parts
            .saturating_add(filled)
            .min(DATAGRAMS_BURST * TOKEN);
        let passes = self.parts >= TOKEN;
        if passes {
            self.parts -= TOKEN;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(bucket: &mut TokenBucket, from: Duration, step: Duration, datagrams: u32) -> u32 {
        let arrivals = (0..datagrams).map(|i| from + step * i);
        arrivals.filter(|&at| bucket.take(at)).count() as u32
    }

    #[test]
    fn a_burst_passes_and_then_datagrams_pass_at_the_rate() {
        let mut bucket = TokenBucket::full(Duration::ZERO);
        let second = Duration::from_secs(1);
        assert_eq!(
            passed(&mut bucket, Duration::ZERO, Duration::ZERO, 1_000),
            64
        );
        assert_eq!(passed(&mut bucket, second, second / 1_000, 1_000), 64 + 149);
        assert_eq!(passed(&mut bucket, second * 60, second / 120, 120), 120);
    }

    #[test]
    fn time_going_back_gives_no_tokens() {
        let mut bucket = TokenBucket::full(Duration::from_secs(10));
        assert_eq!(
            passed(&mut bucket, Duration::from_secs(10), Duration::ZERO, 100),
            64
        );
        assert!(!bucket.take(Duration::ZERO));
        assert!(!bucket.take(Duration::from_secs(10)));
    }
}
