//! To play: here with bots, or wherever a ticket leads.

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
use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::Mwc;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::company::Name;
use twinstep_core::packet::hello::CloseCode;
use twinstep_server::MatchConfig;
use twinstep_server::host::Running;
use twinstep_udp::{Ticket, TicketKey};

use crate::args::{JoinArgs, NameArgs, PlayArgs, link};
use crate::bots::{self, BotClient, BotHands, BotsOptions};
use crate::failure::Failure;
use crate::report::line_of;
use crate::serve::beside;
use crate::view::{self, Shown, ViewChoice};
use crate::{signals, wiring};

/// Who may play where others may join.
const SEATS: usize = 8;
/// No invite is longer.
const PASTED_BYTES_MAX: u64 = 16 << 10;
/// Bots are advanced about so often: 500 times a second.
const PAUSE: Duration = Duration::from_millis(2);

/// A server in this process, bots, and whoever sits here (or one more bot); with an address, also others.
pub(crate) fn play(args: &PlayArgs) -> Result<ExitCode, Failure> {
    let profile = link(&args.link)?;
    check_seats(args)?;
    let view = view::choose(&args.view);
    if view == ViewChoice::Nowhere && args.listen.is_none() {
        return play_headless(args);
    }
    let rules = terms::rules(args.enemies);
    let server = start_server(args, &rules)?;
    let luck = Mwc::seed(args.seed);
    let mut team = Vec::new();
    for n in 1..=u32::from(args.bots) {
        let ticket = server.ticket(&format!("bot-{n}"))?;
        team.push(bots::bot(&ticket, &rules, profile, Sticks::Keys, &luck, n)?);
    }
    let ticket = server.ticket_for("you", args.seats)?;
    let client = wiring::dial(
        &ticket,
        session(&rules, &args.names),
        Some((profile, args.seed)),
    )?;
    let over = AtomicBool::new(false);
    let played = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                team.iter_mut().for_each(|bot| bot.advance(BotHands::On));
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
        say::out("serving on until everybody has left; Ctrl-C ends it")?;
        server.run_until_deserted().map_err(signals::no_signals)?;
    } else {
        server.shutdown();
    }
    ended.map_or(Ok(ExitCode::SUCCESS), |ended| Err(ended.into()))
}

/// No more may play than there are seats, here and in all.
fn check_seats(args: &PlayArgs) -> Result<(), Failure> {
    let (names, seats) = (args.names.names.len(), args.seats);
    if names > usize::from(seats) {
        return Err(Failure::Flag {
            flag: "name",
            reason: format!("expected one for each who plays here, --seats {seats}; got {names}"),
        });
    }
    let asked = usize::from(args.bots + args.seats);
    if asked <= SEATS {
        return Ok(());
    }
    Err(Failure::Flag {
        flag: "bots",
        reason: format!("expected at most {SEATS} who play, got {asked} with those at this screen"),
    })
}

/// The server of this process: for those in here alone, or also for others.
fn start_server(args: &PlayArgs, rules: &Arc<Rules>) -> Result<Running<Game>, Failure> {
    let here = usize::from(args.bots + args.seats);
    let Some((listen, key_file)) = args.listen.zip(args.key_file.as_ref()) else {
        return Ok(wiring::server(rules, args.seed, here).listen("127.0.0.1:0")?);
    };
    let mut server = wiring::server(rules, args.seed, SEATS)
        .key(TicketKey::load(key_file)?)
        .serials_file(beside(key_file));
    if let Some(public) = args.public {
        server = server.public(public);
    }
    let server = server.listen(&listen.to_string())?;
    say::out(format_args!("listening on {}", server.local_addr()))?;
    Ok(server)
}

/// The session of who plays at a screen: named, and recorded, so that it can be saved.
fn session(rules: &Arc<Rules>, names: &NameArgs) -> SessionConfig<Game, GameShow> {
    terms::session(rules)
        .names(names.names.iter().map(Name::as_str))
        .recorded(unix_now().as_secs())
}

/// What became of playing here.
enum Played {
    /// It ended so; `None`: whoever played has left.
    Over(Option<Ended>),
    /// There was nothing to show it on, and nobody else is in the match.
    Unseen,
}

/// The game of whoever sits here, or of a bot in its place where others may come.
fn play_here(
    args: &PlayArgs,
    view: ViewChoice,
    client: Client<Game, GameShow>,
    rules: &Arc<Rules>,
    luck: &Mwc,
) -> Result<Played, Failure> {
    let feed = Feed::client(client, rules.clone(), Some(args.link.clone()));
    let client = match view::show(feed, view, &args.view)? {
        Shown::Over(ended) => return Ok(Played::Over(ended)),
        Shown::Nowhere(feed) if args.listen.is_some() => feed.into_client(),
        Shown::Nowhere(_) => None,
    };
    let Some(client) = client else {
        return Ok(Played::Unseen);
    };
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
    Ok(Played::Over(bot.ended()))
}

