//! What a game says of its picture: the pose of each entity at one tick.

use twinstep_core::{PlayerId, PlayerSet};

use crate::projectile::Muzzle;
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
    pub(super) muzzle: Option<Muzzle<K, P>>,
    /// Its place among those that were put out of order.
    nth: u32,
}

/// The poses of one tick, by key; each key once.
pub struct Poses<K, P> {
    locals: PlayerSet,
    known: Known,
    /// In the order of their keys.
    pub(super) puts: Vec<Put<K, P>>,
    /// Those that were put after one whose key is no lower, as they came.
    strays: Vec<Put<K, P>>,
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
        self.insert(Put {
            key,
            pose,
            local: false,
            muzzle: None,
            nth: 0,
        });
    }

    /// A local seat (and what must not lag behind it), drawn where the newest tick has it.
    pub fn put_local(&mut self, key: K, pose: P) {
        self.insert(Put {
            key,
            pose,
            local: true,
            muzzle: None,
            nth: 0,
        });
    }

    /// A player's own entity: local or not, as it is.
    pub fn put_player(&mut self, player: PlayerId, key: K, pose: P) {
        let local = self.is_local(player);
        self.insert(Put {
            key,
            pose,
            local,
            muzzle: None,
            nth: 0,
        });
    }

    /// A projectile of somebody else: when it appears it is drawn at its shooter's muzzle as that is shown
    /// then, and glides onto its path. `muzzle` is where this very simulation has the muzzle.
    pub fn put_from(&mut self, key: K, pose: P, shooter: K, muzzle: P) {
        self.insert(Put {
            key,
            pose,
            local: false,
            muzzle: Some(Muzzle {
                shooter,
                at: muzzle,
            }),
            nth: 0,
        });
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

    pub(super) fn get(&self, key: K) -> Option<&Put<K, P>> {
        self.puts
            .binary_search_by_key(&key, |put| put.key)
            .ok()
            .map(|i| &self.puts[i])
    }

    fn insert(&mut self, put: Put<K, P>) {
        if self.puts.last().is_none_or(|last| last.key < put.key) {
            self.puts.push(put);
        } else {
            let nth = self.strays.len() as u32;
            self.strays.push(Put { nth, ..put });
        }
    }

    /// Brings the poses into the order of their keys; of equal keys the last put stays. Costs a sort of those that were put
    /// out of order and, if there are any, a move of those behind the first of them.
    pub(super) fn order(&mut self) {
        if self.strays.is_empty() {
            return;
        }
        let (puts, strays) = (&mut self.puts, &mut self.strays);
        strays.sort_unstable_by(|a, b| a.key.cmp(&b.key).then(b.nth.cmp(&a.nth)));
        strays.dedup_by_key(|put| put.key);
        // A key that is in order too was put there before it strayed: from then on keys were higher.
        strays.retain(
            |stray| match puts.binary_search_by_key(&stray.key, |put| put.key) {
                Ok(at) => {
                    puts[at] = *stray;
                    false
                }
                Err(_) => true,
            },
        );
        let mut from = puts.len();
        puts.extend_from_slice(strays);
        let mut to = puts.len();
        for stray in strays.drain(..).rev() {
            while from > 0 && puts[from - 1].key > stray.key {
                (from, to) = (from - 1, to - 1);
                puts[to] = puts[from];
            }
            to -= 1;
            puts[to] = stray;
        }
    }
}

impl<K: Ord + Copy, P: Pose> Default for Poses<K, P> {
    fn default() -> Self {
        Poses::new()
    }
}
