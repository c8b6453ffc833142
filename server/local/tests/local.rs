//! A match and its players in one process play the same game as over a network, bit for bit.

mod local_time;
mod tale;

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{CueKind, Event, Reconcile, Session, SessionConfig, SessionEnd};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Key, Mwc, PlayerId, Tick};
use twinstep_local::{Local, LocalGameEnd, LocalStartError};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_server::{Decision, HookContext, Match, MatchConfig, Output, SessionId, Trouble};

use crate::tale::{
    ASK, FRAME, PANIC, PANIC_CONFIRMED, RULES, Tale, begun, config, frames, hundred, input_tick,
    local, ticks,
};

/// A player's input at this tick of the match: neutral while other players may not have joined yet.
fn held_at(player: usize, tick: u32) -> u8 {
    match tick {
        120..480 => Mwc::seed(9).fork(Key::new(player as u64, tick)).below(9) as u8,
        _ => 0,
    }
}

const COMPARED: Tick = Tick(540);

/// The digest of a match with two clients over an 80 ms round trip, as a host and its clients run it.
fn digest_over_a_network() -> u64 {
    let rules = Arc::new(RULES);
    let sim = Tale::default();
    let mut server = Match::new(MatchConfig::action(), sim, rules, hundred).expect("it starts");
    let link: LinkProfile = "rtt=80".parse().expect("a link");
    let mut clients: Vec<_> = (0..2_u64)
        .map(|n| {
            let joined = server.connect(Duration::ZERO, SessionId(n), &format!("player {n}"), 1);
            joined.expect("a free seat");
            let session = Session::new(config()).expect("no NaN");
            (session, SimLink::new(link, n))
        })
        .collect();
    let (mut now, mut buffer) = (Duration::ZERO, [0; PACKET_BYTES_MAX]);
    while server.world().tick() < COMPARED {
        now += Duration::from_millis(1);
        for (n, (session, net)) in clients.iter_mut().enumerate() {
            while let Some(bytes) = net.up.poll(now) {
                server.handle(now, SessionId(n as u64), bytes);
            }
            while let Some(bytes) = net.down.poll(now) {
                session.handle(now, bytes);
            }
            let mut tick = input_tick(session);
            let played = session.advance(now, 160, |_| {
                tick += 1;
                held_at(n, tick - 1)
            });
            played.expect("it plays on");
            while let Some(len) = session.poll_transmit(now, &mut buffer) {
                net.up.send(now, &buffer[..len]);
            }
        }
        server.advance(now);
        while let Some(output) = server.poll() {
            if let Output::Packet { peer, bytes } = output {
                clients[peer.0 as usize].1.down.send(now, bytes);
            }
        }
    }
    assert!(
        server.world().sim().answers.len() > 10,
        "queries were asked"
    );
    server.digest_at(COMPARED).expect("a digest of this turn")
}

/// Law Pure: a game cannot detect whether there is a network.
#[test]
fn the_same_inputs_lead_to_the_same_digest_as_over_a_network() {
    let mut game = local();
    game.join(config(), 1).expect("a second client");
    let mut now = Duration::ZERO;
    while game.server().world().tick() < COMPARED {
        now += Duration::from_millis(7);
        let mut ticks = [0, 1].map(|n| input_tick(game.session(n)));
        let played = game.advance_at(now, |client, _| {
            ticks[client] += 1;
            held_at(client, ticks[client] - 1)
        });
        played.expect("it plays on");
    }
    assert_eq!(
        game.server().digest_at(COMPARED),
        Some(digest_over_a_network())
    );
    for client in [0, 1] {
        let authority = game.session(client).authority().expect("it plays");
        let (digest, tick) = (authority.digest().ok(), authority.tick());
        assert_eq!(digest, game.server().digest_at(tick));
    }
}

#[test]
fn the_first_client_is_in_the_match_after_play() {
    let mut game = local();
    assert!(ticks(&mut game)[0] < Tick(10), "{:?}", ticks(&mut game));
    let session = game.session_mut(0);
    assert_eq!(session.seats(), [PlayerId(0)]);
    assert_eq!(session.poll_event(), Some(Event::Joined(vec![PlayerId(0)])));
    assert_eq!(session.poll_event(), None);
}

#[test]
fn several_seats_and_clients_play_in_one_match() {
    let start = Local::action(Tale::default(), RULES).seats(2);
    let mut game = begun(start);
    assert_eq!(game.join(config(), 2).expect("a second client"), 1);
    assert_eq!(game.clients(), 2);
    let seats = [0, 1].map(|client| game.session(client).seats().to_vec());
    let all = [[PlayerId(0), PlayerId(1)], [PlayerId(2), PlayerId(3)]];
    assert_eq!(seats, all);
    let mut now = Duration::ZERO;
    for n in 0..240 {
        now += FRAME;
        // Each seat holds a different number for two seconds; then all release it, so that everything is confirmed.
        let held = |client: usize, seat: usize| (1 + 2 * client + seat) as u8;
        let input = |client, seat| if n < 120 { held(client, seat) } else { 0 };
        game.advance_at(now, input).expect("it plays on");
    }
    for client in [0, 1] {
        let world = game.session(client).prediction().unwrap();
        assert_eq!(
            world.sim().held.map(|held| held % 120),
            [0; 4],
            "{:?}",
            world.sim()
        );
        assert_eq!(world.sim().held, [120, 240, 360, 480]);
    }
    game.leave(1);
    frames(&mut game, &mut now, 5, 1);
    assert_eq!(game.server().world().present().len(), 2, "the others go on");
    game.leave(0);
    assert_eq!(game.advance_at(now, |_, _| 0), Err(LocalGameEnd::Deserted));
}

