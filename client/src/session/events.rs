//! A session's reports to its game: progress, events, the reason for its end, and differences between worlds.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use twinstep_core::bounds::REPORT_BYTES_MAX;
use twinstep_core::world::{Presence, World};
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick, diff};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::MatchRequest;

const DIFFERENCES_MAX: usize = 16;

/// The reason why a session is over, or cannot continue. It is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum SessionEnd {
    #[error("{0}")]
    Server(CloseCode),
    #[error(
        "the server sent a world that cannot be read: client and server differ in the game's types"
    )]
    UnreadableWorld,
    /// The server sent rules that cannot be decoded, are too large, or whose digest differs from the server's.
    #[error(
        "the server sent rules that cannot be read: client and server differ in the game's types"
    )]
    UnreadableRules,
    #[error(
        "the server responds, but has sent no match data for a minute: it may be busy; try again later"
    )]
    NoWorld,
    #[error("the server restarted with a new match: join again")]
    OtherMatch,
    #[error(
        "the game's step panicked, and again after a heal: update the game, \
         or ask the server's operator which build it runs"
    )]
    StepPanicked,
    #[error(
        "this build sends inputs larger than {} bytes: report this to the game's author",
        twinstep_core::bounds::INPUT_BYTES_MAX
    )]
    InputTooLarge,
    /// The transport is closed, and the client cannot reconnect.
    #[cfg(feature = "udp")]
    #[error("{0}")]
    Transport(twinstep_udp::CloseReason),
}

/// The reason why a command or a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum CommandError {
    #[error(
        "commands and requests are accepted while the match runs, from `Event::Joined` on; a lobby takes only a request to start"
    )]
    NotPlaying,
    #[error("there is no such seat in this session")]
    NoSeat,
    #[error("too many commands are waiting for the server: try again later")]
    Busy,
    #[error("expected a tick of 1 ms to 1 s, and steps of 1 to 255 ticks")]
    OutOfRange,
    #[error(
        "command: expected at most {} bytes, got {bytes}",
        twinstep_core::bounds::COMMAND_BYTES_MAX
    )]
    TooLarge { bytes: usize },
}

/// Something that a game may want to show to its player.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Event {
    /// The session is in its match, with these players, and accepts commands.
    Joined(Vec<PlayerId>),
    /// The server refused a command.
    CommandRefused {
        seat: usize,
        seq: u32,
        why: CommandRefusal,
    },
    /// The game's step is at fault: it produced a NaN, depended on the phase without
    /// [`withhold`](twinstep_core::Effects::withhold), gave two results for the same frame, or panicked; or a hook
    /// panicked. The text names the tick and the fields. One confirmed tick in 64 (one in up to 1,024 for a large
    /// world) is checked, even in release builds, but not in lockstep; at most one fault is reported per `advance`.
    ///
    /// A panic does not end the session. If a predicted step panics (on another player's announced order, for example),
    /// the prediction is rebuilt without the suspected orders from that tick onwards. If a confirmed step panics, the
    /// world is healed; only a second panic within a minute closes the session ([`SessionEnd::StepPanicked`]). Where
    /// panics abort (`panic = "abort"`, the only mode on wasm), the process ends.
    StepFault(String),
    /// The authority has differed from the server's since this tick, and waits for a heal (up to 10 s if the last heal
    /// was recent). Until the heal the picture continues, except in lockstep and after a panic of a confirmed step.
    Differs { at: Tick },
    /// The authority differed from the server's, and continues from the server's world.
    Healed {
        /// The tick of that world.
        at: Tick,
    },
    /// The differences between the states, as text: the tick, then a line for each field; or why they are unknown.
    Desync(String),
    /// No packet arrives from the server, or the server closed the path. The client dials the server again, and still
    /// reads a path that may only be silent. The prediction continues within its limits.
    /// [`Recovered`](Event::Recovered) or [`Reconnected`](Event::Reconnected) follows, or the session ends.
    Reconnecting,
    /// The server was only silent: its packets arrive again on the same path, without loss of data.
    Recovered,
    /// The session is back in its match, over another path, and accepts commands.
    Reconnected {
        /// Whether the authority continues from where it was; if not, the server sent a world.
        resumed: bool,
        /// Ticks confirmed to this client that the server no longer has, because of a power failure, or because it
        /// loaded an earlier save.
        lost_ticks: u32,
    },
    /// The match accepted a request, such as a pause, and applies it starting with its next turn. The cadence of
    /// [`authority`](crate::Session::authority) has the resulting speed and pause. A save is written when this event
    /// arrives.
    Request {
        /// The player that asked; `None` for the match's host.
        by: Option<PlayerId>,
        request: MatchRequest,
    },
    /// The match refused a request of this session.
    RequestRefused {
        request: MatchRequest,
        /// The reason: usually the referee's; [`Bounds`](CommandRefusal::Bounds) after too many requests;
        /// [`Unavailable`](CommandRefusal::Unavailable) if the match cannot do this now.
        why: CommandRefusal,
    },
    /// A message from the server's operator to the players: one line of plain text, at most
    /// [`NOTICE_BYTES_MAX`](twinstep_core::bounds::NOTICE_BYTES_MAX) bytes. Show it.
    Notice(String),
    /// The server has not received inputs of this seat for two seconds, or 20 ticks if that is longer: the player is
    /// dropped, and its input is ignored.
    ControlsLost { seat: usize },
    /// The input of this seat counts again. After the first drop this happens as soon as the server receives an input;
    /// a player dropped repeatedly comes back at most once in five seconds.
    ControlsBack { seat: usize },
}

