//! No command, input or frame ends another player's process.
//!
//! The author of this game forgot a bound: a command to dig at tile 1,000 of 64 panics in the step. The attacker's
//! build has the missing check, so the attacker's client survives. It also chooses its own stamps, so that its commands
//! and inputs are announced to the other clients before a server has stepped them.
//!
//! `TWINSTEP_SEEDS=250` runs each attack in this many worlds.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{
    BUDGET_TICKS, Event, Poses, Reconcile, Scene, Session, SessionConfig, SessionEnd, Show,
    Smoothing, show_with,
};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Controls, Effects, Frame, Key, Never, PlayerId, Simulation};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::edges::{MEANT, silence_intended_panics};
use twinstep_rig::game_types;
use twinstep_server::{HookContext, Match, MatchConfig, Output, SessionId};

const FRAME: Duration = Duration::from_micros(16_667);
const SECOND: Duration = Duration::from_secs(1);
const TILES: usize = 64;
const ATTACK: Duration = Duration::from_secs(3);
const END: Duration = Duration::from_secs(9);
/// The longest permitted client pause while its prediction is repaired.
const STANDS_MAX: Duration = Duration::from_millis(150);

/// A player's input. The game checks `look`, but not `tile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hold<const CHECKED: bool> {
    tile: u8,
    look: u8,
}

impl<const CHECKED: bool> Controls for Hold<CHECKED> {
    fn is_valid(&self) -> bool {
        CHECKED || usize::from(self.look) < TILES
    }
}

/// The game. Honest builds do not check the tile; the attacker's build does (`CHECKED`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mine<const CHECKED: bool> {
    tiles: Vec<u8>,
}

impl<const CHECKED: bool> Mine<CHECKED> {
    fn new() -> Self {
        Mine {
            tiles: vec![0; TILES],
        }
    }

    fn dig(&mut self, at: usize) {
        if CHECKED && at >= TILES {
            return;
        }
        assert!(at < TILES, "{MEANT} tile {at} of {TILES}");
        self.tiles[at] = self.tiles[at].wrapping_add(1);
    }
}

impl<const CHECKED: bool> Simulation for Mine<CHECKED> {
    game_types!("mine", (), Hold<CHECKED>, u16, Never, Never, u16);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, tile) in frame.commands() {
            self.dig(usize::from(*tile));
            fx.cue(Key::player(player, frame.tick().0), *tile);
        }
        for (_, hold) in frame.inputs() {
            self.dig(usize::from(hold.tile));
            self.dig(usize::from(hold.look));
        }
    }
}

trait Player {
    fn handle(&mut self, now: Duration, bytes: &[u8]);
    fn advance(&mut self, now: Duration, hold: (u8, u8));
    fn transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize>;
    fn order(&mut self, tile: u16);
    fn event(&mut self) -> Option<Event>;
    fn closed(&self) -> Option<SessionEnd>;
    fn ticks(&self) -> (u32, u32);
    fn faults(&self) -> u64;
}

impl<const CHECKED: bool> Player for Session<Mine<CHECKED>> {
    fn handle(&mut self, now: Duration, bytes: &[u8]) {
        Session::handle(self, now, bytes);
    }

    fn advance(&mut self, now: Duration, (tile, look): (u8, u8)) {
        // A closed session returns an error, and sends nothing.
        let _ = Session::advance(self, now, BUDGET_TICKS, |_| Hold { tile, look });
        if let Some(mut rebuild) = self.poll_rebuild() {
            rebuild.run();
            self.hand_back(rebuild);
        }
    }

    fn transmit(&mut self, now: Duration, out: &mut [u8]) -> Option<usize> {
        self.poll_transmit(now, out)
    }

    fn order(&mut self, tile: u16) {
        let _ = self.command(0, tile);
    }

    fn event(&mut self) -> Option<Event> {
        self.poll_event()
    }

    fn closed(&self) -> Option<SessionEnd> {
        Session::closed(self)
    }

    fn ticks(&self) -> (u32, u32) {
        let stats = self.stats();
        (stats.authority_tick, stats.prediction_tick)
    }

    fn faults(&self) -> u64 {
        self.stats().timeline.step_faults
    }
}

fn player<const CHECKED: bool>(how: Reconcile) -> Box<dyn Player> {
    let config = SessionConfig::<Mine<CHECKED>>::new(Arc::new(())).reconcile(how);
    Box::new(Session::new(config).expect("rules without a NaN"))
}

