//! Players: walking, dashing, firing, dying by claim, coming back.
//!
//! ```text
//!          Joined                            Died (claim), blast (outcome)      a life is left
//!   (none) ────────────────▶ safe ──acts──▶ alive ───────────────────────▶ dead ──────────────▶ safe
//!      │                      ▲                                              │ no life is left
//!      │ no life is left      └──────────── the wave is over ────────────── out
//!      └──────────────────────────────────────────────────────────────────▶ out
//! ```
//!
//! Leaving does not save a player from death. A dropped player (`Dropped`) is out of play and returns (`Returned`) with
//! its former health, or dead if it had died. `former` defines the state of a rejoining player. No key is used twice,
//! because a rejoining player continues its counters.
//!
//! This file does not test whether a bullet or an enemy touches a player: `claim` does.

use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, PlayerId, Tick};

use super::cue::Cue;
use super::order::Command;
use super::state::Game;
use super::units::Heading;

mod former;

impl Game {
    pub(super) fn follow_roster(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.join(id, frame, fx),
                RosterChange::Returned => self.rejoin(id, frame, fx),
                RosterChange::Dropped => {
                    if let Some(player) = self.players.get_mut(&id) {
                        // A dead player stays dead, and its respawn timer keeps running.
                        if player.is_alive() {
                            player.kept_health = player.health;
                            player.health = 0;
                        }
                        player.is_away = true;
                    }
                }
                RosterChange::Left => self.leave(id, frame),
            }
        }
    }

    /// Brings back a disconnected player with its former health. A dead player stays dead until it is due to respawn,
    /// and an eliminated player waits for the end of the wave.
    fn rejoin(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let Some(player) = self.players.get_mut(&id) else {
            return self.join(id, frame, fx);
        };
        player.is_away = false;
        let health = player.kept_health;
        // 0: the player was dead before it was cut off, and its respawn timer is still running.
        if health > 0 {
            self.appear(id, frame, fx);
            if let Some(player) = self.players.get_mut(&id) {
                player.health = health;
            }
        }
    }

    /// Starts a player's next life. If the player is disconnected, the life starts when the player returns.
    pub(super) fn appear(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let Some(player) = self.players.get_mut(&id) else {
            return;
        };
        // Before the life changes, because the key contains it.
        self.timers.cancel(player.life_key(id));
        if player.is_away {
            player.is_out = false;
            player.kept_health = frame.rules().tuning.player_health;
            return;
        }
        player.appear(id, frame.tick(), frame.rules());
        fx.cue(player.cue_key(id), Cue::Appeared(id));
    }

    /// Runs the players' orders. Of the dead, only `Ready` counts, so a player dies only once.
    pub(super) fn run_orders(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, command) in frame.commands() {
            if *command == Command::Ready {
                self.ready(id, frame, fx);
                continue;
            }
            let Some(player) = self.players.get(&id).filter(|player| player.is_alive()) else {
                continue;
            };
            match *command {
                Command::Light { barrel: n } => {
                    let reach = frame.rules().tuning.light_reach;
                    let barrel = self.barrels.get(usize::from(n));
                    if barrel.is_some_and(|barrel| barrel.at.distance(player.at) <= reach) {
                        self.light(n, frame.rules().tuning.fuse_ticks, Some(id), frame, fx);
                    }
                }
                Command::Dash => self.dash(id, frame, fx),
                Command::Hurt { by } => self.apply_hit_claim(id, by, frame, fx),
                Command::Died { by } => self.die(id, by, frame, fx),
                Command::Ready => {}
            }
        }
    }

    fn dash(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        let Some(player) = self
            .players
            .get_mut(&id)
            .filter(|player| now >= player.next_dash)
        else {
            return;
        };
        let walk = frame.input(id).map_or(Heading::NONE, |pad| pad.walk);
        player.dash_heading = if walk == Heading::NONE {
            player.facing
        } else {
            walk
        };
        player.dash_until = now + tuning.dash_ticks;
        player.next_dash = now + tuning.dash_rest_ticks;
        // A dash is an action: a newly appeared player stays safe only for `shield_ticks` more.
        player.safe_until = player.safe_until.min(now + tuning.shield_ticks);
        fx.cue(player.cue_key(id), Cue::Dashed(id));
    }

    pub(super) fn move_players(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, rules) = (frame.tick(), frame.rules());
        for (&id, player) in &mut self.players {
            let Some(pad) = frame.input(id).filter(|_| player.is_alive()) else {
                continue;
            };
            player.walk(pad, now, rules, &self.crates);
            if pad.fires() && now >= player.next_shot {
                let weapon = player.weapon;
                let key = player.fire(id, now, rules, &mut self.shots);
                // A remote player's shot sounds only once its input is known here.
                if frame.is_local(id) || frame.learned(id, now) != Tick::MAX {
                    fx.cue(key, Cue::Shot { player: id, weapon });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
