//! The server's referee: it admits orders, claims and answers, and claims harm that an owner has not claimed.
//!
//! ```text
//!   "I was hit", "I died"  ──▶ near a possible cause, at most a moment ago?  ──▶ into a frame
//!   Claims::OwnerOnly            an owner's screen alone decides; the server tests none (row 64)
//!   Claims::OwnerWithin(ticks)   if the owner has not claimed a touch `ticks` after it in the *sealed* game,
//!                                the referee claims it: a player cannot be immortal
//! ```
//!
//! A wait is at most `OWED_WITHIN_MAX`, because the match keeps no older worlds.
//!
//! In both modes the harm is a claim in a frame, so all sides run the same `step`.
//!
//! Invariant: the referee has no memory. Its decisions follow from the last 64 worlds of the match, so a restarted
//! server decides the same.

use core::ops::Range;

use glam::Vec2;
use twinstep_core::bounds::{CLAIMS_PER_SECOND, HISTORY};
use twinstep_core::{Key, PlayerId};
use twinstep_server::{Admission, HookContext, MatchRequest, Referee};

use super::order::{Command, Refusal, admit};
use super::query::{Outcome, Query};
use super::state::{Game, Player};
use super::throw::speculate;
use super::{blast, throw};

/// The greatest distance of a claimed cause from the player, in units. The player's screen is a few ticks ahead of or
/// behind the server, and shows a guess.
pub(super) const CLAIM_REACH: f32 = 8.0;
/// The greatest distance, in units, of an enemy that may have fired a bullet unknown to the server. The bullet may have
/// flown on the player's screen until the server's frame removed it.
pub(super) const CLAIM_REACH_OF_BULLETS: f32 = CLAIM_REACH + 0.24 * HISTORY as f32;
/// The history is searched in steps of this many ticks. Bullets and players move at most two units per step; a darting
/// charger moves up to 7.5, which is still within `CLAIM_REACH`.
const LOOK_EVERY_TICKS: u32 = 4;
/// The number of past worlds that the referee searches for unclaimed harm. No debt is charged in a tick in which the
/// player makes a claim, and claims are limited to [`CLAIMS_PER_SECOND`], so one world more is enough.
const OWED_TICKS: u32 = CLAIMS_PER_SECOND + 1;
/// The longest wait for a debt, in ticks. The match does not keep older worlds.
const OWED_WITHIN_MAX: u32 = HISTORY - OWED_TICKS;

#[derive(Clone, Copy, Debug, Default)]
pub struct Judge;

impl Referee<Game> for Judge {
    /// Harm must be claimed and plausible; all other commands must be ordered.
    fn admit(
        &mut self,
        look: &HookContext<'_, Game>,
        by: PlayerId,
        command: &Command,
        claimed: bool,
    ) -> Admission {
        let is_sound = match *command {
            Command::Hurt { by: what } | Command::Died { by: what } => {
                claimed && could_harm(look, by, what)
            }
            Command::Light { .. } | Command::Dash | Command::Ready => !claimed,
        };
        if !is_sound {
            return Admission::Refused(0);
        }
        match admit(look.sim(), look.rules(), by, command) {
            Ok(()) => Admission::Admitted,
            Err(why) => Admission::Refused(why.number()),
        }
    }

    /// Judges an answer from the query's owner: the client that lit the barrel or fired the shell. A blast's answer
    /// must agree with the server's estimate to within an 8th of a unit; a toss must be possible. Otherwise the physics
    /// decides. Only the server answers secrets.
    fn admit_answer(
        &mut self,
        look: &HookContext<'_, Game>,
        _by: PlayerId,
        _key: Key,
        query: &Query,
        outcome: &Outcome,
    ) -> bool {
        let (Query::Blast { asked, .. } | Query::Toss { asked, .. }) = *query else {
            return false;
        };
        // The world after the tick that asked, from which the client answered.
        let Some(game) = look.at(asked + 1) else {
            return false;
        };
        match (*query, outcome) {
            (Query::Blast { .. }, Outcome::Blast { hits }) => {
                match speculate(game, look.rules(), query) {
                    Some(Outcome::Blast { hits: estimate }) => blast::agree(&estimate, hits),
                    _ => false,
                }
            }
            (Query::Toss { bomb, at, .. }, Outcome::Toss { throws }) => {
                throw::is_possible(game, look.rules(), bomb, at.to_vec2(), throws)
            }
            _ => false,
        }
    }

