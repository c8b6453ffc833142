//! Counts signs of unclear English. `tests/golden/plain.txt` has a budget for each package, which may only fall.
//!
//! ```text
//!  sources ─▶ doc blocks, test names ─▶ counts by package ──┬─ above the budget: the test fails
//!                                                           └─ below it: UPDATE_GOLDEN=1 lowers the budget
//! ```
//!
//! The words are symptoms. A doc that begins with "What" does not name its noun; "who" without a noun leaves open
//! whether a client, an identity or an operator is meant; "so many" hides the name of the bound; "nobody" turns a rule
//! into a riddle. A raised budget is an edit by hand, so a reviewer sees it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use twinstep_tests::cited::read;

use crate::structure::{PACKAGES, sources};

const GOLDEN: &str = "tests/golden/plain.txt";

const COLUMNS: [&str; 6] = ["blocks", "what", "who", "so many", "nobody", "tests"];
type Counts = [usize; COLUMNS.len()];

const WHAT: [&str; 6] = ["what", "who", "whom", "whose", "whoever", "whatever"];
const WHO: [&str; 5] = ["who", "whom", "whose", "whoever", "whomever"];
const SO: [&str; 4] = ["many", "long", "often", "much"];
const NOBODY: [&str; 5] = ["nobody", "nothing", "everybody", "somebody", "anybody"];
const SAYS: [&str; 8] = [
    "tell", "tells", "told", "say", "says", "said", "hears", "heard",
];
const NO_NOUNS: [&str; 38] = [
    "all",
    "and",
    "anybody",
    "are",
    "as",
    "at",
    "but",
    "by",
    "everybody",
    "for",
    "from",
    "if",
    "in",
    "is",
    "it",
    "know",
    "knows",
    "nobody",
    "of",
    "on",
    "one",
    "or",
    "said",
    "say",
    "says",
    "somebody",
    "tell",
    "tells",
    "than",
    "that",
    "those",
    "to",
    "told",
    "when",
    "where",
    "while",
    "whom",
    "with",
];

/// The words in lower case. The flag is `true` if only a space separates a word from the previous one.
fn words(text: &str) -> Vec<(String, bool)> {
    let parts = text.split('`').enumerate();
    let text: String = parts
        .map(|(i, part)| if i % 2 == 1 { "code" } else { part })
        .collect();
    let mut words = Vec::new();
    let mut follows = false;
    for part in text.split_inclusive(|c: char| !c.is_alphabetic()) {
        let word = part.trim_end_matches(|c: char| !c.is_alphabetic());
        let ends_in_space = part.ends_with(' ');
        if word.is_empty() {
            follows &= ends_in_space;
        } else {
            words.push((word.to_lowercase(), follows));
            follows = ends_in_space;
        }
    }
    words
}

fn blocks(source: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut is_open = false;
    for line in source.lines().map(str::trim_start) {
        let text = ["///", "//!"].iter().find_map(|m| line.strip_prefix(m));
        let text = text.filter(|text| !text.starts_with('/'));
        match (text, blocks.last_mut()) {
            (Some(text), Some(block)) if is_open => *block = format!("{block} {}", text.trim()),
            (Some(text), _) => blocks.push(text.trim().to_owned()),
            (None, _) => {}
        }
        is_open = text.is_some();
    }
    blocks
}

fn count_block(block: &str, counts: &mut Counts) {
    let words = words(block);
    let has = |list: &[&str]| words.iter().any(|(word, _)| list.contains(&word.as_str()));
    let first = words.first().map_or("", |(word, _)| word);
    let begins = WHAT.contains(&first) && block.to_lowercase().starts_with(first);
    let is_alone = |at: usize| {
        let (word, follows) = &words[at];
        let before = at.checked_sub(1).filter(|_| *follows);
        let noun = before.is_some_and(|at| !NO_NOUNS.contains(&words[at].0.as_str()));
        WHO.contains(&word.as_str()) && (word.ends_with("ever") || !noun)
    };
    let after = |at: usize| words.get(at).map_or("", |(word, _)| word);
    let is_amount =
        |at: usize| after(at) == "so" && SO.contains(&after(at + 1)) && after(at + 2) != "as";
    let found = [
        true,
        begins,
        (0..words.len()).any(is_alone),
        (0..words.len()).any(is_amount),
        has(&NOBODY),
        false,
    ];
    for (count, found) in counts.iter_mut().zip(found) {
        *count += usize::from(found);
    }
}

fn test_names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(function) = function.strip_prefix("fn ") {
            names.extend(function.split('(').next().filter(|_| is_test));
            is_test = false;
        }
    }
    names
}

