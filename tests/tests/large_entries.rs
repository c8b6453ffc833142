//! Large orders and outcomes: they are sealed in fragments, but run once, completely, in one tick.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{CommandError, Event, SessionConfig};
use twinstep_core::bounds::{COMMAND_BYTES_MAX, COMMAND_INLINE_MAX, OUTCOME_INLINE_MAX};
use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation, Tick, codec};
use twinstep_protocol::packet::UpKind;
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::edges::{EdgeCases, Load};
use twinstep_rig::game_types;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::config::AnsweredBy;
use twinstep_server::{Admission, Decision, HookContext, MatchConfig, Referee};

const SECOND: Duration = Duration::from_secs(1);

// Unit numbers that take three bytes each.
fn units(count: u16) -> Vec<u16> {
    (300..300 + count).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum March {
    Select(Vec<u16>),
    Halt(u8),
    Bomb,
}

// An army whose state is a log of the orders and outcomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Army {
    orders: Vec<(Tick, PlayerId, March)>,
    hits: Vec<(Tick, Option<Vec<u16>>)>,
}

impl Simulation for Army {
    game_types!("army", (), u8, March, (), Vec<u16>, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, (), hit) in frame.outcomes() {
            self.hits.push((frame.tick(), hit.cloned()));
        }
        for (player, order) in frame.commands() {
            if *order == March::Bomb {
                fx.ask(Key::player(player, frame.tick().0), ());
            }
            self.orders.push((frame.tick(), player, order.clone()));
        }
    }
}

fn blast(_: &HookContext<'_, Army>, _: Key, (): &()) -> Decision<Vec<u16>> {
    Decision::Now(units(600))
}

fn table(policies: MatchConfig, clients: usize) -> Direct<Army> {
    let sessions = (0..clients).map(|_| SessionConfig::<Army>::new(Arc::new(())));
    let mut table = Direct::answered(policies, Army::default(), blast, sessions);
    table.gather();
    table
}

fn orders(army: &Army) -> Vec<(PlayerId, March)> {
    let orders = army.orders.iter();
    orders
        .map(|(_, player, order)| (*player, order.clone()))
        .collect()
}

// Row 86: an order that selects a thousand units and a bomb that hits six hundred run once, completely, in one tick,
// with prediction and in lockstep. A small order keeps its place behind a large one.
#[test]
fn a_thousand_units_are_selected_and_six_hundred_are_hit_in_one_tick() {
    for policies in [MatchConfig::action(), MatchConfig::strategy()] {
        let mut table = table(policies, 2);
        let session = &mut table.sessions[0];
        for order in [March::Select(units(1_000)), March::Halt(1), March::Bomb] {
            session.command(0, order).unwrap();
        }
        table.rest(SECOND * 3);
        let world = table.match_.world();
        let me = PlayerId(0);
        let given = [March::Select(units(1_000)), March::Halt(1), March::Bomb];
        assert_eq!(orders(world.sim()), given.map(|order| (me, order)));
        let hits: Vec<_> = world
            .sim()
            .hits
            .iter()
            .map(|(_, hit)| hit.clone())
            .collect();
        assert_eq!(hits, [Some(units(600))]);
        assert!(world.unfinished().is_empty());
        for session in &table.sessions {
            assert_eq!(session.authority().unwrap().sim(), world.sim());
            assert_eq!(session.stats().heals, 0);
        }
    }
}

// The client computes the tick in which its large order is complete, as it does for small orders.
#[test]
fn large_orders_of_a_lone_client_cause_no_rebuild() {
    let mut table = table(MatchConfig::action(), 1);
    let before = table.sessions[0].stats().timeline.rebuilds;
    for n in 0..4 {
        let session = &mut table.sessions[0];
        session.command(0, March::Halt(n)).unwrap();
        session
            .command(0, March::Select(units(1_000 + u16::from(n))))
            .unwrap();
        session.command(0, March::Halt(n)).unwrap();
        table.rest(SECOND * 2);
    }
    assert_eq!(table.match_.world().sim().orders.len(), 12);
    assert_eq!(table.sessions[0].stats().timeline.rebuilds, before);
}

