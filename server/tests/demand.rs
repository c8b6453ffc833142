//! Matches made on demand: who makes one, who makes none, how many there may be, and what is left of one that is over. Over
//! real sockets on loopback; time is the machine's, so every wait has an end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use twinstep_client::client::Ended;
use twinstep_client::{Client, Closed, SessionConfig};
use twinstep_core::packet::WIRE_VERSION;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::Index;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Simulation, Tick};
use twinstep_server::host::{
    Blueprint, Checkup, Host, HostConfig, JournalFileError, OnDemand, read_journal,
};
use twinstep_udp::{Ticket, TicketKey, TicketSpec};

use crate::asking::{Folder, ask, scrape, token};

const PATIENCE: Duration = Duration::from_secs(20);
/// Ids that there are.
const IDS: std::ops::Range<u64> = 0..1_000;
/// An id at which the template panics.
const BROKEN: u64 = 999;

pub(crate) struct Stage {
    pub(crate) key: TicketKey,
    pub(crate) host: Host,
    pub(crate) folder: Folder,
}

pub(crate) fn counters() -> OnDemand<Counter> {
    OnDemand::new(|id| {
        assert_ne!(id, BROKEN, "planted");
        IDS.contains(&id).then(|| {
            Blueprint::action(Counter::default(), ())
                .players(4)
                .spectators(4, 0)
        })
    })
}

impl Stage {
    pub(crate) async fn new(
        name: &str,
        matches: impl FnOnce(&Folder) -> OnDemand<Counter>,
    ) -> Stage {
        let folder = Folder::new(&format!("demand-{name}"));
        let key = TicketKey::generate();
        let host = Stage::host(&folder, &key).await;
        host.make_on_demand(matches(&folder));
        Stage { key, host, folder }
    }

    pub(crate) async fn host(folder: &Folder, key: &TicketKey) -> Host {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = HostConfig {
            admin: Some(loopback),
            admin_token: Some(folder.file("token")),
            serials_file: Some(folder.file("serials")),
            sessions_max: 256,
            ..HostConfig::new(Counter::NAME, loopback, key.clone())
        };
        Host::start(config).await.unwrap()
    }

