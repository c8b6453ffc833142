//! The skirmish alone: what costs, who fights whom, and that the same orders make the same war.

use twinstep_core::testing::Solo;
use twinstep_core::{Mwc, PlayerId, Tick, codec};

use super::step::{FUSE_TICKS, GOLD, TRAIN_TICKS};
use super::*;

const ONE: PlayerId = PlayerId(0);
const TWO: PlayerId = PlayerId(1);

fn war(rules: &Rules) -> Solo<Skirmish> {
    let mut war = Solo::new(Skirmish::new(), rules.clone());
    war.join(ONE).join(TWO).step();
    war
}

/// No villagers: only what a test puts there.
fn empty() -> Rules {
    Rules {
        villagers: 0,
        ..Rules::default()
    }
}

/// A soldier that stands somewhere.
fn put_soldier(war: &mut Solo<Skirmish>, owner: PlayerId, at: FieldPoint) -> UnitId {
    let now = war.world().tick();
    let sim = war.sim_mut();
    let id = sim.name(owner).expect("a town");
    sim.enter(id, UnitKind::Soldier, now, &Rules::default());
    let unit = sim.units.get_mut(&id).expect("it entered");
    unit.trip = Trip::walk(at, at, now, 1);
    unit.goal = at;
    id
}

/// A tick with what bots order and the server answers.
fn play(war: &mut Solo<Skirmish>, bots: &mut [(PlayerId, SkirmishBot)], rules: &Rules) {
    let now = war.world().tick();
    for (id, bot) in bots {
        if let Some(order) = bot.think(war.sim(), *id, now) {
            assert!(war.sim().admits(rules, *id, &order), "{order:?}");
            war.command(*id, order);
        }
    }
    let open = war.world().open_queries().to_vec();
    for open in open {
        let hits = Bombardier::default().decide(war.sim(), &open.query, now);
        war.answer(open.key, hits.expect("a map of numbers"));
    }
    war.step();
}

/// Row 4: ten thousand sleepers cost no callback in any tick, and each wakes in its own.
#[test]
fn ten_thousand_sleepers_cost_no_callback() {
    let rules = Rules {
        villagers: 5_000,
        dig_ticks: 100_000,
        ..Rules::default()
    };
    let mut war = war(&rules);
    war.run(400);
    let (sleepers, woken) = (war.sim().sleepers(), war.sim().woken);
    assert_eq!((sleepers, woken), (10_000, 10_000), "each arrived once");
    war.run(2_000);
    assert_eq!(war.sim().woken, woken);
    assert_eq!(war.sim().sleepers(), sleepers);
}

#[test]
fn a_villager_is_paid_for_whole_trips_and_wakes_at_their_ends_only() {
    let rules = Rules {
        villagers: 1,
        ..Rules::default()
    };
    let mut war = war(&rules);
    let id = *war.sim().units.keys().next().expect("a villager");
    let way = rules.town(ONE).distance(rules.mine(id)).div_ceil(4);
    let home = 2 * way + rules.dig_ticks;
    war.run(home - 1);
    assert_eq!(war.sim().towns.get(&ONE).expect("a town").gold, GOLD);
    war.step();
    assert_eq!(war.sim().towns.get(&ONE).expect("a town").gold, GOLD + 10);
    assert_eq!(war.sim().woken, 4, "two villagers, two ends");
}

#[test]
fn a_trip_ends_where_it_should_and_never_leaves_its_way() {
    let mut luck = Mwc::seed(3);
    for _ in 0..2_000 {
        let mut place = || FieldPoint {
            x: luck.below(800) as i16,
            y: luck.below(400) as i16,
        };
        let (from, to) = (place(), place());
        let trip = Trip::walk(from, to, Tick(7), 3);
        assert_eq!((trip.at(Tick(0)), trip.at(trip.arrives)), (from, to));
        let mut left = u32::MAX;
        for tick in 7..=trip.arrives.0 {
            let now = trip.at(Tick(tick)).distance(to);
            assert!(now <= left, "{now} after {left}");
            left = now;
        }
    }
}

#[test]
fn soldiers_march_fight_whom_they_meet_and_the_stronger_side_wins() {
    let rules = empty();
    let mut war = war(&rules);
    for n in 0..3 {
        put_soldier(&mut war, ONE, FieldPoint::field(10 + n, 8));
    }
    let lone = put_soldier(&mut war, TWO, FieldPoint::field(30, 8));
    war.command(ONE, Command::Send(FieldPoint::field(30, 8)))
        .step();
    war.run(400);
    assert!(!war.sim().units.contains_key(&lone));
    assert_eq!(war.sim().units.len(), 3);
    assert_eq!(war.sim().towns.get(&ONE).expect("a town").kills, 1);
    assert_eq!(war.sim().sleepers(), 0, "who has arrived sleeps");
}

