//! The errors of a command: a message with a remedy, and an exit code.

use std::path::PathBuf;

use powderkeg_view::say::Unsaid;
use powderkeg_view::terminal::TerminalError;
use twinstep_client::{ClientStartError, SessionEnd};
use twinstep_host::{HostError, JournalFileError, MatchEnded, SaveFileError};
use twinstep_ops::operator::SettingError;
use twinstep_ops::{AdminError, ExportError, InspectError};
use twinstep_protocol::journal::JournalError;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::ReplayError;
use twinstep_server::config::ConfigError;
use twinstep_server::{LoadError, MatchStartError, ResumeError};
use twinstep_udp::{LineageFileError, TicketError, TicketKeyError};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum Failure {
    #[error("--{flag}: {reason}")]
    Flag { flag: &'static str, reason: String },
    #[error("environment variable {name}: {reason}")]
    Environment { name: &'static str, reason: String },
    #[error("{}{}", .0, key_hint(.0))]
    Key(#[from] TicketKeyError),
    #[error("{0}")]
    Lineages(#[from] LineageFileError),
    #[error("{0}")]
    Ticket(#[from] TicketError),
    #[error("{}{}", .0, host_hint(.0))]
    Host(#[from] HostError),
    #[error("{}{}", .0, setting_hint(.0))]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{}{}", .0, journal_hint(.0))]
    Journal(#[from] JournalFileError),
    #[error(
        "cannot use {path} as a directory for journals: {source}; choose a readable and writable directory"
    )]
    JournalFolder {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "cannot use {path} as a directory for invites: {source}; choose a writable directory with --invites"
    )]
    Invites {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "cannot read the journal {path}: {source}; expected a journal: written by `serve --journal` or `host --journal`, or with \
         F9 during play"
    )]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot create {path}: {source}; choose a new name in a writable directory")]
    NewFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {source}")]
    Export { path: PathBuf, source: ExportError },
    #[error("{path}: {source}{}", inspect_hint(source, *enemies))]
    Inspect {
        path: PathBuf,
        source: InspectError,
        enemies: Option<u16>,
    },
    #[error(
        "cannot read the tape {path}: {source}; expected a file that `join --tape` or `play --tape` has written"
    )]
    UnreadableTape {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {source}{}", replay_hint(source, *enemies))]
    Replay {
        path: PathBuf,
        source: ReplayError,
        enemies: Option<u16>,
    },
    #[error("{0}")]
    Client(#[from] ClientStartError),
    #[error("{0}")]
    Terminal(#[from] TerminalError),
    #[error("cannot take the screenshots: {0}")]
    Shots(#[from] powderkeg_view::window::ScreenshotError),
    #[error("cannot show the tour: {0}")]
    Tour(#[from] powderkeg_view::window::TourError),
    #[error("{0}")]
    Ended(#[from] SessionEnd),
    #[error("{ended}\n({})", arena_hint(*enemies))]
    Rules {
        ended: SessionEnd,
        enemies: Option<u16>,
    },
    #[error("the match ended early; see the log on standard error")]
    Match(#[from] MatchEnded),
    #[error(
        "a fault ended the match: see \"incident ended the match\" in the log, and the incident file, if one was written. \
         `serve --journal` resumes a match that hung or panicked, or whose journal could not be written; a match whose step failed is over"
    )]
    Died,
    #[error("{0}")]
    Unsaid(#[from] Unsaid),
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: std::io::Error,
    },
}

/// Rules usually differ because one side has the campaign and the other an arena, or because the numbers of enemies
/// differ.
fn arena_hint(enemies: Option<u16>) -> String {
    match enemies {
        None => {
            "tried the campaign; for an arena, give its number of enemies with --enemies".to_owned()
        }
        Some(enemies) => format!(
            "tried an arena with {enemies} enemies; leave --enemies out for the campaign, or give another number"
        ),
    }
}

fn inspect_hint(error: &InspectError, enemies: Option<u16>) -> String {
    match error {
        InspectError::Replay(source) => replay_hint(source, enemies),
        InspectError::Range { .. } | InspectError::TooLong | InspectError::TooLarge => {
            "; see --from and --to".to_owned()
        }
        InspectError::NoTick { .. } => "; see --from".to_owned(),
        _ => String::new(),
    }
}

fn host_hint(error: &HostError) -> String {
    match error {
        HostError::Journal(error) => journal_hint(error),
        HostError::Match(error) => start_hint(error),
        HostError::Save(SaveFileError::Load { source, .. }) => match source {
            LoadError::Seats { .. } => SEATS_HINT.to_owned(),
            LoadError::Start(error) => start_hint(error),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

const SEATS_HINT: &str = "; see --max-players (`host`: --players)";

// The flag that set the value, which the libraries do not know.
fn start_hint(error: &MatchStartError) -> String {
    let MatchStartError::Config(error) = error else {
        return String::new();
    };
    let flags = match error {
        ConfigError::TickMax { .. } => "--slowest-tick",
        ConfigError::Turn(_) | ConfigError::TurnBounds { .. } => "--turn",
        ConfigError::CommandDelay(_) => "--command-delay",
        ConfigError::WaitWithoutDelay => "--sealing and --command-delay",
        ConfigError::KickAfter(_) => "--sealing and --laggards",
        ConfigError::Delay(_) => "--input-delay",
        ConfigError::TwoDelays => "--input-delay and --command-delay",
        ConfigError::Players(_) => "--max-players (`host`: --players)",
        ConfigError::Spectators(_) => "--spectators and --spectator-delay",
        _ => return String::new(),
    };
    format!("; see {flags}")
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
        JournalFileError::NoWorld { .. } | JournalFileError::InUse { .. } => {
            NEW_MATCH_HINT.to_owned()
        }
        JournalFileError::Resume { source, .. } => match source {
            ResumeError::Seats { .. } => format!("{SEATS_HINT}{NEW_MATCH_HINT}"),
            ResumeError::Start(error) => format!("{}{NEW_MATCH_HINT}", start_hint(error)),
            _ => NEW_MATCH_HINT.to_owned(),
        },
        _ => String::new(),
    }
}

const NEW_MATCH_HINT: &str = "\n(`powderkeg serve --new-match` starts a new match)";
const KEY_HINT: &str = "\n(`powderkeg key FILE` creates one)";

fn key_hint(error: &TicketKeyError) -> &'static str {
    match error {
        // The key itself may be valid.
        TicketKeyError::Exists { .. } | TicketKeyError::Unreadable { .. } => "",
        TicketKeyError::Unwritable { .. } => "\n(choose an existing, writable directory)",
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
            "\n(give a journal: written by `serve --journal` or `host --journal`, or with F9 during play)".to_owned()
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
