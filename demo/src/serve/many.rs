//! A server of many matches: each is made when somebody with a ticket comes for it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::{Game, Rules};
use twinstep_core::Simulation;
use twinstep_server::host::{HostConfig, OnDemand, RunningMany};
use twinstep_udp::{SESSIONS_MAX, TicketKey};

use super::{TICKS_PER_SECOND, beside, end_of, make_folder, named_after};
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::wiring;

/// Runs a server of up to so many matches until it is asked to end.
pub(super) fn serve(
    args: &ServeArgs,
    at_once: usize,
    rules: &Arc<Rules>,
    key: TicketKey,
    seed: u64,
) -> Result<ExitCode, Failure> {
    let (players, watchers) = (usize::from(args.max_players), usize::from(args.spectators));
    let (policies, delay_ticks) = (
        args.policies.config(),
        args.spectator_delay * TICKS_PER_SECOND,
    );
    let of_each = rules.clone();
    let mut matches = OnDemand::new(move |id| {
        wiring::blueprint(&of_each, seed.wrapping_add(id), players)
            .policies(policies.clone())
            .spectators(watchers, delay_ticks)
    })
    .at_once(at_once)
    .durability(args.durability.into())
    .on_journal_failure(args.on_journal_failure.into());
    if let Some(folder) = &args.journal {
        make_folder(folder)?;
        matches = matches.journals(folder);
    }
    let config = HostConfig {
        public: args.public.into_iter().collect(),
        serials_file: Some(beside(&args.key_file)),
        bans_file: Some(named_after(&args.key_file, ".bans")),
        admin_token: Some(named_after(&args.key_file, ".admin")),
        admin: args.admin,
        incidents: args.journal.clone(),
        drain_within: Duration::from_secs(args.drain.into()),
        // Twice as many as there may be people, so that who returns need not wait for its old session to time out.
        sessions_max: (2 * at_once * (players + watchers)).min(SESSIONS_MAX),
        ..HostConfig::new(Game::NAME, args.listen, key)
    };
    let server = RunningMany::start(matches, config)?;
    tracing::info!(address = %server.local_addr(), seed, at_once, enemies = rules.enemies, "Powderkeg is served");
    end_of(server.run_until_stopped())
}
