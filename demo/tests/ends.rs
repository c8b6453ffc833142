//! How a server ends, as whoever started it sees it: exit codes, files, and what it says.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{Folder, powderkeg, refused, run, succeed};

/// Finding O5: the match had died of a full disk, and the process ended as if all had gone well; a second time when it was
/// started again on that disk.
#[cfg(target_os = "linux")]
#[test]
fn a_server_whose_disk_is_full_ends_with_an_error_and_a_file_that_says_why() {
    let folder = Folder::with_a_key("full");
    let journals = folder.file("journals");
    // No file of it grows beyond 1 KB.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let serve = || {
        let run = crate::common::without_settings(&mut Command::new("bash"))
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
    // What could be written stays, and is whole as far as it goes.
    for left in twinstep_server::host::journals(journals.as_ref()).unwrap() {
        let checked = succeed(&["journal", "check", left.to_str().unwrap()]);
        assert!(checked.contains("sound up to tick"), "{checked}");
    }
    for said in incidents {
        assert!(said.contains("the journal cannot be written"), "{said:?}");
    }
}

/// Finding O7: a journal with zeros or junk behind its last record stopped the server, and nothing could be done.
#[test]
fn a_journal_is_checked_and_repaired_and_its_match_goes_on() {
    let folder = Folder::with_a_key("repair");
    let journals = folder.file("journals");
    let bots = [
        "bots",
        "--players",
        "1",
        "--seconds",
        "4",
        "--seed",
        "3",
        "--journal",
        &journals,
    ];
    let _ = run(&bots);
    let path = fs::read_dir(&journals)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let name = path.to_str().unwrap();
    let whole = fs::read(&path).unwrap();
    let journal = |task: &str, code: i32| {
        let output = run(&["journal", task, name]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{task}: {said}");
        said
    };
    assert!(journal("check", 0).contains("sound up to tick"));
    let rows = journal("export", 0);
    let rows: Vec<serde_json::Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let ticks: Vec<u64> = rows
        .iter()
        .filter_map(|row| row["tick"]["tick"].as_u64())
        .collect();
    assert_eq!(rows[0]["start"]["game"], "powderkeg");
    assert!(ticks.len() > 200 && ticks.iter().copied().eq(0..ticks.len() as u64));
    let held = |row: &serde_json::Value| row["tick"]["inputs"]["0"].is_object();
    assert!(rows.iter().filter(|row| held(row)).count() > 150);
    // A file that is there is not written over.
    let out = folder.file("rows");
    succeed(&["journal", "export", name, "--out", &out]);
    let again = run(&["journal", "export", name, "--out", &out]);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(
        said.contains(&out) && said.contains("no file has yet"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(&out).unwrap().lines().count(),
        rows.len()
    );
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &folder.file("key"),
        "--journal",
        &journals,
    ];

    // As power is lost: zeros, then what stood there before.
    let junk: Vec<u8> = [0; 64]
        .into_iter()
        .chain(b"not a record at all".repeat(9))
        .collect();
    fs::write(&path, [&whole[..], &junk].concat()).unwrap();
    refused(&serve, &["powderkeg journal check", name]);
    let said = journal("check", 1);
    assert!(
        said.contains("zeros or junk") && said.contains("journal repair"),
        "{said}"
    );
    let damaged = fs::read(&path).unwrap();
    let said = journal("repair", 0);
    assert!(said.contains(".damaged"), "{said}");
    assert_eq!(
        fs::read(&path).unwrap(),
        whole,
        "nothing that is sound is lost"
    );
    assert_eq!(fs::read(format!("{name}.damaged")).unwrap(), damaged);
    journal("check", 0);

    // In the middle: what follows is lost, and it is said how much.
    let mut bytes = whole.clone();
    let middle = whole.len() - 400;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let said = journal("check", 1);
    assert!(
        said.contains("in the middle") && said.contains("ticks ("),
        "{said}"
    );
    let sound = journal("export", 1);
    assert!(sound.lines().count() > 100 && sound.lines().count() < rows.len());
    journal("repair", 0);
    journal("check", 0);
    let mut server = powderkeg(&serve).spawn().unwrap();
    let log = std::io::BufReader::new(server.stderr.take().unwrap());
    let taken_up = std::io::BufRead::lines(log)
        .map_while(Result::ok)
        .any(|line| line.contains("a match is taken up again"));
    let _ = server.kill();
    let _ = server.wait();
    assert!(taken_up);
}