fn play_headless(args: &PlayArgs) -> Result<ExitCode, Failure> {
    let team = usize::from(args.bots) + 1;
    say::out(format_args!(
        "Powderkeg, {} s without a view (the output is no terminal): {team} bots over the link {}.\n",
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

/// Joins the server of a ticket, or returns to it.
pub(crate) fn join(args: &JoinArgs) -> Result<ExitCode, Failure> {
    let names = args.names.names.len();
    if names > SEATS_MAX {
        return Err(Failure::Flag {
            flag: "name",
            reason: format!(
                "expected at most one for each of {SEATS_MAX} at a screen; got {names}"
            ),
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
    let session = || session(&rules, &args.names);
    let back = kept.as_deref().and_then(|kept| returned(kept, session()));
    let mut client = match back {
        Some(client) => client,
        None => keeping(wiring::dial(&ticket, session(), None)?, kept),
    };
    if on_screen {
        let feed = Feed::client(client, rules.clone(), None).with_names(names);
        let unseen = match view::show(feed, view, &args.view)? {
            Shown::Over(ended) => return finish(ended, args.enemies),
            Shown::Nowhere(feed) => feed.into_client(),
        };
        let Some(unseen) = unseen else {
            return finish(None, args.enemies);
        };
        say::err("no view: a bot plays in your place; Ctrl-C ends it");
        client = unseen;
    }
    let mut bot = BotClient::new(client, rules, Sticks::Keys, Mwc::seed(ticket.id()));
    let mut unused = Surplus::of(names);
    while bot.ended().is_none() && !stop::asked() {
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
            "played to tick {}: {score} points, {} rebuilds, {} cues, {} orders, round trip {} ms",
            stats.authority_tick,
            stats.timeline.rebuilds,
            stats.cues_started,
            stats.commands_sent,
            stats.rtt_ms_p50
        ))?;
        say::out(line_of(&stats))?;
    }
    finish(bot.ended(), args.enemies)
}

/// The ticket whose line stands first on standard input; what was copied with empty lines before it is as good.
fn paste() -> Result<Ticket, Failure> {
    if std::io::stdin().is_terminal() {
        say::err("paste the invite's line, then press Enter:");
    }
    let mut line = Vec::new();
    let mut stdin = std::io::stdin().lock().take(PASTED_BYTES_MAX);
    while line.trim_ascii().is_empty() {
        line.clear();
        let read = stdin.read_until(b'\n', &mut line);
        let read = read.map_err(|source| Failure::System {
            doing: "cannot read an invite from standard input",
            source,
        })?;
        if read == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&line).trim().parse()?)
}

/// Where the newest ticket to return with is kept: the ticket file's name and `.rejoin`.
fn beside_ticket(ticket: &Path) -> PathBuf {
    let mut path = ticket.as_os_str().to_owned();
    path.push(".rejoin");
    path.into()
}

/// Stores each newer ticket in the file, if there is one, before anything else is done with it.
fn keeping(client: Client<Game, GameShow>, file: Option<PathBuf>) -> Client<Game, GameShow> {
    let Some(file) = file else {
        return client;
    };
    client.keeping(move |newer| {
        let saved = newer.save(&file);
        if let Err(error) = &saved {
            tracing::warn!(%error, "the ticket to return with is not kept");
        }
        saved.is_ok()
    })
}

/// A client that is back in its match by the ticket that an earlier process kept; `None` if there is none, or it is of
/// no use any more.
fn returned(kept: &Path, session: SessionConfig<Game, GameShow>) -> Option<Client<Game, GameShow>> {
    let ticket = Ticket::load(kept).ok()?;
    let client = wiring::dial(&ticket, session, None).ok()?;
    let mut client = keeping(client, Some(kept.to_owned()));
    while client.session.authority().is_none() {
        if client.advance(|_| Pad::default()).is_err() || stop::asked() {
            return None;
        }
        thread::sleep(PAUSE);
    }
    Some(client)
}

/// The end of a server is no fault of who played there.
fn finish(ended: Option<Ended>, enemies: Option<u16>) -> Result<ExitCode, Failure> {
    match ended {
        None => Ok(ExitCode::SUCCESS),
        Some(Ended::Session(Closed::Server(
            code @ (CloseCode::Draining | CloseCode::Restarting { .. } | CloseCode::MatchOver),
        ))) => {
            say::out(code)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(ended @ Ended::Session(Closed::Server(CloseCode::WrongRules))) => {
            Err(Failure::Rules { ended, enemies })
        }
        Some(ended) => Err(ended.into()),
    }
}
