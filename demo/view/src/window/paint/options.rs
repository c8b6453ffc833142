//! The settings, over the running match.

use glam::vec2;

use super::picture::WindowPicture;
use super::ui::Align::{Left, Right};
use super::ui::Ui;
use crate::scene::palette::{ACCENT, EDGE, FAINT, INK};
use crate::window::settings::SettingRow;

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let rect = SettingRow::page(ui.screen, scale);
    ui.panel(rect);
    let mut inside = ui.heading(rect.shrunk(22.0 * scale), "SETTINGS");
    let foot = inside.cut_bottom(20.0 * scale);
    let how = picture.screens.settings_foot(picture.is_alone);
    ui.small(foot, Left, FAINT, &how);
    let settings = picture.settings;
    let rows = SettingRow::ALL
        .into_iter()
        .zip(SettingRow::places(ui.screen, scale));
    for (n, (row, rect)) in rows.enumerate() {
        let chosen = n == picture.screens.row;
        if chosen {
            ui.plate(rect, EDGE.alpha(0.55));
        }
        let mut line = rect;
        line.cut_left(8.0 * scale);
        line.cut_right(8.0 * scale);
        let mut value = line.cut_right(220.0 * scale);
        let (name, part, words) = match row {
            SettingRow::Volume => ("volume", Some(settings.volume()), ""),
            SettingRow::Shake => ("screen shake", Some(settings.shake()), ""),
            SettingRow::Flashes => ("bright flashes", Some(settings.flashes()), ""),
            SettingRow::Colors => ("colours", None, settings.colors.name()),
            SettingRow::Names if settings.names => ("names over players", None, "shown"),
            SettingRow::Names => ("names over players", None, "hidden"),
            SettingRow::Text if settings.large_text => ("text and panels", None, "large"),
            SettingRow::Text => ("text and panels", None, "scaled to the window"),
            SettingRow::Vsync if settings.vsync => ("vsync (from the next start)", None, "on"),
            SettingRow::Vsync => ("vsync (from the next start)", None, "off"),
        };
        let tint = if chosen { INK } else { FAINT };
        ui.body(line, Left, tint, name);
        let Some(part) = part else {
            ui.body(value, Right, INK, words);
            continue;
        };
        let number = value.cut_right(52.0 * scale);
        let bar = value.middle_part(vec2(value.size.x - 8.0 * scale, 8.0 * scale));
        ui.bar(bar, part, ACCENT);
        let percent = format!("{}%", libm::roundf(part * 100.0));
        ui.body(number, Right, INK, &percent);
    }
}
