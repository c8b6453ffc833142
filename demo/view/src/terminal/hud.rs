//! The right column: the netgraph's numbers, the team, and what else there is room for.

use std::time::Duration;

use powderkeg_game::PLAYER_RADIUS;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, RenderDirection, Sparkline};
use ratatui::{Frame, symbols};
use twinstep_core::PlayerId;

use super::scene::{TerminalMember, TerminalReel, TerminalScene};

/// Columns of the HUD, with its borders.
pub(super) const COLUMNS: u16 = 32;
/// Rows of the numbers, with the sparkline and the borders.
pub(super) const NET_ROWS: u16 = NUMBER_ROWS + 1 + SPARK_ROWS + 2;

/// Rows of the team, while something stands below it.
pub(super) const TEAM_ROWS: u16 = 10;
/// Rows of the causes of rebuilds, and of the legend, where there is room.
pub(super) const EXTRA_ROWS: u16 = 5;

const NUMBER_ROWS: u16 = 10;
const SPARK_ROWS: u16 = 2;
const HEALTH_CELLS: usize = 5;
const NAME_COLUMNS: usize = 10;

/// A player's colour.
pub(super) fn color_of(id: PlayerId) -> Color {
    const COLORS: [Color; 6] = [
        Color::Cyan,
        Color::LightGreen,
        Color::LightBlue,
        Color::LightMagenta,
        Color::Green,
        Color::Blue,
    ];
    COLORS[id.index() % COLORS.len()]
}

/// The netgraph; of a replay, where it stands and its keys.
pub(super) fn net(frame: &mut Frame<'_>, area: Rect, scene: &TerminalScene) {
    if let Some(reel) = &scene.reel {
        return replay(frame, area, reel);
    }
    let link = scene.link.as_deref().unwrap_or("real");
    let block = Block::bordered().title(format!(" net: {link} "));
    let [numbers, label, spark] = Layout::vertical([
        Constraint::Length(NUMBER_ROWS),
        Constraint::Length(1),
        Constraint::Length(SPARK_ROWS),
    ])
    .areas(block.inner(area));
    frame.render_widget(block.border_style(Style::new().dark_gray()), area);
    frame.render_widget(Paragraph::new(rows(scene)), numbers);

    let most = scene.leads.iter().copied().max().unwrap_or(0);
    let words = format!("lead over 10 s, at most {most}");
    frame.render_widget(Line::from(words).dark_gray(), label);
    let line = Sparkline::default()
        .data(scene.leads.iter().rev())
        .max(most.max(8))
        .bar_set(symbols::bar::NINE_LEVELS)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().cyan());
    frame.render_widget(line, spark);
}

fn replay(frame: &mut Frame<'_>, area: Rect, reel: &TerminalReel) {
    let state = if reel.is_paused { "paused" } else { "runs" };
    let bar = usize::from(area.width.saturating_sub(2));
    let full = ((reel.part * bar as f32) as usize).min(bar);
    let key = |key: &'static str, words: &'static str| {
        Line::from(vec![
            Span::from(format!("{key:<10}")).cyan().bold(),
            Span::from(words),
        ])
    };
    let rows = vec![
        row("", clock(reel.passed), "of", clock(reel.length)),
        Line::from("█".repeat(full) + &"░".repeat(bar - full)).cyan(),
        row(
            "speed",
            reel.speed.to_string(),
            "tick",
            reel.tick.0.to_string(),
        ),
        Line::from(state).bold(),
        key("Space", "pause"),
        key("← →", "5 s back, on"),
        key("PgUp PgDn", "a minute"),
        key(", .", "a tick"),
        key("+ -", "speed"),
        key("0-9", "to that tenth"),
    ];
    lines(frame, area, " replay ".to_owned(), rows);
}

fn clock(time: Duration) -> String {
    let s = time.as_secs();
    format!("{}:{:02}", s / 60, s % 60)
}

fn rows(scene: &TerminalScene) -> Vec<Line<'static>> {
    let (stats, rates) = (&scene.stats, &scene.rates);
    let lead = stats.prediction_tick.saturating_sub(stats.authority_tick);
    let reach = stats.input_tick.saturating_sub(stats.authority_tick);
    let radii = stats.pdiff_p95 / PLAYER_RADIUS;
    vec![
        row("rtt", ms(stats.rtt_ms), "jitter", ms(stats.jitter_ms)),
        row(
            "loss",
            format!("{:.1} %", stats.loss * 100.0),
            "clock",
            format!("x{:.3}", stats.rate),
        ),
        row("lead", format!("{lead} t"), "reach", format!("{reach} t")),
        row(
            "margin",
            format!("{:.1} t", stats.margin_ticks_now),
            "target",
            format!("{:.1} t", stats.margin_ticks_target),
        ),
        row(
            "rebuilds",
            format!("{:.0}/s", rates.rebuilds),
            "resim",
            format!("{:.0} t/s", rates.resim_ticks),
        ),
        row(
            "pDiff",
            format!("{radii:.2} r"),
            "fills",
            stats.fills.to_string(),
        ),
        row(
            "stalls",
            ms(stats.stall_ms),
            "heals",
            stats.heals.to_string(),
        ),
        row("up/s", kb(rates.bytes_up), "down/s", kb(rates.bytes_down)),
        row(
            "cues",
            stats.cues_started.to_string(),
            "open",
            stats.cues_open.to_string(),
        ),
        row(
            "agreed",
            stats.cues_confirmed.to_string(),
            "wrong",
            stats.cues_cancelled.to_string(),
        ),
    ]
}

