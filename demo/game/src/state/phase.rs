//! [`RoundPhase`]: how far a round is. What leads from one to the next stands in `round`.

use serde::{Deserialize, Serialize};

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RoundPhase {
    /// An arena without rounds.
    Endless,
    /// Players gather and say when they are ready; nothing hurts.
    Lobby,
    /// All are ready; nothing hurts yet.
    Countdown,
    /// Enemies come.
    Wave,
    /// A rest before the next wave.
    Lull,
    /// The last wave is cleared.
    Won,
    /// Everybody is dead, and no life is left.
    Lost,
}

impl RoundPhase {
    /// Whether players can be hurt.
    #[must_use]
    pub fn is_dangerous(self) -> bool {
        matches!(
            self,
            RoundPhase::Endless | RoundPhase::Wave | RoundPhase::Lull
        )
    }

    /// Whether players are asked if they are ready.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        matches!(self, RoundPhase::Lobby | RoundPhase::Won | RoundPhase::Lost)
    }
}
