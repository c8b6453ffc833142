//! Writes safe serials down beside the key file, on a thread for blocking work: the disk takes milliseconds each time.
//!
//! Matches go on meanwhile. What is not written when the process is killed makes nobody's ticket worse: an older one
//! may let its own identity in a while longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use twinstep_udp::{SafeSerials, SerialOf};

use super::clock::unix_now;
use super::logged;

/// What is raised within so long is written at once.
const TOGETHER: Duration = Duration::from_millis(200);

/// Takes serials that are safe, for the file, if there is one. Clones share it.
#[derive(Clone, Default)]
pub(super) struct SerialKeeper(Option<Arc<Kept>>);

struct Kept {
    /// Raised, and not in the file yet: at most one for each identity.
    raised: Mutex<BTreeMap<SerialOf, u64>>,
    file: Mutex<SafeSerials>,
    news: Notify,
}

impl SerialKeeper {
    /// Writes to `file` as long as the runtime lives.
    pub(super) fn start(file: Option<SafeSerials>) -> SerialKeeper {
        let Some(file) = file else {
            return SerialKeeper(None);
        };
        let kept = Arc::new(Kept {
            raised: Mutex::default(),
            file: Mutex::new(file),
            news: Notify::new(),
        });
        let keeper = SerialKeeper(Some(kept.clone()));
        let writes = keeper.clone();
        tokio::spawn(async move {
            loop {
                kept.news.notified().await;
                tokio::time::sleep(TOGETHER).await;
                writes.write().await;
            }
        });
        keeper
    }

    /// What is known of a match: identity, whether it watches, serial.
    pub(super) fn of_match(&self, match_id: u64) -> Vec<(String, bool, u64)> {
        let Some(kept) = &self.0 else {
            return Vec::new();
        };
        let file = kept.file.lock().expect("nothing panics under this lock");
        // What is not written yet counts too.
        let raised = kept.raised.lock().expect("nothing panics under this lock");
        let raised = raised
            .iter()
            .filter(|(of, _)| of.match_id == match_id)
            .map(|(of, serial)| (of.identity.clone(), of.watches, *serial));
        file.of_match(match_id)
            .map(|(watches, identity, serial)| (identity.to_owned(), watches, serial))
            .chain(raised)
            .collect()
    }

    /// The lowest serial that lets an identity in, as far as the file, or what is about to be written to it, says.
    pub(super) fn safe(&self, of: &SerialOf) -> Option<u64> {
        let kept = self.0.as_ref()?;
        let file = kept.file.lock().expect("nothing panics under this lock");
        let raised = kept.raised.lock().expect("nothing panics under this lock");
        file.safe(of).max(raised.get(of).copied())
    }

    /// Has a serial written down soon.
    pub(super) fn raise(&self, of: SerialOf, serial: u64) {
        let Some(kept) = &self.0 else {
            return;
        };
        let mut raised = kept.raised.lock().expect("nothing panics under this lock");
        let known = raised.entry(of).or_default();
        *known = serial.max(*known);
        kept.news.notify_one();
    }

    /// Writes what was raised so far.
    pub(super) async fn write(&self) {
        let Some(kept) = self.0.clone() else {
            return;
        };
        let written = tokio::task::spawn_blocking(move || {
            let mut file = kept.file.lock().expect("nothing panics under this lock");
            let raised = {
                let mut raised = kept.raised.lock().expect("nothing panics under this lock");
                std::mem::take(&mut *raised)
            };
            file.raise(raised, unix_now())
        });
        if let Ok(Err(error)) = written.await {
            logged::error!(%error, "it is not written down which tickets are out of date");
        }
    }
}
