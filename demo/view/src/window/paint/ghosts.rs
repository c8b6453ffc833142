//! The authority's players and enemies: the confirmed, delayed state, drawn as outlines, with a line to their positions
//! in the prediction. The gap is the round trip, made visible.

use glam::vec2;
use powderkeg_game::{PLAYER_RADIUS, ShowKey};

use super::picture::WindowPicture;
use super::ui::{Align, Ui};
use crate::scene::Sprite;
use crate::scene::palette::{INK, PANEL};
use crate::window::atlas::Type;
use crate::window::batch::Batch;
use crate::window::text;

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

pub(super) fn legend(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let stats = picture.scene.stats.unwrap_or_default();
    let lead = stats.prediction_tick.saturating_sub(stats.authority_tick);
    let words = format!("confirmed by the server · the line to it: {lead} ticks of prediction");
    let size = vec2(
        text::width(Type::Small, scale, &words) + 44.0 * scale,
        24.0 * scale,
    );
    let mut screen = picture.screen;
    screen.cut_bottom(92.0 * scale);
    let mut rect = screen.cut_bottom(size.y).middle_part(size);
    ui.plate(rect, PANEL.alpha(0.62));
    let ring = rect.cut_left(28.0 * scale);
    ui.icon(Sprite::Dashes, ring.shrunk(3.0 * scale), INK);
    ui.small(rect, Align::Left, INK, &words);
}
