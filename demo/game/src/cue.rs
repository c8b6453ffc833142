//! What a view shows or plays once.
//!
//! Cues say *who*, not *where*. A cue is identified by its key and its value; with a position in it, a spark that moved
//! by a pixel would be another spark, and would be played twice. A view knows where everybody was shown last.
//!
//! There are at most about ten a second for each player. Those who fire without pause (spinners) make none.

use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::state::{Item, Prop};
use super::weapon::Weapon;

/// Something to show or play once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    /// A player appeared.
    Appeared(PlayerId),
    /// A player fired; one cue for a whole fan.
    Shot {
        /// Who.
        player: PlayerId,
        /// With what.
        weapon: Weapon,
    },
    /// A player sprints.
    Dashed(PlayerId),
    /// A player was hit and lives on.
    Hurt(PlayerId),
    /// A player's shield took a hit and is gone.
    ShieldBroke(PlayerId),
    /// A player died.
    PlayerDied(PlayerId),
    /// A player has a pick-up.
    Took {
        /// Who.
        player: PlayerId,
        /// What.
        item: Item,
    },
    /// A player is ready for the round.
    Ready(PlayerId),
    /// A player's score rose. Shown only when confirmed: a score that counts back looks like a bug.
    Scored {
        /// Whose.
        player: PlayerId,
        /// By how much.
        points: u16,
    },
    /// A shot hit an enemy (its slot).
    Hit(u16),
    /// A hit on an enemy (its slot) was critical: the server rolled it.
    Crit(u16),
    /// An enemy (its slot) fired: a bullet, a fan or a ring of them.
    Volley(u16),
    /// An enemy (its slot) died.
    EnemyDied(u16),
    /// A boss (its slot) fights on in another way: its new stage, from 1.
    Enraged {
        /// Which.
        slot: u16,
        /// How far it is.
        stage: u8,
    },
    /// A barrel's fuse burns.
    Lit(u8),
    /// A barrel went up.
    Blast(u8),
    /// A barrel's blast got no answer: it only smoked.
    Fizzle(u8),
    /// A shell burst where it landed: it was this shot of its owner.
    Burst {
        /// Who fired it.
        owner: PlayerId,
        /// Which of the player's shots.
        n: u32,
    },
    /// A crate was hit and stands.
    CrateHit(u8),
    /// A crate broke.
    CrateBroke(u8),
    /// A blast threw a barrel or a crate: it is in the air.
    Tossed(Prop),
    /// All are ready: the countdown begins.
    Countdown,
    /// A wave begins: its number, from 1.
    WaveBegan(u8),
    /// A wave is over: its number, from 1.
    WaveCleared(u8),
    /// The round is won.
    Won,
    /// The round is lost.
    Lost,
}
