//! What one identity costs the others: who is waited for pays for it, whatever becomes of its sessions.
//!
//! ```text
//!  batch missing ─┐  of the time that others waited,
//!  authority trails ├─▶ each identity that was missing pays its share ─▶ its standing ─▶ spent: TooSlow, or not heard
//!  load, pauses ──┘     (ticks that were longer for its sake are summed up apart)
//! ```
//!
//! Invariant: time in which nobody else could have gone on is nobody's debt: a match whose lines are all alike removes
//! nobody for them.

use super::*;
use crate::config::Sealing;
use crate::tempo::Seen;
use twinstep_core::packet::LOAD_UNITS;

/// A machine cannot keep up if it is busy with the game for this share of its time.
const LOAD_SLOW: u8 = (LOAD_UNITS as u8) - 1;
/// It has room for shorter ticks up to this share; between the two nothing changes.
const LOAD_ROOMY: u8 = (LOAD_UNITS as u8) - 3;
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
        let owners: PlayerSet = players.iter().map(|player| self.owner(player)).collect();
        let others = self.world.present().iter();
        let someone_waited = others
            .filter(|player| !players.contains(*player))
            .any(|player| !owners.contains(self.owner(player)));
        if !someone_waited {
            return;
        }
        let share = waited / owners.len().max(1) as u32;
        for owner in owners.iter() {
            if let Some(standing) = self.standing_of(now, owner) {
                standing.cost.add(now, share, budget.window);
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
            let owner = self.owner(player);
            let is_overdrawn = self.standing_of(now, owner).is_some_and(|standing| {
                standing.cost.spent(now, budget.window) >= budget.spent_max
            });
            overdrawn.set(player, is_overdrawn);
        }
        overdrawn
    }

    /// The first of all players of this one's identity, who stands for it.
    fn owner(&self, player: PlayerId) -> PlayerId {
        let named = |p: PlayerId| {
            let known = self.identities.iter().find(|(_, other)| *other == p);
            known.map(|(identity, _)| identity)
        };
        let Some(identity) = named(player) else {
            return player;
        };
        let own = self.identities.iter().filter(|(name, _)| name == identity);
        own.map(|(_, player)| *player).min().unwrap_or(player)
    }

    /// The standing of a player's identity, with or without a session.
    fn standing_of(&mut self, now: Duration, player: PlayerId) -> Option<&mut Standing> {
        if let Some(at) = self.session_behind(player) {
            return Some(&mut self.peers[at].standing);
        }
        let (identity, _) = self.identities.iter().find(|(_, p)| *p == player)?;
        Some(self.standings.away(now, identity))
    }

    /// The players to whose machines and lines the adaptive policies gave way: because of them ticks or turns are longer
    /// now than they need be for the others.
    #[must_use]
    pub fn slowing(&self) -> PlayerSet {
        self.slowing
    }

    /// What a machine or a line may cost the others, in one way or another.
    fn patience(&self) -> Budget {
        Budget::of(match self.config.sealing {
            Sealing::WaitForAll { kick_after } => kick_after,
            Sealing::Deadline => Duration::ZERO,
        })
    }

    /// Those for whose sake the last turn was longer, by its ticks or by their length, pay for that, each its share: of
    /// those who are named, who has asked lately, so that nobody pays for who asks for more.
    fn charge_slowness(&mut self, now: Duration) {
        let cadence = self.world.turn().cadence;
        let (least, _) = self.config.turn_bounds();
        let longer = (cadence.tick() * u32::from(cadence.turn_ticks))
            .saturating_sub(self.config.tick * u32::from(least));
        let slowing = self.slowing;
        let is_slow = |peer: &Peer| peer.players.iter().any(|p| slowing.contains(*p));
        let insists = |peer: &Peer| is_slow(peer) && peer.insists(now);
        let someone_insists = self.peers.iter().any(insists);
        let pays = |peer: &Peer| is_slow(peer) && (peer.insists(now) || !someone_insists);
        let count = self.peers.iter().filter(|peer| pays(peer)).count();
        let share = longer / count.max(1) as u32;
        let window = self.patience().window;
        for peer in self.peers.iter_mut().filter(|peer| pays(peer)) {
            peer.standing.slowed.add(now, share, window);
        }
    }

    /// What the adaptive policies must know of the last turn. What a client tells of its load and its pauses counts only
    /// where this server has seen lately that it is late, and only until it has cost the others what one may.
    pub(super) fn seen(&mut self) -> Seen {
        let now = self.now;
        let next = self.world.tick();
        let mut seen = Seen {
            joined: std::mem::take(&mut self.joined),
            pauses: std::mem::take(&mut self.paused),
            roomy: true,
            ..Seen::default()
        };
        let mut here = PlayerSet::default();
        self.charge_slowness(now);
        let budget = self.patience();
        for peer in &mut self.peers {
            let pauses = std::mem::take(&mut peer.pauses);
            if peer.stage != Stage::Playing || peer.players.is_empty() {
                continue;
            }
            let rtt = peer.link.rtt().unwrap_or_default().min(RTT_MAX);
            seen.rtt = seen.rtt.max(rtt);
            let fills = |player: &PlayerId| self.seats[player.index()].newest() < Some(next);
            if self.config.command_delay == 0 && peer.players.iter().any(fills) {
                peer.note_late(now);
            }
            if peer.standing.slowed.spent(now, budget.window) >= budget.spent_max {
                continue;
            }
            here.0 |= peer.own().0;
            if !peer.is_late(now) {
                continue;
            }
            seen.pauses = seen.pauses.max(pauses);
            seen.slow |= peer.load >= LOAD_SLOW;
            seen.roomy &= peer.load <= LOAD_ROOMY;
            if pauses > 0 || peer.load >= LOAD_SLOW {
                self.slowing.0 |= peer.own().0;
                peer.slow_at = Some(now);
            }
        }
        let cadence = self.world.turn().cadence;
        if self.slowing.iter().any(|player| !here.contains(player)) {
            // What was slow for its sake need not be any more.
            self.tempo.relax(&self.config);
            self.slowing = PlayerSet::default();
        } else if cadence.tick() <= self.config.tick
            && cadence.turn_ticks <= self.config.turn_bounds().0
        {
            self.slowing = PlayerSet::default();
        }
        seen
    }
}
