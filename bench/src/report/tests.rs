//! The report that is in the repository is one of this program.

use std::fs;
use std::path::Path;

use super::goals;

fn report() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("REPORT.md");
    fs::read_to_string(path).expect("bench/REPORT.md is there")
}

#[test]
fn the_report_has_a_row_for_each_target_and_a_reason_for_each_miss() {
    let report = report();
    let (_, targets) = report
        .split_once("\n## Targets\n")
        .expect("a table of targets");
    let (table, rest) = targets
        .split_once("\n\n")
        .and_then(|(_, rest)| rest.split_once("\n## "))
        .map_or((targets, ""), |parts| parts);
    for goal in goals::all() {
        let rows = table
            .lines()
            .filter(|line| line.starts_with(&format!("| {} ", goal.name)));
        let rows: Vec<&str> = rows.collect();
        assert_eq!(rows.len(), 1, "{}", goal.name);
        let is_missed = rows[0].contains("**missed**") || rows[0].contains("not measured");
        let reason = table
            .lines()
            .any(|line| line.starts_with(&format!("- {}: ", goal.name)));
        assert_eq!(is_missed, reason, "{}", goal.name);
    }
    assert!(rest.contains("## What this leaves out"));
    assert!(
        !report.contains("A short run"),
        "its numbers would say nothing"
    );
}

#[test]
fn the_report_says_where_and_when_it_was_made_and_its_plots_are_there() {
    let report = report();
    for said in ["- Machine: ", "kernel ", "rustc ", " on 20"] {
        assert!(report.contains(said), "{said}");
    }
    let plots = report.lines().filter_map(|line| {
        line.strip_prefix("![")?
            .split_once("](")?
            .1
            .strip_suffix(')')
    });
    let plots: Vec<&str> = plots.collect();
    assert!(plots.len() >= 4, "{plots:?}");
    for plot in plots {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(plot);
        let svg = fs::read_to_string(path).unwrap_or_default();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{plot}"
        );
    }
}
