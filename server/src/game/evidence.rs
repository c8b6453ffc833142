//! Who is at fault when a client's world differs: the journal knows.
//!
//! ```text
//!  client: "I differ at t" ─▶ healed at once
//!                          └▶ Output::Evidence ─▶ the host folds the journal to t, on a thread
//!                                                    │ equal to what this match held: its world is the client's evidence
//!                                                    │ not equal: this server differs, and the report says so
//!                                                    ╰ another one each time: the step is not pure; nobody's fault
//! ```
//!
//! The journal reaches farther back than the worlds in memory, and was written before anybody saw a tick.

use twinstep_core::replay::{Replay, ReplayError};

use super::*;

/// World records that a fold begins before its tick, so that a world that was written wrong is found out too.
const WORLDS_BACK: usize = 2;

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
    /// thread.
    ///
    /// # Errors
    /// The journal does not reach so far, its own digests differ on the way, or its frames lead somewhere else each
    /// time.
    pub fn of<S: Simulation>(
        journal: &[u8],
        rules: &S::Rules,
        hello: &Hello,
        tick: Tick,
    ) -> Result<Folded, Unfolded> {
        let mut replay = Replay::<S>::open(journal, rules, hello).map_err(Unfolded::Journal)?;
        let told = fold(&mut replay, tick, u32::MAX);
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
            let again = fold(&mut replay, tick, reload_ticks);
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
    tick: Tick,
    reload_ticks: u32,
) -> Result<(), ReplayError> {
    let worlds = &replay.index().worlds;
    let after = worlds.partition_point(|place| place.tick <= tick);
    let from = worlds.get(after.saturating_sub(1 + WORLDS_BACK));
    let from = from.ok_or(ReplayError::NoWorld)?.tick;
    replay.rewind(from)?;
    while replay.world().tick() < tick && replay.step()? {
        if (replay.world().tick() - from).is_multiple_of(reload_ticks) {
            replay.reload()?;
        }
    }
    Ok(())
}

impl<S: Simulation> Match<S> {
    /// The rules, and the handshake that a journal of this match must fit: for [`Folded::of`].
    #[must_use]
    pub fn origin(&self) -> (Arc<S::Rules>, Hello) {
        (self.rules.clone(), self.hello.clone())
    }

    /// What [`Output::Evidence`] asked for.
    pub fn hand_evidence(&mut self, peer: PeerId, tick: Tick, folded: Result<Folded, Unfolded>) {
        let differs = match &folded {
            Ok(folded) => {
                let held = self.digest_at(tick);
                folded.tick == tick && held.is_some_and(|held| held != folded.digest)
            }
            // What this match wrote down is not what its frames lead to.
            Err(Unfolded::Journal(ReplayError::Differs { .. })) => true,
            Err(_) => false,
        };
        let impure = matches!(folded, Err(Unfolded::Impure { .. }));
        let message = match &folded {
            Ok(_) => format!("the world of {tick} that was held is not the one of the journal"),
            Err(error) => error.to_string(),
        };
        if differs {
            self.stats.server_faults += 1;
            self.note_incident(Incident::new(tick, Trouble::ServerDiffers, &message));
        }
        if impure {
            self.stats.impure_steps += 1;
            self.note_incident(Incident::new(tick, Trouble::Impure, &message));
        }
        let Some(peer) = self.peers.iter_mut().find(|p| p.id == peer) else {
            return;
        };
        peer.server_at_fault |= differs;
        peer.step_impure |= impure;
        if let Ok(folded) = folded
            && folded.tick == tick
            && (differs || peer.evidence.is_none())
        {
            peer.evidence = Some((tick, folded.world));
        }
    }

    /// Changes the state behind the protocol's back: for tests that plant a fault in the server.
    pub fn corrupt(&mut self) -> &mut S {
        self.world.corrupt()
    }
}
