//! Sends requests to an admin port as an operator's tools do, and parses its metrics strictly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Sends a request with this line and headers, without the final empty line. Returns the response.
pub(crate) fn ask_by_hand(admin: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    let value = format!("{request}\r\nHost: {admin}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(value.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) async fn ask(
    admin: SocketAddr,
    request: &str,
    token: Option<&str>,
    body: &str,
) -> (u16, String, String) {
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let kind = match body.is_empty() {
        true => "",
        false => "Content-Type: application/json\r\n",
    };
    let bearer = bearer.unwrap_or_default();
    let value = format!(
        "{request} HTTP/1.1\r\n{bearer}{kind}Content-Length: {}",
        body.len()
    );
    let body = body.to_owned();
    let asked = tokio::task::spawn_blocking(move || ask_by_hand(admin, &value, &body));
    let answer = asked.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) series: BTreeMap<String, f64>,
    kinds: BTreeMap<String, String>,
}

impl Scrape {
    /// Parses text format 0.0.4, and panics if it is malformed.
    pub(crate) fn read(text: &str) -> Scrape {
        assert!(text.ends_with('\n'), "the last line has an end");
        let mut scrape = Scrape {
            series: BTreeMap::new(),
            kinds: BTreeMap::new(),
        };
        let (mut family, mut helped, mut seen) = (String::new(), String::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect(line);
                assert!(!help.is_empty(), "{line}");
                helped = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect(line);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(name, helped, "the help comes before the type");
                assert!(seen.insert(name.to_owned()), "{name} occurs twice");
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
                family = name.to_owned();
            } else {
                scrape.sample(&family, line);
            }
        }
        for (family, kind) in &scrape.kinds {
            if kind == "histogram" {
                scrape.check_histogram(family);
            }
        }
        scrape
    }

    fn sample(&mut self, family: &str, line: &str) {
        let (series, number) = line.rsplit_once(' ').expect(line);
        let number: f64 = number.parse().expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect(line)),
            None => (series, ""),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        assert!(name.chars().all(is_part), "{line}");
        let kind = self
            .kinds
            .get(family)
            .unwrap_or_else(|| panic!("no type before {line}"));
        let ends: &[&str] = match &**kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let is_own = ends.iter().any(|end| name == format!("{family}{end}"));
        assert!(is_own, "{line} is under {family}");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once('=').expect(line);
            assert!(label.chars().all(is_part), "{line}");
            assert!(
                value.len() >= 2 && value.starts_with('"') && value.ends_with('"'),
                "{line}"
            );
            for person in ["player", "identity", "match", "seat", "peer"] {
                assert!(!label.contains(person), "{line} identifies a player");
            }
        }
        assert!(number >= 0.0 && number.is_finite(), "{line}");
        let twice = self.series.insert(series.to_owned(), number);
        assert_eq!(twice, None, "{series} occurs twice");
    }

    /// Buckets must be cumulative, the last without a bound and equal to the count.
    fn check_histogram(&self, family: &str) {
        let start = format!("{family}_bucket{{le=\"");
        let mut buckets: Vec<(f64, f64)> = self
            .series
            .iter()
            .filter_map(|(series, count)| {
                let end = series.strip_prefix(&start)?.strip_suffix("\"}")?;
                let end = if end == "+Inf" { "inf" } else { end };
                Some((end.parse().unwrap(), *count))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() > 2, "{family}");
        assert!(
            buckets.windows(2).all(|two| two[0].1 <= two[1].1),
            "{family} is not cumulative: {buckets:?}"
        );
        let (end, all) = *buckets.last().unwrap();
        assert_eq!(end, f64::INFINITY, "{family}");
        assert_eq!(all, self.of(&format!("{family}_count")), "{family}");
        let sum = self.of(&format!("{family}_sum"));
        assert!((all == 0.0) == (sum == 0.0), "{family}: {sum} of {all}");
    }

    pub(crate) fn of(&self, series: &str) -> f64 {
        let number = self.series.get(series);
        *number.unwrap_or_else(|| panic!("no {series} in {:#?}", self.series))
    }

    pub(crate) fn assert_not_below(&self, before: &Scrape) {
        for (series, number) in &before.series {
            let name = series.split('{').next().unwrap();
            let kind = self.kinds.get(name).map(|kind| &**kind);
            if kind != Some("gauge") {
                let now = self.of(series);
                assert!(now >= *number, "{series} went from {number} to {now}");
            }
        }
    }
}

pub(crate) async fn scrape(admin: SocketAddr) -> Scrape {
    let (status, head, body) = ask(admin, "GET /metrics", None, "").await;
    assert_eq!(status, 200, "{body}");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    Scrape::read(&body)
}

/// Waits until a series has an expected value: counts are published a moment later.
pub(crate) async fn scrape_until(admin: SocketAddr, series: &str, is_so: impl Fn(f64) -> bool) {
    let told = async {
        loop {
            let number = scrape(admin).await.of(series);
            if is_so(number) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), told).await;
    waited.unwrap_or_else(|_| panic!("{series} is not what it should be"));
}

#[test]
fn the_checker_refuses_malformed_metrics() {
    let sound = "# HELP a_total A.\n# TYPE a_total counter\na_total{r=\"x\"} 1\n";
    assert_eq!(Scrape::read(sound).of("a_total{r=\"x\"}"), 1.0);
    let histogram = |buckets: &str| format!("# HELP h H.\n# TYPE h histogram\n{buckets}");
    let whole =
        "h_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n";
    assert_eq!(Scrape::read(&histogram(whole)).of("h_sum"), 3.0);
    for bad in [
        "a_total 1\n".to_owned(),
        format!("{sound}a_total{{r=\"x\"}} 1\n"),
        format!("{sound}{sound}"),
        format!("{sound}b 1\n"),
        "# TYPE a_total counter\na_total 1\n".to_owned(),
        sound.replace(" 1\n", " x\n"),
        sound.replace("r=", "player="),
        histogram(&whole.replace("\"2\"} 1", "\"2\"} 0")),
        histogram(&whole.replace("h_count 2", "h_count 3")),
        histogram(&whole.replace("+Inf", "9")),
    ] {
        let read = std::panic::catch_unwind(|| Scrape::read(&bad));
        assert!(read.is_err(), "{bad}");
    }
}
