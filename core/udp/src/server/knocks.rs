//! A knock at the server: who knocks, whether that may come in, and the challenge that only a ticket's holder can answer.
//!
//! ```text
//! knock ──▶ key known? ─▶ ticket opens? ─▶ for us, proof good? ─▶ alive, newest, room? ─▶ rate ─▶ challenge
//!                                                                        │ no
//! answer ─▶ key still known? ─────────────────────────────────────▶ alive, newest, room? ─▶ its gate ─▶ a session
//!                                                                        └ no ─▶ refusal, which its holder believes
//! ```
//!
//! Invariant: no session begins by a ticket that would be refused at that moment, whatever held when its holder knocked.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Protocol, ServerEndpoint};
use crate::claims::{Pass, TicketClaims};
use crate::door::Challenge;
use crate::knock::{Dial, Knock, RefusalReason};
use crate::netcode::is_answer;
use crate::words::AddressPair;

impl ServerEndpoint {
    /// A datagram with the shape of a knock came.
    pub(super) fn handle_knock(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) {
        let here = self.by_address.get(&from).copied();
        if here.is_some_and(|session| !self.may_be_dead(session)) {
            // A late repetition, or a copy: it shall end nobody's session, nor keep one alive.
            self.counters.late += 1;
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
        let no_room = || (!self.door.has_room(from)).then_some(RefusalReason::Full);
        if let Some(reason) = self.refusal(&pass.claims).or_else(no_room) {
            return self.refuse(from, &dial, reason);
        }
        if !self.door.may_dial(now, from, &pass.claims, &dial) {
            self.counters.rate_limited += 1;
            return;
        }
        if let Some(session) = here {
            // Its client dials anew: it never learned of that session, or is another process now.
            if self.sessions[&session].of != pass.claims.holder() {
                self.counters.junk += 1;
                return;
            }
            self.displace(session);
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

    /// Whoever was challenged answers.
    pub(super) fn handle_answer(&mut self, now: Duration, path: AddressPair, datagram: &[u8]) {
        let from = path.peer;
        let Some(challenge) = self.door.challenge(from) else {
            return;
        };
        if !is_answer(datagram) {
            // A client speaks over its old path until it has a new one, perhaps from the same address. The cipher would log
            // an error for each of these datagrams.
            self.counters.late += 1;
            return;
        }
        let gate = challenge.gate;
        if !self.gates[gate].is_open {
            self.counters.unknown_key += 1;
        } else if let Some(reason) = self.refusal(&challenge.ticket) {
            // The challenge is kept, so that each repetition of the answer hears it.
            let dial = challenge.dial.clone();
            self.refuse(from, &dial, reason);
        } else {
            let session = challenge.dial.session;
            self.handle_sealed(now, path, datagram, (gate, session));
        }
    }

    /// Why a true ticket lets nobody in now, if it does not. In this order: what will never help is said first.
    fn refusal(&self, ticket: &TicketClaims) -> Option<RefusalReason> {
        if self.clock.is_past(ticket.stamp.expires_unix_s) {
            Some(RefusalReason::Expired)
        } else if self.door.is_superseded(ticket) {
            Some(RefusalReason::Superseded)
        } else if !self.has_place(&ticket.holder()) {
            Some(RefusalReason::Full)
        } else {
            None
        }
    }

    fn refuse(&mut self, from: SocketAddr, dial: &Dial, reason: RefusalReason) {
        let counters = &mut self.counters;
        let counter = match reason {
            RefusalReason::Full => &mut counters.denied_full,
            RefusalReason::Expired => &mut counters.denied_expired,
            RefusalReason::Superseded => &mut counters.denied_superseded,
        };
        *counter += 1;
        let _ = self.outbox.push(from, &dial.refusal(reason));
    }
}
