//! What is to be reached, and what was.

use crate::spread::{Spread, digits};
use crate::table::Table;

/// Which side of a target is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    AtMost,
    AtLeast,
}

/// One target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    pub(crate) name: &'static str,
    pub(crate) wanted: Wanted,
    pub(crate) target: f64,
}

const fn at_most(name: &'static str, target: f64) -> Goal {
    Goal {
        name,
        wanted: Wanted::AtMost,
        target,
    }
}

const fn at_least(name: &'static str, target: f64) -> Goal {
    Goal {
        name,
        wanted: Wanted::AtLeast,
        target,
    }
}

pub(crate) const CPU_100: Goal =
    at_most("server CPU per player and tick ÷ renet's, 100 players", 0.7);
pub(crate) const CPU_400: Goal =
    at_most("server CPU per player and tick ÷ renet's, 400 players", 0.7);
pub(crate) const GENERATOR_100: Goal = at_most(
    "load generator ÷ the server that it loads, 100 players",
    1.0,
);
pub(crate) const GENERATOR_400: Goal = at_most(
    "load generator ÷ the server that it loads, 400 players",
    1.0,
);
pub(crate) const PACKETS: Goal = at_least(
    "whole stack's datagrams a second of CPU ÷ raw UDP echo's",
    0.5,
);
pub(crate) const PLAYERS_A_CORE: Goal = at_least(
    "players on one core until p99.9 of ticks is 2 ms late",
    1_000.0,
);
pub(crate) const LINEAR: Goal = at_most(
    "CPU per player: the most ÷ the least, from 10 players to those",
    1.5,
);
pub(crate) const MEMORY: Goal = at_most("memory per player beyond the state, KB", 150.0);
pub(crate) const IDLE: Goal = at_most("idle match (4 silent seats), µs a tick", 5.0);
pub(crate) const FRAMES: [Goal; 4] = [
    at_most("client frame ÷ ggrs: 4 KB, no rebuild", 0.06),
    at_most("client frame ÷ ggrs: 4 KB, rebuild at every turn", 0.10),
    at_most("client frame ÷ ggrs: 64 KB, no rebuild", 0.12),
    at_most("client frame ÷ ggrs: 64 KB, rebuild at every turn", 0.15),
];
pub(crate) const AGAIN: [Goal; 2] = [
    at_most("8 ticks again, alone, ÷ ggrs: 4 KB", 0.35),
    at_most("8 ticks again, alone, ÷ ggrs: 64 KB", 0.12),
];
pub(crate) const ALLOCATIONS_CLIENT: Goal = at_most("allocations in a client's frame", 0.0);
pub(crate) const ALLOCATIONS_MATCH: Goal = at_most("allocations in a match's tick", 0.0);
pub(crate) const ALLOCATIONS_HOST: Goal =
    at_most("allocations for a datagram in or out of the host", 0.0);
pub(crate) const WORLD: Goal = at_least(
    "virtual seconds a second of a Powderkeg world of 4, one core",
    500.0,
);
pub(crate) const HELD: Goal = at_most("client that holds its controls, KB/s both ways", 5.5);
pub(crate) const CHANGING: Goal =
    at_most("controls that change at every tick, KB/s both ways", 14.0);
pub(crate) const GAME_THREAD: Goal = at_most(
    "1,000 entities, 16 ticks of lead, a wrong guess a turn, in the background: p99 of a frame, ms",
    1.0,
);

pub(crate) const LARGE: [Goal; 3] = [
    at_most(
        "1 MB that nobody touches: more than 4 KB of a match's tick, µs",
        60.0,
    ),
    at_most(
        "1 MB that nobody touches: more than 4 KB of a client's frame, µs",
        20.0,
    ),
    at_most(
        "1 MB that nobody touches: a second's slowest tick or frame, ms",
        1.0,
    ),
];

/// All of them, in the order in which they are told.
pub(crate) fn all() -> Vec<Goal> {
    let mut goals = vec![
        CPU_100,
        CPU_400,
        GENERATOR_100,
        GENERATOR_400,
        PACKETS,
        PLAYERS_A_CORE,
        LINEAR,
        MEMORY,
        IDLE,
    ];
    goals.extend(FRAMES);
    goals.extend(AGAIN);
    goals.extend([
        ALLOCATIONS_CLIENT,
        ALLOCATIONS_MATCH,
        ALLOCATIONS_HOST,
        WORLD,
        HELD,
        CHANGING,
        GAME_THREAD,
    ]);
    goals.extend(LARGE);
    goals
}

impl Goal {
    /// How far a value is from the target: up to 1 it is reached.
    fn factor(&self, value: f64) -> f64 {
        match self.wanted {
            _ if value == self.target => 1.0,
            Wanted::AtMost => value / self.target,
            Wanted::AtLeast => self.target / value,
        }
    }

