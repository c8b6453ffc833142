//! The tiny game: short, shown in the README as it is, and played over real datagrams.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const SOURCE: &str = include_str!("../../demo/examples/tiny.rs");
const README: &str = include_str!("../../README.md");
const PATIENCE: Duration = Duration::from_secs(60);

fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[test]
fn the_tiny_game_has_at_most_80_lines() {
    let lines = SOURCE.lines().count();
    assert!(lines <= 80, "{lines} lines");
}

#[test]
fn the_readme_shows_the_tiny_game_as_it_is() {
    let block = format!("```rust\n{}```\n", unix_lines(SOURCE));
    assert!(
        unix_lines(README).contains(&block),
        "the README's Rust block is not demo/examples/tiny.rs: copy it"
    );
}

#[test]
fn the_tiny_game_plays_over_udp() {
    let mut game = Command::new(env!("CARGO_BIN_EXE_tiny"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tiny game starts");
    let mut ended = None;
    for _ in 0..PATIENCE.as_millis() / 50 {
        ended = game.try_wait().expect("it can be waited for");
        if ended.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let Some(status) = ended else {
        game.kill().expect("it can be ended");
        panic!("it still plays after {PATIENCE:?}");
    };
    let mut told = String::new();
    let stdout = game.stdout.as_mut().expect("it is piped");
    stdout.read_to_string(&mut told).expect("text");
    assert!(status.success(), "{status}: {told}");
    // A throw each second; the first ones may fall into the join.
    let moves = told.lines().filter(|line| line.contains("Moved")).count();
    assert!(moves >= 2, "{moves} moves: {told}");
    assert!(told.contains("Confirmed"), "{told}");
}
