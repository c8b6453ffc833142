//! Dials at the server: the checks of a ticket, and the challenge to which only the ticket's holder can respond.
//!
//! ```text
//! dial ───▶ key known? ─▶ ticket opens? ─▶ ours, proof valid? ─▶ alive, newest, room? ─▶ rate ─▶ challenge
//!                                                                        │ no
//! reply ──▶ key still known? ──────────────────────────────────▶ alive, newest, room? ─▶ its cipher ─▶ a session
//!                                                                        └ no ─▶ refusal, which only its holder accepts
//! ```
//!
//! Invariant: a session never starts with a ticket that would be refused at that moment, even if the ticket was valid
//! at the dial.

use std::net::SocketAddr;
use std::time::Duration;

use super::{ServerEndpoint, ServerKey};
use crate::admissions::Challenge;
use crate::claims::{Pass, TicketClaims};
use crate::dial::{DialPacket, RefusalReason, SessionKeys};
use crate::ledger::TicketRefusal;
use crate::netcode::is_answer;
use crate::send_queue::AddressPair;

impl ServerEndpoint {
    pub(super) fn handle_dial(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) {
        let here = self.by_address.get(&from).copied();
        if here.is_some_and(|session| !self.may_be_dead(session)) {
            // A late repetition or a copy must not end a session, nor keep one alive.
            self.counters.late += 1;
            return;
        }
        let Some(packet) = DialPacket::read(datagram) else {
            self.counters.junk += 1;
            return;
        };
        let of_key = |p: &ServerKey| p.is_open && p.id == packet.protocol_id();
        let Some(key) = self.keys.iter().position(of_key) else {
            self.counters.unknown_key += 1;
            return;
        };
        let pass = match Pass::open(packet.sealed(), &self.keys[key].secret) {
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
        let keys = packet.keys(&pass.secret).filter(|_| is_for_us);
        let Some(keys) = keys.filter(|keys| !self.admissions.has_begun(keys)) else {
            self.counters.rejected += 1;
            return;
        };
        let no_room = || (!self.admissions.has_room(from)).then_some(RefusalReason::Full);
        if let Some(reason) = self.refusal(&pass.claims).or_else(no_room) {
            return self.refuse(from, &keys, reason);
        }
        if !self.admissions.may_dial(now, from, &pass.claims, &keys) {
            self.counters.rate_limited += 1;
            return;
        }
        if let Some(session) = here {
            // The client dials again: it does not know of that session, or is a new process.
            if self.sessions[&session].of != pass.claims.holder() {
                self.counters.junk += 1;
                return;
            }
            self.displace(session);
        }
        if let Some(old) = self.admissions.take_other(from, &keys) {
            self.keys[old.key].cipher.forget(from, &old.keys);
        }
        let out = &mut self.outbox;
        let server_key = &mut self.keys[key];
        if !server_key
            .cipher
            .challenge(from, &keys, pass.timeout_s, out)
        {
            self.counters.rejected += 1;
            return;
        }
        let challenge = Challenge {
            key,
            since: now,
            keys,
            ticket: pass.claims,
        };
        self.admissions.note(from, challenge);
    }

    pub(super) fn handle_answer(&mut self, now: Duration, path: AddressPair, datagram: &[u8]) {
        let from = path.peer;
        let Some(challenge) = self.admissions.challenge(from) else {
            return;
        };
        if !is_answer(datagram) {
            // A client sends on its old path until it has a new one, perhaps from the same address. The cipher would
            // log an error for each of these datagrams.
            self.counters.late += 1;
            return;
        }
        let key = challenge.key;
        if !self.keys[key].is_open {
            self.counters.unknown_key += 1;
        } else if let Some(reason) = self.refusal(&challenge.ticket) {
            // The challenge is kept, so that each repeated response gets the refusal.
            let keys = challenge.keys.clone();
            self.refuse(from, &keys, reason);
        } else {
            let session = challenge.keys.session;
            self.handle_sealed(now, path, datagram, (key, session));
        }
    }

    /// The reason why an authentic ticket cannot open a session now, or `None` if it can. A permanent reason takes
    /// precedence over a full server.
    fn refusal(&self, ticket: &TicketClaims) -> Option<RefusalReason> {
        match self.tickets.refusal(ticket) {
            Some(TicketRefusal::Expired) => Some(RefusalReason::Expired),
            Some(TicketRefusal::Superseded) => Some(RefusalReason::Superseded),
            None => (!self.has_place(&ticket.holder())).then_some(RefusalReason::Full),
        }
    }

    fn refuse(&mut self, from: SocketAddr, keys: &SessionKeys, reason: RefusalReason) {
        let counters = &mut self.counters;
        let counter = match reason {
            RefusalReason::Full => &mut counters.denied_full,
            RefusalReason::Expired => &mut counters.denied_expired,
            RefusalReason::Superseded => &mut counters.denied_superseded,
        };
        *counter += 1;
        // A lost refusal is sent again with the client's next datagram.
        let _ = self.outbox.push(from, &keys.refusal(reason));
    }
}
