//! [`draw`]: a scene on a terminal. A pure function: the same scene and size produce the same picture.
//!
//! ```text
//!   ┌ arena ───────────────┐┌ net ───────┐
//!   │                      ││ numbers    │
//!   │                      ││ sparkline  │
//!   └──────────────────────┘└────────────┘
//!   ┌ cues ────────────────┐┌ team ──────┐
//!   │                      ││ causes     │  where there is room
//!   └──────────────────────┘└────────────┘
//!   keys
//! ```

use ratatui::Frame;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Alignment, Constraint, Flex, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use twinstep_protocol::text::{ISOLATE, ISOLATE_ENDS, is_right_to_left};

use super::{TerminalView, arena, hud};
use crate::scene::effects::{CueFate, LogLine};

const SIZE_MIN: (u16, u16) = (80, 24);

const LOG_ROWS_MIN: u16 = 5;
const LOG_LINE_COLUMNS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Areas {
    arena: Rect,
    log: Rect,
    net: Rect,
    team: Rect,
    causes: Rect,
    legend: Rect,
    keys: Rect,
}

impl Areas {
    /// Divides a screen; `width_to_height` is the arena's aspect ratio.
    fn of(screen: Rect, width_to_height: f32) -> Areas {
        let [main, keys] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(screen);
        let [left, right] =
            Layout::horizontal([Constraint::Min(0), Constraint::Length(hud::COLUMNS)]).areas(main);
        // A cell is 2 × 4 square dots; the border is the arena's edge.
        let room = (
            f32::from(left.width - 2),
            f32::from(left.height - LOG_ROWS_MIN - 2),
        );
        let inner_rows = (room.0 / width_to_height / 2.0).round().min(room.1);
        let inner_columns = (inner_rows * width_to_height * 2.0).round().min(room.0);
        let [upper, log] = Layout::vertical([
            Constraint::Length(inner_rows as u16 + 2),
            Constraint::Min(0),
        ])
        .areas(left);
        let [arena] = Layout::horizontal([Constraint::Length(inner_columns as u16 + 2)])
            .flex(Flex::Center)
            .areas(upper);
        let spare = (right.height - hud::NET_ROWS).saturating_sub(hud::TEAM_ROWS);
        let extra = |n| match spare >= n * hud::EXTRA_ROWS {
            true => Constraint::Length(hud::EXTRA_ROWS),
            false => Constraint::Length(0),
        };
        let [net, team, causes, legend] = Layout::vertical([
            Constraint::Length(hud::NET_ROWS),
            Constraint::Min(0),
            extra(1),
            extra(2),
        ])
        .areas(right);
        Areas {
            arena,
            log,
            net,
            team,
            causes,
            legend,
            keys,
        }
    }
}

/// Draws the view; if the terminal is too small, prints the required size.
pub(super) fn draw(frame: &mut Frame<'_>, view: &TerminalView) {
    let screen = frame.area();
    let scene = &view.scene;
    if screen.width < SIZE_MIN.0 || screen.height < SIZE_MIN.1 {
        too_small(frame, screen);
    } else {
        let half = scene.rules.half;
        let areas = Areas::of(screen, half.x / half.y);
        arena::draw(frame, areas.arena, view);
        log(frame, areas.log, view);
        hud::net(frame, areas.net, scene);
        hud::team(frame, areas.team, scene);
        if scene.replay.is_none() {
            hud::causes(frame, areas.causes, scene);
        }
        hud::legend(frame, areas.legend);
        keys(frame, areas.keys, view);
        hud::outcome(frame, areas.arena, scene);
        if let Some(words) = hud::banner_text(scene) {
            banner(frame, areas.arena, &words);
        }
    }
    if !view.color {
        for cell in &mut frame.buffer_mut().content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
    isolate(frame.buffer_mut());
}

fn isolate(buffer: &mut Buffer) {
    let turns = |cell: &Cell| cell.symbol().chars().any(is_right_to_left);
    for row in buffer
        .content
        .chunks_mut(usize::from(buffer.area.width).max(1))
    {
        for run in row.chunk_by_mut(|one, next| turns(one) == turns(next)) {
            if let [first, ..] = run
                && turns(first)
            {
                let symbol = format!("{ISOLATE}{}", first.symbol());
                first.set_symbol(&symbol);
                if let Some(last) = run.last_mut() {
                    let symbol = format!("{}{ISOLATE_ENDS}", last.symbol());
                    last.set_symbol(&symbol);
                }
            }
        }
    }
}

fn too_small(frame: &mut Frame<'_>, screen: Rect) {
    let (need, have) = (SIZE_MIN, (screen.width, screen.height));
    let mut words = format!(
        "The view needs {} columns and {} rows; this terminal has {} and {}. Make it larger, or press Q to quit.",
        need.0, need.1, have.0, have.1
    );
    // Words wrap, so they need more space than they have letters.
    if usize::from(have.0) * usize::from(have.1) < 2 * words.len() {
        words = format!(
            "Q quits. {}x{} is too small; {}x{} is needed.",
            have.0, have.1, need.0, need.1
        );
    }
    frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: true }), screen);
}

fn banner(frame: &mut Frame<'_>, arena: Rect, words: &str) {
    let columns = (words.chars().count() as u16 + 6).min(arena.width);
    let area = Rect {
        x: arena.x + (arena.width - columns) / 2,
        // Near the bottom, where it hides little of the fight.
        y: arena.bottom() - 5,
        width: columns,
        height: 3,
    };
    frame.render_widget(Clear, area);
    let text = Paragraph::new(words).alignment(Alignment::Center).bold();
    frame.render_widget(text.block(Block::bordered()), area);
}

