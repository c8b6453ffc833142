//! A session that comes back over a new transport: the same player, the same authority, the same orders.
//!
//! ```text
//! lose ──▶ (the server is dialled; the old path is still heard) ── it speaks again ──▶ recover: nothing happened
//!   │
//!   ▼ a new transport is connected
//! reconnect ──▶ Hello { holds: authority's tick, a digest } ──▶ Welcome { basis }
//!    link and lanes anew  or: the part of a world that had come    │ authority: frames go on from there
//!    the prediction goes on, up to its bounds                      └ world: it follows, or the rest of it
//! ```
//!
//! Invariant: nothing runs twice. What the server accepted it keeps over the gap, and says where the commands
//! continue; what it has not got is sent again.

use std::mem;
use std::time::Duration;
use twinstep_protocol::lineage::Stamp;

use twinstep_core::Simulation;
use twinstep_core::bounds::{REPORT_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::world::World;
use twinstep_protocol::lane::{LaneReceiver, LaneSender};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Basis, Holds, Welcome};
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::refusal::RefusalReason;

use super::stage::{Returning, Stage};
use super::{Event, Session, SessionEnd};
use crate::picture::Show;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Goes on over a new transport, whose packets come and go from now on: greets the server anew, and resumes from
    /// the frames that it still has, or else from its world. Meanwhile inputs are sampled and predicted as far as
    /// their bounds allow. [`Event`]s tell when it begins and ends. A session that is over stays over.
    pub fn reconnect(&mut self, now: Duration) {
        let now = self.reach(now);
        self.lose(now);
        self.forgo_evidence();
        self.download.forget_waiting();
        let lane = mem::replace(&mut self.lane_in, LaneReceiver::new(WORLD_BYTES_MAX));
        self.download.interrupt(lane.into_part(message::WORLD));
        match &mut self.stage {
            Stage::Closed(_) => return,
            Stage::Joining(joining) => {
                joining.welcome = None;
                if let Holds::Part { .. } = self.hello.holds {
                    self.hello.holds = Holds::Nothing;
                }
            }
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                self.hello.holds = playing.resumable();
                let at = playing.replica.timeline.authority().tick();
                self.outgoing.needed = at;
                self.match_status.go_on_from(at);
                self.stage.go_back();
            }
        }
        if let Some(part) = self.download.holds() {
            self.hello.holds = part;
        }
        self.link = self.link.anew();
        self.lane_out = LaneSender::new(REPORT_BYTES_MAX);
        self.outages.take_path(now);
        self.outgoing.begin_anew();
    }

    /// The server is not heard any more, and is dialled by another path while the old one goes on being heard. One of
    /// two follows: [`recover`](Session::recover), or [`reconnect`](Session::reconnect).
    pub fn lose(&mut self, now: Duration) {
        let now = self.reach(now);
        if self.stage.playing().is_some() && self.outages.lose(now) {
            self.events.push(Event::Reconnecting);
        }
    }

    /// The server is heard again by the transport that was silent: nothing has happened.
    pub fn recover(&mut self, now: Duration) {
        let now = self.reach(now);
        if !self.is_on_way_back() && self.outages.recover(now) {
            self.events.push(Event::Recovered);
        }
    }

    /// Whether the session greets the server anew, over another path than before.
    pub(crate) fn is_on_way_back(&self) -> bool {
        matches!(self.stage, Stage::Returning(_))
    }

    /// Whether the server is lost, or the session on its way back into its match.
    #[must_use]
    pub fn is_returning(&self) -> bool {
        self.is_on_way_back() || self.outages.is_lost()
    }

    /// The server ended the transport, but lets this player return: over a new one, by
    /// [`reconnect`](Session::reconnect).
    #[must_use]
    pub fn cut(&self) -> Option<CloseCode> {
        self.outages.cut
    }

    /// When the server was heard last by a session in its match; it speaks at least ten times a second, and
    /// twice to whom it has not heard for four seconds.
    #[must_use]
    pub fn heard_at(&self) -> Option<Duration> {
        let settled = matches!(self.stage, Stage::Playing(_));
        settled.then(|| self.link.heard_at().unwrap_or(self.outages.met_at))
    }

    /// The newest ticket that the server handed down to return with, once; the older ones are forgotten.
    pub fn poll_ticket(&mut self) -> Option<Vec<u8>> {
        self.ticket.take()
    }

    /// Reports that the ticket with this stamp is stored where a new process of this client finds it: older ones let nobody in
    /// from then on.
    pub fn stored(&mut self, ticket: &Stamp) {
        // If it finds no room, a newer one follows.
        let _ = self
            .lane_out
            .push(message::STORED, ticket.stored()[..].into());
    }

    /// The server knows this player.
    pub(crate) fn welcome_back(&mut self, now: Duration, told: Option<Welcome>) {
        let Stage::Returning(returning) = &mut self.stage else {
            return;
        };
        let playing = &mut returning.playing;
        let seats = playing.replica.timeline.local_actions().seats();
        let sound = |told: &Welcome| {
            told.is_sound()
                && told.seats.len() == seats.len()
                && match told.basis {
                    Basis::World { .. } => true,
                    Basis::Authority => matches!(self.hello.holds, Holds::Authority { .. }),
                    Basis::Start(..) => false,
                }
        };
        let Some(welcome) = told.filter(sound) else {
            self.traffic.record_malformed();
            return;
        };
        if u32::from(welcome.command_delay) != playing.command_delay() {
            // Who predicts cannot begin to play turns out, nor the other way round.
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
        self.events.push(Event::Reconnected {
            resumed: true,
            lost_ticks: 0,
        });
    }

    /// The server's world, to go on from.
    pub(crate) fn go_on_from(&mut self, now: Duration, world: World<S>) {
        self.download.end();
        let Stage::Returning(returning) = &mut self.stage else {
            return;
        };
        let welcome = returning.welcome.take();
        self.stage.found();
        let (Some(playing), Some(welcome)) = (self.stage.playing_mut(), welcome) else {
            self.traffic.record_malformed();
            return;
        };
        self.outages.found(now);
        // Turns that only this client saw, because the server lost power: they did not happen.
        let had = playing.replica.timeline.authority().tick();
        let lost_ticks = had - world.tick();
        self.outgoing.needed = world.tick();
        self.match_status.go_on_from(world.tick());
        self.outgoing.urge();
        if welcome.seats[..] == *playing.replica.timeline.local_actions().seats() {
            playing.restart(&welcome, world);
        } else {
            self.begin_as(&welcome, world);
        }
        self.events.push(Event::Reconnected {
            resumed: false,
            lost_ticks,
        });
    }

    /// Its players were removed meanwhile, and it got other numbers: it goes on as these.
    fn begin_as(&mut self, welcome: &Welcome, world: World<S>) {
        let Some(playing) = self.stage.playing_mut() else {
            return;
        };
        for (seat, seq) in playing.restart_as(welcome, world) {
            let why = RefusalReason::Untold;
            self.events.push(Event::CommandRefused { seat, seq, why });
        }
        self.events.push(Event::Joined(welcome.seats.to_vec()));
    }
}
