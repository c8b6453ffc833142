//! Bots as real clients over real UDP, and a measured run of them.
//!
//! ```text
//!   0 s          all have joined + 60 ticks     end − 3 s           end
//!   ├── joining ──────┤ counted from here ─────────┤ no orders ───────┤ no inputs, until each client is settled
//! ```
//!
//! A client is settled when its authority has reached the server's last tick of the run, each of its orders has been
//! executed or refused, and no cue of the run is open. The client's counters are read at that moment.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use powderkeg_game::{Bot, Command, Game, GameShow, Pad, Rules, Sticks};
use powderkeg_view::time::now;
use twinstep_client::{Client, Event, PictureErrors, Session, SessionEnd, SessionStats};
use twinstep_core::{Mwc, PlayerId, PlayerSet, Tick};
use twinstep_host::Running;
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::MatchConfig;
use twinstep_udp::Ticket;

use crate::failure::Failure;
use crate::report::{ClientReport, Kinds, RebuildCauses, RunReport, SeenReport};
use crate::wiring;

/// Bots do not give orders in this last part of a run.
const QUIET: Duration = Duration::from_secs(3);
/// Counting starts this many ticks after the last player joined.
const SETTLING_TICKS: u32 = 60;
/// The time that a client has to settle after the end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Clone, Debug)]
pub struct BotsOptions {
    pub players: usize,
    pub seconds: u32,
    pub link: LinkProfile,
    pub seed: u64,
    pub policies: MatchConfig,
    pub sticks: Sticks,
    pub journal: Option<PathBuf>,
}

pub struct BotClient {
    client: Client<Game, GameShow>,
    bot: Bot,
    rules: Arc<Rules>,
    ready: Option<(Pad, Option<Command>)>,
    sampled: u32,
    /// The counters and the score at the last sampled tick. An ended session no longer has them.
    kept: (SessionStats, u32),
    ended: Option<SessionEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BotHands {
    On,
    NoOrders,
    /// Neither orders nor inputs.
    Off,
}

impl BotClient {
    #[must_use]
    pub fn new(
        client: Client<Game, GameShow>,
        rules: Arc<Rules>,
        sticks: Sticks,
        luck: Mwc,
    ) -> BotClient {
        BotClient {
            client,
            bot: Bot::new(sticks, luck),
            rules,
            ready: None,
            sampled: 0,
            kept: Default::default(),
            ended: None,
        }
    }

    /// Advances the client. Ticks sampled in one call share one decision of the bot. No effect after the session's end.
    pub fn advance(&mut self, hands: BotHands) {
        if self.ended.is_some() {
            return;
        }
        let session = self.client.session();
        let seen = session.prediction().zip(session.seats().first());
        if let (None, Some((world, me))) = (&self.ready, seen) {
            // Decided in advance, because the session is borrowed while it asks for the pad.
            let now = Tick(self.sampled);
            self.ready = Some(self.bot.think(world.sim(), &self.rules, *me, now));
        }
        let (pad, order) = match (hands, self.ready) {
            (BotHands::Off, _) | (_, None) => (Pad::default(), None),
            (BotHands::NoOrders, Some((pad, _))) => (pad, None),
            (BotHands::On, Some(thought)) => thought,
        };
        let mut samples = 0;
        let played = self.client.advance(|_| {
            samples += 1;
            pad
        });
        self.ended = played.err();
        if samples > 0 {
            self.sampled += samples;
            self.ready = None;
            if self.ended.is_none() {
                self.kept = (self.stats(), self.score());
            }
            if let Some(order) = order {
                // An order above the limit is dropped.
                let _ = self.client.session_mut().command(0, order);
            }
        }
        while self.client.session_mut().poll_cue().is_some() {}
        while let Some(event) = self.client.session_mut().poll_event() {
            match event {
                Event::Desync(text) => tracing::error!(
                    report = text,
                    "desync: this client's world differs from the server's"
                ),
                Event::Healed { at } => tracing::warn!(
                    tick = at.0,
                    "desync healed: the world was loaded from the server"
                ),
                event => tracing::debug!(?event, "event"),
            }
        }
    }