/// Row 50: the step asks, the answer comes as an action, and only then anybody is hurt. Without an answer
/// the bomb fizzles.
#[test]
fn a_bomb_hits_whom_the_answer_names() {
    let rules = empty();
    let mut war = war(&rules);
    let spot = FieldPoint::field(20, 8);
    let near = put_soldier(&mut war, TWO, spot);
    let far = put_soldier(&mut war, TWO, FieldPoint::field(26, 8));
    for answered in [false, true] {
        war.command(ONE, Command::Bomb(spot)).run(FUSE_TICKS + 1);
        let &(key, blast) = war.effects().asks().first().expect("the fuse is down");
        let health = war.sim().units.get(&near).expect("it lives").health;
        assert_eq!(health, 60, "nobody is hurt by a question");
        if answered {
            let hits = Bombardier::default().decide(war.sim(), &blast, war.world().tick());
            let hits = hits.expect("a map of numbers");
            assert_eq!(hits[..], [(near, 0)]);
            war.answer(key, hits).step();
        } else {
            war.refuse(key).step();
        }
    }
    assert!(!war.sim().units.contains_key(&near));
    assert_eq!(war.sim().units.get(&far).expect("it lives").health, 60);
    assert_eq!(war.sim().towns.get(&ONE).expect("a town").gold, GOLD - 80);
}

#[test]
fn the_nearest_are_hit_if_a_blast_finds_too_many() {
    let rules = empty();
    let mut war = war(&rules);
    let spot = FieldPoint::field(20, 8);
    for n in 0..2 * HITS_MAX as i16 {
        put_soldier(
            &mut war,
            TWO,
            FieldPoint {
                x: spot.x + n,
                ..spot
            },
        );
    }
    let blast = Blast { by: ONE, at: spot };
    let hits = Bombardier::default().decide(war.sim(), &blast, war.world().tick());
    let hits = hits.expect("a map of numbers");
    assert_eq!(hits.len(), HITS_MAX);
    assert!(hits.is_sorted_by_key(|hit| hit.1));
    let largest = codec::size(&hits).expect("it can be encoded");
    assert!(largest <= twinstep_core::bounds::OUTCOME_BYTES_MAX);
}

#[test]
fn who_cannot_pay_gets_nothing_and_places_off_the_map_are_refused() {
    let rules = empty();
    let mut war = war(&rules);
    for _ in 0..5 {
        war.command(ONE, Command::Train(UnitKind::Soldier));
    }
    war.run(5 * TRAIN_TICKS + 1);
    assert_eq!(war.sim().units.len(), 4, "gold for four");
    let sim = war.sim();
    let off = FieldPoint { x: -1, y: 3 };
    assert!(!sim.admits(&rules, ONE, &Command::Bomb(off)));
    assert!(sim.admits(&rules, ONE, &Command::Bomb(FieldPoint::default())));
    assert!(!sim.admits(&rules, PlayerId(7), &Command::Train(UnitKind::Villager)));
}

#[test]
fn who_leaves_takes_all_along_and_comes_back_with_new_names() {
    let rules = Rules::default();
    let mut war = war(&rules);
    war.command(TWO, Command::Train(UnitKind::Soldier)).run(3);
    war.leave(TWO).run(200);
    assert!(war.sim().units.keys().all(|id| id.owner == ONE));
    let before = war.sim().towns.get(&TWO).expect("a town").named;
    war.join(TWO).step();
    let mut own = war.sim().units.keys().filter(|id| id.owner == TWO);
    assert!(own.all(|id| id.n > before));
}

/// Row 1, of this game: the same orders make the same war, also through a save.
#[test]
fn the_same_orders_make_the_same_war() {
    let rules = Rules::default();
    let side = |n| (PlayerId(n), SkirmishBot::new(Mwc::seed(n.into())));
    let (mut saved, mut played) = (war(&rules), war(&rules));
    let (mut ours, mut theirs) = ([side(0), side(1)], [side(0), side(1)]);
    for tick in 0..4_000 {
        play(&mut saved, &mut ours, &rules);
        play(&mut played, &mut theirs, &rules);
        if tick % 500 == 0 {
            let mut bytes = Vec::new();
            codec::append(saved.sim(), &mut bytes).expect("it can be saved");
            *saved.sim_mut() = codec::decode_whole(&bytes).expect("it can be loaded");
        }
        assert_eq!(saved.world().digest(), played.world().digest(), "{tick}");
    }
    let towns: Vec<&Town> = saved.sim().towns.values().collect();
    assert!(towns.iter().all(|town| town.kills > 0), "{towns:?}");
}
