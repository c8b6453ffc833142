//! Hiccups: a link holds back the packets in one or both directions for a while and then delivers them all at once, as
//! a radio link does. The local player must not notice more than the length of the hiccup.

use std::time::Duration;

use twinstep_protocol::simnet::Leg;
use twinstep_rig::history::History;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};

const MS: Duration = Duration::from_millis(1);
const TICK_MS: f64 = 1_000.0 / 60.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldDirection {
    Up,
    Down,
    Both,
}

#[derive(Debug, Default)]
struct Felt {
    /// The number of ticks by which the client's tick ran ahead of the time passed since the hiccup started.
    leap: f64,
    /// The longest time that the client's tick stood still while no packets were held, in ms.
    stood_ms: f64,
    /// The number of the client's ticks that the server filled in during one hiccup.
    dead: u64,
}

fn felt(
    link: &str,
    fps: u32,
    held: HeldDirection,
    length: Duration,
    a_minute: u32,
    seed: u64,
) -> Felt {
    let mut config = RigConfig::new(seed, link.parse().expect("a link"));
    (config.input_pattern, config.clients, config.verify) = (InputPattern::Sticky, 2, false);
    config.fps = fps;
    config.fair = false;
    let mut rig = Rig::<History>::new(config);
    rig.run(6_000 * MS);
    let mut felt = Felt::default();
    let every = Duration::from_secs(60) / a_minute;
    let hiccups = (Duration::from_secs(12).as_nanos() / every.as_nanos()).max(1);
    for nth in 0..hiccups as u32 {
        // Each hiccup starts at a different phase of a turn and of a frame.
        rig.run(MS * (nth * 7 % 40));
        let (before, until) = (rig.stats(0).fills, rig.now + length);
        let hold = |leg: &mut Leg, is: bool| is.then(|| leg.hold(until));
        let line = &mut rig.clients[0].place.line;
        hold(&mut line.up, held != HeldDirection::Down);
        hold(&mut line.down, held != HeldDirection::Up);
        let (mut tick, mut moved_at) = (rig.stats(0).input_tick, rig.now);
        let (began, began_at, mut frame) = (tick, rig.now, rig.clients[0].place.next_frame);
        rig.watch(every, |rig| {
            let place = &rig.clients[0].place;
            if place.next_frame == frame {
                return;
            }
            frame = place.next_frame;
            let (now, is) = (rig.now, rig.stats(0).input_tick);
            let passed = (now - began_at).as_secs_f64() * 1e3 / TICK_MS;
            felt.leap = felt.leap.max(f64::from(is - began) - passed);
            if is != tick {
                let stood = now.saturating_sub(moved_at.max(until));
                felt.stood_ms = felt.stood_ms.max(stood.as_secs_f64() * 1e3);
                moved_at = now;
            }
            tick = is;
        });
        felt.dead = felt.dead.max(rig.stats(0).fills - before);
    }
    felt
}

#[test]
fn a_hiccup_costs_no_more_than_its_length() {
    let mut wrong = Vec::new();
    for link in ["rtt=20,jitter=0,loss=0", "rtt=100,jitter=10,loss=0"] {
        for held in [HeldDirection::Up, HeldDirection::Down, HeldDirection::Both] {
            for length_ms in [100_u32, 500, 900] {
                for (fps, a_minute) in [(30, 6), (60, 10), (144, 10), (1_000, 6)] {
                    let felt = felt(link, fps, held, MS * length_ms, a_minute, 1);
                    let ticks = f64::from(length_ms) / TICK_MS;
                    let frame_ms = 1_000.0 / f64::from(fps);
                    println!(
                        "{link:>24} {held:?} {length_ms:>4} ms, {a_minute:>2} a minute, {fps:>4} fps: leaps {:>4.1}, \
                         stands {:>4.0} ms, {:>3} dead of {ticks:.0}",
                        felt.leap, felt.stood_ms, felt.dead
                    );
                    if felt.leap > 4.0
                        || felt.stood_ms > 2.0 * TICK_MS + frame_ms
                        || felt.dead as f64 > ticks + 4.0
                    {
                        wrong.push((link, held, length_ms, fps, felt));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

#[test]
fn the_time_for_which_the_local_player_stands_still_is_counted() {
    let mut config = RigConfig::new(4, "rtt=20,jitter=0,loss=0".parse().expect("a link"));
    (config.input_pattern, config.clients, config.fps) = (InputPattern::Sticky, 2, 144);
    let mut rig = Rig::<History>::new(config);
    rig.run(6_000 * MS);
    let before = rig.stats(0);
    rig.stall(rig.now + 500 * MS);
    rig.run(4_000 * MS);
    let is = rig.stats(0);
    let stood = is.held_ms + is.stall_ms - before.held_ms - before.stall_ms;
    println!("stood for {stood:.0} ms");
    assert!((400.0..520.0).contains(&stood), "{stood}");
    assert_eq!(is.skipped_ticks, before.skipped_ticks);
}
