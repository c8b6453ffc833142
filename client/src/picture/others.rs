//! [`Others`]: the entities of other players, each drawn at its player's time.
//!
//! ```text
//!   predicted, rebuilt, confirmed ticks ──Show::poses──▶ one list of poses for each tick ─┐
//!                                                                                         ├─▶ a Picture per player
//!   what is known of each player ──▶ DrawnTime ── between these two ticks ────────────────┘
//! ```
//!
//! Invariant: the list of a tick is that of the newest prediction of it, and finally that of the authority. So where a
//! player's known inputs suffice, it is drawn where it was.
//!
//! Cost: the poses of other players' entities, once more for each rebuilt tick. No copy of the state, no step.

use core::time::Duration;
use std::collections::VecDeque;

use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX};
use twinstep_core::{PlayerId, PlayerSet, Tick};

use super::when::DrawnTime;
use super::{Errors, Picture, Poses, Smoothing, When};
use crate::smooth::Pose;
use crate::timeline::Known;

/// The number of ticks kept at most: a lead, and what a player may be drawn behind the authority.
const TICKS_MAX: usize = LEAD_MAX as usize + 32;
/// Room for the entities of other players in a tick, and for the ticks of a usual lead, without allocating.
const ROOM: usize = 64;
const ROOM_TICKS: usize = 32;
/// The time in which a correction decays, in ticks: half of it in two.
const OVER_TICKS: u32 = 12;

/// The part of an advance that the pictures of other players need.
pub(crate) struct Moved<'a> {
    pub(crate) now: Duration,
    /// The time that passed, in ticks.
    pub(crate) passed: f64,
    pub(crate) tick: Duration,
    pub(crate) authority: Tick,
    /// The prediction's next tick, and the picture's position before it.
    pub(crate) prediction: Tick,
    pub(crate) alpha: f32,
    /// How far the prediction follows from what is known of each player.
    pub(crate) known: &'a Known,
}

struct Other<K, P> {
    picture: Picture<K, P>,
    time: DrawnTime,
    /// The later of the two ticks that the picture lies between, and its position between them.
    newest: Tick,
    alpha: f32,
    /// Poses as drawn, until the authority has passed their ticks: the later tick and the position before it.
    unjudged: VecDeque<(Tick, f32, K, P)>,
}

pub(crate) struct Others<K, P> {
    smoothing: Smoothing,
    smooths: bool,
    /// The poses of consecutive ticks from `first` on: those of a tick are of the world before it.
    ticks: VecDeque<Poses<K, P>>,
    spare: Vec<Poses<K, P>>,
    first: Tick,
    /// The first tick whose poses changed since the last advance.
    changed: Tick,
    players: [Option<Box<Other<K, P>>>; PLAYERS_MAX],
    drawn: Vec<(K, P)>,
    off: Errors,
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
            off: Errors::new(),
            are_used: false,
        }
    }

    pub(crate) fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
        for other in self.players.iter_mut().flatten() {
            other.picture.set_smooths(smooths);
        }
    }

    /// Returns `true` once there were entities of other players.
    pub(crate) fn are_used(&self) -> bool {
        self.are_used
    }

    /// Returns the list for the poses of a tick, if that tick is of use. [`put`](Self::put) or fill it, and order it.
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

    /// Takes the entities of other players from the poses of a tick.
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

    /// Continues with another world. Its poses follow.
    pub(crate) fn jump(&mut self, tick: Tick) {
        self.spare.extend(self.ticks.drain(..));
        self.first = tick;
        for other in self.players.iter_mut().flatten() {
            other.time = DrawnTime::new(f64::from(tick.0));
            other.newest = Tick(0);
            other.unjudged.clear();
        }
    }

    /// Moves the pictures on. `when` returns when a player is drawn.
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
                    alpha: 0.0,
                    unjudged: VecDeque::with_capacity(TICKS_MAX),
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
            other.judge(&self.ticks, self.first, moved.authority, &mut self.off);
            let oldest = other.unjudged.front().map_or(other.newest, |first| first.0);
            needed = needed.min(oldest.back(1));
            let shown = other.picture.shown(other.alpha, moved.now);
            self.drawn.extend(shown);
        }
        self.drawn.sort_unstable_by_key(|(key, _)| *key);
        self.changed = Tick::MAX;
        while self.first < needed && self.ticks.len() > 2 {
            self.forget_first();
        }
    }

    /// The drawn entities of other players, by key.
    pub(crate) fn drawn(&self) -> &[(K, P)] {
        &self.drawn
    }

    /// The time at which a player is drawn, in ticks, and the first tick whose cues are not due.
    pub(crate) fn time(&self, player: PlayerId) -> Option<(f64, Tick)> {
        let other = self.players[player.index()].as_ref()?;
        Some((other.time.at(), other.newest))
    }

    /// How far other players' entities were drawn from where they finally were at the drawn time.
    pub(crate) fn off(&self) -> &Errors {
        &self.off
    }

    pub(crate) fn pictures(&self) -> impl Iterator<Item = &Picture<K, P>> {
        let players = self.players.iter().flatten();
        players.map(|other| &other.picture)
    }
}

impl<K: Ord + Copy, P: Pose> Other<K, P> {
    /// Draws the player before the tick `newest`, at `alpha` of the way to it.
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
            // It leaps, or goes back.
            let (before, at) = (poses(newest.back(1)), poses(newest));
            self.picture.rebuilt_from(before, at, alpha, now, over);
        } else {
            if changed <= self.newest {
                // By what was drawn last, and not by the rest of its tick, which may be a guess.
                let (before, at) = (poses(self.newest.back(1)), poses(self.newest));
                self.picture.rebuilt_from(before, at, self.alpha, now, over);
            }
            for tick in self.newest.0 + 1..=newest.0 {
                self.picture.ticked_to(poses(Tick(tick)), 0.0, now, over);
            }
        }
        let is_new = newest != self.newest;
        (self.newest, self.alpha) = (newest, alpha);
        if is_new {
            let bodies = poses(newest).of(self.picture.owner);
            for put in bodies.filter(|put| put.muzzle.is_none()) {
                if let Some(pose) = self.picture.pose(put.key, alpha, now)
                    && self.unjudged.len() < TICKS_MAX
                {
                    self.unjudged.push_back((newest, alpha, put.key, pose));
                }
            }
        }
    }

    /// Compares what was drawn with what was, once the authority has passed it.
    fn judge(
        &mut self,
        ticks: &VecDeque<Poses<K, P>>,
        first: Tick,
        authority: Tick,
        off: &mut Errors,
    ) {
        while let Some(&(tick, alpha, key, pose)) = self.unjudged.front() {
            if tick > authority {
                break;
            }
            self.unjudged.pop_front();
            let pose_at = |tick: Tick| {
                let at = tick.0.checked_sub(first.0)? as usize;
                ticks.get(at)?.get(key).map(|put| put.pose)
            };
            if let (Some(before), Some(after)) = (pose_at(tick.back(1)), pose_at(tick)) {
                off.record(pose.minus(P::lerp(before, after, alpha)).length(), f32::MAX);
            }
        }
    }
}
