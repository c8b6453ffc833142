//! The heads-up display: score, wave, lives, boss, the team, the player's weapon; and the event feed.

use glam::{Vec2, vec2};
use powderkeg_game::RoundPhase;

use super::actors::weapon_icon;
use super::netgraph;
use super::picture::WindowPicture;
use super::ui::Align::{self, Left, Middle, Right};
use super::ui::Ui;
use crate::scene::effects::{BANNER, CueFate, LINE};
use crate::scene::palette::{ACCENT, BAD, DIM, FAINT, GOOD, INK, PANEL, Tint, WARN, WHITE};
use crate::scene::{Sprite, ViewMember, weapon_name};
use crate::window::atlas::Type;
use crate::window::rect::Rect;
use crate::window::text;

const LINES_WIDTH: f32 = 300.0;
const TEAM_WIDTH: f32 = 176.0;
const TEAM_ROW: f32 = 34.0;
const WEAPON_SIZE: (f32, f32) = (250.0, 66.0);

pub(super) fn covered(picture: &WindowPicture<'_>, scale: f32) -> Vec<Rect> {
    let scene = picture.scene;
    if !matches!(
        scene.phase,
        RoundPhase::Countdown | RoundPhase::Wave | RoundPhase::Lull | RoundPhase::Endless
    ) {
        return Vec::new();
    }
    let inside = picture.screen.shrunk(14.0 * scale);
    let (left, right) = (inside.at.x, inside.right());
    let others = scene.team.iter().filter(|member| !member.is_local).count();
    let head = 64.0 * scale;
    let mut boxes = vec![
        Rect::new(
            left,
            inside.at.y,
            TEAM_WIDTH * scale,
            head + TEAM_ROW * scale * others as f32,
        ),
        Rect::new(right - 100.0 * scale, inside.at.y, 100.0 * scale, head),
        inside
            .middle_part(vec2(180.0 * scale, inside.size.y))
            .cut_top(head),
    ];
    let (width, height) = (WEAPON_SIZE.0 * scale, WEAPON_SIZE.1 * scale);
    let weapons = [left, right - width];
    let seats = scene.team.iter().filter(|member| member.is_local).count();
    for x in weapons.into_iter().take(seats) {
        boxes.push(Rect::new(x, inside.bottom() - height, width, height));
    }
    if scene.stats.is_some() {
        let (width, height) = (150.0 * scale, 20.0 * scale);
        let corner = vec2(right - width, inside.bottom() - height);
        boxes.push(Rect::new(corner.x, corner.y, width, height));
        boxes.extend(netgraph::place(picture, scale));
    }
    boxes
}

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let mut left = ui.inside();
    let scale = ui.scale;
    let top = left.cut_top(58.0 * scale);
    score(ui, picture, top);
    wave(ui, picture, top);
    lives(ui, picture, top);
    let mut rest = left;
    if let Some(boss) = picture.scene.boss {
        let band = left
            .cut_top(34.0 * scale)
            .middle_part(vec2(460.0 * scale, 30.0 * scale));
        boss_bar(ui, picture, band, boss.health, boss.stage);
        // If the boss's bar would overlap the columns at both sides, they start below it.
        if band.at.x < rest.at.x + LINES_WIDTH * scale {
            rest = left;
        }
    }
    rest.cut_top(6.0 * scale);
    let locals: Vec<&ViewMember> = picture
        .scene
        .team
        .iter()
        .filter(|member| member.is_local)
        .collect();
    // The replay's bar is at the bottom.
    let mut bottom = rest.cut_bottom(
        if picture.scene.replay.is_some() {
            120.0
        } else {
            WEAPON_SIZE.1
        } * scale,
    );
    if picture.scene.replay.is_some() {
        bottom.cut_bottom(54.0 * scale);
    }
    for (n, member) in locals.iter().enumerate().take(2) {
        let width = WEAPON_SIZE.0 * scale;
        let rect = if n == 0 {
            bottom.cut_left(width)
        } else {
            bottom.cut_right(width)
        };
        weapon(ui, picture, rect, member);
    }
    link(ui, picture, bottom);
    team(ui, picture, rest);
    lines(ui, picture, rest);
    banner(ui, picture);
}

