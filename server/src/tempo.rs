//! The turn and tick lengths that one client needs, as observed by the server: the adaptive policies.
//!
//! ```text
//!  turn   raised   after 3 pauses within 5 s, by a quarter, once for all clients
//!         lowered  by a tick after a policy's patience without pauses, down to the round trip
//!  tick   longer   by a tenth each 2.5 s while a machine cannot keep up
//!         shorter  by a twentieth after 5 s in which the machine could, down to its normal length
//! ```
//!
//! Each lowering is a trial. If the pauses or the overload return, the trial is undone, and the next one waits twice as
//! long; a successful trial halves the wait again, so the lengths do not oscillate. The times were tuned for this
//! project in virtual time; the mechanism comes from Stone Monarch.

use std::time::Duration;

use twinstep_core::turn::Cadence;

use crate::config::{MatchConfig, TickLength, TurnLength};

/// The window in which pauses are counted.
const WINDOW: Duration = Duration::from_secs(5);
/// This many pauses within [`WINDOW`] are too many.
const PAUSES_MAX: u32 = 3;
/// The time after a change of the turn length before its effect can be judged.
const SETTLE: Duration = Duration::from_secs(2);
/// A trial of a shorter turn has failed if pauses return within this time. For a shorter tick it is [`WINDOW`].
const TURN_TRIED_FOR: Duration = Duration::from_secs(30);
/// The wait before the first trial of a shorter tick. The wait for a shorter turn is configured.
const TICK_PATIENCE: Duration = Duration::from_secs(5);
/// The wait before a turn that was too short is tried again, as a multiple of the usual wait.
const AGAIN: u32 = 6;
/// The longest wait after failed trials, as a multiple of the first wait.
const PATIENCE_GROWTH_MAX: u32 = 32;
/// The shortest time between two raises of the tick: a machine's load is measured over two seconds.
const SLOW_EVERY: Duration = Duration::from_millis(2_500);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnReport {
    /// The client's pauses: those it reported, and at least 1 if the match waited for it.
    pub(crate) pauses: u32,
    pub(crate) rtt: Duration,
    pub(crate) jitter: Duration,
    pub(crate) slow: bool,
    pub(crate) has_headroom: bool,
}

/// The cadence that a client requests at the start of each turn.
#[derive(Debug)]
pub(crate) struct Tempo {
    /// The turn that the client requests, in ticks; 0 before its first turn.
    turn_ticks: u8,
    /// The match's turn at the last decision, in ticks.
    last_ticks: u8,
    /// The turn that the client's round trip needs, in ticks.
    floor: u8,
    /// The longest turn that brought too many pauses, in ticks; 0 once the connection has improved.
    too_short: u8,
    jitter: Duration,
    tick: Duration,
    // The configured tick for which `tick` was decided.
    shortest_tick: Duration,
    pauses: u32,
    window_began: Duration,
    turns: Trial,
    ticks: Trial,
    slowed_at: Duration,
}

#[derive(Debug)]
struct Trial {
    /// The time of the last pause, overload or change.
    quiet_since: Duration,
    lowered_at: Option<Duration>,
    /// A trial has failed if trouble comes back within this time.
    tried_for: Duration,
    /// The wait before the next trial, as a multiple of the first one.
    growth: u32,
}

impl Trial {
    fn new(tried_for: Duration) -> Self {
        Trial {
            quiet_since: Duration::ZERO,
            lowered_at: None,
            tried_for,
            growth: 1,
        }
    }

    fn fail(&mut self, now: Duration) {
        self.quiet_since = now;
        if let Some(at) = self.lowered_at.take()
            && now.saturating_sub(at) < self.tried_for
        {
            self.growth = (self.growth * 2).min(PATIENCE_GROWTH_MAX);
        }
    }

    /// Restarts a trial's timers, because the current observations do not apply to the value on trial.
    fn wait_on(&mut self, now: Duration) {
        self.quiet_since = now;
        self.lowered_at = self.lowered_at.map(|_| now);
    }

