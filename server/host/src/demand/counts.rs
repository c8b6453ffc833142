//! [`NotMade`] and [`MatchEnd`]: the outcomes of requests for a match, for observers to count.

use twinstep_protocol::packet::closed::CloseCode;

use crate::load_monitor::Full;
use twinstep_server::Degradation;

/// The reason why no match was created for a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum NotMade {
    Matches,
    /// The limit of new matches per second is reached.
    Rate,
    /// The template has no match with this id.
    Id,
    Superseded,
    /// The server is about to end, or its matches move to other servers.
    Draining,
    Lateness,
    Memory,
    Disk,
    /// Another process runs the match and writes its journal.
    Elsewhere,
    /// The match's journal or the game's code failed.
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
    /// The names of all variants, in order.
    pub const NAMES: [&str; NotMade::COUNT] = [
        "matches",
        "rate",
        "id",
        "superseded",
        "draining",
        "lateness",
        "memory",
        "disk",
        "in_use",
        "failed",
    ];
    /// The number of variants.
    pub const COUNT: usize = NotMade::Failed as usize + 1;

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

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

/// The end of a match created on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum MatchEnd {
    Deserted,
    /// The game or an operator closed the match.
    Over,
    /// The match can continue: here later, or in another process.
    Kept,
    Fault,
}

impl MatchEnd {
    /// The names of all variants, in order.
    pub const NAMES: [&str; MatchEnd::COUNT] = ["deserted", "over", "kept", "fault"];
    /// The number of variants.
    pub const COUNT: usize = MatchEnd::Fault as usize + 1;

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

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
    fn each_variant_has_its_own_name() {
        for (why, name) in [
            (NotMade::Matches, "matches"),
            (NotMade::Superseded, "superseded"),
            (NotMade::Elsewhere, "in_use"),
            (NotMade::Failed, "failed"),
        ] {
            assert_eq!(NotMade::NAMES[why as usize], name);
        }
        for (end, name) in [(MatchEnd::Deserted, "deserted"), (MatchEnd::Fault, "fault")] {
            assert_eq!(MatchEnd::NAMES[end as usize], name);
        }
    }
}
