//! [`Picture`]: the picture to draw, from the poses of the last two predicted ticks. It never changes the simulation's
//! state.
//!
//! ```text
//!   prediction ──Show::poses──▶ Poses ──ticked──▶ previous, newest ─┐
//!                                 │                                 ├─▶ shown(alpha, now)
//!                                 └──rebuilt──▶ error = shown − rebuilt, fading ─┘
//! ```
//!
//! Local seats are drawn a tick later than other entities: starting at the newest tick, as if their movement continued
//! (alpha ≥ 0), or between the last two ticks while the newest is not over (alpha < 0, see `Pace::sample_now`). So a
//! key press shows in the frame in which it happens, and local seats move every frame. Other entities are drawn between
//! the last two ticks, or up to a tick earlier while alpha < 0.
//!
//! An entity appears immediately (or at its shooter's muzzle, see [`Muzzle`]), and vanishes immediately; if a rebuild
//! removed it, [`fading`](Picture::fading) returns it for a while.
//!
//! Invariant: a rebuild does not move the picture, except for entities whose error is longer than a teleport. Between
//! rebuilds an error only shrinks; a rebuild that does not move an entity does not change its error.
//!
//! Cost: merges of sorted lists; no allocation once the buffers have grown.

use core::cmp::Ordering;
use core::iter::Peekable;
use core::mem;
use core::time::Duration;

use twinstep_core::PlayerId;

use crate::smooth::{Correction, Pose};

pub use measured::{Errors, PictureErrors, PictureStats};
pub(crate) use others::{Moved, Others};
pub(crate) use own_drawn::OwnDrawn;
pub use poses::{Muzzle, NoPicture, Poses, Scene, Show, ShowWith, show_with};
pub use when::When;

mod measured;
mod order;
mod others;
mod own_drawn;
mod poses;
mod when;

/// How the picture corrects errors.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Smoothing {
    /// Longer errors are not smoothed, and longer moves within a tick are not interpolated.
    pub teleport: f32,
    /// The time in which a projectile glides from the muzzle onto its path.
    pub muzzle: Duration,
}

impl Smoothing {
    /// Smooths errors up to `teleport`; lets a projectile glide for `muzzle`.
    #[must_use]
    pub const fn new(teleport: f32, muzzle: Duration) -> Smoothing {
        Smoothing { teleport, muzzle }
    }
}

#[derive(Clone, Copy)]
struct Shown<K, P> {
    key: K,
    previous: P,
    newest: P,
    local: bool,
    correction: Option<Correction<P>>,
    /// Whether the correction is a glide (from a muzzle, or of a local entity that slows down), which is not an error.
    glides: bool,
}

impl<K, P: Pose> Shown<K, P> {
    fn uncorrected(&self, alpha: f32, teleport: f32) -> P {
        // The comparison is false for a NaN pose, so it is not interpolated.
        let moves = self.step() <= teleport;
        match (moves, self.local) {
            (false, _) => self.newest,
            (true, true) => P::ahead(self.previous, self.newest, alpha),
            (true, false) if alpha < 0.0 => {
                let step = self.newest.minus(self.previous);
                self.previous.plus(step, alpha)
            }
            (true, false) => P::lerp(self.previous, self.newest, alpha),
        }
    }

    /// The length of the move in the newest tick.
    fn step(&self) -> f32 {
        self.newest.minus(self.previous).length()
    }

    /// Lets a local entity that stopped or slowed down glide back to its position, instead of leaping. It was last
    /// drawn `alpha` ticks after its previous pose. An entity that starts or turns moves at once.
    fn glide_back(
        &mut self,
        was: &Shown<K, P>,
        alpha: f32,
        (now, over): (Duration, Duration),
        teleport: f32,
    ) {
        let slows = self.local && alpha > 0.0 && self.step() < was.step() && was.step() <= teleport;
        if slows {
            let error = was
                .pose(alpha, now, teleport)
                .minus(self.uncorrected(alpha - 1.0, teleport));
            (self.correction, self.glides) = (Some(Correction::new(error, now, over)), true);
        }
    }

    fn pose(&self, alpha: f32, now: Duration, teleport: f32) -> P {
        let pose = self.uncorrected(alpha, teleport);
        self.correction
            .map_or(pose, |correction| correction.applied(pose, now))
    }
}

// The maximum number of removed entities that fade at the same time; others vanish at once.
const FADING_MAX: usize = 64;