/// A server with or without the check (`SERVER`), an attacker (player 0), and three other players.
struct Table<const SERVER: bool> {
    match_: Match<Mine<SERVER>>,
    players: Vec<Box<dyn Player>>,
    lines: Vec<SimLink>,
    now: Duration,
    events: Vec<Vec<Event>>,
    /// For each client, the last confirmed tick and its time, and the longest pause of that tick or of the lead.
    moved: Vec<(u32, Duration, Duration)>,
}

impl<const SERVER: bool> Table<SERVER> {
    fn new(policies: MatchConfig, players: Vec<Box<dyn Player>>, seed: u64) -> Self {
        Self::watched(policies, players, 0, seed)
    }

    fn watched(
        policies: MatchConfig,
        players: Vec<Box<dyn Player>>,
        spectators: usize,
        seed: u64,
    ) -> Self {
        let playing = players.len() - spectators;
        let mut match_ =
            Match::new(policies, Mine::new(), Arc::new(()), no_queries()).expect("the game starts");
        let mut lines = Vec::new();
        for i in 0..players.len() as u64 {
            let identity = format!("player {i}");
            let seats = usize::from((i as usize) < playing);
            match_
                .connect(Duration::ZERO, SessionId(i), &identity, seats)
                .expect("a free seat");
            // Over a slow link with jitter, the attacker's commands arrive well before their ticks.
            let link = match i {
                0 => "rtt=160,jitter=60,loss=3".parse().expect("a valid link"),
                _ => LinkProfile::WAN,
            };
            lines.push(SimLink::new(link, seed * 16 + i));
        }
        Table {
            match_,
            moved: players
                .iter()
                .map(|_| (0, ATTACK, Duration::ZERO))
                .collect(),
            events: players.iter().map(|_| Vec::new()).collect(),
            players,
            lines,
            now: Duration::ZERO,
        }
    }

    fn frame(&mut self, hold: (u8, u8)) {
        self.now += FRAME;
        let now = self.now;
        let mut buffer = [0; PACKET_BYTES_MAX];
        for (i, player) in self.players.iter_mut().enumerate() {
            let line = &mut self.lines[i];
            while let Some(bytes) = line.down.poll(now) {
                player.handle(now, bytes);
            }
            let own = ((now.as_millis() / 170) as u8 % 60, i as u8);
            player.advance(now, if i == 0 { hold } else { own });
            while let Some(len) = player.transmit(now, &mut buffer) {
                line.up.send(now, &buffer[..len]);
            }
            self.events[i].extend(std::iter::from_fn(|| player.event()));
            let ((authority, prediction), moved) = (player.ticks(), &mut self.moved[i]);
            if authority > moved.0 && prediction > authority {
                (moved.0, moved.1) = (authority, now);
            } else if now > ATTACK {
                moved.2 = moved.2.max(now - moved.1);
            }
            while let Some(bytes) = line.up.poll(now) {
                self.match_.handle(now, SessionId(i as u64), bytes);
            }
        }
        self.match_.advance(now);
        while let Some(output) = self.match_.poll() {
            if let Output::Packet { peer, bytes } = output {
                self.lines[peer.0 as usize].down.send(now, bytes);
            }
        }
    }

    fn faults(&self, player: usize) -> u64 {
        self.players[player].faults()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    Orders,
    RefusedOrders,
    Inputs,
    InvalidInputs,
}

fn attacked(attack: Attack, seed: u64) -> Table<false> {
    silence_intended_panics();
    let how = match seed % 2 {
        0 => Reconcile::Inline,
        _ => Reconcile::Background,
    };
    let mut players = vec![player::<true>(Reconcile::Inline)];
    players.extend((0..3).map(|_| player::<false>(how)));
    let mut table = Table::<false>::new(MatchConfig::action(), players, seed);
    if attack == Attack::RefusedOrders {
        let knows = |_: &HookContext<'_, Mine<false>>, _: PlayerId, tile: &u16, _: bool| {
            usize::from(*tile) < TILES
        };
        table.match_.set_referee(knows);
    }
    let mut frames = 0;
    while table.now < END {
        let attacks = table.now >= ATTACK;
        let hold = match attack {
            Attack::Inputs if attacks && frames % 40 < 6 => (200, 0),
            Attack::InvalidInputs if attacks && frames % 40 < 6 => (0, 200),
            _ => (1, 1),
        };
        let gives_orders = matches!(attack, Attack::Orders | Attack::RefusedOrders);
        if gives_orders && attacks && frames % 15 == 0 {
            table.players[0].order(1_000);
        }
        // The other players also give valid commands.
        if frames % 20 == 7 {
            table.players[1 + frames / 20 % 3].order(5);
        }
        table.frame(hold);
        frames += 1;
    }
    table
}

