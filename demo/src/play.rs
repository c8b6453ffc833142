//! The subcommands `play` and `join`: a match on this machine with bots, or the match of a ticket.

use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use powderkeg_game::{Game, GameShow, Pad, Rules, Sticks, terms};
use powderkeg_view::feed::{Feed, Surplus};
use powderkeg_view::time::unix_now;
use powderkeg_view::{say, stop};
use twinstep_client::{Client, SessionConfig, SessionEnd};
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::{Mwc, PlayerSet};
use twinstep_host::Running;
use twinstep_protocol::names::Name;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::MatchConfig;
use twinstep_udp::{CloseReason, Ticket, TicketError, TicketKey};

use crate::args::{JoinArgs, NameArgs, PlayArgs, link};
use crate::bots::{self, BotClient, BotHands, BotsOptions};
use crate::failure::Failure;
use crate::inspect::{tape_to, taped};
use crate::report::line_of;
use crate::serve::beside;
use crate::view::{self, HasPlayed, Shown, ViewChoice};
use crate::{signals, wiring};

/// The maximum number of players in a match that others can join.
const SEATS: usize = 8;
const PASTED_BYTES_MAX: u64 = 16 << 10;
// A full or busy server is dialled this many times, with this pause in between, for a minute in total.
const FULL_DIALS_MAX: u32 = 30;
const FULL_PAUSE: Duration = Duration::from_secs(2);
const SEATED_WITHIN: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(2);

/// Plays with a server in this process, bots, and the local players (or one more bot); with `--listen`, others can
/// join.
pub(crate) fn play(args: &PlayArgs) -> Result<ExitCode, Failure> {
    let profile = link(&args.link)?;
    check_seats(args)?;
    let view = view::choose(&args.view);
    if view == ViewChoice::Nowhere && !needs_client(args) {
        return play_headless(args);
    }
    let rules = terms::rules(args.enemies);
    let server = start_server(args, &rules)?;
    let luck = Mwc::seed(args.seed);
    let ticket = server.ticket_for("you", args.seats)?;
    let tape = args.tape.as_deref();
    let client = wiring::dial(
        &ticket,
        taped(session(&rules, &args.names), tape),
        Some((profile, args.seed)),
    )?;
    let mut client = tape_to(client, tape)?;
    // The client joins before the bots, because only the first player may pause the match.
    for _ in 0..SEATED_WITHIN.as_millis() / PAUSE.as_millis() {
        let is_seated = !client.session().seats().is_empty();
        if is_seated || client.advance(|_| Pad::default()).is_err() {
            break;
        }
        thread::sleep(PAUSE);
    }
    let mut team = Vec::new();
    for n in 1..=u32::from(args.bots) {
        let ticket = server.ticket(&format!("bot-{n}"))?;
        team.push(bots::bot(&ticket, &rules, profile, Sticks::Keys, &luck, n)?);
    }
    let over = AtomicBool::new(false);
    // The view needs this thread, so the bots play on another one.
    let played = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let mut bots = PlayerSet::default();
                team.iter()
                    .filter_map(BotClient::seat)
                    .for_each(|bot| bots.set(bot, true));
                for bot in &mut team {
                    bot.advance(match bot.waits_for_persons(bots) {
                        true => BotHands::NoOrders,
                        false => BotHands::On,
                    });
                }
                thread::sleep(PAUSE);
            }
            team.iter_mut().for_each(BotClient::leave);
        });
        let played = play_here(args, view, client, &rules, &luck);
        over.store(true, Ordering::Relaxed);
        played
    })?;
    let Played::Over(ended) = played else {
        server.shutdown();
        return play_headless(args);
    };
    if args.stay && !stop::asked() {
        say::out("serving until all players have left; Ctrl-C ends it")?;
        server.run_until_deserted().map_err(signals::no_signals)?;
    } else {
        server.shutdown();
    }
    ended.map_or(Ok(ExitCode::SUCCESS), |ended| Err(ended.into()))
}

/// Returns `true` if a bot replaces the local players when there is no view, because others can join or a tape is
/// requested.
fn needs_client(args: &PlayArgs) -> bool {
    args.listen.is_some() || args.tape.is_some()
}

fn check_seats(args: &PlayArgs) -> Result<(), Failure> {
    let (names, seats) = (args.names.names.len(), args.seats);
    if names > usize::from(seats) {
        return Err(Failure::Flag {
            flag: "name",
            reason: format!(
                "expected at most one name for each player at this screen (--seats {seats}), got {names}"
            ),
        });
    }
    let asked = usize::from(args.bots + args.seats);
    if asked <= SEATS {
        return Ok(());
    }
    Err(Failure::Flag {
        flag: "bots",
        reason: format!(
            "expected at most {SEATS} players in total, got {asked} (bots and players at this screen)"
        ),
    })
}

