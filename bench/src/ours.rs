//! Twinstep's side: a real match and four real sessions, in memory, in virtual time.
//!
//! ```text
//!  round r:  packets of round r − 8 ─▶ match.handle … advance … poll ─▶ due in round r + 8
//!            packets of round r − 8 ─▶ each session.handle, advance, poll_transmit ─▶ due in round r + 8
//! ```
//!
//! A round is one tick of virtual time and one frame of each client. All sessions do the same work, so each
//! serves another meter: client 0 is timed as a whole, clients 1 to 3 in parts. No transport is in it, as
//! there is none on the peer's side: no cipher, no socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_client::hooks::{Repeat, Wait};
use twinstep_client::orders::LocalActions;
use twinstep_client::session::BUDGET_TICKS;
use twinstep_client::timeline::{Known, Timeline, Watch};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::packet::OUTER_BYTES;
use twinstep_core::world::World;
use twinstep_core::{Effects, Key, Never, PlayerId, RosterChange, Tick};
use twinstep_server::config::{Announce, TurnLength};
use twinstep_server::peer::SessionStage;
use twinstep_server::{Decision, Look, Match, MatchConfig, Output, PeerId};

use crate::measure::{Meters, Part};
use crate::simulation::{Blob, ONE_WAY_TICKS, PLAYERS, Pad, Pads, Sticks};

/// Rounds until everybody has joined, at most.
const JOIN_ROUNDS: u32 = 2_000;
/// Rounds from then until the clocks have settled.
const SETTLE_ROUNDS: u32 = 1_200;

/// A packet on its way.
struct Datagram {
    due: u32,
    client: usize,
    bytes: Vec<u8>,
}

/// Packets on their way one way; buffers are used again, so that only the sessions' allocations count.
#[derive(Default)]
struct Leg {
    under_way: VecDeque<Datagram>,
    spare: Vec<Vec<u8>>,
    packets: u64,
    bytes: u64,
}

impl Leg {
    fn send(&mut self, round: u32, client: usize, bytes: &[u8]) {
        let spare = self.spare.pop();
        let mut buffer = spare.unwrap_or_else(|| Vec::with_capacity(PACKET_BYTES_MAX));
        buffer.extend_from_slice(bytes);
        self.packets += 1;
        self.bytes += bytes.len() as u64;
        self.under_way.push_back(Datagram {
            due: round + ONE_WAY_TICKS,
            client,
            bytes: buffer,
        });
    }

    fn poll(&mut self, round: u32) -> Option<Datagram> {
        self.under_way.pop_front_if(|next| next.due <= round)
    }

    fn recycle(&mut self, mut datagram: Datagram) {
        datagram.bytes.clear();
        self.spare.push(datagram.bytes);
    }
}

/// What client 0 and the match have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Frames of client 0, which are also the match's ticks.
    pub(crate) frames: u64,
    /// Turns of the match.
    pub(crate) turns: u64,
    /// Rebuilds of client 0.
    pub(crate) rebuilds: u64,
    /// Rebuilds of client 0 because a remote player held something else.
    pub(crate) by_remote_input: u64,
    /// Ticks that client 0 simulated again.
    pub(crate) resim_ticks: u64,
    /// Inputs that did not come in time, of any client.
    pub(crate) fills: u64,
    /// Times that any client's state was not the server's.
    pub(crate) desyncs: u64,
    /// Packets up, of all clients.
    pub(crate) packets_up: u64,
    /// Packets down, to all clients.
    pub(crate) packets_down: u64,
    /// Bytes of packets up, without any header around them.
    pub(crate) bytes_up: u64,
    /// Bytes of packets down, without any header around them.
    pub(crate) bytes_down: u64,
}

impl Counts {
    /// What one client's packets take both ways, in bytes a second at 60 Hz: headers of IP, UDP, netcode and laminar, and
    /// what is in them.
    pub(crate) fn bytes_a_second(&self) -> (f64, f64) {
        let client_seconds = self.frames as f64 * PLAYERS as f64 / 60.0;
        let packets = (self.packets_up + self.packets_down) as f64;
        let inside = (self.bytes_up + self.bytes_down) as f64;
        (
            packets * OUTER_BYTES as f64 / client_seconds,
            inside / client_seconds,
        )
    }
}

