//! A client that gets the time and a stopwatch from its caller keeps its budget without reading a clock.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Client, NoPicture, Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Effects, Frame, Simulation};
use twinstep_rig::direct::no_queries;
use twinstep_rig::game_types;
use twinstep_server::{Match, MatchConfig, Output, SessionId};
use twinstep_udp::{SimulatedTransport, Transport};

const FRAME: Duration = Duration::from_nanos(16_666_667);
const SECOND: u32 = 60;
const STEP: Duration = Duration::from_micros(200);

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Costly(u32);

impl Simulation for Costly {
    game_types!("costly");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        SPENT.set(SPENT.get() + STEP);
        for (_, held) in frame.inputs() {
            self.0 = self.0.wrapping_add(u32::from(*held));
        }
    }
}

struct Table {
    match_: Match<Costly>,
    clients: Vec<(
        Client<Costly, NoPicture, SimulatedTransport>,
        SimulatedTransport,
    )>,
    now: Duration,
}

impl Table {
    fn new() -> Table {
        let mut match_ = Match::new(
            MatchConfig::action(),
            Costly::default(),
            Arc::new(()),
            no_queries(),
        )
        .expect("a sound configuration");
        let link = "rtt=100,jitter=0,loss=0".parse().expect("a link");
        let clients = (0..2).map(|n| {
            let name = format!("player {n}");
            let joined = match_.connect(Duration::ZERO, SessionId(n), &name, 1);
            joined.expect("a free seat");
            let (client, server) = SimulatedTransport::pair(link, n);
            let config = SessionConfig::new(Arc::new(())).verify(false);
            let session = Session::new(config).expect("rules without a NaN");
            (Client::with_transport(client, session), server)
        });
        let clients = clients.collect();
        Table {
            match_,
            clients,
            now: Duration::ZERO,
        }
    }

    /// Runs this many frames, and returns the longest time that an advance of the first client took. That client
    /// receives packets only if `hears` is `true`.
    fn play(&mut self, frames: u32, hears: bool) -> Duration {
        let mut longest = Duration::ZERO;
        for frame in 0..frames {
            self.now += FRAME;
            let now = self.now;
            for (n, (client, server)) in self.clients.iter_mut().enumerate() {
                let before = SPENT.get();
                // The second client often changes its input, so that guesses are wrong.
                let held = (n as u32 * frame / 7 % 2) as u8;
                let played = client.advance_at(now, || SPENT.get(), |_| held);
                played.expect("it plays");
                if n == 0 {
                    longest = longest.max(SPENT.get() - before);
                }
                server.advance(now);
                let mut buffer = [0; PACKET_BYTES_MAX];
                while let Some(len) = server.poll(&mut buffer) {
                    let peer = SessionId(n as u64);
                    self.match_.handle(now, peer, &buffer[..len]);
                }
            }
            self.match_.advance(now);
            while let Some(output) = self.match_.poll() {
                if let Output::Packet { peer, bytes } = output
                    && (hears || peer.0 != 0)
                {
                    let _ = self.clients[peer.0 as usize].1.send(bytes);
                }
            }
        }
        longest
    }
}

#[test]
fn a_client_with_a_given_stopwatch_keeps_its_frame_budget_through_an_outage() {
    let mut table = Table::new();
    table.play(5 * SECOND, true);
    let quiet = table.play(5 * SECOND, true);
    let outage = table.play(SECOND, false);
    let after = table.play(5 * SECOND, true);
    let stats = table.clients[0].0.session().stats();
    println!("{quiet:?}, {outage:?}, {after:?}; {stats:?}");
    assert!(stats.timeline.rebuilds > 20, "guesses are wrong");
    for took in [quiet, outage, after] {
        assert!(took <= Duration::from_micros(4_400), "{took:?} of 4 ms");
    }
    // The client caught up.
    let behind = table.match_.world().tick().0 - stats.authority_tick;
    assert!(behind <= 10, "{behind} ticks");
}
