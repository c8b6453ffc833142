//! [`Scene`]: everything that one picture shows, gathered from the feed. Painting needs no more, so that pictures can
//! be made, and looked at by tests, without a window or a match.

use std::sync::Arc;
use std::time::Duration;

use glam::Vec2;
use twinstep_client::stats::SessionStats;
use twinstep_core::company::LinkQuality;
use twinstep_core::{PlayerId, Tick};

use crate::feed::{Companion, Feed, Rates};
use crate::game::{
    Cue, Enemy, Game, Item, Kind, Phase, Player, Prop, Rules, ShowKey, Stage, Weapon, angle_of,
};

/// What has gone is remembered for so long.
const MEMORY: Duration = Duration::from_millis(1_500);

/// One picture.
pub(crate) struct Scene {
    pub(crate) rules: Arc<Rules>,
    pub(crate) now: Duration,
    pub(crate) tick: Tick,
    /// What is where, by key.
    pub(crate) things: Vec<Thing>,
    /// What was there a moment ago, and when last: a cue may come after its subject has gone.
    gone: Vec<(Thing, Duration)>,
    /// Where the authority has players and enemies.
    pub(crate) ghosts: Vec<(ShowKey, Vec2)>,
    pub(crate) team: Vec<Member>,
    pub(crate) phase: Phase,
    /// Until this phase ends by itself, in seconds.
    pub(crate) phase_left: Option<f32>,
    /// When the next round begins although not all are ready, in seconds.
    pub(crate) begins_left: Option<f32>,
    pub(crate) wave: u8,
    pub(crate) enemies_left: usize,
    pub(crate) lives: u16,
    pub(crate) score: u32,
    pub(crate) boss: Option<Boss>,
    /// What stands between the player and the match.
    pub(crate) notice: Option<String>,
    /// The simulated link's name; none: the link is real.
    pub(crate) link: Option<String>,
    pub(crate) predicts: bool,
    pub(crate) smooths: bool,
    pub(crate) stats: Option<SessionStats>,
    pub(crate) rates: Rates,
    /// Ten seconds of numbers, the oldest first.
    pub(crate) plots: Vec<Sample>,
    pub(crate) replay: Option<Reel>,
}

/// Something in the arena.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thing {
    pub(crate) key: ShowKey,
    /// In units.
    pub(crate) at: Vec2,
    /// Radians, counter-clockwise from +x.
    pub(crate) angle: f32,
    pub(crate) look: Look,
}

/// What is peculiar to one of its kind, now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Look {
    Plain,
    Player {
        /// Nothing can hurt it.
        is_safe: bool,
        has_shield: bool,
        /// 0 ..= 1.
        health: f32,
    },
    Enemy {
        /// How far it has woken, 0 ..= 1.
        woken: f32,
        /// It drops something when it dies.
        carries: bool,
    },
    /// A barrel or crate.
    Prop {
        /// Its fuse burns.
        is_lit: bool,
        /// It was thrown: how much of its way it has flown, 0 ..= 1.
        aloft: Option<f32>,
    },
    /// A shot over everything: how much of its way it has flown, 0 ..= 1.
    Lobbed(f32),
    /// A pick-up that is about to vanish.
    Fading,
}

/// A player of the team.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) id: PlayerId,
    pub(crate) name: String,
    pub(crate) is_local: bool,
    pub(crate) is_here: bool,
    pub(crate) is_late: bool,
    pub(crate) link: Option<LinkQuality>,
    pub(crate) is_ready: bool,
    pub(crate) is_out: bool,
    pub(crate) has_shield: bool,
    /// 0 ..= 1; 0 is dead.
    pub(crate) health: f32,
    pub(crate) weapon: Weapon,
    /// None: never empty.
    pub(crate) ammo: Option<u16>,
    /// How far the next dash is, 0 ..= 1.
    pub(crate) dash: f32,
    pub(crate) kills: u32,
    pub(crate) score: u32,
    pub(crate) lives: u32,
}

impl Member {
    /// Its name, and that it is who looks at it.
    pub(crate) fn name_here(&self) -> String {
        if self.is_local && self.name != "you" {
            format!("{} (you)", self.name)
        } else {
            self.name.clone()
        }
    }
}

