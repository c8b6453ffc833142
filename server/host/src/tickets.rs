//! [`TicketOffice`]: mints all of a host's tickets, and knows which ones are valid.
//!
//! ```text
//!  authors ── ticket ──▶ ┌──────────────┐ ── mints ──▶ a ticket of a maker, or the next one of a session
//!  sessions ─ next ────▶ │ TicketOffice │
//!  matches ── ruling ──▶ └──────┬───────┘ ── TicketLedger ──▶ transports ask it; so does the maker of matches
//!                               └─ within 200 ms ─▶ a thread for blocking work ─▶ the file beside the key
//! ```
//!
//! When a match reports that a ticket was used or stored, the resulting rulings are in the ledger before the call
//! returns, and in the file soon after. Matches continue while a disk is stuck. If the process is killed before a
//! ruling is written, an older ticket may still open sessions of its own identity until it expires.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use twinstep_core::Simulation;
use twinstep_protocol::identity::{Identity, MatchId, Role};
use twinstep_protocol::lineage::Ruling;
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_server::Match;
use twinstep_udp::{
    Holder, LINEAGES_MAX, LineageFile, LineageFileError, NextTicket, SESSION_TIMEOUT,
    ServerAddress, Ticket, TicketError, TicketKey, TicketLedger, TicketSpec, WebAddress,
};

use super::clock::unix_now;
use super::logged;

const RULINGS_AT_ONCE: usize = 256;
/// Rulings that arrive within this time are written together.
const TOGETHER: Duration = Duration::from_millis(200);
/// The pause after a failed write.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The maximum time that an ending host waits for its last write.
const LAST_WRITE: Duration = Duration::from_secs(6);
/// The minimum lifetime of a reconnect ticket: ten minutes, plus ten in case a clock is adjusted.
const REJOIN_LIFE: Duration = Duration::from_secs(2 * 600);

/// See the [module](self). Clones share it.
#[derive(Clone)]
pub(super) struct TicketOffice(Arc<Office>);

struct Office {
    game: String,
    servers: Vec<ServerAddress>,
    /// The newest key, which seals new tickets.
    key: Mutex<TicketKey>,
    web: Mutex<Option<WebAddress>>,
    ledger: TicketLedger,
    unwritten: Mutex<Unwritten>,
    /// Locked only by threads for blocking work.
    file: Option<Mutex<LineageFile>>,
    news: Notify,
}

/// Rulings that are not in the file yet: the newest of each lineage, and the revocation of each holder.
#[derive(Default)]
struct Unwritten(BTreeMap<(Holder, Option<u64>), Ruling>);

/// The common values of an office's tickets, and the ledger with the rulings on them.
pub(super) struct TicketPrint {
    pub(super) game: String,
    pub(super) servers: Vec<ServerAddress>,
    pub(super) key: TicketKey,
    pub(super) ledger: TicketLedger,
}

impl TicketPrint {
    #[cfg(test)]
    pub(super) fn of_a_test(game: &str) -> TicketPrint {
        TicketPrint {
            game: game.to_owned(),
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            key: TicketKey::generate(),
            ledger: TicketLedger::new(Duration::ZERO, unix_now()),
        }
    }
}

impl TicketOffice {
    fn of(print: TicketPrint, file: Option<LineageFile>) -> TicketOffice {
        TicketOffice(Arc::new(Office {
            game: print.game,
            servers: print.servers,
            key: Mutex::new(print.key),
            web: Mutex::default(),
            ledger: print.ledger,
            unwritten: Mutex::default(),
            file: file.map(Mutex::new),
            news: Notify::new(),
        }))
    }

    /// Creates the office. If there is a file, a task writes new rulings to it as long as the runtime lives.
    pub(super) fn start(print: TicketPrint, file: Option<LineageFile>) -> TicketOffice {
        let has_file = file.is_some();
        let office = TicketOffice::of(print, file);
        if has_file {
            let writes = office.clone();
            tokio::spawn(async move {
                loop {
                    writes.0.news.notified().await;
                    tokio::time::sleep(TOGETHER).await;
                    while !writes.write().await {
                        tokio::time::sleep(AGAIN_AFTER).await;
                    }
                }
            });
        }
        office
    }

