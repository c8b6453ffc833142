//! The right column: the netgraph's numbers, the team, and more if there is space.

use powderkeg_game::{PLAYER_RADIUS, RoundPhase};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Sparkline};
use ratatui::{Frame, symbols};
use twinstep_core::PlayerId;
use twinstep_protocol::names::NAME_CHARS_MAX;

use crate::scene::palette::{ColorMode, Tint};
use crate::scene::{ReelState, ViewMember, ViewScene, clock, weapon_name};

pub(super) const COLUMNS: u16 = 32;
/// The number of rows for the numbers, the sparkline and the borders.
pub(super) const NET_ROWS: u16 = NUMBER_ROWS + 1 + SPARK_ROWS + 2;

pub(super) const TEAM_ROWS: u16 = 10;
/// The number of rows for the causes of rebuilds and the legend, if there is space.
pub(super) const EXTRA_ROWS: u16 = 5;

const NUMBER_ROWS: u16 = 10;
const SPARK_ROWS: u16 = 2;
const HEALTH_CELLS: usize = 5;
const NAME_COLUMNS: usize = 10;
/// The number of netgraph samples per bar of the sparkline. The bar shows the highest.
const BAR_SAMPLES: usize = 3;
const OUTCOME_COLUMNS: u16 = 40;

/// Converts a tint to one of the 6 × 6 × 6 colours that most terminals have. The background is black, so a faint tint
/// is dark.
pub(super) fn paint(tint: Tint) -> Color {
    let level = |part: u8| (f32::from(part) * tint.alpha.clamp(0.0, 1.0) / 51.0).round() as u8;
    let [r, g, b] = tint.rgb.map(level);
    Color::Indexed(16 + 36 * r + 6 * g + b)
}

pub(super) fn color_of(id: PlayerId) -> Color {
    paint(ColorMode::Safe.player(id.index()))
}

pub(super) fn bar(part: f32, cells: usize) -> Span<'static> {
    let full = ((part * cells as f32).ceil() as usize).min(cells);
    Span::from("█".repeat(full) + &"░".repeat(cells - full))
}

pub(super) fn net(frame: &mut Frame<'_>, area: Rect, scene: &ViewScene) {
    if let Some(reel) = &scene.replay {
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

    let leads = scene.plots.chunks(BAR_SAMPLES).map(|bar| {
        let leads = bar.iter().map(|sample| sample.lead_ticks as u64);
        leads.max().unwrap_or(0)
    });
    let leads: Vec<u64> = leads.collect();
    let most = leads.iter().copied().max().unwrap_or(0);
    let words = format!("lead over 10 s, at most {most}");
    frame.render_widget(Line::from(words).dark_gray(), label);
    let line = Sparkline::default()
        // Drawn from the right, so the newest comes first.
        .data(leads.iter().rev())
        .max(most.max(8))
        .bar_set(symbols::bar::NINE_LEVELS)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().cyan());
    frame.render_widget(line, spark);
}

fn replay(frame: &mut Frame<'_>, area: Rect, reel: &ReelState) {
    let state = if reel.is_paused { "paused" } else { "running" };
    let cells = usize::from(area.width.saturating_sub(2));
    let tick = reel.tick.0.to_string();
    let rows = vec![
        row("", clock(reel.passed), "of", clock(reel.length)),
        Line::from(bar(reel.part, cells)).cyan(),
        row("speed", reel.speed.to_string(), "tick", tick),
        Line::from(state).bold(),
    ];
    lines(frame, area, " replay ".to_owned(), rows);
}

