//! [`Choices`]: what the settings of every server come to, before one is made of it.
//!
//! Invariant: whoever makes a server takes this apart field by field, without `..`. So a setting that is not passed on is an
//! unused variable, which the lints forbid; and `server/tests/operated` sees each of them at work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use twinstep_udp::TicketKey;

use super::configured::Configured;
use super::error::SettingError;
use super::files::Files;
use super::standard::{self, Public};
use crate::host::{Durability, KeepJournals, Limits, OnJournalFailure, Sidecar};

/// What every server is started with.
pub(super) struct Choices {
    pub(super) listen: SocketAddr,
    /// What players dial, if it is another address.
    pub(super) public: Vec<SocketAddr>,
    pub(super) players: usize,
    pub(super) spectators: usize,
    pub(super) delay_s: u32,
    pub(super) files: Files,
    /// The newest first.
    pub(super) keys: Vec<TicketKey>,
    pub(super) journals: Option<PathBuf>,
    pub(super) new_match: bool,
    pub(super) durability: Durability,
    pub(super) on_journal_failure: OnJournalFailure,
    pub(super) keep: KeepJournals,
    pub(super) incidents: Option<PathBuf>,
    pub(super) drain_within: Duration,
    pub(super) limits: Limits,
    pub(super) admin: Option<SocketAddr>,
    pub(super) admin_socket: Option<PathBuf>,
    pub(super) take_over: Option<SocketAddr>,
    pub(super) fleet: Option<Sidecar>,
}

const MEGA: u64 = 1_000_000;

fn days(days: u32) -> Duration {
    Duration::from_secs(86_400) * days
}

impl Configured {
    /// Reads the keys, asks the fleet if it is to say what is dialled, and makes the journal's folder.
    pub(super) fn choices(&self) -> Result<Choices, SettingError> {
        let listen = self.expect("listen", |all| all.address("listen"))?;
        self.check_spectators()?;
        let files = Files::of(self)?;
        let keys = files.keys()?;
        let fleet = self.sidecar()?;
        let public = match self.get_by("public", standard::public) {
            None => Vec::new(),
            Some(Public::At(addresses)) => addresses,
            Some(Public::Auto) => vec![self.ask_fleet(fleet)?],
        };
        self.make_folders()?;
        let (admin, admin_socket) = self.get_by("admin", standard::admin).unwrap_or_default();
        Ok(Choices {
            listen,
            public,
            players: self.get("max-players").unwrap_or(1),
            spectators: self.get("spectators").unwrap_or_default(),
            delay_s: self.delay_s(),
            files,
            keys,
            journals: self.path("journal"),
            new_match: self.is_on("new-match"),
            durability: match self.text("durability") {
                Some("power") => Durability::Power,
                _ => Durability::Process,
            },
            on_journal_failure: match self.text("on-journal-failure") {
                Some("go-on") => OnJournalFailure::GoOn,
                _ => OnJournalFailure::End,
            },
            keep: KeepJournals {
                for_at_most: self.get("keep-days").map(days),
                bytes_max: self.get("keep-megabytes").map(|mega: u64| mega * MEGA),
                ..KeepJournals::default()
            },
            incidents: self.path("incidents"),
            drain_within: Duration::from_secs(self.get("drain").unwrap_or_default()),
            limits: self.limits(),
            admin,
            admin_socket,
            take_over: self.get_by("take-over", standard::here),
            fleet,
        })
    }

    fn limits(&self) -> Limits {
        let bytes = |name| self.get(name).map(|mega: u64| mega * MEGA);
        let usual = Limits::default();
        let late_ms = self.get("lateness-limit").map(Duration::from_millis);
        Limits {
            tick_lateness: late_ms.unwrap_or(usual.tick_lateness),
            memory_bytes: bytes("memory-limit"),
            disk_free_bytes: bytes("disk-limit").unwrap_or(usual.disk_free_bytes),
        }
    }
}
