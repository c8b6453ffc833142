//! A server for others: keys, tickets, journals, and the server itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use powderkeg_game::{Game, terms};
use powderkeg_view::say;
use powderkeg_view::time::unix_now;
use tracing_subscriber::EnvFilter;
use twinstep_core::Simulation;
use twinstep_host::{JOURNAL_EXTENSION, Stopped};
use twinstep_ops::operator::{GivenFlags, Operator, Setting, Wanted};
use twinstep_protocol::lineage::Lineages;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Holder, LineageFile, NextTicket, Ticket, TicketKey, TicketSpec};

use crate::args::TicketArgs;
use crate::failure::Failure;
use crate::{policies, signals, wiring};

/// The match that a server runs.
const MATCH: u64 = 1;
/// A ticket can be used for a day.
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(86_400);
/// A session is over after so long a silence.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What `powderkeg serve` was told by flags; the environment and the file of settings are read when it is run.
#[derive(Clone, Debug)]
pub(crate) struct ServeArgs(GivenFlags);

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ServeArgs, clap::Error> {
        Ok(ServeArgs(operator().given(matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ServeArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ServeArgs {
    fn augment_args(command: Command) -> Command {
        operator().flags(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        operator().flags(command)
    }
}

/// All that can be chosen of a server: what every server has, and what Powderkeg adds.
pub(crate) fn operator() -> Operator {
    let own = [
        Setting::number(
            "enemies",
            0..=u16::MAX.into(),
            "enemies",
            "Not the campaign, but an endless arena with so many enemies; players must join with the same number",
        ),
        Setting::number(
            "seed",
            0..=u64::MAX,
            "(any number)",
            "The seed of the match",
        )
        .or_else("the clock"),
        Setting::text(
            "log",
            "FILTER",
            filter,
            "What is logged to standard error, such as info or twinstep_host=debug",
        )
        .or_else("the environment's RUST_LOG, else info")
        .inherited(),
        Setting::one_of(
            "log-format",
            &[
                ("text", "a row for a reader"),
                ("json", "an object for a program that collects them"),
            ],
            "How a line of the log is written",
        )
        .or("text")
        .inherited(),
    ];
    let all = own.into_iter().chain(policies::settings());
    all.fold(
        Operator::new("powderkeg serve").players(1..=8, 8).many(),
        Operator::setting,
    )
}

fn filter(text: &str) -> Result<(), String> {
    let read = EnvFilter::try_new(text);
    read.map(drop)
        .map_err(|error| format!("expected a filter such as info or twinstep_host=debug: {error}"))
}

/// What these flags, the environment and the file ask for.
pub(crate) fn wanted(
    args: &ServeArgs,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Wanted, Failure> {
    Ok(operator().read(&args.0, environment)?)
}

/// What a server is to log, and how, if that was chosen.
pub(crate) fn log(args: &ServeArgs) -> Result<(Option<String>, Option<String>), Failure> {
    Ok(match wanted(args, std::env::vars_os())? {
        Wanted::Server(chosen) | Wanted::Check(chosen) => {
            let text = |name| chosen.text(name).map(str::to_owned);
            (text("log"), text("log-format"))
        }
        Wanted::Words(_) => (None, None),
    })
}

/// Runs a server until it is asked to end.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let (chosen, checks) = match wanted(args, std::env::vars_os())? {
        Wanted::Words(words) => {
            say::out(words.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        Wanted::Check(chosen) => (chosen, true),
        Wanted::Server(chosen) => (chosen, false),
    };
    let rules = terms::rules(chosen.get("enemies"));
    let seed = chosen.get("seed").unwrap_or(unix_now().as_secs());
    if chosen.get::<usize>("matches").is_some() {
        let players = chosen.get("max-players").unwrap_or(1);
        let policies = policies::config(&chosen);
        let template = move |id: u64| {
            wiring::blueprint(&rules, seed.wrapping_add(id), players).policies(policies.clone())
        };
        if checks {
            say::out(chosen.check_many(template)?.trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        let server = chosen.listen_many(template)?;
        tracing::info!(address = %server.running().local_addr(), seed, "Powderkeg is served");
        return end_of(server.run_until_stopped());
    }
    let server = wiring::server(&rules, seed, 1).policies(policies::config(&chosen));
    if checks {
        say::out(chosen.check(server)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let server = chosen.listen(server)?;
    tracing::info!(address = %server.running().local_addr(), seed, enemies = rules.enemies, "Powderkeg is served");
    end_of(server.run_until_stopped())
}

/// What a server's end means for whoever started it.
pub(crate) fn end_of(stopped: std::io::Result<Stopped>) -> Result<ExitCode, Failure> {
    match stopped.map_err(signals::no_signals)? {
        Stopped::Over(CloseCode::Fault) => Err(Failure::Died),
        // As a program that a signal ends.
        Stopped::AtOnce => Ok(ExitCode::from(130)),
        Stopped::Over(_) | Stopped::InOrder => Ok(ExitCode::SUCCESS),
    }
}

/// Makes a key file.
pub(crate) fn key(file: &Path) -> Result<ExitCode, Failure> {
    TicketKey::generate().save(file)?;
    say::err(format_args!(
        "{} is the new key: keep it secret",
        file.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints a ticket, or writes it to a file that is its owner's alone.
pub(crate) fn ticket(args: &TicketArgs) -> Result<ExitCode, Failure> {
    let key = TicketKey::load(&args.key_file)?;
    let seats = if args.spectate { 0 } else { args.seats };
    // What was revoked, if this is where the server writes that down.
    let known = LineageFile::load(beside(&args.key_file))?;
    let holder = Holder {
        match_id: args.match_id,
        watches: args.spectate,
        identity: args.player.clone(),
    };
    let made_unix_ms_min = known.get(&holder).map(Lineages::made_unix_ms_min);
    let next = NextTicket {
        made_unix_ms_min: made_unix_ms_min.unwrap_or(0),
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
        timeout: TIMEOUT,
        now_unix: unix_now(),
    };
    let ticket = Ticket::issue_next(&key, &spec, &next)?;
    match &args.out {
        Some(file) => ticket.save(file)?,
        None => say::out(ticket.to_line())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where it is written down which tickets are out of date: the key file's name and `.lineages`.
pub(crate) fn beside(key_file: &Path) -> PathBuf {
    let mut path = key_file.as_os_str().to_owned();
    path.push(".lineages");
    path.into()
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Failure::JournalFolder {
        path: folder.to_owned(),
        source,
    })
}

/// A name for a new journal in a folder, which is made if it is not there.
pub(crate) fn new_journal(folder: &Path) -> Result<PathBuf, Failure> {
    make_folder(folder)?;
    let now = unix_now().as_millis();
    Ok(folder.join(format!("match-{MATCH}-{now}.{JOURNAL_EXTENSION}")))
}
