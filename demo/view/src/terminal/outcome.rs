//! How the round went, as a table over the arena.

use powderkeg_game::RoundPhase;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use twinstep_protocol::company::NAME_CHARS_MAX;

use super::hud::{cells, color_of};
use super::scene::{TerminalMember, TerminalScene};

/// Columns of the table at the end of a round.
const RESULT_COLUMNS: u16 = 40;

/// How the round went, once it is over.
pub(super) fn result(frame: &mut Frame<'_>, arena: Rect, scene: &TerminalScene) {
    let (title, color) = match scene.round.phase {
        RoundPhase::Won => (" WON ".to_owned(), Color::LightGreen),
        RoundPhase::Lost => (
            format!(
                " LOST in wave {} of {} ",
                scene.round.wave, scene.round.waves
            ),
            Color::LightRed,
        ),
        _ => return,
    };
    let mut team: Vec<&TerminalMember> = scene.team.iter().collect();
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
