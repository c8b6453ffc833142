//! [`Page`]: Prometheus' text format, version 0.0.4.
//!
//! Written by hand, because no crate fits: `prometheus-client` writes OpenMetrics, a different format, and both it and
//! `prometheus` own the numbers, which here belong to the matches and are summed up at each scrape.

use std::fmt::{Display, Write};

use twinstep_host::internal::{BOUNDS_US, Spread};

use super::names::{Family, Kind};

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A scrape under construction: families one after the other, each with its series.
#[derive(Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    pub(super) fn one(&mut self, family: &Family, value: impl Display) {
        self.begin(family);
        self.sample(family.name, "", &[], value);
    }

    /// Without a value, the family has no series.
    pub(super) fn if_known(&mut self, family: &Family, value: Option<u64>) {
        self.begin(family);
        if let Some(value) = value {
            self.sample(family.name, "", &[], value);
        }
    }

    pub(super) fn by<'l>(
        &mut self,
        family: &Family,
        label: &str,
        series: impl IntoIterator<Item = (&'l str, u64)>,
    ) {
        self.begin(family);
        for (value, count) in series {
            self.sample(family.name, "", &[(label, value)], count);
        }
    }

    pub(super) fn labelled(
        &mut self,
        family: &Family,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        self.begin(family);
        self.sample(family.name, "", labels, value);
    }

    pub(super) fn spread(&mut self, family: &Family, spread: &Spread) {
        debug_assert_eq!(family.kind, Kind::Histogram);
        self.begin(family);
        let cumulative = spread.cumulative();
        for (bound, count) in BOUNDS_US.iter().zip(cumulative) {
            let end = (*bound as f64 / 1e6).to_string();
            self.sample(family.name, "_bucket", &[("le", &end)], count);
        }
        let count = cumulative[BOUNDS_US.len()];
        self.sample(family.name, "_bucket", &[("le", "+Inf")], count);
        self.sample(family.name, "_sum", &[], spread.sum_ns as f64 / 1e9);
        self.sample(family.name, "_count", &[], count);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, family: &Family) {
        let Family { name, kind, help } = family;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {name} {help}");
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.word());
    }

    fn sample(&mut self, name: &str, end: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{name}{end}");
        for (n, (label, value)) in labels.iter().enumerate() {
            let before = if n == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\");
            let value = value.replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{before}{label}=\"{value}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::names;

    #[test]
    fn label_values_are_escaped() {
        let mut page = Page::default();
        let labels = [("game", "a \"b\"\\\nc"), ("version", "1")];
        page.labelled(&names::BUILD_INFO, &labels, 1);
        let text = page.finish();
        let expected = "twinstep_build_info{game=\"a \\\"b\\\"\\\\\\nc\",version=\"1\"} 1\n";
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
