//! [`Mailbox`]: requests to a match that do not come from its players: an operator's orders, inspections. A request
//! wakes a match that rests (`host/waker.rs`).

use tokio::sync::mpsc::{self, Receiver, Sender, error::SendError};

use super::waker::Waker;

pub(super) struct Mailbox<T> {
    send: Sender<T>,
    waker: Waker,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Mailbox {
            send: self.send.clone(),
            waker: self.waker.clone(),
        }
    }
}

/// Returns a mailbox for at most `capacity` requests, which wakes its match through `waker`, and the match's receiver.
pub(super) fn mailbox<T>(waker: Waker, capacity: usize) -> (Mailbox<T>, Receiver<T>) {
    let (send, receive) = mpsc::channel(capacity);
    (Mailbox { send, waker }, receive)
}

impl<T> Mailbox<T> {
    pub(super) async fn send(&self, request: T) -> Result<(), SendError<T>> {
        self.send.send(request).await?;
        self.waker.wake();
        Ok(())
    }

    pub(super) fn try_send(&self, request: T) -> bool {
        let is_sent = self.send.try_send(request).is_ok();
        if is_sent {
            self.waker.wake();
        }
        is_sent
    }

    pub(super) fn is_closed(&self) -> bool {
        self.send.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::HostClock;
    use crate::waker::{Listening, waker};
    use crate::workers::{Next, Playable, Workers};

    /// A match that runs again only when it is woken, and reports the request that it finds then.
    struct Sleeper {
        posted: Receiver<u8>,
        listening: Listening,
        reports: std::sync::mpsc::Sender<Option<u8>>,
    }

    impl Playable for Sleeper {
        fn round(&mut self) -> Next {
            let posted = self.posted.try_recv().ok();
            // After the third request it no longer listens.
            self.listening.set(posted != Some(3));
            let _ = self.reports.send(posted);
            Next::At(Duration::from_secs(1 << 20))
        }
    }

    #[tokio::test]
    async fn a_request_wakes_a_resting_match() {
        let workers = Workers::new("posted", 1, HostClock::start());
        let slot = workers.slot();
        let (waker, listening) = waker(workers.clone(), slot);
        let (mailbox, posted) = mailbox(waker, 2);
        let (reports, reported) = std::sync::mpsc::channel();
        let sleeper = Sleeper {
            posted,
            listening,
            reports,
        };
        let sleeper = Box::new(sleeper);
        let _end = workers.run(slot, sleeper).unwrap();
        let waits = || reported.try_recv().is_err();
        let next = || reported.recv_timeout(Duration::from_secs(20));
        assert_eq!(next(), Ok(None), "it runs at first");
        assert!(mailbox.try_send(1));
        assert_eq!(next(), Ok(Some(1)));
        mailbox.send(2).await.unwrap();
        assert_eq!(next(), Ok(Some(2)));
        mailbox.send(3).await.unwrap();
        assert_eq!(next(), Ok(Some(3)));
        mailbox.send(4).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(waits(), "it does not listen");
        // A host that ends wakes all matches.
        workers.wake_all();
        assert_eq!(next(), Ok(Some(4)));
        workers.shut_down();
    }

    #[tokio::test]
    async fn a_full_or_closed_mailbox_refuses_requests() {
        let workers = Workers::new("full", 1, HostClock::start());
        let (waker, _listening) = waker(workers.clone(), workers.slot());
        let (mailbox, posted) = mailbox(waker, 2);
        assert!(mailbox.try_send(1) && mailbox.try_send(2) && !mailbox.try_send(3));
        assert!(!mailbox.is_closed());
        drop(posted);
        assert!(mailbox.is_closed() && !mailbox.try_send(4));
        assert!(mailbox.send(5).await.is_err());
    }
}
