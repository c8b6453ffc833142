//! Twinstep clients in a browser.
//!
//! ```text
//!  the game's wasm                                       the page
//!  Client ◀─▶ WebLine ◀─▶ queues ◀── twinstep_… ──▶ twinstep.js ◀── WebTransport datagrams ──▶ the server's web address
//! ```
//!
//! The page loads the game and `page/twinstep.js`, which carries datagrams, tickets and random bytes. The game needs no
//! import for that, because the page calls the exports at the end of this file. So it works in a page that uses
//! wasm-bindgen (Bevy), macroquad or neither.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use twinstep_client::{Client, NoPicture, SessionConfig};
//! use twinstep_core::testing::doc::Counter; // your simulation
//! use twinstep_web::WebLine;
//!
//! # fn frame(now: Duration, stopwatch: impl FnMut() -> Duration, held: u8) -> Result<(), Box<dyn std::error::Error>> {
//! // Once, after the page has given the ticket of its link:
//! let ticket = twinstep_web::ticket().expect("the page was opened by a link");
//! let mut client: Client<Counter, NoPicture, WebLine> = twinstep_web::join(&ticket, SessionConfig::new(Arc::new(())))?;
//! // Every frame, by the page's clock:
//! client.advance_at(now, stopwatch, |_seat| held)?;
//! # Ok(())
//! # }
//! ```
//!
//! A client that loses its server dials again, as over UDP. The page keeps the newest ticket, so a reload reconnects as
//! the same player.
//!
//! Invariant: the page is trusted with tickets, but wrong bytes from it only cause errors. All queues are bounded.

use std::collections::VecDeque;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_client::{Client, ClientStartError, Session, SessionConfig, Show, WIRE_VERSION};
use twinstep_core::Simulation;
use twinstep_udp::{
    ClientEndpoint, ClientEvent, CloseReason, ConnectError, DATAGRAM_MAX, PACKET_MAX, SendError,
    Ticket, Transport, TransportState, WebAddress,
};

/// The maximum number of datagrams, over all connections, waiting for the client, or for the page.
const WAITING_MAX: usize = 1_024;
/// The maximum number of connections waiting for the page to open them.
const DIALS_MAX: usize = 8;
/// The maximum number of random bytes kept.
const RANDOM_MAX: usize = 4_096;

/// Stands for the server's address, which is not known for a connection opened by the page.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 1);

/// The state between the page and the connections.
static BETWEEN: Mutex<Between> = Mutex::new(Between::new());

struct Between {
    lines: u32,
    dials: VecDeque<(u32, WebAddress)>,
    opened: VecDeque<u32>,
    closed: VecDeque<u32>,
    down: VecDeque<(u32, Vec<u8>)>,
    up: VecDeque<(u32, Vec<u8>)>,
    ticket: Option<Ticket>,
    kept: Option<String>,
    random: Vec<u8>,
    #[cfg(target_arch = "wasm32")]
    why: String,
    buffer: Vec<u8>,
}

impl Between {
    const fn new() -> Between {
        Between {
            lines: 0,
            dials: VecDeque::new(),
            opened: VecDeque::new(),
            closed: VecDeque::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            ticket: None,
            kept: None,
            random: Vec::new(),
            #[cfg(target_arch = "wasm32")]
            why: String::new(),
            buffer: Vec::new(),
        }
    }
}

fn between() -> MutexGuard<'static, Between> {
    BETWEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ticket in the page's link, or the newest one that the page has kept. Returns `None` if the page gave none.
#[must_use]
pub fn ticket() -> Option<Ticket> {
    between().ticket.clone()
}

/// Joins the match of a ticket. The page keeps each newer ticket.
///
/// Advance the client with [`Client::advance_at`] and the page's clock.
///
/// # Errors
/// If the ticket is for another game or protocol version or has no address for browsers, or the rules or the start
/// state hold a NaN.
pub fn join<S: Simulation, V: Show<S>>(
    ticket: &Ticket,
    config: SessionConfig<S, V>,
) -> Result<Client<S, V, WebLine>, ClientStartError> {
    ticket.check_program(S::NAME, u32::from(WIRE_VERSION))?;
    let line = WebLine::dial(ticket)?;
    let client = Client::with_transport(line, Session::new(config)?);
    let dial = |_: Option<&mut WebLine>, ticket: &Ticket, _| WebLine::dial(ticket);
    Ok(client
        .with_ticket(ticket)
        .reconnecting(dial)
        .keeping_tickets(keep))
}

