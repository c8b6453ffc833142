//! [`JournalOut`]: what a match writes down of itself, if it keeps a journal.
//!
//! Law **Journal first**: records go to the outbox, before the packets that tell of them.

use twinstep_core::Simulation;
use twinstep_core::frame::FrameData;
use twinstep_core::journal::{WriteError, WrittenBy};
use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::{Index, Recorder};
use twinstep_core::world::World;

use crate::config::MatchConfig;
use crate::outbox::{Item, Outbox};

/// See the [module](self).
pub(super) struct JournalOut<S: Simulation>(Option<Recorder<S>>);

impl<S: Simulation> JournalOut<S> {
    /// No journal.
    pub(super) fn none() -> Self {
        JournalOut(None)
    }

    /// A new one.
    ///
    /// # Errors
    /// Names too long for its head.
    pub(super) fn start(
        hello: &Hello,
        config: &MatchConfig,
        world: &World<S>,
        out: &mut Outbox<S::Outcome>,
    ) -> Result<Self, WriteError> {
        let start = out.bytes.len();
        let recorder = Recorder::start(
            WrittenBy::Server,
            hello,
            config.unix_time,
            config.command_delay,
            world,
            &mut out.bytes,
        )?;
        out.push(Item::Journal(start..out.bytes.len()));
        Ok(JournalOut(Some(recorder)))
    }

    /// One that goes on.
    ///
    /// # Errors
    /// Names too long for its head.
    pub(super) fn resume(
        index: &Index,
        hello: &Hello,
        config: &MatchConfig,
        world: &World<S>,
        out: &mut Outbox<S::Outcome>,
    ) -> Result<Self, WriteError> {
        let start = out.bytes.len();
        let recorder = Recorder::resume(index, hello, config.unix_time, world, &mut out.bytes)?;
        out.push(Item::Journal(start..out.bytes.len()));
        Ok(JournalOut(Some(recorder)))
    }

    /// Whether a journal is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// A frame was stepped: it is written with its turn.
    pub(super) fn frame(&mut self, frame: &FrameData<S>) {
        if let Some(recorder) = &mut self.0 {
            recorder.frame(frame);
        }
    }

    /// Whether a digest is written with the turn that is full now.
    pub(super) fn wants_digest(&self, world: &World<S>) -> bool {
        self.0
            .as_ref()
            .is_some_and(|recorder| recorder.wants_digest(world))
    }

    /// Writes a turn that is full, with the digest of `world` if one is wanted and there is one; whether a world should have been written with it and was too large.
    pub(super) fn turn(
        &mut self,
        world: &World<S>,
        digest: Option<u64>,
        out: &mut Outbox<S::Outcome>,
    ) -> bool {
        let Some(recorder) = &mut self.0 else {
            return false;
        };
        let start = out.bytes.len();
        let skipped = recorder.worlds_skipped();
        recorder
            .turn(world, digest, &mut out.bytes)
            .expect("a turn within its bounds");
        out.push(Item::Journal(start..out.bytes.len()));
        recorder.worlds_skipped() != skipped
    }

    /// Writes another record, if it can be written.
    pub(super) fn write(
        &mut self,
        out: &mut Outbox<S::Outcome>,
        write: impl FnOnce(&mut Recorder<S>, &mut Vec<u8>) -> Result<(), WriteError>,
    ) {
        let Some(recorder) = &mut self.0 else {
            return;
        };
        let start = out.bytes.len();
        match write(recorder, &mut out.bytes) {
            Ok(()) => out.push(Item::Journal(start..out.bytes.len())),
            Err(_) => out.bytes.truncate(start),
        }
    }
}
