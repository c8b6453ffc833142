//! What one identity may cost the others: waiting, places to join, what is told of others. Attackers here are raw
//! sessions that say what they like; coming back never helps them.

use std::sync::Arc;
use std::time::Duration;

use powderkeg::game::Game;
use twinstep_client::{Closed, Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::link::{LINK_BYTES, Link};
use twinstep_core::packet::UpKind;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::simnet::{LegProfile, LinkProfile};
use twinstep_core::wire::Writer;
use twinstep_core::{Effects, Frame, Never, PlayerId, Presence, Simulation};
use twinstep_server::config::{Laggards, Sealing, Spectators, TickLength, TurnLength};
use twinstep_server::peer::Stage;
use twinstep_server::{MatchConfig, PeerId};
use twinstep_tests::direct::{Direct, unasked};
use twinstep_tests::history::History;
use twinstep_tests::rig::{Play, Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;
/// Where a Play packet tells of load and pauses: behind its kind, its link, and what it has.
const LOAD_AT: usize = 1 + LINK_BYTES + 2 + 1;

/// What goes up arrives so much later.
fn late(delay: Duration) -> LinkProfile {
    LinkProfile {
        up: LegProfile {
            delay,
            ..LegProfile::PERFECT
        },
        down: LegProfile::PERFECT,
    }
}

fn turn(rig: &Rig<History>) -> u32 {
    rig.game.world().turn().number
}

/// Finding C1: each batch was late by less than `kick_after`, so its player was never removed.
#[test]
fn who_makes_the_others_wait_again_and_again_is_removed() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(1, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let slow = rig.clients[2].session.seats()[0];
    rig.relink(2, late(SECOND * 4));
    let mut removed = Duration::ZERO;
    while rig.game.world().present().contains(slow) && removed < SECOND * 120 {
        rig.run(SECOND);
        removed += SECOND;
    }
    assert!(removed <= SECOND * 40, "it is there after {removed:?}");
    let waited = rig.game.seat_stats(slow).waited;
    assert!(waited >= SECOND * 19 && waited <= SECOND * 30, "{waited:?}");
    for other in [0, 1, 3] {
        let other = rig.clients[other].session.seats()[0];
        let waited = rig.game.seat_stats(other).waited;
        assert!(waited < SECOND * 2, "{other} was waited for {waited:?}");
    }
    let identity = rig.clients[2].identity.clone();
    assert_eq!(rig.join_with(&identity, 1), Err(CloseCode::TooSlow));
    let before = turn(&rig);
    rig.run(SECOND * 10);
    assert!(turn(&rig) - before >= 60, "the others do not play on");
    assert_eq!(
        rig.clients[2].session.closed(),
        Some(Closed::Server(CloseCode::TooSlow))
    );
}

/// Finding C1: a new session began with nothing spent.
#[test]
fn coming_back_does_not_pay_for_having_been_waited_for() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(2, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let began = turn(&rig);
    let mut dialled = 0;
    // Silent for seven seconds, and then anew.
    for _ in 0..12 {
        rig.cut(1);
        rig.run(SECOND * 7);
        let identity = rig.clients[1].identity.clone();
        let peer = PeerId(1_000 + dialled);
        match rig.game.connect(rig.now, peer, &identity, 1) {
            Ok(()) => rig.game.disconnect(peer),
            Err(code) => {
                assert_eq!(code, CloseCode::TooSlow);
                break;
            }
        }
        rig.redial(1);
        rig.run(SECOND);
        dialled += 1;
    }
    assert!(dialled <= 4, "it came back {dialled} times");
    let before = turn(&rig);
    assert!(before > began);
    rig.run(SECOND * 10);
    assert!(turn(&rig) - before >= 60, "the others do not play on");
}

/// Finding C1: a turn may be due before the one before it was sealed, and what lay between was paid for twice.
#[test]
fn nobody_pays_for_more_than_the_others_waited() {
    let mut config = RigConfig::strategy(4, LinkProfile::LAN);
    config.policies.command_delay = 4;
    config.policies.tick = MS(16);
    config.policies.turn = TurnLength::Fixed(1);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 2);
    let slow = rig.clients[2].session.seats()[0];
    rig.relink(2, late(MS(150)));
    rig.run(SECOND);
    let (began, at) = (rig.now, rig.game.world().tick());
    let before = rig.game.seat_stats(slow).waited;
    rig.run(SECOND * 10);
    let waited = rig.game.seat_stats(slow).waited - before;
    let played = rig.game.config().tick * (rig.game.world().tick() - at);
    let stood = (rig.now - began).saturating_sub(played);
    assert!(stood >= SECOND, "the match did not wait: {stood:?}");
    assert!(
        waited >= stood / 2 && waited <= stood + MS(200),
        "{waited:?} of {stood:?}"
    );
}

/// Lines that are alike, however bad, are nobody's fault.
#[test]
fn nobody_is_removed_where_all_are_equally_slow() {
    let mut config = RigConfig::strategy(3, LinkProfile::LAN);
    config.policies.command_delay = 1;
    config.clients = 2;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 3);
    for client in 0..2 {
        rig.relink(client, late(MS(400)));
    }
    rig.run(SECOND * 90);
    assert!(rig.all_play(), "{:?}", rig.clients[0].session.closed());
    rig.converge();
}

