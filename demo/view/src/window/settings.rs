//! [`Settings`]: what the player can change while the match goes on. [`Keeper`](super::keeper::Keeper) stores them for
//! the next match.

use super::input::Bindings;
use super::palette::ColorMode;

/// Steps of volume and shake.
const STEPS: f32 = 10.0;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// 0 ..= 1.
    pub(crate) volume: f32,
    /// 0 ..= 1.
    pub(crate) shake: f32,
    pub(crate) colors: ColorMode,
    /// Names over the players.
    pub(crate) names: bool,
    pub(crate) keys: Bindings,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            volume: 0.7,
            shake: 0.8,
            colors: ColorMode::default(),
            names: true,
            keys: Bindings::default(),
        }
    }
}

impl Settings {
    pub(crate) fn change_volume(&mut self, steps: i32) {
        self.volume = stepped(self.volume, steps);
    }

    pub(crate) fn change_shake(&mut self, steps: i32) {
        self.shake = stepped(self.shake, steps);
    }

    pub(crate) fn change_colors(&mut self, steps: i32) {
        let all = ColorMode::ALL;
        let at = all
            .iter()
            .position(|mode| *mode == self.colors)
            .unwrap_or(0) as i32;
        self.colors = all[(at + steps).rem_euclid(all.len() as i32) as usize];
    }
}

fn stepped(value: f32, steps: i32) -> f32 {
    (libm::roundf(value * STEPS) + steps as f32).clamp(0.0, STEPS) / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_from_end_to_end_in_whole_steps() {
        let mut settings = Settings::default();
        (0..20).for_each(|_| settings.change_volume(1));
        assert_eq!(settings.volume, 1.0);
        settings.change_volume(-1);
        assert_eq!(settings.volume, 0.9);
        (0..20).for_each(|_| settings.change_shake(-1));
        assert_eq!(settings.shake, 0.0);
        settings.change_colors(-1);
        assert_eq!(settings.colors, ColorMode::Gray);
        settings.change_colors(1);
        assert_eq!(settings.colors, ColorMode::Safe);
    }
}
