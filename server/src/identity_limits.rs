//! An identity's usage of its limits, counted across its sessions. Reconnecting does not reset it.
//!
//! ```text
//!  session begins ─ take ─▶ Peer::limits ─ keep ─▶ AwayIdentities (away) ─ take ─▶ the next session's
//! ```
//!
//! Invariant: at most [`AWAY_MAX`] identities without a session are kept. Barred identities are dropped last.

use std::collections::VecDeque;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    COMMANDS_OPEN_MAX, HEAL_EVERY, HEALS_MAX, HEALS_WINDOW, STRIKE_WINDOW, STRIKES_MAX,
};
use twinstep_protocol::identity::{Identity, Role};
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::packet::closed::CloseCode;

use crate::cost::Cost;
use crate::seat::NotAdmitted;

const JOIN_EVERY: Duration = Duration::from_secs(5);
/// Pauses for one player, and its saves, are counted over this time. One reconnect within it counts as activity.
const MINUTE: Duration = Duration::from_secs(60);
/// An identity can make this many requests to the match within `REQUESTS_WINDOW`.
const REQUESTS_MAX: u32 = 20;
const REQUESTS_WINDOW: Duration = Duration::from_secs(10);
// An identity can save the match this many times in a minute.
const SAVES_MAX: usize = 2;
const AWAY_MAX: usize = 256;
/// An identity that was too slow is refused for this long; its client keeps trying to reconnect for twice as long.
const BAR_TOO_SLOW: Duration = Duration::from_secs(30);
/// An identity removed as too slow gets this much of its budget back, because joining takes time.
const TO_SPARE: Duration = Duration::from_secs(1);
/// An identity whose world download did not make progress may not join again for this long. Otherwise it could hold its
/// slot forever by reconnecting.
const BAR_JOIN: Duration = Duration::from_secs(30);
const BAR_STRIKES: Duration = Duration::from_secs(60);

/// An identity's usage of its limits, and its unacknowledged refusals. Kept from session to session.
#[derive(Default)]
pub(crate) struct IdentityLimits {
    /// When the identity was healed, for the heals that still count, oldest first.
    heals: ArrayVec<Duration, HEALS_MAX>,
    differed_at: Option<Duration>,
    strikes: u32,
    strikes_since: Duration,
    struck_at: Option<Duration>,
    requests: u32,
    requests_since: Duration,
    // The times of the identity's saves that still count.
    saves: ArrayVec<Duration, SAVES_MAX>,
    joins_from: Duration,
    /// Whether the identity's last world download wasted its slot.
    gave_way: bool,
    excused_at: Option<Duration>,
    spared_at: Option<Duration>,
    held: WaitedMinute,
    pub(crate) cost: Cost,
    /// The time added to turns because of the identity.
    pub(crate) slowed: Cost,
    /// The time from which the identity may reconnect, and the reason why it was barred.
    barred: Option<(Duration, CloseCode)>,
    pub(crate) refusals: Vec<NotAdmitted>,
    pub(crate) bytes_down: ByteCounts,
}

impl IdentityLimits {
    pub(crate) fn may_request(&mut self, now: Duration) -> bool {
        if self.requests == 0 || now.saturating_sub(self.requests_since) > REQUESTS_WINDOW {
            (self.requests, self.requests_since) = (0, now);
        }
        self.requests += 1;
        self.requests <= REQUESTS_MAX
    }

    pub(crate) fn may_save(&mut self, now: Duration) -> bool {
        self.saves.retain(|at| now.saturating_sub(*at) < MINUTE);
        self.saves.try_push(now).is_ok()
    }

