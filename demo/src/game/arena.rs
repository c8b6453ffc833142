//! The rules: level and tuning, read-only, equal at every peer (their digest is compared in the handshake).
//!
//! ```text
//!   +y  ┌──────────────────────────────┐   walls: solid for players and bullets, and they hide from blasts
//!       │ s  b│   ═══    b   ══b     s │   s spawn   b barrel
//!       │ s ▌   ▐    b        ▐    ▌ s │   enemies fly over everything, along their paths
//!       │ s  b══   ═══  b     │b     s │
//!       └──────────────────────────────┘ +x
//! ```
//!
//! Geometry lives here as well: what a wall does to a moving disc, to a bullet and to a line of sight.

use glam::Vec2;
use serde::Serialize;

use super::Path;

/// All that a match never changes. `Rules::default()` is the arena of the game with 24 enemies.
///
/// ```
/// use powderkeg::game::Rules;
/// let crowded = Rules { enemies: 1_000, ..Rules::default() };
/// assert_eq!(crowded.walls, Rules::default().walls);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rules {
    /// The arena reaches from −half to +half, in units.
    pub half: Vec2,
    /// What players and bullets cannot pass.
    pub walls: Vec<Wall>,
    /// Where players appear; at least one.
    pub spawns: Vec<Vec2>,
    /// Where barrels stand, on whole 64ths of a unit; at most 256.
    pub barrels: Vec<Vec2>,
    /// Paths of enemies that shoot; at least one.
    pub orbits: Vec<Path>,
    /// Paths of enemies that light barrels; at least one.
    pub rounds: Vec<Path>,
    /// How many enemies are there at once. A step's cost grows linearly with it.
    pub enemies: u16,
    /// Numbers to play with.
    pub tuning: Tuning,
}

/// Numbers to play with. Speeds are units per tick; a tick is 1/60 s.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    /// A player's speed.
    pub walk_speed: f32,
    /// A player's speed while dashing.
    pub dash_speed: f32,
    /// How long a dash lasts.
    pub dash_ticks: u32,
    /// From one dash to the next.
    pub dash_rest_ticks: u32,
    /// From one shot of a player to the next, at least 1.
    pub fire_every_ticks: u32,
    /// A shot's speed; below an enemy's diameter, or shots would jump over enemies.
    pub shot_speed: f32,
    /// How long a shot flies.
    pub shot_ticks: u32,
    /// What a shot takes from an enemy.
    pub shot_damage: i16,
    /// A player's health at birth.
    pub player_health: i16,
    /// From a player's death to its return.
    pub player_return_ticks: u32,
    /// A returned player cannot be hurt until it acts, and so long thereafter.
    pub shield_ticks: u32,
    /// From an enemy's death to its successor.
    pub enemy_return_ticks: u32,
    /// A new enemy neither fires nor hurts for so long.
    pub enemy_waking_ticks: u32,
    /// All enemies appear during the first so many ticks, evenly.
    pub enemy_arrival_ticks: u32,
    /// How long an enemy's bullet flies.
    pub bullet_ticks: u32,
    /// Bullets of enemies in the air at once; beyond it they hold their fire.
    pub bullets_max: u32,
    /// From where a player can light a barrel, in units.
    pub light_reach: f32,
    /// From lighting to blast.
    pub fuse_ticks: u32,
    /// The same for a barrel that a blast has lit.
    pub chain_fuse_ticks: u32,
    /// From a blast to the next barrel in its place.
    pub barrel_return_ticks: u32,
    /// How far a blast reaches, in units.
    pub blast_radius: f32,
    /// What a blast takes at its middle; half of it at its edge.
    pub blast_damage: i16,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            walk_speed: 0.16,
            dash_speed: 0.45,
            dash_ticks: 10,
            dash_rest_ticks: 45,
            fire_every_ticks: 7,
            shot_speed: 0.6,
            shot_ticks: 70,
            shot_damage: 10,
            player_health: 100,
            player_return_ticks: 120,
            shield_ticks: 60,
            enemy_return_ticks: 240,
            enemy_waking_ticks: 45,
            enemy_arrival_ticks: 600,
            bullet_ticks: 150,
            bullets_max: 4_096,
            light_reach: 3.0,
            fuse_ticks: 90,
            chain_fuse_ticks: 14,
            barrel_return_ticks: 420,
            blast_radius: 6.0,
            blast_damage: 90,
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
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
            // Both sides in turn, so that neighbours in number face each other.
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
            enemies: 24,
            tuning: Tuning::default(),
        }
    }
}

/// The `n`th of 12 curves: three columns and two rows of middles, periods without a small common multiple.
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

/// A solid box along the axes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wall {
    /// Its middle.
    pub center: Vec2,
    /// Half of width and height.
    pub half: Vec2,
}

impl Wall {
    /// Moves a disc out of the wall, by the shortest way.
    #[must_use]
    pub fn push_out(&self, at: Vec2, radius: f32) -> Vec2 {
        let offset = at - self.center;
        let nearest = offset.clamp(-self.half, self.half);
        let gap = offset - nearest;
        let distance = gap.length();
        if distance >= radius {
            at
        } else if distance > 0.0 {
            at + gap * (radius / distance - 1.0)
        } else {
            // The middle of the disc is inside: out through the nearest side.
            let room = self.half - offset.abs();
            let side = Vec2::new(sign(offset.x), sign(offset.y));
            if room.x < room.y {
                at + Vec2::new(side.x * (room.x + radius), 0.0)
            } else {
                at + Vec2::new(0.0, side.y * (room.y + radius))
            }
        }
    }

