//! A server for authors who never heard of tokio: built in one expression, it runs on threads of its own.
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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use twinstep_udp::ServerAddress;

use twinstep_core::Simulation;
use twinstep_protocol::packet::hello::Hello;
use twinstep_udp::{SESSIONS_MAX, TicketKey};

use super::admin;
use super::blueprint::Blueprint;
use super::config::{BACK_AFTER, HostConfig, HostError, bind};
use super::fleet::Sidecar;
use super::journal_file::{Durability, Journal, OnJournalFailure};
use super::keeping::{self, KeepJournals};
use super::logged;
use super::matches::Host;
use super::strain::Limits;
use twinstep_server::config::MatchConfig;
use twinstep_server::game::MatchStartError;
use twinstep_server::hooks::{Referee, Resolver};

mod issuer;
mod many;
mod running;
mod threads;

use issuer::MATCH;
pub use issuer::TicketIssuer;
pub use many::RunningMany;
pub use running::{Running, Stopped};
use threads::{OnThreads, threads};

/// A server of one match, not started yet.
pub struct Server<S: Simulation> {
    blueprint: Blueprint<S>,
    public: Vec<ServerAddress>,
    keys: Vec<TicketKey>,
    lineages_file: Option<PathBuf>,
    bans_file: Option<PathBuf>,
    journal: Option<Keep>,
    durability: Durability,
    on_journal_failure: OnJournalFailure,
    keep: Option<KeepJournals>,
    incidents: Option<PathBuf>,
    drain_within: Duration,
    limits: Limits,
    admin: Option<SocketAddr>,
    admin_socket: Option<PathBuf>,
    fleet: Option<Sidecar>,
    admin_token: Option<PathBuf>,
    heeds_stop: bool,
}

/// A server before it takes an address.
struct Prepared<S: Simulation> {
    blueprint: Blueprint<S>,
    host: HostConfig,
    journal: Option<Keep>,
    durability: Durability,
    on_journal_failure: OnJournalFailure,
    keep: Option<KeepJournals>,
    heeds_stop: bool,
}

/// Which journal is kept.
enum Keep {
    /// A new one.
    New(PathBuf),
    /// The one that the match is taken up from.
    Resume(PathBuf),
}

/// The setting that is missing for players to return to a match which the next process takes up from its journal: their
/// tickets are sealed by the key, and name the port.
fn lacks(is_keyed: bool, port: u16) -> Option<&'static str> {
    match (is_keyed, port) {
        (false, 0) => Some("a key from a file (Server::key), and a fixed port (Server::listen)"),
        (false, _) => Some("a key from a file (Server::key)"),
        (true, 0) => Some("a fixed port (Server::listen)"),
        (true, _) => None,
    }
}

impl<S: Simulation> Server<S> {
    /// An action game that begins from `sim`: see [`MatchConfig::action`].
    pub fn action(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::with(MatchConfig::action(), sim, rules)
    }

    /// A strategy game that begins from `sim`: see [`MatchConfig::strategy`].
    pub fn strategy(sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::with(MatchConfig::strategy(), sim, rules)
    }

    /// A match of any configuration that begins from `sim`.
    pub fn with(config: MatchConfig, sim: S, rules: impl Into<Arc<S::Rules>>) -> Self {
        Server::of(Blueprint::with(config, sim, rules))
    }

    /// A match that is made by a blueprint.
    pub fn of(blueprint: Blueprint<S>) -> Self {
        Server {
            blueprint,
            public: Vec::new(),
            keys: Vec::new(),
            lineages_file: None,
            bans_file: None,
            journal: None,
            durability: Durability::default(),
            on_journal_failure: OnJournalFailure::default(),
            keep: None,
            incidents: None,
            drain_within: Duration::ZERO,
            limits: Limits::default(),
            admin: None,
            admin_socket: None,
            fleet: None,
            admin_token: None,
            heeds_stop: false,
        }
    }

