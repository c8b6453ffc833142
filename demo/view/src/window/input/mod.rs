//! What the players at this screen do: keyboard, mouse and gamepads become pads and orders.
//!
//! ```text
//!   keyboard, mouse ──desk──▶ Board ─┐
//!                                    ├─ Hands::read ──▶ pads by seat, orders, and what concerns the view
//!   /dev/input/js* ──plugs, gamepad──▶ Stick ┘
//! ```
//!
//! The first seat has keyboard and mouse, and the gamepad too if there is no second seat. A second seat has the
//! gamepad; without one, the arrow keys.

mod bindings;
mod desk;
mod gamepad;
mod hands;
mod layout;
mod plugs;

pub(crate) use bindings::{Bindings, WindowAct};
pub(crate) use desk::{Board, read};
pub(crate) use gamepad::Stick;
pub(crate) use hands::{Hands, MouseView, SeatOrder};
pub(crate) use layout::Button;
pub(crate) use plugs::Gamepads;
