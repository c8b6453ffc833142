//! The paths of enemies: closed curves. A position depends only on the enemy's age, so every machine predicts it
//! exactly.
//!
//! An age is reduced to a position within the period while it is still an integer. So an enemy that has lived for days
//! moves as smoothly as a young one.

use core::f32::consts::TAU;

use glam::Vec2;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Path {
    /// A Lissajous figure: each axis swings with its own period.
    Orbit {
        center: Vec2,
        /// The amplitude of the swing to each side, in units.
        reach: Vec2,
        /// The period of the x axis, in ticks, at least 1.
        period_x_ticks: u32,
        /// The period of the y axis, in ticks, at least 1.
        period_y_ticks: u32,
    },
    /// Straight legs from stop to stop and back to the first.
    Round {
        /// At least one stop.
        stops: Vec<Vec2>,
        /// The duration of each leg, in ticks, at least 1.
        leg_ticks: u32,
    },
    /// Rests at a stop, then darts to the next with growing speed.
    Rush {
        /// At least one stop.
        stops: Vec<Vec2>,
        rest_ticks: u32,
        /// The duration of a dart, in ticks, at least 1.
        rush_ticks: u32,
    },
}

impl Path {
    #[must_use]
    pub fn at(&self, age_ticks: u32) -> Vec2 {
        match self {
            Path::Orbit {
                center,
                reach,
                period_x_ticks,
                period_y_ticks,
            } => {
                let swing = Vec2::new(
                    libm::sinf(TAU * part(age_ticks, *period_x_ticks)),
                    libm::cosf(TAU * part(age_ticks, *period_y_ticks)),
                );
                *center + *reach * swing
            }
            Path::Round { stops, leg_ticks } => {
                let leg = (age_ticks / leg_ticks) as usize;
                let [from, to] = [leg, leg + 1].map(|n| stops[n % stops.len()]);
                from + (to - from) * part(age_ticks, *leg_ticks)
            }
            Path::Rush {
                stops,
                rest_ticks,
                rush_ticks,
            } => {
                let leg_ticks = rest_ticks + rush_ticks;
                let leg = (age_ticks / leg_ticks) as usize;
                let [from, to] = [leg, leg + 1].map(|n| stops[n % stops.len()]);
                let rushed = (age_ticks % leg_ticks).saturating_sub(*rest_ticks);
                let part = rushed as f32 / *rush_ticks as f32;
                from + (to - from) * (part * part)
            }
        }
    }

    /// Returns the next stop while the enemy rests before it darts; `None` while it darts, and for the other paths.
    #[must_use]
    pub fn threatens(&self, age_ticks: u32) -> Option<Vec2> {
        let Path::Rush {
            stops,
            rest_ticks,
            rush_ticks,
        } = self
        else {
            return None;
        };
        let leg_ticks = rest_ticks + rush_ticks;
        let next = (age_ticks / leg_ticks) as usize + 1;
        (age_ticks % leg_ticks < *rest_ticks).then(|| stops[next % stops.len()])
    }
}

/// Returns the position of an age within its period, in [0, 1).
fn part(age_ticks: u32, period_ticks: u32) -> f32 {
    (age_ticks % period_ticks) as f32 / period_ticks as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orbit_stays_within_its_reach_and_comes_back() {
        let center = Vec2::new(4.0, -2.0);
        let reach = Vec2::new(7.0, 3.0);
        let path = Path::Orbit {
            center,
            reach,
            period_x_ticks: 300,
            period_y_ticks: 200,
        };
        for age in 0..600 {
            let off = (path.at(age) - center).abs();
            assert!(off.x <= 7.0 && off.y <= 3.0, "at age {age}: {off}");
        }
        assert_eq!(path.at(17), path.at(17 + 600 * 7_000_000));
    }

    #[test]
    fn a_rush_rests_and_threatens_and_then_darts() {
        let stops = vec![Vec2::ZERO, Vec2::X * 8.0, Vec2::Y];
        let path = Path::Rush {
            stops,
            rest_ticks: 10,
            rush_ticks: 4,
        };
        for age in 0..10 {
            assert_eq!(path.at(age), Vec2::ZERO);
            assert_eq!(path.threatens(age), Some(Vec2::X * 8.0));
        }
        assert_eq!(
            [11, 12, 13, 14].map(|age| path.at(age).x),
            [0.5, 2.0, 4.5, 8.0]
        );
        assert_eq!([10, 13].map(|age| path.threatens(age)), [None, None]);
        assert_eq!(path.threatens(14), Some(Vec2::Y));
        assert_eq!(path.at(14 * 3), Vec2::ZERO, "and again");
    }

    #[test]
    fn a_round_passes_every_stop_in_order() {
        let stops = vec![Vec2::ZERO, Vec2::X, Vec2::Y];
        let path = Path::Round {
            stops: stops.clone(),
            leg_ticks: 10,
        };
        for (n, stop) in stops.iter().cycle().take(7).enumerate() {
            assert_eq!(path.at(n as u32 * 10), *stop);
        }
        assert_eq!(path.at(5), Vec2::new(0.5, 0.0));
    }
}
