//! Slow work of a match on other threads: a resolver's jobs, folds of the journal, the encoding of worlds, saved games.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use twinstep_core::{Simulation, Tick};
use twinstep_protocol::replay::ReplayError;

use super::{Ends, Runner};
use crate::jobs::JobError;
use crate::journal_read::StoredJournal;
use crate::logged;
use crate::save_file::write_match_save;
use twinstep_server::Folded;
use twinstep_server::JobId;
use twinstep_server::Saving;
use twinstep_server::SessionId;
use twinstep_server::WorldEncoding;
use twinstep_server::incident::{Incident, Trouble};

impl<S: Simulation> Ends<S> {
    pub(super) fn timed<O: 'static>(
        &self,
        work: Box<dyn FnOnce() -> O + Send>,
    ) -> Box<dyn FnOnce() -> O + Send> {
        let (clock, observer) = (self.clock, self.observer.clone());
        Box::new(move || {
            let began = clock.now();
            let outcome = work();
            observer.resolver_took(clock.now().saturating_sub(began));
            outcome
        })
    }
}

impl<S: Simulation> Runner<S> {
    pub(super) fn take(&mut self, job: JobId, outcome: Result<S::Outcome, JobError>) {
        self.jobs.retire(self.ends.clock.now(), job);
        if let Err(error) = &outcome {
            let (trouble, message) = match error {
                JobError::Panicked(message) => {
                    self.ends.observer.panicked();
                    (Trouble::Job, message)
                }
                JobError::Unstarted(message) => (Trouble::JobUnstarted, message),
            };
            let tick = self.match_.world().tick();
            self.match_
                .note_incident(Incident::new(tick, trouble, message));
        }
        self.match_.complete(job, outcome.ok());
    }

    pub(super) fn give_up_jobs(&mut self, now: Duration) {
        while let Some(job) = self.jobs.give_up_late(now) {
            let tick = self.match_.world().tick();
            let message = format!("job {}", job.0);
            self.match_
                .note_incident(Incident::new(tick, Trouble::JobHangs, &message));
            self.match_.complete(job, None);
        }
    }

    pub(super) fn encode(&mut self, world: WorldEncoding) {
        let done = self.encoded.0.clone();
        self.ends.encoders.run(move || {
            let _ = done.send(world.run());
        });
    }

    pub(super) fn write_save(&mut self, saving: Saving) {
        let (id, done) = (self.id.0, self.saved.0.clone());
        let Some(folder) = self.ends.saves.clone() else {
            return self.match_.hand_saved(false);
        };
        let seat = saving.by.map(|player| player.0);
        let started = self.ends.pool.run(move || {
            let save = saving.run();
            let written = save.and_then(|save| {
                write_match_save(&folder, id, &save).map_err(|error| error.to_string())
            });
            match &written {
                Ok(path) => {
                    logged::info!("match" = id, seat, path = %path.display(), "match saved")
                }
                Err(error) => logged::error!("match" = id, seat, %error, "cannot save the match; the answer to the request says so"),
            }
            let _ = done.send(written.is_ok());
        });
        if let Err(error) = started {
            logged::error!("match" = id, %error, "cannot start a thread to save the match; check the thread limit (TasksMax)");
            self.match_.hand_saved(false);
        }
    }

    /// Folds the journal to a tick at which a client differs, on another thread because that takes a while. Reads only
    /// the part of the file that follows the last worlds before that tick.
    pub(super) fn fold(&mut self, peer: SessionId, tick: Tick) {
        let Some(journal) = self.journal.as_ref().filter(|_| !self.folding) else {
            return;
        };
        self.folding = true;
        let path = journal.path().to_owned();
        let (rules, _) = self.match_.origin();
        let index = self.match_.last_worlds();
        let done = self.folds.0.clone();
        let started = self.ends.pool.run(move || {
            let fold = AssertUnwindSafe(|| {
                let stored = StoredJournal::open(&path).map_err(|_| ReplayError::NoWorld)?;
                Folded::compute::<S>(stored, &rules, index, tick)
            });
            let folded = catch_unwind(fold).unwrap_or(Err(ReplayError::NoWorld.into()));
            let _ = done.send((peer, tick, folded));
        });
        if let Err(error) = started {
            logged::error!("match" = self.id.0, %error, "cannot start a thread to look for the cause of a desync; check the thread limit (TasksMax)");
            self.folding = false;
        }
    }
}
