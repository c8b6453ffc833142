//! The art: every sprite, drawn by code at start-up.
//!
//! ```text
//!   shape (a distance) ──Canvas::fill──▶ pixels ──Atlas::new──▶ one texture ──Batch──▶ few draw calls
//! ```
//!
//! Bodies have two layers: a *hull* in grays, and a white *trim*, tinted in the owner's colour. All bodies face +x.

mod actors;
pub(crate) mod canvas;
mod effects;
mod glyphs;
mod icons;
mod things;

use canvas::Canvas;

use crate::scene::Sprite;
use crate::scene::palette::ColorMode;
pub(crate) use glyphs::{BASE, CAP, GLYPHS, Glyph, glyph};

impl Sprite {
    pub(crate) fn draw(self, canvas: &mut Canvas, mode: ColorMode) {
        use Sprite::*;
        if let Some((hull, trim, rgb)) = self.layers() {
            hull.draw(canvas, mode);
            let mut above = Canvas::new(canvas.width, canvas.height);
            trim.draw(&mut above, mode);
            canvas.cover(&above, mode.accent(rgb));
            return;
        }
        match self {
            White => canvas.each(|_| canvas::gray(1.0)),
            Gunner | Urchin | Spinner | Sapper | Charger => unreachable!("{self:?} has layers"),
            Panel | Frame | Wall | Barrel | BarrelTrim | Crate | CrateTrim | Capsule => {
                things::draw(self, canvas);
            }
            PlayerHull | PlayerTrim | GunnerHull | GunnerTrim | UrchinHull | UrchinTrim
            | SpinnerHull | SpinnerTrim | SapperHull | SapperTrim | ChargerHull | ChargerTrim
            | BossHull | BossTrim => actors::draw(self, canvas),
            IconBlaster | IconScatter | IconLance | IconThumper | IconHeart | IconShield
            | IconLife | IconDash | IconReady | Crosshair | Pointer => icons::draw(self, canvas),
            Glow | Shadow | Dot | Ring | Reach | Wave | Dashes | Streak | Smoke | Shard | Flash
            | Shot | Bolt | Shell | Bullet | Bubble => effects::draw(self, canvas),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(sprite: Sprite) -> Vec<u8> {
        let (width, height) = sprite.pixels();
        let mut canvas = Canvas::new(width, height);
        sprite.draw(&mut canvas, ColorMode::Safe);
        let mut covers = Vec::new();
        for y in 0..height {
            covers.extend((0..width).map(|x| canvas.bytes(x, y)[3]));
        }
        covers
    }

    #[test]
    fn every_sprite_exists_once_and_is_drawn_inside_its_box() {
        for (n, sprite) in Sprite::ALL.into_iter().enumerate() {
            assert_eq!(sprite as usize, n);
            let (width, height) = sprite.pixels();
            let covers = covers(sprite);
            let seen = covers.iter().filter(|cover| **cover > 8).count();
            assert!(seen * 40 > width * height, "{sprite:?} is hardly there");
            let fills = matches!(
                sprite,
                Sprite::White | Sprite::Panel | Sprite::Frame | Sprite::Wall
            );
            let cut = (0..width).any(|x| covers[x] > 40 || covers[(height - 1) * width + x] > 40)
                || (0..height).any(|y| covers[y * width] > 40 || covers[(y + 1) * width - 1] > 40);
            assert!(fills || !cut, "{sprite:?} is cut off by its box");
        }
    }

    #[test]
    fn no_two_kinds_of_enemies_have_the_same_silhouette() {
        use Sprite::*;
        let kinds = [GunnerHull, UrchinHull, SpinnerHull, SapperHull, ChargerHull];
        for (n, a) in kinds.into_iter().enumerate() {
            for b in &kinds[..n] {
                let (a_covers, b_covers) = (covers(a), covers(*b));
                let differ = a_covers
                    .iter()
                    .zip(&b_covers)
                    .filter(|(a, b)| a.abs_diff(**b) > 128)
                    .count();
                let whole = a_covers.iter().filter(|cover| **cover > 128).count();
                assert!(differ * 5 > whole, "{a:?} and {b:?}: {differ} of {whole}");
            }
        }
    }
}