fn rows(scene: &ViewScene) -> Vec<Line<'static>> {
    let (stats, rates) = (scene.stats.unwrap_or_default(), &scene.rates);
    let lead = stats.prediction_tick.saturating_sub(stats.authority_tick);
    let reach = stats.input_tick.saturating_sub(stats.authority_tick);
    let window = &scene.window;
    let radii = window.picture.others_off_p95 / PLAYER_RADIUS;
    vec![
        row("rtt", ms(stats.rtt_ms), "jitter", ms(stats.jitter_ms)),
        row("loss", scene.loss(), "clock", format!("x{:.3}", stats.rate)),
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
            "others",
            format!("{radii:.2} r"),
            "fills",
            window.fills.to_string(),
        ),
        row(
            "stalls",
            ms(window.stall_ms + window.held_ms),
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

pub(super) fn causes(frame: &mut Frame<'_>, area: Rect, scene: &ViewScene) {
    let timeline = scene.stats.unwrap_or_default().timeline;
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

/// Draws the players: their health and weapons during a round, otherwise their readiness and links.
pub(super) fn team(frame: &mut Frame<'_>, area: Rect, scene: &ViewScene) {
    let waits = scene.phase.is_waiting();
    let title = match waits {
        true => format!(" lobby: {} ", scene.team.len()),
        false => format!(" team: {} points ", scene.score),
    };
    let members = scene.team.iter().map(|member| match waits {
        true => lobby_row(member),
        false => round_row(member),
    });
    lines(frame, area, title, members.collect());
}

/// A name cut or padded to `columns` cells. A character may be two cells wide.
pub(super) fn cells(name: &str, columns: usize) -> String {
    let mut name = name.to_owned();
    while Span::from(name.as_str()).width() > columns {
        name.pop();
    }
    let gap = columns - Span::from(name.as_str()).width();
    name + &" ".repeat(gap)
}

fn name(member: &ViewMember) -> Span<'static> {
    let mark = if member.is_local { '@' } else { ' ' };
    Span::from(format!("{mark}{} ", cells(&member.name, NAME_COLUMNS)))
        .fg(color_of(member.id))
        .bold()
}

fn state(member: &ViewMember) -> Option<(&'static str, Color)> {
    match member {
        ViewMember { is_late: true, .. } => Some(("late ", Color::Yellow)),
        ViewMember { is_here: false, .. } => Some(("away ", Color::DarkGray)),
        _ => None,
    }
}

fn lobby_row(member: &ViewMember) -> Line<'static> {
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

fn round_row(member: &ViewMember) -> Line<'static> {
    let bar = match state(member) {
        Some((word, color)) => Span::from(word).fg(color),
        None if member.health == 0.0 && member.is_out => Span::from("out  ").red(),
        None if member.health == 0.0 => Span::from("dead ").red(),
        None if member.health <= 0.4 => bar(member.health, HEALTH_CELLS).yellow(),
        None => bar(member.health, HEALTH_CELLS).green(),
    };
    let shield = if member.has_shield { "◈" } else { " " };
    let ammo = member.ammo.map_or(String::new(), |ammo| ammo.to_string());
    Line::from(vec![
        name(member),
        bar,
        Span::from(shield).light_cyan(),
        Span::from(format!("{:<8}{ammo:>3}", weapon_name(member.weapon))),
    ])
}

pub(super) fn banner_text(scene: &ViewScene) -> Option<String> {
    let here = || scene.team.iter().filter(|member| member.is_here);
    let ready = here().filter(|member| member.is_ready).count();
    let mut count = format!("{ready} of {} are ready", here().count());
    if let Some(left) = scene.begins_left {
        count += &format!("; it starts anyway in {} s", left.ceil());
    }
    let own = || here().filter(|member| member.is_local);
    let asks = match own().count() {
        0 => count,
        _ if own().all(|member| member.is_ready) => format!("waiting for the others: {count}"),
        _ => format!("R when you are ready: {count}"),
    };
    let seconds = scene.phase_left.unwrap_or(0.0).ceil();
    let words = match (&scene.notice, scene.phase) {
        (Some(notice), _) => notice.clone(),
        (None, RoundPhase::Lobby) => asks,
        (None, RoundPhase::Won | RoundPhase::Lost) if seconds == 0.0 => asks,
        (None, RoundPhase::Countdown) => format!("get ready: {seconds}"),
        (None, RoundPhase::Lull) => {
            format!(
                "wave {} is cleared; the next comes in {seconds} s",
                scene.wave
            )
        }
        _ => return scene.own_fate().map(str::to_owned),
    };
    Some(words)
}

pub(super) fn outcome(frame: &mut Frame<'_>, arena: Rect, scene: &ViewScene) {
    let (title, color) = match scene.phase {
        RoundPhase::Won => (" WON ".to_owned(), Color::LightGreen),
        RoundPhase::Lost => {
            let (wave, waves) = (scene.wave, scene.rules.waves.len());
            (format!(" LOST in wave {wave} of {waves} "), Color::LightRed)
        }
        _ => return,
    };
    let mut team: Vec<&ViewMember> = scene.team.iter().collect();
    team.sort_by_key(|member| (std::cmp::Reverse(member.score), member.id));
    let points = format!("{} points", scene.score);
    let mut rows = vec![Line::from(points).bold().centered(), Line::default()];
    rows.extend(team.iter().map(|member| {
        let name = format!("  {}", cells(&member.name, NAME_CHARS_MAX));
        Line::from(vec![
            Span::from(name).fg(color_of(member.id)).bold(),
            Span::from(format!("{:>7} points {:>4} k", member.score, member.kills)),
        ])
    }));
    let height = (rows.len() as u16 + 2).min(arena.height);
    let width = OUTCOME_COLUMNS.min(arena.width);
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
    frame.render_widget(Paragraph::new(rows).block(block), area);
}
