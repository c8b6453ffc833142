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

use crate::picture::Show;
use crate::session::{Event, Session, SessionEnd, State};

/// A session's welcome, or a part of its world, comes at least so often, or the server has none for it.
const LOADING_PATIENCE: Duration = Duration::from_secs(60);

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Goes on over a new transport, whose packets come and go from now on: greets the server anew, and resumes from
    /// the frames that it still has, or else from its world. Meanwhile inputs are sampled and predicted as far as
    /// their bounds allow. [`Event`]s tell when it begins and ends. A session that is over stays over.
    pub fn reconnect(&mut self, now: Duration) {
        let now = self.reach(now);
        self.lose(now);
        self.forgo_evidence();
        self.contact.forget_waiting();
        let lane = mem::replace(&mut self.lane_in, LaneReceiver::new(WORLD_BYTES_MAX));
        self.loading.interrupt(lane.into_part(message::WORLD));
        match &mut self.state {
            State::Closed(_) => return,
            State::Joining { welcome, .. } => {
                *welcome = None;
                if let Holds::Part { .. } = self.hello.holds {
                    self.hello.holds = Holds::Nothing;
                }
            }
            State::Playing(playing) => {
                self.hello.holds = playing.resumable();
                let at = playing.timeline.authority().tick();
                self.outgoing.needed = at;
                self.match_status.go_on_from(at);
                self.contact.go_back();
            }
        }
        if let Some(part) = self.loading.holds() {
            self.hello.holds = part;
        }
        self.link = self.link.anew();
        self.lane_out = LaneSender::new(REPORT_BYTES_MAX);
        self.contact.take_path(now);
        self.outgoing.begin_anew();
    }

    /// The server is not heard any more, and is dialled by another path while the old one goes on being heard. One of
    /// two follows: [`recover`](Session::recover), or [`reconnect`](Session::reconnect).
    pub fn lose(&mut self, now: Duration) {
        let now = self.reach(now);
        if self.playing().is_some() && self.contact.lose(now) {
            self.events.push(Event::Reconnecting);
        }
    }

    /// The server is heard again by the transport that was silent: nothing has happened.
    pub fn recover(&mut self, now: Duration) {
        let now = self.reach(now);
        if self.contact.recover(now) {
            self.events.push(Event::Recovered);
        }
    }

    /// Whether the server is lost, or the session on its way back into its match.
    #[must_use]
    pub fn is_returning(&self) -> bool {
        self.contact.is_away()
    }

    /// Whether the session waits for its welcome or its world, and nothing of them came for so long.
    #[must_use]
    pub(crate) fn is_held_up(&self, now: Duration, patience: Duration) -> bool {
        self.contact.is_held_up(now, patience)
    }

    /// Whether the session waits for its world, and bytes of it come by the path that there is.
    #[cfg(feature = "udp")]
    pub(crate) fn comes_on(&self) -> bool {
        self.contact.comes_on()
    }

    /// Sees whether a world, or what leads to one, comes on. A session that never began ends without it.
    pub(crate) fn watch_loading(&mut self, now: Duration) {
        let welcomed = match &self.state {
            State::Joining { welcome, .. } => Some(welcome.is_some()),
            State::Playing(_) => self.contact.is_welcome(),
            State::Closed(_) => None,
        };
        let bytes = self.lane_in.progress().map_or(0, |p| p.received_bytes);
        self.contact
            .watch(now, welcomed.map(|welcomed| (welcomed, bytes)));
        if matches!(self.state, State::Joining { .. }) && self.is_held_up(now, LOADING_PATIENCE) {
            self.close(SessionEnd::NoWorld);
        }
    }

    /// The server ended the transport, but lets this player return: over a new one, by
    /// [`reconnect`](Session::reconnect).
    #[must_use]
    pub fn cut(&self) -> Option<CloseCode> {
        self.contact.cut()
    }

    /// When the server was heard last by a session in its match; it speaks at least ten times a second, and
    /// twice to whom it has not heard for four seconds.
    #[must_use]
    pub fn heard_at(&self) -> Option<Duration> {
        let settled = self.playing().is_some() && !self.contact.goes_back();
        settled.then(|| self.link.heard_at().unwrap_or(self.contact.met_at()))
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
        let State::Playing(playing) = &mut self.state else {
            return;
        };
        let seats = playing.timeline.local_actions().seats();
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
            match self.loading.begin(welcome.basis) {
                Some(had) => {
                    self.lane_in.go_on_with(message::WORLD, had);
                    self.contact.record_welcome(welcome);
                }
                None => self.traffic.record_malformed(),
            }
            return;
        }
        if welcome.seats[..] == *seats {
            playing.resume(&welcome);
        } else {
            let own = playing.timeline.authority().clone();
            self.begin_as(&welcome, own);
        }
        self.contact.found(now);
        self.outgoing.urge();
        self.events.push(Event::Reconnected {
            resumed: true,
            lost_ticks: 0,
        });
    }

    /// The server's world, to go on from.
    pub(crate) fn go_on_from(&mut self, now: Duration, world: World<S>) {
        let welcome = self.contact.take_welcome();
        self.loading.end();
        let (State::Playing(playing), Some(welcome)) = (&mut self.state, welcome) else {
            self.traffic.record_malformed();
            return;
        };
        self.contact.found(now);
        // Turns that only this client saw, because the server lost power: they did not happen.
        let had = playing.timeline.authority().tick();
        let lost_ticks = had - world.tick();
        self.outgoing.needed = world.tick();
        self.match_status.go_on_from(world.tick());
        self.outgoing.urge();
        if welcome.seats[..] == *playing.timeline.local_actions().seats() {
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
        let State::Playing(playing) = &mut self.state else {
            return;
        };
        for (seat, seq) in playing.restart_as(welcome, world) {
            let why = RefusalReason::Untold;
            self.events.push(Event::CommandRefused { seat, seq, why });
        }
        self.events.push(Event::Joined(welcome.seats.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrayvec::ArrayVec;
    use twinstep_core::Tick;
    use twinstep_core::bounds::PACKET_BYTES_MAX;
    use twinstep_core::codec;
    use twinstep_core::testing::doc::Counter;
    use twinstep_protocol::lane;
    use twinstep_protocol::link::LinkState;
    use twinstep_protocol::packet::hello::WorldId;
    use twinstep_protocol::packet::play_down::{DownStatus, PlayDownWriter};
    use twinstep_protocol::packet::{chunk, message};
    use twinstep_protocol::wire::Writer;

    use super::*;
    use crate::session::SessionConfig;

    const SECOND: Duration = Duration::from_secs(1);

    /// A server that speaks ten times a second and never sends a world; at `welcome_at` it sends a welcome. When the
    /// session ended, and why.
    fn ends(welcome_at: Option<u64>) -> (u64, SessionEnd) {
        let mut session = Session::<Counter>::new(SessionConfig::new(Arc::new(()))).unwrap();
        let (mut link, mut sender) = (LinkState::default(), LaneSender::new(REPORT_BYTES_MAX));
        for n in 0..2_000 {
            let now = SECOND * n / 10;
            let mut bytes = [0; PACKET_BYTES_MAX];
            let mut packet = Writer::new(&mut bytes);
            if welcome_at == Some(u64::from(n) / 10) && n % 10 == 0 {
                let welcome = Welcome {
                    seats: ArrayVec::from_iter([twinstep_core::PlayerId(0)]),
                    next_seq: ArrayVec::from_iter([0]),
                    command_delay: 0,
                    owners_answer: false,
                    basis: Basis::World {
                        world: WorldId::of(Tick(0), &[]),
                        from: 0,
                    },
                };
                let mut told = Vec::new();
                codec::append(&welcome, &mut told).unwrap();
                sender.push(message::WELCOME, told.into()).unwrap();
                let mut chunk = [0; lane::FRAME_BYTES_MAX];
                let len = sender.poll(now, SECOND / 10, &mut chunk).unwrap();
                chunk::write_down(now, &mut link, &chunk[..len], &mut packet).unwrap();
            } else {
                let status = DownStatus::default();
                let packet = PlayDownWriter::begin(now, &mut link, &status, &mut packet).unwrap();
                let _ = packet.end();
            }
            let len = packet.len();
            session.handle(now, &bytes[..len]);
            if let Err(closed) = session.advance(now, 1, |_| Default::default()) {
                return (now.as_secs(), closed);
            }
        }
        panic!("it waits for ever");
    }

    /// Finding C7: a server that talked but sent no world kept a client joining for ever.
    #[test]
    fn a_join_that_does_not_come_on_ends_after_a_minute_with_a_reason() {
        assert_eq!(ends(None), (60, SessionEnd::NoWorld));
        assert_eq!(ends(Some(40)), (100, SessionEnd::NoWorld));
    }
}
