//! [`Bans`]: the bans, kept in memory for the I/O task and in a file that outlives the process.
//!
//! ```json
//! [ { "identity": "anna", "since_unix_s": 1767225600, "until_unix_s": null, "reason": "aimbot" } ]
//! ```
//!
//! A ban applies to an identity, and so to all of its tickets. Each change is applied to the current content of the
//! file, under a lock, and the file is replaced whole: processes that share it do not lose each other's changes, and a
//! crash leaves either the old file or the new one. A process reads the file at its start, when it is asked to reload
//! it, and at its own changes.
//!
//! Invariant: a damaged file never admits a banned identity: the server does not start with it, and a change does not
//! replace it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_host::AdmissionPolicy;
use twinstep_host::internal::{
    FileLock, access_advice, create_locked, logged, open_locked, with_end,
};
use twinstep_protocol::packet::closed::{BANNED_FOR_GOOD, CloseCode};
use twinstep_protocol::text::is_plain;
use twinstep_udp::{is_identity, open_regular, replace_file};

const BANS_MAX: usize = 65_536;
pub(super) const REASON_BYTES_MAX: usize = 200;
/// The maximum wait for another process that writes the file. The lock is tried every `LOCK_LOOK`.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
const LOCK_LOOK: Duration = Duration::from_millis(10);
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    pub(super) identity: String,
    pub(super) since_unix_s: u64,
    /// The end, in seconds since the Unix epoch. `None` if the ban does not end.
    pub(super) until_unix_s: Option<u64>,
    pub(super) reason: String,
}

impl Ban {
    fn is_over(&self, now_unix: Duration) -> bool {
        self.until_unix_s
            .is_some_and(|until| now_unix.as_secs() >= until)
    }

    pub(super) fn code(&self, now_unix: Duration) -> CloseCode {
        let for_s = match self.until_unix_s {
            None => BANNED_FOR_GOOD,
            Some(until) => {
                let left = until.saturating_sub(now_unix.as_secs());
                u32::try_from(left).map_or(BANNED_FOR_GOOD, |left| left.min(BANNED_FOR_GOOD - 1))
            }
        };
        CloseCode::Banned { for_s }
    }