    /// Returns `true` once when a trial has caused no pause or overload for `tried_for`.
    fn holds(&mut self, now: Duration) -> bool {
        let is_over = |at: &mut Duration| now.saturating_sub(*at) >= self.tried_for;
        let holds = self.lowered_at.take_if(is_over).is_some();
        if holds {
            self.growth = (self.growth / 2).max(1);
        }
        holds
    }

    /// Returns `true` if there was no pause or overload for long enough to try a lower value. `patience` is the wait
    /// before the first trial.
    fn try_less(&mut self, now: Duration, patience: Duration) -> bool {
        self.holds(now);
        let quiet = now.saturating_sub(self.quiet_since) >= patience * self.growth;
        if quiet {
            self.quiet_since = now;
            self.lowered_at = Some(now);
        }
        quiet
    }
}

impl Default for Tempo {
    fn default() -> Self {
        Tempo {
            turn_ticks: 0,
            last_ticks: 0,
            floor: 0,
            too_short: 0,
            jitter: Duration::ZERO,
            tick: Duration::ZERO,
            shortest_tick: Duration::ZERO,
            pauses: 0,
            window_began: Duration::ZERO,
            turns: Trial::new(TURN_TRIED_FOR),
            ticks: Trial::new(WINDOW),
            slowed_at: Duration::ZERO,
        }
    }
}

impl Tempo {
    /// The cadence that the client requests for the turn starting now. `last` is the cadence of the turn before, in
    /// which `seen` was observed.
    pub(crate) fn decide(
        &mut self,
        now: Duration,
        config: &MatchConfig,
        last: Cadence,
        seen: TurnReport,
    ) -> Cadence {
        self.decide_tick(now, config, last, seen);
        self.decide_turn(now, config, last, seen);
        Cadence {
            turn_ticks: self.turn_ticks,
            tick_ns: self.tick.as_nanos() as u32,
            delay_ticks: config.delay_ticks,
            ..last
        }
    }

    pub(crate) fn shift(&mut self, lasted: Duration) {
        self.window_began += lasted;
        self.slowed_at += lasted;
        for trial in [&mut self.turns, &mut self.ticks] {
            trial.quiet_since += lasted;
            trial.lowered_at = trial.lowered_at.map(|at| at + lasted);
        }
    }

    /// Resets to normal values, because the client's requests are no longer granted.
    pub(crate) fn relax(&mut self) {
        *self = Tempo::default();
    }

    pub(crate) fn turn_ticks(&self) -> u8 {
        self.turn_ticks
    }

    /// The time per turn charged to this client: what its request adds to the configured tick length, and the ticks that
    /// it requests beyond `common` and beyond what its round trip needs. Those ticks are charged only if it requests the
    /// longest turn of all, `longest` ticks.
    pub(crate) fn excess(&self, config: &MatchConfig, common: u8, longest: u8) -> Duration {
        let turn_ticks = u32::from(self.turn_ticks);
        let longer_ticks = self.tick.saturating_sub(config.tick) * turn_ticks;
        let more = match self.turn_ticks >= longest {
            true => self.turn_ticks.saturating_sub(self.floor.max(common)),
            false => 0,
        };
        longer_ticks + config.tick * u32::from(more)
    }