/// A session that says hello, and nothing after that.
struct Staller {
    identity: String,
    seats: usize,
    peer: PeerId,
    session: Session<Game>,
    refused: u32,
}

impl Staller {
    fn new(n: u64, seats: usize) -> Self {
        Staller {
            identity: format!("mallory {n}"),
            seats,
            peer: PeerId(1_000_000 * n),
            session: Session::new(SessionConfig::new(Arc::new(Game::rules(0)))).unwrap(),
            refused: 0,
        }
    }

    /// Dials again if it is out, and asks for a world while it has none.
    fn insist(&mut self, rig: &mut Rig<Game>) {
        if rig.game.stage(self.peer).is_none() {
            self.peer.0 += 1;
            self.session = Staller::new(0, self.seats).session;
            let dialled = rig
                .game
                .connect(rig.now, self.peer, &self.identity, self.seats);
            self.refused += u32::from(dialled.is_err());
        }
        if rig.game.stage(self.peer) == Some(Stage::Greeting) {
            let mut buffer = [0; PACKET_BYTES_MAX];
            while let Some(len) = self.session.poll_transmit(rig.now, &mut buffer) {
                rig.game.handle(rig.now, self.peer, &buffer[..len]);
            }
        }
    }
}

/// Honest joiners come one after the other, while stallers insist; how long each took.
fn joins_beside(stallers: u64, seats: usize) -> (Vec<Duration>, u32) {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.clients = 1;
    config.policies.players_max = 16;
    config.policies.spectators = Spectators {
        max: 16,
        delay_ticks: 0,
    };
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 2);
    let mut stallers: Vec<_> = (1..=stallers).map(|n| Staller::new(n, seats)).collect();
    let mut took = Vec::new();
    for n in 0..4 {
        for _ in 0..30 {
            stallers.iter_mut().for_each(|s| s.insist(&mut rig));
            rig.run(MS(100));
        }
        let joiner = rig.join_with(&format!("honest {n}"), seats).unwrap();
        let began = rig.now;
        while rig.game.stage(rig.clients[joiner].peer) != Some(Stage::Playing) {
            stallers.iter_mut().for_each(|s| s.insist(&mut rig));
            rig.run(MS(50));
            let waited = rig.now - began;
            assert!(
                waited < SECOND * 60,
                "honest {n} is not in after {waited:?}"
            );
        }
        took.push(rig.now - began);
    }
    (took, stallers.iter().map(|s| s.refused).sum())
}

/// Finding C2: two joiners that never acknowledged their world kept everybody out.
#[test]
fn who_joins_gets_in_while_others_stall_and_dial_again_and_again() {
    for (stallers, seats) in [(2, 1), (4, 1), (8, 0)] {
        let (took, refused) = joins_beside(stallers, seats);
        assert!(
            took.iter().all(|took| *took < SECOND * 5),
            "{stallers} stallers: {took:?}"
        );
        assert!(refused > 0 || seats > 0, "no spectator was ever barred");
    }
}