#[derive(Clone, Copy)]
struct Removed<K, P> {
    key: K,
    pose: P,
    at: Duration,
    over: Duration,
}

/// The picture to draw, from the poses of the last two predicted ticks. It never changes the simulation's state.
pub struct Picture<K, P> {
    smoothing: Smoothing,
    smooths: bool,
    /// The player that owns the entities, if they are drawn at that player's time.
    owner: Option<PlayerId>,
    entities: Vec<Shown<K, P>>,
    before: Vec<Shown<K, P>>,
    /// New entities that come from a muzzle: their index, and the index of the muzzle.
    fired: Vec<(usize, u32)>,
    // Sorted by key, each once.
    removed: Vec<Removed<K, P>>,
    moved: Errors,
    own_moved: Errors,
    shown: Errors,
}

impl<K: Ord + Copy, P: Pose> Picture<K, P> {
    /// Creates an empty picture.
    #[must_use]
    pub fn new(smoothing: Smoothing) -> Self {
        Picture {
            smoothing,
            smooths: true,
            owner: None,
            entities: Vec::new(),
            before: Vec::new(),
            fired: Vec::new(),
            removed: Vec::with_capacity(FADING_MAX),
            moved: Errors::default(),
            own_moved: Errors::default(),
            shown: Errors::default(),
        }
    }

    pub(crate) fn with_room(smoothing: Smoothing, owner: Option<PlayerId>, room: usize) -> Self {
        Picture {
            owner,
            entities: Vec::with_capacity(room),
            before: Vec::with_capacity(room),
            fired: Vec::with_capacity(room),
            ..Picture::new(smoothing)
        }
    }

