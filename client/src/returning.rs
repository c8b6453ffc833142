//! A session that comes back over a new transport: the same player, the same authority, the same orders.
//!
//! ```text
//! reconnect ──▶ Hello { resume: authority's tick and digest } ──▶ Welcome { resumed }
//!    link and lanes anew                                            │ true: frames go on from there
//!    the prediction goes on, up to its bounds                       └ false: a world follows, go on from that
//! ```
//!
//! Invariant: nothing runs twice. What the server accepted it keeps over the gap, and says where the commands
//! continue; what it has not got is sent again.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::{PLAYERS_MAX, REPORT_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::lane::{LaneReceiver, LaneSender};
use twinstep_core::link::Link;
use twinstep_core::packet::frames::RunReader;
use twinstep_core::packet::hello::{CloseCode, Welcome};
use twinstep_core::world::World;

use crate::picture::Show;
use crate::session::{Closed, Event, Session, State};

/// A session on its way back into its match.
pub(crate) struct Returning {
    /// What the server said; a world follows.
    welcome: Option<Welcome>,
}

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Goes on over a new transport, whose packets come and go from now on: greets the server anew, and resumes from
    /// the frames that it still has, or else from its world. Meanwhile inputs are sampled and predicted as far as
    /// their bounds allow. [`Event`]s tell when it begins and ends. A session that is over stays over.
    pub fn reconnect(&mut self, now: Duration) {
        self.forgo_evidence();
        match &mut self.state {
            State::Closed(_) => return,
            State::Joining { welcome, .. } => *welcome = None,
            State::Playing(playing) => {
                self.hello.resume = playing.resumable();
                self.needed = playing.timeline.authority().tick();
                self.next_seal = self.needed;
                if self.returning.is_none() {
                    self.events.push_back(Event::Reconnecting);
                }
                self.returning = Some(Returning { welcome: None });
            }
        }
        self.link = Link::default();
        self.lane_in = LaneReceiver::new(WORLD_BYTES_MAX);
        self.lane_out = LaneSender::new(REPORT_BYTES_MAX);
        self.run = RunReader::default();
        self.cut = None;
        self.sent_at = None;
        self.send_now = true;
        self.met_at = now;
    }

    /// Whether the session is on its way back into its match.
    #[must_use]
    pub fn is_returning(&self) -> bool {
        self.returning.is_some()
    }

    /// The server ended the transport, but lets this player return: over a new one, by
    /// [`reconnect`](Session::reconnect).
    #[must_use]
    pub fn cut(&self) -> Option<CloseCode> {
        self.cut
    }

    /// When the server was heard last by a session in its match; it speaks at least ten times a second.
    #[must_use]
    pub fn heard_at(&self) -> Option<Duration> {
        let settled = self.playing().is_some() && !self.is_returning();
        settled.then(|| self.link.heard_at().unwrap_or(self.met_at))
    }

    /// The newest ticket that the server handed down to return with, once; the older ones are forgotten.
    pub fn poll_ticket(&mut self) -> Option<Vec<u8>> {
        self.ticket.take()
    }

    /// The server knows this player.
    pub(crate) fn welcome_back(&mut self, now: Duration, told: Option<Welcome>) {
        let State::Playing(playing) = &mut self.state else {
            return;
        };
        let seats = playing.timeline.orders().seats();
        let sound = |told: &Welcome| {
            told.seats.len() == seats.len()
                && told.next_seq.len() == seats.len()
                && told.seats.iter().all(|p| p.index() < PLAYERS_MAX)
                // As other players it goes on from a world only.
                && (told.seats[..] == *seats || !told.resumed)
        };
        let Some(welcome) = told.filter(sound) else {
            self.malformed += 1;
            return;
        };
        if u32::from(welcome.command_delay) != playing.command_delay() {
            // Who predicts cannot begin to play turns out, nor the other way round.
            return self.close(Closed::OtherMatch);
        }
        if !welcome.resumed {
            self.returning = Some(Returning {
                welcome: Some(welcome),
            });
            return;
        }
        playing.resume(&welcome);
        self.returning = None;
        self.met_at = now;
        self.send_now = true;
        self.events.push_back(Event::Reconnected {
            resumed: true,
            lost_ticks: 0,
        });
    }

    /// The server's world, to go on from.
    pub(crate) fn go_on_from(&mut self, now: Duration, world: World<S>) {
        let welcome = self
            .returning
            .take()
            .and_then(|returning| returning.welcome);
        let (State::Playing(playing), Some(welcome)) = (&mut self.state, welcome) else {
            self.malformed += 1;
            return;
        };
        // Turns that only this client saw, because the server lost power: they did not happen.
        let had = playing.timeline.authority().tick();
        let lost_ticks = had - world.tick();
        self.needed = world.tick();
        self.next_seal = world.tick();
        self.met_at = now;
        self.send_now = true;
        if welcome.seats[..] == *playing.timeline.orders().seats() {
            playing.restart(&welcome, world);
        } else {
            self.begin_as(&welcome, world);
        }
        self.events.push_back(Event::Reconnected {
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
            self.events.push_back(Event::CommandRefused { seat, seq });
        }
        self.events.push_back(Event::Joined(welcome.seats.to_vec()));
    }
}
