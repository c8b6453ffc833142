//! [`Encoding`]: a world that is to become bytes, on whatever thread. What for, and what if it never does, is the match's
//! affair ([`crate::snapshots`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::packet::hello::WorldId;

use crate::incident::panic_message;

/// A world as bytes, with what names it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: WorldId,
    pub(crate) bytes: Arc<[u8]>,
}

impl Snapshot {
    pub(crate) fn new(tick: Tick, bytes: Arc<[u8]>) -> Snapshot {
        let id = WorldId::of(tick, &bytes);
        Snapshot { id, bytes }
    }
}

/// A world that is to be encoded: for [`run`](Encoding::run), on whatever thread.
pub struct Encoding(Box<dyn FnOnce() -> Encoded + Send>);

/// What became of an [`Encoding`]: for [`Match::hand_world`](crate::Match::hand_world).
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(crate) tick: Tick,
    /// `None`: it is too large. What the panic said, if its `Serialize` panicked.
    pub(crate) world: Result<Option<Snapshot>, String>,
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
                Some(Snapshot::new(tick, out.into()))
            };
            let world = catch_unwind(AssertUnwindSafe(encode));
            Encoded {
                tick,
                world: world.map_err(|panic| panic_message(&*panic).to_owned()),
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
