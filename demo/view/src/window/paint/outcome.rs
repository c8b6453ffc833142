//! The end of a round: won or lost, and the players' results.

use glam::{Vec2, vec2};
use powderkeg_game::RoundPhase;

use super::hud::spaced;
use super::picture::WindowPicture;
use super::ui::Align::{self, Left, Middle, Right};
use super::ui::Ui;
use crate::scene::palette::{BAD, EDGE, FAINT, GOOD, INK, PANEL, Tint, WHITE};
use crate::scene::{Sprite, ViewMember};
use crate::window::atlas::Type;
use crate::window::rect::Rect;

/// The widths of the columns kills, lives, points and ready, in pixels at scale 1.
const COLUMNS: [f32; 4] = [70.0, 70.0, 90.0, 80.0];

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let scene = picture.scene;
    ui.batch.fill(ui.screen, Tint::new(0x04_06_0a).alpha(0.62));
    let won = scene.phase == RoundPhase::Won;
    let rows = scene.team.len().max(1) as f32;
    let mut rect = ui
        .inside()
        .middle_part(vec2(640.0, 228.0 + 34.0 * rows) * scale);
    let word = rect.cut_top(84.0 * scale);
    let (title, tint) = if won {
        ("VICTORY", GOOD)
    } else {
        ("DEFEAT", BAD)
    };
    ui.text(word, Align::Middle, Type::Title, tint, title);
    let below = rect.cut_top(26.0 * scale);
    let words = match won {
        true => format!(
            "all {} waves held · {} points",
            scene.rules.waves.len(),
            spaced(scene.score)
        ),
        false => format!(
            "overrun in wave {} of {} · {} points",
            scene.wave,
            scene.rules.waves.len(),
            spaced(scene.score)
        ),
    };
    ui.body(below, Middle, INK, &words);
    rect.cut_top(14.0 * scale);
    let call = rect.cut_bottom(34.0 * scale);
    rect.cut_bottom(12.0 * scale);
    ui.panel(rect);
    table(ui, picture, rect.shrunk(14.0 * scale));
    let words = match scene.phase_left {
        Some(left) if left > 0.0 => format!(
            "another round in {} s at the earliest",
            libm::ceilf(left) as u32
        ),
        _ => match scene.begins_left {
            Some(left) => format!(
                "press R for another round · next round in {} s at the latest",
                libm::ceilf(left) as u32
            ),
            None => "press R for another round · Esc leaves".to_owned(),
        },
    };
    ui.body(call, Middle, FAINT, &words);
}

fn table(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, mut rect: Rect) {
    let scale = ui.scale;
    let head = rect.cut_top(22.0 * scale);
    cells(
        ui,
        head,
        ["kills", "lives", "points", "ready?"].map(|word| (word.to_owned(), FAINT)),
    );
    ui.batch.fill(
        Rect::new(rect.at.x, rect.at.y, rect.size.x, scale.max(1.0)),
        EDGE,
    );
    rect.cut_top(4.0 * scale);
    let mut team: Vec<&ViewMember> = picture.scene.team.iter().collect();
    team.sort_by_key(|member| (std::cmp::Reverse(member.score), member.id));
    for (place, member) in team.into_iter().enumerate() {
        if rect.size.y < 30.0 * scale {
            return;
        }
        let mut row = rect.cut_top(34.0 * scale);
        let tint = picture.settings.colors.player(member.id.index());
        if place.is_multiple_of(2) {
            ui.batch.fill(row, PANEL.alpha(0.6));
        }
        cells(
            ui,
            row,
            [
                (member.kills.to_string(), INK),
                (member.lives.to_string(), INK),
                (spaced(member.score), tint),
                if member.is_ready {
                    ("ready".to_owned(), GOOD)
                } else {
                    ("-".to_owned(), FAINT)
                },
            ],
        );
        let chip = row.cut_left(36.0 * scale);
        let half = Vec2::splat(14.0 * scale);
        ui.batch
            .sprite(Sprite::PlayerHull, chip.middle(), half, 0.0, WHITE);
        ui.batch
            .sprite(Sprite::PlayerTrim, chip.middle(), half, 0.0, tint);
        row.cut_right(COLUMNS.iter().sum::<f32>() * scale);
        ui.body(row, Left, tint, &member.name_here());
    }
}

fn cells(ui: &mut Ui<'_>, mut row: Rect, words: [(String, Tint); 4]) {
    row.cut_right(8.0 * ui.scale);
    for (width, (words, tint)) in COLUMNS.into_iter().zip(words).rev() {
        let cell = row.cut_right(width * ui.scale);
        ui.small(cell, Right, tint, &words);
    }
}
