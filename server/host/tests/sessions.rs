//! Sessions over real sockets on loopback: reconnect tickets, take-over, a restarted client, a broken connection.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use twinstep_client::{Client, Event, SessionConfig, SessionEnd};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{PlayerId, Tick};
use twinstep_host::{Running, Server};
use twinstep_protocol::lineage::REVOKE_SLACK_MS;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    CloseReason, Identity, Role, Ticket, TicketKey, Transport, TransportState, UdpClient,
};

use crate::folder::Folder;
use crate::players::{closed_by, play_blocking, wait_blocking};

fn server() -> Server<Counter> {
    Server::action(Counter::default(), ()).players(4)
}

type Player = crate::players::Player<Counter>;

fn play_for(one: &mut Player, time: Duration) -> Result<(), SessionEnd> {
    let end = one.client.now() + time;
    one.play_until(|one| one.client.now() >= end)
}

fn ticket(one: &mut Player) -> Ticket {
    let mut ticket = None;
    one.play_until(|one| {
        ticket = ticket.take().or_else(|| one.tickets.try_recv().ok());
        ticket.is_some()
    })
    .unwrap();
    ticket.unwrap()
}

/// One entry per reconnect, `true` if the session resumed from frames.
fn returns(one: &Player) -> Vec<bool> {
    let resumed = |event: &Event| match event {
        Event::Reconnected { resumed, .. } => Some(*resumed),
        _ => None,
    };
    one.events.iter().filter_map(resumed).collect()
}

/// A link to the server that can be cut: it forwards a client's datagrams from its own socket, like a NAT. When cut, it
/// drops these sockets, so that the next datagram comes from a new address.
struct Line {
    address: SocketAddr,
    /// The number of times that the link was cut or restored. If it is odd, the link is down.
    cuts: Arc<AtomicU32>,
}