fn log(frame: &mut Frame<'_>, area: Rect, view: &TerminalView) {
    let block = Block::bordered().title(" cues: shown, and confirmed or cancelled by the server ");
    let inner = block.inner(area);
    frame.render_widget(block.border_style(Style::new().dark_gray()), area);
    let columns = (usize::from(inner.width) / LOG_LINE_COLUMNS).max(1);
    let areas = Layout::horizontal(vec![Constraint::Fill(1); columns]).split(inner);
    // Newest first.
    let mut lines = view.effects.lines.iter().rev().map(log_line);
    for area in areas.iter() {
        let column: Vec<Line<'_>> = lines.by_ref().take(area.height.into()).collect();
        frame.render_widget(Paragraph::new(column), *area);
    }
}

fn log_line(line: &LogLine) -> Line<'_> {
    let (word, style) = match line.fate {
        CueFate::Open => ("guessed".to_owned(), Style::new().yellow()),
        CueFate::Confirmed(0) => ("confirmed".to_owned(), Style::new().green()),
        CueFate::Confirmed(off_ticks) => (format!("confirmed {off_ticks:+}"), Style::new().green()),
        CueFate::NoCue => (String::new(), Style::new()),
        CueFate::Cancelled => ("CANCELLED".to_owned(), Style::new().red()),
    };
    Line::from(vec![
        Span::from(format!("{:>6} ", line.tick.0)).dark_gray(),
        Span::from(format!("{:<18} ", line.words)),
        Span::styled(word, style),
    ])
}

fn keys(frame: &mut Frame<'_>, area: Rect, view: &TerminalView) {
    let scene = &view.scene;
    let fire = if view.releases { "fire" } else { "fire on/off" };
    let stop = if view.releases { "" } else { "stop" };
    let links = if scene.link.is_some() { "link" } else { "" };
    let ready = match scene.phase.is_waiting() {
        true => "ready",
        false => "",
    };
    // As many keys as fit, the most important first.
    let played = [
        ("Q", "quit"),
        ("R", ready),
        ("WASD", "move"),
        ("IJKL", "aim"),
        ("Space", fire),
        ("E", "light"),
        ("C", "dash"),
        ("X", stop),
        ("F9", "save"),
        ("B", "pause"),
        ("1-5", links),
        ("G", "ghosts"),
        ("P", "predict"),
        ("M", "smooth"),
        ("U/O", "turn aim"),
    ];
    let replayed = [
        ("Q", "quit"),
        ("Space", "pause"),
        ("←→", "5 s"),
        ("PgUp PgDn", "a minute"),
        (",.", "a tick"),
        ("+-", "speed"),
        ("0-9", "seek"),
    ];
    let help = match scene.replay {
        None => &played[..],
        Some(_) => &replayed[..],
    };
    let (mut spans, mut left) = (Vec::new(), usize::from(area.width));
    for &(key, words) in help.iter().filter(|(_, words)| !words.is_empty()) {
        let columns = key.chars().count() + words.len() + 3;
        if columns > left {
            break;
        }
        left -= columns;
        let is_on = match key {
            "G" => view.ghosts,
            "P" => scene.predicts,
            "M" => scene.smooths,
            _ => false,
        };
        let style = Style::new().add_modifier(if is_on {
            Modifier::BOLD | Modifier::REVERSED
        } else {
            Modifier::BOLD
        });
        spans.push(Span::styled(key, style).cyan());
        spans.push(Span::from(format!(" {words}  ")));
    }
    frame.render_widget(Line::from(spans), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_players_and_all_extras_fit_on_36_rows() {
        let areas = Areas::of(Rect::new(0, 0, 120, 36), 80.0 / 48.0);
        assert_eq!(areas.team.height, 8 + 2);
        assert_eq!((areas.causes.height, areas.legend.height), (5, 5));
    }

    #[test]
    fn at_any_size_the_areas_are_on_screen_and_do_not_overlap() {
        for width in SIZE_MIN.0..=240 {
            for height in SIZE_MIN.1..=100 {
                let screen = Rect::new(0, 0, width, height);
                let areas = Areas::of(screen, 80.0 / 48.0);
                let Areas {
                    arena,
                    log,
                    net,
                    team,
                    causes,
                    legend,
                    keys,
                } = areas;
                let shown = [causes, legend].into_iter().filter(|area| area.height > 0);
                let all: Vec<Rect> = [arena, log, net, team, keys]
                    .into_iter()
                    .chain(shown)
                    .collect();
                for (n, area) in all.iter().enumerate() {
                    assert_eq!(area.intersection(screen), *area, "{width} x {height}");
                    assert!(area.width >= 20 && area.height >= 1, "{areas:?}");
                    for other in &all[..n] {
                        assert!(!area.intersects(*other), "{width} x {height}: {areas:?}");
                    }
                }
                assert!(areas.log.height >= LOG_ROWS_MIN, "{width} x {height}");
            }
        }
    }

    #[test]
    fn a_unit_is_as_wide_as_it_is_high() {
        for (width, height) in [(80, 24), (120, 36), (240, 60), (90, 90)] {
            let Rect { width, height, .. } =
                Areas::of(Rect::new(0, 0, width, height), 80.0 / 48.0).arena;
            let ratio = f32::from(width - 2) / f32::from(height - 2) / 2.0;
            assert!(
                (ratio / (80.0 / 48.0) - 1.0).abs() < 0.06,
                "{width} x {height}"
            );
        }
    }
}
