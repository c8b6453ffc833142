//! A match of a game with maps, its host's choices, and its clients over simulated links. The tests of lobbies use it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Event, Session, SessionConfig};
use twinstep_core::bounds::{PACKET_BYTES_MAX, RULES_BYTES_MAX};
use twinstep_core::{Effects, Frame, Mwc, RosterChange, Simulation, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_rig::direct::no_queries;
use twinstep_rig::game_types;
use twinstep_server::config::StartWhen;
use twinstep_server::peer::SessionStage;
use twinstep_server::{CloseCode, Match, MatchConfig, Output, SessionId};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MS: Duration = Duration::from_millis(1);

// A map of up to a megabyte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) tiles: Vec<u8>,
}

impl Map {
    // Tiles of 16 kinds, so that the map compresses to half its size.
    pub(crate) fn new(name: &str, bytes: usize) -> Map {
        let mut luck = Mwc::seed(name.len() as u64);
        let tiles = (0..bytes).map(|_| luck.below(16) as u8).collect();
        Map {
            name: name.to_owned(),
            tiles,
        }
    }

    // The largest map that can be sent.
    pub(crate) fn largest(name: &str) -> Map {
        Map::new(name, RULES_BYTES_MAX - 6 - name.len())
    }
}

// A game whose step depends on each tile of its map.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Isle {
    pub(crate) ships: [u32; 16],
    // The players that joined, with the tick.
    pub(crate) came: Vec<(Tick, u8)>,
}

impl Simulation for Isle {
    game_types!(
        "isle",
        Map,
        u8,
        twinstep_core::Never,
        twinstep_core::Never,
        twinstep_core::Never,
        twinstep_core::Never
    );

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, change) in frame.roster() {
            if change == RosterChange::Joined {
                self.came.push((frame.tick(), player.0));
            }
        }
        let tiles = &frame.rules().tiles;
        for (player, input) in frame.inputs() {
            let ship = &mut self.ships[player.index()];
            let at = (*ship as usize * 7_919 + usize::from(*input)) % tiles.len();
            *ship = ship.wrapping_mul(31) + u32::from(tiles[at]) + 1;
        }
    }
}

pub(crate) struct Client {
    pub(crate) session: Session<Isle>,
    pub(crate) line: SimLink,
    pub(crate) id: SessionId,
    pub(crate) identity: String,
    pub(crate) joined: bool,
    pub(crate) events: Vec<Event>,
}

pub(crate) struct Party {
    pub(crate) match_: Match<Isle>,
    pub(crate) policies: MatchConfig,
    pub(crate) clients: Vec<Client>,
    pub(crate) journal: Vec<u8>,
    pub(crate) now: Duration,
    pub(crate) step: Duration,
    pub(crate) next_id: u64,
}

pub(crate) fn action() -> MatchConfig {
    MatchConfig {
        tick: 50 * MS,
        players_max: 4,
        ..MatchConfig::action()
    }
}

pub(crate) fn strategy() -> MatchConfig {
    MatchConfig {
        players_max: 4,
        ..MatchConfig::strategy()
    }
}

pub(crate) fn modes(start_when: StartWhen) -> [MatchConfig; 2] {
    [action(), strategy()].map(|policies| MatchConfig {
        start_when: start_when.clone(),
        ..policies
    })
}

pub(crate) fn taker() -> SessionConfig<Isle> {
    SessionConfig::without_rules().verify(true)
}

pub(crate) fn holder(map: &Map) -> SessionConfig<Isle> {
    SessionConfig::new(Arc::new(map.clone())).verify(true)
}

impl Party {
    pub(crate) fn new(policies: MatchConfig, map: Map) -> Party {
        let start = Isle::default();
        let match_ = Match::new(policies.clone(), start, Arc::new(map), no_queries()).unwrap();
        Party::of(policies, match_)
    }

    pub(crate) fn of(policies: MatchConfig, mut match_: Match<Isle>) -> Party {
        match_.keep_journal().unwrap();
        Party {
            match_,
            policies,
            clients: Vec::new(),
            journal: Vec::new(),
            now: Duration::ZERO,
            step: 20 * MS,
            next_id: 1,
        }
    }

    pub(crate) fn dial(&mut self, identity: &str) -> Result<SessionId, CloseCode> {
        let id = SessionId(self.next_id);
        self.next_id += 1;
        self.match_.connect(self.now, id, identity, 1)?;
        Ok(id)
    }

