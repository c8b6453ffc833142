//! Players' names and health, above them.
//!
//! Invariant: a label never overlaps another label, another player, the heads-up display, or the edge of the screen. If
//! there is no free space for a name, it is not drawn; the player's number is on its hull.

use glam::{Vec2, vec2};
use powderkeg_game::{PLAYER_RADIUS, ShowKey};

use super::hud;
use super::picture::WindowPicture;
use crate::scene::ThingLook;
use crate::scene::palette::{BAD, EDGE, GOOD, Tint};
use crate::window::atlas::Type;
use crate::window::batch::Batch;
use crate::window::rect::Rect;
use crate::window::text;

struct Label {
    hull: Rect,
    words: String,
    size: Vec2,
    tint: Tint,
    /// The health to draw. `None` if it is full, so that no bar is drawn.
    health: Option<f32>,
    is_local: bool,
}

pub(super) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    if picture.screens.title {
        return;
    }
    let scale = batch.atlas.scale;
    let mut labels = all(picture, scale);
    // Local players choose first.
    labels.sort_by_key(|label| !label.is_local);
    let hulls: Vec<Rect> = labels.iter().map(|label| label.hull).collect();
    let mut taken = hud::covered(picture, scale);
    for (n, label) in labels.iter().enumerate() {
        let others = hulls.iter().enumerate().filter(|(other, _)| *other != n);
        let others: Vec<Rect> = others.map(|(_, hull)| *hull).collect();
        let is_free = |place: &Rect| {
            let mut all = taken.iter().chain(&others);
            picture.screen.holds(place) && all.all(|other| !other.overlaps(place))
        };
        if let Some(place) = places(label, scale).into_iter().find(is_free) {
            write(batch, label, place, scale);
            taken.push(place);
        }
    }
}

fn all(picture: &WindowPicture<'_>, scale: f32) -> Vec<Label> {
    let (camera, scene) = (picture.camera, picture.scene);
    let zoom = camera.zoom();
    let label = |thing: &crate::scene::ViewThing| {
        let (ShowKey::Player { id, .. }, ThingLook::Player { health, .. }) =
            (thing.key, thing.look)
        else {
            return None;
        };
        let member = scene.team.iter().find(|member| member.id == id)?;
        let words = match picture.settings.names {
            true => text::fitted(Type::Small, scale, &member.name, zoom * 4.5),
            false => String::new(),
        };
        let width = text::width(Type::Small, scale, &words).max(bar_width(zoom, scale));
        Some(Label {
            hull: Rect::around(
                camera.to_screen(thing.at),
                Vec2::splat(zoom * PLAYER_RADIUS),
            ),
            words,
            size: vec2(width, (Type::Small.cap() + 7.0) * scale),
            tint: picture.settings.colors.player(id.index()),
            health: (health < 1.0).then_some(health),
            is_local: member.is_local,
        })
    };
    let seen = scene
        .things
        .iter()
        .filter(|thing| camera.sees(thing.at, 1.0));
    seen.filter_map(label).collect()
}

fn bar_width(zoom: f32, scale: f32) -> f32 {
    (zoom * 1.5).max(26.0 * scale)
}

fn places(label: &Label, scale: f32) -> [Rect; 6] {
    let (hull, size) = (label.hull, label.size);
    let gap = hull.size.y * 0.32;
    let row = size.y + 3.0 * scale;
    let left = hull.middle().x - size.x * 0.5;
    let (above, below) = (hull.at.y - gap - size.y, hull.bottom() + gap);
    let middle = hull.middle().y - size.y * 0.5;
    [
        (left, above),
        (left, below),
        (left, above - row),
        (left, below + row),
        (hull.right() + gap, middle),
        (hull.at.x - gap - size.x, middle),
    ]
    .map(|(x, y)| Rect::new(x, y, size.x, size.y))
}

fn write(batch: &mut Batch, label: &Label, mut place: Rect, scale: f32) {
    let name = place.cut_top((Type::Small.cap() + 4.0) * scale);
    let width = text::width(Type::Small, scale, &label.words);
    let corner = vec2(
        name.middle().x - width * 0.5,
        name.at.y + Type::Small.cap() * scale,
    );
    batch.text(corner, Type::Small, label.tint, &label.words);
    if let Some(health) = label.health {
        let mut bar = place.middle_part(vec2(place.size.x, (3.0 * scale).max(2.0)));
        batch.fill(bar, EDGE);
        bar.size.x *= health;
        batch.fill(bar, if health < 0.4 { BAD } else { GOOD });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(x: f32, y: f32) -> Label {
        Label {
            hull: Rect::around(vec2(x, y), Vec2::splat(15.0)),
            words: "bot-1".to_owned(),
            size: vec2(40.0, 15.0),
            tint: GOOD,
            health: None,
            is_local: false,
        }
    }

    #[test]
    fn no_label_position_covers_its_own_player() {
        for scale in [0.5, 1.0, 2.0] {
            let label = label(100.0, 100.0);
            let places = places(&label, scale);
            assert!(places.iter().all(|place| !place.overlaps(&label.hull)));
            assert!(places[0].bottom() < label.hull.at.y, "over it at best");
        }
    }
}
