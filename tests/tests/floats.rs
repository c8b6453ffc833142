//! Float operations give the same bits on every machine in a match; lockstep depends on that.

use twinstep_rig::machines::{differences, table};
use twinstep_tests::golden;

// Row 71: 10,000 ticks of Powderkeg (floats in every step: vectors, roots, angles), as many of a strategy game and of a
// game with bodies moved by the physics engine, and a table of float operations give the digests in a file, at every
// optimisation level and on every machine. Debug and release builds are both tested; `ci/machines.sh` does the same on
// other targets.
#[test]
fn digests_are_equal_at_every_optimisation_level_and_on_every_machine() {
    let table = table();
    assert!(table.lines().count() == 91, "{table}");
    golden::check("digests.txt", &table, "");
}

#[test]
fn differing_lines_are_printed_from_both_sides() {
    let reported = differences("a 1\nb 2\n", "a 1\nb 3\nc 4\n");
    assert_eq!(reported, ["-b 2", "+b 3", "+c 4"]);
}
