//! The traits of a subject measured over sockets: [`Server`], [`Player`] and, for ours, [`Plays`].

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::game::{Lateness, Pads};
use crate::process::Failed;

/// One frame at 60 Hz, which is also a tick.
pub(crate) const FRAME: Duration = Duration::from_nanos(16_666_667);

/// The client's side of a measured game's session: packets and input in, packets out.
pub(crate) trait Plays {
    fn handle(&mut self, now: Duration, packet: &[u8]) -> Result<(), Failed>;

    fn advance(&mut self, now: Duration, pads: &mut Pads) -> Result<(), Failed>;

    /// Writes the next due packet and returns its length, or `None` if no packet is due. Call it after each
    /// [`advance`](Plays::advance) until it returns `None`.
    fn poll_transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize>;

    /// Makes [`poll_transmit`](Plays::poll_transmit) write goodbyes.
    fn leave(&mut self) {}

    fn is_playing(&self) -> bool;

    /// The number of rebuilds of the prediction, and of the ticks simulated in them.
    fn rebuilds(&self) -> (u64, u64) {
        (0, 0)
    }
}

pub(crate) trait Server {
    fn address(&self) -> SocketAddr;

    fn done(&mut self) -> Result<Done, Failed>;
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The ticks of all players. A server without matches counts its players' datagrams instead.
    pub(crate) player_ticks: u64,
    /// Datagrams both ways; 0 if the server does not count them.
    pub(crate) datagrams: u64,
    pub(crate) fills: u64,
    pub(crate) desyncs: u64,
    /// The lateness of the ticks since the last `done` call.
    pub(crate) lateness: Option<Lateness>,
}

pub(crate) trait Player {
    /// Runs one frame: reads the packets that arrived and sends inputs. `now` counts from the first dial of any player.
    fn frame(&mut self, now: Duration) -> Result<(), Failed>;

    fn is_in(&self) -> bool;
}
