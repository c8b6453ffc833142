//! Folds a journal to one tick: the world that results from its frames.
//!
//! A journal covers more of the past than the worlds in memory, and each tick is written to it before any client sees
//! the tick.

use std::sync::Arc;

use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::journal::JournalSource;
use twinstep_protocol::replay::{Index, Replay, ReplayError};

/// A fold starts this many world records before the last one up to its tick, to detect a wrong record.
const WORLDS_BACK: usize = 2;
/// A fold steps at most this many ticks. Worlds that are too large for the journal leave gaps, so the nearest record
/// may be far away.
const FOLDED_MAX: u32 = 36_000;

/// The world at a tick, as it results from a journal's frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The world's next tick.
    pub tick: Tick,
    /// The world's digest.
    pub digest: u64,
    /// The world, encoded.
    pub world: Arc<[u8]>,
}

/// The reason why a journal does not yield the world at a tick.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum FoldError {
    /// The journal has no world near the tick, has a digest that differs from the replayed world, or cannot be read.
    #[error(transparent)]
    Journal(#[from] ReplayError),
    #[error(
        "replaying the journal to {reached} gave different worlds {when}: the step is not pure"
    )]
    Impure { reached: Tick, when: &'static str },
    #[error("the world of {0} is too large to be sent")]
    TooLarge(Tick),
}

/// The third run encodes and decodes its world at this interval in ticks, to detect state missing from the bytes.
const RELOAD_TICKS: u32 = 16;

impl Folded {
    /// Folds a journal to `tick` three times: twice the same way, and once through the world's bytes. If the runs
    /// differ, the cause is an impure step, not a memory fault. Costs the steps of up to 90 s of match time, or more if
    /// the journal lacks worlds, so do not call this on a match's own thread. Reads only the part of the journal after
    /// the world record at which the fold starts.
    ///
    /// # Errors
    /// If the journal has no world near `tick`, cannot be read, or differs from the replayed world; if each replay
    /// gives a different world; or if the world is too large. A journal that ends before `tick` gives its last world.
    pub fn compute<S: Simulation>(
        journal: impl JournalSource + Send,
        rules: &S::Rules,
        index: Index,
        tick: Tick,
    ) -> Result<Folded, FoldError> {
        let after = index.worlds.partition_point(|place| place.tick <= tick);
        let from = index
            .worlds
            .get(after.saturating_sub(1 + WORLDS_BACK))
            .cloned();
        let from = from.filter(|from| tick.0.saturating_sub(from.tick.0) <= FOLDED_MAX);
        let from = from.ok_or(ReplayError::NoWorld)?;
        let mut replay = Replay::<S>::open_at(journal, rules, index, &from)?;
        let folded = fold(&mut replay, from.tick, tick, u32::MAX);
        let world = replay.world();
        let (reached, digest) = (world.tick(), world.digest().unwrap_or_default());
        let mut bytes = Vec::new();
        let encoded = codec::append(world, &mut bytes);
        for (reload_ticks, when) in [
            (u32::MAX, "each time"),
            (
                RELOAD_TICKS,
                "after the world was encoded and decoded on the way",
            ),
        ] {
            let again = fold(&mut replay, from.tick, tick, reload_ticks);
            let world = replay.world();
            if again.is_ok() != folded.is_ok()
                || (world.tick(), world.digest().unwrap_or_default()) != (reached, digest)
            {
                let reached = reached.min(world.tick());
                return Err(FoldError::Impure { reached, when });
            }
        }
        folded?;
        encoded.map_err(|_| FoldError::TooLarge(reached))?;
        Ok(Folded {
            tick: reached,
            digest,
            world: bytes.into(),
        })
    }
}

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
