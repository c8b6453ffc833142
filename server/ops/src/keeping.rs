//! Retention of ended matches' journals, by age and by total size; the oldest are removed first.
//!
//! ```text
//!  match-7.1.journal             on demand: the number means that it is over (`demand/folder.rs` of the host)
//!  match-1-1700000000000.journal of a server of one match: over if its last record says so
//!  *.gz                          over: compressed journals are not continued
//! ```
//!
//! Invariant: the journal of a match that can continue, and a foreign file, are never touched.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use twinstep_host::JOURNAL_EXTENSION;
use twinstep_host::internal::{COMPRESSED_EXTENSION, ended, logged, unix_now};

/// The time between two passes over a folder of journals.
const RETAIN_EVERY: Duration = Duration::from_secs(60);

/// The limits for journals of ended matches. Without a limit, all journals are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepJournals {
    /// The maximum time since the match ended.
    pub for_at_most: Option<Duration>,
    /// The maximum total size, in bytes.
    pub bytes_max: Option<u64>,
}

struct Finished {
    path: PathBuf,
    bytes: u64,
    ended: SystemTime,
}

/// Returns `true` if a file is the journal of an ended match, compressed or not.
fn is_finished(path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(|name| name.to_str());
    let parse = || {
        let name = name?;
        let plain = name
            .strip_suffix(COMPRESSED_EXTENSION)
            .and_then(|name| name.strip_suffix('.'));
        let is_plain = plain.is_none();
        let name = plain.unwrap_or(name);
        let name = name.strip_suffix(JOURNAL_EXTENSION)?.strip_suffix('.')?;
        let (id, number) = name.strip_prefix("match-")?.split_once(['.', '-'])?;
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        let has_number = name.as_bytes().get("match-".len() + id.len()) == Some(&b'.');
        (is_number(id) && is_number(number)).then_some(has_number || !is_plain)
    };
    match parse() {
        None => Ok(false),
        Some(true) => Ok(true),
        // The name has only the start time, so the last record decides.
        Some(false) => match ended(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            ended => Ok(ended?.is_some()),
        },
    }
}

/// The files that failed in one pass. A failure does not stop the other files.
#[derive(Default)]
struct Failed {
    first: Option<(PathBuf, io::Error)>,
    files: BTreeSet<PathBuf>,
}

impl Failed {
    fn record(&mut self, path: PathBuf, error: io::Error) {
        self.files.insert(path.clone());
        self.first.get_or_insert((path, error));
    }

    fn log(self) {
        if let Some((path, error)) = self.first {
            let (path, files) = (path.display(), self.files.len());
            logged::error!(files, path = %path, %error, "cannot check or remove journals of ended matches; retrying in a minute");
        }
    }
}

/// The journals of a folder that `is` selects, the oldest first.
fn those(
    folder: &Path,
    is: impl Fn(&Path) -> io::Result<bool>,
    failed: &mut Failed,
) -> io::Result<Vec<Finished>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // A file that has disappeared is skipped, and so are other kinds of files.
        let Ok(data) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if !data.is_file() {
            continue;
        }
        match is(&path).and_then(|is| Ok((is, data.modified()?))) {
            Ok((true, ended)) => {
                let bytes = data.len();
                found.push(Finished { path, bytes, ended });
            }
            Ok((false, _)) => {}
            Err(error) => failed.record(path, error),
        }
    }
    found.sort_by(|a, b| (a.ended, &a.path).cmp(&(b.ended, &b.path)));
    Ok(found)
}

/// Applies the limits to a folder, until the future is dropped.
pub(crate) async fn retain(folder: PathBuf, keep: KeepJournals) {
    let mut every = tokio::time::interval(RETAIN_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let (of, keep) = (folder.clone(), keep.clone());
        let removed = tokio::task::spawn_blocking(move || remove_beyond_limits(&of, &keep));
        if let Ok(Err(error)) = removed.await {
            logged::error!(path = %folder.display(), %error, "cannot read the journal directory, so no journals are removed; retrying in a minute");
        }
    }
}

