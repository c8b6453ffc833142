//! [`Show`] and [`Poses`]: the game's description of its picture, as the pose of each entity at one tick.

use core::cmp::Ordering;
use core::ops::Deref;
use core::time::Duration;

use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick, World};

use super::order::KeyOrder;
use super::when::When;
use crate::smooth::Pose;
use crate::timeline::Known;

/// The state to draw, with the tick and the rules. A sliding door, for example, is drawn from its start time and this
/// tick. Dereferences to the state.
pub struct Scene<'a, S: Simulation> {
    /// The state.
    pub sim: &'a S,
    /// The next tick that the state steps.
    pub tick: Tick,
    /// The length of a tick.
    pub tick_length: Duration,
    /// The rules of the match.
    pub rules: &'a S::Rules,
}

impl<'a, S: Simulation> Scene<'a, S> {
    /// Returns the scene of a world.
    pub fn new(world: &'a World<S>, rules: &'a S::Rules) -> Self {
        Scene {
            sim: world.sim(),
            tick: world.tick(),
            tick_length: world.turn().cadence.tick(),
            rules,
        }
    }
}

impl<S: Simulation> Deref for Scene<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.sim
    }
}

/// Lists the drawn entities of a simulation.
pub trait Show<S: Simulation>: Send + Sync + 'static {
    /// Identifies an entity for its whole life.
    type Key: Ord + Copy + Send + Sync + 'static;
    /// The pose of an entity.
    type Pose: Pose;
    /// Puts the pose of each drawn entity into `out`, in any order. Ascending keys are the cheapest.
    fn poses(&self, scene: &Scene<'_, S>, out: &mut Poses<Self::Key, Self::Pose>);
    /// Returns the time at which another player's entities are drawn ([`put_player`](Poses::put_player) and
    /// [`put_from`](Poses::put_from)), and the cues that the player owns ([`Key::owner`](twinstep_core::Key::owner)).
    /// Called every frame with the newest prediction, so the time may change during play; the picture glides from one
    /// time to the other.
    fn when(&self, _scene: &Scene<'_, S>, _player: PlayerId) -> When {
        When::Auto
    }
}

/// An empty picture, for clients that do not draw.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPicture;

