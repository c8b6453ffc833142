//! Player numbers when players join, leave and return. Every player gets a number, but never another player's
//! character. The rate of joins is bounded. All in virtual time.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::{Event, SessionEnd};
use twinstep_core::PlayerId;
use twinstep_core::world::Presence;
use twinstep_protocol::packet::closed;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Index;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_protocol::wire::Writer;
use twinstep_rig::history::History;
use twinstep_rig::rig::{MUTE, Rig, RigConfig};
use twinstep_server::SessionId;
use twinstep_server::config::SealWhen;
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn patient(seed: u64, numbers: usize) -> RigConfig {
    let mut config = RigConfig::strategy(seed, LinkProfile::LAN);
    config.clients = 3;
    config.policies.players_max = numbers;
    config.policies.command_delay = 2;
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 10,
    };
    config
}

/// Client 0 leaves while the match waits for client 1, and a newcomer joins. Returns the rig and client 0's number.
fn newcomer_during_a_pause(numbers: usize) -> (Rig<History>, PlayerId) {
    let mut rig = Rig::<History>::new(patient(1, numbers));
    rig.run(SECOND * 6);
    rig.relink(1, MUTE);
    rig.run(SECOND);
    let stopped = rig.match_.world().tick();
    let left = rig.clients[0].session.seats()[0];
    rig.leave(0);
    let newcomer = rig.join("dora");
    rig.run(SECOND * 2);
    assert_eq!(rig.match_.world().tick(), stopped, "a pause");
    let peer = rig.clients[newcomer].peer();
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Playing));
    (rig, left)
}

/// The match assigns a number whose last player has not left yet; the newcomer joins right after that player's
/// departure.
#[test]
fn a_newcomer_joins_before_the_last_player_of_its_number_has_left() {
    let (mut rig, left) = newcomer_during_a_pause(3);
    assert_eq!(rig.clients[2].session.seats(), [left]);
    let owner = |rig: &Rig<History>| {
        let index = Index::scan(&rig.journal).expect("a journal");
        let mut seats = index.seats.into_iter().rev();
        seats.find(|(player, _)| *player == left).map(|of| of.1)
    };
    let text = "after a crash now, the character is not the newcomer's";
    assert_eq!(owner(&rig).as_deref(), Some("player 0"), "{text}");
    rig.relink(0, LinkProfile::LAN);
    rig.run(SECOND * 3);
    assert_eq!(rig.match_.world().presence(left), Presence::Present);
    assert_eq!(owner(&rig).as_deref(), Some("dora"));
    let ran = rig.match_.seat_stats(left).accepted;
    rig.run(SECOND * 10);
    assert!(
        rig.match_.seat_stats(left).accepted > ran,
        "its commands run"
    );
    rig.converge();
}

#[test]
fn a_number_whose_last_player_has_not_left_is_assigned_last() {
    let (mut rig, left) = newcomer_during_a_pause(4);
    assert_ne!(rig.clients[2].session.seats(), [left]);
    rig.relink(0, LinkProfile::LAN);
    rig.run(SECOND * 3);
    assert_eq!(rig.match_.world().presence(left), Presence::Absent);
    assert_eq!(rig.match_.world().present().len(), 3);
    rig.converge();
}

