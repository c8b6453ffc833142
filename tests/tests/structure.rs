//! Checks the rules of the code's structure in the source text: dependencies, names, and forbidden calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use twinstep_tests::cited::read;
use twinstep_tests::imports::circles;

/// The rules that hold the design together (ARCHITECTURE.md, "Laws").
const LAWS: [&str; 9] = [
    "Pure",
    "One door",
    "One way",
    "Only on difference",
    "Stable names",
    "Bounded",
    "Canonical",
    "Hostile wire",
    "Journal first",
];

pub(crate) const PACKAGES: [&str; 20] = [
    "core",
    "core/protocol",
    "core/udp",
    "client",
    "client/bevy",
    "client/c",
    "client/web",
    "server",
    "server/host",
    "server/ops",
    "server/local",
    "server/physics",
    "docs",
    "demo/game",
    "demo/view",
    "demo",
    "tests",
    "tests/rig",
    "tests/testing",
    "bench",
];

/// Packages whose public types a game author uses.
const LIBRARIES: [&str; 12] = [
    "core",
    "core/protocol",
    "core/udp",
    "client",
    "client/bevy",
    "client/c",
    "client/web",
    "server",
    "server/host",
    "server/ops",
    "server/local",
    "server/physics",
];

const DEMOS: [&str; 3] = ["demo/game", "demo/view", "demo"];

/// Names that the demo shares with a library or uses twice, with the reason.
const TWICE_ON_PURPOSE: [(&str, &str); 1] =
    [("Pose", "the game's implementation of the client's trait")];

/// Library types that still share a name. The list may only get shorter.
const TYPES_TO_RENAME: [&str; 50] = [
    "Answer", "Answers", "Away", "Beat", "Client", "Controls", "Cost", "Digested", "Digests",
    "Distance", "Done", "Elements", "Failure", "Fault", "Fields", "Flight", "Held", "Hooks",
    "Index", "Jobs", "Keep", "Kept", "Kind", "Known", "Line", "Lockstep", "Next", "Outgoing",
    "Pace", "Page", "Phase", "Place", "Played", "Prepared", "Report", "Room", "Samples", "Scene",
    "Sealer", "Seen", "Shared", "Shown", "Stage", "Start", "Table", "Traffic", "View", "Wait",
    "Wire", "Work",
];

/// Files that still share a name within their package. The list may only get shorter.
const FILES_TO_RENAME: [&str; 10] = [
    "core/protocol: frames.rs",
    "server/host: many.rs",
    // The rules for a kind of object, and its part of the state.
    "demo/game: barrel.rs",
    "demo/game: crates.rs",
    "demo/game: enemy.rs",
    "demo/game: player.rs",
    "demo/game: shot.rs",
    "demo/view: actors.rs",
    "demo/view: effects.rs",
    "demo/view: hud.rs",
];

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ is in the root").to_owned()
}

