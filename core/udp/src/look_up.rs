//! [`LookUp`]: the host names of a ticket are looked up on a thread of their own, each time it is dialled. The system's resolver may
//! take as long as it likes; a frame of a game may not.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::address::ServerAddress;
use crate::tickets::Ticket;

/// A resolver that has not answered by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
pub(crate) struct LookUp {
    ticket: Ticket,
    began: Duration,
    /// In a lock, so that a client is shared by an engine's threads as a whole.
    found: Mutex<Receiver<Vec<ServerAddress>>>,
}

impl LookUp {
    /// Begins to look up; `None`: the ticket has no name.
    pub(crate) fn begin(ticket: &Ticket, now: Duration) -> Option<LookUp> {
        let servers: Vec<ServerAddress> = ticket.servers().collect();
        if servers.iter().all(|server| server.socket().is_some()) {
            return None;
        }
        let (answer, found) = sync_channel(1);
        let look = move || {
            let sockets = servers
                .iter()
                .flat_map(|server| server.look_up().unwrap_or_default());
            let _ = answer.send(sockets.map(ServerAddress::from).collect());
        };
        // Without a thread nothing is found, and what is no name is dialled.
        let _ = thread::Builder::new()
            .name("twinstep-names".to_owned())
            .spawn(look);
        Some(LookUp {
            ticket: ticket.clone(),
            began: now,
            found: Mutex::new(found),
        })
    }

    /// The ticket with addresses for its names, once they are known; with an error if there is no address at all.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Result<Ticket, NoAddress>> {
        let found = self.found.get_mut().unwrap_or_else(PoisonError::into_inner);
        let found = match found.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Empty) if now.saturating_sub(self.began) < PATIENCE => return None,
            Err(_) => {
                let sockets = self.ticket.servers();
                sockets.filter(|server| server.socket().is_some()).collect()
            }
        };
        Some(match found.is_empty() {
            true => Err(NoAddress),
            false => Ok(self.ticket.looked_up(found)),
        })
    }
}

/// No name of a ticket is known.
#[derive(Debug)]
pub(crate) struct NoAddress;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::TicketKey;
    use crate::tickets::TicketSpec;

    fn look_up(servers: &[&str]) -> Option<LookUp> {
        let servers: Vec<ServerAddress> = servers.iter().map(|at| at.parse().unwrap()).collect();
        let spec = TicketSpec {
            game: "test",
            wire_version: 1,
            identity: "anna",
            match_id: 1,
            seats: 1,
            servers: &servers,
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: Duration::from_secs(1_700_000_000),
        };
        let ticket = Ticket::issue(&TicketKey::generate(), &spec).unwrap();
        LookUp::begin(&ticket, Duration::ZERO)
    }

    #[test]
    fn a_resolver_that_is_silent_is_waited_for_and_then_what_is_no_name_is_dialled() {
        assert!(look_up(&["127.0.0.1:7"]).is_none());
        for (servers, is_dialled) in [
            (&["localhost:7", "127.0.0.1:7"][..], true),
            (&["localhost:7"], false),
        ] {
            let mut look_up = look_up(servers).unwrap();
            let (silent, found) = sync_channel(1);
            look_up.found = Mutex::new(found);
            assert!(look_up.poll(PATIENCE - Duration::from_millis(1)).is_none());
            let polled = look_up.poll(PATIENCE).unwrap();
            assert_eq!(polled.is_ok(), is_dialled);
            drop(silent);
            assert_eq!(look_up.poll(Duration::ZERO).unwrap().is_ok(), is_dialled);
        }
    }
}