fn score(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, top: Rect) {
    let mut rect = top;
    rect.size.x = (top.size.x * 0.3).min(220.0 * ui.scale);
    let words = spaced(picture.scene.score);
    let width = text::width(Type::Head, ui.scale, &words).max(44.0 * ui.scale);
    backing(ui, Rect::new(rect.at.x, rect.at.y, width, 42.0 * ui.scale));
    let label = rect.cut_top(14.0 * ui.scale);
    ui.small(label, Left, FAINT, "SCORE");
    let number = rect.cut_top(28.0 * ui.scale);
    ui.head(number, Left, INK, &spaced(picture.scene.score));
}

fn backing(ui: &mut Ui<'_>, rect: Rect) {
    let room = vec2(9.0, 4.0) * ui.scale;
    let rect = Rect {
        at: rect.at - room,
        size: rect.size + room * 2.0,
    };
    ui.plate(rect, PANEL.alpha(0.62));
}

pub(super) fn spaced(number: u32) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

fn wave(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, top: Rect) {
    let scene = picture.scene;
    let mut rect = top.middle_part(vec2(300.0 * ui.scale, top.size.y));
    let (above, below) = match scene.phase {
        RoundPhase::Endless => (
            "ARENA".to_owned(),
            format!("{} enemies", scene.enemies_left),
        ),
        RoundPhase::Countdown => ("GET READY".to_owned(), seconds_left(picture, "first wave")),
        RoundPhase::Lull => (
            format!("WAVE {} CLEARED", scene.wave),
            seconds_left(picture, "next wave"),
        ),
        _ => (
            format!("WAVE {} / {}", scene.wave, scene.rules.waves.len()),
            match scene.enemies_left {
                1 => "1 enemy left".to_owned(),
                n => format!("{n} enemies left"),
            },
        ),
    };
    let width =
        text::width(Type::Head, ui.scale, &above).max(text::width(Type::Body, ui.scale, &below));
    backing(
        ui,
        rect.middle_part(vec2(width, rect.size.y))
            .cut_top(44.0 * ui.scale),
    );
    let line = rect.cut_top(26.0 * ui.scale);
    ui.head(line, Middle, INK, &above);
    let line = rect.cut_top(18.0 * ui.scale);
    ui.body(line, Middle, FAINT, &below);
}

fn seconds_left(picture: &WindowPicture<'_>, what: &str) -> String {
    match picture.scene.phase_left {
        Some(left) => format!("{what} in {}", libm::ceilf(left) as u32),
        None => what.to_owned(),
    }
}

fn lives(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, top: Rect) {
    let mut rect = top;
    let width = (top.size.x * 0.3).min(220.0 * ui.scale);
    let mut rect = rect.cut_right(width);
    let back = 92.0 * ui.scale;
    if picture.scene.phase != RoundPhase::Endless {
        backing(
            ui,
            Rect::new(rect.right() - back, rect.at.y, back, 42.0 * ui.scale),
        );
    }
    let label = rect.cut_top(14.0 * ui.scale);
    if picture.scene.phase == RoundPhase::Endless {
        ui.small(label, Right, FAINT, "ENDLESS LIVES");
        return;
    }
    ui.small(label, Right, FAINT, "TEAM LIVES");
    let lives = picture.scene.lives;
    let mut row = rect.cut_top(28.0 * ui.scale);
    let number =
        row.cut_right(text::width(Type::Head, ui.scale, &lives.to_string()).max(14.0 * ui.scale));
    let tint = if lives <= 1 { BAD } else { INK };
    ui.head(number, Right, tint, &lives.to_string());
    let heart = row
        .cut_right(30.0 * ui.scale)
        .middle_part(Vec2::splat(20.0 * ui.scale));
    ui.icon(Sprite::IconHeart, heart, BAD.mixed(WHITE, 0.15));
}

fn boss_bar(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, mut rect: Rect, health: f32, stage: u8) {
    let label = rect.cut_top(15.0 * ui.scale);
    ui.small(label, Middle, BAD, &format!("BOSS · STAGE {}", stage + 1));
    let bar = rect.cut_top(12.0 * ui.scale);
    ui.bar(bar, health, picture.settings.colors.hostile());
    for third in [1.0, 2.0] {
        let x = bar.at.x + bar.size.x * third / 3.0;
        ui.batch.line(
            vec2(x, bar.at.y),
            vec2(x, bar.bottom()),
            ui.scale.max(1.0),
            PANEL,
        );
    }
}

