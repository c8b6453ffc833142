//! [`Report`]: the coverage of a check that found no fault, and the costs of the game.

use std::any::TypeId;
use std::fmt;
use std::time::Duration;

use twinstep_core::bounds::{WORLD_BYTES_MAX, lead_max};
use twinstep_core::diff::lengths;
use twinstep_core::world::World;
use twinstep_core::{Never, Simulation};

use crate::measure::{Cost, Costs};
use crate::script::Script;
use crate::seal::Happened;
use crate::variants::Missing;

const FRAME_TIME: Duration = Duration::from_millis(4);
/// A run with fewer ticks is short.
const TICKS_MIN: u32 = 300;
/// A run with fewer commands has few.
pub(crate) const COMMANDS_MIN: u64 = 100;
/// A `Table` of this many elements has several pages, and a list of more than twenty is sorted differently.
const ELEMENTS_MIN: u64 = 129;

/// The sizes of one of the game's types: its largest value, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// The type: input, command, outcome or world.
    pub what: &'static str,
    /// The size of the largest value in bytes; 0 if there was none.
    pub bytes: usize,
    /// The size limit in bytes.
    pub bound: usize,
}

/// The events of a check. They show the author which features were not tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Tried {
    pub ticks: u32,
    pub players: usize,
    /// The number of times that a player joined, dropped, reconnected or left.
    pub changes: u32,
    pub commands: u32,
    pub refused: u32,
    pub claims: u32,
    /// The number of queries asked.
    pub asked: u32,
    /// The number of queries without an answer.
    pub unanswered: u32,
    /// The number of queries dropped because too many were open.
    pub dropped_asks: u64,
    pub cues: u64,
    /// The number of ticks in which a prediction withheld an effect.
    pub withheld_ticks: u32,
    /// The number of cues and queries that kept their key when another player acted differently, and the number that
    /// did not.
    pub keys: (u32, u32),
}

pub(crate) fn has<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<Never>()
}

impl Tried {
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

    /// The parts of this run that were small.
    pub(crate) fn lacks<S: Simulation>(&self, largest: &World<S>, has_others: bool) -> Vec<String> {
        let mut lacks = Vec::new();
        if self.ticks < TICKS_MIN {
            lacks.push(format!("ticks ({} of {TICKS_MIN})", self.ticks));
        }
        if has::<S::Command>() && u64::from(self.commands) < COMMANDS_MIN {
            lacks.push(format!("commands ({} of {COMMANDS_MIN})", self.commands));
        }
        lacks.extend(short_lists(largest));
        if size_of::<S::Rules>() > 0 && !has_others {
            lacks.push("other rules played before (`Script::also_on`)".to_owned());
        }
        lacks
    }

    pub(crate) fn record(&mut self, happened: Happened) {
        self.changes = happened.changes;
        self.commands = happened.commands;
        self.refused = happened.refused;
        self.claims = happened.claims;
        self.asked = happened.asked;
        self.unanswered = happened.unanswered;
    }
}

/// A note about the state's longest list, if it is short. `None` if it is long, or the state has no list.
pub(crate) fn short_lists<S: Simulation>(world: &World<S>) -> Option<String> {
    let lengths = lengths(&world.digested()).into_iter();
    let lists = lengths.filter(|(path, _)| path.starts_with("sim"));
    let (path, longest) = lists.max_by_key(|(_, length)| *length)?;
    (longest < ELEMENTS_MIN).then(|| {
        format!("a long list ({path} is the longest, with {longest} of {ELEMENTS_MIN} elements)")
    })
}

/// The parts of a run that were small, as a line.
pub(crate) struct Lacks<'a>(pub(crate) &'a [String]);

impl fmt::Display for Lacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            all => writeln!(
                f,
                "  A SMALL RUN, in which some faults do not show. It lacks {}",
                all.join(", ")
            ),
        }
    }
}