    fn decide_turn(
        &mut self,
        now: Duration,
        config: &MatchConfig,
        last: Cadence,
        seen: TurnReport,
    ) {
        let (min, max, patience) = match config.turn {
            TurnLength::Fixed(ticks) => {
                (self.turn_ticks, self.floor) = (ticks, ticks);
                return;
            }
            TurnLength::Adaptive { min, max, patience } => (min, max, patience),
        };
        let floor = if config.command_delay == 0 {
            min
        } else {
            turn_of(seen.rtt, last.tick()).clamp(min, max)
        };
        self.floor = floor;
        if self.turn_ticks == 0 {
            self.turn_ticks = floor;
            self.settle(now);
        }
        if last.turn_ticks > std::mem::replace(&mut self.last_ticks, last.turn_ticks) {
            // Several clients pause for one cause: the first of them has made the turn longer for all.
            self.settle(now);
        }
        if now.saturating_sub(self.window_began) > WINDOW {
            self.window_began = now;
            self.pauses = 0;
        }
        self.pauses += seen.pauses;
        if seen.pauses > 0 {
            self.turns.quiet_since = now;
        }
        if last.turn_ticks > self.turn_ticks {
            // Others need longer turns: quiet times say nothing about the turn that this client requests.
            self.turns.wait_on(now);
        }
        if seen.jitter * 4 < self.jitter {
            (self.too_short, self.jitter) = (0, Duration::ZERO);
        }
        // A length that was too short before is tried again later than others.
        let wait = match self.turn_ticks <= self.too_short + 1 {
            true => patience * AGAIN,
            false => patience,
        };
        let wished = if self.pauses >= PAUSES_MAX {
            self.turns.fail(now);
            self.settle(now);
            let short = self.turn_ticks.max(last.turn_ticks);
            let is_known = short <= self.too_short;
            self.too_short = self.too_short.max(short);
            self.jitter = self.jitter.max(seen.jitter);
            match is_known {
                true => self.too_short + 1,
                false => short.saturating_add((short / 4).max(1)),
            }
        } else if self.turn_ticks > floor && self.turns.try_less(now, wait) {
            self.too_short = self.too_short.min(self.turn_ticks - 1);
            self.turn_ticks - 1
        } else {
            self.turn_ticks
        };
        // The last change still settles, so its pauses do not count.
        if now < self.window_began {
            self.pauses = 0;
        }
        self.turn_ticks = wished.clamp(min, max);
    }

    /// Ignores pauses for [`SETTLE`], because they may still be effects of the previous length.
    fn settle(&mut self, now: Duration) {
        self.pauses = 0;
        self.window_began = now + SETTLE;
    }

    fn decide_tick(
        &mut self,
        now: Duration,
        config: &MatchConfig,
        last: Cadence,
        seen: TurnReport,
    ) {
        let max = match config.tick_length {
            TickLength::Fixed => {
                self.tick = config.tick;
                return;
            }
            TickLength::Adaptive { max } => max,
        };
        if self.shortest_tick != config.tick {
            // A requested speed takes effect at once. A machine that cannot keep up slows it down again.
            self.shortest_tick = config.tick;
            self.tick = config.tick;
        }
        if seen.slow {
            self.ticks.fail(now);
            if now.saturating_sub(self.slowed_at) >= SLOW_EVERY {
                self.slowed_at = now;
                self.tick = self.tick.max(last.tick()).mul_f64(1.1);
            }
        } else if !seen.has_headroom {
            self.ticks.quiet_since = now;
        } else if self.tick > config.tick && self.ticks.try_less(now, TICK_PATIENCE) {
            self.tick = self.tick.mul_f64(0.95);
        }
        self.tick = self.tick.clamp(config.tick, max);
    }
}

