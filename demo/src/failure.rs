//! Why a command failed: a message for each reason, with what to do, and an exit code.

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
    /// A variable of the environment.
    #[error("the environment's {name}: {reason}")]
    Environment {
        /// Which one.
        name: &'static str,
        /// What was expected.
        reason: String,
    },
    /// A key file.
    #[error("{}{}", .0, key_hint(.0))]
    Key(#[from] TicketKeyError),
    /// The file beside a key file that says which tickets are out of date.
    #[error("{0}")]
    Lineages(#[from] LineageFileError),
    /// A ticket.
    #[error("{0}")]
    Ticket(#[from] TicketError),
    /// A server that cannot start.
    #[error("{}{}", .0, host_hint(.0))]
    Host(#[from] HostError),
    /// What was chosen of a server will not do.
    #[error("{}{}", .0, setting_hint(.0))]
    Setting(#[from] SettingError),
    /// The admin port of a server.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// A journal.
    #[error("{}{}", .0, journal_hint(.0))]
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
    /// A journal that cannot be read.
    #[error(
        "cannot read the journal {path}: {source}; expected a file that `serve --journal`, `host --journal` or F9 while \
         playing has written"
    )]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file that is to be made.
    #[error(
        "cannot make {path}: {source}; expected a name that no file has yet, in a folder that can be written"
    )]
    NewFile {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A journal that was not exported.
    #[error("{path}: {source}")]
    Export {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ExportError,
    },
    /// A journal that cannot be played here.
    #[error("{path}: {source}{}", replay_hint(source, *enemies))]
    Replay {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ReplayError,
        /// In an arena with how many enemies it was tried, if not as a campaign.
        enemies: Option<u16>,
    },
    /// A client that cannot start.
    #[error("{0}")]
    Client(#[from] ClientStartError),
    /// The terminal.
    #[error("{0}")]
    Terminal(#[from] TerminalError),
    /// The pictures of a match by a script.
    #[error("no pictures: {0}")]
    Shots(#[from] powderkeg_view::window::ShotsError),
    /// Playing ended otherwise than by the player.
    #[error("{0}")]
    Ended(#[from] SessionEnd),
    /// The server plays by other rules.
    #[error("{ended}\n({})", arena_hint(*enemies))]
    Rules {
        /// What the server said.
        ended: SessionEnd,
        /// In an arena with how many enemies it was tried, if not as a campaign.
        enemies: Option<u16>,
    },
    /// The server's match ended while it was measured.
    #[error("the match broke off: {0}; see the log on standard error")]
    Match(#[from] MatchEnded),
    /// The match of a server died.
    #[error(
        "the match was stopped by a fault: see the log and the incident file; if it has a journal, `serve --journal` \
         resumes it"
    )]
    Died,
    /// Standard output.
    #[error("{0}")]
    Unsaid(#[from] Unsaid),
    /// The operating system.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

/// Other rules are most often those of the campaign instead of an arena's, or another number of enemies.
fn arena_hint(enemies: Option<u16>) -> String {
    let here = match enemies {
        None => "the campaign".to_owned(),
        Some(enemies) => format!("an arena with {enemies} enemies"),
    };
    format!("tried here: {here}; an arena needs its number of enemies, by --enemies")
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
            "\n(`powderkeg journal check {}` says what is lost; `powderkeg journal repair` cuts it off)",
            path.display()
        ),
        JournalFileError::Cut { .. } => "\n(serve --new-match begins a new one)".to_owned(),
        _ => String::new(),
    }
}

/// What makes a key.
const KEY_HINT: &str = "\n(`powderkeg key FILE` makes one)";

fn key_hint(error: &TicketKeyError) -> &'static str {
    match error {
        TicketKeyError::Exists { .. } => "",
        TicketKeyError::Unwritable { .. } => "\n(choose a folder that is there and can be written)",
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
    /// 2 for what the caller can put right before anything runs, else 1.
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