/// Who joins over a bad line was put out after three seconds, and for good, because others wanted to join too.
#[test]
fn who_gets_its_world_slowly_gives_its_place_away_and_joins_all_the_same() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.clients = 1;
    config.policies.players_max = 16;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 2);
    let slow = rig.join("slow");
    // Its hello arrives; then nothing does for six seconds.
    while rig.game.stage(rig.clients[slow].peer) != Some(Stage::Loading) {
        rig.run(MS(1));
    }
    rig.relink(slow, LinkProfile::both(LegProfile::BLACKOUT));
    for n in 0..6 {
        rig.run(SECOND);
        rig.join(&format!("quick {n}"));
        rig.join(&format!("quicker {n}"));
    }
    rig.relink(slow, LinkProfile::LAN);
    rig.run(SECOND * 3);
    assert!(rig.all_play(), "{:?}", rig.clients[slow].session.closed());
}

/// Who stalls must not keep the seats of a full match from others.
#[test]
fn who_wants_a_seat_gets_that_of_a_session_whose_world_does_not_come_on() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.clients = 1;
    config.policies.players_max = 3;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 2);
    let mut stallers: Vec<_> = (1..=2).map(|n| Staller::new(n, 1)).collect();
    for _ in 0..80 {
        stallers.iter_mut().for_each(|s| s.insist(&mut rig));
        rig.run(MS(100));
    }
    // Nobody is put out for who gets nothing by it.
    let many = rig.join_with("too many", 4);
    assert_eq!(many, Err(CloseCode::Full));
    for staller in &stallers {
        assert_eq!(rig.game.stage(staller.peer), Some(Stage::Loading));
    }
    let honest = rig.join_with("honest", 1).expect("a seat");
    rig.run(SECOND * 5);
    assert_eq!(
        rig.game.stage(rig.clients[honest].peer),
        Some(Stage::Playing)
    );
}

/// A stranger at a full match put out, one after the other, players who were about to come back.
#[test]
fn whose_seat_is_in_the_match_keeps_it_however_slowly_it_comes_back() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.clients = 3;
    config.policies.players_max = 3;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 3);
    for client in [1, 2] {
        rig.restart(client);
        while rig.game.stage(rig.clients[client].peer) != Some(Stage::Loading) {
            rig.run(MS(1));
        }
        rig.relink(client, LinkProfile::both(LegProfile::BLACKOUT));
    }
    rig.run(SECOND * 6);
    assert_eq!(rig.join_with("stranger", 1), Err(CloseCode::Full));
    for client in [1, 2] {
        rig.relink(client, LinkProfile::LAN);
    }
    rig.run(SECOND * 3);
    assert!(rig.all_play());
}

/// Finding K17: one Play packet made room for the next world before the last one was there.
#[test]
fn who_plays_before_its_world_is_there_keeps_its_place() {
    let mut config = RigConfig::new(5, LinkProfile::LAN);
    config.clients = 1;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 2);
    let mut liar = Staller::new(1, 1);
    liar.insist(&mut rig);
    rig.run(MS(50));
    assert_eq!(rig.game.stage(liar.peer), Some(Stage::Loading));
    let mut link = Link::default();
    for _ in 0..4 {
        let mut buffer = [0; PACKET_BYTES_MAX];
        let mut packet = Writer::new(&mut buffer);
        packet.u8(UpKind::Play.alone()).unwrap();
        link.write(rig.now, &mut packet).unwrap();
        packet.tick16(rig.game.world().tick()).unwrap();
        packet.bytes(&[0, 0]).unwrap();
        let len = packet.len();
        rig.game.handle(rig.now, liar.peer, &buffer[..len]);
        rig.run(MS(10));
    }
    assert_eq!(rig.game.stage(liar.peer), Some(Stage::Loading));
    assert_eq!(
        rig.game.stats().malformed,
        0,
        "no packet was refused as such"
    );
}

/// A game whose worlds are large.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Heavy {
    bytes: Vec<u8>,
}

impl Simulation for Heavy {
    const NAME: &'static str = "heavy";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, input) in frame.inputs() {
            self.bytes[player.index()] = self.bytes[player.index()].wrapping_add(*input);
        }
    }
}

/// Finding K11: worlds go to two at a time, and who waited for its turn waited within its own 30 s.
#[test]
fn sixteen_players_get_into_a_match_with_a_large_world() {
    let policies = MatchConfig {
        tick: MS(500),
        players_max: 16,
        ..MatchConfig::action()
    };
    let sim = Heavy {
        bytes: vec![7; 5 << 19],
    };
    let sessions = (0..16).map(|_| {
        let mut config = SessionConfig::new(Arc::new(()));
        config.verify = false;
        config
    });
    let mut all = Direct::new(
        policies,
        sim,
        Arc::new(()),
        unasked(),
        sessions.collect(),
        60,
    );
    for second in 0..90 {
        all.run(60, |_, _| 1);
        if all.game.playing().len() == 16 {
            println!("all play after {second} s");
            return;
        }
        for (i, session) in all.sessions.iter().enumerate() {
            assert_eq!(session.closed(), None, "player {i} after {second} s");
        }
    }
    panic!("{} of 16 play", all.game.playing().len());
}

