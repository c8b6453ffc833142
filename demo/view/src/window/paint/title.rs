//! The title: the name of the game over the arena, burning.

use core::f32::consts::TAU;

use glam::{Vec2, vec2};

use super::picture::WindowPicture;
use super::ui::Align::Middle;
use super::ui::Ui;
use crate::scene::Sprite;
use crate::scene::palette::{FAINT, INK, Tint, WARN, WHITE};
use crate::window::atlas::Type;
use crate::window::rect::Rect;
use crate::window::text;

const FIRE: Tint = Tint::new(0xff_8a_2a);

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let screen = ui.screen;
    let seconds = picture.scene.now.as_secs_f32() % 1_000.0;
    ui.batch.fill(screen, Tint::new(0x04_06_0a).alpha(0.74));
    let mut rect = screen;
    rect.cut_top(screen.size.y * 0.20);
    let word = rect.cut_top(110.0 * scale);
    logo(ui, word, seconds);
    let below = rect.cut_top(30.0 * scale);
    ui.body(
        below,
        Middle,
        INK,
        "a co-op shooter for one to eight players, over any network",
    );
    rect.cut_top(20.0 * scale);
    let row = rect.cut_top(84.0 * scale);
    parade(ui, picture, row, seconds);
    rect.cut_top(20.0 * scale);
    let blink = 0.55 + 0.45 * libm::sinf(seconds * TAU * 0.7);
    let call = rect.cut_top(30.0 * scale);
    let tint = WARN.alpha(blink.max(0.35));
    ui.head(call, Middle, tint, "PRESS ENTER OR CLICK");
    let mut foot = ui.inside();
    let state = foot.cut_bottom(22.0 * scale);
    let words = match (&picture.scene.notice, picture.scene.team.len()) {
        (Some(notice), _) => notice.clone(),
        (None, 1) => "1 player is here".to_owned(),
        (None, players) => format!("{players} players are here"),
    };
    ui.small(state, Middle, FAINT, &words);
    let line = foot.cut_bottom(22.0 * scale);
    let words =
        "W A S D walk · mouse aims and fires · Space dash · Tab settings · F1 help · Esc quit";
    ui.small(line, Middle, FAINT, words);
}

fn logo(ui: &mut Ui<'_>, rect: Rect, seconds: f32) {
    const NAME: &str = "POWDERKEG";
    let scale = ui.scale;
    let width = text::width(Type::Title, scale, NAME);
    let left = rect.middle().x - width * 0.5;
    let baseline = rect.middle().y + Type::Title.cap() * scale * 0.5;
    let burnt = (seconds * 0.22) % 1.3;
    let spark = vec2(left + width * burnt.min(1.0), baseline + 22.0 * scale);
    let glow = vec2(width * 0.62, 120.0 * scale);
    ui.batch.sprite(
        Sprite::Glow,
        rect.middle(),
        glow,
        0.0,
        FIRE.light().alpha(0.22),
    );
    ui.batch.text(
        vec2(left, baseline + 5.0 * scale),
        Type::Title,
        Tint::new(0x5a_1c_06),
        NAME,
    );
    ui.batch
        .text(vec2(left, baseline + 2.5 * scale), Type::Title, FIRE, NAME);
    ui.batch.text(
        vec2(left, baseline),
        Type::Title,
        Tint::new(0xff_e9_c9),
        NAME,
    );
    #[cfg(test)]
    ui.said.push((
        Rect::new(
            left,
            baseline - Type::Title.cap() * scale,
            width,
            Type::Title.cap() * scale,
        ),
        NAME.to_owned(),
    ));
    let end = left + width;
    ui.batch.line(
        vec2(spark.x, spark.y),
        vec2(end, spark.y),
        3.0 * scale,
        Tint::new(0x6b_59_45),
    );
    ui.batch.line(
        vec2(left, spark.y),
        spark,
        2.0 * scale,
        Tint::new(0x2a_24_20),
    );
    if burnt < 1.0 {
        let flicker = 1.0 + 0.25 * libm::sinf(seconds * 41.0);
        ui.batch
            .disc(Sprite::Glow, spark, 44.0 * scale * flicker, FIRE.light());
        ui.batch.sprite(
            Sprite::Flash,
            spark,
            Vec2::splat(16.0 * scale * flicker),
            seconds * 9.0,
            WHITE.light(),
        );
    }
}

fn parade(ui: &mut Ui<'_>, picture: &WindowPicture<'_>, rect: Rect, seconds: f32) {
    let scale = ui.scale;
    let mode = picture.settings.colors;
    let band = rect.middle_part(vec2(640.0 * scale, rect.size.y));
    let foes = [
        (Sprite::Gunner, 0.0),
        (Sprite::Urchin, 0.6),
        (Sprite::Spinner, 3.0),
        (Sprite::Sapper, 0.0),
        (Sprite::Charger, 0.0),
    ];
    let step = band.size.x / 8.0;
    let half = Vec2::splat(24.0 * scale);
    let at = |n: f32| vec2(band.at.x + step * (n + 0.5), band.middle().y);
    for n in 0..2 {
        let place = at(n as f32);
        ui.batch.disc(
            Sprite::Glow,
            place,
            half.x * 1.7,
            mode.player(n).light().alpha(0.4),
        );
        ui.batch
            .sprite(Sprite::PlayerHull, place, half * 1.15, 0.0, WHITE);
        ui.batch
            .sprite(Sprite::PlayerTrim, place, half * 1.15, 0.0, mode.player(n));
    }
    let fly = (seconds * 1.4) % 1.0;
    for n in 0..2 {
        let from = at(1.0) + vec2(half.x * 1.4, 0.0);
        let part = (fly + n as f32 * 0.5) % 1.0;
        let shot = from + vec2(step * 0.95 * part, 0.0);
        ui.batch.sprite(
            Sprite::Shot,
            shot,
            vec2(18.0, 6.5) * scale,
            0.0,
            mode.player(1)
                .mixed(WHITE, 0.4)
                .light()
                .alpha(1.0 - part * 0.5),
        );
    }
    for (n, (foe, spin)) in foes.into_iter().enumerate() {
        // Enemies with a front face the players.
        let angle = match foe {
            Sprite::Sapper => 0.0,
            _ if spin == 0.0 => core::f32::consts::PI,
            _ => seconds * spin,
        };
        let glow = foe.layers().map_or(WHITE, |(_, _, rgb)| mode.accent(rgb));
        let place = at(n as f32 + 3.0);
        ui.batch
            .disc(Sprite::Glow, place, half.x * 1.5, glow.light().alpha(0.25));
        ui.batch.sprite(foe, place, half, angle, WHITE);
    }
}
