//! The table of mechanisms, `tests/SEED-SYSTEMS.md`, kept true: each of its 79 rows names tests that exist and
//! that name the row in turn.
//!
//! A test names a row in its comment or its text: `row 46`, `rows 46, 47`, `rows 67 to 70`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How many mechanisms there are.
const ROWS: u32 = 79;

/// One line of the table.
struct Row {
    number: u32,
    /// Of each test: the file from the root, and the function.
    tests: Vec<(String, String)>,
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let path = root.expect("tests/ is in the root").join(path);
    let text = fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table() -> Vec<Row> {
    let text = read("tests/SEED-SYSTEMS.md");
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|');
        inner.split('|').map(|cell| cell.trim().into()).collect()
    };
    let rows = text.lines().filter_map(|line| {
        let cells = cells(line);
        let number = cells[0].parse().ok()?;
        assert_eq!(cells.len(), 3, "three columns: {line}");
        assert!(!cells[1].is_empty(), "row {number} says what it is");
        let tests = cells[2].split('`').skip(1).step_by(2).map(|test| {
            let (file, name) = test
                .split_once(" :: ")
                .unwrap_or_else(|| panic!("row {number}: `file :: name`, not `{test}`"));
            (file.into(), name.into())
        });
        let tests: Vec<_> = tests.collect();
        Some(Row { number, tests })
    });
    rows.collect()
}

/// A test function as text: its comments and attributes, and its body; `None` if it is not there.
fn test_text(source: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let start = lines
        .iter()
        .position(|line| line.trim_start().starts_with(&format!("fn {name}(")))?;
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
    if !head.iter().any(|line| line.contains("#[test]")) {
        return None;
    }
    let end = format!("{}}}", " ".repeat(indent));
    let body = lines[start..].iter();
    let body = body.take_while(|line| line.trim_end() != end);
    let plain = |line: &&str| line.trim().trim_start_matches('/').trim().to_lowercase();
    let words: Vec<String> = head.iter().chain(body).map(plain).collect();
    Some(words.join(" "))
}

/// The rows that a text names.
fn rows_named(text: &str) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    for found in ["row ", "rows "] {
        for (at, _) in text.match_indices(found) {
            let mut rest = &text[at + found.len()..];
            let mut last = None;
            let mut is_range = false;
            loop {
                let digits =
                    rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let Ok(number) = rest[..digits].parse::<u32>() else {
                    break;
                };
                match last {
                    Some(from) if is_range => named.extend(from..=number),
                    _ => drop(named.insert(number)),
                }
                last = Some(number);
                rest = &rest[digits..];
                let Some(between) = [", and ", ", ", " and ", " to "]
                    .into_iter()
                    .find(|word| rest.starts_with(word))
                else {
                    break;
                };
                is_range = between == " to ";
                rest = &rest[between.len()..];
            }
        }
    }
    named
}

#[test]
fn the_table_has_every_row_once_and_in_order() {
    let numbers: Vec<u32> = table().iter().map(|row| row.number).collect();
    assert_eq!(numbers, Vec::from_iter(1..=ROWS));
}

#[test]
fn every_row_has_a_test_that_names_it() {
    let mut wrong = Vec::new();
    for row in table() {
        let number = row.number;
        if row.tests.is_empty() {
            wrong.push(format!("row {number} has no test"));
        }
        for (file, name) in row.tests {
            match test_text(&read(&file), &name) {
                None => wrong.push(format!("row {number}: {file} has no test {name}")),
                Some(text) if !rows_named(&text).contains(&number) => {
                    wrong.push(format!("row {number}: {name} in {file} does not name it"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_are_read_as_they_are_written() {
    let named = |text| Vec::from_iter(rows_named(text));
    assert_eq!(named("row 46: a freeze"), [46]);
    assert_eq!(named("(rows 1, 3 and 9) and 12"), [1, 3, 9]);
    assert_eq!(named("seed rows 67 to 70, and 72."), [67, 68, 69, 70, 72]);
    assert_eq!(named("arrows 5, a row of 7"), [5]);
    let source =
        "    /// Row 8.\n    #[test]\n    fn a() {\n        // row 9\n    }\n\nfn b() {}\n";
    assert_eq!(named(&test_text(source, "a").unwrap()), [8, 9]);
    assert_eq!(test_text(source, "b"), None, "no test");
    assert_eq!(test_text(source, "c"), None);
}
