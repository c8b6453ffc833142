//! [`ThreadPool`]: threads for work that may take long or block: a resolver's jobs, folds of a journal. [`Limited`]: at
//! most a fixed number of these threads, for work that keeps a processor busy: the encoding of worlds.
//!
//! The pool has no upper bound, so a hung job does not delay other jobs. Each match limits its own jobs
//! (`host/jobs.rs`). An idle thread ends after [`IDLE_MAX`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::logged;

const IDLE_MAX: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub(super) struct ThreadPool {
    send: Sender<Work>,
    receive: Receiver<Work>,
    #[cfg(test)]
    refuses: bool,
}

impl ThreadPool {
    pub(super) fn new() -> ThreadPool {
        // Capacity 0: a send succeeds only if an idle thread is waiting, else a new thread is started.
        let (send, receive) = bounded(0);
        ThreadPool {
            send,
            receive,
            #[cfg(test)]
            refuses: false,
        }
    }

    #[cfg(test)]
    pub(super) fn refusing() -> ThreadPool {
        ThreadPool {
            refuses: true,
            ..ThreadPool::new()
        }
    }

    /// Runs `work` immediately, on an idle or a new thread. `work` must not panic.
    ///
    /// # Errors
    /// If the operating system refuses a new thread. In that case, `work` does not run.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let work = match self.send.try_send(Box::new(work)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => work,
        };
        #[cfg(test)]
        if self.refuses {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let receive = self.receive.clone();
        let thread = std::thread::Builder::new().name("match-job".to_owned());
        thread.spawn(move || {
            work();
            while let Ok(work) = receive.recv_timeout(IDLE_MAX) {
                work();
            }
        })?;
        Ok(())
    }
}

/// At most `threads_max` threads of a pool, and a queue of work for them. Clones share both.
#[derive(Clone)]
pub(super) struct Limited {
    pool: ThreadPool,
    threads_max: usize,
    state: Arc<Mutex<(usize, VecDeque<Work>)>>,
}

impl Limited {
    pub(super) fn new(pool: ThreadPool, threads_max: usize) -> Limited {
        Limited {
            pool,
            threads_max: threads_max.max(1),
            state: Arc::default(),
        }
    }

    /// Runs `work` when a thread is free. `work` must not panic.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        {
            let mut state = self.lock();
            state.1.push_back(Box::new(work));
            if state.0 >= self.threads_max {
                return;
            }
            state.0 += 1;
        }
        let limited = self.clone();
        if let Err(error) = self.pool.run(move || limited.work()) {
            logged::error!(%error, "cannot start a thread to encode a world: the match's thread does it, and its ticks may be late; check the thread limit (TasksMax)");
            // Late is better than never, so the caller's thread does it.
            self.work();
        }
    }

    fn work(&self) {
        loop {
            let work = {
                let mut state = self.lock();
                let work = state.1.pop_front();
                state.0 -= usize::from(work.is_none());
                work
            };
            match work {
                Some(work) => work(),
                None => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, VecDeque<Work>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Finding H11: a fold of the journal waited forever behind jobs that hang.
    #[test]
    fn a_hung_job_does_not_delay_other_jobs() {
        let pool = ThreadPool::new();
        let (release, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        for _ in 0..40 {
            let wait = wait.clone();
            let hangs = move || drop(wait.lock().map(|wait| wait.recv()));
            pool.run(hangs).unwrap();
        }
        let (done, is_done) = mpsc::channel();
        pool.run(move || done.send(()).unwrap()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        drop(release);
    }

    #[test]
    fn an_idle_thread_is_reused() {
        let pool = ThreadPool::new();
        let work = || {
            let (done, is_done) = mpsc::channel::<ThreadId>();
            let id = || std::thread::current().id();
            pool.run(move || done.send(id()).unwrap()).unwrap();
            is_done.recv_timeout(PATIENCE).unwrap()
        };
        let first = work();
        let again = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            work() == first
        });
        assert!(again);
    }

    #[test]
    fn limited_threads_do_all_work_and_never_exceed_their_number() {
        let limited = Limited::new(ThreadPool::new(), 2);
        let (done, all) = mpsc::channel();
        let at_once = Arc::<Mutex<(usize, usize)>>::default();
        for _ in 0..20 {
            let (done, at_once) = (done.clone(), at_once.clone());
            limited.run(move || {
                {
                    let mut now = at_once.lock().unwrap();
                    now.0 += 1;
                    now.1 = now.1.max(now.0);
                }
                std::thread::sleep(Duration::from_millis(3));
                at_once.lock().unwrap().0 -= 1;
                let _ = done.send(());
            });
        }
        (0..20).for_each(|_| all.recv_timeout(PATIENCE).unwrap());
        assert_eq!(at_once.lock().unwrap().1, 2);
        // Threads that ran out of work are no longer counted as busy.
        limited.run(move || {
            let _ = done.send(());
        });
        all.recv_timeout(PATIENCE).unwrap();
    }
}
