//! The packet manipulations of hostile clients and a hostile server.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::Session;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Mwc, Tick};
use twinstep_protocol::packet::{UpKind, UpPart, inputs};
use twinstep_protocol::wire::{Reader, WireError};
use twinstep_server::peer::SessionStage;

use super::Rig;
use super::client::RigClient;
use super::play::{Play, Role};

/// One in this many packets is corrupted.
const SPOILS: u32 = 12;
const REMEMBERED: usize = 32;
/// The time for which a lagging client freezes: just too short to close its session.
const LAGS_FOR: Duration = Duration::from_millis(9_000);
/// The time for which a lagging client plays between two freezes.
const LAGS_ALIVE: Duration = Duration::from_millis(500);
/// A stalling client stops acknowledging after this many packets; its world request is among the first ones.
const STALLS_AFTER: u64 = 3;

/// Corrupts packets. Has its own random stream, so that it does not change the world's other draws.
pub(super) struct Hostile {
    luck: Mwc,
    packet: Vec<u8>,
    remembered: VecDeque<Vec<u8>>,
}

impl Hostile {
    pub(super) fn new(seed: u64) -> Self {
        Hostile {
            luck: Mwc::seed(seed ^ 0x0057_11e5),
            packet: Vec::new(),
            remembered: VecDeque::new(),
        }
    }

    pub(super) fn deceive<S: Play>(
        &mut self,
        role: Role,
        session: &mut Session<S, S::Show>,
        theirs: Duration,
        bytes: &[u8],
    ) {
        // A plaintext close packet ends the session, so it must not be forged. Its kind is in the first byte's lowest
        // bits.
        let is_goodbye = bytes.first().is_some_and(|first| first & 3 == 2);
        if role == Role::Deceived && !is_goodbye && self.luck.below(SPOILS) == 0 {
            self.spoil(bytes);
            if self.packet.first().is_none_or(|first| first & 3 != 2) {
                session.handle(theirs, &self.packet);
            }
        }
        session.handle(theirs, bytes);
    }

    pub(super) fn send<S: Play>(&mut self, client: &mut RigClient<S>, now: Duration, bytes: &[u8]) {
        client.packets_sent += 1;
        match client.role {
            Role::Spoils if self.luck.below(SPOILS) == 0 => {
                self.spoil(bytes);
                let old = self.luck.below(REMEMBERED as u32) as usize;
                match (self.luck.below(3), self.remembered.get(old)) {
                    (0, Some(old)) => client.place.send_up(now, old),
                    _ => client.place.send_up(now, &self.packet),
                }
                if self.remembered.len() == REMEMBERED {
                    self.remembered.pop_front();
                }
                self.remembered.push_back(bytes.to_vec());
            }
            Role::Stalls if client.packets_sent > STALLS_AFTER => return,
            Role::Stamps { first, others } => {
                let ahead = |seq: u32| match seq % 16 {
                    0 => first,
                    _ => others,
                };
                self.packet.clear();
                self.packet.extend_from_slice(bytes);
                stamp_ahead::<S>(&mut self.packet, client.seats, ahead)
                    .expect("its own packet is valid");
                client.place.send_up(now, &self.packet);
                return;
            }
            _ => {}
        }
        client.place.send_up(now, bytes);
    }

    /// Changes, truncates or extends a packet, or inserts a huge count.
    fn spoil(&mut self, real: &[u8]) {
        let (luck, packet) = (&mut self.luck, &mut self.packet);
        packet.clear();
        packet.extend_from_slice(real);
        for _ in 0..=luck.below(3) {
            let at = luck.below(packet.len().max(1) as u32) as usize;
            match luck.below(6) {
                0 => packet.truncate(at),
                1 => packet.push(luck.next_u32() as u8),
                2 if at < packet.len() => {
                    packet.splice(at..=at, [253, 255, 255, 255, 255, 255, 255, 255, 255]);
                }
                3 if at < packet.len() => {
                    packet.splice(at..=at, [255, 255, 255, 255, 15]);
                }
                _ => {
                    if let Some(byte) = packet.get_mut(at) {
                        *byte = luck.next_u32() as u8;
                    }
                }
            }
        }
        packet.truncate(PACKET_BYTES_MAX);
    }
}

/// Moves each command's stamp in a client's packet ahead; `ahead` maps a sequence number to a number of ticks.
fn stamp_ahead<S: Play>(
    packet: &mut [u8],
    seats: usize,
    ahead: impl Fn(u32) -> u32,
) -> Result<(), WireError> {
    let all = packet.len();
    let mut stamps = Vec::new();
    let mut reader = Reader::new(packet);
    let (kind, parts) = UpKind::read(reader.u8()?)?;
    if kind != UpKind::Play || !parts.has(UpPart::Commands) {
        return Ok(());
    }
    // The link's sequence and acks; the next wanted frame, the authority tick and the load.
    reader.bytes(5 + 4)?;
    if parts.has(UpPart::Inputs) {
        inputs::read::<S::Input>(&mut reader, Tick(0), seats, |_, _, _| {})?;
    }
    for _ in 0..reader.u8()? {
        reader.u8()?;
        let seq = reader.varint()?;
        let at = all - reader.rest().len();
        stamps.push((at, reader.u16()?.wrapping_add(ahead(seq) as u16)));
        reader.value::<S::Command>()?;
    }
    for (at, stamp) in stamps {
        packet[at..at + 2].copy_from_slice(&stamp.to_le_bytes());
    }
    Ok(())
}

impl<S: Play> Rig<S> {
    pub fn cast(&mut self, client: usize, role: Role) {
        self.spoiled |= role == Role::Spoils;
        let client = &mut self.clients[client];
        client.role = role;
        for driver in &mut client.drivers {
            S::cast(driver, role);
        }
    }

    pub fn redial_stallers(&mut self) {
        for i in 0..self.clients.len() {
            let client = &self.clients[i];
            if client.role == Role::Stalls && self.match_.stage(client.peer()).is_none() {
                self.restart(i);
            }
        }
    }

    pub fn freeze_laggards(&mut self) {
        for i in 0..self.clients.len() {
            let client = &self.clients[i];
            let is_back = self.now >= client.place.frozen_until + LAGS_ALIVE;
            if client.role == Role::Lags
                && is_back
                && self.match_.stage(client.peer()) == Some(SessionStage::Playing)
            {
                self.freeze(i, self.now + LAGS_FOR);
            }
        }
    }

    pub fn set_clock(&mut self, client: usize, ahead: Duration, drift_ppm: i32) {
        let now = self.now;
        let client = &mut self.clients[client];
        client.ahead += ahead;
        client.drift_ppm = drift_ppm;
        client.excuse += ahead;
        client.arrived_at = now;
    }
}
