//! The keys of a replay: pause, speed, seek.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::feed::Playback;

/// What a key does to a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Stand, or go on.
    Pause,
    /// The next faster speed.
    Faster,
    /// The next slower speed.
    Slower,
    /// So many seconds on, or back.
    Seconds(i32),
    /// So many ticks on, or back, and stand there.
    Ticks(i32),
    /// To so many tenths of the whole.
    Tenths(u8),
    /// End.
    Quit,
}

/// What a key means.
pub(super) fn control(key: &KeyEvent) -> Option<Control> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Control::Quit);
    }
    Some(match key.code {
        KeyCode::Char(' ') => Control::Pause,
        KeyCode::Char('+' | '=') | KeyCode::Up => Control::Faster,
        KeyCode::Char('-') | KeyCode::Down => Control::Slower,
        KeyCode::Right => Control::Seconds(5),
        KeyCode::Left => Control::Seconds(-5),
        KeyCode::PageDown => Control::Seconds(60),
        KeyCode::PageUp => Control::Seconds(-60),
        KeyCode::Char('.') => Control::Ticks(1),
        KeyCode::Char(',') => Control::Ticks(-1),
        KeyCode::Home => Control::Tenths(0),
        KeyCode::End => Control::Tenths(10),
        KeyCode::Char(digit @ '0'..='9') => Control::Tenths(digit as u8 - b'0'),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Control::Quit,
        _ => return None,
    })
}

impl Control {
    /// Does it; whether that is the end.
    pub(super) fn apply(self, replay: &mut Playback) -> bool {
        match self {
            Control::Pause => replay.toggle_pause(),
            Control::Faster => replay.set_speed(replay.speed().faster()),
            Control::Slower => replay.set_speed(replay.speed().slower()),
            Control::Seconds(seconds) => replay.skip_seconds(seconds),
            Control::Ticks(ticks) => replay.nudge(ticks),
            Control::Tenths(tenths) => replay.seek_part(f32::from(tenths) / 10.0),
            Control::Quit => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pause_seek_step_and_change_the_speed() {
        let press = |code| control(&KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(press(KeyCode::Char(' ')), Some(Control::Pause));
        assert_eq!(press(KeyCode::Left), Some(Control::Seconds(-5)));
        assert_eq!(press(KeyCode::Char(',')), Some(Control::Ticks(-1)));
        assert_eq!(press(KeyCode::Char('7')), Some(Control::Tenths(7)));
        assert_eq!(press(KeyCode::Char('+')), Some(Control::Faster));
        assert_eq!(press(KeyCode::Char('w')), None);
        let release = KeyEvent::new_with_kind(
            KeyCode::Char(' '),
            KeyModifiers::NONE,
            KeyEventKind::Release,
        );
        assert_eq!(control(&release), None);
    }
}
