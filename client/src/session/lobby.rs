//! A session in the lobby of a match that waits for its players.
//!
//! ```text
//! hello ──▶ Lobby, each second ──▶ choice that the client has, ready: ten times a second
//!       └─▶ rules, if the client lacks the chosen ones          └─▶ welcome: it joins as usual
//! ```
//!
//! Law **Hostile wire**: the size of rules is checked before they are unpacked, and they are used only if their digest
//! is the announced one.

use std::sync::Arc;

use twinstep_core::{Simulation, digest};
use twinstep_protocol::lobby::{LobbyMessage, unpack_rules};

use super::stage::Stage;
use super::{Session, SessionEnd};
use crate::hooks::caught;
use crate::picture::Show;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Reports to the lobby whether the players of this session are ready to start with the chosen rules. Readiness
    /// takes effect when the client has these rules, and ends when the host chooses other rules. Outside a lobby this
    /// has no effect, except that a session that has had no response yet enters its lobby ready.
    pub fn ready(&mut self, ready: bool) {
        if let Some(lobby) = self.stage.antechamber_mut() {
            lobby.is_ready = ready;
            self.outgoing.urge();
        }
    }

    pub(crate) fn take_lobby(&mut self, message: Option<LobbyMessage>) {
        let is_welcome = self.stage.welcome().is_some();
        let Some(lobby) = self.stage.antechamber_mut() else {
            return;
        };
        let Some(message) = message.filter(|_| !is_welcome) else {
            self.traffic.record_malformed();
            return;
        };
        let choice = message.lobby.choice;
        self.match_status.gather(&message.lobby);
        lobby.is_ready &= lobby.view().is_none_or(|shown| shown.choice == choice);
        lobby.shown = Some(Box::new(message));
        lobby.is_known = true;
        // The session waits for the start, not for its world.
        self.download.forget_waiting();
    }

    pub(crate) fn take_rules(&mut self, message: &[u8]) {
        let Stage::Joining(joining) = &mut self.stage else {
            return;
        };
        let Some(read) = joining
            .lobby
            .read_rules
            .filter(|_| joining.welcome.is_none())
        else {
            self.traffic.record_malformed();
            return;
        };
        // The game's own decoder may panic.
        let rules = caught(|| {
            let (digest, bytes) = unpack_rules(message)?;
            let rules = read(&bytes)?;
            (digest::digest(&rules) == Ok(digest)).then_some((digest, rules))
        });
        let Some((digest, rules)) = rules.ok().flatten() else {
            self.close(SessionEnd::UnreadableRules);
            return;
        };
        joining.rules = Some(Arc::new(rules));
        if let Some(tape) = &mut joining.tape {
            tape.hello.rules = digest;
        }
        self.hello.rules = digest;
        self.download.forget_waiting();
        self.outgoing.urge();
    }
}
