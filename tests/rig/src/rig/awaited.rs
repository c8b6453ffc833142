//! For how long the match has stood still for each client, as the rig itself saw it: a player may be put out as too slow for
//! that alone, and as soon as its bar is over it is let in again.
//!
//! ```text
//!  the match stands still ─▶ each client that it waits for: its share ─▶ within the window ≥ its budget? ─▶ may be put out
//!                                                            └─▶ at once ≥ kick_after? ────────────────────▶ may be put out
//! ```

use std::time::Duration;

use twinstep_core::bounds::WAITED_PER_MINUTE;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::SessionId;
use twinstep_server::config::SealWhen;
use twinstep_server::peer::SessionStage;

use super::Rig;
use super::client::{BAR, RigClient};
use super::play::Play;

/// The match and the rig look at different moments: what they see may differ by so much.
const SLACK: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

impl<S: Play> Rig<S> {
    /// Time has passed in which the match stood still for those that it waited for at the last look, if it did.
    pub(super) fn note_waits(&mut self, passed: Duration, moved: bool) {
        let now = self.now;
        let waiting = self.scene.game.waiting();
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

    /// Sessions are over: an honest client is put out as too slow only if the others really waited for it as long as that.
    pub(super) fn note_closed(&mut self, closed: &[(SessionId, CloseCode)]) {
        for (peer, code) in closed {
            let client = self.clients.iter().position(|c| c.peer() == *peer);
            if let (Some(client), CloseCode::TooSlow) = (client, code) {
                let theirs = &self.clients[client];
                let mut players = theirs.awaited.players.iter();
                assert!(
                    players.any(|player| self.waited_for.contains(*player))
                        || !self.keeps_the_rules(theirs),
                    "blame: {} is put out as too slow though the match does not stand still for it",
                    theirs.identity
                );
                self.note_put_out(client);
            }
        }
    }

    /// Whether nothing may be said against a client that is not true: it keeps the rules, where the match waits for all.
    fn keeps_the_rules(&self, client: &RigClient<S>) -> bool {
        let waits = matches!(self.config.policies.sealing, SealWhen::WaitForAll { .. });
        waits && client.role.is_honest() && self.config.fair
    }

    /// A client is put out as too slow.
    pub(super) fn note_put_out(&mut self, at: usize) {
        let now = self.now;
        let SealWhen::WaitForAll { kick_after } = self.config.policies.sealing else {
            return;
        };
        // As `SealWhen::WaitForAll` says; and the match keeps what was spent for up to a twelfth of its window longer.
        let budget = kick_after.max(WAITED_PER_MINUTE);
        let window = MINUTE.max(budget * 3);
        let client = &self.clients[at];
        let (at_once, within) = client.awaited.spent(now, window + window / 12 + SLACK);
        let deserves = at_once + SLACK >= kick_after || within + SLACK >= budget;
        assert!(
            deserves || !self.keeps_the_rules(client),
            "blame: {} is put out as too slow, but the others waited for it for {at_once:?} of {kick_after:?} at once, and \
             for {within:?} of {budget:?} within {window:?}; {}",
            client.identity,
            self.incidents.join("\n")
        );
        let client = &mut self.scene.clients[at];
        client.awaited.end(now);
        client.awaited.players.clear();
        client.awaited.out_since.get_or_insert(now);
        client.awaited.times_out.push((now, at_once, within));
        client.note_alive(now);
        self.put_out += 1;
    }

    /// How often a client was put out because the others had waited for it for too long.
    #[must_use]
    pub fn put_out(&self) -> u64 {
        self.put_out
    }

    /// Honest players that were too slow dial again as soon as they may, as their program does.
    pub fn slow_ones_come_back(&mut self) {
        for i in 0..self.clients.len() {
            let client = &self.clients[i];
            let Some(since) = client.awaited.out_since else {
                continue;
            };
            let stage = self.game.stage(client.peer());
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

    /// Runs until all honest players are back that were put out, as long as what they have spent may keep them out.
    pub(super) fn run_until_slow_ones_are_back(&mut self) {
        let SealWhen::WaitForAll { kick_after } = self.config.policies.sealing else {
            return;
        };
        let end = self.now + MINUTE.max(kick_after.max(WAITED_PER_MINUTE) * 3) + BAR * 2;
        let is_out = |c: &RigClient<S>| c.role.is_honest() && c.awaited.out_since.is_some();
        while self.now < end && self.clients.iter().any(is_out) {
            self.run(Duration::from_millis(500));
            self.slow_ones_come_back();
        }
    }
}
