//! How large the world is, as bytes: worlds that grow beyond their bound end nothing, but are told of early.
//!
//! ```text
//!  0 ──────────────── half ─────────────── WORLD_BYTES_MAX ────────────▶
//!                       an incident warns      nobody joins or is healed; no world is written or kept; the match plays on
//! ```
//!
//! Invariant: the bound is the same wherever a world goes (journals, joiners, spectators, evidence), because whoever
//! reads one makes room for no more.

use twinstep_core::bounds::WORLD_BYTES_MAX;

use super::*;

/// The world is weighed each time that so much match time has passed.
const WEIGH_EVERY: Duration = Duration::from_secs(10);

/// What was told of the world's size.
#[derive(Default)]
pub(super) struct Weight {
    /// When it is looked at next, in the match's time.
    due: Duration,
    warned: bool,
    overflowed: bool,
}

impl<S: Simulation> Match<S> {
    /// Looks at the world's size from time to time.
    pub(super) fn weigh(&mut self) {
        if self.now < self.weight.due {
            return;
        }
        self.weight.due = self.now + WEIGH_EVERY;
        self.note_weight(codec::size(&self.world).unwrap_or(usize::MAX));
    }

    /// The world has so many bytes: tells of it once when it is large, and once when it is too large.
    fn note_weight(&mut self, bytes: usize) {
        self.stats.world_bytes = bytes;
        let (weight, tick) = (&mut self.weight, self.world.tick());
        let news = match bytes {
            ..=WORLD_BYTES_MAX if bytes <= WORLD_BYTES_MAX / 2 => None,
            ..=WORLD_BYTES_MAX => {
                (!std::mem::replace(&mut weight.warned, true)).then_some(Trouble::WorldLarge)
            }
            _ => {
                (!std::mem::replace(&mut weight.overflowed, true)).then_some(Trouble::WorldTooLarge)
            }
        };
        if let Some(trouble) = news {
            let message = format!("{bytes} bytes of at most {WORLD_BYTES_MAX}");
            self.note_incident(Incident::new(tick, trouble, &message));
        }
    }

    /// A world did not fit where it was to go.
    pub(super) fn note_too_large(&mut self) {
        self.stats.worlds_too_large += 1;
        self.note_weight(codec::size(&self.world).unwrap_or(usize::MAX));
    }

    /// The world at the beginning of its turn, and its tick, as bytes: made once for all that ask in this turn; `None`:
    /// it is too large. Law **Journal first**: the ticks since are not written yet, so nobody may see them.
    pub(super) fn snapshot(&mut self) -> Option<Snapshot> {
        let began = self.world.turn().began;
        let world = self.history.world(began).unwrap_or(&self.world);
        let tick = world.tick();
        if let Some((at, bytes)) = &self.snapshot
            && *at == tick
        {
            return Some((tick, bytes.clone()));
        }
        let mut bytes = Vec::new();
        if codec::append(world, &mut bytes).is_err() {
            self.note_too_large();
            return None;
        }
        self.note_weight(bytes.len());
        let bytes: Arc<[u8]> = bytes.into();
        self.snapshot = Some((tick, bytes.clone()));
        Some((tick, bytes))
    }
}
