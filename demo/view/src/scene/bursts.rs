//! The effects of each cue: particles, sounds, shakes, and words.
//!
//! All random numbers are derived from the cue's number, so the same match gives the same picture.

use core::f32::consts::TAU;
use std::time::Duration;

use glam::{Vec2, vec2};
use powderkeg_game::{Cue, Item, ShowKey, direction};
use twinstep_client::{CueEvent, CueKind};
use twinstep_core::{Key, Mwc};

use super::effects::{Cause, LogLine, ViewEffects};
use super::palette::{ACCENT, BAD, ColorMode, FAINT, GOOD, INK, Tint, WARN, WHITE};
use super::particles::Particle;
use super::sounds::Sound;
use super::sprite::Sprite;
use super::{ViewScene, ViewThing, item_name};

pub(crate) const FIRE: Tint = Tint::new(0xff_b3_47);
const EMBER: Tint = Tint::new(0xff_6a_1f);
const SMOKE: Tint = Tint::new(0x3a_3d_42);
const WOOD: Tint = Tint::new(0xa8_7a_48);
/// The height above a thing at which floating text starts, in units: above its name.
const FLOAT_HEIGHT: f32 = 1.8;

struct Spray {
    at: Vec2,
    angle: f32,
    spread: f32,
    /// The minimum and the maximum speed, in units per second.
    speed: (f32, f32),
    ms: u64,
}

impl Spray {
    fn round(at: Vec2, speed: (f32, f32), ms: u64) -> Spray {
        Spray::toward(at, 0.0, TAU * 0.5, speed, ms)
    }

    fn toward(at: Vec2, angle: f32, spread: f32, speed: (f32, f32), ms: u64) -> Spray {
        Spray {
            at,
            angle,
            spread,
            speed,
            ms,
        }
    }
}

struct Thrower<'a> {
    effects: &'a mut ViewEffects,
    cause: Cause,
    luck: Mwc,
}

