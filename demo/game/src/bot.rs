//! An automatic player: reads the state, draws from its own generator, and produces a pad.
//!
//! Bots are real clients: their inputs take the same path as a human's, and their generator is not part of the game's
//! state. The same seed and the same states produce the same inputs.

use glam::Vec2;
use twinstep_core::{Mwc, PlayerId, Tick};

use super::order::Command;
use super::pad::Pad;
use super::rules::Rules;
use super::state::{BarrelStage, Game, Item, PLAYER_RADIUS, Player};
use super::units::Heading;
use super::weapon::Weapon;

/// How a bot moves its sticks, which a prediction has to guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sticks {
    /// Keys and a mouse: one of eight directions, held for a while; the aim jitters.
    Keys,
    /// The pad changes every tick, as under a human's thumbs, which is the hardest to guess.
    Analog,
    /// The pad changes every tenth tick.
    Sticky,
    /// Neutral, no fire, no orders.
    Still,
}

const STICKY_TICKS: u32 = 10;
/// The shortest time between two decisions of a bot with keys. People react after about 0.3 s (18 ticks).
const REACTION_TICKS: u32 = 18;
const WAYS: i32 = 8;
// A bot changes direction only when its desired direction is at least this far off, in 255ths of a circle. That is more
// than half of the step between two directions, so that it does not flip between them.
const OFF_COURSE: i32 = 30;
/// The distance within which a bot fires at an enemy, in units.
const SIGHT: f32 = 18.0;
/// The distance within which a bot fetches a pick-up, in units.
const GREED: f32 = 16.0;
/// The distance that a bot keeps to its target, in units.
const RANGE: f32 = 8.0;
/// A bot foresees bullets this many ticks ahead.
const FORESIGHT_TICKS: f32 = 40.0;
/// A bot dodges a bullet that passes closer than this, in units.
const MISS: f32 = 1.3;

/// A bot waits this long before it is ready. Meanwhile, others can join and look around.
const PATIENCE_TICKS: u32 = 150;

#[derive(Clone, Debug)]
pub struct Bot {
    sticks: Sticks,
    luck: Mwc,
    pad: Pad,
    next_order: Tick,
    /// The tick since which the round waits for players to be ready.
    asked_since: Option<Tick>,
    next_thought: Tick,
    /// The side on which it circles its target: 1 or −1.
    hand: f32,
}

impl Bot {
    #[must_use]
    pub fn new(sticks: Sticks, mut luck: Mwc) -> Bot {
        Bot {
            sticks,
            hand: if luck.below(2) == 0 { 1.0 } else { -1.0 },
            luck,
            pad: Pad::default(),
            next_order: Tick(0),
            asked_since: None,
            next_thought: Tick(0),
        }
    }

    pub fn think(
        &mut self,
        game: &Game,
        rules: &Rules,
        me: PlayerId,
        now: Tick,
    ) -> (Pad, Option<Command>) {
        if self.sticks == Sticks::Still {
            return (Pad::default(), None);
        }
        let Some(player) = game.players.get(&me) else {
            return (Pad::default(), None);
        };
        if player.is_alive() {
            if self.sticks != Sticks::Sticky || now.0.is_multiple_of(STICKY_TICKS) {
                self.pad = self.grip(game, rules, player, now);
            }
        } else {
            // A dead player's sticks are at rest.
            self.pad = Pad::default();
        }
        (self.pad, self.order(game, rules, player, now))
    }

    fn grip(&mut self, game: &Game, rules: &Rules, player: &Player, now: Tick) -> Pad {
        let target = target(game, rules, player);
        let walk = if self.sticks == Sticks::Keys {
            self.press(game, rules, player, target, now)
        } else {
            let course = self.course(game, rules, player, target, now);
            match course == Vec2::ZERO {
                true => self.pad.walk.turned(self.other_than_zero(6)),
                false => Heading::toward(course).turned(self.other_than_zero(3)),
            }
        };
        let aim = match target {
            Some(target) => Heading::toward(target.at - player.at),
            None => walk,
        };
        let reaches = target.is_some_and(|target| target.is_seen || player.weapon.is_lobbed());
        let pad = Pad {
            walk,
            aim: aim.turned(self.other_than_zero(2)),
            buttons: if reaches { Pad::FIRE } else { 0 },
        };
        if pad == self.pad && self.sticks != Sticks::Keys {
            // Analog sticks never hold a value for two ticks.
            return Pad {
                walk: walk.turned(1),
                ..pad
            };
        }
        pad
    }

