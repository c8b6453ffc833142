//! A round: lobby, waves, and how it ends.
//!
//! ```text
//!              ready                              wave cleared
//!   Lobby ────────────▶ Countdown ──▶ Wave ──────────────────────▶ Lull
//!     ▲                     ▲          │  ▲                          │
//!     │ no player left      │          │  └──────────────────────────┘
//!     │                     │          ├─ the last wave cleared ─▶ Won ──┐ ready
//!     │                     │          └─ lives gone, all dead ──▶ Lost ─┤
//!     │                     └───────────────────────────────────────────┘
//! ```
//!
//! A player is *ready* after the order `Ready`. The round starts when all present players are ready, or when at least
//! half of them have been ready for 20 s ([`Tuning::patience_ticks`](super::Tuning::patience_ticks)). So a player away
//! from the keyboard does not hold up the others. Such a player does not delay the end either: a round is lost when all
//! other players are out, and this player has stood where it appeared for 20 s.
//!
//! An endless arena stays in [`RoundPhase::Endless`]. No key is ever used twice: slots, barrels, crates and players
//! keep counting their lives from round to round (players even if they leave and join again), and the key of a wave
//! contains the number of its round.

use twinstep_core::{Effects, Frame, Key, PlayerId, PlayerSet, Tick};

use super::cue::Cue;
use super::rules::Rules;
use super::state::{Game, Player, RoundPhase, cause};

impl Game {
    /// The tick at which a countdown or a lull ends; after a result, the first tick at which the next round can start.
    /// `None` in all other phases.
    #[must_use]
    pub fn phase_ends(&self, rules: &Rules) -> Option<Tick> {
        let ticks = match self.phase {
            RoundPhase::Countdown => rules.tuning.countdown_ticks,
            RoundPhase::Lull => rules.tuning.lull_ticks,
            RoundPhase::Won | RoundPhase::Lost => rules.tuning.curtain_ticks,
            RoundPhase::Endless | RoundPhase::Lobby | RoundPhase::Wave => return None,
        };
        Some(self.phase_since + ticks)
    }

    /// The tick at which the next round starts even if some players are not ready. `None` if it waits for all players.
    #[must_use]
    pub fn begins_anyway(&self, rules: &Rules) -> Option<Tick> {
        let begins = self.half_ready_since? + rules.tuning.patience_ticks;
        Some(begins.max(self.phase_ends(rules).unwrap_or(begins)))
    }

    pub fn present(&self) -> impl Iterator<Item = (PlayerId, &Player)> {
        let players = self.players.iter();
        players.filter_map(|(id, player)| (!player.is_away).then_some((*id, player)))
    }

    // Returns `true` if the next round waits for the human players, and none of them is ready. In that case, bots do
    // not get ready either, so that no round starts while a newcomer is still reading.
    #[must_use]
    pub fn waits_for_persons(&self, bots: PlayerSet) -> bool {
        let mut persons = self
            .present()
            .filter(|(id, _)| !bots.contains(*id))
            .peekable();
        let is_anybody_here = persons.peek().is_some();
        self.phase.is_waiting() && is_anybody_here && persons.all(|(_, person)| !person.is_ready)
    }

    fn wave_key(&self) -> Key {
        Key::new(cause::ROUND | u64::from(self.round), self.wave.into())
    }

    pub(super) fn advance_round(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let is_due = self
            .phase_ends(frame.rules())
            .is_none_or(|ends| frame.tick() >= ends);
        match self.phase {
            RoundPhase::Endless => {}
            // An empty lobby stays as it is. Any other phase without players returns to it.
            RoundPhase::Lobby if self.players.is_empty() => {}
            _ if self.players.is_empty() => {
                self.clear_field(frame);
                self.enter(RoundPhase::Lobby, frame);
            }
            RoundPhase::Lobby | RoundPhase::Won | RoundPhase::Lost => {
                self.count_ready(frame.tick());
                let begins = self.begins_anyway(frame.rules());
                let is_late = begins.is_some_and(|begins| frame.tick() >= begins);
                if is_late || is_due && self.all_ready() {
                    self.begin_round(frame, fx);
                }
            }
            RoundPhase::Countdown | RoundPhase::Lull => {
                if is_due {
                    self.begin_wave(frame, fx);
                }
            }
            RoundPhase::Wave => self.check_wave(frame, fx),
        }
    }

