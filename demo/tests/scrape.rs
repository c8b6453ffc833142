//! A Prometheus scrapes a server during play. Every panel expression, and every selector of a panel or an alert, must
//! find a series.
//!
//! A panel expression that is empty unless something is wrong ends with `> 0`; it is evaluated without that ending. A
//! selector such as `name{label=~"a|b"}` is evaluated once for `a` and once for `b`, so that a renamed label value is
//! noticed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Folder, Process, within};
use crate::many::Served;

const WINDOW: Duration = Duration::from_secs(20);

fn ops(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../server/ops")
        .join(name)
}

struct Prometheus {
    _process: Process,
    at: SocketAddr,
}

impl Prometheus {
    fn start(folder: &Folder, admin: &str) -> Prometheus {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let rules = ops("alerts.yml").canonicalize().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{}\"]\nscrape_configs:\n\
             - job_name: twinstep\n  static_configs: [{{ targets: [\"{admin}\"] }}]\n",
            rules.display()
        );
        fs::write(folder.file("prometheus.yml"), config).unwrap();
        let log = fs::File::create(folder.file("prometheus.log")).unwrap();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.file("prometheus.yml")))
            .arg(format!("--storage.tsdb.path={}", folder.file("tsdb")))
            .arg(format!("--web.listen-address={at}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus is installed");
        let prometheus = Prometheus {
            _process: Process(process),
            at,
        };
        within(|| prometheus.get("/-/ready").is_some());
        prometheus
    }

    fn get(&self, path: &str) -> Option<String> {
        get(self.at, path)
    }

    /// Returns the number of series of an expression, and how many of them are NaN; or the error.
    fn ask(&self, expression: &str) -> Result<(usize, usize), String> {
        let coded: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let said = self.get(&format!("/api/v1/query?query={coded}"));
        let said = said.ok_or("it is refused")?;
        let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        let series = said["data"]["result"].as_array().ok_or("no result")?;
        let nan = series.iter().filter(|one| one["value"][1] == "NaN");
        Ok((series.len(), nan.count()))
    }
}

fn lint(page: &str) -> String {
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed");
    let mut stdin = tool.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).unwrap();
    drop(stdin);
    let said = tool.wait_with_output().unwrap();
    String::from_utf8([said.stdout, said.stderr].concat()).unwrap()
}

fn get(at: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {at}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

fn panels() -> Vec<(String, String)> {
    let text = fs::read_to_string(ops("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let window = format!("{}s", WINDOW.as_secs());
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression
                .replace("$__rate_interval", &window)
                .replace("$instance", ".*");
            found.push((title.to_owned(), expression));
        }
    }
    found
}

/// The selectors of an expression: `name`, or `name{label=~"a|b"}` once for each word.
fn selectors(expression: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    for (at, _) in expression.match_indices("twinstep_") {
        let rest = &expression[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let labels = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let pattern = labels.and_then(|(labels, _)| labels.split_once("=~\""));
        match pattern {
            Some((label, words)) => {
                let words = words.trim_end_matches('"').split('|');
                found.extend(words.map(|word| format!("{name}{{{label}=~\"{word}\"}}")));
            }
            None => drop(found.insert(name.to_owned())),
        }
    }
    found
}

#[test]
#[ignore = "needs Prometheus and half a minute: ci/scrape.sh"]
fn every_panel_and_alert_finds_its_series_during_play() {
    let folder = Folder::with_a_key("scrape");
    let server = Served::start(&folder, "127.0.0.1:0", "0");
    let bots: Vec<Process> = [("anna", "7"), ("bob", "7"), ("carl", "8")]
        .iter()
        .map(|(name, id)| server.ticket(&folder, name, id))
        .map(|ticket| Process::start(&["join", "--bot", &ticket]))
        .collect();
    server.has(bots.len());
    let prometheus = Prometheus::start(&folder, &server.admin);
    std::thread::sleep(WINDOW + Duration::from_secs(3));

    let page = get(server.admin.parse().unwrap(), "/metrics").unwrap();
    assert!(page.contains("twinstep_players 3"), "{page}");
    assert_eq!(lint(&page), "", "promtool likes it");

    let mut wrong = Vec::new();
    let mut asked = 0;
    let mut look = |of: &str, expression: &str| {
        asked += 1;
        match prometheus.ask(expression) {
            Ok((1.., 0)) => {}
            Ok((0, _)) => wrong.push(format!("{of}: nothing for {expression}")),
            Ok((_, nan)) => wrong.push(format!("{of}: {nan} not a number for {expression}")),
            Err(why) => wrong.push(format!("{of}: {why}: {expression}")),
        }
    };
    for (title, expression) in panels() {
        look(
            &title,
            expression.strip_suffix(" > 0").unwrap_or(&expression),
        );
        selectors(&expression)
            .iter()
            .for_each(|one| look(&title, one));
    }
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules: Value = serde_json::from_str(&rules).unwrap();
    let rules: Vec<Value> = rules["data"]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect();
    let (mut firing, mut ill) = (Vec::new(), Vec::new());
    for rule in &rules {
        let (name, expression) = (
            rule["name"].as_str().unwrap(),
            rule["query"].as_str().unwrap(),
        );
        selectors(expression).iter().for_each(|one| look(name, one));
        if rule["health"] != "ok" {
            ill.push(format!("{name}: {}", rule["lastError"]));
        }
        if rule["state"] != "inactive" {
            firing.push(name);
        }
    }
    wrong.append(&mut ill);
    println!(
        "{asked} expressions of {} panels' targets and {} alerts: {} wrong; alerts that are on: {firing:?}",
        panels().len(),
        rules.len(),
        wrong.len()
    );
    assert!(panels().len() > 40 && rules.len() > 10);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