/// A job runs immediately: its outcome is in the next tick, like an immediate outcome.
#[test]
fn queries_are_answered_immediately_on_this_thread() {
    let thread = std::thread::current().id();
    let later = move |_: &HookContext<'_, Tale>, _: Key, query: &u32| {
        let answer = query + 100;
        Decision::Later(Box::new(move || {
            assert_eq!(std::thread::current().id(), thread);
            assert!(answer != 102, "the third job fails");
            answer
        }))
    };
    let answers = |resolver: Local<Tale>| {
        let mut game = begun(resolver);
        let mut now = Duration::ZERO;
        for n in 0..60 {
            let held = if n % 20 == 0 { ASK } else { 0 };
            frames(&mut game, &mut now, 1, held);
        }
        let mut kinds = Vec::new();
        while let Some(event) = game.session_mut(0).poll_cue() {
            kinds.push(event.kind);
        }
        let started = |kind: &&CueKind<u32>| matches!(kind, CueKind::Started { .. });
        assert_eq!(kinds.iter().filter(started).count(), 3);
        (
            game.server().world().sim().answers.clone(),
            ticks(&mut game),
        )
    };
    let start = || Local::action(Tale::default(), RULES);
    let (now, at) = answers(start().resolver(hundred));
    assert_eq!(now, [100, 101, 102]);
    assert_eq!(answers(start().resolver(later)), (vec![100, 101, 0], at));
    assert_eq!(answers(start()), (vec![0; 3], at), "there is no resolver");
}

#[test]
fn a_referee_decides_as_on_a_server() {
    let odd = |_: &HookContext<'_, Tale>, _: PlayerId, order: &u8, _: bool| order % 2 == 1;
    let start = Local::action(Tale::default(), RULES).referee(odd);
    let mut game = begun(start);
    let _ = game.session_mut(0).poll_event();
    let seq = game.session_mut(0).command(0, 2).expect("taken");
    game.session_mut(0).command(0, 3).expect("taken");
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 20, 0);
    assert_eq!(game.server().world().sim().orders, [3]);
    let why = CommandRefusal::Referee(0);
    let refused = Event::CommandRefused { seat: 0, seq, why };
    assert_eq!(game.session_mut(0).poll_event(), Some(refused));
}

#[test]
fn an_order_that_panics_every_step_is_left_out_and_the_game_continues() {
    let mut game = local();
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 30, 0);
    game.session_mut(0).command(0, PANIC).expect("taken");
    frames(&mut game, &mut now, 60, 1);
    assert_eq!(game.server().world().sim().orders, [0; 0]);
    let events = std::iter::from_fn(|| game.session_mut(0).poll_event());
    let is_fault = |event: &Event| matches!(event, Event::StepFault(text) if text.contains("thirteen at table"));
    assert_eq!(events.filter(is_fault).count(), 1);
    let incidents = game.take_incidents();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    assert!(incidents[0].message.contains("thirteen at table"));
}

#[test]
fn a_panic_in_the_games_own_code_is_a_final_error_with_its_message() {
    let mut game = local();
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 30, 0);
    let ended = loop {
        now += FRAME;
        if let Err(ended) = game.advance_at(now, |_, _| panic!("thirteen at table")) {
            break ended;
        }
        assert!(now < FRAME * 60, "it plays on");
    };
    assert!(matches!(ended, LocalGameEnd::Panicked { .. }), "{ended}");
    assert!(ended.to_string().contains("thirteen at table"), "{ended}");
    assert_eq!(game.advance_at(now, |_, _| 0), Err(ended.clone()));
    assert_eq!(game.step(|_, _| 0), Err(ended.clone()));
    assert!(matches!(game.join(config(), 1), Err(LocalStartError::Ended(same)) if same == ended));
}

/// A local match survives the same faults as an online server. The order is left out, and an incident reports it.
#[test]
fn an_order_failing_only_on_the_server_is_left_out_and_reported() {
    let mut game = local();
    let mut now = Duration::ZERO;
    game.session_mut(0)
        .command(0, PANIC_CONFIRMED)
        .expect("taken");
    frames(&mut game, &mut now, 60, 1);
    assert_eq!(game.server().world().sim().orders, [0; 0]);
    let incidents = game.take_incidents();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    assert_eq!(incidents[0].trouble, Trouble::Step);
    assert!(incidents[0].message.contains("the server knows better"));
}

