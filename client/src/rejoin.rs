//! [`Rejoin`]: decides when a disconnected client dials again, with which ticket, and at which address. It has no clock
//! and no socket.
//!
//! ```text
//!         silent for 0.7 s, closed, or moved
//!  Up ────────────────────────────────────────▶ Down ── dial ─▶ up to 3 attempts at a time, each with
//!   ▲                                            │               a different ticket or address
//!   ├── the old path responds again ◀────────────┤
//!   └── a session on the first attempt that connects           after 60 s: gives up
//! ```
//!
//! Using a ticket invalidates older ones. So the client first dials with the ticket that a new process of the client
//! would find, the *held* ticket: the newest stored ticket, or the one with which the client connected.
//!
//! Invariant: a failing address or ticket does not keep the client from trying the others. Only the time limit or a
//! lack of tickets ends the attempts: a full server, or an address that does not respond, does not predict the result
//! of the next attempt. An outdated ticket is dropped, and so is the oldest of too many.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_udp::Ticket;

use crate::session::download::AWAKE_MAX;

pub(crate) const TICKETS_KEPT: usize = 3;
pub(crate) const ATTEMPTS_MAX: usize = 3;
/// A server that is silent for this long counts as lost. (A server sends ten packets a second, or two a second to a
/// client silent for four seconds.)
pub(crate) const SILENCE: Duration = Duration::from_millis(700);
/// A server that responded, but does not send a welcome or a part of a world for this long, is dialled again. (A match
/// starts a join of an identity at most once in five seconds, and other joiners may come first.)
pub(crate) const STALLED: Duration = Duration::from_secs(15);
/// How long a client keeps trying to reconnect, not counting time asleep.
pub(crate) const RETURN_WITHIN: Duration = Duration::from_secs(60);
/// The pause before the second attempt. It doubles with each attempt, up to [`PAUSE_MAX`], while the earlier attempts
/// continue.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The pause between the first three attempts at a server that announced its restart, or a move of its match. Each
/// attempt repeats its first datagram four times a second, so one of the three reaches a server within this time of its
/// start.
const PAUSE_EXPECTED: Duration = Duration::from_millis(83);
/// The pause after the first failed attempt. It doubles with each failure, up to [`PAUSE_MAX`].
const FAILED_FIRST: Duration = Duration::from_millis(100);
/// The maximum number of a ticket's addresses that an attempt dials. It dials the second if the first does not respond
/// soon. A server accepts 32 dials of an identity in 20 s; three attempts at a time, each for 5 s, make 24.
const ADDRESSES_DIALLED: usize = 2;
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The pause after the server refused this player temporarily. [`RETURN_WITHIN`] is longer than the server bars a slow
/// client.
const PAUSE_BARRED: Duration = Duration::from_secs(15);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Wait,
    /// Dial with this ticket, which names at most [`ADDRESSES_DIALLED`] addresses.
    Dial(Box<Ticket>),
    GiveUp,
}

#[derive(Debug, Default)]
pub(crate) struct Rejoin {
    /// The tickets, dialled from the back: the held ticket, then the newest.
    tickets: VecDeque<Ticket>,
    held: Option<u64>,
    down: Option<Down>,
    now: Duration,
    /// The part of `now` spent asleep.
    slept: Duration,
}

#[derive(Debug)]
struct Down {
    /// The time of the loss, not counting time asleep.
    since: Duration,
    dial_at: Duration,
    pause: Duration,
    failed_pause: Duration,
    dialled: usize,
    /// Whether the server announced a restart or a move. If so, its own address is dialled last.
    is_expected: bool,
}

