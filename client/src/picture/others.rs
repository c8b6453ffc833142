//! [`Others`]: the entities of other players, each drawn at its player's time.
//!
//! ```text
//!   predicted, rebuilt, confirmed ticks ──Show::poses──▶ one list of poses for each tick ─┐
//!                                                                                         ├─▶ a Picture per player
//!   what is known of each player ──▶ DrawnTime ── between these two ticks ────────────────┘
//! ```
//!
//! Invariant: the list of a tick comes from the newest prediction of the tick, and in the end from the authority. So as
//! far as a player's inputs are known, the player is drawn where it really was.
//!
//! Cost: the poses of other players' entities, once more for each rebuilt tick. The state is not copied or stepped.

use core::time::Duration;
use std::collections::VecDeque;

use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX};
use twinstep_core::{PlayerId, PlayerSet, Tick};

use super::when::DrawnTime;
use super::{Errors, Picture, PictureErrors, Poses, Smoothing, When};
use crate::smooth::Pose;
use crate::timeline::Known;

/// At most this many ticks are kept: a lead, and the ticks by which a player may be drawn behind the authority.
const TICKS_MAX: usize = LEAD_MAX as usize + 32;
/// Space for other players' entities in a tick, without allocating.
const ROOM: usize = 64;
/// Space for the ticks of a usual lead, without allocating.
const ROOM_TICKS: usize = 32;
// The maximum number of a player's bodies that are compared with their last sample.
const BODIES_MAX: usize = 8;
/// The time in which a correction decays, in ticks. Half of it decays in two ticks.
const OVER_TICKS: u32 = 12;

/// The values of an advance that other players' pictures need.
pub(crate) struct Moved<'a> {
    pub(crate) now: Duration,
    pub(crate) passed: f64,
    pub(crate) tick: Duration,
    pub(crate) authority: Tick,
    pub(crate) prediction: Tick,
    /// The prediction is drawn at `prediction - 1 + alpha`.
    pub(crate) alpha: f32,
    /// The tick up to which each player's actions in the prediction are known.
    pub(crate) known: &'a Known,
}

struct Other<K, P> {
    picture: Picture<K, P>,
    time: DrawnTime,
    /// The picture lies between the tick before `newest` (`alpha` = 0) and `newest` (`alpha` = 1).
    newest: Tick,
    /// The first tick whose cues are not shown yet.
    due: Tick,
    alpha: f32,
    // The time since the last sample, in ticks.
    passed: f32,
    // The drawn poses, once per tick, each kept until the authority has passed the tick after it.
    unjudged: VecDeque<DrawnPose<K, P>>,
    // The newest judged sample of each body, and the drawn move per tick that led to it.
    judged: Vec<(DrawnPose<K, P>, Option<P>)>,
    // The longest true steps in this second and in the last one.
    longest: [f32; 2],
    // The start of this second.
    second: Tick,
    // The first tick not yet drawn with its known input.
    unshown: Tick,
}

#[derive(Clone, Copy)]
struct DrawnPose<K, P> {
    // The later of the two ticks between which it was drawn.
    tick: Tick,
    // Its position between the two ticks.
    alpha: f32,
    // The ticks since the previous sample.
    passed: f32,
    key: K,
    pose: P,
}

// A player's drawn steps are compared with its true steps in the last one to two times this many ticks.
const SECOND_TICKS: u32 = 60;
// A drawn step more than this many times as long as the longest true one is too fast.
const TOO_FAST: f32 = 1.5;
// A drawn step shorter than this part of a true one counts as standing.
const STANDING: f32 = 0.1;

pub(crate) struct Others<K, P> {
    smoothing: Smoothing,
    smooths: bool,
    /// The poses of consecutive ticks, starting at `first`. The poses of a tick come from the world before it.
    ticks: VecDeque<Poses<K, P>>,
    spare: Vec<Poses<K, P>>,
    first: Tick,
    /// The first tick whose poses changed since the last advance.
    changed: Tick,
    players: [Option<Box<Other<K, P>>>; PLAYERS_MAX],
    drawn: Vec<(K, P)>,
    errors: PictureErrors,
    are_used: bool,
}

