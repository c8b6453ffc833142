//! Counts of how sessions joined, and why they were removed: few kinds, independent of the wire's close codes.

use twinstep_protocol::packet::closed::CloseCode;

/// The result of a session's attempt to play or watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names that operators read say it")]
pub enum JoinResult {
    Playing,
    Full,
    Shut,
    WrongGame,
    Superseded,
    TakenOver,
    Barred,
    TooSlow,
    WorldTooLarge,
    Left,
    Gone,
    Ended,
}

impl JoinResult {
    /// The metrics' labels, in the order of the kinds.
    pub const NAMES: [&str; Self::COUNT] = [
        "playing",
        "full",
        "shut",
        "wrong_game",
        "superseded",
        "taken_over",
        "removed",
        "join_too_slow",
        "world_too_large",
        "left",
        "gone",
        "ended",
    ];
    /// The number of kinds.
    pub const COUNT: usize = JoinResult::Ended as usize + 1;

    /// The result for a session that ended with this code before it played.
    pub fn of(code: CloseCode) -> JoinResult {
        match code {
            CloseCode::Full | CloseCode::ServerFull { .. } | CloseCode::ServerBusy { .. } => {
                JoinResult::Full
            }
            CloseCode::Shut => JoinResult::Shut,
            CloseCode::WrongWire
            | CloseCode::WrongGame
            | CloseCode::WrongVersion
            | CloseCode::WrongRules => JoinResult::WrongGame,
            CloseCode::Superseded => JoinResult::Superseded,
            CloseCode::TakenOver => JoinResult::TakenOver,
            CloseCode::Kicked
            | CloseCode::Banned { .. }
            | CloseCode::Strikes
            | CloseCode::TooSlow
            | CloseCode::Desync => JoinResult::Barred,
            CloseCode::JoinTooSlow | CloseCode::NoAcks => JoinResult::TooSlow,
            CloseCode::WorldTooLarge => JoinResult::WorldTooLarge,
            CloseCode::Left => JoinResult::Left,
            _ => JoinResult::Ended,
        }
    }
}

/// The server's reason for removing a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names that operators read say it")]
pub enum KickReason {
    Operator,
    Banned,
    TooSlow,
    Strikes,
    Desync,
    NoAcks,
    WorldTooLarge,
}

impl KickReason {
    /// The metrics' labels, in the order of the kinds.
    pub const NAMES: [&str; Self::COUNT] = [
        "operator",
        "banned",
        "too_slow",
        "strikes",
        "desync",
        "no_acks",
        "world_too_large",
    ];
    /// The number of kinds.
    pub const COUNT: usize = KickReason::WorldTooLarge as usize + 1;

    /// The reason for a session that ended with this code. Returns `None` if the server did not remove the session.
    pub fn of(code: CloseCode) -> Option<KickReason> {
        match code {
            CloseCode::Kicked => Some(KickReason::Operator),
            CloseCode::Banned { .. } => Some(KickReason::Banned),
            CloseCode::TooSlow => Some(KickReason::TooSlow),
            CloseCode::Strikes => Some(KickReason::Strikes),
            CloseCode::Desync => Some(KickReason::Desync),
            CloseCode::NoAcks => Some(KickReason::NoAcks),
            CloseCode::WorldTooLarge => Some(KickReason::WorldTooLarge),
            _ => None,
        }
    }
}

/// Counts of joins and removals, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Joins, indexed by [`JoinResult`].
    pub joins: [u64; JoinResult::COUNT],
    /// Removals, indexed by [`KickReason`].
    pub kicks: [u64; KickReason::COUNT],
}

impl Tally {
    /// Counts a completed or failed join.
    pub fn join(&mut self, result: JoinResult) {
        self.joins[result as usize] += 1;
    }

    /// Counts a removed session, or a removed player without one.
    pub fn record_removal(&mut self, code: CloseCode) {
        if let Some(reason) = KickReason::of(code) {
            self.kicks[reason as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_and_reason_has_its_own_metrics_label() {
        for (result, name) in [
            (JoinResult::Playing, "playing"),
            (JoinResult::Superseded, "superseded"),
            (JoinResult::Barred, "removed"),
            (JoinResult::of(CloseCode::WrongRules), "wrong_game"),
            (JoinResult::Ended, "ended"),
        ] {
            assert_eq!(JoinResult::NAMES[result as usize], name);
        }
        for (code, name) in [
            (CloseCode::Kicked, "operator"),
            (CloseCode::Desync, "desync"),
            (CloseCode::WorldTooLarge, "world_too_large"),
        ] {
            let reason = KickReason::of(code).unwrap();
            assert_eq!(KickReason::NAMES[reason as usize], name);
        }
        assert_eq!(KickReason::of(CloseCode::Left), None);
    }
}
