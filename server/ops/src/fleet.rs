//! [`Membership`]: a server in a fleet managed by Agones, through the Agones sidecar.
//!
//! ```text
//!  /health        every 2 s while /livez is 200, so that a server that hangs is replaced
//!  /ready         once /readyz is 200
//!  labels         wire, matches; annotation: game
//!  counter        players: the count and the capacity; set when they change
//!  /allocate      when a player came without an allocation, so that the server is not scaled away
//!  /shutdown      when the host was shut down: its match is over or moved, or it was asked to end
//! ```
//!
//! Invariant: the game never waits for the sidecar. A slow, dying or misbehaving sidecar is retried, and costs at most
//! three log lines a minute.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use twinstep_host::internal::{HostClock, logged};
use twinstep_host::{HostControl, HostStatus};
use twinstep_protocol::packet::WIRE_VERSION;

mod sidecar;

use sidecar::ASK_AGAIN;
pub use sidecar::{FleetNews, Sidecar, SidecarError};

/// The interval of health reports. By default, Agones replaces a server that has been silent for 15 s (3 times 5 s).
const HEALTH_EVERY: Duration = Duration::from_secs(2);
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// The pause after a request was refused permanently, e.g. because a counter is not in the manifest.
const REFUSED_AGAIN: Duration = Duration::from_secs(60);
const LOG_EVERY: Duration = Duration::from_secs(60);
/// At shutdown, requests to the sidecar are retried for this long.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);
const PLAYERS: &str = "players";

/// A host's membership in its fleet. When it is dropped, the reports stop.
pub(super) struct Membership {
    sidecar: Sidecar,
    clock: HostClock,
    news: watch::Receiver<FleetNews>,
    tasks: [JoinHandle<()>; 3],
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Membership {
    pub(super) fn start(sidecar: Sidecar, control: HostControl) -> Membership {
        let clock = control.clock();
        let (state, news) = watch::channel(FleetNews::default());
        let reporting = report(sidecar, control.clone(), news.clone());
        let tasks = [
            tokio::spawn(beat(sidecar, control)),
            tokio::spawn(reporting),
            tokio::spawn(watch_sidecar(sidecar, clock, state)),
        ];
        Membership {
            sidecar,
            clock,
            news,
            tasks,
        }
    }

    pub(super) fn news(&self) -> watch::Receiver<FleetNews> {
        self.news.clone()
    }

    /// Reports that this server has shut down. Waits a few seconds for an unresponsive sidecar.
    pub(super) async fn leave(&self) {
        let until = self.clock.now() + SHUTDOWN_PATIENCE;
        loop {
            match self.sidecar.post("/shutdown").await {
                Ok(()) => return logged::info!("shutdown reported to Agones"),
                Err(error) if self.clock.now() >= until => {
                    return logged::warn!(%error, "shutdown not reported to Agones");
                }
                Err(_) => sleep(ASK_AGAIN).await,
            }
        }
    }
}

#[derive(Default)]
struct ErrorLimiter(Option<Duration>);

impl ErrorLimiter {
    fn is_due(&mut self, now: Duration) -> bool {
        let is_due = |at| now.saturating_sub(at) >= LOG_EVERY;
        let is_due = self.0.is_none_or(is_due);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }

    fn record(&mut self, now: Duration, error: &SidecarError) {
        if self.is_due(now) {
            logged::warn!(%error, "request to Agones' sidecar failed, retrying; matches continue");
        }
    }
}

/// Reports regularly that this server is healthy, as long as it is.
async fn beat(sidecar: Sidecar, control: HostControl) {
    let mut every = interval(HEALTH_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut errors = ErrorLimiter::default();
    loop {
        every.tick().await;
        if control.is_alive()
            && let Err(error) = sidecar.post("/health").await
            && errors.is_due(control.clock().now())
        {
            logged::warn!(%error, "health not reported to Agones, retrying; matches continue, but Agones replaces this server if it hears nothing");
        }
    }
}

async fn watch_sidecar(sidecar: Sidecar, clock: HostClock, state: watch::Sender<FleetNews>) {
    let mut errors = ErrorLimiter::default();
    let take = |news: FleetNews| {
        state.send_if_modified(|known| {
            let is_new = *known != news;
            if known.state != news.state {
                logged::info!(
                    from = known.state,
                    to = news.state,
                    "GameServer state changed"
                );
            }
            *known = news;
            is_new
        });
    };
    loop {
        // A stream may start with the next change, so the state is read first.
        let result = match sidecar.game_server().await {
            Ok(news) => {
                take(news);
                sidecar.watch(take).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            errors.record(clock.now(), &error);
        }
        sleep(ASK_AGAIN).await;
    }
}

#[derive(Default)]
struct Reported {
    is_ready: bool,
    is_named: bool,
    players: Option<(u64, u64)>,
    matches: Option<u64>,
    /// The counter was refused, and is not set until this time.
    no_counter_until: Option<Duration>,
}

async fn report(sidecar: Sidecar, control: HostControl, news: watch::Receiver<FleetNews>) {
    let mut every = interval(REPORT_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut reported, mut errors) = (Reported::default(), ErrorLimiter::default());
    loop {
        every.tick().await;
        if let Err(error) = send_report(sidecar, &control, &news, &mut reported).await {
            errors.record(control.clock().now(), &error);
        }
    }
}

/// Reports that the server is ready; from then on, each value that changed. A failed value does not stop the others.
/// Returns the first error.
async fn send_report(
    sidecar: Sidecar,
    control: &HostControl,
    news: &watch::Receiver<FleetNews>,
    reported: &mut Reported,
) -> Result<(), SidecarError> {
    if !reported.is_ready {
        if control.not_ready().is_some() {
            return Ok(());
        }
        sidecar.post("/ready").await?;
        reported.is_ready = true;
        logged::info!("ready reported to Agones");
    }
    let is_ready = news.borrow().state == "Ready";
    let status = control.status();
    let allocated = match status.players > 0 && is_ready {
        true => sidecar.post("/allocate").await.inspect(|()| {
            logged::info!("a player joined before the fleet allocated this server; the server allocated itself");
        }),
        false => Ok(()),
    };
    let counted = reported
        .count(sidecar, control.clock().now(), &status)
        .await;
    let named = reported.name(sidecar, control.game(), status.matches).await;
    allocated.and(counted).and(named)
}

impl Reported {
    async fn name(
        &mut self,
        sidecar: Sidecar,
        game: &str,
        matches: u64,
    ) -> Result<(), SidecarError> {
        if !self.is_named {
            sidecar.label("wire", &WIRE_VERSION.to_string()).await?;
            sidecar.annotate("game", game).await?;
            self.is_named = true;
        }
        if self.matches != Some(matches) {
            sidecar.label("matches", &matches.to_string()).await?;
            self.matches = Some(matches);
        }
        Ok(())
    }

    async fn count(
        &mut self,
        sidecar: Sidecar,
        now: Duration,
        status: &HostStatus,
    ) -> Result<(), SidecarError> {
        let players = (status.players, status.players + status.seats_free);
        let may_count = self.no_counter_until.is_none_or(|at| now >= at);
        if self.players == Some(players) || !may_count {
            return Ok(());
        }
        let counted = sidecar.count(PLAYERS, players.0, players.1).await;
        match &counted {
            Ok(()) => self.players = Some(players),
            Err(SidecarError::Refused { .. }) => {
                self.no_counter_until = Some(now + REFUSED_AGAIN);
            }
            Err(_) => {}
        }
        counted
    }
}
