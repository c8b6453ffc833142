//! [`WorldDownload`]: a world download, the part of it that is kept after a lost connection, and its progress.
//!
//! ```text
//! welcome: a world, from byte 0 ──▶ its bytes arrive ──▶ complete: dropped
//!                                      │ the connection is lost
//!                                      ▼
//! hello on a new connection: the part ──▶ welcome: the same world, from there ──▶ the rest arrives
//!                                      └▶ welcome: another world, from byte 0 ──▶ the part is dropped
//! ```
//!
//! Invariant: the bytes of at most one world are held, here or in the lane, plus [`BESIDE_BYTES_MAX`].

use std::time::Duration;

use twinstep_protocol::packet::hello::{Basis, Holds, WorldId};

/// A larger message before the welcome is a different world, so the kept part is dropped.
const BESIDE_BYTES_MAX: usize = 64 << 10;
/// The longest gap between two calls that counts as waiting. After a longer gap the machine was suspended or the
/// process stopped, and packets that arrived in that time are still in the socket.
pub(crate) const AWAKE_MAX: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct WorldDownload {
    coming: Option<WorldId>,
    /// The first bytes of a world, from an earlier connection.
    part: Option<(WorldId, Vec<u8>)>,
    held_up: HeldUp,
}

/// The time for which a session has waited for its world without progress.
#[derive(Default)]
struct HeldUp {
    since: Option<Duration>,
    /// Whether the welcome had arrived at that time, and the number of the world's bytes received by then.
    had: (bool, usize),
    /// The time when the first bytes of the world arrived, and the number of these bytes.
    first: Option<(Duration, usize)>,
    /// The time of the last check. At most [`AWAKE_MAX`] of the time between two checks counts.
    looked_at: Duration,
}

impl WorldDownload {
    /// Interrupts the download because the connection is lost. Keeps `arrived`, the part of the world received so far,
    /// so that the next connection can continue from it.
    pub(crate) fn interrupt(&mut self, arrived: Option<Vec<u8>>) {
        if let Some(world) = self.coming.take() {
            let arrived = arrived.filter(|bytes| !bytes.is_empty());
            self.part = arrived.map(|bytes| (world, bytes));
        }
    }

    pub(crate) fn holds(&self) -> Option<Holds> {
        let (world, bytes) = self.part.as_ref()?;
        Some(Holds::Part {
            world: *world,
            bytes: bytes.len() as u32,
        })
    }

    /// Starts the download announced by the server's welcome. Returns the bytes from which it continues, empty if the
    /// whole world will be sent. Returns `None` if the server continues from bytes that this client does not have.
    pub(crate) fn begin(&mut self, basis: Basis) -> Option<Vec<u8>> {
        let Basis::World { world, from } = basis else {
            return None;
        };
        // A world from byte 0 makes the kept part useless.
        let part = self.part.take().filter(|_| from > 0);
        let had = match part {
            Some((of, bytes)) => (of == world && bytes.len() == from as usize).then_some(bytes)?,
            None => (from == 0).then(Vec::new)?,
        };
        self.coming = Some(world);
        Some(had)
    }

    pub(crate) fn record_arriving(&mut self, total_bytes: usize) {
        if total_bytes > BESIDE_BYTES_MAX {
            self.part = None;
        }
    }

    pub(crate) fn end(&mut self) {
        (self.coming, self.part) = (None, None);
    }

    /// Records the progress of a session waiting for its world: whether the welcome has arrived, and the number of the
    /// world's bytes received. `has` is `None` if the session does not wait.
    pub(crate) fn watch(&mut self, now: Duration, has: Option<(bool, usize)>) {
        let Some(had) = has else {
            self.held_up.since = None;
            return;
        };
        // Time asleep moves the start of the wait, so that it does not count.
        let slept = now.saturating_sub(self.held_up.looked_at);
        let slept = slept.saturating_sub(AWAKE_MAX);
        let since = self.held_up.since.filter(|_| self.held_up.had == had);
        // If there are fewer bytes than before, they belong to a different world.
        let first = self.held_up.first.filter(|(_, bytes)| *bytes <= had.1);
        let begins = (had.1 > 0).then_some((now, had.1));
        self.held_up = HeldUp {
            since: Some(since.map_or(now, |since| since + slept)),
            had,
            first: first.or(begins),
            looked_at: now,
        };
    }

    /// Estimates the time until `total_bytes` have arrived, at the rate so far. Returns `None` for at least the first
    /// second.
    pub(crate) fn rest(&self, total_bytes: usize) -> Option<Duration> {
        let (began, first) = self.held_up.first?;
        let took = self.held_up.looked_at.saturating_sub(began);
        let bytes = self.held_up.had.1;
        let came = bytes.checked_sub(first).filter(|came| *came > 0)?;
        let left = total_bytes.saturating_sub(bytes);
        (took >= Duration::from_secs(1)).then(|| took.mul_f64(left as f64 / came as f64))
    }

