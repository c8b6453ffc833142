//! Worlds that a match has encoded beside it: done some time later, or never.

use std::time::Duration;

use twinstep_core::{Mwc, Simulation};
use twinstep_server::{Encoding, Match};

/// Worlds of more bytes are encoded elsewhere: nearly all, so that also small games' worlds are.
const OVER_BYTES: usize = 64;
/// One of so many is never done.
const LOST_ONE_IN: u32 = 16;

/// See the [module](self).
pub(super) struct Elsewhere {
    /// A stream of its own: what else a seed draws stays.
    luck: Mwc,
    /// How long it takes at most; `None`: the match does it itself.
    within: Option<Duration>,
    under_way: Vec<(Duration, Encoding)>,
}

impl Elsewhere {
    pub(super) fn new(seed: u64, within: Option<Duration>) -> Elsewhere {
        Elsewhere {
            luck: Mwc::seed(seed ^ 0x656c_7365),
            within,
            under_way: Vec::new(),
        }
    }

    /// Has a match that begins, or is taken up, make use of it. What another one asked for is lost.
    pub(super) fn serve<S: Simulation>(&mut self, game: &mut Match<S>) {
        self.under_way.clear();
        if self.within.is_some() {
            game.encode_aside(OVER_BYTES);
        }
    }

    pub(super) fn take(&mut self, now: Duration, world: Encoding) {
        let within = self.within.expect("it was asked for");
        let takes =
            Duration::from_micros(u64::from(self.luck.below(1 + within.as_micros() as u32)));
        if self.luck.below(LOST_ONE_IN) != 0 {
            self.under_way.push((now + takes, world));
        }
    }

    /// Hands back what is done.
    pub(super) fn hand_back<S: Simulation>(&mut self, now: Duration, game: &mut Match<S>) {
        for (_, world) in self.under_way.extract_if(.., |(at, _)| *at <= now) {
            game.hand_world(world.run());
        }
    }
}
