//! F1: the keys, and what the overlays show.

use glam::vec2;

use super::ui::Align::Left;
use super::ui::Ui;
use crate::scene::palette::{ACCENT, FAINT, INK};
use crate::window::rect::Rect;

type HelpColumn = (&'static str, &'static [(&'static str, &'static str)]);

#[cfg(not(target_arch = "wasm32"))]
const FIRE: &str = "aim; left button or Ctrl fires";
#[cfg(target_arch = "wasm32")]
const FIRE: &str = "aim; left button or Shift fires";
#[cfg(not(target_arch = "wasm32"))]
const SECOND_FIRE: &str = "right Ctrl";
#[cfg(target_arch = "wasm32")]
const SECOND_FIRE: &str = ".";
#[cfg(not(target_arch = "wasm32"))]
const GAMEPAD: &str = "GAMEPAD (IF BUILT IN)";
#[cfg(target_arch = "wasm32")]
const GAMEPAD: &str = "GAMEPAD";

const LEFT: [HelpColumn; 3] = [
    (
        "PLAY",
        &[
            ("W A S D", "walk"),
            ("mouse", FIRE),
            ("Space", "dash"),
            ("E", "light the nearest barrel"),
            ("R", "ready; another round"),
            ("Tab", "settings"),
        ],
    ),
    (
        GAMEPAD,
        &[
            ("sticks", "walk and aim"),
            ("RT RB", "fire"),
            ("A · X", "dash · light"),
            ("Start", "ready; Select opens settings"),
        ],
    ),
    (
        "SECOND SEAT WITHOUT A GAMEPAD",
        &[
            ("arrows", "walk and aim"),
            (SECOND_FIRE, "fire, aim held"),
            ("right Shift", "dash"),
            ("/", "light the nearest barrel"),
            ("Enter", "ready"),
        ],
    ),
];

const RIGHT: [HelpColumn; 2] = [
    (
        "SEE THE NETWORK",
        &[
            ("F2", "dashed rings: the newest confirmed state"),
            ("F3", "netgraph: ten seconds of the link"),
            ("F4", "next link: perfect, lan, wan, bad, awful"),
            ("F5", "prediction off: plain lockstep"),
            ("F6", "smoothing off: see the corrections"),
            ("P", "pause (first player only)"),
            ("M · F11", "sound off · the whole screen"),
            ("F9", "save a replay of this match"),
            ("F12", "save a picture"),
            ("Esc", "close, leave"),
        ],
    ),
    (
        "REPLAYS",
        &[
            ("Space", "pause, continue"),
            ("A D", "five seconds back, forward"),
            ("W S", "faster, slower; the bar seeks"),
            ("E", "follow the next player, or see all"),
        ],
    ),
];

pub(super) fn paint(ui: &mut Ui<'_>, is_alone: bool) {
    let scale = ui.scale;
    let rect = ui.inside().middle_part(vec2(780.0, 496.0) * scale);
    ui.panel(rect);
    let mut inside = ui.heading(rect.shrunk(22.0 * scale), "HELP");
    let foot = inside.cut_bottom(20.0 * scale);
    let words = match is_alone {
        true => "The match waits. F1 or Esc closes this.",
        false => "The match is not paused. F1 or Esc closes this.",
    };
    ui.small(foot, Left, FAINT, words);
    inside.cut_bottom(8.0 * scale);
    let left = inside.cut_left(inside.size.x * 0.46);
    inside.cut_left(20.0 * scale);
    columns(ui, left, &LEFT);
    columns(ui, inside, &RIGHT);
}

fn columns(ui: &mut Ui<'_>, mut rect: Rect, columns: &[HelpColumn]) {
    let scale = ui.scale;
    for (title, rows) in columns {
        let line = rect.cut_top(22.0 * scale);
        ui.small(line, Left, ACCENT, title);
        for (key, words) in *rows {
            let mut row = rect.cut_top(20.0 * scale);
            let name = row.cut_left(76.0 * scale);
            ui.small(name, Left, INK, key);
            ui.small(row, Left, FAINT, words);
        }
        rect.cut_top(8.0 * scale);
    }
}
