//! What one identity costs the others: who is waited for pays for it, whatever becomes of its sessions.
//!
//! ```text
//!  batch missing ─┐  of the time that others waited,
//!  authority trails ├─▶ each identity that was missing pays its share ─▶ its limits ─▶ spent: TooSlow, or not heard
//!                          (what longer ticks and turns cost is summed up apart: `cadence.rs`)
//! ```
//!
//! Invariant: time in which nobody else could have gone on is nobody's debt: a match whose lines are all alike removes
//! nobody for them.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::WAITED_PER_MINUTE;
use twinstep_core::frame::PlayerSet;

use super::Match;
use crate::config::SealWhen;

/// Over this time costs are summed up.
const MINUTE: Duration = Duration::from_secs(60);

/// What an identity may cost the others in waiting, and over which time that is summed up.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    pub(super) spent_max: Duration,
    pub(super) window: Duration,
}

impl Budget {
    /// 20 s a minute; where one silence may last longer than that, that long in three times as long.
    pub(super) fn of(longest_silence: Duration) -> Self {
        let spent_max = longest_silence.max(WAITED_PER_MINUTE);
        Budget {
            spent_max,
            window: MINUTE.max(spent_max * 3),
        }
    }
}

impl<S: Simulation> Match<S> {
    /// The others waited for these players for so long, up to now: each of their identities pays its share.
    pub(super) fn charge(
        &mut self,
        now: Duration,
        players: PlayerSet,
        waited: Duration,
        budget: Budget,
    ) {
        for player in players.iter() {
            self.seats[player.index()].stats.waited += waited;
        }
        let owners: PlayerSet = players
            .iter()
            .map(|player| self.people.owner(player))
            .collect();
        let others = self.world.current.present().iter();
        let someone_waited = others
            .filter(|player| !players.contains(*player))
            .any(|player| !owners.contains(self.people.owner(player)));
        if !someone_waited {
            return;
        }
        let share = waited / owners.len().max(1) as u32;
        for owner in owners.iter() {
            if let Some(limits) = self.people.limits_of(now, owner) {
                limits.cost.add(now, share, budget.window);
            }
        }
    }

    /// Those of these players whose identities have cost the others too much.
    pub(super) fn overdrawn(
        &mut self,
        now: Duration,
        players: PlayerSet,
        budget: Budget,
    ) -> PlayerSet {
        let mut overdrawn = PlayerSet::default();
        for player in players.iter() {
            let owner = self.people.owner(player);
            let is_overdrawn = self
                .people
                .limits_of(now, owner)
                .is_some_and(|limits| limits.cost.spent(now, budget.window) >= budget.spent_max);
            overdrawn.set(player, is_overdrawn);
        }
        overdrawn
    }

    /// What a machine or a line may cost the others, in one way or another.
    pub(super) fn patience(&self) -> Budget {
        Budget::of(match self.config.sealing {
            SealWhen::WaitForAll { kick_after } => kick_after,
            SealWhen::Deadline => Duration::ZERO,
        })
    }
}
