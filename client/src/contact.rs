//! [`Contact`]: whether the server is there: met, lost, cut off, or found again over another path.
//!
//! ```text
//!  begin ─▶ met ── lose ──▶ lost ── recover ──▶ met: the old path speaks again
//!                             └── go_back ─▶ on its way back ── welcome ──▶ a world follows ─┐
//!                                                  └─────────────────────── found ◀──────────┘
//! ```
//!
//! Invariant: an absence that began ends once, by recovering or by returning, and is added up once.

use std::time::Duration;

use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Welcome;

use crate::stats::SessionStats;

/// A client that was not advanced for longer slept: its machine was suspended, or its process stopped. Limits of waiting
/// count this much of the gap; what came meanwhile waits in the socket.
pub(crate) const AWAKE_MAX: Duration = Duration::from_millis(500);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Contact {
    /// When the link began, or was found again.
    met_at: Duration,
    absence: Absence,
    /// The server ended the transport, and lets this player return.
    cut: Option<CloseCode>,
    /// On its way back into its match.
    returning: Option<Returning>,
    held_up: HeldUp,
}

/// For how long, and how often, the server was lost.
#[derive(Default)]
struct Absence {
    /// Since when it is.
    since: Option<Duration>,
    /// How long it was, added up.
    away: Duration,
    /// How often the session came back over another transport.
    returns: u64,
    /// How often the server was silent, and then heard again by the same transport.
    silences: u64,
}

impl Absence {
    fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.away += now.saturating_sub(since);
        }
    }
}

/// A session on its way back into its match.
struct Returning {
    /// What the server said; a world follows.
    welcome: Option<Welcome>,
}

/// How long a server has been giving nothing to a session that waits for its world.
#[derive(Default)]
struct HeldUp {
    since: Option<Duration>,
    /// What had come by then: whether a welcome, and bytes of a world.
    had: (bool, usize),
    /// When the first bytes of the world were there, and how many.
    first: Option<(Duration, usize)>,
    /// When it was looked at last. Of a longer time only [`AWAKE_MAX`] counts.
    looked_at: Duration,
}

