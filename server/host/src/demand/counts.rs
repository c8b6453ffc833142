//! What becomes of wishes for a match: few reasons, by which observers count.

use twinstep_protocol::packet::closed::CloseCode;

use crate::load_monitor::Full;
use twinstep_server::Degradation;

/// Why no match was made for a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotMade {
    /// As many as there may be run already.
    Matches,
    /// As many as may be were made within this second.
    Rate,
    /// The template knows no such id.
    Id,
    /// A newer ticket of the identity is safe, or it was revoked.
    Superseded,
    /// The server ends, or its matches go elsewhere.
    Draining,
    /// Ticks are late.
    Lateness,
    /// The process uses too much memory.
    Memory,
    /// A disk for journals is full.
    Disk,
    /// It runs in another process, which writes its journal.
    Elsewhere,
    /// It could not be made: its journal, or the game's code.
    Failed,
}

impl From<Full> for NotMade {
    fn from(full: Full) -> NotMade {
        match full {
            Full::Lateness(..) => NotMade::Lateness,
            Full::Memory(..) => NotMade::Memory,
            Full::Disk(..) => NotMade::Disk,
        }
    }
}

impl NotMade {
    /// All of them, as they are called, in the order of their numbers.
    pub const NAMES: [&str; NotMade::COUNT] = [
        "matches",
        "rate",
        "id",
        "superseded",
        "draining",
        "lateness",
        "memory",
        "disk",
        "elsewhere",
        "failed",
    ];
    /// How many kinds there are.
    pub const COUNT: usize = NotMade::Failed as usize + 1;

    /// What whoever wanted it is told.
    pub(super) fn code(self) -> CloseCode {
        match self {
            NotMade::Lateness => Degradation::BUSY,
            NotMade::Matches | NotMade::Memory | NotMade::Disk => Degradation::FULL,
            NotMade::Rate => CloseCode::ServerFull { after_s: 2 },
            NotMade::Id | NotMade::Elsewhere => CloseCode::NoMatch,
            NotMade::Superseded => CloseCode::Superseded,
            NotMade::Draining => CloseCode::Draining,
            NotMade::Failed => CloseCode::Fault,
        }
    }
}

/// How a match that was made on demand came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchEnd {
    /// Nobody was there.
    Deserted,
    /// It was closed: by its game, or an operator.
    Over,
    /// It can go on: here later, or in another process.
    Kept,
    /// Something broke.
    Fault,
}

impl MatchEnd {
    /// All of them, as they are called, in the order of their numbers.
    pub const NAMES: [&str; MatchEnd::COUNT] = ["deserted", "over", "kept", "fault"];
    /// How many kinds there are.
    pub const COUNT: usize = MatchEnd::Fault as usize + 1;

    pub(super) fn of(code: CloseCode) -> MatchEnd {
        match code {
            CloseCode::Draining | CloseCode::Restarting { .. } | CloseCode::Moved => MatchEnd::Kept,
            CloseCode::Fault => MatchEnd::Fault,
            _ => MatchEnd::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_called_by_its_own_name() {
        for (why, name) in [
            (NotMade::Matches, "matches"),
            (NotMade::Superseded, "superseded"),
            (NotMade::Elsewhere, "elsewhere"),
            (NotMade::Failed, "failed"),
        ] {
            assert_eq!(NotMade::NAMES[why as usize], name);
        }
        for (end, name) in [(MatchEnd::Deserted, "deserted"), (MatchEnd::Fault, "fault")] {
            assert_eq!(MatchEnd::NAMES[end as usize], name);
        }
    }
}
