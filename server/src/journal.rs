//! [`JournalOut`]: what a match writes down of itself, if it keeps a journal.
//!
//! Law **Journal first**: records go to the outbox, before the packets that tell of them.

use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::journal::{WriteError, WrittenBy};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::{Index, Place, Recorder};

use crate::config::MatchConfig;
use crate::outbox::Outbox;

/// See the [module](self).
pub(super) struct JournalOut<S: Simulation> {
    recorder: Option<Recorder<S>>,
    /// How often in a row a world was waited for that came too late.
    missed: u8,
    /// So many worlds are not waited for.
    unwaited: u8,
}

/// After so many worlds that came too late …
const MISSED_MAX: u8 = 3;
/// … so many are written at once: a minute's.
const UNWAITED: u8 = 6;

/// Whether a world was to be written with a turn.
pub(super) enum WorldDue {
    /// No.
    No,
    /// It was written, with this many bytes.
    Written(usize),
    /// It was too large.
    TooLarge,
    /// It may be written until the next frame, by [`late_world`](JournalOut::late_world).
    Late,
}

impl<S: Simulation> JournalOut<S> {
    /// No journal.
    pub(super) fn none() -> Self {
        JournalOut {
            recorder: None,
            missed: 0,
            unwaited: 0,
        }
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
        out.journal(start);
        Ok(JournalOut {
            recorder: Some(recorder),
            missed: 0,
            unwaited: 0,
        })
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
        out.journal(start);
        Ok(JournalOut {
            recorder: Some(recorder),
            missed: 0,
            unwaited: 0,
        })
    }

    /// Where its last worlds stand.
    pub(super) fn last_worlds(&self) -> Vec<Place> {
        self.recorder
            .as_ref()
            .map_or_else(Vec::new, Recorder::last_worlds)
    }

    /// Whether a journal is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.recorder.is_some()
    }

    /// A frame was stepped: it is written with its turn.
    pub(super) fn frame(&mut self, frame: &FrameData<S>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.frame(frame);
        }
    }

    /// Whether a digest is written with the turn that is full now.
    pub(super) fn wants_digest(&self, world: &World<S>) -> bool {
        self.recorder
            .as_ref()
            .is_some_and(|recorder| recorder.wants_digest(world))
    }

    /// Writes a turn that is full, with the digest of `world` if one is wanted and there is one, and the world if it is due,
    /// which may come late if it `may_wait`.
    pub(super) fn turn(
        &mut self,
        world: &World<S>,
        digest: Option<u64>,
        may_wait: bool,
        out: &mut Outbox<S::Outcome>,
    ) -> WorldDue {
        let Some(recorder) = &mut self.recorder else {
            return WorldDue::No;
        };
        let start = out.bytes.len();
        let is_due = recorder.turn_alone(world, digest, &mut out.bytes);
        let due = if !is_due.expect("a turn within its bounds") {
            WorldDue::No
        } else if may_wait && self.unwaited == 0 && self.missed < MISSED_MAX {
            self.missed += 1;
            WorldDue::Late
        } else {
            if self.missed == MISSED_MAX {
                (self.missed, self.unwaited) = (0, UNWAITED);
            }
            self.unwaited = self.unwaited.saturating_sub(1);
            match recorder.due_world(world, &mut out.bytes) {
                Ok(true) => {
                    let written = recorder.last_world();
                    WorldDue::Written(written.map_or(0, |place| place.bytes))
                }
                Ok(false) | Err(_) => WorldDue::TooLarge,
            }
        };
        out.journal(start);
        due
    }

    /// Writes the encoded world of a turn that was written without one, if nothing was stepped since.
    pub(super) fn late_world(&mut self, tick: Tick, world: &[u8], out: &mut Outbox<S::Outcome>) {
        let mut is_written = false;
        self.write(out, |recorder, out| {
            is_written = recorder.late_world(tick, world, out)?;
            Ok(())
        });
        if is_written {
            self.missed = 0;
        }
    }

    /// Writes another record, if it can be written.
    pub(super) fn write(
        &mut self,
        out: &mut Outbox<S::Outcome>,
        write: impl FnOnce(&mut Recorder<S>, &mut Vec<u8>) -> Result<(), WriteError>,
    ) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let start = out.bytes.len();
        match write(recorder, &mut out.bytes) {
            Ok(()) if out.bytes.len() > start => out.journal(start),
            Ok(()) => {}
            Err(_) => out.bytes.truncate(start),
        }
    }
}

/// The reason in a journal whose match another process is to take up.
pub const MOVED: &str = "moved";

/// The reason in a journal whose server ended in order, and whose match is to go on.
pub const KEPT: &str = "kept";

/// Why the match of a journal is over for good, if it is.
pub fn is_over(index: &Index) -> Option<&str> {
    let reason = index.ended.as_deref()?;
    (!is_resumable(reason)).then_some(reason)
}

/// Whether a match that stopped for this reason is to go on.
pub fn is_resumable(reason: &str) -> bool {
    [MOVED, KEPT].contains(&reason)
}