fn keep(ticket: &Ticket) -> bool {
    let mut between = between();
    between.kept = Some(ticket.to_line());
    between.ticket = Some(ticket.clone());
    true
}

/// A transport over WebTransport, on a connection that the page opens.
pub struct WebLine {
    number: u32,
    ticket: Ticket,
    /// `None` until the page has opened the connection.
    endpoint: Option<ClientEndpoint>,
    is_closed: bool,
    now: Duration,
}

impl WebLine {
    /// Asks the page to open a connection to the server of a ticket.
    ///
    /// # Errors
    /// If the ticket names no address for browsers.
    pub fn dial(ticket: &Ticket) -> Result<WebLine, ConnectError> {
        let web = ticket.web().ok_or(ConnectError::NotForBrowsers)?;
        let mut between = between();
        between.lines += 1;
        let number = between.lines;
        if between.dials.len() == DIALS_MAX {
            between.dials.pop_front();
        }
        between.dials.push_back((number, web));
        Ok(WebLine {
            number,
            ticket: ticket.clone(),
            endpoint: None,
            is_closed: false,
            now: Duration::ZERO,
        })
    }

    fn flush(&mut self) {
        let Some(endpoint) = &mut self.endpoint else {
            return;
        };
        let mut between = between();
        while let Some((_, datagram)) = endpoint.poll_transmit() {
            // Datagrams that the page does not take are lost, as on any network.
            if between.up.len() < WAITING_MAX {
                between.up.push_back((self.number, datagram.to_vec()));
            }
        }
    }
}

/// Removes and returns the entries of one connection.
fn take<T>(queue: &mut VecDeque<T>, mut is_own: impl FnMut(&T) -> bool) -> Vec<T> {
    let mut own = Vec::new();
    for _ in 0..queue.len() {
        match queue.pop_front() {
            Some(one) if is_own(&one) => own.push(one),
            Some(one) => queue.push_back(one),
            None => break,
        }
    }
    own
}

