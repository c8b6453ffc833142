//! What one server process says to another one that hands its matches over: see `host/drain.rs`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use twinstep_udp::ServerAddress;

use serde::{Deserialize, Serialize};
use twinstep_core::bounds::COMMAND_DELAY_MAX;
use twinstep_core::packet::hello::Hello;

use super::admin_client::{AdminAnswer, AdminClient};
use super::admin_error::AdminError;
use super::admin_port::AdminToken;
use super::own_files::open_alone;
use crate::config::MatchConfig;

/// A match that another process has handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Its id.
    pub id: u64,
    /// Its journal, which ends with "moved".
    pub journal: PathBuf,
    /// Its next tick.
    pub tick: u32,
    /// When it stopped, in milliseconds since the unix epoch.
    pub stopped_unix_ms: u64,
}

/// A match that another process was asked for, and does not hand over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its id.
    pub id: u64,
    /// Why, in its words.
    pub why: String,
}

/// A match that another process could hand over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReadyMatch {
    pub(super) id: u64,
    pub(super) journal: PathBuf,
}

/// What a hand-over would come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) ready: Vec<ReadyMatch>,
    pub(super) stays: Vec<Kept>,
}

/// What became of the matches of another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Those that were handed over: somebody must take them up now.
    pub moved: Vec<HandedOver>,
    /// Those that play on where they are, or ended there meanwhile.
    pub stays: Vec<Kept>,
}

/// What a server can take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taker {
    /// The version of the wire format.
    pub wire: u16,
    /// The game's name.
    pub game: String,
    /// The author's version of the simulation.
    pub version: u32,
    /// The digest of the rules.
    pub rules: u64,
    /// Seats.
    pub seats: usize,
    /// The command delays, in turns, that its policies fit; a match has one. `None`: whatever.
    #[serde(default)]
    pub delays: Option<Vec<u8>>,
    /// The only match that it takes; `None`: all of them.
    #[serde(default)]
    pub only: Option<u64>,
    /// Where it can be asked from its own machine, if players dial it elsewhere (behind NAT).
    #[serde(default)]
    pub door: Option<SocketAddr>,
}

impl Taker {
    /// A server whose clients say `hello`, and which runs its matches by `config`.
    #[must_use]
    pub fn new(hello: &Hello, config: &MatchConfig) -> Taker {
        // The delay of a match that is taken up is its journal's, with the policies of this server.
        let with = |command_delay| MatchConfig {
            command_delay,
            ..config.clone()
        };
        let delays = (0..=COMMAND_DELAY_MAX).filter(|delay| with(*delay).check().is_ok());
        Taker {
            wire: hello.wire,
            game: hello.game.clone(),
            version: hello.version,
            rules: hello.rules,
            seats: config.players_max,
            delays: Some(delays.collect()),
            only: None,
            door: None,
        }
    }

    /// A running match with this command delay.
    pub(super) fn with_delay(mut self, delay: u8) -> Taker {
        self.delays = Some(vec![delay]);
        self
    }

    /// It takes this match alone: others stay where they are.
    #[must_use]
    pub fn only(mut self, id: u64) -> Taker {
        self.only = Some(id);
        self
    }

    /// Why a match of this kind stays where it is; `None`: `other` can run it too.
    pub(super) fn refusal(&self, other: &Taker) -> Option<String> {
        let theirs = Taker {
            seats: self.seats,
            delays: self.delays.clone(),
            only: self.only,
            door: self.door,
            ..other.clone()
        };
        if theirs != *self {
            let said = |it: &Taker| {
                let Taker {
                    wire,
                    game,
                    version,
                    rules,
                    ..
                } = it;
                format!("{game:?} version {version}, rules {rules:016x}, wire {wire}")
            };
            return Some(format!(
                "it is of {}, the other server of {}; start that with the same build and rules",
                said(self),
                said(other)
            ));
        }
        if other.seats < self.seats {
            return Some(format!(
                "it has {} seats, the other server {}; allow as many players there",
                self.seats, other.seats
            ));
        }
        let (ours, theirs) = (self.delays.as_ref()?, other.delays.as_ref()?);
        let misfit = ours.iter().find(|delay| !theirs.contains(delay))?;
        Some(format!(
            "its command delay is {misfit} turns, and the other server's policies fit {theirs:?}; start that with policies \
             for such a match"
        ))
    }
}

