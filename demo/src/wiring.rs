//! Creates Powderkeg servers and clients that use the network. The terms of a match are in [`terms`].

use std::sync::Arc;

use powderkeg_game::{Arbiter, Game, GameShow, Judge, Luck, Rules, terms};
use twinstep_client::{Client, ClientStartError, SessionConfig};
use twinstep_host::{Blueprint, Server};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_udp::{Ticket, UdpClient};

/// Creates a server of one match, which does not listen yet.
///
/// # Panics
/// If the level has a wall without size. The built-in level does not.
#[must_use]
pub fn server(rules: &Arc<Rules>, seed: u64, players_max: usize) -> Server<Game> {
    Server::of(blueprint(rules, seed, players_max))
}

/// Creates the blueprint of a match.
///
/// # Panics
/// Like [`server`].
#[must_use]
pub fn blueprint(rules: &Arc<Rules>, seed: u64, players_max: usize) -> Blueprint<Game> {
    // Secrets must not be derivable from the seed, which is part of every world.
    let arbiter = Arbiter::new(rules, Luck::Drawn(random_seed)).expect("walls with a size");
    Blueprint::action(Game::new(rules, seed), rules.clone())
        .build_name(terms::BUILD)
        .players(players_max)
        .policies(terms::policies())
        .resolver(arbiter)
        .referee(Judge)
}

fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    u64::from_le_bytes(bytes)
}

/// Creates a client that dials the ticket's server, through a simulated network if `link` is given.
///
/// # Errors
/// If the ticket is for a different program or out of date, or a socket cannot be opened.
pub fn client(
    ticket: &Ticket,
    rules: &Arc<Rules>,
    link: Option<(LinkProfile, u64)>,
) -> Result<Client<Game, GameShow>, ClientStartError> {
    dial(ticket, terms::session(rules), link)
}

/// Like [`client`], with a given session, for example with [names](SessionConfig::names).
///
/// # Errors
/// The errors of [`client`].
pub fn dial(
    ticket: &Ticket,
    session: SessionConfig<Game, GameShow>,
    link: Option<(LinkProfile, u64)>,
) -> Result<Client<Game, GameShow>, ClientStartError> {
    let mut dialled = 0;
    Client::connect_through(ticket, session, move |transport: UdpClient| match link {
        Some((profile, seed)) => {
            // Each path gets its own seed.
            dialled += 1;
            transport.with_conditioner(profile, seed.wrapping_add(dialled - 1))
        }
        None => transport,
    })
}