fn start_server(args: &PlayArgs, rules: &Arc<Rules>) -> Result<Running<Game>, Failure> {
    let here = usize::from(args.bots + args.seats);
    let Some((listen, key_file)) = args.listen.zip(args.key_file.as_ref()) else {
        return Ok(wiring::server(rules, args.seed, here).listen("127.0.0.1:0")?);
    };
    let mut server = wiring::server(rules, args.seed, SEATS)
        .keys(TicketKey::load(key_file)?, None)
        .host(|host| host.lineages_file = Some(beside(key_file)));
    if let Some(public) = args.public {
        server = server.public(public);
    }
    let server = server.listen(&listen.to_string())?;
    say::out(format_args!("listening on {}", server.local_addr()))?;
    Ok(server)
}

fn session(rules: &Arc<Rules>, names: &NameArgs) -> SessionConfig<Game, GameShow> {
    terms::session(rules)
        .names(names.names.iter().map(Name::as_str))
        .record_journal(unix_now().as_secs())
}

enum Played {
    /// The end of the session. `None` if the player quit.
    Over(Option<SessionEnd>),
    /// There is no view, and the match has no other players.
    Unseen,
}

/// Plays the game for the local players, or for a bot if there is no view.
fn play_here(
    args: &PlayArgs,
    view: ViewChoice,
    client: Client<Game, GameShow>,
    rules: &Arc<Rules>,
    luck: &Mwc,
) -> Result<Played, Failure> {
    let feed = Feed::client(client, rules.clone(), Some(args.link.clone()))
        .titled(args.names.names.first().map_or("you", Name::as_str));
    let feed = match args.listen {
        None => feed.alone(),
        Some(_) => feed,
    };
    let client = match view::show(feed, view, &args.view)? {
        Shown::Over(ended, _) => return Ok(Played::Over(ended)),
        Shown::Nowhere(feed) if needs_client(args) => feed.into_client(),
        Shown::Nowhere(_) => None,
    };
    let Some(client) = client else {
        return Ok(Played::Unseen);
    };
    say::out(format_args!(
        "no display and no terminal, so a bot plays in your place for {} s",
        args.seconds
    ))?;
    let luck = luck.fork(twinstep_core::Key::new(3, 0));
    let mut bot = BotClient::new(client, rules.clone(), Sticks::Keys, luck);
    let rounds = Duration::from_secs(args.seconds.into()).as_millis() / PAUSE.as_millis();
    for _ in 0..rounds {
        if stop::asked() {
            break;
        }
        bot.advance(BotHands::On);
        thread::sleep(PAUSE);
    }
    bot.leave();
    Ok(Played::Over(bot.session_end()))
}

fn play_headless(args: &PlayArgs) -> Result<ExitCode, Failure> {
    let team = usize::from(args.bots) + 1;
    say::out(format_args!(
        "Powderkeg: no display and no terminal, so {team} bots play for {} s (simulated network: {}).\n",
        args.seconds, args.link
    ))?;
    let options = BotsOptions {
        players: team,
        seconds: args.seconds,
        link: link(&args.link)?,
        seed: args.seed,
        policies: MatchConfig::action(),
        sticks: Sticks::Keys,
        journal: None,
    };
    let report = bots::run(&options, &terms::rules(args.enemies))?;
    say::out(&report)?;
    Ok(ExitCode::from(u8::from(!report.faults().is_empty())))
}

