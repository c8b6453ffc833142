//! [`Row`]: one measured quantity, beside a peer's from the same minutes. A [`Section`] holds rows, and is written as a
//! table in text or Markdown.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` if no round is finite. A round that divided by zero does not count.
    pub(crate) fn of(rounds: &[f64]) -> Option<Spread> {
        let mut values = rounds.to_vec();
        values.retain(|value| value.is_finite());
        let median = median(&mut values)?;
        Some(Spread {
            min: *values.first()?,
            median,
            max: *values.last()?,
        })
    }
}

pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some((values[half - 1] + values[half]) / 2.0),
        _ => Some(values[half]),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) rounds: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<(String, Vec<f64>)>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, unit: &str, rounds: Vec<f64>) -> Row {
        Row {
            name: name.into(),
            unit: unit.to_owned(),
            rounds,
            peer: None,
        }
    }

    pub(crate) fn one(name: impl Into<String>, unit: &str, value: f64) -> Row {
        Row::new(name, unit, vec![value])
    }

    pub(crate) fn beside(mut self, peer: &str, rounds: Vec<f64>) -> Row {
        self.peer = Some((peer.to_owned(), rounds));
        self
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::of(&self.rounds)
    }

    pub(crate) fn ratio(&self) -> Option<Spread> {
        let (_, peer) = self.peer.as_ref()?;
        let rounds = self.rounds.iter().zip(peer);
        let ratios: Vec<f64> = rounds.map(|(ours, theirs)| ours / theirs).collect();
        Spread::of(&ratios)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) rows: Vec<Row>,
    /// Quantities that could not be measured, with the reasons.
    pub(crate) notes: Vec<String>,
}

impl Section {
    pub(crate) fn new(title: &str, about: impl Into<String>) -> Section {
        Section {
            title: title.to_owned(),
            about: about.into(),
            ..Section::default()
        }
    }