impl<K: Ord + Copy, P: Pose> Others<K, P> {
    pub(crate) fn new(smoothing: Smoothing) -> Self {
        Others {
            smoothing,
            smooths: true,
            ticks: VecDeque::with_capacity(TICKS_MAX),
            spare: Vec::new(),
            first: Tick(0),
            changed: Tick::MAX,
            players: [const { None }; PLAYERS_MAX],
            drawn: Vec::with_capacity(4 * ROOM),
            errors: PictureErrors::default(),
            are_used: false,
        }
    }

    pub(crate) fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
        for other in self.players.iter_mut().flatten() {
            other.picture.set_smooths(smooths);
        }
    }

    // Returns `true` once other players have had entities.
    pub(crate) fn are_used(&self) -> bool {
        self.are_used
    }

    /// Returns the list for the poses of a tick, if needed. The caller fills and orders it, as [`put`](Self::put) does.
    pub(crate) fn at(&mut self, tick: Tick) -> Option<&mut Poses<K, P>> {
        if tick < self.first {
            return None;
        }
        if tick > self.end() {
            self.spare.extend(self.ticks.drain(..));
            self.first = tick;
        }
        if tick == self.end() {
            if self.ticks.len() == TICKS_MAX {
                self.forget_first();
            }
            let poses = self.spare.pop();
            self.ticks
                .push_back(poses.unwrap_or_else(|| Poses::with_room(ROOM)));
        }
        self.changed = self.changed.min(tick);
        let at = (tick - self.first) as usize;
        self.ticks.get_mut(at)
    }

    pub(crate) fn put(&mut self, tick: Tick, all: &mut Poses<K, P>) {
        all.order();
        self.are_used |= all.has_others();
        if !self.are_used {
            return;
        }
        if let Some(poses) = self.at(tick) {
            poses.copy_others(all);
            poses.order();
        }
    }

    fn end(&self) -> Tick {
        self.first + self.ticks.len() as u32
    }

    fn forget_first(&mut self) {
        self.spare.extend(self.ticks.pop_front());
        self.first += 1;
    }

    /// Continues with a different world. Its poses follow.
    pub(crate) fn jump(&mut self, tick: Tick) {
        self.spare.extend(self.ticks.drain(..));
        self.first = tick;
        for other in self.players.iter_mut().flatten() {
            other.time = DrawnTime::new(f64::from(tick.0));
            (other.newest, other.unshown) = (Tick(0), tick);
            other.unjudged.clear();
            other.judged.clear();
        }
    }

    pub(crate) fn advance(&mut self, moved: &Moved<'_>, mut when: impl FnMut(PlayerId) -> When) {
        let mut owners = PlayerSet::default();
        if let Some(newest) = self.ticks.back() {
            newest.owners(&mut owners);
        }
        for poses in &mut self.ticks {
            poses.know(moved.known);
        }
        self.drawn.clear();
        let end = self.end();
        let mut needed = moved.prediction.back(1);
        for player in (0..PLAYERS_MAX as u8).map(PlayerId) {
            let slot = &mut self.players[player.index()];
            if slot.is_none() && owners.contains(player) {
                let spare = &mut self.spare;
                spare.reserve(TICKS_MAX);
                let missing = ROOM_TICKS.saturating_sub(spare.len() + self.ticks.len());
                spare.extend((0..missing).map(|_| Poses::with_room(ROOM)));
                let mut picture = Picture::with_room(self.smoothing, Some(player), ROOM);
                picture.set_smooths(self.smooths);
                *slot = Some(Box::new(Other {
                    picture,
                    time: DrawnTime::new(f64::from(moved.prediction.0)),
                    newest: Tick(0),
                    due: Tick(0),
                    alpha: 0.0,
                    passed: 0.0,
                    unjudged: VecDeque::with_capacity(TICKS_MAX),
                    judged: Vec::with_capacity(BODIES_MAX),
                    longest: [0.0; 2],
                    second: Tick(0),
                    unshown: moved.prediction,
                }));
            }
            let Some(other) = slot else { continue };
            let predicted = f64::from(moved.prediction.0) - 1.0 + f64::from(moved.alpha);
            let known = moved.known.until(player).min(moved.prediction);
            // Without smoothing, the picture is the prediction of the newest tick.
            let when = match self.smooths {
                true => when(player),
                false => When::Predicted,
            };
            other
                .time
                .advance(when, moved.passed, f64::from(known.0), predicted);
            let at = other.time.at().max(f64::from(self.first.0));
            let newest = Tick(at as u32 + 1);
            if newest < end {
                other.show(
                    &self.ticks,
                    self.first,
                    self.changed,
                    newest,
                    (at - at.floor()) as f32,
                    moved,
                );
            }
            // If a player is drawn at its known tick, a guessed cue waits until the inputs of its tick are known.
            other.due = match other.time.is_predicted() {
                true => other.newest,
                false => other.newest.min(known),
            };
            let errors = &mut self.errors;
            if owners.contains(player) {
                let age = predicted + 1.0 - other.time.at();
                errors.age.record(age as f32, f32::MAX);
                other.record_inputs(predicted + 1.0, known, &mut errors.key);
            }
            let teleport = self.smoothing.teleport;
            other.judge(&self.ticks, self.first, moved.authority, teleport, errors);
            let oldest = other
                .unjudged
                .front()
                .map_or(other.newest, |first| first.tick);
            // A sample is also compared with the true steps around it.
            needed = needed.min(oldest.back(4));
            let shown = other.picture.shown(other.alpha, moved.now);
            self.drawn.extend(shown);
        }
        self.drawn.sort_unstable_by_key(|(key, _)| *key);
        self.changed = Tick::MAX;
        while self.first < needed && self.ticks.len() > 2 {
            self.forget_first();
        }
    }

    // The drawn entities of other players, in key order.
    pub(crate) fn drawn(&self) -> &[(K, P)] {
        &self.drawn
    }

    /// The time at which a player is drawn, in ticks, and the first tick whose cues are not due. Returns `None` if the
    /// player has had no entities.
    pub(crate) fn time(&self, player: PlayerId) -> Option<(f64, Tick)> {
        let other = self.players[player.index()].as_ref()?;
        Some((other.time.at(), other.due))
    }

    pub(crate) fn errors(&self) -> &PictureErrors {
        &self.errors
    }

    pub(crate) fn pictures(&self) -> impl Iterator<Item = &Picture<K, P>> {
        let players = self.players.iter().flatten();
        players.map(|other| &other.picture)
    }
}

