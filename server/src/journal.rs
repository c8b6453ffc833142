//! [`JournalOut`]: the journal that a match writes, if it keeps one.
//!
//! Law **Journal first**: records go to the outbox before the packets that depend on them.

use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::journal::{WriteError, WrittenBy};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::{Index, Place, Recorder};

use crate::config::MatchConfig;
use crate::outbox::Outbox;

pub(super) struct JournalOut<S: Simulation> {
    recorder: Option<Recorder<S>>,
    /// The number of consecutive worlds that came too late although the journal waited for them.
    missed: u8,
    /// The journal does not wait for this many of the next worlds.
    unwaited: u8,
}

/// After this many late worlds in a row, [`UNWAITED`] worlds are encoded on the match's own thread.
const MISSED_MAX: u8 = 3;
/// The number of worlds encoded on the match's own thread in that case, which is one minute of worlds.
const UNWAITED: u8 = 6;

pub(super) enum WorldDue {
    No,
    Written(usize),
    TooLarge,
    /// The world may still be written before the next frame, by [`late_world`](JournalOut::late_world).
    Late,
}

impl<S: Simulation> JournalOut<S> {
    pub(super) fn none() -> Self {
        JournalOut {
            recorder: None,
            missed: 0,
            unwaited: 0,
        }
    }

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

    pub(super) fn resume(
        index: &Index,
        hello: &Hello,
        now_unix_s: u64,
        world: &World<S>,
        out: &mut Outbox<S::Outcome>,
    ) -> Result<Self, WriteError> {
        let start = out.bytes.len();
        let recorder = Recorder::resume(index, hello, now_unix_s, world, &mut out.bytes)?;
        out.journal(start);
        Ok(JournalOut {
            recorder: Some(recorder),
            missed: 0,
            unwaited: 0,
        })
    }

    pub(super) fn last_worlds(&self) -> Vec<Place> {
        self.recorder
            .as_ref()
            .map_or_else(Vec::new, Recorder::last_worlds)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.recorder.is_some()
    }

    pub(super) fn frame(&mut self, frame: &FrameData<S>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.frame(frame);
        }
    }

    pub(super) fn wants_digest(&self, world: &World<S>) -> bool {
        self.recorder
            .as_ref()
            .is_some_and(|recorder| recorder.wants_digest(world))
    }

    /// Writes a full turn, the digest of `world` (if a digest is due and given), and the world (if a world is due). The
    /// world may follow later if `may_wait`.
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
            // Counts as missed until `late_world` resets it.
            self.missed += 1;
            WorldDue::Late
        } else {
            if self.missed == MISSED_MAX {
                (self.missed, self.unwaited) = (0, UNWAITED);
            }
            self.unwaited = self.unwaited.saturating_sub(1);
            if recorder.due_world(world, &mut out.bytes) {
                let written = recorder.last_world();
                WorldDue::Written(written.map_or(0, |place| place.bytes))
            } else {
                WorldDue::TooLarge
            }
        };
        out.journal(start);
        due
    }

    /// Writes the encoded world of a turn recorded without it, if no frame has been stepped since.
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

    /// Writes another kind of record. A record that cannot be written is left out.
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

/// The end reason of a journal whose match another process will resume.
pub const MOVED: &str = "moved";

/// The end reason of a journal whose server ended cleanly. The match can be resumed.
pub const KEPT: &str = "kept";

/// The reason why a journal's match has ended permanently. Returns `None` if the match can be resumed.
pub fn is_over(index: &Index) -> Option<&str> {
    let reason = index.ended.as_deref()?;
    (!is_resumable(reason)).then_some(reason)
}

/// Returns `true` if a match that ended for this reason can be resumed.
pub fn is_resumable(reason: &str) -> bool {
    [MOVED, KEPT].contains(&reason)
}