impl Thrower<'_> {
    fn between(&mut self, from: f32, to: f32) -> f32 {
        from + (to - from) * (self.luck.below(65_536) as f32 / 65_536.0)
    }

    fn particle(&self, sprite: Sprite, at: Vec2, tint: Tint) -> Particle {
        Particle::new(self.cause.cue, self.cause.now, sprite, at, tint)
    }

    fn quake(&mut self, at: Vec2, strength: f32) {
        self.effects.quakes.push((Some(at), strength));
    }

    fn puff(&mut self, sprite: Sprite, at: Vec2, half: (f32, f32), ms: u64, tint: Tint) {
        let mut puff = self.particle(sprite, at, tint);
        puff.half = half;
        puff.life = Duration::from_millis(ms);
        puff.angle = self.between(0.0, TAU);
        self.effects.particles.add(puff);
    }

    fn sparks(&mut self, count: u32, spray: &Spray, tint: Tint) {
        for _ in 0..count {
            let angle = spray.angle + self.between(-spray.spread, spray.spread);
            let tint = tint.light();
            let mut spark = self.particle(Sprite::Streak, spray.at, tint);
            spark.speed = direction(angle) * self.between(spray.speed.0, spray.speed.1);
            spark.drag = 5.0;
            spark.half = (self.between(0.45, 0.8), 0.08);
            spark.slim = 0.22;
            spark.angle = angle;
            let ms = self.between(spray.ms as f32 * 0.5, spray.ms as f32);
            spark.life = Duration::from_millis(ms as u64);
            self.effects.particles.add(spark);
        }
    }

    fn shards(&mut self, count: u32, at: Vec2, speed: (f32, f32), half: f32, tint: Tint) {
        for _ in 0..count {
            let mut shard = self.particle(Sprite::Shard, at, tint);
            shard.speed = direction(self.between(0.0, TAU)) * self.between(speed.0, speed.1);
            shard.drag = 3.5;
            shard.half = (self.between(half * 0.6, half), half * 0.35);
            shard.angle = self.between(0.0, TAU);
            shard.spin = self.between(-9.0, 9.0);
            shard.life = Duration::from_millis(self.between(450.0, 900.0) as u64);
            self.effects.particles.add(shard);
        }
    }

    fn smoke(&mut self, count: u32, at: Vec2, reach: f32, tint: Tint) {
        for _ in 0..count {
            let toward = direction(self.between(0.0, TAU));
            let mut smoke = self.particle(Sprite::Smoke, at, tint);
            smoke.speed = toward * self.between(reach * 0.5, reach * 2.2);
            smoke.drag = 2.5;
            smoke.half = (reach * 0.18, reach * self.between(0.3, 0.5));
            smoke.angle = self.between(0.0, TAU);
            smoke.spin = self.between(-0.8, 0.8);
            smoke.life = Duration::from_millis(self.between(700.0, 1_500.0) as u64);
            self.effects.particles.add(smoke);
        }
    }

    fn blast(&mut self, at: Vec2, radius: f32) {
        self.smoke(9, at, radius * 0.8, SMOKE.alpha(0.55));
        self.puff(
            Sprite::Glow,
            at,
            (radius * 1.1, radius * 0.5),
            420,
            EMBER.light().alpha(0.9),
        );
        self.puff(
            Sprite::Glow,
            at,
            (radius * 0.7, radius * 0.2),
            260,
            FIRE.light(),
        );
        self.puff(
            Sprite::Flash,
            at,
            (radius * 0.5, radius * 0.75),
            140,
            WHITE.light(),
        );
        // The range of the blast, so that players learn it.
        self.puff(
            Sprite::Wave,
            at,
            (radius * 0.35, radius),
            380,
            FIRE.light().alpha(0.9),
        );
        self.sparks(
            22,
            &Spray::round(at, (radius * 2.0, radius * 6.0), 620),
            FIRE,
        );
        self.shards(8, at, (radius, radius * 3.0), 0.22, Tint::new(0x6b_24_14));
        self.quake(at, 0.30 + radius * 0.07);
    }
}

impl ViewEffects {
    pub(crate) fn handle(
        &mut self,
        now: Duration,
        event: &CueEvent<Cue>,
        scene: &ViewScene,
        mode: ColorMode,
    ) {
        let id = event.id;
        match event.kind {
            CueKind::Started { tick, cue, .. } => {
                self.counts.started += 1;
                let cause = Cause { cue: id, now, tick };
                start(self, cause, cue, scene, mode);
            }
            CueKind::Confirmed { at } => {
                self.counts.confirmed += 1;
                self.confirm(now, id, at, mode);
            }
            CueKind::Cancelled => {
                self.counts.cancelled += 1;
                self.cancel(now, id);
            }
        }
    }
}

fn start(effects: &mut ViewEffects, cause: Cause, cue: Cue, scene: &ViewScene, mode: ColorMode) {
    let subject = scene.subject(&cue).copied();
    let luck = Mwc::seed(cause.cue.0).fork(Key::new(cause.cue.0, 0));
    let mut thrower = Thrower {
        effects,
        cause,
        luck,
    };
    sight(&mut thrower, cue, subject, scene, mode);
    words(effects, cause, cue, subject, scene, mode);
    if let Some(line) = line(cause, cue, scene) {
        match cue {
            Cue::Scored { player, points } => {
                let at = subject.map_or(Vec2::ZERO, |thing| thing.at) + vec2(0.0, FLOAT_HEIGHT);
                effects.expect_score(at, player, points, line);
            }
            _ => effects.line(line),
        }
    }
    if let Some(sound) = sound(&cue, scene) {
        let at = subject.map(|thing| thing.at);
        // Without a position there is no sound, except for sounds that come from everywhere.
        if at.is_some() || sound.is_everywhere() {
            effects.play_sound(cause.cue, sound, at.filter(|_| !sound.is_everywhere()));
        }
    }
}