impl std::ops::Sub for Counts {
    type Output = Counts;
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            frames: self.frames - earlier.frames,
            turns: self.turns - earlier.turns,
            rebuilds: self.rebuilds - earlier.rebuilds,
            by_remote_input: self.by_remote_input - earlier.by_remote_input,
            resim_ticks: self.resim_ticks - earlier.resim_ticks,
            fills: self.fills - earlier.fills,
            desyncs: self.desyncs - earlier.desyncs,
            packets_up: self.packets_up - earlier.packets_up,
            packets_down: self.packets_down - earlier.packets_down,
            bytes_up: self.bytes_up - earlier.bytes_up,
            bytes_down: self.bytes_down - earlier.bytes_down,
        }
    }
}

/// A match and its four clients.
pub(crate) struct Party {
    game: Match<Blob>,
    clients: Vec<(Session<Blob>, Pads)>,
    up: Leg,
    down: [Leg; PLAYERS],
    tick: Duration,
    turn_ticks: u32,
    round: u32,
    settled: Counts,
}

impl Party {
    /// Four players of the action preset without announcements, joined and settled.
    pub(crate) fn new(state_bytes: usize, turn_ticks: u8, sticks: Sticks) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(turn_ticks),
            // Announced inputs would make the guesses better; what is wanted is every guess wrong.
            announce: Announce::Never,
            ..MatchConfig::action()
        };
        let tick = config.tick;
        let resolver =
            |_: &Look<'_, Blob>, _: Key, never: &Never| -> Decision<Never> { match *never {} };
        let mut game = Match::new(config, Blob::new(state_bytes), Arc::new(()), resolver)
            .expect("a sound configuration");
        let clients = (0..PLAYERS).map(|client| {
            game.connect(
                Duration::ZERO,
                PeerId(client as u64),
                &format!("client {client}"),
                1,
            )
            .expect("a free seat");
            let mut config = SessionConfig::new(Arc::new(()));
            config.verify = false;
            let session = Session::new(config).expect("rules without a NaN");
            (session, Pads::new(sticks, client))
        });
        let mut party = Party {
            clients: clients.collect(),
            game,
            up: Leg::default(),
            down: Default::default(),
            tick,
            turn_ticks: u32::from(turn_ticks),
            round: 0,
            settled: Counts::default(),
        };
        party.settle();
        party
    }

    fn settle(&mut self) {
        let unused = &mut Meters::default();
        while !self.all_play() {
            assert!(
                self.round < JOIN_ROUNDS,
                "not everybody joined in {JOIN_ROUNDS} rounds"
            );
            self.frame(unused);
        }
        for _ in 0..SETTLE_ROUNDS {
            self.frame(unused);
        }
        self.settled = self.totals();
    }

    fn all_play(&self) -> bool {
        (0..PLAYERS)
            .all(|client| self.game.stage(PeerId(client as u64)) == Some(SessionStage::Playing))
    }

    /// One round: a tick of the match, and a frame of each client.
    pub(crate) fn frame(&mut self, meters: &mut Meters) {
        let now = self.now();
        // Every other turn is timed whole, the others in parts.
        if (self.round / self.turn_ticks).is_multiple_of(2) {
            meters[Part::Match].lap(|| {
                while let Some(datagram) = self.up.poll(self.round) {
                    self.hear(now, datagram);
                }
                self.seal(now);
            });
        } else {
            while let Some(datagram) = self.up.poll(self.round) {
                meters[Part::MatchDecode].lap(|| self.hear(now, datagram));
            }
            let ends_turn = (self.game.world().tick().0 + 1).is_multiple_of(self.turn_ticks);
            let part = if ends_turn {
                Part::TurnTick
            } else {
                Part::PlainTick
            };
            meters[part].lap(|| self.seal(now));
        }
        meters[Part::Whole].lap(|| self.play(0, now, &mut None));
        for (client, part) in [(1, Part::Decode), (2, Part::Advance), (3, Part::Encode)] {
            self.play(client, now, &mut Some((&mut *meters, part)));
        }
        self.round += 1;
    }

    /// The match's part of a round.
    pub(crate) fn match_tick(&mut self) {
        while let Some(datagram) = self.up.poll(self.round) {
            self.hear(self.now(), datagram);
        }
        self.seal(self.now());
    }

    /// Client 0's part of a round.
    pub(crate) fn first_frame(&mut self) {
        self.play(0, self.now(), &mut None);
    }

    /// What is left of a round.
    pub(crate) fn other_frames(&mut self) {
        for client in 1..PLAYERS {
            self.play(client, self.now(), &mut None);
        }
        self.round += 1;
    }

    fn now(&self) -> Duration {
        self.tick * self.round
    }

    /// The match reads a packet.
    fn hear(&mut self, now: Duration, datagram: Datagram) {
        let peer = PeerId(datagram.client as u64);
        self.game.handle(now, peer, &datagram.bytes);
        self.up.recycle(datagram);
    }

    /// The match does what is due, and sends.
    fn seal(&mut self, now: Duration) {
        self.game.advance(now);
        while let Some(output) = self.game.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let client = peer.0 as usize;
                    self.down[client].send(self.round, client, bytes);
                }
                Output::Closed { peer, code } => panic!("the session of {peer:?} ended: {code}"),
                // A ticket in ten seconds is not what is measured.
                Output::Ticket { .. }
                | Output::Settled { .. }
                | Output::Unseated { .. }
                | Output::Outdated { .. }
                | Output::Evidence { .. } => {}
                Output::Journal(_) | Output::Encode(_) | Output::Job { .. } => {
                    unreachable!("no journal is kept, and nothing is asked")
                }
            }
        }
    }

    /// A client's frame: read, advance, write. Of a client that is timed in parts, `only` names the part.
    fn play(&mut self, client: usize, now: Duration, only: &mut Option<(&mut Meters, Part)>) {
        let (session, pads) = &mut self.clients[client];
        while let Some(datagram) = self.down[client].poll(self.round) {
            timed(only, Part::Decode, || session.handle(now, &datagram.bytes));
            self.down[client].recycle(datagram);
        }
        timed(only, Part::Advance, || {
            session
                .advance(now, BUDGET_TICKS, |_seat| pads.next())
                .expect("a session that plays");
        });
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Some(len) = timed(only, Part::Encode, || {
            session.poll_transmit(now, &mut buffer)
        }) {
            self.up.send(self.round, client, &buffer[..len]);
            // The call that finds nothing more to send is no packet.
            if matches!(only, Some((_, Part::Encode))) {
                *only = None;
            }
        }
    }

    /// What was counted since all have settled.
    pub(crate) fn counts(&self) -> Counts {
        self.totals() - self.settled
    }

    fn totals(&self) -> Counts {
        let timeline = self.clients[0].0.stats().timeline;
        let game = self.game.stats();
        let players = (0..PLAYERS as u8).map(PlayerId);
        let down = |of: fn(&Leg) -> u64| self.down.iter().map(of).sum();
        Counts {
            frames: u64::from(self.round),
            turns: game.turns,
            rebuilds: timeline.rebuilds,
            by_remote_input: timeline.by_input[1..].iter().sum(),
            resim_ticks: timeline.resim_ticks,
            fills: players.map(|p| self.game.seat_stats(p).fills).sum(),
            desyncs: game.desyncs,
            packets_up: self.up.packets,
            packets_down: down(|leg| leg.packets),
            bytes_up: self.up.bytes,
            bytes_down: down(|leg| leg.bytes),
        }
    }
}

