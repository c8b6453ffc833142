//! To play: here with bots, or wherever a ticket leads.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use twinstep_client::Closed;
use twinstep_client::client::Ended;
use twinstep_core::Mwc;
use twinstep_core::packet::hello::CloseCode;
use twinstep_server::host::stop_requested;
use twinstep_udp::Ticket;

use crate::bots::{self, BotClient, BotsOptions, Hands};
use crate::cli::{Failure, JoinArgs, PlayArgs, link};
use crate::game::Sticks;
use crate::terminal::{self, Summary, TerminalOptions};
use crate::wiring;

/// The player here, and bots.
const TEAM: usize = 4;
/// Bots are advanced about so often: 500 times a second.
const PAUSE: Duration = Duration::from_millis(2);

/// Whether there is a terminal to draw on and to read keys from.
pub(crate) fn has_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// A server in this process, three bots, and whoever sits here (or a fourth bot).
pub(crate) fn play(args: &PlayArgs) -> Result<ExitCode, Failure> {
    let profile = link(&args.link)?;
    if !has_terminal() {
        return play_headless(args);
    }
    let rules = wiring::rules(args.enemies);
    let server = wiring::server(&rules, args.seed, TEAM).listen("127.0.0.1:0")?;
    let luck = Mwc::seed(args.seed);
    let mut team = Vec::new();
    for n in 1..TEAM {
        let ticket = server.ticket(&format!("bot-{n}"))?;
        let n = n as u32;
        team.push(bots::bot(
            &ticket,
            &rules,
            profile,
            Sticks::Analog,
            &luck,
            n,
        )?);
    }
    let client = wiring::client(&server.ticket("you")?, &rules, Some((profile, args.seed)))?;
    let over = AtomicBool::new(false);
    let summary = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                team.iter_mut().for_each(|bot| bot.advance(Hands::On));
                thread::sleep(PAUSE);
            }
            team.iter_mut().for_each(BotClient::leave);
        });
        let options = TerminalOptions::new(Some(args.link.clone()));
        let summary = terminal::run(client, rules.clone(), options);
        over.store(true, Ordering::Relaxed);
        summary
    })?;
    server.shutdown();
    tell(&summary);
    summary
        .ended
        .map_or(Ok(ExitCode::SUCCESS), |ended| Err(ended.into()))
}

fn play_headless(args: &PlayArgs) -> Result<ExitCode, Failure> {
    println!(
        "Powderkeg, {} s without a view (the output is no terminal): {TEAM} bots over the link {}.\n",
        args.seconds, args.link
    );
    let options = BotsOptions {
        players: TEAM,
        seconds: args.seconds,
        link: link(&args.link)?,
        seed: args.seed,
        sticks: Sticks::Analog,
        journal: None,
    };
    let report = bots::run(&options, &wiring::rules(args.enemies))?;
    println!("{report}");
    Ok(ExitCode::from(u8::from(!report.faults().is_empty())))
}

/// Joins the server of a ticket.
pub(crate) fn join(args: &JoinArgs) -> Result<ExitCode, Failure> {
    let ticket = Ticket::load(&args.ticket)?;
    let rules = wiring::rules(args.enemies);
    let enemies = rules.enemies;
    let client = wiring::client(&ticket, &rules, None)?;
    if !args.bot && has_terminal() {
        let summary = terminal::run(client, rules, TerminalOptions::new(None))?;
        tell(&summary);
        return finish(summary.ended, enemies);
    }
    let stop = stop_flag()?;
    let mut bot = BotClient::new(client, rules, Sticks::Analog, Mwc::seed(ticket.id()));
    while bot.ended().is_none() && !stop.load(Ordering::Relaxed) {
        bot.advance(Hands::On);
        thread::sleep(PAUSE);
    }
    let (stats, score) = (bot.stats(), bot.score());
    bot.leave();
    if stats.authority_tick > 0 {
        println!(
            "played to tick {}: {score} points, {} rebuilds, {} cues, {} orders, round trip {} ms",
            stats.authority_tick,
            stats.timeline.rebuilds,
            stats.cues_started,
            stats.commands_sent,
            stats.rtt_ms_p50
        );
    }
    finish(bot.ended(), enemies)
}

/// The end of a server is no fault of who played there.
fn finish(ended: Option<Ended>, enemies: u16) -> Result<ExitCode, Failure> {
    match ended {
        None => Ok(ExitCode::SUCCESS),
        Some(Ended::Session(Closed::Server(
            code @ (CloseCode::Draining | CloseCode::MatchOver),
        ))) => {
            println!("{code}");
            Ok(ExitCode::SUCCESS)
        }
        Some(ended @ Ended::Session(Closed::Server(CloseCode::WrongRules))) => {
            Err(Failure::Rules(ended, enemies))
        }
        Some(ended) => Err(ended.into()),
    }
}

fn tell(summary: &Summary) {
    let (stats, seconds) = (&summary.stats, summary.played.as_secs());
    println!(
        "{} points in {seconds} s · round trip {} ms, lead {:.1} ticks · {} rebuilds, {} ticks simulated again · \
         {} cues, {} of them cancelled",
        summary.score,
        stats.rtt_ms_p50,
        stats.lead_ticks_mean,
        stats.timeline.rebuilds,
        stats.timeline.resim_ticks,
        stats.cues_started,
        stats.cues_cancelled
    );
}

/// Becomes true when this process is asked to end.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let failed = |source| Failure::System {
        doing: "cannot listen for the signal to stop",
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if runtime.block_on(stop_requested()).is_ok() {
                raised.store(true, Ordering::Relaxed);
            }
        })
        .map_err(failed)?;
    Ok(stop)
}
