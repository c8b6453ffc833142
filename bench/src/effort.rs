//! [`Effort`]: the load of a run, and the duration of each of its measurements.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) chunks: usize,
    pub(crate) state_seconds: u32,
    pub(crate) players: Vec<usize>,
    pub(crate) socket_rounds: usize,
    /// Growing numbers of players on one core, tried until it is overloaded. If empty, this measurement, idle matches
    /// and system calls are skipped.
    pub(crate) steps: Vec<usize>,
    pub(crate) warm_up: Duration,
    pub(crate) time: Duration,
    pub(crate) idle_matches: usize,
    pub(crate) world: Duration,
    pub(crate) thread_frames: u32,
    pub(crate) horde: Duration,
}

impl Effort {
    /// The effort of the report: five minutes on two cores.
    pub(crate) fn full() -> Effort {
        Effort {
            rounds: 5,
            chunks: 12,
            state_seconds: 60,
            players: vec![12, 100, 400],
            socket_rounds: 3,
            steps: vec![200, 600, 800, 1_000],
            warm_up: Duration::from_secs(2),
            time: Duration::from_secs(3),
            idle_matches: 50,
            world: Duration::from_secs(300),
            thread_frames: 300,
            horde: Duration::from_secs(10),
        }
    }

    /// The effort for a comparison before and after a change: a minute.
    pub(crate) fn quick() -> Effort {
        Effort {
            rounds: 3,
            players: vec![100],
            socket_rounds: 2,
            steps: Vec::new(),
            warm_up: Duration::from_secs(1),
            time: Duration::from_secs(2),
            ..Effort::full()
        }
    }

    /// Shows within about a minute that all sections work. The numbers have no meaning.
    pub(crate) fn short() -> Effort {
        Effort {
            rounds: 1,
            chunks: 1,
            state_seconds: 2,
            players: vec![8],
            socket_rounds: 1,
            steps: vec![12],
            time: Duration::from_secs(1),
            idle_matches: 2,
            world: Duration::from_secs(5),
            thread_frames: 60,
            horde: Duration::from_secs(1),
            ..Effort::quick()
        }
    }
}