/// Times `work` if it is the part that is asked for.
fn timed<T>(only: &mut Option<(&mut Meters, Part)>, part: Part, work: impl FnOnce() -> T) -> T {
    match only {
        Some((meters, wanted)) if *wanted == part => meters[part].lap(work),
        _ => work(),
    }
}

/// Looks away: cues and pictures are not measured.
struct Nobody;

impl Watch<Blob> for Nobody {
    fn confirmed(&mut self, _: Tick, _: &Effects<Blob>) {}
    fn predicted(&mut self, _: Tick, _: &Blob, _: &Effects<Blob>, _: &Known) {}
    fn resimulated(&mut self, _: &Blob, _: &Known) {}
    fn rebuilt(&mut self, _: Tick, _: &Blob, _: &mut dyn Iterator<Item = (Tick, &[(Key, Never)])>) {
    }
}

/// A timeline whose prediction leads by 8 ticks, to be rebuilt again and again.
pub(crate) struct Rebuild {
    timeline: Timeline<Blob>,
}

impl Rebuild {
    pub(crate) fn new(state_bytes: usize) -> Self {
        let seats: ArrayVec<PlayerId, 4> = [PlayerId(0)].into_iter().collect();
        let (rules, world) = (Arc::new(()), World::new(Blob::new(state_bytes), Tick(0)));
        let orders = LocalActions::new(seats, &[0]);
        let mut timeline = Timeline::new(
            rules,
            world,
            orders,
            Box::new(Repeat),
            Box::new(Wait),
            false,
        );
        let mut first = FrameData::empty(Tick(0));
        for player in (0..PLAYERS as u8).map(PlayerId) {
            first.roster.push((player, RosterChange::Joined));
            first.inputs.set(player, Some(Pad(7)));
        }
        first.filled = PlayerSet::default();
        timeline
            .confirm(&first, &mut Nobody)
            .expect("a frame that fits");
        for _ in 0..=ONE_WAY_TICKS {
            timeline.orders_mut().sample(|_seat| Pad(7));
        }
        let mut rebuild = Rebuild { timeline };
        rebuild.predict();
        rebuild
    }

