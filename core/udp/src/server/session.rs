//! [`ServerSession`]: one session of the server's endpoint, its rate and its care; [`ServerKey`]: the key that it came by.

use std::time::Duration;

use twinstep_protocol::datagrams::{CUT_BYTES_MAX, Datagrams};
use twinstep_protocol::identity::SessionId;

use crate::aead::KEY_BYTES;
use crate::claims::Holder;
use crate::keys::TicketKey;
use crate::netcode::CipherServer;
use crate::send_queue::{AddressPair, SendQueue};

/// Whoever was heard and sent to within this needs no care; whom matches know is sent something twice a second, so that keep-alives
/// are for others.
const HEARD_LATELY: Duration = Duration::from_millis(500);
const SENT_LATELY: Duration = Duration::from_millis(600);
/// Whoever needs care gets it so often; whoever is just connecting gets it always.
const TEND_EVERY: Duration = Duration::from_millis(250);

/// What goes with one key.
pub(super) struct ServerKey {
    pub(super) id: u64,
    pub(super) secret: [u8; KEY_BYTES],
    pub(super) cipher: CipherServer,
    /// Whether the key is alive. Sessions that came by one that is not play on.
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

/// One session of the endpoint.
pub(super) struct ServerSession {
    pub(super) key: usize,
    pub(super) slot: usize,
    /// Where its client is, and which address of this machine that client dialled.
    pub(super) path: AddressPair,
    pub(super) bucket: TokenBucket,
    pub(super) datagrams: Datagrams,
    /// Whether the client has shown that it knows that it is connected.
    pub(super) is_confirmed: bool,
    /// Since when it may speak.
    pub(super) admitted: Option<Duration>,
    /// The holder of its ticket.
    pub(super) of: Holder,
    /// Whether it is in a match, or on its way into it.
    pub(super) is_settled: bool,
    /// Whether its identity had a seat when it came, and it is not settled yet.
    pub(super) returns: bool,
    /// The newest of its datagrams that was opened.
    pub(super) newest: u64,
    /// When it was last heard, when it was sent to, and when the cipher was last asked whether it is alive.
    pub(super) heard: Duration,
    pub(super) sent: Duration,
    pub(super) tended: Duration,
}

impl ServerSession {
    /// Whether the cipher has to look after it: it is just connecting, or has been silent or not been sent to for a while.
    pub(super) fn needs_care(&self, now: Duration) -> bool {
        let is_quiet = self.is_untold(now) || now.saturating_sub(self.heard) >= HEARD_LATELY;
        !self.is_confirmed || is_quiet && now.saturating_sub(self.tended) >= TEND_EVERY
    }

    /// Sends what finds out which sizes its path passes.
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
            // Lost, as on any line, where the queue is full.
            let _ = cipher.seal(self.slot, id.0, &datagram[..bytes], out);
        }
    }

    /// Whether nothing was sent to it for a while.
    pub(super) fn is_untold(&self, now: Duration) -> bool {
        now.saturating_sub(self.sent) >= SENT_LATELY
    }
}

/// Datagrams a second that a session may send in the long run.
pub const DATAGRAMS_PER_SECOND: u64 = 150;
/// Datagrams that a session may send at once after a pause.
pub const DATAGRAMS_BURST: u64 = 64;

/// A token is this many parts: then a nanosecond fills a whole number of them.
const TOKEN: u64 = 1_000_000_000;

/// How many datagrams one session may send: in any span of `t` seconds at most `BURST + RATE · t`.
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

    /// Whether a datagram that arrives `now` may pass.
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
    fn a_burst_passes_and_then_the_rate() {
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
    fn time_that_goes_back_gives_no_tokens() {
        let mut bucket = TokenBucket::full(Duration::from_secs(10));
        assert_eq!(
            passed(&mut bucket, Duration::from_secs(10), Duration::ZERO, 100),
            64
        );
        assert!(!bucket.take(Duration::ZERO));
        assert!(!bucket.take(Duration::from_secs(10)));
    }
}
