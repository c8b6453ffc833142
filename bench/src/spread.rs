//! [`Spread`]: what several rounds came to.

use crate::measure::median;
use crate::table::number;

/// The lowest, the middle and the highest of several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of these rounds; `None` of none.
    pub(crate) fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = rounds.into_iter().collect();
        let median = median(&mut values)?;
        Some(Spread {
            min: *values.first()?,
            median,
            max: *values.last()?,
        })
    }

    /// Of each round's quotient: both sides were measured in the same minutes.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
        Spread::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
    }

    /// The three, for the cells of a table.
    pub(crate) fn cells(&self) -> [String; 3] {
        [self.min, self.median, self.max].map(digits)
    }
}

/// A number with three digits that count, as far as there are so many.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 0.995 => format!("{value:.3}"),
        small if small < 9.995 => format!("{value:.2}"),
        _ => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_of_ratios_pairs_the_rounds_of_both_sides() {
        // The machine was half as fast in the second round, for both.
        let spread = Spread::of_ratios(&[1.0, 2.0, 3.0], &[2.0, 4.0, 5.0]);
        let expected = Spread {
            min: 0.5,
            median: 0.5,
            max: 0.6,
        };
        assert_eq!(spread, Some(expected));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn small_numbers_keep_three_digits() {
        let written = [0.0, 0.0624, 1.234, 12.34, 1_234.0].map(digits);
        assert_eq!(written, ["0", "0.062", "1.23", "12.3", "1,234"]);
    }
}