impl Contact {
    /// The session begins to play.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.met_at = now;
    }

    /// The server is not heard any more; whether that is news.
    pub(crate) fn lose(&mut self, now: Duration) -> bool {
        let is_news = self.absence.since.is_none();
        self.absence.since.get_or_insert(now);
        is_news
    }

    /// The server is heard again as before; whether it was lost.
    pub(crate) fn recover(&mut self, now: Duration) -> bool {
        let was_lost = self.absence.since.is_some() && !self.goes_back();
        if was_lost {
            self.absence.end(now);
            self.absence.silences += 1;
        }
        was_lost
    }

    /// Another path is connected, by which the session greets the server anew.
    pub(crate) fn take_path(&mut self, now: Duration) {
        self.cut = None;
        self.met_at = now;
    }

    /// The session is in a match, to which it returns over another path.
    pub(crate) fn go_back(&mut self) {
        self.returning = Some(Returning { welcome: None });
    }

    /// Whether it is on its way back over another path.
    pub(crate) fn goes_back(&self) -> bool {
        self.returning.is_some()
    }

    /// Whether the server is lost, or the session on its way back.
    pub(crate) fn is_away(&self) -> bool {
        self.goes_back() || self.absence.since.is_some()
    }

    /// The server knows a session that is on its way back, and sends it a world.
    pub(crate) fn record_welcome(&mut self, welcome: Welcome) {
        self.returning = Some(Returning {
            welcome: Some(welcome),
        });
    }

    /// On its way back: whether the server knows it.
    pub(crate) fn is_welcome(&self) -> Option<bool> {
        let returning = self.returning.as_ref();
        returning.map(|returning| returning.welcome.is_some())
    }

    /// What the server said to a session that is on its way back; from now on it is not.
    pub(crate) fn take_welcome(&mut self) -> Option<Welcome> {
        self.returning.take()?.welcome
    }

    /// The session is back in its match.
    pub(crate) fn found(&mut self, now: Duration) {
        self.returning = None;
        self.absence.end(now);
        self.absence.returns += 1;
        self.met_at = now;
    }

    /// When the server was met, over the path that there is.
    pub(crate) fn met_at(&self) -> Duration {
        self.met_at
    }

    /// The server ended the transport, and lets this player return.
    pub(crate) fn record_cut(&mut self, code: CloseCode) {
        self.cut = Some(code);
    }

    /// Why the server ended the transport, if it did.
    pub(crate) fn cut(&self) -> Option<CloseCode> {
        self.cut
    }

    /// What has come for a session that waits for its world: whether a welcome, and bytes of a world. `None`: it does
    /// not wait.
    pub(crate) fn watch(&mut self, now: Duration, has: Option<(bool, usize)>) {
        let Some(had) = has else {
            self.held_up.since = None;
            return;
        };
        let slept = now.saturating_sub(self.held_up.looked_at);
        let slept = slept.saturating_sub(AWAKE_MAX);
        let since = self.held_up.since.filter(|_| self.held_up.had == had);
        // Fewer than before are those of another one.
        let first = self.held_up.first.filter(|(_, bytes)| *bytes <= had.1);
        let begins = (had.1 > 0).then_some((now, had.1));
        self.held_up = HeldUp {
            since: Some(since.map_or(now, |since| since + slept)),
            had,
            first: first.or(begins),
            looked_at: now,
        };
    }

    /// The time that the rest of a world of this many bytes takes at its rate so far; `None` in its first second.
    pub(crate) fn rest(&self, total_bytes: usize) -> Option<Duration> {
        let (began, first) = self.held_up.first?;
        let took = self.held_up.looked_at.saturating_sub(began);
        let bytes = self.held_up.had.1;
        let came = bytes.checked_sub(first).filter(|came| *came > 0)?;
        let left = total_bytes.saturating_sub(bytes);
        (took >= Duration::from_secs(1)).then(|| took.mul_f64(left as f64 / came as f64))
    }

    /// Whether bytes of its world have come since it began to wait.
    #[cfg(feature = "udp")]
    pub(crate) fn comes_on(&self) -> bool {
        let HeldUp {
            since, had, first, ..
        } = &self.held_up;
        since.is_some() && first.is_some_and(|(_, first)| had.1 > first)
    }

    /// It waits anew.
    pub(crate) fn forget_waiting(&mut self) {
        self.held_up = HeldUp::default();
    }

    /// Whether it waits for its welcome or its world, and nothing of them came for so long.
    pub(crate) fn is_held_up(&self, now: Duration, patience: Duration) -> bool {
        let since = self.held_up.since;
        let now = now.min(self.held_up.looked_at + AWAKE_MAX);
        since.is_some_and(|since| now.saturating_sub(since) > patience)
    }

    /// Tells for how long, so far and at once, and how often the server was lost.
    pub(crate) fn fill_stats(&self, now: Duration, stats: &mut SessionStats) {
        let absence = &self.absence;
        let since = absence.since.map(|since| now.saturating_sub(since));
        stats.returns = absence.returns;
        stats.silences = absence.silences;
        stats.away_ms = (absence.away + since.unwrap_or_default()).as_secs_f64() * 1e3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding P3-B1: nobody knew how long a world would take.
    #[test]
    fn the_rest_of_a_world_takes_as_long_as_what_came_lets_expect() {
        let mut contact = Contact::default();
        let ms = Duration::from_millis;
        contact.watch(ms(0), Some((true, 0)));
        for n in 0..=50 {
            contact.watch(ms(1_000 + 100 * n), Some((true, 1_000 + 200 * n as usize)));
            let rest = contact.rest(21_000);
            assert_eq!(rest.is_some(), n >= 10, "{n}: {rest:?}");
        }
        // 10,000 bytes came in 5 s, and as many are left.
        assert_eq!(contact.rest(21_000), Some(ms(5_000)));
        // Another world begins.
        contact.watch(ms(6_100), Some((true, 500)));
        assert_eq!(contact.rest(21_000), None);
    }

    /// Finding P3-P3: a session that slept while its world was on its way gave up when it woke.
    #[test]
    fn time_that_the_client_slept_is_no_waiting_for_a_world() {
        const PATIENCE: Duration = Duration::from_secs(15);
        let second = Duration::from_secs;
        let mut contact = Contact::default();
        for tenth in 0..100 {
            contact.watch(second(1) * tenth / 10, Some((true, 7)));
        }
        // An hour later it is asked before it has looked, and after.
        let woken = second(3_610);
        assert!(!contact.is_held_up(woken, PATIENCE));
        contact.watch(woken, Some((true, 7)));
        assert!(!contact.is_held_up(woken, PATIENCE));
        for tenth in 1..50 {
            contact.watch(woken + second(1) * tenth / 10, Some((true, 7)));
        }
        assert!(contact.is_held_up(woken + second(5), PATIENCE));
        contact.watch(woken + second(5), Some((true, 8)));
        assert!(
            !contact.is_held_up(woken + second(5), PATIENCE),
            "it came on"
        );
    }
}
