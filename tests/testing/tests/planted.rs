//! Tiny games, each with one planted bug in its step or its state, and the name by which `check` must call it.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Never, PlayerId, RosterChange, Simulation, Table};
use twinstep_testing::{Fault, Kind, Script, check};

/// A game of one state and one step; what it does not name is [`Never`], and its rules are `()`.
macro_rules! game {
    ($name:ident, $frame:ident, $fx:ident, $me:ident => $step:block) => {
        game!($name, (), u8, Never, Never, Never, Never, $frame, $fx, $me => $step);
    };
    ($name:ident, $rules:ty, $input:ty, $command:ty, $query:ty, $outcome:ty, $cue:ty,
     $frame:ident, $fx:ident, $me:ident => $step:block) => {
        impl Simulation for $name {
            const NAME: &'static str = stringify!($name);
            const VERSION: u32 = 1;
            type Rules = $rules;
            type Input = $input;
            type Command = $command;
            type Query = $query;
            type Outcome = $outcome;
            type Cue = $cue;

            fn step(&mut self, $frame: &Frame<'_, Self>, $fx: &mut Effects<Self>) {
                let ($me, _) = (self, &$fx);
                $step
            }
        }
    };
}
pub(crate) use game;

/// What everybody holds, added up.
pub(crate) fn sum<S: Simulation<Input = u8>>(frame: &Frame<'_, S>) -> u32 {
    frame.inputs().map(|(_, held)| u32::from(*held)).sum()
}

/// Whether it is found, by that name, and told with its tick, fields and advice.
#[track_caller]
pub(crate) fn expect<R>(found: Result<R, Fault>, kind: Kind, path: &str) -> Fault {
    let Err(fault) = found else {
        panic!("expected `{kind}`, but nothing was found");
    };
    assert_eq!(fault.kind, kind, "{fault}");
    let chapter = include_str!("../src/lib.rs");
    assert!(
        chapter.contains(&format!("| {} |", kind.name())),
        "a row of the table for {kind:?}"
    );
    let paths: Vec<&str> = fault.fields.iter().map(|f| f.path.as_str()).collect();
    assert!(
        path.is_empty() || paths.iter().any(|found| found.starts_with(path)),
        "expected {path}, got {fault}"
    );
    let text = fault.to_string();
    assert!(text.contains(kind.advice()) && text.contains("again: TWINSTEP_SEED=1"));
    println!("{fault}");
    fault
}

