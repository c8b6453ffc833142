//! [`Screens`]: the open screens and overlays, and their keys. An overlay pauses a lone player's match.

use super::input::{Board, Button, Stick, WindowAct};
use super::rect::Rect;
use super::settings::{SettingRow, Settings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    Help,
    Settings,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Screens {
    pub(crate) title: bool,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) ghosts: bool,
    pub(crate) netgraph: bool,
    pub(crate) netgraph_at: usize,
    pub(crate) row: usize,
    /// Whether the gamepad was used last, so that help texts name its buttons.
    pub(crate) by_gamepad: bool,
    pub(crate) closing: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    NextLink,
    Prediction,
    Smoothing,
    Pause,
    Save,
    Screenshot,
    Fullscreen,
    Mute,
    Ghosts,
    Netgraph,
    Quit,
    Click,
    Settings,
}

impl Screens {
    /// Returns `true` if a key pressed now belongs to a screen, not to the player.
    pub(crate) fn takes_keys(&self) -> bool {
        self.title || self.closing.is_some() || self.is_settling()
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.overlay == Some(Overlay::Settings)
    }

    /// Returns `true` if the mouse is a pointer, and does not aim.
    pub(crate) fn points(&self) -> bool {
        self.title || self.closing.is_some() || self.overlay.is_some()
    }

