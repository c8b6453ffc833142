//! [`EntityMap`]: keeps an engine's entities in step with the picture. It spawns, moves and despawns them.
//!
//! An engine keeps sprites, bodies or nodes from frame to frame; the picture only lists the current entities. A rebuild
//! may undo a prediction, and a heal may replace the whole world. The map compares the old list with the new one, so
//! neither case needs special code.
//!
//! Invariant: a key has at most one entity, and each spawned entity is despawned at most once.

use core::mem;

/// An engine's operations on the entities of the picture.
pub trait Spawner<K, P> {
    /// The engine's representation of an entity: a handle, an index, a sprite.
    type Entity;

    /// Creates the entity of a key that has just appeared.
    fn spawn(&mut self, key: K, pose: P) -> Self::Entity;

    /// Places an entity that still exists. Called even if it has not moved.
    fn place(&mut self, key: K, entity: &mut Self::Entity, pose: P);

    /// Removes an entity that no longer exists.
    fn despawn(&mut self, key: K, entity: Self::Entity);
}

/// The engine's objects for the entities of a picture. `E` is the engine's own type: [`Spawner::Entity`].
///
/// ```
/// use twinstep_client::{EntityMap, Spawner};
///
/// /// An engine, as far as this example needs one.
/// #[derive(Default)]
/// struct Engine(Vec<String>);
///
/// impl Spawner<u8, [f32; 2]> for Engine {
///     type Entity = char;
///
///     fn spawn(&mut self, key: u8, [x, _]: [f32; 2]) -> char {
///         self.0.push(format!("{key} appears at {x}"));
///         '@'
///     }
///
///     fn place(&mut self, key: u8, _: &mut char, [x, _]: [f32; 2]) {
///         self.0.push(format!("{key} is at {x}"));
///     }
///
///     fn despawn(&mut self, key: u8, _: char) {
///         self.0.push(format!("{key} is gone"));
///     }
/// }
///
/// let (mut map, mut engine) = (EntityMap::default(), Engine::default());
/// // Every frame: map.show(client.session().shown(), &mut engine).
/// map.show([(1, [0.0, 0.0]), (2, [5.0, 0.0])], &mut engine);
/// map.show([(2, [6.0, 0.0]), (3, [9.0, 0.0])], &mut engine);
/// assert_eq!(
///     engine.0,
///     ["1 appears at 0", "2 appears at 5", "1 is gone", "2 is at 6", "3 appears at 9"]
/// );
/// ```
#[derive(Clone, Debug)]
pub struct EntityMap<K, E> {
    there: Vec<(K, E)>,
    before: Vec<(K, E)>,
}

impl<K, E> Default for EntityMap<K, E> {
    fn default() -> Self {
        EntityMap {
            there: Vec::new(),
            before: Vec::new(),
        }
    }
}

impl<K: Ord + Copy, E> EntityMap<K, E> {
    /// Makes the engine show the picture: spawns new entities, places the remaining ones and despawns the others, in
    /// key order. `shown` must be ordered by key, with each key once, as [`Session::shown`](crate::Session::shown) is.
    ///
    /// Cost: one merge of two sorted lists; no allocation once the lists have grown.
    ///
    /// # Panics
    /// In debug builds if `shown` is out of order.
    pub fn show<P>(
        &mut self,
        shown: impl IntoIterator<Item = (K, P)>,
        spawner: &mut impl Spawner<K, P, Entity = E>,
    ) {
        mem::swap(&mut self.there, &mut self.before);
        let mut before = self.before.drain(..).peekable();
        for (key, pose) in shown {
            debug_assert!(
                self.there.last().is_none_or(|(last, _)| *last < key),
                "expected the shown entities in ascending key order"
            );
            while let Some((gone, entity)) = before.next_if(|(old, _)| *old < key) {
                spawner.despawn(gone, entity);
            }
            let entity = match before.next_if(|(old, _)| *old == key) {
                Some((_, mut entity)) => {
                    spawner.place(key, &mut entity, pose);
                    entity
                }
                None => spawner.spawn(key, pose),
            };
            self.there.push((key, entity));
        }
        for (gone, entity) in before {
            spawner.despawn(gone, entity);
        }
    }

    /// The engine's entity for a key, for example to play a sound or an effect at it.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&E> {
        let at = self.there.binary_search_by_key(&key, |(key, _)| *key);
        at.ok().map(|at| &self.there[at].1)
    }

    /// All entities, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &E)> {
        self.there.iter().map(|(key, entity)| (*key, entity))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use twinstep_core::Mwc;

    use super::*;

    #[derive(Default)]
    struct Strict {
        made: u32,
        there: BTreeMap<u32, (u8, i32)>,
        calls: u32,
    }

    impl Spawner<u8, i32> for Strict {
        type Entity = u32;

        fn spawn(&mut self, key: u8, pose: i32) -> u32 {
            self.made += 1;
            self.calls += 1;
            assert!(self.there.values().all(|(other, _)| *other != key));
            self.there.insert(self.made, (key, pose));
            self.made
        }

        fn place(&mut self, key: u8, entity: &mut u32, pose: i32) {
            self.calls += 1;
            let old = self.there.insert(*entity, (key, pose));
            assert_eq!(old.map(|(key, _)| key), Some(key));
        }

        fn despawn(&mut self, key: u8, entity: u32) {
            self.calls += 1;
            let old = self.there.remove(&entity);
            assert_eq!(old.map(|(key, _)| key), Some(key));
        }
    }

    #[test]
    fn the_engine_always_has_exactly_the_shown_entities() {
        let (mut map, mut engine) = (EntityMap::default(), Strict::default());
        let mut luck = Mwc::seed(9);
        for frame in 0..2_000_i32 {
            let keys: BTreeSet<u8> = (0..luck.below(12)).map(|_| luck.below(16) as u8).collect();
            let had: BTreeSet<u8> = map.iter().map(|(key, _)| key).collect();
            let before = engine.calls;
            map.show(keys.iter().map(|key| (*key, frame)), &mut engine);
            // The engine is called once for each entity that appears, stays or vanishes.
            assert_eq!((engine.calls - before) as usize, had.union(&keys).count());
            let there: BTreeMap<u8, i32> = engine.there.values().copied().collect();
            assert!(there.keys().eq(&keys) && there.values().all(|at| *at == frame));
            for key in 0..16 {
                let entity = map.get(key).map(|entity| engine.there[entity].0);
                assert_eq!(entity, keys.contains(&key).then_some(key));
            }
        }
    }
}
