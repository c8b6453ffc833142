//! [`IncidentFiles`]: incidents as files, next to the journal or in a configured folder, for the game's developers.
//!
//! Law **Bounded**: a folder has at most [`FILES_MAX`] files of one match, including files from before a restart, and
//! [`FATAL_MAX`] more files of incidents of fatal kinds, so that many small incidents cannot hide them. Every incident
//! is also logged, within the limits of the log (`host/logged.rs`).
//!
//! If the file cannot be written to the folder (a full disk is an incident, too), it goes to the folder for temporary
//! files; if that fails, the text goes to standard error. A file is readable by its owner only, and never replaces
//! another.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use twinstep_protocol::identity::MatchId;
use twinstep_protocol::text::line;
use twinstep_udp::random_u64;

use super::logged::{self, LogKind};
use super::observer::Observer;
use super::own_files::{FileLock, create_locked};
use twinstep_server::incident::{Incident, Trouble};

const FILES_MAX: usize = 32;
// Further files for incidents of fatal kinds.
const FATAL_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct IncidentFiles {
    pub(super) id: MatchId,
    pub(super) folder: Option<PathBuf>,
    pub(super) journal: Option<PathBuf>,
    pub(super) about: String,
    pub(super) recent: Arc<Mutex<VecDeque<Incident>>>,
    pub(super) observer: Arc<dyn Observer>,
}

// The newest incidents are kept.
const RECENT_MAX: usize = 64;

impl IncidentFiles {
    pub(super) fn write(&self, incident: &Incident) {
        self.write_as(incident, incident.trouble.is_fatal());
    }

    /// Writes an incident that this match survives, although its kind is usually fatal: a lost journal.
    pub(super) fn write_survived(&self, incident: &Incident) {
        self.write_as(incident, false);
    }

    fn write_as(&self, incident: &Incident, is_fatal: bool) {
        let id = self.id;
        self.observer.incident(incident);
        {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if recent.len() == RECENT_MAX {
                recent.pop_front();
            }
            recent.push_back(incident.clone());
        }
        let (tick, trouble, detail) = (incident.tick.0, incident.trouble, line(&incident.message));
        let kind = Trouble::NAMES[trouble as usize];
        // Two kinds of log lines, so that many small incidents cannot suppress the line of the incident that ended the
        // match.
        match is_fatal {
            true => {
                logged::error!("match" = id.0, tick, kind, reason = %trouble, error = ?detail, "incident ended the match")
            }
            false => {
                logged::error!("match" = id.0, tick, kind, reason = %trouble, error = ?detail, "incident: the match continues")
            }
        }
        let Some(folder) = &self.folder else {
            return;
        };
        let written = self.write_file(folder, incident, is_fatal).or_else(|error| {
            let other = std::env::temp_dir();
            logged::error!("match" = id.0, %error, path = %folder.display(), "cannot write the incident file to this directory; using the temporary directory");
            self.write_file(&other, incident, is_fatal)
        });
        match written {
            Ok(Some(path)) => {
                logged::info!("match" = id.0, path = %path.display(), "incident file written")
            }
            Ok(None) => logged::warn!(
                "match" = id.0,
                path = %folder.display(),
                "too many incident files with this match id: this incident is only logged; move old incident-ID-*.txt away"
            ),
            Err(error) => {
                logged::error!("match" = id.0, %error, "cannot write an incident file; its text follows on standard error");
                static TEXTS: LogKind = LogKind::new(tracing::Level::ERROR, "incident texts");
                if TEXTS.admits() {
                    let _ = write!(io::stderr(), "{}", self.text(incident));
                }
            }
        }
    }

    fn text(&self, incident: &Incident) -> String {
        let journal = match &self.journal {
            Some(path) => path.display().to_string(),
            None => "none".to_owned(),
        };
        let (id, about) = (self.id, &self.about);
        format!("match {id}, {about}, journal: {journal}\n{incident}\n")
    }

    fn write_file(
        &self,
        folder: &Path,
        incident: &Incident,
        is_fatal: bool,
    ) -> io::Result<Option<PathBuf>> {
        let prefix = format!("incident-{}-", self.id);
        let mut files = 0;
        for entry in std::fs::read_dir(folder)? {
            files += usize::from(entry?.file_name().to_string_lossy().starts_with(&prefix));
        }
        if files >= FILES_MAX + if is_fatal { FATAL_MAX } else { 0 } {
            return Ok(None);
        }
        // The name must not be guessable, because all users can write to the folder for temporary files.
        let name = format!("{prefix}{}-{:016x}.txt", incident.tick.0, random_u64());
        let path = folder.join(name);
        let FileLock::Acquired(mut file) = create_locked(&path)? else {
            return Err(io::ErrorKind::AlreadyExists.into());
        };
        // A single write, so that a full disk stores all of the text or, usually, none of it.
        let written = file.write_all(self.text(incident).as_bytes());
        if written.is_err() {
            // An empty file would be misleading.
            let _ = std::fs::remove_file(&path);
        }
        written.map(|()| Some(path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use twinstep_core::Tick;

    use super::*;

    fn files(id: MatchId, folder: &Path) -> IncidentFiles {
        IncidentFiles {
            id,
            folder: Some(folder.to_owned()),
            journal: None,
            about: "a game".to_owned(),
            recent: Arc::default(),
            observer: Arc::new(()),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Finding H11: after 32 small incidents a fatal one got no file.
    #[test]
    fn many_small_incidents_leave_space_for_a_fatal_one() {
        let folder = folder("incidents-fatal");
        let files = files(MatchId(3), &folder);
        let count = || fs::read_dir(&folder).unwrap().count();
        for tick in 0..100 {
            files.write(&Incident::new(Tick(tick), Trouble::Job, "small"));
        }
        // Of a fatal kind, but survived: it takes no place of a fatal one.
        files.write_survived(&Incident::new(Tick(100), Trouble::Journal, "lost"));
        assert_eq!(count(), FILES_MAX);
        for tick in 100..200 {
            files.write(&Incident::new(Tick(tick), Trouble::MatchHangs, "fatal"));
        }
        assert_eq!(count(), FILES_MAX + FATAL_MAX);
        let fatal = |name: &str| name.starts_with("incident-3-100-");
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| fatal(name)).count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Findings O5 and O3-12: the incident of a full disk was an empty file on that disk; and in the folder for
    /// temporary files a link was followed into a file that all users could read.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_incident_refused_by_its_folder_is_written_elsewhere_and_never_empty() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("incidents-full");
        // Unique, because other processes share that folder.
        let id = 1 << 40 | u64::from(std::process::id());
        let elsewhere = folder.join("mine");
        let guessed = std::env::temp_dir().join(format!("incident-{id}-7.txt"));
        std::os::unix::fs::symlink(&elsewhere, &guessed).unwrap();
        let files = files(MatchId(id), &folder.join("not there"));
        for _ in 0..2 {
            files.write(&Incident::new(Tick(7), Trouble::Journal, "no room"));
        }
        assert!(!elsewhere.exists(), "it was written through a link");
        fs::remove_file(&guessed).unwrap();
        let prefix = format!("incident-{id}-7-");
        let mut written = 0;
        for entry in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if name.starts_with(&prefix) {
                let text = fs::read_to_string(entry.path()).unwrap();
                assert!(text.contains("no room"), "{text}");
                let mode = entry.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                fs::remove_file(entry.path()).unwrap();
                written += 1;
            }
        }
        assert_eq!(written, 2, "each has a file of its own");
        fs::remove_dir_all(&folder).unwrap();
    }
}