fn row(label: &'static str, value: String, label2: &'static str, value2: String) -> Line<'static> {
    Line::from(vec![
        Span::from(format!("{label:<8}")).dark_gray(),
        Span::from(format!("{value:>6}")),
        Span::from(format!("  {label2:<6} ")).dark_gray(),
        Span::from(format!("{value2:>7}")),
    ])
}

fn ms(value: f64) -> String {
    format!("{value:.0} ms")
}

fn kb(bytes: f64) -> String {
    format!("{:.1} kB", bytes / 1_000.0)
}

/// Why the prediction was rebuilt, since the start.
pub(super) fn causes(frame: &mut Frame<'_>, area: Rect, scene: &TerminalScene) {
    let timeline = &scene.stats.timeline;
    let inputs: u64 = timeline.by_input.iter().sum();
    let orders = timeline.by_own_command + timeline.by_command;
    let count = |n: u64| n.to_string();
    let rows = vec![
        row("inputs", count(inputs), "orders", count(orders)),
        row(
            "blasts",
            count(timeline.by_outcome),
            "ghosts",
            count(timeline.by_withheld),
        ),
        row(
            "roster",
            count(timeline.by_roster),
            "all",
            count(timeline.rebuilds),
        ),
    ];
    lines(frame, area, " rebuilds, by cause ".to_owned(), rows);
}

/// What the marks in the arena mean.
pub(super) fn legend(frame: &mut Frame<'_>, area: Rect) {
    let rows = [
        "▲ gunner ☼ urchin ◊ spinner",
        "♦ sapper ► charger ☠ boss",
        "■ barrel ▦ crate  ✚ ◈ ♥ W",
    ];
    lines(
        frame,
        area,
        " legend ".to_owned(),
        rows.map(Line::from).to_vec(),
    );
}

fn lines(frame: &mut Frame<'_>, area: Rect, title: String, lines: Vec<Line<'_>>) {
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block.border_style(Style::new().dark_gray()), area);
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The players: how they stand while the round is on, else who is ready and how good their links are.
pub(super) fn team(frame: &mut Frame<'_>, area: Rect, scene: &TerminalScene) {
    let waits = scene.round.phase.is_waiting();
    let title = match waits {
        true => format!(" lobby: {} ", scene.team.len()),
        false => format!(" team: {} points ", scene.score),
    };
    let members = scene.team.iter().map(|member| match waits {
        true => guest(member),
        false => fighter(member),
    });
    lines(frame, area, title, members.collect());
}

/// A name that takes so many cells: its characters may be two cells wide.
pub(super) fn cells(name: &str, columns: usize) -> String {
    let mut name = name.to_owned();
    while Span::from(name.as_str()).width() > columns {
        name.pop();
    }
    let gap = columns - Span::from(name.as_str()).width();
    name + &" ".repeat(gap)
}

fn name(member: &TerminalMember) -> Span<'static> {
    let mark = if member.is_local { '@' } else { ' ' };
    Span::from(format!("{mark}{} ", cells(&member.name, NAME_COLUMNS)))
        .fg(color_of(member.id))
        .bold()
}

fn state(member: &TerminalMember) -> Option<(&'static str, Color)> {
    match member {
        TerminalMember { is_late: true, .. } => Some(("late ", Color::Yellow)),
        TerminalMember { is_away: true, .. } => Some(("away ", Color::DarkGray)),
        _ => None,
    }
}

fn guest(member: &TerminalMember) -> Line<'static> {
    let (word, color) = match (state(member), member.is_ready) {
        (Some(state), _) => state,
        (None, true) => ("ready", Color::Green),
        (None, false) => ("waits", Color::Yellow),
    };
    let link = match member.link {
        Some(link) => format!(" {:>4} ms {:>2} %", link.rtt_ms, link.loss_percent),
        None => String::new(),
    };
    Line::from(vec![
        name(member),
        Span::from(word).fg(color),
        Span::from(link),
    ])
}

fn fighter(member: &TerminalMember) -> Line<'static> {
    let full = (member.health * HEALTH_CELLS as f32).ceil() as usize;
    let (bar, color) = match (state(member), full) {
        (Some((word, color)), _) => (word.to_owned(), color),
        (None, 0) if member.is_out => ("out  ".to_owned(), Color::Red),
        (None, 0) => ("dead ".to_owned(), Color::Red),
        (None, full) => {
            let rest = HEALTH_CELLS.saturating_sub(full);
            let color = match full {
                0..=2 => Color::Yellow,
                _ => Color::Green,
            };
            (
                "█".repeat(full.min(HEALTH_CELLS)) + &"░".repeat(rest),
                color,
            )
        }
    };
    let shield = if member.has_shield { "◈" } else { " " };
    let ammo = member.ammo.map_or(String::new(), |ammo| ammo.to_string());
    Line::from(vec![
        name(member),
        Span::from(bar).fg(color),
        Span::from(shield).light_cyan(),
        Span::from(format!("{:<8}{ammo:>3}", format!("{:?}", member.weapon))),
    ])
}
