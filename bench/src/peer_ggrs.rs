//! The peer's side: ggrs 0.13 as published, four P2P sessions in one thread.
//!
//! ```text
//!  round r:  each session: add_local_input, advance_frame (which polls the socket), its requests, its events
//!  socket:   bincode as in ggrs's own UDP socket ─▶ a queue ─▶ readable in round r + 8
//! ```
//!
//! Session 0 is timed. Saving is `clone`, as ggrs's examples do it. ggrs reads the system's clock for its
//! timers: in this virtual time they fire less often per frame than at 60 Hz, which is in its favour.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use ggrs::{
    Config, DesyncDetection, GgrsEvent, GgrsRequest, Message, NonBlockingSocket, P2PSession,
    PlayerType, PredictRepeatLast, SessionBuilder, SessionState, SyncTestSession,
};
use twinstep_core::digest::digest;

use crate::measure::{Meters, Part};
use crate::simulation::{Blob, ONE_WAY_TICKS, PLAYERS, Pad, Pads, Sticks};

/// The smallest with which nobody ever waits for anybody: what ggrs does for a packet grows with it.
pub(crate) const PREDICTION_WINDOW: usize = ONE_WAY_TICKS as usize + 1;
/// Rounds until everybody has synchronised, at most.
const SYNC_ROUNDS: u32 = 2_000;
/// Rounds from then until queues have their sizes.
const SETTLE_ROUNDS: u32 = 600;
/// Messages kept to time their encoding alone.
const SAMPLES: usize = 256;

/// ggrs's view of the game.
#[derive(Debug)]
pub(crate) struct Game;

impl Config for Game {
    type Input = Pad;
    type InputPredictor = PredictRepeatLast;
    type State = Blob;
    type Address = usize;
}

/// Whether states are hashed and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksums {
    /// ggrs's default.
    Off,
    /// Each save is hashed with Twinstep's digest, and every second frame is compared, as Twinstep compares
    /// at every turn of two.
    EverySecondFrame,
}

/// All packets on their way.
#[derive(Default)]
struct Net {
    round: u32,
    under_way: [VecDeque<(u32, usize, Vec<u8>)>; PLAYERS],
    packets: u64,
    bytes: u64,
    samples: Vec<Message>,
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
        if net.samples.len() < net.samples.capacity() {
            net.samples.push(message.clone());
        }
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
            let message = ggrs_codec::deserialize(&bytes).expect("what was sent can be decoded");
            messages.push((from, message));
        }
        messages
    }
}

/// What session 0 and the network have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Frames that session 0 advanced for the first time.
    pub(crate) frames: u64,
    /// Rollbacks of session 0.
    pub(crate) rollbacks: u64,
    /// Frames that session 0 simulated again.
    pub(crate) resim_frames: u64,
    /// Packets of all sessions.
    pub(crate) packets: u64,
    /// Bytes of the packets, without any header around them.
    pub(crate) bytes: u64,
    /// Times that anybody found two states to differ.
    pub(crate) desyncs: u64,
}

impl std::ops::Sub for Counts {
    type Output = Counts;
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            frames: self.frames - earlier.frames,
            rollbacks: self.rollbacks - earlier.rollbacks,
            resim_frames: self.resim_frames - earlier.resim_frames,
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            desyncs: self.desyncs - earlier.desyncs,
        }
    }
}

/// One player: a session and the game that it drives.
struct Peer {
    session: P2PSession<Game>,
    state: Blob,
    pads: Pads,
    handle: usize,
    rollbacks: u64,
    advances: u64,
    desyncs: u64,
}

impl Peer {
    fn frame(&mut self, checksums: Checksums) {
        self.session
            .add_local_input(self.handle, self.pads.next())
            .expect("a local player");
        let requests = self.session.advance_frame();
        for request in requests.expect("nobody is too far behind") {
            self.rollbacks += u64::from(matches!(request, GgrsRequest::LoadGameState { .. }));
            self.advances += u64::from(matches!(request, GgrsRequest::AdvanceFrame { .. }));
            serve(&mut self.state, request, checksums);
        }
        for event in self.session.events() {
            match event {
                GgrsEvent::Disconnected { addr } => panic!("{addr} was given up"),
                GgrsEvent::DesyncDetected { .. } => self.desyncs += 1,
                _ => {}
            }
        }
    }
}

