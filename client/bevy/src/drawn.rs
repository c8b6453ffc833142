//! [`Drawn`]: one Bevy entity for each entity of the picture.

use std::marker::PhantomData;

use bevy_ecs::prelude::*;
use twinstep_client::{EntityMap, NoPicture, Show, Spawner};
use twinstep_core::Simulation;

use crate::play::Play;

/// Represents one entity of the picture. The plugin spawns a Bevy entity with this component, updates the component
/// when the pose changes, and despawns the entity with everything that the game has added to it.
///
/// Give it an alias: `type Cube = Drawn<Boxes, Cubes>;`. To add components to new entities, query `Added<Cube>`; to
/// move them, query `Changed<Cube>`, or let the plugin [move transforms](crate::TwinstepPlugin::moving_transforms).
#[derive(Component)]
pub struct Drawn<S: Simulation, V: Show<S>> {
    /// Identifies the entity for its whole life.
    pub key: V::Key,
    /// The pose to draw now.
    pub pose: V::Pose,
    /// Whether the entity is local: see [`Session::shown_with_local`](twinstep_client::Session::shown_with_local).
    pub is_local: bool,
    of: PhantomData<fn() -> S>,
}

/// The Bevy entities of the picture, as a resource. Use it to find the entity to follow, or the position of a sound.
#[derive(Resource)]
pub struct DrawnEntities<S: Simulation, V: Show<S> = NoPicture> {
    map: EntityMap<V::Key, Entity>,
    of: PhantomData<fn() -> S>,
}

impl<S: Simulation, V: Show<S>> Default for DrawnEntities<S, V> {
    fn default() -> Self {
        DrawnEntities {
            map: EntityMap::default(),
            of: PhantomData,
        }
    }
}

impl<S: Simulation, V: Show<S>> DrawnEntities<S, V> {
    /// The entity of a key, if it is drawn.
    #[must_use]
    pub fn get(&self, key: V::Key) -> Option<Entity> {
        self.map.get(key).copied()
    }

    /// All entities, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (V::Key, Entity)> {
        self.map.iter().map(|(key, entity)| (key, *entity))
    }
}

pub(crate) fn draw<S: Simulation, V: Show<S>>(
    play: Option<ResMut<Play<S, V>>>,
    mut entities: ResMut<DrawnEntities<S, V>>,
    commands: Commands,
    drawn: Query<&'static mut Drawn<S, V>>,
) {
    let mut stage = DrawnSpawner { commands, drawn };
    let Some(mut play) = play else {
        entities.map.show([], &mut stage);
        return;
    };
    // In another match, the same key names another entity.
    if !play.is_cleared {
        play.is_cleared = true;
        entities.map.show([], &mut stage);
    }
    let shown = play.session().shown_with_local();
    entities.map.show(shown, &mut stage);
}

struct DrawnSpawner<'w, 's, S: Simulation, V: Show<S>> {
    commands: Commands<'w, 's>,
    drawn: Query<'w, 's, &'static mut Drawn<S, V>>,
}

impl<S: Simulation, V: Show<S>> Spawner<V::Key, (V::Pose, bool)> for DrawnSpawner<'_, '_, S, V> {
    type Entity = Entity;

    fn spawn(&mut self, key: V::Key, (pose, is_local): (V::Pose, bool)) -> Entity {
        let of = PhantomData;
        let drawn = Drawn::<S, V> {
            key,
            pose,
            is_local,
            of,
        };
        self.commands.spawn(drawn).id()
    }

    fn place(&mut self, _: V::Key, entity: &mut Entity, (pose, is_local): (V::Pose, bool)) {
        // The game may have despawned the entity; it is not spawned again.
        if let Ok(mut drawn) = self.drawn.get_mut(*entity)
            && (drawn.pose != pose || drawn.is_local != is_local)
        {
            (drawn.pose, drawn.is_local) = (pose, is_local);
        }
    }

    fn despawn(&mut self, _: V::Key, entity: Entity) {
        if let Ok(mut entity) = self.commands.get_entity(entity) {
            entity.try_despawn();
        }
    }
}
