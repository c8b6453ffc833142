//! Background encodings of large worlds: which clients wait for them, which do not, and what happens if they never
//! complete.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use twinstep_client::{SessionConfig, SessionEnd};
use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::{Effects, Frame, Simulation, Tick};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::{Index, Replay};
use twinstep_rig::direct::{Direct, Heavy};
use twinstep_rig::game_types;
use twinstep_server::config::{Spectators, TurnLength};
use twinstep_server::peer::SessionStage;
use twinstep_server::{MatchConfig, WorldEncoding};

const SECOND: u32 = 60;
const BYTES: usize = 20_000;

fn table(clients: usize, policies: MatchConfig) -> Direct<Heavy> {
    let policies = MatchConfig {
        turn: TurnLength::Fixed(2),
        ..policies
    };
    let sessions = (0..clients).map(|_| SessionConfig::new(Arc::new(())));
    let sim = Heavy::of(BYTES);
    let mut table = Direct::of(policies, sim, sessions);
    table.match_.keep_journal().expect("a journal");
    table.match_.encode_aside(BYTES / 2);
    // A match knows the size of its world after its first tick.
    table.mute_until = Duration::from_millis(100);
    table.run(5, |_, _| 0);
    let watched = table.match_.config().spectators.delay_ticks > 0;
    assert_eq!(
        table.to_encode.len(),
        usize::from(watched),
        "no world was requested"
    );
    table
}

fn play(table: &mut Direct<Heavy>, frames: u32, later: u32) -> usize {
    let mut under_way: Vec<(u32, WorldEncoding)> = Vec::new();
    let mut count = 0;
    for frame in 0..frames {
        for (_, world) in under_way.extract_if(.., |(at, _)| *at <= frame) {
            table.match_.hand_world(world.run());
        }
        table.run(1, |client, _| client as u8 + 1);
        let asked = table.to_encode.drain(..);
        under_way.extend(asked.map(|world| (frame + 1 + later, world)));
        count += under_way
            .iter()
            .filter(|(at, _)| *at == frame + 1 + later)
            .count();
    }
    count
}

fn plays(table: &Direct<Heavy>, client: usize) -> bool {
    let session = &table.sessions[client];
    session.prediction().is_some() && session.progress().is_none()
}

fn worlds(table: &Direct<Heavy>) -> Vec<Tick> {
    let index = Index::scan(&table.journal).expect("a journal");
    let (rules, _) = table.match_.origin();
    let mut replay = Replay::<Heavy>::open(&table.journal, &rules).unwrap();
    let verified = replay.verify();
    assert_eq!(verified.fault, None);
    assert_eq!(verified.worlds as usize, index.worlds.len() - 1);
    index.worlds.iter().map(|place| place.tick).collect()
}

#[test]
fn joiners_within_a_second_share_one_encoding() {
    let mut table = table(2, MatchConfig::action());
    // Both request a world. Until it is encoded, neither is admitted, and no second encoding is made.
    table.run(30, |_, _| 0);
    assert_eq!(table.to_encode.len(), 1);
    for client in 0..2 {
        let stage = table.match_.stage(twinstep_server::SessionId(client));
        assert_eq!(stage, Some(SessionStage::Greeting));
    }
    let world = table.to_encode.pop().unwrap().run();
    table.match_.hand_world(world);
    table.run(3 * SECOND, |_, _| 0);
    assert!(plays(&table, 0) && plays(&table, 1));
    assert_eq!(table.to_encode.len(), 0, "one was enough");
    assert_eq!(table.match_.stats().desyncs, 0);
    let [server, one, two] = [
        table.match_.world(),
        table.sessions[0].authority().unwrap(),
        table.sessions[1].authority().unwrap(),
    ];
    assert!(server.tick() - one.tick() < 8 && server.tick() - two.tick() < 8);
}

/// Covers encodings that complete immediately, and encodings that complete too late, when the next turn has started. In
/// that case the world is encoded again, and finally the match encodes it itself.
#[test]
fn the_journal_gets_its_worlds_on_time_or_slightly_late() {
    let mut times = Vec::new();
    for later in [0, 1, 5] {
        let mut table = table(1, MatchConfig::action());
        let encoded = play(&mut table, 35 * SECOND, later);
        let worlds = worlds(&table);
        println!("{later} frames later: {encoded} encoded, worlds at {worlds:?}");
        assert_eq!(worlds.len(), 4, "at the start and every ten seconds");
        for (n, world) in worlds.iter().enumerate() {
            let due = Tick(n as u32 * 600);
            assert!((0..30).contains(&(*world - due)), "{worlds:?}");
        }
        times.push(encoded);
    }
    // One for the joiner, and one for each world of the journal; or, for its first world, three late ones or one that
    // is more than three turns late. After that, the match encodes its worlds itself for a minute.
    assert_eq!(times, [1 + 3, 1 + 3, 1 + 1]);
}

#[test]
fn a_match_encodes_worlds_itself_if_the_host_returns_none() {
    let mut table = table(1, MatchConfig::action());
    table.run(4 * SECOND, |_, _| 0);
    assert!(!plays(&table, 0) && table.to_encode.len() == 1);
    table.run(4 * SECOND, |_, _| 0);
    assert!(plays(&table, 0), "it waits at most 5 s");
    table.run(26 * SECOND, |_, _| 0);
    assert_eq!(
        table.to_encode.len(),
        1,
        "a match without progress gets no more encodings"
    );
    assert!(worlds(&table).len() >= 4);
    // A late result is still used: background encoding continues.
    let world = table.to_encode.pop().unwrap().run();
    table.match_.hand_world(world);
    assert!(play(&mut table, 12 * SECOND, 0) > 0);
}

