//! [`Show`] and [`Poses`]: the game's description of its picture, as the pose of each entity at one tick.

use core::cmp::Ordering;

use twinstep_core::{PlayerId, PlayerSet};

use crate::picture::Muzzle;
use crate::smooth::Pose;
use crate::timeline::Known;

/// Lists the entities of a simulation that are drawn.
pub trait Show<S>: Send + Sync + 'static {
    /// The name of an entity for its whole life.
    type Key: Ord + Copy + Send + Sync + 'static;
    /// The pose of an entity.
    type Pose: Pose;
    /// Puts the pose of each drawn entity into `out`, in any order. Ascending keys are the cheapest.
    fn poses(&self, sim: &S, out: &mut Poses<Self::Key, Self::Pose>);
}

/// An empty picture, for clients that do not draw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hidden;

impl<S> Show<S> for Hidden {
    type Key = u8;
    type Pose = f32;
    fn poses(&self, _: &S, _: &mut Poses<u8, f32>) {}
}

/// A [`Show`] that is made from a closure.
pub struct ShowWith<F, K, P> {
    poses: F,
    of: core::marker::PhantomData<fn() -> (K, P)>,
}

/// Makes a [`Show`] from a closure.
pub fn show_with<S, K, P, F: Fn(&S, &mut Poses<K, P>)>(poses: F) -> ShowWith<F, K, P> {
    ShowWith {
        poses,
        of: core::marker::PhantomData,
    }
}

impl<S, K, P, F> Show<S> for ShowWith<F, K, P>
where
    K: Ord + Copy + Send + Sync + 'static,
    P: Pose,
    F: Fn(&S, &mut Poses<K, P>) + Send + Sync + 'static,
{
    type Key = K;
    type Pose = P;
    fn poses(&self, sim: &S, out: &mut Poses<K, P>) {
        (self.poses)(sim, out);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Put<K, P> {
    pub(super) key: K,
    pub(super) pose: P,
    pub(super) local: bool,
    pub(super) muzzle: Option<u32>,
}

/// The poses of one tick, each key once.
pub struct Poses<K, P> {
    locals: PlayerSet,
    known: Known,
    /// Poses that were put in ascending order of keys.
    puts: Vec<Put<K, P>>,
    /// Poses that were put after one with an equal or higher key, in the order of the calls.
    strays: Vec<Put<K, P>>,
    /// The keys of the strays with their indices, sorted, once they are [ordered](Self::order). Sorting indices moves
    /// less memory.
    order: Vec<(K, u32)>,
    muzzles: Vec<Muzzle<K, P>>,
}

impl<K: Ord + Copy, P: Pose> Poses<K, P> {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Poses {
            locals: PlayerSet::default(),
            known: Known::ALL,
            puts: Vec::new(),
            strays: Vec::new(),
            order: Vec::new(),
            muzzles: Vec::new(),
        }
    }

    /// Clears the list for a screen of these local players, and keeps the buffers.
    pub fn begin(&mut self, locals: PlayerSet) {
        self.begin_knowing(locals, &Known::ALL);
    }

    /// Clears the list like [`begin`](Self::begin), for a prediction that knows the players' actions up to `known`.
    pub fn begin_knowing(&mut self, locals: PlayerSet, known: &Known) {
        self.locals = locals;
        self.known = *known;
        self.puts.clear();
        self.strays.clear();
        self.order.clear();
        self.muzzles.clear();
    }

    /// Returns `true` if the player plays on this screen. Draw its entities with [`put_local`](Self::put_local).
    #[must_use]
    pub fn is_local(&self, player: PlayerId) -> bool {
        self.locals.contains(player)
    }

    /// How far the actions of players are known rather than guessed. Do not draw a projectile of a remote player while
    /// it is only guessed: each correction of the guess would move it visibly. Once the shot is known, the projectile
    /// appears at the muzzle, see [`put_from`](Self::put_from).
    #[must_use]
    pub fn known(&self) -> Known {
        self.known
    }

    /// Puts an entity that is drawn between the last two ticks.
    pub fn put(&mut self, key: K, pose: P) {
        self.insert(key, pose, false, None);
    }

    /// Puts an entity that is drawn at the newest tick: one of a local player, or one that must not lag behind it.
    pub fn put_local(&mut self, key: K, pose: P) {
        self.insert(key, pose, true, None);
    }

    /// Puts the entity of a player, local or remote.
    pub fn put_player(&mut self, player: PlayerId, key: K, pose: P) {
        self.insert(key, pose, self.is_local(player), None);
    }

    /// Puts a projectile of another player. It first appears at its shooter's muzzle as currently drawn, and glides
    /// onto its path. `muzzle` is the muzzle's position in this simulation.
    pub fn put_from(&mut self, key: K, pose: P, shooter: K, muzzle: P) {
        let place = self.muzzles.len() as u32;
        self.muzzles.push(Muzzle {
            shooter,
            at: muzzle,
        });
        self.insert(key, pose, false, Some(place));
    }

    /// The number of poses, equal keys counted twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.puts.len() + self.strays.len()
    }

    /// Whether there are no poses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty()
    }

    #[inline]
    fn insert(&mut self, key: K, pose: P, local: bool, muzzle: Option<u32>) {
        let put = Put {
            key,
            pose,
            local,
            muzzle,
        };
        if self.puts.last().is_none_or(|last| last.key < key) {
            self.puts.push(put);
        } else {
            self.strays.push(put);
        }
    }

    /// Sorts the strays; the last pose of a key is kept. The cost is a sort of the strays.
    pub(super) fn order(&mut self) {
        self.order.clear();
        let keys = self.strays.iter().zip(0..);
        self.order.extend(keys.map(|(put, nth)| (put.key, nth)));
        self.order
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        self.order.dedup_by_key(|(key, _)| *key);
    }

    /// All poses in the order of keys, after they were [ordered](Self::order). A stray replaces an earlier pose of the
    /// same key.
    pub(super) fn by_key(&self) -> impl Iterator<Item = &Put<K, P>> {
        let first = self.order.first();
        let before = first.map_or(self.puts.len(), |first| {
            self.puts.partition_point(|put| put.key < first.0)
        });
        let (before, behind) = self.puts.split_at(before);
        let mut puts = behind.iter().peekable();
        let strays = self.order.iter();
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

    pub(super) fn get(&self, key: K) -> Option<&Put<K, P>> {
        if let Ok(at) = self.order.binary_search_by_key(&key, |stray| stray.0) {
            return Some(&self.strays[self.order[at].1 as usize]);
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
