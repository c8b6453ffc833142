//! A server for authors without tokio: built in one expression, it runs on its own threads.
//!
//! ```
//! use twinstep_core::testing::doc::Counter;
//! use twinstep_host::Server;
//!
//! let server = Server::action(Counter::default(), ()).players(4).listen("127.0.0.1:0")?;
//! let ticket = server.ticket("anna")?; // give it to Client::connect
//! assert_eq!(ticket.servers().collect::<Vec<_>>(), [server.local_addr()]);
//! server.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::hello::Hello;
use twinstep_udp::{SESSIONS_MAX, ServerAddress, TicketKey};

use super::blueprint::Blueprint;
use super::config::{HostConfig, HostError, bind};
use super::journal_file::{Durability, Journal, OnJournalFailure};
use super::logged;
use super::matches::Host;
use super::save_file::{SaveFileError, read_save};
use super::web::WebConfig;
use twinstep_server::config::MatchConfig;
use twinstep_server::hooks::{Referee, Resolver};
use twinstep_server::{Match, MatchStartError, Upgrade};

mod issuer;
mod many;
mod running;
mod threads;

use issuer::MATCH;
pub use issuer::TicketIssuer;
pub use many::RunningMany;
pub use running::{Running, Stopped};
use threads::{OnThreads, threads};

/// A server of one match, before it starts.
pub struct Server<S: Simulation> {
    blueprint: Blueprint<S>,
    /// If it has no keys, a key is generated at the start.
    host: HostConfig,
    journal: Option<Keep>,
    durability: Durability,
    on_journal_failure: OnJournalFailure,
    load: Option<PathBuf>,
    upgrade: Option<Upgrade<S>>,
}

enum Keep {
    New(PathBuf),
    Resume(PathBuf),
}

/// Returns the missing settings without which players cannot reconnect after a crash: a journal that the next process
/// resumes, and the key and the port of their tickets.
fn lacks(keeps_journal: bool, is_keyed: bool, port: u16) -> Option<String> {
    let settings = [
        (
            keeps_journal,
            "a journal that the next process resumes (--journal)",
        ),
        (is_keyed, "a key from a file (--key-file)"),
        (port != 0, "a fixed port (--listen)"),
    ];
    let missing = settings.iter().filter(|(has, _)| !has);
    let missing = Vec::from_iter(missing.map(|(_, setting)| *setting));
    (!missing.is_empty()).then(|| missing.join(", "))
}

fn begin<S: Simulation>(
    blueprint: Blueprint<S>,
    load: Option<PathBuf>,
    upgrade: Option<Upgrade<S>>,
) -> Result<Match<S>, HostError> {
    let Some(path) = load else {
        return Ok(blueprint.make()?);
    };
    let loaded = blueprint.load(&read_save(&path)?, upgrade);
    Ok(loaded.map_err(|source| SaveFileError::Load { path, source })?)
}