impl<K: Ord + Copy, P: Pose> Other<K, P> {
    fn show(
        &mut self,
        ticks: &VecDeque<Poses<K, P>>,
        first: Tick,
        changed: Tick,
        newest: Tick,
        alpha: f32,
        moved: &Moved<'_>,
    ) {
        let poses = |tick: Tick| &ticks[tick.0.saturating_sub(first.0) as usize];
        let (now, over) = (moved.now, moved.tick * OVER_TICKS);
        let alpha = alpha.clamp(0.0, 1.0 - f32::EPSILON);
        let stays = self.newest > first && self.newest <= newest;
        if !stays {
            // The picture leaps, or goes back.
            let (before, at) = (poses(newest.back(1)), poses(newest));
            self.picture.rebuilt_from(before, at, alpha, now, over);
        } else {
            if changed <= self.newest {
                // Correct from what was drawn last, and not from the rest of its tick, which may be a guess.
                let (before, at) = (poses(self.newest.back(1)), poses(self.newest));
                self.picture.rebuilt_from(before, at, self.alpha, now, over);
            }
            for tick in self.newest.0 + 1..=newest.0 {
                self.picture.ticked_to(poses(Tick(tick)), 0.0, now, over);
            }
        }
        let is_new = newest != self.newest;
        (self.newest, self.alpha) = (newest, alpha);
        self.passed += moved.passed as f32;
        if is_new {
            let passed = std::mem::take(&mut self.passed);
            let bodies = poses(newest).of(self.picture.owner);
            for put in bodies.filter(|put| put.muzzle.is_none()) {
                if let Some(pose) = self.picture.pose(put.key, alpha, now)
                    && self.unjudged.len() < TICKS_MAX
                {
                    self.unjudged.push_back(DrawnPose {
                        tick: newest,
                        alpha,
                        passed,
                        key: put.key,
                        pose,
                    });
                }
            }
        }
    }