fn weapon(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, rect: Rect, member: &ViewMember) {
    let scale = ui.scale;
    let tint = picture.settings.colors.player(member.id.index());
    ui.panel(rect);
    let mut inside = rect.shrunk(9.0 * scale);
    let icon = inside
        .cut_left(46.0 * scale)
        .middle_part(Vec2::splat(42.0 * scale));
    ui.batch
        .disc(Sprite::Capsule, icon.middle(), icon.size.x * 0.5, tint);
    ui.icon(weapon_icon(member.weapon), icon.shrunk(9.0 * scale), WHITE);
    inside.cut_left(10.0 * scale);
    let mut first = inside.cut_top(20.0 * scale);
    let ammo = member
        .ammo
        .map_or_else(|| "∞".to_owned(), |ammo| format!("× {ammo}"));
    let low = member.ammo.is_some_and(|ammo| ammo <= 5);
    let right = first.cut_right(text::width(Type::Body, scale, &ammo) + 2.0 * scale);
    ui.body(right, Right, if low { WARN } else { FAINT }, &ammo);
    ui.body(first, Left, INK, weapon_name(member.weapon));
    inside.cut_top(5.0 * scale);
    let mut bars = inside.cut_top(20.0 * scale);
    let mut dash = bars.cut_right(46.0 * scale);
    bars.cut_right(8.0 * scale);
    let health = bars.middle_part(vec2(bars.size.x, 11.0 * scale));
    let color = match member.health {
        health if health <= 0.34 => BAD,
        health if health <= 0.67 => WARN,
        _ => GOOD,
    };
    ui.bar(health, member.health, color);
    if member.has_shield {
        let shield = Rect::new(
            health.at.x,
            health.at.y - 3.0 * scale,
            health.size.x,
            2.0 * scale,
        );
        ui.batch.fill(shield, ACCENT);
    }
    let chevrons = dash
        .cut_left(20.0 * scale)
        .middle_part(Vec2::splat(17.0 * scale));
    let ready = member.dash >= 1.0;
    ui.icon(Sprite::IconDash, chevrons, if ready { tint } else { DIM });
    dash.cut_left(3.0 * scale);
    let pip = dash.middle_part(vec2(dash.size.x, 6.0 * scale));
    ui.bar(pip, member.dash, if ready { tint } else { FAINT });
}

fn link(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, bottom: Rect) {
    let scene = picture.scene;
    let Some(stats) = scene.stats else { return };
    let mut rect = bottom;
    rect.cut_left(16.0 * ui.scale);
    let mut rect = rect.cut_bottom(34.0 * ui.scale);
    let rtt = match scene.is_silent() {
        true => "silent".to_owned(),
        false => format!("{:.0} ms", stats.rtt_ms),
    };
    let words = match &scene.link {
        Some(link) => format!("{link} · {rtt}"),
        None => rtt,
    };
    let line = rect.cut_bottom(16.0 * ui.scale);
    let words = format!("{words} · F1 help");
    let width = text::width(Type::Small, ui.scale, &words);
    backing(
        ui,
        Rect::new(
            line.right() - width,
            line.at.y + 2.0 * ui.scale,
            width,
            12.0 * ui.scale,
        ),
    );
    ui.small(line, Right, FAINT, &words);
    let mut off = Vec::new();
    if !scene.predicts {
        off.push("PREDICTION OFF (F5)");
    }
    if !scene.smooths {
        off.push("SMOOTHING OFF (F6)");
    }
    if !off.is_empty() {
        ui.small(rect, Right, WARN, &off.join(" · "));
    }
}

fn team(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, rest: Rect) {
    let scale = ui.scale;
    let mut column = rest;
    let mut column = column.cut_left(TEAM_WIDTH * scale);
    leave_netgraph(&mut column, picture, scale);
    for member in picture.scene.team.iter().filter(|member| !member.is_local) {
        if column.size.y < 40.0 * scale {
            return;
        }
        let mut row = column.cut_top(TEAM_ROW * scale);
        row.cut_bottom(6.0 * scale);
        let tint = picture.settings.colors.player(member.id.index());
        let alive = member.health > 0.0 && member.is_here;
        let edge = row.cut_left(4.0 * scale);
        ui.batch
            .fill(edge, tint.alpha(if alive { 1.0 } else { 0.35 }));
        ui.batch.fill(row, PANEL.alpha(0.78));
        row.cut_left(8.0 * scale);
        row.cut_right(6.0 * scale);
        let mut name = row.cut_top(16.0 * scale);
        let signal = name.cut_right(18.0 * scale);
        signal_bars(ui, signal.middle_part(vec2(16.0, 10.0) * scale), member);
        let words = match member {
            member if !member.is_here => format!("{} (away)", member.name),
            member if member.is_out => format!("{} (out)", member.name),
            member => member.name.clone(),
        };
        ui.small(name, Left, if alive { INK } else { DIM }, &words);
        let bar = row.cut_top(6.0 * scale);
        ui.bar(
            bar,
            member.health,
            if member.health < 0.4 { BAD } else { GOOD },
        );
    }
}

