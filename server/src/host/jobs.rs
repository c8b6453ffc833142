//! Work that a resolver handed out: a few at once on tokio's blocking pool, the rest in a short queue.
//!
//! Invariant: one match occupies at most [`AT_ONCE`] threads of the pool, however slow its jobs are, so that
//! those of other matches find theirs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::mpsc::{self, Receiver, Sender};
use twinstep_core::bounds::QUERIES_OPEN_MAX;

use crate::outbox::JobId;

/// Jobs of one match that run at the same time.
const AT_ONCE: usize = 8;

type Work<O> = Box<dyn FnOnce() -> O + Send>;

/// The jobs of one match.
pub(super) struct Jobs<O> {
    running: usize,
    waiting: VecDeque<(JobId, Work<O>)>,
    send: Sender<(JobId, Option<O>)>,
    done: Receiver<(JobId, Option<O>)>,
}

impl<O: Send + 'static> Jobs<O> {
    pub(super) fn new() -> Self {
        let (send, done) = mpsc::channel(AT_ONCE);
        Jobs {
            running: 0,
            waiting: VecDeque::new(),
            send,
            done,
        }
    }

    /// Starts a job, now or when there is room; its id comes back if there are too many.
    pub(super) fn start(&mut self, id: JobId, work: Work<O>) -> Option<JobId> {
        if self.running < AT_ONCE {
            self.run(id, work);
            return None;
        }
        if self.waiting.len() == QUERIES_OPEN_MAX {
            return Some(id);
        }
        self.waiting.push_back((id, work));
        None
    }

    /// Waits for the next job to end; `None` as its outcome: it panicked.
    pub(super) async fn finished(&mut self) -> Option<(JobId, Option<O>)> {
        let done = self.done.recv().await;
        self.running -= 1;
        if let Some((id, work)) = self.waiting.pop_front() {
            self.run(id, work);
        }
        done
    }

    fn run(&mut self, id: JobId, work: Work<O>) {
        self.running += 1;
        let send = self.send.clone();
        tokio::task::spawn_blocking(move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            if outcome.is_err() {
                tracing::error!(?id, "a resolver's job panicked: its query stays unanswered");
            }
            // If nobody listens any more, the match is over.
            let _ = send.blocking_send((id, outcome.ok()));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_jobs_all_end_and_one_that_panics_has_no_outcome() {
        let mut jobs = Jobs::new();
        for n in 0..30_u64 {
            let work: Work<u64> = Box::new(move || match n {
                7 => std::panic::resume_unwind(Box::new("planted")),
                _ => n * n,
            });
            assert_eq!(jobs.start(JobId(n), work), None);
        }
        let mut outcomes = vec![None; 30];
        for _ in 0..30 {
            let (JobId(n), outcome) = jobs.finished().await.unwrap();
            outcomes[n as usize] = outcome;
        }
        for (n, outcome) in outcomes.iter().enumerate() {
            let n = n as u64;
            assert_eq!(*outcome, (n != 7).then_some(n * n));
        }
    }

    #[tokio::test]
    async fn jobs_beyond_the_queue_come_back() {
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let mut jobs = Jobs::new();
        let most = AT_ONCE + QUERIES_OPEN_MAX;
        for n in 0..=most {
            let wait = wait.clone();
            let work: Work<()> = Box::new(move || drop(wait.lock().map(|wait| wait.recv())));
            let id = JobId(n as u64);
            assert_eq!(jobs.start(id, work), (n == most).then_some(id));
        }
        drop(release);
        for _ in 0..most {
            assert_eq!(jobs.finished().await.unwrap().1, Some(()));
        }
    }
}
