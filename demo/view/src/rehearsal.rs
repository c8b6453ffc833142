//! [`Rehearsal`]: a server, bots, and the local player in one process, in virtual time or at the pace of the frames.
//!
//! ```text
//!   each frame:  8 × ( time passes ─▶ packets to the match ─▶ match ─▶ packets to the sessions ─▶ bots )
//!                then the local session: handle, advance, send
//! ```
//!
//! The match and the sessions are the real ones; only sockets and clocks are missing. So the same setup with a fixed
//! frame length produces the same pictures on every machine, as fast as the machine draws. It is used for the pictures
//! in documents, the tour, the tests of views, and a browser page without a server.
//!
//! A *mirror* is a second copy of the local session. It gets the same packets and inputs at the same times, and differs
//! only in its picture. Its packets are dropped. Invariant: they equal the session's packets.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{
    Arbiter, Bot, Command, Game, GameShow, Judge, Luck, Pad, Rules, ShowKey, Sticks, terms,
};
use twinstep_client::{Placed, Poses, Scene, Session, SessionEnd, Show, When};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId, PlayerSet, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_server::{Match, Output, SessionId};

use crate::time::{Instant, now};

/// A frame has this many parts. Packets move in each part.
const PARTS: u32 = 8;
const BUDGET_TICKS: u32 = 128;
/// While the server is killed, a client considers it lost after this long without a packet.
const SILENCE: Duration = Duration::from_millis(700);
/// The maximum time played per frame. After a longer pause of the view, the match continues where it was.
const FRAME_MAX: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Setup {
    pub rules: Arc<Rules>,
    pub seed: u64,
    pub bots: usize,
    pub seats: usize,
    pub names: Vec<String>,
    pub link: LinkProfile,
    /// The length of each frame. If `None`, a frame is as long as the time since the last one.
    pub frame: Option<Duration>,
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
            frame: Some(Duration::from_nanos(16_666_667)),
        }
    }
}

/// Like [`GameShow`], but draws all other players at a chosen time.
#[derive(Clone, Copy, Debug)]
pub struct ShowAt(pub When);

impl Show<Game> for ShowAt {
    type Key = ShowKey;
    type Pose = Placed;

    fn poses(&self, scene: &Scene<'_, Game>, out: &mut Poses<ShowKey, Placed>) {
        GameShow.poses(scene, out);
    }

    fn when(&self, _: &Scene<'_, Game>, _: PlayerId) -> When {
        self.0
    }
}

struct RehearsalMember {
    peer: SessionId,
    identity: String,
    seats: usize,
    session: Session<Game, GameShow>,
    net: SimLink,
    bot: Option<Bot>,
    /// The pad of a bot controlled from outside.
    held: Option<Pad>,
    /// The time at which its handshake with a restarted server ends.
    dialled_at: Option<Duration>,
}

