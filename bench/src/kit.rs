//! How fast the authors' kit checks the demo's largest wave with everything on: authors run it at every change.

use std::fmt::Write;

use twinstep_rig::checked;

/// A check of a minute of play takes at most a minute.
const TICKS_PER_SECOND_MIN: f64 = 60.0;

/// Checks eight players for 40 s of play; whether that is fast enough.
pub(crate) fn run(out: &mut String) -> bool {
    let report = match checked::powderkeg(checked::largest_wave(), 8, 2_400) {
        Ok(report) => report,
        Err(fault) => {
            let _ = writeln!(out, "{fault}");
            return false;
        }
    };
    let rate = report.ticks_per_second();
    let _ = writeln!(
        out,
        "{report}\n{rate:.0} ticks a second are checked, at least {TICKS_PER_SECOND_MIN} are wanted"
    );
    rate >= TICKS_PER_SECOND_MIN
}