    /// How far along `motion` a point from `from` meets the wall, in [0, 1]; `None`: not on that way.
    #[must_use]
    pub fn meets(&self, from: Vec2, motion: Vec2) -> Option<f32> {
        let (enter, leave) = crossing(from - self.center, motion, self.half)?;
        (leave >= 0.0 && enter <= 1.0).then_some(enter.max(0.0))
    }
}

/// Between which parts of its way a point is inside a box around the origin (the slab method: T. Kay and
/// J. Kajiya, "Ray tracing complex scenes", 1986). `None`: it passes beside it.
fn crossing(from: Vec2, motion: Vec2, half: Vec2) -> Option<(f32, f32)> {
    let (mut enter, mut leave) = (f32::NEG_INFINITY, f32::INFINITY);
    for (from, motion, half) in [(from.x, motion.x, half.x), (from.y, motion.y, half.y)] {
        if motion == 0.0 {
            // 0 / 0 would be NaN: standing on this axis, one is in the slab or is not.
            if from.abs() > half {
                return None;
            }
            continue;
        }
        let (a, b) = ((-half - from) / motion, (half - from) / motion);
        enter = enter.max(a.min(b));
        leave = leave.min(a.max(b));
    }
    (enter <= leave).then_some((enter, leave))
}

fn sign(x: f32) -> f32 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

impl Rules {
    /// Where a disc that wants to be at `at` can be: outside of walls, inside of the arena.
    #[must_use]
    pub fn place(&self, at: Vec2, radius: f32) -> Vec2 {
        let free = self
            .walls
            .iter()
            .fold(at, |at, wall| wall.push_out(at, radius));
        free.clamp(radius - self.half, self.half - radius)
    }

    /// How many ticks a point that moves by `step` a tick flies until a wall or the edge ends it, at most
    /// `ticks_max`. Walls never move, so a bullet's end is known at its birth and no tick looks again.
    #[must_use]
    pub fn flight_ticks(&self, from: Vec2, step: Vec2, ticks_max: u32) -> u32 {
        let way = step * ticks_max as f32;
        let edge = crossing(from, way, self.half).map_or(0.0, |(_, leave)| leave.clamp(0.0, 1.0));
        let end = self
            .walls
            .iter()
            .filter_map(|wall| wall.meets(from, way))
            .fold(edge, f32::min);
        (end * ticks_max as f32) as u32
    }

    /// Whether no wall lies between two points.
    #[must_use]
    pub fn sees(&self, from: Vec2, to: Vec2) -> bool {
        self.walls
            .iter()
            .all(|wall| wall.meets(from, to - from).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Wall = Wall {
        center: Vec2::new(2.0, 0.0),
        half: Vec2::new(1.0, 3.0),
    };

    #[test]
    fn a_disc_is_pushed_out_by_the_shortest_way_from_anywhere() {
        assert_eq!(
            WALL.push_out(Vec2::new(0.75, 1.0), 0.5),
            Vec2::new(0.5, 1.0)
        );
        assert_eq!(
            WALL.push_out(Vec2::new(1.25, 1.0), 0.5),
            Vec2::new(0.5, 1.0)
        );
        assert_eq!(WALL.push_out(Vec2::new(2.0, 2.5), 0.5), Vec2::new(2.0, 3.5));
        assert_eq!(WALL.push_out(Vec2::new(0.5, 1.0), 0.5), Vec2::new(0.5, 1.0));
        let corner = WALL.push_out(Vec2::new(0.9, 3.1), 0.5);
        assert!((corner.distance(Vec2::new(1.0, 3.0)) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_motion_meets_a_wall_where_it_enters_and_not_beside_or_behind_it() {
        assert_eq!(WALL.meets(Vec2::ZERO, Vec2::new(4.0, 0.0)), Some(0.25));
        assert_eq!(
            WALL.meets(Vec2::new(2.0, 0.0), Vec2::X),
            Some(0.0),
            "from the inside"
        );
        assert_eq!(
            WALL.meets(Vec2::ZERO, Vec2::new(0.5, 0.0)),
            None,
            "too short"
        );
        assert_eq!(
            WALL.meets(Vec2::ZERO, Vec2::new(-4.0, 0.0)),
            None,
            "away from it"
        );
        assert_eq!(
            WALL.meets(Vec2::new(0.0, 4.0), Vec2::new(4.0, 0.0)),
            None,
            "past it"
        );
        assert_eq!(WALL.meets(Vec2::ZERO, Vec2::ZERO), None, "no motion at all");
    }

    #[test]
    fn a_bullet_ends_at_walls_and_at_the_edge() {
        let rules = Rules {
            walls: vec![WALL],
            half: Vec2::splat(10.0),
            ..Rules::default()
        };
        let from = Vec2::new(0.05, 0.0);
        assert_eq!(rules.flight_ticks(from, Vec2::new(0.1, 0.0), 100), 9);
        assert_eq!(rules.flight_ticks(from, Vec2::new(0.0, 0.3), 100), 33);
        assert_eq!(rules.flight_ticks(from, Vec2::new(0.0, 0.05), 100), 100);
        assert_eq!(
            rules.flight_ticks(WALL.center, Vec2::X, 100),
            0,
            "born inside a wall"
        );
        assert_eq!(
            rules.flight_ticks(Vec2::splat(11.0), Vec2::X, 100),
            0,
            "born outside"
        );
    }

    #[test]
    fn the_level_stands_clear_of_its_walls_and_on_whole_64ths() {
        let rules = Rules::default();
        for at in rules.spawns.iter().chain(&rules.barrels) {
            assert_eq!(rules.place(*at, 0.6), *at);
            assert_eq!(super::super::Point::of(*at).to_vec2(), *at);
        }
        assert!(rules.barrels.len() <= 256);
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
    fn every_path_stays_in_the_arena() {
        let rules = Rules::default();
        for path in rules.orbits.iter().chain(&rules.rounds) {
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
