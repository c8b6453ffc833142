//! The golden table of quality: a regression in prediction, pacing or encoding shows as a difference here.
//!
//! Equality tests do not detect a bad predictor, because it corrects itself. `UPDATE_GOLDEN=1` rewrites the table.

use std::fmt::Write;
use std::time::Duration;

use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_tests::golden;

fn row(table: &mut String, rtt_ms: u32, loss: u32, input_pattern: InputPattern) {
    let jitter = if loss == 0 { 0 } else { 20 };
    let link: LinkProfile = format!("rtt={rtt_ms},jitter={jitter},loss={loss}")
        .parse()
        .expect("a link");
    let mut config = RigConfig::new(1, link);
    config.input_pattern = input_pattern;
    config.verify = false;
    let mut rig = Rig::<History>::new(config);
    rig.run(Duration::from_secs(5));
    let before: Vec<_> = (0..4).map(|i| (rig.stats(i), rig.bytes_down(i))).collect();
    rig.run(Duration::from_secs(30));
    let (mut rebuilds, mut resim, mut fills, mut stall, mut up, mut down, mut cancelled) =
        (0, 0, 0, 0.0, 0, 0, 0);
    for (i, (was, down_was)) in before.into_iter().enumerate() {
        let is = rig.stats(i);
        rebuilds += is.timeline.rebuilds - was.timeline.rebuilds;
        resim += is.timeline.resim_ticks - was.timeline.resim_ticks;
        fills += is.fills - was.fills;
        stall += is.stall_ms - was.stall_ms;
        up += (is.up - was.up).total();
        down += (rig.bytes_down(i) - down_was).total();
        cancelled += is.cues_cancelled - was.cues_cancelled;
    }
    let per_second = |sum: u64| sum as f64 / (4.0 * 30.0);
    writeln!(
        table,
        "{:>6} {:>5} {:>7} {:>10.1} {:>8.1} {:>6} {:>9} {:>9.0} {:>7.0} {:>7.0}",
        rtt_ms,
        loss,
        format!("{input_pattern:?}").to_lowercase(),
        per_second(rebuilds),
        per_second(resim),
        fills,
        cancelled,
        stall,
        per_second(up),
        per_second(down)
    )
    .expect("text");
}

#[test]
fn the_quality_table_is_unchanged() {
    let mut table = String::from(
        "# History, 4 clients, 30 s after 5 s, k = 2, announcements; loss above 0 comes with 20 ms of jitter a leg.\n\
         # Per client: rebuilds/s, re-simulated ticks/s, bytes/s with all headers. Of all: fills, cancelled cues, stall.\n\
         # rtt  loss  sticks rebuilds/s  resim/s  fills cancelled  stall_ms    up/s  down/s\n",
    );
    for input_pattern in [
        InputPattern::Still,
        InputPattern::Sticky,
        InputPattern::Analog,
    ] {
        for rtt_ms in [0, 50, 100, 200] {
            for loss in [0, 2, 10] {
                row(&mut table, rtt_ms, loss, input_pattern);
            }
        }
    }
    println!("{table}");
    golden::check("quality.txt", &table, "");
}
