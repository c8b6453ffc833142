//! What runs a failed test again: one command. And the name of the test that is running.

use std::env;
use std::thread;

/// The test that this thread runs: Rust's test harness names its threads after them.
pub(crate) fn test_name() -> Option<String> {
    let thread = thread::current();
    let name = thread.name()?;
    (name != "main").then(|| name.to_owned())
}

/// The command, with these variables of the environment.
pub(crate) fn command(variables: &[(&str, u64)]) -> String {
    let mut words: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.push("cargo test".to_owned());
    // Cargo tells it to tests that it runs.
    if let Ok(package) = env::var("CARGO_PKG_NAME") {
        words.push(format!("-p {package}"));
    }
    if let Some(name) = test_name() {
        words.push(format!("{name} -- --exact"));
    }
    words.join(" ")
}