pub struct Rehearsal {
    server: Match<Game>,
    members: Vec<RehearsalMember>,
    mirrors: Vec<Session<Game, ShowAt>>,
    rules: Arc<Rules>,
    seed: u64,
    link: LinkProfile,
    frame: Option<Duration>,
    drawn: Option<Instant>,
    now: Duration,
    journal: Vec<u8>,
    restart_at: Option<Duration>,
    buffers: Box<[[u8; PACKET_BYTES_MAX]; 2]>,
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
    /// If the rules contain a NaN or a wall without a size, or there are more players than seats.
    #[must_use]
    pub fn from(setup: &Setup, game: Game) -> Rehearsal {
        let rules = Arc::clone(&setup.rules);
        let arbiter = Arbiter::new(&rules, Luck::Seeded(setup.seed)).expect("walls with a size");
        let config = terms::policies();
        let mut server =
            Match::new(config, game, Arc::clone(&rules), arbiter).expect("rules without a NaN");
        server.set_referee(Judge);
        // A match in real time can be of any length, so its journal is not kept.
        if setup.frame.is_some() {
            server.keep_journal().expect("a journal in memory");
        }
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
            let config = if is_bot {
                config
            } else {
                config.record_journal(0)
            };
            RehearsalMember {
                peer,
                identity,
                seats,
                held: None,
                dialled_at: None,
                session: Session::new(config).expect("rules without a NaN"),
                // Each link gets its own seed.
                net: SimLink::new(setup.link, setup.seed ^ peer.0.wrapping_mul(0x9e37_79b9)),
                bot: is_bot.then(|| Bot::new(Sticks::Keys, luck.fork(of))),
            }
        });
        Rehearsal {
            members: members.collect(),
            server,
            mirrors: Vec::new(),
            rules,
            seed: setup.seed,
            link: setup.link,
            frame: setup.frame,
            drawn: None,
            now: Duration::ZERO,
            journal: Vec::new(),
            restart_at: None,
            buffers: Box::new([[0; PACKET_BYTES_MAX]; 2]),
        }
    }

    /// Adds a mirror of the local session, which draws other players at a different time. Call it before the first
    /// frame.
    ///
    /// # Panics
    /// If the first frame has been played, or the rules contain a NaN.
    pub fn add_mirror(&mut self, when: When) {
        assert_eq!(self.now, Duration::ZERO, "a mirror sees all packets");
        let config = terms::session(&self.rules);
        let config = config
            .record_journal(0)
            .show(ShowAt(when), GameShow::SMOOTHING);
        let mirror = Session::new(config).expect("rules without a NaN");
        self.mirrors.push(mirror);
    }

    pub fn mirrors_mut(&mut self) -> &mut [Session<Game, ShowAt>] {
        &mut self.mirrors
    }

    pub fn steer_bot(&mut self, nth: usize, pad: Pad) {
        self.members[1 + nth].held = Some(pad);
    }

    /// Samples the inputs of the next frame immediately: see [`Session::sample_now`].
    pub fn sample_now(&mut self) {
        self.session_mut().sample_now();
        self.mirrors.iter_mut().for_each(Session::sample_now);
    }

    /// Issues an order of the first seat. An order refused by the session is dropped.
    pub fn order(&mut self, command: Command) {
        let _ = self.members[0].session.command(0, command);
        for mirror in &mut self.mirrors {
            let _ = mirror.command(0, command);
        }
    }

    /// Holds all packets between the local session and the server for `time`; then they arrive together.
    pub fn hold(&mut self, time: Duration) {
        let until = self.now + time;
        let net = &mut self.members[0].net;
        net.up.hold(until);
        net.down.hold(until);
    }

    /// Kills the server. After `down`, another one resumes the match from the journal. Each client's handshake with the
    /// new server takes a round trip.
    pub fn kill(&mut self, down: Duration) {
        self.restart_at = Some(self.now + down);
    }

    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.restart_at.is_some()
    }

    /// Returns `true` if the local session's authority equals the server's world of the same tick, or `None` if there
    /// is no world to compare.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let authority = self.session().authority()?;
        let theirs = self.server.digest_at(authority.tick())?;
        Some(authority.digest() == Ok(theirs))
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
    /// If the session is over. Every later call also returns the error.
    pub fn advance(&mut self, pad: impl Fn(usize) -> Pad) -> Result<(), SessionEnd> {
        self.advance_watched(pad, |_| {})
    }

    /// Like [`advance`](Rehearsal::advance); passes the server's world to `watch` eight times per frame.
    ///
    /// # Errors
    /// The errors of [`advance`](Rehearsal::advance).
    pub fn advance_watched(
        &mut self,
        pad: impl Fn(usize) -> Pad,
        mut watch: impl FnMut(&World<Game>),
    ) -> Result<(), SessionEnd> {
        let frame = self.frame.unwrap_or_else(|| {
            let drawn = self.drawn.replace(now());
            drawn.map_or(Duration::ZERO, |drawn| drawn.elapsed().min(FRAME_MAX))
        });
        for part in 0..PARTS {
            self.now += frame / PARTS;
            match self.restart_at {
                Some(at) => self.stay_dead(at),
                None => self.serve(),
            }
            self.dial();
            watch(self.server.world());
            // Each bot acts in its own part of the frame, so that their packets do not arrive together.
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
        self.link = profile;
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

    fn stay_dead(&mut self, restart_at: Duration) {
        for member in &mut self.members {
            while member.net.up.poll(self.now).is_some() {}
        }
        if self.now < restart_at {
            return;
        }
        self.restart_at = None;
        let rules = Arc::clone(&self.rules);
        let arbiter = Arbiter::new(&rules, Luck::Seeded(self.seed)).expect("walls with a size");
        let resumed = Match::resume(terms::policies(), &self.journal[..], rules, arbiter)
            .expect("the journal of a killed server");
        self.journal.truncate(resumed.keep_bytes as usize);
        self.server = resumed.match_;
        self.server.set_referee(Judge);
        let leg = self.link.up;
        for member in &mut self.members {
            member.dialled_at = Some(self.now + (leg.delay + leg.jitter / 2) * 2);
        }
    }

    fn dial(&mut self) {
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            let is_silent = |at: Duration| self.now > at + SILENCE;
            let is_lost = member.session.last_received_at().is_some_and(is_silent);
            if self.restart_at.is_some() && is_lost && !member.session.is_returning() {
                member.session.connection_lost(self.now);
                let mirrors = self.mirrors.iter_mut().filter(|_| at == 0);
                mirrors.for_each(|mirror| mirror.connection_lost(self.now));
            }
            if member.dialled_at.take_if(|at| *at <= self.now).is_none() {
                continue;
            }
            member.peer = SessionId(member.peer.0 + 100);
            member.net = SimLink::new(self.link, self.seed ^ member.peer.0);
            self.server
                .connect(self.now, member.peer, &member.identity, member.seats)
                .expect("its own seat");
            member.session.reconnect(self.now);
            let mirrors = self.mirrors.iter_mut().filter(|_| at == 0);
            mirrors.for_each(|mirror| mirror.reconnect(self.now));
        }
    }

    fn waits_for_persons(&self) -> bool {
        let mut bots = PlayerSet::default();
        for member in self.members.iter().filter(|member| member.bot.is_some()) {
            let seats = member.session.seats();
            seats.iter().for_each(|seat| bots.set(*seat, true));
        }
        self.truth().waits_for_persons(bots)
    }

    fn play_bot(&mut self, at: usize) {
        // In real time a human plays, and the bots wait until that player is ready.
        let waits = self.frame.is_none() && self.waits_for_persons();
        let member = &mut self.members[at];
        if let Some(pad) = member.held {
            // A bot whose session is over has no input.
            let _ = self.play(at, |_| pad);
            return;
        }
        let Some(bot) = &mut member.bot else { return };
        let session = &mut member.session;
        let seen = session.prediction().zip(session.seats().first());
        let thought = seen.map(|(world, me)| {
            let sampled = Tick(session.stats().input_tick);
            bot.think(world.sim(), &self.rules, *me, sampled)
        });
        let (pad, order) = thought.unwrap_or_default();
        let order = order.filter(|_| !waits);
        // A bot whose session is over has no input.
        let _ = self.play(at, |_| pad);
        if let Some(order) = order {
            // An order above the limit is dropped.
            let _ = self.members[at].session.command(0, order);
        }
    }

    fn play(&mut self, at: usize, pad: impl Fn(usize) -> Pad) -> Result<(), SessionEnd> {
        let RehearsalMember { session, net, .. } = &mut self.members[at];
        let count = if at == 0 { self.mirrors.len() } else { 0 };
        let mirrors = &mut self.mirrors[..count];
        while let Some(bytes) = net.down.poll(self.now) {
            session.handle(self.now, bytes);
            for mirror in &mut *mirrors {
                mirror.handle(self.now, bytes);
            }
        }
        let played = session.advance(self.now, BUDGET_TICKS, &pad);
        for mirror in &mut *mirrors {
            let _ = mirror.advance(self.now, BUDGET_TICKS, &pad);
        }
        let [buffer, mirrored] = &mut *self.buffers;
        loop {
            let sent = session.poll_transmit(self.now, buffer);
            for mirror in &mut *mirrors {
                let same = mirror.poll_transmit(self.now, mirrored);
                let bytes = same.map(|len| &mirrored[..len]);
                assert_eq!(bytes, sent.map(|len| &buffer[..len]), "a mirror differs");
            }
            let Some(len) = sent else { break };
            net.up.send(self.now, &buffer[..len]);
        }
        if self.members[at].bot.is_some() {
            let session = &mut self.members[at].session;
            while session.poll_cue().is_some() {}
            while session.poll_event().is_some() {}
        }
        played
    }
}
