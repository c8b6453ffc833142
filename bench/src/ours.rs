//! Twinstep's party: a real match and four real sessions, in memory, in virtual time.
//!
//! ```text
//!  round r:  packets of round r − 8 ─▶ match.handle … advance … poll ─▶ due in round r + 8
//!            packets of round r − 8 ─▶ each session.handle, advance, poll_transmit ─▶ due in round r + 8
//! ```
//!
//! A round is one tick of virtual time and one frame of each client. Client 0 and the match are timed. Neither side
//! has a cipher or a socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, Event, Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Key, Never, PlayerId, Simulation};
use twinstep_server::config::{Announce, TurnLength};
use twinstep_server::peer::SessionStage;
use twinstep_server::{Decision, HookContext, Match, MatchConfig, Output, SessionId};

use crate::game::{Blob, PLAYERS, Pads, Seals, Sticks};
use crate::process::Failed;
use crate::subject::Plays;
use crate::turns::{Counts, MATCH, Meters, Party, WHOLE};

pub(crate) const ONE_WAY_TICKS: u32 = 8;
const JOIN_ROUNDS_MAX: u32 = 2_000;
const SETTLE_ROUNDS: u32 = 1_200;

pub(crate) fn asks_nothing<S: Simulation<Query = Never, Outcome = Never>>(
    _: &HookContext<'_, S>,
    _: Key,
    never: &Never,
) -> Decision<Never> {
    match *never {}
}

struct Datagram {
    due: u32,
    client: usize,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Leg {
    under_way: VecDeque<Datagram>,
    spare: Vec<Vec<u8>>,
    packets: u64,
    bytes: u64,
    /// One in this many packets is lost; 0 for no loss.
    lose_every: u64,
}

impl Leg {
    fn send(&mut self, round: u32, client: usize, bytes: &[u8]) {
        self.packets += 1;
        self.bytes += bytes.len() as u64;
        if self.lose_every > 0 && self.packets.is_multiple_of(self.lose_every) {
            return;
        }
        let spare = self.spare.pop();
        let mut buffer = spare.unwrap_or_else(|| Vec::with_capacity(PACKET_BYTES_MAX));
        buffer.extend_from_slice(bytes);
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

impl Plays for Session<Blob> {
    fn handle(&mut self, now: Duration, packet: &[u8]) -> Result<(), Failed> {
        Session::handle(self, now, packet);
        Ok(())
    }

    fn advance(&mut self, now: Duration, pads: &mut Pads) -> Result<(), Failed> {
        Session::advance(self, now, BUDGET_TICKS, |_seat| pads.next())?;
        while let Some(event) = self.poll_event() {
            if let Event::Differs { at } = event {
                return Err(format!("its world is not the server's at {at}").into());
            }
        }
        Ok(())
    }

    fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        Session::poll_transmit(self, now, out)
    }

    fn leave(&mut self) {
        Session::leave(self);
    }

    fn is_playing(&self) -> bool {
        !self.seats().is_empty()
    }

    fn rebuilds(&self) -> (u64, u64) {
        let timeline = self.stats().timeline;
        (timeline.rebuilds, timeline.resim_ticks)
    }
}

pub(crate) struct Table<P = Session<Blob>> {
    match_: Match<Blob>,
    clients: Vec<(P, Pads)>,
    up: Leg,
    down: [Leg; PLAYERS],
    tick: Duration,
    round: u32,
    settled: Counts,
}

impl Table {
    /// Creates four settled players of the action preset with turns of this length. Announcements are off, because they
    /// would make guesses better, and each guess must be wrong.
    pub(crate) fn new(state_bytes: usize, turn_ticks: u8, sticks: Sticks) -> Self {
        let config = MatchConfig {
            turn: TurnLength::Fixed(turn_ticks),
            announce: Announce::Never,
            ..MatchConfig::action()
        };
        let start = (Blob::new(state_bytes), Seals::default());
        Table::with(config, start, sticks, || {
            let mut config = SessionConfig::new(Arc::new(Seals::default()));
            config.verify = false;
            Session::new(config).expect("rules without a NaN")
        })
    }
}

impl<P: Plays> Table<P> {
    pub(crate) fn with(
        config: MatchConfig,
        (start, rules): (Blob, Seals),
        sticks: Sticks,
        session: impl Fn() -> P,
    ) -> Self {
        let tick = config.tick;
        let match_ = Match::new(config, start, Arc::new(rules), asks_nothing);
        let mut match_ = match_.expect("a sound configuration");
        let clients = (0..PLAYERS).map(|client| {
            let name = format!("client {client}");
            match_
                .connect(Duration::ZERO, SessionId(client as u64), &name, 1)
                .expect("a free seat");
            (session(), Pads::new(sticks, client))
        });
        let mut table = Table {
            clients: clients.collect(),
            match_,
            up: Leg::default(),
            down: Default::default(),
            tick,
            round: 0,
            settled: Counts::default(),
        };
        table.settle();
        table
    }