impl<S: Simulation> Server<S> {
    /// An action game that starts from `sim`: see [`MatchConfig::action`].
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::with(MatchConfig::action(), sim, rules)
    }

    /// A strategy game that starts from `sim`: see [`MatchConfig::strategy`].
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::with(MatchConfig::strategy(), sim, rules)
    }

    /// A match of any configuration that starts from `sim`.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::of(Blueprint::with(config, sim, rules))
    }

    /// A match created from a blueprint.
    pub fn of(blueprint: Blueprint<S>) -> Self {
        let listen = ([127, 0, 0, 1], 0).into();
        Server {
            blueprint,
            host: HostConfig {
                keys: Vec::new(),
                ..HostConfig::new(S::NAME, listen, TicketKey::generate())
            },
            journal: None,
            durability: Durability::default(),
            on_journal_failure: OnJournalFailure::default(),
            load: None,
            upgrade: None,
        }
    }

    /// Sets the resolver, which answers the game's queries. Without one, queries stay unanswered.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.blueprint = self.blueprint.resolver(resolver);
        self
    }

    /// Sets the referee, which admits commands and claims. Without one, all within the bounds are admitted.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.blueprint = self.blueprint.referee(referee);
        self
    }

    /// Sets all policies of the match, except the number of seats, the reserved seats and the build name.
    #[must_use]
    pub fn policies(mut self, policies: MatchConfig) -> Self {
        self.blueprint = self.blueprint.policies(policies);
        self
    }

    /// Sets the number of seats, 1..=16. Default: 8.
    #[must_use]
    pub fn players(mut self, seats: usize) -> Self {
        self.blueprint = self.blueprint.players(seats);
        self
    }

    /// Sets the name of this build: shown in the journal and the handshake, never compared.
    #[must_use]
    pub fn build_name(mut self, name: &str) -> Self {
        self.blueprint = self.blueprint.build_name(name);
        self
    }

    /// Sets the number of spectators and their delay: up to 16 with 0 ticks, or up to 512 with 180 to 900 ticks.
    /// Default: none.
    #[must_use]
    pub fn spectators(mut self, max: usize, delay_ticks: u32) -> Self {
        self.blueprint = self.blueprint.spectators(max, delay_ticks);
        self
    }

    /// Sets the key that seals tickets, and a previous key whose tickets stay valid. Without keys, one is generated at
    /// the start, and only this server issues tickets: see [`Running::ticket`].
    #[must_use]
    pub fn keys(mut self, current: TicketKey, previous: impl Into<Option<TicketKey>>) -> Self {
        self.host.keys = std::iter::once(current).chain(previous.into()).collect();
        self
    }

    /// Adds an address that players dial, if different from the listen address.
    #[must_use]
    pub fn public(mut self, address: ServerAddress) -> Self {
        self.host.public.push(address);
        self
    }

    /// Also accepts browsers, at this UDP address: see [`HostConfig::web`]. Needs the feature `web`.
    #[must_use]
    pub fn web(mut self, web: WebConfig) -> Self {
        self.host.web = Some(web);
        self
    }

    /// Sets options of the host: limits, files, observers. `listen` is set by [`listen`](Server::listen).
    ///
    /// ```
    /// use std::time::Duration;
    /// use twinstep_core::testing::doc::Counter;
    /// use twinstep_host::Server;
    ///
    /// let server = Server::action(Counter::default(), ()).host(|host| {
    ///     host.incidents = Some("incidents".into());
    ///     host.drain_within = Duration::from_secs(600);
    /// });
    /// ```
    #[must_use]
    pub fn host(mut self, set: impl FnOnce(&mut HostConfig)) -> Self {
        set(&mut self.host);
        self
    }

    /// Sets the folder for games that players ask to save: see [`HostConfig::saves`].
    #[must_use]
    pub fn saves(mut self, folder: impl Into<PathBuf>) -> Self {
        self.host.saves = Some(folder.into());
        self
    }

    /// Keeps a journal in a new file.
    #[must_use]
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(Keep::New(path.into()));
        self
    }

    /// Resumes the match from a journal, for example after a crash, and continues the same file. This server's initial
    /// world is then not used.
    #[must_use]
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(Keep::Resume(path.into()));
        self
    }

    /// Starts the match from a file that [`Running::save`] wrote, instead of from the initial world of this server.
    /// Players get their seats back, in whatever order they connect: see [`Match::load`](twinstep_server::Match::load).
    /// A [resumed](Server::resume) match does not use the file.
    #[must_use]
    pub fn load(mut self, path: impl Into<PathBuf>) -> Self {
        self.load = Some(path.into());
        self
    }

    /// Sets the function that adapts a save of an older version, or of different rules. Without one, such a save is
    /// refused.
    #[must_use]
    pub fn upgrade(mut self, upgrade: Upgrade<S>) -> Self {
        self.upgrade = Some(upgrade);
        self
    }

    /// Reserves a seat for an identity: see [`MatchConfig::reserve`].
    #[must_use]
    pub fn seat(mut self, identity: &str, player: PlayerId) -> Self {
        self.blueprint = self.blueprint.seat(identity, player);
        self
    }

    /// Sets which failures the journal survives. Default: [`Durability::Process`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets what happens to the match if its journal cannot be written. Default: it ends.
    #[must_use]
    pub fn on_journal_failure(mut self, on_failure: OnJournalFailure) -> Self {
        self.on_journal_failure = on_failure;
        self
    }

    /// The configured length of a tick.
    #[must_use]
    pub fn tick_length(&self) -> Duration {
        self.blueprint.tick_length()
    }

    /// The hello that a journal must match to be resumed here.
    ///
    /// # Errors
    /// If the rules cannot be encoded.
    pub fn hello(&self) -> Result<Hello, MatchStartError> {
        Hello::of::<S>(&self.blueprint.rules, &self.blueprint.config.build)
            .map_err(MatchStartError::from)
    }

    /// Checks and completes the configuration before the address is bound.
    fn prepare(mut self, listen: SocketAddr, starts: bool) -> Result<Self, HostError> {
        self.blueprint = self.blueprint.dated();
        let config = &self.blueprint.config;
        config.check().map_err(MatchStartError::from)?;
        let host = &mut self.host;
        host.listen = listen;
        let keeps_journal = self.journal.is_some();
        if let Some(lacking) = lacks(keeps_journal, !host.keys.is_empty(), listen.port()) {
            let text = format!(
                "after a crash of this server, players cannot return to the match; missing: {lacking}"
            );
            match keeps_journal {
                true => logged::warn!("{text}"),
                // Without a journal this may be intended, as for a match on this machine only.
                false if starts && !listen.ip().is_loopback() => logged::info!("{text}"),
                false => {}
            }
        }
        if host.keys.is_empty() {
            host.keys.push(TicketKey::generate());
        }
        let people = config.players_max + config.spectators.max;
        let usual = (2 * people).clamp(1, SESSIONS_MAX);
        host.sessions_max.get_or_insert(usual);
        Ok(self)
    }

    /// Checks the configuration, and that the match can be created, loaded or resumed. Neither binds the address nor
    /// creates a file.
    ///
    /// # Errors
    /// The errors of [`listen`](Self::listen).
    pub fn check(self, listen: SocketAddr) -> Result<(), HostError> {
        let server = self.prepare(listen, false)?;
        server.host.check()?;
        match server.journal {
            // The journal holds the world from which the match resumes.
            Some(Keep::Resume(path)) => Ok(server.blueprint.rehearse_resume(&path)?),
            Some(Keep::New(_)) | None => {
                begin(server.blueprint, server.load, server.upgrade).map(drop)
            }
        }
    }

    /// Starts the server on its own threads. Port 0 takes a free port.
    ///
    /// # Errors
    /// If the address cannot be listened on, the configuration is out of range, or a file cannot be used.
    ///
    /// # Panics
    /// Within a tokio runtime: there, use [`Host`].
    pub fn listen(self, address: &str) -> Result<Running<S>, HostError> {
        let listen = address.parse().map_err(|_| HostError::Address {
            got: address.to_owned(),
        })?;
        let Server {
            blueprint,
            host,
            journal,
            durability,
            on_journal_failure,
            load,
            upgrade,
        } = self.prepare(listen, true)?;
        let socket = bind(listen)?;
        let threads = threads(host.heeds_stop)?;
        let runtime = &threads.0;
        let (match_, resumed, new) = match journal {
            Some(Keep::Resume(path)) => {
                let (match_, journal) = blueprint.resume(path)?;
                (match_, Some(journal), None)
            }
            Some(Keep::New(path)) => (begin(blueprint, load, upgrade)?, None, Some(path)),
            None => (begin(blueprint, load, upgrade)?, None, None),
        };
        let (host, match_) = runtime.block_on(async {
            let host = Host::start_on(socket, host).await?;
            // The file is created after the bind, so that a server that cannot start leaves no file behind.
            let created = new.map(Journal::create).transpose()?;
            let journal = resumed.or(created).map(|journal| {
                journal
                    .durability(durability)
                    .on_failure(on_journal_failure)
            });
            let match_ = host.add_match(MATCH, match_, journal).await?;
            Ok::<_, HostError>((host, match_))
        })?;
        Ok(Running {
            match_,
            on_threads: OnThreads::new(host, threads),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding A3-11: a match was resumed, but its players could not reconnect.
    #[test]
    fn missing_settings_that_prevent_reconnecting_after_a_crash_are_reported() {
        assert_eq!(lacks(true, true, 7_777), None);
        for (has, setting) in [
            ([false, true, true], "a journal"),
            ([true, false, true], "a key from a file"),
            ([true, true, false], "a fixed port"),
        ] {
            let [journal, keyed, fixed] = has;
            let port = if fixed { 7_777 } else { 0 };
            let lacking = lacks(journal, keyed, port).unwrap();
            assert!(
                lacking.starts_with(setting) && !lacking.contains(", a "),
                "{lacking}"
            );
        }
        let all = lacks(false, false, 0).unwrap();
        assert!(all.contains("a journal") && all.contains("a key") && all.contains("a fixed port"));
    }
}