impl Rejoin {
    pub(crate) fn pass_time(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.now);
        self.slept += gap.saturating_sub(AWAKE_MAX);
        self.now += gap;
    }

    /// Makes `ticket` the only one, because a new process of this client would find it.
    pub(crate) fn hold(&mut self, ticket: Ticket) {
        self.tickets.clear();
        self.held = Some(ticket.id());
        self.tickets.push_back(ticket);
    }

    /// Keeps a newer ticket that only this process has.
    pub(crate) fn keep(&mut self, ticket: Ticket) {
        if self.tickets.len() == TICKETS_KEPT {
            self.tickets.pop_front();
        }
        // The held ticket stays at the back, where dialling starts.
        let is_held = |last: &Ticket| Some(last.id()) == self.held;
        let held = match self.tickets.back().is_some_and(is_held) {
            true => self.tickets.pop_back(),
            false => None,
        };
        self.tickets.push_back(ticket);
        self.tickets.extend(held);
    }

    /// Dials in quick succession, and other addresses first, because the server announced a restart or a move.
    pub(crate) fn expect(&mut self) {
        if let Some(down) = &mut self.down {
            down.is_expected = true;
        }
    }

    pub(crate) fn can_return(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Returns `true` if a ticket names several addresses, or a host name (its address may change).
    pub(crate) fn leads_elsewhere(&self) -> bool {
        let leads = |ticket: &Ticket| {
            ticket.servers().len() > 1 || ticket.servers().any(|server| server.socket().is_none())
        };
        self.tickets.iter().any(leads)
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    pub(crate) fn lose(&mut self, now: Duration) {
        self.down.get_or_insert(Down {
            // Measured by a clock without time asleep, so that reconnecting has not expired when a laptop wakes up.
            since: now.saturating_sub(self.slept),
            dial_at: now,
            pause: PAUSE_FIRST,
            failed_pause: FAILED_FIRST,
            dialled: 0,
            is_expected: false,
        });
    }

    pub(crate) fn wait(&mut self, now: Duration) {
        if let Some(down) = &mut self.down {
            down.dial_at = now + PAUSE_BARRED;
        }
    }

    pub(crate) fn fail(&mut self, now: Duration) {
        if let Some(down) = &mut self.down {
            // A failure only brings the next attempt forward; the planned one is never postponed.
            down.dial_at = down.dial_at.min(now + down.failed_pause);
            down.failed_pause = (down.failed_pause * 2).min(PAUSE_MAX);
        }
    }

    pub(crate) fn forget(&mut self, ticket: u64) {
        self.tickets.retain(|kept| kept.id() != ticket);
    }

    pub(crate) fn find(&mut self) {
        self.down = None;
    }

    /// Called once per frame. `attempts` is the number of running attempts.
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
        // The held ticket first, then the newest. Each attempt starts with the address after the previous attempt's.
        let (round, n) = (
            down.dialled / self.tickets.len(),
            down.dialled % self.tickets.len(),
        );
        let ticket = &self.tickets[self.tickets.len() - 1 - n];
        down.dialled += 1;
        // A restarting server is back soon, so the first attempts follow each other quickly.
        if down.is_expected && down.dialled < ATTEMPTS_MAX {
            down.dial_at = now + PAUSE_EXPECTED;
        } else {
            down.dial_at = now + down.pause;
            down.pause = (down.pause * 2).min(PAUSE_MAX);
        }
        // The server that announced the move no longer has the match, so its address is skipped at first.
        let address = usize::from(down.is_expected) + round + n;
        Advice::Dial(Box::new(
            ticket.with_first_address(address, ADDRESSES_DIALLED),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use twinstep_udp::{MatchId, ServerAddress, TicketKey, TicketSpec};

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
            match_id: MatchId(1),
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

    fn dialled(rejoin: &mut Rejoin, now: Duration) -> Option<(u64, ServerAddress)> {
        match rejoin.advise(now, 0) {
            Advice::Dial(ticket) => Some((ticket.id(), ticket.servers().next().unwrap())),
            _ => None,
        }
    }

    /// Findings O1, O2: a client that stores no tickets used newer ones, and so invalidated its
    /// player's ticket.
    #[test]
    fn the_held_ticket_is_tried_first_and_then_the_newest_tickets() {
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

    // Finding R7.
    #[test]
    fn the_newest_ticket_is_tried_first_after_the_held_one_is_outdated() {
        let mut rejoin = Rejoin::default();
        let tickets: Vec<Ticket> = (0..3).map(|_| ticket()).collect();
        rejoin.hold(tickets[0].clone());
        rejoin.keep(tickets[1].clone());
        rejoin.forget(tickets[0].id());
        rejoin.keep(tickets[2].clone());
        rejoin.lose(Duration::ZERO);
        let tried = dialled(&mut rejoin, Duration::ZERO).map(|(id, _)| id);
        assert_eq!(tried, Some(tickets[2].id()));
    }

    #[test]
    fn the_newest_stored_ticket_is_used_for_every_dial() {
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

    /// Finding C8: a client dials only the addresses of its tickets; the server that announced the move comes last.
    #[test]
    fn a_server_that_moved_its_match_is_dialled_last() {
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
    fn every_address_of_every_ticket_is_dialled() {
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
    fn redial_backoff_grows_to_two_seconds_and_reconnecting_stops_after_a_minute() {
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

    /// Finding P3-P3: a laptop gave up when its lid was opened, before it had dialled.
    #[test]
    fn time_asleep_does_not_count() {
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
        // It sleeps for an hour, and dials immediately when it wakes.
        let woken = 3_612_000;
        let (dials, gave_up) = plays(woken, woken + 47_000);
        assert_eq!((dials[0], gave_up), (woken, false));
        // 12 s of the minute were used before, and half a second of the sleep counted.
        assert!(plays(woken + 47_000, woken + 47_600).1);
    }

    #[test]
    fn only_an_outdated_ticket_is_dropped() {
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
    fn a_barred_client_redials_every_15_s_and_gives_up_after_60_s() {
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
    fn at_most_three_attempts_run_at_a_time() {
        let mut rejoin = Rejoin::default();
        rejoin.keep(ticket());
        rejoin.lose(Duration::ZERO);
        assert_eq!(rejoin.advise(10_000 * MS, ATTEMPTS_MAX), Advice::Wait);
        let next = rejoin.advise(10_000 * MS, ATTEMPTS_MAX - 1);
        assert!(matches!(next, Advice::Dial(_)));
    }
}