/// The maximum number of events waiting for the game (law *Bounded*). Beyond it the oldest is dropped and counted.
pub const EVENTS_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    dropped: u64,
    // Events of a session still catching up with its match.
    held: Vec<Event>,
    // The events since the last `advance`, for a tape.
    taped: Option<Vec<Event>>,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        if let Some(taped) = self.taped.as_mut().filter(|taped| taped.len() < EVENTS_MAX) {
            taped.push(event.clone());
        }
        if self.waiting.len() == EVENTS_MAX {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(event);
    }

    // Holds a `Joined` or `Reconnected` until the session accepts commands. A newer event replaces an older one of its
    // kind.
    pub(crate) fn hold(&mut self, mut event: Event) {
        let kind = mem::discriminant(&event);
        let older = self
            .held
            .iter()
            .position(|held| mem::discriminant(held) == kind);
        if let Some(Event::Reconnected {
            lost_ticks: before, ..
        }) = older.map(|at| self.held.remove(at))
            && let Event::Reconnected { lost_ticks, .. } = &mut event
        {
            *lost_ticks += before;
        }
        self.held.push(event);
    }

    pub(crate) fn release(&mut self) {
        for event in mem::take(&mut self.held) {
            self.push(event);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    // After the first call, events are kept for the next one.
    pub(crate) fn take_taped(&mut self) -> Vec<Event> {
        self.taped.replace(Vec::new()).unwrap_or_default()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The progress of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Progress {
    /// The world is being downloaded.
    World {
        received_bytes: usize,
        total_bytes: usize,
        /// The expected time until the download ends, at the rate so far. `None` at first, for at least a second.
        rest: Option<Duration>,
    },
    /// The world has arrived, and is stepped through the frames since.
    CatchingUp {
        done_ticks: u32,
        /// Ticks to step in total, as far as known.
        total_ticks: u32,
    },
}

/// Describes the differences between two worlds of the same tick, in at most [`REPORT_BYTES_MAX`] bytes.
pub(crate) fn report<S: Simulation>(ours: &World<S>, theirs: &World<S>) -> String {
    if ours.tick() != theirs.tick() {
        return format!(
            "cannot compare the worlds of {} and {}: their ticks differ",
            ours.tick(),
            theirs.tick()
        );
    }
    let mut text = format!("{}: client != server\n", ours.tick());
    for difference in diff::diff(&ours.digested(), &theirs.digested(), DIFFERENCES_MAX) {
        let line = format!("{difference}\n");
        if text.len() + line.len() > REPORT_BYTES_MAX {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// The presence of the local players, as last reported to the game.
///
/// Invariant: "lost" and "back" alternate for each seat, and "lost" follows only after the player was in the match.
#[derive(Default)]
pub(super) struct Controls {
    held: PlayerSet,
    dropped: PlayerSet,
}

impl Controls {
    /// Reports each local player that was dropped or came back since the last call.
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
