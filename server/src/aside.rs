//! [`Aside`]: which worlds are encoded beside the match, and the one that is. What for: `match_/encoding.rs`.

use std::time::Duration;

use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::encoding::Encoding;

/// What is not handed back within this is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether and how worlds are encoded beside the match.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those of more bytes are.
    pub(super) over: Option<usize>,
    /// The one that is, and since when.
    under_way: Option<(Tick, Duration)>,
}

impl Aside {
    /// Whether a world of so many bytes is encoded beside the match now. One that is too large is told of at once.
    pub(super) fn takes(&self, bytes: usize, now: Duration) -> bool {
        let is_late = |(_, since)| now.saturating_sub(since) >= PATIENCE;
        let is_large = |over| bytes > over && bytes <= WORLD_BYTES_MAX;
        self.over.is_some_and(is_large) && !self.under_way.is_some_and(is_late)
    }

    /// Whether one is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Has a copy of `world` encoded, of about so many bytes.
    pub(super) fn begin<S: Simulation>(
        &mut self,
        world: &World<S>,
        bytes: usize,
        now: Duration,
    ) -> Encoding {
        self.under_way = Some((world.tick(), now));
        Encoding::new(world.clone(), bytes)
    }

    /// This one came back; whether it was waited for.
    pub(super) fn end(&mut self, tick: Tick) -> bool {
        let waits = self.under_way.is_some_and(|(at, _)| at == tick);
        if waits {
            self.under_way = None;
        }
        waits
    }
}
