//! Adaptive policies: turn length, tick length, laggards, and resolvers. `tests/golden/policies.txt` plots each of them
//! over a link that gets bad and recovers.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::SessionConfig;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation};
use twinstep_protocol::simnet::{LegProfile, LinkProfile};
use twinstep_rig::direct::{Direct, serves};
use twinstep_rig::game_types;
use twinstep_rig::history::{Command, History};
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::config::{AnsweredBy, Laggards, SealWhen, TickLength, TurnLength};
use twinstep_server::{Admission, Decision, HookContext, MatchConfig, Referee};

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn both(delay_ms: u64, jitter_ms: u64) -> LinkProfile {
    LinkProfile::both(LegProfile {
        delay: MS(delay_ms),
        jitter: MS(jitter_ms),
        ..LegProfile::PERFECT
    })
}

fn strategy(seed: u64, link: LinkProfile) -> RigConfig {
    RigConfig::strategy(seed, link)
}

/// Row 40: with round trips of 40, 90 and 160 ms, the longest determines the turn's length, as soon as its client
/// plays.
#[test]
fn the_first_turns_are_as_long_as_the_longest_round_trip() {
    let mut config = strategy(1, both(20, 0));
    config.clients = 0;
    config.policies.tick = MS(20);
    config.policies.turn = TurnLength::adaptive(2, 16);
    let mut rig = Rig::<History>::new(config);
    for delay in [20, 45, 80] {
        let client = rig.join(&format!("at {delay} ms"));
        rig.relink(client, both(delay, 0));
        rig.until_it_plays(client);
        rig.run(MS(400));
        let turn = rig.match_.world().turn().cadence.turn();
        let rtt = MS(2 * delay);
        assert!(turn >= rtt && turn <= rtt + MS(40), "{turn:?} for {rtt:?}");
    }
}

/// Rows 47 and 48: on a bad network turns get longer, for all clients at the same turn. When the network has recovered,
/// they get shorter again, down to the round trip, and stay that short.
#[test]
fn turn_lengths_follow_the_network_without_oscillating() {
    let mut config = strategy(2, both(30, 0));
    config.policies.turn = TurnLength::adaptive(2, 12);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 20);
    let calm = rig.match_.world().turn().cadence.turn_ticks;
    assert!(calm <= 3, "{calm} ticks over a good net");
    for client in 0..4 {
        rig.relink(client, both(200, 150));
    }
    let mut switches: Vec<Vec<(u32, u8)>> = vec![Vec::new(); 4];
    rig.watch(SECOND * 30, |rig| {
        for (switches, client) in switches.iter_mut().zip(&rig.clients) {
            let turn = client.session.authority().expect("it plays").turn();
            let length = turn.cadence.turn_ticks;
            if switches.last().is_none_or(|(_, last)| *last != length) {
                switches.push((turn.number, length));
            }
        }
    });
    let rough = rig.match_.world().turn().cadence.turn_ticks;
    assert!(rough > calm + 1, "still {rough} ticks over a bad net");
    let common = switches.iter().map(Vec::len).min().unwrap_or(0) - 1;
    assert!(common >= 2);
    for client in 1..4 {
        assert_eq!(
            switches[0][1..common],
            switches[client][1..common],
            "row 47"
        );
    }
    for client in 0..4 {
        rig.relink(client, both(30, 0));
    }
    // A shorter turn is tried every 10 s.
    rig.run(SECOND * (10 * u32::from(rough - calm) + 5));
    let healed = rig.match_.world().turn().cadence.turn_ticks;
    assert!(
        healed <= calm,
        "{healed} ticks after it healed, {rough} before"
    );
    let mut changes = 0;
    let mut last = healed;
    rig.watch(SECOND * 60, |rig| {
        let now = rig.match_.world().turn().cadence.turn_ticks;
        changes += u32::from(now != last);
        last = now;
    });
    assert_eq!(changes, 0, "it swings over a good net");
    rig.converge();
}

