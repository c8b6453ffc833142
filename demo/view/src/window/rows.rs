//! [`SettingRow`]: what can be set, and where it stands: painted there, and clicked there.

use glam::vec2;

use super::atlas::Atlas;
use super::input::WindowAct;
use super::rect::Rect;

/// A row of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingRow {
    Volume,
    Shake,
    Colors,
    Names,
    Key(WindowAct),
}

impl SettingRow {
    /// All rows, from the top.
    pub(crate) fn all() -> impl ExactSizeIterator<Item = SettingRow> + Clone {
        const FIRST: [SettingRow; 4] = [
            SettingRow::Volume,
            SettingRow::Shake,
            SettingRow::Colors,
            SettingRow::Names,
        ];
        (0..FIRST.len() + WindowAct::CHANGEABLE.len()).map(|n| match FIRST.get(n) {
            Some(row) => *row,
            None => SettingRow::Key(WindowAct::CHANGEABLE[n - FIRST.len()]),
        })
    }
}

/// The box of the settings, in a window.
pub(crate) fn settings_box(screen: Rect) -> Rect {
    let scale = Atlas::scale_for(screen.size);
    screen
        .shrunk(14.0 * scale)
        .middle_part(vec2(520.0, 440.0) * scale)
}

/// The rows of the settings, in a window.
pub(crate) fn settings_rows(screen: Rect) -> Vec<Rect> {
    let scale = Atlas::scale_for(screen.size);
    let mut inside = settings_box(screen).shrunk(22.0 * scale);
    inside.cut_top(42.0 * scale);
    inside.cut_bottom(24.0 * scale);
    let row = inside.size.y / SettingRow::all().len() as f32;
    SettingRow::all().map(|_| inside.cut_top(row)).collect()
}