    /// The client's counters; after the end of its session, the last ones.
    #[must_use]
    pub fn stats(&self) -> SessionStats {
        let stats = self.client.session().stats();
        match self.ended {
            None => stats,
            Some(_) => {
                let mut kept = self.kept.0;
                (kept.returns, kept.silences, kept.away_ms) =
                    (stats.returns, stats.silences, stats.away_ms);
                kept
            }
        }
    }

    #[must_use]
    pub fn session_end(&self) -> Option<SessionEnd> {
        self.ended
    }

    #[must_use]
    pub fn score(&self) -> u32 {
        let world = self.client.session().authority();
        world.map_or(self.kept.1, |world| world.sim().score)
    }

    /// The tick of the client's authority and the digest of that world; `None` before the world has arrived, or after
    /// the end of the session.
    #[must_use]
    pub fn digest(&self) -> Option<(Tick, u64)> {
        let world = self.client.session().authority()?;
        Some((world.tick(), world.digest().ok()?))
    }

    /// The number of players at the client's screen; 0 until the server has assigned their seats.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.client.session().seats().len()
    }

    // See [`Game::waits_for_persons`].
    #[must_use]
    pub fn waits_for_persons(&self, bots: PlayerSet) -> bool {
        let world = self.client.session().prediction();
        world.is_some_and(|world| world.sim().waits_for_persons(bots))
    }

    #[must_use]
    pub fn seat(&self) -> Option<PlayerId> {
        self.client.session().seats().first().copied()
    }

    pub fn leave(&mut self) {
        self.client.leave();
    }

    /// Returns the tick of the authority if its world has `players` players.
    fn complete(&self, players: usize) -> Option<Tick> {
        let world = self.client.session().authority()?;
        (world.sim().players.len() == players).then(|| world.tick())
    }

    fn settled(&self, end: Tick) -> bool {
        let stats = self.stats();
        let fates = stats.commands_executed + stats.commands_refused;
        // Cues predicted beyond the end do not belong to the run: enemies keep firing.
        let passed = stats.cues_open_since.is_none_or(|since| since > end.0);
        stats.authority_tick >= end.0 && stats.commands_sent == fates && passed
    }
}

struct Row {
    bot: BotClient,
    player: String,
    last: Option<Last>,
}

struct Last {
    stats: SessionStats,
    /// The numbers of open cues that started before and after the end of the run.
    cues_open: (u64, u64),
    digest: Option<u64>,
    server_digest: Option<u64>,
}

struct Moment {
    at: Duration,
    clients: Vec<SessionStats>,
    drawn: Vec<PictureErrors>,
    down: Vec<ByteCounts>,
}

/// Runs a server and its bots to the end.
///
/// # Errors
/// If the server or a client cannot start. Failures during the run are in the report.
pub fn run(options: &BotsOptions, rules: &Arc<Rules>) -> Result<RunReport, Failure> {
    let mut server =
        wiring::server(rules, options.seed, options.players).policies(options.policies.clone());
    if let Some(path) = &options.journal {
        server = server.journal(path);
    }
    let server = server.listen("127.0.0.1:0")?;
    let luck = Mwc::seed(options.seed);
    let mut rows = Vec::new();
    for n in 0..options.players {
        let player = format!("bot-{}", n + 1);
        let ticket = server.ticket(&player)?;
        rows.push(Row {
            bot: bot(
                &ticket,
                rules,
                options.link,
                options.sticks,
                &luck,
                n as u32,
            )?,
            player,
            last: None,
        });
    }
    let report = measure(options, &server, &mut rows);
    for row in &mut rows {
        row.bot.leave();
    }
    server.shutdown();
    report
}

