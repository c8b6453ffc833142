//! When a client that lost its server dials again, with which ticket, and where to. No clock and no socket in it.
//!
//! ```text
//!         silent for 0.7 s, closed, or moved
//!  Up ────────────────────────────────────────▶ Down ── dial ─▶ up to 3 attempts at once, each with
//!   ▲                                            │               another ticket and address
//!   ├── the old path speaks again ◀──────────────┤
//!   └── a session on the first attempt that connects           after 60 s: given up
//! ```
//!
//! A ticket that was used makes older ones worthless. So the one is dialled first that a new process of this client
//! would find, the *held* one: where newer ones are stored, the newest; else the one that it came by.
//!
//! Invariant: whatever one address does or one ticket is worth, the others get their turn, and nothing but time ends it:
//! a server that is full now, or an address that is dead, says nothing about the next attempt. Only a ticket that is out
//! of date is forgotten.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_udp::Ticket;

use crate::session::download::AWAKE_MAX;

/// Tickets that are kept: the newest ones.
pub(crate) const TICKETS_KEPT: usize = 3;
/// Attempts that may be on their way at once.
pub(crate) const ATTEMPTS_MAX: usize = 3;
/// A server that says nothing for so long is taken to be lost. (It speaks ten times a second, and
/// twice to whom it has not heard for four seconds.)
pub(crate) const SILENCE: Duration = Duration::from_millis(700);
/// A server that was reached and sends no welcome and no part of a world for so long is dialled once more. (A world to
/// join with is handed out once in five seconds, and others may be before.)
pub(crate) const DEAF: Duration = Duration::from_secs(15);
/// For how long a client tries to return, in time in which it was awake.
pub(crate) const RETURN_WITHIN: Duration = Duration::from_secs(60);
/// The pause before the second attempt; it doubles with each one, while the attempts before go on.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The pause between the first three attempts at a server that said it is coming back, or that its match goes on elsewhere. Each
/// attempt repeats its first datagram four times a second, so one of the three reaches a server within this time of its start.
const PAUSE_EXPECTED: Duration = Duration::from_millis(83);
/// The pause after the first attempt that failed; it doubles with each one.
const FAILED_FIRST: Duration = Duration::from_millis(100);
/// Addresses of a ticket that one attempt dials, the next one when the first is silent for a moment. A server takes 32 dials
/// of an identity in 20 s; three attempts at a time, each for 5 s, make 24.
const ADDRESSES_DIALLED: usize = 2;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The pause after the server said that it lets this player in only later: a client tries for twice as long.
const PAUSE_BARRED: Duration = Duration::from_secs(15);

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Nothing.
    Wait,
    /// Dial with this ticket, which leads to [`ADDRESSES_DIALLED`] addresses at most.
    Dial(Box<Ticket>),
    /// It took too long, or there is no ticket left.
    GiveUp,
}

/// The tickets to return with, and how far returning has come.
#[derive(Debug, Default)]
pub(crate) struct Rejoin {
    /// Dialled from the back: the held one, then the newest.
    tickets: VecDeque<Ticket>,
    /// The id of the held one.
    held: Option<u64>,
    down: Option<Down>,
    /// The newest time, and how much of it the client slept.
    now: Duration,
    slept: Duration,
}

#[derive(Debug)]
struct Down {
    /// Without the time that the client slept.
    since: Duration,
    dial_at: Duration,
    pause: Duration,
    failed_pause: Duration,
    dialled: usize,
    /// Whether the server said where its match goes on: then its own address is dialled last.
    is_expected: bool,
}

