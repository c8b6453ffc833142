//! From what an operator chose to a server that runs: [`Configured::listen`], [`Operated`].

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::SPECTATORS_LIVE_MAX;
use twinstep_host::internal::{logged, unix_now};
use twinstep_host::{HostError, JOURNAL_EXTENSION, Server, newest_unfinished};
use twinstep_protocol::packet::hello::Hello;

use super::choices::{Choices, Preparing};
use super::configured::Configured;
use super::error::SettingError;
use super::operated::{Operated, Operating};
use super::standard::{self, Public};
use crate::{Ops, Sidecar, SidecarError};

/// The manager of a fleet gives an address within so long.
const FLEET_PATIENCE: Duration = Duration::from_secs(30);

/// The match of a server's journals.
const MATCH: u64 = 1;
/// Lines about journals that are left alone.
const LEFT_ALONE_LINES: usize = 16;
/// The settings that name folders in which a server writes.
const FOLDERS: [&str; 3] = ["state", "journal", "incidents"];

/// The report of `--check` on a server that would start.
const WILL_DO: &str = "the settings and files will do\n";

impl Configured {
    /// Checks whether this server would start: does all that [`listen`](Self::listen) does before it takes an address, on
    /// the same road, and leaves nothing behind. Returns what is said of it then.
    ///
    /// # Errors
    /// [`SettingError`]: what the start would say.
    pub fn check<S: Simulation>(&self, server: Server<S>) -> Result<String, SettingError> {
        let (server, choices) = self.prepare(server, Preparing::Check)?;
        server.check(choices.listen)?;
        Ok(self.will_do())
    }

    /// The words of a check that found nothing, and the variables that are left alone.
    pub(super) fn will_do(&self) -> String {
        let strange = self.strange.iter();
        let strange = strange
            .map(|name| format!("the environment's {name} is no setting, and is left alone\n"));
        strange.chain([WILL_DO.to_owned()]).collect()
    }

    /// Does all of a start that comes before it takes an address.
    fn prepare<S: Simulation>(
        &self,
        server: Server<S>,
        preparing: Preparing,
    ) -> Result<(Server<S>, Choices), SettingError> {
        let choices = self.choices(preparing)?;
        let delay_ticks = f64::from(choices.delay_s) / server.tick().as_secs_f64();
        let mut server = server
            .players(choices.players)
            .spectators(choices.spectators, delay_ticks.round() as u32)
            .durability(choices.durability)
            .on_journal_failure(choices.on_journal_failure)
            .host(|host| choices.give(host));
        if let Some(folder) = &choices.journals {
            server = with_journal(server, folder, choices.new_match, preparing)?;
        }
        Ok((server, choices))
    }

    /// Starts a server as it was chosen. What the program said of its addresses, keys, files and watchers is replaced; its
    /// game, hooks, policies and build are not. Seats are those of `max-players`.
    ///
    /// # Errors
    /// [`SettingError`]: a file or address that will not do.
    ///
    /// # Panics
    /// Within a tokio runtime.
    pub fn listen<S: Simulation>(self, server: Server<S>) -> Result<Operated<S>, SettingError> {
        let (server, choices) = self.prepare(server, Preparing::Start)?;
        let ops = Ops::open(choices.ops())?;
        let server = server.host(|host| ops.attach(host));
        let running = server.listen(&choices.listen.to_string())?;
        let control = running.control();
        let operating = Operating::start(ops, control, self, choices.files, &choices.keys)?;
        Ok(Operated { running, operating })
    }

    pub(super) fn sidecar(&self) -> Result<Option<Sidecar>, SettingError> {
        let sidecar = match self.text("fleet") {
            Some("agones") => Sidecar::agones(),
            _ if self.text("public") == Some("auto") => {
                return Err(self.refuse(
                    "public",
                    "expected an address, or auto in a fleet (--fleet agones)",
                ));
            }
            _ => return Ok(None),
        };
        sidecar
            .map(Some)
            .map_err(|source| self.no_fleet("fleet", source))
    }

