use super::*;
use crate::secrets::tests::Folder;
use twinstep_protocol::lineage::Stamp;

const NOW_S: u64 = 1_700_000_000;

fn of(identity: &str) -> Holder {
    Holder {
        match_id: MatchId(1),
        identity: Identity::new(identity, Role::Player),
    }
}

fn below(lineage: u64, generation: u32) -> Ruling {
    Ruling::Below {
        lineage,
        generation,
        until_unix_s: NOW_S + 600,
    }
}

fn add(file: &mut LineageFile, rulings: &[(Holder, Ruling)]) -> Vec<(Holder, Ruling)> {
    let mut learned = Vec::new();
    let appended = file.append(rulings, NOW_S, |holder, ruling| {
        learned.push((holder, ruling))
    });
    appended.unwrap();
    learned
}

fn stamp(lineage: u64, generation: u32) -> Stamp {
    Stamp {
        lineage,
        generation,
        ..Stamp::default()
    }
}

#[test]
fn rulings_survive_a_restart_and_never_go_back() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut file, table) = LineageFile::open(&path).unwrap();
    assert!(table.is_empty());
    let zoe = Holder {
        match_id: MatchId(2),
        identity: Identity::new("Zoë of the east", Role::Spectator),
    };
    let revoked = Ruling::MadeBefore { unix_ms: 77 };
    add(
        &mut file,
        &[(of("anna"), below(9, 5)), (zoe.clone(), revoked)],
    );
    add(&mut file, &[(of("anna"), below(9, 4))]);
    for table in [
        LineageFile::open(&path).unwrap().1,
        LineageFile::load(&path).unwrap(),
    ] {
        let all: Vec<_> = table.iter().collect();
        assert_eq!(all, [(&of("anna"), below(9, 5)), (&zoe, revoked)]);
        assert!(table.refuses(&of("anna"), &stamp(9, 4)));
        assert!(!table.refuses(
            &of("anna"),
            &Stamp {
                issued_unix_ms: 1,
                ..stamp(9, 5)
            }
        ));
    }
}

/// Finding H3: two processes overwrote each other's entries.
#[test]
fn two_processes_with_one_file_keep_and_read_each_others_rulings() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut one, _) = LineageFile::open(&path).unwrap();
    let (mut two, _) = LineageFile::open(&path).unwrap();
    let mut learned = 0;
    for n in 0..3_000 {
        let (mine, theirs) = (format!("a{n}"), format!("b{n}"));
        learned += add(&mut one, &[(of(&mine), below(n, 0))]).len();
        learned += add(&mut two, &[(of(&theirs), below(n, 0))]).len();
    }
    assert_eq!(LineageFile::load(&path).unwrap().len(), 6_000);
    assert!(
        learned >= 5_999,
        "{learned}; more where the file was written anew"
    );
}

#[test]
fn threads_that_write_concurrently_lose_no_rulings() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    thread::scope(|scope| {
        for who in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let (mut file, _) = LineageFile::open(path).unwrap();
                for n in 0..10 {
                    add(&mut file, &[(of(&format!("{who}-{n}")), below(1, 0))]);
                }
            });
        }
    });
    assert_eq!(LineageFile::load(&path).unwrap().len(), 40);
}

/// A crash at any byte of a write costs only that line, and the next write continues after the last complete one.
#[test]
fn an_incomplete_line_is_ignored_and_overwritten() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut file, _) = LineageFile::open(&path).unwrap();
    add(&mut file, &[(of("anna"), below(1, 1))]);
    let sound = fs::read(&path).unwrap();
    add(&mut file, &[(of("bob"), below(2, 2))]);
    let whole = fs::read(&path).unwrap();
    for end in sound.len()..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(LineageFile::load(&path).unwrap().len(), 1);
        let (mut file, table) = LineageFile::open(&path).unwrap();
        assert_eq!(table.len(), 1, "cut at {end}");
        add(&mut file, &[(of("cleo"), below(3, 3))]);
        assert_eq!(LineageFile::load(&path).unwrap().len(), 2, "cut at {end}");
        // Another process is killed while this one runs.
        fs::write(&path, &sound).unwrap();
        let (mut file, _) = LineageFile::open(&path).unwrap();
        fs::write(&path, &whole[..end]).unwrap();
        add(&mut file, &[(of("cleo"), below(3, 3))]);
        assert_eq!(LineageFile::load(&path).unwrap().len(), 2, "cut at {end}");
    }
}

#[test]
fn damage_is_an_error_that_names_the_line() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let first = first_line(7);
    let mut sound = String::new();
    write_line(&mut sound, &of("anna"), &below(1, 1));
    for (text, at) in [
        ("hello\n".to_owned(), 1),
        (
            "twinstep-serials-1\n0000018bcfe56800 0000000000000001 p anna\n".to_owned(),
            1,
        ),
        (format!("{first}{sound}hello\n"), 3),
        (format!("{first}{}", &sound[1..]), 2),
        (format!("{first}{}", sound.replace(" p ", " q ")), 2),
        (format!("{first}{sound}{}", "x".repeat(500)), 3),
    ] {
        fs::write(&path, &text).unwrap();
        for error in [
            LineageFile::open(&path).err().unwrap(),
            LineageFile::load(&path).err().unwrap(),
        ] {
            assert!(
                matches!(error, LineageFileError::Damaged { line, .. } if line == at),
                "{text:?}: {error}"
            );
        }
    }
}