/// All files below a folder, as paths from the root with `/`, without build products and `.git`.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().expect("a kind");
            if name == "target" || name == ".git" {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let path = path.strip_prefix(root()).expect("below the root");
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn sources(folder: &str) -> Vec<String> {
    let mut sources = files(folder);
    sources.retain(|path| path.ends_with(".rs"));
    assert!(!sources.is_empty(), "no sources in {folder}");
    sources
}

fn code(path: &str) -> String {
    let text = read(path);
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Sources with one of `words` in their code, outside of `homes`.
fn strangers(folder: &str, words: &[&str], homes: &[&str]) -> Vec<String> {
    let mut strangers = sources(folder);
    strangers.retain(|path| {
        !homes.iter().any(|home| path.starts_with(home))
            && words.iter().any(|word| code(path).contains(word))
    });
    strangers
}

const NONE: [String; 0] = [];

#[test]
fn crates_depend_only_on_lower_crates() {
    let core: [&str; 0] = [];
    for (package, may) in [
        ("core", &core[..]),
        ("core/protocol", &["core"]),
        ("core/udp", &["core", "protocol"]),
        ("client", &["core", "protocol", "udp"]),
        ("server", &["core", "protocol"]),
        ("server/host", &["core", "protocol", "udp", "server"]),
        ("server/ops", &["core", "protocol", "udp", "server", "host"]),
        ("server/physics", &["core"]),
        // The only library that plays both sides in one process.
        ("server/local", &["core", "protocol", "client", "server"]),
        // An engine's app joins a match, or plays alone.
        ("client/bevy", &["core", "client", "local"]),
        ("client/c", &["core", "client", "local"]),
        ("client/web", &["core", "client", "udp"]),
    ] {
        let manifest = read(&format!("{package}/Cargo.toml"));
        // A crate's tests may use the other side.
        let dependencies = manifest
            .split("[dev-dependencies]")
            .next()
            .expect("a manifest");
        for other in [
            "core", "protocol", "udp", "client", "bevy", "c.", "c ", "server", "host", "ops",
            "local", "rapier2d", "tests", "rig", "bench",
        ] {
            assert!(
                may.contains(&other) || !dependencies.contains(&format!("\ntwinstep-{other}")),
                "{package} depends on twinstep-{other}"
            );
        }
        assert!(
            !dependencies.contains("\npowderkeg"),
            "{package} depends on a game"
        );
    }
    for (package, above) in [
        ("demo/game", &["\npowderkeg"][..]),
        ("demo/view", &["\npowderkeg ", "\npowderkeg."]),
        // A package that needs only the game does not compile a window.
        (
            "tests",
            &["\npowderkeg ", "\npowderkeg.", "\npowderkeg-view"],
        ),
        (
            "tests/rig",
            &["\npowderkeg ", "\npowderkeg.", "\npowderkeg-view"],
        ),
        // The test kit for authors depends on no engine, socket or game.
        (
            "tests/testing",
            &["\npowderkeg", "\ntwinstep-udp", "\ntokio", "\nrapier2d"],
        ),
    ] {
        let manifest = read(&format!("{package}/Cargo.toml"));
        for other in above {
            assert!(!manifest.contains(other), "{package} names{other}");
        }
    }
    let kit = read("tests/testing/Cargo.toml");
    assert!(
        kit.contains("{ path = \"../../client\", version = \"0.1.0\", default-features = false }"),
        "the kit needs no feature of the client"
    );
    let client = read("client/Cargo.toml");
    assert!(
        !client.contains("twinstep-server"),
        "not even a test of the client sees the server"
    );
}

/// Finding O3-3: the rate of log lines that remote peers can cause is bounded per kind, so every line goes through the
/// macros that enforce this. A field must not reuse the name of a log line's standard field (finding O3-5).
#[test]
fn every_line_of_the_hosts_log_is_bounded() {
    let unbounded =
        ["error", "warn", "info", "debug", "event"].map(|level| format!("tracing::{level}!"));
    let unbounded = unbounded.each_ref().map(String::as_str);
    let home = ["server/host/src/logged.rs"];
    for folder in ["server/host/src", "server/ops/src"] {
        assert_eq!(strangers(folder, &unbounded, &home), NONE, "use {home:?}");
    }
    let taken = ["message = ", "level = ", "target = ", "timestamp = "];
    for path in [
        "server/src",
        "server/host/src",
        "server/ops/src",
        "client/src",
        "demo/src",
    ]
    .into_iter()
    .flat_map(sources)
    {
        if path == "demo/src/log.rs" {
            continue;
        }
        let code = code(&path);
        let lines = code.match_indices("::").filter_map(|(at, _)| {
            let line = &code[at + 2..];
            let levels = ["error!(", "warn!(", "info!(", "debug!("];
            let is_log = levels.iter().any(|level| line.starts_with(level));
            is_log.then(|| &line[..line.find(");").unwrap_or(line.len())])
        });
        for line in lines {
            let named = taken.iter().find(|name| line.contains(**name));
            assert_eq!(named, None, "{path}: {line}");
        }
    }
}

/// The match does not know the host, and the host does not know `twinstep-ops`, which implements the host's traits.
#[test]
fn inner_layers_do_not_name_outer_layers() {
    for (folder, outer) in [
        ("server/src", &["twinstep_host", "twinstep_ops"][..]),
        ("server/host/src", &["twinstep_ops"]),
    ] {
        assert_eq!(strangers(folder, outer, &[]), NONE, "{outer:?}");
    }
}

#[test]
fn each_foreign_engine_is_named_in_only_one_module() {
    let bench_and_checks = ["tests/tests/structure.rs"];
    for (words, homes) in [
        (&["laminar::"][..], &["core/udp/src/link/manager.rs"][..]),
        (&["renetcode2::"], &["core/udp/src/netcode"]),
        (&["chacha20poly1305::"], &["core/udp/src/aead.rs"]),
        (&["bincode::"], &["core/src/codec"]),
        (&["use rapier2d::", " rapier2d::"], &["server/physics/src/"]),
        (
            &["use nix::", " nix::"],
            &["server/host/src/socket/many.rs"],
        ),
        (&["macroquad::"], &["demo/view/src/window/"]),
        (&["pulseaudio::"], &["demo/view/src/window/sound/output.rs"]),
        (
            &[
                "bevy_app::",
                "bevy_ecs::",
                "bevy_time::",
                "bevy_transform::",
            ],
            &["client/bevy/"],
        ),
        (&["godot::"], &["client/godot/"]),
        (
            &["wtransport::"],
            &["server/host/src/web/", "server/host/tests/"],
        ),
        (&["ggrs::"], &["bench/src/"]),
        (&["renet::"], &["bench/src/"]),
        (&["renet_netcode::"], &["bench/src/"]),
    ] {
        let homes: Vec<&str> = homes.iter().chain(&bench_and_checks).copied().collect();
        assert_eq!(strangers(".", words, &homes), NONE, "{words:?}");
    }
}

#[test]
fn clocks_threads_and_sockets_are_used_only_at_the_edges() {
    let words = [
        "Instant::now",
        "SystemTime",
        "thread::spawn",
        "thread::Builder",
        "UdpSocket",
    ];
    for (folder, edges) in [
        ("core/src", &[][..]),
        ("core/protocol/src", &[]),
        (
            "client/src",
            &["client/src/client.rs", "client/src/background.rs"],
        ),
        ("server/src", &[]),
        ("server/local/src", &[]),
        ("server/physics/src", &[]),
        ("client/bevy/src", &[]),
        ("client/c/src", &["client/c/src/played.rs"]),
    ] {
        assert_eq!(strangers(folder, &words, edges), NONE, "in {folder}");
    }
}

/// Files import downwards: two files that need each other should be one file, or share a third one.
#[test]
fn imports_have_no_circles() {
    let mut found = Vec::new();
    for package in PACKAGES {
        let folder = format!("{package}/src/");
        let sources: Vec<_> = sources(&folder)
            .into_iter()
            .map(|path| (path.trim_start_matches(&folder).to_owned(), read(&path)))
            .collect();
        let circles = circles(&sources).into_iter();
        found.extend(circles.map(|files| format!("{package}: {}", files.join(" -> "))));
    }
    assert!(
        found.is_empty(),
        "{} circles:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn no_file_imports_its_whole_parent() {
    let mut sources: Vec<String> = PACKAGES
        .into_iter()
        .flat_map(|package| sources(&format!("{package}/src")))
        .collect();
    // Tests in a file of their own import the tested module.
    sources.retain(|path| !path.ends_with("/tests.rs") && !path.contains("/tests/"));
    sources.retain(|path| code(path).lines().any(|line| line == "use super::*;"));
    assert_eq!(sources, NONE);
}

fn types(packages: &[&str], is_counted: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<String>> {
    let mut types = BTreeMap::<String, Vec<String>>::new();
    for package in packages {
        for path in sources(&format!("{package}/src")) {
            if path.ends_with("/tests.rs") || path.contains("/tests/") {
                continue;
            }
            let code = code(&path);
            let own = code.find("\nmod tests {").unwrap_or(code.len());
            for line in code[..own].lines().filter(|line| is_counted(line)) {
                let mut words = line.split(' ').skip_while(|word| word.starts_with("pub"));
                let is_type = matches!(words.next(), Some("struct" | "enum" | "trait" | "type"));
                let rest = words.next().filter(|_| is_type).unwrap_or_default();
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &rest[..end.unwrap_or(rest.len())];
                if !name.is_empty() {
                    types.entry(name.to_owned()).or_default().push(path.clone());
                }
            }
        }
    }
    types
}

fn public_types(packages: &[&str]) -> BTreeMap<String, Vec<String>> {
    types(packages, |line| line.starts_with("pub "))
}

fn twice(types: BTreeMap<String, Vec<String>>, permitted: &[&str]) -> Vec<String> {
    let twice = types
        .into_iter()
        .filter(|(name, places)| places.len() > 1 && !permitted.contains(&name.as_str()));
    twice
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect()
}

#[test]
fn every_public_type_has_a_unique_name() {
    let libraries = public_types(&LIBRARIES);
    assert!(libraries.contains_key("Simulation"), "types are found");
    assert_eq!(twice(libraries.clone(), &[]), NONE, "in libraries");

    // The libraries' own names are checked above.
    let mut all = libraries;
    all.values_mut().for_each(|places| places.truncate(1));
    for (name, places) in public_types(&DEMOS) {
        all.entry(name).or_default().extend(places);
    }
    let on_purpose = TWICE_ON_PURPOSE.map(|(name, _)| name);
    for name in on_purpose {
        let places = all.get(name).map_or(0, Vec::len);
        assert!(
            places > 1,
            "{name} is there once only: it needs no permission"
        );
    }
    assert_eq!(twice(all, &on_purpose), NONE, "in the demo");
}

#[test]
fn a_type_name_appears_once_in_the_libraries() {
    let packages = Vec::from_iter(LIBRARIES.into_iter().chain(["tests/testing"]));
    let all = types(&packages, |_| true);
    assert!(all.contains_key("Table"), "private types are found");
    assert_eq!(twice(all, &TYPES_TO_RENAME), NONE);
}

#[test]
fn a_file_name_appears_once_in_a_package() {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for package in PACKAGES {
        for path in sources(&format!("{package}/src")) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_usual = ["lib.rs", "main.rs", "mod.rs", "tests.rs"].contains(&name);
            if !is_usual && !path.contains("/tests/") && !path.contains("/bin/") {
                let name = format!("{package}: {name}");
                found.entry(name).or_default().push(path);
            }
        }
    }
    assert_eq!(twice(found, &FILES_TO_RENAME), NONE);
}

/// Findings C6 and O10: foreign text and a closed output are handled in one place.
#[test]
fn the_demo_prints_in_only_one_place() {
    let prints = |path: &String| {
        let code = code(path);
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        code.contains("print!(") || code.contains("println!(")
    };
    let folders = ["demo/game/src", "demo/view/src", "demo/src"];
    let mut printers: Vec<String> = folders.into_iter().flat_map(sources).collect();
    printers.retain(|path| !path.ends_with("tests.rs") && prints(path));
    // That place is `demo/view/src/say.rs`, which writes and checks the result.
    assert_eq!(printers, NONE);
}

/// Row 33: lockstep, prediction and server step a game with one call, in one place.
#[test]
fn simulations_are_stepped_in_only_one_place() {
    let calls = |path: &str| {
        code(path)
            .replace(['\n', ' '], "")
            .matches("sim.step(")
            .count()
    };
    let places: Vec<(String, usize)> =
        ["core/src", "core/protocol/src", "client/src", "server/src"]
            .into_iter()
            .flat_map(sources)
            .map(|path| (path.clone(), calls(&path)))
            .filter(|(_, calls)| *calls > 0)
            .collect();
    assert_eq!(places, [("core/src/world/stepper.rs".to_owned(), 1)]);
    for side in [
        "client/src/timeline.rs",
        "server/src/server_world.rs",
        "core/protocol/src/replay.rs",
    ] {
        assert!(code(side).contains("Stepper<S>"), "{side} steps by it");
    }
}

#[test]
fn every_test_file_belongs_to_a_program() {
    for (package, folder) in [
        ("tests", "tests/tests"),
        ("server/host", "server/host/tests"),
        ("server/ops", "server/ops/tests"),
        ("server/local", "server/local/tests"),
        ("demo", "demo/tests"),
    ] {
        let manifest = read(&format!("{package}/Cargo.toml"));
        let is_program =
            |file: &String| manifest.contains(&format!("[[test]]\nname = \"{file}\"\n"));
        // A folder is represented by its `mod.rs`.
        let name = |path: &String| {
            let file = path.trim_start_matches(folder).trim_start_matches('/');
            let file = file.split('/').next().unwrap_or(file);
            file.trim_end_matches(".rs").to_owned()
        };
        let files: Vec<String> = sources(folder).iter().map(name).collect();
        let (programs, parts): (Vec<String>, Vec<String>) = files.into_iter().partition(is_program);
        assert!(!programs.is_empty() && !parts.is_empty(), "{folder}");
        for part in parts {
            let has = |program: &String| {
                read(&format!("{folder}/{program}.rs")).contains(&format!("mod {part};\n"))
            };
            assert!(
                programs.iter().any(has),
                "{folder}: {part} is in no program"
            );
        }
    }
}

#[test]
fn core_is_no_std() {
    for folder in ["core/src", "core/protocol/src"] {
        assert!(read(&format!("{folder}/lib.rs")).contains("\n#![no_std]\n"));
        // Without this line the compiler does not find `std` there.
        assert_eq!(strangers(folder, &["extern crate std"], &[]), NONE);
    }
}

#[test]
fn unsafe_code_is_only_in_the_c_interface_and_in_measuring_tools() {
    // Godot finds an extension by an `unsafe impl`.
    let homes = [
        "tests/",
        "bench/",
        "ci/no_std/",
        "client/c/",
        "client/godot/",
        // Exporting a function to the page requires an `unsafe` attribute.
        "client/web/",
    ];
    let unsafe_code = ["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe"];
    assert_eq!(strangers(".", &unsafe_code, &homes), NONE);
}

#[test]
fn every_law_is_cited_by_a_test() {
    let texts: Vec<String> = sources("tests/tests")
        .iter()
        .filter(|path| !path.ends_with("/structure.rs"))
        .map(|path| read(path).replace('*', "").to_lowercase())
        .collect();
    let missing: Vec<&str> = LAWS
        .into_iter()
        .filter(|law| {
            let name = format!("law {}", law.to_lowercase());
            texts.iter().all(|text| !text.contains(&name))
        })
        .collect();
    assert!(
        missing.is_empty(),
        "no file of tests/tests cites the laws {missing:?}"
    );
}

#[test]
fn no_text_names_a_path_of_a_developers_machine() {
    // In two parts, so that this file does not contain them.
    let places = [
        ["/wo", "rk/"],
        ["/tmp/tar", "get"],
        ["/ro", "ot"],
        ["/ho", "me/"],
    ]
    .map(|parts| parts.concat());
    for path in files(".") {
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue; // Not a text.
        };
        for place in &places {
            assert!(!text.contains(place), "{path} names {place}");
        }
    }
}

#[test]
fn documents_and_licences_exist() {
    for (path, says) in [
        ("README.md", "\n## Numbers\n"),
        ("README.md", "\n## How it compares\n"),
        ("ARCHITECTURE.md", "\n## Laws\n"),
        ("docs/decisions.md", "\n### Why "),
        ("CHANGELOG.md", "## 0.1.0"),
        ("LICENSE-MIT", "MIT License"),
        ("LICENSE-APACHE", "Version 2.0, January 2004"),
        ("Cargo.toml", "license = \"MIT OR Apache-2.0\""),
    ] {
        let text = read(path).replace("\r\n", "\n");
        assert!(text.contains(says), "{path} does not contain {says:?}");
    }
    let architecture = read("ARCHITECTURE.md");
    for law in LAWS {
        assert!(architecture.contains(&format!("**{law}.**")), "{law}");
    }
}

#[test]
fn every_path_named_in_the_documents_exists() {
    let mut documents = vec![
        "ARCHITECTURE.md".to_owned(),
        "README.md".to_owned(),
        "demo/README.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
        "SECURITY.md".to_owned(),
        "docs/adding.md".to_owned(),
        "docs/decisions.md".to_owned(),
        "tests/testing/src/lib.rs".to_owned(),
    ];
    documents.extend(files("docs/guide"));
    let folders = [
        "core/", "server/", "client/", "docs/", "demo/", "tests/", "bench/", "ci/",
    ];
    let mut named = 0;
    for document in documents {
        let text = read(&document);
        for word in text.split('`').skip(1).step_by(2) {
            let is_path = folders.iter().any(|folder| word.starts_with(folder));
            if is_path && !word.contains([' ', '\n', '*']) {
                named += 1;
                assert!(root().join(word).exists(), "{document}: there is no {word}");
            }
        }
    }
    assert!(named > 30, "only {named} paths");
}

#[test]
fn every_name_mentioned_in_the_documents_is_in_the_code() {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut known = BTreeSet::new();
    for folder in ["core", "server", "client", "docs", "demo", "tests", "bench"] {
        for path in sources(folder) {
            let code = code(&path);
            known.extend(code.split(|c| !is_part(c)).map(str::to_owned));
        }
    }
    for document in [
        "ARCHITECTURE.md",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "demo/README.md",
        "docs/adding.md",
        "docs/decisions.md",
    ] {
        let text = read(document);
        let mut named = 0;
        for word in text.split(|c| !is_part(c) && c != ':') {
            let word = word.trim_matches(':');
            let is_path = word.contains("::");
            let is_constant = word.contains('_') && word.chars().all(|c| !c.is_lowercase());
            // In code spans, also plain names of types and functions.
            let is_item = word.starts_with(char::is_uppercase)
                || word.contains('_') && !word.starts_with("twinstep_");
            let quoted = || is_item && text.contains(&format!("`{word}`"));
            if word.starts_with("TWINSTEP_") || !(is_path || is_constant || quoted()) {
                continue;
            }
            named += 1;
            for name in word.split("::").filter(|name| !name.is_empty()) {
                assert!(
                    known.contains(name),
                    "{document}: there is no {name} ({word})"
                );
            }
        }
        assert!(named > 0 || document != "ARCHITECTURE.md", "{named} names");
    }
}

#[test]
fn every_mutant_names_an_existing_test() {
    let mut mutants = files("ci/mutants");
    mutants.retain(|path| path.ends_with(".patch"));
    assert!(mutants.len() >= 7, "{mutants:?}");
    for path in mutants {
        let text = read(&path);
        let mut lines = text.lines();
        let breaks = lines.next().unwrap_or_default();
        assert!(
            breaks.starts_with("# breaks: "),
            "{path} begins with \"# breaks: \""
        );
        let killer = lines.next().unwrap_or_default();
        let killer = killer.strip_prefix("# killed by: twinstep-tests ");
        let (program, file, name) = killer
            .and_then(|killer| killer.split_once(' '))
            .and_then(|(program, test)| Some((program, test.split_once("::")?)))
            .map(|(program, (file, name))| (program, file, name))
            .unwrap_or_else(|| panic!("{path} names no test that kills it"));
        let parts = read(&format!("tests/tests/{program}.rs"));
        assert!(parts.contains(&format!("mod {file};")), "{path}: {file}");
        let tests = read(&format!("tests/tests/{file}.rs"));
        assert!(
            tests.contains(&format!("fn {name}(")),
            "{path}: {file} has no {name}"
        );
    }
}

/// Finding A10: the lint list for games did not cover f64, and had fewer entries than the list for our own code.
#[test]
fn the_lints_for_games_cover_both_float_types_and_all_of_our_own_lints() {
    let paths = |file: &str| -> Vec<String> {
        let text = read(file);
        let parts = text.split("path = \"").skip(1);
        parts
            .filter_map(|part| Some(part.split_once('"')?.0.to_owned()))
            .collect()
    };
    let (ours, theirs) = (
        paths("clippy.toml"),
        paths("tests/testing/lints/clippy.toml"),
    );
    assert!(theirs.len() > 80, "{}", theirs.len());
    for path in &ours {
        assert!(theirs.contains(path), "games may use {path}");
    }
    for path in theirs.iter().filter(|path| path.starts_with("f32::")) {
        let twin = path.replace("f32::", "f64::");
        assert!(theirs.contains(&twin), "games may use {twin}");
    }
}
