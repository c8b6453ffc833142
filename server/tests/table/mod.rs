//! A match and its clients on one table: packets are handed over at once, time is a number.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{Session, SessionConfig};
use twinstep_core::Simulation;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_server::peer::SessionStage;
use twinstep_server::{Match, MatchConfig, Output, Resolver, SessionId};

thread_local! {
    static SERVES: Cell<bool> = const { Cell::new(false) };
}

/// Whether it is the server's world that is stepped: what is planted to break it must not break a client that predicts.
pub(crate) fn serves() -> bool {
    SERVES.get()
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Table<S: Simulation> {
    pub(crate) game: Match<S>,
    /// The clients, whose peers are numbered from 0.
    pub(crate) sessions: Vec<Session<S>>,
    pub(crate) now: Duration,
    pub(crate) frame: Duration,
    pub(crate) journal: Vec<u8>,
}

impl<S: Simulation<Rules = ()>> Table<S> {
    pub(crate) fn new(
        config: MatchConfig,
        sim: S,
        resolver: impl Resolver<S>,
        clients: usize,
        set: impl Fn(usize) -> SessionConfig<S>,
    ) -> Self {
        let frame = config.tick;
        let mut game = Match::new(config, sim, Arc::new(()), resolver).expect("the game starts");
        let sessions = (0..clients).map(|i| {
            game.connect(
                Duration::ZERO,
                SessionId(i as u64),
                &format!("player {i}"),
                1,
            )
            .expect("a free seat");
            Session::new(set(i)).expect("rules without NaN")
        });
        Table {
            sessions: sessions.collect(),
            game,
            now: Duration::ZERO,
            frame,
            journal: Vec::new(),
        }
    }

    /// One tick of everybody. Each client holds `input(client)`.
    pub(crate) fn frame(&mut self, input: impl Fn(usize) -> S::Input) {
        self.now += self.frame;
        let mut buffer = [0; PACKET_BYTES_MAX];
        SERVES.set(true);
        for (i, session) in self.sessions.iter_mut().enumerate() {
            SERVES.set(false);
            // Who is put out stays silent.
            let _ = session.advance(self.now, 64, |_| input(i));
            SERVES.set(true);
            while let Some(len) = session.poll_transmit(self.now, &mut buffer) {
                self.game
                    .handle(self.now, SessionId(i as u64), &buffer[..len]);
            }
        }
        self.game.advance(self.now);
        SERVES.set(false);
        while let Some(output) = self.game.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    if let Some(session) = self.sessions.get_mut(peer.0 as usize) {
                        session.handle(self.now, bytes);
                    }
                }
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                _ => {}
            }
        }
    }

    /// So much time, with everybody at rest.
    pub(crate) fn run(&mut self, time: Duration) -> &mut Self {
        let end = self.now + time;
        while self.now < end {
            self.frame(|_| S::Input::default());
        }
        self
    }

    /// Until all clients play.
    pub(crate) fn gather(&mut self) -> &mut Self {
        for _ in 0..3_600 {
            if (0..self.sessions.len() as u64)
                .all(|i| self.game.stage(SessionId(i)) == Some(SessionStage::Playing))
            {
                return self.run(SECOND);
            }
            self.frame(|_| S::Input::default());
        }
        panic!("not everybody got in within a minute");
    }
}
