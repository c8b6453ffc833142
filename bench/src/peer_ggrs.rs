//! The client's peer: ggrs 0.13 as published, as four P2P sessions in one thread.
//!
//! ```text
//!  round r:  each session: add_local_input, advance_frame (which polls the socket), its requests, its events
//!  socket:   bincode as in ggrs's own UDP socket ─▶ a queue ─▶ readable in round r + 8
//! ```
//!
//! Session 0 is timed. Saving is `clone`, as in ggrs's examples. ggrs reads the system's clock for its timers, so in
//! this virtual time they fire less often per frame than at 60 Hz, which favours ggrs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use ggrs::{
    Config, DesyncDetection, GgrsEvent, GgrsRequest, Message, NonBlockingSocket, P2PSession,
    PlayerType, PredictRepeatLast, SessionBuilder, SessionState,
};
use twinstep_core::digest::digest;

use crate::game::{Blob, PLAYERS, Pad, Pads, Sticks};
use crate::ours::ONE_WAY_TICKS;
use crate::turns::{Counts, Meters, Party, WHOLE};

/// The smallest window that avoids waits. ggrs's work per packet grows with the window.
const PREDICTION_WINDOW: usize = ONE_WAY_TICKS as usize + 1;
const SYNC_ROUNDS_MAX: u32 = 2_000;
const SETTLE_ROUNDS: u32 = 600;

#[derive(Debug)]
struct Game;

impl Config for Game {
    type Input = Pad;
    type InputPredictor = PredictRepeatLast;
    type State = Blob;
    type Address = usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksums {
    /// ggrs's default.
    Off,
    /// Each save is hashed with Twinstep's digest and every second frame is compared, as Twinstep compares every
    /// two-tick turn.
    EverySecondFrame,
}

#[derive(Default)]
struct Net {
    round: u32,
    under_way: [VecDeque<(u32, usize, Vec<u8>)>; PLAYERS],
    packets: u64,
    bytes: u64,
}

struct Socket {
    own: usize,
    net: Rc<RefCell<Net>>,
}

impl NonBlockingSocket<usize> for Socket {
    fn send_to(&mut self, message: &Message, to: &usize) {
        let bytes = ggrs_codec::serialize(message).expect("a message can be encoded");
        let net = &mut *self.net.borrow_mut();
        net.packets += 1;
        net.bytes += bytes.len() as u64;
        let due = net.round + ONE_WAY_TICKS;
        net.under_way[*to].push_back((due, self.own, bytes));
    }

    fn receive_all_messages(&mut self) -> Vec<(usize, Message)> {
        let net = &mut *self.net.borrow_mut();
        let round = net.round;
        let mut messages = Vec::new();
        while let Some((_, from, bytes)) =
            net.under_way[self.own].pop_front_if(|(due, ..)| *due <= round)
        {
            let message = ggrs_codec::deserialize(&bytes).expect("a message can be decoded");
            messages.push((from, message));
        }
        messages
    }
}

struct Driven {
    state: Blob,
    checksums: Checksums,
    loads: u64,
    advances: u64,
}

impl Driven {
    fn new(state_bytes: usize, checksums: Checksums) -> Driven {
        Driven {
            state: Blob::new(state_bytes),
            checksums,
            loads: 0,
            advances: 0,
        }
    }

