//! The round: what phase it is, the boss, and when it goes on.

use std::time::Duration;

use powderkeg_game::{EnemyKind, RoundPhase};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use crate::feed::Feed;

/// Cells of the boss's bar.
const BOSS_CELLS: usize = 24;

/// How far the round is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// What is going on.
    pub phase: RoundPhase,
    /// The wave that is on or was last.
    pub wave: u8,
    /// How many there are.
    pub waves: usize,
    /// The team's lives.
    pub lives: u16,
    /// When this phase ends by itself.
    pub ends_in: Option<Duration>,
    /// When the next one begins although not all are ready.
    pub begins_in: Option<Duration>,
    /// The boss's health, 0 ..= 1, while there is one.
    pub boss: Option<f32>,
}

impl Default for Round {
    fn default() -> Round {
        Round {
            phase: RoundPhase::Endless,
            wave: 0,
            waves: 0,
            lives: 0,
            ends_in: None,
            begins_in: None,
            boss: None,
        }
    }
}

impl Round {
    /// The round of the state that is shown.
    pub(super) fn of(feed: &Feed) -> Option<Round> {
        let (game, rules) = (feed.game()?, feed.rules());
        let left = game.phase_ends(rules).map(|end| end - feed.tick());
        let boss = game
            .enemies
            .iter()
            .find(|enemy| enemy.kind == EnemyKind::Boss && enemy.is_alive());
        Some(Round {
            phase: game.phase,
            wave: game.wave,
            waves: rules.waves.len(),
            lives: game.lives,
            ends_in: left.map(|ticks| TICK * ticks),
            begins_in: feed.begins_in(),
            boss: boss
                .map(|boss| f32::from(boss.health.max(0)) / f32::from(boss.full_health.max(1))),
        })
    }

    /// For the arena's upper edge.
    pub(super) fn title(&self, score: u32) -> String {
        match self.phase {
            RoundPhase::Endless => format!("{score} points "),
            RoundPhase::Lobby | RoundPhase::Countdown => "lobby ".to_owned(),
            _ => format!(
                "wave {} of {} · lives {} · {score} points ",
                self.wave, self.waves, self.lives
            ),
        }
    }
}

/// The game's own; a server that clocks otherwise only makes the seconds here a little wrong.
const TICK: Duration = Duration::from_nanos(16_666_667);

/// The boss's bar, for the arena's upper edge.
pub(super) fn boss_bar(round: &Round) -> Option<Line<'static>> {
    let full = ((round.boss? * BOSS_CELLS as f32).ceil() as usize).min(BOSS_CELLS);
    let bar = "█".repeat(full) + &"░".repeat(BOSS_CELLS - full);
    Some(Line::from(vec![
        Span::from(" BOSS ").bold(),
        Span::from(bar).light_magenta(),
        Span::from(" "),
    ]))
}
