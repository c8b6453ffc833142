//! The level that comes with the game.
//!
//! ```text
//!   +y  ┌──────────────────────────────┐   walls: solid to players and bullets, and give cover from blasts
//!       │ s  b│   ═══    b   ══b     s │   s spawn   b barrel   (the campaign adds crates)
//!       │ s ▌   ▐    b        ▐    ▌ s │   enemies fly over everything, along their paths
//!       │ s  b══   ═══  b     │b     s │
//!       └──────────────────────────────┘ +x
//! ```

use glam::Vec2;

use super::path::Path;
use super::rules::{Rules, Tuning};
use super::wall::Wall;
use super::wave;

impl Rules {
    /// The endless arena with `enemies` enemies at once, each replaced when it dies. It has no lobby, no lives and no
    /// end.
    #[must_use]
    pub fn arena(enemies: u16) -> Rules {
        let v = Vec2::new;
        let barrels = vec![
            v(-28.5, 16.25),
            v(-26.0, 19.5),
            v(-15.75, 4.5),
            v(-28.0, -7.5),
            v(-12.5, -17.25),
            v(-1.25, -19.5),
            v(5.5, -3.25),
            v(15.5, -5.5),
            v(28.25, -16.5),
            v(25.75, -19.75),
            v(27.5, 8.25),
            v(12.25, 17.75),
            v(4.5, 19.25),
            v(0.75, 17.5),
        ];
        Rules {
            half: v(40.0, 24.0),
            walls: vec![
                Wall {
                    center: v(-22.0, 10.5),
                    half: v(1.5, 6.0),
                },
                Wall {
                    center: v(22.5, -10.0),
                    half: v(1.5, 6.0),
                },
                Wall {
                    center: v(-21.0, -13.0),
                    half: v(7.0, 1.25),
                },
                Wall {
                    center: v(20.5, 13.5),
                    half: v(7.0, 1.25),
                },
                Wall {
                    center: v(0.0, 8.25),
                    half: v(5.0, 1.25),
                },
                Wall {
                    center: v(0.5, -8.0),
                    half: v(5.0, 1.25),
                },
                Wall {
                    center: v(-9.5, 0.5),
                    half: v(1.0, 3.0),
                },
                Wall {
                    center: v(10.0, -0.75),
                    half: v(1.0, 3.0),
                },
                Wall {
                    center: v(-33.0, 0.25),
                    half: v(1.25, 5.5),
                },
                Wall {
                    center: v(33.25, -0.5),
                    half: v(1.25, 5.5),
                },
            ],
            // The sides alternate, so that players with neighbouring numbers face each other.
            spawns: (0..16)
                .map(|n| {
                    v(
                        if n % 2 == 0 { -37.0 } else { 37.0 },
                        (n / 2) as f32 * 5.0 - 17.5,
                    )
                })
                .collect(),
            orbits: (0..12).map(orbit).collect(),
            rounds: vec![
                Path::Round {
                    stops: barrels.clone(),
                    leg_ticks: 100,
                },
                Path::Round {
                    stops: barrels.iter().rev().copied().collect(),
                    leg_ticks: 120,
                },
            ],
            barrels,
            crates: Vec::new(),
            rushes: rushes(),
            thrones: vec![Path::Orbit {
                center: Vec2::ZERO,
                reach: v(20.0, 12.0),
                period_x_ticks: 1_740,
                period_y_ticks: 1_130,
            }],
            waves: Vec::new(),
            enemies,
            tuning: Tuning::default(),
        }
    }

    /// The rules of the campaign: the players gather in a lobby, then fight waves of enemies and a boss. After a
    /// victory or a defeat, they can start the next round.
    #[must_use]
    pub fn campaign() -> Rules {
        let places = [
            (-15.5, 12.0),
            (-13.75, 12.0),
            (15.75, -12.5),
            (17.5, -12.5),
            (-6.75, 2.5),
            (7.0, 3.0),
            (-28.0, 2.0),
            (28.5, -2.25),
            (-12.0, -10.5),
            (11.5, 10.5),
            (-2.5, 14.0),
            (2.75, -14.0),
            (-25.0, -19.0),
            (25.25, 19.5),
        ];
        Rules {
            crates: places.map(|(x, y)| Vec2::new(x, y)).to_vec(),
            // A block of four by four in the middle.
            spawns: (0..16)
                .map(|n| Vec2::new((n % 4) as f32, (n / 4) as f32) * 2.5 - 3.75)
                .collect(),
            waves: wave::campaign(),
            ..Rules::arena(0)
        }
    }
}

fn rushes() -> Vec<Path> {
    let lanes = [
        [(-36.0, -20.5), (-36.0, 20.5), (-17.0, 0.0)],
        [(36.0, 20.5), (36.0, -20.5), (17.0, 0.0)],
        [(-28.0, 21.5), (0.0, 12.5), (28.0, 21.5)],
        [(28.0, -21.5), (0.0, -12.5), (-28.0, -21.5)],
        [(-17.0, 0.0), (0.0, 5.0), (17.0, 0.0)],
    ];
    let path = |stops: [(f32, f32); 3]| Path::Rush {
        stops: stops.map(|(x, y)| Vec2::new(x, y)).to_vec(),
        rest_ticks: 100,
        rush_ticks: 60,
    };
    lanes.map(path).to_vec()
}

fn orbit(n: u32) -> Path {
    let center = Vec2::new(
        (n % 3) as f32 * 22.0 - 22.0,
        (n / 3 % 2) as f32 * 14.0 - 7.0,
    );
    let reach = Vec2::new(16.0 - (n / 6) as f32 * 5.0, 12.0 - (n % 4) as f32);
    Path::Orbit {
        center,
        reach,
        period_x_ticks: 660 + 74 * n,
        period_y_ticks: 943 - 46 * n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spawns_and_barrels_are_clear_of_walls_and_on_whole_64ths() {
        let rules = Rules::arena(0);
        for at in rules.spawns.iter().chain(&rules.barrels) {
            assert_eq!(rules.place(*at, 0.6), *at);
            assert_eq!(super::super::Point::of(*at).to_vec2(), *at);
        }
        for spawn in &rules.spawns {
            let nearest = rules
                .barrels
                .iter()
                .map(|barrel| barrel.distance(*spawn))
                .fold(99.0, f32::min);
            assert!(
                nearest > rules.tuning.blast_radius,
                "{spawn} is {nearest} from a barrel"
            );
        }
    }

    #[test]
    fn campaign_spawns_crates_and_barrels_are_clear_of_walls_and_each_other() {
        let rules = Rules::campaign();
        for at in rules.spawns.iter().chain(&rules.crates) {
            assert_eq!(rules.place(*at, 1.1), *at);
            assert_eq!(super::super::Point::of(*at).to_vec2(), *at);
        }
        let solid: Vec<Vec2> = rules.crates.iter().chain(&rules.barrels).copied().collect();
        for (n, at) in solid.iter().enumerate() {
            for other in solid[n + 1..].iter().chain(&rules.spawns) {
                assert!(at.distance(*other) > 1.6, "{at} and {other}");
            }
        }
        assert!(rules.crates.len() <= 128 && rules.barrels.len() <= 128);
    }

    #[test]
    fn every_path_stays_in_the_arena() {
        let rules = Rules::arena(0);
        let paths = [&rules.orbits, &rules.rounds, &rules.rushes, &rules.thrones];
        for path in paths.into_iter().flatten() {
            for age in (0..10_000).step_by(7) {
                let at = path.at(age);
                assert!(
                    at.abs().cmple(rules.half).all(),
                    "{path:?} at age {age}: {at}"
                );
            }
        }
    }
}