    fn press(
        &mut self,
        game: &Game,
        rules: &Rules,
        player: &Player,
        target: Option<Target>,
        now: Tick,
    ) -> Heading {
        let held = self.pad.walk;
        if now < self.next_thought {
            return held;
        }
        self.next_thought = now + REACTION_TICKS + self.luck.below(REACTION_TICKS);
        let wish = Heading::toward(self.course(game, rules, player, target, now));
        if wish == Heading::NONE || held != Heading::NONE && held.turn_to(wish).abs() < OFF_COURSE {
            return held;
        }
        wish.nearest_of(WAYS)
    }

    /// Returns the bot's desired direction, not normalised: away from dangers, toward pick-ups, around the target.
    fn course(
        &self,
        game: &Game,
        rules: &Rules,
        player: &Player,
        target: Option<Target>,
        now: Tick,
    ) -> Vec2 {
        let at = player.at;
        let goal = goal(game, player).map(|place| (place - at).normalize_or_zero());
        let wish = goal.unwrap_or_else(|| match target {
            Some(target) => {
                let offset = target.at - at;
                let distance = offset.length().max(0.1);
                let toward = offset / distance;
                toward * ((distance - RANGE) / RANGE).clamp(-1.0, 1.0)
                    + toward.perp() * self.hand * 0.6
            }
            // Slowly toward the middle, where more is in sight.
            None => away_from_teammates(game, at) - at * 0.02,
        });
        let course = wish + danger(game, rules, player, now) * 2.0;
        // If a wall is in the way, walk along it.
        let next = rules.place(at + course.normalize_or_zero(), PLAYER_RADIUS);
        if next.distance_squared(at) < 0.25 {
            course.perp() * self.hand
        } else {
            course
        }
    }

    fn order(&mut self, game: &Game, rules: &Rules, player: &Player, now: Tick) -> Option<Command> {
        if !game.phase.is_waiting() {
            self.asked_since = None;
        }
        if now < self.next_order {
            return None;
        }
        let order = if game.phase.is_waiting() {
            let since = *self.asked_since.get_or_insert(now);
            let is_patient = now.0 >= since.0 + PATIENCE_TICKS;
            (is_patient && !player.is_ready).then_some(Command::Ready)
        } else if player.is_alive() {
            let reach = rules.tuning.light_reach;
            let mut near = game.barrels.iter().zip(0..).filter(|(barrel, _)| {
                barrel.stage == BarrelStage::Whole && barrel.at.distance(player.at) <= reach
            });
            let barrel = near.next().map(|(_, barrel)| Command::Light { barrel });
            barrel.or_else(|| {
                // A human with a keyboard dashes away from something; bots with sticks dash all the time.
                let sprints = self.sticks != Sticks::Keys
                    || danger(game, rules, player, now).length_squared() > 1.0;
                sprints.then_some(Command::Dash)
            })
        } else {
            None
        }?;
        let rest = match order {
            Command::Dash if self.sticks == Sticks::Keys => 150,
            _ => 45,
        };
        self.next_order = now + rest + self.luck.below(30);
        Some(order)
    }

    fn other_than_zero(&mut self, most: i32) -> i32 {
        let n = self.luck.range(-most..most);
        if n >= 0 { n + 1 } else { n }
    }
}

#[derive(Clone, Copy)]
struct Target {
    at: Vec2,
    is_seen: bool,
}

fn target(game: &Game, rules: &Rules, player: &Player) -> Option<Target> {
    let mut best: Option<(bool, f32, Target)> = None;
    for enemy in game.enemies.iter().filter(|enemy| enemy.is_alive()) {
        let distance = enemy.at.distance_squared(player.at);
        let is_better = |seen: bool| match &best {
            Some((hidden, nearest, _)) => (!seen, distance) < (*hidden, *nearest),
            None => true,
        };
        // A line of sight costs a test of all walls, so it is computed only for enemies that may become the best.
        let is_near = distance < SIGHT * SIGHT;
        if is_better(is_near) {
            let is_seen = is_near && rules.sees(player.at, enemy.at);
            if is_better(is_seen) {
                let at = enemy.at;
                best = Some((!is_seen, distance, Target { at, is_seen }));
            }
        }
    }
    best.map(|(_, _, target)| target)
}

