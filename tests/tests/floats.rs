//! Floats give the same bits wherever a match is played, or lockstep is none.

use std::fmt::Write as _;

use powderkeg_game::Game;
use twinstep_core::replay::Replay;
use twinstep_tests::golden;
use twinstep_tests::recorded::recorded;
use twinstep_tests::rig::Sticks;

/// Row 71: two minutes of Powderkeg (floats in every step: vectors, roots, angles) lead through the digests that
/// stand in a file, whichever optimisation and machine this test is built with and run on: the debug build and
/// the release build are both held to it.
#[test]
fn digests_are_equal_at_every_optimisation_level_and_on_every_machine() {
    let played = recorded::<Game>(71, 4, 7_200, Sticks::Analog);
    let mut replay = Replay::<Game>::open(&played.journal, &played.rules, &played.hello).unwrap();
    let mut digests = String::new();
    loop {
        let world = replay.world();
        if world.tick().0.is_multiple_of(600) {
            let digest = world.digest().unwrap();
            writeln!(digests, "{} {digest:016x}", world.tick()).unwrap();
        }
        if !replay.step().unwrap() {
            break;
        }
    }
    assert!(digests.lines().count() == 13, "{digests}");
    golden::check("digests.txt", &digests, "");
}