/// The number of ticks that a round trip takes, rounded up.
pub(crate) fn turn_of(rtt: Duration, tick: Duration) -> u8 {
    rtt.as_nanos()
        .div_ceil(tick.as_nanos().max(1))
        .clamp(1, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn config() -> MatchConfig {
        MatchConfig {
            turn: TurnLength::adaptive(2, 10),
            tick_length: TickLength::Adaptive { max: MS(200) },
            ..MatchConfig::strategy()
        }
    }

    /// Plays turns. `seen` returns the pauses in the turn that starts at a given time with a given cadence, and whether
    /// the machine is slow.
    fn play(
        tempo: &mut Tempo,
        from: Duration,
        to: Duration,
        (rtt, jitter): (Duration, Duration),
        mut seen: impl FnMut(Duration, Cadence) -> (u32, bool),
    ) -> Vec<Cadence> {
        let config = config();
        let mut now = from;
        let mut cadence = config.cadence();
        let mut all = Vec::new();
        while now < to {
            let (pauses, slow) = seen(now, cadence);
            let seen = TurnReport {
                pauses,
                rtt,
                jitter,
                slow,
                has_headroom: !slow,
            };
            cadence = tempo.decide(now, &config, cadence, seen);
            all.push(cadence);
            now += cadence.turn();
        }
        all
    }

    #[test]
    fn a_turn_is_as_long_as_the_largest_round_trip() {
        // Row 25: 250 ms and 50 ms ticks give 5 ticks. Row 40: of 40, 90 and 160 ms the largest.
        assert_eq!(turn_of(MS(250), MS(50)), 5);
        let largest = [40, 90, 160].map(MS).into_iter().max().unwrap();
        assert_eq!(turn_of(largest, MS(10)), 16);
        assert_eq!(turn_of(largest, MS(50)), 4);
        let config = config();
        let seen = TurnReport {
            rtt: largest,
            ..TurnReport::default()
        };
        let mut tempo = Tempo::default();
        let first = tempo.decide(MS(0), &config, config.cadence(), seen);
        assert_eq!(first.turn_ticks, 4);
        assert_eq!(
            tempo.excess(&config, 0, 4),
            MS(0),
            "its round trip needs it"
        );
    }

    #[test]
    fn a_client_pays_for_longer_ticks_and_for_turns_that_only_it_needs() {
        let config = config();
        let asks = |turn_ticks, tick| Tempo {
            turn_ticks,
            floor: 2,
            tick,
            ..Tempo::default()
        };
        let slow = asks(2, MS(200));
        assert_eq!(slow.excess(&config, 8, 8), MS(300), "long turns of others");
        let long = asks(9, MS(50));
        assert_eq!(long.excess(&config, 3, 9), MS(300));
        assert_eq!(long.excess(&config, 9, 9), MS(0), "most need it");
        assert_eq!(long.excess(&config, 3, 10), MS(0), "another asks for more");
    }

    #[test]
    fn pauses_lengthen_turns_and_quiet_shortens_them() {
        // Rows 47 and 48: turns shorter than 6 ticks pause while the connection is bad, for 30 s.
        let mut tempo = Tempo::default();
        let bad = play(&mut tempo, MS(0), MS(30_000), (MS(100), MS(50)), |_, c| {
            (u32::from(c.turn_ticks < 6), false)
        });
        let worst = bad.last().unwrap().turn_ticks;
        assert!((6..=8).contains(&worst), "{worst} ticks");
        let changes = bad.windows(2).filter(|w| w[0] != w[1]).count();
        assert!(changes < 12, "{changes} changes in 30 s: it oscillates");
        let good = play(
            &mut tempo,
            MS(30_000),
            MS(130_000),
            (MS(100), MS(0)),
            |_, _| (0, false),
        );
        assert_eq!(
            good.last().unwrap().turn_ticks,
            2,
            "the floor: the round trip"
        );
    }

    #[test]
    fn failing_trials_become_rare() {
        // Row 48: no oscillation.
        let mut tempo = Tempo::default();
        let all = play(&mut tempo, MS(0), MS(600_000), (MS(100), MS(50)), |_, c| {
            (u32::from(c.turn_ticks < 5), false)
        });
        let late = &all[all.len() / 2..];
        let trials = late.iter().filter(|c| c.turn_ticks < 5).count();
        assert!(trials * 20 < late.len(), "{trials} of {} turns", late.len());
    }

    #[test]
    fn a_slow_machine_slows_the_game_evenly() {
        // Row 49: a machine that needs 70 ms for a tick of 50.
        let mut tempo = Tempo::default();
        let all = play(&mut tempo, MS(0), MS(120_000), (MS(100), MS(50)), |_, c| {
            (0, c.tick() < MS(70))
        });
        let late = &all[all.len() / 2..];
        let slow = late.iter().filter(|c| c.tick() < MS(70)).count();
        assert!(slow * 10 < late.len(), "{slow} of {} turns", late.len());
        assert!(late.iter().all(|c| c.tick() < MS(90)));
        let healed = play(
            &mut tempo,
            MS(120_000),
            MS(400_000),
            (MS(100), MS(0)),
            |_, _| (0, false),
        );
        assert_eq!(healed.last().unwrap().tick(), MS(50));
    }
}