    /// Turns the smoothing of corrections on (the default) or off, to show the uncorrected errors.
    pub fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
    }

    /// Shows the poses of a new predicted tick.
    pub fn ticked(&mut self, poses: &mut Poses<K, P>, now: Duration) {
        poses.order();
        self.ticked_to(poses, 0.0, now, Duration::ZERO);
    }

    /// Shows a new tick like [`ticked`](Self::ticked), from ordered poses. `drawn` is the position of the last drawn
    /// picture in ticks after the previous tick, at least −1 and below 1. If it is positive, a local entity that has
    /// stopped or slowed down glides back within `over`.
    pub(crate) fn ticked_to(
        &mut self,
        poses: &Poses<K, P>,
        drawn: f32,
        now: Duration,
        over: Duration,
    ) {
        mem::swap(&mut self.entities, &mut self.before);
        self.entities.clear();
        self.fired.clear();
        let mut before = self.before.iter().peekable();
        for put in poses.of(self.owner) {
            let was = next_of(put.key, &mut before, |shown| shown.key);
            if let (None, Some(muzzle)) = (was, put.muzzle) {
                self.fired.push((self.entities.len(), muzzle));
            }
            let correction = was
                .and_then(|was| was.correction)
                .filter(|correction| !correction.is_over(now));
            let glides = was.is_some_and(|was| was.glides) && (correction.is_some() || !put.local);
            let error = correction.filter(|_| !glides);
            let error = error.map_or(0.0, |correction| correction.error(now));
            if error > 0.0 || was.is_some_and(|was| was.newest != put.pose) {
                self.shown.record(error, self.smoothing.teleport);
            }
            let mut shown = Shown {
                key: put.key,
                previous: was.map_or(put.pose, |was| was.newest),
                newest: put.pose,
                local: put.local,
                correction,
                glides,
            };
            if let Some(was) = was {
                shown.glide_back(was, drawn, (now, over), self.smoothing.teleport);
            }
            self.entities.push(shown);
        }
        self.glide_from_muzzles(poses, 1.0, now);
    }

    /// Shows a rebuilt prediction, from the poses of its last two ticks. Entities stay where they were drawn, and reach
    /// their new positions after `over` (the lead, at least 6 ticks).
    ///
    /// `alpha` is the picture's position at `now`: 0 at the tick of `previous`, 1 at that of `newest`, and as low as −1
    /// before `previous`. It is 1 if a new tick follows at the same time.
    pub fn rebuilt(
        &mut self,
        previous: &mut Poses<K, P>,
        newest: &mut Poses<K, P>,
        alpha: f32,
        now: Duration,
        over: Duration,
    ) {
        previous.order();
        newest.order();
        self.rebuilt_from(previous, newest, alpha, now, over);
    }

    /// Shows a rebuilt prediction like [`rebuilt`](Self::rebuilt), from ordered poses.
    fn rebuilt_from(
        &mut self,
        previous: &Poses<K, P>,
        newest: &Poses<K, P>,
        alpha: f32,
        now: Duration,
        over: Duration,
    ) {
        let teleport = self.smoothing.teleport;
        mem::swap(&mut self.entities, &mut self.before);
        self.entities.clear();
        self.fired.clear();
        let mut before = self.before.iter().peekable();
        let mut earlier = previous.of(self.owner).peekable();
        for put in newest.of(self.owner) {
            let previous = next_of(put.key, &mut earlier, |earlier| earlier.key);
            let mut shown = Shown {
                key: put.key,
                previous: previous.map_or(put.pose, |previous| previous.pose),
                newest: put.pose,
                local: put.local,
                correction: None,
                glides: false,
            };
            if let Some(was) = next_of(put.key, &mut before, |shown| shown.key) {
                let rebuilt = shown.uncorrected(alpha, teleport);
                let error = was.pose(alpha, now, teleport).minus(rebuilt);
                shown.correction = was.correction;
                shown.glides = was.glides;
                // An entity that the rebuild did not move keeps its correction, with the time left.
                if rebuilt != was.uncorrected(alpha, teleport) {
                    let smooth = self.moved.record(error.length(), teleport);
                    if put.local {
                        self.own_moved.record(error.length(), teleport);
                    }
                    shown.correction = smooth.then(|| Correction::new(error, now, over));
                }
            } else if let Some(muzzle) = put.muzzle {
                self.fired.push((self.entities.len(), muzzle));
            }
            self.entities.push(shown);
        }
        self.glide_from_muzzles(newest, alpha, now);
        self.fade_out(alpha, now, over);
    }

    fn fade_out(&mut self, alpha: f32, now: Duration, over: Duration) {
        self.removed
            .retain(|gone| now.saturating_sub(gone.at) < gone.over);
        let mut there = self.entities.iter().peekable();
        for was in &self.before {
            if next_of(was.key, &mut there, |shown| shown.key).is_some() {
                continue;
            }
            let gone = Removed {
                key: was.key,
                pose: was.pose(alpha, now, self.smoothing.teleport),
                at: now,
                over,
            };
            match self
                .removed
                .binary_search_by_key(&gone.key, |gone| gone.key)
            {
                Ok(i) => self.removed[i] = gone,
                Err(i) if self.removed.len() < FADING_MAX => self.removed.insert(i, gone),
                Err(_) => {}
            }
        }
    }

    /// The entities removed by a rebuild, in key order, each with its last drawn pose and its remaining opacity. The
    /// opacity falls from 1 to 0 over the time of a correction. Entities shown again are not included. At most 64 fade
    /// at the same time; others vanish at once.
    pub fn fading(&self, now: Duration) -> impl Iterator<Item = (K, P, f32)> + '_ {
        self.removed.iter().filter_map(move |gone| {
            let passed = now.saturating_sub(gone.at);
            let is_shown = || self.find(gone.key).is_some();
            (passed < gone.over && !is_shown()).then(|| {
                let part = passed.as_secs_f32() / gone.over.as_secs_f32();
                (gone.key, gone.pose, 1.0 - part)
            })
        })
    }

    fn find(&self, key: K) -> Option<&Shown<K, P>> {
        let i = self.entities.binary_search_by_key(&key, |shown| shown.key);
        i.ok().map(|i| &self.entities[i])
    }

    /// The poses to draw, in key order. `alpha`, in [0, 1), is the part of the tick that has passed; in [−1, 0), the
    /// newest tick was sampled early, and the picture is before its end.
    pub fn shown(&self, alpha: f32, now: Duration) -> impl Iterator<Item = (K, P)> + '_ {
        self.shown_with_local(alpha, now)
            .map(|(key, (pose, _))| (key, pose))
    }

    /// The poses to draw, in key order, and whether each entity is local.
    pub fn shown_with_local(
        &self,
        alpha: f32,
        now: Duration,
    ) -> impl Iterator<Item = (K, (P, bool))> + '_ {
        debug_assert!(
            (-1.0..1.0).contains(&alpha),
            "alpha is in [-1, 1), got {alpha}"
        );
        self.entities.iter().map(move |shown| {
            let pose = self.pose_of(shown, alpha, now);
            (shown.key, (pose, shown.local))
        })
    }

    /// The drawn pose of one entity.
    #[must_use]
    pub fn pose(&self, key: K, alpha: f32, now: Duration) -> Option<P> {
        Some(self.pose_of(self.find(key)?, alpha, now))
    }

    /// pDiff of one entity: the distance between its drawn and its simulated pose. Glides do not count. Returns `None`
    /// if the entity is not shown.
    #[must_use]
    pub fn error(&self, key: K, now: Duration) -> Option<f32> {
        let shown = self.find(key)?;
        let error = shown.correction.filter(|_| !shown.glides && self.smooths);
        Some(error.map_or(0.0, |correction| correction.error(now)))
    }

    fn pose_of(&self, shown: &Shown<K, P>, alpha: f32, now: Duration) -> P {
        let teleport = self.smoothing.teleport;
        if self.smooths {
            shown.pose(alpha, now, teleport)
        } else {
            shown.uncorrected(alpha, teleport)
        }
    }

    /// pDiff over time: the distance of each moving entity from its simulated position, every tick. Glides do not
    /// count.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.shown
    }

    /// pDiff at rebuilds, where it is largest: the distance by which a rebuild moved each entity.
    #[must_use]
    pub fn corrections(&self) -> &Errors {
        &self.moved
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    pub(crate) fn corrections_of_own(&self) -> &Errors {
        &self.own_moved
    }

    // The poses as they are drawn at the end of the newest tick, which is over after `rest`, and whether each entity is
    // local. Glides of projectiles are left out.
    pub(crate) fn at_end(
        &self,
        now: Duration,
        rest: Duration,
    ) -> impl Iterator<Item = (K, (P, bool))> + '_ {
        let moves = self
            .entities
            .iter()
            .filter(|shown| !shown.glides || shown.local);
        moves.map(move |shown| {
            // Local entities are there already.
            let (alpha, at) = match shown.local {
                true => (0.0, now),
                false => (1.0, now + rest),
            };
            (shown.key, (self.pose_of(shown, alpha, at), shown.local))
        })
    }

    /// Starts new projectiles at the drawn position of the muzzle that fired them.
    fn glide_from_muzzles(&mut self, poses: &Poses<K, P>, alpha: f32, now: Duration) {
        let Smoothing {
            teleport,
            muzzle: over,
        } = self.smoothing;
        for i in 0..self.fired.len() {
            let (i, muzzle) = self.fired[i];
            let muzzle = poses.muzzle(muzzle);
            let at = match (
                self.pose_before(muzzle.shooter, alpha, now),
                poses.get(muzzle.shooter),
            ) {
                (Some(shown), Some(simulated)) => muzzle.at.plus(shown.minus(simulated.pose), 1.0),
                _ => muzzle.at,
            };
            let shown = &mut self.entities[i];
            shown.glides = true;
            shown.correction = Some(muzzle_blend(
                at,
                shown.uncorrected(alpha, teleport),
                now,
                over,
            ));
        }
    }

    fn pose_before(&self, key: K, alpha: f32, now: Duration) -> Option<P> {
        let i = self
            .before
            .binary_search_by_key(&key, |shown| shown.key)
            .ok()?;
        Some(self.before[i].pose(alpha, now, self.smoothing.teleport))
    }
}

/// Returns the element of `key` in a list sorted by key, and skips the earlier ones. The element is nearly always the
/// next one.
#[inline]
fn next_of<'a, T, K: Ord>(
    key: K,
    list: &mut Peekable<impl Iterator<Item = &'a T>>,
    key_of: impl Fn(&T) -> K,
) -> Option<&'a T> {
    loop {
        match key_of(list.peek()?).cmp(&key) {
            Ordering::Less => list.next(),
            Ordering::Equal => return list.next(),
            Ordering::Greater => return None,
        };
    }
}

#[cfg(test)]
mod tests;

/// Returns the offset by which a projectile glides from `origin`, where it is drawn now, to its simulated path at
/// `pose`. The offset shrinks steadily and is zero after `over`.
#[must_use]
pub(crate) fn muzzle_blend<P: Pose>(
    origin: P,
    pose: P,
    now: Duration,
    over: Duration,
) -> Correction<P> {
    Correction::new(origin.minus(pose), now, over)
}