fn sight(
    thrower: &mut Thrower<'_>,
    cue: Cue,
    subject: Option<ViewThing>,
    scene: &ViewScene,
    mode: ColorMode,
) {
    let Some(ViewThing { at, angle, key, .. }) = subject else {
        return;
    };
    let own = match key {
        ShowKey::Player { id, .. } => mode.player(id.index()),
        _ => mode.hostile(),
    };
    let tuning = &scene.rules.tuning;
    let flash = |thrower: &mut Thrower<'_>| thrower.effects.flash(thrower.cause, key);
    match cue {
        Cue::Shot { weapon, .. } => {
            let muzzle = at + direction(angle) * 0.75;
            let size = 0.34 + 0.10 * f32::from(weapon.damage().min(40)) / 20.0;
            let mut star = thrower.particle(Sprite::Flash, muzzle, own.mixed(WHITE, 0.4).light());
            star.half = (size, size * 0.5);
            star.angle = angle;
            star.life = Duration::from_millis(70);
            thrower.effects.particles.add(star);
        }
        Cue::Hit(_) => {
            flash(thrower);
            thrower.sparks(5, &Spray::round(at, (4.0, 11.0), 240), own.mixed(FIRE, 0.5));
        }
        Cue::Crit(_) => {
            flash(thrower);
            thrower.sparks(14, &Spray::round(at, (8.0, 18.0), 380), WARN);
            thrower.puff(Sprite::Ring, at, (0.4, 1.8), 260, WARN.light());
        }
        Cue::EnemyDied(_) => {
            let radius = key.kind().map_or(0.7, powderkeg_game::EnemyKind::radius);
            let big = radius > 1.5;
            thrower.puff(Sprite::Glow, at, (radius * 2.4, radius), 300, own.light());
            thrower.puff(
                Sprite::Ring,
                at,
                (radius * 0.5, radius * 2.6),
                330,
                own.light().alpha(0.8),
            );
            thrower.sparks(
                if big { 60 } else { 9 },
                &Spray::round(at, (6.0, 16.0), 480),
                own,
            );
            thrower.shards(
                if big { 40 } else { 5 },
                at,
                (2.0, 8.0),
                radius * 0.35,
                Tint::new(0x39_40_4a),
            );
            thrower.quake(at, if big { 0.9 } else { 0.08 });
        }
        Cue::Volley(_) => thrower.puff(Sprite::Glow, at, (0.9, 0.4), 120, own.light().alpha(0.6)),
        Cue::Enraged { .. } => {
            flash(thrower);
            thrower.puff(Sprite::Wave, at, (2.0, 9.0), 700, own.light());
            thrower.quake(at, 0.6);
        }
        Cue::Appeared(_) => {
            thrower.puff(Sprite::Ring, at, (2.4, 0.5), 420, own.light());
            thrower.puff(Sprite::Glow, at, (1.6, 0.6), 420, own.light().alpha(0.8));
        }
        Cue::Dashed(_) => {
            let mut after = thrower.particle(Sprite::PlayerTrim, at, own.light().alpha(0.45));
            after.angle = angle;
            after.half = (0.80, 0.95);
            after.life = Duration::from_millis(260);
            thrower.effects.particles.add(after);
            thrower.sparks(
                8,
                &Spray::toward(at, angle + TAU * 0.5, 0.7, (4.0, 9.0), 300),
                own,
            );
        }
        Cue::Hurt(_) => {
            flash(thrower);
            thrower.sparks(10, &Spray::round(at, (4.0, 10.0), 350), BAD);
            thrower.quake(at, 0.28);
        }
        Cue::ShieldBroke(_) => {
            thrower.puff(Sprite::Bubble, at, (0.9, 1.8), 320, ACCENT.light());
            thrower.shards(10, at, (3.0, 8.0), 0.2, ACCENT.light());
        }
        Cue::PlayerDied(_) => {
            thrower.puff(Sprite::Flash, at, (1.4, 2.4), 180, WHITE.light());
            thrower.puff(Sprite::Wave, at, (0.4, 3.4), 520, own.light());
            thrower.sparks(26, &Spray::round(at, (5.0, 15.0), 700), own);
            thrower.shards(14, at, (2.0, 7.0), 0.26, own.mixed(INK, 0.5));
            thrower.quake(at, 0.55);
        }
        Cue::Took { item, .. } => {
            let tint = item_tint(item, mode);
            thrower.puff(Sprite::Ring, at, (0.4, 1.7), 380, tint.light());
            thrower.sparks(
                12,
                &Spray::toward(at, TAU * 0.25, TAU * 0.5, (3.0, 8.0), 420),
                tint,
            );
        }
        Cue::Lit(_) => thrower.sparks(
            8,
            &Spray::toward(at, TAU * 0.25, 1.2, (2.0, 6.0), 380),
            FIRE,
        ),
        Cue::Blast(_) => thrower.blast(at, tuning.blast_radius),
        Cue::Burst { .. } => thrower.blast(at, tuning.shell_radius),
        Cue::Fizzle(_) => thrower.smoke(7, at, 1.6, FAINT.alpha(0.4)),
        Cue::CrateHit(_) => {
            flash(thrower);
            thrower.shards(4, at, (2.0, 5.0), 0.16, WOOD);
        }
        Cue::CrateBroke(_) => {
            thrower.shards(18, at, (2.0, 8.0), 0.34, WOOD);
            thrower.smoke(4, at, 1.0, WOOD.alpha(0.35));
            thrower.quake(at, 0.12);
        }
        Cue::Tossed(_) => thrower.smoke(5, at, 1.1, FAINT.alpha(0.35)),
        Cue::Ready(_) => thrower.puff(Sprite::Ring, at, (0.6, 1.6), 400, GOOD.light()),
        Cue::Scored { .. }
        | Cue::Countdown
        | Cue::WaveBegan(_)
        | Cue::WaveCleared(_)
        | Cue::Won
        | Cue::Lost => {}
    }
}

