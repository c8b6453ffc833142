//! The bodies of a picture, with their keys and positions; and [`GameShow`], which gives them to the client's
//! interpolation.
//!
//! These are poses, not copies of the state. A view interpolates and smooths them by key, and reads colours, bars and
//! numbers from the state itself.
//!
//! ```text
//!   poses ──▶ the local players and their shots           as the newest tick has them
//!         ──▶ the other players and their shots           at the time at which each player is known
//!         ──▶ everything else                             between the last two ticks
//! ```

use std::time::Duration;

use glam::Vec2;
use twinstep_client::{Angle, Muzzle, Placed, Poses, Scene, Show, Smoothing};
use twinstep_core::{Key, PlayerId, PlayerSet};

use super::cue::Cue;
use super::kind::EnemyKind;
use super::state::{Game, Item, Prop, Shot};
use super::units::angle_of;
use super::weapon::Weapon;

/// The identity of a drawn thing. Its order is the drawing order, so the poses of a tick are nearly sorted, and those
/// of two ticks can be compared entry by entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShowKey {
    Crate {
        n: u8,
        /// Rises with each respawn in slot `n`.
        life: u32,
    },
    Barrel {
        n: u8,
        /// Rises with each respawn in slot `n`.
        life: u32,
    },
    Pickup {
        key: Key,
        item: Item,
    },
    /// An enemy, in one of its lives.
    Enemy {
        slot: u16,
        life: u32,
        kind: EnemyKind,
    },
    /// A player, in one of its lives, so that a respawn does not count as a movement.
    Player {
        id: PlayerId,
        life: u32,
    },
    Shot {
        owner: PlayerId,
        /// The shot's number among its owner's shots.
        n: u32,
        weapon: Weapon,
    },
    Bullet {
        key: Key,
        kind: EnemyKind,
    },
}

