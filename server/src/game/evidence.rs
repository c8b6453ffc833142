//! Who is at fault when a client's world differs: the journal knows.
//!
//! ```text
//!  client: "I differ at t" ─▶ healed at once
//!                          └▶ Output::Evidence ─▶ the host folds the journal to t, on a thread
//!                                                    │ equal to what this match held: its world is the client's evidence
//!                                                    ╰ not equal: this server differs, and the report says so
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

impl Folded {
    /// Folds a journal to `tick`. Costs up to 20 s of match time in steps: not for a match's own thread.
    ///
    /// # Errors
    /// The journal does not reach so far, or its own digests differ on the way.
    pub fn of<S: Simulation>(
        journal: &[u8],
        rules: &S::Rules,
        hello: &Hello,
        tick: Tick,
    ) -> Result<Folded, ReplayError> {
        let mut replay = Replay::<S>::open(journal, rules, hello)?;
        let worlds = &replay.index().worlds;
        let after = worlds.partition_point(|place| place.tick <= tick);
        let from = worlds.get(after.saturating_sub(1 + WORLDS_BACK));
        let from = from.ok_or(ReplayError::NoWorld)?.tick;
        replay.seek(from)?;
        while replay.world().tick() < tick && replay.step()? {}
        let world = replay.world();
        let mut bytes = Vec::new();
        codec::append(world, &mut bytes).expect("a world of at most 8 MiB");
        Ok(Folded {
            tick: world.tick(),
            digest: world.digest().unwrap_or_default(),
            world: bytes.into(),
        })
    }
}

impl<S: Simulation> Match<S> {
    /// The rules, and the handshake that a journal of this match must fit: for [`Folded::of`].
    #[must_use]
    pub fn origin(&self) -> (Arc<S::Rules>, Hello) {
        (self.rules.clone(), self.hello.clone())
    }

    /// What [`Output::Evidence`] asked for.
    pub fn hand_evidence(&mut self, peer: PeerId, tick: Tick, folded: Result<Folded, ReplayError>) {
        let differs = match &folded {
            Ok(folded) => {
                let held = self.digest_at(tick);
                folded.tick == tick && held.is_some_and(|held| held != folded.digest)
            }
            // What this match wrote down is not what its frames lead to.
            Err(ReplayError::Differs { .. }) => true,
            Err(_) => false,
        };
        if differs {
            self.stats.server_faults += 1;
            let message = match &folded {
                Ok(_) => format!("the world of {tick} that was held is not the one of the journal"),
                Err(error) => error.to_string(),
            };
            self.note_incident(Incident::new(tick, Trouble::ServerDiffers, &message));
        }
        let Some(peer) = self.peers.iter_mut().find(|p| p.id == peer) else {
            return;
        };
        peer.server_at_fault |= differs;
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
