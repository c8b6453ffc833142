//! Sounds and flashes that a view plays once.
//!
//! A cue names the body, not the position. Key and value identify a cue: with a position in the value, a spark moved by
//! a pixel would be a different cue, and would be played twice. A view knows where it last drew each body.
//!
//! A player causes at most about twenty cues per second. Streams of single bullets (spinners) cause none.

use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::state::{Item, Prop};
use super::weapon::Weapon;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cue {
    Appeared(PlayerId),
    /// A player fired. A whole fan causes one cue.
    Shot {
        player: PlayerId,
        weapon: Weapon,
    },
    Dashed(PlayerId),
    Hurt(PlayerId),
    ShieldBroke(PlayerId),
    PlayerDied(PlayerId),
    Took {
        player: PlayerId,
        item: Item,
    },
    Ready(PlayerId),
    /// A player's score rose. Played only after it is confirmed, because a falling score looks like a bug.
    Scored {
        player: PlayerId,
        points: u16,
    },
    /// A shot hit the enemy in this slot.
    Hit(u16),
    /// A hit on the enemy in this slot was critical, as drawn by the server.
    Crit(u16),
    /// The enemy in this slot fired a bullet, a fan or a ring. Continuous streams cause no cue.
    Volley(u16),
    EnemyDied(u16),
    /// A boss started its next stage, in which it fights differently.
    Enraged {
        slot: u16,
        /// The boss's new stage, from 1.
        stage: u8,
    },
    Lit(u8),
    Blast(u8),
    Fizzle(u8),
    Burst {
        owner: PlayerId,
        /// The shell's number among its owner's shots.
        n: u32,
    },
    CrateHit(u8),
    CrateBroke(u8),
    /// A blast threw a barrel or a crate into the air.
    Tossed(Prop),
    Countdown,
    /// The wave with this number, counted from 1, starts.
    WaveBegan(u8),
    /// The wave with this number, counted from 1, is over.
    WaveCleared(u8),
    Won,
    Lost,
}
