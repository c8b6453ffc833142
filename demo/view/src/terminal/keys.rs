//! Turns keys into a pad, with and without reports of key releases.
//!
//! ```text
//!   releases reported (kitty protocol, Windows)     held keys add up: W + D walk north-east
//!   only presses reported                           a press holds its direction until another press or X;
//!                                                   space turns the fire on and off
//! ```
//!
//! Invariant: held keys change only in [`Keys::handle`]; a pad can be sampled any number of times.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use glam::Vec2;
use powderkeg_game::{Heading, Pad};

/// On terminals that do not report releases, a second press of space within this time counts as a repeat of the held
/// key.
const REPEAT: Duration = Duration::from_millis(600);
/// The minimum time between two orders to dash or light. Without it, a held key would send a flood of orders.
const ORDER_REST: Duration = Duration::from_millis(150);
/// The angle by which U and O turn the aim, in 255ths of a circle.
const AIM_TURN: i32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalAct {
    Light,
    Dash,
    Ready,
    Pause,
    Save,
    Link(usize),
    Ghosts,
    Predicts,
    Smooths,
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyboardPart {
    Both,
    /// Letters, space, and the shared keys, if two players share the keyboard.
    Left,
    /// Arrows walk and aim, Enter fires, `,` and `.` turn the aim, `/` dashes, `-` lights a barrel.
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    North,
    West,
    South,
    East,
}

impl Way {
    fn unit(self) -> Vec2 {
        match self {
            Way::North => Vec2::Y,
            Way::West => -Vec2::X,
            Way::South => -Vec2::Y,
            Way::East => Vec2::X,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Walk(Way),
    Aim(Way),
    Stride(Way),
    Turn(i32),
    Fire,
    Stop,
    Act(TerminalAct),
}

fn meaning(key: &KeyEvent, hands: KeyboardPart) -> Option<Meaning> {
    use KeyCode::{Char, Down, Enter, Esc, F, Left, Right, Up};
    use Meaning::{Act, Aim, Fire, Stop, Stride, Turn, Walk};

    let code = match key.code {
        Char(letter) => Char(letter.to_ascii_lowercase()),
        code => code,
    };
    if hands == KeyboardPart::Right {
        return Some(match code {
            Up => Stride(Way::North),
            Left => Stride(Way::West),
            Down => Stride(Way::South),
            Right => Stride(Way::East),
            Enter => Fire,
            Char(',') => Turn(AIM_TURN),
            Char('.') => Turn(-AIM_TURN),
            Char('/') => Act(TerminalAct::Dash),
            Char('-') => Act(TerminalAct::Light),
            _ => return None,
        });
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (code == Char('c')).then_some(Act(TerminalAct::Quit));
    }
    Some(match code {
        Up | Left | Down | Right if hands == KeyboardPart::Left => return None,
        Char('w') | Up => Walk(Way::North),
        Char('a') | Left => Walk(Way::West),
        Char('s') | Down => Walk(Way::South),
        Char('d') | Right => Walk(Way::East),
        Char('i') => Aim(Way::North),
        Char('j') => Aim(Way::West),
        Char('k') => Aim(Way::South),
        Char('l') => Aim(Way::East),
        Char('u') => Turn(AIM_TURN),
        Char('o') => Turn(-AIM_TURN),
        Char(' ') => Fire,
        Char('x') => Stop,
        Char('e') => Act(TerminalAct::Light),
        Char('c') => Act(TerminalAct::Dash),
        Char('g') => Act(TerminalAct::Ghosts),
        Char('r') => Act(TerminalAct::Ready),
        Char('b') | KeyCode::Pause => Act(TerminalAct::Pause),
        Char('v') | F(9) => Act(TerminalAct::Save),
        Char('p') => Act(TerminalAct::Predicts),
        Char('m') => Act(TerminalAct::Smooths),
        Char('q') | Esc => Act(TerminalAct::Quit),
        Char(digit @ '1'..='5') => Act(TerminalAct::Link(usize::from(digit as u8 - b'1'))),
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct HeldKeys([bool; 4]);

impl HeldKeys {
    fn set(&mut self, way: Way, is_down: bool, releases: bool) {
        if !releases {
            *self = HeldKeys::default();
        }
        self.0[way as usize] = is_down;
    }

    fn heading(&self) -> Heading {
        let ways = [Way::North, Way::West, Way::South, Way::East];
        let held = ways.into_iter().filter(|way| self.0[*way as usize]);
        Heading::toward(held.map(Way::unit).sum())
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    releases: bool,
    walk: HeldKeys,
    aim: HeldKeys,
    aimed: Heading,
    /// Whether the player has turned the aim with the turn keys. The aim then keeps its direction until an aim key is
    /// pressed.
    is_turned: bool,
    fire: bool,
    space_at: Option<Duration>,
    order_at: Option<Duration>,
}

impl Keys {
    #[must_use]
    pub(super) fn new(releases: bool) -> Keys {
        Keys {
            releases,
            walk: HeldKeys::default(),
            aim: HeldKeys::default(),
            aimed: Heading::EAST,
            is_turned: false,
            fire: false,
            space_at: None,
            order_at: None,
        }
    }

    pub(super) fn handle(
        &mut self,
        now: Duration,
        key: &KeyEvent,
        hands: KeyboardPart,
    ) -> Option<TerminalAct> {
        let down = key.kind != KeyEventKind::Release;
        match meaning(key, hands)? {
            Meaning::Walk(way) if down || self.releases => self.walk.set(way, down, self.releases),
            Meaning::Aim(way) if down || self.releases => {
                self.aim.set(way, down, self.releases);
                self.update_aim();
            }
            Meaning::Stride(way) if down || self.releases => {
                self.walk.set(way, down, self.releases);
                if self.walk.heading() != Heading::NONE {
                    self.aim = self.walk;
                    self.update_aim();
                }
            }
            Meaning::Turn(steps) if down => {
                self.aimed = self.aimed.turned(steps);
                self.is_turned = true;
            }
            Meaning::Fire if self.releases => self.fire = down,
            Meaning::Fire if down => self.toggle_fire(now),
            Meaning::Stop if down => self.release_all(),
            Meaning::Act(act) if key.kind == KeyEventKind::Press => {
                return self.rate_limited(now, act);
            }
            _ => {}
        }
        None
    }

    pub(super) fn release_all(&mut self) {
        *self = Keys {
            aimed: self.aimed,
            order_at: self.order_at,
            ..Keys::new(self.releases)
        };
    }

    #[must_use]
    pub(super) fn pad(&self) -> Pad {
        Pad {
            walk: self.walk.heading(),
            aim: if self.is_turned {
                self.aimed
            } else {
                self.aim.heading()
            },
            buttons: if self.fire { Pad::FIRE } else { 0 },
        }
    }

    /// Sets the direction that the player faces in the game, from which the aim is turned.
    pub(super) fn face(&mut self, facing: Heading) {
        if !self.is_turned {
            self.aimed = facing;
        }
    }

    fn update_aim(&mut self) {
        let heading = self.aim.heading();
        if heading != Heading::NONE {
            self.aimed = heading;
            self.is_turned = false;
        }
    }

    fn toggle_fire(&mut self, now: Duration) {
        let repeats = self
            .space_at
            .is_some_and(|at| now.saturating_sub(at) < REPEAT);
        self.space_at = Some(now);
        if !repeats {
            self.fire = !self.fire;
        }
    }

    fn rate_limited(&mut self, now: Duration, act: TerminalAct) -> Option<TerminalAct> {
        if !matches!(act, TerminalAct::Light | TerminalAct::Dash) {
            return Some(act);
        }
        let rests = self
            .order_at
            .is_some_and(|at| now.saturating_sub(at) < ORDER_REST);
        self.order_at = Some(now);
        (!rests).then_some(act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(code: KeyCode, kind: KeyEventKind) -> KeyEvent {
        KeyEvent::new_with_kind(code, KeyModifiers::NONE, kind)
    }

    fn press(keys: &mut Keys, ms: u64, letter: char) -> Option<TerminalAct> {
        let key = event(KeyCode::Char(letter), KeyEventKind::Press);
        keys.handle(Duration::from_millis(ms), &key, KeyboardPart::Both)
    }

    fn release(keys: &mut Keys, letter: char) {
        let key = event(KeyCode::Char(letter), KeyEventKind::Release);
        assert_eq!(keys.handle(Duration::ZERO, &key, KeyboardPart::Both), None);
    }

    fn toward(x: f32, y: f32) -> Heading {
        Heading::toward(Vec2::new(x, y))
    }

    #[test]
    fn without_releases_a_press_holds_its_direction_until_another_press_or_the_stop_key() {
        let mut keys = Keys::new(false);
        press(&mut keys, 0, 'w');
        assert_eq!(keys.pad().walk, toward(0.0, 1.0));
        press(&mut keys, 2_000, 'l');
        assert_eq!(keys.pad().walk, toward(0.0, 1.0), "an aim is no walk");
        keys.handle(
            Duration::ZERO,
            &event(KeyCode::Right, KeyEventKind::Press),
            KeyboardPart::Both,
        );
        assert_eq!(keys.pad().walk, toward(1.0, 0.0));
        press(&mut keys, 3_000, ' ');
        press(&mut keys, 4_000, 'x');
        assert!(keys.pad().is_neutral());
    }

    #[test]
    fn held_keys_add_up_until_their_releases_are_reported() {
        let mut keys = Keys::new(true);
        press(&mut keys, 0, 'W');
        press(&mut keys, 0, 'd');
        assert_eq!(keys.pad().walk, toward(1.0, 1.0));
        release(&mut keys, 'w');
        assert_eq!(keys.pad().walk, toward(1.0, 0.0));
        release(&mut keys, 'd');
        press(&mut keys, 0, ' ');
        assert!(keys.pad().fires() && keys.pad().walk == Heading::NONE);
        release(&mut keys, ' ');
        assert!(keys.pad().is_neutral());
    }

    #[test]
    fn opposite_keys_cancel_each_other() {
        let mut keys = Keys::new(true);
        press(&mut keys, 0, 'a');
        press(&mut keys, 0, 'd');
        assert_eq!(keys.pad().walk, Heading::NONE);
    }

    #[test]
    fn without_releases_space_toggles_fire_and_a_held_space_counts_once() {
        let mut keys = Keys::new(false);
        // The terminal repeats a held key after half a second, then 25 times a second.
        for ms in [0, 500, 540, 580, 620] {
            press(&mut keys, ms, ' ');
            assert!(keys.pad().fires(), "at {ms} ms");
        }
        press(&mut keys, 1_300, ' ');
        assert!(!keys.pad().fires());
    }

    #[test]
    fn the_aim_turns_from_where_the_player_faces() {
        let mut keys = Keys::new(false);
        keys.face(Heading(100));
        press(&mut keys, 0, 'u');
        assert_eq!(keys.pad().aim, Heading(116));
        press(&mut keys, 0, 'o');
        press(&mut keys, 0, 'o');
        assert_eq!(keys.pad().aim, Heading(84));
        press(&mut keys, 0, 'i');
        assert_eq!(keys.pad().aim, toward(0.0, 1.0));
    }

    #[test]
    fn an_order_is_issued_once_per_press_and_not_too_often() {
        let mut keys = Keys::new(false);
        assert_eq!(press(&mut keys, 0, 'e'), Some(TerminalAct::Light));
        assert_eq!(press(&mut keys, 40, 'e'), None);
        assert_eq!(press(&mut keys, 200, 'c'), Some(TerminalAct::Dash));
        let mut keys = Keys::new(true);
        assert_eq!(press(&mut keys, 0, 'c'), Some(TerminalAct::Dash));
        let repeat = event(KeyCode::Char('c'), KeyEventKind::Repeat);
        assert_eq!(
            keys.handle(Duration::from_secs(1), &repeat, KeyboardPart::Both),
            None
        );
        release(&mut keys, 'c');
    }

    #[test]
    fn there_are_three_ways_to_quit_and_five_links() {
        let mut keys = Keys::new(false);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for key in [
            event(KeyCode::Esc, KeyEventKind::Press),
            event(KeyCode::Char('q'), KeyEventKind::Press),
            interrupt,
        ] {
            assert_eq!(
                keys.handle(Duration::ZERO, &key, KeyboardPart::Both),
                Some(TerminalAct::Quit)
            );
        }
        assert_eq!(press(&mut keys, 0, '1'), Some(TerminalAct::Link(0)));
        assert_eq!(press(&mut keys, 0, '5'), Some(TerminalAct::Link(4)));
        assert_eq!(press(&mut keys, 0, '6'), None);
        assert_eq!(press(&mut keys, 0, 'g'), Some(TerminalAct::Ghosts));
    }

    #[test]
    fn two_players_share_a_keyboard_without_a_common_key() {
        let press = |code| event(code, KeyEventKind::Press);
        let mut right = Keys::new(false);
        for code in [KeyCode::Up, KeyCode::Enter] {
            assert_eq!(
                right.handle(Duration::ZERO, &press(code), KeyboardPart::Right),
                None
            );
        }
        let pad = right.pad();
        assert_eq!((pad.walk, pad.aim), (toward(0.0, 1.0), toward(0.0, 1.0)));
        assert!(pad.fires());
        let mut keys = Keys::new(true);
        let light = keys.handle(
            Duration::ZERO,
            &press(KeyCode::Char('-')),
            KeyboardPart::Right,
        );
        assert_eq!(light, Some(TerminalAct::Light));
        let letters = ('!'..='~').map(KeyCode::Char);
        let others = [KeyCode::Up, KeyCode::Enter, KeyCode::Esc, KeyCode::F(9)];
        for code in letters.chain(others) {
            let key = press(code);
            let both = [KeyboardPart::Left, KeyboardPart::Right].map(|hands| meaning(&key, hands));
            assert!(both.contains(&None), "{code:?}: {both:?}");
        }
    }
}
