//! A journal folded to one tick: the world that its frames lead to.
//!
//! The journal reaches farther back than the worlds in memory, and was written before anybody saw a tick.

use std::sync::Arc;

use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::journal::JournalSource;
use twinstep_protocol::replay::{Index, Replay, ReplayError};

/// World records that a fold begins before its tick, so that a world that was written wrong is found out too.
const WORLDS_BACK: usize = 2;
/// Ticks that are folded at most: of a match whose worlds are too large for its journal, none may stand near.
const FOLDED_MAX: u32 = 36_000;

/// The world of a tick, as the frames of a journal lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The world's next tick.
    pub tick: Tick,
    /// Its digest.
    pub digest: u64,
    /// The world, encoded.
    pub world: Arc<[u8]>,
}

/// Why a journal does not say what the world of a tick was.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfolded {
    /// It does not reach so far, its own digests differ on the way, or it cannot be read.
    #[error(transparent)]
    Journal(#[from] ReplayError),
    /// Its frames lead to another world each time: the step is not a function of state, rules and frame.
    #[error("the frames up to {reached} lead to another world {when}")]
    Impure {
        /// How far both ways were played.
        reached: Tick,
        /// What made the difference.
        when: &'static str,
    },
    /// The world is larger than what is sent of one.
    #[error("the world of {0} is too large to be sent")]
    TooLarge(Tick),
}

/// A world is taken from its own bytes each time that so many ticks have passed, to see whether they are all of it.
const RELOAD_TICKS: u32 = 16;

impl Folded {
    /// Folds a journal to `tick`, three times: twice the same way, and once through the world's bytes. For what these
    /// say differently, nobody's memory is to blame. Costs up to 60 s of match time in steps: not for a match's own
    /// thread. Of the journal it reads only what follows the world of `index` that it begins with.
    ///
    /// # Errors
    /// The journal has no world near, or does not reach so far, its own digests differ on the way, or its frames lead somewhere else each
    /// time.
    pub fn of<S: Simulation>(
        journal: impl JournalSource + Send,
        rules: &S::Rules,
        index: Index,
        tick: Tick,
    ) -> Result<Folded, Unfolded> {
        let after = index.worlds.partition_point(|place| place.tick <= tick);
        let from = index
            .worlds
            .get(after.saturating_sub(1 + WORLDS_BACK))
            .cloned();
        let from = from.filter(|from| tick.0.saturating_sub(from.tick.0) <= FOLDED_MAX);
        let from = from.ok_or(ReplayError::NoWorld)?;
        let mut replay = Replay::<S>::open_at(journal, rules, index, &from)?;
        let told = fold(&mut replay, from.tick, tick, u32::MAX);
        let world = replay.world();
        let (reached, digest) = (world.tick(), world.digest().unwrap_or_default());
        let mut bytes = Vec::new();
        let encoded = codec::append(world, &mut bytes);
        for (reload_ticks, when) in [
            (u32::MAX, "each time that they are stepped"),
            (
                RELOAD_TICKS,
                "when it is taken from its own bytes on the way",
            ),
        ] {
            let again = fold(&mut replay, from.tick, tick, reload_ticks);
            let world = replay.world();
            if again.is_ok() != told.is_ok()
                || (world.tick(), world.digest().unwrap_or_default()) != (reached, digest)
            {
                let reached = reached.min(world.tick());
                return Err(Unfolded::Impure { reached, when });
            }
        }
        told?;
        encoded.map_err(|_| Unfolded::TooLarge(reached))?;
        Ok(Folded {
            tick: reached,
            digest,
            world: bytes.into(),
        })
    }
}

/// Plays a journal to `tick`, from a world well before it.
fn fold<S: Simulation>(
    replay: &mut Replay<'_, S>,
    from: Tick,
    tick: Tick,
    reload_ticks: u32,
) -> Result<(), ReplayError> {
    replay.rewind(from)?;
    while replay.world().tick() < tick && replay.step()? {
        if (replay.world().tick() - from).is_multiple_of(reload_ticks) {
            replay.reload()?;
        }
    }
    Ok(())
}
