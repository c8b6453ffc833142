//! `powderkeg serve --fleet agones` against sidecars that behave well or badly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Folder, Process, address, powderkeg, run, within};

const WELL: u8 = 0;
const SILENT: u8 = 1;
const DYING: u8 = 2;
const BABBLING: u8 = 3;
const REFUSING: u8 = 4;

#[derive(Clone)]
struct Sidecar {
    mood: Arc<AtomicU8>,
    asked: Arc<Mutex<Vec<String>>>,
    says: Arc<Mutex<String>>,
    port: u16,
}

fn game_server(state: &str, port: &str) -> String {
    format!(
        "{{\"object_meta\":{{\"name\":\"x\",\"generation\":\"1\",\"annotations\":{{\"match\":\"7\"}}}},\
         \"status\":{{\"state\":\"{state}\",\"address\":\"127.0.0.1\",\"ports\":[{{\"name\":\"default\",\"port\":{port}}}],\
         \"addresses\":[]}}}}"
    )
}

impl Sidecar {
    fn start(port: u16, mood: u8) -> Sidecar {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let sidecar = Sidecar {
            mood: Arc::new(AtomicU8::new(mood)),
            asked: Arc::default(),
            says: Arc::new(Mutex::new(game_server("Scheduled", "7123"))),
            port: listener.local_addr().unwrap().port(),
        };
        let serving = sidecar.clone();
        let accept = move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                let answer = move || drop(serving.answer(stream));
                std::thread::Builder::new().spawn(answer).unwrap();
            }
        };
        // The thread ends with the process.
        std::thread::Builder::new().spawn(accept).unwrap();
        sidecar
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?);
        let (mut request, mut length) = (String::new(), 0);
        lines.read_line(&mut request)?;
        loop {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = number.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body)?;
        let what = request.split(" HTTP/").next().unwrap();
        let asked = format!("{what} {}", String::from_utf8(body).unwrap());
        match self.mood.load(Ordering::Relaxed) {
            WELL => {
                self.asked.lock().unwrap().push(asked.trim().to_owned());
                stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
                if what == "GET /gameserver" {
                    stream.write_all(self.says.lock().unwrap().as_bytes())
                } else if what == "GET /watch/gameserver" {
                    let mut told = String::new();
                    while self.mood.load(Ordering::Relaxed) == WELL {
                        let says = self.says.lock().unwrap().clone();
                        if says != told {
                            stream.write_all(format!("{{\"result\":{says}}}\n").as_bytes())?;
                            told = says;
                        }
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Ok(())
                } else {
                    stream.write_all(b"{}")
                }
            }
            SILENT => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            DYING => stream.write_all(b"HTTP/1.0 200 OK\r\nContent-"),
            BABBLING => loop {
                stream.write_all(&[0xFF, b'{', 0, b'\r'].repeat(1 << 10))?;
            },
            _ => stream.write_all(b"HTTP/1.0 500 Internal Server Error\r\n\r\n{}"),
        }
    }

    fn set_mood(&self, mood: u8) {
        self.mood.store(mood, Ordering::Relaxed);
    }

    fn received(&self, words: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|one| one.starts_with(words)).count()
    }

    fn say(&self, state: &str, port: &str) {
        *self.says.lock().unwrap() = game_server(state, port);
    }
}

struct Served {
    process: Process,
    folder: Folder,
    admin: String,
    dialled: String,
    at: String,
}

fn serve(name: &str, port: u16, more: &[&str]) -> Served {
    let folder = Folder::with_a_key(name);
    let socket = format!("unix:{}", folder.file("admin.sock"));
    let key = folder.file("key");
    let own = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &key,
        "--enemies",
        "0",
        "--fleet",
        "agones",
        "--max-players",
        "3",
        "--admin",
        &socket,
    ];
    let mut command = powderkeg(&[&own[..], more].concat());
    let mut process = Process(
        command
            .env("AGONES_SDK_HTTP_PORT", port.to_string())
            .spawn()
            .unwrap(),
    );
    let mut dialled = String::new();
    let at = process
        .log()
        .inspect(|line| {
            if let Some((_, public)) = line.split_once("public=") {
                dialled = public.to_owned();
            }
        })
        .find(|line| line.contains("serving Powderkeg"));
    let at = address(&at.expect("the server started")).unwrap();
    Served {
        process,
        admin: socket,
        dialled,
        at,
        folder,
    }
}