impl Rejoin {
    /// Moves time on, at each frame.
    pub(crate) fn pass_time(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.now);
        self.slept += gap.saturating_sub(AWAKE_MAX);
        self.now += gap;
    }

    /// A new process of this client would find this ticket, and no other one.
    pub(crate) fn hold(&mut self, ticket: Ticket) {
        self.tickets.clear();
        self.held = Some(ticket.id());
        self.tickets.push_back(ticket);
    }

    /// Keeps a newer ticket that only this process has.
    pub(crate) fn keep(&mut self, ticket: Ticket) {
        let held = self.tickets.pop_back();
        if self.tickets.len() == TICKETS_KEPT - 1 {
            self.tickets.pop_front();
        }
        self.tickets.push_back(ticket);
        self.tickets.extend(held);
    }

    /// The server said that it restarts, or that the match goes on elsewhere: dials soon follow each other, and the next address
    /// comes before its own.
    pub(crate) fn expect(&mut self) {
        if let Some(down) = &mut self.down {
            down.is_expected = true;
        }
    }

    /// Whether there is anything to return with.
    pub(crate) fn can_return(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Whether a ticket names more than one address, or a host, whose address may change.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        let leads = |ticket: &Ticket| {
            ticket.servers().len() > 1 || ticket.servers().any(|server| server.socket().is_none())
        };
        self.tickets.iter().any(leads)
    }

    /// Whether the server is lost and not found again yet.
    pub(crate) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// The server is lost since now, or still is.
    pub(crate) fn lose(&mut self, now: Duration) {
        self.down.get_or_insert(Down {
            since: now.saturating_sub(self.slept),
            dial_at: now,
            pause: PAUSE_FIRST,
            failed_pause: FAILED_FIRST,
            dialled: 0,
            is_expected: false,
        });
    }

    /// The server lets this player in only later.
    pub(crate) fn wait(&mut self, now: Duration) {
        if let Some(down) = &mut self.down {
            down.dial_at = now + PAUSE_BARRED;
        }
    }

    /// An attempt came to nothing: the next one need not wait for it.
    pub(crate) fn fail(&mut self, now: Duration) {
        if let Some(down) = &mut self.down {
            down.dial_at = down.dial_at.min(now + down.failed_pause);
            down.failed_pause = (down.failed_pause * 2).min(PAUSE_MAX);
        }
    }

    /// A ticket is out of date.
    pub(crate) fn forget(&mut self, ticket: u64) {
        self.tickets.retain(|kept| kept.id() != ticket);
    }

    /// The server is heard by a session in its match.
    pub(crate) fn find(&mut self) {
        self.down = None;
    }

    /// What to do now; asked once a frame. `attempts`: how many are on their way.
    pub(crate) fn advise(&mut self, now: Duration, attempts: usize) -> Advice {
        let Some(down) = &mut self.down else {
            return Advice::Wait;
        };
        let awake = now.saturating_sub(self.slept).saturating_sub(down.since);
        if self.tickets.is_empty() || awake >= RETURN_WITHIN {
            return Advice::GiveUp;
        }
        if attempts >= ATTEMPTS_MAX || now < down.dial_at {
            return Advice::Wait;
        }
        // The held ticket first, then the newest. Each one leads to the next of its addresses than the one before.
        let (round, n) = (
            down.dialled / self.tickets.len(),
            down.dialled % self.tickets.len(),
        );
        let ticket = &self.tickets[self.tickets.len() - 1 - n];
        down.dialled += 1;
        if down.is_expected && down.dialled < ATTEMPTS_MAX {
            down.dial_at = now + PAUSE_EXPECTED;
        } else {
            down.dial_at = now + down.pause;
            down.pause = (down.pause * 2).min(PAUSE_MAX);
        }
        let address = usize::from(down.is_expected) + round + n;
        Advice::Dial(Box::new(ticket.led_to(address, ADDRESSES_DIALLED)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use twinstep_udp::{ServerAddress, TicketKey, TicketSpec};

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SERVER: ServerAddress =
        ServerAddress::Socket(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7));

    fn ticket_to(servers: &[ServerAddress]) -> Ticket {
        Ticket::issue(&TicketKey::generate(), &spec(servers)).unwrap()
    }

    fn spec(servers: &[ServerAddress]) -> TicketSpec<'_> {
        TicketSpec {
            game: "test",
            wire_version: 1,
            identity: "anna",
            match_id: 1,
            seats: 1,
            servers,
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: Duration::from_secs(1_700_000_000),
        }
    }

    fn ticket() -> Ticket {
        ticket_to(&[SERVER])
    }

    /// With which ticket, and to which of these addresses, it is dialled now.
    fn dialled(rejoin: &mut Rejoin, now: Duration) -> Option<(u64, ServerAddress)> {
        match rejoin.advise(now, 0) {
            Advice::Dial(ticket) => Some((ticket.id(), ticket.servers().next().unwrap())),
            _ => None,
        }
    }

    /// Findings O1, O2: a client that stores nothing used newer tickets, and the one that its player has was worthless.
    #[test]
    fn the_ticket_that_it_came_by_is_tried_first_and_the_newest_ones_take_turns() {
        let mut rejoin = Rejoin::default();
        let tickets: Vec<Ticket> = (0..4).map(|_| ticket()).collect();
        let ids: Vec<u64> = tickets.iter().map(Ticket::id).collect();
        rejoin.hold(tickets[0].clone());
        for newer in &tickets[1..] {
            rejoin.keep(newer.clone());
        }
        rejoin.lose(Duration::ZERO);
        let mut tried = Vec::new();
        for ms in 0..30_000 {
            tried.extend(dialled(&mut rejoin, ms * MS).map(|(id, _)| id));
        }
        assert_eq!(&tried[..4], [ids[0], ids[3], ids[2], ids[0]]);
        assert!(!tried.contains(&ids[1]), "only three are kept");
    }

    #[test]
    fn a_ticket_that_is_stored_is_the_only_one_to_return_with_as_often_as_needed() {
        let mut rejoin = Rejoin::default();
        let (old, new) = (ticket(), ticket());
        rejoin.hold(old);
        rejoin.hold(new.clone());
        for round in 0..10 {
            let now = round * 1_000 * MS;
            rejoin.lose(now);
            let tried = dialled(&mut rejoin, now).map(|(id, _)| id);
            assert_eq!(tried, Some(new.id()));
            rejoin.find();
            assert!(rejoin.can_return());
        }
    }

    /// Finding C8: players dial the addresses of their tickets, and no others; the one that sent them on comes last.
    #[test]
    fn a_server_that_sends_its_players_on_is_dialled_last() {
        let addresses: Vec<ServerAddress> = (1..=3)
            .map(|n| SocketAddr::from(([192, 0, 2, n], 7)).into())
            .collect();
        for count in 1..=3 {
            let mut rejoin = Rejoin::default();
            rejoin.keep(ticket_to(&addresses[..count]));
            rejoin.lose(Duration::ZERO);
            rejoin.expect();
            let mut tried = Vec::new();
            for ms in 0..30_000 {
                tried.extend(dialled(&mut rejoin, ms * MS).map(|(_, address)| address));
            }
            let next = (1..count).chain([0]).map(|n| addresses[n]);
            assert_eq!(tried[..count], Vec::from_iter(next), "{count}");
        }
    }

    /// Finding A1: only the first public address was dialled.
    #[test]
    fn every_address_of_every_ticket_gets_its_turn() {
        let addresses: Vec<ServerAddress> = (1..=3)
            .map(|n| SocketAddr::from(([192, 0, 2, n], 7)).into())
            .collect();
        for tickets in 1..=3 {
            for count in 1..=3 {
                let mut rejoin = Rejoin::default();
                (0..tickets).for_each(|_| rejoin.keep(ticket_to(&addresses[..count])));
                rejoin.lose(Duration::ZERO);
                let mut tried = std::collections::BTreeSet::new();
                let mut dials = 0;
                for ms in 0..30_000 {
                    let dial = dialled(&mut rejoin, ms * MS);
                    dials += usize::from(dial.is_some());
                    tried.extend(dial);
                    if dials == tickets * count {
                        break;
                    }
                }
                assert_eq!(tried.len(), tickets * count, "{tickets} of {count}");
            }
        }
    }

    #[test]
    fn pauses_grow_to_two_seconds_and_end_after_a_minute_whatever_the_attempts_come_to() {
        for fails in [false, true] {
            let mut rejoin = Rejoin::default();
            rejoin.keep(ticket());
            let began = 5_000 * MS;
            rejoin.lose(began);
            let (mut dials, mut gave_up) = (Vec::new(), None);
            for ms in 5_000..70_000 {
                match rejoin.advise(ms * MS, 0) {
                    Advice::Dial(_) => {
                        dials.push(ms);
                        if fails {
                            rejoin.fail(ms * MS);
                        }
                    }
                    Advice::Wait => {}
                    Advice::GiveUp => {
                        gave_up.get_or_insert(ms);
                    }
                }
            }
            let pauses: Vec<u32> = dials.windows(2).map(|two| two[1] - two[0]).collect();
            let first: &[u32] = match fails {
                true => &[100, 200, 400, 800, 1_600, 2_000],
                false => &[1_000, 2_000],
            };
            assert_eq!(&pauses[..first.len()], first);
            assert!(pauses[first.len()..].iter().all(|pause| *pause == 2_000));
            assert_eq!(gave_up, Some(65_000));
        }
    }

    /// Finding P3-P3: a laptop whose lid was closed gave up when it woke, before it had dialled.
    #[test]
    fn time_that_the_client_slept_does_not_count() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        rejoin.lose(Duration::ZERO);
        let mut plays = |from: u32, to: u32| {
            let mut dials = Vec::new();
            for ms in from..to {
                rejoin.pass_time(ms * MS);
                match rejoin.advise(ms * MS, 0) {
                    Advice::Dial(_) => dials.push(ms),
                    Advice::Wait => {}
                    Advice::GiveUp => return (dials, true),
                }
            }
            (dials, false)
        };
        assert!(!plays(0, 12_000).1);
        // It sleeps for an hour, and dials at once when it wakes.
        let woken = 3_612_000;
        let (dials, gave_up) = plays(woken, woken + 47_000);
        assert_eq!((dials[0], gave_up), (woken, false));
        // Of a minute, 12 s and half of one were spent before.
        assert!(plays(woken + 47_000, woken + 47_600).1);
    }

    #[test]
    fn only_a_ticket_that_is_out_of_date_is_forgotten() {
        let mut rejoin = Rejoin::default();
        let ticket = ticket();
        rejoin.keep(ticket.clone());
        rejoin.lose(Duration::ZERO);
        for ms in [0, 100, 300] {
            assert!(dialled(&mut rejoin, ms * MS).is_some());
            rejoin.fail(ms * MS);
        }
        rejoin.find();
        assert!(!rejoin.is_down() && rejoin.can_return());
        rejoin.lose(1_000 * MS);
        rejoin.forget(ticket.id());
        assert_eq!(rejoin.advise(1_000 * MS, 0), Advice::GiveUp);
    }

    #[test]
    fn who_is_let_in_only_later_tries_again_for_longer_than_it_is_barred() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        let mut dials = Vec::new();
        rejoin.lose(Duration::ZERO);
        for ms in 0..60_000 {
            if dialled(&mut rejoin, ms * MS).is_some() {
                dials.push(ms);
                rejoin.lose(ms * MS);
                rejoin.wait(ms * MS);
            }
        }
        assert_eq!(dials, [0, 15_000, 30_000, 45_000]);
        assert_eq!(rejoin.advise(60_000 * MS, 0), Advice::GiveUp);
    }

    #[test]
    fn no_more_than_three_attempts_are_on_their_way() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        rejoin.lose(Duration::ZERO);
        assert_eq!(rejoin.advise(10_000 * MS, ATTEMPTS_MAX), Advice::Wait);
        let next = rejoin.advise(10_000 * MS, ATTEMPTS_MAX - 1);
        assert!(matches!(next, Advice::Dial(_)));
    }
}