    pub(crate) fn is_met(&self, value: f64) -> bool {
        match self.wanted {
            Wanted::AtMost => value <= self.target,
            Wanted::AtLeast => value >= self.target,
        }
    }
}

/// What was measured of each target, and what limits it.
#[derive(Default)]
pub(crate) struct Reached {
    values: Vec<(&'static str, Spread)>,
    limits: Vec<(&'static str, String)>,
}

impl Reached {
    /// Several rounds of a target; nothing if there was none.
    pub(crate) fn note(&mut self, goal: &Goal, measured: Option<Spread>) {
        self.values
            .extend(measured.map(|spread| (goal.name, spread)));
    }

    /// One value, where there are no rounds.
    pub(crate) fn note_one(&mut self, goal: &Goal, value: f64) {
        self.note(goal, Spread::of([value]));
    }

    /// What stands between this target and what was measured: told where it is missed.
    /// What is said last counts.
    pub(crate) fn limit(&mut self, goal: &Goal, why: String) {
        self.limits.retain(|(name, _)| *name != goal.name);
        self.limits.push((goal.name, why));
    }

    fn value(&self, goal: &Goal) -> Option<Spread> {
        let value = self.values.iter().find(|(name, _)| *name == goal.name);
        value.map(|(_, spread)| *spread)
    }

    /// The table of targets.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(
            "Targets",
            "medians of rounds, and of ratios the medians of each round's ratio; factor: above 1 the target is missed by so much",
            &["what", "target", "measured", "min", "max", "factor", ""],
        );
        for goal in all() {
            let wanted = match goal.wanted {
                Wanted::AtMost => "≤",
                Wanted::AtLeast => "≥",
            };
            let target = format!("{wanted} {}", digits(goal.target));
            let row = match self.value(&goal) {
                None => ["not measured", "–", "–", "–", "–"].map(str::to_owned),
                Some(spread) => {
                    let [min, median, max] = spread.cells();
                    let factor = match goal.factor(spread.median) {
                        factor if factor.is_finite() => format!("{factor:.2}"),
                        _ => "–".to_owned(),
                    };
                    let met = match goal.is_met(spread.median) {
                        true => "met",
                        false => "**missed**",
                    };
                    [median, min, max, factor, met.to_owned()]
                }
            };
            let [median, min, max, factor, met] = row;
            table.row([goal.name.to_owned(), target, median, min, max, factor, met]);
        }
        table
    }

    /// Each target that is missed or was not measured, and what limits it.
    pub(crate) fn misses(&self) -> Vec<String> {
        let missed = all().into_iter().filter_map(|goal| {
            let value = self.value(&goal).map(|spread| spread.median);
            if value.is_some_and(|value| goal.is_met(value)) {
                return None;
            }
            let why = self.limits.iter().find(|(name, _)| *name == goal.name);
            let why = why.map_or("What limits it was not looked for.", |(_, why)| why);
            let reached = match value {
                Some(value) => format!("{} of {}", digits(value), digits(goal.target)),
                None => "not measured".to_owned(),
            };
            Some(format!("{}: {reached}. {why}", goal.name))
        });
        missed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_above_1_says_by_how_much_a_target_is_missed_whichever_side_is_good() {
        let factor = |goal: Goal, value| (goal.is_met(value), goal.factor(value));
        assert_eq!(factor(HELD, 11.0), (false, 2.0));
        assert_eq!(factor(HELD, 5.5), (true, 1.0));
        assert_eq!(factor(WORLD, 250.0), (false, 2.0));
        assert_eq!(factor(WORLD, 1_000.0), (true, 0.5));
        assert_eq!(factor(ALLOCATIONS_HOST, 0.0), (true, 1.0));
        assert!(!ALLOCATIONS_HOST.is_met(0.01));
    }

    #[test]
    fn what_is_missed_is_told_with_its_reason_and_what_is_met_is_not() {
        let mut reached = Reached::default();
        reached.note_one(&HELD, 7.0);
        reached.limit(&HELD, "Headers.".to_owned());
        reached.note_one(&CHANGING, 13.0);
        reached.limit(&CHANGING, "Inputs.".to_owned());
        reached.note_one(&MEMORY, 200.0);
        let misses = reached.misses();
        let has = |what: &str| misses.iter().any(|miss| miss.ends_with(what));
        assert!(
            has("200 of 150. What limits it was not looked for."),
            "{misses:?}"
        );
        assert!(has("7.00 of 5.50. Headers."));
        assert!(!misses.iter().any(|miss| miss.starts_with(CHANGING.name)));
        assert_eq!(
            misses.len(),
            all().len() - 1,
            "what was not measured is told too"
        );
    }
}