/// Finding O3-6, found at the lock of the bans: a program waited for the lock forever, without a message.
#[test]
fn waiting_for_a_held_lock_ends_with_an_error_that_names_its_file() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut file, _) = LineageFile::open(&path).unwrap();
    let held = File::open(folder.file("lineages.lock")).unwrap();
    held.lock().unwrap();
    let error = file.append(&[], NOW_S, |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("lineages.lock"), "{error}");
    drop(held);
    file.append(&[], NOW_S, |_, _| ()).unwrap();
}

#[cfg(unix)]
#[test]
fn the_files_are_readable_only_by_their_owner_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut file, _) = LineageFile::open(&path).unwrap();
    // A server can start where it cannot write: the file is created with its first ruling.
    assert!(!path.exists());
    add(&mut file, &[(of("anna"), below(1, 1))]);
    drop(file);
    for name in ["lineages", "lineages.lock"] {
        let mode = fs::metadata(folder.file(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let other = folder.file("other");
    fs::write(&other, "precious").unwrap();
    for (name, link) in [("a", "a"), ("b", "b.lock")] {
        symlink(&other, folder.file(link)).unwrap();
        let error = LineageFile::open(folder.file(name)).err().unwrap();
        assert!(matches!(error, LineageFileError::Io { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
}

/// Findings H3, K3-A: an entry stayed for 31 days, and the whole file was rewritten for each entry. Above 64 MiB it
/// could no longer be written, and no server could start with it.
#[test]
fn file_and_table_stay_as_small_as_the_live_rulings_over_a_year_of_100_000_daily_joins() {
    const JOINS_AN_HOUR: u64 = 100_000 / 24;
    // A debug build reaches the steady state, and stays in it for a while.
    let days = if cfg!(debug_assertions) { 4 } else { 365 };
    let folder = Folder::new();
    let path = folder.file("lineages");
    let (mut file, mut table) = LineageFile::open(&path).unwrap();
    let (mut entries_most, mut bytes_most) = (0, 0);
    let (mut id, mut replaced) = (0, 0);
    for hour in 0..days * 24 {
        let now_s = NOW_S + hour * 3_600;
        let rulings: Vec<_> = (0..JOINS_AN_HOUR)
            .flat_map(|n| {
                let join = hour * JOINS_AN_HOUR + n;
                // Each player joins with a ten-minute ticket, and reconnects once with a twenty-minute one.
                let holder = Holder {
                    match_id: MatchId(join / 8),
                    identity: Identity::new(format!("player {}", join % 50_000), Role::Player),
                };
                let came = Stamp {
                    lineage: join * 7_919,
                    expires_unix_s: now_s + 600,
                    ..Stamp::default()
                };
                let stored = Stamp {
                    generation: 1,
                    expires_unix_s: now_s + 1_200,
                    ..came
                };
                table
                    .change(&holder, |lineages| {
                        let mut rulings = lineages.make_safe(&came);
                        rulings.extend(lineages.make_safe(&stored));
                        rulings
                    })
                    .into_iter()
                    .map(move |ruling| (holder.clone(), ruling))
            })
            .collect();
        assert_eq!(table.tidy(now_s), 0, "no useful ruling is dropped");
        file.append(&rulings, now_s, |_, _| ()).unwrap();
        entries_most = entries_most.max(table.len());
        bytes_most = bytes_most.max(fs::metadata(&path).unwrap().len());
        replaced += u64::from(file.id != id);
        id = file.id;
    }
    // An entry lives for its ticket's lifetime, an hour, and a day of clock slack: 26 hours. Until the table is tidied,
    // it may hold twice that.
    assert!(
        entries_most < 2 * 27 * JOINS_AN_HOUR as usize,
        "{entries_most}"
    );
    println!("at most {entries_most} entries, {bytes_most} bytes; written anew {replaced} times");
    assert!(bytes_most < 30 << 20, "{bytes_most} bytes");
    assert!(replaced < 10 + days, "written anew {replaced} times");
    let (_, read) = LineageFile::open(&path).unwrap();
    assert!(read.len() <= 2 * entries_most && !read.is_empty());
}

#[test]
fn above_the_bound_the_oldest_rulings_are_dropped_and_the_file_still_opens() {
    let folder = Folder::new();
    let path = folder.file("lineages");
    let mut table = LineageTable::new(1_000);
    let mut lost = 0;
    for n in 0..3_000 {
        let ruling = Ruling::Below {
            lineage: n,
            generation: 1,
            until_unix_s: NOW_S + n,
        };
        table.apply(&of(&n.to_string()), &ruling);
        lost += table.tidy(NOW_S);
    }
    assert!(
        table.len() <= 1_000 && lost >= 2_000,
        "{} {lost}",
        table.len()
    );
    assert!(table.get(&of("2999")).is_some() && table.get(&of("0")).is_none());
    // A file with more lines than are remembered can still be read.
    let mut text = first_line(7);
    for n in 0..LINEAGES_MAX as u64 + 1_000 {
        write_line(&mut text, &of("anna"), &below(n, 1));
    }
    fs::write(&path, text).unwrap();
    assert!(LineageFile::open(&path).unwrap().1.len() <= LINEAGES_MAX);
    fs::remove_file(&path).unwrap();
    let (mut file, _) = LineageFile::open(&path).unwrap();
    let all: Vec<_> = table
        .iter()
        .map(|(of, ruling)| (of.clone(), ruling))
        .collect();
    for _ in 0..3 {
        add(&mut file, &all);
    }
    assert_eq!(LineageFile::open(&path).unwrap().1.len(), table.len());
}
