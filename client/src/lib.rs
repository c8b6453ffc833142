//! Twinstep's client: two copies of one simulation, and all that makes the second one feel immediate.
//!
//! [`Session`] is a state machine without clock or socket; [`Client`] puts it on a
//! transport with a clock, for games that run their own loop.
//!
//! | module | what is in it |
//! |---|---|
//! | [`prelude`] | what the client of a game imports |
//! | [`client`] | the feature `udp`, on by default: transport, clock, reconnects |
//! | [`session`] | handshake, packets, the match being played |
//! | [`timeline`] | authority and prediction, and the one comparison that ties them |
//! | [`pace`], [`input_repeats`] | which tick to sample when; which inputs a packet repeats |
//! | [`hooks`] | what a game may tell its client: guesses and speculation |
//! | [`cues`] | each sound and flash exactly once, confirmed or cancelled |
//! | [`picture`], [`smooth`] | poses, interpolation, corrections, muzzles |
//! | [`entities`] | what appears, moves and vanishes in an engine |
//! | [`match_status`] | who else is there: names and links |
//! | [`stats`] | what was guessed wrong, simulated again, waited for |
#![cfg_attr(
    not(feature = "udp"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "what is left out is named too"
    )
)]

#[cfg(feature = "udp")]
mod background;
#[cfg_attr(
    not(feature = "udp"),
    expect(dead_code, reason = "only a client with a clock measures steps")
)]
mod budget;
#[cfg(feature = "udp")]
pub mod client;
mod contact;
pub mod cues;
pub mod entities;
pub mod hooks;
mod inbox;
pub mod input_repeats;
mod loading;
pub mod local_actions;
mod lockstep;
pub mod match_status;
mod outgoing;
pub mod pace;
mod packets;
pub mod picture;
mod playing;
mod playout;
pub mod prelude;
#[cfg(feature = "udp")]
mod rejoin;
mod returning;
pub mod session;
pub mod smooth;
pub mod stats;
mod tape;
pub mod timeline;
mod view;

#[cfg(feature = "udp")]
pub use client::Client;
pub use hooks::{Guess, OwnerResolver, Speculate};
pub use picture::{Hidden, Poses, Show};
pub use session::{Closed, Event, Progress, Session, SessionConfig};
pub use timeline::{Rebuild, Reconcile};
/// The part of the protocol that games use: player names, reasons of refusals and ended sessions, simulated networks for
/// tests. The rest of `twinstep-protocol` is internal.
pub use twinstep_protocol::{
    company::{LinkQuality, Name},
    packet::{closed::CloseCode, refusal::RefusalReason},
    simnet,
};
/// What a game that joins meets of tickets and of the way to its server; the crate `twinstep-udp` has the rest.
#[cfg(feature = "udp")]
pub use twinstep_udp::{
    CloseReason, ConnectError, SimulatedTransport, Ticket, TicketError, Transport, TransportState,
    UdpClient,
};
