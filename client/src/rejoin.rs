//! When a client that lost its server dials again, and with which ticket. No clock and no socket in it.
//!
//! ```text
//!            silent for 0.7 s, closed, or moved
//!  Up ───────────────────────────────────────▶ Down ── dial ──▶ attempt ── connected ──▶ Up
//!                                               ▲  after a pause   │ denied, no answer
//!                                               └──────────────────┘ after 60 s: given up
//! ```
//!
//! Invariant: a ticket opens one session, so each attempt uses another one, the newest first; a ticket that was
//! denied is forgotten, and the others take turns, since one may be tied to an address that is gone.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_udp::Ticket;

/// Tickets that are kept: the newest ones.
pub(crate) const TICKETS_KEPT: usize = 3;
/// A server that says nothing for so long is taken to be lost. (It speaks at least ten times a second.)
pub(crate) const SILENCE: Duration = Duration::from_millis(700);
/// For how long a client tries to return.
pub(crate) const RETURN_WITHIN: Duration = Duration::from_secs(60);
/// The pause before the second attempt; it doubles with each one.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long an attempt may take to connect. Within it the request is repeated by the transport.
const ATTEMPT: Duration = Duration::from_secs(2);

/// The pause after the server said that it lets this player in only later: three attempts, one with each ticket, last
/// for longer than that.
const PAUSE_BARRED: Duration = Duration::from_secs(15);

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Nothing.
    Wait,
    /// Dial with this ticket.
    Dial(Box<Ticket>),
    /// It took too long, or there is no ticket left.
    GiveUp,
}

/// The tickets to return with, and how far returning has come.
#[derive(Debug, Default)]
pub(crate) struct Rejoin {
    /// The newest last.
    tickets: VecDeque<Ticket>,
    down: Option<Down>,
}

#[derive(Debug)]
struct Down {
    since: Duration,
    dial_at: Duration,
    pause: Duration,
    /// How long the attempt on its way may still take.
    until: Option<Duration>,
    /// The ticket of the last attempt.
    tried: Option<u64>,
}

impl Rejoin {
    /// Keeps a newer ticket.
    pub(crate) fn keep(&mut self, ticket: Ticket) {
        if self.tickets.len() == TICKETS_KEPT {
            self.tickets.pop_front();
        }
        self.tickets.push_back(ticket);
    }

    /// Whether there is anything to return with.
    pub(crate) fn can_return(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Whether the server is lost and not found again yet.
    pub(crate) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// The server is lost since now.
    pub(crate) fn lose(&mut self, now: Duration) {
        self.down.get_or_insert(Down {
            since: now,
            dial_at: now,
            pause: PAUSE_FIRST,
            until: None,
            tried: None,
        });
    }

    /// The server lets this player in only later.
    pub(crate) fn wait(&mut self, now: Duration) {
        if let Some(down) = &mut self.down {
            down.dial_at = now + PAUSE_BARRED;
        }
    }

    /// The attempt, if one is on its way, came to nothing. A ticket that was `denied` is no good any more.
    pub(crate) fn fail(&mut self, now: Duration, denied: bool) {
        let Some(down) = &mut self.down else {
            return;
        };
        if down.until.take().is_none() {
            return;
        }
        down.dial_at = now + down.pause;
        down.pause = (down.pause * 2).min(PAUSE_MAX);
        let id = down.tried;
        if let Some(at) = self.tickets.iter().position(|t| Some(t.id()) == id)
            && let Some(tried) = self.tickets.remove(at)
            && !denied
        {
            // The others first.
            self.tickets.push_front(tried);
        }
    }

    /// A session began with the last attempt's ticket, which is thereby used. (Perhaps late: during the pause.)
    pub(crate) fn succeed(&mut self) {
        if let Some(id) = self.down.take().and_then(|down| down.tried) {
            self.tickets.retain(|ticket| ticket.id() != id);
        }
    }

    /// What to do now; asked once a frame.
    pub(crate) fn advise(&mut self, now: Duration) -> Advice {
        let until = self.down.as_ref().and_then(|down| down.until);
        if until.is_some_and(|until| now >= until) {
            self.fail(now, false);
        }
        let Some(down) = &mut self.down else {
            return Advice::Wait;
        };
        let Some(ticket) = self.tickets.back() else {
            return Advice::GiveUp;
        };
        if now.saturating_sub(down.since) >= RETURN_WITHIN {
            return Advice::GiveUp;
        }
        if down.until.is_some() || now < down.dial_at {
            return Advice::Wait;
        }
        down.until = Some(now + ATTEMPT);
        down.tried = Some(ticket.id());
        Advice::Dial(Box::new(ticket.clone()))
    }
}

#[cfg(test)]
mod tests {
    use twinstep_udp::{Key, TicketSpec};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ticket() -> Ticket {
        let spec = TicketSpec {
            game: "test",
            wire_version: 1,
            identity: "anna",
            match_id: 1,
            seats: 1,
            servers: &["192.0.2.1:7".parse().unwrap()],
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: Duration::from_secs(1_700_000_000),
        };
        Ticket::issue(&Key::generate(), &spec).unwrap()
    }

