//! Discrete orders, and the referee that admits them.
//!
//! ```text
//!   a key press ──▶ Light, Dash, Ready ──┐                    ┌─▶ refused: the owner learns why
//!                                        ├─▶ server: admit ───┤
//!   own prediction ──▶ Hurt, Died ───────┘                    └─▶ in a frame: every copy executes it
//! ```
//!
//! The referee looks at the server's world, which may differ by some ticks from the one that the player saw. So it is
//! more lenient than the step. An order that comes too late runs, and does nothing.

use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId};

use super::rules::Rules;
use super::state::Game;

/// A discrete order of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Light the fuse of a barrel in reach.
    Light {
        /// Its number in [`Rules::barrels`].
        barrel: u8,
    },
    /// A short sprint in the direction of walking, or else of facing.
    Dash,
    /// "I am ready": once all are, the round begins; and if half of them are, soon. Said twice it is taken back.
    Ready,
    /// "I was hit, and live": a claim as `Died` is one. It never kills; who dies says so.
    Hurt {
        /// The bullet or enemy that did it.
        by: Key,
    },
    /// "I died": a claim that the owner's own prediction makes (seed row 63). Nobody else tests whether a
    /// player is hit, the server least of all (row 64): what kills you is what *you* saw.
    Died {
        /// The bullet or enemy that did it.
        by: Key,
    },
}

/// Why the referee refused an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Orders are for the living.
    #[error("{0} is not alive; wait until it returns")]
    NotAlive(PlayerId),
    /// The round is on.
    #[error("nobody waits for players to be ready now; wait for the end of the round")]
    NotAsked,
    /// No barrel stands there that could be lit.
    #[error("barrel {0} is not there or is lit already; choose one that stands")]
    NoBarrel(u8),
    /// Too far away, even with the lag of a bad link allowed for.
    #[error("barrel {0} is out of reach; go nearer")]
    TooFar(u8),
}

impl Refusal {
    /// What the server tells a client of it, from 1 on.
    #[must_use]
    pub fn number(&self) -> u16 {
        match self {
            Refusal::NotAlive(_) => 1,
            Refusal::NotAsked => 2,
            Refusal::NoBarrel(_) => 3,
            Refusal::TooFar(_) => 4,
        }
    }

    /// What a player reads for such a number; `None`: there is no such refusal.
    #[must_use]
    pub fn words(number: u16) -> Option<&'static str> {
        Some(match number {
            1 => "refused: you are not alive",
            2 => "refused: the round is on",
            3 => "refused: that barrel is lit or gone",
            4 => "refused: that barrel is out of reach",
            _ => return None,
        })
    }
}

/// How far a player may have moved between its own picture and the server's, in units.
const LAG_REACH: f32 = 6.0;

/// Whether the server takes an order (or claim) of `player`, judged by its world at the time of arrival.
///
/// # Errors
/// Why not.
pub fn admit(
    game: &Game,
    rules: &Rules,
    player: PlayerId,
    command: &Command,
) -> Result<(), Refusal> {
    if *command == Command::Ready {
        return if game.phase.is_waiting() {
            Ok(())
        } else {
            Err(Refusal::NotAsked)
        };
    }
    let Some(who) = game.players.get(&player).filter(|who| who.is_alive()) else {
        return Err(Refusal::NotAlive(player));
    };
    match *command {
        Command::Light { barrel } => {
            let barrels = game.barrels.get(usize::from(barrel));
            match barrels.filter(|barrel| barrel.can_be_lit()) {
                Some(it) if it.at.distance(who.at) <= rules.tuning.light_reach + LAG_REACH => {
                    Ok(())
                }
                Some(_) => Err(Refusal::TooFar(barrel)),
                None => Err(Refusal::NoBarrel(barrel)),
            }
        }
        Command::Dash | Command::Hurt { .. } | Command::Died { .. } | Command::Ready => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn the_living_may_light_what_stands_in_reach() {
        let mut game = with_player(quiet());
        let barrel = rules().barrels[4];
        game.sim_mut().players.get_mut(&ONE).unwrap().at = barrel;
        let judge = |game: &SoloGame, command| admit(game.sim(), &rules(), ONE, &command);
        assert_eq!(judge(&game, Command::Light { barrel: 4 }), Ok(()));
        assert_eq!(
            judge(&game, Command::Light { barrel: 0 }),
            Err(Refusal::TooFar(0))
        );
        assert_eq!(
            judge(&game, Command::Light { barrel: 200 }),
            Err(Refusal::NoBarrel(200))
        );
        game.command(ONE, Command::Light { barrel: 4 }).step();
        assert_eq!(
            judge(&game, Command::Light { barrel: 4 }),
            Err(Refusal::NoBarrel(4))
        );
    }

    #[test]
    fn the_dead_and_the_absent_may_order_nothing() {
        let mut game = with_player(quiet());
        let died = Command::Died { by: Key::default() };
        assert_eq!(admit(game.sim(), &rules(), ONE, &died), Ok(()));
        assert_eq!(
            admit(game.sim(), &rules(), TWO, &died),
            Err(Refusal::NotAlive(TWO))
        );
        game.claim(ONE, died).step();
        for command in [died, Command::Dash, Command::Light { barrel: 0 }] {
            assert_eq!(
                admit(game.sim(), &rules(), ONE, &command),
                Err(Refusal::NotAlive(ONE))
            );
        }
    }
}
