//! Checks the tables that cite tests: `docs/internal/SEED-SYSTEMS.md` (mechanisms) and `docs/internal/FINDINGS.md`
//! (defects that were found and fixed). Each row names tests that exist, and each of these tests names its row.

use twinstep_tests::cited::{names, table, test_text, wrong_rows};

const ROWS: u32 = 92;

const ROW: [&str; 2] = ["row", "rows"];
const FINDING: [&str; 2] = ["finding", "findings"];

fn is_number(name: &str) -> bool {
    name.parse::<u32>().is_ok()
}

/// One or two letters for the area and a number, `K2`; findings of a later review add their own name: `P3-M1`.
fn is_finding(name: &str) -> bool {
    let (part, of_review) = name.split_once('-').unwrap_or((name, "1"));
    let number = part.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_part = (1..=2).contains(&(part.len() - number.len())) && is_number(number);
    let is_named = |of: &str| !of.is_empty() && of.chars().all(|c| c.is_ascii_alphanumeric());
    is_part && is_named(of_review)
}

#[test]
fn the_table_has_every_row_once_and_in_order() {
    let rows = table("docs/internal/SEED-SYSTEMS.md", is_number);
    let names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    assert_eq!(names, Vec::from_iter((1..=ROWS).map(|row| row.to_string())));
}

#[test]
fn every_row_is_cited_by_a_test() {
    let wrong = wrong_rows(&table("docs/internal/SEED-SYSTEMS.md", is_number), ROW);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_finding_is_cited_by_a_test() {
    let findings = table("docs/internal/FINDINGS.md", is_finding);
    assert!(findings.len() > 40, "only {} findings", findings.len());
    for (i, finding) in findings.iter().enumerate() {
        let twice = findings[..i].iter().any(|other| other.name == finding.name);
        assert!(!twice, "finding {} occurs twice", finding.name);
    }
    let wrong = wrong_rows(&findings, FINDING);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn row_references_in_comments_are_parsed() {
    for (text, all) in [
        ("row 46: a freeze", "46"),
        ("(rows 1, 3 and 9) and then 12", "1 3 9"),
        ("arrows 5, a row of 7", ""),
        ("finding k2: a turn", "k2"),
        (
            "findings p3-m1, k3-b and hw6; o3-12.",
            "p3-m1 k3-b hw6 o3-12",
        ),
    ] {
        for name in "1 3 5 7 9 12 46 k2 p3-m1 k3-b hw6 o3-12".split(' ') {
            let is_named = names(text, ROW, name) || names(text, FINDING, name);
            assert_eq!(
                is_named,
                all.split(' ').any(|it| it == name),
                "{text}: {name}"
            );
        }
    }
    let source =
        "    /// Row 8.\n    #[test]\n    fn a() {\n        // row 9\n    }\n\nfn b() {}\n";
    let text = test_text(source, "a").expect("a test");
    assert!(names(&text, ROW, "8") && names(&text, ROW, "9"));
    assert_eq!(test_text(source, "b"), None, "no test");
    assert_eq!(test_text(source, "c"), None);
}