/// Removes the journals that exceed the limits. A file that cannot be removed does not stop the others.
fn remove_beyond_limits(folder: &Path, keep: &KeepJournals) -> io::Result<()> {
    if *keep == KeepJournals::default() {
        return Ok(());
    }
    let mut failed = Failed::default();
    let found = those(folder, is_finished, &mut failed)?;
    let mut bytes: u64 = found.iter().map(|one| one.bytes).sum();
    let now = SystemTime::UNIX_EPOCH + unix_now();
    for one in found {
        let age = now.duration_since(one.ended).unwrap_or_default();
        let is_old = keep.for_at_most.is_some_and(|most| age > most);
        if !is_old && keep.bytes_max.is_none_or(|most| bytes <= most) {
            // The following journals are younger.
            break;
        }
        match std::fs::remove_file(&one.path) {
            // Another process with this folder was faster.
            Err(error) if error.kind() != io::ErrorKind::NotFound => failed.record(one.path, error),
            _ => {
                let code = if is_old { "age" } else { "size" };
                logged::info!(path = %one.path.display(), code, "journal of an ended match removed");
                bytes -= one.bytes;
            }
        }
    }
    failed.log();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use twinstep_core::testing::doc::Counter;
    use twinstep_protocol::packet::closed::CloseCode;
    use twinstep_server::hooks::{Decision, HookContext};
    use twinstep_server::{Match, MatchConfig, Output};

    use super::*;

    /// Creates a folder with 1,000-byte journals of these ages in hours.
    fn folder(name: &str, hours: &[(&str, u64)]) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("twinstep-keep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, hours) in hours {
            let path = folder.join(name);
            fs::write(&path, vec![7; 1_000]).unwrap();
            age(&path, *hours);
        }
        folder
    }

    fn age(path: &Path, hours: u64) {
        let now = SystemTime::UNIX_EPOCH + unix_now();
        let file = File::options().append(true).open(path).unwrap();
        let ended = now - Duration::from_secs(hours * 3_600);
        file.set_modified(ended).unwrap();
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
    /// Files that must stay: journals of matches that have not ended, and a foreign file.
    const KEPT: [&str; 3] = [
        "match-1-1700000000.journal",
        "match-1.journal",
        "match-x.1.journal",
    ];

    #[test]
    fn the_oldest_journals_are_removed_first_but_never_those_of_unfinished_matches() {
        for (name, keep, more) in [
            (
                "all",
                KeepJournals::default(),
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
                    ..KeepJournals::default()
                },
                &["match-1.2.journal.gz"],
            ),
            (
                "bytes",
                KeepJournals {
                    bytes_max: Some(2_000),
                    ..KeepJournals::default()
                },
                &["match-1.2.journal.gz", "match-2.1.journal"],
            ),
        ] {
            let folder = folder(name, &ALL);
            remove_beyond_limits(&folder, &keep).unwrap();
            let mut expected: Vec<&str> = KEPT.iter().chain(more).copied().collect();
            expected.sort_unstable();
            assert_eq!(left(&folder), expected, "{name}");
        }
    }

    /// A server of one match kept its journals forever, uncompressed.
    #[test]
    fn journals_of_a_single_match_server_are_limited_once_their_match_is_over() {
        let over = journal_that_ends(Some(CloseCode::MatchOver));
        let all = [
            ("match-1-1700000000001.journal", over.clone(), 9),
            ("match-1-1700000000002.journal", over, 5),
            ("match-1-1700000000003.journal", journal_that_ends(None), 90),
        ];
        let folder = folder("one", &all.clone().map(|(name, _, hours)| (name, hours)));
        for (name, bytes, hours) in &all {
            let path = folder.join(name);
            fs::write(&path, bytes).unwrap();
            age(&path, *hours);
        }
        let keep = KeepJournals {
            for_at_most: Some(Duration::from_secs(6 * 3_600)),
            ..KeepJournals::default()
        };
        remove_beyond_limits(&folder, &keep).unwrap();
        assert_eq!(
            left(&folder),
            [
                "match-1-1700000000002.journal",
                "match-1-1700000000003.journal"
            ]
        );
    }

    /// The journal of a match that ended with this code; `None` if its process was killed.
    fn journal_that_ends(code: Option<CloseCode>) -> Vec<u8> {
        let unanswered = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
        let config = MatchConfig::action();
        let match_ = Match::new(
            config,
            Counter::default(),
            std::sync::Arc::new(()),
            unanswered,
        );
        let mut match_ = match_.unwrap();
        match_.keep_journal().unwrap();
        code.into_iter().for_each(|code| match_.end_journal(code));
        let mut journal = Vec::new();
        while let Some(output) = match_.poll() {
            if let Output::Journal(bytes) = output {
                journal.extend_from_slice(bytes);
            }
        }
        journal
    }

    /// Finding K3-F: a file that could not be opened prevented the removal of all others.
    #[test]
    fn an_unreadable_file_is_reported_and_the_others_are_found() {
        let folder = folder("shut", &ALL);
        let mut failed = Failed::default();
        let is = |path: &Path| match path.ends_with("match-1.1.journal") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(true),
        };
        let found = those(&folder, is, &mut failed).unwrap();
        assert_eq!((found.len(), failed.files.len()), (ALL.len() - 1, 1));
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding K3-F: a file that could not be examined prevented the removal of all others.
    #[test]
    fn a_folder_named_like_a_journal_does_not_disable_the_limits() {
        let names: Vec<String> = (1..=20).map(|n| format!("match-1.{n}.journal")).collect();
        let all: Vec<(&str, u64)> = names.iter().map(|name| (&**name, 50)).collect();
        let folder = folder("stuck", &all);
        fs::create_dir(folder.join("match-1-5.journal")).unwrap();
        fs::create_dir(folder.join("match-1.77.journal")).unwrap();
        let keep = KeepJournals {
            bytes_max: Some(5_300),
            ..KeepJournals::default()
        };
        remove_beyond_limits(&folder, &keep).unwrap();
        let left = left(&folder);
        assert_eq!(left.len(), 5 + 2, "{left:?}");
    }
}
