//! A rolling restart under play: three servers on one machine share a folder of journals; each in turn gives its matches to
//! the two others, one by one, ends, and starts again. Players come along by themselves.
//!
//! `TWINSTEP_ROLLS` says how many times round; one if nothing is said.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, run, within};
use crate::many::Served;
use powderkeg::bots::{BotClient, BotHands};
use powderkeg::wiring;
use powderkeg_game::{Game, Sticks, terms};
use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::{Replay, Survey};
use twinstep_core::{Mwc, PlayerId};
use twinstep_udp::Ticket;

const SERVERS: usize = 3;
const MATCHES: u64 = 6;
const PLAYERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(2);
/// A client that gives up does so after a minute.
const PATIENCE: Duration = Duration::from_secs(60);
/// A quiet machine needs half a second; this one may be busy.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A client plays again when its authority has come so far beyond the hand-over.
const PLAYS: u32 = 30;

struct Seat {
    id: u64,
    name: String,
    bot: BotClient,
    /// Where its authority stood when it moved last, and when that was.
    seen: (u32, Instant),
    /// The longest time for which nothing was confirmed, since somebody asked.
    longest: Duration,
}

impl Seat {
    fn tick(&self) -> u32 {
        self.bot.stats().authority_tick
    }
}

/// Advances all of them until `done`.
#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn play(what: &str, seats: &mut [Seat], hands: BotHands, mut done: impl FnMut(&[Seat]) -> bool) {
    let began = Instant::now();
    while !done(seats) {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}: {:?}",
            seats
                .iter()
                .map(|seat| (seat.id, &seat.name, seat.bot.ended(), seat.tick()))
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

/// Does something on a thread of its own, while everybody plays.
fn meanwhile<R: Send>(seats: &mut [Seat], work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let working = scope.spawn(work);
        play("an order", seats, BotHands::On, |_| working.is_finished());
        working.join().unwrap()
    })
}

