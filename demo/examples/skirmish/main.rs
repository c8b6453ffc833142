//! Skirmish, played in lockstep: a server in this process, bots over real UDP, and a view for you.
//!
//! ```sh
//! cargo run --release -p powderkeg --example skirmish -- --bots 3 --seconds 30 --link wan
//! cargo run --release -p powderkeg --example skirmish -- --play
//! ```
//!
//! Without a view it prints what was played and measured, and exits with 1 if anything was not as it must be.

mod view;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use powderkeg::skirmish::{Bombardier, Bot, Command, Rules, Skirmish};
use twinstep_client::client::Ended;
use twinstep_client::{Client, SessionConfig};
use twinstep_core::simnet::LinkProfile;
use twinstep_core::{Mwc, PlayerId, Tick};
use twinstep_server::host::{MatchEnded, Running, Server};
use twinstep_server::{Look, MatchConfig};
use twinstep_udp::UdpClient;

/// Each client is advanced about so often: 500 times a second.
const PAUSE: Duration = Duration::from_millis(2);
/// Bots order nothing in the last part of a run, so that each order has its fate at the end.
const QUIET: Duration = Duration::from_secs(2);

/// Villagers gather, soldiers fight, bombs fall: a tiny strategy game in lockstep.
#[derive(Debug, Parser)]
struct Args {
    /// How many bots
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=4))]
    bots: u8,
    /// How long they play, without a view
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// perfect, lan, wan, bad, awful, or settings such as rtt=120,jitter=20,loss=5
    #[arg(long, default_value = "wan")]
    link: LinkProfile,
    /// The seed of the bots and the network
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Play against the bots, on this terminal
    #[arg(long)]
    play: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.play { play(&args) } else { watch(&args) };
    match done {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| eprintln!("fault: {fault}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A server of one match: the whole wiring of the game.
fn serve(rules: &Arc<Rules>) -> Result<Running<Skirmish>, Box<dyn Error>> {
    let admit = |look: &Look<'_, Skirmish>, by: PlayerId, command: &Command, _claimed: bool| {
        look.sim().admits(look.rules(), by, command)
    };
    let game = Server::with(MatchConfig::strategy(), Skirmish::new(), rules.clone());
    let game = game
        .players(4)
        .resolver(Bombardier::default())
        .referee(admit);
    Ok(game.listen("127.0.0.1:0")?)
}

/// A client of it, through a simulated network.
fn join(
    server: &Running<Skirmish>,
    rules: &Arc<Rules>,
    name: &str,
    (link, seed): (LinkProfile, u64),
) -> Result<Client<Skirmish>, Box<dyn Error>> {
    let config = SessionConfig::new(rules.clone());
    let through = move |udp: UdpClient| udp.with_conditioner(link, seed);
    Ok(Client::connect_through(
        &server.ticket(name)?,
        config,
        through,
    )?)
}

/// A client with a bot at its controls.
struct Player {
    client: Client<Skirmish>,
    bot: Bot,
    rules: Arc<Rules>,
    seen: Tick,
    ended: Option<Ended>,
}

impl Player {
    fn new(
        server: &Running<Skirmish>,
        rules: &Arc<Rules>,
        args: &Args,
        n: u8,
    ) -> Result<Player, Box<dyn Error>> {
        let seed = args.seed << 8 | u64::from(n);
        Ok(Player {
            client: join(server, rules, &format!("bot-{n}"), (args.link, seed))?,
            bot: Bot::new(Mwc::seed(seed)),
            rules: rules.clone(),
            seen: Tick(0),
            ended: None,
        })
    }

    /// Does what is due; the bot thinks once for each tick that it sees.
    fn advance(&mut self, orders: bool) {
        if self.ended.is_some() {
            return;
        }
        self.ended = self.client.advance(|_| ()).err();
        let session = &mut self.client.session;
        while session.poll_cue().is_some() {}
        while session.poll_event().is_some() {}
        let (Some(world), Some(&me)) = (session.authority(), session.seats().first()) else {
            return;
        };
        let now = world.tick();
        if orders && now > self.seen {
            self.seen = now;
            if let Some(order) = self.bot.think(world.sim(), &self.rules, me, now) {
                // An order too many is an order not given.
                let _ = session.command(0, order);
            }
        }
    }
}

/// Lets bots play, and tells what came of it and what was wrong.
fn watch(args: &Args) -> Result<Vec<String>, Box<dyn Error>> {
    let rules = Arc::new(Rules::default());
    let server = serve(&rules)?;
    let players = (1..=args.bots).map(|n| Player::new(&server, &rules, args, n));
    let mut players = players.collect::<Result<Vec<_>, _>>()?;
    let length = Duration::from_secs(args.seconds.into());
    while players[0].client.now() < length {
        let orders = players[0].client.now() + QUIET < length;
        players.iter_mut().for_each(|player| player.advance(orders));
        thread::sleep(PAUSE);
    }
    let faults = report(args, &server, &players)?;
    players.iter_mut().for_each(|player| player.client.leave());
    server.shutdown();
    Ok(faults)
}

fn report(
    args: &Args,
    server: &Running<Skirmish>,
    players: &[Player],
) -> Result<Vec<String>, MatchEnded> {
    let (stats, tick, towns) = server.inspect(|game| {
        let world = game.world();
        (game.stats(), world.tick(), world.sim().towns.clone())
    })?;
    let (kills, razed) = towns.values().fold((0, 0), |(kills, razed), town| {
        (kills + town.kills, razed + town.razed)
    });
    println!(
        "{} s over {}: {tick} in {} turns · {} bombs · {kills} kills · {razed} towns razed",
        args.seconds, args.link, stats.turns, stats.outcomes
    );
    println!(
        "player   tick  orders  late turns  paused ms  confirmed ms  up B/s  down B/s  digest"
    );
    let mut faults = Vec::new();
    let mut fault = |who: &str, what: String| faults.push(format!("{who}: {what}"));
    for (n, player) in (1..).zip(players) {
        let who = format!("bot-{n}");
        let stats = player.client.session.stats();
        let tick = Tick(stats.authority_tick);
        let truth = server.inspect(move |game| game.digest_at(tick))?;
        let ours = player
            .client
            .session
            .authority()
            .map(|world| world.digest());
        let equal = truth.is_some() && ours.and_then(Result::ok) == truth;
        let per_second = |bytes: u64| bytes / u64::from(args.seconds);
        println!(
            "{who}  {:>6}  {:>6}  {:>10}  {:>9.0}  {:>12}  {:>6}  {:>8}  {}",
            tick.0,
            stats.commands_executed,
            stats.late_turns,
            stats.paused_ms,
            stats.confirmed_ms_p50,
            per_second(stats.up.total()),
            per_second(stats.down_bytes),
            if equal { "equal" } else { "DIFFERS" },
        );
        if !equal {
            fault(&who, format!("its digest of {tick} is not the server's"));
        }
        if let Some(ended) = player.ended {
            fault(&who, format!("it is out: {ended}"));
        }
        let fates = stats.commands_executed + stats.commands_refused;
        if stats.commands_sent != fates {
            fault(
                &who,
                format!("{} orders, {fates} fates", stats.commands_sent),
            );
        }
        if stats.commands_executed == 0 {
            fault(&who, "none of its orders ran".to_owned());
        }
    }
    if stats.desyncs > 0 {
        fault("server", format!("{} desyncs", stats.desyncs));
    }
    Ok(faults)
}

/// You against the bots. They keep playing whatever this thread does.
fn play(args: &Args) -> Result<Vec<String>, Box<dyn Error>> {
    let rules = Arc::new(Rules::default());
    let server = serve(&rules)?;
    let mut client = join(&server, &rules, "you", (args.link, args.seed))?;
    let bots = (1..=args.bots.min(3)).map(|n| Player::new(&server, &rules, args, n));
    let mut bots = bots.collect::<Result<Vec<_>, _>>()?;
    let over = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                bots.iter_mut().for_each(|bot| bot.advance(true));
                thread::sleep(PAUSE);
            }
        });
        let ended = view::run(&mut client, &rules);
        over.store(true, Ordering::Relaxed);
        ended
    })?;
    client.leave();
    server.shutdown();
    Ok(ended.map(|ended| ended.to_string()).into_iter().collect())
}

#[test]
fn bots_play_a_war_without_a_fault() {
    let args = ["skirmish", "--bots", "3", "--seconds", "8", "--link", "lan"];
    let faults = watch(&Args::parse_from(args)).expect("a server on this machine");
    assert!(faults.is_empty(), "{faults:?}");
}