impl Served {
    fn admin(&self, args: &[&str]) -> String {
        let output = run(&[&["admin", "--to", &self.admin], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn tick(&self) -> u64 {
        let told: serde_json::Value =
            serde_json::from_str(&self.admin(&["--json", "matches"])).unwrap();
        told[0]["tick"].as_u64().unwrap()
    }

    fn plays_on(&self) {
        let before = self.tick();
        within(|| self.tick() > before + 90);
        assert_eq!(self.admin(&["ready"]), "ready\n");
    }
}

#[test]
fn a_fleet_is_notified_of_health_readiness_players_and_the_end() {
    let sidecar = Sidecar::start(0, WELL);
    // Agones assigns the address a little later.
    sidecar.say("Scheduled", "0");
    let late = sidecar.clone();
    std::thread::Builder::new()
        .spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            late.say("Scheduled", "7123");
        })
        .unwrap();
    let server = serve("fleet", sidecar.port, &["--public", "auto"]);
    within(|| sidecar.received("POST /ready {}") == 1);
    within(|| sidecar.received("POST /health {}") >= 2);
    within(|| {
        sidecar.received("PATCH /v1beta1/counters/players {\"capacity\":\"3\",\"count\":\"0\"}")
            == 1
    });
    assert!(sidecar.received("PUT /metadata/label {\"key\":\"wire\"") > 0);
    assert!(sidecar.received("PUT /metadata/annotation {\"key\":\"game\"") > 0);
    assert_eq!(sidecar.received("POST /allocate"), 0);
    assert!(
        server.dialled.starts_with("\"127.0.0.1:7123\""),
        "{}",
        server.dialled
    );
    sidecar.say("Ready", "7123");

    server.process.signal("TERM");
    assert!(server.process.end().0);
    assert_eq!(sidecar.received("POST /shutdown {}"), 1);
}

#[test]
fn a_server_with_players_allocates_itself_if_it_is_not_allocated() {
    let sidecar = Sidecar::start(0, WELL);
    let mut server = serve("fleet-alone", sidecar.port, &[]);
    within(|| sidecar.received("POST /ready") == 1);
    sidecar.say("Ready", "7123");
    let ticket = server.folder.ticket(&server.at, "anna");
    let bot = Process::start(&["join", "--bot", "--enemies", "0", &ticket]);
    within(|| {
        sidecar.received("PATCH /v1beta1/counters/players {\"capacity\":\"3\",\"count\":\"1\"}")
            == 1
    });
    within(|| sidecar.received("POST /allocate {}") > 0);
    sidecar.say("Allocated", "7123");
    drop(bot);
    // The server ends with its match.
    server.admin(&["end", "1"]);
    within(|| server.process.has_ended());
    assert_eq!(sidecar.received("POST /shutdown {}"), 1);
}

#[test]
fn a_bad_sidecar_does_not_disturb_the_game_and_is_notified_later() {
    // The sidecar starts later than the server.
    let port = {
        let reserved = TcpListener::bind("127.0.0.1:0").unwrap();
        reserved.local_addr().unwrap().port()
    };
    let mut server = serve("fleet-faults", port, &[]);
    server.plays_on();
    let sidecar = Sidecar::start(port, SILENT);
    for mood in [SILENT, DYING, BABBLING, REFUSING] {
        sidecar.set_mood(mood);
        server.plays_on();
        assert_eq!(sidecar.received("POST"), 0);
    }
    sidecar.set_mood(WELL);
    within(|| sidecar.received("POST /ready") == 1 && sidecar.received("POST /health") > 0);
    server.plays_on();
    // A dead sidecar does not delay the end.
    sidecar.set_mood(SILENT);
    server.process.signal("TERM");
    within(|| server.process.has_ended());
}

/// Invalid combinations are refused before a socket is bound.
#[test]
fn a_missing_fleet_is_reported_with_a_clear_error() {
    let folder = Folder::with_a_key("fleet-words");
    let key = folder.file("key");
    let own = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &key,
        "--public",
        "auto",
    ];
    let alone = run(&own);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        String::from_utf8(alone.stderr)
            .unwrap()
            .contains("--public: auto must be the only value")
    );
    let mut wrong = powderkeg(&[&own[..], &["--fleet", "agones", "--check"]].concat());
    let wrong = wrong.env("AGONES_SDK_HTTP_PORT", "x").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        String::from_utf8(wrong.stderr)
            .unwrap()
            .contains("AGONES_SDK_HTTP_PORT")
    );
}
