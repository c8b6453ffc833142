//! [`Settings`]: the settings of every server, and [`ManySettings`]: the settings of a server with matches on demand.
//!
//! A game's program flattens them into its own command line, next to its own flags. No secret is ever a value, only the
//! name of its file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use twinstep_core::bounds::{
    SPECTATOR_DELAY_MAX, SPECTATOR_DELAY_MIN, SPECTATORS_DELAYED_MAX, SPECTATORS_LIVE_MAX,
};
use twinstep_host::{Durability, HostConfig, Limits, OnJournalFailure, WebCertificate, WebConfig};
use twinstep_udp::{SERVERS_MAX, ServerAddress};

use super::addresses::{dialled, listened};
use super::error::SettingError;
use crate::{AdminAddress, KeepJournals, Sidecar};

const MEGA: u64 = 1_000_000;
const DAY: Duration = Duration::from_secs(86_400);
/// The largest quantity of disk or memory, in megabytes.
const MEGABYTES_MAX: u64 = 1_000_000_000;

/// The settings that every server has.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// A TOML file with any of these settings, such as max-players = 8. Variables (TWINSTEP_MAX_PLAYERS=8) override it,
    /// and flags override both
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check settings, keys, certificates, directories and the journal to resume, then exit: 0 if all are valid, else 2.
    /// Not checked: whether the --listen, --admin and --web addresses are free, the fleet's sidecar, and with --matches
    /// the journals
    #[arg(long)]
    pub check: bool,
    /// Print all settings and the source of each, as a settings file, then exit
    #[arg(long)]
    pub print_config: bool,
    /// The UDP address to listen on, such as 0.0.0.0:7777 (required)
    #[arg(long, value_name = "ADDR", value_parser = listened)]
    pub listen: Option<SocketAddr>,
    /// The addresses that players dial, separated by commas; auto: ask Agones [default: the --listen address,
    /// or loopback if that is 0.0.0.0 or ::]
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = Public::read)]
    pub public: Vec<Public>,
    /// Accept browsers too (WebTransport), on this UDP address, such as 0.0.0.0:7778; needs a build with --features web
    #[arg(long, value_name = "ADDR", value_parser = listened)]
    pub web: Option<SocketAddr>,
    /// The certificate for --web, signed by a CA, in PEM [default: self-signed, kept in the --state directory]
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Maximum number of players per match, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u64).range(1..=16))]
    pub max_players: u64,
    /// The key file for tickets (required, unless systemd passes the credential key-file)
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The previous key, whose tickets stay valid [default: KEY-FILE.old, if it exists]
    #[arg(long, value_name = "FILE")]
    pub old_key_file: Option<PathBuf>,
    /// Directory for revoked tickets, bans, saved games, the admin token and certificates for browsers [default: the key
    /// file's directory; $STATE_DIRECTORY if the key is a systemd credential]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Directory for journals. One match: the newest interrupted match there is resumed. With --matches: each match
    /// resumes its own journal
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Start a new match instead of resuming an interrupted one
    #[arg(long, requires = "journal")]
    pub new_match: bool,
    /// The failures that the journal survives. process: a crash of this process. power: also a power cut or a crash of
    /// the system; each turn waits for the disk
    #[arg(long, value_name = "WORD", value_enum, default_value = "process")]
    pub durability: DurabilityWord,
    /// The reaction to a journal that cannot be written. end: end the match. continue: continue it without a journal
    #[arg(long, value_name = "WORD", value_enum, default_value = "end")]
    pub on_journal_failure: JournalFailureWord,
    /// With --journal: remove journals of matches that ended more than this many days ago [default: never]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(..=36_500), requires = "journal")]
    pub keep_days: Option<u32>,
    /// With --journal: remove the oldest journals of ended matches beyond this many MB in total [default: no limit]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(..=MEGABYTES_MAX), requires = "journal")]
    pub keep_megabytes: Option<u64>,
    /// Directory for incident files, which report faults [default: the journal's directory; without a journal, faults are
    /// only logged]
    #[arg(long, value_name = "DIR")]
    pub incidents: Option<PathBuf>,
    /// Maximum number of spectators per match: 0 to 16, or up to 512 with --spectator-delay
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u64).range(..=SPECTATORS_DELAYED_MAX as u64))]
    pub spectators: u64,
    /// Spectator delay in seconds: 0, or 3 to 15
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = delay_s)]
    pub spectator_delay: u32,
    /// On SIGTERM, let players finish for up to this many seconds; new players are refused
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = value_parser!(u64).range(..=86_400))]
    pub drain: u64,
    /// Shed load when the p99 of tick lateness exceeds this many ms: no spectators, then no announcements
    /// (early forwarding of inputs), no new players, longer turns. Needs two or more matches with players
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = value_parser!(u64).range(1..=1_000))]
    pub lateness_limit: u64,
    /// Refuse new players above this many MB of resident memory [default: 85 % of the cgroup's or machine's memory]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=MEGABYTES_MAX))]
    pub memory_limit: Option<u64>,
    /// Refuse new players below this many free MB on the disk of the journals
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = value_parser!(u64).range(..=MEGABYTES_MAX))]
    pub disk_limit: u64,
    /// The admin port on this machine: an address such as 127.0.0.1:7700, a Unix socket such as
    /// unix:/run/game/admin.sock, or both, separated by a comma [default: none]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub admin: Vec<AdminAddress>,
    /// The token file of the admin port; created if missing [default: KEY-FILE.admin in the --state directory]
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// The fleet manager to report to: none, or agones (its sidecar on localhost, port $AGONES_SDK_HTTP_PORT or 9358)
    #[arg(long, value_name = "WORD", value_enum, default_value = "none")]
    pub fleet: FleetWord,
}

