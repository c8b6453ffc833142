//! The end of the match for this screen, and its reason. Without this overlay the window would close before a player
//! could read it.

use glam::vec2;

use super::ui::Align::Middle;
use super::ui::Ui;
use crate::scene::palette::{FAINT, INK, Tint, WARN};

pub(super) fn paint(ui: &mut Ui<'_>, why: &str) {
    let scale = ui.scale;
    ui.batch.fill(ui.screen, Tint::new(0x04_06_0a).alpha(0.62));
    let lines: Vec<&str> = why.lines().collect();
    let height = 132.0 + 24.0 * lines.len() as f32;
    let rect = ui.inside().middle_part(vec2(780.0, height) * scale);
    ui.panel(rect);
    let mut inside = rect.shrunk(22.0 * scale);
    let head = inside.cut_top(34.0 * scale);
    ui.head(head, Middle, WARN, "THE MATCH IS OVER");
    let foot = inside.cut_bottom(24.0 * scale);
    inside.cut_top(10.0 * scale);
    for line in lines {
        let row = inside.cut_top(24.0 * scale);
        ui.body(row, Middle, INK, line);
    }
    ui.small(foot, Middle, FAINT, "any key closes the window");
}
