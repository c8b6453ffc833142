//! [`Report`]: what a check looked at where it found nothing, and what the game costs.

use std::any::TypeId;
use std::fmt;
use std::time::Duration;

use twinstep_core::bounds::{WORLD_BYTES_MAX, lead_max};
use twinstep_core::{Never, Simulation};

use crate::measure::{Cost, Costs};
use crate::seal::Happened;

/// A tick at 60 Hz.
const TICK: Duration = Duration::from_nanos(16_666_667);
/// What a client spends of a frame on steps.
const FRAME_TIME: Duration = Duration::from_millis(4);

/// A type that travels: its largest value seen, and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Input, command, outcome or world.
    pub what: &'static str,
    /// The most bytes of one value; 0: there was none.
    pub bytes: usize,
    /// What it may have.
    pub bound: usize,
}

/// What happened in a check, so that an author sees what was not tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tried {
    /// Ticks.
    pub ticks: u32,
    /// Players.
    pub players: usize,
    /// Times that somebody came, dropped, returned or left.
    pub changes: u32,
    /// Commands that ran.
    pub commands: u32,
    /// Commands and claims that were refused.
    pub refused: u32,
    /// Claims that ran.
    pub claims: u32,
    /// Queries asked.
    pub asked: u32,
    /// Of these, the ones that got no answer.
    pub unanswered: u32,
    /// Questions that were dropped because far too many were open.
    pub dropped_asks: u64,
    /// Cues.
    pub cues: u64,
    /// Ticks at which a prediction withheld something.
    pub withheld_ticks: u32,
    /// Cues and queries that had their key also where another player did something else, and those that had not.
    pub keys: (u32, u32),
}

/// Whether a game uses this type of its own.
fn has<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<Never>()
}

impl Tried {
    /// What a game with commands, queries and cues should have met, and did not.
    pub(crate) fn missing<S: Simulation>(&self) -> Vec<&'static str> {
        [
            (has::<S::Command>() && self.commands == 0, "a command"),
            (has::<S::Query>() && self.asked == 0, "a query"),
            (
                has::<S::Query>() && self.unanswered == 0,
                "a query without an answer",
            ),
            (has::<S::Cue>() && self.cues == 0, "a cue"),
        ]
        .into_iter()
        .filter_map(|(is_missing, what)| is_missing.then_some(what))
        .collect()
    }

    pub(crate) fn note(&mut self, happened: Happened) {
        self.changes = happened.changes;
        self.commands = happened.commands;
        self.refused = happened.refused;
        self.claims = happened.claims;
        self.asked = happened.asked;
        self.unanswered = happened.unanswered;
    }
}

/// What a check says of a game in which it found nothing. Print it: `println!("{report}")`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The game.
    pub game: &'static str,
    /// The seed.
    pub seed: u64,
    /// What happened.
    pub tried: Tried,
    /// How large everything was.
    pub sizes: Vec<Size>,
    /// What it costs, in this build on this machine.
    pub costs: Costs,
    /// Why there was no second process; `None`: there was one, and it agreed.
    pub skipped: Option<String>,
    /// Why no second process had another clock than the first, so that a date in a step shows nowhere; `None`: one had.
    pub same_clock: Option<String>,
    /// What the game has and the script never reached: of that nothing is known.
    pub untried: Vec<&'static str>,
    /// How long all of it took, but for a pause of about a second in which nothing is done.
    pub took: Duration,
}

impl Report {
    /// Ticks that were checked in each second.
    #[must_use]
    pub fn ticks_per_second(&self) -> f64 {
        f64::from(self.tried.ticks) / self.took.as_secs_f64()
    }

    pub(crate) fn world_size(bytes: usize) -> Size {
        Size {
            what: "world",
            bytes,
            bound: WORLD_BYTES_MAX,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { ticks, players, .. } = self.tried;
        writeln!(
            f,
            "{}: {ticks} ticks of {players} players from seed {}: nothing found, in {:.1} s",
            self.game,
            self.seed,
            self.took.as_secs_f64()
        )?;
        if !self.untried.is_empty() {
            writeln!(
                f,
                "  NEVER TRIED: {}; let the script do it, or more often, or for more `ticks`",
                self.untried.join(", ")
            )?;
        }
        for Size { what, bytes, bound } in &self.sizes {
            match bytes {
                0 => writeln!(f, "  {what:8} none seen; at most {bound} B")?,
                _ => writeln!(f, "  {what:8} {bytes} B of {bound} B")?,
            }
        }
        let Costs {
            step,
            clone_from,
            digest,
        } = self.costs;
        for (what, cost) in [
            ("step", step),
            ("clone_from", clone_from),
            ("digest", digest),
        ] {
            writeln!(f, "  {what:10} {}", Words(cost))?;
        }
        let lead = self.costs.ticks_within(FRAME_TIME);
        writeln!(
            f,
            "  in the {} ms that a client gives to steps in a frame it rebuilds {lead} ticks of lead, of {} at 60 Hz",
            FRAME_TIME.as_millis(),
            lead_max(TICK)
        )?;
        if step.allocations.is_none() {
            writeln!(
                f,
                "  allocations: not counted, see `twinstep_testing::Counting`"
            )?;
        }
        self.tell_tried(f)?;
        match (&self.skipped, &self.same_clock) {
            (None, None) => write!(f, "  a second process agreed, whose clock was a year ahead"),
            (None, Some(why)) => write!(
                f,
                "  a second process agreed; its clock was the same, so dates were not tried: {why}"
            ),
            (Some(why), _) => write!(f, "  a second process was left out: {why}"),
        }
    }
}

impl Report {
    fn tell_tried(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried {
            changes,
            commands,
            refused,
            claims,
            asked,
            unanswered,
            dropped_asks,
            cues,
            withheld_ticks,
            keys: (kept, renamed),
            ..
        } = self.tried;
        writeln!(
            f,
            "  tried: {changes} changes of the roster, {commands} commands, {claims} claims, {refused} refused; {asked} \
             queries, {unanswered} of them unanswered; {cues} cues; {withheld_ticks} ticks withheld"
        )?;
        writeln!(f, "  keys: {kept} stable, {renamed} renamed")?;
        if dropped_asks > 0 {
            writeln!(
                f,
                "  {dropped_asks} questions were dropped: too many are open"
            )?;
        }
        Ok(())
    }
}

struct Words(Cost);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} µs", self.0.time.as_secs_f64() * 1e6)?;
        match self.0.allocations {
            Some(allocations) => write!(f, ", {allocations} allocations"),
            None => Ok(()),
        }
    }
}