impl Line {
    fn bind() -> (Line, UdpSocket) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        (Line { address, cuts }, socket)
    }

    #[expect(clippy::disallowed_methods, reason = "a network runs by itself")]
    fn carry(&self, front: UdpSocket, server: SocketAddr) {
        let cuts = self.cuts.clone();
        front.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let mut seen = 0;
            let mut behind: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
            let mut buffer = [0; 1_500];
            loop {
                let now = cuts.load(Ordering::Relaxed);
                if now != seen {
                    seen = now;
                    behind.clear();
                }
                while let Ok((len, from)) = front.recv_from(&mut buffer) {
                    if now % 2 == 1 {
                        continue;
                    }
                    let socket = behind.entry(from).or_insert_with(|| {
                        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                        socket.set_nonblocking(true).unwrap();
                        socket
                    });
                    let _ = socket.send_to(&buffer[..len], server);
                }
                for (client, socket) in &behind {
                    while let Ok(len) = socket.recv(&mut buffer) {
                        let _ = front.send_to(&buffer[..len], client);
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }

    fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    fn mend(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }
}

fn with_a_line() -> (Running<Counter>, Line) {
    let (line, front) = Line::bind();
    let server = server()
        .public(line.address.into())
        .listen("127.0.0.1:0")
        .unwrap();
    line.carry(front, server.local_addr());
    (server, line)
}

fn seats(server: &Running<Counter>) -> usize {
    let present = |match_: &mut twinstep_server::Match<Counter>| match_.world().present().len();
    server.inspect(present).unwrap()
}

#[test]
fn a_client_reconnects_automatically_from_a_new_address() {
    let (server, line) = with_a_line();
    let mut anna = Player::join(&server.ticket("anna").unwrap());
    ticket(&mut anna);
    line.cut();
    anna.play_until(|anna| anna.client.session().is_returning())
        .unwrap();
    assert!(anna.events.contains(&Event::Reconnecting));
    line.mend();
    anna.play_until(|anna| !anna.client.session().is_returning())
        .unwrap();
    assert_eq!(returns(&anna), [true], "by frames");
    let had = anna.tick();
    anna.play_until(|anna| anna.tick() > had + 60).unwrap();
    assert_eq!(anna.client.session().seats(), [PlayerId(0)]);
    assert_eq!(seats(&server), 1);
    server.shutdown();
}

#[test]
fn a_client_gets_a_new_ticket_for_each_reconnect() {
    let (server, line) = with_a_line();
    let mut anna = Player::join(&server.ticket("anna").unwrap());
    for round in 1..=4 {
        ticket(&mut anna);
        line.cut();
        play_for(&mut anna, Duration::from_millis(1_500)).unwrap();
        line.mend();
        anna.play_until(|anna| returns(anna).len() == round)
            .unwrap();
    }
    assert_eq!(returns(&anna), [true; 4]);
    server.shutdown();
}

#[test]
fn a_restarted_client_gets_its_seat_back_while_its_old_session_is_alive() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let mut old = Player::join(&server.ticket("anna").unwrap());
    let mut bob = Player::join(&server.ticket("bob").unwrap());
    let ticket = ticket(&mut old);
    // A world to join with is sent at most once in five seconds.
    play_all(&mut [&mut old, &mut bob], Duration::from_millis(5_500));
    let seat = old.client.session().seats().to_vec();

    let mut new = Player::join(&ticket);
    play_all(&mut [&mut new, &mut bob], Duration::from_millis(900));
    assert_eq!(new.client.session().seats(), seat);
    let taken = old.play_until(|_| false).unwrap_err();
    assert_eq!(taken, closed_by(CloseCode::TakenOver));
    assert_eq!(seats(&server), 2);
    play_all(&mut [&mut new, &mut bob], Duration::from_millis(500));
    assert!(new.tick() > Tick(300) && bob.tick() > Tick(300));
    server.shutdown();
}

/// Dials with a ticket and drops the client. Returns the state that the transport reached.
#[expect(clippy::disallowed_methods, reason = "a transport needs a time")]
fn dial_once(ticket: &Ticket) -> TransportState {
    let mut transport = UdpClient::connect(ticket, Duration::ZERO).unwrap();
    let began = Instant::now();
    wait_blocking("an answer", || {
        transport.advance(began.elapsed());
        transport.state() != TransportState::Connecting
    });
    transport.state()
}

fn play_all(players: &mut [&mut Player], time: Duration) {
    let end = players[0].client.now() + time;
    let done = |players: &mut [&mut Player]| players[0].client.now() >= end;
    play_blocking("a while", players, done).unwrap();
}

fn kill(player: Player) {
    drop(player);
}

fn is_out_of_date(server: &Running<Counter>, name: &str, role: Role, ticket: &Ticket) -> bool {
    let (identity, stamp) = (Identity::new(name, role), ticket.stamp());
    let look = server.inspect(move |match_| match_.is_out_of_date(&identity, &stamp));
    look.unwrap()
}

/// Findings O1, O2: a client killed before it had stored a newer ticket was locked out forever.
#[test]
fn a_ticket_admits_its_holder_until_a_newer_one_is_stored() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let ticket = server.ticket("anna").unwrap();
    for round in 0..3 {
        let mut anna = Player::join_and_keep_nothing(&ticket);
        anna.play_until(|anna| anna.tick() > Tick(0))
            .unwrap_or_else(|ended| panic!("round {round}: {ended}"));
        assert_eq!(anna.client.session().seats(), [PlayerId(0)]);
        kill(anna);
    }
    server.shutdown();
}

/// Once a newer ticket is stored, older tickets are refused, and the newer ticket works as often as needed.
#[test]
fn a_stored_ticket_admits_a_new_process_and_copies_of_older_tickets_are_refused() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let first = server.ticket("anna").unwrap();
    let mut anna = Player::join(&first);
    let stored = ticket(&mut anna);
    let (older, newer) = (first.stamp(), stored.stamp());
    assert_eq!(older.lineage, newer.lineage);
    assert!(newer.generation > older.generation);
    anna.play_until(|_| is_out_of_date(&server, "anna", Role::Player, &first))
        .unwrap();
    let copy = Player::join(&first).play_until(|_| false).unwrap_err();
    assert_eq!(copy, closed_by(CloseCode::Superseded));
    assert!(copy.to_string().contains("a newer one"), "{copy}");
    assert!(!anna.client.session().is_returning(), "she played on");
    kill(anna);
    for _ in 0..2 {
        let mut back = Player::join_and_keep_nothing(&stored);
        back.play_until(|back| back.tick() > Tick(0)).unwrap();
        assert_eq!(back.client.session().seats(), [PlayerId(0)]);
        kill(back);
    }
    server.shutdown();
}

