//! [`Particles`]: sparks, smoke, rings. Each belongs to the cue that caused it; the particles of a cancelled cue fade
//! within a tenth of a second.
//!
//! A particle's position is a function of its age, without integration, so a paused replay stands still.

use std::collections::VecDeque;
use std::time::Duration;

use glam::Vec2;
use twinstep_client::CueId;

use super::palette::Tint;
use super::sprite::Sprite;

/// The maximum number of simultaneous particles; the oldest is replaced (law *Bounded*).
const PARTICLES_MAX: usize = 1_536;
const FADE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Particle {
    pub(crate) cue: CueId,
    pub(crate) is_confirmed: bool,
    pub(crate) sprite: Sprite,
    pub(crate) tint: Tint,
    pub(crate) at: Vec2,
    pub(crate) speed: Vec2,
    /// The decay of the speed, per second; 0 for none.
    pub(crate) drag: f32,
    pub(crate) half: (f32, f32),
    /// The height as a fraction of the width.
    pub(crate) slim: f32,
    pub(crate) angle: f32,
    pub(crate) spin: f32,
    pub(crate) born: Duration,
    pub(crate) life: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VisibleParticle {
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "for the terminal"))]
    pub(crate) is_confirmed: bool,
    pub(crate) sprite: Sprite,
    pub(crate) tint: Tint,
    pub(crate) at: Vec2,
    pub(crate) half: Vec2,
    pub(crate) angle: f32,
}

impl Particle {
    pub(crate) fn new(
        cue: CueId,
        born: Duration,
        sprite: Sprite,
        at: Vec2,
        tint: Tint,
    ) -> Particle {
        Particle {
            cue,
            is_confirmed: false,
            sprite,
            tint,
            at,
            speed: Vec2::ZERO,
            drag: 0.0,
            half: (0.5, 0.5),
            slim: 1.0,
            angle: 0.0,
            spin: 0.0,
            born,
            life: Duration::from_secs(1),
        }
    }

    fn seen(&self, now: Duration) -> Option<VisibleParticle> {
        let age = now.saturating_sub(self.born).as_secs_f32();
        let part = age / self.life.as_secs_f32();
        if part >= 1.0 {
            return None;
        }
        let flown = if self.drag == 0.0 {
            age
        } else {
            (1.0 - libm::expf(-self.drag * age)) / self.drag
        };
        let half = self.half.0 + (self.half.1 - self.half.0) * part;
        // The particle stays almost opaque at first, then fades faster.
        let left = 1.0 - part * part;
        Some(VisibleParticle {
            is_confirmed: self.is_confirmed,
            sprite: self.sprite,
            tint: self.tint.alpha(self.tint.alpha * left),
            at: self.at + self.speed * flown,
            half: Vec2::new(half, half * self.slim),
            angle: self.angle + self.spin * age,
        })
    }
}

#[derive(Default)]
pub(crate) struct Particles(VecDeque<Particle>);

impl Particles {
    pub(crate) fn add(&mut self, particle: Particle) {
        if self.0.len() == PARTICLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(particle);
    }

    pub(crate) fn confirm(&mut self, cue: CueId) {
        for particle in self.0.iter_mut().filter(|particle| particle.cue == cue) {
            particle.is_confirmed = true;
        }
    }

    pub(crate) fn cancel(&mut self, cue: CueId, now: Duration) {
        for particle in self.0.iter_mut().filter(|particle| particle.cue == cue) {
            let age = now.saturating_sub(particle.born);
            particle.life = particle.life.min(age + FADE);
            particle.tint.alpha *= 0.6;
        }
    }

    pub(crate) fn advance(&mut self, now: Duration) {
        self.0
            .retain(|particle| now < particle.born + particle.life);
    }

    pub(crate) fn seen(&self, now: Duration) -> impl Iterator<Item = VisibleParticle> + '_ {
        self.0.iter().filter_map(move |particle| particle.seen(now))
    }

    #[cfg(test)]
    pub(crate) fn of(&self, cue: CueId) -> usize {
        self.0.iter().filter(|particle| particle.cue == cue).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::palette::WHITE;

    const SECOND: Duration = Duration::from_secs(1);

    fn spark(cue: u64) -> Particle {
        let mut spark = Particle::new(CueId(cue), SECOND, Sprite::Glow, Vec2::ZERO, WHITE);
        spark.speed = Vec2::X;
        spark
    }

    #[test]
    fn a_particle_moves_and_fades_and_disappears_after_its_lifetime() {
        let mut particles = Particles::default();
        particles.add(spark(1));
        let seen: Vec<VisibleParticle> = [1_000, 1_500, 1_900]
            .iter()
            .flat_map(|ms| particles.seen(Duration::from_millis(*ms)))
            .collect();
        assert!((seen[1].at.x - 0.5).abs() < 1e-4);
        assert!(seen[0].tint.alpha > seen[1].tint.alpha && seen[1].tint.alpha > seen[2].tint.alpha);
        assert_eq!(particles.seen(SECOND * 2).count(), 0);
        particles.advance(SECOND * 2);
        assert_eq!(particles.of(CueId(1)), 0);
    }

    #[test]
    fn a_cancelled_cue_removes_its_own_particles_and_no_others() {
        let mut particles = Particles::default();
        particles.add(spark(1));
        particles.add(spark(2));
        particles.cancel(CueId(1), SECOND);
        let soon = SECOND + FADE;
        assert_eq!(particles.seen(soon).count(), 1);
        particles.advance(soon);
        assert_eq!((particles.of(CueId(1)), particles.of(CueId(2))), (0, 1));
    }

    #[test]
    fn particles_never_exceed_their_limit() {
        let mut particles = Particles::default();
        (0..PARTICLES_MAX as u64 + 9).for_each(|cue| particles.add(spark(cue)));
        assert_eq!(particles.seen(SECOND).count(), PARTICLES_MAX);
        assert_eq!(particles.of(CueId(8)), 0, "the oldest made room");
    }
}
