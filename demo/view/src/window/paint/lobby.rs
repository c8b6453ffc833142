//! The lobby: the players, their links, and whether they are ready. While they wait, they walk about and shoot at
//! crates.

use glam::{Vec2, vec2};

use super::hud::signal_bars;
use super::picture::WindowPicture;
use super::ui::Align::{Left, Middle, Right};
use super::ui::Ui;
use crate::scene::palette::{DIM, FAINT, GOOD, INK, PANEL, WARN, WHITE};
use crate::scene::{Sprite, ViewMember};
use crate::window::rect::Rect;

const ROW: f32 = 38.0;

pub(super) fn list_box(ui: &Ui<'_>, players: usize) -> Rect {
    let height = (98.0 + ROW * players.max(1) as f32) * ui.scale;
    let mut inside = ui.inside();
    inside.cut_top(58.0 * ui.scale);
    inside.cut_bottom(60.0 * ui.scale);
    let mut column = inside.cut_right((350.0 * ui.scale).min(inside.size.x * 0.5));
    column.cut_top(height)
}

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let mut top = ui.inside().cut_top(58.0 * scale);
    let name = top.cut_left(340.0 * scale);
    ui.head(name, Left, INK, "POWDERKEG");
    let link = picture.scene.link.as_deref().map_or(String::new(), |link| {
        format!("playing over: {link} (F4 changes it)")
    });
    ui.small(top, Right, FAINT, &link);
    list(ui, picture);
    call(ui, picture);
}

fn list(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let team = &picture.scene.team;
    let rect = list_box(ui, team.len());
    ui.panel(rect);
    let mut inside = ui.heading(rect.shrunk(16.0 * scale), "LOBBY");
    let ready = team.iter().filter(|member| member.is_ready).count();
    let line = inside.cut_bottom(18.0 * scale);
    ui.small(
        line,
        Left,
        FAINT,
        &format!("{} here · {ready} ready · {}", team.len(), start(picture)),
    );
    for member in team {
        if inside.size.y < ROW * scale * 0.9 {
            break;
        }
        let row = inside.cut_top(ROW * scale);
        one(ui, picture, row, member);
    }
}

fn start(picture: &WindowPicture<'_>) -> String {
    match picture.scene.begins_left {
        Some(left) => format!("starts within {} s", libm::ceilf(left) as u32),
        None => "all start together".to_owned(),
    }
}

fn one(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, row: Rect, member: &ViewMember) {
    let scale = ui.scale;
    let tint = picture.settings.colors.player(member.id.index());
    let mut row = row.shrunk(2.0 * scale);
    ui.batch.fill(row, PANEL.alpha(0.6));
    let edge = row.cut_left(4.0 * scale);
    ui.batch.fill(edge, tint);
    let chip = row.cut_left(42.0 * scale);
    let half = Vec2::splat(15.0 * scale);
    ui.batch
        .sprite(Sprite::PlayerHull, chip.middle(), half, 0.0, WHITE);
    ui.batch
        .sprite(Sprite::PlayerTrim, chip.middle(), half, 0.0, tint);
    let state = row.cut_right(92.0 * scale);
    let mut state = state.shrunk(3.0 * scale);
    let (words, color) = match member {
        member if !member.is_here => ("away", DIM),
        member if member.is_ready => ("READY", GOOD),
        _ => ("not yet", FAINT),
    };
    if member.is_ready {
        let tick = state
            .cut_right(18.0 * scale)
            .middle_part(Vec2::splat(16.0 * scale));
        ui.icon(Sprite::IconReady, tick, GOOD);
    }
    state.cut_right(5.0 * scale);
    ui.small(state, Right, color, words);
    let signal = row
        .cut_right(22.0 * scale)
        .middle_part(vec2(18.0, 13.0) * scale);
    signal_bars(ui, signal, member);
    let told = row.cut_right(62.0 * scale);
    let quality = member
        .link
        .map_or("-".to_owned(), |link| match link.loss_percent {
            0 => format!("{} ms", link.rtt_ms),
            loss => format!("{} ms {loss}%", link.rtt_ms),
        });
    ui.small(told.shrunk(3.0 * scale), Right, FAINT, &quality);
    ui.body(
        row,
        Left,
        if member.is_here { INK } else { DIM },
        &member.name_here(),
    );
}

fn call(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let seats: Vec<&ViewMember> = picture
        .scene
        .team
        .iter()
        .filter(|member| member.is_local)
        .collect();
    let (first, second) = ("R", "Enter");
    let words = match seats[..] {
        [] => "taking a seat ...".to_owned(),
        [own] if own.is_ready => format!("waiting for the others · press {first} to take it back"),
        [_] => format!("press {first} when you are ready · shoot at the crates meanwhile"),
        [one, two, ..] => match (one.is_ready, two.is_ready) {
            (true, true) => {
                format!("waiting for the others · press {first} or {second} to take it back")
            }
            (true, false) => format!("{} is not ready yet: press {second}", two.name),
            (false, true) => format!("{} is not ready yet: press {first}", one.name),
            (false, false) => {
                format!(
                    "{}: press {first} when ready · {}: press {second}",
                    one.name, two.name
                )
            }
        },
    };
    let is_ready = !seats.is_empty() && seats.iter().all(|member| member.is_ready);
    let line = ui
        .inside()
        .cut_bottom(40.0 * scale)
        .middle_part(vec2(560.0 * scale, 36.0 * scale));
    ui.panel(line);
    let tint = if is_ready { GOOD } else { WARN };
    ui.body(line.shrunk(10.0 * scale), Middle, tint, &words);
}
