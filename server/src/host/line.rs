//! [`Line`]: what a match hears, from the task that owns the socket to whichever worker runs the match.
//!
//! A match hears what came when its next tick is due. One that waits for a packet says so, and the line wakes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use twinstep_core::packet::hello::CloseCode;
use twinstep_udp::TicketClaims;

use super::workers::{SlotId, Workers};
use crate::peer::PeerId;

/// Packets and news that may wait for one match.
const HEARD_MAX: usize = 4_096;
/// The part of it that packets leave free for what must not be lost.
const RESERVED: usize = 2_048;

/// What a match hears of.
pub(super) enum FromIo {
    /// A ticket for this match was good.
    Connected(PeerId, TicketClaims),
    /// A packet, and when it came.
    Packet(Duration, PeerId, Vec<u8>),
    /// The transport of a session ended.
    Gone(PeerId),
    /// This identity is to go, for this reason; a match where it was says so.
    PutOut(String, CloseCode, tokio::sync::mpsc::Sender<u64>),
}

/// The end of the task that owns the socket.
pub(super) struct Line {
    send: Sender<FromIo>,
    listens: Arc<AtomicBool>,
    workers: Workers,
    slot: SlotId,
}

/// The match's end.
pub(super) struct Ear {
    heard: Receiver<FromIo>,
    listens: Arc<AtomicBool>,
}

/// A line to the match in this slot.
pub(super) fn line(workers: Workers, slot: SlotId) -> (Line, Ear) {
    let (send, heard) = unbounded();
    let listens = Arc::<AtomicBool>::default();
    let line = Line {
        send,
        listens: listens.clone(),
        workers,
        slot,
    };
    (line, Ear { heard, listens })
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
        // Either this is seen there, or that it listens is seen here.
        fence(Ordering::SeqCst);
        if self.listens.swap(false, Ordering::Relaxed) {
            self.workers.wake(self.slot);
        }
        true
    }
}

impl Ear {
    pub(super) fn next(&self) -> Option<FromIo> {
        self.heard.try_recv().ok()
    }

    /// From now on the match is woken by what comes, or not. Whether something is here already.
    pub(super) fn listen(&self, listens: bool) -> bool {
        self.listens.store(listens, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        listens && !self.heard.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::clock::HostClock;

    #[test]
    fn packets_leave_room_for_what_must_not_be_lost() {
        let workers = Workers::new("full", 1, HostClock::start());
        let (line, ear) = line(workers.clone(), workers.slot());
        let gone = |n| FromIo::Gone(PeerId(n));
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