    fn settle(&mut self) {
        let unused = &mut Meters::default();
        while !self.all_play() {
            let round = self.round;
            assert!(
                round < JOIN_ROUNDS_MAX,
                "all join in {JOIN_ROUNDS_MAX} rounds"
            );
            self.frame(unused);
        }
        for _ in 0..SETTLE_ROUNDS {
            self.frame(unused);
        }
        self.settled = self.totals();
    }

    fn all_play(&self) -> bool {
        (0..PLAYERS).all(|client| {
            self.match_.stage(SessionId(client as u64)) == Some(SessionStage::Playing)
        })
    }

    pub(crate) fn match_tick(&mut self) {
        let now = self.now();
        while let Some(datagram) = self.up.poll(self.round) {
            let peer = SessionId(datagram.client as u64);
            self.match_.handle(now, peer, &datagram.bytes);
            self.up.recycle(datagram);
        }
        self.match_.advance(now);
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let client = peer.0 as usize;
                    self.down[client].send(self.round, client, bytes);
                }
                Output::Closed { peer, code } => panic!("the session of {peer:?} ended: {code}"),
                // The one reconnect ticket per ten seconds is not measured, and no journal is kept.
                _ => {}
            }
        }
    }

    pub(crate) fn first_frame(&mut self) {
        self.play(0);
    }

    pub(crate) fn other_frames(&mut self) {
        (1..PLAYERS).for_each(|client| self.play(client));
        self.round += 1;
    }

    fn now(&self) -> Duration {
        self.tick * self.round
    }

    fn play(&mut self, client: usize) {
        let now = self.now();
        let (session, pads) = &mut self.clients[client];
        while let Some(datagram) = self.down[client].poll(self.round) {
            session
                .handle(now, &datagram.bytes)
                .expect("a packet of the match");
            self.down[client].recycle(datagram);
        }
        session.advance(now, pads).expect("a session that plays");
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Some(len) = session.poll_transmit(now, &mut buffer) {
            self.up.send(self.round, client, &buffer[..len]);
        }
    }

    fn totals(&self) -> Counts {
        let (rebuilds, again_ticks) = self.clients[0].0.rebuilds();
        let match_ = self.match_.stats();
        let players = (0..PLAYERS as u8).map(PlayerId);
        let fills = players.map(|player| self.match_.seat_stats(player).fills);
        Counts {
            frames: u64::from(self.round),
            turns: match_.turns,
            rebuilds,
            again_ticks,
            sent: self.up.packets,
            received: self.down.iter().map(|leg| leg.packets).sum(),
            bytes: self.up.bytes + self.down.iter().map(|leg| leg.bytes).sum::<u64>(),
            faults: fills.sum::<u64>() + match_.desyncs,
        }
    }
}

impl<P: Plays> Party for Table<P> {
    fn frame(&mut self, meters: &mut Meters) {
        meters[MATCH].lap(|| self.match_tick());
        meters[WHOLE].lap(|| self.first_frame());
        self.other_frames();
    }

    fn counts(&self) -> Counts {
        self.totals() - self.settled
    }
}