pub(crate) fn join(args: &JoinArgs) -> Result<ExitCode, Failure> {
    let names = args.names.names.len();
    if names > SEATS_MAX {
        return Err(Failure::Flag {
            flag: "name",
            reason: format!("expected at most {SEATS_MAX} names, got {names}"),
        });
    }
    let is_pasted = args.ticket.as_os_str() == "-";
    let ticket = match is_pasted {
        true => paste()?,
        false => Ticket::load(&args.ticket)?,
    };
    let rules = terms::rules(args.enemies);
    let view = view::choose(&args.view);
    let on_screen = !args.bot && view != ViewChoice::Nowhere;
    signals::listen()?;
    let kept = (!is_pasted).then(|| beside_ticket(&args.ticket));
    let tape = args.tape.as_deref();
    let session = || taped(session(&rules, &args.names), tape);
    let back = match kept.as_deref() {
        Some(kept) => rejoin(kept, &ticket, session)?,
        None => None,
    };
    let mut client = match back {
        Some(Ok(client)) => client,
        Some(Err(ended)) => return finish(ended, HasPlayed(false), args.enemies),
        None => keeping(wiring::dial(&ticket, session(), None)?, kept),
    };
    client = tape_to(client, tape)?;
    if on_screen {
        let stem = args
            .ticket
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let who = args.names.names.first().map(Name::as_str);
        let feed = Feed::client(client, rules.clone(), None);
        let feed = feed.with_names(names).titled(who.unwrap_or(&stem));
        let unseen = match view::show(feed, view, &args.view)? {
            Shown::Over(ended, played) => return finish(ended, played, args.enemies),
            Shown::Nowhere(feed) => feed.into_client(),
        };
        let Some(unseen) = unseen else {
            return finish(None, HasPlayed(false), args.enemies);
        };
        say::err("no display and no terminal: a bot plays in your place; Ctrl-C ends it");
        client = unseen;
    }
    let mut bot = BotClient::new(client, rules, Sticks::Keys, Mwc::seed(ticket.id()));
    let mut unused = Surplus::of(names);
    while bot.session_end().is_none() && !stop::asked() {
        bot.advance(BotHands::On);
        if let Some(words) = unused.noticed(bot.seats()) {
            say::err(words);
        }
        thread::sleep(PAUSE);
    }
    let (stats, score) = (bot.stats(), bot.score());
    bot.leave();
    if stats.authority_tick > 0 {
        say::out(format_args!(
            "played to tick {}: points {score}, round trip {} ms, corrections of the prediction {}, effects {}, commands {}",
            stats.authority_tick,
            stats.rtt_ms_p50,
            stats.timeline.rebuilds,
            stats.cues_started,
            stats.commands_sent
        ))?;
        say::out(line_of(&stats))?;
    }
    finish(bot.session_end(), HasPlayed::of(Some(&stats)), args.enemies)
}

