//! What a session tells its game: how far it is, what happened, why it is over, and where worlds differ.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::REPORT_BYTES_MAX;
use twinstep_core::world::{Presence, World};
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick, diff};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::refusal::RefusalReason;

/// Fields that a desync report names at most.
const DIFFERENCES_MAX: usize = 16;

/// Why a session is over, or a client cannot play on. It stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The server said so.
    #[error("{0}")]
    Server(CloseCode),
    /// The server sent a world that is none.
    #[error(
        "the server sent a world that cannot be read: client and server differ in the game's types"
    )]
    UnreadableWorld,
    /// The server answers, but nothing of its match comes.
    #[error(
        "the server answers, but sent no part of its match for a minute: it may be busy with others; try again later"
    )]
    NoWorld,
    /// The server came back with another match, in which commands have another delay.
    #[error("the server was started anew with another command delay: join its new match")]
    OtherMatch,
    /// The game's step panicked at what the server had stepped, and panicked again after a heal.
    #[error(
        "the game's step panicked at a confirmed frame, and again after a heal: update the game, or ask whoever runs the server which build it runs"
    )]
    StepPanicked,
    /// An input of the game is larger than its bound.
    #[error(
        "an input takes more than {} bytes: make the pad smaller",
        twinstep_core::bounds::INPUT_BYTES_MAX
    )]
    InputTooLarge,
    /// The transport is over, and the client cannot return.
    #[cfg(feature = "udp")]
    #[error("{0}")]
    Transport(twinstep_udp::CloseReason),
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The session is not in its match.
    #[error("no match is being played yet")]
    NotPlaying,
    /// The session has no such seat.
    #[error("there is no such seat in this session")]
    NoSeat,
    /// The fate of too many commands is still open.
    #[error("too many commands wait for the server: try again")]
    Busy,
    /// It is larger than its bound.
    #[error(
        "a command takes at most {} bytes",
        twinstep_core::bounds::COMMAND_BYTES_MAX
    )]
    TooLarge,
}

/// Something that a game may want to tell its player.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The session is in its match, as these players.
    Joined(Vec<PlayerId>),
    /// A command was refused by the server.
    CommandRefused {
        /// The seat that gave it.
        seat: usize,
        /// Its sequence.
        seq: u32,
        /// Why.
        why: RefusalReason,
    },
    /// The game's step is at fault: it left a NaN, differed by phase without
    /// [`withhold`](twinstep_core::Effects::withhold), gave two results for the same frame, or panicked; or a hook panicked.
    /// As text, with the tick and the fields. Of 64 confirmed ticks one is checked, in release builds too; reported at most
    /// once an `advance`.
    ///
    /// A panic ends nothing. One of a predicted step (another player's announced order, for example) costs a rebuild with
    /// less in that tick; one at a confirmed frame is healed, and closes the session only if it comes again within a minute
    /// ([`SessionEnd::StepPanicked`]). Where panics abort (`panic = "abort"`, which is all that wasm has) the process ends.
    StepFault(String),
    /// The authority differs from the server's since this tick, and waits to be healed: up to 10 s, if the last heal was
    /// lately. The picture goes on meanwhile; in lockstep it stands.
    Differs {
        /// The tick.
        at: Tick,
    },
    /// The authority differed from the server's and goes on from the server's world.
    Healed {
        /// The tick of that world.
        at: Tick,
    },
    /// Where the states differed, as text: the tick, then a line for each field with both values.
    Desync(String),
    /// The server is silent or lost, and dialled again; a path that is only silent goes on being heard. The prediction
    /// goes on as far as its bounds allow. One of the next two follows, or the session ends.
    Reconnecting,
    /// The server was only silent: it is heard again as before, and nothing was lost.
    Recovered,
    /// The server is found again, over another path.
    Reconnected {
        /// Whether the authority goes on from where it was; else from a world that the server sent.
        resumed: bool,
        /// Ticks that this client had seen confirmed and that did not happen: the server lost them with its power.
        lost_ticks: u32,
    },
    /// Whoever runs the server tells its players this: one line of plain text, at most
    /// [`NOTICE_BYTES_MAX`](twinstep_core::bounds::NOTICE_BYTES_MAX) bytes. Show it.
    Notice(String),
    /// The server heard nothing of this seat for two seconds: its player is dropped, and what it holds counts for nothing.
    ControlsLost {
        /// The seat.
        seat: usize,
    },
    /// What this seat holds counts again. After the first drop that is as soon as the server hears of it; who is dropped
    /// again and again returns at most once in five seconds.
    ControlsBack {
        /// The seat.
        seat: usize,
    },
}

/// Events that wait for the game (law *Bounded*): beyond, the oldest is dropped and counted.
pub const EVENTS_MAX: usize = 256;

/// The events that the game did not ask for yet.
#[derive(Default)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    dropped: u64,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        if self.waiting.len() == EVENTS_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    /// How many were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// How far a join has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The world is on its way.
    World {
        /// Bytes of it that have come.
        received_bytes: usize,
        /// Bytes of it in all.
        total_bytes: usize,
        /// How long the rest takes if it comes as fast as what has come; `None` in the first second.
        rest: Option<Duration>,
    },
    /// The world is here; it steps through the ticks since.
    CatchingUp {
        /// Ticks stepped so far.
        done_ticks: u32,
        /// Ticks to step in all, as far as is known.
        total_ticks: u32,
    },
}

/// Where two worlds of the same tick differ, in at most 1,000 bytes.
pub(crate) fn report<S: Simulation>(ours: &World<S>, theirs: &World<S>) -> String {
    if ours.tick() != theirs.tick() {
        return format!(
            "the worlds to compare are of {} and {}",
            ours.tick(),
            theirs.tick()
        );
    }
    let mut text = format!("tick {}: client != server\n", ours.tick());
    for difference in diff::diff(&ours.digested(), &theirs.digested(), DIFFERENCES_MAX) {
        let line = format!("{difference}\n");
        if text.len() + line.len() > REPORT_BYTES_MAX {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Which own players are in control, as the game was told.
///
/// Invariant: a seat loses its controls only after it had them, and gets them back only after it lost them.
#[derive(Default)]
pub(super) struct Controls {
    /// The own players that are in the match and not dropped.
    held: PlayerSet,
    /// Those that are dropped.
    dropped: PlayerSet,
}

impl Controls {
    /// Tells when an own player is dropped, and when it is back.
    pub(super) fn watch(
        &mut self,
        seats: &[PlayerId],
        presence: impl Fn(PlayerId) -> Presence,
        events: &mut Events,
    ) {
        for (seat, player) in seats.iter().enumerate() {
            let presence = presence(*player);
            let had = self.held.contains(*player);
            match presence {
                Presence::Dropped if had => events.push(Event::ControlsLost { seat }),
                Presence::Present if !had && self.dropped.contains(*player) => {
                    events.push(Event::ControlsBack { seat });
                }
                _ => {}
            }
            self.held.set(*player, presence == Presence::Present);
            self.dropped.set(*player, presence == Presence::Dropped);
        }
    }
}
