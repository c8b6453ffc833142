//! The subcommands `serve`, `key` and `ticket`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, value_parser};
use powderkeg_game::{Game, terms};
use powderkeg_view::say;
use powderkeg_view::time::unix_now;
use twinstep_core::Simulation;
use twinstep_host::{JOURNAL_EXTENSION, Stopped};
use twinstep_ops::operator::{ManySettings, ReadSettings, Settings};
use twinstep_protocol::lineage::Lineages;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    Holder, Identity, LineageFile, MatchId, NextTicket, Role, SESSION_TIMEOUT, Ticket, TicketKey,
    TicketSpec,
};

use crate::args::TicketArgs;
use crate::failure::Failure;
use crate::policies::PolicyArgs;
use crate::{signals, wiring};

const MATCH: u64 = 1;
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(86_400);

/// The settings of every server, and Powderkeg's own.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("max_players", |arg| {
    arg.value_parser(value_parser!(u64).range(1..=8)).help("Maximum number of players per match, 1 to 8")
}))]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    many: ManySettings,
    /// Start from a saved game (`powderkeg admin save-game`); ignored if a match is resumed from a journal
    #[arg(long, value_name = "FILE", conflicts_with = "matches")]
    load: Option<PathBuf>,
    /// Play an endless arena with this many enemies instead of the campaign; players must join with the same number
    #[arg(long, value_name = "N")]
    enemies: Option<u16>,
    /// Seed of the match [default: taken from the clock]
    #[arg(long, value_name = "K")]
    seed: Option<u64>,
    #[command(flatten)]
    policies: PolicyArgs,
    #[arg(skip)]
    pub(crate) reading: ReadSettings,
}

pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    start(args).map_err(|failure| match failure {
        Failure::Setting(error) => args.reading.place(error).into(),
        other => other,
    })
}

fn start(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let ServeArgs {
        settings,
        many,
        reading,
        ..
    } = args;
    if settings.print_config {
        say::out(reading.printed.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    reading.warn_of_unknown_variables();
    let rules = terms::rules(args.enemies);
    let seed = args.seed.unwrap_or(unix_now().as_secs());
    let policies = args.policies.config();
    let check_report = || {
        say::out(ReadSettings::check_report().trim_end())?;
        Ok(ExitCode::SUCCESS)
    };
    if many.matches.is_some() {
        let players = settings.max_players as usize;
        let template = move |id: MatchId| {
            wiring::blueprint(&rules, seed.wrapping_add(id.0), players).policies(policies.clone())
        };
        if settings.check {
            settings.check_many(many, template)?;
            return check_report();
        }
        let server = settings.clone().listen_on_demand(many, template)?;
        tracing::info!(address = %server.running().local_addr(), seed, enemies = args.enemies, "serving Powderkeg");
        return end_of(server.run_until_stopped());
    }
    let mut server = wiring::server(&rules, seed, 1).policies(policies);
    if let Some(file) = &args.load {
        server = server.load(file);
    }
    if settings.check {
        settings.check_one(server)?;
        return check_report();
    }
    let server = settings.clone().listen(server)?;
    tracing::info!(address = %server.running().local_addr(), seed, enemies = args.enemies, "serving Powderkeg");
    end_of(server.run_until_stopped())
}

pub(crate) fn end_of(stopped: std::io::Result<Stopped>) -> Result<ExitCode, Failure> {
    match stopped.map_err(signals::no_signals)? {
        Stopped::Over(CloseCode::Fault) => Err(Failure::Died),
        // The exit code of a program ended by SIGINT.
        Stopped::AtOnce => Ok(ExitCode::from(130)),
        Stopped::Over(_) | Stopped::InOrder => Ok(ExitCode::SUCCESS),
    }
}

pub(crate) fn key(file: &Path) -> Result<ExitCode, Failure> {
    TicketKey::generate().save(file)?;
    say::err(format_args!(
        "wrote a new key to {}; keep it secret",
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn ticket(args: &TicketArgs) -> Result<ExitCode, Failure> {
    let key = TicketKey::load(&args.key_file)?;
    let seats = if args.spectate { 0 } else { args.seats };
    // Makes the ticket newer than all revoked ones, if the server records them in this file.
    let known = LineageFile::load(beside(&args.key_file))?;
    let holder = Holder {
        match_id: args.match_id,
        identity: Identity::new(args.player.clone(), Role::of_seats(seats.into())),
    };
    let issued_since_unix_ms = known.get(&holder).map(Lineages::issued_since_unix_ms);
    let next = NextTicket {
        issued_since_unix_ms: issued_since_unix_ms.unwrap_or(0),
        ..NextTicket::default()
    };
    let spec = TicketSpec {
        game: Game::NAME,
        wire_version: u32::from(WIRE_VERSION),
        identity: &args.player,
        match_id: args.match_id,
        seats,
        servers: &args.server,
        life: TICKET_LIFE,
        timeout: SESSION_TIMEOUT,
        now_unix: unix_now(),
    };
    let mut ticket = Ticket::issue_next(&key, &spec, &next)?;
    if let Some(web) = &args.web {
        ticket = ticket.with_web(web);
    }
    match (&args.out, &args.page) {
        (Some(file), _) => ticket.save(file)?,
        (None, Some(page)) => say::out(link(page, &ticket))?,
        (None, None) => say::out(ticket.to_line())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A link that joins with a ticket. The secret follows the #, and no browser sends that part to a server.
pub(crate) fn link(page: &str, ticket: &Ticket) -> String {
    format!("{page}#{}", ticket.to_line())
}

pub(crate) fn beside(key_file: &Path) -> PathBuf {
    with_end(key_file, ".lineages")
}

pub(crate) fn web_beside(key_file: &Path) -> PathBuf {
    with_end(key_file, ".web")
}

fn with_end(key_file: &Path, end: &str) -> PathBuf {
    let mut path = key_file.as_os_str().to_owned();
    path.push(end);
    path.into()
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Failure::JournalFolder {
        path: folder.to_owned(),
        source,
    })
}

/// Returns a name for a new journal in a folder, and creates the folder if needed.
pub(crate) fn new_journal(folder: &Path) -> Result<PathBuf, Failure> {
    make_folder(folder)?;
    let now = unix_now().as_millis();
    Ok(folder.join(format!("match-{MATCH}-{now}.{JOURNAL_EXTENSION}")))
}
