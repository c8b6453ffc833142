//! A copy of the tiny game, checked by the test kit with the lines that its author would write.

use serde::{Deserialize, Serialize};
use twinstep_core::prelude::*;
use twinstep_testing::{Script, arena, check};

// As in `demo/examples/tiny.rs`, from here...
#[derive(Clone, Default, Serialize, Deserialize)]
struct Race {
    pawns: Table<PlayerId, Pawn>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Pawn {
    square: u32,
    throws: u32,
    pressed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    player: PlayerId,
    square: u32,
}

impl Simulation for Race {
    const NAME: &'static str = "race";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8; // 1 while the button is down
    type Command = Never;
    type Query = PlayerId; // whose die?
    type Outcome = u32; // what it shows
    type Cue = Moved;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, _) in frame.roster() {
            self.pawns.get_or_insert_with(player, Pawn::default);
        }
        for (key, &player, face) in frame.outcomes() {
            let pawn = self.pawns.get_mut(&player).expect("its player joined");
            pawn.square += face.unwrap_or(&0);
            let square = pawn.square;
            fx.cue(key, Moved { player, square });
        }
        for (player, &button) in frame.inputs() {
            let pawn = self.pawns.get_mut(&player).expect("its player joined");
            if button == 1 && !pawn.pressed {
                fx.ask(Key::player(player, pawn.throws), player);
                pawn.throws += 1;
            }
            pawn.pressed = button == 1;
        }
    }
}
// ...to here.

#[test]
fn the_checked_copy_equals_the_tiny_game() {
    let lines = |text: &str| text.replace("\r\n", "\n");
    let ours = lines(include_str!("tiny_checked.rs"));
    let theirs = lines(include_str!("../../demo/examples/tiny.rs"));
    let (_, ours) = ours.split_once("from here...\n").expect("a beginning");
    let (ours, _) = ours.split_once("// ...to here").expect("an end");
    assert!(
        theirs.contains(ours),
        "copy the game from demo/examples/tiny.rs"
    );
}

macro_rules! lines {
    ($($line:expr;)*) => {{
        $(let _ = $line;)*
        [$(stringify!($line)),*]
    }};
}

#[test]
fn the_guides_chapter_on_tests_shows_the_lines_that_run() {
    let ran = lines! {
        check(Race::default(), (), Script::inputs([0, 1])).unwrap();
        arena(Race::default(), (), Script::inputs([0, 1])).players(4).link("bad").seed(7).seconds(60).run().unwrap();
    };
    let bare = |text: &str| text.replace(char::is_whitespace, "");
    let guide = bare(include_str!("../../docs/guide/testing.md"));
    for line in ran {
        assert!(guide.contains(&bare(line)), "the guide does not say {line}");
    }
}

#[test]
fn check_finds_no_fault_in_the_tiny_game() {
    let script = Script::inputs([0, 1]).outcomes(|_, luck| Some(luck.below(6) + 1));
    let report = check(Race::default(), (), script).unwrap();
    println!("{report}");
    assert!(report.tried.asked > 20, "{report}");
}

#[test]
fn the_tiny_game_passes_the_arena_over_a_bad_network() {
    let script = Script::inputs([0, 1]).outcomes(|_, luck| Some(luck.below(6) + 1));
    let played = arena(Race::default(), (), script)
        .link("bad")
        .seed(7)
        .seconds(20)
        .run()
        .unwrap();
    println!("{played}");
    assert!(played.server.queries > 20, "{played}");
}