impl Transport for WebLine {
    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        let number = self.number;
        let mut between = between();
        let is_opened = !take(&mut between.opened, |one| *one == number).is_empty();
        let datagrams = take(&mut between.down, |(line, _)| *line == number);
        let is_closed = !take(&mut between.closed, |one| *one == number).is_empty();
        drop(between);
        if is_opened && self.endpoint.is_none() {
            // The dial's timeout starts here, because the page needs time to open the connection.
            self.endpoint = Some(ClientEndpoint::connect_to(&self.ticket, SERVER, self.now));
        }
        if let Some(endpoint) = &mut self.endpoint {
            for (_, datagram) in datagrams {
                endpoint.handle(self.now, SERVER, &datagram);
            }
            endpoint.advance(self.now);
        }
        self.is_closed |= is_closed;
        self.flush();
    }

    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize> {
        loop {
            if let ClientEvent::Packet(packet) = self.endpoint.as_mut()?.poll_event()? {
                buffer[..packet.len()].copy_from_slice(packet);
                return Some(packet.len());
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), SendError> {
        let endpoint = self.endpoint.as_mut().ok_or(SendError::NotConnected)?;
        endpoint.send(packet)?;
        self.flush();
        Ok(())
    }

    fn disconnect(&mut self) {
        match &mut self.endpoint {
            Some(endpoint) => endpoint.disconnect(),
            None => self.is_closed = true,
        }
        self.flush();
    }

    fn state(&self) -> TransportState {
        let state = self.endpoint.as_ref().map(ClientEndpoint::state);
        match state.unwrap_or(TransportState::Connecting) {
            TransportState::Connecting if self.is_closed => {
                TransportState::Closed(CloseReason::NoAnswer)
            }
            TransportState::Connected if self.is_closed => {
                TransportState::Closed(CloseReason::TimedOut)
            }
            state => state,
        }
    }
}

/// The page's side of all connections, as called by the exports. Public for tests that have no page.
pub mod page {
    use super::{DATAGRAM_MAX, DIALS_MAX, RANDOM_MAX, Ticket, WAITING_MAX, WebAddress, between};

    /// Sets the ticket that [`ticket`](super::ticket) returns. Returns `false` if the text is not a ticket.
    pub fn give_ticket(text: &str) -> bool {
        let Ok(ticket) = text.parse::<Ticket>() else {
            return false;
        };
        between().ticket = Some(ticket);
        true
    }

    /// Adds random bytes from the page. Bytes beyond the bound are dropped.
    pub fn give_random(bytes: &[u8]) {
        let random = &mut between().random;
        let room = RANDOM_MAX.saturating_sub(random.len());
        random.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The number and the address of the next connection to open.
    #[must_use]
    pub fn dial() -> Option<(u32, WebAddress)> {
        between().dials.pop_front()
    }

    /// Records that a connection is open.
    pub fn opened(line: u32) {
        note(|it| &mut it.opened, line);
    }

    /// Records that a connection could not be opened, or was closed.
    pub fn closed(line: u32) {
        note(|it| &mut it.closed, line);
    }

    fn note(queue: impl Fn(&mut super::Between) -> &mut super::VecDeque<u32>, line: u32) {
        let mut between = between();
        let queue = queue(&mut between);
        // The oldest entries belong to connections that no longer exist.
        if queue.len() == DIALS_MAX * 4 {
            queue.pop_front();
        }
        queue.push_back(line);
    }

    /// Delivers a datagram that arrived on a connection.
    pub fn came(line: u32, datagram: &[u8]) {
        let down = &mut between().down;
        if datagram.len() <= DATAGRAM_MAX {
            if down.len() == WAITING_MAX {
                down.pop_front();
            }
            down.push_back((line, datagram.to_vec()));
        }
    }

    /// The next datagram to send, preceded by the number of its connection.
    #[must_use]
    pub fn outgoing() -> Option<(u32, Vec<u8>)> {
        between().up.pop_front()
    }

    /// Copies `bytes` to the buffer that the page reads, where they stay until the page's next call. Returns their
    /// number, which the game's export passes on to the page.
    pub fn answer(bytes: &[u8]) -> usize {
        let buffer = &mut between().buffer;
        buffer.clear();
        buffer.extend_from_slice(bytes);
        bytes.len()
    }

    /// Takes the newest ticket to store for the next page. Returns each ticket once.
    #[must_use]
    pub fn take_ticket_to_store() -> Option<String> {
        between().kept.take()
    }
}

/// The functions that `page/twinstep.js` calls.
#[cfg(target_arch = "wasm32")]
mod exports {
    #![expect(unsafe_code, reason = "a name that the page calls counts as unsafe")]

    use std::fmt::Write as _;

    use super::{between, page};

    /// Space for the bytes of the next call. The address is valid until then.
    #[unsafe(no_mangle)]
    extern "C" fn twinstep_buffer(len: usize) -> *mut u8 {
        let buffer = &mut between().buffer;
        buffer.resize(len.clamp(1, 65_536).max(buffer.len()), 0);
        buffer.as_mut_ptr()
    }

    fn given(len: usize) -> Vec<u8> {
        let buffer = &between().buffer;
        buffer[..len.min(buffer.len())].to_vec()
    }

    #[unsafe(no_mangle)]
    extern "C" fn twinstep_ticket(len: usize) -> u32 {
        std::panic::set_hook(Box::new(|panic| {
            // The panic may hold the lock.
            if let Ok(mut between) = super::BETWEEN.try_lock() {
                between.why = panic.to_string();
            }
        }));
        let text = String::from_utf8_lossy(&given(len)).into_owned();
        page::give_ticket(&text).into()
    }

    #[unsafe(no_mangle)]
    extern "C" fn twinstep_random(len: usize) {
        page::give_random(&given(len));
    }

    /// The length of the text that describes the next connection to open: its number, a space, its address. Returns 0
    /// if there is none.
    #[unsafe(no_mangle)]
    extern "C" fn twinstep_dial() -> usize {
        let Some((line, web)) = page::dial() else {
            return 0;
        };
        let mut text = String::new();
        write!(text, "{line} {web}").expect("writing to a String");
        page::answer(text.as_bytes())
    }

    #[unsafe(no_mangle)]
    extern "C" fn twinstep_opened(line: u32) {
        page::opened(line);
    }

    #[unsafe(no_mangle)]
    extern "C" fn twinstep_closed(line: u32) {
        page::closed(line);
    }

    #[unsafe(no_mangle)]
    extern "C" fn twinstep_came(line: u32, len: usize) {
        page::came(line, &given(len));
    }

    /// The number of a connection times 65,536, plus the length of the next datagram to send over it. Returns 0 if
    /// there is none.
    #[unsafe(no_mangle)]
    extern "C" fn twinstep_outgoing() -> u32 {
        match page::outgoing() {
            Some((line, datagram)) => line << 16 | page::answer(&datagram) as u32,
            None => 0,
        }
    }

    /// The length of a newer ticket to keep. Returns 0 if there is none.
    #[unsafe(no_mangle)]
    extern "C" fn twinstep_kept() -> usize {
        page::take_ticket_to_store().map_or(0, |line| page::answer(line.as_bytes()))
    }

    /// The length of the panic message. Returns 0 if there was no panic.
    #[unsafe(no_mangle)]
    extern "C" fn twinstep_why() -> usize {
        let why = std::mem::take(&mut between().why);
        page::answer(why.as_bytes())
    }

    fn draw(bytes: &mut [u8]) -> bool {
        let random = &mut between().random;
        let Some(left) = random.len().checked_sub(bytes.len()) else {
            return false;
        };
        bytes.copy_from_slice(&random[left..]);
        random.truncate(left);
        true
    }

    fn draw_02(bytes: &mut [u8]) -> Result<(), getrandom_02::Error> {
        let drawn = draw(bytes).then_some(());
        drawn.ok_or(getrandom_02::Error::UNSUPPORTED)
    }
    getrandom_02::register_custom_getrandom!(draw_02);

    #[unsafe(no_mangle)]
    unsafe extern "Rust" fn __getrandom_v03_custom(
        to: *mut u8,
        len: usize,
    ) -> Result<(), getrandom::Error> {
        // Written before it is read, because the caller's bytes may be uninitialised.
        // SAFETY: getrandom passes `len` writable bytes.
        let bytes = unsafe {
            to.write_bytes(0, len);
            std::slice::from_raw_parts_mut(to, len)
        };
        draw(bytes)
            .then_some(())
            .ok_or(getrandom::Error::UNSUPPORTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_udp::{MatchId, TicketKey, TicketSpec};

    fn ticket() -> Ticket {
        let spec = TicketSpec {
            game: "a game",
            wire_version: 1,
            identity: "anna",
            match_id: MatchId(1),
            seats: 1,
            servers: &["play.example.org:7777".parse().unwrap()],
            life: Duration::from_secs(60),
            timeout: Duration::from_secs(5),
            now_unix: Duration::ZERO,
        };
        Ticket::issue(&TicketKey::generate(), &spec).unwrap()
    }

    /// The queues are shared by all tests of the process, so this is one test.
    #[test]
    fn a_connection_dials_once_the_page_opens_it_and_ends_when_the_page_closes_it() {
        let refused = WebLine::dial(&ticket()).map(drop).unwrap_err();
        assert!(refused.to_string().contains("browser"), "{refused}");
        let web: WebAddress = "play.example.org:7778".parse().unwrap();
        let ticket = ticket().with_web(&web);
        let mut line = WebLine::dial(&ticket).unwrap();
        let mut unopened = WebLine::dial(&ticket).unwrap();
        let dials = [page::dial(), page::dial(), page::dial()];
        let expected = [&line, &unopened].map(|one| Some((one.number, web.clone())));
        assert_eq!(dials, [expected[0].clone(), expected[1].clone(), None]);
        for seconds in 1..9 {
            line.advance(Duration::from_secs(seconds));
            assert_eq!(line.state(), TransportState::Connecting);
            assert_eq!(page::outgoing(), None, "nothing is sent before");
        }
        page::opened(line.number);
        line.advance(Duration::from_secs(9));
        line.advance(Duration::from_secs(10));
        let (number, knock) = page::outgoing().expect("a knock");
        assert!(number == line.number && knock.len() > 100);
        for n in 0..2_000 {
            page::came(line.number, &[7; DATAGRAM_MAX][..n % DATAGRAM_MAX]);
        }
        assert_eq!(between().down.len(), WAITING_MAX);
        line.advance(Duration::from_secs(11));
        page::closed(line.number);
        page::closed(unopened.number);
        line.advance(Duration::from_secs(12));
        unopened.advance(Duration::from_secs(12));
        for one in [&line, &unopened] {
            let closed = TransportState::Closed(CloseReason::NoAnswer);
            assert_eq!(one.state(), closed);
        }
        assert!(between().down.is_empty() && between().closed.is_empty());
    }
}