impl<S: Simulation> Show<S> for NoPicture {
    type Key = u8;
    type Pose = f32;
    fn poses(&self, _: &Scene<'_, S>, _: &mut Poses<u8, f32>) {}
}

/// A [`Show`] created from a closure.
pub struct ShowWith<F, K, P> {
    poses: F,
    of: core::marker::PhantomData<fn() -> (K, P)>,
}

/// Creates a [`Show`] from a closure.
pub fn show_with<S, K, P, F>(poses: F) -> ShowWith<F, K, P>
where
    S: Simulation,
    F: Fn(&Scene<'_, S>, &mut Poses<K, P>),
{
    ShowWith {
        poses,
        of: core::marker::PhantomData,
    }
}

impl<S, K, P, F> Show<S> for ShowWith<F, K, P>
where
    K: Ord + Copy + Send + Sync + 'static,
    P: Pose,
    S: Simulation,
    F: Fn(&Scene<'_, S>, &mut Poses<K, P>) + Send + Sync + 'static,
{
    type Key = K;
    type Pose = P;
    fn poses(&self, scene: &Scene<'_, S>, out: &mut Poses<K, P>) {
        (self.poses)(scene, out);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Put<K, P> {
    pub(super) key: K,
    pub(super) pose: P,
    pub(super) local: bool,
    pub(super) muzzle: Option<u32>,
    /// The player that determines when the entity is drawn.
    pub(super) owner: Option<PlayerId>,
}

/// The origin of a projectile.
/// ```text
///   fired by a remote player ──▶ known here k ticks later: a ghost, already k ticks along its true path
///     simulation:  harmless until promoted (a hit withholds)                    `Frame::is_ghost`
///     picture:     starts at the muzzle as shown, glides onto its true path     `muzzle_blend`
/// ```
///
/// The simulated position is exact from the first tick; only the drawn position starts elsewhere. This data is not
/// simulation state: each tick's poses contain it again.
#[derive(Clone, Copy, Debug)]
pub struct Muzzle<K, P> {
    /// The key of the shooter in the same poses.
    pub shooter: K,
    /// The muzzle's position in this simulation.
    pub at: P,
    /// The tick in which the projectile was fired. It is not drawn until the shooter's input of that tick is known,
    /// because each corrected guess would move it visibly.
    pub born: Tick,
}

/// The entities that a list accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// All entities at one time, as in lockstep.
    AtOnce,
    /// All entities. Those of other players are drawn at their owner's time.
    Apart,
    /// Only other players' entities.
    Others,
}

/// The poses of one tick. If a key is put more than once, its last pose is drawn.
pub struct Poses<K, P> {
    locals: PlayerSet,
    takes: Takes,
    known: Known,
    /// Poses put in ascending key order.
    puts: Vec<Put<K, P>>,
    /// Poses put after one with an equal or higher key, in call order.
    strays: Vec<Put<K, P>>,
    /// The order of the strays, once they are [ordered](Self::order).
    order: KeyOrder<K>,
    ordered_strays: usize,
    muzzles: Vec<Muzzle<K, P>>,
}

impl<K: Ord + Copy, P: Pose> Poses<K, P> {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Poses {
            locals: PlayerSet::default(),
            takes: Takes::AtOnce,
            known: Known::ALL,
            puts: Vec::new(),
            strays: Vec::new(),
            order: KeyOrder::new(),
            ordered_strays: 0,
            muzzles: Vec::new(),
        }
    }

    pub(crate) fn with_room(poses: usize) -> Self {
        Poses {
            puts: Vec::with_capacity(poses),
            muzzles: Vec::with_capacity(poses),
            ..Poses::new()
        }
    }

    /// Clears the list but keeps its buffers. The next poses are for a screen of the players `locals`.
    pub fn begin(&mut self, locals: PlayerSet) {
        self.begin_knowing(locals, &Known::ALL);
    }

    /// Clears the list like [`begin`](Self::begin), for a prediction that knows the players' actions up to `known`.
    pub fn begin_knowing(&mut self, locals: PlayerSet, known: &Known) {
        self.locals = locals;
        self.takes = Takes::AtOnce;
        self.known = *known;
        self.puts.clear();
        self.strays.clear();
        self.order.clear();
        self.ordered_strays = 0;
        self.muzzles.clear();
    }

    /// Clears the list for all entities. Remote players' entities are drawn at those players' own time.
    pub(crate) fn begin_apart(&mut self, locals: PlayerSet) {
        self.begin(locals);
        self.takes = Takes::Apart;
    }

    pub(crate) fn begin_others(&mut self, locals: PlayerSet) {
        self.begin(locals);
        self.takes = Takes::Others;
    }

    pub(super) fn copy_others(&mut self, all: &Poses<K, P>) {
        self.begin_others(all.locals);
        for put in all.by_key().filter(|put| put.owner.is_some()) {
            let muzzle = put.muzzle.map(|muzzle| *all.muzzle(muzzle));
            self.put_owned(put.key, put.pose, put.owner, muzzle);
        }
    }

    pub(super) fn has_others(&self) -> bool {
        let mut puts = self.puts.iter().chain(&self.strays);
        puts.any(|put| put.owner.is_some())
    }

    pub(super) fn owners(&self, owners: &mut PlayerSet) {
        let puts = self.puts.iter().chain(&self.strays);
        for owner in puts.filter_map(|put| put.owner) {
            owners.set(owner, true);
        }
    }

    pub(super) fn know(&mut self, known: &Known) {
        self.known = *known;
    }

    /// Returns `true` if the player plays on this screen. Draw its entities with [`put_local`](Self::put_local).
    #[must_use]
    pub fn is_local(&self, player: PlayerId) -> bool {
        self.locals.contains(player)
    }

    /// Puts an entity drawn between the last two ticks of the prediction.
    pub fn put(&mut self, key: K, pose: P) {
        self.insert(key, pose, false, None, None);
    }

    /// Puts an entity drawn at the newest tick and [extrapolated](Pose::ahead) from there: a local player's entity, or
    /// one that must not lag behind the player.
    pub fn put_local(&mut self, key: K, pose: P) {
        self.insert(key, pose, true, None, None);
    }

    /// Puts a player's entity: at the newest tick for a local player, otherwise at the [time](Show::when) at which that
    /// player is drawn.
    pub fn put_player(&mut self, player: PlayerId, key: K, pose: P) {
        match self.is_local(player) {
            true => self.put_local(key, pose),
            false => self.put_owned(key, pose, self.owner(player), None),
        }
    }

    /// Puts a projectile of a player. Another player's projectile first appears at the muzzle of its shooter as
    /// currently drawn, and glides onto its path. A local player's projectile is drawn at the newest tick.
    pub fn put_from(&mut self, player: PlayerId, key: K, pose: P, muzzle: Muzzle<K, P>) {
        match self.is_local(player) {
            true => self.put_local(key, pose),
            false if self.takes == Takes::AtOnce && !self.known.covers(player, muzzle.born) => {}
            false => self.put_owned(key, pose, self.owner(player), Some(muzzle)),
        }
    }

    fn owner(&self, player: PlayerId) -> Option<PlayerId> {
        (self.takes != Takes::AtOnce).then_some(player)
    }

    fn put_owned(
        &mut self,
        key: K,
        pose: P,
        owner: Option<PlayerId>,
        muzzle: Option<Muzzle<K, P>>,
    ) {
        let place = muzzle.map(|muzzle| {
            self.muzzles.push(muzzle);
            self.muzzles.len() as u32 - 1
        });
        self.insert(key, pose, false, place, owner);
    }

    /// The number of poses. Each pose of a duplicate key counts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.puts.len() + self.strays.len()
    }

    /// Returns `true` if there are no poses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    #[inline]
    fn insert(
        &mut self,
        key: K,
        pose: P,
        local: bool,
        muzzle: Option<u32>,
        owner: Option<PlayerId>,
    ) {
        if self.takes == Takes::Others && owner.is_none() {
            return;
        }
        let put = Put {
            key,
            pose,
            local,
            muzzle,
            owner,
        };
        if self.puts.last().is_none_or(|last| last.key < key) {
            self.puts.push(put);
        } else {
            self.strays.push(put);
        }
    }

    /// Sorts the strays; the last pose of a key is kept.
    pub(crate) fn order(&mut self) {
        if self.ordered_strays == self.strays.len() {
            return;
        }
        self.ordered_strays = self.strays.len();
        let keys = self.strays.iter().map(|put| put.key);
        self.order.sort(keys, self.strays.capacity());
    }

    /// All poses in key order. They must be [ordered](Self::order). A stray replaces an earlier pose of the same key.
    pub(super) fn by_key(&self) -> impl Iterator<Item = &Put<K, P>> {
        let order = self.order.sorted();
        let first = order.first();
        let before = first.map_or(self.puts.len(), |first| {
            self.puts.partition_point(|put| put.key < first.0)
        });
        let (before, behind) = self.puts.split_at(before);
        let mut puts = behind.iter().peekable();
        let strays = order.iter();
        let mut strays = strays.map(|(_, at)| &self.strays[*at as usize]).peekable();
        before.iter().chain(core::iter::from_fn(move || {
            let Some(stray) = strays.peek() else {
                return puts.next();
            };
            match puts.peek().map(|put| put.key.cmp(&stray.key)) {
                Some(Ordering::Less) => puts.next(),
                Some(Ordering::Equal) => {
                    puts.next();
                    strays.next()
                }
                Some(Ordering::Greater) | None => strays.next(),
            }
        }))
    }

    /// The poses of the entities drawn at `owner`'s time, in key order, without projectiles that are only guessed.
    /// `None` means the entities drawn at no player's own time.
    pub(super) fn of(&self, owner: Option<PlayerId>) -> impl Iterator<Item = &Put<K, P>> {
        let is_known = move |put: &&Put<K, P>| match (put.muzzle, owner) {
            (Some(muzzle), Some(owner)) => self.known.covers(owner, self.muzzle(muzzle).born),
            _ => true,
        };
        self.by_key()
            .filter(move |put| put.owner == owner)
            .filter(is_known)
    }

    pub(super) fn get(&self, key: K) -> Option<&Put<K, P>> {
        let order = self.order.sorted();
        if let Ok(at) = order.binary_search_by_key(&key, |stray| stray.0) {
            return Some(&self.strays[order[at].1 as usize]);
        }
        let at = self.puts.binary_search_by_key(&key, |put| put.key).ok()?;
        Some(&self.puts[at])
    }

    pub(super) fn muzzle(&self, place: u32) -> &Muzzle<K, P> {
        &self.muzzles[place as usize]
    }
}

impl<K: Ord + Copy, P: Pose> Default for Poses<K, P> {
    fn default() -> Self {
        Poses::new()
    }
}
