//! Reloading at SIGHUP.
//!
//! Keys, bans and the admin port's token take effect immediately, other settings at the next start. A file that cannot
//! be read has no effect.

#![cfg_attr(
    not(unix),
    allow(
        dead_code,
        unused_imports,
        reason = "there is no such signal elsewhere"
    )
)]

use std::io::IsTerminal;
use std::sync::Arc;

use twinstep_host::HostControl;
use twinstep_host::internal::logged;
use twinstep_protocol::text::line;
use twinstep_udp::TicketKey;

use super::error::SettingError;
use super::files::Files;
use super::settings::Settings;
use crate::RunningOps;

struct Loaded {
    settings: Settings,
    files: Files,
    generations: Vec<u64>,
}

/// Handles the signal while the runtime lives, for a server started with these keys.
#[cfg(unix)]
pub(super) fn start(
    settings: Settings,
    files: Files,
    keys: &[TicketKey],
    control: HostControl,
    ops: Arc<RunningOps>,
) {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            logged::warn!(%error, "cannot handle SIGHUP: the signal would end this server; to reload keys and bans, restart the server");
            return;
        }
    };
    if std::io::stderr().is_terminal() {
        logged::info!(
            "SIGHUP reloads keys and bans, so closing this terminal does not stop the server; press Ctrl-C or send SIGTERM"
        );
    }
    let mut loaded = Loaded::of(settings, files, keys);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            loaded.reload(&control, &ops).await;
        }
    });
}

#[cfg(not(unix))]
pub(super) fn start(_: Settings, _: Files, _: &[TicketKey], _: HostControl, _: Arc<RunningOps>) {}

impl Loaded {
    fn of(settings: Settings, files: Files, keys: &[TicketKey]) -> Loaded {
        Loaded {
            generations: generations(keys),
            settings,
            files,
        }
    }

    async fn reload(&mut self, control: &HostControl, ops: &RunningOps) {
        // An old key may exist now.
        match Files::of(&self.settings) {
            Ok(files) => self.files = files,
            Err(error) => {
                logged::error!(%error, "cannot find the key files after SIGHUP: rereading the previous ones")
            }
        }
        if let Err(error) = self.reload_keys(control).await {
            logged::error!(error = %line(&error.to_string()), "keys not reloaded: the old keys stay in use");
        }
        match ops.reload_bans().await {
            Ok(bans) if bans.banned.is_empty() && bans.forgiven.is_empty() => {
                logged::info!("bans reloaded: no change");
            }
            Ok(bans) => logged::info!(
                added = bans.banned.len(),
                lifted = bans.forgiven.len(),
                "bans reloaded"
            ),
            Err(error) => logged::error!(%error, "bans not reloaded: the old bans stay in force"),
        }
        match ops.reload_token(&self.files.token) {
            Ok(true) => logged::info!("admin token reloaded"),
            Ok(false) => {}
            Err(error) => {
                logged::error!(%error, "admin token not reloaded: the old token stays valid")
            }
        }
    }

    async fn reload_keys(&mut self, control: &HostControl) -> Result<(), SettingError> {
        let files = Arc::new(self.files.clone());
        let read = tokio::task::spawn_blocking(move || files.keys()).await;
        let keys = read.expect("nothing panics there")?;
        let now = generations(&keys);
        if now == self.generations {
            logged::info!(signing_key = %list(&now[..1]), keys = %list(&now), "keys reloaded: no change");
            return Ok(());
        }
        control.set_keys(keys).await?;
        logged::info!(
            signing_key = %list(&now[..1]),
            keys = %list(&now),
            previous_keys = %list(&self.generations),
            "keys reloaded"
        );
        self.generations = now;
        Ok(())
    }
}

fn generations(keys: &[TicketKey]) -> Vec<u64> {
    keys.iter().map(TicketKey::generation).collect()
}

/// Lists generations for the log. They are public: they identify keys, and do not reveal them.
fn list(generations: &[u64]) -> String {
    let texts: Vec<String> = generations
        .iter()
        .map(|one| format!("{one:016x}"))
        .collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use twinstep_core::testing::doc::Counter;

    use super::*;
    use twinstep_host::Server;

    use crate::{Ops, OpsConfig};

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        settings: Settings,
    }

    /// Keys are compared one by one with the server's keys, not with the files' first content: the
    /// files may have changed before.
    #[test]
    fn a_replaced_key_is_reloaded_but_an_unchanged_key_is_not() {
        let name = format!("twinstep-reload-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key");
        let (old, new) = (TicketKey::generate(), TicketKey::generate());
        new.save(&file).unwrap();
        let words = ["counter", "--listen=127.0.0.1:0", "--key-file"];
        let words = words.into_iter().map(std::ffi::OsStr::new);
        let given = Flags::try_parse_from(words.chain([file.as_os_str()]));
        let settings = given.unwrap().settings;
        let files = Files::of(&settings).unwrap();
        let server = Server::action(Counter::default(), ()).keys(old.clone(), None);
        let running = server.listen("127.0.0.1:0").unwrap();
        // Its file was changed while the server started.
        let mut loaded = Loaded::of(settings, files, &[old]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _within = runtime.enter();
        let control = running.control();
        let ops = Ops::open(OpsConfig::default()).unwrap();
        let ops = ops.start(control.clone()).unwrap();
        for _ in 0..2 {
            runtime.block_on(loaded.reload(&control, &ops));
            assert_eq!(control.newest_key(), new);
            assert_eq!(loaded.generations, [new.generation()]);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