fn goal(game: &Game, player: &Player) -> Option<Vec2> {
    let wanted = |item: Item| match item {
        Item::Weapon(_) => player.weapon == Weapon::Blaster,
        Item::Health => player.health < 100,
        Item::Shield => !player.has_shield,
        Item::Life => true,
    };
    let lying = game.pickups.iter().filter(|pickup| wanted(pickup.item));
    lying
        .map(|pickup| (pickup.at.distance_squared(player.at), pickup.at))
        .filter(|(distance, _)| *distance < GREED * GREED)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, at)| at)
}

fn away_from_teammates(game: &Game, at: Vec2) -> Vec2 {
    let others = game.players.values().filter(|other| other.is_alive());
    let near = others.map(|other| at - other.at);
    let near = near.filter(|way| (0.01..2.2).contains(&way.length()));
    near.map(|way| way.normalize_or_zero() * 0.4).sum()
}

/// Steers away from bullets that come close, from enemies nearby and the lanes of chargers, and from burning barrels. A
/// longer vector is more urgent.
fn danger(game: &Game, rules: &Rules, player: &Player, now: Tick) -> Vec2 {
    let mut away = Vec2::ZERO;
    for bullet in &game.bullets {
        let offset = bullet.at - player.at;
        let speed_squared = bullet.step.length_squared();
        let ticks = -offset.dot(bullet.step) / speed_squared.max(1e-6);
        if !(0.0..FORESIGHT_TICKS).contains(&ticks) {
            continue;
        }
        let miss = offset + bullet.step * ticks;
        if miss.length_squared() < MISS * MISS {
            // A bullet that flies straight at the bot passes on neither side, so step to its left.
            let aside = match miss.length_squared() > 1e-4 {
                true => -miss.normalize_or_zero(),
                false => bullet.step.perp().normalize_or_zero(),
            };
            away += aside * (1.0 - ticks / FORESIGHT_TICKS) * 1.5;
        }
    }
    let mut shun = |at: Vec2, reach: f32| {
        let offset = player.at - at;
        let distance = offset.length();
        if distance < reach {
            away += offset.normalize_or_zero() * (1.0 - distance / reach) * 2.0;
        }
    };
    for enemy in game.enemies.iter().filter(|enemy| enemy.is_alive()) {
        shun(enemy.at, enemy.kind.radius() + 3.5);
        if let Some(end) = enemy.threatens(now, rules) {
            // Shun the nearest point of the lane, not the enemy, because the enemy will dart along the lane.
            let lane = end - enemy.at;
            let part = (player.at - enemy.at).dot(lane) / lane.length_squared().max(1e-6);
            shun(enemy.at + lane * part.clamp(0.0, 1.0), 2.5);
        }
    }
    for barrel in game
        .barrels
        .iter()
        .filter(|barrel| barrel.stage == BarrelStage::Lit)
    {
        shun(barrel.at, rules.tuning.blast_radius + 1.5);
    }
    away
}

#[cfg(test)]
mod tests {
    use twinstep_core::Key;

    use super::super::testing::*;
    use super::*;
    use crate::{BULLET_RADIUS, Bullet, EnemyKind, RoundPhase};

    fn play(sticks: Sticks, ticks: u32) -> (Vec<Pad>, usize) {
        let mut game = with_player(arena(24));
        let mut bot = Bot::new(sticks, Mwc::seed(5));
        let (mut pads, mut orders) = (Vec::new(), 0);
        for _ in 0..ticks {
            let (pad, order) = bot.think(game.sim(), &rules(), ONE, game.world().tick());
            game.hold(ONE, pad);
            if let Some(order) = order {
                game.command(ONE, order);
                orders += 1;
            }
            pads.push(pad);
            game.step();
        }
        (pads, orders)
    }

