//! Painting: a [`ViewScene`](crate::scene::ViewScene) and its effects become a [`Batch`](super::batch::Batch). Pure:
//! the same scene produces the same picture, and no window is needed.
//!
//! ```text
//!   floor ─▶ actors, shots, bullets ─▶ effects ─▶ names ─▶ ghosts   the arena, through the camera
//!   hud │ lobby │ outcome ─▶ netgraph, reel ─▶ title, settings, help, closing ─▶ pointer   boxes, in pixels
//! ```

mod actors;
mod closing;
mod effects;
mod floor;
mod ghosts;
mod help;
mod hud;
mod labels;
mod lobby;
mod netgraph;
mod options;
mod outcome;
mod picture;
mod reel;
#[cfg(test)]
mod tests;
mod title;
pub(crate) mod ui;

pub(crate) use netgraph::free_place;
pub(crate) use picture::WindowPicture;
pub(crate) use reel::bar_box as reel_bar;

use powderkeg_game::RoundPhase;
use ui::Ui;

use super::batch::Batch;
use super::screens::Overlay;
use crate::scene::palette::Tint;

pub(crate) fn paint(batch: &mut Batch, picture: &WindowPicture<'_>) {
    batch.clear();
    floor::paint(batch, picture);
    actors::paint(batch, picture);
    effects::paint(batch, picture);
    labels::paint(batch, picture);
    let has_ghosts = picture.screens.ghosts && picture.scene.stats.is_some();
    if has_ghosts {
        ghosts::paint(batch, picture);
    }
    let mut ui = Ui::new(batch, picture.screen);
    if has_ghosts && !picture.screens.title {
        ghosts::legend(&mut ui, picture);
    }
    if picture.screens.title {
        // The title's letters would shine through an overlay.
        if picture.screens.overlay.is_none() {
            title::paint(&mut ui, picture);
        }
    } else {
        let shows_netgraph = picture.screens.overlay.is_none();
        let is_over = matches!(picture.scene.phase, RoundPhase::Won | RoundPhase::Lost);
        // The results are drawn in front of the netgraph.
        if shows_netgraph && is_over {
            netgraph::paint(&mut ui, picture);
        }
        match picture.scene.phase {
            RoundPhase::Lobby => lobby::paint(&mut ui, picture),
            RoundPhase::Won | RoundPhase::Lost => outcome::paint(&mut ui, picture),
            _ => hud::paint(&mut ui, picture),
        }
        if picture.scene.replay.is_some() {
            reel::paint(&mut ui, picture);
        }
        hud::paint_notice(&mut ui, picture);
        if shows_netgraph && !is_over {
            netgraph::paint(&mut ui, picture);
        }
    }
    if picture.screens.overlay.is_some() {
        // The match continues behind it, dimmed.
        ui.batch.fill(picture.screen, Tint::new(0).alpha(0.45));
    }
    match picture.screens.overlay {
        Some(Overlay::Help) => help::paint(&mut ui, picture.is_alone),
        Some(Overlay::Settings) => options::paint(&mut ui, picture),
        None => {}
    }
    if let Some(why) = &picture.screens.closing {
        closing::paint(&mut ui, why);
    }
    // Above everything, because the system's own pointer is hidden.
    if let Some(at) = picture.pointer {
        effects::crosshair(batch, at);
    }
}
