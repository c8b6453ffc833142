//! Sixteen players at their largest permitted rates, and two hundred spectators. Run only in release builds, because of
//! the cost: `cargo test --release -p twinstep-tests --test chaos crowds`.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_core::bounds::INPUT_BYTES_MAX;
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::edges::EdgeCases;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::config::Spectators;
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;
const WATCHED: Spectators = Spectators {
    max: 512,
    delay_ticks: 300,
};

/// Finding W2: at most four datagrams of frames were in flight, however long the link was. Over a long link a client
/// received less than was sealed, trailed more and more, and was removed.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn sixteen_players_actions_reach_every_client_over_a_long_link() {
    for (hz, link) in [
        (60, "rtt=300,jitter=40,loss=5"),
        (240, "rtt=250,jitter=20,loss=2"),
    ] {
        let mut rig = Rig::<EdgeCases>::new(RigConfig::crowded(hz, 6, link.parse().unwrap()));
        rig.observe(false);
        rig.run(SECOND * 8);
        assert!(rig.all_play(), "{hz} Hz over {link}");
        // One round trip is unavoidable, and a lost packet costs a second one.
        let most = hz * 3 / 4;
        let (mut worst, mut sum) = (0, 0);
        for _ in 0..30 {
            rig.run(MS(200));
            let server = rig.match_.world().tick();
            let lags = (0..16).map(|client| server.0 - rig.stats(client).authority_tick);
            let lag = lags.max().unwrap_or(0);
            (worst, sum) = (worst.max(lag), sum + lag);
        }
        let down = rig.bytes_down(3);
        println!(
            "{hz} Hz over {link}: {} of {most} ticks behind, {worst} at worst; {} packets and {} kB in 10 s",
            sum / 30,
            down.packets,
            down.total() / 1_000,
        );
        assert!(sum / 30 <= most, "{hz} Hz over {link}: {} ticks", sum / 30);
        assert!(worst <= 2 * most, "{hz} Hz over {link}: {worst} ticks");
        for client in 0..16 {
            assert_eq!(rig.stats(client).heals, 0, "{hz} Hz over {link}");
        }
        rig.converge();
    }
}

/// Regression: one packet per 100 ms, starting at the first unacknowledged frame, was too small for sixteen players.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_delayed_spectator_keeps_up_with_sixteen_players() {
    for link in ["rtt=200", "rtt=300,jitter=40,loss=5"] {
        let mut config = RigConfig {
            clients: 16,
            ..RigConfig::new(3, link.parse().unwrap())
        };
        config.policies.players_max = 16;
        config.load.input_bytes = INPUT_BYTES_MAX as u8;
        config.policies.spectators = WATCHED;
        let mut rig = Rig::<EdgeCases>::new(config);
        rig.observe(false);
        rig.run(6 * SECOND);
        assert_eq!(rig.join_with("watcher", 0), Ok(16));
        rig.run(30 * SECOND);
        let seen = rig.clients[16].session.authority().unwrap().tick();
        let server = rig.match_.world().tick();
        let due = seen + WATCHED.delay_ticks;
        assert!(due <= server, "{seen} of {server}");
        assert!(due + 120 >= server, "{seen} of {server} over {link}");
    }
}

fn cost(spectators: usize) -> (ByteCounts, f64, f64) {
    let wan: LinkProfile = "rtt=100".parse().unwrap();
    let mut config = RigConfig::new(11, wan);
    config.policies.spectators = WATCHED;
    config.verify = false;
    config.input_pattern = InputPattern::Sticky;
    config.journal = false;
    let mut rig = Rig::<Game>::new(config);
    rig.observe(false);
    for n in 0..spectators {
        rig.join_with(&format!("watcher {n}"), 0).unwrap();
        // The clients draw ten frames a second here, because only the packets to them matter.
        rig.clients[4 + n].draws(10);
    }
    rig.run(60 * SECOND);
    let playing = (4..4 + spectators)
        .filter(|i| rig.match_.stage(rig.clients[*i].peer()) == Some(SessionStage::Playing));
    assert_eq!(playing.count(), spectators, "all are in");
    let before: Vec<ByteCounts> = (0..4).map(|i| rig.bytes_down(i)).collect();
    let stalls: f64 = (0..4).map(|i| rig.stats(i).stall_ms).sum();
    let (worked, ticks) = (rig.worked(), rig.match_.world().tick());
    rig.run(20 * SECOND);
    let mut bytes = ByteCounts::default();
    for (i, before) in before.into_iter().enumerate() {
        bytes += rig.bytes_down(i) - before;
    }
    let stalled = (0..4).map(|i| rig.stats(i).stall_ms).sum::<f64>() - stalls;
    let ticks = f64::from(rig.match_.world().tick() - ticks);
    (
        bytes,
        stalled,
        (rig.worked() - worked).as_secs_f64() * 1e6 / ticks,
    )
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn two_hundred_delayed_spectators_do_not_burden_the_players() {
    let (alone, alone_stalls, alone_us) = cost(0);
    let (crowd, crowd_stalls, crowd_us) = cost(200);
    println!(
        "players' bytes down in 20 s: {} alone, {} with 200 spectators; the match's work: {alone_us:.0} and {crowd_us:.0} us a tick",
        alone.total(),
        crowd.total()
    );
    let more = crowd.total() as f64 / alone.total() as f64 - 1.0;
    assert!(more.abs() < 0.01, "{:.2} % more bytes", more * 100.0);
    assert_eq!((alone_stalls, crowd_stalls), (0.0, 0.0));
}
