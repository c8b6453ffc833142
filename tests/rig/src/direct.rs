//! A match and its sessions without a network. Packets are delivered immediately, unless a test holds them back.
//!
//! The rig runs whole worlds; this module is for tests of one frame, one packet or one tick.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{BUDGET_TICKS, NoPicture, Session, SessionConfig, Show};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Effects, Frame, Simulation};
use twinstep_server::peer::SessionStage;
use twinstep_server::{
    CloseCode, Decision, HookContext, Match, MatchConfig, Output, Resolver, SessionId,
    WorldEncoding,
};

thread_local! {
    static SERVES: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` while the server's world is stepped. Faults planted for the server must not break a predicting
/// client.
#[must_use]
pub fn serves() -> bool {
    SERVES.get()
}

/// A match, and sessions that draw their frames in step.
pub struct Direct<S: Simulation, V: Show<S> = NoPicture> {
    pub match_: Match<S>,
    /// The clients. A client's session id is its index.
    pub sessions: Vec<Session<S, V>>,
    pub now: Duration,
    /// The maximum number of steps of a client's prediction in one frame. With 0 the client shows the confirmed world.
    pub budget_ticks: u32,
    pub mute_until: Duration,
    /// Until these times, the clients receive no packets.
    pub deaf_until: Vec<Duration>,
    pub up: Vec<(usize, Vec<u8>)>,
    pub journal: Vec<u8>,
    pub to_encode: Vec<WorldEncoding>,
    late: Vec<(Duration, bool, usize, Vec<u8>)>,
    frame: Duration,
}

/// A game with a world of any size. Players increment its first bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heavy {
    bytes: Vec<u8>,
}

impl Heavy {
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Heavy {
            bytes: vec![7; bytes],
        }
    }

    #[must_use]
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes[at]
    }
}

impl Simulation for Heavy {
    game_types!("heavy");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, input) in frame.inputs() {
            self.bytes[player.index()] = self.bytes[player.index()].wrapping_add(*input);
        }
    }
}

pub fn no_queries<S: Simulation>() -> impl Resolver<S> {
    |_: &HookContext<'_, S>, _, _: &S::Query| -> Decision<S::Outcome> {
        unreachable!("the game asks no query")
    }
}

impl<S: Simulation<Rules = ()>, V: Show<S>> Direct<S, V> {
    /// A game without rules or queries; clients draw 60 frames a second.
    pub fn of(
        policies: MatchConfig,
        sim: S,
        sessions: impl IntoIterator<Item = SessionConfig<S, V>>,
    ) -> Self {
        Direct::answered(policies, sim, no_queries(), sessions)
    }

    /// A game with queries and without rules; clients draw 60 frames a second.
    pub fn answered(
        policies: MatchConfig,
        sim: S,
        resolver: impl Resolver<S>,
        sessions: impl IntoIterator<Item = SessionConfig<S, V>>,
    ) -> Self {
        let sessions = sessions.into_iter().collect();
        Direct::new(policies, sim, Arc::new(()), resolver, sessions, 60)
    }
}

impl<S: Simulation, V: Show<S>> Direct<S, V> {
    /// Creates one client for each configuration, drawing `fps` frames a second.
    pub fn new(
        policies: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
        sessions: Vec<SessionConfig<S, V>>,
        fps: u32,
    ) -> Self {
        Direct::with_seats(policies, sim, rules, resolver, sessions, 1, fps)
    }

    /// Like [`new`](Direct::new), with this many seats for each client.
    pub fn with_seats(
        policies: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
        sessions: Vec<SessionConfig<S, V>>,
        seats: usize,
        fps: u32,
    ) -> Self {
        let match_ = Match::new(policies, sim, rules, resolver).expect("the game starts");
        let mut all = Direct::around(match_, fps);
        for (i, config) in sessions.into_iter().enumerate() {
            all.connect(&format!("player {i}"), seats, config)
                .expect("a free seat");
        }
        all
    }

    pub fn around(match_: Match<S>, fps: u32) -> Self {
        Direct {
            deaf_until: Vec::new(),
            sessions: Vec::new(),
            match_,
            now: Duration::ZERO,
            budget_ticks: BUDGET_TICKS,
            mute_until: Duration::ZERO,
            up: Vec::new(),
            journal: Vec::new(),
            to_encode: Vec::new(),
            late: Vec::new(),
            frame: Duration::from_secs(1) / fps,
        }
    }

    /// Connects another client.
    pub fn connect(
        &mut self,
        identity: &str,
        seats: usize,
        config: SessionConfig<S, V>,
    ) -> Result<SessionId, CloseCode> {
        let peer = SessionId(self.sessions.len() as u64);
        self.match_.connect(self.now, peer, identity, seats)?;
        self.sessions
            .push(Session::new(config).expect("rules without NaN"));
        self.deaf_until.push(Duration::ZERO);
        Ok(peer)
    }

    pub fn frame(&mut self, mut input: impl FnMut(usize, &Session<S, V>) -> S::Input) {
        self.now += self.frame;
        let mut buffer = [0; PACKET_BYTES_MAX];
        for (i, session) in self.sessions.iter_mut().enumerate() {
            let held = input(i, session);
            // A closed session returns an error, and sends nothing.
            let _ = session.advance(self.now, self.budget_ticks, |_| held.clone());
            if let Some(mut rebuild) = session.poll_rebuild() {
                rebuild.run();
                session.hand_back(rebuild);
            }
            while let Some(len) = session.poll_transmit(self.now, &mut buffer) {
                self.up.push((i, buffer[..len].to_vec()));
            }
        }
    }

    pub fn serve(&mut self) {
        if self.now < self.mute_until {
            self.up.clear();
        }
        SERVES.set(true);
        for (i, bytes) in self.up.drain(..) {
            self.match_.handle(self.now, SessionId(i as u64), &bytes);
        }
        self.match_.advance(self.now);
        SERVES.set(false);
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let i = peer.0 as usize;
                    let is_deaf = self
                        .deaf_until
                        .get(i)
                        .is_some_and(|until| self.now < *until);
                    if let Some(session) = self.sessions.get_mut(i).filter(|_| !is_deaf) {
                        session.handle(self.now, bytes);
                    }
                }
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Encode(world) => self.to_encode.push(world),
                // Tickets, jobs and closed sessions matter to no test here.
                _ => {}
            }
        }
    }

    /// Runs frames of all clients, and advances the match after each.
    pub fn run(
        &mut self,
        frames: u32,
        mut input: impl FnMut(usize, &Session<S, V>) -> S::Input,
    ) -> &mut Self {
        for _ in 0..frames {
            self.frame(&mut input);
            self.serve();
        }
        self
    }

    /// Runs one frame of all clients, and advances the match. A client's packets take its time in `legs` each way.
    pub fn frame_over(
        &mut self,
        legs: &[Duration],
        input: impl FnMut(usize, &Session<S, V>) -> S::Input,
    ) {
        self.frame(input);
        let now = self.now;
        let up = self.up.drain(..);
        self.late
            .extend(up.map(|(i, bytes)| (now + legs[i], true, i, bytes)));
        for arrives_up in [true, false] {
            let due = |(at, up, ..): &mut (Duration, bool, usize, Vec<u8>)| {
                *at <= now && *up == arrives_up
            };
            for (_, _, i, bytes) in self.late.extract_if(.., due) {
                match arrives_up {
                    true => self.match_.handle(now, SessionId(i as u64), &bytes),
                    false => self.sessions[i].handle(now, &bytes),
                }
            }
            if arrives_up {
                self.match_.advance(now);
                while let Some(output) = self.match_.poll() {
                    if let Output::Packet { peer, bytes } = output {
                        let i = peer.0 as usize;
                        self.late.push((now + legs[i], false, i, bytes.to_vec()));
                    }
                }
            }
        }
    }

    pub fn rest(&mut self, time: Duration) -> &mut Self {
        let frames = time.as_nanos().div_ceil(self.frame.as_nanos());
        self.run(frames as u32, |_, _| S::Input::default())
    }

    pub fn gather(&mut self) -> &mut Self {
        let peers = 0..self.sessions.len() as u64;
        let plays =
            |match_: &Match<S>, peer| match_.stage(SessionId(peer)) == Some(SessionStage::Playing);
        let until = self.now + Duration::from_secs(60);
        while !peers.clone().all(|peer| plays(&self.match_, peer)) {
            assert!(self.now < until, "not all clients joined");
            self.rest(self.frame);
        }
        self.rest(Duration::from_secs(1))
    }
}
