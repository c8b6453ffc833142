//! Decodable but impossible numbers from a hostile server.
//!
//! A client does not panic on them. It counts the packet as malformed, reports that its world differs, or ends with a
//! reason.

use twinstep_core::bounds::{COUNT_MAX, SEATS_MAX};
use twinstep_core::turn::{Cadence, Turn};
use twinstep_core::world::Presence;
use twinstep_core::{Key, Tick};

use super::*;
use crate::session::CommandError;

const NUMBERS: [u32; 7] = [
    0,
    255,
    COUNT_MAX - 1,
    COUNT_MAX,
    COUNT_MAX + 1,
    u32::MAX - 1,
    u32::MAX,
];

#[derive(Serialize)]
struct RawWorld {
    tick: u32,
    sim: LocalActions,
    roster: [Presence; 16],
    held: [u8; 16],
    open: Vec<(u32, Key, ())>,
    refused: Vec<(u32, Key, ())>,
    next_seq: [u32; 16],
    unfinished: Vec<()>,
    ages: [u32; 16],
    turn: Turn,
    tick_ns: u32,
}

fn world() -> RawWorld {
    let mut roster = [Presence::Absent; 16];
    roster[..2].fill(Presence::Present);
    RawWorld {
        tick: 1,
        sim: LocalActions::default(),
        roster,
        held: [0; 16],
        open: Vec::new(),
        refused: Vec::new(),
        next_seq: [0; 16],
        unfinished: Vec::new(),
        ages: [0; 16],
        turn: Turn {
            began: Tick(1),
            number: 1,
            ..Turn::default()
        },
        tick_ns: Cadence::DEFAULT.tick_ns,
    }
}

fn welcome() -> Welcome {
    Welcome {
        seats: [PlayerId(0)].into_iter().collect(),
        next_seq: [0].into_iter().collect(),
        command_delay: 0,
        owners_answer: false,
        basis: Basis::World {
            world: WorldId::of(Tick(0), &[]),
            from: 0,
        },
    }
}

struct Said {
    status: DownStatus,
    frames: Vec<FrameData<LocalActions>>,
    /// The age of the digest, in ticks before the end of the frames; 0 for no digest.
    digest_age: u8,
    announced: Option<Order<u8>>,
}

fn said(first: Tick) -> Said {
    let frame = |tick| {
        let mut frame = FrameData::empty(tick);
        frame.inputs.set(PlayerId(0), Some(0));
        frame.inputs.set(PlayerId(1), Some(0));
        frame.filled = OWN;
        frame
    };
    Said {
        status: DownStatus {
            next_seal: first + 2,
            margin: 3,
            unbroken: 1,
            ..DownStatus::default()
        },
        frames: vec![frame(first), frame(first + 1)],
        digest_age: 200,
        announced: None,
    }
}

impl Table {
    /// A session that has received this welcome and world. It plays if both are valid.
    fn joined(welcome: &Welcome, world: &RawWorld) -> Table {
        let mut table = Table::greeting();
        table.send_chunk(0, message::WELCOME, welcome);
        table.send_chunk(1, message::WORLD, world);
        table
    }

    fn say(&mut self, said: &Said) {
        let announced = said.announced.as_ref();
        let packet = self.play(&said.status, &said.frames, said.digest_age, announced);
        self.session.handle(self.now, &packet);
    }

    fn play_on(&mut self) {
        for _ in 0..50 {
            self.now += 20 * MS;
            if self.session.advance(self.now, 16, |_| 3).is_err() {
                return;
            }
            let _ = self.session.command(0, 1);
            let mut bytes = [0; PACKET_BYTES_MAX];
            while let Some(len) = self.session.poll_transmit(self.now, &mut bytes) {
                let mut packet = Reader::new(&bytes[1..len]);
                let header = self.server.parse(&mut packet).unwrap();
                self.server.note(self.now, header);
            }
            if let Some(playing) = self.session.stage.playing() {
                let next = playing.replica.inbox.next();
                self.say(&said(next));
            }
        }
    }
}

/// Finding K13: the numbers of a welcome were not checked.
#[test]
fn a_welcome_with_impossible_numbers_ends_the_session_with_a_reason() {
    let spoils: [fn(&mut Welcome, u32); 5] = [
        |welcome, _| welcome.seats[0] = PlayerId(16),
        |welcome, _| welcome.seats[0] = PlayerId(255),
        |welcome, seq| welcome.next_seq[0] = COUNT_MAX + 1 + seq % 99,
        |welcome, seq| welcome.next_seq.push(seq),
        |welcome, _| welcome.command_delay = 255,
    ];
    for spoil in spoils {
        for number in NUMBERS {
            let mut spoiled = welcome();
            spoil(&mut spoiled, number);
            let mut table = Table::joined(&spoiled, &world());
            table.play_on();
            let closed = table.session.closed();
            assert_eq!(closed, Some(SessionEnd::UnreadableWorld), "{spoiled:?}");
        }
    }
    // With the last valid sequence number, the session plays but accepts no more commands.
    let mut spoiled = welcome();
    spoiled.next_seq[0] = COUNT_MAX;
    let mut table = Table::joined(&spoiled, &world());
    table.play_on();
    assert_eq!(table.session.closed(), None);
    assert_eq!(table.session.command(0, 1), Err(CommandError::Busy));
}

