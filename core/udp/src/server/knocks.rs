//! A knock at the server: who knocks, whether that may come in, and the challenge that only a ticket's holder can answer.
//!
//! ```text
//! knock ─▶ key known? ─▶ ticket opens? ─▶ for us, proof good? ─▶ alive, newest, room? ─▶ rate ─▶ challenge
//!                                                                        └─ no ─▶ refusal, which its holder believes
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use super::{Protocol, ServerEndpoint};
use crate::claims::Pass;
use crate::door::Challenge;
use crate::knock::{Knock, RefusalReason};

impl ServerEndpoint {
    /// A datagram with the shape of a knock came.
    pub(super) fn handle_knock(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) {
        if self.by_address.contains_key(&from) {
            // A late repetition, or a copy: it shall end nobody's session, nor keep one alive.
            self.counters.junk += 1;
            return;
        }
        let Some(knock) = Knock::read(datagram) else {
            self.counters.junk += 1;
            return;
        };
        let of_key = |p: &Protocol| p.is_open && p.id == knock.protocol_id();
        let Some(gate) = self.gates.iter().position(of_key) else {
            self.counters.unknown_key += 1;
            return;
        };
        let pass = match Pass::open(knock.sealed(), &self.gates[gate].secret) {
            Ok(Some(pass)) => pass,
            Ok(None) => {
                self.counters.bad_claims += 1;
                return;
            }
            Err(()) => {
                self.counters.rejected += 1;
                return;
            }
        };
        let is_for_us = pass
            .servers
            .iter()
            .any(|server| self.public_addresses.contains(server));
        let dial = knock.dial(&pass.secret).filter(|_| is_for_us);
        let Some(dial) = dial.filter(|dial| !self.door.has_begun(dial)) else {
            self.counters.rejected += 1;
            return;
        };
        let room = self.sessions.len() < self.sessions_max && self.door.has_room(from);
        let expired = self.now_unix.as_secs() >= pass.claims.expires_unix_s;
        let counters = &mut self.counters;
        // In this order: what will never help is said first.
        let refused = if expired {
            Some((&mut counters.denied_expired, RefusalReason::Expired))
        } else if self.door.is_superseded(&pass.claims) {
            Some((&mut counters.denied_superseded, RefusalReason::Superseded))
        } else if !room {
            Some((&mut counters.denied_full, RefusalReason::Full))
        } else {
            None
        };
        if let Some((counter, reason)) = refused {
            *counter += 1;
            let _ = self.outbox.push(from, &dial.refusal(reason));
            return;
        }
        if !self.door.may_dial(now, &pass.claims, &dial) {
            self.counters.rate_limited += 1;
            return;
        }
        if let Some(old) = self.door.take_other(from, &dial) {
            self.gates[old.gate].gate.forget(from, &old.dial);
        }
        let out = &mut self.outbox;
        let protocol = &mut self.gates[gate];
        if !protocol.gate.challenge(from, &dial, pass.timeout_s, out) {
            self.counters.rejected += 1;
            return;
        }
        let challenge = Challenge {
            gate,
            since: now,
            dial,
            ticket: pass.claims,
        };
        self.door.note(from, challenge);
    }
}
