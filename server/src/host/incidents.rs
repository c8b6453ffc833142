//! Incidents as files, beside the journal or where the host was told: for whoever has to mend the game.
//!
//! Law **Bounded**: at most [`FILES_MAX`] of one match in a folder, restarts included; the log has them all.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::incident::Incident;

/// Files of one match.
const FILES_MAX: usize = 32;

/// Where the incidents of one match go.
#[derive(Clone, Debug)]
pub(super) struct IncidentFiles {
    pub(super) id: u64,
    pub(super) folder: Option<PathBuf>,
    pub(super) journal: Option<PathBuf>,
    /// The game and the build.
    pub(super) about: String,
}

impl IncidentFiles {
    /// Logs an incident and writes its file.
    pub(super) fn write(&self, incident: &Incident) {
        let id = self.id;
        tracing::error!(id, tick = incident.tick.0, trouble = %incident.trouble, message = ?incident.message, "incident");
        let Some(folder) = &self.folder else {
            return;
        };
        match self.write_file(folder, incident) {
            Ok(Some(path)) => tracing::info!(id, path = %path.display(), "incident file"),
            Ok(None) => tracing::warn!(
                id,
                "there are {FILES_MAX} incident files already: no other is written"
            ),
            Err(error) => tracing::error!(id, %error, "the incident file cannot be written"),
        }
    }

    fn write_file(&self, folder: &Path, incident: &Incident) -> std::io::Result<Option<PathBuf>> {
        let prefix = format!("incident-{}-", self.id);
        let mut files = 0;
        for entry in std::fs::read_dir(folder)? {
            files += usize::from(entry?.file_name().to_string_lossy().starts_with(&prefix));
        }
        if files >= FILES_MAX {
            return Ok(None);
        }
        let path = folder.join(format!("{prefix}{}.txt", incident.tick.0));
        // Several of one tick stand in one file.
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let journal = match &self.journal {
            Some(path) => path.display().to_string(),
            None => "none".to_owned(),
        };
        write!(
            file,
            "match {}, {}, journal: {journal}\n{incident}\n",
            self.id, self.about
        )?;
        Ok(Some(path))
    }
}
