//! The round, in words and bars: what phase it is, what is asked of the players, the boss, and how it went.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use twinstep_core::company::NAME_CHARS_MAX;

use super::hud::{cells, color_of};
use super::scene::{Member, Scene};
use crate::feed::Feed;
use crate::game::{Kind, Phase};

/// Cells of the boss's bar.
const BOSS_CELLS: usize = 24;
/// Columns of the table at the end of a round.
const RESULT_COLUMNS: u16 = 40;

/// How far the round is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// What is going on.
    pub phase: Phase,
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
            phase: Phase::Endless,
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
            .find(|enemy| enemy.kind == Kind::Boss && enemy.is_alive());
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
            Phase::Endless => format!("{score} points "),
            Phase::Lobby | Phase::Countdown => "lobby ".to_owned(),
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

/// What the round asks of the player here, or tells; nothing while it is fought.
pub(super) fn words(scene: &Scene) -> Option<String> {
    let round = &scene.round;
    let here = || scene.team.iter().filter(|member| !member.is_away);
    let ready = here().filter(|member| member.is_ready).count();
    let mut count = format!("{ready} of {} are ready", here().count());
    if let Some(left) = round.begins_in {
        count += &format!("; it begins anyway in {} s", left.as_secs_f32().ceil());
    }
    let own = || here().filter(|member| member.is_local);
    let asks = match own().count() {
        0 => count,
        _ if own().all(|member| member.is_ready) => format!("waiting for the others: {count}"),
        _ => format!("R when you are ready: {count}"),
    };
    let seconds = round.ends_in.unwrap_or_default().as_secs_f32().ceil();
    match round.phase {
        Phase::Lobby => Some(asks),
        Phase::Countdown => Some(format!("get ready: {seconds}")),
        Phase::Lull => Some(format!(
            "wave {} is cleared; the next comes in {seconds} s",
            round.wave
        )),
        Phase::Won | Phase::Lost if seconds == 0.0 => Some(asks),
        Phase::Won | Phase::Lost | Phase::Wave | Phase::Endless => None,
    }
}

/// How the round went, once it is over.
pub(super) fn result(frame: &mut Frame<'_>, arena: Rect, scene: &Scene) {
    let (title, color) = match scene.round.phase {
        Phase::Won => (" WON ".to_owned(), Color::LightGreen),
        Phase::Lost => (
            format!(
                " LOST in wave {} of {} ",
                scene.round.wave, scene.round.waves
            ),
            Color::LightRed,
        ),
        _ => return,
    };
    let mut team: Vec<&Member> = scene.team.iter().collect();
    team.sort_by_key(|member| (std::cmp::Reverse(member.score), member.id));
    let rows = team.iter().map(|member| {
        Line::from(vec![
            Span::from(format!("  {}", cells(&member.name, NAME_CHARS_MAX)))
                .fg(color_of(member.id))
                .bold(),
            Span::from(format!("{:>7} points {:>4} k", member.score, member.kills)),
        ])
    });
    let mut lines = vec![
        Line::from(format!("{} points", scene.score))
            .bold()
            .centered(),
        Line::default(),
    ];
    lines.extend(rows);
    let height = (lines.len() as u16 + 2).min(arena.height);
    let width = RESULT_COLUMNS.min(arena.width);
    let area = Rect {
        x: arena.x + (arena.width - width) / 2,
        y: arena.y + (arena.height.saturating_sub(height + 4)) / 2,
        width,
        height,
    };
    let block = Block::bordered()
        .title(Line::from(title).bold().centered())
        .border_style(Style::new().fg(color));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