/// Does what a session asks for.
fn serve(state: &mut Blob, request: GgrsRequest<Game>, checksums: Checksums) {
    match request {
        GgrsRequest::SaveGameState { cell, frame } => {
            let checksum = match checksums {
                Checksums::Off => None,
                Checksums::EverySecondFrame => digest(&*state).ok().map(u128::from),
            };
            cell.save(frame, Some(state.clone()), checksum);
        }
        GgrsRequest::LoadGameState { cell, .. } => {
            *state = cell.load().expect("a state that was saved");
        }
        GgrsRequest::AdvanceFrame { inputs } => {
            state.play(inputs.into_iter().map(|(pad, _)| pad));
        }
    }
}

/// Four players.
pub(crate) struct Party {
    peers: Vec<Peer>,
    net: Rc<RefCell<Net>>,
    checksums: Checksums,
    settled: Counts,
}

impl Party {
    /// Four players, synchronised and settled.
    pub(crate) fn new(state_bytes: usize, sticks: Sticks, checksums: Checksums) -> Self {
        let net = Rc::new(RefCell::new(Net::default()));
        let peers = (0..PLAYERS).map(|own| Peer {
            session: session(own, net.clone(), checksums),
            state: Blob::new(state_bytes),
            pads: Pads::new(sticks, own),
            handle: own,
            rollbacks: 0,
            advances: 0,
            desyncs: 0,
        });
        let mut party = Party {
            peers: peers.collect(),
            net,
            checksums,
            settled: Counts::default(),
        };
        party.settle();
        party
    }

    fn settle(&mut self) {
        let running = |peer: &Peer| peer.session.current_state() == SessionState::Running;
        while !self.peers.iter().all(running) {
            let round = self.net.borrow().round;
            assert!(
                round < SYNC_ROUNDS,
                "not everybody synchronised in {SYNC_ROUNDS} rounds"
            );
            for peer in &mut self.peers {
                peer.session.poll_remote_clients();
            }
            self.net.borrow_mut().round += 1;
        }
        for _ in 0..SETTLE_ROUNDS {
            self.frame(&mut Meters::default());
        }
        self.settled = self.totals();
    }

    /// One frame of each player.
    pub(crate) fn frame(&mut self, meters: &mut Meters) {
        let checksums = self.checksums;
        let (first, others) = self.peers.split_first_mut().expect("four players");
        meters[Part::Whole].lap(|| first.frame(checksums));
        for peer in others {
            peer.frame(checksums);
        }
        self.net.borrow_mut().round += 1;
    }

    /// Messages of one frame after the other, as they are sent from here on.
    pub(crate) fn sample_messages(&mut self) -> Vec<Message> {
        self.net.borrow_mut().samples.reserve_exact(SAMPLES);
        while self.net.borrow().samples.len() < SAMPLES {
            self.frame(&mut Meters::default());
        }
        std::mem::take(&mut self.net.borrow_mut().samples)
    }

    /// What was counted since all have settled.
    pub(crate) fn counts(&self) -> Counts {
        self.totals() - self.settled
    }

    fn totals(&self) -> Counts {
        let (peer, net) = (&self.peers[0], self.net.borrow());
        let frames = peer.session.current_frame() as u64;
        Counts {
            frames,
            rollbacks: peer.rollbacks,
            resim_frames: peer.advances - frames,
            packets: net.packets,
            bytes: net.bytes,
            desyncs: self.peers.iter().map(|peer| peer.desyncs).sum(),
        }
    }
}

fn session(own: usize, net: Rc<RefCell<Net>>, checksums: Checksums) -> P2PSession<Game> {
    // Subjects take turns, so a session may stand still for a while by the system's clock.
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
        let kind = if player == own {
            PlayerType::Local
        } else {
            PlayerType::Remote(player)
        };
        builder = builder.add_player(kind, player).expect("a free handle");
    }
    builder
        .start_p2p_session(Socket { own, net })
        .expect("all players are there")
}