    fn is_sound(&self) -> bool {
        is_identity(&self.identity)
            && self.reason.len() <= REASON_BYTES_MAX
            && is_plain(&self.reason)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Bans(Arc<BanStore>);

#[derive(Debug, Default)]
struct BanStore {
    known: Mutex<BTreeMap<String, Ban>>,
    path: Option<PathBuf>,
    /// Changes that are not in the file yet; `None` ends a ban. Locked while the file is written.
    unwritten: Mutex<BTreeMap<String, Option<Ban>>>,
    /// Bans by other processes, found in the file when this process changed it. Their identities may have sessions
    /// here.
    learned: Mutex<Vec<Ban>>,
}

impl Bans {
    /// Opens the bans of a file, which need not exist. Without a file, bans end with the process.
    pub(super) fn open(path: Option<&Path>) -> Result<Bans, BansError> {
        let known = match path {
            None => BTreeMap::new(),
            Some(path) => {
                // A missing permission should be reported at the start, not at the first ban.
                match lock(path) {
                    // The bans can be read without the lock.
                    Err(BansError::Locked { lock }) => {
                        logged::warn!(path = %lock.display(), "bans read without their lock, which another process holds; they can be changed once it is free")
                    }
                    locked => drop(locked?),
                }
                read(path)?
            }
        };
        Ok(Bans(Arc::new(BanStore {
            known: Mutex::new(known),
            path: path.map(Path::to_owned),
            unwritten: Mutex::default(),
            learned: Mutex::default(),
        })))
    }

    pub(super) fn all(&self, now_unix: Duration) -> Vec<Ban> {
        let known = guard(&self.0.known);
        let holds = known.values().filter(|ban| !ban.is_over(now_unix));
        holds.cloned().collect()
    }

    fn has(&self, identity: &str, now_unix: Duration) -> bool {
        self.refusal(identity, now_unix).is_some()
    }

    /// Bans an identity, or changes its ban. Blocks on the disk.
    ///
    /// # Errors
    /// If there are too many bans, in which case the new one is not added. If the file cannot be written, in which case
    /// the ban is in force while this process lives, and is written with the next change.
    pub(super) fn ban(&self, ban: Ban, now_unix: Duration) -> Result<(), BansError> {
        assert!(ban.is_sound(), "checked where it came from");
        let is_new = !self.has(&ban.identity, now_unix);
        if is_new && self.all(now_unix).len() >= BANS_MAX {
            return Err(BansError::TooMany);
        }
        self.change(ban.identity.clone(), Some(ban), now_unix)
    }

    /// Ends a ban, including one of another process. Blocks on the disk. Returns `true` if there was a ban.
    ///
    /// # Errors
    /// [`BansError::Unchanged`] if this process knows no such ban, and the file cannot be read. Others if the file cannot
    /// be written: the ban is then lifted in this process, and in the file with the next change.
    pub(super) fn unban(&self, identity: &str, now_unix: Duration) -> Result<bool, BansError> {
        let is_known = self.has(identity, now_unix);
        let is_elsewhere = match &self.0.path {
            Some(path) if !is_known => read(path)
                .map_err(|error| BansError::Unchanged(Box::new(error)))?
                .contains_key(identity),
            _ => false,
        };
        if !is_known && !is_elsewhere {
            return Ok(false);
        }
        self.change(identity.to_owned(), None, now_unix)?;
        Ok(true)
    }

    /// Takes the bans by other processes that this process has found in the file at its own [changes](Self::ban).
    pub(super) fn take_learned(&self) -> Vec<Ban> {
        std::mem::take(&mut guard(&self.0.learned))
    }

    /// Reloads the file. Returns the new bans, and the identities whose bans ended. Blocks on the disk.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged. In both cases, the bans are unchanged.
    pub(super) fn reread(&self, now_unix: Duration) -> Result<(Vec<Ban>, Vec<String>), BansError> {
        let Some(path) = &self.0.path else {
            return Ok((Vec::new(), Vec::new()));
        };
        let unwritten = guard(&self.0.unwritten);
        let mut bans = read(path)?;
        // Changes that could not be written stay in force here.
        apply(&mut bans, &unwritten);
        bans.retain(|_, ban| !ban.is_over(now_unix));
        let mut known = guard(&self.0.known);
        let banned = new_ones(&known, &bans, now_unix);
        let forgiven = known.values().filter(|ban| !ban.is_over(now_unix));
        let forgiven = forgiven.filter(|ban| !bans.contains_key(&ban.identity));
        let forgiven = forgiven.map(|ban| ban.identity.clone()).collect();
        *known = bans;
        Ok((banned, forgiven))
    }

    fn change(
        &self,
        identity: String,
        ban: Option<Ban>,
        now_unix: Duration,
    ) -> Result<(), BansError> {
        let mut unwritten = guard(&self.0.unwritten);
        unwritten.insert(identity, ban);
        let Some(path) = &self.0.path else {
            apply(&mut guard(&self.0.known), &unwritten);
            unwritten.clear();
            return Ok(());
        };
        // In force here immediately, even if the file cannot be written.
        apply(&mut guard(&self.0.known), &unwritten);
        let _lock = lock(path)?;
        let written = read(path)?;
        let mut bans = written.clone();
        apply(&mut bans, &unwritten);
        bans.retain(|_, ban| !ban.is_over(now_unix));
        if bans != written {
            write(path, &bans)?;
        }
        let mut known = guard(&self.0.known);
        guard(&self.0.learned).extend(new_ones(&known, &bans, now_unix));
        *known = bans;
        unwritten.clear();
        Ok(())
    }
}

impl AdmissionPolicy for Bans {
    fn refusal(&self, identity: &str, now_unix: Duration) -> Option<CloseCode> {
        let known = guard(&self.0.known);
        let ban = known.get(identity)?;
        (!ban.is_over(now_unix)).then(|| ban.code(now_unix))
    }
}

fn new_ones(
    known: &BTreeMap<String, Ban>,
    bans: &BTreeMap<String, Ban>,
    now_unix: Duration,
) -> Vec<Ban> {
    let held = |ban: &&Ban| {
        let had = known.get(&ban.identity);
        had.is_some_and(|had| !had.is_over(now_unix))
    };
    bans.values().filter(|ban| !held(ban)).cloned().collect()
}

fn apply(bans: &mut BTreeMap<String, Ban>, changes: &BTreeMap<String, Option<Ban>>) {
    for (identity, change) in changes {
        match change {
            Some(ban) => drop(bans.insert(identity.clone(), ban.clone())),
            None => drop(bans.remove(identity)),
        }
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks whether the ban file can be read, if it exists.
pub(crate) fn check(path: &Path) -> Result<(), BansError> {
    read(path).map(drop)
}

/// Locks the ban file until the returned file is dropped. Other processes hold the lock for one write only; after
/// [`LOCK_PATIENCE`] the error names it.
fn lock(path: &Path) -> Result<File, BansError> {
    let name = with_end(path, ".lock");
    let looks = LOCK_PATIENCE.as_millis() / LOCK_LOOK.as_millis();
    for _ in 0..looks {
        let locked = match open_locked(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_locked(&name),
            opened => opened,
        };
        match locked {
            Ok(FileLock::Acquired(file)) => {
                keep_to_owner(&file);
                return Ok(file);
            }
            Ok(FileLock::InUse) => {}
            // Another process has just created it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(failed(path, source)),
        }
        std::thread::sleep(LOCK_LOOK);
    }
    Err(BansError::Locked { lock: name })
}

/// Restricts the lock file to its owner: earlier versions let every user of the machine lock it.
fn keep_to_owner(_lock: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = _lock.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
}

fn failed(path: &Path, source: io::Error) -> BansError {
    BansError::Io {
        path: path.to_owned(),
        source,
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Ban>, BansError> {
    let mut bytes = Vec::new();
    match open_regular(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed(path, error)),
        Ok(file) => {
            let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|source| failed(path, source))?;
        }
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(path, io::ErrorKind::FileTooLarge.into()));
    }
    let damaged = |what: String| BansError::Damaged {
        path: path.to_owned(),
        what,
    };
    let bans: Vec<Ban> =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if let Some(bad) = bans.iter().find(|ban| !ban.is_sound()) {
        return Err(damaged(format!(
            "the ban of {:?} has an identity that is not 1 to 32 bytes of visible characters, or a reason that is not one line \
             of at most {REASON_BYTES_MAX} bytes",
            bad.identity
        )));
    }
    Ok(bans
        .into_iter()
        .map(|ban| (ban.identity.clone(), ban))
        .collect())
}

fn write(path: &Path, bans: &BTreeMap<String, Ban>) -> Result<(), BansError> {
    let bans: Vec<&Ban> = bans.values().collect();
    let mut text = serde_json::to_string_pretty(&bans).expect("texts and numbers");
    text.push('\n');
    replace_file(path, text).map_err(|source| failed(path, source))
}

/// The reason why bans could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum BansError {
    #[error("cannot use the ban file {path}: {source}{}", access_advice(source))]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the ban file {path} is damaged: {what}; repair it, or move it away to start without bans"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "cannot write the ban file: another process has held the lock {lock} for 3 s; `fuser {lock}` names it. End that process \
         if it hangs, then try again"
    )]
    Locked { lock: PathBuf },
    #[error("expected at most 65536 bans; lift some first")]
    TooMany,
    #[error("no ban was changed: {0}")]
    Unchanged(Box<BansError>),
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn ban(identity: &str, until_unix_s: Option<u64>) -> Ban {
        Ban {
            identity: identity.to_owned(),
            since_unix_s: NOW.as_secs(),
            until_unix_s,
            reason: "why".to_owned(),
        }
    }

