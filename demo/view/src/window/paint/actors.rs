//! Everything that lies, walks or flies in the arena, layer by layer.

use core::f32::consts::TAU;

use glam::{Vec2, vec2};
use powderkeg_game::{
    BARREL_RADIUS, BULLET_RADIUS, CRATE_HALF, EnemyKind, Item, PLAYER_RADIUS, ShowKey, Weapon,
};

use super::picture::WindowPicture;
use crate::scene::bursts::item_tint;
use crate::scene::palette::{ACCENT, BAD, ColorMode, GOOD, INK, Tint, WARN, WHITE};
use crate::scene::{Sprite, ThingLook, ViewThing};
use crate::window::atlas::Type;
use crate::window::batch::Batch;
use crate::window::text;

/// The minimum zoom, in pixels per unit, at which enemies have shadows.
const SHADOW_ZOOM: f32 = 18.0;

pub(super) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    let things = &picture.scene.things;
    let seen = |thing: &&ViewThing| picture.camera.sees(thing.at, 3.0);
    // From the lowest layer up; each key is in exactly one layer.
    for layer in 0..7 {
        for thing in things
            .iter()
            .filter(|thing| layer_of(thing) == layer)
            .filter(seen)
        {
            one(batch, picture, thing);
        }
    }
    // Cancelled bullets and shots fade instead of vanishing, and look harmless.
    for (key, at, left) in &picture.scene.fading {
        let mode = picture.settings.colors;
        let tint = match key {
            ShowKey::Bullet { kind, .. } => bullet_tint(mode.hostile(), *kind),
            ShowKey::Shot { owner, .. } => mode.player(owner.index()),
            _ => continue,
        };
        let radius = picture.camera.zoom() * BULLET_RADIUS * 1.75 * left;
        let at = picture.camera.to_screen(*at);
        batch.disc(Sprite::Bullet, at, radius, tint.alpha(0.5 * left));
    }
}

fn layer_of(thing: &ViewThing) -> u8 {
    match thing.key {
        ShowKey::Pickup { .. } => 0,
        ShowKey::Crate { .. } => 1,
        ShowKey::Barrel { .. } => 2,
        ShowKey::Enemy { .. } => 3,
        ShowKey::Player { .. } => 4,
        ShowKey::Shot { .. } => 5,
        ShowKey::Bullet { .. } => 6,
    }
}

fn one(batch: &mut Batch, picture: &WindowPicture<'_>, thing: &ViewThing) {
    let camera = picture.camera;
    let (at, zoom) = (camera.to_screen(thing.at), camera.zoom());
    let mode = picture.settings.colors;
    let white =
        picture.effects.whiteness(thing.key, picture.scene.now) * picture.settings.flashes();
    match thing.key {
        ShowKey::Player { id, .. } => player(batch, picture, thing, mode.player(id.index()), white),
        ShowKey::Enemy { kind, .. } => enemy(batch, picture, thing, kind, white),
        ShowKey::Barrel { .. } => barrel(batch, picture, thing),
        ShowKey::Crate { .. } => {
            let (at, size, angle) = in_the_air(batch, picture, thing, CRATE_HALF);
            let half = Vec2::splat(zoom * CRATE_HALF * 1.13 * size);
            batch.sprite(Sprite::Crate, at, half, angle, WHITE);
            if white > 0.0 {
                batch.sprite(Sprite::CrateTrim, at, half, angle, WHITE);
                batch.sprite(
                    Sprite::Panel,
                    at,
                    half * 0.88,
                    angle,
                    WHITE.light().alpha(white * 0.5),
                );
            }
        }
        ShowKey::Pickup { item, .. } => pickup(batch, picture, thing, item),
        ShowKey::Shot { owner, weapon, .. } => {
            shot(batch, picture, thing, weapon, mode.player(owner.index()))
        }
        ShowKey::Bullet { kind, .. } => {
            let radius = zoom * BULLET_RADIUS * 1.75;
            let tint = bullet_tint(mode.hostile(), kind);
            batch.disc(Sprite::Bullet, at, radius, tint);
        }
    }
}