/// Row 44: a client that had a spike trails a little, and pauses less over the same jitter.
#[test]
fn a_client_pauses_less_after_a_latency_spike() {
    let mut pauses = [0, 0];
    for seed in 0..8 {
        let mut config = strategy(seed, both(20, 0));
        config.policies.command_delay = 1;
        config.policies.sealing = SealWhen::Deadline;
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 5);
        let rough = LinkProfile {
            down: LegProfile {
                delay: MS(20),
                jitter: MS(150),
                ..LegProfile::PERFECT
            },
            ..both(20, 0)
        };
        rig.relink(0, rough);
        for (i, counted) in pauses.iter_mut().enumerate() {
            let before = rig.stats(0).late_turns;
            // A hundred 150 ms turns.
            rig.run(SECOND * 15);
            *counted += rig.stats(0).late_turns - before;
            if i == 0 {
                rig.relink(0, both(220, 0));
                rig.run(MS(300));
                rig.relink(0, rough);
                rig.run(SECOND);
            }
        }
    }
    let [before, after] = pauses;
    assert!(before >= 10, "{before} pauses: too few to tell");
    assert!(
        after * 3 < before * 2,
        "{before} pauses before, {after} after"
    );
}

/// Rows 45 and 46: clients report their progress. The match pauses for a client that froze, within limits, until it has
/// caught up.
#[test]
fn the_match_waits_for_trailing_clients_within_limits() {
    for lockstep in [false, true] {
        let mut config = if lockstep {
            strategy(3, LinkProfile::LAN)
        } else {
            RigConfig::new(3, LinkProfile::LAN)
        };
        config.clients = 2;
        config.policies.sealing = SealWhen::Deadline;
        config.policies.laggards = Laggards::hold();
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 6);
        let peer = rig.clients[1].peer();
        let close = rig.match_.lag(peer).expect("it plays");
        let held = rig.match_.stats().held;
        assert_eq!(held, Duration::ZERO, "no client trailed");
        rig.freeze(1, rig.now + MS(if lockstep { 900 } else { 300 }));
        let mut farthest = 0;
        let mut waited_for_it = false;
        let frozen = rig.clients[1].session.seats()[0];
        rig.watch(SECOND * 2, |rig| {
            farthest = farthest.max(rig.match_.lag(peer).expect("it plays"));
            waited_for_it |= rig.match_.waiting().contains(frozen);
        });
        assert!(farthest > close, "row 45: the server sees it trail");
        assert!(waited_for_it, "clients do not see the wait");
        let held = rig.match_.stats().held;
        assert!(held > MS(30), "it was not held for");
        assert!(
            held <= MS(260),
            "held for {held:?}: more than the limit at once"
        );
        rig.run(SECOND * 3);
        assert!(rig.match_.lag(peer).expect("it plays") <= close + 3);
        // If it freezes repeatedly, the match pauses up to the limit per minute, and then ignores the client.
        for _ in 0..25 {
            rig.freeze(1, rig.now + SECOND);
            rig.run(SECOND * 2);
        }
        let all = rig.match_.stats().held;
        assert!(all <= SECOND * 2 + MS(300), "held for {all:?} in a minute");
        // A minute later the match pauses for it again.
        rig.run(SECOND * 61);
        rig.freeze(1, rig.now + SECOND);
        rig.run(SECOND * 2);
        assert!(rig.match_.stats().held > all, "a budget for ever is none");
        rig.converge();
    }
}