/// The number of rebuilds of a client that guesses wrong in each of `turns` turns: five in nine, and at most a second's
/// worth more.
pub(crate) fn rebuilds_due(turns: u64) -> std::ops::RangeInclusive<u64> {
    let due = turns * 5 / 9;
    due..=due + 17
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare_session::BareSession;
    use crate::game::STATE_BYTES;

    fn counts_after(frames: u64, turn_ticks: u8, sticks: Sticks) -> Counts {
        let mut table = Table::new(4_096, turn_ticks, sticks);
        (0..frames).for_each(|_| table.frame(&mut Meters::default()));
        let counts = table.counts();
        assert_eq!((counts.frames, counts.faults), (frames, 0));
        assert_eq!(counts.turns, frames / u64::from(turn_ticks));
        counts
    }

    #[test]
    fn moving_sticks_refute_a_guess_every_turn_and_cause_five_rebuilds_in_nine_turns() {
        for turn_ticks in [1, 2] {
            let counts = counts_after(600, turn_ticks, Sticks::Moving);
            let due = rebuilds_due(counts.turns);
            assert!(due.contains(&counts.rebuilds), "{counts:?}");
            // Two 8-tick trips, and the margin.
            let ticks = counts.again_ticks / counts.rebuilds;
            assert!((16..=24).contains(&ticks), "{ticks} ticks a rebuild");
            assert_eq!(counts.sent, 600 * PLAYERS as u64);
            assert_eq!(counts.received, counts.turns * PLAYERS as u64);
        }
    }

    #[test]
    fn still_sticks_cause_no_rebuild() {
        let counts = counts_after(600, 2, Sticks::Still);
        assert_eq!((counts.rebuilds, counts.again_ticks), (0, 0));
    }

    /// The counts of a 40 s run on a link that loses one packet in `lose_every`, with announcements.
    fn counts_of<P: Plays>(lose_every: u64, session: impl Fn() -> P) -> (Counts, Table<P>) {
        let config = MatchConfig {
            players_max: PLAYERS,
            ..MatchConfig::action()
        };
        let start = (Blob::new(STATE_BYTES), Seals::default());
        let mut table = Table::with(config, start, Sticks::Moving, session);
        table.up.lose_every = lose_every;
        let legs = table.down.iter_mut();
        legs.for_each(|leg| leg.lose_every = lose_every);
        (0..2_400).for_each(|_| table.frame(&mut Meters::default()));
        (table.counts(), table)
    }

    #[test]
    fn a_bare_session_loads_a_server_like_a_full_one_and_its_goodbye_frees_its_seat() {
        for (lose_every, percent) in [(0, 0), (19, 3)] {
            let start = || Blob::new(STATE_BYTES);
            let (whole, _) = counts_of(lose_every, || {
                let config = SessionConfig::new(Arc::new(Seals::default())).start(start());
                Session::new(config).expect("rules without a NaN")
            });
            let (bare, mut table) = counts_of(lose_every, || {
                BareSession::new(&Seals::default(), &start()).expect("a state without a NaN")
            });
            for (whole, bare) in [
                (whole.sent, bare.sent),
                (whole.received, bare.received),
                (whole.bytes, bare.bytes),
            ] {
                assert!(
                    whole.abs_diff(bare) * 100 <= whole * percent,
                    "{whole} {bare}"
                );
            }
            let late = percent * whole.sent / 300;
            assert!(bare.faults <= whole.faults + late, "{whole:?}, {bare:?}");

            assert_eq!(table.match_.free_seats(), 0);
            let (now, mut buffer) = (table.now(), [0; PACKET_BYTES_MAX]);
            let leaving = &mut table.clients[1].0;
            leaving.leave();
            while let Some(len) = leaving.poll_transmit(now, &mut buffer) {
                table.match_.handle(now, SessionId(1), &buffer[..len]);
            }
            table.match_.advance(now + table.tick);
            assert_eq!(table.match_.free_seats(), 1);
        }
    }
}