    /// Adds a strike. Returns `true` if the limit is exceeded.
    pub(crate) fn strike(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.strikes_since) > STRIKE_WINDOW {
            self.strikes = 0;
            self.strikes_since = now;
        }
        self.struck_at = Some(now);
        self.strikes += 1;
        self.strikes > STRIKES_MAX
    }

    pub(crate) fn is_struck(&self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) <= STRIKE_WINDOW;
        self.struck_at.is_some_and(lately)
    }

    /// Bars the identity if the reason for its removal demands that: for [`BAR_TOO_SLOW`], [`BAR_JOIN`] or
    /// [`BAR_STRIKES`], or until the match ends.
    pub(crate) fn bar(&mut self, now: Duration, code: CloseCode) {
        let until = match code {
            CloseCode::TooSlow => now + BAR_TOO_SLOW,
            CloseCode::JoinTooSlow => now + BAR_JOIN,
            CloseCode::Strikes => now + BAR_STRIKES,
            CloseCode::Kicked => Duration::MAX,
            _ => return,
        };
        if code == CloseCode::TooSlow {
            self.cost.forgive(TO_SPARE);
        }
        self.barred = Some((until, code));
    }

    pub(crate) fn barred(&self, now: Duration) -> Option<CloseCode> {
        let (until, code) = self.barred?;
        (now < until).then_some(code)
    }

    fn pardon(&mut self) -> bool {
        let was_kicked = matches!(self.barred, Some((_, CloseCode::Kicked)));
        if was_kicked {
            self.barred = None;
        }
        was_kicked
    }

    pub(crate) fn may_join(&mut self, now: Duration) -> bool {
        let may = self.could_join(now);
        if may {
            self.joins_from = now + JOIN_EVERY;
        }
        may
    }

    pub(crate) fn could_join(&self, now: Duration) -> bool {
        now >= self.joins_from
    }

    /// Records that the identity wasted its slot for a world, which delays its next join.
    pub(crate) fn give_way(&mut self, now: Duration) {
        self.joins_from = now + BAR_JOIN;
        self.gave_way = true;
    }

    pub(crate) fn record_loaded(&mut self) {
        self.gave_way = false;
    }

    pub(crate) fn gave_way(&self) -> bool {
        self.gave_way
    }

    /// Returns `true` if this reconnect counts as activity, and records it. Only the first one in a minute counts.
    pub(crate) fn may_be_excused(&mut self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) < MINUTE;
        let may = !self.excused_at.is_some_and(lately);
        if may {
            self.excused_at = Some(now);
        }
        may
    }

    pub(crate) fn may_be_held_for(
        &self,
        now: Duration,
        at_once: Duration,
        per_minute: Duration,
    ) -> bool {
        let held = &self.held;
        let spent = now.saturating_sub(held.since) < MINUTE && held.minute >= per_minute;
        held.now < at_once && !spent
    }

    /// The time for which the match was held for this identity since the identity last kept up.
    pub(crate) fn held(&self) -> Duration {
        self.held.now
    }

    pub(crate) fn record_held(&mut self, now: Duration, time: Duration) {
        let held = &mut self.held;
        if now.saturating_sub(held.since) >= MINUTE {
            held.since = now;
            held.minute = Duration::ZERO;
        }
        held.now += time;
        held.minute += time;
    }

    /// Records that the identity no longer trails, so that another pause may start.
    pub(crate) fn end_hold(&mut self) {
        self.held.now = Duration::ZERO;
    }

    /// Returns `Some(true)` if the identity may be healed now, and counts the heal; `Some(false)` if the last heal is
    /// too recent; `None` if it was healed too often.
    pub(crate) fn may_heal(&mut self, now: Duration) -> Option<bool> {
        self.heals
            .retain(|at| now.saturating_sub(*at) < HEALS_WINDOW);
        let lately = |at: &Duration| now.saturating_sub(*at) < HEAL_EVERY;
        if self.heals.last().is_some_and(lately) {
            return Some(false);
        }
        self.heals.try_push(now).is_ok().then_some(true)
    }

    /// Records a desync report. Returns `true` if it is counted: an identity counts once in [`HEALS_WINDOW`], so that a
    /// single cheater cannot cause an alarm.
    pub(crate) fn record_desync(&mut self, now: Duration) -> bool {
        let lately = |at| now.saturating_sub(at) < HEALS_WINDOW;
        let counts = !self.differed_at.is_some_and(lately);
        if counts {
            self.differed_at = Some(now);
        }
        counts
    }
}

/// An identity without a session. A player and a spectator of the same identity are kept apart.
pub(crate) struct Away {
    pub(crate) identity: Identity,
    pub(crate) limits: IdentityLimits,
}

impl Away {
    fn new(identity: &str, limits: IdentityLimits) -> Self {
        Away {
            identity: Identity::new(identity, Role::Player),
            limits,
        }
    }
}

/// The limits of identities without a session. The identity that has been away longest comes first.
#[derive(Default)]
pub(crate) struct AwayIdentities {
    away: VecDeque<Away>,
}

impl AwayIdentities {
    /// Keeps an identity's limits. If there is no space, drops the identity that has been away longest; barred
    /// identities are dropped last.
    pub(crate) fn keep(&mut self, now: Duration, away: Away) {
        if self.away.len() == AWAY_MAX {
            let free = |away: &Away| away.limits.barred(now).is_none();
            let at = self.away.iter().position(free).unwrap_or(0);
            self.away.remove(at);
        }
        self.away.push_back(away);
    }

    pub(crate) fn limits_of(&mut self, now: Duration, identity: &str) -> &mut IdentityLimits {
        let is = |away: &Away| away.identity.plays_as(identity);
        let at = match self.away.iter().position(is) {
            Some(at) => at,
            None => {
                self.keep(now, Away::new(identity, IdentityLimits::default()));
                self.away.len() - 1
            }
        };
        &mut self.away[at].limits
    }

    pub(crate) fn is_struck(&self, now: Duration, identity: &str) -> bool {
        let mut own = self
            .away
            .iter()
            .filter(|away| away.identity.name == identity);
        own.any(|away| away.limits.is_struck(now))
    }