/// An encoding takes longer than a world stays fresh. A world's age counts from the end of its encoding.
#[test]
fn clients_join_even_if_an_encoding_takes_seconds() {
    for later in [90, 200] {
        let mut table = table(1, MatchConfig::action());
        let encoded = play(&mut table, later + 30, later);
        assert!(plays(&table, 0) && encoded == 1, "{later} frames");
    }
}

/// Regression: the journal got every world that was completed between two turns, and every hello started an encoding.
#[test]
fn a_client_requesting_worlds_repeatedly_costs_one_encoding_per_join() {
    let mut table = table(2, MatchConfig::strategy());
    let (mut encoded, mut seconds) = (0, 0);
    while seconds < 33 {
        // The second hello arrives only when no fresh world is left.
        for frame in 0..66 {
            table.frame(|_, _| 1);
            if frame > 0 {
                table.up.retain(|(client, _)| *client == 0);
            }
            table.serve();
            for world in std::mem::take(&mut table.to_encode) {
                encoded += 1;
                table.match_.hand_world(world.run());
            }
        }
        seconds += 1;
    }
    let worlds = worlds(&table);
    println!("{encoded} encoded, worlds at {worlds:?}");
    assert!(worlds.len() <= 5, "the journal has one every ten seconds");
    assert!(encoded <= 33 * 11 / 10 / 5 + 8, "{encoded}");
}

#[test]
fn worlds_for_delayed_spectators_are_also_encoded_in_the_background() {
    let mut policies = MatchConfig::action();
    policies.spectators = Spectators {
        max: 4,
        delay_ticks: 240,
    };
    let mut table = table(1, policies);
    let world = table.to_encode.pop().unwrap().run();
    table.match_.hand_world(world);
    let encoded = play(&mut table, 21 * SECOND, 1);
    // One encoding every five seconds, and those for the journal.
    assert!((4..=4 + 2 * 3).contains(&encoded), "{encoded}");
    assert!(plays(&table, 0));
    let who = table
        .match_
        .connect(table.now, twinstep_server::SessionId(9), "watcher", 0);
    assert_eq!(who, Ok(()));
}

thread_local! {
    static MOOD: Cell<Mood> = const { Cell::new(Mood::Well) };
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Panics,
    TooLarge,
}

/// A state with a selectable fault in its encoding. Its digest is always the same.
#[derive(Clone, Debug, Deserialize)]
struct Moody(Vec<u8>);

impl Serialize for Moody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Measuring the size also counts as an encoding.
        let by = std::any::type_name::<S>();
        let is_encoding = !by.contains("Hasher") && !by.contains("NanScan");
        match MOOD.get() {
            Mood::Panics if is_encoding => panic!("planted: no bytes today"),
            Mood::TooLarge if is_encoding => vec![0_u8; WORLD_BYTES_MAX + 1].serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

impl Simulation for Moody {
    game_types!("moody");

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

fn moody() -> (Direct<Moody>, WorldEncoding) {
    let sessions = vec![SessionConfig::new(Arc::new(()))];
    let (policies, sim) = (MatchConfig::action(), Moody(vec![1; BYTES]));
    let mut table = Direct::of(policies, sim, sessions);
    table.match_.encode_aside(BYTES / 2);
    table.mute_until = Duration::from_millis(100);
    table.run(30, |_, _| 0);
    let world = table.to_encode.pop().expect("asked for");
    (table, world)
}

#[test]
fn a_panic_in_a_background_encoding_is_reported_with_its_message() {
    let (mut table, world) = moody();
    MOOD.set(Mood::Panics);
    let encoded = world.run();
    MOOD.set(Mood::Well);
    let handed = AssertUnwindSafe(|| table.match_.hand_world(encoded));
    let reported = catch_unwind(handed).unwrap_err();
    let reported = reported.downcast_ref::<String>().expect("words");
    assert_eq!(reported, "planted: no bytes today");
}

/// The world has grown since its size was last measured.
#[test]
fn a_joiner_whose_world_is_too_large_is_refused_with_the_reason() {
    let (mut table, world) = moody();
    MOOD.set(Mood::TooLarge);
    table.match_.hand_world(world.run());
    assert_eq!(table.match_.stats().worlds_too_large, 1);
    table.run(8 * SECOND, |_, _| 0);
    MOOD.set(Mood::Well);
    let reported = SessionEnd::Server(CloseCode::WorldTooLarge);
    assert_eq!(table.sessions[0].closed(), Some(reported));
}

#[test]
fn a_result_handed_back_twice_has_no_effect() {
    let mut table = table(1, MatchConfig::action());
    table.run(30, |_, _| 0);
    let world = table.to_encode.pop().expect("asked for").run();
    table.match_.hand_world(world.clone());
    table.run(11 * SECOND, |_, _| 0);
    assert!(plays(&table, 0) && table.to_encode.len() == 1);
    table.match_.hand_world(world);
    table.run(SECOND, |_, _| 0);
    let due = table.to_encode.pop().expect("of the journal").run();
    table.match_.hand_world(due);
    table.run(SECOND, |_, _| 0);
    assert_eq!(worlds(&table)[0], Tick(0));
}