impl ShowKey {
    #[must_use]
    pub fn is_subject_of(self, cue: &Cue) -> bool {
        match (self, *cue) {
            (
                ShowKey::Player { id, .. },
                Cue::Appeared(who)
                | Cue::Shot { player: who, .. }
                | Cue::Dashed(who)
                | Cue::Hurt(who)
                | Cue::ShieldBroke(who)
                | Cue::PlayerDied(who)
                | Cue::Ready(who)
                | Cue::Took { player: who, .. }
                | Cue::Scored { player: who, .. },
            ) => id == who,
            (
                ShowKey::Enemy { slot, .. },
                Cue::Hit(which)
                | Cue::Crit(which)
                | Cue::Volley(which)
                | Cue::EnemyDied(which)
                | Cue::Enraged { slot: which, .. },
            ) => slot == which,
            (
                ShowKey::Barrel { n, .. },
                Cue::Lit(which)
                | Cue::Blast(which)
                | Cue::Fizzle(which)
                | Cue::Tossed(Prop::Barrel(which)),
            )
            | (
                ShowKey::Crate { n, .. },
                Cue::CrateHit(which) | Cue::CrateBroke(which) | Cue::Tossed(Prop::Crate(which)),
            ) => n == which,
            (
                ShowKey::Shot { owner, n, .. },
                Cue::Burst {
                    owner: who,
                    n: which,
                },
            ) => (owner, n) == (who, which),
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    pub at: Vec2,
    /// The angle in radians, counter-clockwise from +x.
    pub angle: f32,
}

/// Passes every drawable thing to `draw`: crates, barrels, pick-ups, enemies, players, then shots and bullets. Draw in
/// this order. Each key occurs once. A player's shot comes with its state.
pub fn poses(game: &Game, mut draw: impl FnMut(ShowKey, Pose, Option<&Shot>)) {
    let mut put = |key, pose| draw(key, pose, None);
    let still = |at: Vec2| Pose { at, angle: 0.0 };
    for (chest, n) in game.crates.iter().zip(0..) {
        if chest.is_there() {
            let life = chest.life;
            put(ShowKey::Crate { n, life }, still(chest.at));
        }
    }
    for (barrel, n) in game.barrels.iter().zip(0..) {
        if barrel.is_there() {
            let life = barrel.life;
            put(ShowKey::Barrel { n, life }, still(barrel.at));
        }
    }
    for pickup in &game.pickups {
        let (key, item) = (pickup.key, pickup.item);
        put(ShowKey::Pickup { key, item }, still(pickup.at));
    }
    for (enemy, slot) in game.enemies.iter().zip(0..) {
        if enemy.is_alive() {
            let (life, kind) = (enemy.life, enemy.kind);
            put(ShowKey::Enemy { slot, life, kind }, still(enemy.at));
        }
    }
    for (id, player) in game.players.iter().filter(|(_, player)| player.is_alive()) {
        let pose = Pose {
            at: player.at,
            angle: player.facing.angle(),
        };
        put(
            ShowKey::Player {
                id: *id,
                life: player.life,
            },
            pose,
        );
    }
    // By owner, because `ShowKey` sorts by owner first: the poses then need no sorting.
    let owners: PlayerSet = game.shots.iter().map(|shot| shot.owner).collect();
    for owner in owners.iter() {
        for shot in game.shots.iter().filter(|shot| shot.owner == owner) {
            draw(
                ShowKey::Shot {
                    owner,
                    n: shot.key.n,
                    weapon: shot.weapon,
                },
                Pose {
                    at: shot.at,
                    angle: angle_of(shot.step),
                },
                Some(shot),
            );
        }
    }
    for bullet in &game.bullets {
        draw(
            ShowKey::Bullet {
                key: bullet.key,
                kind: bullet.kind,
            },
            // Bullets are round.
            still(bullet.at),
            None,
        );
    }
}

impl ShowKey {
    #[must_use]
    pub fn kind(&self) -> Option<EnemyKind> {
        match self {
            ShowKey::Enemy { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

/// Gives a client of Powderkeg the poses that it draws.
#[derive(Clone, Copy, Debug, Default)]
pub struct GameShow;

impl GameShow {
    /// The smoothing of corrections. A remote player's shot reaches its path after 100 ms. Corrections up to the length
    /// of a dash, or of a blaster shot's flight in 20 ticks, glide; larger ones jump. Smaller ones need not jump,
    /// because a respawned player has a new key.
    pub const SMOOTHING: Smoothing = Smoothing::new(12.5, Duration::from_millis(100));
}

impl Show<Game> for GameShow {
    type Key = ShowKey;
    type Pose = Placed;

    fn poses(&self, scene: &Scene<'_, Game>, out: &mut Poses<ShowKey, Placed>) {
        let game = scene.sim;
        poses(game, |key, pose, shot| {
            let placed = place(pose.at, pose.angle);
            match (key, shot) {
                (ShowKey::Player { id, .. }, _) => out.put_player(id, key, placed),
                (_, Some(shot)) => {
                    let player = game.players.get(&shot.owner);
                    let muzzle = Muzzle {
                        shooter: ShowKey::Player {
                            id: shot.owner,
                            life: player.map_or(0, |player| player.life),
                        },
                        at: player.map_or(placed, |player| place(player.at, pose.angle)),
                        born: shot.born,
                    };
                    out.put_from(shot.owner, key, placed, muzzle);
                }
                _ => out.put(key, placed),
            }
        });
    }
}

fn place(at: Vec2, angle: f32) -> Placed {
    Placed {
        at,
        angle: Angle(angle),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use twinstep_client::Known;
    use twinstep_client::internal::Picture;
    use twinstep_core::testing::Solo;
    use twinstep_core::{PlayerId, PlayerSet, Tick};

    use super::super::testing::*;
    use super::*;
    use crate::{Heading, Pad, Rules, Weapon};

    #[test]
    fn each_living_body_is_shown_once() {
        let mut game = with_player(arena(40));
        game.hold(
            ONE,
            Pad {
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .run(700);
        game.sim_mut().enemies[3].health = 0;
        let mut picture = BTreeMap::new();
        poses(game.sim(), |key, pose, _| {
            assert_eq!(picture.insert(key, pose), None, "{key:?} twice");
        });
        let sim = game.sim();
        let barrels = sim.barrels.iter().filter(|barrel| barrel.stands()).count();
        let alive = sim.enemies.iter().filter(|enemy| enemy.is_alive()).count();
        assert!(alive < 40);
        assert_eq!(
            picture.len(),
            1 + alive + barrels + sim.pickups.len() + sim.shots.len() + sim.bullets.len()
        );
        assert_eq!(
            picture[&ShowKey::Player { id: ONE, life: 1 }].at,
            player(&game).at
        );
    }

    const TICK: Duration = Duration::from_millis(16);

    /// Steps two players that walk and fire. Returns the game, and the picture of a screen where player 0 is local.
    fn played(ticks: u32) -> (Solo<Game>, Picture<ShowKey, Placed>) {
        let rules = Rules::arena(8);
        let show = GameShow;
        let mut solo = Solo::new(Game::new(&rules, 5), rules);
        let pad = Pad {
            walk: Heading(64),
            aim: Heading::EAST,
            buttons: Pad::FIRE,
        };
        let locals: PlayerSet = [PlayerId(0)].into_iter().collect();
        let (mut picture, mut poses) = (Picture::new(GameShow::SMOOTHING), Poses::new());
        solo.join(PlayerId(0)).join(PlayerId(1));
        solo.hold(PlayerId(0), pad).hold(PlayerId(1), pad);
        for tick in 0..ticks {
            solo.step();
            poses.begin(locals);
            show.poses(&Scene::new(solo.world(), solo.rules()), &mut poses);
            picture.ticked(&mut poses, TICK * tick);
        }
        (solo, picture)
    }

    fn shown(picture: &Picture<ShowKey, Placed>, id: PlayerId, ticks: u32) -> Vec2 {
        let key = ShowKey::Player { id, life: 1 };
        picture.pose(key, 0.0, TICK * ticks).unwrap().at
    }

    #[test]
    fn a_local_player_is_drawn_at_the_newest_tick_and_a_remote_one_behind_it() {
        let (solo, picture) = played(60);
        let [own, other] = [0, 1].map(|n| solo.sim().players.get(&PlayerId(n)).unwrap().at);
        assert_eq!(shown(&picture, PlayerId(0), 59), own);
        let behind = other - shown(&picture, PlayerId(1), 59);
        let step = Heading(64).unit() * 0.16;
        assert!((behind - step).length() < 1e-4, "{behind} behind");
    }

    #[test]
    fn a_dash_is_smoothed_and_so_is_a_shot_received_twenty_ticks_late() {
        let tuning = Rules::arena(0).tuning;
        let speed = Weapon::Blaster.speed();
        let farthest = (tuning.dash_speed * tuning.dash_ticks as f32).max(speed * 20.0);
        assert!(GameShow::SMOOTHING.teleport >= farthest, "{farthest}");
    }

    /// Row 67.
    #[test]
    fn another_players_shot_starts_at_its_muzzle() {
        // Fire is due at ticks 0, 7, 14 ...
        for (ticks, n) in [(1, 1), (8, 2), (15, 3)] {
            let (solo, picture) = played(ticks);
            let now = TICK * (ticks - 1);
            let shot = |owner| {
                let weapon = Weapon::Blaster;
                let key = ShowKey::Shot { owner, n, weapon };
                picture.pose(key, 0.0, now).unwrap().at
            };
            let own = solo.sim().players.get(&PlayerId(0)).unwrap().at;
            let flown = shot(PlayerId(0)) - own;
            assert!((flown - Vec2::X * 0.6).length() < 1e-4, "{flown}");
            let muzzle = shown(&picture, PlayerId(1), ticks - 1);
            let gap = shot(PlayerId(1)) - muzzle;
            assert!(gap.length() < 0.2, "{gap} from the muzzle");
        }
    }

    /// Row 67: while the input of another player is not known here, a shot that follows from it is a guess, and is not
    /// drawn.
    #[test]
    fn a_guessed_shot_is_not_drawn_until_it_is_known() {
        let (solo, _) = played(8);
        let show = GameShow;
        let (mut picture, mut poses) = (Picture::new(GameShow::SMOOTHING), Poses::new());
        let locals: PlayerSet = [PlayerId(0)].into_iter().collect();
        let shots = |picture: &Picture<ShowKey, Placed>| {
            let keys = picture.shown(0.0, TICK * 8).map(|(key, _)| key);
            let owner = |key| match key {
                ShowKey::Shot { owner, n, .. } => Some((owner.0, n)),
                _ => None,
            };
            keys.filter_map(owner).collect::<Vec<_>>()
        };
        // Of tick 7, when both fire, only the local player's input is known.
        poses.begin_knowing(locals, &Known::ALL.guessed_from(PlayerId(1), Tick(5)));
        show.poses(&Scene::new(solo.world(), solo.rules()), &mut poses);
        picture.ticked(&mut poses, TICK * 7);
        assert_eq!(shots(&picture), [(0, 1), (0, 2)]);
        poses.begin(locals);
        show.poses(&Scene::new(solo.world(), solo.rules()), &mut poses);
        picture.ticked(&mut poses, TICK * 8);
        assert_eq!(shots(&picture), [(0, 1), (0, 2), (1, 2)]);
        let key = ShowKey::Shot {
            owner: PlayerId(1),
            n: 2,
            weapon: Weapon::Blaster,
        };
        let muzzle = shown(&picture, PlayerId(1), 8);
        let gap = picture.pose(key, 0.0, TICK * 8).unwrap().at - muzzle;
        assert!(gap.length() < 0.2, "{gap} from the muzzle");
    }
}
