//! A session that reconnects over a new transport, with the same player, authority and orders.
//!
//! ```text
//! lose ──▶ (the server is dialled; the old path is still read) ── it responds again ──▶ recover: the match continues
//!   │
//!   ▼ a new transport is connected
//! reconnect ──▶ Hello { holds: authority's tick, a digest } ──▶ Welcome { basis }
//!    new link and lanes       or: the part of a world              │ authority: the frames from there follow
//!    the prediction continues, within its limits                   └ world: it follows, or the rest of it
//! ```
//!
//! Invariant: no order runs twice. The server keeps the orders that it accepted, and reports the next command that it
//! expects; commands are sent again starting with that one.

use std::mem;
use std::time::Duration;
use twinstep_protocol::lineage::Stamp;

use twinstep_core::Simulation;
use twinstep_core::bounds::{LANE_UP_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::world::World;
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Basis, Holds, Welcome};
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::refusal::CommandRefusal;

use super::stage::{Returning, Stage};
use super::{Event, Session, SessionEnd};
use crate::picture::Show;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Continues over a new transport, which from now on carries all packets: sends a hello again, and resumes from the
    /// frames that the server still has, or from the server's world. A session that plays keeps sampling and predicting
    /// until the server responds, as far as the input window and the lead allow, and reports [`Event::Reconnecting`]
    /// unless [`connection_lost`](Session::connection_lost) already has; another [`Event`] reports the end. A closed
    /// session stays closed.
    pub fn reconnect(&mut self, now: Duration) {
        let now = self.reach(now);
        self.connection_lost(now);
        self.forgo_evidence();
        self.download.forget_waiting();
        let lane = mem::replace(&mut self.lane_in, LaneReceiver::new(WORLD_BYTES_MAX));
        self.download.interrupt(lane.into_part(message::WORLD));
        match &mut self.stage {
            Stage::Closed(_) => return,
            Stage::Joining(joining) => {
                joining.welcome = None;
                joining.lobby.greet_again();
                if let Holds::Part { .. } = self.hello.holds {
                    self.hello.holds = joining.lobby.holds();
                }
            }
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                self.hello.holds = playing.resumable();
                let at = playing.replica.timeline.authority().tick();
                self.outgoing.needed = at;
                self.match_status.continue_from(at);
                self.stage.go_back();
            }
        }
        if let Some(part) = self.download.holds() {
            self.hello.holds = part;
        }
        self.link = self.link.anew();
        self.lane_out = LaneSender::new(LANE_UP_BYTES_MAX);
        self.outages.take_path(now);
        self.outgoing.restart();
    }

    /// Reports that the server is silent or closed the path, and is being dialled over another one. A silent path is
    /// still read. Call [`recover`](Session::recover) or [`reconnect`](Session::reconnect) next. Has no effect unless
    /// the session is in its match.
    pub fn connection_lost(&mut self, now: Duration) {
        let now = self.reach(now);
        if self.stage.playing().is_some() && self.outages.lose(now) {
            self.events.push(Event::Reconnecting);
        }
    }

    /// Reports that packets arrive again over the silent transport.
    pub fn recover(&mut self, now: Duration) {
        let now = self.reach(now);
        if !self.is_on_way_back() && self.outages.recover(now) {
            self.events.push(Event::Recovered);
        }
    }

    /// Returns `true` if the session has sent its hello over another path, and waits for the welcome.
    pub(crate) fn is_on_way_back(&self) -> bool {
        matches!(self.stage, Stage::Returning(_))
    }

    /// Returns `true` if the server is lost, or the session is reconnecting to its match.
    #[must_use]
    pub fn is_returning(&self) -> bool {
        self.is_on_way_back() || self.outages.is_lost()
    }

    /// The code with which the server closed the transport, if this player may reconnect over a new one with
    /// [`reconnect`](Session::reconnect).
    #[must_use]
    pub fn close_code(&self) -> Option<CloseCode> {
        self.outages.cut
    }

    /// The time of the last packet from the server, or the time at which the session entered its match if none has
    /// arrived since. Returns `None` while the session joins or reconnects, and once it is over. The server sends at
    /// least ten packets a second, or two a second to a client silent for four seconds.
    #[must_use]
    pub fn last_received_at(&self) -> Option<Duration> {
        let settled = matches!(self.stage, Stage::Playing(_));
        settled.then(|| self.link.last_received_at().unwrap_or(self.outages.met_at))
    }

    /// Returns the newest reconnect ticket, once. Older tickets are dropped.
    pub fn poll_ticket(&mut self) -> Option<Vec<u8>> {
        self.ticket.take()
    }

    /// Reports to the server that the ticket with this stamp is stored where a new process of this client will find it.
    /// From then on the server refuses older tickets.
    pub fn stored(&mut self, ticket: &Stamp) {
        // If the lane is full, the report for a newer ticket follows.
        let _ = self
            .lane_out
            .push(message::STORED, ticket.stored()[..].into());
    }

    pub(crate) fn welcome_back(&mut self, now: Duration, welcome: Option<Welcome>) {
        let Stage::Returning(returning) = &mut self.stage else {
            return;
        };
        let playing = &mut returning.playing;
        let seats = playing.replica.timeline.local_actions().seats();
        let sound = |welcome: &Welcome| {
            welcome.is_sound()
                && welcome.seats.len() == seats.len()
                && match welcome.basis {
                    Basis::World { .. } => true,
                    Basis::Authority => matches!(self.hello.holds, Holds::Authority { .. }),
                    Basis::Start(..) => false,
                }
        };
        let Some(welcome) = welcome.filter(sound) else {
            self.traffic.record_malformed();
            return;
        };
        returning.lobby.leave();
        if u32::from(welcome.command_delay) != playing.command_delay() {
            // A predicting session cannot turn into a lockstep session, or the reverse.
            return self.close(SessionEnd::OtherMatch);
        }
        if let Basis::World { .. } = welcome.basis {
            match self.download.begin(welcome.basis) {
                Some(had) => {
                    self.lane_in.go_on_with(message::WORLD, had);
                    returning.welcome = Some(welcome);
                }
                None => self.traffic.record_malformed(),
            }
            return;
        }
        if welcome.seats[..] == *seats {
            playing.resume(&welcome);
        } else {
            let own = playing.replica.timeline.authority().clone();
            self.begin_as(&welcome, own);
        }
        self.stage.found();
        self.outages.found(now);
        self.outgoing.urge();
        self.events.hold(Event::Reconnected {
            resumed: true,
            lost_ticks: 0,
        });
    }

    pub(crate) fn continue_from(&mut self, now: Duration, world: World<S>) {
        let Stage::Returning(returning) = &mut self.stage else {
            return;
        };
        let Some(welcome) = returning.welcome.take() else {
            self.traffic.record_malformed();
            return;
        };
        self.download.end();
        self.stage.found();
        let Some(playing) = self.stage.playing_mut() else {
            return;
        };
        self.outages.found(now);
        // Ticks that only this client saw, because the server lost them in a power failure, did not happen.
        let had = playing.replica.timeline.authority().tick();
        let lost_ticks = had - world.tick();
        self.outgoing.needed = world.tick();
        self.match_status.continue_from(world.tick());
        self.outgoing.urge();
        if welcome.seats[..] == *playing.replica.timeline.local_actions().seats() {
            playing.restart(&welcome, world);
        } else {
            self.begin_as(&welcome, world);
        }
        self.events.hold(Event::Reconnected {
            resumed: false,
            lost_ticks,
        });
    }

    /// Continues with the new player numbers of the welcome, because the old players were removed during the absence.
    fn begin_as(&mut self, welcome: &Welcome, world: World<S>) {
        let Some(playing) = self.stage.playing_mut() else {
            return;
        };
        for (seat, seq) in playing.restart_as(welcome, world) {
            let why = CommandRefusal::Unreported;
            self.events.push(Event::CommandRefused { seat, seq, why });
        }
        self.events.hold(Event::Joined(welcome.seats.to_vec()));
    }
}
