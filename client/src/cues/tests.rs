use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Cues = Vec<(Key, u8)>;

fn key(n: u32) -> Key {
    Key::new(7, n)
}

fn boom() -> Cues {
    vec![(key(1), 9)]
}

/// The events in short form: "0 start t5", "0 yes t5", "0 no".
fn words(ledger: &mut CueLedger<u8>) -> Vec<String> {
    std::iter::from_fn(|| ledger.poll())
        .map(|event| match event.kind {
            CueKind::Started { tick, .. } => format!("{} start t{}", event.id.0, tick.0),
            CueKind::Confirmed { at } => format!("{} yes t{}", event.id.0, at.0),
            CueKind::Cancelled => format!("{} no", event.id.0),
        })
        .collect()
}

fn rebuilt(ledger: &mut CueLedger<u8>, ticks: &[(u32, Cues)]) {
    ledger.rebuilt(
        ticks
            .iter()
            .map(|(tick, cues)| (Tick(*tick), cues.as_slice())),
    );
}

#[test]
fn a_correct_guess_starts_at_once_and_is_confirmed_once() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(5), &boom());
    assert_eq!(words(&mut ledger), ["0 start t5"]);
    assert_eq!(ledger.open_since(), Some(Tick(5)));
    ledger.confirmed(Tick(5), &boom());
    ledger.settle(Tick(6));
    assert_eq!(words(&mut ledger), ["0 yes t5"]);
    assert_eq!((ledger.open(), ledger.open_since()), (0, None));
}

/// A cue of a player that is drawn late starts when the picture of that player reaches the cue's tick. A cue that was
/// only a wrong guess is gone by then, and never starts.
#[test]
fn a_cue_of_a_player_drawn_late_waits_for_that_player() {
    let of = PlayerId(2);
    let boom = |n| vec![(Key::player(of, n), 9)];
    let mut ledger = CueLedger::new();
    ledger.show_until(of, Tick(3));
    ledger.predicted(Tick(5), &boom(1));
    ledger.predicted(Tick(6), &boom(2));
    rebuilt(&mut ledger, &[(5, boom(1)), (6, vec![])]);
    ledger.confirmed(Tick(5), &boom(1));
    ledger.settle(Tick(7));
    ledger.predicted(Tick(8), &boom(3));
    assert_eq!((words(&mut ledger), ledger.open()), (vec![], 0));
    ledger.show_until(of, Tick(6));
    assert_eq!(words(&mut ledger), ["0 start t5", "0 yes t5"]);
    ledger.show_until(of, Tick(9));
    assert_eq!(words(&mut ledger), ["1 start t8"]);
    let totals = ledger.totals();
    assert_eq!(
        (totals.started, totals.confirmed, totals.cancelled),
        (2, 1, 0)
    );
}

#[test]
fn a_wrong_guess_is_cancelled_only_when_the_authority_passes_it() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(5), &boom());
    rebuilt(&mut ledger, &[(3, vec![]), (4, vec![]), (5, vec![])]);
    ledger.settle(Tick(3));
    assert_eq!(words(&mut ledger), ["0 start t5"]);
    rebuilt(&mut ledger, &[(4, vec![]), (5, boom())]);
    ledger.settle(Tick(4));
    assert_eq!(
        words(&mut ledger),
        [""; 0],
        "found again: not started twice"
    );
    rebuilt(&mut ledger, &[(5, vec![])]);
    ledger.settle(Tick(5));
    ledger.confirmed(Tick(5), &[]);
    rebuilt(&mut ledger, &[]);
    ledger.settle(Tick(6));
    assert_eq!(words(&mut ledger), ["0 no"]);
}

#[test]
fn a_moved_cue_is_confirmed_where_it_happened() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(5), &boom());
    ledger.confirmed(Tick(5), &[]);
    rebuilt(&mut ledger, &[(6, vec![]), (9, boom())]);
    ledger.settle(Tick(6));
    for tick in 6..9 {
        ledger.confirmed(Tick(tick), &[]);
        ledger.settle(Tick(tick + 1));
    }
    assert_eq!(words(&mut ledger), ["0 start t5"]);
    ledger.confirmed(Tick(9), &boom());
    ledger.settle(Tick(10));
    assert_eq!(words(&mut ledger), ["0 yes t9"]);
    assert_eq!(ledger.totals().moved, 1);
}

