//! A host on loopback with an admin port, tickets for it, and queries of its state. Sockets and time are real, so every
//! wait is bounded.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use twinstep_client::Client;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Never, Simulation};
use twinstep_host::{Host, HostConfig, MatchHandle};
use twinstep_ops::{Ops, OpsConfig, OpsError, RunningOps};
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_server::{Decision, HookContext, Match, MatchConfig};
use twinstep_udp::{MatchId, Ticket, TicketKey, TicketSpec};

use crate::folder::{Folder, token};
use crate::players::{Player, client, wait};
use crate::scrape::{ask, scrape, scrape_until};

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) struct Setup {
    pub(crate) host: HostConfig,
    pub(crate) ops: OpsConfig,
}

impl Setup {
    pub(crate) async fn start(mut self) -> Result<(Host, RunningOps), OpsError> {
        let ops = Ops::open(self.ops)?;
        ops.attach(&mut self.host);
        let host = Host::start(self.host).await.unwrap();
        let ops = ops.start(host.control()).unwrap();
        Ok((host, ops))
    }
}

impl Deref for Setup {
    type Target = HostConfig;

    fn deref(&self) -> &HostConfig {
        &self.host
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut HostConfig {
        &mut self.host
    }
}

pub(crate) struct LoopbackHost<S> {
    pub(crate) host: Host,
    pub(crate) ops: RunningOps,
    pub(crate) key: TicketKey,
    pub(crate) folder: Folder,
    pub(crate) timeout: Duration,
    game: PhantomData<fn() -> S>,
}

impl<S: Simulation> LoopbackHost<S> {
    pub(crate) async fn start(name: &str, set: impl FnOnce(&mut Setup)) -> LoopbackHost<S> {
        LoopbackHost::start_in(Folder::new(name), TicketKey::generate(), set).await
    }

    /// Starts a host in a given folder, like the next process of a server or a second one next to it.
    pub(crate) async fn start_in(
        folder: Folder,
        key: TicketKey,
        set: impl FnOnce(&mut Setup),
    ) -> LoopbackHost<S> {
        let mut config = LoopbackHost::<S>::config(&folder, &key);
        set(&mut config);
        let (host, ops) = config.start().await.unwrap();
        LoopbackHost {
            host,
            ops,
            key,
            folder,
            timeout: Duration::from_secs(5),
            game: PhantomData,
        }
    }

    pub(crate) fn config(folder: &Folder, key: &TicketKey) -> Setup {
        Setup {
            host: HostConfig::new(S::NAME, loopback(), key.clone()),
            ops: OpsConfig {
                admin: Some(loopback()),
                admin_token: Some(folder.file("token")),
                ..OpsConfig::default()
            },
        }
    }

    pub(crate) fn ticket(&self, identity: &str, match_id: u64) -> Ticket {
        self.ticket_by(&self.key, identity, match_id, 1)
    }

    /// Makes a ticket with this many seats; with 0 seats, for a spectator.
    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    pub(crate) fn ticket_by(
        &self,
        key: &TicketKey,
        identity: &str,
        match_id: u64,
        seats: u8,
    ) -> Ticket {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: S::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: MatchId(match_id),
            seats,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: self.timeout,
            now_unix,
        };
        Ticket::issue(key, &spec).unwrap()
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.ops.admin_addr().unwrap()
    }

    pub(crate) fn token(&self) -> String {
        token(&self.folder.file("token"))
    }

    /// Sends a request with the token to the admin port. Returns the status and the body of the response.
    pub(crate) async fn ask(&self, request: &str, body: &str) -> (u16, String) {
        let (status, _, reply) = ask(self.admin(), request, Some(&self.token()), body).await;
        (status, reply)
    }

    pub(crate) async fn ready(&self) -> (u16, String) {
        let (status, _, reply) = ask(self.admin(), "GET /readyz", None, "").await;
        (status, reply)
    }

    pub(crate) async fn until_ready_is(&self, status: u16) {
        wait("/readyz", async || self.ready().await.0 == status).await;
    }

    /// Waits until newcomers are refused because the server is full. A process that has just started is also not ready,
    /// but for another reason.
    pub(crate) async fn until_full(&self) {
        wait("/readyz", async || {
            self.ready().await.1.starts_with("full: ")
        })
        .await;
    }

    pub(crate) async fn number(&self, series: &str) -> f64 {
        scrape(self.admin()).await.of(series)
    }

    pub(crate) async fn until_number_is(&self, series: &str, number: f64) {
        scrape_until(self.admin(), series, |shown| shown == number).await;
    }

    pub(crate) async fn listed(&self) -> Vec<u64> {
        let (_, _, reply) = ask(self.admin(), "GET /matches", None, "").await;
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let lines = reply.as_array().unwrap().iter();
        lines.map(|line| line["match"].as_u64().unwrap()).collect()
    }
}

impl<S: Simulation<Rules = (), Input = u8>> LoopbackHost<S> {
    pub(crate) fn client(&self, identity: &str, match_id: u64) -> Client<S> {
        client(&self.ticket(identity, match_id))
    }

    pub(crate) fn watcher(&self, identity: &str, match_id: u64) -> Client<S> {
        client(&self.ticket_by(&self.key, identity, match_id, 0))
    }

    pub(crate) fn player(&self, identity: &str, match_id: u64) -> Player<S> {
        Player::join_and_keep_nothing(&self.ticket(identity, match_id))
    }
}

pub(crate) fn counter(config: MatchConfig) -> Match<Counter> {
    let no_resolver = |_: &HookContext<'_, Counter>, _, _: &Never| Decision::Unanswered;
    Match::new(config, Counter::default(), Arc::new(()), no_resolver).unwrap()
}

/// Blocks a match until the sender is dropped or sends. The match is blocked when this returns.
pub(crate) async fn hold_up(match_: &MatchHandle<Counter>) -> mpsc::Sender<()> {
    let (wake, asleep) = mpsc::channel::<()>();
    let (stands, standing) = tokio::sync::oneshot::channel();
    let match_ = match_.clone();
    tokio::spawn(async move {
        let look = match_.inspect(move |_| {
            let _ = stands.send(());
            let _ = asleep.recv();
        });
        let _ = look.await;
    });
    standing.await.unwrap();
    wake
}
