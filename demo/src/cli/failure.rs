//! Why nothing came of it: one message for each, with what to do, and an exit code.

use std::path::PathBuf;

use twinstep_client::client::{Ended, StartError};
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::ReplayError;
use twinstep_server::host::{HostError, JournalFileError, MatchEnded};
use twinstep_udp::{KeyError, TicketError};

use crate::terminal::TerminalError;

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A flag's value.
    #[error("--{flag}: {reason}")]
    Flag {
        /// Which flag.
        flag: &'static str,
        /// What was expected.
        reason: String,
    },
    /// A key file.
    #[error("{0}\n(`powderkeg key FILE` makes one)")]
    Key(#[from] KeyError),
    /// A ticket.
    #[error("{0}")]
    Ticket(#[from] TicketError),
    /// A server that cannot start.
    #[error("{0}")]
    Host(#[from] HostError),
    /// A journal.
    #[error("{0}")]
    Journal(#[from] JournalFileError),
    /// A folder for journals.
    #[error(
        "cannot use {path} as a folder for journals: {source}; choose one that can be read and written"
    )]
    JournalFolder {
        /// Which folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A folder for invites.
    #[error(
        "cannot use {path} as a folder for invites: {source}; choose one that can be written with --invites"
    )]
    Invites {
        /// Which folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A journal that cannot be played here.
    #[error("{path}: {source}{}", enemies_hint(source, *enemies))]
    Replay {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ReplayError,
        /// With how many enemies it was tried.
        enemies: u16,
    },
    /// A client that cannot start.
    #[error("{0}")]
    Client(#[from] StartError),
    /// The terminal.
    #[error("{0}")]
    Terminal(#[from] TerminalError),
    /// Playing ended otherwise than by the player.
    #[error("{0}")]
    Ended(#[from] Ended),
    /// The server plays by other rules.
    #[error("{0}\n(this client has {1} enemies: give the server's number with --enemies)")]
    Rules(Ended, u16),
    /// The server's match ended while it was measured.
    #[error("the match broke off: {0}; see the log on standard error")]
    Match(#[from] MatchEnded),
    /// The operating system.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

/// Other rules are most often another number of enemies.
fn enemies_hint(error: &ReplayError, enemies: u16) -> String {
    match error {
        ReplayError::Mismatch {
            code: CloseCode::WrongRules,
            ..
        } => format!(
            "\n(this program plays with {enemies} enemies: give the match's number with --enemies)"
        ),
        _ => String::new(),
    }
}

impl Failure {
    /// 2 for what the caller can put right before anything runs, else 1.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Failure::Ended(_)
            | Failure::Rules(..)
            | Failure::Match(_)
            | Failure::Terminal(TerminalError::Io(_))
            | Failure::System { .. } => 1,
            _ => 2,
        }
    }
}
