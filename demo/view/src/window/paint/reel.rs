//! A replay's bar: its position and speed, and seeking by click.

use glam::{Vec2, vec2};

use super::picture::WindowPicture;
use super::ui::Align::{Left, Right};
use super::ui::Ui;
use crate::scene::palette::{ACCENT, FAINT, INK, WARN, WHITE};
use crate::scene::{Sprite, clock};
use crate::window::rect::Rect;

fn strip(screen: Rect, scale: f32) -> Rect {
    screen.shrunk(14.0 * scale).cut_bottom(46.0 * scale)
}

pub(crate) fn bar_box(screen: Rect, scale: f32) -> Rect {
    let mut inside = strip(screen, scale).shrunk(10.0 * scale);
    inside.cut_left(96.0 * scale);
    inside.cut_right(170.0 * scale);
    inside
}

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let Some(reel) = &picture.scene.replay else {
        return;
    };
    let scale = ui.scale;
    let rect = strip(ui.screen, scale);
    ui.panel(rect);
    let mut inside = rect.shrunk(10.0 * scale);
    let state = inside.cut_left(90.0 * scale);
    let words = if reel.is_paused { "PAUSED" } else { "REPLAY" };
    ui.body(
        state,
        Left,
        if reel.is_paused { WARN } else { ACCENT },
        words,
    );
    let mut right = inside.cut_right(164.0 * scale);
    let speed = right.cut_right(48.0 * scale);
    ui.body(speed, Right, INK, &reel.speed.to_string());
    ui.small(
        right,
        Right,
        FAINT,
        &format!("{} / {}", clock(reel.passed), clock(reel.length)),
    );
    let bar = bar_box(ui.screen, scale);
    let line = bar.middle_part(vec2(bar.size.x, 7.0 * scale));
    ui.bar(line, reel.part, ACCENT);
    let knob = vec2(
        bar.at.x + bar.size.x * reel.part.clamp(0.0, 1.0),
        bar.middle().y,
    );
    ui.batch
        .sprite(Sprite::Panel, knob, Vec2::splat(7.0 * scale), 0.0, WHITE);
}
