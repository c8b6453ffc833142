//! Helpers of this game's tests: small arenas, with players and enemies where a test needs them.

use glam::Vec2;
use twinstep_core::{Key, PlayerId, Tick};

use super::{
    Bullet, Enemy, EnemyKind, Game, Group, Item, Player, RoundPhase, Rules, Shot, Tuning, Wave,
    Weapon,
};

pub(super) type SoloGame = twinstep_core::testing::Solo<Game>;

pub(super) const ONE: PlayerId = PlayerId(1);
pub(super) const TWO: PlayerId = PlayerId(2);

pub(super) fn rules() -> Rules {
    Rules::arena(0)
}

/// A round of two small waves: a few gunners, then a boss with one gunner. Enemies carry no pick-ups.
pub(super) fn short() -> Rules {
    let group = |kind, count| Group {
        kind,
        count,
        after_ticks: 0,
        every_ticks: 10,
    };
    let campaign = Rules::campaign();
    Rules {
        waves: vec![
            Wave {
                groups: vec![group(EnemyKind::Gunner, 2)],
            },
            Wave {
                groups: vec![group(EnemyKind::Boss, 1), group(EnemyKind::Gunner, 1)],
            },
        ],
        tuning: Tuning {
            carry_percent: 0,
            ..campaign.tuning
        },
        ..campaign
    }
}

pub(super) fn run_until(game: &mut SoloGame, phase: RoundPhase) {
    for _ in 0..1_000 {
        if game.sim().phase == phase {
            return;
        }
        game.step();
    }
    panic!("still in {:?}, not in {phase:?}", game.sim().phase);
}

pub(super) fn slay(game: &mut SoloGame) {
    for enemy in &mut game.sim_mut().enemies {
        enemy.health = enemy.health.min(1);
    }
    let places: Vec<Vec2> = {
        let enemies = game.sim().enemies.iter();
        enemies
            .filter(|enemy| enemy.is_alive())
            .map(|enemy| enemy.at)
            .collect()
    };
    for at in places {
        put_shot(game, ONE, at);
    }
    game.step();
}

pub(super) fn solo(rules: Rules) -> SoloGame {
    SoloGame::new(Game::new(&rules, 99), rules)
}

pub(super) fn quiet() -> SoloGame {
    solo(rules())
}

pub(super) fn arena(enemies: u16) -> SoloGame {
    solo(Rules::arena(enemies))
}

pub(super) fn with_player(mut game: SoloGame) -> SoloGame {
    game.join(ONE).step();
    game
}

pub(super) fn player(game: &SoloGame) -> &Player {
    game.sim().players.get(&ONE).expect("player ONE has joined")
}

pub(super) fn player_mut(game: &mut SoloGame) -> &mut Player {
    game.sim_mut()
        .players
        .get_mut(&ONE)
        .expect("player ONE has joined")
}

/// Adds an enemy that stays in place and does not fire. Its kind depends on its slot, as in an arena.
pub(super) fn put_enemy(game: &mut SoloGame, slot: u16, at: Vec2) -> Key {
    put_kind(game, slot, EnemyKind::of_arena(slot), at)
}

pub(super) fn put_kind(game: &mut SoloGame, slot: u16, kind: EnemyKind, at: Vec2) -> Key {
    let enemies = &mut game.sim_mut().enemies;
    for empty in enemies.len()..=usize::from(slot) {
        let mut nobody = Enemy::posted(empty as u16, kind, Vec2::ZERO);
        nobody.health = 0;
        enemies.push(nobody);
    }
    let enemy = Enemy::posted(slot, kind, at);
    let key = enemy.key(slot);
    enemies[usize::from(slot)] = enemy;
    key
}

pub(super) fn put_bullet(game: &mut SoloGame, key: Key, at: Vec2) {
    game.sim_mut().bullets.push(Bullet {
        key,
        kind: EnemyKind::Gunner,
        at,
        step: Vec2::ZERO,
        ends: Tick::MAX,
    });
}

pub(super) fn put_shot(game: &mut SoloGame, owner: PlayerId, at: Vec2) {
    let now = game.world().tick();
    let weapon = Weapon::Blaster;
    // A number that no player reaches in a test, below the bit that distinguishes a toss from its blast.
    let n = (1 << 30) - 1;
    let mut shot = Shot::fired(owner, n, weapon, at, Vec2::ZERO, now, &rules());
    shot.ends = Tick::MAX;
    game.sim_mut().shots.push(shot);
}

pub(super) fn put_item(game: &mut SoloGame, item: Item, at: Vec2) -> Key {
    let sim = game.sim_mut();
    let n = sim.pickups.last().map_or(1, |last| last.key.n + 1);
    let key = Key::new(9_999, n);
    let (world_tick, rules) = (game.world().tick(), rules());
    game.sim_mut().add_pickup(key, item, at, world_tick, &rules);
    key
}