    pub(super) fn ledger(&self) -> &TicketLedger {
        &self.0.ledger
    }

    pub(super) fn servers(&self) -> &[ServerAddress] {
        &self.0.servers
    }

    pub(super) fn key(&self) -> TicketKey {
        self.0.key().clone()
    }

    pub(super) fn web(&self) -> Option<WebAddress> {
        self.0.web().clone()
    }

    pub(super) fn set_web(&self, web: WebAddress) {
        *self.0.web() = Some(web);
    }

    pub(super) fn set_key(&self, key: TicketKey) {
        *self.0.key() = key;
    }

    /// Mints a ticket of a new lineage, which earlier revocations do not affect.
    pub(super) fn ticket(
        &self,
        match_id: MatchId,
        name: &str,
        seats: u8,
        life: Duration,
    ) -> Result<Ticket, TicketError> {
        let holder = Holder {
            match_id,
            identity: Identity::new(name, Role::of_seats(seats.into())),
        };
        let next = self.0.ledger.lineages(|lineages| {
            let known = lineages.get(&holder);
            known.map_or_else(NextTicket::default, |lineages| lineages.next(None, None))
        });
        self.mint(match_id, (name, seats), life, &next)
    }

    /// Mints a session's next reconnect ticket, for the same identity and seats, with the stamp chosen by its match. It
    /// is valid for twenty minutes, or until the ticket that opened the session expires, if that is later.
    pub(super) fn next_ticket(
        &self,
        match_id: MatchId,
        name: &str,
        seats: usize,
        next: &NextTicket,
    ) -> Result<Ticket, TicketError> {
        self.mint(match_id, (name, seats as u8), REJOIN_LIFE, next)
    }

    fn mint(
        &self,
        match_id: MatchId,
        (name, seats): (&str, u8),
        life: Duration,
        next: &NextTicket,
    ) -> Result<Ticket, TicketError> {
        let spec = TicketSpec {
            game: &self.0.game,
            wire_version: u32::from(WIRE_VERSION),
            identity: name,
            match_id,
            seats,
            servers: &self.0.servers,
            life,
            timeout: SESSION_TIMEOUT,
            now_unix: unix_now(),
        };
        let ticket = Ticket::issue_next(&self.key(), &spec, next)?;
        Ok(match self.web() {
            Some(web) => ticket.with_web(&web),
            None => ticket,
        })
    }

    pub(super) fn of_match(&self, match_id: MatchId) -> Vec<(Identity, Ruling)> {
        self.0.ledger.lineages(|lineages| {
            let rulings = lineages.range(Holder::first_of(match_id)..);
            rulings
                .take_while(|(holder, _)| holder.match_id == match_id)
                .map(|(holder, ruling)| (holder.identity.clone(), ruling))
                .collect()
        })
    }

    /// Applies the rulings that a match has when it starts. They are in its journal, so they are not written to the
    /// file.
    pub(super) fn learn<S: Simulation>(&self, match_id: MatchId, match_: &Match<S>) {
        for (identity, ruling) in match_.lineages().iter() {
            let holder = Holder {
                match_id,
                identity: identity.clone(),
            };
            self.0.ledger.apply(&holder, &ruling);
        }
    }

    /// Applies a match's ruling, and writes it to the file soon.
    pub(super) fn rule(&self, holder: &Holder, ruling: Ruling) {
        if !self.0.ledger.apply(holder, &ruling) {
            return;
        }
        let now_unix_s = unix_now().as_secs();
        let lost = self.0.ledger.lineages(|lineages| lineages.tidy(now_unix_s));
        if self.0.file.is_some() {
            self.0.unwritten().keep(holder.clone(), ruling);
            self.0.news.notify_one();
        }
        if lost > 0 {
            logged::warn!(
                dropped = lost,
                limit = LINEAGES_MAX,
                "too many records of revoked or replaced tickets: the oldest were dropped, and their tickets work again until they expire; make tickets with a shorter life"
            );
        }
    }