fn is_odd_name(name: &str) -> bool {
    let begins = name.split('_').next().is_some_and(|it| WHAT.contains(&it));
    let alone = ["whoever", "whom", "whomever"];
    begins
        || name.contains("_so_many_")
        || name
            .split('_')
            .any(|it| alone.contains(&it) || NOBODY.contains(&it) || SAYS.contains(&it))
}

fn counts(source: &str) -> Counts {
    let mut counts = Counts::default();
    for block in blocks(source) {
        count_block(&block, &mut counts);
    }
    let odd = test_names(source).into_iter().filter(|it| is_odd_name(it));
    counts[COLUMNS.len() - 1] = odd.count();
    counts
}

fn counts_by_package() -> BTreeMap<String, Counts> {
    let mut all = BTreeMap::<String, Counts>::new();
    for path in sources(".") {
        let homes = PACKAGES.into_iter().chain(["ci/no_std", "client/godot"]);
        let home = homes.filter(|home| path.starts_with(&format!("{home}/")));
        let home = home.max_by_key(|home| home.len());
        let home = home.unwrap_or_else(|| panic!("{path} is in no package"));
        let sum = all.entry(home.to_owned()).or_default();
        for (sum, count) in sum.iter_mut().zip(counts(&read(&path))) {
            *sum += count;
        }
    }
    all
}

fn budgets(golden: &str) -> BTreeMap<String, Counts> {
    let lines = golden.lines().skip(1).map(str::split_whitespace);
    lines
        .map(|mut cells| {
            let package = cells.next().expect("a package").to_owned();
            let numbers: Vec<usize> = cells.map(|n| n.parse().expect("a number")).collect();
            (package, numbers.try_into().expect("a number a column"))
        })
        .collect()
}

fn table(budgets: &BTreeMap<String, Counts>) -> String {
    let mut table = format!("{:<16}", "");
    for column in COLUMNS {
        write!(table, "{column:>8}").expect("a string takes all");
    }
    for (package, budget) in budgets {
        write!(table, "\n{package:<16}").expect("a string takes all");
        for number in budget {
            write!(table, "{number:>8}").expect("a string takes all");
        }
    }
    table + "\n"
}

#[test]
fn odd_english_stays_within_its_budget() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/plain.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let kept = budgets(&golden.replace('\r', ""));
    let now = counts_by_package();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let mut lower = now;
        for (package, budget) in &mut lower {
            let kept = kept.get(package).unwrap_or(budget).to_owned();
            budget
                .iter_mut()
                .zip(kept)
                .for_each(|(now, kept)| *now = kept.min(*now));
        }
        std::fs::write(path, table(&lower)).expect("the golden file can be written");
        return;
    }
    let mut over = Vec::new();
    for (package, counts) in now {
        let budget = kept.get(&package).copied().unwrap_or_default();
        for ((column, count), budget) in COLUMNS.into_iter().zip(counts).zip(budget) {
            if count > budget {
                over.push(format!(
                    "{package}: {count} of \"{column}\", budget {budget}"
                ));
            }
        }
    }
    assert!(
        over.is_empty(),
        "rewrite the new docs in plain English, or raise {GOLDEN} by hand:\n{}",
        over.join("\n")
    );
}

#[test]
fn each_pattern_is_counted_exactly_where_it_occurs() {
    for (source, expected) in [
        ("/// The inputs of a tick.\nstruct A;", [1, 0, 0, 0, 0, 0]),
        ("/// What it keeps.\n/// Of a tick.", [1, 1, 0, 0, 0, 0]),
        (
            "//! A client who plays.\n\n/// `Peer` who",
            [2, 0, 0, 0, 0, 0],
        ),
        ("/// Sent to who plays.\n//// No doc.", [1, 0, 1, 0, 0, 0]),
        ("/// A client, whoever it is, asks.", [1, 0, 1, 0, 0, 0]),
        ("/// Waits so\n/// long.", [1, 0, 0, 1, 0, 0]),
        ("/// Kept so long as it plays.", [1, 0, 0, 0, 0, 0]),
        ("/// `nobody` and **nothing**.", [1, 0, 0, 0, 1, 0]),
        (
            "#[test]\nfn who_plays() {}\nfn what() {}",
            [0, 0, 0, 0, 0, 1],
        ),
        (
            "#[tokio::test]\nasync fn it_is_told() {}",
            [0, 0, 0, 0, 0, 1],
        ),
        ("#[test]\nfn a_client_who_plays_is_sent_a_tick() {}", [0; 6]),
    ] {
        assert_eq!(counts(source), expected, "{source}");
    }
}
