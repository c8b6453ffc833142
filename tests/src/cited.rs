//! Tables in documents that cite tests. They are checked: each row's tests exist, and each test names its row.
//!
//! A row has three cells. The last one names tests as `` `file :: function` ``. A test names a row in its comment or
//! its text: `row 46`, `rows 67, 69 and 70`, `finding K2`, `findings C1, C2 and O3`.

use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    /// Each test's file, as a path from the root, and its function.
    pub tests: Vec<(String, String)>,
}

/// Reads a file of the repository, by its path from the root.
#[must_use]
pub fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = root.expect("tests/ is in the root").join(path);
    let text = fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a document's table rows whose first cell satisfies `is_name`.
///
/// # Panics
/// If a row does not have three filled cells, or cites a test in another format.
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
        assert!(!cells[1].is_empty(), "row {name} has a description");
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

/// The errors of a table: rows without a test, missing tests, and tests that do not cite their row after one of
/// `words`.
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

/// Returns a test function as lower-case text: its comments, its attributes and its body. Returns `None` if `source`
/// does not have a test with this name.
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
    // Functions within `proptest!` have the same attribute.
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

/// Returns `true` if lower-case `text` lists `name` after one of `words`: `row 46`, `findings c1, c2 and hw6-b`.
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
