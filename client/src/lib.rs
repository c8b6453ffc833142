//! Twinstep's client: two copies of one simulation, and everything that makes the predicted copy feel immediate.
//!
//! [`Session`] is a state machine without clock or socket; [`Client`] puts it on a transport with a clock, for games
//! that run their own loop.
//!
//! | to | use |
//! |---|---|
//! | connect, with a clock and reconnects (the feature `udp`, on by default) | [`Client`], [`ClientStartError`], [`SessionEnd`] |
//! | set a session up | [`SessionConfig`], [`Reconcile`]; [`Guess`], [`Speculate`], [`OwnerResolver`] |
//! | play it | [`Session`], [`CommandError`], [`Event`], [`Progress`] |
//! | draw | [`Show`], [`Pose`], [`Smoothing`]; for engines with entities [`EntityMap`], [`Spawner`] |
//! | play each sound and flash once | [`CueEvent`], [`CueKind`] |
//! | show the players present; wait for a start | [`PresenceView`]; [`Lobby`] |
//! | see mispredictions, rebuilt ticks and stalls | [`SessionStats`], [`TimelineStats`] |
//!
//! [`prelude`] has the imports that most games need. [`internal`] has parts for tests, load generators and the demo's
//! replays; any release may change them.
#![cfg_attr(
    not(feature = "udp"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the docs link to items that this build leaves out"
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
mod client;
mod cues;
mod entities;
mod hooks;
mod inbox;
mod input_repeats;
mod local_actions;
mod lockstep;
mod match_status;
mod outgoing;
mod pace;
mod packets;
mod picture;
mod playout;
mod predicting;
pub mod prelude;
#[cfg(feature = "udp")]
mod rejoin;
mod replica;
mod session;
mod smooth;
mod stats;
mod tape;
mod taped;
mod timeline;
mod view;

#[cfg(feature = "udp")]
pub use client::{Client, ClientStartError};
pub use cues::{CueEvent, CueId, CueKind};
pub use entities::{EntityMap, Spawner};
pub use hooks::{Guess, OwnerResolver, Repeat, Speculate, Wait};
pub use match_status::PresenceView;
pub use picture::{
    Muzzle, NoPicture, PictureErrors, PictureStats, Poses, Scene, Show, ShowWith, Smoothing, When,
    show_with,
};
pub use session::{
    BUDGET_TICKS, CommandError, EVENTS_MAX, Event, Progress, REEL_BYTES_MAX, Session,
    SessionConfig, SessionEnd, TAPE_BYTES_MAX,
};
pub use smooth::{Angle, Placed, Pose};
pub use stats::{SessionStats, TimelineStats};
pub use timeline::{Known, Rebuild, Reconcile};

/// Parts for tests, load generators and the demo. They may change in any release.
pub mod internal {
    pub use crate::cues::{CueLedger, CueTotals};
    pub use crate::input_repeats::InputRepeats;
    pub use crate::local_actions::{LocalActions, Pending, RefusalNews};
    pub use crate::pace::{Beat, Pace, PaceConfig};
    pub use crate::picture::{Errors, Picture};
    pub use crate::smooth::Correction;
    pub use crate::stats::Misprediction;
    pub use crate::timeline::{ConfirmError, TakenBack, Timeline, Watch};
}

/// The version of the wire format, which tickets name.
pub use twinstep_protocol::packet::WIRE_VERSION;
/// The part of the protocol that games use: lobbies, player names, refusal reasons, close codes, and simulated networks
/// for tests. The rest of `twinstep-protocol` is internal.
pub use twinstep_protocol::{
    lobby::{Lobby, LobbyPlayer, StartCondition},
    names::Name,
    packet::{
        closed::CloseCode, presence::LinkQuality, refusal::CommandRefusal, request::MatchRequest,
    },
    simnet,
};
/// The tickets and transports that a joining game uses; the crate `twinstep-udp` has the rest.
#[cfg(feature = "udp")]
pub use twinstep_udp::{
    CloseReason, ConnectError, SimulatedTransport, Ticket, TicketError, Transport, TransportState,
    UdpClient,
};
