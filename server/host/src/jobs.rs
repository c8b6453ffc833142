//! [`Jobs`]: work that a match's resolver handed out. A few jobs run at a time, each on its own thread; the others wait
//! in a short queue.
//!
//! Invariant: one match occupies at most [`AT_ONCE`] threads, and up to [`HUNG_MAX`] more with jobs that were given up
//! because they did not return.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use twinstep_core::bounds::QUERIES_OPEN_MAX;

use super::thread_pool::ThreadPool;
use twinstep_server::JobId;
use twinstep_server::internal::panic_message;

pub(super) const AT_ONCE: usize = 8;
/// The maximum number of a match's threads that may be given up. After that, waiting jobs wait for the running ones.
pub(super) const HUNG_MAX: usize = 24;
/// A job that takes longer is given up. Its query, if still open, gets `None`.
const PATIENCE: Duration = Duration::from_secs(5);

type Work<O> = Box<dyn FnOnce() -> O + Send>;
pub(super) type Done<O> = (JobId, Result<O, JobError>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobError {
    Panicked(String),
    // The system refused a thread.
    Unstarted(String),
}

pub(super) struct Jobs<O> {
    running: Vec<(JobId, Duration)>,
    waiting: VecDeque<(JobId, Work<O>)>,
    hung: usize,
    send: Sender<Done<O>>,
    done: Receiver<Done<O>>,
    pool: ThreadPool,
}

impl<O: Send + 'static> Jobs<O> {
    pub(super) fn new(pool: ThreadPool) -> Self {
        let (send, done) = unbounded();
        Jobs {
            running: Vec::with_capacity(AT_ONCE),
            waiting: VecDeque::new(),
            hung: 0,
            send,
            done,
            pool,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Starts a job, now or when a thread is free. If there are too many jobs, returns the job's id instead.
    pub(super) fn start(&mut self, now: Duration, id: JobId, work: Work<O>) -> Option<JobId> {
        if self.running.len() < AT_ONCE {
            self.run(now, id, work);
            return None;
        }
        if self.waiting.len() == QUERIES_OPEN_MAX {
            return Some(id);
        }
        self.waiting.push_back((id, work));
        None
    }

    pub(super) fn finished(&self) -> Option<Done<O>> {
        self.done.try_recv().ok()
    }

    pub(super) fn retire(&mut self, now: Duration, id: JobId) {
        let before = self.running.len();
        self.running.retain(|(job, _)| *job != id);
        if self.running.len() == before {
            // The job had been given up, and returned after all.
            self.hung -= 1;
        }
        self.run_waiting(now);
    }

    /// Gives up a job that has run for too long, and returns its id. Its thread is lost until the job returns.
    pub(super) fn give_up_late(&mut self, now: Duration) -> Option<JobId> {
        if self.hung == HUNG_MAX {
            return None;
        }
        let late = |(_, since): &(JobId, Duration)| now.saturating_sub(*since) > PATIENCE;
        let at = self.running.iter().position(late)?;
        let (id, _) = self.running.swap_remove(at);
        self.hung += 1;
        self.run_waiting(now);
        Some(id)
    }

    fn run_waiting(&mut self, now: Duration) {
        if self.running.len() < AT_ONCE
            && let Some((id, work)) = self.waiting.pop_front()
        {
            self.run(now, id, work);
        }
    }

    fn run(&mut self, now: Duration, id: JobId, work: Work<O>) {
        self.running.push((id, now));
        let send = self.send.clone();
        let started = self.pool.run(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let outcome =
                outcome.map_err(|panic| JobError::Panicked(panic_message(&*panic).to_owned()));
            // Without a receiver, the match is over.
            let _ = send.send((id, outcome));
        });
        if let Err(error) = started {
            // Reported like a failed job, so that its query does not wait.
            let _ = self
                .send
                .send((id, Err(JobError::Unstarted(error.to_string()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn next<O: Send + 'static>(jobs: &Jobs<O>) -> Done<O> {
        let done = jobs.done.recv_timeout(Duration::from_secs(10));
        done.expect("a job that ends")
    }

    #[test]
    fn all_jobs_finish_and_a_panic_is_reported() {
        let mut jobs = Jobs::new(ThreadPool::new());
        for n in 0..30_u64 {
            let work: Work<u64> = Box::new(move || match n {
                7 => std::panic::resume_unwind(Box::new("planted")),
                _ => n * n,
            });
            assert_eq!(jobs.start(NOW, JobId(n), work), None);
        }
        let mut outcomes = vec![None; 30];
        for _ in 0..30 {
            let (JobId(n), outcome) = next(&jobs);
            jobs.retire(NOW, JobId(n));
            outcomes[n as usize] = Some(outcome);
        }
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let n = n as u64;
            let expected = if n == 7 {
                Err(JobError::Panicked("planted".to_owned()))
            } else {
                Ok(n * n)
            };
            assert_eq!(outcome, Some(expected));
        }
    }

    #[test]
    fn a_job_without_a_thread_is_not_reported_as_a_panic() {
        let mut jobs = Jobs::new(ThreadPool::refusing());
        jobs.start(NOW, JobId(3), Box::new(|| 9));
        let (id, outcome) = next(&jobs);
        assert_eq!(id, JobId(3));
        assert!(
            matches!(outcome, Err(JobError::Unstarted(_))),
            "{outcome:?}"
        );
    }

    #[test]
    fn jobs_beyond_the_queue_limit_are_refused() {
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let mut jobs = Jobs::new(ThreadPool::new());
        let most = AT_ONCE + QUERIES_OPEN_MAX;
        for n in 0..=most {
            let wait = wait.clone();
            let work: Work<()> = Box::new(move || drop(wait.lock().map(|wait| wait.recv())));
            let id = JobId(n as u64);
            assert_eq!(jobs.start(NOW, id, work), (n == most).then_some(id));
        }
        drop(release);
        for _ in 0..most {
            let (id, outcome) = next(&jobs);
            jobs.retire(NOW, id);
            assert_eq!(outcome, Ok(()));
        }
    }

    #[test]
    fn hung_jobs_are_given_up_and_others_take_their_place() {
        let mut jobs = Jobs::new(ThreadPool::new());
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        for n in 0..AT_ONCE as u64 {
            let wait = wait.clone();
            let work: Work<u64> = Box::new(move || {
                drop(wait.lock().map(|wait| wait.recv()));
                n
            });
            jobs.start(NOW, JobId(n), work);
        }
        jobs.start(NOW, JobId(99), Box::new(|| 99));
        assert_eq!(jobs.give_up_late(PATIENCE), None);
        let late = PATIENCE * 2;
        for _ in 0..AT_ONCE {
            assert!(jobs.give_up_late(late).is_some());
        }
        assert_eq!(next(&jobs), (JobId(99), Ok(99)));
        jobs.retire(late, JobId(99));
        assert_eq!(jobs.hung, AT_ONCE);
        drop(release);
        for _ in 0..AT_ONCE {
            let (id, _) = next(&jobs);
            jobs.retire(late, id);
        }
        assert_eq!((jobs.hung, jobs.running.len()), (0, 0));
    }
}