    fn ticket(&self, identity: &str, match_id: u64) -> Ticket {
        self.ticket_by(&self.key, identity, match_id, 1)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn ticket_by(&self, key: &TicketKey, identity: &str, match_id: u64, seats: u8) -> Ticket {
        let now_unix = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let spec = TicketSpec {
            game: Counter::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id,
            seats,
            servers: self.host.public_addresses(),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix,
        };
        Ticket::issue(key, &spec).unwrap()
    }

    pub(crate) fn client(&self, identity: &str, match_id: u64) -> Client<Counter> {
        client(&self.ticket(identity, match_id))
    }

    /// A number of the metrics.
    pub(crate) async fn number(&self, series: &str) -> f64 {
        let admin = self.host.admin_addr().unwrap();
        scrape(admin).await.series[series]
    }

    /// The ids that the admin port lists.
    pub(crate) async fn listed(&self) -> Vec<u64> {
        let admin = self.host.admin_addr().unwrap();
        let (_, _, said) = ask(admin, "GET /matches", None, "").await;
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let lines = said.as_array().unwrap().iter();
        lines.map(|line| line["id"].as_u64().unwrap()).collect()
    }

    async fn told(&self, request: &str) -> u16 {
        let token = token(&self.folder.file("token"));
        let admin = self.host.admin_addr().unwrap();
        ask(admin, request, Some(&token), "").await.0
    }

    async fn until(&self, series: &str, number: f64) {
        let there = async {
            while self.number(series).await < number {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let there = tokio::time::timeout(PATIENCE, there).await;
        there.unwrap_or_else(|_| panic!("{series} does not reach {number}"));
    }
}

fn client(ticket: &Ticket) -> Client<Counter> {
    Client::connect(ticket, SessionConfig::new(Arc::new(()))).unwrap()
}

pub(crate) fn tick(client: &Client<Counter>) -> Tick {
    let world = client.session.authority();
    world.map_or(Tick(0), |world| world.tick())
}

/// Whether it has its seat, by its own world; or sees something, if it only watches.
fn is_in(client: &Client<Counter>) -> bool {
    match (client.session.authority(), client.session.seats().first()) {
        (None, _) => false,
        (Some(world), None) => world.tick() > Tick(0),
        (Some(world), Some(own)) => world.present().contains(*own),
    }
}

/// Advances clients until `done`, or until one of them is over.
#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) async fn play(
    party: &mut [Client<Counter>],
    mut done: impl FnMut(&[Client<Counter>]) -> bool,
) -> Result<(), Ended> {
    let began = Instant::now();
    while !done(party) {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        for client in &mut *party {
            client.advance(|_| 1)?;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

pub(crate) async fn plays(party: &mut [Client<Counter>]) {
    let all = |party: &[Client<Counter>]| party.iter().all(is_in);
    play(party, all).await.unwrap();
}

/// How playing ends for a client that is not let in.
pub(crate) async fn end_of(client: Client<Counter>) -> Ended {
    play(&mut [client], |_| false).await.unwrap_err()
}

async fn leave(mut party: Vec<Client<Counter>>) {
    for client in &mut party {
        client.leave();
    }
    for mut client in party {
        for _ in 0..20 {
            if client.advance(|_| 0).is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) fn said(code: CloseCode) -> Ended {
    Ended::Session(Closed::Server(code))
}

/// The journals of a folder, by name.
fn journals(folder: &Path) -> Vec<String> {
    let paths = twinstep_server::host::journals(folder).unwrap();
    let mut names: Vec<String> = paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_player_of_a_match_makes_it_and_the_others_find_it() {
    let stage = Stage::new("first", |_| counters()).await;
    assert_eq!(stage.listed().await, [] as [u64; 0]);
    let mut party = vec![
        stage.client("anna", 7),
        stage.client("bob", 7),
        stage.client("anna", 8),
    ];
    plays(&mut party).await;
    assert_eq!(stage.listed().await, [7, 8]);
    assert_eq!(stage.number("twinstep_matches_made_total").await, 2.0);
    assert_eq!(stage.number("twinstep_matches_max").await, 64.0);
    // Who comes later finds it as well, and so does who watches.
    let watcher = stage.ticket_by(&stage.key, "carl", 7, 0);
    party.extend([client(&watcher), stage.client("dora", 8)]);
    plays(&mut party).await;
    assert_eq!(stage.number("twinstep_matches_made_total").await, 2.0);
    assert_eq!(stage.number("twinstep_spectators").await, 1.0);
    stage.until("twinstep_players", 4.0).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

/// A match that must be made first took longer to join than one that was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a wait is measured")]
async fn who_makes_a_match_waits_hardly_longer_than_who_joins_one() {
    let stage = Stage::new("fast", |_| counters().per_second(1_000)).await;
    let (mut made, mut joined) = (Vec::new(), Vec::new());
    for id in 0..9 {
        for (name, took) in [("anna", &mut made), ("bob", &mut joined)] {
            let began = Instant::now();
            plays(&mut [stage.client(name, id)]).await;
            took.push(began.elapsed());
        }
    }
    made.sort();
    joined.sort();
    let (made, joined) = (made[4], joined[4]);
    assert!(
        made < joined + Duration::from_millis(250),
        "{made:?}, else {joined:?}"
    );
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_that_is_forged_or_revoked_or_of_somebody_banned_makes_nothing() {
    let stage = Stage::new("nothing", |_| counters()).await;
    assert_eq!(stage.told("POST /ban?identity=mallory").await, 200);
    let banned = end_of(stage.client("mallory", 7)).await;
    assert!(banned.to_string().contains("banned"), "{banned}");

    let stolen = stage.ticket("anna", 7);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let revoke = stage.told("POST /revoke?identity=anna&match=7").await;
    assert_eq!(revoke, 200, "also before its match is made");
    assert_eq!(end_of(client(&stolen)).await, said(CloseCode::Superseded));

    let unknown = end_of(stage.client("anna", 5_000)).await;
    assert_eq!(unknown, said(CloseCode::NoMatch));
    let broken = end_of(stage.client("anna", BROKEN)).await;
    assert_eq!(broken, said(CloseCode::Fault));

    // These hear nothing, or wait for somebody who plays.
    let forged = stage.ticket_by(&TicketKey::generate(), "anna", 7, 1);
    let watcher = stage.ticket_by(&stage.key, "carl", 7, 0);
    let mut waiting = [client(&forged), client(&watcher)];
    let mut looks = 0;
    play(&mut waiting, |_| {
        looks += 1;
        looks > 300
    })
    .await
    .unwrap();
    assert_eq!(stage.listed().await, [] as [u64; 0]);
    assert_eq!(stage.number("twinstep_matches_made_total").await, 0.0);
    for (reason, times) in [("id", 1.0), ("failed", 1.0), ("matches", 0.0)] {
        let series = format!("twinstep_matches_not_made_total{{reason=\"{reason}\"}}");
        assert_eq!(stage.number(&series).await, times, "{reason}");
    }
    // Whoever was robbed comes in by a new one.
    plays(&mut [stage.client("anna", 7)]).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

/// A revoked ticket was good again when its match was over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_revoked_in_a_match_makes_no_other_one_when_it_is_over() {
    let stage = Stage::new("revoked", |_| counters()).await;
    let stolen = stage.ticket("anna", 7);
    let party = vec![stage.client("bob", 7)];
    let mut party = party;
    plays(&mut party).await;
    let revoke = stage.told("POST /revoke?identity=anna&match=7").await;
    assert_eq!(revoke, 200);
    assert_eq!(stage.told("POST /end?match=7").await, 200);
    stage
        .until("twinstep_matches_ended_total{how=\"over\"}", 1.0)
        .await;
    assert_eq!(end_of(client(&stolen)).await, said(CloseCode::Superseded));
    assert_eq!(stage.number("twinstep_matches_made_total").await, 1.0);
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_one_match_too_many_is_told_that_the_server_is_full() {
    let stage = Stage::new("full", |_| counters().at_once(2)).await;
    let admin = stage.host.admin_addr().unwrap();
    let mut party = vec![stage.client("anna", 1), stage.client("anna", 2)];
    plays(&mut party).await;
    let full = end_of(stage.client("anna", 3)).await;
    assert_eq!(full, said(CloseCode::ServerFull { after_s: 30 }));
    let words = full.to_string();
    assert!(words.contains("come back in 30 s"), "{words}");
    assert!(words.contains("another server"), "{words}");
    let (status, _, said) = ask(admin, "GET /readyz", None, "").await;
    assert_eq!(
        (status, &*said),
        (503, "full: 2 matches, and more are not made\n")
    );
    let series = "twinstep_matches_not_made_total{reason=\"matches\"}";
    assert_eq!(stage.number(series).await, 1.0);
    // There is room in those that there are, and where one ends.
    party.push(stage.client("bob", 2));
    plays(&mut party).await;
    assert_eq!(stage.told("POST /end?match=1").await, 200);
    stage
        .until("twinstep_matches_ended_total{how=\"over\"}", 1.0)
        .await;
    plays(&mut [stage.client("anna", 3)]).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_a_match_too_early_is_told_to_come_back_in_a_moment() {
    let stage = Stage::new("rate", |_| counters().per_second(1)).await;
    // All at once, whatever the machine has to do.
    let mut ends = Vec::new();
    let dialled: Vec<_> = (0..4).map(|id| stage.client("anna", id)).collect();
    for client in dialled {
        ends.push(tokio::spawn(async move {
            let mut party = [client];
            let played = play(&mut party, |party| tick(&party[0]) > Tick(0)).await;
            played.err()
        }));
    }
    let mut refused = 0;
    for end in ends {
        if let Some(end) = end.await.unwrap() {
            assert_eq!(end, said(CloseCode::ServerFull { after_s: 2 }));
            refused += 1;
        }
    }
    assert!((1..4).contains(&refused), "{refused} of 4");
    let series = "twinstep_matches_not_made_total{reason=\"rate\"}";
    assert_eq!(stage.number(series).await, f64::from(refused));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    plays(&mut [stage.client("anna", 9)]).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

/// Open files of this process below a folder.
#[cfg(target_os = "linux")]
fn open_below(folder: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    targets.filter(|path| path.starts_with(folder)).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deserted_match_ends_leaves_nothing_and_can_be_made_again() {
    let stage = Stage::new("deserted", |folder| {
        let a_second = Duration::from_secs(1);
        counters().deserted_after(a_second).journals(&folder.0)
    })
    .await;
    let ended = "twinstep_matches_ended_total{how=\"deserted\"}";
    for round in 1..=2 {
        let mut party = vec![stage.client("anna", 7), stage.client("bob", 7)];
        plays(&mut party).await;
        let bob = party.pop().unwrap();
        leave(vec![bob]).await;
        // One is there.
        let since = tick(&party[0]);
        play(&mut party, |party| tick(&party[0]) > since + 120)
            .await
            .unwrap();
        assert_eq!(stage.listed().await, [7]);
        assert!(journals(&stage.folder.0).contains(&"match-7.journal".to_owned()));
        assert_eq!(open_below(&stage.folder.0), 1);
        leave(party).await;
        stage.until(ended, f64::from(round)).await;
        assert_eq!(stage.listed().await, [] as [u64; 0]);
        assert_eq!(open_below(&stage.folder.0), 0);
        // And is compressed a moment later.
        let path = stage.folder.file(&format!("match-7.{round}.journal.gz"));
        let there = async {
            while !path.exists() || !journals(&stage.folder.0).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.unwrap();
    }
    // Each of a match of its own, whole to its end.
    for name in ["match-7.1.journal.gz", "match-7.2.journal.gz"] {
        let path = stage.folder.file(name);
        let bytes = read_journal(&path).unwrap();
        // Whoever compressed it may hold it for a moment more.
        let checkup = loop {
            match Checkup::of::<Counter>(&path) {
                Err(JournalFileError::InUse { .. }) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                checkup => break checkup.unwrap(),
            }
        };
        assert_eq!(checkup.harm, None);
        let refused = checkup.repair(&path).unwrap_err();
        assert!(refused.to_string().contains("gunzip"), "{refused}");
        let index = Index::scan(&bytes).unwrap();
        assert_eq!(index.ended.as_deref(), Some("the match is over"), "{name}");
        assert_eq!(index.worlds[0].tick, Tick(0), "{name}");
    }
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_is_kept_for_as_long_as_it_was_said_after_the_last_one_left() {
    let stage = Stage::new("kept", |_| {
        counters().deserted_after(Duration::from_secs(6))
    })
    .await;
    // The time begins anew with each one who leaves.
    for name in ["anna", "bob"] {
        let mut party = vec![stage.client(name, 7)];
        plays(&mut party).await;
        let seen = tick(&party[0]) + 60;
        play(&mut party, |party| tick(&party[0]) > seen)
            .await
            .unwrap();
        leave(party).await;
        tokio::time::sleep(Duration::from_millis(3_200)).await;
        assert_eq!(stage.listed().await, [7], "{name}");
    }
    let ended = "twinstep_matches_ended_total{how=\"deserted\"}";
    stage.until(ended, 1.0).await;
    assert_eq!(stage.number("twinstep_matches_made_total").await, 1.0);
    stage.host.shutdown(CloseCode::Draining).await;
}

/// Who comes again after a failure is not told of the old one for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_that_could_not_be_made_is_made_when_it_can_be() {
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let once = fails.clone();
    let template = move |_| {
        let again = once.swap(false, std::sync::atomic::Ordering::Relaxed);
        assert!(!again, "planted");
        Blueprint::action(Counter::default(), ())
    };
    let stage = Stage::new("again", |_| OnDemand::new(template)).await;
    let failed = end_of(stage.client("anna", 7)).await;
    assert_eq!(failed, said(CloseCode::Fault));
    plays(&mut [stage.client("anna", 7)]).await;
    stage.host.shutdown(CloseCode::Draining).await;
}

/// The door of a process that has just started knows nothing of matches that it has not made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_revoked_before_a_restart_makes_no_match_after_it() {
    let mut stage = Stage::new("revoked-before", |_| counters()).await;
    let stolen = stage.ticket("anna", 7);
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(stage.told("POST /revoke?identity=anna&match=7").await, 200);
    let address = stage.host.local_addr();
    let config = HostConfig {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        serials_file: Some(stage.folder.file("serials")),
        ..HostConfig::new(Counter::NAME, address, stage.key.clone())
    };
    let old = std::mem::replace(
        &mut stage.host,
        Stage::host(&stage.folder, &stage.key).await,
    );
    old.shutdown(CloseCode::Draining).await;
    let again = Host::start(config).await.unwrap();
    again.make_on_demand(counters());
    std::mem::replace(&mut stage.host, again)
        .shutdown(CloseCode::Draining)
        .await;
    assert_eq!(end_of(client(&stolen)).await, said(CloseCode::Superseded));
    let made = "twinstep_matches_made_total";
    assert_eq!(stage.number(made).await, 0.0);
    stage.host.shutdown(CloseCode::Draining).await;
}

/// Who came just when a match was about to end was told that it is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_when_a_match_is_about_to_end_plays_in_it_or_in_the_next() {
    let stage = Stage::new("edge", |folder| {
        let a_second = Duration::from_secs(1);
        let matches = counters().deserted_after(a_second).per_second(1_000);
        matches.journals(&folder.0)
    })
    .await;
    let mut party: Vec<_> = (0..24).map(|id| stage.client("anna", id)).collect();
    plays(&mut party).await;
    leave(party).await;
    // They are looked at four times a second.
    let mut late = Vec::new();
    for id in 0..24 {
        let ticket = stage.ticket("bob", id);
        late.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(900 + 20 * id)).await;
            let mut party = [client(&ticket)];
            play(&mut party, |party| tick(&party[0]) > Tick(0)).await
        }));
    }
    for (id, late) in late.into_iter().enumerate() {
        assert_eq!(late.await.unwrap(), Ok(()), "match {id}");
    }
    stage.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_whose_process_was_killed_or_drained_goes_on_when_somebody_comes() {
    let mut stage = Stage::new("killed", |folder| counters().journals(&folder.0)).await;
    let mut seen = Tick(0);
    for drains in [false, true, false] {
        let mut party = vec![stage.client("anna", 7)];
        play(&mut party, |party| tick(&party[0]) > seen + 90)
            .await
            .unwrap();
        seen = tick(&party[0]);
        let next = Stage::host(&stage.folder, &stage.key).await;
        let host = std::mem::replace(&mut stage.host, next);
        match drains {
            true => host.shutdown(CloseCode::Draining).await,
            false => drop(host),
        }
        assert_eq!(journals(&stage.folder.0), ["match-7.journal"]);
        stage
            .host
            .make_on_demand(counters().journals(&stage.folder.0));
    }
    let bytes = std::fs::read(stage.folder.file("match-7.journal")).unwrap();
    assert_eq!(Index::scan(&bytes).unwrap().resumes, 2);
    stage.host.shutdown(CloseCode::Draining).await;
}
