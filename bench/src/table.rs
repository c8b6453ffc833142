//! Tables, as plain text for a terminal or as markdown for a README, and where they were measured.

use std::fmt::{self, Write};
use std::fs;

/// Characters of a line of prose.
const LINE: usize = 110;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Aligned columns.
    Text,
    /// Markdown tables.
    Markdown,
}

/// One table: a title, a line of explanation, columns, rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    title: &'static str,
    about: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(
        title: &'static str,
        about: &'static str,
        columns: &'static [&'static str],
    ) -> Self {
        Table {
            title,
            about,
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell for each column.
    pub(crate) fn row<const CELLS: usize>(&mut self, cells: [String; CELLS]) {
        assert_eq!(CELLS, self.columns.len(), "a cell for each column");
        self.rows.push(cells.into());
    }

    pub(crate) fn write(&self, format: Format, out: &mut impl Write) -> fmt::Result {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].chars().count());
            cells.chain([self.columns[at].chars().count()]).max()
        };
        let widths: Vec<usize> = (0..self.columns.len()).filter_map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>, out: &mut dyn Write| {
            let (left, between, right) = match format {
                Format::Text => ("  ", "   ", ""),
                Format::Markdown => ("| ", " | ", " |"),
            };
            let mut text = String::from(left);
            for (at, cell) in cells.enumerate() {
                let pad = " ".repeat(widths[at] - cell.chars().count());
                // Words to the left, numbers to the right.
                let padded = if at == 0 {
                    format!("{cell}{pad}")
                } else {
                    format!("{between}{pad}{cell}")
                };
                text.push_str(&padded);
            }
            text.push_str(right);
            writeln!(out, "{}", text.trim_end())
        };
        match format {
            Format::Text => {
                writeln!(out, "{}", self.title)?;
                wrapped("  ", self.about, out)?;
            }
            Format::Markdown => writeln!(out, "**{}** — {}\n", self.title, self.about)?,
        }
        line(&mut self.columns.iter().copied(), out)?;
        if format == Format::Markdown {
            let rules = widths.iter().enumerate().map(|(at, width)| {
                let dashes = "-".repeat(width - usize::from(at > 0));
                if at > 0 { format!("{dashes}:") } else { dashes }
            });
            let rules: Vec<String> = rules.collect();
            line(&mut rules.iter().map(String::as_str), out)?;
        }
        for row in &self.rows {
            line(&mut row.iter().map(String::as_str), out)?;
        }
        writeln!(out)
    }
}

/// Sentences, one under the other.
pub(crate) fn list<'a>(
    format: Format,
    lines: impl Iterator<Item = &'a str>,
    out: &mut impl Write,
) -> fmt::Result {
    for line in lines {
        match format {
            Format::Text => wrapped("- ", line, out)?,
            Format::Markdown => writeln!(out, "- {line}")?,
        }
    }
    Ok(())
}

/// Words in lines of at most [`LINE`] characters: `lead` before the first, as many blanks before the others.
fn wrapped(lead: &str, text: &str, out: &mut impl Write) -> fmt::Result {
    let mut line = lead.to_owned();
    for word in text.split_whitespace() {
        if line.len() > lead.len() {
            if line.chars().count() + 1 + word.chars().count() > LINE {
                writeln!(out, "{line}")?;
                line = " ".repeat(lead.len());
            } else {
                line.push(' ');
            }
        }
        line.push_str(word);
    }
    writeln!(out, "{line}")
}

/// A number with thousands separated; below 100 with one digit after the point.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 99.95 {
        return format!("{value:.1}");
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

/// How many times `ours` goes into `theirs`: above 1, ours is cheaper.
pub(crate) fn ratio(theirs: f64, ours: f64) -> String {
    if ours > 0.0 {
        format!("{:.2}", theirs / ours)
    } else {
        "–".to_owned()
    }
}

/// The machine, as far as it tells: processor, cores.
pub(crate) fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| {
        let line = info.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {cores} cores, {} {}",
        model.as_deref().unwrap_or("unknown processor"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// The load averages over 1, 5 and 15 minutes, where the system tells them.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    if averages.is_empty() {
        "unknown".to_owned()
    } else {
        averages.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Ways", "ns", &["way", "cost"]);
        table.row(["to school".to_owned(), number(1_234_567.0)]);
        table.row(["home".to_owned(), number(7.25)]);
        table
    }

    #[test]
    fn text_aligns_words_to_the_left_and_numbers_to_the_right() {
        let mut text = String::new();
        table().write(Format::Text, &mut text).unwrap();
        let expected = "Ways\n  ns\n  way              cost\n  to school   1,234,567\n  home              7.2\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn markdown_is_a_table_with_a_rule_under_its_head() {
        let mut text = String::new();
        table().write(Format::Markdown, &mut text).unwrap();
        let expected = "**Ways** — ns\n\n| way       |      cost |\n| --------- | --------: |\n\
                        | to school | 1,234,567 |\n| home      |       7.2 |\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn prose_is_wrapped_and_indented_as_text_and_left_alone_as_markdown() {
        let words = "word ".repeat(30);
        let (mut text, mut markdown) = (String::new(), String::new());
        list(Format::Text, [words.trim()].into_iter(), &mut text).unwrap();
        list(Format::Markdown, [words.trim()].into_iter(), &mut markdown).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
        assert!(lines.iter().all(|line| line.len() <= LINE));
        assert_eq!(markdown, format!("- {}\n", words.trim()));
    }

    #[test]
    fn a_ratio_above_1_says_that_ours_is_cheaper() {
        assert_eq!(ratio(300.0, 100.0), "3.00");
        assert_eq!(ratio(50.0, 100.0), "0.50");
        assert_eq!(ratio(50.0, 0.0), "–");
    }

    #[test]
    fn numbers_have_their_thousands_separated() {
        let written = [0.0, 99.9, 100.0, 999.6, 123_456.0].map(number);
        assert_eq!(written, ["0.0", "99.9", "100", "1,000", "123,456"]);
    }
}
