//! Data about other players besides the game: names, and the quality of links.

use std::time::Duration;

use twinstep_core::PlayerId;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);

fn rig(clients: usize) -> Rig<History> {
    let mut config = RigConfig::new(5, LinkProfile::LAN);
    config.clients = clients;
    let mut rig = Rig::new(config);
    rig.run(5 * SECOND);
    rig
}

fn known(rig: &Rig<History>, client: usize) -> Vec<(String, Option<u16>)> {
    let presence = rig.clients[client].session.presence();
    presence
        .players()
        .map(|player| {
            let name = presence.name(player).unwrap_or_default();
            (
                name.to_owned(),
                presence.link(player).map(|link| link.rtt_ms),
            )
        })
        .collect()
}

#[test]
fn every_client_knows_all_names_and_sees_which_links_are_bad() {
    let mut rig = rig(3);
    rig.relink(1, "rtt=240,jitter=30,loss=8".parse().unwrap());
    rig.run(10 * SECOND);
    for client in 0..3 {
        let known = known(&rig, client);
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["player 0", "player 1", "player 2"]);
        let rtts: Vec<u16> = known.iter().map(|(_, rtt)| rtt.unwrap()).collect();
        assert!(rtts[0] < 40 && rtts[2] < 40, "{rtts:?}");
        assert!((220..340).contains(&rtts[1]), "{rtts:?}");
        let presence = rig.clients[client].session.presence();
        let loss = |n| presence.link(PlayerId(n)).unwrap().loss_percent;
        assert!(loss(0) == 0 && (2..20).contains(&loss(1)), "{}", loss(1));
    }
}

#[test]
fn the_names_of_leavers_are_removed_and_those_of_newcomers_are_sent() {
    let mut rig = rig(2);
    rig.leave(1);
    rig.run(3 * SECOND);
    assert_eq!(known(&rig, 0).len(), 1);
    let presence = rig.clients[0].session.presence();
    assert_eq!(presence.name(PlayerId(1)), Some("player 1"), "it left");
    rig.join("a newcomer");
    rig.run(5 * SECOND);
    let presence = rig.clients[0].session.presence();
    let newcomer = presence.players().nth(1).unwrap();
    assert_eq!(presence.name(newcomer), Some("a newcomer"));
    for client in 0..2 {
        let names: Vec<String> = known(&rig, client).into_iter().map(|one| one.0).collect();
        assert_eq!(names, ["player 0", "a newcomer"]);
    }
}

#[test]
fn two_players_on_one_screen_have_separate_names_and_the_same_link() {
    let mut rig = rig(1);
    rig.join_with("couch", 2).unwrap();
    rig.run(5 * SECOND);
    let known = known(&rig, 0);
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["player 0", "couch", "couch 2"]);
    assert!(known[1].1.is_some() && known[1].1 == known[2].1);
}

#[test]
fn spectators_also_receive_names() {
    let mut config = RigConfig::new(5, LinkProfile::LAN);
    config.clients = 2;
    config.policies.spectators.max = 1;
    let mut rig = Rig::<History>::new(config);
    let watcher = rig.join_with("eve", 0).unwrap();
    rig.run(6 * SECOND);
    let known = known(&rig, watcher);
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["player 0", "player 1"], "and is not one of them");
    assert!(known.iter().all(|(_, rtt)| rtt.is_some()));
}

#[test]
fn a_reconnecting_client_keeps_its_name_and_gets_the_others() {
    let mut rig = rig(2);
    rig.run(SECOND);
    rig.cut(1);
    rig.run(SECOND);
    rig.redial(1);
    rig.run(5 * SECOND);
    for client in 0..2 {
        let known = known(&rig, client);
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["player 0", "player 1"]);
        assert!(known.iter().all(|(_, rtt)| rtt.is_some()), "{known:?}");
    }
}