/// Each reconnect costs every client a presence change, so reconnects are limited by time and not only by the link.
#[test]
fn an_identity_joins_at_most_once_in_five_seconds() {
    let mut config = RigConfig::new(2, LinkProfile::LAN);
    config.policies.players_max = 4;
    let mut rig = Rig::<History>::new(config);
    rig.run(6 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    let mut came_in = Vec::new();
    let mut was = Presence::Present;
    for _ in 0..400 {
        if rig.match_.world().presence(player) == Presence::Present {
            let peer = rig.clients[0].peer();
            rig.match_.kick(peer, CloseCode::Left);
            rig.cut(0);
            rig.redial(0);
        }
        rig.watch(50 * MS, |rig| {
            let is = rig.match_.world().presence(player);
            if is == Presence::Present && was != is {
                came_in.push(rig.now);
            }
            was = is;
        });
    }
    assert!(came_in.len() >= 3, "it comes in: {came_in:?}");
    for two in came_in.windows(2) {
        assert!(two[1] - two[0] >= 5 * SECOND - 50 * MS, "{came_in:?}");
    }
}

/// A client removed while its link was dead may reconnect as any free player.
#[test]
fn a_client_reconnecting_as_another_player_continues_as_that_player() {
    for (seed, predicts, away) in [(3, true, 1), (4, true, 35), (5, false, 1), (6, false, 35)] {
        let mut config = match predicts {
            true => RigConfig::new(seed, LinkProfile::LAN),
            false => RigConfig::strategy(seed, LinkProfile::LAN),
        };
        config.clients = 3;
        config.policies.players_max = 3;
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 6);
        let was = rig.clients[2].session.seats()[0];
        // The client's number will be given to another player, so the results of commands in flight would be unknown.
        rig.command(false);
        rig.run(SECOND);
        rig.cut(2);
        let peer = rig.clients[2].peer();
        rig.match_.kick(peer, CloseCode::Left);
        let free = rig.clients[0].session.seats()[0];
        rig.leave(0);
        rig.run(SECOND);
        // By then the client's number belongs to another player.
        let other = rig.join("dora");
        let others = rig.join("emil");
        rig.run(SECOND * away);
        let gone = [other, others].map(|i| (i, rig.clients[i].session.seats()[0]));
        let at = gone.iter().find(|(_, p)| *p == free).expect("taken").0;
        rig.leave(at);
        rig.run(SECOND);
        rig.redial(1);
        rig.run(SECOND * 8);
        let back = &rig.clients[1];
        assert!(!back.session.is_returning(), "seed {seed}");
        assert_eq!(back.session.seats(), [free]);
        assert_ne!(free, was);
        assert!(back.events.contains(&Event::Joined(vec![free])));
        // Frames are kept for 30 s, and at least 1,800 of them.
        let by_frames = usize::from(away == 1 || !predicts);
        assert_eq!(rig.returns(1), (by_frames, 1 - by_frames));
        assert_eq!(rig.match_.world().presence(free), Presence::Present);
        let fills = rig.match_.seat_stats(free).fills;
        rig.run(SECOND * 5);
        let filled = rig.match_.seat_stats(free).fills - fills;
        assert!(
            filled < 10,
            "seed {seed}: its inputs arrive, {filled} do not"
        );
        rig.converge();
    }
}

// Finding A5-1.
#[test]
fn a_silent_identity_returns_at_once_and_is_barred_if_it_is_removed_again() {
    let mut rig = Rig::<History>::new(patient(7, 8));
    rig.run(SECOND * 6);
    rig.relink(1, MUTE);
    rig.run(SECOND * 11);
    assert_eq!(rig.match_.world().present().len(), 2, "it was removed");
    rig.relink(1, LinkProfile::LAN);
    rig.restart(1);
    rig.run(SECOND * 3);
    assert_eq!(rig.match_.world().present().len(), 3, "it is back");
    rig.relink(1, MUTE);
    rig.run(SECOND * 11);
    rig.clients.remove(1);
    let mut peers = (1_000..).map(SessionId);
    let mut dial = |rig: &mut Rig<History>, identity: &str, seats| {
        let peer = peers.next().expect("another one");
        let text = rig.connect(peer, identity, seats);
        rig.match_.disconnect(peer);
        text
    };
    assert_eq!(dial(&mut rig, "player 1", 1), Err(CloseCode::TooSlow));
    rig.run(SECOND * 25);
    assert_eq!(dial(&mut rig, "player 1", 1), Err(CloseCode::TooSlow));
    rig.run(SECOND * 5);
    assert_eq!(dial(&mut rig, "player 1", 1), Ok(()));

    let kicked = rig.clients[0].peer();
    rig.match_.kick(kicked, CloseCode::Kicked);
    rig.clients.remove(0);
    // The bar is remembered, however many others join and leave.
    for i in 0..300 {
        assert_eq!(dial(&mut rig, &format!("stranger {i}"), 1), Ok(()));
        rig.run(100 * MS);
    }
    rig.run(SECOND * 120);
    assert_eq!(dial(&mut rig, "player 0", 1), Err(CloseCode::Kicked));
    assert_eq!(dial(&mut rig, "player 2", 1), Ok(()));
}

