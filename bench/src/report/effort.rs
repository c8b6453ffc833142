//! How much a report measures.

use std::time::Duration;

/// How much is measured.
pub(super) struct Effort {
    pub(super) is_short: bool,
    /// Rounds, and chunks of each subject in memory.
    pub(super) rounds: usize,
    pub(super) chunks: usize,
    /// Players of the comparison with renet.
    pub(super) together: &'static [usize],
    /// A core carries so many, then so many.
    pub(super) steps: &'static [usize],
    /// Until clocks have settled, and how long is measured.
    pub(super) play: (Duration, Duration),
    /// For how long a thread sleeps that does nothing else.
    pub(super) sleep: Duration,
    pub(super) idle_matches: usize,
    pub(super) silence: Duration,
    /// A Powderkeg world's virtual time.
    pub(super) world: Duration,
    /// For how many seconds a large state is looked at.
    pub(super) large: u32,
    pub(super) crowd_frames: u32,
    pub(super) crowd_rows: usize,
}

impl Effort {
    /// What the numbers of the report are made of: under ten minutes on two cores.
    pub(super) const FULL: Effort = Effort {
        is_short: false,
        rounds: 5,
        chunks: 8,
        together: &[100, 400],
        steps: &[12, 48, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000],
        play: (Duration::from_secs(2), Duration::from_secs(4)),
        sleep: Duration::from_secs(20),
        idle_matches: 50,
        silence: Duration::from_millis(4_500),
        world: Duration::from_secs(300),
        large: 60,
        crowd_frames: 300,
        crowd_rows: 6,
    };
    /// Whether it works at all, in some seconds: its numbers say nothing.
    pub(super) const SHORT: Effort = Effort {
        is_short: true,
        rounds: 1,
        chunks: 1,
        together: &[8],
        steps: &[4, 8],
        play: (Duration::from_secs(1), Duration::from_secs(1)),
        sleep: Duration::from_secs(1),
        idle_matches: 2,
        silence: Duration::from_millis(2_500),
        world: Duration::from_secs(5),
        large: 2,
        crowd_frames: 60,
        crowd_rows: 1,
    };
}
