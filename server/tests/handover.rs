//! One server process hands its match over to another one, and its clients follow. Over real sockets on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_client::{Client, Event, SessionConfig};
use twinstep_core::Tick;
use twinstep_core::packet::hello::Hello;
use twinstep_core::testing::doc::Counter;
use twinstep_server::MatchConfig;
use twinstep_server::host::{AdminError, HostError, Running, Server, Taker, take_over};
use twinstep_udp::{Ticket, TicketKey};

const PATIENCE: Duration = Duration::from_secs(20);

/// A folder of one test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The header of whoever may change something.
    fn token(&self) -> String {
        let text = std::fs::read_to_string(self.0.join("token")).unwrap();
        format!("Authorization: Bearer {}", text.lines().last().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn server(key: &TicketKey, folder: &Folder) -> Server<Counter> {
    Server::action(Counter::default(), ())
        .players(4)
        .spectators(4, 0)
        .key(key.clone())
        .serials_file(folder.0.join("serials"))
        .admin(loopback())
        .admin_token(folder.0.join("token"))
}

struct Player {
    client: Client<Counter>,
    tickets: std::sync::mpsc::Receiver<Ticket>,
    events: Vec<Event>,
}

fn join(ticket: &Ticket) -> Player {
    let (send, tickets) = std::sync::mpsc::sync_channel(64);
    let client = Client::connect(ticket, SessionConfig::new(Arc::new(()))).unwrap();
    Player {
        client: client.keeping(move |ticket| send.try_send(ticket.clone()).is_ok()),
        tickets,
        events: Vec::new(),
    }
}

impl Player {
    fn tick(&self) -> Tick {
        let authority = self.client.session.authority();
        authority.map_or(Tick(0), |world| world.tick())
    }
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
fn play(players: &mut [Player], mut done: impl FnMut(&mut [Player]) -> bool) {
    let began = Instant::now();
    while !done(players) {
        assert!(began.elapsed() < PATIENCE, "nothing came of it");
        for player in &mut *players {
            player.client.advance(|_| Default::default()).unwrap();
            let events = std::iter::from_fn(|| player.client.session.poll_event());
            player.events.extend(events);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The answer to a request as it is typed.
fn http(address: SocketAddr, request: &str) -> String {
    http_with(address, request, "")
}

fn http_with(address: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{request}\r\nHost: {address}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn is_over(server: &Running<Counter>) -> bool {
    server.inspect(|_| ()).is_err()
}

#[test]
fn a_match_moves_to_another_server_and_its_clients_follow() {
    let (key, folder) = (TicketKey::generate(), Folder::new("moves"));
    let old = server(&key, &folder).journal(folder.0.join("match.journal"));
    let old = old.listen("127.0.0.1:0").unwrap();
    let mut players = [
        join(&old.ticket("anna").unwrap()),
        join(&old.ticket("bob").unwrap()),
        join(&old.spectator_ticket("watcher").unwrap()),
    ];
    play(&mut players, |players| {
        players.iter().all(|player| player.tick() > Tick(60))
    });
    let seats: Vec<_> = players
        .iter()
        .map(|player| player.client.session.seats().to_vec())
        .collect();

    // The other process asks from a thread of its own, while the clients play on.
    let admin = old.admin_addr().unwrap();
    let new = std::thread::scope(|scope| {
        let taking = scope.spawn(|| server(&key, &folder).take_over(admin).listen("127.0.0.1:0"));
        play(&mut players, |_| taking.is_finished());
        taking.join().unwrap().unwrap()
    });
    play(&mut players, |players| {
        let back = |event: &Event| matches!(event, Event::Reconnected { .. });
        players.iter().all(|p| p.events.iter().any(back))
    });
    assert!(is_over(&old));
    let seen = players[0].tick();
    play(&mut players, |players| {
        players.iter().all(|player| player.tick() > seen + 60)
    });
    for (player, seats) in players.iter().zip(seats) {
        let resumed = Event::Reconnected {
            resumed: true,
            lost_ticks: 0,
        };
        assert!(player.events.contains(&resumed), "{:?}", player.events);
        assert_eq!(player.client.session.seats(), seats);
    }
    let (tick, ours) = {
        let world = players[0].client.session.authority().unwrap();
        (world.tick(), world.digest().unwrap())
    };
    let theirs = new.inspect(move |game| game.digest_at(tick)).unwrap();
    assert_eq!(theirs, Some(ours));
    // From here on tickets name the new server.
    let newest = players[0].tickets.try_iter().last().unwrap();
    assert_eq!(newest.servers().collect::<Vec<_>>(), [new.local_addr()]);
    new.shutdown();
    old.shutdown();
}

#[test]
fn a_match_without_a_journal_stays_where_it_is() {
    let (key, folder) = (TicketKey::generate(), Folder::new("stays"));
    let old = server(&key, &folder).listen("127.0.0.1:0").unwrap();
    let admin = old.admin_addr().unwrap();
    let refused = server(&key, &folder).take_over(admin).listen("127.0.0.1:0");
    let error = refused.err().unwrap();
    assert!(matches!(
        error,
        HostError::Admin(AdminError::Refused { .. })
    ));
    assert!(error.to_string().contains("no journal"), "{error}");
    assert!(!is_over(&old), "it plays on");
    old.shutdown();
}

/// Whatever keeps the new server from starting is found before the old one stops anything.
#[test]
fn a_server_that_cannot_start_takes_nothing_over() {
    let (key, folder) = (TicketKey::generate(), Folder::new("cannot-start"));
    let old = server(&key, &folder).journal(folder.0.join("match.journal"));
    let old = old.listen("127.0.0.1:0").unwrap();
    let admin = old.admin_addr().unwrap();
    let fails = |server: Server<Counter>| {
        let error = server.take_over(admin).listen("127.0.0.1:0").err().unwrap();
        assert!(!is_over(&old), "it is over, although: {error}");
        error
    };

    let error = fails(server(&key, &folder).admin(admin));
    let taken = matches!(error, HostError::Admin(AdminError::Listen { .. }));
    assert!(taken, "{error}");

    let error = fails(server(&key, &folder).players(2)).to_string();
    for words in ["match 1 stays here", "4 seats", "the other server 2"] {
        assert!(error.contains(words), "{error}");
    }

    let damaged = folder.0.join("damaged");
    std::fs::write(&damaged, "no ticket\n").unwrap();
    let error = fails(server(&key, &folder).serials_file(damaged));
    assert!(matches!(error, HostError::Serials(_)), "{error}");

    let config = MatchConfig {
        command_delay: 200,
        ..MatchConfig::action()
    };
    let error = fails(server(&key, &folder).policies(config));
    assert!(matches!(error, HostError::Match(_)), "{error}");

    // Sound by itself, but not for a match without a command delay.
    let error = fails(server(&key, &folder).policies(MatchConfig::strategy())).to_string();
    for words in ["match 1 stays here", "command delay is 0", "[1, 2, 3, 4]"] {
        assert!(error.contains(words), "{error}");
    }

    // Where the journal cannot be opened, as by another user.
    let (journal, away) = (folder.0.join("match.journal"), folder.0.join("away"));
    std::fs::rename(&journal, &away).unwrap();
    let error = fails(server(&key, &folder));
    assert!(
        matches!(error, HostError::Admin(AdminError::Journal { .. })),
        "{error}"
    );
    std::fs::rename(&away, &journal).unwrap();

    let far: SocketAddr = "203.0.113.7:7777".parse().unwrap();
    // Another version, as another build would say.
    let hello = Hello::of::<Counter>(&(), "").unwrap();
    let mut taker = Taker::new(&hello, &MatchConfig::action());
    taker.version += 1;
    let error = take_over(admin, &[far], &taker, &folder.0.join("token"))
        .err()
        .unwrap()
        .to_string();
    let version = format!("version {}", taker.version);
    assert!(
        error.contains("stays here") && error.contains(&version),
        "{error}"
    );
    assert!(!is_over(&old));
    let nonsense = format!(
        "POST /drain?to=203.0.113.7:7777 HTTP/1.1\r\nContent-Length: 9\r\n{}",
        folder.token()
    );
    let answer = http_with(admin, &nonsense, "{\"no\":1} ");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(!is_over(&old));
    old.shutdown();
}

#[test]
fn the_admin_port_tells_of_life_and_matches_to_this_machine_alone() {
    let (key, folder) = (TicketKey::generate(), Folder::new("admin"));
    let running = server(&key, &folder).listen("127.0.0.1:0").unwrap();
    let mut players = [join(&running.ticket("anna").unwrap())];
    play(&mut players, |players| players[0].tick() > Tick(60));
    let admin = running.admin_addr().unwrap();
    assert!(http(admin, "GET /livez HTTP/1.1").starts_with("HTTP/1.1 200"));
    let listed = http(admin, "GET /matches HTTP/1.1");
    for part in [
        "\"id\":1",
        "\"players\":1",
        "\"spectators\":0",
        "\"lateness_ms\":",
    ] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let page = "GET /matches HTTP/1.1\r\nOrigin: https://example.org";
    assert!(http(admin, page).starts_with("HTTP/1.1 403"));
    let drain = format!("POST /drain?to=nowhere HTTP/1.1\r\n{}", folder.token());
    let drain = http(admin, &drain);
    assert!(drain.starts_with("HTTP/1.1 400") && drain.contains("203.0.113.7"));
    assert!(!is_over(&running));
    running.shutdown();

    let open = server(&key, &folder).admin("0.0.0.0:0".parse().unwrap());
    let error = open.listen("127.0.0.1:0").err().unwrap();
    assert!(matches!(
        error,
        HostError::Admin(AdminError::NotLoopback(_))
    ));
    let nobody = server(&key, &folder).take_over("127.0.0.1:9".parse().unwrap());
    let error = nobody.listen("127.0.0.1:0").err().unwrap();
    assert!(
        matches!(error, HostError::Admin(AdminError::Ask { .. })),
        "{error}"
    );
}

/// Finding O9: any local user could end the process; connections that said nothing stayed for ever; and a web page could
/// reach it under a name of its own.
#[test]
fn the_admin_port_answers_whatever_others_do_and_obeys_only_who_has_its_token() {
    let (key, folder) = (TicketKey::generate(), Folder::new("token"));
    let running = server(&key, &folder).journal(folder.0.join("match.journal"));
    let running = running.listen("127.0.0.1:0").unwrap();
    let admin = running.admin_addr().unwrap();
    let to = running.local_addr();
    for header in ["X: y", "Authorization: Bearer 0", "Authorization: "] {
        let drain = format!("POST /drain?to={to} HTTP/1.1\r\n{header}");
        let answer = http(admin, &drain);
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(
        stream,
        "GET /matches HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");

    // Far more than have a place: the oldest give way, and the rest is over soon.
    let mut idle: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = TcpStream::connect(admin).unwrap();
            stream.write_all(b"GET /li").unwrap();
            stream
        })
        .collect();
    assert!(http(admin, "GET /livez HTTP/1.1").starts_with("HTTP/1.1 200"));
    for stream in &mut idle {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        // The end of the connection, or that it was reset: but no time-out.
        if let Err(error) = stream.read_to_end(&mut rest) {
            let gone = error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(gone, "it is still open: {error}");
        }
    }
    assert!(!is_over(&running));
    running.shutdown();
}

/// Finding C8: whoever asked could send the players anywhere.
#[test]
fn players_are_sent_only_to_where_a_server_of_their_game_answers() {
    let (key, folder) = (TicketKey::generate(), Folder::new("knock"));
    let running = server(&key, &folder).journal(folder.0.join("match.journal"));
    let running = running.listen("127.0.0.1:0").unwrap();
    let admin = running.admin_addr().unwrap();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let elsewhere = Folder::new("knock-there");
    let there = server(&key, &elsewhere);
    let there = there.listen("127.0.0.1:0").unwrap();
    for nobody in [
        silent.local_addr().unwrap(),
        "192.0.2.1:7777".parse().unwrap(),
    ] {
        let drain = format!("POST /drain?to={nobody} HTTP/1.1\r\n{}", folder.token());
        let answer = http(admin, &drain);
        assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
        assert!(answer.contains("none answers"), "{answer}");
    }
    assert!(!is_over(&running));
    let drain = format!(
        "POST /drain?to={} HTTP/1.1\r\n{}",
        there.local_addr(),
        folder.token()
    );
    let answer = http(admin, &drain);
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("match.journal"),
        "{answer}"
    );
    assert!(is_over(&running));
    there.shutdown();
}