    /// Only the first player, which plays alone or acts as the host, may pause or step the match or change its speed.
    /// All other requests are refused.
    fn admit_request(
        &mut self,
        look: &HookContext<'_, Game>,
        by: PlayerId,
        request: MatchRequest,
    ) -> Admission {
        let first = look.sim().players.iter().next().map(|(player, _)| *player);
        match request {
            MatchRequest::Tick(_)
            | MatchRequest::Pause
            | MatchRequest::Resume
            | MatchRequest::Step(_)
                if first == Some(by) =>
            {
                Admission::Admitted
            }
            _ => Admission::Refused(Refusal::NotFirst.number()),
        }
    }

    /// Searches `OWED_TICKS` worlds for an unpaid debt, starting at the world `within` ticks ago (at most
    /// `OWED_WITHIN_MAX`).
    fn owed(
        &mut self,
        look: &HookContext<'_, Game>,
        player: PlayerId,
        within: u32,
    ) -> Option<Command> {
        let now = look.sim().players.get(&player)?;
        if !now.is_alive() {
            return None;
        }
        ages(within).find_map(|ago| {
            let end = look.tick().back(ago);
            let then = look.at(end)?;
            let who = then.players.get(&player)?;
            // The player has died since, of any cause, so no debt is left.
            if who.life != now.life {
                return None;
            }
            // A world is named by its next tick, and holds the state at the end of the tick before.
            let harm = then.harm_of(player, end.back(1), look.rules())?;
            (!is_paid(&harm, who, now)).then_some(harm)
        })
    }
}

/// Returns the ages of the worlds that are searched for debts, in ticks.
fn ages(within: u32) -> Range<u32> {
    let within = within.min(OWED_WITHIN_MAX);
    within..within + OWED_TICKS
}

/// Returns `true` if the harm that a player owed in its state `then` has been applied since, in the same life.
fn is_paid(harm: &Command, then: &Player, now: &Player) -> bool {
    match harm {
        // Only a hit extends `safe_until`, so a later one means that the player was hit since.
        Command::Hurt { .. } => now.safe_until > then.safe_until,
        _ => false,
    }
}

/// Returns `true` if `what` could have touched the player recently, according to the worlds of the last [`HISTORY`]
/// ticks.
///
/// A player's screen can show things that the server never had: an enemy that is already dead in the sealed game, or a
/// bullet fired by such an enemy. Their harm also counts, so a key unknown to the server is accepted if an enemy was
/// near enough to have fired it.
fn could_harm(look: &HookContext<'_, Game>, player: PlayerId, what: Key) -> bool {
    let Some(at) = look.sim().players.get(&player).map(|who| who.at) else {
        return false;
    };
    let ago = (0..=HISTORY).step_by(LOOK_EVERY_TICKS as usize);
    let mut known = false;
    let mut any_near = false;
    for game in ago.filter_map(|ago| look.at(look.tick().back(ago))) {
        // Compare with both places, then and now, because a dash must not outrun a past hit.
        let then = game.players.get(&player).map_or(at, |who| who.at);
        let near = |place: Vec2, reach: f32| place.distance(at).min(place.distance(then)) <= reach;
        let mut bullets = game.bullets.iter();
        if let Some(bullet) = bullets.find(|bullet| bullet.key == what) {
            known = true;
            if near(bullet.at, CLAIM_REACH) {
                return true;
            }
        }
        for (enemy, slot) in game.enemies.iter().zip(0..) {
            if !enemy.is_alive() {
                continue;
            }
            if enemy.key(slot) == what {
                known = true;
                if near(enemy.at, CLAIM_REACH) {
                    return true;
                }
            }
            any_near |= near(enemy.at, CLAIM_REACH_OF_BULLETS);
        }
    }
    !known && any_near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debts_are_searched_only_in_kept_worlds() {
        assert_eq!(ages(40), 40..40 + OWED_TICKS);
        for within in [0, 40, 55, 60, HISTORY, u32::MAX] {
            let ages = ages(within);
            assert_eq!(ages.len(), OWED_TICKS as usize, "within {within}");
            assert!(ages.end <= HISTORY, "within {within}: {ages:?}");
        }
    }
}
