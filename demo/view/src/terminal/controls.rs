//! The keys of a replay: pause, speed, seek.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::feed::Playback;

pub(super) fn apply(key: &KeyEvent, replay: &mut Playback) -> bool {
    if key.kind == KeyEventKind::Release {
        return false;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return key.code == KeyCode::Char('c');
    }
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => return true,
        KeyCode::Char(' ') => replay.toggle_pause(),
        KeyCode::Char('+' | '=') | KeyCode::Up => replay.set_speed(replay.speed().faster()),
        KeyCode::Char('-') | KeyCode::Down => replay.set_speed(replay.speed().slower()),
        KeyCode::Right => replay.skip_seconds(5),
        KeyCode::Left => replay.skip_seconds(-5),
        KeyCode::PageDown => replay.skip_seconds(60),
        KeyCode::PageUp => replay.skip_seconds(-60),
        KeyCode::Char('.') => replay.nudge(1),
        KeyCode::Char(',') => replay.nudge(-1),
        KeyCode::Home => replay.seek_part(0.0),
        KeyCode::End => replay.seek_part(1.0),
        KeyCode::Char(digit @ '0'..='9') => replay.seek_part(f32::from(digit as u8 - b'0') / 10.0),
        _ => {}
    }
    false
}
