//! The time that the match has paused for each client, measured by the rig itself. Only these pauses justify removing a
//! player as too slow. The player is admitted again as soon as the bar ends.
//!
//! ```text
//!  the match is paused    ─▶ each client it waits for: its share ─▶ within the window ≥ its budget? ─▶ may be removed
//!                                                            └─▶ at once ≥ kick_after? ────────────────────▶ may be removed
//! ```

use std::time::Duration;

use twinstep_core::bounds::WAIT_PER_MINUTE_MAX;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::SessionId;
use twinstep_server::config::SealWhen;
use twinstep_server::peer::SessionStage;

use super::Rig;
use super::client::{BAR, RigClient};
use super::play::Play;

/// The largest difference between the measurements of the match and of the rig, which sample at different times.
const SLACK: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

impl<S: Play> Rig<S> {
    /// Charges the time `passed` to the clients for which the match waited at the last check. `moved` is `true` if the
    /// match has continued since then.
    pub(super) fn record_waits(&mut self, passed: Duration, moved: bool) {
        let now = self.now;
        let waiting = self.scene.match_.waiting();
        let before = std::mem::replace(&mut self.waited_for, waiting);
        let is_missing = |client: &RigClient<S>| {
            let mut players = client.awaited.players.iter();
            players.any(|player| before.contains(*player))
        };
        let missing = self.clients.iter().filter(|c| is_missing(c)).count();
        for client in &mut self.scene.clients {
            if moved {
                client.awaited.end(now);
            }
            match is_missing(client) {
                true => client
                    .awaited
                    .wait(now, now - passed, passed / missing as u32),
                false => client.awaited.end(now),
            }
            let seats = client.session.seats();
            if !seats.is_empty() {
                client.awaited.players.clear();
                client.awaited.players.extend_from_slice(seats);
            }
        }
    }

    /// Checks closed sessions: an honest client is removed as too slow only if the others really waited for it.
    pub(super) fn record_closed(&mut self, closed: &[(SessionId, CloseCode)]) {
        for (peer, code) in closed {
            let client = self.clients.iter().position(|c| c.peer() == *peer);
            if let (Some(client), CloseCode::TooSlow) = (client, code) {
                let theirs = &self.clients[client];
                let mut players = theirs.awaited.players.iter();
                assert!(
                    players.any(|player| self.waited_for.contains(*player))
                        || !self.keeps_the_rules(theirs),
                    "blame: {} was removed as too slow though the match does not wait for it",
                    theirs.identity
                );
                self.record_removal(client);
            }
        }
    }

    /// Returns `true` if this client may be removed as too slow only with cause: it is honest, the match waits for all,
    /// and fairness is checked.
    fn keeps_the_rules(&self, client: &RigClient<S>) -> bool {
        let waits = matches!(self.config.policies.sealing, SealWhen::WaitForAll { .. });
        waits && client.role.is_honest() && self.config.fair
    }

    /// Records that a client was removed as too slow, and checks that the waits for it justify this.
    pub(super) fn record_removal(&mut self, at: usize) {
        let now = self.now;
        let SealWhen::WaitForAll { kick_after } = self.config.policies.sealing else {
            return;
        };
        // The same budget as in `SealWhen::WaitForAll`. The match counts spent time for up to a twelfth of its window
        // longer.
        let budget = kick_after.max(WAIT_PER_MINUTE_MAX);
        let window = MINUTE.max(budget * 3);
        let client = &self.clients[at];
        let (at_once, within) = client.awaited.spent(now, window + window / 12 + SLACK);
        let deserves = at_once + SLACK >= kick_after || within + SLACK >= budget;
        assert!(
            deserves || !self.keeps_the_rules(client),
            "blame: {} was removed as too slow, but the others waited for it for {at_once:?} of {kick_after:?} at once, and \
             for {within:?} of {budget:?} within {window:?}; {}",
            client.identity,
            self.incidents.join("\n")
        );
        let client = &mut self.scene.clients[at];
        client.awaited.end(now);
        client.awaited.players.clear();
        client.awaited.out_since.get_or_insert(now);
        client.awaited.times_out.push((now, at_once, within));
        client.mark_alive(now);
        self.removals += 1;
    }

    #[must_use]
    pub fn removals(&self) -> u64 {
        self.removals
    }

    pub fn redial_slow_clients(&mut self) {
        for i in 0..self.clients.len() {
            let client = &self.clients[i];
            let Some(since) = client.awaited.out_since else {
                continue;
            };
            let stage = self.match_.stage(client.peer());
            if stage == Some(SessionStage::Playing) {
                let client = &mut self.scene.clients[i];
                client.excuse += self.scene.now - since;
                client.awaited.out_since = None;
                self.disturb(i, self.now);
            } else if stage.is_none() && client.role.is_honest() && self.now >= since + BAR {
                self.restart(i);
            }
        }
    }

    /// Runs until all removed honest players are back, at most as long as their spent budget may keep them out.
    pub(super) fn run_until_slow_clients_are_back(&mut self) {
        let SealWhen::WaitForAll { kick_after } = self.config.policies.sealing else {
            return;
        };
        let end = self.now + MINUTE.max(kick_after.max(WAIT_PER_MINUTE_MAX) * 3) + BAR * 2;
        let is_out = |c: &RigClient<S>| c.role.is_honest() && c.awaited.out_since.is_some();
        while self.now < end && self.clients.iter().any(is_out) {
            self.run(Duration::from_millis(500));
            self.redial_slow_clients();
        }
    }
}