    /// Who answers the game's queries; without one they stay unanswered.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolver<S>) -> Self {
        self.blueprint = self.blueprint.resolver(resolver);
        self
    }

    /// Who admits commands and claims; without one all within the bounds are.
    #[must_use]
    pub fn referee(mut self, referee: impl Referee<S>) -> Self {
        self.blueprint = self.blueprint.referee(referee);
        self
    }

    /// How the match is run; what was said of its seats and its build stays.
    #[must_use]
    pub fn policies(mut self, policies: MatchConfig) -> Self {
        self.blueprint = self.blueprint.policies(policies);
        self
    }

    /// Seats, 1..=16; 8 if nothing is said.
    #[must_use]
    pub fn players(mut self, seats: usize) -> Self {
        self.blueprint = self.blueprint.players(seats);
        self
    }

    /// What this build calls itself: told in the journal and the handshake, never compared.
    #[must_use]
    pub fn build(mut self, name: &str) -> Self {
        self.blueprint = self.blueprint.build(name);
        self
    }

    /// How many may watch, and how many ticks behind: up to 16 at once (0 ticks), or 512 who are 180 to 900 ticks
    /// behind. Nobody, if nothing is said.
    #[must_use]
    pub fn spectators(mut self, max: usize, delay_ticks: u32) -> Self {
        self.blueprint = self.blueprint.spectators(max, delay_ticks);
        self
    }

    /// The key whose tickets are good; without one it is a new one, and tickets come from
    /// [`Running::ticket`] only.
    #[must_use]
    pub fn key(mut self, key: TicketKey) -> Self {
        self.keys = vec![key];
        self
    }

    /// The key before, of which tickets are still good; called behind [`key`](Self::key), which makes all new ones.
    #[must_use]
    pub fn old_key(mut self, key: TicketKey) -> Self {
        self.keys.push(key);
        self
    }

    /// What players dial, if it is not the address that is listened on.
    #[must_use]
    pub fn public(mut self, address: ServerAddress) -> Self {
        self.public.push(address);
        self
    }

    /// Where it is written down which tickets are out of date. Needed when the key outlives this match's journal, or
    /// there is none and it outlives this process.
    #[must_use]
    pub fn lineages_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.lineages_file = Some(path.into());
        self
    }

    /// Where it is written down who is banned: see [`HostConfig::bans_file`]. Without one, bans end with the process.
    #[must_use]
    pub fn bans_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.bans_file = Some(path.into());
        self
    }

    /// Keeps a journal in a new file.
    #[must_use]
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(Keep::New(path.into()));
        self
    }

    /// Takes the match of a journal up again, after a crash, and goes on with the same file; what the match was
    /// to begin from is not used then.
    #[must_use]
    pub fn resume(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(Keep::Resume(path.into()));
        self
    }

    /// What the journal is to survive; [`Durability::Process`] if nothing is said.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What becomes of the match if the journal cannot be written; it ends if nothing is said.
    #[must_use]
    pub fn on_journal_failure(mut self, on_failure: OnJournalFailure) -> Self {
        self.on_journal_failure = on_failure;
        self
    }

    /// What becomes of other journals in the journal's folder whose matches are over: looked after at the start, and while
    /// the match runs. They stay as they are if nothing is said.
    #[must_use]
    pub fn keep_journals(mut self, keep: KeepJournals) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Whoever asks the process to end before the server [runs](Running::run_until_stopped) is heard then.
    pub(crate) fn heeding_stop(mut self) -> Self {
        self.heeds_stop = true;
        self
    }

    /// Where incident files go, if not beside the journal.
    #[must_use]
    pub fn incidents(mut self, folder: impl Into<PathBuf>) -> Self {
        self.incidents = Some(folder.into());
        self
    }

    /// For how long the match may play on once the process was asked to end: see [`Host::drain`]. Not at all, if nothing is
    /// said.
    #[must_use]
    pub fn drain_within(mut self, time: Duration) -> Self {
        self.drain_within = time;
        self
    }

    /// From where on newcomers are refused, and players spared what they miss least: see [`Limits`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where operators may ask: an address on loopback.
    #[must_use]
    pub fn admin(mut self, address: SocketAddr) -> Self {
        self.admin = Some(address);
        self
    }

    /// The file with the token of whoever may change something through the admin port; made if it is not there, for its owner
    /// alone. Without one an admin port only tells.
    #[must_use]
    pub fn admin_token(mut self, path: impl Into<PathBuf>) -> Self {
        self.admin_token = Some(path.into());
        self
    }

    /// A Unix socket where operators may ask too: a file that is made for its owner alone. Who can open it needs no token.
    #[must_use]
    pub fn admin_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.admin_socket = Some(path.into());
        self
    }

    /// Makes it a member of a fleet: see [`HostConfig::fleet`].
    #[must_use]
    pub fn fleet(mut self, sidecar: Sidecar) -> Self {
        self.fleet = Some(sidecar);
        self
    }

    /// The length of a tick, when nothing slows it.
    pub(crate) fn tick(&self) -> Duration {
        self.blueprint.tick()
    }

    /// What a journal must be of to go on here.
    pub(crate) fn hello(&self) -> Result<Hello, MatchStartError> {
        Hello::of::<S>(&self.blueprint.rules, &self.blueprint.config.build)
            .map_err(MatchStartError::from)
    }

    /// All of a start before it takes an address.
    fn prepare(self, listen: SocketAddr) -> Result<Prepared<S>, HostError> {
        // Each field by name: one that is forgotten here is an error.
        let Server {
            blueprint,
            public,
            keys,
            lineages_file,
            bans_file,
            journal,
            durability,
            on_journal_failure,
            keep,
            incidents,
            drain_within,
            limits,
            admin,
            admin_socket,
            fleet,
            admin_token,
            heeds_stop,
        } = self;
        let blueprint = blueprint.dated();
        let config = &blueprint.config;
        config.check().map_err(MatchStartError::from)?;
        if journal.is_some()
            && let Some(lacking) = lacks(!keys.is_empty(), listen.port())
        {
            logged::warn!(
                %lacking,
                "the match can be taken up from its journal after a crash, but its players cannot return to it"
            );
        }
        let keys = match keys.is_empty() {
            true => vec![TicketKey::generate()],
            false => keys,
        };
        // Twice as many, so that who returns need not wait for its old session to time out.
        let people = config.players_max + config.spectators.max;
        let sessions_max = (2 * people).clamp(1, SESSIONS_MAX);
        let host = HostConfig {
            game: S::NAME.to_owned(),
            listen,
            public,
            keys,
            lineages_file,
            bans_file,
            incidents,
            back_after: BACK_AFTER,
            drain_within,
            sessions_max,
            admin,
            admin_socket,
            fleet,
            admin_token,
            limits,
        };
        Ok(Prepared {
            blueprint,
            host,
            journal,
            durability,
            on_journal_failure,
            keep,
            heeds_stop,
        })
    }

    /// Checks whether it would start, up to where it takes an address; makes nothing.
    pub(crate) fn rehearse(self, listen: SocketAddr) -> Result<(), HostError> {
        let prepared = self.prepare(listen)?;
        prepared.host.check()?;
        match prepared.journal {
            // The journal says what it goes on from.
            Some(Keep::Resume(_)) => Ok(()),
            Some(Keep::New(_)) | None => Ok(prepared.blueprint.make().map(drop)?),
        }
    }

    /// Starts: from here on it runs on threads of its own. Port 0 takes a free one.
    ///
    /// # Errors
    /// [`HostError`]: an address that cannot be listened on, a configuration out of range, files that cannot
    /// be used.
    ///
    /// # Panics
    /// Within a tokio runtime: there, use [`Host`].
    pub fn listen(self, address: &str) -> Result<Running<S>, HostError> {
        let listen = address.parse().map_err(|_| HostError::Address {
            got: address.to_owned(),
        })?;
        let Prepared {
            blueprint,
            host,
            journal,
            durability,
            on_journal_failure,
            keep,
            heeds_stop,
        } = self.prepare(listen)?;
        let socket = bind(listen)?;
        let admin_port = host.admin.map(admin::bind).transpose()?;
        let threads = threads(heeds_stop)?;
        let runtime = &threads.0;
        let (game, resumed, new) = match journal {
            Some(Keep::Resume(path)) => {
                let (game, journal) = blueprint.resume(path)?;
                (game, Some(journal), None)
            }
            Some(Keep::New(path)) => (blueprint.make()?, None, Some(path)),
            None => (blueprint.make()?, None, None),
        };
        let (host, game) = runtime.block_on(async {
            let host = Host::start_bound(socket, admin_port, host).await?;
            // Only once the address is ours: a server that cannot start leaves no file behind.
            let created = new.map(Journal::create).transpose()?;
            let journal = resumed.or(created).map(|journal| {
                journal
                    .durability(durability)
                    .on_failure(on_journal_failure)
            });
            let path = journal.as_ref().map(Journal::found_from_anywhere);
            let game = host.add_match(MATCH, game, journal).await?;
            if let Some((folder, keep)) = path.as_deref().and_then(Path::parent).zip(keep) {
                tokio::spawn(keeping::look_after(folder.to_owned(), keep));
            }
            Ok::<_, HostError>((host, game))
        })?;
        Ok(Running {
            game,
            on_threads: OnThreads::new(host, threads),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding A3-11: a match was taken up, and none of its players could come back.
    #[test]
    fn a_journal_whose_players_cannot_return_is_warned_of() {
        assert_eq!(lacks(true, 7_777), None);
        let both = lacks(false, 0).unwrap();
        assert!(both.contains(lacks(false, 7_777).unwrap()));
        assert!(both.contains("a fixed port") && lacks(true, 0).unwrap().contains("a fixed port"));
    }
}
