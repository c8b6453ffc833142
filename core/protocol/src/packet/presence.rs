//! The connected players and their link quality, in three bytes per player: sent once a second in a `Play` down.
//!
//! ```text
//! varint set of players · for each, in player order: rtt / 4 ms · loss % · margin
//! ```

use crate::wire::{Reader, WireError, Writer};
use twinstep_core::PlayerId;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::PlayerSet;

pub const BYTES_MAX: usize = 3 + 3 * twinstep_core::bounds::PLAYERS_MAX;

const RTT_UNIT_MS: u16 = 4;

/// The quality of a player's link, as the server measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkQuality {
    /// The smoothed round trip in ms, up to 1,020 in steps of 4.
    pub rtt_ms: u16,
    pub loss_percent: u8,
    /// The newest input that the server holds minus the next tick to seal, in ticks. Below 0, inputs arrive late and
    /// are filled. Always 0 in lockstep.
    pub margin_ticks: i8,
}

pub fn write(
    out: &mut Writer<'_>,
    here: PlayerSet,
    link: impl Fn(PlayerId) -> LinkQuality,
) -> Result<(), WireError> {
    out.varint(u32::from(here.0))?;
    for player in here.iter() {
        let link = link(player);
        out.u8((link.rtt_ms / RTT_UNIT_MS).min(255) as u8)?;
        out.u8(link.loss_percent.min(100))?;
        out.u8(link.margin_ticks as u8)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceUpdate {
    pub here: PlayerSet,
    /// The link quality of each player; the default for players not connected.
    pub links: [LinkQuality; PLAYERS_MAX],
}

pub fn read(packet: &mut Reader<'_>) -> Result<PresenceUpdate, WireError> {
    let here = u16::try_from(packet.varint()?)
        .map_err(|_| WireError::Malformed("a player beyond the limit"))?;
    let mut update = PresenceUpdate {
        here: PlayerSet(here),
        links: Default::default(),
    };
    for player in update.here.iter() {
        update.links[player.index()] = LinkQuality {
            rtt_ms: u16::from(packet.u8()?) * RTT_UNIT_MS,
            loss_percent: packet.u8()?.min(100),
            margin_ticks: packet.u8()? as i8,
        };
    }
    Ok(update)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(player: PlayerId) -> LinkQuality {
        LinkQuality {
            rtt_ms: 40 * u16::from(player.0),
            loss_percent: player.0,
            margin_ticks: 3 - player.0 as i8,
        }
    }

    #[test]
    fn presence_survives_a_round_trip_within_its_bound() {
        for here in [PlayerSet(0), PlayerSet(0b1001), PlayerSet(u16::MAX)] {
            let mut bytes = [0; BYTES_MAX];
            let mut out = Writer::new(&mut bytes);
            write(&mut out, here, link).unwrap();
            let len = out.len();
            let mut packet = Reader::new(&bytes[..len]);
            let update = read(&mut packet).unwrap();
            assert_eq!(update.here, here);
            assert!(here.iter().all(|p| update.links[p.index()] == link(p)));
            packet.end().unwrap();
        }
    }

    #[test]
    fn values_out_of_range_are_clamped_and_garbage_is_an_error() {
        let mut bytes = [0; BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let slow = LinkQuality {
            rtt_ms: 9_000,
            loss_percent: 200,
            margin_ticks: -128,
        };
        write(&mut out, PlayerSet(1), |_| slow).unwrap();
        let len = out.len();
        let update = read(&mut Reader::new(&bytes[..len])).unwrap();
        assert_eq!(
            (update.links[0].rtt_ms, update.links[0].loss_percent),
            (1_020, 100)
        );
        assert!(read(&mut Reader::new(&bytes[..len - 1])).is_err());
        let mut out = Writer::new(&mut bytes);
        out.varint(1 << 16).unwrap();
        let len = out.len();
        assert!(read(&mut Reader::new(&bytes[..len])).is_err());
    }
}