/// The settings of a server that makes matches on demand.
#[derive(Clone, Debug, Args)]
pub struct ManySettings {
    /// Run many matches, at most N at once: each starts with the first ticket that names it [default: one match]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1_000), conflicts_with = "new_match")]
    pub matches: Option<u64>,
    /// With --matches: end a match after this many seconds without players
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(1..=86_400))]
    pub deserted_after: u64,
    /// With --matches: maximum number of matches started or resumed per second; further players are told to try again
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..=1_000))]
    pub matches_per_second: u32,
}

/// An address that players dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Public {
    /// The address from the fleet manager.
    Auto,
    /// A fixed address.
    At(ServerAddress),
}

impl Public {
    fn read(text: &str) -> Result<Public, String> {
        match text {
            "auto" => Ok(Public::Auto),
            _ => dialled(text).map(Public::At),
        }
    }
}

/// The failures that a journal survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurabilityWord {
    /// A crash of this process.
    Process,
    /// Also a power cut or a crash of the system.
    Power,
}

/// The reaction to a journal that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JournalFailureWord {
    /// End the match.
    End,
    /// Continue the match without a journal.
    Continue,
}

/// Fleet managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FleetWord {
    /// No fleet.
    None,
    /// Agones.
    Agones,
}

fn delay_s(text: &str) -> Result<u32, String> {
    let (min, max) = (SPECTATOR_DELAY_MIN / 60, SPECTATOR_DELAY_MAX / 60);
    let delay_s = text.parse().ok();
    let sound = delay_s.filter(|delay_s| *delay_s == 0 || (min..=max).contains(delay_s));
    sound.ok_or_else(|| format!("expected 0, or {min} to {max} seconds"))
}

impl Settings {
    /// Checks combinations of values, which clap cannot.
    pub(super) fn check_together(&self) -> Result<(), SettingError> {
        let refused = SettingError::refused;
        let listen = self.listen.ok_or(SettingError::Missing {
            name: "listen",
            about: "the address to listen on",
        })?;
        if self.spectators > SPECTATORS_LIVE_MAX as u64 && self.spectator_delay == 0 {
            let why = format!(
                "expected at most {SPECTATORS_LIVE_MAX} without --spectator-delay, got {}",
                self.spectators
            );
            return Err(refused("spectators", &why));
        }
        for (name, is_chosen, needs, is_there) in [
            (
                "durability",
                self.durability != DurabilityWord::Process,
                "journal",
                self.journal.is_some(),
            ),
            (
                "on-journal-failure",
                self.on_journal_failure != JournalFailureWord::End,
                "journal",
                self.journal.is_some(),
            ),
            (
                "tls-cert",
                self.tls_cert.is_some(),
                "web",
                self.web.is_some(),
            ),
            (
                "tls-cert",
                self.tls_cert.is_some(),
                "tls-key",
                self.tls_key.is_some(),
            ),
            (
                "tls-key",
                self.tls_key.is_some(),
                "tls-cert",
                self.tls_cert.is_some(),
            ),
            (
                "spectator-delay",
                self.spectator_delay > 0,
                "spectators",
                self.spectators > 0,
            ),
        ] {
            if is_chosen && !is_there {
                let why = format!("it has no effect without --{needs}");
                return Err(refused(name, &why));
            }
        }
        let has_auto = self.public.contains(&Public::Auto);
        if has_auto && (self.public.len() > 1 || self.fleet == FleetWord::None) {
            let why = "auto must be the only value, and needs a fleet (--fleet agones)";
            return Err(refused("public", why));
        }
        if self.public.len() > SERVERS_MAX {
            return Err(refused(
                "public",
                &format!(
                    "expected at most {SERVERS_MAX} addresses, got {}",
                    self.public.len()
                ),
            ));
        }
        let (tcp, unix) = self.admin_addresses();
        if self.admin.len() > usize::from(tcp.is_some()) + usize::from(unix.is_some()) {
            let why = "expected one address on loopback, one Unix socket, or one of each";
            return Err(refused("admin", why));
        }
        self.check_families(listen)
    }

