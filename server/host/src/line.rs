//! [`Line`]: what a match hears, from the task that owns the socket to whichever worker runs the match.
//!
//! A match hears what came when its next tick is due. One that waits for a packet says so, and the line wakes it.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{Holder, Payload, TicketClaims};

use super::waker::{Listening, Waker};
use twinstep_server::SessionId;

/// Packets and news that may wait for one match.
const HEARD_MAX: usize = 4_096;
/// The part of it that packets leave free for what must not be lost.
const RESERVED: usize = 2_048;

/// What a match hears of.
pub(super) enum FromIo {
    /// A ticket for this match was good.
    Connected(SessionId, TicketClaims),
    /// A packet, and when it came.
    Packet(Duration, SessionId, Payload),
    /// The transport of a session ended.
    Gone(SessionId),
    /// This identity is to go, for this reason; a match where it was says so.
    PutOut(String, CloseCode, tokio::sync::mpsc::Sender<u64>),
}

/// The end of the task that owns the socket.
pub(super) struct Line {
    send: Sender<FromIo>,
    waker: Waker,
    /// The close code for its players if the process ends in order before it: a match with a journal is kept.
    pub(super) if_kept: Option<CloseCode>,
}

/// The match's end.
pub(super) struct Ear {
    heard: Receiver<FromIo>,
    listening: Listening,
}

/// The holder of tickets by which an identity plays in a match.
pub(super) fn seat_of(match_id: u64, identity: &str) -> Holder {
    Holder {
        match_id,
        watches: false,
        identity: identity.to_owned(),
    }
}

/// The close code for players of a match that is kept while its server ends.
pub(super) fn restarting(back_after: Duration) -> CloseCode {
    let after_s = back_after.as_secs().try_into().unwrap_or(u16::MAX);
    CloseCode::Restarting { after_s }
}

/// A line to the match that this wakes.
pub(super) fn line(waker: Waker, listening: Listening) -> (Line, Ear) {
    let (send, heard) = unbounded();
    let line = Line {
        send,
        waker,
        if_kept: None,
    };
    (line, Ear { heard, listening })
}

impl Line {
    /// Tells the match something that must not be lost; whether it will be heard.
    pub(super) fn tell(&self, news: FromIo) -> bool {
        self.send_within(news, HEARD_MAX)
    }

    /// Hands on a packet; whether it will be heard.
    pub(super) fn pass(&self, packet: FromIo) -> bool {
        self.send_within(packet, HEARD_MAX - RESERVED)
    }

    fn send_within(&self, heard: FromIo, most: usize) -> bool {
        if self.send.len() >= most || self.send.send(heard).is_err() {
            return false;
        }
        self.waker.wake();
        true
    }
}

impl Ear {
    pub(super) fn next(&self) -> Option<FromIo> {
        self.heard.try_recv().ok()
    }

    /// From now on the match is woken by what comes, or not. Whether something is here already.
    pub(super) fn listen(&self, listens: bool) -> bool {
        self.listening.set(listens);
        listens && !self.heard.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::clock::HostClock;
    use crate::waker::waker;
    use crate::workers::{Next, Play, SlotId, Workers};

    fn line_to(workers: &Workers, slot: SlotId) -> (Line, Ear) {
        let (waker, listening) = waker(workers.clone(), slot);
        line(waker, listening)
    }

    /// A match that is run again only when it is woken; how many rounds it has played.
    struct Sleeper {
        ear: Ear,
        listens: bool,
        rounds: Arc<AtomicUsize>,
    }

    impl Play for Sleeper {
        fn round(&mut self) -> Next {
            while self.ear.next().is_some() {}
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.ear.listen(self.listens);
            Next::At(Duration::from_secs(1 << 20))
        }
    }

    #[test]
    fn a_match_that_listens_is_woken_by_what_comes_and_no_other() {
        let workers = Workers::new("listens", 2, HostClock::start());
        for listens in [true, false] {
            let slot = workers.slot();
            let (line, ear) = line_to(&workers, slot);
            let rounds = Arc::<AtomicUsize>::default();
            let sleeper = Sleeper {
                ear,
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
            assert!(line.tell(FromIo::Gone(SessionId(1))));
            if listens {
                assert!(played(2), "nobody woke it");
            } else {
                std::thread::sleep(Duration::from_millis(200));
                assert_eq!(rounds.load(Ordering::Relaxed), 1);
            }
        }
        workers.shut();
    }

    #[test]
    fn what_came_before_a_match_listens_is_not_waited_for() {
        let workers = Workers::new("came", 1, HostClock::start());
        let (line, ear) = line_to(&workers, workers.slot());
        assert!(!ear.listen(true), "nothing is here");
        assert!(line.pass(FromIo::Gone(SessionId(1))));
        assert!(ear.listen(true) && !ear.listen(false));
        assert!(ear.next().is_some() && !ear.listen(true));
    }

    #[test]
    fn packets_leave_room_for_what_must_not_be_lost() {
        let workers = Workers::new("full", 1, HostClock::start());
        let (line, ear) = line_to(&workers, workers.slot());
        let gone = |n| FromIo::Gone(SessionId(n));
        let passed = (0..9_999).filter(|n| line.pass(gone(*n))).count();
        let told = (0..9_999).filter(|n| line.tell(gone(*n))).count();
        assert_eq!((passed, told), (HEARD_MAX - RESERVED, RESERVED));
        assert!(!line.tell(FromIo::PutOut(
            String::new(),
            CloseCode::Kicked,
            tokio::sync::mpsc::channel(1).0
        )));
        assert_eq!(std::iter::from_fn(|| ear.next()).count(), HEARD_MAX);
        assert!(line.pass(gone(0)));
        drop(ear);
        assert!(!line.tell(gone(0)), "nobody listens any more");
    }
}