    pub(crate) fn take(&mut self, identity: &Identity) -> IdentityLimits {
        let at = self.away.iter().position(|away| away.identity == *identity);
        at.and_then(|at| self.away.remove(at))
            .map(|away| away.limits)
            .unwrap_or_default()
    }

    // Lets an identity return that was removed because it was silent, but not twice in `window`.
    pub(crate) fn spare(&mut self, now: Duration, identity: &str, window: Duration) {
        let limits = self.limits_of(now, identity);
        let lately = |at| now.saturating_sub(at) < window;
        if !limits.spared_at.is_some_and(lately) {
            (limits.spared_at, limits.barred) = (Some(now), None);
        }
    }

    pub(crate) fn bar(&mut self, now: Duration, identity: &str, code: CloseCode) {
        let mut limits = self.take(&Identity::new(identity, Role::Player));
        limits.bar(now, code);
        self.keep(now, Away::new(identity, limits));
    }

    pub(crate) fn pardon(&mut self, identity: &str) -> bool {
        let own = self
            .away
            .iter_mut()
            .filter(|away| away.identity.name == identity);
        own.fold(false, |was, away| away.limits.pardon() | was)
    }

    /// Keeps the refusal of an order for a player without a session. The client gets it when it reconnects.
    pub(crate) fn refuse(&mut self, now: Duration, identity: &str, refused: NotAdmitted) {
        let mut limits = self.take(&Identity::new(identity, Role::Player));
        if limits.refusals.len() < 2 * COMMANDS_OPEN_MAX {
            limits.refusals.push(refused);
        }
        self.keep(now, Away::new(identity, limits));
    }

    /// Adds a strike to a player without a session, for a waiting order or input of its last session.
    pub(crate) fn strike(&mut self, now: Duration, identity: &str) {
        let mut limits = self.take(&Identity::new(identity, Role::Player));
        if limits.strike(now) {
            limits.bar(now, CloseCode::Strikes);
        }
        self.keep(now, Away::new(identity, limits));
    }

    pub(crate) fn bytes_down(&self, identity: &str) -> ByteCounts {
        let own = self
            .away
            .iter()
            .filter(|away| away.identity.name == identity);
        own.fold(ByteCounts::default(), |sum, away| {
            sum + away.limits.bytes_down
        })
    }

    /// The reason why an identity may not connect yet; `None` if it may. A kicked identity may not watch either.
    pub(crate) fn barred(&self, now: Duration, identity: &Identity) -> Option<CloseCode> {
        let own = self
            .away
            .iter()
            .filter(|away| away.identity.name == identity.name);
        own.filter_map(|away| {
            let code = away.limits.barred(now)?;
            (away.identity.role == identity.role || code == CloseCode::Kicked).then_some(code)
        })
        .next()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WaitedMinute {
    now: Duration,
    /// The time waited within the minute starting at `since`.
    minute: Duration,
    since: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Finding HW5: a player with a spent budget reconnected over a good connection, and was removed for a 3 ms join.
    #[test]
    fn a_removed_slow_identity_reconnects_with_a_second_to_spare() {
        let mut limits = IdentityLimits::default();
        for second in 0..20 {
            let now = Duration::from_secs(second);
            limits.cost.add(now, Duration::from_secs(1), MINUTE);
        }
        let now = Duration::from_secs(20);
        limits.bar(now, CloseCode::TooSlow);
        assert_eq!(limits.barred(now), Some(CloseCode::TooSlow));
        let spent = limits.cost.spent(now, MINUTE);
        assert_eq!(spent, Duration::from_secs(19));
    }

    // Finding R4.
    #[test]
    fn an_identity_counts_as_struck_for_ten_seconds_after_each_strike() {
        let mut limits = IdentityLimits::default();
        assert!(!limits.is_struck(Duration::ZERO));
        let second = Duration::from_secs(9);
        for at in [Duration::ZERO, second] {
            limits.strike(at);
            assert!(limits.is_struck(at + STRIKE_WINDOW));
        }
        assert!(!limits.is_struck(second + STRIKE_WINDOW + HEAL_EVERY));
    }

    /// Finding K3-L4: four heals in a week-long match removed a player, however far apart they were.
    #[test]
    fn heals_expire_after_an_hour_and_five_within_an_hour_are_too_many() {
        let mut limits = IdentityLimits::default();
        for heal in 0..100 {
            assert_eq!(limits.may_heal(MINUTE * 16 * heal), Some(true), "{heal}");
        }
        let now = MINUTE * 16 * 100;
        let within: Vec<_> = (0..5)
            .map(|n| limits.may_heal(now + HEAL_EVERY * n))
            .collect();
        assert_eq!(within, [Some(true), None, None, None, None]);
        assert_eq!(limits.may_heal(now + HEAL_EVERY / 2), Some(false));
        assert_eq!(limits.may_heal(now + MINUTE * 60), Some(true));
    }
}