    /// What players dial, as the manager of the fleet says; waits for it.
    pub(super) fn ask_fleet(&self, sidecar: Option<Sidecar>) -> Result<SocketAddr, SettingError> {
        let sidecar = sidecar.expect("checked with the fleet");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HostError::Threads)?;
        let asked = runtime.block_on(sidecar.where_dialled(FLEET_PATIENCE));
        // A name that is still looked up is of no use any more.
        runtime.shutdown_background();
        asked.map_err(|source| self.no_fleet("public", source))
    }

    fn no_fleet(&self, name: &str, source: SidecarError) -> SettingError {
        SettingError::Fleet {
            from: self.source(name),
            source,
        }
    }

    /// Makes the folders that are to be written, if they are not there, and writes into each; a check takes away again what
    /// it made. `secrets` is the folder beside the key, where a server without a state folder writes.
    pub(super) fn prepare_folders(
        &self,
        secrets: Option<&Path>,
        preparing: Preparing,
    ) -> Vec<SettingError> {
        let chosen = FOLDERS.map(|name| Some((name, self.path(name)?)));
        let beside = secrets.map(|folder| ("key-file", folder.to_owned()));
        let (_, socket) = self.get_by("admin", standard::admin).unwrap_or_default();
        let of_socket = socket.and_then(|path| Some(("admin", path.parent()?.to_owned())));
        let folders = chosen.into_iter().chain([beside, of_socket]).flatten();
        let failed = folders.filter_map(|(name, path)| {
            let tried = try_folder(&path, preparing);
            Some(self.no_folder(name, path, tried.err()?))
        });
        failed.collect()
    }

    fn no_folder(&self, name: &str, path: PathBuf, source: std::io::Error) -> SettingError {
        SettingError::Folder {
            from: self.source(name),
            path,
            source,
        }
    }

    /// A socket at an address of one family hears nothing of the other; at `[::]` it hears both.
    pub(super) fn check_families(&self, listen: SocketAddr) -> Result<(), SettingError> {
        let Some(Public::At(public)) = self.get_by("public", standard::public) else {
            return Ok(());
        };
        let family = |address: &SocketAddr| match address.ip().to_canonical() {
            IpAddr::V4(_) => "IPv4",
            IpAddr::V6(_) => "IPv6",
        };
        let hears_both = listen.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let is_deaf = |public: &SocketAddr| !hears_both && family(public) != family(&listen);
        // What a name stands for may change.
        let mut sockets = public.iter().filter_map(|public| public.socket());
        match sockets.find(is_deaf) {
            None => Ok(()),
            Some(deaf) => Err(self.refuse(
                "public",
                format!(
                    "expected addresses of {}, since the server listens at {listen} alone: {deaf} is {}; --listen \
                     [::]:{} hears both",
                    family(&listen),
                    family(&deaf),
                    listen.port()
                ),
            )),
        }
    }

    /// Who watches at once costs the match more than who is behind.
    pub(super) fn check_spectators(&self) -> Result<(), SettingError> {
        let max: usize = self.get("spectators").unwrap_or_default();
        if self.delay_s() == 0 && max > SPECTATORS_LIVE_MAX {
            return Err(self.refuse(
                "spectators",
                format!(
                    "expected at most {SPECTATORS_LIVE_MAX} without a delay, and more only with --spectator-delay"
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn delay_s(&self) -> u32 {
        let delay_s = self.get_by("spectator-delay", standard::delay_s);
        delay_s.unwrap_or_default()
    }
}

/// Whether a folder can be made and written: by doing so. No right that was read beforehand says it (an overlay, a quota,
/// a folder of the kernel's).
fn try_folder(path: &Path, preparing: Preparing) -> std::io::Result<()> {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<_> = path.ancestors().take_while(is_missing).collect();
    let probe = path.join(format!(".twinstep-{}.probe", std::process::id()));
    let tried = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::File::create(&probe))
        .and_then(|_| std::fs::remove_file(&probe));
    if preparing == Preparing::Check {
        // Those that were made; a folder that somebody else has filled meanwhile stays.
        missing
            .iter()
            .for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
    tried
}

/// The newest match of a folder that was cut off goes on, or a new one begins.
fn with_journal<S: Simulation>(
    server: Server<S>,
    folder: &Path,
    new_match: bool,
    preparing: Preparing,
) -> Result<Server<S>, SettingError> {
    let hello = server.hello().map_err(HostError::from)?;
    // A check leaves no folder behind: what is not there holds no match.
    let unfinished = match new_match || !folder.exists() {
        true => None,
        false => unfinished(folder, &hello)?,
    };
    Ok(match unfinished {
        Some(path) => server.resume(path),
        None if preparing == Preparing::Check => server,
        None => {
            let path = new_journal(folder);
            logged::info!(path = %path.display(), "a new journal");
            server.journal(path)
        }
    })
}

/// The match that goes on, if one was cut off.
fn unfinished(folder: &Path, hello: &Hello) -> Result<Option<PathBuf>, SettingError> {
    let found = newest_unfinished(folder, hello)?;
    // A folder may hold thousands: those of which the same is said take one line, and the newest of them is named.
    let mut alike = BTreeMap::<(bool, String), (&Path, usize)>::new();
    for (path, why) in &found.left_alone {
        let said = (!why.is_strange(), why.to_string());
        let (_, journals) = alike.entry(said).or_insert((path, 0));
        *journals += 1;
    }
    let more = alike.len().saturating_sub(LEFT_ALONE_LINES);
    for ((is_usual, why), (path, journals)) in alike.into_iter().take(LEFT_ALONE_LINES) {
        let path = path.display();
        if is_usual {
            logged::info!(%path, journals, why, "journals are left alone");
        } else {
            logged::warn!(%path, journals, why, "journals are left alone: look whether you miss a match");
        }
    }
    if more > 0 {
        logged::warn!(more, "journals are left alone for other reasons too");
    }
    Ok(found.newest)
}

/// A name for a new journal in a folder.
fn new_journal(folder: &Path) -> PathBuf {
    let now = unix_now().as_millis();
    folder.join(format!("match-{MATCH}-{now}.{JOURNAL_EXTENSION}"))
}
