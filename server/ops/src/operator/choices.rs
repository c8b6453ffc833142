//! [`Choices`]: what the settings of every server come to, before one is made of it.
//!
//! Invariant: whoever makes a server takes this apart field by field, without `..`. So a setting that is not passed on is an
//! unused variable, which the lints forbid; and `server/tests/operated` sees each of them at work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use twinstep_host::internal::logged;
use twinstep_host::{Durability, HostConfig, Limits, OnJournalFailure};
use twinstep_udp::{ServerAddress, TicketKey};

use super::configured::Configured;
use super::error::SettingError;
use super::files::Files;
use super::standard::{self, Public};
use crate::{KeepJournals, OpsConfig, Sidecar};

/// The purpose of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preparing {
    /// The start itself.
    Start,
    /// A look at whether it would succeed, which leaves nothing behind.
    Check,
}

/// What every server is started with.
pub(super) struct Choices {
    pub(super) listen: SocketAddr,
    /// What players dial, if it is another address.
    pub(super) public: Vec<ServerAddress>,
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
    pub(super) fleet: Option<Sidecar>,
}

impl Choices {
    /// Sets what a host starts from.
    pub(super) fn give(&self, host: &mut HostConfig) {
        host.listen = self.listen;
        host.public.clone_from(&self.public);
        host.keys.clone_from(&self.keys);
        host.lineages_file = Some(self.files.lineages.clone());
        host.incidents.clone_from(&self.incidents);
        host.drain_within = self.drain_within;
        host.limits = self.limits.clone();
        host.heeds_stop = true;
    }

    /// What is wanted beside the host.
    pub(super) fn ops(&self) -> OpsConfig {
        let keep = self.journals.clone();
        OpsConfig {
            admin: self.admin,
            admin_socket: self.admin_socket.clone(),
            admin_token: Some(self.files.token.clone()),
            bans_file: Some(self.files.bans.clone()),
            fleet: self.fleet,
            keep: keep.map(|folder| (folder, self.keep.clone())),
        }
    }
}

/// Open files of a host beside one for each match's journal: sockets, secrets, requests of operators.
const FILES_OF_A_HOST: u64 = 64;
const MEGA: u64 = 1_000_000;

fn days(days: u32) -> Duration {
    Duration::from_secs(86_400) * days
}

/// Has the operating system allow this many open files, if it does not yet.
#[cfg(unix)]
fn take_open_files(needed: u64) -> Result<(), SettingError> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.current.unwrap_or(u64::MAX);
    if most >= needed {
        return Ok(());
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|_| SettingError::OpenFiles { needed, most })
}

#[cfg(not(unix))]
fn take_open_files(_: u64) -> Result<(), SettingError> {
    Ok(())
}

/// The value that was read; an error joins the other errors.
fn kept<T>(read: Result<T, SettingError>, errors: &mut Vec<SettingError>) -> Option<T> {
    read.map_err(|error| errors.push(error)).ok()
}

impl Configured {
    /// Reads the keys, makes the folders, and asks the fleet if it is to say what is dialled: a check asks nobody, and leaves
    /// no folder behind. Says all at once that will not do.
    pub(super) fn choices(&self, preparing: Preparing) -> Result<Choices, SettingError> {
        let mut errors = Vec::new();
        let listen = kept(
            self.expect("listen", |all| all.address("listen")),
            &mut errors,
        );
        let families = listen.map(|listen| self.check_families(listen));
        let _ = families.and_then(|check| kept(check, &mut errors));
        let _ = kept(self.check_spectators(), &mut errors);
        let files = kept(Files::of(self), &mut errors);
        let keys = files.as_ref().map(Files::keys);
        let keys = keys.and_then(|keys| kept(keys, &mut errors));
        let kept_files = files.as_ref().map(Files::check);
        let _ = kept_files.and_then(|check| kept(check, &mut errors));
        let fleet = kept(self.sidecar(), &mut errors);
        let secrets = files.as_ref().and_then(|files| files.lineages.parent());
        let secrets = secrets.filter(|folder| self.path("state").as_deref() != Some(*folder));
        errors.extend(self.prepare_folders(secrets, preparing));
        let matches = self.has("matches").then(|| self.get("matches")).flatten();
        errors.extend(take_open_files(FILES_OF_A_HOST + matches.unwrap_or(1_u64)).err());
        SettingError::of_all(errors)?;
        let all = listen.zip(files).zip(keys).zip(fleet);
        let (((listen, files), keys), fleet) = all.expect("nothing was wrong");
        if preparing == Preparing::Start && !self.strange.is_empty() {
            logged::warn!(
                variables = ?self.strange,
                "variables that begin like settings and are none are left alone; an orchestrator sets such ones"
            );
        }
        let public = match self.get_by("public", standard::public) {
            None => Vec::new(),
            Some(Public::At(addresses)) => addresses,
            Some(Public::Auto) if preparing == Preparing::Check => Vec::new(),
            Some(Public::Auto) => vec![self.ask_fleet(fleet)?.into()],
        };
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
            },
            incidents: self.path("incidents"),
            drain_within: Duration::from_secs(self.get("drain").unwrap_or_default()),
            limits: self.limits(),
            admin,
            admin_socket,
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
