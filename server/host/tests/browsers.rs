//! Browsers: sessions over WebTransport, next to those over UDP. The page is a task with its own WebTransport client;
//! the client code above it is the code that runs in a browser.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use twinstep_client::{Client, NoPicture, SessionConfig, SessionEnd};
use twinstep_core::Tick;
use twinstep_core::testing::doc::Counter;
use twinstep_host::{Observer, Running, Server, Traffic, WebCertificate, WebConfig};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::{
    CloseReason, Ticket, Transport, TransportCounters, TransportState, UdpClient, WebAddress,
};
use twinstep_web::{WebLine, page};
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Connection, Endpoint, Identity};

use crate::folder::Folder;
use crate::players::PATIENCE;

static LARGEST: AtomicUsize = AtomicUsize::new(usize::MAX);

async fn connect(web: &WebAddress) -> Option<Connection> {
    let hashes = web.hashes().iter().map(|hash| Sha256Digest::new(*hash));
    let config = ClientConfig::builder()
        .with_bind_address("127.0.0.1:0".parse().unwrap())
        .with_server_certificate_hashes(hashes)
        .build();
    let endpoint = Endpoint::client(config).ok()?;
    let server = web.servers()[0];
    endpoint.connect(format!("https://{server}/")).await.ok()
}

async fn carry(line: u32, web: WebAddress, lines: Arc<Mutex<Vec<(u32, Connection)>>>) {
    if let Some(connection) = connect(&web).await {
        lines.lock().unwrap().push((line, connection.clone()));
        page::opened(line);
        while let Ok(datagram) = connection.receive_datagram().await {
            page::came(line, &datagram);
        }
        lines.lock().unwrap().retain(|(of, _)| *of != line);
    }
    page::closed(line);
}

