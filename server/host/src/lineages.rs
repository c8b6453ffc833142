//! [`LineageKeeper`]: the rulings on tickets of the whole host, in memory and in a file next to the key file.
//!
//! ```text
//!  matches ──ruling──▶ in memory ──▶ makers of matches and tickets       a short lock, never held over I/O
//!                          │
//!                          └─ within 200 ms ─▶ a thread for blocking work ─▶ the file, under a lock that only such threads take
//! ```
//!
//! Matches play on while a disk hangs. Rulings that are not written when the process is killed do no harm to other
//! players: an older ticket may admit its own identity a while longer.

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
/// The pause after a failed write.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How long a host that ends waits for its file.
const LAST_WRITE: Duration = Duration::from_secs(6);

/// See the [module](self). Clones share it.
#[derive(Clone)]
pub(super) struct LineageKeeper(Arc<Kept>);

struct Kept {
    known: Mutex<Known>,
    /// Locked only by threads for blocking work.
    file: Option<Mutex<LineageFile>>,
    news: Notify,
}

struct Known {
    table: LineageTable<Holder>,
    /// Rulings that are not in the file yet: the newest of each holder and lineage, and its revocation.
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

    /// Writes rulings to the file, if there is one, while the runtime lives.
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

    /// Returns `true` if a ticket is known to be outdated.
    pub(super) fn refuses(&self, ticket: &TicketClaims) -> bool {
        self.known().table.refuses(&ticket.holder(), &ticket.stamp)
    }

    /// The earliest date of a new ticket for a holder: after its revocation.
    pub(super) fn next_ticket(&self, holder: &Holder) -> NextTicket {
        let known = self.known();
        let known = known.table.get(holder);
        known.map_or_else(NextTicket::default, |lineages| lineages.next(None, None))
    }

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
                "too many valid tickets: the oldest rulings are forgotten, and outdated tickets are accepted again until they expire; give tickets a shorter life"
            );
        }
    }

    /// Revokes the tickets of a holder in a match that does not run. Returns the new rulings.
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

    /// Writes the rulings so far, and reads those of other processes. Returns `false` if it failed and must be tried
    /// again.
    async fn write(&self) -> bool {
        let kept = self.0.clone();
        let written = tokio::task::spawn_blocking(move || kept.write());
        match written.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                logged::error!(%error, "it is not written down which tickets are out of date");
                false
            }
            // The write panicked: trying again would not help.
            Err(_) => true,
        }
    }

    /// Writes the rulings so far, within a few seconds.
    pub(super) async fn write_last(&self) {
        if tokio::time::timeout(LAST_WRITE, self.write())
            .await
            .is_err()
        {
            logged::error!("the last rulings on tickets are not stored: the disk hangs");
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
        // If the file cannot be written for days, the missing rulings stay in memory, up to this bound.
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

    /// Finding K3-A: the runtime's threads waited for the file. Rulings are written once that is possible again.
    #[tokio::test]
    async fn a_file_that_hangs_blocks_no_thread_of_the_runtime_and_catches_up() {
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
