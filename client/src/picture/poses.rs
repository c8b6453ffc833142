//! What a game says of its picture: the pose of each entity at one tick.

use core::cmp::Ordering;

use twinstep_core::{PlayerId, PlayerSet};

use crate::picture::Muzzle;
use crate::smooth::Pose;
use crate::timeline::Known;

/// Tells what to draw of a simulation.
pub trait Show<S>: Send + Sync + 'static {
    /// Names an entity for as long as it lives.
    type Key: Ord + Copy + Send + Sync + 'static;
    /// How it is drawn.
    type Pose: Pose;
    /// Puts the pose of each entity that is drawn, in any order; cheapest in the order of keys.
    fn poses(&self, sim: &S, out: &mut Poses<Self::Key, Self::Pose>);
}

/// For clients without a picture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hidden;

impl<S> Show<S> for Hidden {
    type Key = u8;
    type Pose = f32;
    fn poses(&self, _: &S, _: &mut Poses<u8, f32>) {}
}

/// A [`Show`] made of a closure.
pub struct ShowWith<F, K, P> {
    poses: F,
    of: core::marker::PhantomData<fn() -> (K, P)>,
}

/// Makes a closure a [`Show`].
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

/// One pose, as it was put.
#[derive(Clone, Copy)]
pub(super) struct Put<K, P> {
    pub(super) key: K,
    pub(super) pose: P,
    pub(super) local: bool,
    /// The place of the muzzle that it comes from.
    pub(super) muzzle: Option<u32>,
}

/// The poses of one tick, by key; each key once.
pub struct Poses<K, P> {
    locals: PlayerSet,
    known: Known,
    /// In the order of their keys.
    puts: Vec<Put<K, P>>,
    /// Those that were put after one whose key is no lower, as they came.
    strays: Vec<Put<K, P>>,
    /// Once they are [ordered](Self::order): the key of each of these, and its place. Sorting moves less than they are.
    order: Vec<(K, u32)>,
    muzzles: Vec<Muzzle<K, P>>,
}

impl<K: Ord + Copy, P: Pose> Poses<K, P> {
    /// None yet.
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

    /// Makes this empty again for a screen of these local players, keeping the buffer.
    pub fn begin(&mut self, locals: PlayerSet) {
        self.begin_knowing(locals, &Known::ALL);
    }

    /// The same for a prediction of which so much is known.
    pub fn begin_knowing(&mut self, locals: PlayerSet, known: &Known) {
        self.locals = locals;
        self.known = *known;
        self.puts.clear();
        self.strays.clear();
        self.order.clear();
        self.muzzles.clear();
    }

    /// Whether the player sits at this screen: draw it by [`put_local`](Self::put_local).
    #[must_use]
    pub fn is_local(&self, player: PlayerId) -> bool {
        self.locals.contains(player)
    }

    /// How much of what players gave is known here, rather than guessed. What a player of another screen fires while
    /// nobody here knows of it is best not drawn: every correction of the guess would tear it about. Once known
    /// it appears at the muzzle, see [`put_from`](Self::put_from).
    #[must_use]
    pub fn known(&self) -> Known {
        self.known
    }

    /// An entity, drawn between the last two ticks.
    pub fn put(&mut self, key: K, pose: P) {
        self.insert(key, pose, false, None);
    }

    /// A local seat (and what must not lag behind it), drawn where the newest tick has it.
    pub fn put_local(&mut self, key: K, pose: P) {
        self.insert(key, pose, true, None);
    }

    /// A player's own entity: local or not, as it is.
    pub fn put_player(&mut self, player: PlayerId, key: K, pose: P) {
        self.insert(key, pose, self.is_local(player), None);
    }

    /// A projectile of somebody else: when it appears it is drawn at its shooter's muzzle as that is shown
    /// then, and glides onto its path. `muzzle` is where this very simulation has the muzzle.
    pub fn put_from(&mut self, key: K, pose: P, shooter: K, muzzle: P) {
        let place = self.muzzles.len() as u32;
        self.muzzles.push(Muzzle {
            shooter,
            at: muzzle,
        });
        self.insert(key, pose, false, Some(place));
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.puts.len() + self.strays.len()
    }

    /// Whether there is none.
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

    /// Finds the order of those that were put out of order; of equal keys the last put stays. Costs a sort of these.
    pub(super) fn order(&mut self) {
        self.order.clear();
        let keys = self.strays.iter().zip(0..);
        self.order.extend(keys.map(|(put, nth)| (put.key, nth)));
        self.order
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        self.order.dedup_by_key(|(key, _)| *key);
    }

    /// All in the order of their keys, once they are [ordered](Self::order). A stray came later than one of the same key
    /// that was in order: from then on keys were higher.
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

    /// The one of this key, once they are [ordered](Self::order).
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
