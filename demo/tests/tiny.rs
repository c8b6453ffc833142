//! The tiny game of the README, played over real datagrams.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Process;

#[test]
fn the_tiny_game_plays_over_udp() {
    let programs = Path::new(env!("CARGO_BIN_EXE_powderkeg")).parent().unwrap();
    let tiny = programs.join(format!("examples/tiny{}", std::env::consts::EXE_SUFFIX));
    let game = Command::new(&tiny).stdout(Stdio::piped()).spawn();
    let game = game.unwrap_or_else(|error| {
        let tiny = tiny.display();
        panic!("{tiny}: {error}; cargo test -p powderkeg builds it, with one --test it does not")
    });
    let (well, told) = Process(game).end();
    assert!(well, "{told}");
    // A throw each second; the first ones may happen during the join.
    let moves = told.lines().filter(|line| line.contains("Moved")).count();
    assert!(moves >= 2, "{moves} moves: {told}");
    assert!(told.contains("Confirmed"), "{told}");
}
