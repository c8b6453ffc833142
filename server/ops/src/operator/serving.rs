//! Starts a server from settings: [`Settings::listen`], [`Settings::listen_on_demand`], and checks of both.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_host::internal::{logged, unix_now};
use twinstep_host::{
    Blueprint, BlueprintSource, HostConfig, HostError, JOURNAL_EXTENSION, OnDemand, RunningMany,
    Server, newest_unfinished,
};
use twinstep_protocol::packet::hello::Hello;
use twinstep_udp::{MatchId, SESSIONS_MAX, ServerAddress, TicketKey};

use super::error::SettingError;
use super::files::Files;
use super::operated::{Operated, OperatedMatches, Operating};
use super::settings::{ManySettings, Public, Settings};
use crate::{Ops, OpsConfig, Sidecar};

/// The longest time that the fleet manager may take to report an address.
const FLEET_PATIENCE: Duration = Duration::from_secs(30);
const MATCH: u64 = 1;
const LEFT_ALONE_LINES: usize = 16;
/// The number of files that a host opens besides one journal per match: sockets, secrets, operators' requests.
const FILES_OF_A_HOST: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preparing {
    Start,
    /// Checks whether the start would succeed, and removes all files that it creates.
    Check,
}

struct Prepared {
    listen: SocketAddr,
    public: Vec<ServerAddress>,
    files: Files,
    keys: Vec<TicketKey>,
    ops: OpsConfig,
}

impl Settings {
    /// Checks whether this server would start: does what [`listen`](Self::listen) does before it binds an address, but
    /// does not ask the fleet, and removes all files that it creates.
    ///
    /// # Errors
    /// If the server would not start.
    pub fn check_one<S: Simulation>(&self, server: Server<S>) -> Result<(), SettingError> {
        let (server, prepared) = self.prepare_one(server, Preparing::Check)?;
        Ok(server.check(prepared.listen)?)
    }

    /// Starts a server with these settings. They replace the program's own addresses, keys, files, observers, and
    /// numbers of players and spectators, but not its game, hooks, other policies and build name.
    ///
    /// # Errors
    /// If a file or an address cannot be used.
    ///
    /// # Panics
    /// Within a tokio runtime.
    pub fn listen<S: Simulation>(self, server: Server<S>) -> Result<Operated<S>, SettingError> {
        let (server, prepared) = self.prepare_one(server, Preparing::Start)?;
        let ops = Ops::open(prepared.ops)?;
        let server = server.host(|host| ops.attach(host));
        let running = server.listen(&prepared.listen.to_string())?;
        let control = running.control();
        let operating = Operating::start(ops, control, self, prepared.files, &prepared.keys)?;
        Ok(Operated { running, operating })
    }

    /// Like [`check_one`](Self::check_one), for a server with matches on demand.
    ///
    /// # Errors
    /// If the server would not start.
    pub fn check_many<S: Simulation>(
        &self,
        many: &ManySettings,
        template: impl BlueprintSource<S>,
    ) -> Result<(), SettingError> {
        let prepared = self.prepare(many.matches.unwrap_or(1), Preparing::Check)?;
        if let Some(web) = self.web(&prepared.files.web) {
            web.check().map_err(|source| HostError::Web {
                address: web.listen,
                source,
            })?;
        }
        self.rehearse(&template)
    }

