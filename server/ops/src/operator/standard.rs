//! The settings that every server has. A game's own come behind them.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use twinstep_udp::ServerAddress;

use twinstep_core::bounds::{
    SPECTATOR_DELAY_MAX, SPECTATOR_DELAY_MIN, SPECTATORS_DELAYED_MAX, SPECTATORS_LIVE_MAX,
};
use twinstep_udp::SERVERS_MAX;

use super::addresses::dialled;
use super::setting::Setting;
use super::source::CONFIG;
use crate::AdminAddress;

/// Players of a match, if a game does not say otherwise.
const PLAYERS_MAX: u64 = 16;
/// The delay of spectators in seconds, at 60 ticks a second.
const DELAY_S: RangeInclusive<u32> = SPECTATOR_DELAY_MIN / 60..=SPECTATOR_DELAY_MAX / 60;

/// All of them, in the order of `--help`.
pub(super) fn settings() -> Vec<Setting> {
    vec![
        Setting::file(CONFIG, "A TOML file with any of these settings; the environment and flags win over it"),
        Setting::switch("check", "Only look whether all settings and files will do: exits with 0 or 2"),
        Setting::switch("print-config", "Only print all settings, and where each comes from"),
        Setting::address("listen", "Where to listen, such as 0.0.0.0:7777"),
        Setting::text(
            "public",
            "ADDR[,ADDR]",
            |text| public(text).map(drop),
            "What players dial, if it is another address; auto: what the manager of the fleet says",
        ),
        Setting::number("max-players", 1..=PLAYERS_MAX, "players", "How many may play").or("8"),
        Setting::secret("key-file", "The key whose tickets are good"),
        Setting::secret("old-key-file", "The key before: its tickets are still good")
            .or_else("KEY-FILE.old, if it is there"),
        Setting::folder(
            "state",
            "Where it is kept which tickets are out of date, who is banned, and the admin port's token",
        )
        .or_else("beside the key file; for a credential, $STATE_DIRECTORY"),
        Setting::folder(
            "journal",
            "Where to keep the match's journal; the newest match there that was cut off goes on",
        ),
        Setting::switch("new-match", "Begin a new match, even if one was cut off").needs(&["journal"]),
        Setting::one_of(
            "durability",
            &[
                ("process", "the end of the process, however it ends"),
                ("power", "a loss of power too: the server waits for the disk in every turn"),
            ],
            "What the journal is to survive",
        )
        .or("process")
        .needs(&["journal"]),
        Setting::one_of(
            "on-journal-failure",
            &[
                ("end", "it ends; what was written can be taken up again"),
                ("go-on", "it goes on without one, and the log says so again and again"),
            ],
            "What becomes of the match when the journal cannot be written",
        )
        .or("end")
        .needs(&["journal"]),
        Setting::number(
            "keep-days",
            0..=36_500,
            "days",
            "For how long the journal of a match that is over is kept",
        )
        .or_else("for ever")
        .needs(&["journal"]),
        Setting::number(
            "keep-megabytes",
            0..=1_000_000_000,
            "MB",
            "How much the journals of matches that are over may take; the oldest go first",
        )
        .or_else("all that there is")
        .needs(&["journal"]),
        Setting::folder("incidents", "Where incident files go").or_else("beside the journal"),
        Setting::number(
            "spectators",
            0..=SPECTATORS_DELAYED_MAX as u64,
            "spectators",
            &format!("How many may watch; more than {SPECTATORS_LIVE_MAX} need a delay"),
        )
        .or("0"),
        Setting::text(
            "spectator-delay",
            "SECONDS",
            |text| delay_s(text).map(drop),
            "How many seconds behind the match they are: 0, or 3 to 15",
        )
        .or("0")
        .needs(&["spectators"]),
        Setting::number(
            "drain",
            0..=86_400,
            "seconds",
            "For how long whoever plays may play on when the server is asked to end; nobody new is let in then",
        )
        .or("0"),
        Setting::number(
            "lateness-limit",
            1..=1_000,
            "milliseconds",
            "From which lateness of ticks on (the 99th percentile of 5 s) players are spared what they miss least, then newcomers are refused",
        )
        .or("20"),
        Setting::number(
            "memory-limit",
            1..=1_000_000_000,
            "MB",
            "From how much memory on newcomers are refused",
        )
        .or_else("85 % of what the cgroup or the machine has"),
        Setting::number(
            "disk-limit",
            0..=1_000_000_000,
            "MB",
            "Below how much free disk for journals newcomers are refused",
        )
        .or("256"),
        Setting::text(
            "admin",
            "ADDR|unix:PATH",
            |text| admin(text).map(drop),
            "Where this machine's operators may ask, such as 127.0.0.1:7700, unix:/run/game/admin.sock, or both with a comma",
        ),
        Setting::secret("admin-token-file", "The token of whoever may change something there; made if it is not there")
            .or_else("in the folder of --state"),
        Setting::one_of(
            "fleet",
            &[
                ("none", "this server stands alone"),
                ("agones", "Agones' sidecar on this machine, at the port that AGONES_SDK_HTTP_PORT names"),
            ],
            "Which manager of a fleet hears how this server is",
        )
        .or("none"),
    ]
}

/// What players dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Public {
    /// What the manager of the fleet says.
    Auto,
    /// These.
    At(Vec<ServerAddress>),
}

/// Reads what players dial.
pub(super) fn public(text: &str) -> Result<Public, String> {
    if text == "auto" {
        return Ok(Public::Auto);
    }
    let addresses: Vec<ServerAddress> = text.split(',').map(dialled).collect::<Result<_, _>>()?;
    match addresses.len() {
        1..=SERVERS_MAX => Ok(Public::At(addresses)),
        _ => Err(format!("expected at most {SERVERS_MAX} addresses")),
    }
}

/// Reads where operators ask: on loopback, at a Unix socket, or both.
pub(super) fn admin(text: &str) -> Result<(Option<SocketAddr>, Option<PathBuf>), String> {
    let (mut tcp, mut unix) = (None, None);
    for address in text.split(',') {
        let was_there = match address.parse()? {
            AdminAddress::Tcp(address) => tcp.replace(address).is_some(),
            AdminAddress::Unix(path) => unix.replace(path).is_some(),
        };
        if was_there {
            return Err(
                "expected one address on loopback, one Unix socket, or one of each".to_owned(),
            );
        }
    }
    Ok((tcp, unix))
}

/// Reads how far spectators are behind, in seconds.
pub(super) fn delay_s(text: &str) -> Result<u32, String> {
    let delay_s = text.parse().ok();
    let sound = delay_s.filter(|delay_s| *delay_s == 0 || DELAY_S.contains(delay_s));
    sound.ok_or_else(|| {
        let (min, max) = (DELAY_S.start(), DELAY_S.end());
        format!("expected 0, or {min} to {max} seconds")
    })
}
