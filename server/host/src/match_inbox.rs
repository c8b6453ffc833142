//! [`MatchInbox`]: the channel from the I/O task to a match. Any worker may run the match.
//!
//! A match reads its inbox when its next tick is due. If a match rests or waits for a packet, it listens, and the
//! sender wakes it.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use twinstep_protocol::identity::{Identity, MatchId, Role};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Holder, Payload, TicketClaims};

use super::waker::{Listening, Waker};
use twinstep_server::SessionId;

const INBOX_MAX: usize = 4_096;
/// The part of the capacity that packets cannot use. It is reserved for connects, disconnects and removals.
const RESERVED: usize = 2_048;

pub(super) enum FromIo {
    Connected(SessionId, TicketClaims),
    Packet(Duration, SessionId, Payload),
    Gone(SessionId),
    /// Remove this identity with this close code. A match that had it sends its own id.
    PutOut(String, CloseCode, tokio::sync::mpsc::Sender<MatchId>),
}

pub(super) struct InboxSender {
    send: Sender<FromIo>,
    waker: Waker,
    /// The close code for the match's players if the process ends cleanly before the match does. `None` if the match
    /// has no journal, because it is then not kept.
    pub(super) if_kept: Option<CloseCode>,
}

pub(super) struct MatchInbox {
    receive: Receiver<FromIo>,
    listening: Listening,
}

pub(super) fn seat_of(match_id: MatchId, identity: &str) -> Holder {
    Holder {
        match_id,
        identity: Identity::new(identity, Role::Player),
    }
}

/// The close code for players of a match kept while its server ends.
pub(super) fn restarting(back_after: Duration) -> CloseCode {
    let after_s = back_after.as_secs().try_into().unwrap_or(u16::MAX);
    CloseCode::Restarting { after_s }
}

pub(super) fn match_inbox(waker: Waker, listening: Listening) -> (InboxSender, MatchInbox) {
    let (send, receive) = unbounded();
    let sender = InboxSender {
        send,
        waker,
        if_kept: None,
    };
    (sender, MatchInbox { receive, listening })
}

impl InboxSender {
    /// Sends an event that must not be lost. Returns `false` if the inbox is full or its match is over.
    pub(super) fn send(&self, event: FromIo) -> bool {
        self.send_within(event, INBOX_MAX)
    }

    /// Sends a packet. Returns `false` if the inbox has no room left for packets, or if its match is over.
    pub(super) fn send_packet(&self, packet: FromIo) -> bool {
        self.send_within(packet, INBOX_MAX - RESERVED)
    }

    fn send_within(&self, event: FromIo, most: usize) -> bool {
        if self.send.len() >= most || self.send.send(event).is_err() {
            return false;
        }
        self.waker.wake();
        true
    }
}

impl MatchInbox {
    pub(super) fn next(&self) -> Option<FromIo> {
        self.receive.try_recv().ok()
    }

    /// Sets whether a new event wakes the match. Returns `true` if `listens` is set and an event is already waiting.
    pub(super) fn listen(&self, listens: bool) -> bool {
        self.listening.set(listens);
        listens && !self.receive.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::HostClock;
    use crate::waker::waker;
    use crate::workers::{Next, Playable, SlotId, Workers};

    fn inbox_of(workers: &Workers, slot: SlotId) -> (InboxSender, MatchInbox) {
        let (waker, listening) = waker(workers.clone(), slot);
        match_inbox(waker, listening)
    }

    /// A match that is run again only when it is woken; counts its rounds.
    struct Sleeper {
        inbox: MatchInbox,
        listens: bool,
        rounds: Arc<AtomicUsize>,
    }

    impl Playable for Sleeper {
        fn round(&mut self) -> Next {
            while self.inbox.next().is_some() {}
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.inbox.listen(self.listens);
            Next::At(Duration::from_secs(1 << 20))
        }
    }

    #[test]
    fn an_event_wakes_only_a_listening_match() {
        let workers = Workers::new("listens", 2, HostClock::start());
        for listens in [true, false] {
            let slot = workers.slot();
            let (sender, inbox) = inbox_of(&workers, slot);
            let rounds = Arc::<AtomicUsize>::default();
            let sleeper = Sleeper {
                inbox,
                listens,
                rounds: rounds.clone(),
            };
            let _end = workers.run(slot, Box::new(sleeper)).unwrap();
            let played = |times: usize| {
                (0..2_000).any(|_| {
                    std::thread::sleep(Duration::from_millis(5));
                    rounds.load(Ordering::Relaxed) >= times
                })
            };
            assert!(played(1));
            std::thread::sleep(Duration::from_millis(20));
            assert!(sender.send(FromIo::Gone(SessionId(1))));
            if listens {
                assert!(played(2), "it was not woken");
            } else {
                std::thread::sleep(Duration::from_millis(200));
                assert_eq!(rounds.load(Ordering::Relaxed), 1);
            }
        }
        workers.shut_down();
    }

    #[test]
    fn an_event_that_precedes_listening_is_reported_at_once() {
        let workers = Workers::new("came", 1, HostClock::start());
        let (sender, inbox) = inbox_of(&workers, workers.slot());
        assert!(!inbox.listen(true), "the inbox is empty");
        assert!(sender.send_packet(FromIo::Gone(SessionId(1))));
        assert!(inbox.listen(true) && !inbox.listen(false));
        assert!(inbox.next().is_some() && !inbox.listen(true));
    }

    #[test]
    fn packets_leave_space_for_events_that_must_not_be_lost() {
        let workers = Workers::new("full", 1, HostClock::start());
        let (sender, inbox) = inbox_of(&workers, workers.slot());
        let gone = |n| FromIo::Gone(SessionId(n));
        let passed = (0..9_999).filter(|n| sender.send_packet(gone(*n))).count();
        let sent = (0..9_999).filter(|n| sender.send(gone(*n))).count();
        assert_eq!((passed, sent), (INBOX_MAX - RESERVED, RESERVED));
        assert!(!sender.send(FromIo::PutOut(
            String::new(),
            CloseCode::Kicked,
            tokio::sync::mpsc::channel(1).0
        )));
        assert_eq!(std::iter::from_fn(|| inbox.next()).count(), INBOX_MAX);
        assert!(sender.send_packet(gone(0)));
        drop(inbox);
        assert!(!sender.send(gone(0)), "its match is over");
    }
}