    fn predict(&mut self) {
        let target = self.timeline.authority().tick() + ONE_WAY_TICKS;
        self.timeline.predict(target, BUDGET_TICKS, &mut Nobody);
    }

    /// One clone of the authority, 8 assumed frames, 8 steps.
    pub(crate) fn rebuild(&mut self) {
        // Makes the prediction stale, as a difference does; changes nothing.
        let _state = self.timeline.corrupt();
        self.predict();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_after(frames: u64, turn_ticks: u8, sticks: Sticks) -> Counts {
        let mut party = Party::new(4_096, turn_ticks, sticks);
        for _ in 0..frames {
            party.frame(&mut Meters::default());
        }
        let counts = party.counts();
        assert_eq!(
            (counts.frames, counts.desyncs, counts.fills),
            (frames, 0, 0)
        );
        assert_eq!(counts.turns, frames / u64::from(turn_ticks));
        counts
    }

    #[test]
    fn moving_sticks_rebuild_at_every_turn_because_of_remote_inputs() {
        for turn_ticks in [1, 2] {
            let counts = counts_after(600, turn_ticks, Sticks::Moving);
            assert_eq!(counts.rebuilds, counts.turns);
            assert_eq!(counts.by_remote_input, counts.rebuilds);
            // Two ways of 8 ticks, and what the margin adds.
            let ticks = counts.resim_ticks / counts.rebuilds;
            assert!((16..=24).contains(&ticks), "{ticks} ticks a rebuild");
        }
    }

    #[test]
    fn still_sticks_rebuild_nothing() {
        for turn_ticks in [1, 2] {
            let counts = counts_after(600, turn_ticks, Sticks::Still);
            assert_eq!((counts.rebuilds, counts.resim_ticks), (0, 0));
        }
    }

    #[test]
    fn each_client_sends_a_packet_a_frame_and_gets_one_a_turn() {
        let counts = counts_after(600, 2, Sticks::Moving);
        assert_eq!(counts.packets_up, 600 * PLAYERS as u64);
        assert_eq!(counts.packets_down, 300 * PLAYERS as u64);
    }

    #[test]
    fn a_rebuild_alone_simulates_8_ticks_again_and_ends_where_it_was() {
        let mut rebuild = Rebuild::new(4_096);
        let shown = rebuild.timeline.prediction().sim().clone();
        let before = rebuild.timeline.stats().resim_ticks;
        rebuild.rebuild();
        rebuild.rebuild();
        assert_eq!(rebuild.timeline.stats().resim_ticks - before, 16);
        assert_eq!(*rebuild.timeline.prediction().sim(), shown);
    }
}