/// Draws the shadow of a thing that may have been thrown. Returns where the thing itself is drawn, its size, and its
/// angle.
fn in_the_air(
    batch: &mut Batch,
    picture: &WindowPicture<'_>,
    thing: &ViewThing,
    radius: f32,
) -> (Vec2, f32, f32) {
    let (at, zoom) = (picture.camera.to_screen(thing.at), picture.camera.zoom());
    let ThingLook::Prop {
        aloft: Some(part), ..
    } = thing.look
    else {
        shadow(batch, at, zoom * radius * 1.25);
        return (at, 1.0, thing.angle);
    };
    // A parabola: 0 at both ends, 1 in the middle.
    let height = 4.0 * part * (1.0 - part);
    batch.disc(
        Sprite::Shadow,
        at + vec2(0.5, 1.1) * zoom * height,
        zoom * radius * 1.6,
        WHITE,
    );
    (
        at - vec2(0.0, height * zoom * 0.9),
        1.0 + 0.55 * height,
        thing.angle + part * TAU,
    )
}

fn barrel(batch: &mut Batch, picture: &WindowPicture<'_>, thing: &ViewThing) {
    let zoom = picture.camera.zoom();
    let (at, size, angle) = in_the_air(batch, picture, thing, BARREL_RADIUS);
    let radius = zoom * BARREL_RADIUS * 1.25 * size;
    batch.sprite(Sprite::Barrel, at, Vec2::splat(radius), angle, WHITE);
    batch.sprite(Sprite::BarrelTrim, at, Vec2::splat(radius), angle, WHITE);
    if let ThingLook::Prop { is_lit: true, .. } = thing.look {
        let beat = pulse(picture, 6.0);
        let reach = zoom * picture.scene.rules.tuning.blast_radius;
        batch.disc(
            Sprite::Glow,
            at,
            zoom * (1.4 + 0.5 * beat),
            Tint::new(0xff_8a_2a).light().alpha(0.55 + 0.4 * beat),
        );
        batch.disc(Sprite::Reach, at, reach, WARN.alpha(0.16 + 0.16 * beat));
        let spark = at + vec2(radius * 0.35, -radius * 0.3);
        batch.disc(
            Sprite::Flash,
            spark,
            zoom * (0.3 + 0.2 * beat),
            WHITE.light(),
        );
    }
}

/// The colour of a bullet. All colours are similar, so that every bullet looks dangerous, with a small difference per
/// kind.
fn bullet_tint(hostile: Tint, kind: EnemyKind) -> Tint {
    match kind {
        EnemyKind::Gunner => hostile,
        EnemyKind::Urchin => hostile.mixed(WARN, 0.35),
        EnemyKind::Spinner => hostile.mixed(Tint::new(0xe3_6f_b0), 0.45),
        _ => hostile.mixed(WHITE, 0.25),
    }
}

fn shadow(batch: &mut Batch, at: Vec2, radius: f32) {
    batch.disc(
        Sprite::Shadow,
        at + vec2(radius * 0.18, radius * 0.30),
        radius * 1.35,
        WHITE,
    );
}

/// A value between 0 and 1 that swings `hertz` times a second.
fn pulse(picture: &WindowPicture<'_>, hertz: f32) -> f32 {
    let seconds = picture.scene.now.as_secs_f32() % 100.0;
    0.5 + 0.5 * libm::sinf(seconds * hertz * TAU)
}

