//! Sound and faulty games, played over a bad network in virtual time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use twinstep_client::TimelineStats;
use twinstep_core::memo::Outputs;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Key, Never, Phase, PlayerId, Simulation, Table};
use twinstep_server::MatchConfig;
use twinstep_testing::{FailureKind, Script, arena};

use crate::planted_states::Skips;
use crate::planting::game;

#[derive(Clone, Default, Serialize, Deserialize)]
struct Race {
    pawns: Table<PlayerId, (u32, u32, bool)>,
    jumps: u32,
}
game!(Race, (), u8, u8, PlayerId, u32, PlayerId, frame, fx, me => {
    for (_, player, face) in frame.outcomes() {
        me.pawns.get_or_insert_with(*player, Default::default).0 += face.unwrap_or(&0);
    }
    for (player, _) in frame.commands() {
        me.jumps += 1;
        fx.cue(Key::player(player, me.jumps), player);
    }
    for (player, button) in frame.inputs() {
        let pawn = me.pawns.get_or_insert_with(player, Default::default);
        if *button == 1 && !pawn.2 {
            fx.ask(Key::player(player, pawn.1), player);
            fx.cue(Key::player(player, 1_000_000 + pawn.1), player);
            pawn.1 += 1;
        }
        pawn.2 = *button == 1;
    }
});

fn racers() -> Script<Race> {
    Script::inputs([0, 1])
        .commands(|_, luck| (luck.below(30) == 0).then_some(1))
        .outcomes(|_, luck| (luck.below(5) > 0).then(|| luck.below(6)))
}

