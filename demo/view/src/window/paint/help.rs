//! F1: what each key does, and what the overlays show.

use glam::vec2;

use super::picture::WindowPicture;
use super::ui::{Align, Ui};
use crate::window::atlas::Type;
use crate::window::input::WindowAct;
use crate::window::palette::{ACCENT, FAINT, INK};
use crate::window::rect::Rect;

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scale = ui.scale;
    let rect = ui.inside().middle_part(vec2(780.0, 496.0) * scale);
    ui.panel(rect);
    let mut inside = ui.heading(rect.shrunk(22.0 * scale), "HELP");
    let foot = inside.cut_bottom(20.0 * scale);
    ui.text(
        foot,
        Align::Left,
        Type::Small,
        FAINT,
        "Nothing of this pauses the match. F1 or Esc closes it.",
    );
    inside.cut_bottom(8.0 * scale);
    let mut left = inside.cut_left(inside.size.x * 0.46);
    inside.cut_left(20.0 * scale);
    let keys = &picture.settings.keys;
    let key = |act| keys.name(act);
    let walk = keys.names([
        WindowAct::Up,
        WindowAct::Left,
        WindowAct::Down,
        WindowAct::Right,
    ]);
    column(
        ui,
        &mut left,
        "PLAY",
        &[
            (walk, "walk"),
            ("mouse".to_owned(), "aim; left button fires"),
            (key(WindowAct::Dash), "dash, and be safe for a moment"),
            (key(WindowAct::Light), "light the nearest barrel"),
            (key(WindowAct::Ready), "ready; another round"),
            (key(WindowAct::Settings), "settings, keys, colours"),
        ],
    );
    left.cut_top(10.0 * scale);
    column(
        ui,
        &mut left,
        "GAMEPAD, OR SECOND SEAT",
        &[
            ("sticks".to_owned(), "walk and aim"),
            ("RT RB".to_owned(), "fire"),
            ("A · X".to_owned(), "dash · light"),
            ("Start".to_owned(), "ready; Select opens settings"),
        ],
    );
    left.cut_top(10.0 * scale);
    let second = [
        WindowAct::SecondUp,
        WindowAct::SecondLeft,
        WindowAct::SecondDown,
        WindowAct::SecondRight,
    ];
    column(
        ui,
        &mut left,
        "SECOND SEAT WITHOUT A GAMEPAD",
        &[
            (keys.names(second), "walk, and aim there"),
            (key(WindowAct::SecondFire), "fire, and hold the aim"),
            (key(WindowAct::SecondDash), "dash"),
            (key(WindowAct::SecondLight), "light the nearest barrel"),
            (key(WindowAct::SecondReady), "ready"),
        ],
    );
    column(
        ui,
        &mut inside,
        "SEE THE NETWORK",
        &[
            (
                key(WindowAct::Ghosts),
                "outlines: where the server's world is by now",
            ),
            (
                key(WindowAct::Netgraph),
                "netgraph: ten seconds of the link",
            ),
            (
                key(WindowAct::Link),
                "next link: perfect, lan, wan, bad, awful",
            ),
            (key(WindowAct::Prediction), "prediction off: plain lockstep"),
            (
                key(WindowAct::Smoothing),
                "smoothing off: see the corrections",
            ),
            (key(WindowAct::Save), "save a replay of this match"),
            (key(WindowAct::Screenshot), "save a picture"),
            (key(WindowAct::Quit), "close, leave"),
        ],
    );
    inside.cut_top(10.0 * scale);
    column(
        ui,
        &mut inside,
        "REPLAYS",
        &[
            (key(WindowAct::Dash), "pause, go on"),
            (
                keys.names([WindowAct::Left, WindowAct::Right]),
                "back, on by five seconds",
            ),
            (
                keys.names([WindowAct::Up, WindowAct::Down]),
                "faster, slower; the bar seeks",
            ),
        ],
    );
}

fn column(ui: &mut Ui<'_>, rect: &mut Rect, title: &str, rows: &[(String, &str)]) {
    let scale = ui.scale;
    let line = rect.cut_top(22.0 * scale);
    ui.text(line, Align::Left, Type::Small, ACCENT, title);
    for (key, words) in rows {
        let mut row = rect.cut_top(20.0 * scale);
        let name = row.cut_left(76.0 * scale);
        ui.text(name, Align::Left, Type::Small, INK, key);
        ui.text(row, Align::Left, Type::Small, FAINT, words);
    }
}