    fn serve(&mut self, request: GgrsRequest<Game>) {
        match request {
            GgrsRequest::SaveGameState { cell, frame } => {
                let checksum = match self.checksums {
                    Checksums::Off => None,
                    Checksums::EverySecondFrame => digest(&self.state).ok().map(u128::from),
                };
                cell.save(frame, Some(self.state.clone()), checksum);
            }
            GgrsRequest::LoadGameState { cell, .. } => {
                self.loads += 1;
                self.state = cell.load().expect("a saved state");
            }
            GgrsRequest::AdvanceFrame { inputs } => {
                self.advances += 1;
                self.state.play(inputs.into_iter().map(|(pad, _)| pad));
            }
        }
    }
}

struct Peer {
    session: P2PSession<Game>,
    driven: Driven,
    pads: Pads,
    handle: usize,
    desyncs: u64,
}

impl Peer {
    fn frame(&mut self) {
        self.session
            .add_local_input(self.handle, self.pads.next())
            .expect("a local player");
        let requests = self.session.advance_frame();
        for request in requests.expect("no peer is too far behind") {
            self.driven.serve(request);
        }
        for event in self.session.events() {
            match event {
                GgrsEvent::Disconnected { addr } => panic!("{addr} was disconnected"),
                GgrsEvent::DesyncDetected { .. } => self.desyncs += 1,
                _ => {}
            }
        }
    }
}

pub(crate) struct Mesh {
    peers: Vec<Peer>,
    net: Rc<RefCell<Net>>,
    settled: Counts,
}

impl Mesh {
    pub(crate) fn new(state_bytes: usize, sticks: Sticks, checksums: Checksums) -> Self {
        let net = Rc::new(RefCell::new(Net::default()));
        let peers = (0..PLAYERS).map(|own| Peer {
            session: session(own, net.clone(), checksums),
            driven: Driven::new(state_bytes, checksums),
            pads: Pads::new(sticks, own),
            handle: own,
            desyncs: 0,
        });
        let mut mesh = Mesh {
            peers: peers.collect(),
            net,
            settled: Counts::default(),
        };
        let running = |peer: &Peer| peer.session.current_state() == SessionState::Running;
        while !mesh.peers.iter().all(running) {
            let round = mesh.net.borrow().round;
            assert!(
                round < SYNC_ROUNDS_MAX,
                "all synchronise in {SYNC_ROUNDS_MAX} rounds"
            );
            for peer in &mut mesh.peers {
                peer.session.poll_remote_clients();
            }
            mesh.net.borrow_mut().round += 1;
        }
        for _ in 0..SETTLE_ROUNDS {
            mesh.frame(&mut Meters::default());
        }
        mesh.settled = mesh.totals();
        mesh
    }

    fn totals(&self) -> Counts {
        let (driven, net) = (&self.peers[0].driven, self.net.borrow());
        let frames = self.peers[0].session.current_frame() as u64;
        Counts {
            frames,
            turns: frames,
            rebuilds: driven.loads,
            again_ticks: driven.advances - frames,
            // Each packet leaves one player and arrives at another.
            sent: net.packets,
            received: net.packets,
            bytes: 2 * net.bytes,
            faults: self.peers.iter().map(|peer| peer.desyncs).sum(),
        }
    }
}

impl Party for Mesh {
    fn frame(&mut self, meters: &mut Meters) {
        let (first, others) = self.peers.split_first_mut().expect("four players");
        meters[WHOLE].lap(|| first.frame());
        others.iter_mut().for_each(Peer::frame);
        self.net.borrow_mut().round += 1;
    }

    fn counts(&self) -> Counts {
        self.totals() - self.settled
    }
}

fn session(own: usize, net: Rc<RefCell<Net>>, checksums: Checksums) -> P2PSession<Game> {
    // Subjects take turns, so by the system's clock a session may pause for a long time.
    let patience = Duration::from_secs(3_600);
    let mut builder = SessionBuilder::<Game>::new()
        .with_num_players(PLAYERS)
        .expect("at least one player")
        .with_max_prediction_window(PREDICTION_WINDOW)
        .with_desync_detection_mode(match checksums {
            Checksums::Off => DesyncDetection::Off,
            Checksums::EverySecondFrame => DesyncDetection::On { interval: 2 },
        })
        .with_disconnect_timeout(patience)
        .with_disconnect_notify_delay(patience);
    for player in 0..PLAYERS {
        let kind = match player == own {
            true => PlayerType::Local,
            false => PlayerType::Remote(player),
        };
        builder = builder.add_player(kind, player).expect("a free handle");
    }
    builder
        .start_p2p_session(Socket { own, net })
        .expect("all players are there")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_after(frames: u64, sticks: Sticks, checksums: Checksums) -> Counts {
        let mut mesh = Mesh::new(4_096, sticks, checksums);
        (0..frames).for_each(|_| mesh.frame(&mut Meters::default()));
        let counts = mesh.counts();
        assert_eq!((counts.frames, counts.faults), (frames, 0));
        counts
    }

    #[test]
    fn moving_sticks_cause_an_8_frame_rollback_every_frame() {
        for checksums in [Checksums::Off, Checksums::EverySecondFrame] {
            let counts = counts_after(300, Sticks::Moving, checksums);
            assert_eq!(counts.rebuilds, 300);
            assert_eq!(counts.again_ticks, 300 * u64::from(ONE_WAY_TICKS));
            // An input and an ack to each other peer every frame.
            let per_frame = (PLAYERS * (PLAYERS - 1) * 2) as u64;
            assert!(counts.sent >= 300 * per_frame, "{counts:?}");
        }
    }

    #[test]
    fn still_sticks_cause_no_rollback() {
        let counts = counts_after(300, Sticks::Still, Checksums::Off);
        assert_eq!((counts.rebuilds, counts.again_ticks), (0, 0));
    }
}