    pub(crate) fn come(
        &mut self,
        identity: &str,
        link: LinkProfile,
        config: SessionConfig<Isle>,
    ) -> usize {
        let id = self.dial(identity).unwrap();
        let session = Session::new(config.names([identity])).unwrap();
        self.clients.push(Client {
            session,
            line: SimLink::new(link, id.0),
            id,
            identity: identity.to_owned(),
            joined: false,
            events: Vec::new(),
        });
        self.clients.len() - 1
    }

    // Moves a client to a new transport. If `hangs_up` is `true`, the server knows that the old transport is gone.
    pub(crate) fn redial(&mut self, client: usize, link: LinkProfile, hangs_up: bool) {
        let identity = self.clients[client].identity.clone();
        if hangs_up {
            self.match_.disconnect(self.clients[client].id);
        }
        let id = self.dial(&identity).unwrap();
        let client = &mut self.clients[client];
        (client.id, client.line) = (id, SimLink::new(link, id.0));
        client.session.reconnect(self.now);
    }

    // Another process resumes the match, and all clients dial again.
    pub(crate) fn crash(&mut self, rules: Arc<Map>) {
        let policies = self.policies.clone();
        let resumed = Match::resume(policies, &self.journal[..], rules, no_queries()).unwrap();
        self.match_ = resumed.match_;
        self.journal.truncate(resumed.keep_bytes as usize);
        assert!(self.match_.lobby().is_none());
        for client in 0..self.clients.len() {
            self.redial(client, LinkProfile::WAN, false);
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let mut buffer = [0; PACKET_BYTES_MAX];
        while self.now < end {
            self.now += self.step;
            let now = self.now;
            for client in &mut self.clients {
                while let Some(bytes) = client.line.down.poll(now) {
                    client.session.handle(now, bytes);
                }
                let tick = client.session.authority().map_or(0, |world| world.tick().0);
                let _ = client.session.advance(now, 8, |_| (tick / 7) as u8);
                while let Some(event) = client.session.poll_event() {
                    client.joined |= matches!(event, Event::Joined(_));
                    if let Event::Request { .. } | Event::RequestRefused { .. } | Event::Notice(_) =
                        event
                    {
                        client.events.push(event);
                    }
                }
                while let Some(len) = client.session.poll_transmit(now, &mut buffer) {
                    client.line.up.send(now, &buffer[..len]);
                }
                while let Some(bytes) = client.line.up.poll(now) {
                    self.match_.handle(now, client.id, bytes);
                }
            }
            self.match_.advance(now);
            while let Some(output) = self.match_.poll() {
                match output {
                    Output::Packet { peer, bytes } => {
                        let client = self.clients.iter_mut().find(|client| client.id == peer);
                        if let Some(client) = client {
                            client.line.down.send(now, bytes);
                        }
                    }
                    Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn ready(&mut self) {
        for client in &mut self.clients {
            client.session.ready(true);
        }
    }

    // Runs until the match has sealed a tick.
    pub(crate) fn until_it_runs(&mut self) -> Duration {
        let began = self.now;
        while self.tick() == Tick(0) {
            self.run(self.step);
            assert!(self.now < began + 60 * SECOND, "it never starts");
        }
        self.now - began
    }

    pub(crate) fn tick(&self) -> Tick {
        self.match_.world().tick()
    }

    pub(crate) fn waits(&self) -> bool {
        self.match_.lobby().is_some() && self.tick() == Tick(0)
    }

    pub(crate) fn stage(&self, client: usize) -> Option<SessionStage> {
        self.match_.stage(self.clients[client].id)
    }

    // Checks that all clients play, and have the server's digests.
    pub(crate) fn check_equal(&self) {
        for client in &self.clients {
            let (session, name) = (&client.session, &client.identity);
            assert_eq!(session.closed(), None, "{name}");
            let world = session.authority().unwrap_or_else(|| panic!("{name}"));
            assert!(self.tick() - world.tick() < 40, "{name} trails");
            assert!(world.sim().ships.iter().any(|ship| *ship > 0), "{name}");
            assert_eq!(
                world.digest().ok(),
                self.match_.digest_at(world.tick()),
                "{name}"
            );
            assert_eq!(session.stats().heals, 0, "{name}");
        }
    }

    // The ticks at which players joined.
    pub(crate) fn came(&self) -> Vec<u32> {
        let came = self.match_.world().sim().came.iter();
        came.map(|(tick, _)| tick.0).collect()
    }
}