/// Creates the `n`th bot's client. Its network and its decisions use separate generators.
///
/// # Errors
/// If the ticket is not valid, or a socket cannot be opened.
pub fn bot(
    ticket: &Ticket,
    rules: &Arc<Rules>,
    link: LinkProfile,
    sticks: Sticks,
    luck: &Mwc,
    n: u32,
) -> Result<BotClient, Failure> {
    let of_bot = |what| luck.fork(twinstep_core::Key::new(what, n));
    let mut network = of_bot(1);
    let seed = u64::from(network.next_u32()) << 32 | u64::from(network.next_u32());
    let client = wiring::client(ticket, rules, Some((link, seed)))?;
    Ok(BotClient::new(client, rules.clone(), sticks, of_bot(2)))
}

fn measure(
    options: &BotsOptions,
    server: &Running<Game>,
    rows: &mut [Row],
) -> Result<RunReport, Failure> {
    let began = now();
    let length = Duration::from_secs(options.seconds.into());
    let mut full_since = None;
    let mut from = None;
    while began.elapsed() < length && rows.iter().any(|row| row.bot.ended.is_none()) {
        let hands = match began.elapsed() + QUIET < length {
            true => BotHands::On,
            false => BotHands::NoOrders,
        };
        for row in &mut *rows {
            row.bot.advance(hands);
        }
        if from.is_none() {
            let ticks: Option<Vec<Tick>> = rows
                .iter()
                .map(|row| row.bot.complete(options.players))
                .collect();
            // The slowest client decides when all have joined.
            let latest = ticks.and_then(|ticks| ticks.into_iter().min());
            if let Some(tick) = latest {
                let since = *full_since.get_or_insert(tick);
                if tick >= since + SETTLING_TICKS {
                    from = Some(moment(began.elapsed(), server, rows)?);
                }
            }
        }
        thread::sleep(PAUSE);
    }
    let to = moment(began.elapsed(), server, rows)?;
    let from = from.unwrap_or_else(|| Moment {
        at: Duration::ZERO,
        clients: vec![SessionStats::default(); rows.len()],
        drawn: vec![PictureErrors::default(); rows.len()],
        down: vec![ByteCounts::default(); rows.len()],
    });
    settle(began, server, rows)?;
    report(options, server, rows, &from, &to)
}

fn moment(at: Duration, server: &Running<Game>, rows: &[Row]) -> Result<Moment, Failure> {
    // Counted per player, not per session, because a player may have reconnected with a new session.
    let players: Vec<String> = rows.iter().map(|row| row.player.clone()).collect();
    let down = server.inspect(move |game| {
        let bytes = players.iter().map(|player| game.bytes_down_to(player));
        bytes.collect()
    })?;
    let clients = rows.iter().map(|row| row.bot.stats()).collect();
    let sessions = rows.iter().map(|row| row.bot.client.session());
    let drawn = sessions.map(Session::picture_errors).collect();
    Ok(Moment {
        at,
        clients,
        drawn,
        down,
    })
}

