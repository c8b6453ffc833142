//! [`Background`]: the thread that rebuilds predictions, and its two channels.
//!
//! ```text
//!  the game's thread ── rebuild, to do ─────▶ [1] ──▶ worker: Rebuild::run
//!         ▲                                               │
//!         └───────────────── [1] ◀── rebuild, done ───────┘
//! ```
//!
//! Invariant: the game's thread waits neither for a rebuild nor for the worker's end. A session has one rebuild at a
//! time, so a channel with one slot is never full.

use std::io;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use twinstep_core::Simulation;

use crate::timeline::Rebuild;

/// The worker's nice value, relative to the game's thread; 19 is the maximum.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

pub(crate) struct Channels<S: Simulation> {
    todo: Sender<Box<Rebuild<S>>>,
    done: Receiver<Box<Rebuild<S>>>,
}

/// The rebuild thread and its channels. The first rebuild starts the thread.
#[derive(Default)]
pub(crate) enum Background<S: Simulation> {
    #[default]
    Unused,
    Working(Channels<S>),
    /// The thread could not be started, or ended. So `give` runs each rebuild itself, and keeps the result here.
    InPlace(Option<Box<Rebuild<S>>>),
}

impl<S: Simulation> Background<S> {
    pub(crate) fn give(&mut self, rebuild: Box<Rebuild<S>>) {
        if let Background::Unused = self {
            *self = match Channels::open() {
                Ok(channels) => Background::Working(channels),
                Err(error) => {
                    tracing::warn!(%error, "cannot start a thread for the prediction: it runs in the game's thread, and frames may stutter");
                    Background::InPlace(None)
                }
            };
        }
        let mut rebuild = match self {
            Background::Working(channels) => match channels.todo.try_send(rebuild) {
                Ok(()) => return,
                Err(refused) => refused.into_inner(),
            },
            Background::Unused | Background::InPlace(_) => rebuild,
        };
        rebuild.run();
        *self = Background::InPlace(Some(rebuild));
    }

    pub(crate) fn poll(&mut self) -> Option<Box<Rebuild<S>>> {
        match self {
            Background::Unused => None,
            Background::Working(channels) => channels.done.try_recv().ok(),
            Background::InPlace(done) => done.take(),
        }
    }
}

impl<S: Simulation> Channels<S> {
    /// The worker ends when the channels are dropped.
    fn open() -> io::Result<Self> {
        let (todo, jobs) = bounded::<Box<Rebuild<S>>>(1);
        let (results, done) = bounded(1);
        thread::Builder::new()
            .name("twinstep rebuild".to_owned())
            .spawn(move || {
                // Before the first rebuild, because a new thread inherits the game's priority.
                lower_priority();
                for mut rebuild in jobs {
                    // `run` catches the game's panics.
                    rebuild.run();
                    if results.send(rebuild).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Channels { todo, done })
    }
}

/// Lowers this thread's priority below that of the game's thread, which wakes it. Otherwise the scheduler may put both
/// on one processor, and preempt the game in the middle of a frame.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // A failure is harmless. On Linux each thread has its own nice value.
    let _ = rustix::process::nice(NICE);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::path::Path;

    use twinstep_core::testing::doc::Counter;

    use super::*;

    /// The name and nice value of one of this process's threads, as the system reports them.
    fn reported(thread: &Path) -> Option<(String, i32)> {
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        let stat = fs::read_to_string(thread.join("stat")).ok()?;
        // The name may contain any character, so fields are counted after its closing parenthesis.
        let (_, words) = stat.rsplit_once(") ")?;
        let nice = words.split(' ').nth(16)?.parse().ok()?;
        Some((name.trim().to_owned(), nice))
    }

    #[test]
    fn the_worker_lowers_its_own_priority_but_not_the_callers() {
        let own = || {
            reported(Path::new("/proc/thread-self"))
                .expect("this thread")
                .1
        };
        let before = own();
        let channels = Channels::<Counter>::open().expect("a thread");
        // Linux cuts thread names after fifteen characters.
        let is_worker = |(name, _): &(String, i32)| "twinstep rebuild".starts_with(name.as_str());
        let workers = || -> Vec<i32> {
            let all = fs::read_dir("/proc/self/task").expect("Linux tells");
            let all = all.filter_map(|thread| reported(&thread.ok()?.path()));
            all.filter(is_worker).map(|(_, nice)| nice).collect()
        };
        let wanted = (before + NICE).min(19);
        let is_nice = (0..200).any(|_| {
            thread::sleep(std::time::Duration::from_millis(10));
            let workers = workers();
            !workers.is_empty() && workers.iter().all(|nice| *nice == wanted)
        });
        assert!(is_nice, "{:?}, expected {wanted}", workers());
        assert_eq!(own(), before);
        drop(channels);
    }
}
