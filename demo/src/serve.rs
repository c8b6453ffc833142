//! A server for others: keys, tickets, journals, and the server itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use powderkeg_game::{Game, Rules, terms};
use powderkeg_view::say;
use powderkeg_view::time::unix_now;
use twinstep_core::Simulation;
use twinstep_core::bounds::{
    SPECTATOR_DELAY_MAX, SPECTATOR_DELAY_MIN, SPECTATORS_DELAYED_MAX, SPECTATORS_LIVE_MAX,
};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::{CloseCode, Hello};
use twinstep_server::host::{
    Durability, JOURNAL_EXTENSION, OnJournalFailure, Stopped, newest_unfinished,
};
use twinstep_udp::{SafeSerials, SerialOf, Ticket, TicketKey, TicketSpec};

use crate::args::{DurabilityArg, FailureArg, ServeArgs, TicketArgs};
use crate::failure::Failure;
use crate::{signals, wiring};

mod many;

/// The match that a server runs.
const MATCH: u64 = 1;
/// Of the action preset.
const TICKS_PER_SECOND: u32 = 60;
/// A ticket can be used for a day.
pub(crate) const TICKET_LIFE: Duration = Duration::from_secs(86_400);
/// A session is over after so long a silence.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a server until it is asked to end.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    check_spectators(args)?;
    let key = TicketKey::load(&args.key_file)?;
    let rules = terms::rules(args.enemies);
    let seed = args.seed.unwrap_or(unix_now().as_secs());
    if let Some(at_once) = args.matches {
        return many::serve(args, at_once.into(), &rules, key, seed);
    }
    let mut server = wiring::server(&rules, seed, args.max_players.into())
        .policies(args.policies.config())
        .spectators(
            args.spectators.into(),
            args.spectator_delay * TICKS_PER_SECOND,
        )
        .key(key)
        .serials_file(beside(&args.key_file))
        .bans_file(named_after(&args.key_file, ".bans"))
        .admin_token(named_after(&args.key_file, ".admin"))
        .drain_within(Duration::from_secs(args.drain.into()))
        .durability(args.durability.into())
        .on_journal_failure(args.on_journal_failure.into());
    if let Some(public) = args.public {
        server = server.public(public);
    }
    if let Some(admin) = args.admin {
        server = server.admin(admin);
    }
    if let Some(other) = args.take_over {
        server = server.take_over(other);
    }
    if let Some(folder) = &args.journal {
        make_folder(folder)?;
        server = match unfinished(args, folder, &rules)? {
            Some(path) => server.resume(path),
            None => {
                let path = new_journal(folder)?;
                tracing::info!(path = %path.display(), "a new journal");
                server.journal(path)
            }
        };
    }
    let server = server.listen(&args.listen.to_string())?;
    tracing::info!(address = %server.local_addr(), seed, enemies = rules.enemies, "Powderkeg is served");
    end_of(server.run_until_stopped())
}

impl From<DurabilityArg> for Durability {
    fn from(said: DurabilityArg) -> Durability {
        match said {
            DurabilityArg::Process => Durability::Process,
            DurabilityArg::Power => Durability::Power,
        }
    }
}

impl From<FailureArg> for OnJournalFailure {
    fn from(said: FailureArg) -> OnJournalFailure {
        match said {
            FailureArg::End => OnJournalFailure::End,
            FailureArg::GoOn => OnJournalFailure::GoOn,
        }
    }
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

/// Who watches at once costs the match more than who is behind.
fn check_spectators(args: &ServeArgs) -> Result<(), Failure> {
    let (max, delay_s) = (usize::from(args.spectators), args.spectator_delay);
    let delay = SPECTATOR_DELAY_MIN / TICKS_PER_SECOND..=SPECTATOR_DELAY_MAX / TICKS_PER_SECOND;
    let (flag, reason) = match delay_s {
        0 if max <= SPECTATORS_LIVE_MAX => return Ok(()),
        0 => (
            "spectators",
            format!(
                "expected at most {SPECTATORS_LIVE_MAX} without a delay, got {max}; {SPECTATORS_DELAYED_MAX} may watch \
                 with --spectator-delay {}",
                delay.start()
            ),
        ),
        _ if !delay.contains(&delay_s) => (
            "spectator-delay",
            format!(
                "expected 0, or {} to {} seconds, got {delay_s}",
                delay.start(),
                delay.end()
            ),
        ),
        _ if max <= SPECTATORS_DELAYED_MAX => return Ok(()),
        _ => (
            "spectators",
            format!("expected at most {SPECTATORS_DELAYED_MAX}, got {max}"),
        ),
    };
    Err(Failure::Flag { flag, reason })
}

/// The match that goes on, if one was cut off.
fn unfinished(args: &ServeArgs, folder: &Path, rules: &Rules) -> Result<Option<PathBuf>, Failure> {
    if args.new_match {
        return Ok(None);
    }
    let hello = Hello::of::<Game>(rules, terms::BUILD).expect("rules without a NaN");
    let found = newest_unfinished(folder, &hello)?;
    for (path, why) in &found.left_alone {
        if why.is_strange() {
            tracing::warn!(path = %path.display(), %why, "a journal is left alone: look whether you miss its match");
        } else {
            tracing::info!(path = %path.display(), %why, "a journal is left alone");
        }
    }
    Ok(found.newest)
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
    // What the server knows to be safe, if this is where it writes that down.
    let serials = SafeSerials::load(beside(&args.key_file))?;
    let safe = serials.safe(&SerialOf {
        match_id: args.match_id,
        watches: args.spectate,
        identity: args.player.clone(),
    });
    let spec = TicketSpec {
        game: Game::NAME,
        wire_version: u32::from(WIRE_VERSION),
        identity: &args.player,
        match_id: args.match_id,
        seats,
        servers: &[args.server],
        life: TICKET_LIFE,
        timeout: TIMEOUT,
        now_unix: unix_now(),
    };
    let ticket = Ticket::issue_after(&key, &spec, safe)?;
    match &args.out {
        Some(file) => ticket.save(file)?,
        None => say::out(ticket.to_line())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where it is written down which tickets are out of date: the key file's name and `.serials`.
pub(crate) fn beside(key_file: &Path) -> PathBuf {
    named_after(key_file, ".serials")
}

/// A file that belongs to a key: also who is banned (`.bans`) and the token of the admin port (`.admin`). Who takes over
/// has the same key.
fn named_after(key_file: &Path, end: &str) -> PathBuf {
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

/// A name for a new journal in a folder, which is made if it is not there.
pub(crate) fn new_journal(folder: &Path) -> Result<PathBuf, Failure> {
    make_folder(folder)?;
    let now = unix_now().as_millis();
    Ok(folder.join(format!("match-{MATCH}-{now}.{JOURNAL_EXTENSION}")))
}