/// Who may be silent for longer has a larger budget too.
#[test]
fn a_longer_patience_is_a_larger_budget() {
    let mut config = RigConfig::strategy(6, LinkProfile::LAN);
    config.policies.sealing = Sealing::WaitForAll {
        kick_after: SECOND * 60,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.relink(1, late(SECOND * 4));
    rig.run(SECOND * 45);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    rig.run(SECOND * 45);
    let closed = rig.clients[1].session.closed();
    assert_eq!(closed, Some(Closed::Server(CloseCode::TooSlow)));
}

/// Finding C4: names came within 20 ms, links within a second, to whom the match is shown five seconds later.
#[test]
fn a_delayed_spectator_hears_nothing_of_others_that_is_younger_than_its_delay() {
    let mut config = RigConfig::new(7, LinkProfile::LAN);
    config.policies.spectators = Spectators {
        max: 8,
        delay_ticks: 300,
    };
    config.clients = 2;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 12);
    let watcher = rig.join_with("watcher", 0).unwrap();
    rig.run(SECOND * 8);
    let named = |rig: &Rig<Game>, player: PlayerId| {
        let company = rig.clients[watcher].session.company();
        (
            company.name(player).is_some(),
            company.here().contains(player),
        )
    };
    let known = rig.clients[0].session.seats()[0];
    assert_eq!(named(&rig, known), (true, true));
    let newcomer = rig.join("newcomer");
    let came = rig.now;
    rig.until_it_plays(newcomer);
    let player = rig.clients[newcomer].session.seats()[0];
    let mut heard = [None; 2];
    while rig.now - came < SECOND * 9 {
        rig.run(MS(20));
        let (named, here) = named(&rig, player);
        for (heard, is) in heard.iter_mut().zip([named, here]) {
            if is && heard.is_none() {
                *heard = Some(rig.now - came);
            }
        }
    }
    for heard in heard {
        let heard = heard.expect("it hears of it in the end");
        assert!(heard >= MS(4_950), "after {heard:?}");
    }
}

/// Finding K15: a host's time that goes back ended the process.
#[test]
fn time_that_goes_back_stands_still() {
    let config = RigConfig::strategy(8, LinkProfile::LAN);
    for config in [config, RigConfig::new(9, LinkProfile::LAN)] {
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 3);
        rig.relink(0, late(SECOND * 60));
        rig.run(SECOND);
        let mut buffer = [0; PACKET_BYTES_MAX];
        for back in [MS(1), SECOND, SECOND * 100] {
            let before = rig.now.saturating_sub(back);
            rig.game.handle(before, rig.clients[1].peer, &[0xff]);
            rig.game.advance(before);
            assert!(rig.game.connect(before, PeerId(77), "late", 1).is_ok());
            rig.game.disconnect(PeerId(77));
            let session = &mut rig.clients[1].session;
            session.handle(before, &[0xff]);
            let _ = session.advance(before, 8, |_| Default::default());
            while session.poll_transmit(before, &mut buffer).is_some() {}
        }
        rig.relink(0, LinkProfile::LAN);
        rig.clients[0].session.reconnect(SECOND);
        rig.redial(0);
        rig.run(SECOND * 5);
        rig.converge();
    }
}

/// Who trailed as the server's process stood still was removed for that time too.
#[test]
fn the_servers_own_standing_still_is_not_trailing() {
    let mut config = RigConfig::new(11, LinkProfile::LAN);
    config.policies.laggards = Laggards::Kick { after: SECOND * 5 };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let until = rig.now + SECOND * 8;
    rig.freeze(1, until);
    rig.run(SECOND);
    rig.stall(until);
    rig.run(SECOND * 9);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    // Its own is.
    let until = rig.now + SECOND * 7;
    rig.freeze(1, until);
    rig.run(SECOND * 8);
    let closed = rig.clients[1].session.closed();
    assert_eq!(closed, Some(Closed::Server(CloseCode::TooSlow)));
}