#[test]
fn a_cue_that_happened_earlier_than_guessed_is_not_played_twice() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(9), &boom());
    ledger.confirmed(Tick(5), &boom());
    rebuilt(&mut ledger, &[(6, vec![]), (9, vec![])]);
    ledger.settle(Tick(6));
    assert_eq!(words(&mut ledger), ["0 start t9", "0 yes t5"]);
}

/// Finding A3-10: the bound was 12 ticks, whatever the tick length.
#[test]
fn a_cue_may_drift_by_200_ms_at_any_tick_rate() {
    for (hz, distance, expected) in [
        (60, 12, vec!["0 start t20", "0 yes t32"]),
        (
            60,
            13,
            vec!["0 start t20", "1 start t33", "0 no", "1 yes t33"],
        ),
        (30, 6, vec!["0 start t20", "0 yes t26"]),
        (
            30,
            7,
            vec!["0 start t20", "1 start t27", "0 no", "1 yes t27"],
        ),
        (120, 24, vec!["0 start t20", "0 yes t44"]),
        (
            120,
            25,
            vec!["0 start t20", "1 start t45", "0 no", "1 yes t45"],
        ),
    ] {
        let mut ledger = CueLedger::new();
        ledger.set_tick(Duration::from_secs(1) / hz);
        ledger.predicted(Tick(20), &boom());
        ledger.confirmed(Tick(20), &[]);
        rebuilt(&mut ledger, &[(20 + distance, boom())]);
        ledger.settle(Tick(21));
        ledger.confirmed(Tick(20 + distance), &boom());
        ledger.settle(Tick(21 + distance));
        assert_eq!(words(&mut ledger), expected);
    }
}

#[test]
fn equal_cues_eight_ticks_apart_are_two_cues_and_not_one_moved_cue() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(10), &boom());
    ledger.predicted(Tick(18), &boom());
    assert_eq!(words(&mut ledger), ["0 start t10", "1 start t18"]);
    // Only the second cue happens.
    ledger.confirmed(Tick(10), &[]);
    rebuilt(&mut ledger, &[(18, boom())]);
    ledger.settle(Tick(11));
    assert_eq!(words(&mut ledger), ["0 no"]);
    ledger.confirmed(Tick(18), &boom());
    ledger.settle(Tick(19));
    assert_eq!(words(&mut ledger), ["1 yes t18"]);
}

#[test]
fn two_moved_equal_cues_keep_their_order() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(10), &boom());
    ledger.predicted(Tick(18), &boom());
    ledger.confirmed(Tick(10), &[]);
    rebuilt(&mut ledger, &[(15, boom()), (23, boom())]);
    ledger.settle(Tick(11));
    ledger.confirmed(Tick(15), &boom());
    ledger.confirmed(Tick(23), &boom());
    ledger.settle(Tick(24));
    assert_eq!(
        words(&mut ledger),
        ["0 start t10", "1 start t18", "0 yes t15", "1 yes t23"]
    );
}

#[test]
fn repeats_within_a_tick_are_distinguished_by_their_ordinal() {
    let twice: Cues = [boom(), boom()].concat();
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(4), &twice);
    rebuilt(&mut ledger, &[(4, twice)]);
    ledger.confirmed(Tick(4), &boom());
    rebuilt(&mut ledger, &[]);
    ledger.settle(Tick(5));
    assert_eq!(
        words(&mut ledger),
        ["0 start t4", "1 start t4", "0 yes t4", "1 no"]
    );
}

#[test]
fn a_cue_first_found_by_a_rebuild_is_delivered_late() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(8), &[]);
    rebuilt(&mut ledger, &[(6, boom()), (8, vec![])]);
    ledger.settle(Tick(6));
    assert_eq!(words(&mut ledger), ["0 start t6"]);
}

#[test]
fn an_unpredicted_cue_is_started_and_confirmed() {
    let mut ledger = CueLedger::new();
    ledger.confirmed(Tick(3), &boom());
    ledger.settle(Tick(4));
    assert_eq!(words(&mut ledger), ["0 start t3", "0 yes t3"]);
}

