//! Tables in documents that name tests, read so that they can be kept true: each row's tests exist, and each names its row.
//!
//! A row has three cells, of which the last names tests as `` `file :: function` ``. A test names a row in its comment or
//! its text: `row 46`, `rows 67, 69 and 70`, `finding K2`, `findings C1, C2 and O3`.

use std::fs;
use std::path::Path;

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What tests call it: `46`, `K2`.
    pub name: String,
    /// Of each test: the file from the root, and the function.
    pub tests: Vec<(String, String)>,
}

/// A file of the repository, by its path from the root.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = root.expect("tests/ is in the root").join(path);
    let text = fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of a document whose first cell `is_name`.
///
/// # Panics
/// If a row has not three filled cells, or names a test in another way.
#[must_use]
pub fn table(document: &str, is_name: impl Fn(&str) -> bool) -> Vec<Row> {
    let text = read(document);
    let rows = text.lines().filter_map(|line| {
        let inner = line.trim().trim_matches('|');
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        let name = cells[0].to_owned();
        if !line.starts_with('|') || !is_name(&name) {
            return None;
        }
        assert_eq!(cells.len(), 3, "three columns: {line}");
        assert!(!cells[1].is_empty(), "row {name} says what it is");
        let tests = cells[2].split('`').skip(1).step_by(2).map(|test| {
            let (file, function) = test
                .split_once(" :: ")
                .unwrap_or_else(|| panic!("row {name}: `file :: name`, not `{test}`"));
            (file.into(), function.into())
        });
        let tests = tests.collect();
        Some(Row { name, tests })
    });
    rows.collect()
}

/// What is wrong with a table: rows without a test, tests that are not there, and tests that do not name their row
/// after one of `words`.
#[must_use]
pub fn wrong_rows(rows: &[Row], words: [&str; 2]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Row { name, tests } in rows {
        if tests.is_empty() {
            wrong.push(format!("row {name} has no test"));
        }
        for (file, test) in tests {
            match test_text(&read(file), test) {
                None => wrong.push(format!("row {name}: {file} has no test {test}")),
                Some(text) if !names(&text, words, &name.to_lowercase()) => {
                    wrong.push(format!("row {name}: {test} in {file} does not name it"));
                }
                Some(_) => {}
            }
        }
    }
    wrong
}

/// A test function as text in small letters: its comments and attributes, and its body; `None` if it is not there.
#[must_use]
pub fn test_text(source: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let start = lines.iter().position(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.starts_with(&format!("fn {name}("))
    })?;
    let indent = lines[start].len() - lines[start].trim_start().len();
    let above = lines[..start].iter().rev();
    let head = above
        .take_while(|line| {
            ["//", "#["]
                .iter()
                .any(|s| line.trim_start().starts_with(s))
        })
        .count();
    let head = &lines[start - head..start];
    let is_test = |line: &&str| line.contains("#[test]") || line.contains("#[tokio::test");
    // The functions that `proptest!` makes tests of carry the same attribute.
    if !head.iter().any(is_test) {
        return None;
    }
    let end = format!("{}}}", " ".repeat(indent));
    let body = lines[start..].iter();
    let body = body.take_while(|line| line.trim_end() != end);
    let plain = |line: &&str| line.trim().trim_start_matches('/').trim().to_lowercase();
    let words: Vec<String> = head.iter().chain(body).map(plain).collect();
    Some(words.join(" "))
}

/// Whether a text in small letters names `name` in a list behind one of two words: `row 46`, `findings c1, c2 and hw6-b`.
#[must_use]
pub fn names(text: &str, words: [&str; 2], name: &str) -> bool {
    let tokens = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let mut is_list = false;
    for token in tokens.filter(|token| !token.is_empty()) {
        is_list = words.contains(&token)
            || is_list && (token == "and" || token.contains(|c: char| c.is_ascii_digit()));
        if is_list && token == name {
            return true;
        }
    }
    false
}