fn words(
    effects: &mut ViewEffects,
    cause: Cause,
    cue: Cue,
    subject: Option<ViewThing>,
    scene: &ViewScene,
    mode: ColorMode,
) {
    let waves = scene.rules.waves.len();
    let (word, below, tint) = match (cue, subject) {
        (Cue::Took { item, .. }, Some(ViewThing { at, .. })) => {
            let (at, tint) = (at + vec2(0.0, FLOAT_HEIGHT), item_tint(item, mode));
            return effects.float(cause, at, item_name(item).to_owned(), tint);
        }
        (Cue::Crit(_), Some(ViewThing { at, .. })) => {
            return effects.float(cause, at + Vec2::Y, "CRIT".to_owned(), WARN);
        }
        (Cue::Countdown, _) => (
            "GET READY".to_owned(),
            "the first wave is coming".to_owned(),
            WARN,
        ),
        (Cue::WaveBegan(wave), _) if usize::from(wave) == waves => {
            ("BOSS".to_owned(), "the last wave".to_owned(), BAD)
        }
        (Cue::WaveBegan(wave), _) => (format!("WAVE {wave}"), format!("of {waves}"), ACCENT),
        (Cue::WaveCleared(wave), _) => (
            "CLEARED".to_owned(),
            format!("wave {wave} is over: take a breath"),
            GOOD,
        ),
        _ => return,
    };
    effects.announce(cause, word, below, tint);
}

