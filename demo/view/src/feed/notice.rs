//! Messages for the player: reasons why it cannot play, and events besides the cues.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use powderkeg_game::{Game, GameShow, Refusal};
use twinstep_client::{Event, MatchRequest, Progress, Session};
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::packet::refusal::CommandRefusal;

/// Server silences longer than this are shown.
const SILENCE: Duration = Duration::from_millis(1_500);

/// The reason why the player cannot play right now, as a line across the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The match was paused by the player with this name, if the name is known.
    Paused(Option<String>),
    Connecting,
    Loading {
        received_bytes: usize,
        total_bytes: usize,
        rest: Option<Duration>,
    },
    /// The world has arrived, and is stepped through the ticks since then.
    CatchingUp {
        done_ticks: u32,
        total_ticks: u32,
    },
    /// The match is shown, and the seat is being taken.
    Joining,
    /// The connection is lost, and the client is reconnecting.
    Returning,
    Silent(Duration),
    /// The authority differed from the server's world, which is being transferred.
    Healing,
    Damaged(String),
}

impl Notice {
    /// Returns the reason why the player cannot play in this session's match, if any. `silent` is the server's silence.
    pub(super) fn of(session: &Session<Game, GameShow>, silent: Duration) -> Option<Notice> {
        let Some(world) = session.prediction() else {
            return Some(match session.progress() {
                Some(Progress::World {
                    received_bytes,
                    total_bytes,
                    rest,
                }) => Notice::Loading {
                    received_bytes,
                    total_bytes,
                    rest,
                },
                _ => Notice::Connecting,
            });
        };
        if session.is_returning() {
            return Some(Notice::Returning);
        }
        if let Some(Progress::CatchingUp {
            done_ticks,
            total_ticks,
        }) = session.progress()
        {
            return Some(Notice::CatchingUp {
                done_ticks,
                total_ticks,
            });
        }
        if silent > SILENCE {
            return Some(Notice::Silent(silent));
        }
        if session.desynced_since().is_some() {
            return Some(Notice::Healing);
        }
        let cadence = world.turn().cadence;
        if cadence.paused {
            let name = |by| session.presence().name(by).map(str::to_owned);
            return Some(Notice::Paused(cadence.paused_by.and_then(name)));
        }
        let is_in = |player: &PlayerId| world.sim().players.get(player).is_some();
        (!session.seats().iter().all(is_in)).then_some(Notice::Joining)
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Connecting => write!(f, "connecting ..."),
            Notice::Loading {
                received_bytes,
                total_bytes,
                rest,
            } => {
                write!(f, "loading the match: {received_bytes} of {total_bytes} B")?;
                match rest {
                    Some(rest) => write!(f, ", {:.0} s more", rest.as_secs_f32().ceil()),
                    None => Ok(()),
                }
            }
            Notice::CatchingUp {
                done_ticks,
                total_ticks,
            } => write!(f, "catching up: {done_ticks} of {total_ticks} ticks"),
            Notice::Joining => write!(f, "joining the match ..."),
            Notice::Returning => write!(f, "connection lost: reconnecting ..."),
            Notice::Silent(time) => {
                write!(
                    f,
                    "no packet from the server for {:.1} s",
                    time.as_secs_f32()
                )
            }
            Notice::Paused(None) => write!(f, "paused"),
            Notice::Paused(Some(name)) => write!(f, "paused by {name}"),
            Notice::Healing => write!(f, "out of sync: loading the server's world"),
            Notice::Damaged(why) => write!(f, "the replay ends here: {why}"),
        }
    }
}

/// Names without a seat at this screen. They are reported once, when the seats are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surplus {
    names: usize,
}

impl Surplus {
    #[must_use]
    pub fn of(names: usize) -> Surplus {
        Surplus { names }
    }

    #[must_use]
    pub fn noticed(&mut self, seats: usize) -> Option<String> {
        if seats == 0 {
            return None;
        }
        let names = std::mem::take(&mut self.names);
        let is_surplus = names > seats;
        is_surplus.then(|| {
            let rest = names - seats;
            let seats = if seats == 1 {
                "1 seat".to_owned()
            } else {
                format!("{seats} seats")
            };
            format!("--name: {names} names for {seats} of the ticket; the last {rest} are unused")
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub tick: Tick,
    pub words: String,
}

pub(super) fn words(event: &Event) -> Option<Cow<'_, str>> {
    if let Event::Notice(words) = event {
        return Some(words.as_str().into());
    }
    Some(Cow::Borrowed(match event {
        Event::Request { request, .. } => match request {
            MatchRequest::Pause => "the match is paused",
            MatchRequest::Resume => "the match continues",
            MatchRequest::Tick(_) => "the speed of the match has changed",
            _ => return None,
        },
        Event::RequestRefused { why, .. } => match why {
            CommandRefusal::Referee(number) => Refusal::words(*number)?,
            _ => "the request was refused",
        },
        Event::CommandRefused { why, .. } => match why {
            CommandRefusal::Referee(number) => Refusal::words(*number)?,
            CommandRefusal::Bounds => "refused: too many orders at once",
            _ => "the order was refused",
        },
        Event::Healed { .. } => "in sync with the server again",
        Event::Reconnecting => "connection lost",
        Event::Recovered => "connection restored",
        Event::Reconnected { .. } => "reconnected",
        Event::ControlsLost { .. } => "your inputs do not reach the server",
        Event::ControlsBack { .. } => "in control again",
        _ => return None,
    }))
}