/// Row 84: a policy sets the lag at which the match starts to hold, one turn by default, with prediction and in
/// lockstep.
#[test]
fn a_match_holds_at_the_lag_set_by_its_policy() {
    for (lockstep, from) in [
        (false, Duration::ZERO),
        (false, MS(150)),
        (true, Duration::ZERO),
        (true, MS(400)),
    ] {
        let mut config = match lockstep {
            true => strategy(3, LinkProfile::LAN),
            false => RigConfig::new(3, LinkProfile::LAN),
        };
        config.clients = 2;
        config.policies.sealing = SealWhen::Deadline;
        let Laggards::Hold {
            at_once,
            per_minute,
            ..
        } = Laggards::hold()
        else {
            unreachable!()
        };
        config.policies.laggards = Laggards::Hold {
            from,
            at_once,
            per_minute,
        };
        let tick = config.policies.tick;
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 10);
        let turn = rig.match_.world().turn().cadence.turn();
        let limit = from.max(turn);
        let held_after = |rig: &mut Rig<History>, freeze| {
            rig.freeze(1, rig.now + freeze);
            rig.run(SECOND * 2);
            rig.match_.stats().held
        };
        let case = format!("lockstep: {lockstep}, from {from:?}");
        assert_eq!(held_after(&mut rig, limit / 2), Duration::ZERO, "{case}");
        let held = held_after(&mut rig, limit + turn.max(2 * tick));
        assert!(held > Duration::ZERO, "{case}");
        assert!(held < MS(200), "{case}: {held:?}");
        rig.converge();
    }
}

#[test]
fn a_match_is_not_held_for_delays_not_caused_by_clients() {
    let mut config = strategy(7, LinkProfile::LAN);
    config.clients = 3;
    config.policies.sealing = SealWhen::Deadline;
    config.policies.turn = TurnLength::Fixed(2);
    config.policies.laggards = Laggards::hold();
    let mut longer = config.policies.clone();
    longer.turn = TurnLength::Fixed(8);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 12);
    rig.match_.reconfigure(longer).unwrap();
    rig.run(SECOND * 8);
    assert_eq!(rig.match_.stats().held, Duration::ZERO, "a longer turn");

    let session = || SessionConfig::<Counter>::new(Arc::new(()));
    let policies = MatchConfig {
        tick: MS(5),
        laggards: Laggards::hold(),
        ..MatchConfig::action()
    };
    let mut table = Direct::of(policies, Counter::default(), [session(), session()]);
    table.gather().rest(SECOND * 10);
    for _ in 0..6 {
        table.frame(|_, _| 0);
    }
    table.serve();
    table.rest(SECOND);
    assert_eq!(
        table.match_.stats().held,
        Duration::ZERO,
        "a server that stood still"
    );
}

#[test]
fn a_hold_works_even_if_the_match_is_rarely_advanced() {
    let session = || SessionConfig::<Counter>::new(Arc::new(()));
    let policies = MatchConfig {
        tick: MS(50),
        turn: TurnLength::Fixed(1),
        laggards: Laggards::hold(),
        ..MatchConfig::action()
    };
    let nothing = twinstep_rig::direct::no_queries();
    let sessions = vec![session(), session()];
    let rules = Arc::new(());
    let mut table = Direct::new(policies, Counter::default(), rules, nothing, sessions, 20);
    table.gather().rest(SECOND * 10);
    table.deaf_until[1] = table.now + MS(600);
    // Until just before it receives packets again. A host also advances a match only when it is due.
    table.rest(MS(600));
    let held = table.match_.stats().held;
    assert!(held > MS(150) && held < MS(330), "{held:?}");
}

/// Row 85: on a link with constant jitter, adaptive turns settle.
#[test]
fn adaptive_turns_settle_under_constant_jitter() {
    for seed in 1..=3 {
        let mut config = strategy(3, "rtt=120,jitter=250".parse().unwrap());
        config.seed = seed;
        config.clients = 3;
        config.policies.turn = TurnLength::adaptive(2, 16);
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 30);
        let mut changes = Vec::new();
        let mut last = rig.match_.world().turn().cadence.turn_ticks;
        rig.watch(SECOND * 300, |rig| {
            let turn = rig.match_.world().turn().cadence.turn_ticks;
            if turn != last {
                changes.push((rig.now.as_secs(), last, turn));
                last = turn;
            }
        });
        assert!(changes.len() <= 6, "seed {seed}: {changes:?}");
        // Several clients may pause for one reason, but turns get longer only once for it.
        let grows = |(_, from, to): &(u64, u8, u8)| to > from;
        for pair in changes.windows(2).filter(|pair| pair.iter().all(grows)) {
            assert!(pair[1].0 - pair[0].0 >= 2, "seed {seed}: {changes:?}");
        }
    }
}

