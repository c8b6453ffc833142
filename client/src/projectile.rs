//! The life of a remote projectile as it is shown: ghost, promoted, and the glide from the muzzle.
//!
//! ```text
//!   fired by a remote player ──▶ known here k ticks late: a ghost, k ticks on its true path already
//!     simulation:  harmless until promoted (a hit withholds)        [`Stage`]
//!     picture:     starts at the muzzle as shown, glides onto its true path     [`muzzle_blend`]
//! ```
//!
//! The simulated position is exact from the first tick; only what is drawn begins elsewhere (seed rows 67,
//! 68, 70). Nothing of this is state: a [`Frame`] tells it to each step anew.

use core::time::Duration;

use twinstep_core::{Frame, Phase, PlayerId, Simulation, Tick};

use crate::smooth::{Correction, Pose};

/// What a projectile may do on this screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its shot is guessed, or known for less than the lead: it is drawn and harms nobody.
    Ghost,
    /// Fired here, or known for long enough: it behaves like the authority's.
    Promoted,
    /// The step belongs to the authority: what it does, it does.
    Confirmed,
}

impl Stage {
    /// The stage of a projectile that `shooter` fired at `born`, in the step of this frame.
    #[must_use]
    pub fn of<S: Simulation>(frame: &Frame<'_, S>, shooter: PlayerId, born: Tick) -> Stage {
        match frame.phase() {
            Phase::Authority => Stage::Confirmed,
            _ if frame.is_ghost(shooter, born) => Stage::Ghost,
            _ => Stage::Promoted,
        }
    }

    /// Whether it may harm what it hits. If not, it vanishes, and the step calls
    /// [`withhold`](twinstep_core::Effects::withhold).
    #[must_use]
    pub fn is_harmful(self) -> bool {
        self != Stage::Ghost
    }
}

/// Where a projectile came from.
#[derive(Clone, Copy)]
pub(crate) struct Muzzle<K, P> {
    pub(crate) shooter: K,
    pub(crate) at: P,
}

/// The glide of a projectile that is drawn at `origin` now onto its true path, where it is at `pose`: it
/// shrinks all the way and ends exactly on the path after `over`.
#[must_use]
pub fn muzzle_blend<P: Pose>(origin: P, pose: P, now: Duration, over: Duration) -> Correction<P> {
    Correction::new(origin.minus(pose), now, over)
}

#[cfg(test)]
mod tests {
    use glam::Vec2;
    use twinstep_core::frame::Learned;
    use twinstep_core::testing::Solo;
    use twinstep_core::{Effects, Never};

    use super::*;
    use crate::picture::{Picture, Poses, Smoothing};

    const TICK: Duration = Duration::from_millis(16);

    /// Row 67.
    #[test]
    fn a_ghost_starts_at_the_shown_muzzle_and_converges_exactly() {
        let mut picture = Picture::new(Smoothing {
            teleport: 5.0,
            muzzle: TICK * 12,
        });
        let mut poses = Poses::new();
        let shooter = |tick: u32| Vec2::new(0.0, tick as f32 * 0.1);
        // Known at tick 10, fired 8 ticks ago at 2 a tick: farther than a teleport, and smoothed all the same.
        let path = |tick: u32| Vec2::new(2.0 * (tick as f32 - 2.0), 0.3);
        let offset = Vec2::new(0.5, 0.0);
        let mut last = f32::MAX;
        for tick in 8..30 {
            let now = TICK * tick;
            let shown_shooter = picture.pose(0, 1.0, now);
            poses.begin(Default::default());
            poses.put(0, shooter(tick));
            if tick >= 10 {
                poses.put_from(1, path(tick), 0, shooter(tick) + offset);
            }
            picture.ticked(&mut poses, now);
            if tick == 10 {
                let muzzle = shown_shooter.unwrap() + offset;
                assert!((picture.pose(1, 0.0, now).unwrap() - muzzle).length() < 1e-5);
            }
            if tick >= 10 {
                for alpha in [0.0, 0.5, 0.99] {
                    let true_pose = if tick == 10 {
                        path(10)
                    } else {
                        Vec2::lerp(path(tick - 1), path(tick), alpha)
                    };
                    let error = (picture.pose(1, alpha, now + TICK.mul_f32(alpha)).unwrap()
                        - true_pose)
                        .length();
                    assert!(error <= last + 1e-4, "tick {tick}: {error} after {last}");
                    last = error;
                }
            }
        }
        assert!(last < 1e-5, "{last}");
    }

    /// Notes the stage of the shot that player 1 fired at tick 0.
    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Shot(u8);

    impl Simulation for Shot {
        const NAME: &'static str = "shot";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;
        fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
            self.0 = Stage::of(frame, PlayerId(1), Tick(0)) as u8;
        }
    }

    /// Rows 68 and 70.
    #[test]
    fn a_remote_shot_is_a_ghost_until_the_authority_reaches_the_tick_at_which_it_was_learned() {
        let stage = |local: u8, confirmed: u32, learned: bool| {
            let mut known = Learned::new();
            if learned {
                known.note(PlayerId(1), Tick(0), Tick(8));
            }
            let mut solo = Solo::new(Shot(9), ());
            solo.predict(
                [PlayerId(local)].into_iter().collect(),
                Tick(confirmed),
                known,
            )
            .step();
            solo.sim().0
        };
        assert_eq!(stage(0, 0, false), Stage::Ghost as u8, "guessed");
        assert_eq!(stage(0, 7, true), Stage::Ghost as u8);
        assert_eq!(stage(0, 8, true), Stage::Promoted as u8);
        assert_eq!(stage(1, 0, false), Stage::Promoted as u8, "fired here");
        let mut solo = Solo::new(Shot(9), ());
        solo.step();
        assert_eq!(solo.sim().0, Stage::Confirmed as u8);
        assert!(
            !Stage::Ghost.is_harmful()
                && Stage::Promoted.is_harmful()
                && Stage::Confirmed.is_harmful()
        );
    }
}
