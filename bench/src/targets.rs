//! [`TARGETS`]: the limits for rows, and the check of whether they are met.

use Limit::{AtLeast, AtMost};

use crate::rows::{Row, Section, Spread, digits};

/// All targets, in report order: the name of a row, and the limit for its value or for its ratio to the peer.
const TARGETS: &str = "\
client frame, 4 KB, no rebuild: ratio ≤ 0.06
client frame, 4 KB, wrong guess at every turn: ratio ≤ 0.10
client frame, 64 KB, no rebuild: ratio ≤ 0.12
client frame, 64 KB, wrong guess at every turn: ratio ≤ 0.15
client frame, added by rebuilds, 4 KB: ratio ≤ 0.35
client frame, added by rebuilds, 64 KB: ratio ≤ 0.12
allocations of a client frame: ≤ 0
allocations of a match's tick: ≤ 0
traffic of a client, controls held: ≤ 5.5
traffic of a client, controls change at every tick: ≤ 14
untouched 1 MB, a match's tick, more than with 4 KB: ≤ 60
untouched 1 MB, a client frame, more than with 4 KB: ≤ 20
untouched 1 MB, slowest tick or frame of a second: ≤ 1000
server CPU per player and tick, 100 players: ratio ≤ 0.7
server CPU per player and tick, 400 players: ratio ≤ 0.7
load generator ÷ server, CPU per player, 100 players: ratio ≤ 1
load generator ÷ server, CPU per player, 400 players: ratio ≤ 1
datagrams per second of server CPU, 100 players: ratio ≥ 0.5
datagrams per second of server CPU, 400 players: ratio ≥ 0.5
server memory per player, 100 players: ≤ 150
server memory per player, 400 players: ≤ 150
server allocations per datagram, 100 players: ≤ 0
server allocations per datagram, 400 players: ≤ 0
players on one core until p99.9 of ticks is 2 ms late: ≥ 1000
server CPU per player, most ÷ least, from 12 players on: ≤ 1.5
idle match of 4 silent players, server CPU a tick: ≤ 5
Powderkeg world of 4 players, one core: ≥ 500
`check` of Powderkeg's largest wave: ≥ 60
game thread, frame p99, rebuilt in the background: ≤ 1
horde, agents run again, wan: ≤ 2
horde, agents run again, bad: ≤ 3
horde, agents run again, awful: ≤ 5
horde, cores of a client, wan: ≤ 0.15
horde, cores of a client, bad: ≤ 0.16
horde, lead kept inline in 4 ms, wan: ≥ 95
horde, lead kept inline in 4 ms, bad: ≥ 90";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) row: &'static str,
    is_ratio: bool,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

pub(crate) fn all() -> Vec<Target> {
    let read = |line: &'static str| -> Option<Target> {
        let (row, wanted) = line.split_once(": ")?;
        let mut words = wanted.split(' ').rev();
        let number = words.next()?.parse().ok()?;
        let limit = match words.next()? {
            "≤" => AtMost(number),
            "≥" => AtLeast(number),
            _ => return None,
        };
        let is_ratio = words.next() == Some("ratio");
        Some(Target {
            row,
            is_ratio,
            limit,
        })
    };
    let read = |line| read(line).unwrap_or_else(|| panic!("no target: {line}"));
    TARGETS.lines().map(read).collect()
}

fn is_met(limit: Limit, value: f64) -> bool {
    match limit {
        AtMost(limit) => value <= limit,
        AtLeast(limit) => value >= limit,
    }
}

/// Returns the ratio to the limit, at most 1 if the limit is met. `None` if the ratio is not finite.
fn factor(limit: Limit, value: f64) -> Option<f64> {
    let factor = match limit {
        AtMost(limit) if value == limit => 1.0,
        AtMost(limit) => value / limit,
        AtLeast(limit) => limit / value,
    };
    factor.is_finite().then_some(factor)
}

pub(crate) const COLUMNS: [&str; 7] = ["what", "target", "measured", "min", "max", "factor", ""];

/// Creates one line of cells for each target. A target without a row in `sections` is marked as not measured.
pub(crate) fn lines(sections: &[Section]) -> Vec<Vec<String>> {
    let rows: Vec<&Row> = sections.iter().flat_map(|section| &section.rows).collect();
    let line = |target: Target| {
        let Target {
            row,
            is_ratio,
            limit,
        } = target;
        let measured = rows.iter().find(|one| one.name == row);
        let measured = measured.and_then(|row| match is_ratio {
            true => row.ratio(),
            false => row.spread(),
        });
        let prefix = if is_ratio { "ratio of " } else { "" };
        let wanted = match limit {
            AtMost(limit) => format!("≤ {}", digits(limit)),
            AtLeast(limit) => format!("≥ {}", digits(limit)),
        };
        let mut cells = vec![format!("{prefix}{row}"), wanted];
        cells.extend(match measured {
            None => ["", "", "", "", "not measured"].map(str::to_owned),
            Some(Spread { min, median, max }) => {
                let is_met = is_met(limit, median);
                let verdict = if is_met { "met" } else { "**missed**" };
                let factor = factor(limit, median).map(digits);
                let factor = factor.unwrap_or_default();
                [
                    digits(median),
                    digits(min),
                    digits(max),
                    factor,
                    verdict.to_owned(),
                ]
            }
        });
        cells
    };
    all().into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_above_1_is_the_distance_to_a_missed_target() {
        let judged = |limit, value| (is_met(limit, value), factor(limit, value));
        assert_eq!(judged(AtMost(5.5), 11.0), (false, Some(2.0)));
        assert_eq!(judged(AtMost(5.5), 5.5), (true, Some(1.0)));
        assert_eq!(judged(AtLeast(500.0), 250.0), (false, Some(2.0)));
        assert_eq!(judged(AtLeast(500.0), 1_000.0), (true, Some(0.5)));
        assert_eq!(judged(AtMost(0.0), 0.0), (true, Some(1.0)));
        assert_eq!(judged(AtMost(0.0), 0.01), (false, None));
    }

    #[test]
    fn a_target_limits_a_value_or_a_ratio_and_reports_a_missing_row() {
        let mut section = Section::default();
        let row = Row::one(all()[0].row, "ns", 5.0).beside("ggrs", vec![100.0]);
        let missed = "players on one core until p99.9 of ticks is 2 ms late";
        section.rows = vec![row, Row::one(missed, "", 900.0)];
        let lines = lines(&[section]);
        assert_eq!(lines[0][2..], ["0.050", "0.050", "0.050", "0.833", "met"]);
        let misses = lines.iter().filter(|line| line[6] == "**missed**");
        let misses: Vec<&str> = misses.map(|line| line[0].as_str()).collect();
        assert_eq!(misses, [missed]);
        let unmeasured = lines.iter().filter(|line| line[6] == "not measured");
        assert_eq!(unmeasured.count(), all().len() - 2);
    }
}