/// Finding K13: the numbers of a world were not checked.
#[test]
fn a_world_with_extreme_numbers_plays_or_ends_the_session_with_a_reason() {
    let spoils: [fn(&mut RawWorld, u32) -> bool; 8] = [
        |world, number| {
            world.next_seq = [number; 16];
            number <= COUNT_MAX
        },
        |world, number| {
            world.ages = [number; 16];
            number <= COUNT_MAX
        },
        |world, number| {
            world.turn.number = number;
            number <= COUNT_MAX
        },
        |world, number| {
            (world.tick, world.turn.began) = (number, Tick(number));
            number < u32::MAX
        },
        |world, number| {
            world.turn.began = Tick(number);
            number == 1
        },
        |world, number| {
            world.turn.cadence = Cadence {
                tick_ns: number,
                ..Cadence::DEFAULT
            };
            false
        },
        |world, number| {
            world.turn.cadence.turn_ticks = number as u8;
            number as u8 == 1
        },
        |world, number| {
            world.tick_ns = number;
            false
        },
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        for number in NUMBERS {
            let mut spoiled = world();
            let plays = spoil(&mut spoiled, number);
            let mut table = Table::joined(&welcome(), &spoiled);
            table.play_on();
            let expected = (!plays).then_some(SessionEnd::UnreadableWorld);
            assert_eq!(table.session.closed(), expected, "spoil {n}, {number}");
            // Sent as an unrequested heal, an impossible world is not used.
            let mut table = Table::joined(&welcome(), &world());
            table.play_on();
            table.send_chunk(2, message::HEAL, &spoiled);
            table.play_on();
            assert_eq!(table.session.closed(), None, "spoil {n}, {number}");
            let stats = table.session.stats();
            assert_eq!(stats.heals, u64::from(plays));
            assert_eq!(stats.malformed > 0, !plays, "spoil {n}, {number}");
        }
    }
}

/// Finding K13: an announced command with an impossible sequence number ended the process.
#[test]
fn a_packet_with_impossible_numbers_is_counted_as_malformed_or_reported_as_a_desync() {
    // Each closure returns whether its packet is impossible. A possible one is useless but harmless.
    let spoils: [fn(&mut Said, u32) -> bool; 13] = [
        |said, number| {
            said.announced = Some(order(1, number));
            number >= COUNT_MAX
        },
        |said, number| {
            // From an absent player, or from this client's own.
            said.announced = Some(order(number as u8, 0));
            true
        },
        |said, number| {
            said.frames[0].commands.push(order(1, number));
            number >= COUNT_MAX
        },
        |said, number| {
            said.frames[0].claims.push(order(number as u8, number));
            number as u8 > 0
        },
        |said, number| {
            let change = (PlayerId(number as u8), RosterChange::Left);
            said.frames[1].roster.push(change);
            true
        },
        |said, number| {
            said.frames[0].cadence = Some(Cadence {
                tick_ns: number,
                turn_ticks: number as u8,
                delay_ticks: number as u8,
                requested_ns: Some(number),
                paused: number & 1 == 1,
                paused_by: Some(PlayerId(number as u8)),
            });
            true
        },
        |said, number| {
            // The digest of a future world will be compared; with 0 there is no digest.
            said.digest_age = number as u8;
            false
        },
        |said, number| {
            said.status.command_acks.push(number);
            false
        },
        |said, number| {
            // For a seat that does not exist.
            said.status.refusals.push(OrderRefusal {
                seat: number as usize % SEATS_MAX,
                claim: number % 2 == 1,
                seq: number,
                why: CommandRefusal::Unreported,
            });
            false
        },
        |said, number| {
            said.status.next_seal = Tick(number);
            false
        },
        |said, number| {
            (said.status.margin, said.status.unbroken) = (number as i8, number as u8);
            false
        },
        |said, number| {
            said.frames[0].tick = Tick(number);
            false
        },
        |said, number| {
            said.frames[0].filled = PlayerSet(number as u16);
            false
        },
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        for number in NUMBERS {
            let mut table = Table::joined(&welcome(), &world());
            table.play_on();
            let next = table.session.stage.playing().unwrap().replica.inbox.next();
            let mut spoiled = said(next);
            let cannot_be = spoil(&mut spoiled, number);
            table.say(&spoiled);
            table.play_on();
            let session = &table.session;
            assert_eq!(session.closed(), None, "spoil {n}, {number}");
            let noticed = session.stats().malformed > 0 || session.desynced_since().is_some();
            assert_eq!(noticed, cannot_be, "spoil {n}, {number}");
        }
    }
}

fn order(player: u8, seq: u32) -> Order<u8> {
    Order {
        player: PlayerId(player),
        seq,
        command: 9,
    }
}

/// Finding K13: with a command delay, packets also number turns.
#[test]
fn a_packet_with_an_impossible_turn_number_is_rejected() {
    let mut welcome = welcome();
    welcome.command_delay = 2;
    for number in [COUNT_MAX - 40, COUNT_MAX - 1, COUNT_MAX] {
        let mut spoiled = world();
        spoiled.turn.number = number;
        let mut table = Table::joined(&welcome, &spoiled);
        for ahead in [0, 1, 2, 30_000] {
            let mut bytes = vec![0; PACKET_BYTES_MAX];
            let mut out = Writer::new(&mut bytes);
            let status = DownStatus {
                next_seal: Tick(2),
                unbroken: 255,
                next_turn: Some(number + ahead),
                ..DownStatus::default()
            };
            let (now, link) = (table.now, &mut table.server);
            let packet = PlayDownWriter::begin(now, link, &status, &mut out).unwrap();
            let _ = packet.end();
            let len = out.len();
            let malformed = table.session.stats().malformed;
            table.session.handle(table.now, &bytes[..len]);
            table.now += 20 * MS;
            table.session.advance(table.now, 16, |_| 3).unwrap();
            let counted = table.session.stats().malformed > malformed;
            assert_eq!(counted, number + ahead > COUNT_MAX, "{number} + {ahead}");
        }
    }
}
