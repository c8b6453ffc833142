//! The byte budget of the action preset: 4 players, 100 ms round trip, no jitter, no loss, a 3-byte pad, announcements
//! on; mean over 60 s after 5 s, with all headers.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_protocol::packet::ByteCounts;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};

fn measure(input_pattern: InputPattern, crowd: u16, seconds: u64) -> (ByteCounts, ByteCounts) {
    let mut config = RigConfig::new(1, "rtt=100".parse().expect("a link"));
    config.input_pattern = input_pattern;
    config.crowd = crowd;
    config.verify = false;
    let mut rig = Rig::<Game>::new(config);
    rig.observe(false);
    rig.run(Duration::from_secs(5));
    let before: Vec<_> = (0..4)
        .map(|i| (rig.stats(i).up, rig.bytes_down(i)))
        .collect();
    rig.run(Duration::from_secs(seconds));
    let (mut up, mut down) = (ByteCounts::default(), ByteCounts::default());
    for (i, (up_was, down_was)) in before.into_iter().enumerate() {
        up += rig.stats(i).up - up_was;
        down += rig.bytes_down(i) - down_was;
    }
    println!("{input_pattern:?}: up {up:?}\n down {down:?}");
    (up, down)
}

fn mean(bytes: ByteCounts) -> f64 {
    bytes.total() as f64 / (4.0 * 60.0)
}

#[test]
fn controls_changing_every_ten_ticks_stay_in_budget() {
    let (up, down) = measure(InputPattern::Sticky, 0, 60);
    println!("up {:.0} B/s, down {:.0} B/s", mean(up), mean(down));
    assert!(mean(up) <= 4_500.0, "up {:.0} B/s of 4,500", mean(up));
    assert!(mean(down) <= 4_300.0, "down {:.0} B/s of 4,300", mean(down));
}

#[test]
fn controls_changing_every_tick_stay_in_budget() {
    let (up, down) = measure(InputPattern::Analog, 0, 60);
    println!("up {:.0} B/s, down {:.0} B/s", mean(up), mean(down));
    assert!(mean(up) <= 6_000.0, "up {:.0} B/s of 6,000", mean(up));
    assert!(mean(down) <= 7_000.0, "down {:.0} B/s of 7,000", mean(down));
}

/// Row 57: only inputs cross the network.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_thousand_enemies_cost_no_more_bytes_than_ten() {
    let without_outcomes = |crowd| {
        let (up, down) = measure(InputPattern::Still, crowd, 20);
        (
            up.total() as f64,
            down.total() as f64 - down.outcomes as f64,
        )
    };
    let (few, many) = (without_outcomes(10), without_outcomes(1_000));
    println!(
        "in 20 s up {} and {} B, down {} and {} B",
        few.0, many.0, few.1, many.1
    );
    assert!((many.0 / few.0 - 1.0).abs() <= 0.02);
    // The larger world is digested less often, which saves some bytes.
    let down = many.1 / few.1;
    assert!((0.95..=1.01).contains(&down), "{down}");
}