fn player(
    batch: &mut Batch,
    picture: &WindowPicture<'_>,
    thing: &ViewThing,
    tint: Tint,
    white: f32,
) {
    let camera = picture.camera;
    let (at, zoom) = (camera.to_screen(thing.at), camera.zoom());
    let half = Vec2::splat(zoom * PLAYER_RADIUS * 1.75);
    let ThingLook::Player {
        is_safe,
        has_shield,
        ..
    } = thing.look
    else {
        return;
    };
    let blinks = is_safe && pulse(picture, 4.0) < 0.5;
    shadow(batch, at, half.x * 0.8);
    batch.disc(Sprite::Glow, at, half.x * 1.5, tint.light().alpha(0.30));
    let veil = if blinks { 0.55 } else { 1.0 };
    batch.sprite(Sprite::PlayerHull, at, half, thing.angle, WHITE.alpha(veil));
    batch.sprite(Sprite::PlayerTrim, at, half, thing.angle, tint.alpha(veil));
    if let ShowKey::Player { id, .. } = thing.key {
        // The number stays upright while the hull turns.
        let size = Type::Body;
        let number = (id.0 + 1).to_string();
        let width = text::width(size, batch.atlas.scale, &number);
        let corner = at + vec2(-width * 0.5, size.cap() * batch.atlas.scale * 0.5);
        let back = vec2(libm::cosf(thing.angle), -libm::sinf(thing.angle)) * half.x * -0.04;
        batch.text(
            corner + back,
            size,
            tint.mixed(WHITE, 0.3).alpha(veil),
            &number,
        );
    }
    if white > 0.0 {
        batch.sprite(
            Sprite::PlayerTrim,
            at,
            half * 1.05,
            thing.angle,
            WHITE.light().alpha(white),
        );
        batch.disc(Sprite::Glow, at, half.x * 1.4, BAD.light().alpha(white));
    }
    if is_safe {
        batch.disc(
            Sprite::Bubble,
            at,
            half.x * 1.15,
            INK.light().alpha(0.20 + 0.25 * pulse(picture, 2.0)),
        );
    }
    if has_shield {
        batch.disc(
            Sprite::Bubble,
            at,
            half.x * 1.12,
            ACCENT.light().alpha(0.85),
        );
    }
}

fn cast(kind: EnemyKind, mode: ColorMode) -> (Sprite, Sprite, Tint) {
    let whole = match kind {
        EnemyKind::Gunner => Sprite::Gunner,
        EnemyKind::Urchin => Sprite::Urchin,
        EnemyKind::Spinner => Sprite::Spinner,
        EnemyKind::Sapper => Sprite::Sapper,
        EnemyKind::Charger => Sprite::Charger,
        EnemyKind::Boss => Sprite::BossHull,
    };
    let (_, trim, rgb) = whole
        .layers()
        .unwrap_or((whole, Sprite::BossTrim, 0xff_5a_3c));
    (whole, trim, mode.accent(rgb))
}

fn enemy(
    batch: &mut Batch,
    picture: &WindowPicture<'_>,
    thing: &ViewThing,
    kind: EnemyKind,
    white: f32,
) {
    let camera = picture.camera;
    let (at, zoom) = (camera.to_screen(thing.at), camera.zoom());
    let (whole, trim, tint) = cast(kind, picture.settings.colors);
    let half = Vec2::splat(zoom * kind.radius() * 1.35);
    let (woken, carries) = match thing.look {
        ThingLook::Enemy { woken, carries } => (woken, carries),
        _ => (1.0, false),
    };
    if woken < 1.0 {
        // While an enemy wakes, a ring closes around its position.
        batch.disc(
            Sprite::Dashes,
            at,
            half.x * (2.4 - 1.3 * woken),
            tint.alpha(0.9),
        );
        let size = half * (0.4 + 0.6 * woken);
        batch.sprite(whole, at, size, thing.angle, WHITE.alpha(woken * 0.6));
        return;
    }
    // From far away shadows are invisible, and a crowd of them costs time.
    if zoom >= SHADOW_ZOOM {
        shadow(batch, at, half.x * 0.75);
    }
    if carries {
        batch.disc(
            Sprite::Glow,
            at,
            half.x * 1.7,
            GOOD.light().alpha(0.35 + 0.3 * pulse(picture, 1.5)),
        );
    }
    batch.sprite(whole, at, half, thing.angle, WHITE);
    if kind == EnemyKind::Boss {
        batch.sprite(trim, at, half, thing.angle, tint);
        batch.disc(
            Sprite::Glow,
            at,
            half.x * 0.6,
            tint.light().alpha(0.5 + 0.4 * pulse(picture, 1.2)),
        );
    }
    if white > 0.0 {
        batch.sprite(
            trim,
            at,
            half * 1.06,
            thing.angle,
            WHITE.light().alpha(white),
        );
        batch.disc(
            Sprite::Glow,
            at,
            half.x * 1.2,
            WHITE.light().alpha(white * 0.7),
        );
    }
}