#[expect(clippy::disallowed_methods, reason = "a browser runs by itself")]
fn open_page() {
    static OPEN: Once = Once::new();
    OPEN.call_once(|| {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async {
                let lines = Arc::<Mutex<Vec<(u32, Connection)>>>::default();
                loop {
                    while let Some((line, web)) = page::dial() {
                        tokio::spawn(carry(line, web, lines.clone()));
                    }
                    while let Some((line, datagram)) = page::outgoing() {
                        let lines = lines.lock().unwrap();
                        let line = lines.iter().find(|(of, _)| *of == line);
                        let fits = datagram.len() <= LARGEST.load(Ordering::Relaxed);
                        if let Some((_, connection)) = line.filter(|_| fits) {
                            let _ = connection.send_datagram(&datagram);
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        });
    });
}

#[derive(Debug, Default)]
struct SeenTraffic(Mutex<Traffic>);

impl Observer for SeenTraffic {
    fn traffic(&self, traffic: &Traffic, _: &TransportCounters) {
        *self.0.lock().unwrap() = *traffic;
    }
}

fn serve(sessions_max: usize) -> (Running<Counter>, Arc<SeenTraffic>) {
    open_page();
    let seen = Arc::<SeenTraffic>::default();
    let server = Server::action(Counter::default(), ())
        .players(16)
        .web(WebConfig::new("127.0.0.1:0".parse().unwrap()))
        .host(|host| {
            host.sessions_max = Some(sessions_max);
            host.observer = seen.clone();
        });
    (server.listen("127.0.0.1:0").unwrap(), seen)
}

fn config() -> SessionConfig<Counter> {
    SessionConfig::new(Arc::new(()))
}

struct One<T: Transport> {
    client: Client<Counter, NoPicture, T>,
    began: Instant,
    ended: Option<SessionEnd>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
fn now() -> Instant {
    Instant::now()
}

impl One<WebLine> {
    fn by_web(ticket: &Ticket) -> One<WebLine> {
        One::of(twinstep_web::join(ticket, config()).unwrap())
    }
}

impl One<UdpClient> {
    fn by_udp(ticket: &Ticket) -> One<UdpClient> {
        One::of(Client::connect(ticket, config()).unwrap())
    }
}

impl<T: Transport> One<T> {
    fn of(client: Client<Counter, NoPicture, T>) -> One<T> {
        One {
            client,
            began: now(),
            ended: None,
        }
    }

    fn tick(&self) -> Tick {
        let world = self.client.session().authority();
        world.map_or(Tick(0), |world| world.tick())
    }

    fn is_in(&self) -> bool {
        let session = self.client.session();
        match (session.authority(), session.seats().first()) {
            (Some(world), Some(own)) => world.present().contains(*own),
            _ => false,
        }
    }
}

trait Plays {
    fn frame(&mut self);
    fn is_in(&self) -> bool;
    fn tick(&self) -> Tick;
    fn ended(&self) -> Option<SessionEnd>;
    fn digest_at(&self, tick: Tick) -> Option<u64>;
    fn heals(&self) -> u64;
    fn rtt_ms(&self) -> f64;
}

impl<T: Transport> Plays for One<T> {
    fn frame(&mut self) {
        if self.ended.is_none() {
            let (at, began) = (self.began.elapsed(), self.began);
            self.ended = self.client.advance_at(at, || began.elapsed(), |_| 1).err();
            while self.client.session_mut().poll_event().is_some() {}
        }
    }

    fn is_in(&self) -> bool {
        One::is_in(self)
    }

    fn tick(&self) -> Tick {
        One::tick(self)
    }

    fn ended(&self) -> Option<SessionEnd> {
        self.ended
    }

    fn digest_at(&self, tick: Tick) -> Option<u64> {
        let world = self.client.session().authority()?;
        (world.tick() == tick).then(|| world.digest().unwrap())
    }

    fn heals(&self) -> u64 {
        self.client.session().stats().heals
    }

    fn rtt_ms(&self) -> f64 {
        self.client.session().stats().rtt_ms
    }
}

fn play(party: &mut [Box<dyn Plays>], mut done: impl FnMut(&[Box<dyn Plays>]) -> bool) {
    let began = now();
    while !done(party) {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        party.iter_mut().for_each(|one| one.frame());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn all_in(party: &[Box<dyn Plays>]) -> bool {
    party.iter().all(|one| one.is_in())
}

#[test]
fn a_browser_and_a_udp_player_play_one_match_with_equal_digests() {
    let (server, seen) = serve(8);
    let (anna, bert) = (
        server.ticket("anna").unwrap(),
        server.ticket("bert").unwrap(),
    );
    assert_eq!(anna.web(), server.web_address());
    let mut party: [Box<dyn Plays>; 2] =
        [Box::new(One::by_web(&anna)), Box::new(One::by_udp(&bert))];
    play(&mut party, all_in);
    let mut equal = BTreeSet::new();
    play(&mut party, |party| {
        let at = party[0].tick();
        let digests = [&party[0], &party[1]].map(|one| one.digest_at(at));
        if let [Some(one), Some(other)] = digests {
            assert_eq!(one, other, "at {at:?}");
            equal.insert(at);
        }
        equal.len() >= 60
    });
    for one in &party {
        assert_eq!((one.heals(), one.ended()), (0, None));
        assert!(one.rtt_ms() < 100.0, "{} ms", one.rtt_ms());
    }
    let traffic = seen.0.lock().unwrap().web;
    assert_eq!((traffic.lines, traffic.mute, traffic.streams), (1, 0, 0));
    assert!(traffic.datagrams_in > 20 && traffic.datagrams_out > 20);
    // The page is closed, and another one reconnects as the same player.
    let mut kept = None;
    play(&mut party, |_| {
        // All pages of this process keep their tickets in one place.
        let newest = page::take_ticket_to_store().map(|line| line.parse::<Ticket>().unwrap());
        kept = newest.filter(|ticket| ticket.web() == server.web_address());
        kept.is_some()
    });
    let kept = kept.unwrap();
    let players = || server.inspect(|match_| match_.world().present().len());
    assert_eq!(players().unwrap(), 2);
    party[0] = Box::new(One::by_web(&kept));
    play(&mut party, all_in);
    assert_eq!(players().unwrap(), 2, "not a third player");
}

#[test]
fn browser_and_udp_sessions_share_one_limit() {
    let (server, _) = serve(8);
    let ticket = |n: usize| server.ticket(&format!("player {n}")).unwrap();
    let mut party: Vec<Box<dyn Plays>> = Vec::new();
    for n in 0..4 {
        party.push(Box::new(One::by_web(&ticket(n))));
        party.push(Box::new(One::by_udp(&ticket(4 + n))));
    }
    play(&mut party, all_in);
    let more: [Box<dyn Plays>; 2] = [
        Box::new(One::by_web(&ticket(8))),
        Box::new(One::by_udp(&ticket(9))),
    ];
    party.extend(more);
    play(&mut party, |party| {
        party[8..].iter().all(|one| one.ended().is_some())
    });
    for one in &party[8..] {
        let full = SessionEnd::Transport(CloseReason::Denied);
        assert_eq!(one.ended(), Some(full), "in words: the server is full");
    }
    assert!(party[..8].iter().all(|one| one.ended().is_none()));
}

/// The newer session wins, unless its ticket was replaced by a newer one stored by the older session's page.
#[test]
fn a_ticket_used_over_udp_and_in_a_browser_holds_one_session() {
    let (server, _) = serve(8);
    let anna = server.ticket("anna").unwrap();
    let bert = server.ticket("bert").unwrap();
    let taken_over = Some(SessionEnd::Server(CloseCode::TakenOver));
    let mut party: Vec<Box<dyn Plays>> = vec![Box::new(One::by_udp(&anna))];
    play(&mut party, all_in);
    party.push(Box::new(One::by_web(&anna)));
    play(&mut party, |party| {
        party[0].ended().is_some() && party[1].is_in()
    });
    assert_eq!([party[0].ended(), party[1].ended()], [taken_over, None]);

    let mut party: Vec<Box<dyn Plays>> = vec![Box::new(One::by_web(&bert))];
    play(&mut party, all_in);
    party.push(Box::new(One::by_udp(&bert)));
    play(&mut party, |party| {
        let ended = party.iter().filter(|one| one.ended().is_some());
        ended.count() == 1 && party.iter().any(|one| one.ended().is_none() && one.is_in())
    });
    let superseded = Some(SessionEnd::Server(CloseCode::Superseded));
    let ended = [party[0].ended(), party[1].ended()];
    assert!(
        [[taken_over, None], [None, superseded]].contains(&ended),
        "{ended:?}"
    );
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    { runtime }.worker_threads(1).enable_all().build().unwrap()
}

/// Fifty pages from one address that do not show a ticket, one page that opens streams, and a player at the same time.
#[test]
fn connections_without_a_ticket_are_limited_and_soon_closed_and_streams_are_not_allowed() {
    let (server, seen) = serve(8);
    let web = server.web_address().unwrap();
    let mut player: [Box<dyn Plays>; 1] = [Box::new(One::by_udp(&server.ticket("anna").unwrap()))];
    play(&mut player, all_in);
    let runtime = runtime();
    let began = now();
    let mute: Vec<_> = (0..50)
        .map(|_| {
            let web = web.clone();
            runtime.spawn(async move {
                let connection = connect(&web).await?;
                connection.closed().await;
                Some(began.elapsed())
            })
        })
        .collect();
    play(&mut player, |_| mute.iter().all(|one| one.is_finished()));
    let lives = mute.into_iter().map(|one| runtime.block_on(one).unwrap());
    let (taken, refused): (Vec<_>, Vec<_>) = lives.partition(Option::is_some);
    // Refused connections no longer wait, so a few more than 32 may have been accepted.
    assert!((24..=40).contains(&taken.len()), "{} of 50", taken.len());
    assert!(!refused.is_empty());
    for life in taken.into_iter().flatten() {
        let bounds = Duration::from_millis(1_900)..Duration::from_secs(6);
        assert!(bounds.contains(&life), "{life:?}");
    }
    let streams = runtime.spawn(async move {
        let connection = connect(&web).await.expect("a line");
        let began = now();
        let mut stream = connection.open_uni().await.unwrap().await.unwrap();
        let _ = stream.write_all(b"a stream").await;
        connection.closed().await;
        began.elapsed()
    });
    play(&mut player, |_| streams.is_finished());
    let closed_after = runtime.block_on(streams).unwrap();
    assert!(closed_after < Duration::from_secs(1), "{closed_after:?}");
    play(&mut player, |_| {
        let web = seen.0.lock().unwrap().web;
        (web.lines, web.streams) == (0, 1)
    });
    let traffic = seen.0.lock().unwrap().web;
    assert!(traffic.mute >= 24 && traffic.refused >= 10, "{traffic:?}");
    assert_eq!((player[0].ended(), player[0].heals()), (None, 0));
}

#[test]
fn corrupted_datagrams_from_pages_do_not_disturb_players() {
    let (server, seen) = serve(8);
    let web = server.web_address().unwrap();
    let mut party: [Box<dyn Plays>; 2] = [
        Box::new(One::by_udp(&server.ticket("anna").unwrap())),
        Box::new(One::by_web(&server.ticket("bert").unwrap())),
    ];
    play(&mut party, all_in);
    let runtime = runtime();
    // A busy machine loses most of a flood, so the flood continues until enough has arrived.
    let enough = Arc::new(AtomicBool::new(false));
    let stop = enough.clone();
    let flood = runtime.spawn(async move {
        for round in 0..100_u64 {
            let Some(connection) = connect(&web).await else {
                continue;
            };
            for n in 0..5_000_u64 {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                // Every length, and the first bytes of valid datagrams.
                let mut datagram = vec![0; (n % 1_150) as usize];
                let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
                for byte in &mut datagram {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    *byte = (state >> 56) as u8;
                }
                if let Some(kind) = datagram.first_mut() {
                    *kind = (n % 9) as u8;
                }
                let _ = connection.send_datagram(&datagram);
                if n % 64 == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    });
    let arrived = || seen.0.lock().unwrap().web.datagrams_in > 10_000;
    play(&mut party, |_| flood.is_finished() || arrived());
    enough.store(true, Ordering::Relaxed);
    runtime.block_on(flood).unwrap();
    assert!(arrived(), "{:?}", seen.0.lock().unwrap().web);
    let at = party[0].tick();
    play(&mut party, |party| {
        party.iter().all(|one| one.tick() > at + 60)
    });
    for one in &party {
        assert_eq!((one.ended(), one.heals()), (None, 0));
    }
}

/// Pages in Safari send datagrams of at most 1,024 bytes.
#[test]
fn a_page_limited_to_short_datagrams_can_play() {
    let (server, _) = serve(8);
    LARGEST.store(1_000, Ordering::Relaxed);
    let mut party: [Box<dyn Plays>; 1] = [Box::new(One::by_web(&server.ticket("anna").unwrap()))];
    play(&mut party, all_in);
    play(&mut party, |party| party[0].tick() > Tick(120));
    LARGEST.store(usize::MAX, Ordering::Relaxed);
    assert_eq!((party[0].ended(), party[0].heals()), (None, 0));
}

#[test]
fn both_transports_detect_the_end_of_the_server() {
    let (server, _) = serve(8);
    let mut web = One::by_web(&server.ticket("anna").unwrap());
    let mut udp = One::by_udp(&server.ticket("bert").unwrap());
    let began = now();
    while !(web.is_in() && udp.is_in()) {
        assert!(began.elapsed() < PATIENCE);
        web.frame();
        udp.frame();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(web.client.transport().state(), TransportState::Connected);
    drop(server);
    let lost = now();
    while [
        web.client.transport().state(),
        udp.client.transport().state(),
    ]
    .contains(&TransportState::Connected)
    {
        assert!(lost.elapsed() < Duration::from_secs(20));
        web.frame();
        udp.frame();
        std::thread::sleep(Duration::from_millis(2));
    }
    let closed = TransportState::Closed(CloseReason::TimedOut);
    for state in [
        web.client.transport().state(),
        udp.client.transport().state(),
    ] {
        assert_eq!(state, closed);
    }
}

/// A certificate issued by an authority is used unchanged. With another certificate's key the host does not start, and
/// the error names the file.
#[test]
fn a_certificate_from_files_is_used_and_must_match_its_key() {
    let folder = Folder::new("web-files");
    let write = |name: &str, text: String| {
        let path = folder.file(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let [one, other] = [0, 1].map(|_| Identity::self_signed(["localhost"]).unwrap());
    let certificate = &one.certificate_chain().as_slice()[0];
    let chain = write("chain.pem", certificate.to_pem());
    let serve = |identity: &Identity, name: &str| {
        let certificate = WebCertificate::Files {
            chain: chain.clone(),
            key: write(name, identity.private_key().to_secret_pem()),
        };
        let web = WebConfig::new("127.0.0.1:0".parse().unwrap());
        let server = Server::action(Counter::default(), ());
        let server = server.web(WebConfig { certificate, ..web });
        server.listen("127.0.0.1:0")
    };
    let server = serve(&one, "key.pem").unwrap();
    let web = server.web_address().unwrap();
    assert_eq!(web.hashes(), [[0; 32]; 0], "browsers ask the authority");
    let runtime = runtime();
    let dial = |identity: &Identity| {
        let hash = *identity.certificate_chain().as_slice()[0].hash().as_ref();
        let pinned = WebAddress::new(web.servers(), &[hash]).unwrap();
        runtime.block_on(connect(&pinned)).is_some()
    };
    assert!(dial(&one));
    assert!(!dial(&other));
    let error = serve(&other, "another.pem").err().unwrap().to_string();
    assert!(error.contains("another.pem"), "{error}");
}
