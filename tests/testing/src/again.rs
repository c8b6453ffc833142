//! The command that runs a failed test again, and the name of the current test.

use std::env;
use std::thread;

/// The name of the current test: Rust's test harness names its threads after tests. `None` on the main thread.
pub(crate) fn test_name() -> Option<String> {
    let thread = thread::current();
    let name = thread.name()?;
    (name != "main").then(|| name.to_owned())
}

pub(crate) fn command(variables: &[(&str, u64)]) -> String {
    let mut words: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.push("cargo test".to_owned());
    // Cargo sets this variable for the tests that it runs.
    if let Ok(package) = env::var("CARGO_PKG_NAME") {
        words.push(format!("-p {package}"));
    }
    if let Some(name) = test_name() {
        words.push(format!("{name} -- --exact"));
    }
    words.join(" ")
}
