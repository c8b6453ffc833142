//! [`Reloader`]: what of a host can be changed while matches run: keys, bans, and the token of its admin port.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use twinstep_udp::TicketKey;

use super::admin_error::AdminError;
use super::admin_port::{AdminToken, LiveToken};
use super::bans::{Bans, BansError};
use super::clock::unix_now;
use super::config::HostError;
use super::io::ToIo;
use super::minting::MintingKey;

/// Room for the answers of matches: nobody waits for them.
const PUT_OUT_MAX: usize = 64;

/// Changes what can be changed of a host while its matches run. Clones are about the same host.
#[derive(Clone)]
pub struct Reloader {
    pub(super) told: mpsc::Sender<ToIo>,
    pub(super) minting: MintingKey,
    pub(super) bans: Bans,
    pub(super) token: Option<LiveToken>,
}

/// What a second look at the file of bans found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RereadBans {
    /// Who is banned now, and was not. Whoever of them was inside is told to go.
    pub banned: Vec<String>,
    /// Who was banned, and is not now.
    pub forgiven: Vec<String>,
}

impl Reloader {
    /// From now on tickets of these keys are good, and of no others; the first one makes the tickets to return with. Who is
    /// inside plays on, whichever key let it in, and is handed a ticket of the first key when its next one is due: within a
    /// minute.
    ///
    /// # Errors
    /// [`HostError::Config`]: not one or two keys, or too many changes at once; [`HostError::Stopped`]. Then nothing changes.
    pub async fn set_keys(&self, keys: Vec<TicketKey>) -> Result<(), HostError> {
        let newest = keys.first().cloned();
        let (done, changed) = oneshot::channel();
        let told = self.told.send(ToIo::Keys(keys, done)).await;
        told.map_err(|_| HostError::Stopped)?;
        changed.await.map_err(|_| HostError::Stopped)??;
        // No key at all was refused.
        newest.into_iter().for_each(|key| self.minting.set(key));
        Ok(())
    }

    /// Reads again who is banned, as another process or an operator wrote it; waits for the disk.
    ///
    /// # Errors
    /// [`BansError`]: the file cannot be read, or is damaged: then those who were banned stay so.
    pub async fn reread_bans(&self) -> Result<RereadBans, BansError> {
        let (bans, now) = (self.bans.clone(), unix_now());
        let reread = tokio::task::spawn_blocking(move || bans.reread(now)).await;
        let (banned, forgiven) = reread.expect("nothing panics there")?;
        let (out, _) = mpsc::channel(PUT_OUT_MAX);
        for ban in &banned {
            let order = ToIo::PutOut(ban.identity.clone(), ban.code(now), out.clone());
            // If the host is gone, so is whoever was banned.
            let _ = self.told.send(order).await;
        }
        let banned = banned.into_iter().map(|ban| ban.identity).collect();
        Ok(RereadBans { banned, forgiven })
    }

    /// Reads the admin port's token again; whether it is another one. Without an admin port, or a token, it is none.
    ///
    /// # Errors
    /// The file cannot be read, or holds no token: then the old one stays good.
    pub fn reread_token(&self, path: &Path) -> Result<bool, AdminError> {
        let Some(live) = &self.token else {
            return Ok(false);
        };
        Ok(live.replace(AdminToken::load(path)?))
    }

    /// The key that makes tickets: it is another one only once the door takes its tickets.
    #[cfg(test)]
    pub(crate) fn newest_key(&self) -> TicketKey {
        self.minting.get()
    }

    /// Where bans are written down.
    #[must_use]
    pub fn bans_file(&self) -> Option<PathBuf> {
        self.bans.path()
    }
}
