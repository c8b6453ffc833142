//! [`TerminalScene`]: everything that one picture of the view shows, gathered from a feed; drawing needs no more.

use std::sync::Arc;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{BarrelStage, Cue, Pad, RoundPhase, Rules, ShowKey, Weapon};
use twinstep_client::stats::SessionStats;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::company::LinkQuality;

use super::effects::{LogLine, TerminalEffects, TerminalFlash};
use super::round::Round;
use crate::feed::{Feed, Playback, Rates, Speed};

/// One picture of the view.
#[derive(Clone, Debug)]
pub struct TerminalScene {
    /// The level.
    pub rules: Arc<Rules>,
    /// The moment, for what flickers and grows.
    pub now: Duration,
    /// What is drawn where, in the order of keys.
    pub things: Vec<TerminalThing>,
    /// Where the authority has players and enemies: the lagged truth.
    pub ghosts: Vec<(ShowKey, Vec2)>,
    /// Where each barrel is, and how far.
    pub barrels: Vec<(Vec2, BarrelStage)>,
    /// How far the round is.
    pub round: Round,
    /// What flares up.
    pub flashes: Vec<TerminalFlash>,
    /// What cues came to, newest first.
    pub log: Vec<LogLine>,
    /// Who plays.
    pub team: Vec<TerminalMember>,
    /// The team's points.
    pub score: u32,
    /// The session's counters.
    pub stats: SessionStats,
    /// What they came to in the last second.
    pub rates: Rates,
    /// The lead over the last 10 s, in ticks, oldest first.
    pub leads: Vec<u64>,
    /// A word across the arena.
    pub banner: Option<String>,
    /// The simulated link, by name; none: the link is real.
    pub link: Option<String>,
    /// Whether the authority's ghosts are drawn.
    pub shows_ghosts: bool,
    /// Whether the prediction is shown, else the authority.
    pub predicts: bool,
    /// Whether corrections are smoothed.
    pub smooths: bool,
    /// How far a replay has come; none: the match is played.
    pub reel: Option<TerminalReel>,
    /// What the keys hold.
    pub pad: Pad,
    /// Whether the terminal tells of key releases.
    pub releases: bool,
    /// Whether to use colours.
    pub color: bool,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalReel {
    /// The next tick to be played.
    pub tick: Tick,
    /// Match time that has passed.
    pub passed: Duration,
    /// Match time in all.
    pub length: Duration,
    /// What part of it has passed, 0 ..= 1.
    pub part: f32,
    /// How fast it runs.
    pub speed: Speed,
    /// Whether it stands.
    pub is_paused: bool,
}

impl TerminalReel {
    fn of(replay: &Playback) -> TerminalReel {
        let tick = replay.tick_length();
        TerminalReel {
            tick: replay.tick(),
            passed: tick * (replay.tick() - replay.first()),
            length: tick * (replay.end() - replay.first()),
            part: replay.part(),
            speed: replay.speed(),
            is_paused: replay.is_paused(),
        }
    }
}

/// Something in the arena.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalThing {
    /// Its name.
    pub key: ShowKey,
    /// Where, in units.
    pub at: Vec2,
    /// Radians, counter-clockwise from +x.
    pub angle: f32,
    /// A waking enemy, or a player that nothing can hurt yet.
    pub is_faint: bool,
}

/// A player of the team.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalMember {
    /// Who.
    pub id: PlayerId,
    /// What it wants to be called.
    pub name: String,
    /// Whether it sits here.
    pub is_local: bool,
    /// Whether its controls are cut off.
    pub is_away: bool,
    /// Whether the match waits for it.
    pub is_late: bool,
    /// Of full health, 0 ..= 1; 0 is dead.
    pub health: f32,
    /// Whether it is dead until the wave is over.
    pub is_out: bool,
    /// Whether it has said that it is ready.
    pub is_ready: bool,
    /// Whether a shield takes its next hit.
    pub has_shield: bool,
    /// What it fires.
    pub weapon: Weapon,
    /// How often it can; `None`: for ever.
    pub ammo: Option<u16>,
    /// Its link, as the server measures it.
    pub link: Option<LinkQuality>,
    /// Enemies that it killed.
    pub kills: u32,
    /// Its points.
    pub score: u32,
}