fn settle(began: Instant, server: &Running<Game>, rows: &mut [Row]) -> Result<(), Failure> {
    let end = server.inspect(|game| game.world().tick())?;
    let until = began.elapsed() + PATIENCE;
    while rows.iter().any(|row| row.last.is_none()) {
        let late = began.elapsed() >= until;
        for row in &mut *rows {
            row.bot.advance(BotHands::Off);
            let over = late || row.bot.ended.is_some();
            if row.last.is_none() && (over || row.bot.settled(end)) {
                let world = row.bot.client.session().authority();
                let digest = world.and_then(|world| world.digest().ok());
                let tick = world.map_or(Tick(0), |world| world.tick());
                let stats = row.bot.stats();
                let old = stats.cues_open_since.is_some_and(|since| since <= end.0);
                row.last = Some(Last {
                    cues_open: match old {
                        true => (stats.cues_open, 0),
                        false => (0, stats.cues_open),
                    },
                    stats,
                    digest,
                    server_digest: server.inspect(move |game| game.digest_at(tick))?,
                });
            }
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn report(
    options: &BotsOptions,
    server: &Running<Game>,
    rows: &[Row],
    from: &Moment,
    to: &Moment,
) -> Result<RunReport, Failure> {
    let (players, policies) = (options.players, &options.policies);
    let (stats, tick, digest, score, seats) = server.inspect(move |game| {
        let seats: Vec<_> = (0..players as u8)
            .map(|n| game.seat_stats(twinstep_core::PlayerId(n)))
            .collect();
        let (world, stats) = (game.world(), game.stats());
        (stats, world.tick(), game.digest(), world.sim().score, seats)
    })?;
    let seconds = (to.at - from.at).as_secs_f64().max(f64::EPSILON);
    let clients: Vec<ClientReport> = rows
        .iter()
        .enumerate()
        .filter_map(|(n, row)| {
            let last = row.last.as_ref()?;
            let up = Kinds::per_second(since(from.clients[n].up, to.clients[n].up), seconds);
            let down = Kinds::per_second(since(from.down[n], to.down[n]), seconds);
            let (now, before) = (&last.stats, &from.clients[n].timeline);
            let cancelled = |at: &Moment| at.clients[n].cues_cancelled;
            Some(ClientReport {
                player: row.player.clone(),
                authority_tick: now.authority_tick,
                digest_matches: last.digest.is_some() && last.digest == last.server_digest,
                rebuilds: now.timeline.rebuilds - before.rebuilds,
                rebuilds_by_cause: RebuildCauses::between(before, &now.timeline),
                resim_ticks: now.timeline.resim_ticks - before.resim_ticks,
                fills: now.fills,
                stall_ms: now.stall_ms,
                held_ms: now.held_ms,
                skipped_ticks: now.skipped_ticks,
                leapt_ticks: now.leapt_ticks,
                fills_run_max: now.fills_run_max,
                clock_off_ms: now.clock_off_ms,
                shed_ms: now.shed_ms,
                late_ms: now.late_ms,
                lead_ticks_mean: now.lead_ticks_mean,
                reach_ticks_mean: now.reach_ticks_mean,
                margin_ticks_p50: now.margin_ticks_p50,
                rtt_ms_p50: now.rtt_ms_p50,
                seen: SeenReport::of(&to.drawn[n].since(&from.drawn[n]).stats(), policies.tick),
                cues_cancelled_per_min: cancelled(to).saturating_sub(cancelled(from)) as f64 * 60.0
                    / seconds,
                // Cues started after the end of play do not belong to the run.
                cues_started: now.cues_started - last.cues_open.1,
                cues_confirmed: now.cues_confirmed,
                cues_cancelled: now.cues_cancelled,
                cues_open: last.cues_open.0,
                bytes_up_per_s: up.total(),
                bytes_down_per_s: down.total(),
                packets_up_per_s: up.packets(),
                packets_down_per_s: down.packets(),
                bytes_up_by_kind: up,
                bytes_down_by_kind: down,
                returns: now.returns,
                silences: now.silences,
                away_ms: now.away_ms,
                heals: now.heals,
                ended: row.bot.ended.map(|ended| ended.to_string()),
            })
        })
        .collect();
    let sum = |count: fn(&SessionStats) -> u64| -> u64 {
        let last = rows.iter().filter_map(|row| row.last.as_ref());
        last.map(|last| count(&last.stats)).sum()
    };
    Ok(RunReport {
        version: env!("CARGO_PKG_VERSION"),
        wire_version: twinstep_client::WIRE_VERSION,
        seed: options.seed,
        link: options.link.to_string(),
        window_s: seconds,
        seconds: options.seconds,
        ticks: tick.0,
        tick_hz: 60,
        turns: stats.turns,
        queries: stats.queries,
        outcomes: stats.outcomes,
        commands_sent: sum(|stats| stats.commands_sent),
        commands_accepted: seats.iter().map(|seat| seat.accepted).sum(),
        commands_refused: seats.iter().map(|seat| seat.refused).sum(),
        commands_executed: sum(|stats| stats.commands_executed),
        desyncs: stats.desyncs,
        server_digest: format!("{digest:016x}"),
        server_tick: tick.0,
        score,
        clients,
    })
}

/// The difference between two counts; zero if the counters are gone because the session ended.
fn since(from: ByteCounts, to: ByteCounts) -> ByteCounts {
    if to.packets < from.packets {
        ByteCounts::default()
    } else {
        to - from
    }
}
