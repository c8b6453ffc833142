//! The files for operators in `server/ops`: they name settings that exist, with valid values.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{powderkeg, succeed};

fn ops(path: &str) -> PathBuf {
    let demo = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    demo.join("../server/ops").join(path)
}

fn read(path: &str) -> String {
    let path = ops(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn printed(mut command: Command, of: &str) -> String {
    let output = command.arg("--print-config").output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{of}: {said}");
    said
}

fn with_variables(variables: &[(String, String)], args: &[&str], of: &str) {
    assert!(variables.len() > 1, "{of}: {variables:?}");
    let mut command = powderkeg(args);
    command.envs(variables.iter().cloned());
    let said = printed(command, of);
    for (name, _) in variables {
        assert!(
            said.contains(&format!("environment variable {name}\n")),
            "{of}: {name}: {said}"
        );
    }
}

/// Checks that the name of a credential's file is the name of a secret.
fn assert_secret(name: &str, of: &str) {
    let help = succeed(&["serve", "--help"]);
    assert!(
        help.contains(&format!("--{name} <FILE>")),
        "{of}: there is no secret {name}"
    );
}

#[test]
fn the_fleets_manifest_names_existing_settings() {
    let text = read("agones/fleet.yml");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let variables: Vec<(String, String)> = lines
        .windows(2)
        .filter_map(|pair| {
            let name = pair[0].strip_prefix("- name: TWINSTEP_")?;
            let value = pair[1]
                .strip_prefix("value: ")
                .expect(name)
                .trim_matches('"');
            Some((format!("TWINSTEP_{name}"), value.to_owned()))
        })
        .collect();
    with_variables(&variables, &["serve"], "fleet.yml");
    let secrets = text.split("--from-file=").skip(1);
    let secrets: Vec<&str> = secrets.filter_map(|rest| rest.split('=').next()).collect();
    assert!(!secrets.is_empty());
    secrets
        .into_iter()
        .for_each(|name| assert_secret(name, "fleet.yml"));
    // Finding P3-E1: a Service's variables look like settings.
    assert!(text.contains("\n          enableServiceLinks: false\n"));
    // The counter that the server updates must exist.
    assert!(text.contains("\n      counters:\n        players:\n"));
}

#[test]
fn the_image_starts_a_server_with_existing_settings() {
    let text = read("docker/Dockerfile").replace("\\\n", " ");
    let words = text
        .lines()
        .filter(|line| line.starts_with("ENV "))
        .flat_map(str::split_whitespace);
    let variables: Vec<(String, String)> = words
        .filter(|word| word.starts_with("TWINSTEP_"))
        .map(|word| word.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let command = text
        .lines()
        .find_map(|line| line.strip_prefix("CMD "))
        .unwrap();
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    let args: Vec<&str> = command.iter().map(String::as_str).collect();
    with_variables(&variables, &args, "Dockerfile");
    assert!(text.contains("\nUSER 65532"), "not as root");
}

#[test]
fn the_unit_starts_a_server_with_valid_flags_and_a_valid_file() {
    let text = read("systemd/powderkeg.service");
    let file = ops("systemd/server.toml").to_str().unwrap().to_owned();
    let commands: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("Exec") && !line.starts_with("ExecReload"))
        .collect();
    // systemd restarts a unit whose ExecStartPre failed, in spite of RestartPreventExitStatus.
    let [command] = commands[..] else {
        panic!("expected one command, got {commands:?}");
    };
    let args = command.strip_prefix("ExecStart=/usr/bin/powderkeg ");
    let args = args.unwrap().replace("/etc/powderkeg/server.toml", &file);
    let args: Vec<&str> = args.split(' ').collect();
    let said = printed(powderkeg(&args), command);
    assert!(said.contains("server.toml, listen"), "{said}");
    let credentials = text
        .lines()
        .filter_map(|line| line.strip_prefix("LoadCredential="));
    let credentials: Vec<&str> = credentials
        .filter_map(|rest| rest.split(':').next())
        .collect();
    assert_eq!(credentials.len(), 1);
    assert_secret(credentials[0], "powderkeg.service");
    // The settings in the file's comments are also valid, once they are uncommented.
    let whole = read("systemd/server.toml").replace("# public", "public");
    let path = std::env::temp_dir().join(format!("powderkeg-whole-{}.toml", std::process::id()));
    fs::write(&path, whole).unwrap();
    let said = printed(
        powderkeg(&["serve", "--config", path.to_str().unwrap()]),
        "server.toml",
    );
    assert!(said.contains("public = \"203.0.113.7:7777\""), "{said}");
    fs::remove_file(path).unwrap();
}
