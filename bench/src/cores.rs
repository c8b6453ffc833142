//! A core for the server that is measured and another one for who plays on it, where the system lets us choose.
//!
//! Invariant: the two are the same ones as long as the process lives. Whoever is pinned may use one core only, so what the
//! system says after that is not what this process was given.

use std::sync::OnceLock;

/// A core of this machine that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core(usize);

/// The core of the server, and that of the players; `None` where there are not two, or the system has no such wish.
pub(crate) fn two() -> Option<(Core, Core)> {
    static TWO: OnceLock<Option<(Core, Core)>> = OnceLock::new();
    *TWO.get_or_init(|| {
        let mut mine = system::allowed().into_iter();
        Some((Core(mine.next()?), Core(mine.next()?)))
    })
}

/// This thread, and whatever it starts from now on, runs on that core alone. Whether the system obeys.
pub(crate) fn pin(core: Core) -> bool {
    system::pin(core.0)
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let cores = 0..CpuSet::MAX_CPU;
        cores.filter(|core| set.is_set(*core)).collect()
    }

    pub(super) fn pin(core: usize) -> bool {
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(None, &set).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin(_: usize) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "a thread that may be pinned without a word to the others"
    )]
    fn a_pinned_thread_may_use_its_core_alone_and_still_knows_both() {
        let Some((first, second)) = two() else {
            return;
        };
        assert_ne!(first, second);
        std::thread::spawn(move || {
            assert!(pin(second));
            assert_eq!(system::allowed(), [second.0]);
            let again = two();
            assert_eq!(
                again,
                Some((first, second)),
                "the next server gets the same"
            );
        })
        .join()
        .expect("it has its core");
    }
}
