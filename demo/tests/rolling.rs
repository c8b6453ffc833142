//! A rolling restart during play: three servers on one machine share a folder of journals, and their tickets name all
//! three. The first server releases its matches one by one, the second one ends cleanly, the third one is killed; each
//! time the remaining servers resume the matches when their players dial. Then the three servers start again.
//!
//! `TWINSTEP_ROLLS` is the number of rounds, 1 by default.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, succeed, within};
use crate::many::Served;
use powderkeg::bots::{BotClient, BotHands};
use powderkeg::wiring;
use powderkeg_game::{Game, Sticks, terms};
use twinstep_core::{Mwc, PlayerId};
use twinstep_protocol::replay::{Replay, Survey};
use twinstep_udp::Ticket;

const SERVERS: usize = 3;
const MATCHES: u64 = 6;
const PLAYERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(60);
/// An idle machine needs half a second; this one may be busy.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The number of ticks beyond the release after which a client's authority counts as playing again.
const PLAYS: u32 = 30;

struct Seat {
    id: u64,
    name: String,
    bot: BotClient,
    seen: (u32, Instant),
    longest: Duration,
}

impl Seat {
    fn tick(&self) -> u32 {
        self.bot.stats().authority_tick
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn play(what: &str, seats: &mut [Seat], hands: BotHands, mut done: impl FnMut(&[Seat]) -> bool) {
    let began = Instant::now();
    while !done(seats) {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}: {:?}",
            seats
                .iter()
                .map(|seat| (seat.id, &seat.name, seat.bot.session_end(), seat.tick()))
                .collect::<Vec<_>>()
        );
        for seat in &mut *seats {
            seat.bot.advance(hands);
            let (tick, now) = (seat.tick(), Instant::now());
            seat.longest = seat.longest.max(now - seat.seen.1);
            if tick != seat.seen.0 {
                seat.seen = (tick, now);
            }
        }
        thread::sleep(PAUSE);
    }
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn play_for(seats: &mut [Seat], hands: BotHands, time: Duration) {
    let until = Instant::now() + time;
    play("a while", seats, hands, |_| Instant::now() >= until);
}

fn meanwhile<R: Send>(seats: &mut [Seat], work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let working = scope.spawn(work);
        play("an order", seats, BotHands::On, |_| working.is_finished());
        working.join().unwrap()
    })
}

