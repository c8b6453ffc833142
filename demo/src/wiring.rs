//! How Powderkeg becomes a server and clients: which of its functions answers which question of Twinstep.
//!
//! ```text
//!              server                       client
//!   resolver   Arbiter::resolve             speculate
//!   referee    Judge                        —
//!   show       —                            GameShow
//! ```

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::client::StartError;
use twinstep_client::{Client, SessionConfig};
use twinstep_core::Key;
use twinstep_core::simnet::LinkProfile;
use twinstep_server::MatchConfig;
use twinstep_server::config::Claims;
use twinstep_server::host::Server;
use twinstep_udp::{Ticket, UdpClient};

use crate::game::{self, Arbiter, Game, Judge, Luck, Query, Rules};
use crate::game_show::GameShow;

/// What this build calls itself.
pub const BUILD: &str = concat!("powderkeg ", env!("CARGO_PKG_VERSION"));

/// The rules that the command line plays by: the campaign, or an endless arena with so many enemies.
#[must_use]
pub fn rules(enemies: Option<u16>) -> Arc<Rules> {
    Arc::new(enemies.map_or_else(Rules::campaign, Rules::arena))
}

/// A server of one match, not listening yet.
///
/// # Panics
/// If the level has a wall without size; the built-in one has none.
#[must_use]
pub fn server(rules: &Arc<Rules>, seed: u64, players_max: usize) -> Server<Game> {
    // What only the server may know does not follow from the seed, which every world tells.
    let arbiter = Arbiter::new(rules, Luck::Drawn(drawn)).expect("walls with a size");
    Server::action(Game::new(rules, seed), rules.clone())
        .build(BUILD)
        .players(players_max)
        .policies(policies())
        .resolver(arbiter)
        .referee(Judge)
}

/// The policies of a match unless other ones are asked for: those of an action game, but whoever does not claim
/// its own death is claimed for after two thirds of a second.
#[must_use]
pub fn policies() -> MatchConfig {
    MatchConfig {
        claims: Claims::OwnerWithin(CLAIM_TICKS),
        ..MatchConfig::action()
    }
}

/// Longer than a claim takes on a bad link, so that the owner is nearly always first; short enough for the 64
/// ticks that a referee can look back.
pub(crate) const CLAIM_TICKS: u32 = 40;

/// A number that nobody can foresee.
fn drawn() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    u64::from_le_bytes(bytes)
}

/// A client that dials the ticket's server, through a simulated network if one is given.
///
/// # Errors
/// A ticket for something else or out of date, or a socket that cannot be opened.
pub fn client(
    ticket: &Ticket,
    rules: &Arc<Rules>,
    link: Option<(LinkProfile, u64)>,
) -> Result<Client<Game, GameShow>, StartError> {
    dial(ticket, session(rules), link)
}

/// As [`client`], with a session that was set up further: with [names](SessionConfig::names), for example.
///
/// # Errors
/// As [`client`].
pub fn dial(
    ticket: &Ticket,
    session: SessionConfig<Game, GameShow>,
    link: Option<(LinkProfile, u64)>,
) -> Result<Client<Game, GameShow>, StartError> {
    let mut dialled = 0;
    Client::connect_through(ticket, session, move |transport: UdpClient| match link {
        Some((profile, seed)) => {
            // Each path has luck of its own.
            dialled += 1;
            transport.with_conditioner(profile, seed.wrapping_add(dialled - 1))
        }
        None => transport,
    })
}

/// What a client's session is made of.
#[must_use]
pub fn session(rules: &Arc<Rules>) -> SessionConfig<Game, GameShow> {
    let mut config = SessionConfig::new(rules.clone())
        .speculate(|game: &Game, rules: &Rules, _: Key, query: &Query| {
            game::speculate(game, rules, query)
        })
        .resolve(|game: &Game, rules: &Rules, _: Key, query: &Query| {
            game::speculate(game, rules, query)
        })
        .show(GameShow, GameShow::SMOOTHING);
    config.build = BUILD.to_owned();
    config
}

/// The wall clock since 1970: for tickets and names of files.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
pub fn unix_now() -> Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}