    /// Starts a server with matches on demand, created by `template`. Seats, spectators, journals, keys and addresses
    /// are taken from the settings.
    ///
    /// # Errors
    /// If a file or an address cannot be used.
    ///
    /// # Panics
    /// Within a tokio runtime.
    pub fn listen_on_demand<S: Simulation>(
        self,
        many: &ManySettings,
        template: impl BlueprintSource<S>,
    ) -> Result<OperatedMatches, SettingError> {
        let at_once = many.matches.unwrap_or(1);
        let prepared = self.prepare(at_once, Preparing::Start)?;
        self.rehearse(&template)?;
        let of_each = self.clone();
        let of_each = move |id| Some(of_each.of_people(template.blueprint(id)?));
        let mut matches = OnDemand::new(of_each)
            .at_once(at_once as usize)
            .deserted_after(Duration::from_secs(many.deserted_after))
            .per_second(many.matches_per_second)
            .durability(self.durability())
            .on_journal_failure(self.on_journal_failure());
        if let Some(folder) = &self.journal {
            matches = matches.journals(folder);
        }
        let mut config = HostConfig::new(S::NAME, prepared.listen, prepared.keys[0].clone());
        self.give_prepared(&prepared, &mut config);
        config.incidents = config.incidents.or(self.journal.clone());
        // Twice the number of players and spectators, so that a reconnecting player need not wait until its old session
        // times out.
        let sessions = 2 * at_once * (self.max_players + self.spectators);
        config.sessions_max = Some((sessions as usize).min(SESSIONS_MAX));
        let ops = Ops::open(prepared.ops)?;
        ops.attach(&mut config);
        let running = RunningMany::start(matches, config)?;
        let control = running.host().control();
        let operating = Operating::start(ops, control, self, prepared.files, &prepared.keys)?;
        Ok(OperatedMatches { running, operating })
    }

    /// The blueprint of a match, with the configured numbers of players and spectators.
    fn of_people<S: Simulation>(&self, blueprint: Blueprint<S>) -> Blueprint<S> {
        let delay_ticks = self.delay_ticks(blueprint.tick_length());
        let blueprint = blueprint.players(self.max_players as usize);
        blueprint.spectators(self.spectators as usize, delay_ticks)
    }

    /// Creates one match as a sample, so that an unusable policy is refused before any player connects.
    fn rehearse<S: Simulation>(
        &self,
        template: &impl BlueprintSource<S>,
    ) -> Result<(), SettingError> {
        // A template without this match may have others.
        match template.blueprint(MatchId(1)) {
            Some(one) => Ok(self.of_people(one).rehearse().map_err(HostError::from)?),
            None => Ok(()),
        }
    }

    fn prepare_one<S: Simulation>(
        &self,
        server: Server<S>,
        preparing: Preparing,
    ) -> Result<(Server<S>, Prepared), SettingError> {
        let prepared = self.prepare(1, preparing)?;
        let delay_ticks = self.delay_ticks(server.tick_length());
        let mut server = server
            .players(self.max_players as usize)
            .spectators(self.spectators as usize, delay_ticks)
            .durability(self.durability())
            .on_journal_failure(self.on_journal_failure())
            .host(|host| self.give_prepared(&prepared, host));
        if let Some(folder) = &self.journal {
            server = with_journal(server, folder, self.new_match, preparing)?;
        }
        Ok((server, prepared))
    }

    /// Does everything that a start does before it binds an address: reads the keys, creates the folders, and asks the
    /// fleet for the address to dial if so configured. A check does not ask the fleet, and does not leave a folder
    /// behind.
    fn prepare(&self, matches: u64, preparing: Preparing) -> Result<Prepared, SettingError> {
        self.check_together()?;
        let listen = self.listen.expect("checked");
        let files = Files::of(self)?;
        let keys = files.keys()?;
        self.prepare_folders(&files, preparing)?;
        files.check()?;
        let fleet = self.sidecar()?;
        take_open_files(FILES_OF_A_HOST + matches)?;
        let mut public = Vec::new();
        for one in &self.public {
            match (one, preparing) {
                (Public::At(address), _) => public.push(*address),
                (Public::Auto, Preparing::Check) => {}
                (Public::Auto, Preparing::Start) => public.push(ask_fleet(fleet)?.into()),
            }
        }
        let (admin, admin_socket) = self.admin_addresses();
        let ops = OpsConfig {
            admin,
            admin_socket,
            admin_token: Some(files.token.clone()),
            bans_file: Some(files.bans.clone()),
            saves: Some(files.saves.clone()),
            fleet,
            keep: self.keep(),
        };
        Ok(Prepared {
            listen,
            public,
            files,
            keys,
            ops,
        })
    }

    fn give_prepared(&self, prepared: &Prepared, host: &mut HostConfig) {
        self.give(host);
        host.public.clone_from(&prepared.public);
        host.keys.clone_from(&prepared.keys);
        host.lineages_file = Some(prepared.files.lineages.clone());
        host.saves = Some(prepared.files.saves.clone());
        host.web = self.web(&prepared.files.web);
    }

