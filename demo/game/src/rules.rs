//! The rules: level, waves and tuning. Read-only, and equal at every peer (the handshake compares their digest).
//!
//! Two sets come with the game: [`Rules::campaign`], a round of waves with a boss at its end, and [`Rules::arena`], the
//! same enemies forever. The same step runs both.

use glam::Vec2;
use serde::Serialize;
use twinstep_core::bounds::PLAYERS_MAX;

use super::kind::EnemyKind;
use super::path::Path;
use super::wall::{Wall, crossing};
use super::wave::Wave;

/// The maximum number of enemies per wave. Excess enemies of a larger wave do not appear.
pub(super) const SLOTS_MAX: u16 = 256;

/// Everything that does not change during a match.
///
/// ```
/// use powderkeg_game::Rules;
/// let crowded = Rules::arena(1_000);
/// assert_eq!(crowded.walls, Rules::campaign().walls);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rules {
    pub half: Vec2,
    pub walls: Vec<Wall>,
    pub spawns: Vec<Vec2>,
    /// The positions of barrels at the start, on whole 64ths of a unit; at most 128.
    pub barrels: Vec<Vec2>,
    /// The positions of crates at the start, on whole 64ths of a unit; at most 128.
    pub crates: Vec<Vec2>,
    /// Paths of enemies that shoot; at least one.
    pub orbits: Vec<Path>,
    /// Paths of enemies that light barrels; at least one.
    pub rounds: Vec<Path>,
    /// Paths of enemies that charge; at least one.
    pub rushes: Vec<Path>,
    /// Paths of bosses; at least one.
    pub thrones: Vec<Path>,
    /// The waves of a round, in order. Empty for an endless arena, which has no lobby, lives or end.
    pub waves: Vec<Wave>,
    /// The number of simultaneous enemies in an endless arena. A step's cost grows linearly with it.
    pub enemies: u16,
    pub tuning: Tuning,
}

/// The game's parameters. Speeds are units per tick; a tick is 1/60 s. The parameters of weapons and enemy kinds are in
/// [`Weapon`](crate::Weapon) and [`EnemyKind`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    pub walk_speed: f32,
    pub dash_speed: f32,
    pub dash_ticks: u32,
    pub dash_rest_ticks: u32,
    /// A player's health when it appears, which is also its maximum.
    pub player_health: i16,
    pub bullet_damage: i16,
    pub touch_damage: i16,
    pub mercy_ticks: u32,
    pub player_return_ticks: u32,
    /// A returned player cannot be hurt until it acts, and for this long after that.
    pub shield_ticks: u32,
    /// The time from an enemy's death to its successor's arrival in an endless arena.
    pub enemy_return_ticks: u32,
    /// A new enemy neither fires nor hurts for this long.
    pub enemy_waking_ticks: u32,
    /// All enemies of an endless arena arrive within this time, at equal intervals.
    pub enemy_arrival_ticks: u32,
    pub bullet_ticks: u32,
    pub bullets_max: u32,
    pub light_reach: f32,
    pub fuse_ticks: u32,
    /// The time from lighting to blast, for a barrel that a blast has lit.
    pub chain_fuse_ticks: u32,
    pub barrel_return_ticks: u32,
    pub blast_radius: f32,
    pub blast_damage: i16,
    pub shell_radius: f32,
    /// The damage in the middle of a shell's blast; at the edge, half of this damage.
    pub shell_damage: i16,
    /// The mean speed that a blast gives to a barrel or crate at its centre; at the edge, a quarter of this speed.
    pub toss_speed: f32,
    pub crate_health: i16,
    /// The time from a crate's end to the next crate at its position.
    pub crate_return_ticks: u32,
    pub pickup_ticks: u32,
    pub heal: i16,
    pub crit_damage: i16,
    pub crit_percent: u32,
    pub carry_percent: u32,
    pub lives: u16,
    pub lives_per_player: u16,
    /// Once at least half of the present players are ready, the round waits for the others for this long.
    pub patience_ticks: u32,
    /// The time from the start of a round to its first wave.
    pub countdown_ticks: u32,
    pub lull_ticks: u32,
    pub curtain_ticks: u32,
    /// The additional enemies for each player after the first, in percent.
    pub crowd_percent: u32,
    /// The additional health of a boss for each player after the first, in percent.
    pub boss_percent: u32,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            walk_speed: 0.16,
            dash_speed: 0.45,
            dash_ticks: 10,
            dash_rest_ticks: 45,
            player_health: 100,
            bullet_damage: 34,
            touch_damage: 100,
            mercy_ticks: 45,
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
            shell_radius: 3.5,
            shell_damage: 80,
            toss_speed: 0.36,
            crate_health: 40,
            crate_return_ticks: 1_800,
            pickup_ticks: 900,
            heal: 50,
            crit_damage: 40,
            crit_percent: 25,
            carry_percent: 12,
            lives: 0,
            lives_per_player: 3,
            patience_ticks: 1_200,
            countdown_ticks: 180,
            lull_ticks: 300,
            curtain_ticks: 180,
            crowd_percent: 65,
            boss_percent: 70,
        }
    }
}

impl Rules {
    /// The number of enemy slots that these rules need with any number of players.
    #[must_use]
    pub fn slots(&self) -> u16 {
        let percent = self.tuning.crowd_percent;
        let waves = self.waves.iter();
        let most = waves.map(|wave| wave.total(PLAYERS_MAX, percent)).max();
        most.map_or(self.enemies, |most| most.min(SLOTS_MAX))
    }

    #[must_use]
    pub fn is_campaign(&self) -> bool {
        !self.waves.is_empty()
    }

    /// Returns the position nearest to `at` where a disc of `radius` fits: outside of walls, inside the arena.
    #[must_use]
    pub fn place(&self, at: Vec2, radius: f32) -> Vec2 {
        let free = self
            .walls
            .iter()
            .fold(at, |at, wall| wall.push_out(at, radius));
        free.clamp(radius - self.half, self.half - radius)
    }

    /// Returns the number of ticks until a point that moves by `step` per tick meets a wall or the edge, at most
    /// `ticks_max`. Walls never move, so this is computed once, when a bullet is fired.
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

    /// Returns the number of ticks for which a point that moves by `step` per tick stays inside the arena, at most
    /// `ticks_max`. Ignores walls.
    #[must_use]
    pub fn ticks_inside(&self, from: Vec2, step: Vec2, ticks_max: u32) -> u32 {
        let way = step * ticks_max as f32;
        let edge = crossing(from, way, self.half).map_or(0.0, |(_, leave)| leave.clamp(0.0, 1.0));
        (edge * ticks_max as f32) as u32
    }

    #[must_use]
    pub fn sees(&self, from: Vec2, to: Vec2) -> bool {
        self.walls
            .iter()
            .all(|wall| wall.meets(from, to - from).is_none())
    }

    pub(super) fn paths(&self, kind: EnemyKind) -> &[Path] {
        match kind {
            EnemyKind::Gunner | EnemyKind::Urchin | EnemyKind::Spinner => &self.orbits,
            EnemyKind::Sapper => &self.rounds,
            EnemyKind::Charger => &self.rushes,
            EnemyKind::Boss => &self.thrones,
        }
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
    fn a_bullet_ends_at_walls_and_at_the_edge() {
        let rules = Rules {
            walls: vec![WALL],
            half: Vec2::splat(10.0),
            ..Rules::arena(0)
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
}
