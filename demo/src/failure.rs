//! The errors of a command: a message that says what to do, and an exit code.

use std::path::PathBuf;

use powderkeg_view::say::Unsaid;
use powderkeg_view::terminal::TerminalError;
use twinstep_client::{ClientStartError, SessionEnd};
use twinstep_host::{HostError, JournalFileError, MatchEnded};
use twinstep_ops::operator::SettingError;
use twinstep_ops::{AdminError, ExportError};
use twinstep_protocol::journal::JournalError;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::ReplayError;
use twinstep_server::ResumeError;
use twinstep_udp::{LineageFileError, TicketError, TicketKeyError};

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A flag's value is not valid.
    #[error("--{flag}: {reason}")]
    Flag {
        /// The flag's name.
        flag: &'static str,
        /// The expected value.
        reason: String,
    },
    /// An environment variable's value is not valid.
    #[error("the environment's {name}: {reason}")]
    Environment {
        /// The variable's name.
        name: &'static str,
        /// The expected value.
        reason: String,
    },
    /// A key file cannot be used.
    #[error("{}{}", .0, key_hint(.0))]
    Key(#[from] TicketKeyError),
    /// The file next to a key file that records out-of-date tickets cannot be used.
    #[error("{0}")]
    Lineages(#[from] LineageFileError),
    /// A ticket cannot be used.
    #[error("{0}")]
    Ticket(#[from] TicketError),
    /// A server cannot start.
    #[error("{}{}", .0, host_hint(.0))]
    Host(#[from] HostError),
    /// A server's settings are not valid.
    #[error("{}{}", .0, setting_hint(.0))]
    Setting(#[from] SettingError),
    /// The admin port of a server did not answer, or refused.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A journal cannot be used.
    #[error("{}{}", .0, journal_hint(.0))]
    Journal(#[from] JournalFileError),
    /// A folder cannot be used for journals.
    #[error(
        "cannot use {path} as a folder for journals: {source}; choose a folder that is readable and writable"
    )]
    JournalFolder {
        /// The folder's path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A folder cannot be used for invites.
    #[error(
        "cannot use {path} as a folder for invites: {source}; choose a writable folder with --invites"
    )]
    Invites {
        /// The folder's path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A journal cannot be read.
    #[error(
        "cannot read the journal {path}: {source}; expected a file that `serve --journal`, `host --journal` or F9 while \
         playing has written"
    )]
    Unreadable {
        /// The journal's path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A new file cannot be made.
    #[error("cannot make {path}: {source}; choose a new name in a writable folder")]
    NewFile {
        /// The file's path.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A journal was not exported.
    #[error("{path}: {source}")]
    Export {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        source: ExportError,
    },
    /// A journal cannot be played here.
    #[error("{path}: {source}{}", replay_hint(source, *enemies))]
    Replay {
        /// The journal's path.
        path: PathBuf,
        /// The cause.
        source: ReplayError,
        /// The number of enemies, if it was played as an arena; `None` for a campaign.
        enemies: Option<u16>,
    },
    /// A client cannot start.
    #[error("{0}")]
    Client(#[from] ClientStartError),
    /// The terminal cannot be used.
    #[error("{0}")]
    Terminal(#[from] TerminalError),
    /// The pictures cannot be made.
    #[error("no pictures: {0}")]
    Shots(#[from] powderkeg_view::window::ShotsError),
    /// The session ended, and the player did not ask for it.
    #[error("{0}")]
    Ended(#[from] SessionEnd),
    /// The server plays by other rules.
    #[error("{ended}\n({})", arena_hint(*enemies))]
    Rules {
        /// The end of the session.
        ended: SessionEnd,
        /// The number of enemies, if it was played as an arena; `None` for a campaign.
        enemies: Option<u16>,
    },
    /// The server's match ended while it was measured.
    #[error("the match ended early: {0}; see the log on standard error")]
    Match(#[from] MatchEnded),
    /// The match of a server stopped because of a fault.
    #[error(
        "the match was stopped by a fault: see the log and the incident file; if it has a journal, `serve --journal` \
         resumes it"
    )]
    Died,
    /// Standard output cannot be written.
    #[error("{0}")]
    Unsaid(#[from] Unsaid),
    /// A call to the operating system failed.
    #[error("{doing}: {source}")]
    System {
        /// The action that failed.
        doing: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// Wrong rules are most often the campaign instead of an arena, or another number of enemies.
fn arena_hint(enemies: Option<u16>) -> String {
    let here = match enemies {
        None => "the campaign".to_owned(),
        Some(enemies) => format!("an arena with {enemies} enemies"),
    };
    format!("tried with {here}; for an arena, give its number of enemies with --enemies")
}

fn host_hint(error: &HostError) -> String {
    match error {
        HostError::Journal(error) => journal_hint(error),
        _ => String::new(),
    }
}

fn setting_hint(error: &SettingError) -> String {
    match error {
        SettingError::Secret { source, .. } => key_hint(source).to_owned(),
        SettingError::Host(error) => host_hint(error),
        SettingError::Journal(error) => journal_hint(error),
        SettingError::Missing {
            name: "key-file", ..
        } => KEY_HINT.to_owned(),
        _ => String::new(),
    }
}

fn journal_hint(error: &JournalFileError) -> String {
    match error {
        JournalFileError::Resume {
            path,
            source: ResumeError::Replay(ReplayError::Journal(_)),
        }
        | JournalFileError::Damaged {
            path,
            source: JournalError::Corrupt { .. },
        } => format!(
            "\n(`powderkeg journal check {}` shows what is lost; `powderkeg journal repair` cuts it off)",
            path.display()
        ),
        JournalFileError::Cut { .. } => "\n(serve --new-match begins a new one)".to_owned(),
        _ => String::new(),
    }
}

const KEY_HINT: &str = "\n(`powderkeg key FILE` makes one)";

fn key_hint(error: &TicketKeyError) -> &'static str {
    match error {
        TicketKeyError::Exists { .. } => "",
        TicketKeyError::Unwritable { .. } => "\n(choose an existing folder that is writable)",
        _ => KEY_HINT,
    }
}

fn replay_hint(error: &ReplayError, enemies: Option<u16>) -> String {
    match error {
        ReplayError::Mismatch {
            code: CloseCode::WrongRules,
            ..
        } => format!("\n({})", arena_hint(enemies)),
        ReplayError::Journal(JournalError::NotAJournal | JournalError::Torn { offset: 0 }) => {
            "\n(`serve --journal`, `host --journal` and F9 while playing write journals)".to_owned()
        }
        _ => String::new(),
    }
}

impl Failure {
    /// Returns 2 for errors that the caller can fix before anything runs, otherwise 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Ended(_)
            | Failure::Rules { .. }
            | Failure::Match(_)
            | Failure::Died
            | Failure::Admin(AdminError::Ask { .. })
            | Failure::Terminal(TerminalError::Io(_))
            | Failure::Unsaid(_)
            | Failure::System { .. } => 1,
            _ => 2,
        }
    }
}