/// The boss of the last wave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Boss {
    /// 0 ..= 1.
    pub(crate) health: f32,
    pub(crate) stage: u8,
}

/// A moment of the netgraph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) rtt_ms: f32,
    pub(crate) jitter_ms: f32,
    pub(crate) loss_percent: f32,
    pub(crate) lead_ticks: f32,
    pub(crate) margin_ticks: f32,
    pub(crate) rebuilds: f32,
    pub(crate) resim_ticks: f32,
    pub(crate) kbytes: f32,
    pub(crate) pdiff: f32,
}

/// How far a replay is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reel {
    /// 0 ..= 1.
    pub(crate) part: f32,
    pub(crate) seconds: f32,
    pub(crate) total_seconds: f32,
    pub(crate) speed: String,
    pub(crate) is_paused: bool,
}

impl Scene {
    /// An empty arena.
    pub(crate) fn new(rules: Arc<Rules>) -> Scene {
        Scene {
            phase: if rules.is_campaign() {
                Phase::Lobby
            } else {
                Phase::Endless
            },
            rules,
            now: Duration::ZERO,
            tick: Tick(0),
            things: Vec::new(),
            gone: Vec::new(),
            ghosts: Vec::new(),
            team: Vec::new(),
            phase_left: None,
            begins_left: None,
            wave: 0,
            enemies_left: 0,
            lives: 0,
            score: 0,
            boss: None,
            notice: None,
            link: None,
            predicts: true,
            smooths: true,
            stats: None,
            rates: Rates::default(),
            plots: Vec::new(),
            replay: None,
        }
    }

    /// Takes over what the feed shows; `with_ghosts`: also where the authority has everybody.
    pub(crate) fn gather(&mut self, feed: &Feed, with_ghosts: bool) {
        self.now = feed.now();
        self.tick = feed.tick();
        self.score = feed.score();
        self.notice = feed.notice().map(|notice| notice.to_string());
        self.link = feed.link().map(str::to_owned);
        self.predicts = feed.predicts();
        self.smooths = feed.smooths();
        self.gather_arena(feed);
        self.ghosts.clear();
        if with_ghosts {
            feed.ghosts(|key, pose| {
                if matches!(key, ShowKey::Player { .. } | ShowKey::Enemy { .. }) {
                    self.ghosts.push((key, pose.at));
                }
            });
        }
        self.gather_numbers(feed);
        self.replay = feed.replay().map(|reel| {
            let seconds = |ticks: u32| reel.tick_length().as_secs_f32() * ticks as f32;
            Reel {
                part: reel.part(),
                seconds: seconds(reel.tick() - reel.first()),
                total_seconds: seconds(reel.end() - reel.first()),
                speed: reel.speed().to_string(),
                is_paused: reel.is_paused(),
            }
        });
    }

    fn gather_arena(&mut self, feed: &Feed) {
        let before = std::mem::take(&mut self.things);
        self.team.clear();
        self.boss = None;
        let Some(game) = feed.game() else { return };
        self.things = Vec::with_capacity(before.len());
        for (key, pose) in feed.shown() {
            let last = find(&before, *key);
            let angle = match key {
                ShowKey::Enemy { kind, .. } => facing(*kind, pose.at, last, game, self.now),
                _ => pose.angle.0,
            };
            self.things.push(Thing {
                key: *key,
                at: pose.at,
                angle,
                look: look(*key, game, self.tick, &self.rules),
            });
        }
        self.remember(&before);
        self.phase = game.phase;
        let left = game
            .phase_ends(&self.rules)
            .map(|ends| ends.0.saturating_sub(self.tick.0));
        self.phase_left = left.map(|ticks| ticks as f32 / 60.0);
        self.begins_left = feed.begins_in().map(|left| left.as_secs_f32());
        self.wave = game.wave;
        self.lives = game.lives;
        self.enemies_left = game
            .enemies
            .iter()
            .filter(|enemy| enemy.is_alive() || enemy.is_coming)
            .count();
        let boss = game
            .enemies
            .iter()
            .find(|enemy| enemy.is_alive() && enemy.kind == Kind::Boss);
        self.boss = boss.map(|boss| Boss {
            health: f32::from(boss.health) / f32::from(boss.full_health.max(1)),
            stage: boss.stage,
        });
        let company = feed.company();
        let players = game.players.iter();
        self.team.extend(players.map(|(id, player)| {
            let companion = company.iter().find(|companion| companion.id == *id);
            member(*id, player, companion, self.tick, &self.rules)
        }));
    }