/// Times bincode alone, on real messages; what ggrs packs before and unpacks after cannot be reached.
pub(crate) struct Codec {
    messages: Vec<Message>,
    encoded: Vec<Vec<u8>>,
}

impl Codec {
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        let encode = |message| ggrs_codec::serialize(message).expect("a message can be encoded");
        let encoded = messages.iter().map(encode).collect();
        Codec { messages, encoded }
    }

    /// Encodes, then decodes each message once.
    pub(crate) fn run(&self, meters: &mut Meters) {
        let mut messages = self.messages.iter();
        meters[Part::Encode].laps(self.messages.len() as u32, || {
            std::hint::black_box(messages.next().map(ggrs_codec::serialize));
        });
        let mut encoded = self.encoded.iter();
        meters[Part::Decode].laps(self.encoded.len() as u32, || {
            let decode = |bytes: &Vec<u8>| ggrs_codec::deserialize::<Message>(bytes);
            std::hint::black_box(encoded.next().map(decode));
        });
    }
}

/// A sync test: rolls back `distance` frames at every frame, without any network.
pub(crate) struct SyncTest {
    session: SyncTestSession<Game>,
    state: Blob,
    loads: u64,
    advances: u64,
}

impl SyncTest {
    pub(crate) fn new(state_bytes: usize, distance: usize) -> Self {
        let mut builder = SessionBuilder::<Game>::new()
            .with_num_players(PLAYERS)
            .expect("at least one player")
            .with_max_prediction_window(PREDICTION_WINDOW)
            .with_check_distance(distance);
        for player in 0..PLAYERS {
            builder = builder
                .add_player(PlayerType::Local, player)
                .expect("a free handle");
        }
        let mut test = SyncTest {
            session: builder.start_synctest_session().expect("a short distance"),
            state: Blob::new(state_bytes),
            loads: 0,
            advances: 0,
        };
        for _ in 0..SETTLE_ROUNDS {
            test.frame();
        }
        (test.loads, test.advances) = (0, 0);
        test
    }

    pub(crate) fn frame(&mut self) {
        for player in 0..PLAYERS {
            self.session
                .add_local_input(player, Pad(7))
                .expect("a local player");
        }
        let requests = self.session.advance_frame();
        for request in requests.expect("a deterministic game") {
            self.loads += u64::from(matches!(request, GgrsRequest::LoadGameState { .. }));
            self.advances += u64::from(matches!(request, GgrsRequest::AdvanceFrame { .. }));
            serve(&mut self.state, request, Checksums::Off);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_after(frames: u64, sticks: Sticks, checksums: Checksums) -> Counts {
        let mut party = Party::new(4_096, sticks, checksums);
        for _ in 0..frames {
            party.frame(&mut Meters::default());
        }
        let counts = party.counts();
        assert_eq!((counts.frames, counts.desyncs), (frames, 0));
        counts
    }

    #[test]
    fn moving_sticks_roll_8_frames_back_at_every_frame() {
        for checksums in [Checksums::Off, Checksums::EverySecondFrame] {
            let counts = counts_after(300, Sticks::Moving, checksums);
            assert_eq!(counts.rollbacks, 300);
            assert_eq!(counts.resim_frames, 300 * u64::from(ONE_WAY_TICKS));
        }
    }

    #[test]
    fn still_sticks_roll_nothing_back() {
        let counts = counts_after(300, Sticks::Still, Checksums::Off);
        assert_eq!((counts.rollbacks, counts.resim_frames), (0, 0));
    }

    #[test]
    fn each_peer_sends_an_input_and_an_ack_to_each_other_at_every_frame() {
        let counts = counts_after(300, Sticks::Moving, Checksums::Off);
        let per_frame = (PLAYERS * (PLAYERS - 1) * 2) as u64;
        assert!(counts.packets >= 300 * per_frame, "{counts:?}");
    }

    #[test]
    fn a_sync_test_of_distance_8_simulates_8_frames_again_and_one_of_0_none() {
        for (distance, loads, advances) in [(0, 0, 100), (8, 100, 900)] {
            let mut test = SyncTest::new(4_096, distance);
            (0..100).for_each(|_| test.frame());
            assert_eq!((test.loads, test.advances), (loads, advances));
        }
    }
}