/// The result of a check without a fault. Print it: `println!("{report}")`.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Report {
    pub game: &'static str,
    pub seed: u64,
    /// The events of the run.
    pub tried: Tried,
    /// The sizes of the game's types.
    pub sizes: Vec<Size>,
    pub costs: Costs,
    /// Whether predictions were left out: see [`Script::lockstep`](crate::Script::lockstep).
    pub lockstep: bool,
    /// The time that a step simulates.
    pub tick_length: Duration,
    /// The reason why there was no second process. `None` if a second process agreed.
    pub skipped: Option<String>,
    /// The reason why no second process had a different clock, so that dates were not tried. `None` if one had.
    pub same_clock: Option<String>,
    /// The reason why no second process had a different environment: variables, working folder, locale and time zone.
    /// `None` if one had.
    pub same_environment: Option<String>,
    /// The reason why no second process had only one core. `None` if one had.
    pub same_cores: Option<String>,
    /// Features of the game that the script never reached, so they are unchecked.
    pub untried: Vec<&'static str>,
    /// The variants of commands, queries, outcomes and cues that never occurred, such as "command Vote".
    pub unused_variants: Vec<String>,
    /// Parts of the run that were small, such as ticks or lists. Some faults show only in a large world.
    pub lacks: Vec<String>,
    /// The duration of the check, without a pause of about a second.
    pub took: Duration,
}

impl Report {
    /// The number of ticks checked per second.
    #[must_use]
    pub fn ticks_per_second(&self) -> f64 {
        f64::from(self.tried.ticks) / self.took.as_secs_f64()
    }

    /// The report of a check that a second process leaves out.
    pub(crate) fn left_out<S: Simulation>(script: &Script<S>) -> Report {
        let tried = Tried {
            ticks: script.ticks,
            players: script.players,
            ..Tried::default()
        };
        Report {
            game: S::NAME,
            seed: script.seed,
            tried,
            sizes: Vec::new(),
            costs: Costs::default(),
            lockstep: script.lockstep,
            tick_length: script.tick_length_set(),
            skipped: None,
            same_clock: None,
            same_environment: None,
            same_cores: None,
            untried: Vec::new(),
            unused_variants: Vec::new(),
            lacks: Vec::new(),
            took: Duration::ZERO,
        }
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
            "{}: {ticks} ticks of {players} players from seed {}: no fault found, in {:.1} s",
            self.game,
            self.seed,
            self.took.as_secs_f64()
        )?;
        write!(f, "{}", Missing(&self.unused_variants))?;
        if !self.untried.is_empty() {
            writeln!(
                f,
                "  NEVER TRIED: {}; let the script do this, or do it more often, or for more `ticks`",
                self.untried.join(", ")
            )?;
        }
        write!(f, "{}", Lacks(&self.lacks))?;
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
            writeln!(f, "  {what:10} {}", CostText(cost))?;
        }
        let lead = self.costs.ticks_within(FRAME_TIME);
        let length = self.tick_length.as_secs_f64();
        match self.lockstep {
            true => writeln!(
                f,
                "  a step takes {:.1} % of a tick of {:.0} ms; a late client makes up {lead} ticks a frame",
                step.time.as_secs_f64() / length * 100.0,
                length * 1e3
            )?,
            false => writeln!(
                f,
                "  a client spends {} ms of a frame on steps: enough to rebuild {lead} ticks of lead, of {} at {:.0} Hz",
                FRAME_TIME.as_millis(),
                lead_max(self.tick_length),
                1.0 / length
            )?,
        }
        if step.allocations.is_none() {
            writeln!(
                f,
                "  allocations: not counted, see `twinstep_testing::Counting`"
            )?;
        }
        self.write_tried(f)?;
        if let Some(why) = &self.skipped {
            return write!(f, "  there was no second process: {why}");
        }
        write!(f, "  a second process agreed")?;
        match &self.same_clock {
            None => write!(f, ", with its clock a year ahead and more")?,
            Some(why) => write!(
                f,
                "; its clock was not moved, so dates were not tried: {why}"
            )?,
        }
        if let Some(why) = &self.same_environment {
            write!(f, "; its environment was the same: {why}")?;
        }
        match &self.same_cores {
            None => Ok(()),
            Some(why) => write!(f, "; its cores were the same: {why}"),
        }
    }
}

impl Report {
    fn write_tried(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        write!(
            f,
            "  tried: {changes} changes of the roster, {commands} commands, {claims} claims, {refused} refused; {asked} \
             queries, {unanswered} of them unanswered; {cues} cues"
        )?;
        match self.lockstep {
            true => writeln!(f)?,
            false => writeln!(
                f,
                "; {withheld_ticks} ticks with withheld effects\n  keys: {kept} stable, {renamed} renamed"
            )?,
        }
        if dropped_asks > 0 {
            writeln!(
                f,
                "  {dropped_asks} queries were dropped: too many were open"
            )?;
        }
        Ok(())
    }
}

struct CostText(Cost);

impl fmt::Display for CostText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} µs", self.0.time.as_secs_f64() * 1e6)?;
        match self.0.allocations {
            Some(allocations) => write!(f, ", {allocations} allocations"),
            None => Ok(()),
        }
    }
}
