//! Enemies' bullets fly straight. Whom they touch is decided in `claim`.
//!
//! Walls never move, so the tick at which a bullet meets one is computed when it is fired. Crates move and break, so
//! they are tested at every tick.

use twinstep_core::Tick;

use super::state::Game;

impl Game {
    /// Moves all bullets; those whose time is over, and those in a crate, are gone.
    pub(super) fn move_bullets(&mut self, now: Tick) {
        let crates = &self.crates;
        self.bullets.retain_mut(|bullet| {
            bullet.at += bullet.step;
            now < bullet.ends && !crates.iter().any(|chest| chest.holds(bullet.at))
        });
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;
    use twinstep_core::Key;

    use super::super::testing::*;
    use super::*;
    use crate::{Bullet, EnemyKind, Rules};

    #[test]
    fn crates_stop_bullets_while_they_stand() {
        let rules = Rules {
            crates: vec![Vec2::new(2.0, 0.0)],
            ..rules()
        };
        for (health, flies_on) in [(40, false), (0, true)] {
            let mut game = solo(rules.clone());
            game.sim_mut().crates[0].health = health;
            let bullet = Bullet::fired(
                Key::new(1, 1),
                EnemyKind::Gunner,
                Vec2::ZERO,
                Vec2::X * 0.2,
                Tick(0),
                &rules,
            );
            game.sim_mut().bullets.push(bullet);
            game.run(20);
            assert_eq!(!game.sim().bullets.is_empty(), flies_on);
        }
    }
}
