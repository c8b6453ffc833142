//! [`RunningMany`]: a server of many matches created on demand, on its own threads.

use std::net::SocketAddr;
use std::time::Duration;
use twinstep_protocol::identity::MatchId;
use twinstep_udp::ServerAddress;

use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Ticket, TicketError};

use super::running::{Stopped, ended_at_once};
use super::threads::{OnThreads, threads};
use crate::config::{HostConfig, HostError, bind};
use crate::demand::OnDemand;
use crate::matches::Host;

const TICKET_LIFE: Duration = Duration::from_secs(3_600);

/// A server whose matches are created [on demand](OnDemand). When dropped, it ends without a close code for its
/// clients, as if its process had been killed, so its journals can be resumed.
pub struct RunningMany {
    on_threads: OnThreads,
}

impl RunningMany {
    /// Starts the server on its own threads.
    ///
    /// # Errors
    /// If the address cannot be listened on, the configuration is out of range, or a file cannot be used.
    ///
    /// # Panics
    /// Within a tokio runtime: there, use [`Host::make_on_demand`].
    pub fn start<S: Simulation>(
        matches: OnDemand<S>,
        config: HostConfig,
    ) -> Result<RunningMany, HostError> {
        let socket = bind(config.listen)?;
        let threads = threads(config.heeds_stop)?;
        let host = threads.0.block_on(async {
            let host = Host::start_on(socket, config).await?;
            host.make_on_demand(matches);
            Ok::<_, HostError>(host)
        })?;
        Ok(RunningMany {
            on_threads: OnThreads::new(host, threads),
        })
    }

    /// The listen address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.host().local_addr()
    }

    /// The addresses that tickets name.
    #[must_use]
    pub fn public_addresses(&self) -> &[ServerAddress] {
        self.host().public_addresses()
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.on_threads.host()
    }

    /// Issues a ticket for one player in a match, valid for an hour: see [`ticket_for`](RunningMany::ticket_for).
    ///
    /// # Errors
    /// The errors of [`ticket_for`](RunningMany::ticket_for).
    pub fn ticket(&self, match_id: MatchId, identity: &str) -> Result<Ticket, TicketError> {
        self.ticket_for(match_id, identity, 1, TICKET_LIFE)
    }

    /// Issues a ticket for a screen with this many local players in a match (0 for a spectator), valid for `life`, even
    /// if earlier tickets were revoked. Waits neither for a match nor for a disk.
    ///
    /// # Errors
    /// If the name, the number of seats or the life is out of range.
    pub fn ticket_for(
        &self,
        match_id: MatchId,
        identity: &str,
        seats: u8,
        life: Duration,
    ) -> Result<Ticket, TicketError> {
        let office = &self.host().spawner().tickets;
        office.ticket(match_id, identity, seats, life)
    }

    /// Runs until the process is asked to end (Ctrl-C, SIGTERM). Then matches continue for up to
    /// [`HostConfig::drain_within`], and all clients get their close code. Matches with a journal are kept: see
    /// [`Host::shutdown`]. On a second request it ends immediately.
    ///
    /// # Errors
    /// If the process cannot listen for signals.
    pub fn run_until_stopped(self) -> std::io::Result<Stopped> {
        self.on_threads.run(async |host, mut stop| {
            stop.requested().await;
            let in_order = async {
                host.drain().await;
                host.shutdown(CloseCode::Draining).await;
            };
            tokio::select! {
                () = in_order => Ok(Stopped::InOrder),
                () = stop.requested() => Ok(ended_at_once()),
            }
        })
    }

    /// Closes all sessions and stops the server. Takes at most 4 s and 8 ms per match, and up to 6 s more if the disk
    /// with the lineages file does not respond.
    pub fn shutdown(self) {
        self.on_threads.shutdown();
    }
}
