//! The connected players and their link quality, in three bytes per player: sent once a second in a `Play` down.
//!
//! ```text
//! varint set of players · for each of them, by number: rtt / 4 ms · loss % · margin
//! ```

use crate::company::LinkQuality;
use crate::wire::{Reader, WireError, Writer};
use twinstep_core::PlayerId;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::PlayerSet;

/// The largest encoded size, in bytes.
pub const BYTES_MAX: usize = 3 + 3 * twinstep_core::bounds::PLAYERS_MAX;

/// The unit of round trips on the wire, in milliseconds.
const RTT_UNIT_MS: u16 = 4;

/// Writes the players of `here` with their links.
///
/// # Errors
/// [`WireError::Full`].
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

/// The connected players and the quality of their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompanyTold {
    /// The players that are connected.
    pub here: PlayerSet,
    /// The link quality by player; the default for players that are not connected.
    pub links: [LinkQuality; PLAYERS_MAX],
}

/// Reads the players and their links.
///
/// # Errors
/// If the packet ends too early, or names a player beyond the last number.
pub fn read(packet: &mut Reader<'_>) -> Result<CompanyTold, WireError> {
    let here = u16::try_from(packet.varint()?)
        .map_err(|_| WireError::Malformed("a player beyond the last number"))?;
    let mut told = CompanyTold {
        here: PlayerSet(here),
        links: Default::default(),
    };
    for player in told.here.iter() {
        told.links[player.index()] = LinkQuality {
            rtt_ms: u16::from(packet.u8()?) * RTT_UNIT_MS,
            loss_percent: packet.u8()?.min(100),
            margin_ticks: packet.u8()? as i8,
        };
    }
    Ok(told)
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
    fn everybody_comes_back_within_the_bound() {
        for here in [PlayerSet(0), PlayerSet(0b1001), PlayerSet(u16::MAX)] {
            let mut bytes = [0; BYTES_MAX];
            let mut out = Writer::new(&mut bytes);
            write(&mut out, here, link).unwrap();
            let len = out.len();
            let mut packet = Reader::new(&bytes[..len]);
            let told = read(&mut packet).unwrap();
            assert_eq!(told.here, here);
            assert!(here.iter().all(|p| told.links[p.index()] == link(p)));
            packet.end().unwrap();
        }
    }

    #[test]
    fn what_is_beyond_the_units_is_told_as_their_end_and_garbage_is_an_error() {
        let mut bytes = [0; BYTES_MAX];
        let mut out = Writer::new(&mut bytes);
        let slow = LinkQuality {
            rtt_ms: 9_000,
            loss_percent: 200,
            margin_ticks: -128,
        };
        write(&mut out, PlayerSet(1), |_| slow).unwrap();
        let len = out.len();
        let told = read(&mut Reader::new(&bytes[..len])).unwrap();
        assert_eq!(
            (told.links[0].rtt_ms, told.links[0].loss_percent),
            (1_020, 100)
        );
        assert!(read(&mut Reader::new(&bytes[..len - 1])).is_err());
        let mut out = Writer::new(&mut bytes);
        out.varint(1 << 16).unwrap();
        let len = out.len();
        assert!(read(&mut Reader::new(&bytes[..len])).is_err());
    }
}