pub(super) fn signal_bars(ui: &mut Ui<'_>, rect: Rect, member: &ViewMember) {
    let (bars, tint) = match member.link {
        _ if !member.is_here => (0, DIM),
        None => (0, DIM),
        Some(link) if link.rtt_ms <= 60 && link.loss_percent <= 2 => (4, GOOD),
        Some(link) if link.rtt_ms <= 120 && link.loss_percent <= 5 => (3, GOOD),
        Some(link) if link.rtt_ms <= 200 && link.loss_percent <= 10 => (2, WARN),
        Some(_) => (1, BAD),
    };
    let width = rect.size.x / 4.0;
    for n in 0..4 {
        let height = rect.size.y * (n + 1) as f32 / 4.0;
        let bar = Rect::new(
            rect.at.x + n as f32 * width,
            rect.bottom() - height,
            width * 0.65,
            height,
        );
        ui.batch
            .fill(bar, if n < bars { tint } else { DIM.alpha(0.5) });
    }
}

fn leave_netgraph(column: &mut Rect, picture: &WindowPicture<'_>, scale: f32) {
    if let Some(netgraph) = netgraph::place(picture, scale)
        && netgraph.overlaps(column)
    {
        column.cut_bottom(column.bottom() - netgraph.at.y + 4.0 * scale);
    }
}

fn lines(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, rest: Rect) {
    let mut column = rest;
    let mut column = column.cut_right(LINES_WIDTH * ui.scale);
    leave_netgraph(&mut column, picture, ui.scale);
    for line in picture.effects.news(picture.scene.now) {
        if column.size.y < 20.0 * ui.scale {
            return;
        }
        let age = picture.scene.now.saturating_sub(line.born).as_secs_f32() / LINE.as_secs_f32();
        let row = column.cut_top(18.0 * ui.scale);
        let veil = (4.0 * (1.0 - age)).clamp(0.0, 1.0);
        let (words, tint) = if line.fate == CueFate::Cancelled {
            (format!("{} · did not happen", line.words), DIM)
        } else {
            (line.words.clone(), line.tint)
        };
        ui.small(row, Right, tint.alpha(veil), &words);
    }
}

fn banner(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let Some(banner) = &picture.effects.banner else {
        return;
    };
    let age = picture.scene.now.saturating_sub(banner.born).as_secs_f32();
    let left = BANNER.as_secs_f32() - age;
    let veil = (age * 6.0).min(left * 2.5).clamp(0.0, 1.0);
    let mut rect = ui.screen;
    rect.cut_top(ui.screen.size.y * 0.20);
    let word = rect.cut_top(74.0 * ui.scale);
    // A thin dark band, so that it is readable on any background.
    let band = Rect::new(
        word.at.x,
        word.at.y - 6.0 * ui.scale,
        word.size.x,
        110.0 * ui.scale,
    );
    ui.batch.fill(band, Tint::new(0).alpha(0.30 * veil));
    ui.text(
        word,
        Align::Middle,
        Type::Title,
        banner.tint.alpha(veil),
        &banner.words,
    );
    let below = rect.cut_top(24.0 * ui.scale);
    ui.body(below, Middle, INK.alpha(veil), &banner.below);
}

pub(super) fn paint_notice(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let notice = picture.scene.notice.as_deref();
    let Some(words) = notice.or(picture.scene.own_fate()) else {
        return;
    };
    let width = text::width(Type::Body, ui.scale, words) + 40.0 * ui.scale;
    let mut rect = ui.screen;
    rect.cut_top(ui.screen.size.y * 0.62);
    let line = rect
        .cut_top(36.0 * ui.scale)
        .middle_part(vec2(width, 36.0 * ui.scale));
    let mut line = line;
    if let Some(netgraph) = netgraph::place(picture, ui.scale)
        && netgraph.overlaps(&line)
    {
        line.at.x = match netgraph.at.x > ui.screen.middle().x {
            true => netgraph.at.x - width - 8.0 * ui.scale,
            false => netgraph.right() + 8.0 * ui.scale,
        };
    }
    ui.panel(line);
    ui.body(line, Middle, WARN, words);
}
