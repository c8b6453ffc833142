//! [`LineageKeeper`]: which tickets are out of date, for the whole host: in memory, and in a file beside the key file.
//!
//! ```text
//!  matches ──ruling──▶ in memory ──▶ who makes matches or tickets       a short lock, never held over I/O
//!                          │
//!                          └─ within 200 ms ─▶ a thread for blocking work ─▶ the file, under a lock that only such threads take
//! ```
//!
//! Matches go on while a disk stands still. What is not written when the process is killed makes nobody's ticket worse: an
//! older one may let its own identity in a while longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use twinstep_protocol::lineage::{LineageTable, Ruling};
use twinstep_udp::{Holder, LINEAGES_MAX, LineageFile, LineageFileError, NextTicket, TicketClaims};

use super::clock::unix_now;
use super::logged;

/// Rulings within this time are written together.
const TOGETHER: Duration = Duration::from_millis(200);
/// After a write that failed, the next one is tried so much later.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A host that ends waits at most this long for its file.
const LAST_WRITE: Duration = Duration::from_secs(6);

/// Clones share it.
#[derive(Clone)]
pub(super) struct LineageKeeper(Arc<Kept>);

struct Kept {
    known: Mutex<Known>,
    /// Only threads for blocking work take it.
    file: Option<Mutex<LineageFile>>,
    news: Notify,
}

struct Known {
    table: LineageTable<Holder>,
    /// Rulings that are not in the file yet: of each holder and lineage the newest, and its revocation.
    unwritten: BTreeMap<(Holder, Option<u64>), Ruling>,
}

impl Default for LineageKeeper {
    fn default() -> LineageKeeper {
        LineageKeeper::of(None, LineageTable::new(LINEAGES_MAX))
    }
}

impl LineageKeeper {
    fn of(file: Option<LineageFile>, table: LineageTable<Holder>) -> LineageKeeper {
        let known = Known {
            table,
            unwritten: BTreeMap::new(),
        };
        LineageKeeper(Arc::new(Kept {
            known: Mutex::new(known),
            file: file.map(Mutex::new),
            news: Notify::new(),
        }))
    }

    /// Writes to the file, if there is one, as long as the runtime lives.
    pub(super) fn start(opened: Option<(LineageFile, LineageTable<Holder>)>) -> LineageKeeper {
        let Some((file, table)) = opened else {
            return LineageKeeper::default();
        };
        let keeper = LineageKeeper::of(Some(file), table);
        let writes = keeper.clone();
        tokio::spawn(async move {
            loop {
                writes.0.news.notified().await;
                tokio::time::sleep(TOGETHER).await;
                while !writes.write().await {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            }
        });
        keeper
    }

    /// The rulings of a match: identity, whether it is a spectator, the outdated tickets.
    pub(super) fn of_match(&self, match_id: u64) -> Vec<(String, bool, Ruling)> {
        let known = self.known();
        let rulings = known.table.range(Holder::first_of(match_id)..);
        rulings
            .take_while(|(holder, _)| holder.match_id == match_id)
            .map(|(holder, ruling)| (holder.identity.clone(), holder.watches, ruling))
            .collect()
    }

    /// Whether a ticket is out of date, as far as is known.
    pub(super) fn refuses(&self, ticket: &TicketClaims) -> bool {
        self.known().table.refuses(&ticket.holder(), &ticket.stamp)
    }

    /// The earliest date of a new ticket for a holder: after its revocation.
    pub(super) fn next_ticket(&self, holder: &Holder) -> NextTicket {
        let known = self.known();
        let known = known.table.get(holder);
        known.map_or_else(NextTicket::default, |lineages| lineages.next(None, None))
    }

    /// Remembers a ruling, and has it written down soon.
    pub(super) fn rule(&self, holder: &Holder, ruling: Ruling) {
        let mut known = self.known();
        if !known.table.apply(holder, &ruling) {
            return;
        }
        let lost = known.table.tidy(unix_now().as_secs());
        if self.0.file.is_some() {
            known.keep_unwritten(holder.clone(), ruling);
            self.0.news.notify_one();
        }
        drop(known);
        if lost > 0 {
            logged::warn!(
                lost,
                most = LINEAGES_MAX,
                "too many tickets are alive to remember which are out of date: the oldest are forgotten, and let in again until they expire; give tickets a shorter life"
            );
        }
    }

    /// Revokes what a holder has, in a match that does not run. Returns what changed.
    pub(super) fn revoke(&self, holder: &Holder, made_before_unix_ms: u64) -> Vec<Ruling> {
        let mut known = self.known();
        let rulings = known
            .table
            .change(holder, |lineages| lineages.revoke(made_before_unix_ms));
        for ruling in &rulings {
            known.keep_unwritten(holder.clone(), *ruling);
        }
        self.0.news.notify_one();
        rulings
    }

    /// Writes what was ruled so far, and learns what other processes wrote. Returns `false` if it failed: then it is to be
    /// tried again.
    async fn write(&self) -> bool {
        let kept = self.0.clone();
        let written = tokio::task::spawn_blocking(move || kept.write());
        match written.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                logged::error!(%error, "it is not written down which tickets are out of date");
                false
            }
            // It panicked: there is nothing to be had by doing it again.
            Err(_) => true,
        }
    }

    /// Writes what was ruled so far, if that takes no longer than a few seconds.
    pub(super) async fn write_last(&self) {
        if tokio::time::timeout(LAST_WRITE, self.write())
            .await
            .is_err()
        {
            logged::error!(
                "it is not written down which tickets went out of date last: the disk stands still"
            );
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known()
    }
}