fn line(cause: Cause, cue: Cue, scene: &ViewScene) -> Option<LogLine> {
    let (words, tint, is_news) = match cue {
        Cue::PlayerDied(id) => (format!("{} died", scene.name(id)), BAD, true),
        Cue::Ready(id) => match scene.name(id).as_str() {
            "you" => ("you are ready".to_owned(), GOOD, true),
            name => (format!("{name} is ready"), GOOD, true),
        },
        Cue::Took {
            player,
            item: Item::Life,
        } => {
            let words = format!("{} found an extra life", scene.name(player));
            (words, GOOD, true)
        }
        Cue::Enraged { stage, .. } => {
            let words = format!("the boss fights on: stage {}", stage + 1);
            (words, BAD, true)
        }
        Cue::Took { player, item } => {
            let words = format!("{} takes {}", scene.name(player), item_name(item));
            (words, INK, false)
        }
        Cue::Hurt(id) => (format!("{} is hit", scene.name(id)), BAD, false),
        Cue::ShieldBroke(id) => (format!("{} loses the shield", scene.name(id)), BAD, false),
        Cue::Burst { owner, .. } => (format!("a shell of {}", scene.name(owner)), INK, false),
        Cue::Appeared(id) => (format!("{} appears", scene.name(id)), INK, false),
        Cue::Dashed(id) => (format!("{} dashes", scene.name(id)), INK, false),
        Cue::Scored { player, points } => (format!("{} +{points}", scene.name(player)), INK, false),
        Cue::EnemyDied(slot) => (format!("enemy {slot} dies"), INK, false),
        Cue::CrateBroke(n) => (format!("crate {n} breaks"), INK, false),
        Cue::Lit(n) => (format!("barrel {n} lit"), INK, false),
        Cue::Blast(n) => (format!("barrel {n} blows up"), INK, false),
        Cue::Fizzle(n) => (format!("barrel {n} only smokes"), INK, false),
        Cue::Countdown => ("all are ready".to_owned(), INK, false),
        Cue::WaveBegan(n) => (format!("wave {n}"), INK, false),
        Cue::WaveCleared(n) => (format!("wave {n} is cleared"), INK, false),
        Cue::Won => ("won".to_owned(), GOOD, false),
        Cue::Lost => ("lost".to_owned(), BAD, false),
        Cue::Shot { .. }
        | Cue::Hit(_)
        | Cue::Crit(_)
        | Cue::Volley(_)
        | Cue::CrateHit(_)
        | Cue::Tossed(_) => return None,
    };
    Some(cause.line(words, tint, is_news))
}

pub(crate) fn item_tint(item: Item, mode: ColorMode) -> Tint {
    mode.accent(match item {
        Item::Weapon(_) => 0xf0_b4_29,
        Item::Health => 0x2f_c4_95,
        Item::Shield => 0x56_b4_e9,
        Item::Life => 0xe3_8f_c0,
    })
}

fn sound(cue: &Cue, scene: &ViewScene) -> Option<Sound> {
    Some(match cue {
        Cue::Shot { weapon, .. } => Sound::of_weapon(*weapon),
        Cue::Hit(_) | Cue::CrateHit(_) => Sound::Hit,
        Cue::Crit(_) => Sound::Crit,
        Cue::EnemyDied(_) => Sound::Pop,
        Cue::Enraged { .. } => Sound::Boss,
        Cue::Hurt(_) => Sound::Hurt,
        Cue::ShieldBroke(_) => Sound::Shield,
        Cue::PlayerDied(_) => Sound::Death,
        Cue::Dashed(_) => Sound::Dash,
        Cue::Took { .. } => Sound::Pickup,
        Cue::Ready(_) => Sound::Ready,
        Cue::Lit(_) => Sound::Fuse,
        Cue::Blast(_) | Cue::Burst { .. } => Sound::Blast,
        Cue::CrateBroke(_) => Sound::Crack,
        Cue::Tossed(_) => Sound::Dash,
        Cue::WaveBegan(wave) if usize::from(*wave) == scene.rules.waves.len() => Sound::Boss,
        Cue::WaveBegan(_) | Cue::Countdown => Sound::Wave,
        Cue::WaveCleared(_) => Sound::Cleared,
        Cue::Won => Sound::Won,
        Cue::Lost => Sound::Lost,
        Cue::Appeared(_) | Cue::Scored { .. } | Cue::Volley(_) | Cue::Fizzle(_) => return None,
    })
}