#[test]
fn a_new_tick_keeps_a_cue_dropped_by_a_rebuild() {
    let mut ledger = CueLedger::new();
    ledger.predicted(Tick(8), &boom());
    rebuilt(&mut ledger, &[(7, vec![]), (8, vec![])]);
    ledger.predicted(Tick(9), &boom());
    ledger.settle(Tick(7));
    assert_eq!(words(&mut ledger), ["0 start t8"]);
}

#[test]
fn a_heal_cancels_earlier_cues_and_keeps_those_of_the_new_prediction() {
    let mut ledger = CueLedger::new();
    for tick in [5, 25, 45] {
        ledger.predicted(Tick(tick), &boom());
    }
    words(&mut ledger);
    ledger.jump(Tick(20));
    assert_eq!(words(&mut ledger), ["0 no"]);
    rebuilt(&mut ledger, &[(45, boom())]);
    ledger.settle(Tick(20));
    assert_eq!(words(&mut ledger), ["1 no"]);
    assert_eq!(ledger.open(), 1);
}

#[test]
fn a_guessed_cue_beyond_the_limit_waits_for_the_authority() {
    let mut ledger = CueLedger::new();
    let many: Cues = (0..CUES_OPEN_MAX as u32 + 1).map(|n| (key(n), 0)).collect();
    ledger.predicted(Tick(1), &many);
    assert_eq!(
        (ledger.open(), ledger.totals().postponed),
        (CUES_OPEN_MAX, 1)
    );
    ledger.confirmed(Tick(1), &many);
    ledger.settle(Tick(2));
    let totals = ledger.totals();
    assert_eq!(
        (totals.started, totals.confirmed),
        (many.len() as u64, many.len() as u64)
    );
}

#[test]
fn a_game_that_never_polls_uses_bounded_memory_and_gets_every_settlement() {
    let mut ledger = CueLedger::new();
    for tick in 0..10_000 {
        ledger.predicted(Tick(tick), &boom());
        ledger.confirmed(Tick(tick), &[(key(1 + tick % 2), 9)]);
        rebuilt(&mut ledger, &[]);
        ledger.settle(Tick(tick + 1));
    }
    assert!(ledger.events.len() <= EVENTS_MAX && ledger.totals().dropped > 0);
    let events: Vec<_> = std::iter::from_fn(|| ledger.poll()).collect();
    let starts = events
        .iter()
        .filter(|event| matches!(event.kind, CueKind::Started { .. }))
        .count();
    assert_eq!(starts * 2, events.len());
}

/// The errors of the model's prediction: percentages, and the maximum shift in ticks.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    lose: u32,
    invent: u32,
    shift_ticks: u32,
    heal: u32,
}

fn below(seed: &mut u64, n: u32) -> u32 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((*seed >> 33) as u32) % n.max(1)
}

fn guess(truth: &[Cues], from: u32, to: u32, wrong: Wrong, seed: &mut u64) -> BTreeMap<u32, Cues> {
    let mut guessed: BTreeMap<u32, Cues> = (from..to).map(|tick| (tick, Cues::new())).collect();
    for (tick, cues) in truth.iter().enumerate() {
        for cue in cues {
            let shift = below(seed, 2 * wrong.shift_ticks + 1) as i32 - wrong.shift_ticks as i32;
            let at = (tick as i32 + shift) as u32;
            if let Some(cues) = guessed.get_mut(&at)
                && below(seed, 100) >= wrong.lose
            {
                cues.push(*cue);
            }
        }
    }
    for cues in guessed.values_mut() {
        if below(seed, 100) < wrong.invent {
            cues.push((key(below(seed, 3)), 0));
        }
    }
    guessed
}