fn seeds(usual: u64) -> u64 {
    let text = std::env::var("TWINSTEP_SEEDS").ok();
    text.map_or(usual, |text| text.parse().expect("a number of worlds"))
}

/// Findings K3-P and HW6: with a referee or without, by a command or by an input.
#[test]
fn an_attacker_ends_no_other_process() {
    let attacks = [
        Attack::Orders,
        Attack::RefusedOrders,
        Attack::Inputs,
        Attack::InvalidInputs,
    ];
    for attack in attacks {
        let (mut ended, mut caught, mut stood) = (0, 0, Duration::ZERO);
        let seeds = seeds(4);
        for seed in 0..seeds {
            let table = attacked(attack, seed);
            for i in 1..4 {
                ended += u64::from(table.players[i].closed().is_some());
                caught += table.faults(i);
                stood = stood.max(table.moved[i].2);
                assert!(table.players[i].ticks().0 > 480, "{attack:?}, seed {seed}");
            }
        }
        println!(
            "{attack:?}: {seeds} worlds, {ended} of {} honest clients ended, {caught} panics of predictions caught, stood \
             for {} ms at most",
            3 * seeds,
            stood.as_millis()
        );
        assert_eq!(ended, 0);
        assert!(stood <= STANDS_MAX, "{attack:?}: paused for {stood:?}");
        let reaches = matches!(attack, Attack::Orders | Attack::Inputs);
        assert_eq!(caught > 0, reaches, "{attack:?}: {caught} caught");
    }
}

#[test]
fn an_order_refused_by_the_referee_reaches_no_step() {
    let table = attacked(Attack::RefusedOrders, 0);
    assert_eq!(table.match_.stats().panics, 0);
    let refused = |event: &&Event| matches!(event, Event::CommandRefused { .. });
    assert!(table.events[0].iter().filter(refused).count() > 10);
    assert!((1..4).all(|i| table.faults(i) == 0));
}

#[test]
fn no_input_of_a_struck_player_is_announced() {
    for seed in 0..4 {
        let table = attacked(Attack::Orders, seed);
        let panics = table.match_.stats().panics;
        assert!(panics > 5, "{panics} commands were stepped");
        for i in 1..4 {
            // The first command was announced before the server had stepped it; one more was in flight.
            assert!(table.faults(i) <= 2, "seed {seed}: {}", table.faults(i));
        }
    }
}

/// An invalid input is dropped: the packet costs a strike, and too many strikes cost the seat.
#[test]
fn an_invalid_input_reaches_no_step_and_costs_a_strike() {
    let table = attacked(Attack::InvalidInputs, 0);
    let stats = table.match_.stats();
    assert_eq!(stats.panics, 0);
    assert!(stats.malformed > 5, "{}", stats.malformed);
    let closed = table.players[0].closed();
    assert_eq!(closed, Some(SessionEnd::Server(CloseCode::Strikes)));
}

#[test]
fn a_clients_own_invalid_input_is_made_neutral() {
    let players = (0..2).map(|_| player::<false>(Reconcile::Inline));
    let mut table = Table::<false>::new(MatchConfig::action(), players.collect(), 7);
    while table.now < ATTACK {
        table.frame((3, 200));
    }
    let stats = table.match_.stats();
    assert_eq!((stats.malformed, stats.panics), (0, 0));
    assert!(table.players[0].closed().is_none());
}

/// A command makes the step of its own player's client panic: the prediction continues without the command, and the
/// client refuses it.
#[test]
fn a_players_own_panicking_command_is_refused_and_the_match_continues() {
    silence_intended_panics();
    for how in [Reconcile::Inline, Reconcile::Background] {
        let players = (0..2).map(|_| player::<false>(how));
        let mut table = Table::<false>::new(MatchConfig::action(), players.collect(), 3);
        while table.now < ATTACK {
            table.frame((1, 1));
        }
        table.players[0].order(1_000);
        while table.now < ATTACK + SECOND * 2 {
            table.frame((1, 1));
        }
        let faults = |event: &&Event| matches!(event, Event::StepFault(_));
        let events = &table.events[0];
        assert_eq!(events.iter().filter(faults).count(), 1, "{events:?}");
        let refused = |event: &Event| matches!(event, Event::CommandRefused { .. });
        assert!(events.iter().any(refused), "{events:?}");
        assert!(table.moved.iter().all(|moved| moved.2 <= STANDS_MAX));
        assert!(table.players.iter().all(|player| player.closed().is_none()));
    }
}