/// Finding O1: a ticket counts as used only after its session plays. An interrupted join does not use up its ticket.
#[test]
fn an_interrupted_join_does_not_use_up_its_ticket() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let older = server.ticket("anna").unwrap();
    std::thread::sleep(Duration::from_millis(2));
    let newer = server.ticket("anna").unwrap();
    for _ in 0..3 {
        // The client is admitted, and gone before its hello.
        assert_eq!(dial_once(&newer), TransportState::Connected);
    }
    let mut anna = Player::join_and_keep_nothing(&older);
    anna.play_until(|anna| anna.tick() > Tick(30)).unwrap();
    server.shutdown();
}

/// A client that could not store its new ticket reports that, and continues with the ticket that a new process would
/// find.
#[test]
fn an_unstored_ticket_does_not_invalidate_older_tickets() {
    let (server, line) = with_a_line();
    let ticket = server.ticket("anna").unwrap();
    let client = Client::connect(&ticket, SessionConfig::new(Arc::new(()))).unwrap();
    let mut anna = Player::of(client.keeping_tickets(|_| false));
    play_for(&mut anna, Duration::from_millis(1_000)).unwrap();
    line.cut();
    anna.play_until(|anna| anna.client.session().is_returning())
        .unwrap();
    line.mend();
    anna.play_until(|anna| !anna.client.session().is_returning())
        .unwrap();
    assert!(!is_out_of_date(&server, "anna", Role::Player, &ticket));
    kill(anna);
    let mut back = Player::join_and_keep_nothing(&ticket);
    back.play_until(|back| back.tick() > Tick(0)).unwrap();
    server.shutdown();
}

#[test]
fn a_spectator_reconnects_with_its_stored_ticket() {
    let server = server().spectators(4, 0).listen("127.0.0.1:0").unwrap();
    let first = server.spectator_ticket("eve").unwrap();
    let mut eve = Player::join(&first);
    let stored = ticket(&mut eve);
    eve.play_until(|_| is_out_of_date(&server, "eve", Role::Spectator, &first))
        .unwrap();
    let as_a_player = is_out_of_date(&server, "eve", Role::Player, &first);
    assert!(!as_a_player, "as a player she is another");
    kill(eve);
    let mut back = Player::join_and_keep_nothing(&stored);
    back.play_until(|back| back.tick() > Tick(0)).unwrap();
    server.shutdown();
}

#[test]
fn a_revoked_identity_needs_a_new_ticket() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let ticket = server.ticket("anna").unwrap();
    let made_before = ticket.stamp().issued_unix_ms + REVOKE_SLACK_MS;
    server
        .inspect(move |match_| match_.revoke(&Identity::new("anna", Role::Player), made_before))
        .unwrap();
    let refused = Player::join(&ticket).play_until(|_| false).unwrap_err();
    assert_eq!(refused, closed_by(CloseCode::Superseded));
    // The server dates its own tickets after the slack.
    let mut anna = Player::join(&server.ticket("anna").unwrap());
    anna.play_until(|anna| anna.tick() > Tick(0)).unwrap();
    server.shutdown();
}