    /// Revokes the player's and spectator's tickets of a name, for a match that does not run.
    pub(super) fn revoke(&self, match_id: MatchId, name: &str, made_before_unix_ms: u64) {
        for role in Role::ALL {
            let holder = Holder {
                match_id,
                identity: Identity::new(name, role),
            };
            let rulings = self.0.ledger.lineages(|lineages| {
                lineages.change(&holder, |lineages| lineages.revoke(made_before_unix_ms))
            });
            if self.0.file.is_some() {
                let mut unwritten = self.0.unwritten();
                for ruling in rulings {
                    unwritten.keep(holder.clone(), ruling);
                }
            }
        }
        self.0.news.notify_one();
    }

    /// Writes the new rulings to the file, and reads other processes' rulings from it. Returns `false` if this failed
    /// and must be retried.
    async fn write(&self) -> bool {
        let office = self.0.clone();
        let written = tokio::task::spawn_blocking(move || office.write());
        match written.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                logged::error!(%error, "cannot save which tickets are revoked or replaced; retrying. Until then a crash would make some of them valid again");
                false
            }
            // The write panicked: trying again would not help.
            Err(_) => true,
        }
    }

    pub(super) async fn write_last(&self) {
        let office = self.0.clone();
        let written = tokio::task::spawn_blocking(move || office.write());
        let error = match tokio::time::timeout(LAST_WRITE, written).await {
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(_) => return,
            Err(_) => "the disk does not answer".to_owned(),
        };
        logged::error!(
            error,
            "cannot save which tickets are revoked or replaced: some may work again after the restart"
        );
    }
}

impl Office {
    fn web(&self) -> MutexGuard<'_, Option<WebAddress>> {
        self.web.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self) -> MutexGuard<'_, TicketKey> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> Result<(), LineageFileError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut file = file.lock().expect("nothing panics under this lock");
        let Unwritten(unwritten) = std::mem::take(&mut *self.unwritten());
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
        // A file that another process compacted is read as a whole. The I/O task needs the ledger's lock, so it is held
        // for only some of the rulings at a time.
        for part in learned.chunks(RULINGS_AT_ONCE) {
            self.ledger.lineages(|lineages| {
                for (holder, ruling) in part {
                    lineages.apply(holder, ruling);
                }
            });
        }
        self.ledger.lineages(|lineages| lineages.tidy(now_unix_s));
        if written.is_err() {
            let mut unwritten = self.unwritten();
            for (holder, ruling) in rulings {
                unwritten.keep(holder, ruling);
            }
        }
        written
    }
}

impl Unwritten {
    fn keep(&mut self, holder: Holder, ruling: Ruling) {
        let lineage = match ruling {
            Ruling::Below { lineage, .. } => Some(lineage),
            Ruling::MadeBefore { .. } => None,
        };
        // If the file cannot be written for days, the missing rulings stay in memory, up to this bound.
        if self.0.len() < LINEAGES_MAX {
            let newest = self.0.entry((holder, lineage)).or_insert(ruling);
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
            match_id: MatchId(1),
            identity: Identity::new("anna", Role::Player),
        }
    }

    /// Finding K3-A: the runtime's threads waited for the file. Rulings are written when this is possible again.
    #[tokio::test]
    async fn a_stalled_file_does_not_block_the_runtime_and_gets_the_missed_rulings_later() {
        let name = format!("twinstep-lineages-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lineages");
        let (file, _) = LineageFile::open(&path).unwrap();
        let office = TicketOffice::start(TicketPrint::of_a_test("a game"), Some(file));
        let lock = std::fs::File::open(folder.join("lineages.lock")).unwrap();
        lock.lock().unwrap();
        let ruling = Ruling::Below {
            lineage: 7,
            generation: 1,
            until_unix_s: u64::MAX,
        };
        office.rule(&anna(), ruling);
        let clock = HostClock::start();
        let mut longest = Duration::ZERO;
        while clock.now() < HELD {
            let began = clock.now();
            tokio::time::sleep(STEP).await;
            assert_eq!(office.of_match(MatchId(1)).len(), 1);
            longest = longest.max(clock.now() - began);
        }
        assert!(longest < STEP * 20, "{longest:?}");
        drop(lock);
        office.write_last().await;
        assert_eq!(LineageFile::load(&path).unwrap().len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