fn pickup(batch: &mut Batch, picture: &WindowPicture<'_>, thing: &ViewThing, item: Item) {
    if thing.look == ThingLook::Fading && pulse(picture, 4.0) < 0.4 {
        return;
    }
    let camera = picture.camera;
    let zoom = camera.zoom();
    let lift = 0.06 * libm::sinf(picture.scene.now.as_secs_f32() % 100.0 * 3.0);
    let at = camera.to_screen(thing.at + vec2(0.0, lift));
    let tint = item_tint(item, picture.settings.colors);
    let icon = item_icon(item);
    batch.disc(Sprite::Glow, at, zoom * 1.5, tint.light().alpha(0.45));
    batch.disc(Sprite::Capsule, at, zoom * 0.78, tint);
    batch.disc(icon, at, zoom * 0.46, WHITE);
}

pub(super) fn item_icon(item: Item) -> Sprite {
    match item {
        Item::Weapon(weapon) => weapon_icon(weapon),
        Item::Health => Sprite::IconHeart,
        Item::Shield => Sprite::IconShield,
        Item::Life => Sprite::IconLife,
    }
}

pub(super) fn weapon_icon(weapon: Weapon) -> Sprite {
    match weapon {
        Weapon::Blaster => Sprite::IconBlaster,
        Weapon::Scatter => Sprite::IconScatter,
        Weapon::Lance => Sprite::IconLance,
        Weapon::Thumper => Sprite::IconThumper,
    }
}

fn shot(
    batch: &mut Batch,
    picture: &WindowPicture<'_>,
    thing: &ViewThing,
    weapon: Weapon,
    tint: Tint,
) {
    let camera = picture.camera;
    let zoom = camera.zoom();
    let at = camera.to_screen(thing.at);
    let hot = tint.mixed(WHITE, 0.35);
    match weapon {
        Weapon::Blaster => batch.sprite(
            Sprite::Shot,
            at,
            vec2(0.62, 0.22) * zoom,
            thing.angle,
            hot.light(),
        ),
        Weapon::Scatter => batch.sprite(
            Sprite::Shot,
            at,
            vec2(0.40, 0.20) * zoom,
            thing.angle,
            hot.light(),
        ),
        Weapon::Lance => {
            let back = vec2(libm::cosf(thing.angle), -libm::sinf(thing.angle)) * zoom;
            batch.sprite(
                Sprite::Streak,
                at - back * 1.6,
                vec2(2.2, 0.42) * zoom,
                thing.angle,
                tint.light(),
            );
            batch.sprite(
                Sprite::Bolt,
                at,
                vec2(1.15, 0.26) * zoom,
                thing.angle,
                hot.light(),
            );
        }
        Weapon::Thumper => {
            // The shell is highest in the middle of its flight.
            let part = match thing.look {
                ThingLook::Lobbed(part) => part,
                _ => 0.0,
            };
            let height = 4.0 * part * (1.0 - part);
            let radius = zoom * 0.42 * (1.0 + 0.7 * height);
            batch.disc(
                Sprite::Shadow,
                at + vec2(0.5, 1.0) * zoom * height,
                radius * 1.1,
                WHITE,
            );
            batch.sprite(
                Sprite::Shell,
                at - vec2(0.0, height * zoom * 0.8),
                Vec2::splat(radius),
                part * 9.0,
                hot,
            );
        }
    }
}
