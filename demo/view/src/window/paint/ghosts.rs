//! The authority's players and enemies: the lagged truth, drawn as outlines, with a line to their place in the
//! prediction. The gap is the round trip, made visible.

use powderkeg_game::{PLAYER_RADIUS, ShowKey};

use super::picture::WindowPicture;
use crate::scene::Sprite;
use crate::scene::palette::INK;
use crate::window::batch::Batch;

pub(super) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    let camera = picture.camera;
    let zoom = camera.zoom();
    for (key, at) in &picture.scene.ghosts {
        if !camera.sees(*at, 2.0) {
            continue;
        }
        let (radius, tint) = match key {
            ShowKey::Player { id, .. } => (
                PLAYER_RADIUS * 1.3,
                picture.settings.colors.player(id.index()),
            ),
            ShowKey::Enemy { kind, .. } => (kind.radius() * 1.2, INK),
            _ => continue,
        };
        let ghost = camera.to_screen(*at);
        batch.disc(Sprite::Dashes, ghost, radius * zoom, tint.alpha(0.85));
        // A body that is dead in one of the two worlds has no line.
        if let Some(shown) = picture.scene.place(*key) {
            batch.line(
                ghost,
                camera.to_screen(shown),
                batch.atlas.scale.max(1.0) * 1.5,
                tint.alpha(0.55),
            );
        }
    }
}
