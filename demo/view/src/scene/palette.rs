//! Colours that distinguish players and enemies, even for people with a colour deficiency.
//!
//! Invariant: hue is never the only difference. Players have light hulls, enemies dark ones. Each kind of enemy has its
//! own shape, and a hue that players do not have; shots of players are long, bullets of enemies are round. The hues are
//! based on the palette of M. Okabe and K. Ito ("Color Universal Design", 2002), which people with any of the usual
//! colour deficiencies can tell apart.

use serde::{Deserialize, Serialize};

/// A colour, its opacity, and whether it is light, which adds up, or paint, which covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tint {
    pub(crate) rgb: [u8; 3],
    /// From 0 to 1.
    pub(crate) alpha: f32,
    pub(crate) is_light: bool,
}

impl Tint {
    pub(crate) const fn new(rgb: u32) -> Tint {
        Tint {
            rgb: [(rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8],
            alpha: 1.0,
            is_light: false,
        }
    }

    pub(crate) const fn alpha(self, alpha: f32) -> Tint {
        Tint { alpha, ..self }
    }

    pub(crate) const fn light(self) -> Tint {
        Tint {
            is_light: true,
            ..self
        }
    }

    pub(crate) fn mixed(self, other: Tint, part: f32) -> Tint {
        let mut rgb = self.rgb;
        for (own, other) in rgb.iter_mut().zip(other.rgb) {
            *own = (f32::from(*own) + (f32::from(other) - f32::from(*own)) * part) as u8;
        }
        Tint { rgb, ..self }
    }

    /// Returns the vertex colour for premultiplied blending. Light does not cover.
    pub(crate) fn premultiplied(self) -> [u8; 4] {
        let alpha = self.alpha.clamp(0.0, 1.0);
        let [r, g, b] = self.rgb.map(|part| (f32::from(part) * alpha) as u8);
        let cover = if self.is_light { 0.0 } else { alpha * 255.0 };
        [r, g, b, cover as u8]
    }

    /// The perceived brightness, from 0 to 1 (Rec. 709 on the encoded values: good enough to compare).
    #[cfg(test)]
    pub(crate) fn brightness(self) -> f32 {
        let [r, g, b] = self.rgb.map(f32::from);
        (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255.0
    }
}

pub(crate) const WHITE: Tint = Tint::new(0xff_ff_ff);
pub(crate) const INK: Tint = Tint::new(0xe8_ee_f4);
pub(crate) const FAINT: Tint = Tint::new(0x93_a1_b0);
pub(crate) const DIM: Tint = Tint::new(0x5b_69_78);
pub(crate) const PANEL: Tint = Tint::new(0x0b_10_17);
pub(crate) const EDGE: Tint = Tint::new(0x33_40_4f);
pub(crate) const ACCENT: Tint = Tint::new(0x56_b4_e9);
pub(crate) const GOOD: Tint = Tint::new(0x2f_c4_95);
pub(crate) const WARN: Tint = Tint::new(0xf0_b4_29);
pub(crate) const BAD: Tint = Tint::new(0xf0_6a_2a);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ColorMode {
    /// The palette of Okabe and Ito.
    #[default]
    Safe,
    /// The same hues on a nearly black floor: players and enemies are lighter, hostile shots and blasts redder.
    Contrast,
    /// Shapes and brightness only.
    Gray,
}

impl ColorMode {
    pub(crate) const ALL: [ColorMode; 3] = [ColorMode::Safe, ColorMode::Contrast, ColorMode::Gray];

    pub(crate) fn next(self, up: bool) -> ColorMode {
        let step = if up { 1 } else { ColorMode::ALL.len() - 1 };
        ColorMode::ALL[(self as usize + step) % ColorMode::ALL.len()]
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            ColorMode::Safe => "colour-blind safe",
            ColorMode::Contrast => "high contrast",
            ColorMode::Gray => "shapes only",
        }
    }

    fn of(self, tint: Tint) -> Tint {
        match self {
            ColorMode::Safe => tint,
            ColorMode::Contrast => tint.mixed(WHITE, 0.15),
            ColorMode::Gray => {
                let [r, g, b] = tint.rgb.map(u16::from);
                let gray = ((r * 3 + g * 6 + b) / 10) as u8;
                Tint {
                    rgb: [gray; 3],
                    ..tint
                }
            }
        }
    }

    pub(crate) fn player(self, n: usize) -> Tint {
        const PLAYERS: [u32; 8] = [
            0x56_b4_e9, // sky blue
            0xf0_e4_42, // yellow
            0x2f_c4_95, // bluish green
            0xe3_8f_c0, // reddish purple
            0xf5_f5_f5, // white
            0xf2_a5_1a, // orange
            0x3d_7b_ff, // blue
            0xb7_a6_ff, // lilac
        ];
        self.of(Tint::new(PLAYERS[n % PLAYERS.len()]))
    }

    pub(crate) fn hostile(self) -> Tint {
        match self {
            ColorMode::Contrast => Tint::new(0xff_5a_1f),
            _ => self.of(Tint::new(0xff_74_2e)),
        }
    }

    pub(crate) fn accent(self, rgb: u32) -> Tint {
        self.of(Tint::new(rgb))
    }

    pub(crate) fn floor(self) -> Tint {
        match self {
            ColorMode::Contrast => Tint::new(0x05_07_0a),
            _ => Tint::new(0x12_18_20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_has_no_cover_and_paint_covers_by_its_alpha() {
        let tint = Tint::new(0xff_80_00).alpha(0.5);
        assert_eq!(tint.premultiplied(), [127, 64, 0, 127]);
        assert_eq!(tint.light().premultiplied(), [127, 64, 0, 0]);
    }

    fn apart(a: Tint, b: Tint) -> i32 {
        let parts = a.rgb.iter().zip(b.rgb);
        parts
            .map(|(a, b)| (i32::from(*a) - i32::from(b)).abs())
            .sum()
    }

    #[test]
    fn no_enemy_kind_has_the_hue_of_a_player() {
        use crate::scene::Sprite::{Charger, Gunner, Sapper, Spinner, Urchin};

        for mode in [ColorMode::Safe, ColorMode::Contrast] {
            for kind in [Gunner, Urchin, Spinner, Sapper, Charger] {
                let (.., rgb) = kind.layers().expect("kinds have layers");
                let trim = mode.accent(rgb);
                for n in 0..8 {
                    let apart = apart(trim, mode.player(n));
                    assert!(apart > 65, "{mode:?}: {kind:?} and player {n}: {apart}");
                }
            }
        }
    }

    #[test]
    fn players_are_bright_on_every_floor_and_distinguishable() {
        for mode in ColorMode::ALL {
            let floor = mode.floor().brightness();
            for n in 0..8 {
                assert!(mode.player(n).brightness() > floor + 0.35, "{mode:?} {n}");
                for m in 0..n {
                    // Without hues, only the numbers on the hulls tell players apart.
                    if mode != ColorMode::Gray {
                        assert!(apart(mode.player(n), mode.player(m)) > 70, "{n} {m}");
                    }
                }
            }
        }
    }
}