fn matches_of(server: &Served) -> Vec<u64> {
    let answer = server.ask("/matches");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines: serde_json::Value = serde_json::from_str(body).unwrap();
    let ids = lines.as_array().unwrap().iter();
    ids.map(|line| line["match"].as_u64().unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn seat(server: &Served, addresses: &str, folder: &Folder, id: u64, n: usize) -> Seat {
    let name = format!("bot-{id}-{n}");
    let ticket = server.ticket_to(addresses, folder, &name, &id.to_string());
    let ticket = Ticket::load(ticket).unwrap();
    let rules = terms::rules(None);
    let client = wiring::client(&ticket, &rules, None).unwrap();
    let luck = Mwc::seed(id * 16 + n as u64);
    Seat {
        id,
        name,
        bot: BotClient::new(client, rules, Sticks::Keys, luck),
        seen: (0, Instant::now()),
        longest: Duration::ZERO,
    }
}

fn from(first: usize, addresses: &[String]) -> String {
    let mut addresses = addresses.to_vec();
    addresses.rotate_left(first);
    addresses.join(",")
}

fn serve(folder: &Folder, n: usize, addresses: &[String]) -> Served {
    // A busy machine is not a reason to refuse a match here.
    let more = ["--public", &from(n, addresses), "--lateness-limit", "1000"];
    Served::start_with(folder, &addresses[n], &more)
}

fn release(folder: &Folder, server: &str, id: u64) {
    let (token, id) = (folder.file("key.admin"), id.to_string());
    succeed(&[
        "admin",
        "--to",
        server,
        "--token-file",
        &token,
        "release",
        &id,
    ]);
}

fn pauses(seats: &mut [Seat], ids: &[u64]) -> Vec<Duration> {
    let at: Vec<u32> = seats.iter().map(Seat::tick).collect();
    play("coming along", seats, BotHands::On, |seats| {
        let back = |(seat, at): (&Seat, &u32)| seat.tick() >= at + PLAYS;
        seats.iter().zip(&at).all(back)
    });
    let theirs = seats.iter().filter(|seat| ids.contains(&seat.id));
    theirs.map(|seat| seat.longest).collect()
}

fn print_pauses(what: &str, mut pauses: Vec<Duration>) {
    pauses.sort();
    let (median, most) = (pauses[pauses.len() / 2], pauses[pauses.len() - 1]);
    println!(
        "{what}: pauses of {} players: median {} ms, longest {} ms",
        pauses.len(),
        median.as_millis(),
        most.as_millis()
    );
    assert!(most < PAUSE_MAX, "{most:?}");
}

fn forget_pauses(seats: &mut [Seat]) {
    seats
        .iter_mut()
        .for_each(|seat| seat.longest = Duration::ZERO);
}

#[test]
fn a_rolling_restart_during_play_loses_no_frame() {
    let rolls = std::env::var("TWINSTEP_ROLLS").map_or(1, |text| text.parse().unwrap());
    let folder = Folder::with_a_key("rolling");
    let free: Vec<UdpSocket> = (0..SERVERS)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = free.iter().map(|one| one.local_addr().unwrap().to_string());
    let addresses: Vec<String> = addresses.collect();
    drop(free);
    let mut servers: Vec<Served> = (0..SERVERS)
        .map(|n| serve(&folder, n, &addresses))
        .collect();
    let mut seats = Vec::new();
    for id in 1..=MATCHES {
        let n = id as usize % SERVERS;
        let leads_to = from(n, &addresses);
        seats.extend((1..=PLAYERS).map(|p| seat(&servers[n], &leads_to, &folder, id, p)));
    }
    play("joining", &mut seats, BotHands::On, |seats| {
        seats.iter().all(|seat| seat.tick() > 120)
    });
    seats
        .iter_mut()
        .for_each(|seat| seat.longest = Duration::ZERO);
    play_for(&mut seats, BotHands::On, Duration::from_secs(2));
    let usual = seats.iter().map(|seat| seat.longest).max().unwrap();
    println!(
        "while nothing is moved, nothing is confirmed for at most {} ms",
        usual.as_millis()
    );

    let mut moves = BTreeMap::<u64, u32>::new();
    let (mut released, mut left, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..rolls * SERVERS {
        let n = turn % SERVERS;
        let ids = matches_of(&servers[n]);
        ids.iter()
            .for_each(|id| *moves.entry(*id).or_default() += 1);
        if turn % 3 == 0 {
            for id in &ids {
                forget_pauses(&mut seats);
                let admin = servers[n].admin.clone();
                meanwhile(&mut seats, || release(&folder, &admin, *id));
                released.extend(pauses(&mut seats, &[*id]));
                let others = servers.iter().enumerate().filter(|(other, _)| *other != n);
                let found = others.filter(|(_, other)| matches_of(other).contains(id));
                assert_eq!(found.count(), 1, "match {id} is played elsewhere");
            }
            assert_eq!(matches_of(&servers[n]), [] as [u64; 0]);
        }
        forget_pauses(&mut seats);
        let old = servers.remove(n);
        let (signal, expected) = match turn % 3 {
            2 => ("KILL", None),
            _ => ("TERM", Some(0)),
        };
        old.process.signal(signal);
        let (code, log) = meanwhile(&mut seats, || old.exit());
        assert_eq!(code, expected, "{log:?}");
        match turn % 3 {
            0 => {}
            1 => left.extend(pauses(&mut seats, &ids)),
            _ => lost.extend(pauses(&mut seats, &ids)),
        }
        let new = meanwhile(&mut seats, || serve(&folder, n, &addresses));
        servers.insert(n, new);
        within(|| servers[n].ask("/readyz").starts_with("HTTP/1.1 200"));
    }

    play_for(&mut seats, BotHands::NoOrders, Duration::from_secs(3));
    play("settling", &mut seats, BotHands::Off, |seats| {
        seats.iter().all(|seat| {
            let stats = seat.bot.stats();
            stats.commands_sent == stats.commands_executed + stats.commands_refused
        })
    });
    for seat in &seats {
        let stats = seat.bot.stats();
        assert_eq!(seat.bot.session_end(), None, "{} is in", seat.name);
        assert_eq!(stats.heals, 0, "{} never differed", seat.name);
        assert_eq!(stats.returns, u64::from(moves[&seat.id]), "{}", seat.name);
    }
    for server in &servers {
        let metrics = server.ask("/metrics");
        for none in [
            "twinstep_desyncs_total 0",
            "twinstep_match_requests_refused_total{reason=\"failed\"} 0",
        ] {
            assert!(
                metrics.contains(&format!("\n{none}\n")),
                "{none}: {metrics}"
            );
        }
    }
    // Everything that a client has seen is in the journals.
    play_for(&mut seats, BotHands::Off, Duration::from_millis(500));
    drop(servers);
    for (id, moved) in &moves {
        agree(&folder, *id, *moved, &seats);
    }
    assert_eq!(moves.len() as u64, MATCHES, "each was moved: {moves:?}");
    print_pauses("released", released);
    print_pauses("left by a server that ended", left);
    print_pauses("left by a server that was killed", lost);
}

/// Checks that one journal holds the whole match, and that each of its clients has seen exactly that.
fn agree(folder: &Folder, id: u64, moved: u32, seats: &[Seat]) {
    let path = format!("{}/match-{id}.journal", folder.file("journals"));
    let file = std::fs::read(path).unwrap();
    let rules = terms::rules(None);
    let index = twinstep_protocol::replay::Index::scan(&file).unwrap();
    assert_eq!(index.resumes, moved, "match {id}");
    let sound = &file[..index.sound_bytes() as usize];
    let survey = Survey::of::<Game>(sound, &index);
    let mut replay = Replay::<Game>::open(sound, &rules).unwrap();
    let verified = replay.verify();
    assert_eq!(verified.fault, None, "match {id}");
    assert!(verified.digests > 0);
    for seat in seats.iter().filter(|seat| seat.id == id) {
        let (tick, digest) = seat.bot.digest().unwrap();
        assert_eq!(replay.seek(tick).unwrap(), tick, "{}", seat.name);
        assert_eq!(replay.world().digest().unwrap(), digest, "{}", seat.name);
        let found = index.seats.iter().find(|(_, who)| **who == *seat.name);
        let PlayerId(player) = found.unwrap().0;
        let ran = u64::from(survey.players[usize::from(player)].commands);
        assert_eq!(ran, seat.bot.stats().commands_executed, "{}", seat.name);
    }
}
