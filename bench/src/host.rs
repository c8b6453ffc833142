//! [`Hosted`]: our host with matches of four, as a measured [`Server`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use twinstep_core::{PlayerId, Simulation};
use twinstep_host::{Host, HostConfig, MatchHandle, Observer, Traffic};
use twinstep_server::{Match, MatchConfig};
use twinstep_udp::{MatchId, TicketKey, TransportCounters};

use crate::game::{Blob, Lateness, PLAYERS, STATE_BYTES, Seals};
use crate::ours::asks_nothing;
use crate::process::Failed;
use crate::subject::{Done, Server};

#[derive(Debug, Default)]
struct Datagrams(AtomicU64);

impl Observer for Datagrams {
    fn traffic(&self, traffic: &Traffic, _: &TransportCounters) {
        let all = traffic.datagrams_in + traffic.datagrams_out;
        self.0.store(all, Ordering::Relaxed);
    }
}

pub(crate) struct Hosted {
    runtime: tokio::runtime::Runtime,
    host: Host,
    datagrams: Arc<Datagrams>,
    matches: Vec<(MatchHandle<Blob>, Arc<Seals>)>,
}

impl Hosted {
    /// Starts `matches` matches. `public` is the address in tickets, if it differs from `listen`.
    pub(crate) fn start(
        (listen, public): (SocketAddr, Option<SocketAddr>),
        matches: usize,
        key: TicketKey,
    ) -> Result<Hosted, Failed> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let datagrams = Arc::<Datagrams>::default();
        let config = HostConfig {
            sessions_max: Some(matches * PLAYERS),
            observer: datagrams.clone(),
            public: public.into_iter().map(Into::into).collect(),
            ..HostConfig::new(Blob::NAME, listen, key)
        };
        let host = runtime.block_on(Host::start(config))?;
        let mut hosted = Hosted {
            runtime,
            host,
            datagrams,
            matches: Vec::new(),
        };
        for id in 0..matches as u64 {
            let config = MatchConfig {
                players_max: PLAYERS,
                ..MatchConfig::action()
            };
            let seals = Arc::new(Seals::logged());
            let match_ = Match::new(config, Blob::new(STATE_BYTES), seals.clone(), asks_nothing)?;
            let added = hosted.host.add_match(MatchId(id), match_, None);
            let handle = hosted.runtime.block_on(added)?;
            hosted.matches.push((handle, seals));
        }
        Ok(hosted)
    }
}

impl Server for Hosted {
    fn address(&self) -> SocketAddr {
        self.host.local_addr()
    }

    fn done(&mut self) -> Result<Done, Failed> {
        let mut done = Done {
            datagrams: self.datagrams.0.load(Ordering::Relaxed),
            ..Done::default()
        };
        // All matches are queried at once, because each responds at its next tick, and hundreds in sequence would take
        // half a second.
        let ask = |(handle, _): &(MatchHandle<Blob>, _)| {
            let handle = handle.clone();
            self.runtime.spawn(async move {
                let look = handle.inspect(|match_| {
                    let fills = (0..PLAYERS as u8).map(|n| match_.seat_stats(PlayerId(n)).fills);
                    let tick = match_.world().tick().0;
                    (tick, fills.sum::<u64>(), match_.stats().desyncs)
                });
                look.await
            })
        };
        let asked: Vec<_> = self.matches.iter().map(ask).collect();
        let mut late_us = Vec::new();
        for (answer, (_, seals)) in asked.into_iter().zip(&self.matches) {
            let (tick, fills, desyncs) = self.runtime.block_on(answer)??;
            done.player_ticks += u64::from(tick) * PLAYERS as u64;
            done.fills += fills;
            done.desyncs += desyncs;
            seals.take(&mut late_us);
        }
        done.lateness = Lateness::of(late_us);
        Ok(done)
    }
}

pub(crate) struct KeyFolder {
    path: PathBuf,
    pub(crate) key: TicketKey,
}

impl KeyFolder {
    pub(crate) fn new() -> Result<KeyFolder, Failed> {
        let path = std::env::temp_dir().join(format!("twinstep-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        let key = TicketKey::generate();
        let folder = KeyFolder { key, path };
        folder.key.save(folder.file())?;
        Ok(folder)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path.join("match.key")
    }
}

impl Drop for KeyFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
