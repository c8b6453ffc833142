//! [`Rehearsal`]: a server, bots, and the local player in one process and virtual time.
//!
//! ```text
//!   each frame:  8 × ( time passes ─▶ packets to the match ─▶ match ─▶ packets to the sessions ─▶ bots )
//!                then the local session: handle, advance, send
//! ```
//!
//! The match and the sessions are those of production; only sockets and clocks are missing. So the same setup gives
//! the same pictures on every machine, as fast as the machine draws. The pictures of documents and the tests of views
//! use it.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{Arbiter, Bot, Game, GameShow, Judge, Luck, Pad, Rules, Sticks, terms};
use twinstep_client::{Session, SessionEnd};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Key, Mwc, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_server::{Match, Output, SessionId};

/// The parts of a frame; packets move in each.
const PARTS: u32 = 8;
const BUDGET_TICKS: u32 = 128;

#[derive(Clone, Debug)]
pub struct Setup {
    pub rules: Arc<Rules>,
    pub seed: u64,
    pub bots: usize,
    pub seats: usize,
    pub names: Vec<String>,
    pub link: LinkProfile,
    pub frame: Duration,
}

impl Setup {
    #[must_use]
    pub fn new(rules: Arc<Rules>, seed: u64) -> Setup {
        Setup {
            rules,
            seed,
            bots: 3,
            seats: 1,
            names: Vec::new(),
            link: LinkProfile::PERFECT,
            frame: Duration::from_nanos(16_666_667),
        }
    }
}

struct RehearsalMember {
    peer: SessionId,
    session: Session<Game, GameShow>,
    net: SimLink,
    bot: Option<Bot>,
}

pub struct Rehearsal {
    server: Match<Game>,
    members: Vec<RehearsalMember>,
    rules: Arc<Rules>,
    frame: Duration,
    now: Duration,
    journal: Vec<u8>,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
}

impl Rehearsal {
    #[must_use]
    pub fn new(setup: &Setup) -> Rehearsal {
        let game = Game::new(&setup.rules, setup.seed);
        Rehearsal::from(setup, game)
    }

    /// Like [`new`](Rehearsal::new), but from a given state.
    ///
    /// # Panics
    /// As [`new`](Rehearsal::new).
    #[must_use]
    pub fn from(setup: &Setup, game: Game) -> Rehearsal {
        let rules = Arc::clone(&setup.rules);
        let arbiter = Arbiter::new(&rules, Luck::Seeded(setup.seed)).expect("walls with a size");
        let config = terms::policies();
        let mut server =
            Match::new(config, game, Arc::clone(&rules), arbiter).expect("rules without a NaN");
        server.set_referee(Judge);
        server.keep_journal().expect("a journal in memory");
        let luck = Mwc::seed(setup.seed);
        let members = (0..=setup.bots).map(|n| {
            let (peer, is_bot) = (SessionId(n as u64), n > 0);
            let (identity, seats) = match is_bot {
                true => (format!("bot-{n}"), 1),
                false => ("you".to_owned(), setup.seats),
            };
            server
                .connect(Duration::ZERO, peer, &identity, seats)
                .expect("a free seat");
            let of = Key::new(peer.0, 0);
            let names = setup.names.iter().filter(|_| !is_bot);
            let config = terms::session(&rules).names(names.map(String::as_str));
            let config = if is_bot { config } else { config.recorded(0) };
            RehearsalMember {
                peer,
                session: Session::new(config).expect("rules without a NaN"),
                // Each link gets its own seed.
                net: SimLink::new(setup.link, setup.seed ^ peer.0.wrapping_mul(0x9e37_79b9)),
                bot: is_bot.then(|| Bot::new(Sticks::Keys, luck.fork(of))),
            }
        });
        Rehearsal {
            members: members.collect(),
            server,
            rules,
            frame: setup.frame,
            now: Duration::ZERO,
            journal: Vec::new(),
            buffer: Box::new([0; PACKET_BYTES_MAX]),
        }
    }

    #[must_use]
    pub fn truth(&self) -> &Game {
        self.server.world().sim()
    }

    #[must_use]
    pub fn tick(&self) -> Tick {
        self.server.world().tick()
    }

    #[must_use]
    pub fn journal(&self) -> &[u8] {
        &self.journal
    }

    /// Drops a bot without a goodbye, as if its machine were switched off.
    pub fn lose_bot(&mut self, nth: usize) {
        self.members.remove(1 + nth);
    }

    /// Runs one frame; `pad` returns the input of a seat.
    ///
    /// # Errors
    /// The session is over; every later call returns the error too.
    pub fn advance(&mut self, pad: impl Fn(usize) -> Pad) -> Result<(), SessionEnd> {
        for part in 0..PARTS {
            self.now += self.frame / PARTS;
            self.serve();
            // Each bot acts in its own part of the frame, so that their packets do not come together.
            for at in 1..self.members.len() {
                if at as u32 % PARTS == part {
                    self.play_bot(at);
                }
            }
        }
        self.play(0, pad)
    }

    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    #[must_use]
    pub fn session(&self) -> &Session<Game, GameShow> {
        &self.members[0].session
    }

    pub fn session_mut(&mut self) -> &mut Session<Game, GameShow> {
        &mut self.members[0].session
    }

    pub fn set_link(&mut self, profile: LinkProfile) {
        for member in &mut self.members {
            member.net.set_profile(profile);
        }
    }

    pub fn leave(&mut self) {
        self.members[0].session.leave();
    }

    #[must_use]
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    fn serve(&mut self) {
        for member in &mut self.members {
            while let Some(bytes) = member.net.up.poll(self.now) {
                self.server.handle(self.now, member.peer, bytes);
            }
        }
        self.server.advance(self.now);
        while let Some(output) = self.server.poll() {
            match output {
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Packet { peer, bytes } => {
                    let member = self.members.iter_mut().find(|m| m.peer == peer);
                    if let Some(member) = member {
                        member.net.down.send(self.now, bytes);
                    }
                }
                _ => {}
            }
        }
    }

    fn play_bot(&mut self, at: usize) {
        let member = &mut self.members[at];
        let Some(bot) = &mut member.bot else { return };
        let session = &mut member.session;
        let seen = session.prediction().zip(session.seats().first());
        let thought = seen.map(|(world, me)| {
            let sampled = Tick(session.stats().input_tick);
            bot.think(world.sim(), &self.rules, *me, sampled)
        });
        let (pad, order) = thought.unwrap_or_default();
        // A bot whose session is over has no input.
        let _ = self.play(at, |_| pad);
        if let Some(order) = order {
            // An order above the limit is dropped.
            let _ = self.members[at].session.command(0, order);
        }
    }

    fn play(&mut self, at: usize, pad: impl Fn(usize) -> Pad) -> Result<(), SessionEnd> {
        let RehearsalMember { session, net, .. } = &mut self.members[at];
        while let Some(bytes) = net.down.poll(self.now) {
            session.handle(self.now, bytes);
        }
        let played = session.advance(self.now, BUDGET_TICKS, pad);
        while let Some(len) = session.poll_transmit(self.now, &mut *self.buffer) {
            net.up.send(self.now, &self.buffer[..len]);
        }
        if self.members[at].bot.is_some() {
            let session = &mut self.members[at].session;
            while session.poll_cue().is_some() {}
            while session.poll_event().is_some() {}
        }
        played
    }
}