#[test]
fn a_client_temporarily_refused_while_reconnecting_may_retry() {
    let mut rig = Rig::<History>::new(RigConfig::new(8, LinkProfile::LAN));
    rig.run(SECOND * 6);
    let say = |rig: &mut Rig<History>, code: CloseCode| {
        let mut bytes = [0; closed::BYTES_MAX];
        let mut packet = Writer::new(&mut bytes);
        closed::write(code, &mut packet).expect("room");
        let len = packet.len();
        let now = rig.now;
        rig.clients[0].session.handle(now, &bytes[..len]);
    };
    let now = rig.now;
    rig.clients[0].session.reconnect(now);
    say(&mut rig, CloseCode::TooSlow);
    assert_eq!(
        rig.clients[0].session.close_code(),
        Some(CloseCode::TooSlow)
    );
    assert_eq!(rig.clients[0].session.closed(), None);
    let now = rig.now;
    rig.clients[0].session.reconnect(now);
    say(&mut rig, CloseCode::Kicked);
    let closed = SessionEnd::Server(CloseCode::Kicked);
    assert_eq!(rig.clients[0].session.closed(), Some(closed));
}

#[test]
fn a_spectator_does_not_share_the_limits_of_its_namesake() {
    let mut config = RigConfig::new(9, LinkProfile::LAN);
    config.policies.spectators.max = 4;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 6);
    let peer = rig.clients[0].peer();
    for _ in 0..8 {
        rig.deliver(peer, &[1; 3]);
    }
    rig.cut(0);
    rig.hang_up(0);
    rig.join_with("player 0", 0).expect("it watches");
    rig.redial(0);
    let peer = rig.clients[0].peer();
    rig.deliver(peer, &[1; 3]);
    assert_eq!(rig.match_.stage(peer), None, "the ninth strike");
}

#[test]
fn a_dropped_player_is_removed_after_a_minute_even_with_slow_ticks() {
    let mut config = RigConfig::new(10, LinkProfile::LAN);
    config.policies.tick = MS * 100;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 6);
    let player = rig.clients[0].session.seats()[0];
    rig.cut(0);
    rig.hang_up(0);
    rig.run(SECOND * 50);
    assert_eq!(rig.match_.world().presence(player), Presence::Dropped);
    rig.run(SECOND * 15);
    assert_eq!(rig.match_.world().presence(player), Presence::Absent);
}

/// Finding C5: a simulation knows players by number, so a returning player must get its own number, and a newcomer must
/// get an unused one as long as one is left. The same holds after a server crash.
#[test]
fn a_returning_player_gets_its_number_and_a_newcomer_an_unused_one() {
    let mut rig = Rig::<Game>::new(RigConfig::new(23, LinkProfile::LAN));
    rig.run(SECOND * 6);
    let seat_of = |rig: &Rig<Game>, client: usize| rig.clients[client].session.seats().to_vec();
    assert_eq!(seat_of(&rig, 1), [PlayerId(1)]);
    rig.leave(1);
    rig.leave(0);
    rig.run(SECOND * 6);
    for (identity, number) in [("stranger", 4), ("player 1", 1), ("player 0", 0)] {
        let newcomer = rig.join(identity);
        rig.until_it_plays(newcomer);
        assert_eq!(seat_of(&rig, newcomer), [PlayerId(number)], "{identity}");
    }
    rig.converge();
}