#[test]
fn large_orders_do_not_delay_small_ones_of_other_players() {
    let mut table = table(MatchConfig::action(), 3);
    for session in &mut table.sessions[1..] {
        session.command(0, March::Select(units(1_300))).unwrap();
    }
    table.rest(SECOND / 30);
    let given = table.match_.world().tick();
    table.sessions[0].command(0, March::Halt(7)).unwrap();
    table.rest(SECOND * 2);
    let orders = &table.match_.world().sim().orders;
    let ran = |is: fn(&March) -> bool| orders.iter().find(|(_, _, order)| is(order)).unwrap().0;
    let (small, large) = (
        ran(|order| matches!(order, March::Halt(_))),
        ran(|order| matches!(order, March::Select(_))),
    );
    assert!(small - given < 12, "given before {given}, ran at {small}");
    assert!(small < large, "{small} is not before {large}");
}

// An incomplete large order takes memory only in its own client's lane, and delays only that client's later orders.
#[test]
fn an_incomplete_large_order_delays_only_later_orders_of_its_player() {
    let mut table = table(MatchConfig::action(), 2);
    let large = March::Select(units(1_000));
    table.sessions[0].command(0, large.clone()).unwrap();
    table.sessions[0].command(0, March::Halt(1)).unwrap();
    let mut chunks = 0;
    for n in 0..600 {
        if n == 300 {
            table.sessions[1].command(0, March::Halt(2)).unwrap();
        }
        table.frame(|_, _| 0);
        table.up.retain(|(i, bytes)| {
            let is_chunk = *i == 0 && bytes[0] == UpKind::Lane.alone();
            chunks += usize::from(is_chunk);
            !is_chunk || chunks == 1
        });
        table.serve();
    }
    let other = (PlayerId(1), March::Halt(2));
    assert_eq!(
        orders(table.match_.world().sim()),
        std::slice::from_ref(&other)
    );
    assert!(table.match_.world().unfinished().is_empty());
    // Finally, the rest arrives.
    table.rest(SECOND * 4);
    let me = PlayerId(0);
    let all = [other, (me, large), (me, March::Halt(1))];
    assert_eq!(orders(table.match_.world().sim()), all);
    assert_eq!(table.match_.stats().malformed, 0);
}

struct Unarmed;

impl Referee<Army> for Unarmed {
    fn admit(
        &mut self,
        _: &HookContext<'_, Army>,
        _: PlayerId,
        order: &March,
        _: bool,
    ) -> Admission {
        match order {
            March::Select(_) => Admission::Refused(7),
            _ => Admission::Admitted,
        }
    }
}

#[test]
fn no_byte_of_a_refused_large_order_enters_a_frame() {
    let mut table = table(MatchConfig::action(), 1);
    table.match_.set_referee(Unarmed);
    table.sessions[0]
        .command(0, March::Select(units(1_000)))
        .unwrap();
    table.sessions[0].command(0, March::Halt(1)).unwrap();
    for _ in 0..90 {
        table.run(1, |_, _| 0);
        assert!(table.match_.world().unfinished().is_empty());
    }
    let mut refused = 0;
    while let Some(event) = table.sessions[0].poll_event() {
        refused += usize::from(matches!(event, Event::CommandRefused { seq: 0, .. }));
    }
    assert_eq!(refused, 1);
    assert_eq!(table.match_.world().sim().orders.len(), 1);
}

#[test]
fn an_order_of_the_maximum_size_runs_and_a_larger_one_is_an_error_with_both_sizes() {
    let mut table = table(MatchConfig::action(), 1);
    let of = |bytes: usize| March::Select(vec![9; bytes - 4]);
    let largest = of(COMMAND_BYTES_MAX);
    assert_eq!(codec::size(&largest).unwrap(), COMMAND_BYTES_MAX);
    let error = table.sessions[0]
        .command(0, of(COMMAND_BYTES_MAX + 1))
        .unwrap_err();
    assert_eq!(error, CommandError::TooLarge { bytes: 4_097 });
    assert_eq!(
        error.to_string(),
        "command: expected at most 4096 bytes, got 4097"
    );
    table.sessions[0].command(0, largest).unwrap();
    table.sessions[0].command(0, of(300)).unwrap();
    let third = table.sessions[0].command(0, of(300));
    assert_eq!(third, Err(CommandError::Busy), "two are open");
    table.rest(SECOND * 3);
    assert_eq!(table.match_.world().sim().orders.len(), 2);
}

