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
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use powderkeg_game::skirmish::{Bombardier, Command, Rules, Skirmish, SkirmishBot};
use twinstep_client::UdpClient;
use twinstep_client::prelude::*;
use twinstep_client::simnet::LinkProfile;
use twinstep_core::prelude::*;
use twinstep_host::MatchEnded;
use twinstep_host::prelude::*;

/// Each client is advanced about so often: 500 times a second.
const PAUSE: Duration = Duration::from_millis(2);
/// Bots order nothing in the last part of a run, so that each order has its fate at the end.
const QUIET: Duration = Duration::from_secs(2);

/// Villagers gather, soldiers fight, bombs fall: a tiny strategy game in lockstep.
#[derive(Debug, Parser)]
struct Args {
    /// How many bots, 1 to 4
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
    let admit = |look: &HookContext<'_, Skirmish>,
                 by: PlayerId,
                 command: &Command,
                 _claimed: bool| { look.sim().admits(look.rules(), by, command) };
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
    // Everybody knows the field: nobody has to load it.
    let config = SessionConfig::new(rules.clone()).start(Skirmish::new());
    let through = move |udp: UdpClient| udp.with_conditioner(link, seed);
    Ok(Client::connect_through(
        &server.ticket(name)?,
        config,
        through,
    )?)
}

/// A client with a bot at its controls.
struct Player {
    name: String,
    client: Client<Skirmish>,
    bot: SkirmishBot,
    seen: Tick,
    ended: Option<Ended>,
}

/// So many bots join.
fn bots(
    count: u8,
    server: &Running<Skirmish>,
    rules: &Arc<Rules>,
    args: &Args,
) -> Result<Vec<Player>, Box<dyn Error>> {
    let player = |n: u8| {
        let (name, seed) = (format!("bot-{n}"), args.seed << 8 | u64::from(n));
        Ok(Player {
            client: join(server, rules, &name, (args.link, seed))?,
            name,
            bot: SkirmishBot::new(Mwc::seed(seed)),
            seen: Tick(0),
            ended: None,
        })
    };
    (1..=count).map(player).collect()
}

impl Player {
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
        if orders && world.tick() > self.seen {
            self.seen = world.tick();
            if let Some(order) = self.bot.think(world.sim(), me, self.seen) {
                // An order too many is an order not given.
                let _ = session.command(0, order);
            }
        }
    }

    /// Prints what was measured; what was not as it must be.
    fn report(&self, server: &Running<Skirmish>, seconds: u32) -> Result<Vec<String>, MatchEnded> {
        let stats = self.client.session.stats();
        let tick = Tick(stats.authority_tick);
        let truth = server.inspect(move |game| game.digest_at(tick))?;
        let world = self.client.session.authority();
        let digest = world.and_then(|world| world.digest().ok());
        let fates = stats.commands_executed + stats.commands_refused;
        let per_second = |bytes: u64| bytes / u64::from(seconds);
        println!(
            "{:6} {:>6} {:>7} {:>11} {:>10.0} {:>13} {:>7} {:>9}",
            self.name,
            tick.0,
            stats.commands_executed,
            stats.late_turns,
            stats.paused_ms,
            stats.confirmed_ms_p50,
            per_second(stats.up.total()),
            per_second(stats.down_bytes),
        );
        let mut faults = Vec::new();
        let mut check = |good: bool, what: String| {
            if !good {
                faults.push(format!("{}: {what}", self.name));
            }
        };
        check(self.ended.is_none(), format!("out: {:?}", self.ended));
        let equal = digest.is_some() && digest == truth;
        check(equal, format!("its digest of {tick} is wrong"));
        let given = stats.commands_sent;
        check(given == fates, format!("{given} orders, {fates} fates"));
        check(stats.commands_executed > 0, "no order ran".to_owned());
        Ok(faults)
    }
}

/// Lets bots play, and tells what came of it and what was wrong.
fn watch(args: &Args) -> Result<Vec<String>, Box<dyn Error>> {
    let rules = Arc::new(Rules::default());
    let server = serve(&rules)?;
    let mut players = bots(args.bots, &server, &rules, args)?;
    let length = Duration::from_secs(args.seconds.into());
    while players[0].client.now() < length {
        let orders = players[0].client.now() + QUIET < length;
        players.iter_mut().for_each(|player| player.advance(orders));
        thread::sleep(PAUSE);
    }
    let (stats, towns) = server.inspect(|game| (game.stats(), game.world().sim().towns.clone()))?;
    let kills: u32 = towns.values().map(|town| town.kills).sum();
    let (turns, blasts) = (stats.turns, stats.outcomes);
    println!(
        "{} s over {}: {turns} turns, {blasts} blasts, {kills} kills",
        args.seconds, args.link
    );
    println!("player   tick  orders  late turns  paused ms  confirmed ms  up B/s  down B/s");
    let mut faults = Vec::new();
    for player in &mut players {
        faults.extend(player.report(&server, args.seconds)?);
        player.client.leave();
    }
    if faults.is_empty() {
        println!("all digests are equal");
    }
    server.shutdown();
    Ok(faults)
}

/// You against the bots. They keep playing whatever this thread does.
fn play(args: &Args) -> Result<Vec<String>, Box<dyn Error>> {
    if !io::stdout().is_terminal() {
        return Err("--play needs a terminal; leave it away to watch bots".into());
    }
    let rules = Arc::new(Rules::default());
    let server = serve(&rules)?;
    let mut client = join(&server, &rules, "you", (args.link, args.seed))?;
    // Four towns have room on the map.
    let mut bots = bots(args.bots.min(3), &server, &rules, args)?;
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
    let args = ["skirmish", "--bots", "3", "--seconds", "5", "--link", "lan"];
    let faults = watch(&Args::parse_from(args)).expect("a server on this machine");
    assert!(faults.is_empty(), "{faults:?}");
}