/// Finding C3: one client's word made ticks and turns as long as they can be, for everybody.
#[test]
fn what_a_client_tells_of_its_machine_counts_only_where_it_is_seen_to_be_late() {
    let normal = MS(50);
    let policies = MatchConfig {
        turn: TurnLength::Adaptive { min: 3, max: 20 },
        tick_length: TickLength::Adaptive { max: MS(500) },
        ..MatchConfig::strategy()
    };
    let sim = Heavy { bytes: vec![0; 64] };
    let sessions = (0..3).map(|_| SessionConfig::new(Arc::new(()))).collect();
    let mut all = Direct::new(policies, sim, Arc::new(()), unasked(), sessions, 60);
    let mut pauses = 0u8;
    for _ in 0..60 * 60 {
        all.frame(|_, _| 1);
        for (_, packet) in all.up.iter_mut().filter(|(client, _)| *client == 2) {
            if matches!(UpKind::read(packet[0]), Ok((UpKind::Play, _))) {
                // Busy all of the time, and three more pauses.
                pauses = pauses.wrapping_add(3);
                packet[LOAD_AT] = 0xf0 | pauses & 15;
            }
        }
        all.serve();
    }
    let cadence = all.game.world().turn().cadence;
    assert_eq!((cadence.tick(), cadence.turn_ticks), (normal, 3));
    assert!(all.game.slowing().is_empty());
    assert_eq!(all.game.playing().len(), 3);
}

/// Finding C3: who slows the match is named; with it goes what it cost.
#[test]
fn who_slows_the_match_is_named_and_takes_its_slowness_along() {
    let mut config = RigConfig::strategy(10, LinkProfile::LAN);
    config.policies.tick_length = TickLength::Adaptive { max: MS(200) };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let slow = rig.clients[3].session.seats()[0];
    rig.clients[3].step_cost = MS(70);
    rig.run(SECOND * 20);
    assert!(rig.game.world().turn().cadence.tick() > MS(60));
    assert_eq!(rig.game.slowing(), [slow].into_iter().collect());
    rig.leave(3);
    rig.run(SECOND * 2);
    assert_eq!(rig.game.world().turn().cadence.tick(), MS(50));
    assert!(rig.game.slowing().is_empty());
    rig.converge();
}

/// Finding C3: a client that is late, and says that its machine is busy, made ticks as long as they may be for as long as
/// it stayed.
#[test]
fn whoever_slows_the_match_does_so_for_a_part_of_each_minute() {
    let mut config = RigConfig::strategy(11, LinkProfile::LAN);
    config.policies.tick_length = TickLength::Adaptive { max: MS(500) };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.clients[3].step_cost = MS(400);
    let began = rig.game.world().tick();
    for minute in 1..=3 {
        rig.run(SECOND * 60);
        let played = MS(50) * (rig.game.world().tick() - began);
        assert!(
            played >= SECOND * 35 * minute,
            "{played:?} in {minute} minutes"
        );
    }
}

/// The identity of two seats had two accounts once it was back with one, and was barred for the seat that it had left
/// empty while it played in the other one.
#[test]
fn who_comes_back_with_fewer_seats_has_one_account_and_plays_on() {
    let mut config = RigConfig::strategy(12, LinkProfile::LAN);
    config.clients = 2;
    config.policies.players_max = 4;
    config.policies.sealing = Sealing::WaitForAll {
        kick_after: SECOND * 3,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 2);
    let pair = rig.join_with("a pair", 2).unwrap();
    rig.run(SECOND * 4);
    let [stays, goes] = rig.clients[pair].session.seats()[..] else {
        panic!("two seats");
    };
    rig.clients.remove(pair);
    let single = rig.join_with("a pair", 1).unwrap();
    rig.run(SECOND * 12);
    let client = &rig.clients[single];
    assert_eq!(client.session.seats(), [stays]);
    assert_eq!(rig.game.stage(client.peer), Some(Stage::Playing));
    assert_eq!(rig.game.world().presence(goes), Presence::Absent);
    // It is cut, and comes back at once: nothing keeps it out.
    rig.cut(single);
    rig.run(MS(500));
    rig.redial(single);
    rig.run(SECOND * 3);
    let peer = rig.clients[single].peer;
    assert_eq!(rig.game.stage(peer), Some(Stage::Playing));
}