    /// Keeps what has vanished for a while, but for what flies in swarms.
    fn remember(&mut self, before: &[Thing]) {
        let now = self.now;
        self.gone.retain(|(_, at)| now.saturating_sub(*at) < MEMORY);
        for thing in before {
            let flies = match thing.key {
                ShowKey::Bullet { .. } => true,
                ShowKey::Shot { weapon, .. } => !weapon.is_lobbed(),
                _ => false,
            };
            if !flies && find(&self.things, thing.key).is_none() {
                self.gone.push((*thing, now));
            }
        }
    }

    fn gather_numbers(&mut self, feed: &Feed) {
        self.stats = feed.stats();
        self.rates = feed.gauges().rates();
        self.plots.clear();
        let readings: Vec<_> = feed.gauges().readings().collect();
        self.plots.extend(readings.windows(2).map(|pair| {
            let (stats, rates) = (
                &pair[1].stats,
                crate::feed::Gauges::between(pair[0], pair[1]),
            );
            Sample {
                rtt_ms: stats.rtt_ms as f32,
                jitter_ms: stats.jitter_ms as f32,
                loss_percent: stats.loss * 100.0,
                lead_ticks: stats.prediction_tick.saturating_sub(stats.authority_tick) as f32,
                margin_ticks: stats.margin_ticks_now as f32,
                rebuilds: rates.rebuilds as f32,
                resim_ticks: rates.resim_ticks as f32,
                kbytes: (rates.bytes_up + rates.bytes_down) as f32 / 1_024.0,
                pdiff: stats.pdiff_p95,
            }
        }));
    }

    /// Where somebody is shown.
    pub(crate) fn place(&self, key: ShowKey) -> Option<Vec2> {
        find(&self.things, key).map(|thing| thing.at)
    }

    /// Where a player is shown.
    pub(crate) fn player(&self, id: PlayerId) -> Option<&Thing> {
        self.things
            .iter()
            .find(|thing| matches!(thing.key, ShowKey::Player { id: who, .. } if who == id))
    }

    /// What a cue is about, where it was shown last.
    pub(crate) fn subject(&self, cue: &Cue) -> Option<&Thing> {
        let gone = self.gone.iter().rev().map(|(thing, _)| thing);
        self.things
            .iter()
            .chain(gone)
            .find(|thing| match (thing.key, *cue) {
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
                ) => owner == who && n == which,
                _ => false,
            })
    }

    /// Those who sit here and can be seen.
    pub(crate) fn locals(&self) -> Vec<Vec2> {
        let locals = self.team.iter().filter(|member| member.is_local);
        locals
            .filter_map(|member| self.player(member.id))
            .map(|thing| thing.at)
            .collect()
    }
}

fn find(things: &[Thing], key: ShowKey) -> Option<&Thing> {
    let at = things.binary_search_by(|thing| thing.key.cmp(&key)).ok()?;
    things.get(at)
}

/// Where an enemy looks: the simulation has no need of it.
fn facing(kind: Kind, at: Vec2, last: Option<&Thing>, game: &Game, now: Duration) -> f32 {
    let seconds = now.as_secs_f32() % 1_000.0;
    match kind {
        Kind::Gunner => {
            let alive = game.players.values().filter(|player| player.is_alive());
            let nearest = alive
                .map(|player| player.at - at)
                .min_by(|a, b| a.length().total_cmp(&b.length()));
            nearest
                .filter(|way| *way != Vec2::ZERO)
                .map_or(0.0, angle_of)
        }
        Kind::Urchin => seconds * 0.6,
        Kind::Spinner => seconds * 4.0,
        Kind::Boss => seconds * 0.35,
        Kind::Sapper => 0.0,
        Kind::Charger => {
            let moved = last.map_or(Vec2::ZERO, |last| at - last.at);
            if moved.length() > 0.01 {
                angle_of(moved)
            } else {
                last.map_or(0.0, |last| last.angle)
            }
        }
    }
}

