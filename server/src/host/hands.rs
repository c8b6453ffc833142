//! [`Hands`]: threads for what may take long: a resolver's jobs, folds of a journal.
//!
//! A thread is there as soon as it is asked for, so whatever hangs keeps nobody else waiting; how much one match may have
//! under way is that match's affair (`host/jobs.rs`). Who has nothing to do for a while ends.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

/// Without work for so long, a thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

/// Threads that do what they are given. Clones share them.
#[derive(Clone)]
pub(super) struct Hands {
    give: Sender<Work>,
    take: Receiver<Work>,
}

impl Hands {
    pub(super) fn new() -> Hands {
        // Without room: only a thread that waits takes anything.
        let (give, take) = bounded(0);
        Hands { give, take }
    }

    /// Has this done at once, on a thread of its own. It must not panic.
    ///
    /// # Errors
    /// The system has no thread left: nothing is done.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let work = match self.give.try_send(Box::new(work)) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => work,
        };
        let take = self.take.clone();
        let thread = std::thread::Builder::new().name("match-job".to_owned());
        thread.spawn(move || {
            work();
            while let Ok(work) = take.recv_timeout(IDLE_MAX) {
                work();
            }
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread::ThreadId;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Finding H11: a fold of the journal waited for ever behind jobs that hang.
    #[test]
    fn whatever_hangs_keeps_nobody_waiting() {
        let hands = Hands::new();
        let (release, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        for _ in 0..40 {
            let wait = wait.clone();
            let hangs = move || drop(wait.lock().map(|wait| wait.recv()));
            hands.run(hangs).unwrap();
        }
        let (done, is_done) = mpsc::channel();
        hands.run(move || done.send(()).unwrap()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        drop(release);
    }

    #[test]
    fn a_thread_that_is_free_is_used_again() {
        let hands = Hands::new();
        let work = || {
            let (done, is_done) = mpsc::channel::<ThreadId>();
            let id = || std::thread::current().id();
            hands.run(move || done.send(id()).unwrap()).unwrap();
            is_done.recv_timeout(PATIENCE).unwrap()
        };
        let first = work();
        let again = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            work() == first
        });
        assert!(again);
    }
}
