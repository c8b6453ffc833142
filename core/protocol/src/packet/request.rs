//! Players' requests to the match itself: its speed, a pause, a save. They are sent on the lane, so they arrive even
//! while the match is paused. In a lobby, where clients do not send lane messages, the start is requested by a count in
//! [`Waiting`](super::hello::Waiting).
//!
//! ```text
//!  REQUEST          up    seat · request          one player asks
//!  REQUEST_RESULT   down  by · request · refusal  to all if admitted, otherwise to the player that asked
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_core::bounds::{TICK_MAX, TICK_MIN};
use twinstep_core::{PlayerId, codec};

use super::refusal::CommandRefusal;

/// A request to the match itself. The game's referee decides on a player's request (`Referee::admit_request`), but not
/// on a host's. Except for saves and starts, an admitted request takes effect at the first tick of a turn, for all
/// clients at the same tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MatchRequest {
    /// Plays ticks of this length from now on, [`TICK_MIN`]..=[`TICK_MAX`]: half the usual length is double speed.
    Tick(Duration),
    /// Pauses the match after the next turn.
    Pause,
    Resume,
    /// Runs a paused match for at least this many ticks (1 or more), in whole turns. Has no effect while the match
    /// runs.
    Step(u8),
    /// Saves the match. The match continues, and its ticks do not wait for the save. The result follows once the save
    /// is written. A player may save twice a minute.
    Save,
    /// Starts a match that waits for its players, even if they are not ready.
    Start,
}

impl fmt::Display for MatchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchRequest::Tick(tick) => write!(f, "speed: ticks of {} µs", tick.as_micros()),
            MatchRequest::Pause => f.write_str("pause"),
            MatchRequest::Resume => f.write_str("resume"),
            MatchRequest::Step(ticks) => write!(f, "step {ticks}"),
            MatchRequest::Save => f.write_str("save"),
            MatchRequest::Start => f.write_str("start"),
        }
    }
}

impl MatchRequest {
    pub const BYTES_MAX: usize = 32;

    /// Returns `true` if each value is in its range.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            MatchRequest::Tick(tick) => (TICK_MIN..=TICK_MAX).contains(tick),
            MatchRequest::Step(ticks) => *ticks > 0,
            MatchRequest::Pause
            | MatchRequest::Resume
            | MatchRequest::Save
            | MatchRequest::Start => true,
        }
    }

    #[must_use]
    pub fn encode(&self, seat: u8) -> Vec<u8> {
        encode(&(seat, self))
    }

    /// Reads a player's request, and its seat. Returns `None` if the bytes are not a request within its range.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(u8, MatchRequest)> {
        let is_small = bytes.len() <= MatchRequest::BYTES_MAX;
        let (seat, request): (u8, MatchRequest) =
            is_small.then(|| codec::decode_whole(bytes).ok())??;
        request.is_sound().then_some((seat, request))
    }
}

/// The decision on a player's request, or on the host's if `by` is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct RequestResult {
    pub by: Option<PlayerId>,
    pub request: MatchRequest,
    pub refused: Option<CommandRefusal>,
}

impl RequestResult {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads a result. Returns `None` if the bytes are not a result, or if a value is out of its range.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<RequestResult> {
        let is_small = bytes.len() <= MatchRequest::BYTES_MAX;
        let result: RequestResult = is_small.then(|| codec::decode_whole(bytes).ok())??;
        result.request.is_sound().then_some(result)
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::append(value, &mut bytes).expect("numbers encode");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [MatchRequest; 6] = [
        MatchRequest::Tick(Duration::from_millis(25)),
        MatchRequest::Pause,
        MatchRequest::Resume,
        MatchRequest::Step(u8::MAX),
        MatchRequest::Save,
        MatchRequest::Start,
    ];

    #[test]
    fn every_request_and_result_survives_a_round_trip() {
        for request in ALL {
            let bytes = request.encode(3);
            assert_eq!(MatchRequest::decode(&bytes), Some((3, request)));
            for by in [None, Some(PlayerId(15))] {
                for refused in [None, Some(CommandRefusal::Referee(u16::MAX))] {
                    let result = RequestResult {
                        by,
                        request,
                        refused,
                    };
                    let bytes = result.encode();
                    assert!(bytes.len() <= MatchRequest::BYTES_MAX, "{bytes:?}");
                    assert_eq!(RequestResult::decode(&bytes), Some(result));
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_request_are_refused() {
        let request = MatchRequest::Tick(Duration::from_millis(25));
        let bytes = request.encode(0);
        for short in 0..bytes.len() {
            assert_eq!(MatchRequest::decode(&bytes[..short]), None);
        }
        for unsound in [
            MatchRequest::Tick(Duration::ZERO),
            MatchRequest::Tick(Duration::MAX),
            MatchRequest::Step(0),
        ] {
            assert_eq!(
                MatchRequest::decode(&unsound.encode(0)),
                None,
                "{unsound:?}"
            );
        }
        assert_eq!(MatchRequest::decode(&[0; 100]), None);
    }
}