/// Plays a true timeline against guesses of it, with a rebuild whenever a confirmed tick differs.
fn model(mut seed: u64, wrong: Wrong) -> CueTotals {
    const TICKS: u32 = 400;
    let seed = &mut seed;
    let truth: Vec<Cues> = (0..TICKS)
        .map(|_| {
            (0..below(seed, 3))
                .map(|_| (key(below(seed, 3)), below(seed, 2) as u8))
                .collect()
        })
        .collect();
    let mut ledger = CueLedger::new();
    let (mut a, mut p) = (0, 0);
    let mut guessed: BTreeMap<u32, Cues> = BTreeMap::new();
    let mut happened: BTreeMap<(Tick, Key, u8), i32> = BTreeMap::new();
    let mut alive: BTreeMap<CueId, (Key, u8)> = BTreeMap::new();
    let mut settled = 0;
    while a < TICKS {
        let mut differs = false;
        if below(seed, 100) < wrong.heal {
            a = (a + below(seed, 20)).min(TICKS);
            ledger.jump(Tick(a));
            differs = true;
        }
        for _ in 0..below(seed, 4) {
            if a < TICKS {
                let cues = &truth[a as usize];
                ledger.confirmed(Tick(a), cues);
                for (key, cue) in cues {
                    *happened.entry((Tick(a), *key, *cue)).or_default() += 1;
                }
                differs |= guessed.remove(&a).is_some_and(|guessed| guessed != *cues);
                a += 1;
            }
        }
        p = p.max(a);
        guessed.retain(|tick, _| *tick >= a);
        if differs {
            guessed = guess(&truth, a, p, wrong, seed);
            ledger.rebuilt(
                guessed
                    .iter()
                    .map(|(tick, cues)| (Tick(*tick), cues.as_slice())),
            );
        }
        while p < (a + 12).min(TICKS) {
            let cues = guess(&truth, p, p + 1, wrong, seed).remove(&p).unwrap();
            ledger.predicted(Tick(p), &cues);
            guessed.insert(p, cues);
            p += 1;
        }
        ledger.settle(Tick(a));
        for open in &ledger.open {
            assert!(
                open.started >= Tick(a) || (open.held && open.expected >= Tick(a)),
                "overdue and kept"
            );
            assert!(!open.held || open.expected.0.abs_diff(open.started.0) <= ledger.drift);
        }
        while let Some(event) = ledger.poll() {
            match event.kind {
                CueKind::Started { key, cue, .. } => {
                    assert!(alive.insert(event.id, (key, cue)).is_none())
                }
                CueKind::Confirmed { at } => {
                    let (key, cue) = alive
                        .remove(&event.id)
                        .expect("settled once, after its start");
                    *happened.entry((at, key, cue)).or_default() -= 1;
                    settled += 1;
                }
                CueKind::Cancelled => {
                    alive
                        .remove(&event.id)
                        .expect("settled once, after its start");
                    settled += 1;
                }
            }
        }
        let totals = ledger.totals();
        assert_eq!(
            totals.started,
            totals.confirmed + totals.cancelled + ledger.open() as u64
        );
        assert_eq!(alive.len(), ledger.open());
        // Each cue of the authority was confirmed at its own tick, exactly once.
        assert!(happened.values().all(|n| *n == 0), "{happened:?}");
        happened.clear();
    }
    assert_eq!(
        ledger.totals().confirmed + ledger.totals().cancelled,
        settled
    );
    ledger.totals()
}

proptest! {
    #[test]
    fn each_cue_of_the_authority_is_confirmed_once_for_any_guess(
        seed: u64, lose in 0u32..40, invent in 0u32..40, shift_ticks in 0u32..16, heal in 0u32..8,
    ) {
        model(seed, Wrong { lose, invent, shift_ticks, heal });
    }

    #[test]
    fn correct_guesses_are_never_cancelled(seed: u64) {
        let totals = model(seed, Wrong { lose: 0, invent: 0, shift_ticks: 0, heal: 0 });
        prop_assert_eq!((totals.cancelled, totals.moved), (0, 0));
    }
}

#[test]
fn a_thousand_open_cues_stay_cheap_to_rebuild() {
    let mut ledger = CueLedger::new();
    let ticks: Vec<(Tick, Cues)> = (0..64)
        .map(|t| (Tick(t), (0..16).map(|n| (key(t * 16 + n), 0)).collect()))
        .collect();
    for (tick, cues) in &ticks {
        ledger.predicted(*tick, cues);
    }
    let started = ledger.totals().started;
    for _ in 0..2_000 {
        ledger.rebuilt(ticks.iter().map(|(tick, cues)| (*tick, cues.as_slice())));
        ledger.settle(Tick(0));
    }
    assert_eq!((ledger.open(), ledger.totals().started), (1_024, started));
}
