//! How the server decides whom a bomb hits: by its physics mirror, filled with the units near the blast.
//!
//! The only file of the game that looks at the server crate.

use glam::Vec2;
use twinstep_core::{Key, Tick};
use twinstep_rapier2d::{Layers, Mirror, MirrorError, Shape};
use twinstep_server::{Decision, HookContext, Resolver};

use super::map::{FieldPoint, STEPS};
use super::messages::{BLAST_RADIUS, Blast, BombHits, HITS_MAX};
use super::state::Skirmish;
use super::unit::UnitId;

/// A unit's radius, in fields.
const UNIT_RADIUS: f32 = 0.4;
const UNITS: Layers = Layers::bit(0);

/// Answers blasts. One for each match: it keeps its buffers.
#[derive(Default)]
pub struct Bombardier {
    mirror: Mirror<UnitId>,
}

impl Bombardier {
    /// Whom a blast hits at `now`: the nearest, at most [`HITS_MAX`].
    ///
    /// # Errors
    /// A place that no engine can hold: a bug of the step.
    pub fn decide(
        &mut self,
        game: &Skirmish,
        blast: &Blast,
        now: Tick,
    ) -> Result<BombHits, MirrorError<UnitId>> {
        let mut fill = self.mirror.refill();
        for (id, unit) in &game.units {
            let at = unit.trip.at(now);
            if at.distance(blast.at) <= BLAST_RADIUS + STEPS as u32 {
                let shape = Shape::Ball {
                    radius: UNIT_RADIUS,
                };
                fill.put(*id, shape, fields(at), 0.0, UNITS)?;
            }
        }
        let radius = BLAST_RADIUS as f32 / f32::from(STEPS);
        let hits = self.mirror.area(fields(blast.at), radius, UNITS)?;
        // The mirror counts in 64ths of a field, the game in 16ths.
        let mut near: Vec<_> = hits
            .iter()
            .map(|hit| (hit.distance_64ths / 4, hit.id))
            .collect();
        near.sort_unstable();
        near.truncate(HITS_MAX);
        Ok(near
            .into_iter()
            .map(|(steps, id)| (id, steps as u16))
            .collect())
    }
}

/// A place in the mirror's units; exact.
fn fields(place: FieldPoint) -> Vec2 {
    Vec2::new(f32::from(place.x), f32::from(place.y)) / f32::from(STEPS)
}

impl Resolver<Skirmish> for Bombardier {
    fn resolve(
        &mut self,
        look: &HookContext<'_, Skirmish>,
        _: Key,
        blast: &Blast,
    ) -> Decision<BombHits> {
        match self.decide(look.sim(), blast, look.tick()) {
            Ok(hits) => Decision::Now(hits),
            // Becomes "no answer", and the bomb fizzles.
            Err(error) => panic!("{error}"),
        }
    }
}
