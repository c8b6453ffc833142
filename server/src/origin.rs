//! [`Origin`]: what a match began with.

use twinstep_core::digest::{self, NanError};
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::hello::Hello;

/// See the [module](self).
pub(super) struct Origin {
    /// Its game, and the handshake that clients and journals of it must fit.
    pub(super) hello: Hello,
    /// Its first world, if that is known.
    pub(super) start: Option<Start>,
    /// After a crash: the command delay that was asked for, whatever the journal's is.
    pub(super) asked_delay: Option<u8>,
}

/// What the match began with, for clients that have it too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) tick: Tick,
    pub(super) cadence: Cadence,
    /// The low half of the simulation's digest.
    pub(super) digest: u32,
}

impl Start {
    /// `world` is one that a match begins with: nobody is in it.
    pub(super) fn of<S: Simulation>(world: &World<S>) -> Result<Start, NanError> {
        Ok(Start {
            tick: world.tick(),
            cadence: world.turn().cadence,
            digest: digest::digest(world.sim())? as u32,
        })
    }

    /// As [`of`](Start::of), for the first world of a journal: if nobody was in it, and nothing had happened.
    pub(super) fn of_empty<S: Simulation>(world: &World<S>) -> Option<Start> {
        let fresh = World::new(world.sim().clone(), world.tick());
        let is_fresh = world.digest().ok()? == fresh.digest().ok()?
            && (world.turn().number, world.turn().began) == (0, world.tick());
        is_fresh.then(|| Start::of(world).ok()).flatten()
    }
}