impl TerminalScene {
    /// An empty arena.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> TerminalScene {
        TerminalScene {
            rules,
            now: Duration::ZERO,
            things: Vec::new(),
            ghosts: Vec::new(),
            barrels: Vec::new(),
            round: Round::default(),
            flashes: Vec::new(),
            log: Vec::new(),
            team: Vec::new(),
            score: 0,
            stats: SessionStats::default(),
            rates: Rates::default(),
            leads: Vec::new(),
            banner: None,
            link: None,
            shows_ghosts: false,
            predicts: true,
            smooths: true,
            reel: None,
            pad: Pad::default(),
            releases: false,
            color: true,
        }
    }

    /// Takes over what the feed shows; pad, releases, ghosts' switch and colour stay as they are.
    pub fn gather(&mut self, feed: &Feed, effects: &TerminalEffects) {
        self.now = feed.now();
        self.stats = feed.stats().unwrap_or_default();
        self.rates = feed.gauges().rates();
        self.leads.clear();
        self.leads.extend(feed.gauges().leads());
        self.link = feed.link().map(str::to_owned);
        self.predicts = feed.predicts();
        self.smooths = feed.smooths();
        self.reel = feed.replay().map(TerminalReel::of);
        self.flashes.clear();
        self.flashes.extend(effects.flashes());
        self.log.clear();
        self.log.extend(effects.log().cloned());
        self.gather_arena(feed);
        self.gather_ghosts(feed);
        self.banner = self.word_across(feed);
    }

    /// What a player is called.
    #[must_use]
    pub fn name_of(&self, id: PlayerId) -> String {
        let member = self.team.iter().find(|member| member.id == id);
        member.map_or_else(|| id.to_string(), |member| member.name.clone())
    }

    /// Where the subject of a cue was shown last.
    #[must_use]
    pub fn place_of(&self, cue: &Cue) -> Option<Vec2> {
        let mut things = self.things.iter();
        let subject = things.find(|thing| thing.key.is_subject_of(cue));
        subject.map(|thing| thing.at)
    }

    fn gather_arena(&mut self, feed: &Feed) {
        self.things.clear();
        self.barrels.clear();
        self.team.clear();
        let Some(game) = feed.game() else {
            return;
        };
        let (rules, tick) = (&*self.rules, feed.tick());
        self.things.extend(feed.shown().iter().map(|(key, pose)| {
            TerminalThing {
                key: *key,
                at: pose.at,
                angle: pose.angle.0,
                is_faint: match *key {
                    ShowKey::Player { id, .. } => game
                        .players
                        .get(&id)
                        .is_some_and(|player| !player.is_vulnerable(tick)),
                    ShowKey::Enemy { slot, .. } => game
                        .enemies
                        .get(usize::from(slot))
                        .is_some_and(|enemy| !enemy.is_awake(tick, rules)),
                    _ => false,
                },
            }
        }));
        self.barrels
            .extend(game.barrels.iter().map(|barrel| (barrel.at, barrel.stage)));
        self.score = game.score;
        let full = f32::from(rules.tuning.player_health.max(1));
        let company = feed.company();
        self.team.extend(game.players.iter().map(|(id, player)| {
            let known = company.iter().find(|one| one.id == *id);
            TerminalMember {
                id: *id,
                name: known.map_or_else(|| id.to_string(), |one| one.name.clone()),
                is_local: feed.seats().contains(id),
                is_away: player.is_away,
                is_late: feed.waiting().contains(*id),
                health: f32::from(player.health.max(0)) / full,
                is_out: player.is_out,
                is_ready: player.is_ready,
                has_shield: player.has_shield,
                weapon: player.weapon,
                ammo: player.weapon.ammo().map(|_| player.ammo),
                link: known.and_then(|one| one.link),
                kills: player.kills,
                score: player.score,
            }
        }));
        self.round = Round::of(feed).unwrap_or_default();
    }

    fn gather_ghosts(&mut self, feed: &Feed) {
        let ghosts = &mut self.ghosts;
        ghosts.clear();
        if self.shows_ghosts {
            feed.ghosts(|key, pose| {
                if matches!(key, ShowKey::Player { .. } | ShowKey::Enemy { .. }) {
                    ghosts.push((key, pose.at));
                }
            });
        }
    }

    fn word_across(&self, feed: &Feed) -> Option<String> {
        if let Some(notice) = feed.notice() {
            return Some(notice.to_string());
        }
        if let Some(words) = self.asks() {
            return Some(words);
        }
        let mut own = self.team.iter().filter(|member| member.is_local);
        let dead = own.find(|member| member.health == 0.0 && !member.is_away)?;
        let words = match (self.round.phase, dead.is_out) {
            (RoundPhase::Won | RoundPhase::Lost, _) => return None,
            (_, true) => "no lives are left: you are back after this wave",
            (_, false) => "you died: back in a moment",
        };
        Some(words.to_owned())
    }

    /// What the round asks of the player here, or tells; nothing while it is fought.
    fn asks(&self) -> Option<String> {
        let round = &self.round;
        let here = || self.team.iter().filter(|member| !member.is_away);
        let ready = here().filter(|member| member.is_ready).count();
        let mut count = format!("{ready} of {} are ready", here().count());
        if let Some(left) = round.begins_in {
            count += &format!("; it begins anyway in {} s", left.as_secs_f32().ceil());
        }
        let own = || here().filter(|member| member.is_local);
        let asks = match own().count() {
            0 => count,
            _ if own().all(|member| member.is_ready) => format!("waiting for the others: {count}"),
            _ => format!("R when you are ready: {count}"),
        };
        let seconds = round.ends_in.unwrap_or_default().as_secs_f32().ceil();
        match round.phase {
            RoundPhase::Lobby => Some(asks),
            RoundPhase::Countdown => Some(format!("get ready: {seconds}")),
            RoundPhase::Lull => Some(format!(
                "wave {} is cleared; the next comes in {seconds} s",
                round.wave
            )),
            RoundPhase::Won | RoundPhase::Lost if seconds == 0.0 => Some(asks),
            RoundPhase::Won | RoundPhase::Lost | RoundPhase::Wave | RoundPhase::Endless => None,
        }
    }
}
