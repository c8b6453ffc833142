//! The tiny game: short, and shown unchanged in the README. The demo's tests play it.

const SOURCE: &str = include_str!("../../demo/examples/tiny.rs");
const README: &str = include_str!("../../README.md");

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
