//! The programs shown in documents are short, and shown unchanged. The demo's tests run them.

const SOURCE: &str = include_str!("../../demo/examples/tiny.rs");
const README: &str = include_str!("../../README.md");
const HOSTED: &str = include_str!("../../demo/examples/hosted.rs");
const HOSTING: &str = include_str!("../../docs/guide/hosting.md");

fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[test]
fn the_tiny_game_has_at_most_80_lines() {
    let lines = SOURCE.lines().count();
    assert!(lines <= 80, "{lines} lines");
}

#[test]
fn the_readme_shows_the_tiny_game_unchanged() {
    let block = format!("```rust\n{}```\n", unix_lines(SOURCE));
    assert!(
        unix_lines(README).contains(&block),
        "the README's Rust block is not demo/examples/tiny.rs: copy it"
    );
}

#[test]
fn the_guide_shows_the_hosted_game_unchanged_and_it_is_short() {
    let hosted = unix_lines(HOSTED);
    assert!(
        unix_lines(HOSTING).contains(&format!("```rust,no_run\n{hosted}```\n")),
        "the program in docs/guide/hosting.md is not demo/examples/hosted.rs: copy it"
    );
    let (_, after_the_rules) = hosted.split_once("\n}\n\n//").unwrap();
    let lines = after_the_rules.lines().count();
    assert!(lines <= 60, "{lines} lines besides the rules");
}