struct Trusting;

impl Referee<Army> for Trusting {
    fn admit(&mut self, _: &HookContext<'_, Army>, _: PlayerId, _: &March, _: bool) -> Admission {
        Admission::Admitted
    }

    fn admit_answer(
        &mut self,
        _: &HookContext<'_, Army>,
        _: PlayerId,
        _: Key,
        (): &(),
        hit: &Vec<u16>,
    ) -> bool {
        *hit == units(1_000)
    }
}

#[test]
fn an_owner_answers_with_a_large_outcome() {
    for policies in [MatchConfig::action(), MatchConfig::strategy()] {
        let answer = |_: &Army, (): &(), _: Key, (): &()| Some(units(1_000));
        let config = || SessionConfig::<Army>::new(Arc::new(())).resolve(answer);
        let policies = MatchConfig {
            answered_by: AnsweredBy::Owner,
            ..policies
        };
        let mut table = Direct::answered(policies, Army::default(), blast, [config(), config()]);
        table.match_.set_referee(Trusting);
        table.gather();
        table.sessions[1].command(0, March::Bomb).unwrap();
        table.rest(SECOND * 3);
        let hits: Vec<_> = table
            .match_
            .world()
            .sim()
            .hits
            .iter()
            .map(|hit| hit.1.clone())
            .collect();
        assert_eq!(hits, [Some(units(1_000))]);
        let stats = table.match_.stats();
        assert_eq!((stats.owner_answers, stats.forged_answers), (1, 0));
    }
}

fn lossy(config: RigConfig) -> Rig<EdgeCases> {
    Rig::new(RigConfig {
        journal: true,
        load: Load {
            large_bytes: COMMAND_BYTES_MAX as u16,
            commands_in_10_s: 20,
            ..Load::default()
        },
        ..config
    })
}

// Runs until the server is between two fragments.
fn reach_fragments(rig: &mut Rig<EdgeCases>) {
    for _ in 0..20_000 {
        if !rig.match_.world().unfinished().is_empty() {
            return;
        }
        rig.run(Duration::from_millis(5));
    }
    panic!("no large entry began within 100 s");
}

fn check_large_ran(rig: &mut Rig<EdgeCases>) {
    rig.converge();
    let widest = rig.match_.world().sim().widest;
    assert!(
        usize::from(widest.command) > COMMAND_INLINE_MAX * 8,
        "{widest:?}"
    );
    assert!(
        usize::from(widest.outcome) > OUTCOME_INLINE_MAX * 8,
        "{widest:?}"
    );
    assert!(rig.resolved_again().is_empty(), "resolved twice");
    let rules = rig.config.load;
    let mut replay = Replay::<EdgeCases>::open(&rig.journal[..], &rules).unwrap();
    assert_eq!(replay.verify().fault, None);
}

// Row 86: over lossy links, with clients that join, are healed or lose their server between two fragments, each command
// has exactly one result and each query exactly one answer. The rig checks that all worlds are equal every tick.
#[test]
fn joins_heals_and_crashes_between_two_fragments_lose_and_repeat_no_entry() {
    for config in [
        RigConfig::new(3, LinkProfile::WAN),
        RigConfig::strategy(4, LinkProfile::WAN),
    ] {
        let mut rig = lossy(config);
        rig.run(SECOND * 5);
        for n in 0..2 {
            reach_fragments(&mut rig);
            rig.join(&format!("late {n}")).to_string();
            rig.run(SECOND * 3);
        }
        reach_fragments(&mut rig);
        rig.flip(0);
        rig.run(SECOND * 4);
        assert_eq!(rig.match_.stats().heals, 1);
        let mut between = 0;
        for _ in 0..8 {
            reach_fragments(&mut rig);
            rig.crash(SECOND / 2);
            between += usize::from(!rig.match_.world().unfinished().is_empty());
            rig.run(SECOND / 2);
            for client in 0..rig.clients.len() {
                rig.redial(client);
            }
            rig.run(SECOND * 4);
            assert!(rig.all_play());
        }
        assert!(between > 0, "no match was resumed between two fragments");
        check_large_ran(&mut rig);
    }
}
