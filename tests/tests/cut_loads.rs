//! Interrupted loads of large worlds, with the production transports, in virtual time. The next connection continues
//! where the previous one stopped. A client that stays away for too long loads the world from the start.

use std::time::Duration;

use twinstep_core::bounds::CUT_OFF_TIME;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::edges::{EdgeCases, Load};
use twinstep_rig::lines::Lines;
use twinstep_rig::rig::RigConfig;

const SECOND: Duration = Duration::from_secs(1);
const DIAL: Duration = Duration::from_secs(4);

/// A match with one player and a world of `world_bytes` bytes, and a second player that joins over a slow link.
struct Loads {
    lines: Lines<EdgeCases>,
    late: usize,
    began: Duration,
    world_bytes: u32,
}

impl Loads {
    fn begin(world_bytes: u32, kbit: u32) -> Loads {
        let mut config = RigConfig::new(6, LinkProfile::LAN);
        config.policies.tick = SECOND / 10;
        config.load = Load {
            world_bytes,
            hertz: 10,
            ..Load::default()
        };
        let mut lines = Lines::<EdgeCases>::like(&config, 1);
        let first = lines.join("first");
        while !lines.plays(first) {
            lines.run(SECOND);
        }
        let line = format!("rtt=60,kbit={kbit}");
        lines.profile_from_now_on(line.parse().expect("a valid link"));
        let late = lines.join("late");
        Loads {
            began: lines.now,
            lines,
            late,
            world_bytes,
        }
    }

    fn cut(&mut self, time: Duration) {
        assert!(!self.lines.plays(self.late), "it still loads");
        self.lines.cut(self.late, true);
        self.lines.run(time);
        self.lines.cut(self.late, false);
    }

    /// Runs until the late player plays. Returns the time since it joined, and the received bytes in world sizes.
    fn ends(mut self) -> (Duration, f64) {
        while !self.lines.plays(self.late) {
            self.lines.run(SECOND / 10);
            let took = self.lines.now - self.began;
            assert_eq!(self.lines.players[self.late].ended, None, "after {took:?}");
            assert!(took < 900 * SECOND, "it never plays");
        }
        let took = self.lines.now - self.began;
        self.lines.run(10 * SECOND);
        let desyncs = self.lines.match_.stats().desyncs;
        assert!(self.lines.plays(self.late) && desyncs == 0);
        let bytes = self.lines.stats(self.late).down_bytes;
        let share = bytes as f64 / f64::from(self.world_bytes);
        println!("{took:?}, and {share:.3} worlds");
        (took, share)
    }
}

/// Finding P3-B1: an interrupted load started again at byte 0.
#[test]
fn an_interrupted_load_continues_where_it_stopped() {
    let (whole, once) = Loads::begin(600_000, 256).ends();
    let mut loads = Loads::begin(600_000, 256);
    loads.lines.run(10 * SECOND);
    loads.cut(10 * SECOND);
    let (took, share) = loads.ends();
    assert!(took <= whole + 10 * SECOND + DIAL, "{took:?} and {whole:?}");
    assert!(share < once + 0.1, "{share} and {once}");
}

/// Finding P3-B1. The cuts are more than a minute apart, because a client tries to reconnect for a minute.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_four_minute_load_continues_after_one_cut_and_after_two() {
    let whole = 257 * SECOND;
    for cuts in [&[125][..], &[100, 80]] {
        let mut loads = Loads::begin(8_000_000, 256);
        for second in cuts {
            loads.lines.run(*second * SECOND);
            loads.cut(10 * SECOND);
        }
        let (took, share) = loads.ends();
        let outages = cuts.len() as u32 * (10 * SECOND + DIAL);
        assert!(took <= whole + outages, "{cuts:?}: {took:?}");
        assert!(share < 1.15, "{cuts:?}: {share}");
    }
}

/// Finding P3-B1: a machine sleeps for longer than the server keeps its world.
#[test]
fn a_load_interrupted_for_longer_than_its_world_is_kept_restarts_and_completes() {
    let mut loads = Loads::begin(600_000, 256);
    loads.lines.run(10 * SECOND);
    let (late, asleep) = (loads.late, CUT_OFF_TIME + 10 * SECOND);
    loads.lines.sleep(late, asleep);
    loads.lines.run(asleep);
    let (took, share) = loads.ends();
    assert!(took < 10 * SECOND + asleep + 20 * SECOND + DIAL, "{took:?}");
    assert!(share > 1.3, "{share}");
}

/// Finding P3-B1: the client has its world but is minutes behind, so it needs only frames.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_client_cut_off_while_catching_up_continues_by_frames() {
    let mut loads = Loads::begin(4_000_000, 256);
    let late = loads.late;
    while loads.lines.players[late]
        .client
        .session()
        .authority()
        .is_none()
    {
        loads.lines.run(SECOND / 10);
    }
    loads.lines.run(SECOND / 2);
    loads.lines.cut(late, true);
    loads.lines.run(10 * SECOND);
    loads.lines.cut(late, false);
    let (_, share) = loads.ends();
    assert!(share < 1.15, "{share}");
}