    /// A socket of one address family receives no datagrams of the other.
    fn check_families(&self, listen: SocketAddr) -> Result<(), SettingError> {
        let listens_v4 = listen.ip().to_canonical().is_ipv4();
        let is_all = listen.is_ipv6() && listen.ip().is_unspecified();
        let dialled = self.public.iter().filter_map(|public| match public {
            Public::At(at) => at.socket(),
            Public::Auto => None,
        });
        match dialled
            .into_iter()
            .find(|at| at.ip().to_canonical().is_ipv4() != listens_v4)
        {
            Some(other) if !is_all => {
                let why = format!(
                    "{other} and --listen {listen} have different IP versions; for both: --listen [::]:{}",
                    listen.port()
                );
                Err(SettingError::refused("public", &why))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn admin_addresses(&self) -> (Option<SocketAddr>, Option<PathBuf>) {
        let tcp = self.admin.iter().find_map(|at| match at {
            AdminAddress::Tcp(at) => Some(*at),
            AdminAddress::Unix(_) => None,
        });
        let unix = self.admin.iter().find_map(|at| match at {
            AdminAddress::Unix(path) => Some(path.clone()),
            AdminAddress::Tcp(_) => None,
        });
        (tcp, unix)
    }

    pub(super) fn sidecar(&self) -> Result<Option<Sidecar>, SettingError> {
        match self.fleet {
            FleetWord::None => Ok(None),
            FleetWord::Agones => Ok(Some(Sidecar::agones()?)),
        }
    }

    pub(super) fn delay_ticks(&self, tick: Duration) -> u32 {
        (f64::from(self.spectator_delay) / tick.as_secs_f64()).round() as u32
    }

    pub(super) fn durability(&self) -> Durability {
        match self.durability {
            DurabilityWord::Process => Durability::Process,
            DurabilityWord::Power => Durability::Power,
        }
    }

    pub(super) fn on_journal_failure(&self) -> OnJournalFailure {
        match self.on_journal_failure {
            JournalFailureWord::End => OnJournalFailure::End,
            JournalFailureWord::Continue => OnJournalFailure::Continue,
        }
    }

    pub(super) fn keep(&self) -> Option<(PathBuf, KeepJournals)> {
        let keep = KeepJournals {
            for_at_most: self.keep_days.map(|days| DAY * days),
            bytes_max: self.keep_megabytes.map(|mega| mega * MEGA),
        };
        Some((self.journal.clone()?, keep))
    }

    /// The configuration for browsers. `kept` is the file of the certificates that the server creates.
    pub(super) fn web(&self, kept: &Path) -> Option<WebConfig> {
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(chain), Some(key)) => WebCertificate::Files {
                chain: chain.clone(),
                key: key.clone(),
            },
            _ => WebCertificate::Made {
                kept: Some(kept.to_owned()),
            },
        };
        Some(WebConfig {
            certificate,
            ..WebConfig::new(self.web?)
        })
    }

    /// Sets the host options that are passed on unchanged.
    pub(super) fn give(&self, host: &mut HostConfig) {
        host.incidents.clone_from(&self.incidents);
        host.drain_within = Duration::from_secs(self.drain);
        host.limits = Limits {
            tick_lateness: Duration::from_millis(self.lateness_limit),
            memory_bytes: self.memory_limit.map(|mega| mega * MEGA),
            disk_free_bytes: self.disk_limit * MEGA,
        };
        host.heeds_stop = true;
    }
}
