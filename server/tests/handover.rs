//! One server process hands its match over to another one, and its clients follow. Over real sockets on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use twinstep_client::Event;
use twinstep_core::Tick;
use twinstep_core::packet::hello::Hello;
use twinstep_core::testing::doc::Counter;
use twinstep_server::MatchConfig;
use twinstep_server::host::{AdminError, HostError, Running, Server, Taker, take_over};
use twinstep_udp::TicketKey;

use crate::asking::ask_by_hand;
use crate::folder::{Folder, token};
use crate::loopback::loopback;
use crate::players::{Plays, play_blocking};

type Player = crate::players::Player<Counter>;

pub(crate) fn server(key: &TicketKey, folder: &Folder) -> Server<Counter> {
    Server::action(Counter::default(), ())
        .players(4)
        .spectators(4, 0)
        .key(key.clone())
        .lineages_file(folder.0.join("lineages"))
        .admin(loopback())
        .admin_token(folder.0.join("token"))
}

/// The header of whoever may change something.
pub(crate) fn bearer(folder: &Folder) -> String {
    let token = token(&folder.file("token"));
    format!("Authorization: Bearer {token}")
}

pub(crate) fn is_over(server: &Running<Counter>) -> bool {
    server.inspect(|_| ()).is_err()
}

#[test]
fn a_match_moves_to_another_server_and_its_clients_follow() {
    let (key, folder) = (TicketKey::generate(), Folder::new("moves"));
    let old = server(&key, &folder).journal(folder.0.join("match.journal"));
    let old = old.listen("127.0.0.1:0").unwrap();
    let mut players = [
        Player::join(&old.ticket("anna").unwrap()),
        Player::join(&old.ticket("bob").unwrap()),
        Player::join(&old.spectator_ticket("watcher").unwrap()),
    ];
    play_all("playing", &mut players, |players| {
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
        play_all("the hand-over", &mut players, |_| taking.is_finished());
        taking.join().unwrap().unwrap()
    });
    play_all("coming back", &mut players, |players| {
        let back = |event: &Event| matches!(event, Event::Reconnected { .. });
        players.iter().all(|p| p.events.iter().any(back))
    });
    assert!(is_over(&old));
    let seen = players[0].tick();
    play_all("playing on", &mut players, |players| {
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
    let error = fails(server(&key, &folder).lineages_file(damaged));
    assert!(matches!(error, HostError::Lineages(_)), "{error}");

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
    let error = take_over(admin, &[far.into()], &taker, &folder.0.join("token"))
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
        bearer(&folder)
    );
    let answer = ask_by_hand(admin, &nonsense, "{\"no\":1} ");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(!is_over(&old));
    old.shutdown();
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
        let drain = format!("POST /drain?to={nobody} HTTP/1.1\r\n{}", bearer(&folder));
        let answer = ask_by_hand(admin, &drain, "");
        assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
        assert!(answer.contains("none answers"), "{answer}");
    }
    assert!(!is_over(&running));
    let drain = format!(
        "POST /drain?to={} HTTP/1.1\r\n{}",
        there.local_addr(),
        bearer(&folder)
    );
    let answer = ask_by_hand(admin, &drain, "");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("match.journal"),
        "{answer}"
    );
    assert!(is_over(&running));
    there.shutdown();
}

fn sessions(server: &Running<Counter>) -> usize {
    server.inspect(|game| game.sessions()).unwrap()
}

/// Where its newest ticket leads.
fn dials(player: &mut Player) -> Option<SocketAddr> {
    let newest = player.newest()?;
    newest.servers().next()?.socket()
}

fn play_all<P: Plays>(what: &str, players: &mut [P], done: impl FnMut(&mut [P]) -> bool) {
    play_blocking(what, players, done).unwrap();
}

/// Finding H5: a hand-over lost whoever joined, returned or was healed at that moment.
#[test]
fn who_joins_returns_or_is_healed_during_a_hand_over_arrives() {
    let (key, folder) = (TicketKey::generate(), Folder::new("arrives"));
    let server = || server(&key, &folder).players(5);
    let old = server().journal(folder.file("match.journal"));
    let old = old.listen("127.0.0.1:0").unwrap();
    let admin = old.admin_addr().unwrap();
    let [mut anna, mut cara, mut dave, mut eve] =
        ["anna", "cara", "dave", "eve"].map(|who| Player::join(&old.ticket(who).unwrap()));
    let all = &mut [&mut anna, &mut cara, &mut dave, &mut eve];
    play_all("playing", all, |all| {
        all.iter().all(|p| p.tick() > Tick(60))
    });
    // Dave's process ends before anybody hears of a hand-over.
    let ticket = dave.newest().unwrap();
    drop(dave);
    std::thread::scope(|scope| {
        // Cara hears nothing for a while: so long it takes until everybody has a ticket that leads on.
        let taking = scope.spawn(|| server().take_over(admin).listen("127.0.0.1:0"));
        play_all("the hand-over", &mut [&mut anna, &mut eve], |all| {
            all.iter_mut().all(|p| dials(p) != Some(old.local_addr()))
        });
        anna.client.session.corrupt(|counter| counter.total += 1);
        // Dave's next process dials where his ticket leads.
        let mut dave = Player::join(&ticket);
        // Bob's world is on its way to him, and he does not hear of it yet.
        let mut bob = Player::join(&old.ticket("bob").unwrap());
        let all = &mut [&mut anna, &mut bob, &mut dave, &mut eve];
        play_all("dialling", all, |_| sessions(&old) == 5);
        let all = &mut [&mut anna, &mut cara, &mut dave, &mut eve];
        let until = all[0].client.now() + Duration::from_millis(400);
        play_all("a while", all, |all| all[0].client.now() >= until);
        assert!(old.inspect(|_| ()).is_ok(), "bob is not in yet");
        let all = &mut [&mut anna, &mut bob, &mut cara, &mut dave, &mut eve];
        play_all("moving", all, |_| taking.is_finished());
        let new = taking.join().unwrap().unwrap();
        // Eve's process ends too: her ticket leads to the other server.
        let ticket = eve.newest().unwrap();
        drop(eve);
        let mut eve = Player::join(&ticket);
        let all = &mut [&mut anna, &mut bob, &mut cara, &mut dave, &mut eve];
        play_all("arriving", all, |all| {
            all.iter_mut().all(|p| dials(p) == Some(new.local_addr())) && sessions(&new) == 5
        });
        let seen = all.iter().map(|p| p.tick()).max().unwrap();
        play_all("playing on", all, |all| {
            all.iter().all(|p| p.tick() > seen + 60)
        });
        let differs = |event: &Event| matches!(event, Event::Differs { .. });
        assert!(anna.events.iter().any(differs), "{:?}", anna.events);
        let world = anna.client.session.authority().unwrap();
        let (tick, ours) = (world.tick(), world.digest().unwrap());
        let theirs = new.inspect(move |game| game.digest_at(tick));
        assert_eq!(theirs, Ok(Some(ours)), "she is healed");
        new.shutdown();
    });
    old.shutdown();
}
