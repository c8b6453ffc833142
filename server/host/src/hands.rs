//! [`Hands`]: threads for what may take long: a resolver's jobs, folds of a journal; and [`Few`] of them, for what keeps a
//! processor busy: worlds to be encoded.
//!
//! A thread is there as soon as it is asked for, so whatever hangs keeps nobody else waiting; how much one match may have
//! under way is that match's affair (`host/jobs.rs`). Who has nothing to do for a while ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::logged;

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

/// So many hands at most, that do one thing after the other. Clones share them.
#[derive(Clone)]
pub(super) struct Few {
    hands: Hands,
    most: usize,
    /// How many are at work, and what waits for one.
    state: Arc<Mutex<(usize, VecDeque<Work>)>>,
}

impl Few {
    pub(super) fn of(hands: Hands, most: usize) -> Few {
        Few {
            hands,
            most: most.max(1),
            state: Arc::default(),
        }
    }

    /// Has this done when one of them is free: here and now, if the system has no thread for any. It must not panic.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        {
            let mut state = self.lock();
            state.1.push_back(Box::new(work));
            if state.0 >= self.most {
                return;
            }
            state.0 += 1;
        }
        let few = self.clone();
        if let Err(error) = self.hands.run(move || few.work()) {
            logged::error!(%error, "no thread to encode a world");
            self.work();
        }
    }

    /// Does what waits, as one of the hands that are counted.
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

    #[test]
    fn few_hands_do_all_one_after_the_other_and_no_more_at_once() {
        let few = Few::of(Hands::new(), 2);
        let (done, all) = mpsc::channel();
        let at_once = Arc::<Mutex<(usize, usize)>>::default();
        for _ in 0..20 {
            let (done, at_once) = (done.clone(), at_once.clone());
            few.run(move || {
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
        // Nobody is counted for ever.
        few.run(move || {
            let _ = done.send(());
        });
        all.recv_timeout(PATIENCE).unwrap();
    }
}
