//! The waves of a round, each made of groups of enemies.
//!
//! Counts are those for one player; [`Wave::total`] gives the count for more players.

use serde::Serialize;

use super::kind::EnemyKind;

/// Groups of enemies. The next wave starts after all of them are dead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wave {
    pub groups: Vec<Group>,
}

/// Enemies of one kind that arrive one after another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Group {
    pub kind: EnemyKind,
    pub count: u16,
    pub after_ticks: u32,
    /// The time from one arrival to the next. A larger group arrives in the same total time, at shorter intervals.
    pub every_ticks: u32,
}

impl Group {
    /// Returns the number of enemies for `players` players. The number of bosses does not grow.
    #[must_use]
    pub fn total(&self, players: usize, crowd_percent: u32) -> u16 {
        if self.kind == EnemyKind::Boss {
            return self.count;
        }
        let more = crowd_percent * (players.max(1) - 1) as u32;
        (u32::from(self.count) * (100 + more) / 100) as u16
    }

    /// Returns the tick at which the `n`th of `total` arrives, counted from the start of the wave.
    #[must_use]
    pub fn arrival_ticks(&self, n: u16, total: u16) -> u32 {
        let span = self.every_ticks * u32::from(self.count);
        self.after_ticks + span * u32::from(n) / u32::from(total.max(1))
    }
}

impl Wave {
    #[must_use]
    pub fn total(&self, players: usize, crowd_percent: u32) -> u16 {
        let totals = self.groups.iter();
        totals
            .map(|group| group.total(players, crowd_percent))
            .sum()
    }
}

pub(super) fn campaign() -> Vec<Wave> {
    use EnemyKind::{Boss, Charger, Gunner, Sapper, Spinner, Urchin};
    let wave = |groups: &[(EnemyKind, u16, u32, u32)]| Wave {
        groups: groups
            .iter()
            .map(|&(kind, count, after_ticks, every_ticks)| Group {
                kind,
                count,
                after_ticks,
                every_ticks,
            })
            .collect(),
    };
    vec![
        wave(&[(Gunner, 6, 0, 110)]),
        wave(&[(Gunner, 5, 0, 110), (Sapper, 4, 60, 140)]),
        wave(&[(Urchin, 4, 0, 150), (Gunner, 5, 240, 90)]),
        wave(&[
            (Charger, 4, 0, 150),
            (Spinner, 2, 90, 300),
            (Gunner, 4, 420, 75),
        ]),
        wave(&[
            (Urchin, 5, 0, 140),
            (Sapper, 4, 60, 120),
            (Gunner, 5, 600, 60),
        ]),
        wave(&[
            (Charger, 5, 0, 120),
            (Spinner, 3, 60, 200),
            (Urchin, 4, 480, 100),
        ]),
        wave(&[
            (Gunner, 6, 0, 75),
            (Urchin, 5, 180, 120),
            (Charger, 5, 420, 90),
            (Spinner, 3, 600, 120),
            (Sapper, 3, 120, 240),
        ]),
        wave(&[
            (Boss, 1, 0, 0),
            (Gunner, 5, 600, 300),
            (Charger, 4, 900, 400),
            (Urchin, 3, 1_500, 500),
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    #[test]
    fn a_round_shows_every_kind_and_ends_with_a_boss() {
        let waves = campaign();
        let kinds = waves.iter().flat_map(|wave| &wave.groups);
        let kinds: std::collections::BTreeSet<EnemyKind> = kinds.map(|group| group.kind).collect();
        assert!(kinds.iter().eq(&EnemyKind::ALL));
        let boss = |wave: &Wave| {
            wave.groups
                .iter()
                .any(|group| group.kind == EnemyKind::Boss)
        };
        assert_eq!(waves.iter().position(boss), Some(waves.len() - 1));
    }

    #[test]
    fn more_players_meet_more_enemies_in_the_same_time_but_one_boss() {
        let percent = Rules::campaign().tuning.crowd_percent;
        for wave in campaign() {
            for group in &wave.groups {
                let [one, four, eight] = [1, 4, 8].map(|players| group.total(players, percent));
                assert_eq!(one, group.count);
                let last = |total: u16| group.arrival_ticks(total - 1, total);
                if group.kind == EnemyKind::Boss {
                    assert_eq!((four, eight), (1, 1));
                } else {
                    assert!(
                        one < four && four < eight,
                        "{group:?}: {one}, {four}, {eight}"
                    );
                    assert!(last(eight) - last(one) <= group.every_ticks);
                }
            }
        }
    }
}