/// Asks the process whose admin port is at `admin` to hand over its matches to a server at `to`, which must run already
/// (or be a [`Server`](super::Server) that takes over). `token` is the file that both processes have:
/// [`HostConfig::admin_token`](super::HostConfig::admin_token). The journals of these matches are opened before anything
/// is stopped, to see that they can be. Waits up to 30 s.
///
/// # Errors
/// It cannot be reached, or does not; or a journal cannot be read and written here. Then its matches play on.
pub fn take_over(
    admin: SocketAddr,
    to: &[ServerAddress],
    taker: &Taker,
    token: &Path,
) -> Result<Drained, AdminError> {
    let token = AdminToken::load_or_make(token)?;
    take_over_by(&token, admin, to, taker, can_be_opened)
}

/// As [`take_over`], by a token that is known, where `fits` looks at each journal before anything is stopped.
pub(super) fn take_over_by(
    token: &AdminToken,
    admin: SocketAddr,
    to: &[ServerAddress],
    taker: &Taker,
    fits: impl Fn(PathBuf) -> Result<(), AdminError>,
) -> Result<Drained, AdminError> {
    let client = AdminClient::with(admin, token.clone());
    let failed = |source| AdminError::Ask {
        address: admin.into(),
        source,
    };
    let to: Vec<String> = to.iter().map(ToString::to_string).collect();
    let said = serde_json::to_string(taker).map_err(|error| failed(error.into()))?;
    let answer = |what: &str| {
        let path = format!("/{what}?to={}", to.join(","));
        match client.post(&path, &said)? {
            AdminAnswer { status: 200, body } => Ok(body),
            AdminAnswer { body, .. } => Err(AdminError::Refused {
                address: admin,
                said: body.trim().to_owned(),
            }),
        }
    };
    let ready = answer("ready")?;
    let Ready { ready, stays } =
        serde_json::from_str(&ready).map_err(|error| failed(error.into()))?;
    if ready.is_empty() {
        // Nothing is stopped, nor called off again.
        let moved = Vec::new();
        return Ok(Drained { moved, stays });
    }
    for ReadyMatch { journal, .. } in ready {
        fits(journal)?;
    }
    let drained = answer("drain")?;
    serde_json::from_str(&drained).map_err(|error| failed(error.into()))
}

/// As it will be opened; the other process has the lock.
pub(super) fn can_be_opened(journal: PathBuf) -> Result<(), AdminError> {
    let opened = open_alone(&journal);
    opened.map(drop).map_err(|source| AdminError::Journal {
        path: journal,
        source,
    })
}

#[cfg(test)]
mod tests {
    use twinstep_core::testing::doc::Counter;

    use super::*;

    /// What the journal's command delay makes of the policies was found out only when the old match was over.
    #[test]
    fn a_match_whose_command_delay_does_not_fit_the_other_servers_policies_stays() {
        let (action, strategy) = (MatchConfig::action(), MatchConfig::strategy());
        let delayed = MatchConfig {
            delay_ticks: 3,
            ..action.clone()
        };
        let hello = Hello::of::<Counter>(&(), "").unwrap();
        let taker = |config: &MatchConfig| Taker::new(&hello, config);
        let refusal = |delay: u8, other: &Taker| {
            let ours = taker(&action).with_delay(delay);
            ours.refusal(other)
        };
        for (delay, config, fits) in [
            (0, &action, true),
            (2, &action, true),
            (0, &strategy, false),
            (1, &strategy, true),
            (0, &delayed, true),
            (2, &delayed, false),
        ] {
            let why = refusal(delay, &taker(config));
            assert_eq!(why.is_none(), fits, "{delay} {config:?}: {why:?}");
        }
        // One of another version says nothing of it.
        let silent = Taker {
            delays: None,
            ..taker(&strategy)
        };
        assert_eq!(refusal(0, &silent), None);
    }
}