#[test]
fn a_sound_game_passes_over_every_link() {
    for link in ["perfect", "wan", "bad", "awful", "rtt=80,jitter=30,loss=20"] {
        let arena = arena(Race::default(), (), racers()).link(link).seed(3);
        let played = arena.seconds(20).run().unwrap();
        println!("{link}\n{played}");
        assert_eq!(played.clients.len(), 4);
        assert!(played.server.queries > 100, "{played}");
        assert!(played.server.unanswered > 5, "{played}");
        for stats in played.clients.values() {
            assert!(
                stats.commands_executed > 10 && stats.cues_confirmed > 20,
                "{played}"
            );
        }
        let rebuilds: u64 = played.clients.values().map(|s| s.timeline.rebuilds).sum();
        assert!(rebuilds > 100, "{played}");
        assert!(
            played.unused_variants.is_empty() && played.grows.is_none(),
            "{played}"
        );
        assert!(
            played
                .to_string()
                .contains(&format!("{rebuilds} rebuilds: ")),
            "{played}"
        );
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Herd {
    sheep: Vec<u32>,
    called: Table<PlayerId, u32>,
}
game!(Herd, frame, fx, me => {
    me.sheep.resize(50, 0);
    for (player, button) in frame.inputs() {
        *me.called.get_or_insert_with(player, || 0) += u32::from(*button);
    }
    // Every tenth one reads a value that a wrong guess changes.
    let called: u32 = me.called.values().sum();
    let read = |n: usize, _: &u32| if n.is_multiple_of(10) { called } else { 0 };
    fx.each("sheep", frame, &mut me.sheep, read, |sheep: &mut u32, read, _, _: &mut Outputs<'_, ()>| {
        *sheep = sheep.wrapping_mul(31).wrapping_add(*read);
    }, |_, ()| ());
});

#[test]
fn an_arena_reports_the_share_of_loop_items_that_ran_again() {
    let played = arena(Herd::default(), (), Script::inputs([0, 1]))
        .link("bad")
        .seed(3)
        .seconds(10);
    let played = played.run().unwrap();
    let sum = |of: fn(&TimelineStats) -> u64| -> u64 {
        played
            .clients
            .values()
            .map(|stats| of(&stats.timeline))
            .sum()
    };
    let (taken, run) = (sum(|stats| stats.items_taken), sum(|stats| stats.items_run));
    let share = run as f64 / (run + taken) as f64 * 100.0;
    assert!(run > 100 && (5.0..30.0).contains(&share), "{share}");
    let line = format!(
        "loops: {share:.1} % of {} items in repeated ticks were run again",
        run + taken
    );
    assert!(played.to_string().contains(&line), "{played}");
}

#[test]
fn an_arena_of_a_strategy_game_finds_no_fault() {
    let arena = arena(Race::default(), (), racers()).policies(MatchConfig::strategy());
    let played = arena.players(3).link("wan").seconds(30).run().unwrap();
    assert!(
        played.clients.values().all(|s| s.commands_executed > 5),
        "{played}"
    );
}

#[test]
fn the_same_seed_gives_an_identical_report() {
    let run = |seed| {
        let arena = arena(Race::default(), (), racers())
            .link("awful")
            .seconds(12);
        let played = arena.seed(seed).run().unwrap();
        played.to_string()
    };
    let runs: BTreeSet<String> = [run(5), run(5), run(6)].into();
    assert_eq!(runs.len(), 2, "{runs:?}");
}

#[test]
fn a_field_that_serde_skips_diverges_for_clients_that_load_the_world() {
    let script = Script::inputs([0, 1, 2]);
    let failed = arena(Skips::default(), (), script)
        .seed(7)
        .seconds(20)
        .run();
    let failure = failed.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Diverged, "{failure}");
    assert!(failure.what.contains("sim.shots: "), "{failure}");
    let again = "TWINSTEP_SEED=7 TWINSTEP_SECONDS=20 cargo test -p twinstep-testing \
                 arenas::a_field_that_serde_skips_diverges_for_clients_that_load_the_world -- --exact";
    assert_eq!(failure.again, again);
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Call {
    Hop,
    Vote,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Noise {
    Hopped(PlayerId),
    /// A cue with a value that depends on the phase.
    Steps(u32),
    Won,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Chronicle {
    days: Vec<Day>,
    hops: u32,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Day {
    held: Vec<u32>,
}

game!(Chronicle, (), u8, Call, Never, Never, Noise, frame, fx, me => {
    for (player, _) in frame.commands() {
        me.hops += 1;
        fx.cue(Key::player(player, me.hops), Noise::Hopped(player));
    }
    if frame.tick().0.is_multiple_of(10) {
        me.days.push(Day::default());
        let seen = u32::from(frame.phase() == Phase::Prediction);
        fx.cue(Key::new(1, me.days.len() as u32), Noise::Steps(seen));
    }
    if let Some(day) = me.days.last_mut() {
        day.held.extend(frame.inputs().map(|(_, held)| 1_000 + u32::from(*held)));
    }
});

/// Findings A3-4 and A3-7: most cues were cancelled, variants were never tried and the world kept growing, but the
/// arena reported "all agreed".
#[test]
fn an_arena_reports_cancelled_cues_unused_variants_and_the_growing_list() {
    let script =
        Script::inputs([0, 1, 2]).commands(|_, luck| (luck.below(90) == 0).then_some(Call::Hop));
    let arena = arena(Chronicle::default(), (), script).link("wan").seed(4);
    let played = arena.seconds(10).run().unwrap();
    println!("{played}");
    assert_eq!(played.unused_variants, ["command Vote", "cue Won"]);
    let kinds = Vec::from_iter(played.cues.keys().copied());
    assert_eq!(kinds, ["Hopped", "Steps"]);
    let (hopped, steps) = (played.cues["Hopped"], played.cues["Steps"]);
    assert!(
        5 * steps.cancelled > 2 * steps.started && steps.started > 100,
        "{steps:?}"
    );
    assert!(4 * hopped.cancelled < hopped.started, "{hopped:?}");
    let started = played.clients.values().map(|stats| stats.cues_started);
    assert_eq!(started.sum::<u64>(), hopped.started + steps.started);
    let (path, was, len) = played.grows.clone().unwrap().field.unwrap();
    assert_eq!(path, "sim.days[].held");
    assert!(len > was + 1_000, "{was} to {len}");
    let text = played.to_string();
    for line in [
        "MOST GUESSES OF THESE CUES WERE WRONG: Steps, ",
        "NEVER OCCURRED, so unchecked: command Vote, cue Won",
        "THE WORLD GROWS: ",
        "by an own command that came late",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("WRONG: Hopped"), "{text}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Counts {
    next: u32,
}
static NEXT: AtomicU32 = AtomicU32::new(0);
game!(Counts, _frame, _fx, me => {
    me.next = NEXT.fetch_add(1, Ordering::Relaxed);
});

#[test]
fn a_static_counter_makes_clients_diverge() {
    let failed = arena(Counts::default(), (), Script::inputs([0, 1])).run();
    assert_eq!(failed.unwrap_err().kind, FailureKind::Diverged);
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Bombs {
    sum: u32,
}
game!(Bombs, (), u8, u8, Never, Never, Never, frame, _fx, me => {
    me.sum += frame.commands().map(|(_, c)| 100 / u32::from(*c)).sum::<u32>();
});

#[test]
fn a_command_that_makes_the_step_panic_is_reported_as_a_fault() {
    let script = Script::inputs([0]).commands(|_, luck| (luck.below(60) == 0).then_some(0));
    let failure = arena(Bombs::default(), (), script).run().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Fault, "{failure}");
    assert!(failure.what.contains("divide by zero"), "{failure}");
}

#[test]
#[should_panic(expected = "expected a link: perfect, lan, wan, bad, awful, or settings")]
fn an_invalid_link_is_refused() {
    let _ = arena(Counter::default(), (), Script::inputs([0])).link("dsl");
}

static TURNS: AtomicU32 = AtomicU32::new(0);
#[derive(Clone, Default, Serialize, Deserialize)]
struct Harvest {
    held: u32,
    corn: u32,
}
game!(Harvest, frame, _fx, me => {
    me.held += frame.inputs().count() as u32;
    // Differs for some ticks of a turn, and not at its end.
    me.corn = match frame.tick().0 % 4 {
        3 => 0,
        _ => TURNS.fetch_add(1, Ordering::Relaxed),
    };
});

// Finding A4-3.
#[test]
fn a_divergence_in_the_middle_of_a_turn_is_reported_with_its_fields() {
    let played = arena(Harvest::default(), (), Script::inputs([0, 1]).lockstep());
    let failure = played.policies(MatchConfig::strategy()).seconds(10).run();
    let failure = failure.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Diverged, "{failure}");
    assert!(failure.what.contains("\n  sim.corn: "), "{failure}");
}
