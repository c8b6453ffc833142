//! Parse, then act: an incomplete packet has no effect, wherever it is cut or damaged.

use std::sync::Arc;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::bounds::{PACKET_BYTES_MAX, SEATS_MAX};
use twinstep_core::{Effects, Frame, Key, Never, PlayerId};
use twinstep_protocol::lane::FRAME_BYTES_MAX;
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::play_up::{ClaimUp, CommandUp, PlayUpWriter, UpNotes};
use twinstep_protocol::wire::{Reader, Writer};

use super::*;
use crate::mode::Lockstep;
use twinstep_protocol::identity::{Identity, Role, SessionId};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Talk;

impl Simulation for Talk {
    const NAME: &'static str = "talk";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = u8;
    type Query = u8;
    type Outcome = u8;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

const NOW: Duration = Duration::from_secs(1);
const NEXT: Tick = Tick(70_000);
const PLAYERS: [PlayerId; 2] = [PlayerId(2), PlayerId(5)];

/// A session with two seats in play, and the link state of its client.
struct Table {
    peer: Peer,
    seats: Vec<Seat<Talk>>,
    play: PlayUp<Talk>,
    client: LinkState,
    command_delay: u8,
}

impl Table {
    fn new(command_delay: u8) -> Table {
        let players: ArrayVec<PlayerId, SEATS_MAX> = PLAYERS.into_iter().collect();
        let mut peer = Peer::new(
            SessionId(1),
            (Identity::new("somebody", Role::Player), None),
            players,
            Default::default(),
            NOW,
        );
        peer.play(NOW);
        peer.acks.begin(NEXT.back(9));
        peer.lane_out
            .push(message::TICKET, Arc::from([7; 20]))
            .unwrap();
        let mut chunk = [0; FRAME_BYTES_MAX];
        peer.lane_out.poll(NOW, NOW, &mut chunk).unwrap();
        let mut table = Table {
            peer,
            seats: (0..8).map(|_| Seat::new()).collect(),
            play: PlayUp::default(),
            client: LinkState::default(),
            command_delay,
        };
        // A packet from the server for the client to acknowledge.
        let mut bytes = [0; 16];
        let mut out = Writer::new(&mut bytes);
        table.peer.link.write(NOW, &mut out).unwrap();
        let header = table.client.parse(&mut Reader::new(&bytes)).unwrap();
        table.client.note(NOW, header);
        table
    }

    fn read(&mut self, bytes: &[u8]) -> Result<UpRequest, WireError> {
        let position = MatchPosition {
            is_paused: false,
            now: NOW,
            next: NEXT,
            turn: 9_000,
            mode: match self.command_delay {
                0 => MatchMode::Prediction,
                delay => MatchMode::Lockstep(Lockstep { delay }),
            },
            due: NOW,
            turn_length: Duration::from_millis(100),
            tick: Duration::from_millis(50),
        };
        read(
            &mut self.peer,
            &mut self.seats,
            position,
            &mut self.play,
            bytes,
        )
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; PACKET_BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let wanted = NEXT.back(5);
        let status = UpStatus {
            wanted,
            view: NEXT.back(8),
            load: 2,
            late_turns: 1,
        };
        let mut packet = PlayUpWriter::begin(NOW, &mut self.client, status, &mut out).unwrap();
        let (held, first) = ([4u8, 9], NEXT.back(1));
        if self.command_delay == 0 {
            packet.inputs((first, first + 4), 2, |seat, _| &held[seat], 0);
        }
        // A command and a claim of each seat.
        let commands = (0..2).map(|seat| CommandUp {
            seat,
            seq: 0,
            stamp: NEXT + 2,
            settled_from: 0,
            command: &77u8,
        });
        packet.commands(commands, 0);
        let claims = (0..2).map(|seat| ClaimUp {
            seat,
            tick: NEXT + 2,
            command: &77u8,
        });
        packet.claims(claims, 0);
        if self.command_delay > 0 {
            packet.batches(9_000, 2, 2, |seat, _| &held[seat], 0);
        }
        packet.lane_ack(&LaneAck::all_before(1)).unwrap();
        let lacking = [(NEXT.back(5), NEXT.back(3)), (NEXT.back(2), NEXT.back(1))];
        let notes = UpNotes {
            heal: Some(NEXT),
            evidence: Some(NEXT),
            gaps: lacking.into_iter().collect(),
            ..UpNotes::default()
        };
        let answer = (wanted.back(3), Key::player(PLAYERS[1], 6), &55u8);
        packet.rare(&notes, [answer].into_iter()).unwrap();
        let _ = packet.end();
        let len = out.len();
        bytes.truncate(len);
        bytes
    }

    fn state(&self) -> String {
        let peer = &self.peer;
        let seats = self.seats.iter().map(|seat| {
            (
                (seat.newest(), seat.unbroken(NEXT), seat.next_batch),
                (seat.next_seq, seat.commands.len(), seat.claims.len()),
                seat.stats,
                (0..4)
                    .map(|ahead| seat.input(NEXT + ahead).copied())
                    .collect::<Vec<_>>(),
                (0..4)
                    .map(|ahead| seat.batch(9_000 + ahead).copied())
                    .collect::<Vec<_>>(),
            )
        });
        format!(
            "{:?}",
            (
                &peer.link,
                (peer.stage(), &peer.acks, peer.first_input),
                (&peer.rhythm, &peer.fates),
                peer.lane_out.progress(),
                (self.play.answers.len(), seats.collect::<Vec<_>>()),
            )
        )
    }
}

/// Finding A16: state changed before a malformed tail was detected.
#[test]
fn a_truncated_packet_does_not_change_the_state() {
    for command_delay in [0, 2] {
        let mut table = Table::new(command_delay);
        let packet = table.packet();
        let before = table.state();
        for len in 0..packet.len() {
            assert!(table.read(&packet[..len]).is_err(), "{len} bytes");
            assert_eq!(table.state(), before, "{len} of {} bytes", packet.len());
        }
        let mut longer = packet.clone();
        longer.push(0);
        assert!(table.read(&longer).is_err());
        assert_eq!(table.state(), before);
        assert_eq!(table.read(&packet), Ok(UpRequest::Heal(NEXT)));
        assert_ne!(table.state(), before);
        for player in PLAYERS {
            let seat = &table.seats[player.index()];
            assert_eq!((seat.commands.len(), seat.claims.len()), (1, 1));
        }
        assert_eq!(table.play.answers.len(), 1);
        assert!(table.peer.lane_out.is_idle());
    }
}

#[test]
fn a_corrupted_packet_is_valid_or_does_not_change_the_state() {
    for command_delay in [0, 2] {
        let (mut wrong, mut right) = (0, 0);
        let mut table = Table::new(command_delay);
        for at in 0..table.packet().len() {
            for bit in 0..8 {
                let mut packet = table.packet();
                packet[at] ^= 1 << bit;
                let before = table.state();
                if table.read(&packet).is_err() {
                    wrong += 1;
                    assert_eq!(table.state(), before, "bit {bit} of byte {at}");
                } else {
                    right += 1;
                    table = Table::new(command_delay);
                }
            }
        }
        println!("{wrong} were invalid, {right} were valid");
        assert!(wrong > 50 && right > 50);
    }
}