impl Kept {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing panics under this lock")
    }

    /// Blocks while the disk does.
    fn write(&self) -> Result<(), LineageFileError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut file = file.lock().expect("nothing panics under this lock");
        let unwritten = std::mem::take(&mut self.known().unwritten);
        let rulings: Vec<_> = unwritten
            .into_iter()
            .map(|((holder, _), ruling)| (holder, ruling))
            .collect();
        let mut learned = Vec::new();
        let now_unix_s = unix_now().as_secs();
        let written = file.append(&rulings, now_unix_s, |holder, ruling| {
            learned.push((holder, ruling));
        });
        drop(file);
        for (holder, ruling) in learned {
            self.known().table.apply(&holder, &ruling);
        }
        self.known().table.tidy(now_unix_s);
        if written.is_err() {
            let mut known = self.known();
            for (holder, ruling) in rulings {
                known.keep_unwritten(holder, ruling);
            }
        }
        written
    }
}

impl Known {
    fn keep_unwritten(&mut self, holder: Holder, ruling: Ruling) {
        let lineage = match ruling {
            Ruling::Below { lineage, .. } => Some(lineage),
            Ruling::MadeBefore { .. } => None,
        };
        // Where the file stands still for days, what it lacks is still in memory.
        if self.unwritten.len() < LINEAGES_MAX {
            let newest = self.unwritten.entry((holder, lineage)).or_insert(ruling);
            *newest = newest.and(ruling);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;

    const HELD: Duration = Duration::from_millis(5_500);
    const STEP: Duration = Duration::from_millis(50);

    fn anna() -> Holder {
        Holder {
            match_id: 1,
            watches: false,
            identity: "anna".to_owned(),
        }
    }

    /// Finding K3-A: the runtime's threads waited for the file. What could not be written is written when that is possible.
    #[tokio::test]
    async fn a_file_that_stands_still_holds_up_no_thread_of_the_runtime_and_gets_what_it_missed() {
        let name = format!("twinstep-lineages-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lineages");
        let keeper = LineageKeeper::start(Some(LineageFile::open(&path).unwrap()));
        let lock = std::fs::File::open(folder.join("lineages.lock")).unwrap();
        lock.lock().unwrap();
        let ruling = Ruling::Below {
            lineage: 7,
            generation: 1,
            until_unix_s: u64::MAX,
        };
        keeper.rule(&anna(), ruling);
        let clock = HostClock::start();
        let mut longest = Duration::ZERO;
        while clock.now() < HELD {
            let began = clock.now();
            tokio::time::sleep(STEP).await;
            assert_eq!(keeper.of_match(1).len(), 1);
            longest = longest.max(clock.now() - began);
        }
        assert!(longest < STEP * 20, "{longest:?}");
        lock.unlock().unwrap();
        keeper.write_last().await;
        assert_eq!(LineageFile::load(&path).unwrap().len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