    fn dialled(rejoin: &mut Rejoin, now: Duration) -> Option<u64> {
        match rejoin.advise(now) {
            Advice::Dial(ticket) => Some(ticket.id()),
            _ => None,
        }
    }

    #[test]
    fn the_newest_of_three_tickets_is_tried_first_and_the_others_take_turns() {
        let mut rejoin = Rejoin::default();
        let ids: Vec<u64> = (0..4)
            .map(|_| {
                let ticket = ticket();
                let id = ticket.id();
                rejoin.keep(ticket);
                id
            })
            .collect();
        rejoin.lose(Duration::ZERO);
        let mut tried = Vec::new();
        for ms in 0..30_000 {
            tried.extend(dialled(&mut rejoin, ms * MS));
        }
        assert_eq!(&tried[..4], [ids[3], ids[2], ids[1], ids[3]]);
        assert!(!tried.contains(&ids[0]), "only three are kept");
    }

    #[test]
    fn pauses_grow_from_a_tenth_of_a_second_to_two_and_end_after_a_minute() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        let began = 5_000 * MS;
        rejoin.lose(began);
        let (mut dials, mut gave_up) = (Vec::new(), None);
        for ms in 5_000..70_000 {
            match rejoin.advise(ms * MS) {
                Advice::Dial(_) => {
                    dials.push(ms);
                    rejoin.fail(ms * MS, false);
                }
                Advice::Wait => {}
                Advice::GiveUp => {
                    gave_up.get_or_insert(ms);
                }
            }
        }
        let pauses: Vec<u32> = dials.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(&pauses[..6], [100, 200, 400, 800, 1_600, 2_000]);
        assert!(pauses[6..].iter().all(|pause| *pause == 2_000));
        assert_eq!(gave_up, Some(65_000));
    }

    #[test]
    fn a_ticket_that_was_denied_or_used_is_not_tried_again() {
        let mut rejoin = Rejoin::default();
        let (old, new) = (ticket(), ticket());
        rejoin.keep(old.clone());
        rejoin.keep(new.clone());
        rejoin.lose(Duration::ZERO);
        assert_eq!(dialled(&mut rejoin, Duration::ZERO), Some(new.id()));
        rejoin.fail(Duration::ZERO, true);
        assert_eq!(dialled(&mut rejoin, 100 * MS), Some(old.id()));
        rejoin.succeed();
        assert!(!rejoin.is_down() && !rejoin.can_return());
        rejoin.lose(1_000 * MS);
        assert_eq!(rejoin.advise(1_000 * MS), Advice::GiveUp);
    }

    #[test]
    fn who_is_let_in_only_later_tries_again_for_longer_than_it_is_barred() {
        let mut rejoin = Rejoin::default();
        for _ in 0..TICKETS_KEPT {
            rejoin.keep(ticket());
        }
        let mut dials = Vec::new();
        rejoin.lose(Duration::ZERO);
        for ms in 0..60_000 {
            if dialled(&mut rejoin, ms * MS).is_some() {
                dials.push(ms);
                rejoin.succeed();
                rejoin.lose(ms * MS);
                rejoin.wait(ms * MS);
            }
        }
        assert_eq!(dials, [0, 15_000, 30_000]);
        assert_eq!(rejoin.advise(60_000 * MS), Advice::GiveUp);
    }

    #[test]
    fn an_attempt_that_hangs_ends_after_two_seconds() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        rejoin.lose(Duration::ZERO);
        assert!(dialled(&mut rejoin, Duration::ZERO).is_some());
        assert_eq!(rejoin.advise(1_999 * MS), Advice::Wait);
        assert_eq!(rejoin.advise(2_000 * MS), Advice::Wait, "the pause");
        assert!(dialled(&mut rejoin, 2_100 * MS).is_some());
    }
}