/// Reads the first ticket from standard input. A ticket that a mail program broke into lines is read until it is
/// complete, until an empty line, or until the end of the input.
fn paste() -> Result<Ticket, Failure> {
    let is_typed = std::io::stdin().is_terminal();
    if is_typed {
        say::err("paste the invite's line, then press Enter:");
    }
    let mut text = Vec::new();
    let mut stdin = std::io::stdin().lock().take(PASTED_BYTES_MAX);
    loop {
        let before = text.len();
        let read = stdin.read_until(b'\n', &mut text);
        let read = read.map_err(|source| Failure::System {
            doing: "cannot read an invite from standard input",
            source,
        })?;
        let is_empty = text[before..].trim_ascii().is_empty();
        let ticket = String::from_utf8_lossy(&text).parse::<Ticket>();
        match ticket {
            Ok(ticket) => return Ok(ticket),
            Err(_) if read > 0 && text.trim_ascii().is_empty() => {}
            // Perhaps only its first lines have been read.
            Err(TicketError::Damaged) if read > 0 && !is_empty => {
                if is_typed {
                    say::err(
                        "the rest of the invite is missing: paste it, or press Enter to cancel:",
                    );
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn beside_ticket(ticket: &Path) -> PathBuf {
    let mut path = ticket.as_os_str().to_owned();
    path.push(".rejoin");
    path.into()
}

/// Makes a client store each newer ticket in `file`, if any, before it uses the ticket.
fn keeping(client: Client<Game, GameShow>, file: Option<PathBuf>) -> Client<Game, GameShow> {
    let Some(file) = file else {
        return client;
    };
    client.keeping_tickets(storing(file))
}

/// Stores tickets in a file, and warns only once of the same error, because a new ticket arrives every few seconds.
fn storing(file: PathBuf) -> impl FnMut(&Ticket) -> bool {
    let mut warned = None;
    move |newer| {
        let failed = newer.save(&file).err().map(|error| error.to_string());
        match &failed {
            Some(error) if warned != failed => {
                tracing::warn!(path = %file.display(), %error, "cannot save the newest ticket; retrying without further warnings");
            }
            None if warned.is_some() => {
                tracing::info!(path = %file.display(), "newest ticket saved")
            }
            _ => {}
        }
        let is_kept = failed.is_none();
        warned = failed;
        is_kept
    }
}

/// A client that is in its match, or the end of its session before that. The error is `None` if the user stopped the
/// program.
type Entered = Result<Client<Game, GameShow>, Option<SessionEnd>>;

/// Rejoins a match with the ticket that an earlier process stored, or with the older ticket if the stored one is
/// superseded, expired or unanswered. If both are, the error is that of the stored ticket. Returns `None` if there is
/// no stored ticket, or if it is unreadable.
fn rejoin(
    kept: &Path,
    older: &Ticket,
    session: impl Fn() -> SessionConfig<Game, GameShow>,
) -> Result<Option<Entered>, Failure> {
    let newer = match Ticket::load(kept) {
        Ok(newer) => newer,
        Err(TicketError::Missing { .. }) => return Ok(None),
        Err(error) => {
            say::err(format_args!(
                "{}: {error}; using the older ticket",
                kept.display()
            ));
            return Ok(None);
        }
    };
    let first = match enter(&newer, kept, &session)? {
        Err(Some(ended)) if another_ticket_may_help(ended) => ended,
        entered => return Ok(Some(entered)),
    };
    Ok(Some(match enter(older, kept, &session)? {
        Err(Some(ended)) if another_ticket_may_help(ended) => Err(Some(first)),
        entered => entered,
    }))
}

/// Dials, and waits until the match is entered. Dials a full or busy server up to [`FULL_DIALS_MAX`] times.
fn enter(
    ticket: &Ticket,
    kept: &Path,
    session: &impl Fn() -> SessionConfig<Game, GameShow>,
) -> Result<Entered, Failure> {
    for dial in 1..=FULL_DIALS_MAX {
        let client = wiring::dial(ticket, session(), None)?;
        let mut client = keeping(client, Some(kept.to_owned()));
        let ended = loop {
            if client.session().authority().is_some() {
                return Ok(Ok(client));
            }
            if stop::asked() {
                return Ok(Err(None));
            }
            if let Err(ended) = client.advance(|_| Pad::default()) {
                break ended;
            }
            thread::sleep(PAUSE);
        };
        if !is_full(ended) || dial == FULL_DIALS_MAX {
            return Ok(Err(Some(ended)));
        }
        if dial == 1 {
            say::err(format_args!("{ended}; retrying, Ctrl-C ends it"));
        }
        // In short steps, so that Ctrl-C ends the wait.
        for _ in 0..FULL_PAUSE.as_millis() / PAUSE.as_millis() {
            if stop::asked() {
                return Ok(Err(None));
            }
            thread::sleep(PAUSE);
        }
    }
    Ok(Err(None))
}

fn another_ticket_may_help(ended: SessionEnd) -> bool {
    matches!(
        ended,
        SessionEnd::Server(CloseCode::Superseded)
            | SessionEnd::Transport(
                CloseReason::Superseded | CloseReason::Expired | CloseReason::NoAnswer
            )
    )
}

fn is_full(ended: SessionEnd) -> bool {
    matches!(
        ended,
        SessionEnd::Transport(CloseReason::Denied)
            | SessionEnd::Server(
                CloseCode::ServerFull { .. } | CloseCode::ServerBusy { .. } | CloseCode::Full
            )
    )
}

/// Converts the end of a session into an exit code. The server's end is a success for a client that played there, and a
/// failure for a client that was not admitted.
fn finish(
    ended: Option<SessionEnd>,
    has_played: HasPlayed,
    enemies: Option<u16>,
) -> Result<ExitCode, Failure> {
    match ended {
        None => Ok(ExitCode::SUCCESS),
        Some(SessionEnd::Server(
            code @ (CloseCode::Draining | CloseCode::Restarting { .. } | CloseCode::MatchOver),
        )) if has_played.0 => {
            say::out(code)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(ended @ SessionEnd::Server(CloseCode::WrongRules)) => {
            Err(Failure::Rules { ended, enemies })
        }
        Some(ended) => Err(ended.into()),
    }
}

#[cfg(test)]
mod tests {
    use twinstep_udp::{MatchId, TicketSpec};

    use super::*;
    use crate::log::tests::logged;

    fn ticket() -> Ticket {
        let spec = TicketSpec {
            game: "powderkeg",
            wire_version: 1,
            identity: "anna",
            match_id: MatchId(1),
            seats: 1,
            servers: &["127.0.0.1:9".parse().unwrap()],
            life: Duration::from_secs(60),
            timeout: Duration::from_secs(5),
            now_unix: unix_now(),
        };
        Ticket::issue(&TicketKey::generate(), &spec).unwrap()
    }

    /// Finding P3-L1: a warning every 10 s, for as long as the match lasted.
    #[test]
    fn failed_ticket_writes_warn_once_until_one_succeeds() {
        let folder = std::env::temp_dir().join(format!("powderkeg-storing-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let [text, _] = logged(|| {
            let mut store = storing(folder.join("ticket.rejoin"));
            let ticket = ticket();
            for _ in 0..3 {
                assert!((0..50).all(|_| !store(&ticket)), "there is no such folder");
                std::fs::create_dir(&folder).unwrap();
                assert!((0..50).all(|_| store(&ticket)));
                std::fs::remove_dir_all(&folder).unwrap();
            }
        });
        assert_eq!(
            text.matches("cannot save the newest ticket").count(),
            3,
            "{text}"
        );
        assert_eq!(text.matches("newest ticket saved").count(), 3, "{text}");
    }
}
