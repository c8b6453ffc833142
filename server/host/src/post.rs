//! [`Post`]: what a match is asked for by others than its players: what an operator wants, looks at it, moves. It wakes a match
//! that rests (`host/waker.rs`).

use tokio::sync::mpsc::{self, Receiver, Sender, error::SendError};

use super::waker::Waker;

/// Whoever sends something to a match. Clones share the channel.
pub(super) struct Post<T> {
    send: Sender<T>,
    waker: Waker,
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Self {
        Post {
            send: self.send.clone(),
            waker: self.waker.clone(),
        }
    }
}

/// A way to the match that this wakes, with room for so much.
pub(super) fn post<T>(waker: Waker, room: usize) -> (Post<T>, Receiver<T>) {
    let (send, receive) = mpsc::channel(room);
    (Post { send, waker }, receive)
}

impl<T> Post<T> {
    /// Sends it when there is room.
    pub(super) async fn send(&self, what: T) -> Result<(), SendError<T>> {
        self.send.send(what).await?;
        self.waker.wake();
        Ok(())
    }

    /// Sends it if there is room; whether it went.
    pub(super) fn try_send(&self, what: T) -> bool {
        let went = self.send.try_send(what).is_ok();
        if went {
            self.waker.wake();
        }
        went
    }

    /// Whether nobody is there who would receive it.
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
    use crate::workers::{Next, Play, Workers};

    /// A match that runs again only when it is woken, and says what it was sent then.
    struct Sleeper {
        posted: Receiver<u8>,
        listening: Listening,
        says: std::sync::mpsc::Sender<Option<u8>>,
    }

    impl Play for Sleeper {
        fn round(&mut self) -> Next {
            let posted = self.posted.try_recv().ok();
            // Who has got the third listens no more.
            self.listening.set(posted != Some(3));
            let _ = self.says.send(posted);
            Next::At(Duration::from_secs(1 << 20))
        }
    }

    #[tokio::test]
    async fn what_is_posted_wakes_a_match_that_rests() {
        let workers = Workers::new("posted", 1, HostClock::start());
        let slot = workers.slot();
        let (waker, listening) = waker(workers.clone(), slot);
        let (post, posted) = post(waker, 2);
        let (says, said) = std::sync::mpsc::channel();
        let sleeper = Sleeper {
            posted,
            listening,
            says,
        };
        let sleeper = Box::new(sleeper);
        let _end = workers.run(slot, sleeper).unwrap();
        let waits = || said.try_recv().is_err();
        let said = || said.recv_timeout(Duration::from_secs(20));
        assert_eq!(said(), Ok(None), "it runs at first");
        assert!(post.try_send(1));
        assert_eq!(said(), Ok(Some(1)));
        post.send(2).await.unwrap();
        assert_eq!(said(), Ok(Some(2)));
        post.send(3).await.unwrap();
        assert_eq!(said(), Ok(Some(3)));
        post.send(4).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(waits(), "it does not listen");
        // As when its host ends.
        workers.wake_all();
        assert_eq!(said(), Ok(Some(4)));
        workers.shut();
    }

    #[tokio::test]
    async fn where_there_is_no_room_nothing_is_sent() {
        let workers = Workers::new("full", 1, HostClock::start());
        let (waker, _listening) = waker(workers.clone(), workers.slot());
        let (post, posted) = post(waker, 2);
        assert!(post.try_send(1) && post.try_send(2) && !post.try_send(3));
        assert!(!post.is_closed());
        drop(posted);
        assert!(post.is_closed() && !post.try_send(4));
        assert!(post.send(5).await.is_err());
    }
}
