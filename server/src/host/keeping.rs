//! What becomes of journals whose matches are over: compressed, then kept by age, bytes and free disk; the oldest go first.
//!
//! Invariant: only what has a number is touched (`demand/folder.rs`): never the journal of a match that can go on, nor a file
//! that somebody else put there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::host::clock::unix_now;
use crate::host::journal_folder::JOURNAL_EXTENSION;
use crate::host::journal_read::{COMPRESSED_EXTENSION, compress};
use crate::host::strain::free_bytes;

/// Which journals of matches that are over are kept. Without a word all are, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepJournals {
    /// Whether they are compressed (gzip) when their match is over: to a tenth, say. What reads journals reads both.
    pub compressed: bool,
    /// For how long, since their match ended.
    pub for_at_most: Option<Duration>,
    /// How many bytes all of them may take.
    pub bytes_max: Option<u64>,
    /// How many bytes stay free on their disk for those that are written (unix).
    pub disk_free_bytes: u64,
}

impl Default for KeepJournals {
    fn default() -> Self {
        KeepJournals {
            compressed: true,
            for_at_most: None,
            bytes_max: None,
            disk_free_bytes: 0,
        }
    }
}

/// A journal whose match is over.
struct Finished {
    path: PathBuf,
    bytes: u64,
    ended: SystemTime,
}

/// Whether a file has the name of a journal with a number, compressed or not.
fn is_finished(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let parse = || {
        let name = name?;
        let name = name
            .strip_suffix(COMPRESSED_EXTENSION)
            .and_then(|name| name.strip_suffix('.'))
            .unwrap_or(name);
        let name = name.strip_suffix(JOURNAL_EXTENSION)?.strip_suffix('.')?;
        let (id, number) = name.strip_prefix("match-")?.split_once('.')?;
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        (is_number(id) && is_number(number)).then_some(())
    };
    parse().is_some()
}

/// Those of a folder, the oldest first.
fn finished(folder: &Path) -> io::Result<Vec<Finished>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !is_finished(&path) {
            continue;
        }
        // One that is gone meanwhile needs no care.
        let Ok(data) = std::fs::metadata(&path) else {
            continue;
        };
        let (bytes, ended) = (data.len(), data.modified()?);
        found.push(Finished { path, bytes, ended });
    }
    found.sort_by(|a, b| (a.ended, &a.path).cmp(&(b.ended, &b.path)));
    Ok(found)
}

/// Compresses and removes what is to be.
pub(super) fn tidy(folder: &Path, keep: &KeepJournals) -> io::Result<()> {
    // What goes anyway is not compressed before; but how much all of them take is seen only then.
    let first = KeepJournals {
        bytes_max: keep.bytes_max.filter(|_| !keep.compressed),
        ..keep.clone()
    };
    remove(folder, &first)?;
    if keep.compressed {
        for one in finished(folder)? {
            if one
                .path
                .extension()
                .is_some_and(|end| end == JOURNAL_EXTENSION)
            {
                compress(&one.path)?;
            }
        }
        remove(folder, keep)?;
    }
    Ok(())
}

fn remove(folder: &Path, keep: &KeepJournals) -> io::Result<()> {
    let found = finished(folder)?;
    let mut bytes: u64 = found.iter().map(|one| one.bytes).sum();
    let now = SystemTime::UNIX_EPOCH + unix_now();
    for Finished {
        path,
        bytes: its_bytes,
        ended,
    } in found
    {
        let age = now.duration_since(ended).unwrap_or_default();
        let why = if keep.for_at_most.is_some_and(|most| age > most) {
            "it is old"
        } else if keep.bytes_max.is_some_and(|most| bytes > most) {
            "all of them take too much"
        } else if keep.disk_free_bytes > 0
            && free_bytes(folder).is_some_and(|free| free < keep.disk_free_bytes)
        {
            "the disk is full"
        } else {
            // Those that follow are younger.
            return Ok(());
        };
        tracing::info!(path = %path.display(), why, "a journal is removed");
        match std::fs::remove_file(&path) {
            // Another process with this folder was faster.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => bytes -= its_bytes,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// A folder with journals of 1,000 bytes each that are so many hours old.
    fn folder(name: &str, hours: &[(&str, u64)]) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("twinstep-keep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let now = SystemTime::UNIX_EPOCH + unix_now();
        for (name, hours) in hours {
            let path = folder.join(name);
            fs::write(&path, vec![7; 1_000]).unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            let ended = now - Duration::from_secs(hours * 3_600);
            file.set_modified(ended).unwrap();
        }
        folder
    }

    fn left(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        fs::remove_dir_all(folder).unwrap();
        names
    }

    const ALL: [(&str, u64); 6] = [
        ("match-1.1.journal", 9),
        ("match-1.2.journal.gz", 5),
        ("match-1.journal", 90),
        ("match-1-1700000000.journal", 90),
        ("match-2.1.journal", 7),
        ("match-x.1.journal", 90),
    ];
    /// None of which may go: one in play, and files of others.
    const KEPT: [&str; 3] = [
        "match-1-1700000000.journal",
        "match-1.journal",
        "match-x.1.journal",
    ];

    fn plain() -> KeepJournals {
        KeepJournals {
            compressed: false,
            ..KeepJournals::default()
        }
    }

    #[test]
    fn the_oldest_journals_go_first_and_none_of_a_match_that_can_go_on() {
        for (name, keep, more) in [
            (
                "all",
                plain(),
                &[
                    "match-1.1.journal",
                    "match-1.2.journal.gz",
                    "match-2.1.journal",
                ][..],
            ),
            (
                "age",
                KeepJournals {
                    for_at_most: Some(Duration::from_secs(6 * 3_600)),
                    ..plain()
                },
                &["match-1.2.journal.gz"],
            ),
            (
                "bytes",
                KeepJournals {
                    bytes_max: Some(2_000),
                    ..plain()
                },
                &["match-1.2.journal.gz", "match-2.1.journal"],
            ),
            (
                "disk",
                KeepJournals {
                    disk_free_bytes: u64::MAX,
                    ..plain()
                },
                &[],
            ),
        ] {
            let folder = folder(name, &ALL);
            tidy(&folder, &keep).unwrap();
            let mut expected: Vec<&str> = KEPT.iter().chain(more).copied().collect();
            expected.sort_unstable();
            if cfg!(unix) || name != "disk" {
                assert_eq!(left(&folder), expected, "{name}");
            }
        }
    }

    #[test]
    fn journals_of_matches_that_are_over_are_compressed_and_no_others() {
        let folder = folder("gz", &ALL);
        tidy(&folder, &KeepJournals::default()).unwrap();
        let mut expected = KEPT.to_vec();
        expected.extend([
            "match-1.1.journal.gz",
            "match-1.2.journal.gz",
            "match-2.1.journal.gz",
        ]);
        expected.sort_unstable();
        assert_eq!(left(&folder), expected);
    }

    /// One that had just ended counted as much as it did before it was compressed, and older ones went for that.
    #[test]
    fn journals_count_as_many_bytes_as_they_take_compressed() {
        let folder = folder(
            "sum",
            &[("match-1.1.journal.gz", 9), ("match-2.1.journal", 1)],
        );
        let keep = |bytes_max| KeepJournals {
            bytes_max: Some(bytes_max),
            ..KeepJournals::default()
        };
        tidy(&folder, &keep(1_500)).unwrap();
        assert!(folder.join("match-1.1.journal.gz").exists());
        assert!(folder.join("match-2.1.journal.gz").exists());
        tidy(&folder, &keep(500)).unwrap();
        assert_eq!(left(&folder), ["match-2.1.journal.gz"]);
    }
}