    /// Creates the folders that will be written, if they do not exist, and writes into each. A check removes the
    /// folders that it created.
    fn prepare_folders(&self, files: &Files, preparing: Preparing) -> Result<(), SettingError> {
        // The folder for a server without a state folder.
        let beside = files.lineages.parent().filter(|_| self.state.is_none());
        let (_, socket) = self.admin_addresses();
        for (name, folder) in [
            ("state", self.state.as_deref()),
            ("journal", self.journal.as_deref()),
            ("incidents", self.incidents.as_deref()),
            ("key-file", beside),
            ("admin", socket.as_deref().and_then(Path::parent)),
        ] {
            let Some(path) = folder else { continue };
            try_folder(path, preparing).map_err(|source| SettingError::Folder {
                from: format!("--{name}"),
                path: path.to_owned(),
                source,
            })?;
        }
        Ok(())
    }
}

fn ask_fleet(sidecar: Option<Sidecar>) -> Result<SocketAddr, SettingError> {
    let sidecar = sidecar.expect("checked with the fleet");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HostError::Threads)?;
    let within_s = FLEET_PATIENCE.as_secs();
    logged::info!(within_s, "waiting for an address from Agones");
    let asked = runtime.block_on(sidecar.where_dialled(FLEET_PATIENCE));
    // A name lookup that still runs is no longer needed.
    runtime.shutdown_background();
    Ok(asked?)
}

/// Raises the limit of open files to this number, if it is lower.
#[cfg(unix)]
fn take_open_files(needed: u64) -> Result<(), SettingError> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    limit.current = Some(needed);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, limit).map_err(|_| SettingError::OpenFiles { needed, hard })
}

#[cfg(not(unix))]
fn take_open_files(_: u64) -> Result<(), SettingError> {
    Ok(())
}

/// Tries to create and write a folder. Reading its permissions would not be enough, because of overlays, quotas and
/// kernel folders.
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
        // Only the created folders; a folder that another process has filled stays.
        missing
            .iter()
            .for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
    tried
}

/// Resumes the newest interrupted match of a folder, or starts a new match.
fn with_journal<S: Simulation>(
    server: Server<S>,
    folder: &Path,
    new_match: bool,
    preparing: Preparing,
) -> Result<Server<S>, SettingError> {
    let hello = server.hello().map_err(HostError::from)?;
    // A check creates no folder, and a missing folder has no match.
    let unfinished = match new_match || !folder.exists() {
        true => None,
        false => unfinished(folder, &hello)?,
    };
    Ok(match unfinished {
        Some(path) => server.resume(path),
        None if preparing == Preparing::Check => server,
        None => {
            let path = new_journal(folder);
            logged::info!("match" = MATCH, path = %path.display(), "new journal");
            server.journal(path)
        }
    })
}

fn unfinished(folder: &Path, hello: &Hello) -> Result<Option<PathBuf>, SettingError> {
    let found = newest_unfinished(folder, hello)?;
    // A folder may hold thousands: journals with the same reason share one line, which names the newest.
    let mut alike = BTreeMap::<(bool, String), (&Path, usize)>::new();
    for (path, why) in &found.left_alone {
        let reason = (!why.is_strange(), why.to_string());
        let (_, journals) = alike.entry(reason).or_insert((path, 0));
        *journals += 1;
    }
    let more = alike.len().saturating_sub(LEFT_ALONE_LINES);
    for ((is_usual, why), (path, journals)) in alike.into_iter().take(LEFT_ALONE_LINES) {
        let path = path.display();
        if is_usual {
            logged::info!(reason = why, journals, path = %path, "journals not resumed");
        } else {
            logged::warn!(reason = why, journals, path = %path, "journals not resumed: check them if one of their matches should continue");
        }
    }
    if more > 0 {
        logged::warn!(
            reasons = more,
            "more journals not resumed; their reasons are not listed"
        );
    }
    Ok(found.newest)
}

fn new_journal(folder: &Path) -> PathBuf {
    let now = unix_now().as_millis();
    folder.join(format!("match-{MATCH}-{now}.{JOURNAL_EXTENSION}"))
}