#[test]
fn a_match_ended_by_its_step_reports_the_tick_and_the_reason() {
    let start = Local::action(Tale::default(), 100_u32);
    let mut game = start
        .play(SessionConfig::new(Arc::new(100)))
        .expect("it starts");
    let mut now = Duration::ZERO;
    let ended = loop {
        now += FRAME;
        if let Err(ended) = game.advance_at(now, |_, _| 0) {
            break ended;
        }
        assert!(now < FRAME * 200, "it plays on");
    };
    assert!(matches!(ended, LocalGameEnd::Match { .. }), "{ended}");
    let message = ended.to_string();
    assert!(
        message.contains("tick 100") && message.contains("the end of time"),
        "{message}"
    );
    assert_eq!(game.advance_at(now, |_, _| 0), Err(ended));
}

// Finding A5-2.
#[test]
fn a_failed_start_reports_the_reason() {
    let start = || Local::action(Tale::default(), RULES);
    for seats in [0, 5] {
        let error = start()
            .seats(seats)
            .play(config())
            .err()
            .expect("no such client");
        let message = error.to_string();
        assert_eq!(
            message,
            format!("expected 1 to 4 seats per client, got {seats}; add clients for more players")
        );
    }
    let other = SessionConfig::new(Arc::new(6)).start(Tale::default());
    let error = start().play(other).err().expect("other rules");
    let LocalStartError::Ended(LocalGameEnd::Session { client: 0, closed }) = error else {
        panic!("{error}");
    };
    assert!(
        matches!(closed, SessionEnd::Server(CloseCode::WrongRules)),
        "{closed}"
    );
    // A second client with other rules does not end the game of the first one.
    let mut game = start().play(config()).unwrap();
    let other = SessionConfig::new(Arc::new(6)).start(Tale::default());
    assert!(game.join(other, 1).is_err());
    assert_eq!(game.join(config(), 1).ok(), Some(1));
    game.step(|_, _| Default::default()).unwrap();
    let one = MatchConfig {
        players_max: 1,
        ..MatchConfig::action()
    };
    let mut game = Local::with(one, Tale::default(), RULES)
        .play(config())
        .expect("it starts");
    let error = game.join(config(), 1).expect_err("it is full");
    assert!(
        matches!(error, LocalStartError::Refused(CloseCode::Full)),
        "{error}"
    );
    let now = FRAME;
    game.advance_at(now, |_, _| 0).expect("the others play on");
    let none = MatchConfig {
        players_max: 0,
        ..MatchConfig::action()
    };
    assert!(
        Local::with(none, Tale::default(), RULES)
            .play(config())
            .is_err()
    );
}

/// The start may be left out; background rebuilds are run here immediately.
#[test]
fn a_session_needs_neither_a_start_nor_a_thread() {
    let rules = Arc::new(RULES);
    let sessions = || SessionConfig::new(rules.clone()).reconcile(Reconcile::Background);
    let mut game = Local::action(Tale::default(), rules.clone())
        .play(sessions())
        .expect("it starts");
    game.join(sessions(), 1)
        .expect("a second client, by the frames so far");
    let mut now = Duration::ZERO;
    for n in 0..600 {
        frames(&mut game, &mut now, 1, (n / 10 % 5) as u8);
    }
    frames(&mut game, &mut now, 60, 0);
    for client in [0, 1] {
        let session = game.session(client);
        assert!(
            session.stats().timeline.rebuilds > 10,
            "the other player is sometimes mispredicted"
        );
        let away = session.stats().timeline.away_steps;
        assert!(away > 10, "{away} steps of rebuilds that were handed back");
        assert_eq!(
            session.prediction().unwrap().sim(),
            session.authority().unwrap().sim()
        );
    }
}

#[test]
fn a_strategy_game_runs_orders_within_three_ticks() {
    let start = Local::strategy(Tale::default(), RULES);
    let mut game = begun(start);
    let [before, ..] = ticks(&mut game);
    game.join(config(), 1).expect("a second client");
    let [joined, ..] = ticks(&mut game);
    assert!(joined - before <= 6, "it took {} ticks", joined - before);
    let mut now = Duration::ZERO;
    let tick = Duration::from_millis(50);
    for order in 1..12_u8 {
        let giver = usize::from(order % 2);
        // At a different phase of a tick each time.
        for _ in 0..12 {
            now += tick / 5;
            game.advance_at(now, |_, _| 0).expect("it plays on");
        }
        game.session_mut(giver).command(0, order).expect("taken");
        for _ in 0..15 {
            now += tick / 5;
            game.advance_at(now, |_, _| 0).expect("it plays on");
        }
        for client in [0, 1] {
            let shown = game.session(client).authority().unwrap().sim();
            assert_eq!(shown.orders.last(), Some(&order), "150 ms later");
        }
    }
    game.pause();
    let before = ticks(&mut game)[0];
    for n in 1..200 {
        game.step(|_, _| 0).expect("it plays on");
        let [server, shown, _] = ticks(&mut game);
        assert_eq!(server, before + n);
        assert!(server - shown <= 2, "{server} {shown}");
    }
}