/// One of four links is bad: it may lengthen turns by a total of at most 20 s per minute.
#[test]
fn one_bad_link_makes_turns_longer_within_its_budget() {
    let mut config = strategy(4, both(20, 0));
    config.clients = 4;
    config.policies.turn = TurnLength::adaptive(2, 16);
    let tick = config.policies.tick;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 10);
    let calm = rig.match_.world().turn().cadence.turn_ticks;
    rig.relink(3, "rtt=120,jitter=250".parse().unwrap());
    let mut longer = Duration::ZERO;
    let mut last = rig.match_.world().turn().number;
    // The length needed for its round trip and jitter is free; any more is charged.
    let needed = calm.max(4);
    rig.watch(SECOND * 180, |rig| {
        let turn = rig.match_.world().turn();
        if turn.number != last {
            last = turn.number;
            longer += tick * u32::from(turn.cadence.turn_ticks.saturating_sub(needed));
        }
    });
    assert!(longer > SECOND, "{longer:?}: its line is not bad enough");
    assert!(longer < SECOND * 66, "{longer:?} in three minutes");
}

/// However long turns are, every client receives ten packets a second, so that silence indicates a dead link.
#[test]
fn long_turns_do_not_count_as_silence() {
    let mut config = RigConfig::new(9, LinkProfile::LAN);
    config.policies.tick = MS(50);
    config.policies.turn = TurnLength::Fixed(20);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 8);
    assert!(rig.all_play());
    rig.watch(SECOND * 10, |rig| {
        for client in &rig.clients {
            let received = client.session.last_received_at().expect("it plays");
            assert!(rig.now - received < MS(250), "silence since {received:?}");
            // Law Journal first: a packet sent mid-turn contains none of the turn's ticks.
            let known = client.session.authority().expect("it plays").tick();
            assert!(
                known <= rig.match_.world().turn().began,
                "ticks of an open turn"
            );
        }
    });
}

#[test]
fn a_laggard_is_removed_if_the_policy_is_to_kick() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.policies.laggards = Laggards::Kick { after: SECOND * 3 };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 4);
    rig.freeze(2, rig.now + SECOND * 2);
    rig.run(SECOND * 4);
    assert!(rig.all_play(), "it was away for less than that");
    rig.freeze(2, rig.now + SECOND * 6);
    rig.run(SECOND * 8);
    let closed = rig.clients[2].session.closed().expect("it is out");
    assert!(closed.to_string().contains("could not keep up"), "{closed}");
}

/// Row 49: a machine that needs 70 ms for a tick of 50 slows the game evenly; it does not pause it.
#[test]
fn a_slow_machine_slows_the_game_instead_of_pausing_it() {
    let play = |tick_length| {
        let mut config = strategy(5, LinkProfile::LAN);
        config.policies.tick_length = tick_length;
        // Longer than this test, because a player that costs the others this much is eventually removed.
        config.policies.sealing = SealWhen::WaitForAll {
            kick_after: SECOND * 60,
        };
        let mut rig = Rig::<History>::new(config);
        rig.clients[3].step_cost = MS(70);
        rig.run(SECOND * 40);
        let before: Vec<_> = (0..3).map(|i| rig.stats(i).late_turns).collect();
        rig.run(SECOND * 60);
        let pauses: u64 = (0..3).map(|i| rig.stats(i).late_turns - before[i]).sum();
        let tick = rig.match_.world().turn().cadence.tick();
        (pauses, tick)
    };
    let (paused, _) = play(TickLength::Fixed);
    let (evenly, tick) = play(TickLength::Adaptive { max: MS(200) });
    assert!(paused > 60, "{paused} pauses: the machine is not slow");
    assert!(evenly * 10 <= paused, "{evenly} pauses of {paused}");
    assert!(tick >= MS(65) && tick <= MS(95), "{tick:?}");
}