/// Each use of a copied old ticket took one of the slots shared by all identities.
#[test]
fn outdated_tickets_are_refused_at_the_handshake_even_after_a_restart() {
    let refused = TransportState::Closed(CloseReason::Superseded);
    let (key, folder) = (TicketKey::generate(), Folder::new("door"));
    let lineages = folder.file("lineages");
    let server = || {
        self::server()
            .keys(key.clone(), None)
            .host(|host| host.lineages_file = Some(lineages.clone()))
    };
    let running = server().listen("127.0.0.1:0").unwrap();
    let address = running.local_addr();
    let first = running.ticket("anna").unwrap();
    let mut anna = Player::join(&first);
    let stored = ticket(&mut anna);
    anna.play_until(|_| is_out_of_date(&running, "anna", Role::Player, &first))
        .unwrap();
    assert_eq!(dial_once(&first), refused);
    let sessions = running.inspect(|match_| match_.sessions());
    assert_eq!(sessions, Ok(1));
    running.shutdown();
    let again = server().listen(&address.to_string()).unwrap();
    assert_eq!(dial_once(&first), refused);
    let mut back = Player::join_and_keep_nothing(&stored);
    back.play_until(|back| back.tick() > Tick(0)).unwrap();
    again.shutdown();
}

#[tokio::test]
async fn tickets_can_be_issued_within_another_runtime() {
    let made = tokio::task::spawn_blocking(|| server().listen("127.0.0.1:0").unwrap());
    let server = made.await.unwrap();
    let issuer = server.issuer();
    let before = server.ticket("anna").unwrap();
    let ticket = issuer.issue("anna", 1, Duration::from_secs(60)).unwrap();
    assert_ne!(ticket.stamp().lineage, before.stamp().lineage);
    assert!(ticket.expires_unix_s() < before.expires_unix_s());
    tokio::task::spawn_blocking(|| server.shutdown())
        .await
        .unwrap();
}

#[test]
fn a_client_gives_up_on_a_lost_server_when_its_tickets_expire() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let address = server.local_addr();
    let mut anna = Player::join(&server.ticket("anna").unwrap());
    ticket(&mut anna);
    // Another server, which has another key, accepts none of the tickets.
    drop(server);
    let _other = self::server().listen(&address.to_string());
    anna.play_until(|anna| anna.client.session().is_returning())
        .unwrap();
    play_for(&mut anna, Duration::from_secs(3)).unwrap();
    assert!(
        anna.client.session().prediction().is_some(),
        "the game is still shown"
    );
    assert!(returns(&anna).is_empty());
}

/// Row 73: a server in a player's own process, with the same calls; it may outlive that player's game.
#[test]
fn a_listen_server_runs_server_and_client_in_one_process() {
    let server = server().listen("127.0.0.1:0").unwrap();
    let mut host = Player::join(&server.ticket("host").unwrap());
    let mut guest = Player::join(&server.ticket("guest").unwrap());
    host.play_until(|host| host.tick() > Tick(30)).unwrap();
    guest.play_until(|guest| guest.tick() > Tick(30)).unwrap();
    host.client.leave();
    // The server runs on for its players, and ends with the last one.
    std::thread::scope(|scope| {
        let runs_on = scope.spawn(|| server.run_until_deserted());
        let seen = guest.tick();
        guest.play_until(|guest| guest.tick() > seen + 60).unwrap();
        assert!(!runs_on.is_finished());
        guest.client.leave();
        runs_on.join().unwrap().unwrap();
    });
}

/// Finding K3-A: making a ticket waited for the file of outdated tickets.
#[test]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
fn tickets_are_issued_while_the_revocation_file_is_stalled() {
    let folder = Folder::new("still");
    let server = server().host(|host| host.lineages_file = Some(folder.file("lineages")));
    let server = server.listen("127.0.0.1:0").unwrap();
    let lock = std::fs::File::open(folder.file("lineages.lock")).unwrap();
    lock.lock().unwrap();
    let mut anna = Player::join(&server.ticket("anna").unwrap());
    anna.play_until(|anna| anna.tick() > Tick(30)).unwrap();
    let began = std::time::Instant::now();
    let ticket = server.ticket("bob").unwrap();
    assert!(began.elapsed() < Duration::from_millis(100));
    let mut bob = Player::join(&ticket);
    bob.play_until(|bob| bob.tick() > Tick(0)).unwrap();
    drop(lock);
    server.shutdown();
}
