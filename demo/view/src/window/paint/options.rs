//! The settings, over the match that goes on behind them.

use glam::vec2;

use super::picture::WindowPicture;
use super::ui::{Align, Ui};
use crate::window::atlas::Type;
use crate::window::palette::{ACCENT, EDGE, FAINT, INK, WARN};
use crate::window::rows::{SettingRow, settings_box, settings_rows};

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let rect = settings_box(ui.screen);
    ui.panel(rect);
    let mut inside = ui.heading(rect.shrunk(22.0 * scale), "SETTINGS");
    let foot = inside.cut_bottom(20.0 * scale);
    ui.text(
        foot,
        Align::Left,
        Type::Small,
        FAINT,
        &picture.screens.settings_foot(&picture.settings.keys),
    );
    let settings = picture.settings;
    for (n, (row, rect)) in SettingRow::all().zip(settings_rows(ui.screen)).enumerate() {
        let chosen = n == picture.screens.row;
        if chosen {
            ui.plate(rect, EDGE.alpha(0.55));
        }
        let mut line = rect;
        line.cut_left(8.0 * scale);
        line.cut_right(8.0 * scale);
        let value = line.cut_right(220.0 * scale);
        let (name, part, words) = match row {
            SettingRow::Volume => (
                "volume".to_owned(),
                Some(settings.volume),
                percent(settings.volume),
            ),
            SettingRow::Shake => (
                "screen shake".to_owned(),
                Some(settings.shake),
                percent(settings.shake),
            ),
            SettingRow::Colors => (
                "colours".to_owned(),
                None,
                settings.colors.name().to_owned(),
            ),
            SettingRow::Names => (
                "names over players".to_owned(),
                None,
                if settings.names { "shown" } else { "hidden" }.to_owned(),
            ),
            SettingRow::Key(act) if picture.screens.binding == Some(act) => (
                format!("key: {}", act.name()),
                None,
                "press a key ...".to_owned(),
            ),
            SettingRow::Key(act) => (
                format!("key: {}", act.name()),
                None,
                settings.keys.name(act),
            ),
        };
        ui.text(
            line,
            Align::Left,
            Type::Body,
            if chosen { INK } else { FAINT },
            &name,
        );
        let waits = matches!(row, SettingRow::Key(act) if picture.screens.binding == Some(act));
        let tint = if waits { WARN } else { INK };
        let mut value = value;
        if let Some(part) = part {
            let number = value.cut_right(52.0 * scale);
            let bar = value.middle_part(vec2(value.size.x - 8.0 * scale, 8.0 * scale));
            ui.bar(bar, part, ACCENT);
            ui.text(number, Align::Right, Type::Body, tint, &words);
        } else {
            ui.text(value, Align::Right, Type::Body, tint, &words);
        }
    }
}

fn percent(part: f32) -> String {
    format!("{}%", libm::roundf(part * 100.0))
}