fn look(key: ShowKey, game: &Game, tick: Tick, rules: &Rules) -> Look {
    let found = match key {
        ShowKey::Player { id, .. } => game.players.get(&id).map(|player| Look::Player {
            is_safe: !player.is_vulnerable(tick),
            has_shield: player.has_shield,
            health: f32::from(player.health.max(0)) / f32::from(rules.tuning.player_health.max(1)),
        }),
        ShowKey::Enemy { slot, .. } => game.enemies.get(usize::from(slot)).map(|enemy: &Enemy| {
            let age = tick.0.saturating_sub(enemy.born.0) as f32;
            Look::Enemy {
                woken: (age / rules.tuning.enemy_waking_ticks.max(1) as f32).min(1.0),
                carries: enemy.carries.is_some(),
            }
        }),
        ShowKey::Barrel { n, .. } => {
            let barrel = game.barrels.get(usize::from(n));
            barrel.map(|barrel| Look::Prop {
                is_lit: barrel.stage == Stage::Lit,
                aloft: game.aloft(Prop::Barrel(n), tick),
            })
        }
        ShowKey::Crate { n, .. } => Some(Look::Prop {
            is_lit: false,
            aloft: game.aloft(Prop::Crate(n), tick),
        }),
        ShowKey::Shot { owner, n, weapon } if weapon.is_lobbed() => {
            let shot = game
                .shots
                .iter()
                .find(|shot| shot.owner == owner && shot.key.n == n);
            shot.map(|shot| {
                let age = tick.0.saturating_sub(shot.born.0) as f32;
                Look::Lobbed((age / (shot.ends.0 - shot.born.0).max(1) as f32).min(1.0))
            })
        }
        ShowKey::Pickup { key, .. } => {
            let pickup = game.pickups.iter().find(|pickup| pickup.key == key);
            pickup
                .filter(|pickup| pickup.ends.0.saturating_sub(tick.0) < 180)
                .map(|_| Look::Fading)
        }
        _ => None,
    };
    found.unwrap_or(Look::Plain)
}

fn member(
    id: PlayerId,
    player: &Player,
    companion: Option<&Companion>,
    tick: Tick,
    rules: &Rules,
) -> Member {
    let rest = rules.tuning.dash_rest_ticks.max(1) as f32;
    Member {
        id,
        name: companion.map_or_else(|| format!("player {}", id.0 + 1), |one| one.name.clone()),
        is_local: companion.is_some_and(|one| one.is_local),
        is_here: companion.is_none_or(|one| one.is_here) && !player.is_away,
        is_late: companion.is_some_and(|one| one.is_late),
        link: companion.and_then(|one| one.link),
        is_ready: player.is_ready,
        is_out: player.is_out,
        has_shield: player.has_shield,
        health: f32::from(player.health.max(0)) / f32::from(rules.tuning.player_health.max(1)),
        weapon: player.weapon,
        ammo: player.weapon.ammo().map(|_| player.ammo),
        dash: 1.0 - (player.dash_rest(tick) as f32 / rest).min(1.0),
        kills: player.kills,
        score: player.score,
        lives: player.life,
    }
}

/// The words for a pick-up.
pub(crate) fn item_name(item: Item) -> &'static str {
    match item {
        Item::Weapon(weapon) => weapon_name(weapon),
        Item::Health => "health",
        Item::Shield => "shield",
        Item::Life => "extra life",
    }
}

/// The words for a weapon.
pub(crate) fn weapon_name(weapon: Weapon) -> &'static str {
    match weapon {
        Weapon::Blaster => "Blaster",
        Weapon::Scatter => "Scatter",
        Weapon::Lance => "Lance",
        Weapon::Thumper => "Thumper",
    }
}
