//! [`Hands`]: the inputs and orders of each local player.

use glam::Vec2;
use powderkeg_game::{Heading, Pad};

use super::{Board, Button, Stick, WindowAct};

const REST: f32 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeatOrder {
    Dash,
    Light,
    Ready,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MouseView {
    /// The player's position, in pixels. `None` if the player is not shown.
    pub(crate) player: Option<Vec2>,
    pub(crate) seats: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Hands {
    pub(crate) pads: Vec<Pad>,
    pub(crate) orders: Vec<(usize, SeatOrder)>,
    mouse_aims: bool,
    mouse: Vec2,
    aimed: Heading,
}

impl Hands {
    pub(crate) fn read(&mut self, board: &Board, sticks: &[Stick], view: MouseView) {
        self.orders.clear();
        self.pads.clear();
        let shares = view.seats < 2;
        let first = sticks.first();
        let own = first.filter(|_| shares);
        let mut pad = self.read_keys(board, own, view);
        if let Some(stick) = own {
            merge(&mut pad, stick);
            self.order_by(0, stick);
        }
        self.pads.push(pad);
        for (seat, stick) in
            (1..view.seats).zip(sticks.iter().map(Some).chain(std::iter::repeat(None)))
        {
            let pad = match stick {
                Some(stick) => {
                    let mut pad = Pad::default();
                    merge(&mut pad, stick);
                    self.order_by(seat, stick);
                    pad
                }
                None if seat == 1 => self.read_arrows(board),
                None => Pad::default(),
            };
            self.pads.push(pad);
        }
    }

    fn read_keys(&mut self, board: &Board, stick: Option<&Stick>, view: MouseView) -> Pad {
        let mut walk = ways(WAYS, |act| board.holds(act));
        let mut fires = board.holds(WindowAct::Fire) || board.button;
        // A single player may use both sides of the keyboard.
        if view.seats < 2 {
            walk += ways(SECOND_WAYS, |act| board.holds(act));
            fires |= board.holds(WindowAct::SecondFire);
        }
        // The most recently used device aims.
        if board.mouse != self.mouse || board.button {
            self.mouse_aims = true;
        } else if stick.is_some_and(|stick| stick.right.length() > REST) {
            self.mouse_aims = false;
        }
        self.mouse = board.mouse;
        let aim = match view.player {
            // The screen's y axis points down.
            Some(player) if self.mouse_aims => {
                Heading::toward((board.mouse - player) * Vec2::new(1.0, -1.0))
            }
            _ => Heading::NONE,
        };
        for (act, order) in [
            (WindowAct::Dash, SeatOrder::Dash),
            (WindowAct::Light, SeatOrder::Light),
            (WindowAct::Ready, SeatOrder::Ready),
        ] {
            if board.pressed(act) {
                self.orders.push((0, order));
            }
        }
        if view.seats < 2 && board.pressed(WindowAct::SecondReady) {
            self.orders.push((0, SeatOrder::Ready));
        }
        Pad {
            walk: Heading::toward(walk),
            aim,
            buttons: if fires { Pad::FIRE } else { 0 },
        }
    }

    pub(crate) fn aims_by_mouse(&self) -> bool {
        self.mouse_aims
    }

    /// Reads the arrow keys. Without a second stick the player aims where it walks; fire holds the aim.
    fn read_arrows(&mut self, board: &Board) -> Pad {
        let walk = Heading::toward(ways(SECOND_WAYS, |act| board.holds(act)));
        let fires = board.holds(WindowAct::SecondFire);
        if walk != Heading::NONE && !fires {
            self.aimed = walk;
        }
        for (act, order) in [
            (WindowAct::SecondDash, SeatOrder::Dash),
            (WindowAct::SecondLight, SeatOrder::Light),
            (WindowAct::SecondReady, SeatOrder::Ready),
        ] {
            if board.pressed(act) {
                self.orders.push((1, order));
            }
        }
        Pad {
            walk,
            aim: self.aimed,
            buttons: if fires { Pad::FIRE } else { 0 },
        }
    }

    fn order_by(&mut self, seat: usize, stick: &Stick) {
        for (button, order) in [
            (Button::South, SeatOrder::Dash),
            (Button::West, SeatOrder::Light),
            (Button::Start, SeatOrder::Ready),
        ] {
            if stick.pressed(button) {
                self.orders.push((seat, order));
            }
        }
    }
}

const WAYS: [WindowAct; 4] = [
    WindowAct::Up,
    WindowAct::Left,
    WindowAct::Down,
    WindowAct::Right,
];
const SECOND_WAYS: [WindowAct; 4] = [
    WindowAct::SecondUp,
    WindowAct::SecondLeft,
    WindowAct::SecondDown,
    WindowAct::SecondRight,
];
const CROSS: [Button; 4] = [Button::Up, Button::Left, Button::Down, Button::Right];

fn merge(pad: &mut Pad, stick: &Stick) {
    let cross = ways(CROSS, |button| stick.holds(button));
    if stick.left.length() > REST {
        pad.walk = Heading::toward(stick.left);
    } else if cross != Vec2::ZERO {
        pad.walk = Heading::toward(cross);
    }
    if stick.right.length() > REST {
        pad.aim = Heading::toward(stick.right);
    }
    if stick.holds(Button::Fire) {
        pad.buttons |= Pad::FIRE;
    }
}

fn ways<T>([up, left, down, right]: [T; 4], holds: impl Fn(T) -> bool) -> Vec2 {
    let way = |which, way: Vec2| if holds(which) { way } else { Vec2::ZERO };
    way(up, Vec2::Y) + way(left, -Vec2::X) + way(down, -Vec2::Y) + way(right, Vec2::X)
}

#[cfg(test)]
mod tests {
    use glam::vec2;

    use super::*;

    const ALONE: MouseView = MouseView {
        player: Some(vec2(100.0, 100.0)),
        seats: 1,
    };
    const TWO: MouseView = MouseView { seats: 2, ..ALONE };

    fn read(acts: &[WindowAct], sticks: &[Stick], view: MouseView) -> Hands {
        let mut hands = Hands::default();
        hands.read(&Board::with(acts), sticks, view);
        hands
    }

    fn toward(x: f32, y: f32) -> Heading {
        Heading::toward(vec2(x, y))
    }

    #[test]
    fn keys_add_up_and_opposite_keys_cancel() {
        assert_eq!(
            read(&[WindowAct::Up, WindowAct::Right], &[], ALONE).pads[0].walk,
            toward(1.0, 1.0)
        );
        assert_eq!(
            read(&[WindowAct::Left, WindowAct::Right], &[], ALONE).pads[0].walk,
            Heading::NONE
        );
        assert_eq!(
            read(&[WindowAct::SecondUp], &[], ALONE).pads[0].walk,
            toward(0.0, 1.0)
        );
    }

    #[test]
    fn the_mouse_aims_from_the_players_screen_position_once_it_has_moved() {
        let mut hands = Hands::default();
        let mut board = Board::default();
        hands.read(&board, &[], ALONE);
        assert_eq!(hands.pads[0].aim, Heading::NONE, "not touched yet");
        board.mouse = vec2(100.0, 40.0);
        hands.read(&board, &[], ALONE);
        assert_eq!(hands.pads[0].aim, toward(0.0, 1.0), "above is up");
        let mut stick = Stick::default();
        stick.right = vec2(-1.0, 0.0);
        hands.read(&board, &[stick], ALONE);
        assert_eq!(
            hands.pads[0].aim,
            toward(-1.0, 0.0),
            "whichever was moved last"
        );
    }

    #[test]
    fn the_second_seat_uses_the_gamepad_or_otherwise_the_arrow_keys() {
        let mut stick = Stick::default();
        stick.left = vec2(0.0, 1.0);
        stick.hold(vec![Button::Fire]);
        let hands = read(&[WindowAct::Right], &[stick.clone()], TWO);
        assert_eq!(hands.pads[0].walk, toward(1.0, 0.0));
        assert_eq!(hands.pads[1].walk, toward(0.0, 1.0));
        assert!(hands.pads[1].fires() && !hands.pads[0].fires());
        let hands = read(&[WindowAct::SecondLeft, WindowAct::Up], &[], TWO);
        assert_eq!(
            (hands.pads[0].walk, hands.pads[1].walk),
            (toward(0.0, 1.0), toward(-1.0, 0.0))
        );
        assert_eq!(
            hands.pads[1].aim,
            toward(-1.0, 0.0),
            "one aims where one walks"
        );
    }

    #[test]
    fn an_order_is_issued_once_for_the_seat_of_its_key() {
        assert_eq!(
            read(&[WindowAct::Dash, WindowAct::Ready], &[], ALONE).orders,
            [(0, SeatOrder::Dash), (0, SeatOrder::Ready)]
        );
        assert_eq!(
            read(&[WindowAct::SecondReady], &[], TWO).orders,
            [(1, SeatOrder::Ready)]
        );
        let mut stick = Stick::default();
        stick.hold(vec![Button::South]);
        assert_eq!(
            read(&[], &[stick.clone()], TWO).orders,
            [(1, SeatOrder::Dash)]
        );
        assert_eq!(read(&[], &[stick], ALONE).orders, [(0, SeatOrder::Dash)]);
    }

    #[test]
    fn the_dpad_walks_while_the_stick_is_at_rest() {
        let mut stick = Stick::default();
        stick.hold(vec![Button::Up, Button::Left]);
        let walk = |stick: &Stick| read(&[], std::slice::from_ref(stick), ALONE).pads[0].walk;
        assert_eq!(walk(&stick), toward(-1.0, 1.0));
        stick.left = vec2(1.0, 0.0);
        assert_eq!(walk(&stick), toward(1.0, 0.0));
    }

    #[test]
    fn a_stick_near_its_middle_is_at_rest() {
        let mut stick = Stick::default();
        stick.left = vec2(0.1, 0.1);
        assert_eq!(read(&[], &[stick], ALONE).pads[0].walk, Heading::NONE);
    }
}