    fn changes(pads: &[Pad]) -> usize {
        pads.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn analog_sticks_change_every_tick() {
        let (pads, orders) = play(Sticks::Analog, 600);
        assert_eq!(changes(&pads), 599);
        assert!((8..=13).contains(&orders), "{orders}");
        assert!(pads.iter().any(Pad::fires));
    }

    #[test]
    fn sticky_sticks_change_every_tenth_tick() {
        let (pads, _) = play(Sticks::Sticky, 600);
        assert!((50..=60).contains(&changes(&pads)), "{}", changes(&pads));
    }

    #[test]
    // A direction is held for at least `REACTION_TICKS`, and is one of eight.
    fn a_bot_with_keys_uses_eight_directions_and_holds_each_for_a_while() {
        let (pads, _) = play(Sticks::Keys, 600);
        let ways: std::collections::BTreeSet<u8> = pads.iter().map(|pad| pad.walk.0).collect();
        assert!((4..=9).contains(&ways.len()), "{ways:?}");
        let changed = |pair: &[Pad]| pair[0].walk != pair[1].walk;
        let turns: Vec<usize> = (1..600).filter(|i| changed(&pads[i - 1..=*i])).collect();
        let pauses = turns.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(turns.len() >= 6, "{} turns", turns.len());
        // Deaths are the exception, because a death releases all keys.
        let short = pauses
            .filter(|pause| *pause < REACTION_TICKS as usize)
            .count();
        assert!(short <= 4, "{short} pauses were too short");
    }

    #[test]
    fn still_sticks_give_no_input_and_no_orders() {
        let (pads, orders) = play(Sticks::Still, 600);
        assert!(pads.iter().all(Pad::is_neutral) && orders == 0);
    }

    #[test]
    fn a_bot_depends_only_on_its_seed() {
        assert_eq!(play(Sticks::Analog, 300), play(Sticks::Analog, 300));
    }

    fn watch(game: &mut SoloGame, rules: &Rules, ticks: u32) {
        let mut bot = Bot::new(Sticks::Analog, Mwc::seed(5));
        for _ in 0..ticks {
            let (pad, order) = bot.think(game.sim(), rules, ONE, game.world().tick());
            game.hold(ONE, pad);
            if let Some(order) = order {
                game.command(ONE, order);
            }
            game.step();
        }
    }

    #[test]
    fn a_bot_is_ready_after_a_while_and_stays_ready() {
        let mut game = solo(short());
        game.join(ONE).join(TWO).step();
        watch(&mut game, &short(), PATIENCE_TICKS - 1);
        assert!(!player(&game).is_ready, "it leaves others some time");
        watch(&mut game, &short(), 400);
        assert!(
            player(&game).is_ready,
            "TWO is not, and ONE does not take it back"
        );
        game.leave(TWO).step();
        watch(&mut game, &short(), 300);
        assert_eq!(game.sim().phase, RoundPhase::Wave);
    }

    #[test]
    fn a_bot_fetches_a_pickup_nearby() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::ZERO;
        put_item(
            &mut game,
            Item::Weapon(Weapon::Scatter),
            Vec2::new(5.0, -3.0),
        );
        watch(&mut game, &rules(), 90);
        assert_eq!(player(&game).weapon, Weapon::Scatter);
    }

    #[test]
    fn a_bot_dodges_a_bullet() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::ZERO;
        game.sim_mut().barrels.clear();
        let (from, step) = (Vec2::new(6.0, 0.1), -Vec2::X * 0.2);
        let now = game.world().tick();
        let bullet = Bullet::fired(Key::new(1, 1), EnemyKind::Gunner, from, step, now, &rules());
        game.sim_mut().bullets.push(bullet);
        let mut bot = Bot::new(Sticks::Analog, Mwc::seed(5));
        let mut nearest = f32::MAX;
        for _ in 0..60 {
            let (pad, _) = bot.think(game.sim(), &rules(), ONE, game.world().tick());
            game.hold(ONE, pad).step();
            for bullet in &game.sim().bullets {
                nearest = nearest.min(bullet.at.distance(player(&game).at));
            }
        }
        assert!(nearest > PLAYER_RADIUS + BULLET_RADIUS, "{nearest}");
    }

    #[test]
    fn a_bot_kills_an_enemy_in_sight() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::ZERO;
        put_kind(&mut game, 0, EnemyKind::Urchin, Vec2::new(6.0, 1.0));
        watch(&mut game, &rules(), 200);
        assert!(!game.sim().enemies[0].is_alive());
    }
}
