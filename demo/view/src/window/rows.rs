//! [`Row`]: what can be set, and where it stands: painted there, and clicked there.

use glam::vec2;

use super::atlas::Atlas;
use super::input::Act;
use super::rect::Rect;

/// A row of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Volume,
    Shake,
    Colors,
    Names,
    Key(Act),
}

impl Row {
    /// All rows, from the top.
    pub(crate) fn all() -> impl ExactSizeIterator<Item = Row> + Clone {
        const FIRST: [Row; 4] = [Row::Volume, Row::Shake, Row::Colors, Row::Names];
        (0..FIRST.len() + Act::CHANGEABLE.len()).map(|n| match FIRST.get(n) {
            Some(row) => *row,
            None => Row::Key(Act::CHANGEABLE[n - FIRST.len()]),
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
    let row = inside.size.y / Row::all().len() as f32;
    Row::all().map(|_| inside.cut_top(row)).collect()
}
