//! The page has each metric of the table once, and all metrics that the operators' files use.

use std::path::Path;

use super::*;

fn empty() -> String {
    page("a game", true, &HostStatus::default(), &Metrics::default())
}

#[test]
fn the_page_has_each_metric_of_the_table_once_and_in_order() {
    let page = empty();
    let told: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let known = names::ALL.map(|family| format!("{} {}", family.name, family.kind.word()));
    assert_eq!(told, known);
}

#[test]
fn metric_names_follow_prometheus_rules() {
    for family in names::ALL {
        let (name, is_counter) = (family.name, family.kind == names::Kind::Counter);
        assert!(name.starts_with("twinstep_"), "{name}");
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        assert!(!family.help.is_empty(), "{name}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain), "{name}");
    }
}

/// The words of a text that look like metric names.
fn named(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c))
        .filter(|word| word.starts_with("twinstep_"))
        .collect()
}

#[test]
fn metrics_in_the_dashboard_alerts_and_guide_exist() {
    let page = empty();
    let series: Vec<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, at_least) in [
        ("server/ops/dashboard.json", 20),
        ("server/ops/alerts.yml", 10),
        ("docs/guide/operating.md", 15),
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let named = named(&text);
        assert!(named.len() >= at_least, "{file} names {}", named.len());
        for name in named {
            let is_family = names::ALL.iter().any(|family| family.name == name);
            let is_crate = [
                "twinstep_core",
                "twinstep_host",
                "twinstep_ops",
                "twinstep_server",
                "twinstep_udp",
            ]
            .contains(&name);
            assert!(
                is_family || is_crate || series.contains(&name),
                "{file} names {name}"
            );
        }
    }
    // The guide describes each metric in the words of its help, and may add more.
    let guide = std::fs::read_to_string(root.join("docs/guide/operating.md")).unwrap();
    for family in names::ALL {
        let row = format!("\n| `{}` | {}", family.name, family.help);
        assert!(guide.contains(&row), "the guide lacks this row: {row}");
    }
}

/// An alert on a label value that no series has would never fire.
#[test]
fn label_values_in_the_dashboard_and_alerts_exist() {
    let page = empty();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut asked = 0;
    for file in ["server/ops/dashboard.json", "server/ops/alerts.yml"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let text = text.replace("\\\"", "\"");
        for label in ["result", "reason", "kind"] {
            for sign in ["=\"", "!=\"", "=~\"", "!~\""] {
                for rest in text.split(&format!("{label}{sign}")).skip(1) {
                    let values = rest.split('"').next().unwrap();
                    for value in values.split('|') {
                        asked += 1;
                        let said = format!("{label}=\"{value}\"");
                        assert!(page.contains(&said), "{file} asks for {said}");
                    }
                }
            }
        }
    }
    assert!(asked > 5, "only {asked}");
}

#[test]
fn a_full_disk_is_reported_and_an_unmeasured_one_is_not() {
    let disk = |page: &str| {
        let found = page
            .lines()
            .find(|line| line.starts_with("twinstep_journal_disk_free_bytes"));
        found.map(str::to_owned)
    };
    assert_eq!(disk(&empty()), None);
    let status = HostStatus {
        disk_free_bytes: Some(0),
        ..HostStatus::default()
    };
    let full = disk(&page("a game", true, &status, &Metrics::default()));
    assert_eq!(full.as_deref(), Some("twinstep_journal_disk_free_bytes 0"));
}

/// The alert on a full disk was silent when no byte was free.
#[test]
fn the_alerts_include_a_full_disk_and_an_impure_step() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let alerts = std::fs::read_to_string(root.join("alerts.yml")).unwrap();
    assert!(alerts.contains("expr: twinstep_journal_disk_free_bytes < 1e9"));
    assert!(alerts.contains("kind=\"impure\""));
}