fn presses<S: Simulation<Input = u8>>() -> Script<S> {
    Script::inputs([0, 1, 2]).ticks(300)
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Skips {
    shots: u32,
    #[serde(skip)]
    cooldown: u32,
}
game!(Skips, frame, _fx, me => {
    me.cooldown = me.cooldown.saturating_sub(1);
    if sum(frame) > 0 && me.cooldown == 0 {
        me.shots += 1;
        me.cooldown = 50;
    }
});

#[test]
fn a_field_that_serde_skips() {
    let found = check(Skips::default(), (), presses());
    let fault = expect(found, Kind::LostField, "sim.shots");
    assert_eq!(
        (
            fault.fields[0].left.as_str(),
            fault.fields[0].right.as_str()
        ),
        ("1", "2")
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Hashes {
    pawns: HashMap<u8, u32>,
}
game!(Hashes, frame, _fx, me => {
    for (player, held) in frame.inputs() {
        *me.pawns.entry(player.0).or_default() += u32::from(*held);
    }
});

#[test]
fn a_hash_map_in_the_state() {
    expect(
        check(Hashes::default(), (), presses()),
        Kind::HashOrder,
        "sim.pawns.keys()",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Sorts {
    order: Vec<u8>,
}
game!(Sorts, frame, _fx, me => {
    let by_player: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    me.order = by_player.into_keys().collect();
});

#[test]
fn a_hash_map_in_the_step() {
    expect(
        check(Sorts::default(), (), presses()),
        Kind::HashOrder,
        "sim.order",
    );
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
fn a_static_counter() {
    expect(
        check(Counts::default(), (), presses()),
        Kind::Static,
        "sim.next",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Times {
    at_us: u64,
}
static BEGAN: OnceLock<Instant> = OnceLock::new();
game!(Times, frame, _fx, me => {
    if sum(frame) > 3 {
        me.at_us = BEGAN.get_or_init(Instant::now).elapsed().as_micros() as u64;
    }
});

#[test]
fn a_clock() {
    expect(
        check(Times::default(), (), presses()),
        Kind::Clock,
        "sim.at_us",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Seconds {
    at_s: u64,
}
game!(Seconds, _frame, _fx, me => {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    me.at_s = now.expect("after 1970").as_secs();
});

/// A second passes within a tick now and then; then it is found at once.
#[test]
fn a_clock_of_whole_seconds() {
    let script = presses().in_one_process();
    expect(check(Seconds::default(), (), script), Kind::Clock, "");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Rolls {
    face: u32,
}
game!(Rolls, frame, _fx, me => {
    if sum(frame) > 0 {
        me.face = RandomState::new().hash_one("die") as u32 % 6;
    }
});

#[test]
fn chance_of_the_system() {
    expect(
        check(Rolls::default(), (), presses()),
        Kind::Chance,
        "sim.face",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Locals {
    ids: u32,
}
game!(Locals, frame, _fx, me => {
    thread_local! {
        static IDS: Cell<u32> = const { Cell::new(0) };
    }
    if sum(frame) > 0 {
        IDS.set(IDS.get() + 1);
        me.ids = IDS.get();
    }
});

#[test]
fn a_thread_local_counter() {
    expect(
        check(Locals::default(), (), presses()),
        Kind::Thread,
        "sim.ids",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Threads {
    is_main: bool,
}
game!(Threads, _frame, _fx, me => {
    me.is_main = std::thread::current().name().is_some();
});

#[test]
fn the_name_of_the_thread() {
    expect(
        check(Threads::default(), (), presses()),
        Kind::Thread,
        "sim.is_main",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Ghosts {
    bullets: Vec<(PlayerId, u32)>,
    hits: u32,
    withholds: bool,
}
game!(Ghosts, frame, fx, me => {
    for (player, held) in frame.inputs() {
        if *held == 1 {
            me.bullets.push((player, frame.tick().0));
        }
    }
    let mut bullets = std::mem::take(&mut me.bullets);
    bullets.retain(|(player, born)| {
        if frame.tick().0 < born + 3 {
            return true;
        }
        // Harmless while its shot is only guessed.
        if frame.is_ghost(*player, twinstep_core::Tick(*born)) {
            if me.withholds {
                fx.withhold();
            }
        } else {
            me.hits += 1;
        }
        false
    });
    me.bullets = bullets;
});

#[test]
fn a_missing_withhold() {
    expect(
        check(Ghosts::default(), (), presses()),
        Kind::Phase,
        "sim.hits",
    );
}

#[test]
fn a_step_that_withholds_is_clean() {
    let start = Ghosts {
        withholds: true,
        ..Ghosts::default()
    };
    let report = check(start, (), presses()).unwrap();
    assert!(report.tried.withheld_ticks > 0);
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Screens {
    own: u32,
}
game!(Screens, frame, _fx, me => {
    me.own += frame.inputs().filter(|(player, _)| frame.is_local(*player)).count() as u32;
});

#[test]
fn state_that_depends_on_whose_screen_it_is() {
    expect(
        check(Screens::default(), (), presses()),
        Kind::Phase,
        "sim.own",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Names {
    next: u32,
    by_cause: bool,
    own: Table<PlayerId, u32>,
}
game!(Names, (), u8, Never, Never, Never, PlayerId, frame, fx, me => {
    for (player, held) in frame.inputs() {
        if *held == 1 {
            me.next += 1;
            let own = me.own.get_or_insert_with(player, || 0);
            *own += 1;
            let key = match me.by_cause {
                true => Key::player(player, *own),
                false => Key::new(1, me.next),
            };
            fx.cue(key, player);
        }
    }
});

#[test]
fn cues_named_by_a_shared_counter() {
    let fault = expect(check(Names::default(), (), presses()), Kind::SharedKeys, "");
    assert!(
        fault.what.contains("the key of the cue PlayerId("),
        "{fault}"
    );
}

#[test]
fn cues_named_by_their_cause_are_clean() {
    let start = Names {
        by_cause: true,
        ..Names::default()
    };
    let report = check(start, (), presses()).unwrap();
    let (kept, renamed) = report.tried.keys;
    assert!(kept > 100 && renamed == 0, "{report}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Questions {
    next: u32,
    sum: u32,
}
game!(Questions, (), u8, Never, PlayerId, u8, Never, frame, fx, me => {
    for (_, _, outcome) in frame.outcomes() {
        me.sum += u32::from(outcome.copied().unwrap_or(0));
    }
    for (player, held) in frame.inputs() {
        if *held == 1 && frame.tick().0.is_multiple_of(4) {
            me.next += 1;
            fx.ask(Key::new(7, me.next), player);
        }
    }
});

#[test]
fn questions_named_by_a_shared_counter() {
    let script = presses().outcomes(|_, luck| Some(luck.below(6) as u8));
    let fault = expect(
        check(Questions::default(), (), script),
        Kind::SharedKeys,
        "",
    );
    assert!(
        fault.what.contains("the key of the query PlayerId("),
        "{fault}"
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Doubles {
    answers: u32,
}
game!(Doubles, (), u8, Never, u8, u8, Never, frame, fx, me => {
    me.answers += frame.outcomes().count() as u32;
    for (_, held) in frame.inputs() {
        if *held == 2 {
            fx.ask(Key::new(3, frame.tick().0), *held);
        }
    }
});

#[test]
fn one_key_asked_under_twice() {
    expect(
        check(Doubles::default(), (), presses()),
        Kind::AskedTwice,
        "",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Divides {
    mean: f32,
}
game!(Divides, frame, _fx, me => {
    let players = frame.inputs().filter(|(_, held)| **held > 0).count();
    me.mean = sum(frame) as f32 / players as f32;
});

#[test]
fn a_nan() {
    let fault = expect(check(Divides::default(), (), presses()), Kind::Nan, "");
    assert!(fault.what.contains("sim.mean"), "{fault}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Points {
    list: Vec<u32>,
    at: u64,
}
game!(Points, frame, _fx, me => {
    me.list.push(sum(frame));
    me.at = me.list.as_ptr() as u64;
});

#[test]
fn an_address_as_a_value() {
    expect(
        check(Points::default(), (), presses()),
        Kind::Address,
        "sim.at",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Statics {
    at: u64,
}
game!(Statics, _frame, _fx, me => {
    me.at = &raw const NEXT as u64;
});

#[test]
fn the_address_of_a_static() {
    expect(
        check(Statics::default(), (), presses()),
        Kind::Address,
        "sim.at",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Once {
    salt: u64,
}
static SALT: OnceLock<u64> = OnceLock::new();
game!(Once, _frame, _fx, me => {
    me.salt = SALT.get_or_init(|| RandomState::new().hash_one(1) >> 32) % 1_000;
});

#[test]
fn chance_that_is_drawn_once_in_each_process() {
    expect(
        check(Once::default(), (), presses()),
        Kind::Process,
        "sim.salt",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Second {
    matches: u32,
}
static BEGUN: AtomicU32 = AtomicU32::new(0);
game!(Second, frame, _fx, me => {
    if frame.tick().0 == 250 {
        // A level loaded for the first match of a process, and never again.
        BEGUN.store(1, Ordering::Relaxed);
    }
    if frame.tick().0 < 100 {
        me.matches = BEGUN.load(Ordering::Relaxed);
    }
});

#[test]
fn a_static_that_tells_the_first_match_from_the_next() {
    expect(check(Second::default(), (), presses()), Kind::Static, "");
}

#[derive(Serialize, Deserialize)]
struct Copies {
    score: u32,
    health: u32,
}
impl Clone for Copies {
    fn clone(&self) -> Self {
        Copies { ..*self }
    }
    fn clone_from(&mut self, other: &Self) {
        self.health = other.health;
    }
}
game!(Copies, frame, _fx, me => {
    me.score += sum(frame);
    me.health = me.score / 2;
});

#[test]
fn a_clone_from_that_forgets_a_field() {
    let start = Copies {
        score: 0,
        health: 0,
    };
    let fault = expect(check(start, (), presses()), Kind::CloneFrom, "sim.score");
    assert_eq!(fault.fields.len(), 1, "{fault}");
}

#[derive(Serialize, Deserialize)]
struct Clones {
    score: u32,
}
impl Clone for Clones {
    fn clone(&self) -> Self {
        Clones { score: 0 }
    }
}
game!(Clones, frame, _fx, me => {
    me.score += sum(frame);
});

#[test]
fn a_clone_that_forgets_a_field() {
    expect(
        check(Clones { score: 0 }, (), presses()),
        Kind::Clone,
        "sim.score",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Rounds {
    #[serde(with = "short")]
    x: f64,
}
mod short {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f32(*x as f32)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        f32::deserialize(from).map(f64::from)
    }
}
game!(Rounds, frame, _fx, me => {
    me.x = (me.x + f64::from(sum(frame)) * 0.1) * 1.01;
});

#[test]
fn a_float_that_is_serialised_as_a_shorter_one() {
    expect(
        check(Rounds::default(), (), presses()),
        Kind::Lossy,
        "sim.x",
    );
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Round(u8),
    Long(u8, u8),
}
#[derive(Clone, Serialize, Deserialize)]
struct Untagged {
    shape: Shape,
}
game!(Untagged, frame, _fx, me => {
    me.shape = match sum(frame) {
        0 => Shape::Round(1),
        _ => Shape::Long(1, 2),
    };
});

#[test]
fn a_state_that_cannot_be_read_back() {
    let start = Untagged {
        shape: Shape::Round(0),
    };
    expect(check(start, (), presses()), Kind::Unreadable, "");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Insists {
    square: u32,
}
game!(Insists, (), u8, Never, PlayerId, u32, Never, frame, fx, me => {
    for (_, _, outcome) in frame.outcomes() {
        me.square += outcome.expect("the server answers");
    }
    for (player, held) in frame.inputs() {
        if *held == 1 {
            fx.ask(Key::player(player, frame.tick().0), player);
        }
    }
});

#[test]
fn a_panic_where_an_outcome_is_none() {
    let script = presses().outcomes(|_, luck| Some(luck.below(6)));
    let fault = expect(
        check(Insists::default(), (), script),
        Kind::PanicUnanswered,
        "",
    );
    assert!(fault.what.contains("the server answers"), "{fault}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Expects {
    here: Table<PlayerId, u32>,
}
game!(Expects, frame, _fx, me => {
    for (player, change) in frame.roster() {
        match change {
            RosterChange::Joined => me.here.insert(player, 0),
            _ => me.here.remove(&player),
        };
    }
    for (player, _) in frame.inputs() {
        // Whoever returns has not joined.
        *me.here.get_mut(&player).expect("its player joined") += 1;
    }
});

#[test]
fn a_panic_where_somebody_returns() {
    let fault = expect(check(Expects::default(), (), presses()), Kind::Panic, "");
    assert!(fault.what.contains("its player joined"), "{fault}");
}
