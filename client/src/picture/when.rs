//! [`When`]: the time at which the entities of another player are drawn; and [`DrawnTime`], the clock that keeps it.
//!
//! ```text
//!        authority      known           prediction
//!  ──────────┼────────────┼─────────────────┼──▶ ticks
//!            │ announced  │ guessed         │
//!                   ▲ q   ▲                 ▲ Predicted
//!                   │     └ jumps with each packet
//!                   └ reached nearly always: Known { guess: 2 } is drawn at q + 2
//! ```
//!
//! Invariant: a drawn time moves at 0.9 to 1.1 times the speed of the match, unless it leaps or follows the prediction.

/// The time at which another player's entities are drawn.
///
/// A client guesses another player's inputs for the last ticks of its prediction. So a player drawn there is near its
/// current position, but each wrong guess moves it. A player drawn at the newest known tick is placed correctly, but
/// late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Between the last two ticks of the prediction.
    Predicted,
    /// Near the newest tick for which the player's input is confirmed or announced, plus some guessed ticks. The
    /// player's cues wait for its inputs even in a guessed tick.
    Known {
        /// The number of guessed ticks. Each makes the picture newer, but wrong more often.
        guess: u8,
    },
    /// `Predicted` until more than 4 ticks are guessed, then `Known { guess: 2 }` until at most 2 are.
    #[default]
    Auto,
}

/// `Auto` draws the prediction up to this many guessed ticks.
const GUESSED_MAX: f64 = 4.0;
/// `Auto` returns to the prediction when this many fewer ticks are guessed.
const HYSTERESIS: f64 = 2.0;
const GUESS: f64 = 2.0;
/// The share of time in which less may be known than the clock expects.
const LATE: f64 = 0.004;
// The interval, in ticks, at which the clock checks whether far more is known than it expects.
const LOOK_TICKS: f64 = 24.0;
/// How much faster the expected tick rises for each additional known tick.
const HASTE: f64 = 0.1;
/// The largest deviation of the clock's rate from 1.
const RATE_MAX: f64 = 0.1;
/// The deviation of the rate for each tick of error.
const RATE_PER_TICK: f64 = 0.05;
/// The clock leaps if it is more than this many ticks late.
const LEAP: f64 = 40.0;
/// The clock has reached the prediction's time if it is this near.
const NEAR: f64 = 0.05;

/// The time at which one player is drawn, in ticks: at 7.5, it is halfway between the worlds of ticks 7 and 8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawnTime {
    at: f64,
    /// The tick up to which the inputs are expected to be known. It advances with the match; in each tick it falls back
    /// by almost a tick if fewer inputs are known than expected, and otherwise rises slowly. So it is too high about
    /// 0.4 % of the time. The share must be this small: fewer inputs are known mostly when the player turns, and then
    /// the guesses drawn instead are wrong.
    known: f64,
    // The minimum and maximum number of ticks known beyond the expected one, since the last check.
    more: [f64; 2],
    looked: f64,
    /// Whether the clock moves to the prediction's time.
    is_predicted: bool,
    /// Whether it has reached that time.
    is_there: bool,
}

const NOTHING: [f64; 2] = [f64::INFINITY, f64::NEG_INFINITY];

impl DrawnTime {
    pub(super) fn new(at: f64) -> Self {
        DrawnTime {
            at,
            known: at,
            more: NOTHING,
            looked: 0.0,
            is_predicted: true,
            is_there: false,
        }
    }

    // Detects a better connection: the expected tick rises at once if for a while much more was known than expected,
    // compared with how much this varied. Otherwise it would rise too slowly.
    fn look(&mut self, passed: f64, off: f64) {
        self.more = [self.more[0].min(off), self.more[1].max(off)];
        self.looked += passed;
        if self.looked < LOOK_TICKS {
            return;
        }
        let [least, most] = self.more;
        let varies = most - least;
        if least > 2.0 && least > varies / 2.0 {
            self.known += least - 1.0 - varies / 4.0;
        }
        (self.more, self.looked) = (NOTHING, 0.0);
    }

    pub(super) fn is_predicted(&self) -> bool {
        self.is_predicted
    }

    pub(super) fn at(&self) -> f64 {
        self.at
    }

    /// Advances by `passed` ticks. `known` is the tick up to which the player's inputs are known; `predicted` is the
    /// time at which the prediction is drawn, which the clock never passes.
    pub(super) fn advance(&mut self, when: When, passed: f64, known: f64, predicted: f64) {
        let known = known.min(predicted + 1.0);
        self.known += passed;
        let off = known - self.known;
        let step = match off > 0.0 {
            true => LATE * (1.0 + off * HASTE),
            false => 1.0 - LATE,
        };
        self.known += off.clamp(-step * passed, step * passed);
        self.look(passed, off);
        let guessed = predicted + 0.5 - self.known;
        let guess = match when {
            When::Predicted => None,
            When::Known { guess } => Some(f64::from(guess)),
            When::Auto => {
                let back = if self.is_predicted { 0.0 } else { HYSTERESIS };
                (guessed > GUESSED_MAX - back).then_some(GUESS)
            }
        };
        self.is_predicted = guess.is_none();
        let target = guess.map_or(predicted, |guess| (self.known + guess).min(predicted));
        self.at += passed;
        let off = target - self.at;
        self.is_there = self.is_predicted && (self.is_there || off.abs() < NEAR);
        if self.is_there || off > LEAP {
            self.at = target;
        } else {
            self.at += passed * (off * RATE_PER_TICK).clamp(-RATE_MAX, RATE_MAX);
            self.at = self.at.min(predicted);
        }
    }
}