    /// Returns `true` if the session is waiting and more bytes of the world have arrived after the first ones.
    #[cfg(feature = "udp")]
    pub(crate) fn is_progressing(&self) -> bool {
        let HeldUp {
            since, had, first, ..
        } = &self.held_up;
        since.is_some() && first.is_some_and(|(_, first)| had.1 > first)
    }

    pub(crate) fn forget_waiting(&mut self) {
        self.held_up = HeldUp::default();
    }

    /// Returns `true` if the session waits for its welcome or world, and neither has progressed for `patience`.
    pub(crate) fn is_held_up(&self, now: Duration, patience: Duration) -> bool {
        let since = self.held_up.since;
        // An hour of sleep between two checks does not count as waiting.
        let now = now.min(self.held_up.looked_at + AWAKE_MAX);
        since.is_some_and(|since| now.saturating_sub(since) > patience)
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::Tick;

    use super::*;

    fn world(n: u8) -> WorldId {
        WorldId::of(Tick(u32::from(n)), &[n])
    }

    /// A client that has ten bytes of world 1.
    fn interrupted() -> WorldDownload {
        let mut download = WorldDownload::default();
        let (world, from) = (world(1), 0);
        assert_eq!(download.begin(Basis::World { world, from }), Some(vec![]));
        download.interrupt(Some(vec![7; 10]));
        download
    }

    #[test]
    fn a_part_is_kept_over_any_number_of_connections_until_a_welcome() {
        let mut download = interrupted();
        let (world, bytes) = (world(1), 10);
        for _ in 0..3 {
            assert_eq!(download.holds(), Some(Holds::Part { world, bytes }));
            // The second connection ends before its welcome.
            download.interrupt(None);
        }
        let from = 10;
        assert_eq!(
            download.begin(Basis::World { world, from }),
            Some(vec![7; 10])
        );
        download.interrupt(Some(vec![7; 15]));
        let bytes = 15;
        assert_eq!(download.holds(), Some(Holds::Part { world, bytes }));
    }

    /// Finding P3-B1, law Hostile wire.
    #[test]
    fn a_download_continues_only_from_bytes_that_the_client_has() {
        for (world, from) in [(world(2), 10), (world(1), 9), (world(1), 11)] {
            assert_eq!(interrupted().begin(Basis::World { world, from }), None);
        }
        let (world, from) = (world(2), 0);
        let mut download = interrupted();
        assert_eq!(download.begin(Basis::World { world, from }), Some(vec![]));
        download.interrupt(None);
        assert_eq!(
            download.holds(),
            None,
            "the other world's part is forgotten"
        );
        let from = 1;
        assert_eq!(download.begin(Basis::World { world, from }), None);
    }

    #[test]
    fn a_large_message_before_the_welcome_drops_the_kept_part() {
        let mut download = interrupted();
        download.record_arriving(BESIDE_BYTES_MAX);
        assert!(download.holds().is_some());
        download.record_arriving(BESIDE_BYTES_MAX + 1);
        assert_eq!(download.holds(), None);
    }

    /// Finding P3-B1: no estimate of the remaining download time existed.
    #[test]
    fn the_remaining_time_of_a_download_follows_from_its_rate() {
        let mut download = WorldDownload::default();
        let ms = Duration::from_millis;
        download.watch(ms(0), Some((true, 0)));
        for n in 0..=50 {
            download.watch(ms(1_000 + 100 * n), Some((true, 1_000 + 200 * n as usize)));
            let rest = download.rest(21_000);
            assert_eq!(rest.is_some(), n >= 10, "{n}: {rest:?}");
        }
        // 10,000 bytes came in 5 s, and 10,000 are left.
        assert_eq!(download.rest(21_000), Some(ms(5_000)));
        // Another world starts.
        download.watch(ms(6_100), Some((true, 500)));
        assert_eq!(download.rest(21_000), None);
    }

    /// Finding P3-P3: a session that slept during its download gave up when it woke.
    #[test]
    fn time_asleep_does_not_count_as_waiting() {
        const PATIENCE: Duration = Duration::from_secs(15);
        let second = Duration::from_secs;
        let mut download = WorldDownload::default();
        for tenth in 0..100 {
            download.watch(second(1) * tenth / 10, Some((true, 7)));
        }
        // An hour later it is queried before and after the next check.
        let woken = second(3_610);
        assert!(!download.is_held_up(woken, PATIENCE));
        download.watch(woken, Some((true, 7)));
        assert!(!download.is_held_up(woken, PATIENCE));
        for tenth in 1..50 {
            download.watch(woken + second(1) * tenth / 10, Some((true, 7)));
        }
        assert!(download.is_held_up(woken + second(5), PATIENCE));
        download.watch(woken + second(5), Some((true, 8)));
        assert!(
            !download.is_held_up(woken + second(5), PATIENCE),
            "it progressed"
        );
    }
}