    pub(crate) fn write(&self, format: Format, out: &mut String) -> fmt::Result {
        let heading = match format {
            Format::Text => "",
            Format::Markdown => "## ",
        };
        writeln!(out, "{heading}{}\n\n{}\n", self.title, self.about)?;
        let columns = [
            "what", "unit", "Twinstep", "min", "max", "beside", "peer", "ratio", "min", "max",
        ];
        let cells = |row: &Row| -> Option<Vec<String>> {
            let ours = row.spread()?;
            let mut cells = vec![row.name.clone(), row.unit.clone()];
            cells.extend([ours.median, ours.min, ours.max].map(digits));
            let peer = row.peer.as_ref();
            let peer = peer.and_then(|(name, rounds)| Some((name, Spread::of(rounds)?)));
            let peer = peer.map(|(name, peer)| [name.clone(), digits(peer.median)]);
            cells.extend(peer.unwrap_or_default());
            let ratio = row
                .ratio()
                .map(|of| [of.median, of.min, of.max].map(digits));
            cells.extend(ratio.unwrap_or_default());
            Some(cells)
        };
        let rows: Vec<Vec<String>> = self.rows.iter().filter_map(cells).collect();
        if !rows.is_empty() {
            table(format, &columns, &rows, out)?;
        }
        for note in &self.notes {
            writeln!(out, "{note}\n")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Markdown,
}

pub(crate) fn table(
    format: Format,
    columns: &[&str],
    rows: &[Vec<String>],
    out: &mut String,
) -> fmt::Result {
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let width = |at: usize| {
        let cells = rows
            .iter()
            .chain([&head])
            .map(|row| row[at].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let is_words = |at: usize| matches!(columns[at], "what" | "unit" | "beside" | "");
    let words: Vec<bool> = (0..columns.len()).map(is_words).collect();
    let mut line = |cells: &[String]| {
        let mut text = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[at] - cell.chars().count());
            let (left, between) = match format {
                Format::Text => ("  ", "  "),
                Format::Markdown => ("| ", " | "),
            };
            text.push_str(if at == 0 { left } else { between });
            match words[at] {
                true => text.extend([cell, pad.as_str()]),
                false => text.extend([pad.as_str(), cell]),
            }
        }
        text.push_str(if format == Format::Markdown { " |" } else { "" });
        writeln!(out, "{}", text.trim_end())
    };
    line(&head)?;
    if format == Format::Markdown {
        let rule = |at: usize| match words[at] {
            true => "-".repeat(widths[at]),
            false => "-".repeat(widths[at].max(2) - 1) + ":",
        };
        line(&(0..columns.len()).map(rule).collect::<Vec<_>>())?;
    }
    rows.iter().try_for_each(|row| line(row))?;
    writeln!(out)
}

/// A number with about three digits and separated thousands; empty if it is not finite.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => return "0".to_owned(),
        none if !none.is_finite() => return String::new(),
        small if small < 0.995 => return format!("{value:.3}"),
        small if small < 9.995 => return format!("{value:.2}"),
        small if small < 99.95 => return format!("{value:.1}"),
        _ => {}
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn compare(before: &[Section], after: &[Section], out: &mut String) -> fmt::Result {
    let rows = |sections: &[Section]| -> Vec<Row> {
        let rows = sections.iter().flat_map(|section| section.rows.clone());
        rows.collect()
    };
    let before = rows(before);
    let line = |row: &Row| -> Option<Vec<String>> {
        let old = before.iter().find(|old| old.name == row.name)?.spread()?;
        let new = row.spread()?;
        let mut cells = vec![row.name.clone(), row.unit.clone()];
        cells.extend([old.median, new.median, new.median / old.median].map(digits));
        // Outside the range of the other run's rounds, so it is more than noise.
        let differs = new.min > old.max || new.max < old.min;
        cells.push(if differs { "differs" } else { "" }.to_owned());
        Some(cells)
    };
    let lines: Vec<Vec<String>> = rows(after).iter().filter_map(line).collect();
    let columns = ["what", "unit", "before", "after", "ratio", ""];
    table(Format::Text, &columns, &lines, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let mut section = Section::new("Ways", "On foot.");
        section.rows = vec![
            Row::new("to school", "m", vec![1_234_567.0, 7.0, 9.0]),
            // In the second round the machine was half as fast, for both.
            Row::new("home", "m", vec![1.0, 2.0, 3.0]).beside("a bus", vec![2.0, 4.0, 5.0]),
        ];
        section
    }

    #[test]
    fn a_table_shows_medians_and_per_round_ratios() {
        let mut text = String::new();
        section().write(Format::Markdown, &mut text).unwrap();
        let lines: Vec<&str> = text.lines().skip(4).collect();
        let home = "| home      | m    |     2.00 | 1.00 |      3.00 | a bus  | 4.00 | 0.500 | 0.500 | 0.600 |";
        let school = "| to school | m    |     9.00 | 7.00 | 1,234,567 |        |      |       |       |       |";
        let rule = "| --------- | ---- | -------: | ---: | --------: | ------ | ---: | ----: | ----: | ----: |";
        assert_eq!(lines[1..4], [rule, school, home]);
        let mut text = String::new();
        section().write(Format::Text, &mut text).unwrap();
        assert!(text.starts_with("Ways\n\nOn foot.\n\n  what "), "{text}");
    }

    #[test]
    fn a_comparison_marks_rows_outside_the_range_of_earlier_rounds() {
        let (before, mut after) = (section(), section());
        after.rows[1].rounds = vec![4.0, 5.0];
        after.rows.push(Row::one("by ship", "m", 1.0));
        let mut text = String::new();
        compare(&[before], &[after], &mut text).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0].split_whitespace().last(), Some("1.00"), "{text}");
        assert!(lines[1].ends_with("2.00   4.50   2.25  differs"), "{text}");
        assert_eq!(lines.len(), 3, "only shared rows: {text}");
    }

    #[test]
    fn a_median_averages_the_middle_pair_and_numbers_keep_three_digits() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [4.0, 1.0, 9.0, 2.0]), Some(3.0));
        let written = [0.0, 0.0624, -1.234, 12.34, 999.6, 123_456.0].map(digits);
        let expected = ["0", "0.062", "-1.23", "12.3", "1,000", "123,456"];
        assert_eq!(written, expected);
    }
}
