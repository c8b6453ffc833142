//! Discrete orders of players, and which of them the referee admits.
//!
//! ```text
//!   a key press ──▶ Light, Dash, Ready ──┐                    ┌─▶ refused: the owner learns why
//!                                        ├─▶ server: admit ───┤
//!   own prediction ──▶ Hurt, Died ───────┘                    └─▶ in a frame: every copy executes it
//! ```
//!
//! The referee looks at the server's world, which may differ by a few ticks from the world that the player saw. So it
//! is more lenient than the step: an admitted order may run without effect.

use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId};

use super::rules::Rules;
use super::state::Game;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    Light {
        /// The barrel's number in [`Rules::barrels`].
        barrel: u8,
    },
    /// A short sprint in the direction in which the player walks or, if it stands, faces.
    Dash,
    /// "I am ready". The round starts when all players are ready, or when at least half have been ready for a while. A
    /// second `Ready` takes it back.
    Ready,
    /// "I was hit and survived": a claim, like `Died`. It never kills.
    Hurt { by: Key },
    /// "I died": a claim that the owner's own prediction makes (seed row 63). No other step tests whether a player is
    /// hit, not even the server's (row 64): a player dies of what its own screen showed.
    Died { by: Key },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error("{0} is not alive; wait until it respawns")]
    NotAlive(PlayerId),
    #[error("the round has already started; wait until it ends")]
    NotAsked,
    #[error("barrel {0} is gone or already lit; choose another")]
    NoBarrel(u8),
    /// Too far away, even for the lag of a bad link.
    #[error("barrel {0} is out of reach; go nearer")]
    TooFar(u8),
    #[error("only the first player may pause the match or change its speed")]
    NotFirst,
}

impl Refusal {
    /// The number that the server sends to the client, from 1.
    #[must_use]
    pub fn number(&self) -> u16 {
        match self {
            Refusal::NotAlive(_) => 1,
            Refusal::NotAsked => 2,
            Refusal::NoBarrel(_) => 3,
            Refusal::TooFar(_) => 4,
            Refusal::NotFirst => 5,
        }
    }

    /// Returns the text that a player reads for a refusal's number, or `None` for an unknown number.
    #[must_use]
    pub fn words(number: u16) -> Option<&'static str> {
        Some(match number {
            1 => "refused: you are not alive",
            2 => "refused: the round has already started",
            3 => "refused: that barrel is lit or gone",
            4 => "refused: that barrel is out of reach",
            5 => "refused: only the first player may pause or change the speed",
            _ => return None,
        })
    }
}

const LAG_REACH: f32 = 6.0;

/// Decides whether to admit an order or a claim of `player`, based on the server's world when it arrives.
///
/// # Errors
/// The reason, if the order is refused.
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
    fn living_players_may_light_barrels_within_reach() {
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
    fn orders_from_dead_or_absent_players_are_refused() {
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
