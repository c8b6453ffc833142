//! [`WorldEncoding`]: a world to be encoded on any thread. The match decides how the bytes are used, and what happens
//! if it never gets them ([`crate::snapshots`]). [`Saving`]: a save to be encoded on any thread, for the host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick, codec};
use twinstep_protocol::packet::hello::WorldId;
use twinstep_protocol::save::SaveWriteError;

use crate::incident::panic_message;

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

/// A world to be encoded by [`run`](WorldEncoding::run), on any thread.
pub struct WorldEncoding(Box<dyn FnOnce() -> EncodedWorld + Send>);

/// The result of a [`WorldEncoding`], for [`Match::hand_world`](crate::Match::hand_world).
#[derive(Clone, Debug)]
pub struct EncodedWorld {
    pub(crate) tick: Tick,
    /// `Ok(None)` if the world is too large; `Err` if its `Serialize` panicked, with the panic's message.
    pub(crate) world: Result<Option<Snapshot>, String>,
}

impl WorldEncoding {
    /// `bytes` is the expected size, used only to allocate the buffer.
    pub(crate) fn new<S: Simulation>(world: World<S>, bytes: usize) -> WorldEncoding {
        WorldEncoding(Box::new(move || {
            let tick = world.tick();
            // The closure owns the world, so its `Drop`, perhaps an author's code, also runs inside `catch_unwind`.
            let encode = move || {
                let mut out = Vec::with_capacity(bytes + bytes / 16);
                codec::append(&world, &mut out).ok()?;
                Some(Snapshot::new(tick, out.into()))
            };
            let world = catch_unwind(AssertUnwindSafe(encode));
            EncodedWorld {
                tick,
                world: world.map_err(|panic| panic_message(&*panic).to_owned()),
            }
        }))
    }

    /// Encodes the world. Costs a pass over it: about 4 ms for each megabyte.
    #[must_use]
    pub fn run(self) -> EncodedWorld {
        self.0()
    }
}

impl std::fmt::Debug for WorldEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorldEncoding")
    }
}

/// A save requested by a player or the host, to be encoded by [`run`](Saving::run) on any thread.
pub struct Saving {
    /// The player that requested the save; `None` for the host.
    pub by: Option<PlayerId>,
    encode: Box<dyn FnOnce() -> Result<Vec<u8>, SaveWriteError> + Send>,
}

impl Saving {
    pub(crate) fn new(
        by: Option<PlayerId>,
        encode: impl FnOnce() -> Result<Vec<u8>, SaveWriteError> + Send + 'static,
    ) -> Saving {
        let encode = Box::new(encode);
        Saving { by, encode }
    }

    /// Encodes the save: the bytes for [`Match::load`](crate::Match::load). Costs a pass over the world: about 4 ms for
    /// each megabyte.
    ///
    /// # Errors
    /// If the world exceeds 8 MB or its label 256 bytes, or its `Serialize` panicked.
    pub fn run(self) -> Result<Vec<u8>, String> {
        match catch_unwind(AssertUnwindSafe(self.encode)) {
            Ok(save) => save.map_err(|error| error.to_string()),
            Err(panic) => Err(panic_message(&*panic).to_owned()),
        }
    }
}

impl std::fmt::Debug for Saving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Saving for {:?}", self.by)
    }
}
