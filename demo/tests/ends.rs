//! How a server ends, as whoever started it sees it: exit codes, files, and what it says.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};

use common::Folder;

#[allow(dead_code, reason = "each test uses a part of it")]
mod common;

/// Finding O5: the match had died of a full disk, and the process ended as if all had gone well; a second time when it was
/// started again on that disk.
#[cfg(target_os = "linux")]
#[test]
fn a_server_whose_disk_is_full_ends_with_an_error_and_a_file_that_says_why() {
    let folder = Folder::with_a_key("full");
    let journals = folder.file("journals");
    // No file of it grows beyond 1 KB, and the first world is larger.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let serve = || {
        let run = Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_powderkeg")])
            .args(["serve", "--listen", "127.0.0.1:0", "--key-file"])
            .args([
                &folder.file("key"),
                "--journal",
                &journals,
                "--enemies",
                "0",
            ])
            .stdout(Stdio::null())
            .output()
            .unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    for again in [false, true] {
        let (code, said) = serve();
        assert_eq!(code, Some(1), "again: {again}: {said}");
        assert!(said.contains("File too large"), "{said}");
        assert!(said.contains("error: the match was stopped"), "{said}");
    }
    let incidents: Vec<String> = fs::read_dir(&journals)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(!incidents.is_empty());
    let left = twinstep_server::host::journals(journals.as_ref()).unwrap();
    assert!(left.is_empty(), "half a beginning is left: {left:?}");
    for said in incidents {
        assert!(said.contains("the journal cannot be written"), "{said:?}");
    }
}