    fn enter(&mut self, phase: RoundPhase, frame: &Frame<'_, Game>) {
        self.phase = phase;
        self.phase_since = frame.tick();
        self.half_ready_since = None;
        for player in self.players.values_mut() {
            player.is_ready = false;
        }
    }

    fn count_ready(&mut self, now: Tick) {
        let ready = self.present().filter(|(_, player)| player.is_ready).count();
        let is_half = ready > 0 && 2 * ready >= self.present().count();
        self.half_ready_since = is_half.then(|| self.half_ready_since.unwrap_or(now));
    }

    fn all_ready(&self) -> bool {
        self.present().next().is_some() && self.present().all(|(_, player)| player.is_ready)
    }

    pub(super) fn ready(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        if !self.phase.is_waiting() {
            return;
        }
        if let Some(player) = self.players.get_mut(&id) {
            player.is_ready ^= true;
            if player.is_ready {
                fx.cue(Key::player(id, frame.tick().0).child(0), Cue::Ready(id));
            }
        }
    }

    fn begin_round(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let tuning = &frame.rules().tuning;
        self.clear_field(frame);
        self.round = self.round.wrapping_add(1);
        self.enter(RoundPhase::Countdown, frame);
        let players = self.present().count() as u16;
        self.lives = tuning.lives + tuning.lives_per_player * players;
        self.respawn(frame, fx, |_| true);
        fx.cue(self.wave_key(), Cue::Countdown);
    }

    /// Resets the arena for a new round. The counts in keys continue, so that no key is used twice.
    fn clear_field(&mut self, frame: &Frame<'_, Game>) {
        self.cancel_arrivals();
        for enemy in &mut self.enemies {
            enemy.health = 0;
        }
        self.shots.clear();
        self.bullets.clear();
        self.pickups.clear();
        self.reset_barrels(frame);
        self.reset_crates(frame);
        self.score = 0;
        self.wave = 0;
        for player in self.players.values_mut() {
            player.score = 0;
            player.kills = 0;
        }
    }

    fn begin_wave(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, rules) = (frame.tick(), frame.rules());
        let Some(wave) = rules.waves.get(usize::from(self.wave)) else {
            return;
        };
        self.wave += 1;
        self.enter(RoundPhase::Wave, frame);
        let players = self.present().count();
        let mut slot = 0;
        for group in &wave.groups {
            let total = group.total(players, rules.tuning.crowd_percent);
            for n in 0..total {
                let arrival = now + 1 + group.arrival_ticks(n, total);
                self.expect_enemy(slot, group.kind, arrival);
                slot += 1;
            }
        }
        fx.cue(self.wave_key(), Cue::WaveBegan(self.wave));
    }

    fn check_wave(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let mut enemies = self.enemies.iter();
        if !enemies.any(|enemy| enemy.is_alive() || enemy.is_coming) {
            if usize::from(self.wave) == frame.rules().waves.len() {
                self.enter(RoundPhase::Won, frame);
                fx.cue(self.wave_key(), Cue::Won);
            } else {
                self.enter(RoundPhase::Lull, frame);
                fx.cue(self.wave_key(), Cue::WaveCleared(self.wave));
            }
            // Players that are out come back as soon as a wave is cleared.
            self.respawn(frame, fx, |player| player.is_out);
        } else if self.is_lost(frame) {
            self.enter(RoundPhase::Lost, frame);
            fx.cue(self.wave_key(), Cue::Lost);
        }
    }

    fn is_lost(&self, frame: &Frame<'_, Game>) -> bool {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        let mut all = self.present();
        self.present().any(|(_, who)| who.is_out)
            && all.all(|(_, who)| who.is_out || who.is_idle(now, tuning))
    }

    fn respawn(
        &mut self,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
        who: impl Fn(&Player) -> bool,
    ) {
        // A loop over the numbers, because `appear` needs the whole game. No player joins or leaves during the loop.
        for n in 0..twinstep_core::bounds::PLAYERS_MAX as u8 {
            let id = PlayerId(n);
            if self.players.get(&id).is_some_and(&who) {
                self.appear(id, frame, fx);
            }
        }
    }
}

#[cfg(test)]
mod tests;
