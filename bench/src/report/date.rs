//! Which day it is, for the head of the report.
#![allow(
    clippy::disallowed_methods,
    reason = "a report says when it was made; nothing that is measured asks"
)]

use std::time::SystemTime;

use crate::process::Failed;

/// Today in UTC, as 2026-11-20.
pub(super) fn today() -> Result<String, Failed> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(day(since.as_secs() / 86_400))
}

/// A day since 1970, in the calendar (Howard Hinnant's `civil_from_days`).
fn day(since_1970: u64) -> String {
    let days = since_1970 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_since_1970_are_days_of_the_calendar() {
        let days = [0, 59, 789, 11_016, 20_780].map(day);
        assert_eq!(
            days,
            [
                "1970-01-01",
                "1970-03-01",
                "1972-02-29",
                "2000-02-29",
                "2026-11-23"
            ]
        );
    }
}
