//! A game that commands can break, and the lateness of its matches' ticks.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key as Cause, Never, Simulation, Tick};
use twinstep_server::{Decision, HookContext, Match, MatchConfig};

const FOR_EVER: Duration = Duration::from_secs(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Poison,
    Curse,
    Sleep,
    Ask(Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Well,
    Slow,
    Panics,
    Hangs,
    JobPanics,
    JobHangs,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fragile {
    cursed: bool,
    asked: u32,
    pub(crate) answered: u32,
    pub(crate) unanswered: u32,
    label: u32,
    rubble: Vec<u8>,
}

impl Fragile {
    pub(crate) fn of(label: u32, bytes: usize) -> Fragile {
        Fragile {
            label,
            rubble: (0..bytes).map(|n| n as u8).collect(),
            ..Fragile::default()
        }
    }
}

/// A tick of a match with a label, and the time of its step.
type Stepped = (u32, Tick, Instant);

/// Ticks and their times, recorded at one place for all matches.
pub(crate) struct Times(Mutex<Vec<Stepped>>);

/// The server's steps.
pub(crate) static STEPPED: Times = Times(Mutex::new(Vec::new()));
/// The newest confirmed tick of a player, each time it changes.
pub(crate) static CONFIRMED: Times = Times(Mutex::new(Vec::new()));

impl Times {
    #[expect(clippy::disallowed_methods, reason = "the lateness is measured")]
    pub(crate) fn record(&self, label: u32, tick: Tick) {
        let mut times = self.0.lock().unwrap();
        times.push((label, tick, Instant::now()));
    }
}

impl Simulation for Fragile {
    const NAME: &'static str = "fragile";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Order;
    type Query = Answer;
    type Outcome = u8;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, _, outcome) in frame.outcomes() {
            match outcome {
                Some(_) => self.answered += 1,
                None => self.unanswered += 1,
            }
        }
        assert!(!self.cursed, "planted: cursed");
        // Only the server's world may break: the client must live to receive the close code.
        let server = SERVER.with(|server| server.get());
        if server && self.label > 0 {
            STEPPED.record(self.label, frame.tick());
        }
        for (player, order) in frame.commands() {
            match order {
                Order::Poison if server => panic!("planted: poison"),
                Order::Curse if server => self.cursed = true,
                Order::Sleep if server => std::thread::sleep(FOR_EVER),
                Order::Ask(answer) => {
                    fx.ask(Cause::player(player, self.asked), *answer);
                    self.asked += 1;
                }
                _ => {}
            }
        }
    }
}

thread_local! {
    static SERVER: std::cell::Cell<bool> = std::cell::Cell::new(
        std::thread::current().name().is_some_and(|name| name.starts_with("match-")),
    );
}

pub(crate) fn fragile_from(start: Fragile) -> Match<Fragile> {
    let resolver = |_: &HookContext<'_, Fragile>, _: Cause, query: &Answer| match query {
        Answer::Well => Decision::Now(1),
        Answer::Slow => {
            std::thread::sleep(Duration::from_millis(150));
            Decision::Now(1)
        }
        Answer::Panics => panic!("planted: resolver"),
        Answer::Hangs => {
            std::thread::sleep(FOR_EVER);
            Decision::Now(2)
        }
        Answer::JobPanics => Decision::Later(Box::new(|| panic!("planted: job"))),
        Answer::JobHangs => Decision::Later(Box::new(|| {
            std::thread::sleep(FOR_EVER);
            3
        })),
    };
    Match::new(MatchConfig::action(), start, Arc::new(()), resolver).unwrap()
}

impl Times {
    /// The lateness of ticks, sorted. Each tick is compared with the earliest of the ticks around it.
    pub(crate) fn lateness(
        &self,
        labels: RangeInclusive<u32>,
        from: Instant,
        to: Instant,
    ) -> Vec<Duration> {
        const AROUND: usize = 30;
        let length = MatchConfig::action().tick;
        let times = self.0.lock().unwrap();
        let mut late = Vec::new();
        for label in labels {
            let ours = times.iter().filter(|(of, ..)| *of == label);
            // The start time of a match in which all ticks were as late as this one, plus an offset greater than any
            // lateness.
            let begins: Vec<(Instant, Duration)> = ours
                .map(|(_, tick, at)| {
                    let since = at.duration_since(times[0].2);
                    (*at, since + length * 100_000 - length * tick.0)
                })
                .collect();
            for (n, (at, begin)) in begins.iter().enumerate() {
                let near = n.saturating_sub(AROUND)..(n + AROUND).min(begins.len());
                let earliest = begins[near].iter().map(|(_, begin)| begin).min();
                if (from..to).contains(at) {
                    late.push(*begin - *earliest.unwrap());
                }
            }
        }
        late.sort();
        late
    }
}

pub(crate) fn percentiles(late: &[Duration]) -> [Duration; 3] {
    let at = |part: usize| late[(late.len() - 1) * part / 100];
    [at(50), at(99), at(100)]
}