/// An input delay that grows and shrinks during play: no tick is repeated or skipped on the screen, and no input is
/// lost.
#[test]
fn the_input_delay_changes_during_play_without_a_hitch() {
    let mut config = RigConfig::new(6, both(75, 0));
    config.input_pattern = InputPattern::Sticky;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let fills: u64 = (0..4).map(|i| rig.stats(i).fills).sum();
    for delay_ticks in [6, 2, 5, 0] {
        let next = MatchConfig {
            delay_ticks,
            ..rig.match_.config().clone()
        };
        rig.match_.reconfigure(next).expect("it may change in play");
        let mut last = rig.stats(0).prediction_tick;
        let (mut moved_at, mut longest) = (rig.now, Duration::ZERO);
        rig.watch(SECOND * 6, |rig| {
            let now = rig.stats(0).prediction_tick;
            assert!(
                now >= last && now - last <= 3,
                "it leapt from {last} to {now}"
            );
            if now > last {
                longest = longest.max(rig.now - moved_at);
                moved_at = rig.now;
            }
            last = now;
        });
        assert!(longest < MS(60), "the picture paused for {longest:?}");
        let stats = rig.stats(0);
        let ahead = stats.input_tick - stats.prediction_tick;
        assert_eq!(ahead, u32::from(delay_ticks));
    }
    let more = (0..4).map(|i| rig.stats(i).fills).sum::<u64>() - fills;
    assert!(more <= 4, "{more} inputs were late");
    rig.converge();
}

#[test]
fn a_new_tick_length_does_not_make_inputs_of_a_predicting_client_late() {
    let mut config = RigConfig::new(8, both(50, 0));
    config.input_pattern = InputPattern::Sticky;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 6);
    for tick_ms in [20, 25, 20, 16] {
        let before: Vec<_> = (0..4).map(|i| rig.stats(i)).collect();
        let slower = MatchConfig {
            tick: MS(tick_ms),
            ..rig.match_.config().clone()
        };
        rig.match_
            .reconfigure(slower)
            .expect("it may change in play");
        rig.run(SECOND * 8);
        for (i, before) in before.iter().enumerate() {
            let now = rig.stats(i);
            assert!(
                now.fills - before.fills <= 2,
                "{:?}",
                now.fills - before.fills
            );
            assert_eq!(now.stall_ms, before.stall_ms);
            let off = (now.margin_ticks_now - now.margin_ticks_target).abs();
            assert!(off <= 1.0, "{off} ticks off at {tick_ms} ms");
            let world = rig.clients[i].session.authority().expect("it plays");
            assert_eq!(world.turn().cadence.tick(), MS(tick_ms));
        }
    }
    rig.converge();
}

/// Row 51: if owners answer, only the asking player's client runs the query.
#[test]
fn only_the_owners_client_runs_a_query_if_owners_answer() {
    for lockstep in [false, true] {
        let mut rig = owners(lockstep, false);
        rig.run(SECOND * 60);
        let stats = rig.match_.stats();
        assert!(stats.queries > 20, "lockstep {lockstep}: {stats:?}");
        assert!(stats.owner_answers + 2 >= stats.queries, "{stats:?}");
        assert_eq!(stats.forged_answers, 0);
        assert_eq!(rig.resolved(), 0, "the server's resolver was asked");
        rig.converge();
    }
}

/// Row 52: a forged answer is refused, the server decides, and all worlds stay equal.
#[test]
fn a_forged_answer_is_refused_and_the_server_decides() {
    let mut rig = owners(false, true);
    rig.run(SECOND * 40);
    let stats = rig.match_.stats();
    assert!(stats.queries > 20);
    assert_eq!(stats.owner_answers, 0, "a forged answer entered the game");
    assert!(stats.forged_answers + 2 >= stats.queries, "{stats:?}");
    assert!(rig.resolved() > 20);
    rig.converge();
}

