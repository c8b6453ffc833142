//! [`Encoding`]: a world that is to become bytes, on whatever thread. What for, and what if it never does, is the match's
//! affair (`game/encoding.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick, codec};

use crate::incident::panic_message;

/// A world that is to be encoded: for [`run`](Encoding::run), on whatever thread.
pub struct Encoding(Box<dyn FnOnce() -> Encoded + Send>);

/// What became of an [`Encoding`]: for [`Match::hand_world`](crate::Match::hand_world).
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(crate) tick: Tick,
    /// `None`: it is too large. What the panic said, if its `Serialize` panicked.
    pub(crate) bytes: Result<Option<Arc<[u8]>>, String>,
}

impl Encoding {
    /// `bytes` is how many there are, about.
    pub(crate) fn new<S: Simulation>(world: World<S>, bytes: usize) -> Encoding {
        Encoding(Box::new(move || {
            let tick = world.tick();
            // What drops the world may be an author's code, too.
            let encode = move || {
                let mut out = Vec::with_capacity(bytes + bytes / 16);
                codec::append(&world, &mut out).ok()?;
                Some(out.into())
            };
            let bytes = catch_unwind(AssertUnwindSafe(encode));
            Encoded {
                tick,
                bytes: bytes.map_err(|panic| panic_message(&*panic).to_owned()),
            }
        }))
    }

    /// Encodes it. Costs a pass over the world: a millisecond or two for each megabyte.
    #[must_use]
    pub fn run(self) -> Encoded {
        self.0()
    }
}

impl std::fmt::Debug for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoding")
    }
}
