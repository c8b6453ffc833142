//! Background encodings of a match: each completes after a random time, or never.

use std::time::Duration;

use twinstep_core::{Mwc, Simulation};
use twinstep_server::{Match, WorldEncoding};

/// Worlds larger than this are encoded in the background. Nearly every game has such a world.
const OVER_BYTES: usize = 64;
/// One in this many encodings never completes.
const LOST_ONE_IN: u32 = 16;

pub(super) struct Elsewhere {
    /// A separate stream: background encodings do not change the seed's other draws.
    luck: Mwc,
    /// The maximum time of an encoding. `None` if the match encodes worlds itself.
    within: Option<Duration>,
    under_way: Vec<(Duration, WorldEncoding)>,
}

impl Elsewhere {
    pub(super) fn new(seed: u64, within: Option<Duration>) -> Elsewhere {
        Elsewhere {
            luck: Mwc::seed(seed ^ 0x656c_7365),
            within,
            under_way: Vec::new(),
        }
    }

    /// Turns background encoding on for a new or resumed match, if configured. Forgets the previous match's encodings.
    pub(super) fn serve<S: Simulation>(&mut self, match_: &mut Match<S>) {
        self.under_way.clear();
        if self.within.is_some() {
            match_.encode_aside(OVER_BYTES);
        }
    }

    pub(super) fn take(&mut self, now: Duration, world: WorldEncoding) {
        let within = self.within.expect("background encoding is on");
        let takes =
            Duration::from_micros(u64::from(self.luck.below(1 + within.as_micros() as u32)));
        if self.luck.below(LOST_ONE_IN) != 0 {
            self.under_way.push((now + takes, world));
        }
    }

    pub(super) fn hand_back<S: Simulation>(&mut self, now: Duration, match_: &mut Match<S>) {
        for (_, world) in self.under_way.extract_if(.., |(at, _)| *at <= now) {
            match_.hand_world(world.run());
        }
    }
}