    fn who(bans: &Bans) -> Vec<String> {
        bans.all(NOW).into_iter().map(|ban| ban.identity).collect()
    }

    #[test]
    fn a_ban_survives_a_restart_and_expires() {
        let folder = folder("bans-restart");
        let path = folder.join("bans");
        let bans = Bans::open(Some(&path)).unwrap();
        bans.ban(ban("anna", None), NOW).unwrap();
        bans.ban(ban("bob", Some(NOW.as_secs() + 60)), NOW).unwrap();
        bans.ban(ban("carl", None), NOW).unwrap();
        bans.unban("carl", NOW).unwrap();
        let again = Bans::open(Some(&path)).unwrap();
        assert_eq!(who(&again), ["anna", "bob"]);
        let for_s = |for_s| Some(CloseCode::Banned { for_s });
        assert_eq!(again.refusal("anna", NOW), for_s(BANNED_FOR_GOOD));
        assert_eq!(again.refusal("bob", NOW), for_s(60));
        let later = NOW + Duration::from_secs(60);
        assert_eq!(again.refusal("bob", later), None);
        assert_eq!(again.refusal("carl", NOW), None);
        // An expired ban leaves the file with the next change.
        again.ban(ban("dora", None), later).unwrap();
        assert_eq!(who(&Bans::open(Some(&path)).unwrap()), ["anna", "dora"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn two_processes_sharing_a_ban_file_lose_no_bans() {
        let folder = folder("bans-two");
        let path = folder.join("bans");
        let (one, two) = (
            Bans::open(Some(&path)).unwrap(),
            Bans::open(Some(&path)).unwrap(),
        );
        one.ban(ban("anna", None), NOW).unwrap();
        two.ban(ban("bob", None), NOW).unwrap();
        assert_eq!(who(&two), ["anna", "bob"]);
        // Sessions of an identity that another process banned must be removed here, once.
        assert_eq!(one.take_learned(), []);
        assert_eq!(two.take_learned(), [ban("anna", None)]);
        assert_eq!(two.take_learned(), []);
        assert!(one.unban("bob", NOW).unwrap(), "the other one's ban");
        assert!(!one.unban("bob", NOW).unwrap());
        assert_eq!(who(&Bans::open(Some(&path)).unwrap()), ["anna"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_server_with_a_damaged_ban_file_does_not_start_or_overwrite_it() {
        let folder = folder("bans-damaged");
        let path = folder.join("bans");
        let long = format!(
            "[{{\"identity\":\"anna\",\"since_unix_s\":1,\"until_unix_s\":null,\"reason\":\"{}\"}}]",
            "x".repeat(REASON_BYTES_MAX + 1)
        );
        for text in [
            "",
            "[",
            "{}",
            "[1]",
            "[{\"identity\":\"anna\"}]",
            "[{\"identity\":\"\",\"since_unix_s\":1,\"until_unix_s\":null,\"reason\":\"\"}]",
            "[{\"identity\":\"a\",\"since_unix_s\":1,\"until_unix_s\":-1,\"reason\":\"\"}]",
            "[{\"identity\":\"a\",\"since_unix_s\":1,\"until_unix_s\":null,\"reason\":\"\",\"x\":1}]",
            &long,
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Bans::open(Some(&path)).unwrap_err();
            assert!(
                matches!(error, BansError::Damaged { .. }),
                "{text}: {error}"
            );
        }
        // If the file is damaged while the server runs, it is left for the operator; the ban is in force nevertheless.
        std::fs::remove_file(&path).unwrap();
        let bans = Bans::open(Some(&path)).unwrap();
        std::fs::write(&path, "[").unwrap();
        assert!(bans.ban(ban("anna", None), NOW).is_err());
        assert_eq!(who(&bans), ["anna"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[");
        // It is unknown whether the file has a ban of this player, so nothing is changed.
        let failed = bans.unban("carl", NOW).unwrap_err().to_string();
        assert!(failed.starts_with("no ban was changed: "), "{failed}");
        // The repaired file gets the missing changes.
        std::fs::remove_file(&path).unwrap();
        bans.ban(ban("bob", None), NOW).unwrap();
        assert_eq!(who(&Bans::open(Some(&path)).unwrap()), ["anna", "bob"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// An abandoned temporary file is removed, and no other temporary file is left.
    #[test]
    fn bans_leave_only_their_file_and_its_lock() {
        let folder = folder("bans-left");
        let bans = Bans::open(Some(&folder.join("bans"))).unwrap();
        for n in 0..5 {
            bans.ban(ban(&format!("p{n}"), None), NOW).unwrap();
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding O3-6: any user who could open the lock could block every start and every ban, forever and without a
    /// line in the log.
    #[cfg(unix)]
    #[test]
    fn a_lock_held_by_another_process_is_reported_and_prevents_neither_a_start_nor_a_ban() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("bans-locked");
        let path = folder.join("bans");
        let name = with_end(&path, ".lock");
        // As earlier versions created it.
        std::fs::write(&name, "").unwrap();
        let for_all = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&name, for_all).unwrap();
        Bans::open(Some(&path)).unwrap();
        let mode = std::fs::metadata(&name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let theirs = File::open(&name).unwrap();
        theirs.lock().unwrap();
        let bans = Bans::open(Some(&path)).unwrap();
        let failed = bans.ban(ban("anna", None), NOW).unwrap_err().to_string();
        assert!(failed.contains("bans.lock"), "{failed}");
        assert!(bans.refusal("anna", NOW).is_some(), "she is banned here");
        assert!(!bans.unban("carl", NOW).unwrap(), "nothing to change");
        drop(theirs);
        bans.ban(ban("bob", None), NOW).unwrap();
        assert_eq!(who(&Bans::open(Some(&path)).unwrap()), ["anna", "bob"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