    pub(crate) fn handle(
        &mut self,
        board: &Board,
        sticks: &[Stick],
        settings: &mut Settings,
        screen: Rect,
    ) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let on_stick = |button| sticks.iter().any(|stick| stick.pressed(button));
        if board.is_touched || board.clicked {
            self.by_gamepad = false;
        } else if sticks.iter().any(Stick::is_touched) {
            self.by_gamepad = true;
        }
        for (act, wish) in [
            (WindowAct::Link, Wish::NextLink),
            (WindowAct::Prediction, Wish::Prediction),
            (WindowAct::Smoothing, Wish::Smoothing),
            (WindowAct::Pause, Wish::Pause),
            (WindowAct::Save, Wish::Save),
            (WindowAct::Screenshot, Wish::Screenshot),
            (WindowAct::Fullscreen, Wish::Fullscreen),
            (WindowAct::Mute, Wish::Mute),
            (WindowAct::Ghosts, Wish::Ghosts),
            (WindowAct::Netgraph, Wish::Netgraph),
        ] {
            if board.pressed(act) {
                wishes.push(wish);
            }
        }
        self.ghosts ^= board.pressed(WindowAct::Ghosts);
        self.netgraph ^= board.pressed(WindowAct::Netgraph);
        for (is_pressed, overlay) in [
            (board.pressed(WindowAct::Help), Overlay::Help),
            (
                board.pressed(WindowAct::Settings) || on_stick(Button::Select),
                Overlay::Settings,
            ),
        ] {
            if is_pressed {
                self.overlay = (self.overlay != Some(overlay)).then_some(overlay);
                wishes.push(Wish::Click);
            }
        }
        if board.pressed(WindowAct::Quit) {
            match self.overlay.take() {
                Some(_) => wishes.push(Wish::Click),
                None => wishes.push(Wish::Quit),
            }
        } else if on_stick(Button::East) && self.overlay.take().is_some() {
            wishes.push(Wish::Click);
        } else if self.overlay == Some(Overlay::Settings) {
            self.change(board, sticks, settings, screen, &mut wishes);
        } else if self.title && self.begins(board, sticks) {
            self.title = false;
            wishes.push(Wish::Click);
        }
        wishes
    }

    fn begins(&self, board: &Board, sticks: &[Stick]) -> bool {
        board.clicked
            || board.pressed(WindowAct::SecondReady)
            || board.pressed(WindowAct::Dash)
            || self.overlay.is_none() && sticks.iter().any(Stick::begins)
    }

    pub(crate) fn settings_foot(&self, is_alone: bool) -> String {
        let how = match self.by_gamepad {
            false => "arrows choose and change, Tab or Esc closes",
            true => "the D-pad chooses and changes, B or Select closes",
        };
        let goes_on = if is_alone { "waits" } else { "continues" };
        format!("{how}; the match {goes_on}")
    }

    fn change(
        &mut self,
        board: &Board,
        sticks: &[Stick],
        settings: &mut Settings,
        screen: Rect,
        wishes: &mut Vec<Wish>,
    ) {
        let pressed = |acts: [WindowAct; 2], button| {
            acts.into_iter().any(|act| board.pressed(act))
                || sticks.iter().any(|stick| stick.pressed(button))
        };
        let (rows, row) = (SettingRow::ALL.len(), self.row);
        if pressed([WindowAct::Down, WindowAct::SecondDown], Button::Down) {
            self.row = (self.row + 1) % rows;
        }
        if pressed([WindowAct::Up, WindowAct::SecondUp], Button::Up) {
            self.row = (self.row + rows - 1) % rows;
        }
        let less = pressed([WindowAct::Left, WindowAct::SecondLeft], Button::Left);
        let mut more = pressed([WindowAct::Right, WindowAct::SecondRight], Button::Right);
        let mut enters = pressed([WindowAct::Dash, WindowAct::SecondReady], Button::South);
        let mut places = SettingRow::places(screen, settings.scale(screen.size)).into_iter();
        let under = places.position(|rect| rect.contains(board.mouse));
        if let Some(row) = under.filter(|_| board.clicked) {
            self.row = row;
            enters = true;
        }
        more |= enters && !less;
        if more != less {
            settings.change(SettingRow::ALL[self.row], more, enters);
            wishes.push(Wish::Settings);
        } else if self.row != row {
            wishes.push(Wish::Click);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Rect = Rect::new(0.0, 0.0, 1_280.0, 720.0);

    fn press(screens: &mut Screens, settings: &mut Settings, acts: &[WindowAct]) -> Vec<Wish> {
        screens.handle(&Board::with(acts), &[], settings, SCREEN)
    }

    #[test]
    fn an_overlay_key_toggles_its_overlay_and_escape_closes_it_before_quitting() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        press(&mut screens, &mut settings, &[WindowAct::Help]);
        assert_eq!(screens.overlay, Some(Overlay::Help));
        press(&mut screens, &mut settings, &[WindowAct::Settings]);
        assert_eq!(screens.overlay, Some(Overlay::Settings));
        assert!(!press(&mut screens, &mut settings, &[WindowAct::Quit]).contains(&Wish::Quit));
        assert_eq!(screens.overlay, None);
        assert_eq!(
            press(&mut screens, &mut settings, &[WindowAct::Quit]),
            [Wish::Quit]
        );
    }

    #[test]
    fn keys_toggle_ghosts_and_netgraph_and_other_keys_become_wishes() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        press(
            &mut screens,
            &mut settings,
            &[WindowAct::Ghosts, WindowAct::Netgraph],
        );
        assert!(screens.ghosts && screens.netgraph);
        press(&mut screens, &mut settings, &[WindowAct::Ghosts]);
        assert!(!screens.ghosts && screens.netgraph);
        let wishes = press(
            &mut screens,
            &mut settings,
            &[
                WindowAct::Link,
                WindowAct::Prediction,
                WindowAct::Smoothing,
                WindowAct::Save,
                WindowAct::Screenshot,
                WindowAct::Fullscreen,
                WindowAct::Mute,
            ],
        );
        assert_eq!(
            wishes,
            [
                Wish::NextLink,
                Wish::Prediction,
                Wish::Smoothing,
                Wish::Save,
                Wish::Screenshot,
                Wish::Fullscreen,
                Wish::Mute,
            ]
        );
    }

    #[test]
    fn settings_are_changed_row_by_row_during_the_match() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        press(&mut screens, &mut settings, &[WindowAct::Settings]);
        assert!(screens.takes_keys());
        press(&mut screens, &mut settings, &[WindowAct::SecondLeft]);
        assert!(settings.volume() < Settings::default().volume());
        for _ in 0..4 {
            press(&mut screens, &mut settings, &[WindowAct::SecondDown]);
        }
        press(&mut screens, &mut settings, &[WindowAct::SecondReady]);
        assert!(!settings.names);
    }

    #[test]
    fn a_click_on_a_row_changes_it() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        press(&mut screens, &mut settings, &[WindowAct::Settings]);
        let mut board = Board::with(&[]);
        board.mouse = SettingRow::places(SCREEN, 1.0)[4].middle();
        board.clicked = true;
        screens.handle(&board, &[], &mut settings, SCREEN);
        assert!(!settings.names);
    }

    fn touch(screens: &mut Screens, settings: &mut Settings, button: Button) -> Vec<Wish> {
        let mut stick = Stick::default();
        stick.hold(vec![button]);
        screens.handle(&Board::default(), &[stick], settings, SCREEN)
    }

    #[test]
    fn a_gamepads_button_starts_unless_an_overlay_covers_the_title() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        let wishes = touch(&mut screens, &mut settings, Button::Start);
        assert!(wishes.is_empty(), "there is no title");
        (screens.title, screens.overlay) = (true, Some(Overlay::Help));
        touch(&mut screens, &mut settings, Button::Start);
        assert!(screens.title && screens.points());
        touch(&mut screens, &mut settings, Button::East);
        assert!(screens.overlay.is_none() && screens.title);
        let wishes = touch(&mut screens, &mut settings, Button::Start);
        assert!(!screens.title && wishes == [Wish::Click] && !screens.points());
    }

    #[test]
    fn settings_can_be_changed_by_gamepad_and_the_help_names_its_buttons() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        press(&mut screens, &mut settings, &[WindowAct::Settings]);
        assert!(screens.settings_foot(false).starts_with("arrows"));
        touch(&mut screens, &mut settings, Button::Left);
        assert!(settings.volume() < Settings::default().volume());
        assert!(screens.settings_foot(false).contains("the D-pad"));
        touch(&mut screens, &mut settings, Button::Select);
        assert!(screens.overlay.is_none());
        assert!(touch(&mut screens, &mut settings, Button::East).is_empty());
    }

    #[test]
    fn the_title_waits_for_a_start_key() {
        let (mut screens, mut settings) = (Screens::default(), Settings::default());
        screens.title = true;
        press(&mut screens, &mut settings, &[WindowAct::Ghosts]);
        assert!(screens.title);
        press(&mut screens, &mut settings, &[WindowAct::Dash]);
        assert!(!screens.title);
    }
}