/// The ids of the matches that run on a server.
fn matches_of(server: &Served) -> Vec<u64> {
    let answer = server.ask("/matches");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines: serde_json::Value = serde_json::from_str(body).unwrap();
    let ids = lines.as_array().unwrap().iter();
    ids.map(|line| line["id"].as_u64().unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn seat(server: &Served, folder: &Folder, id: u64, n: usize) -> Seat {
    let name = format!("bot-{id}-{n}");
    let ticket = server.ticket(folder, &name, &id.to_string());
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

/// A machine that has other work is not what refuses a match here.
fn serve(folder: &Folder, address: &str) -> Served {
    Served::start_with(
        folder,
        address,
        &["--drain", "5", "--lateness-limit", "1000"],
    )
}

/// As an operator types it: the new server takes a match of the old one over.
fn take_over(folder: &Folder, new: &str, old: &str, id: u64) -> String {
    let (token, id) = (folder.file("key.admin"), id.to_string());
    let to = ["admin", "--to", new, "--token-file", &token];
    let output = run(&[&to[..], &["take-over", old, "--match", &id]].concat());
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn servers_are_restarted_in_turn_while_their_matches_are_played_and_nothing_is_lost() {
    let rolls = std::env::var("TWINSTEP_ROLLS").map_or(1, |text| text.parse().unwrap());
    let folder = Folder::with_a_key("rolling");
    let mut servers: Vec<Served> = (0..SERVERS)
        .map(|_| {
            let free = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap().to_string();
            drop(free);
            serve(&folder, &address)
        })
        .collect();
    let mut seats = Vec::new();
    for id in 1..=MATCHES {
        let server = &servers[id as usize % SERVERS];
        seats.extend((1..=PLAYERS).map(|n| seat(server, &folder, id, n)));
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
        "without a hand-over nothing is confirmed for at most {} ms",
        usual.as_millis()
    );
    println!(
        "{:>5} {:>4} {:>4} {:>10}  pause of each player, ms",
        "match", "from", "to", "order, ms"
    );

    let mut moves = BTreeMap::<u64, u32>::new();
    let mut pauses = Vec::new();
    for turn in 0..rolls * SERVERS {
        let from = turn % SERVERS;
        for (n, id) in matches_of(&servers[from]).into_iter().enumerate() {
            let to = (from + 1 + n % (SERVERS - 1)) % SERVERS;
            let (old, new) = (servers[from].admin.clone(), servers[to].admin.clone());
            let before = seats.iter().map(Seat::tick).max().unwrap();
            seats
                .iter_mut()
                .for_each(|seat| seat.longest = Duration::ZERO);
            let took = meanwhile(&mut seats, || timed(|| take_over(&folder, &new, &old, id)));
            let at: Vec<u32> = seats.iter().map(Seat::tick).collect();
            play("coming along", &mut seats, BotHands::On, |seats| {
                let back = |(seat, at): (&Seat, &u32)| seat.tick() >= at + PLAYS;
                seats.iter().zip(&at).all(back)
            });
            assert!(before > 0 && matches_of(&servers[to]).contains(&id));
            let theirs = seats.iter().filter(|seat| seat.id == id);
            let theirs: Vec<Duration> = theirs.map(|seat| seat.longest).collect();
            let said: Vec<String> = theirs.iter().map(|p| p.as_millis().to_string()).collect();
            println!(
                "{id:>5} {from:>4} {to:>4} {:>10}  {}",
                took.as_millis(),
                said.join(" ")
            );
            pauses.extend(theirs);
            *moves.entry(id).or_default() += 1;
        }
        assert_eq!(matches_of(&servers[from]), [] as [u64; 0]);
        let ready = servers[from].ask("/readyz");
        assert!(
            ready.contains("draining"),
            "nobody new comes meanwhile: {ready}"
        );
        // It has nothing left to wait for.
        let old = servers.remove(from);
        let address = old.address.clone();
        old.process.signal("TERM");
        let new = meanwhile(&mut seats, || {
            let (code, log) = old.exit();
            assert_eq!(code, Some(0), "{log:?}");
            serve(&folder, &address)
        });
        servers.insert(from, new);
        within(|| servers[from].ask("/readyz").starts_with("HTTP/1.1 200"));
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
        assert_eq!(seat.bot.ended(), None, "{} is in", seat.name);
        assert_eq!(stats.heals, 0, "{} never differed", seat.name);
        assert_eq!(stats.returns, u64::from(moves[&seat.id]), "{}", seat.name);
    }
    for server in &servers {
        let metrics = server.ask("/metrics");
        for none in [
            "twinstep_desyncs_total 0",
            "twinstep_matches_not_made_total{reason=\"failed\"} 0",
            "twinstep_matches_not_made_total{reason=\"elsewhere\"} 0",
        ] {
            assert!(
                metrics.contains(&format!("\n{none}\n")),
                "{none}: {metrics}"
            );
        }
    }
    // What every client has seen is in the journals.
    play_for(&mut seats, BotHands::Off, Duration::from_millis(500));
    drop(servers);
    for (id, moved) in &moves {
        agree(&folder, *id, *moved, &seats);
    }
    pauses.sort();
    let (median, most) = (pauses[pauses.len() / 2], pauses[pauses.len() - 1]);
    println!(
        "{} hand-overs of {MATCHES} matches: pauses of {} players: median {} ms, longest {} ms",
        moves.values().sum::<u32>(),
        pauses.len(),
        median.as_millis(),
        most.as_millis()
    );
    assert_eq!(
        moves.len() as u64,
        MATCHES,
        "each was handed over: {moves:?}"
    );
    assert!(most < PAUSE_MAX, "{most:?}");
}

#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// One journal tells the whole match, and each of its clients has seen just that.
fn agree(folder: &Folder, id: u64, moved: u32, seats: &[Seat]) {
    let path = format!("{}/match-{id}.journal", folder.file("journals"));
    let file = std::fs::read(path).unwrap();
    let rules = terms::rules(None);
    let hello = Hello::of::<Game>(&rules, "").unwrap();
    let index = twinstep_core::replay::Index::scan(&file).unwrap();
    assert_eq!(index.resumes, moved, "match {id}");
    let sound = &file[..index.sound_bytes() as usize];
    let survey = Survey::of::<Game>(sound, &index);
    let mut replay = Replay::<Game>::open(sound, &rules, &hello).unwrap();
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
