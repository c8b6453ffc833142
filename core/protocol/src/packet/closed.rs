//! `Closed`, down: the session is over, and why.
//!
//! ```text
//! first · code
//! ```
//!
//! It has no link header, because a host sends it also for sessions that no match knows. It may be lost: a match sends a
//! few copies, and a host answers each late packet with another one.

use super::hello::CloseCode;
use super::{DownKind, DownPart, PacketBody};
use crate::wire::{WireError, Writer};

/// The longest such packet, in bytes.
pub const BYTES_MAX: usize = 16;

/// Writes it.
///
/// # Errors
/// [`WireError::Full`], which [`BYTES_MAX`] never are.
pub fn write(code: CloseCode, out: &mut Writer<'_>) -> Result<(), WireError> {
    out.u8(DownKind::Closed.alone())?;
    out.value(&code)
}

/// Reads its body.
///
/// # Errors
/// Bytes that are no code, or more than one.
pub fn read(body: PacketBody<'_, DownPart>) -> Result<CloseCode, WireError> {
    let mut packet = body.packet;
    let code = packet.value()?;
    packet.end()?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkState;
    use crate::packet::DownPacket;
    use crate::packet::hello::BANNED_FOR_GOOD;
    use proptest::prelude::*;

    fn open(bytes: &[u8]) -> Option<CloseCode> {
        match DownPacket::open(bytes, &LinkState::default()) {
            Ok(DownPacket::Closed(body)) => read(body).ok(),
            _ => None,
        }
    }

    #[test]
    fn a_code_comes_back_from_the_bytes_that_are_kept_for_it() {
        let longest = CloseCode::Banned {
            for_s: BANNED_FOR_GOOD,
        };
        for code in [
            longest,
            CloseCode::WrongWire,
            CloseCode::Restarting { after_s: 3 },
        ] {
            let mut bytes = [0; BYTES_MAX];
            let mut out = Writer::new(&mut bytes);
            write(code, &mut out).unwrap();
            let len = out.len();
            assert_eq!(open(&bytes[..len]), Some(code));
            for short in 0..len {
                assert_eq!(open(&bytes[..short]), None, "{short} of {len} bytes");
            }
            assert_eq!(open(&bytes[..(len + 1).min(BYTES_MAX)]), None);
        }
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_a_code(mut bytes in proptest::collection::vec(any::<u8>(), 1..20)) {
            bytes[0] = DownKind::Closed.alone();
            let _ = open(&bytes);
        }
    }
}
