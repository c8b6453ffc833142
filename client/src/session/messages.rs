//! What the server tells a session over the lane: its welcome, worlds, tickets, names.
//!
//! Law **Hostile wire**: what cannot be read, or does not belong here now, costs a counter; only a first world that
//! cannot be read ends the session, for without one there is nothing to play.

use std::time::Duration;

use twinstep_core::bounds::NOTICE_BYTES_MAX;
use twinstep_core::world::World;
use twinstep_core::{Simulation, codec};
use twinstep_protocol::lane::Message;
use twinstep_protocol::packet::hello::{Basis, Welcome};
use twinstep_protocol::packet::message;
use twinstep_protocol::text::is_plain;

use super::events::report;
use super::{Event, Session, SessionEnd, State};
use crate::hooks::caught;
use crate::picture::Show;
use crate::playing::Playing;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    pub(super) fn take_message(&mut self, now: Duration, told: &Message) {
        match (told.kind, &mut self.state) {
            (message::WELCOME, State::Joining { .. }) => {
                self.welcome(now, codec::decode_whole(&told.bytes).ok());
            }
            (message::WORLD, State::Joining { .. }) => self.begin_with(now, &told.bytes),
            (message::TICKET, State::Playing(_)) => self.ticket = Some(told.bytes.clone()),
            (message::NAMES, State::Playing(playing)) => match codec::decode_whole(&told.bytes) {
                Ok(names) => {
                    let names = self.match_status.rename(names);
                    if let Some(tape) = &mut playing.tape {
                        tape.rename(names);
                    }
                }
                Err(_) => self.traffic.record_malformed(),
            },
            (message::NOTICE, State::Playing(_)) => match core::str::from_utf8(&told.bytes) {
                Ok(words) if words.len() <= NOTICE_BYTES_MAX && is_plain(words) => {
                    self.events.push(Event::Notice(words.to_owned()));
                }
                _ => self.traffic.record_malformed(),
            },
            (message::WELCOME, State::Playing(_)) if self.contact.goes_back() => {
                self.welcome_back(now, codec::decode_whole(&told.bytes).ok());
            }
            (message::WORLD, State::Playing(_)) if self.contact.goes_back() => {
                match read_world(&told.bytes) {
                    Some(world) => self.go_on_from(now, world),
                    None => self.close(SessionEnd::UnreadableWorld),
                }
            }
            (message::HEAL, State::Playing(playing)) => {
                let Some(world) = read_world(&told.bytes) else {
                    return;
                };
                let at = world.tick();
                playing.heal(world);
                self.asked_evidence = playing.divergence.evidence().map(|ours| (ours.tick(), now));
                self.events.push(Event::Healed { at });
                self.outgoing.urge();
            }
            (message::EVIDENCE, State::Playing(playing)) => {
                let theirs = read_world::<S>(&told.bytes);
                if let (Some(ours), Some(theirs)) = (playing.divergence.take_evidence(), theirs) {
                    let report = report(&ours, &theirs);
                    // A report that finds no room stays with this client.
                    let _ = self
                        .lane_out
                        .push(message::REPORT, report.as_bytes().into());
                    self.events.push(Event::Desync(report));
                }
                self.asked_evidence = None;
            }
            _ => self.traffic.record_malformed(),
        }
    }

    /// The server knows this session. A world follows, or it goes on from its own.
    fn welcome(&mut self, now: Duration, told: Option<Welcome>) {
        let State::Joining { welcome, start, .. } = &mut self.state else {
            return;
        };
        let told = told.filter(Welcome::is_sound);
        match told.as_ref().map(|told| told.basis) {
            Some(basis @ Basis::World { .. }) => match self.loading.begin(basis) {
                Some(had) => {
                    self.lane_in.go_on_with(message::WORLD, had);
                    *welcome = told;
                }
                None => self.traffic.record_malformed(),
            },
            Some(Basis::Start(tick, cadence)) if start.is_some() => {
                let world = start
                    .take()
                    .map(|sim| World::new(sim, tick).clocked(cadence));
                self.begin(now, told, world);
            }
            // It has no such world.
            _ => self.traffic.record_malformed(),
        }
    }

    /// The world is here.
    fn begin_with(&mut self, now: Duration, bytes: &[u8]) {
        let State::Joining { welcome, .. } = &mut self.state else {
            return;
        };
        let welcome = welcome.take();
        self.loading.end();
        self.begin(now, welcome, read_world::<S>(bytes));
    }

    /// From now on this session plays.
    fn begin(&mut self, now: Duration, welcome: Option<Welcome>, world: Option<World<S>>) {
        let State::Joining { hooks, .. } = &mut self.state else {
            return;
        };
        let (Some(world), Some(welcome), Some(hooks)) = (world, welcome, hooks.take()) else {
            self.close(SessionEnd::UnreadableWorld);
            return;
        };
        self.events.push(Event::Joined(welcome.seats.to_vec()));
        self.match_status.begin(world.tick());
        self.outgoing.needed = world.tick();
        self.contact.begin(now);
        let mut playing = Box::new(Playing::new(welcome, world, hooks));
        playing.tape = self.tape.take();
        playing.restart_tape();
        self.state = State::Playing(playing);
        self.outgoing.urge();
    }
}

fn read_world<S: Simulation>(bytes: &[u8]) -> Option<World<S>> {
    caught(|| codec::decode_whole::<World<S>>(bytes).ok())
        .ok()
        .flatten()
        .filter(World::is_sound)
}