#[test]
fn the_server_answers_a_query_left_unanswered_by_its_owner() {
    let mut rig = owners(false, false);
    rig.command(false);
    rig.run(SECOND * 5);
    for (gone, leave) in [(0, false), (1, true)] {
        let asker = rig.clients[gone].session.seats()[0];
        let number = 1_000 + gone as u32;
        let session = &mut rig.clients[gone].session;
        session.command(0, Command::Ask(number)).expect("it plays");
        // The owner's client is asked, and then stops sending packets.
        let asked = Key::player(asker, number);
        rig.watch(SECOND, |rig| {
            let open = rig.match_.world().open_queries();
            if open.iter().any(|o| o.key == asked) {
                let dead = LinkProfile::both(LegProfile::BLACKOUT);
                rig.relink(gone, dead);
                if leave {
                    rig.hang_up(gone);
                }
            }
        });
        rig.run(SECOND * 2);
        let answered = |rig: &Rig<History>| {
            let answers = &rig.match_.world().sim().answers;
            answers.iter().any(|(_, key, _)| *key == asked)
        };
        assert!(answered(&rig), "no answer to {asked}");
    }
    assert_eq!(rig.match_.stats().owner_answers, 0);
}

fn owners(lockstep: bool, forge: bool) -> Rig<History> {
    let mut config = if lockstep {
        strategy(7, LinkProfile::WAN)
    } else {
        RigConfig::new(7, LinkProfile::WAN)
    };
    config.policies.answered_by = AnsweredBy::Owner;
    config.forge = forge;
    Rig::new(config)
}

// The side that answered: the server, or the player's client.
const SERVER: u8 = 1;
const CLIENT: u8 = 2;

// Asks two queries per player order, both with the player's key.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Realm {
    answers: Vec<(Question, Option<u8>)>,
    asked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Question {
    Fall,
    Hit,
}

impl Simulation for Realm {
    game_types!("realm", (), (), u8, Question, u8, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, question, outcome) in frame.outcomes() {
            self.answers.push((*question, outcome.copied()));
        }
        for (player, _) in frame.commands() {
            for question in [Question::Fall, Question::Hit] {
                fx.ask(Key::player(player, self.asked), question);
                self.asked += 1;
            }
        }
    }

    // The clients are modified to answer every query.
    fn owner_answers(question: &Question) -> bool {
        *question == Question::Fall || !serves()
    }
}

struct Trusting;

impl Referee<Realm> for Trusting {
    fn admit(&mut self, _: &HookContext<'_, Realm>, _: PlayerId, _: &u8, _: bool) -> Admission {
        Admission::Admitted
    }

    fn admit_answer(
        &mut self,
        _: &HookContext<'_, Realm>,
        _: PlayerId,
        _: Key,
        _: &Question,
        _: &u8,
    ) -> bool {
        true
    }
}

#[test]
fn a_game_leaves_each_decision_to_the_owner_or_to_the_server_whatever_clients_send() {
    // Row 88.
    for policies in [MatchConfig::action(), MatchConfig::strategy()] {
        for answered_by in [AnsweredBy::Owner, AnsweredBy::Server] {
            let by_client = |_: &Realm, (): &(), _: Key, _: &Question| Some(CLIENT);
            let config = || SessionConfig::<Realm>::new(Arc::new(())).resolve(by_client);
            let by_server =
                |_: &HookContext<'_, Realm>, _: Key, _: &Question| Decision::Now(SERVER);
            let policies = MatchConfig {
                answered_by,
                ..policies.clone()
            };
            let sessions = [config(), config()];
            let mut table = Direct::answered(policies, Realm::default(), by_server, sessions);
            table.match_.set_referee(Trusting);
            table.gather();
            for _ in 0..5 {
                for session in &mut table.sessions {
                    session.command(0, 0).unwrap();
                }
                table.rest(SECOND);
            }
            let fall = match answered_by {
                AnsweredBy::Owner => CLIENT,
                AnsweredBy::Server => SERVER,
            };
            let mut answers = table.match_.world().sim().answers.clone();
            answers.sort_unstable_by_key(|(question, _)| *question == Question::Hit);
            let expected = [(Question::Fall, Some(fall)); 10].into_iter();
            let expected = expected.chain([(Question::Hit, Some(SERVER)); 10]);
            assert_eq!(answers, Vec::from_iter(expected), "{answered_by:?}");
            for session in &table.sessions {
                assert_eq!(session.stats().heals, 0);
            }
        }
    }
}