/// A server seals an input that makes the clients' step panic: they request a heal, and the match continues. If the
/// same input comes again, the session ends with the reason.
#[test]
fn a_hostile_servers_frame_is_healed_once_and_then_ends_the_session() {
    silence_intended_panics();
    for mut policies in [MatchConfig::action(), MatchConfig::strategy()] {
        policies.spectators.max = 1;
        let mut players = vec![player::<true>(Reconcile::Inline)];
        players.extend([Reconcile::Inline, Reconcile::Background].map(player::<false>));
        // A spectator steps the same frames.
        players.push(player::<false>(Reconcile::Inline));
        let mut table = Table::<true>::watched(policies, players, 1, 5);
        let run = |table: &mut Table<true>, time: Duration| {
            let end = table.now + time;
            while table.now < end {
                table.frame((1, 1));
            }
        };
        run(&mut table, ATTACK);
        table.players[0].order(1_000);
        run(&mut table, SECOND * 14);
        assert_eq!(table.match_.spectators(), 1);
        for i in 1..4 {
            let events = &table.events[i];
            let is_told = |what: &dyn Fn(&Event) -> bool| events.iter().any(what);
            assert!(is_told(&|e| matches!(e, Event::StepFault(_))), "{events:?}");
            assert!(
                is_told(&|e| matches!(e, Event::Differs { .. })),
                "{events:?}"
            );
            assert!(
                is_told(&|e| matches!(e, Event::Healed { .. })),
                "{events:?}"
            );
            assert!(table.players[i].closed().is_none(), "it plays on");
            let server = table.match_.world().tick().0;
            assert!(table.players[i].ticks().0 + 40 > server, "it plays on");
        }
        table.players[0].order(1_000);
        run(&mut table, SECOND * 2);
        for i in 1..4 {
            assert_eq!(table.players[i].closed(), Some(SessionEnd::StepPanicked));
        }
        assert!(table.players[0].closed().is_none());
    }
}

fn moody(tick: u8) {
    assert!(tick % 64 != 40, "{MEANT} a hook of {tick}");
}

#[test]
fn panicking_client_hooks_do_not_end_the_session() {
    silence_intended_panics();
    for how in [Reconcile::Inline, Reconcile::Background] {
        let poses = |scene: &Scene<'_, Mine<false>>, out: &mut Poses<u8, f32>| {
            moody(scene.tiles[1]);
            out.put(0, f32::from(scene.tiles[1]));
        };
        let smoothing = Smoothing::new(8.0, Duration::ZERO);
        let sessions = (0..2).map(|_| {
            SessionConfig::<Mine<false>>::new(Arc::new(()))
                .guess(
                    |sim: &Mine<false>, _: &(), _: PlayerId, last: &Hold<false>, _: u32| {
                        moody(sim.tiles[2]);
                        *last
                    },
                )
                .show(show_with(poses), smoothing)
                .reconcile(how)
        });
        let sessions: Vec<_> = sessions.collect();
        let mut table = Direct::of(MatchConfig::action(), Mine::new(), sessions);
        table.run(600, |client, session| {
            let at = session.stats().input_tick as usize / 10;
            Hold {
                tile: (at % 2 + 1) as u8,
                look: client as u8,
            }
        });
        for session in &mut table.sessions {
            let reported = std::iter::from_fn(|| session.poll_event());
            let reported: Vec<String> = reported
                .filter_map(|event| match event {
                    Event::StepFault(text) => Some(text),
                    _ => None,
                })
                .collect();
            assert!(
                reported.iter().any(|text| text.contains("a prediction of")),
                "{reported:?}"
            );
            let of_picture = reported.iter().filter(|text| text.contains("Show::poses"));
            assert_eq!(of_picture.count(), 1, "{reported:?}");
            assert!(session.closed().is_none());
            let stats = session.stats();
            assert!(stats.authority_tick > 590 && stats.prediction_tick > stats.authority_tick);
            assert!(is_drawn(session), "it is drawn again");
        }
    }
}

fn is_drawn<V: Show<Mine<false>, Key = u8, Pose = f32>>(session: &Session<Mine<false>, V>) -> bool {
    session.shown().next().is_some()
}
