//! [`Loading`]: a world on its way, and what has come of one whose connection was lost.
//!
//! ```text
//!  welcome: a world, from byte 0 ──▶ it comes ──▶ whole: forgotten
//!                                      │ the connection is lost
//!                                      ▼
//!  hello over another one: the part ──▶ welcome: that world, from there ──▶ the rest comes
//!                                     └▶ welcome: another one, from byte 0 ──▶ the part is forgotten
//! ```
//!
//! Invariant: at most one world's bytes are held, here or in the lane, beside [`BESIDE_BYTES_MAX`].

use twinstep_protocol::packet::hello::{Basis, Holds, WorldId};

/// A part is kept as long as messages in front of the welcome are no larger than this.
const BESIDE_BYTES_MAX: usize = 64 << 10;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Loading {
    /// The world that is on its way.
    coming: Option<WorldId>,
    /// The first bytes of a world, from an earlier connection.
    part: Option<(WorldId, Vec<u8>)>,
}

impl Loading {
    /// The connection is lost; `arrived`: what has come in order of a world over it.
    pub(crate) fn interrupt(&mut self, arrived: Option<Vec<u8>>) {
        if let Some(world) = self.coming.take() {
            let arrived = arrived.filter(|bytes| !bytes.is_empty());
            self.part = arrived.map(|bytes| (world, bytes));
        }
    }

    /// The part of a world that the next hello names, if there is one.
    pub(crate) fn holds(&self) -> Option<Holds> {
        let (world, bytes) = self.part.as_ref()?;
        Some(Holds::Part {
            world: *world,
            bytes: bytes.len() as u32,
        })
    }

    /// The server's welcome: the bytes that its world goes on from, of which there are none if all of it comes. `None`: it
    /// goes on from what this client does not have.
    pub(crate) fn begin(&mut self, basis: Basis) -> Option<Vec<u8>> {
        let Basis::World { world, from } = basis else {
            return None;
        };
        let part = self.part.take().filter(|_| from > 0);
        let had = match part {
            Some((of, bytes)) => (of == world && bytes.len() == from as usize).then_some(bytes)?,
            None => (from == 0).then(Vec::new)?,
        };
        self.coming = Some(world);
        Some(had)
    }

    /// A message of this size is arriving. A large one in front of the welcome is no part of a world that goes on.
    pub(crate) fn record_arriving(&mut self, total_bytes: usize) {
        if total_bytes > BESIDE_BYTES_MAX {
            self.part = None;
        }
    }

    /// The world is here, or does not come any more.
    pub(crate) fn end(&mut self) {
        *self = Loading::default();
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::Tick;

    use super::*;

    fn world(n: u8) -> WorldId {
        WorldId::of(Tick(u32::from(n)), &[n])
    }

    /// A client that has ten bytes of world 1.
    fn interrupted() -> Loading {
        let mut loading = Loading::default();
        let (world, from) = (world(1), 0);
        assert_eq!(loading.begin(Basis::World { world, from }), Some(vec![]));
        loading.interrupt(Some(vec![7; 10]));
        loading
    }

    #[test]
    fn a_part_is_held_until_a_welcome_whatever_is_lost_before_it() {
        let mut loading = interrupted();
        let (world, bytes) = (world(1), 10);
        for _ in 0..3 {
            assert_eq!(loading.holds(), Some(Holds::Part { world, bytes }));
            // No welcome came over this one.
            loading.interrupt(None);
        }
        let from = 10;
        assert_eq!(
            loading.begin(Basis::World { world, from }),
            Some(vec![7; 10])
        );
        loading.interrupt(Some(vec![7; 15]));
        let bytes = 15;
        assert_eq!(loading.holds(), Some(Holds::Part { world, bytes }));
    }

    /// Finding P3-B1, law Hostile wire.
    #[test]
    fn a_server_goes_on_only_from_what_the_client_has() {
        for (world, from) in [(world(2), 10), (world(1), 9), (world(1), 11)] {
            assert_eq!(interrupted().begin(Basis::World { world, from }), None);
        }
        let (world, from) = (world(2), 0);
        let mut loading = interrupted();
        assert_eq!(loading.begin(Basis::World { world, from }), Some(vec![]));
        loading.interrupt(None);
        assert_eq!(loading.holds(), None, "the other world's part is forgotten");
        let from = 1;
        assert_eq!(loading.begin(Basis::World { world, from }), None);
    }

    #[test]
    fn a_large_message_in_front_of_the_welcome_costs_the_part() {
        let mut loading = interrupted();
        loading.record_arriving(BESIDE_BYTES_MAX);
        assert!(loading.holds().is_some());
        loading.record_arriving(BESIDE_BYTES_MAX + 1);
        assert_eq!(loading.holds(), None);
    }
}