    // Records the age of each input drawn now for the first time. `own` is the local player's time.
    fn record_inputs(&mut self, own: f64, known: Tick, key: &mut Errors) {
        let drawn = Tick(self.time.at().max(0.0) as u32 + 1).min(known);
        for tick in self.unshown.max(drawn.back(SECOND_TICKS)).0..drawn.0 {
            key.record((own - f64::from(tick + 1)) as f32, f32::MAX);
        }
        self.unshown = self.unshown.max(drawn);
    }

    // Compares drawn poses with the final ones, once the authority has passed the tick after them.
    fn judge(
        &mut self,
        ticks: &VecDeque<Poses<K, P>>,
        first: Tick,
        authority: Tick,
        teleport: f32,
        errors: &mut PictureErrors,
    ) {
        while let Some(sample) = self.unjudged.pop_front_if(|next| next.tick < authority) {
            let pose_at = |tick: Tick| {
                let at = tick.0.checked_sub(first.0)? as usize;
                ticks.get(at)?.get(sample.key).map(|put| put.pose)
            };
            let step = |to: u32| {
                let step = pose_at(Tick(to))?.minus(pose_at(Tick(to).back(1))?);
                (step.length() <= teleport).then_some(step)
            };
            let last = self
                .judged
                .iter()
                .position(|(last, _)| last.key == sample.key);
            let last = last.map(|at| self.judged.swap_remove(at));
            let mut drawn_step = None;
            if let (Some(before), Some(after)) =
                (pose_at(sample.tick.back(1)), pose_at(sample.tick))
            {
                let was = P::lerp(before, after, sample.alpha);
                errors
                    .others_off
                    .record(sample.pose.minus(was).length(), f32::MAX);
            }
            if let Some((last, last_step)) = last
                && sample.passed > 0.0
                && sample.tick - last.tick <= SECOND_TICKS
            {
                let way = sample.pose.minus(last.pose);
                let drawn = way.minus(way).plus(way, 1.0 / sample.passed);
                // The true steps in all ticks that the drawn step touches, and the changes between them.
                let (mut turn, mut least, mut before) = (0.0_f32, f32::MAX, None::<P>);
                for to in last.tick.back(1).0..=sample.tick.0 + 1 {
                    let Some(real) = step(to) else { continue };
                    turn = turn.max(before.map_or(0.0, |before| real.minus(before).length()));
                    least = least.min(real.length());
                    self.longest[0] = self.longest[0].max(real.length());
                    before = Some(real);
                }
                if sample.tick - self.second >= SECOND_TICKS {
                    (self.longest[1], self.longest[0]) = (self.longest[0], 0.0);
                    self.second = sample.tick;
                }
                let longest = self.longest[0].max(self.longest[1]);
                if before.is_some() && way.length() <= teleport {
                    errors.steps += 1;
                    errors.too_fast += u64::from(drawn.length() > TOO_FAST * longest);
                    let walks = least > STANDING * longest;
                    errors.standing += u64::from(walks && drawn.length() < STANDING * least);
                    if let Some(last) = last_step {
                        let jerk = drawn.minus(last).length() - turn;
                        errors.jerk.record(jerk.max(0.0), f32::MAX);
                    }
                    drawn_step = Some(drawn);
                }
            }
            if self.judged.len() == BODIES_MAX {
                self.judged.remove(0);
            }
            self.judged.push((sample, drawn_step));
        }
    }
}
