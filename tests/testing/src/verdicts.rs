//! [`Verdicts`]: the findings of an arena that did not fail: cancelled cues, variants that never occurred, a growing
//! world.
//!
//! The events come from the match's journal, which is replayed at the end; cues come from the clients.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use twinstep_client::{CueEvent, CueId, CueKind, TimelineStats};
use twinstep_core::diff::lengths;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, codec};
use twinstep_protocol::replay::Replay;
use twinstep_server::Match;

use crate::failure::{FailureKind, Wrong};
use crate::variants::{VariantTally, Variants};

/// Fewer cancelled cues of a kind than this may be chance.
const CANCELLED_MIN: u64 = 10;
/// A world that gained less than this in the second half of a run does not grow.
const GROWN_BYTES_MIN: usize = 512;

/// The number of cues of one kind that all clients started, and how many of these were cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct CueCounts {
    pub started: u64,
    pub cancelled: u64,
}

/// A world that grew in the second half of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Growth {
    /// The path of the list, map or text that gained the most elements, with its lengths in the middle and at the end.
    pub field: Option<(String, u64, u64)>,
    /// The sizes of the world in the middle and at the end, in bytes.
    pub bytes: (usize, usize),
    /// The time from the middle to the end.
    pub within: Duration,
}

pub(crate) struct Verdicts<S: Simulation> {
    kinds: Variants<S::Cue>,
    cues: BTreeMap<usize, CueCounts>,
    /// The kinds of each client's open cues.
    open: BTreeMap<(u64, CueId), usize>,
    pub(crate) journal: Vec<u8>,
}

impl<S: Simulation> Default for Verdicts<S> {
    fn default() -> Self {
        Verdicts {
            kinds: Variants::default(),
            cues: BTreeMap::new(),
            open: BTreeMap::new(),
            journal: Vec::new(),
        }
    }
}

impl<S: Simulation> Verdicts<S> {
    pub(crate) fn record_cue(&mut self, client: u64, event: &CueEvent<S::Cue>) {
        let key = (client, event.id);
        match &event.kind {
            CueKind::Started { cue, .. } => {
                let kind = self.kinds.place(cue);
                self.open.insert(key, kind);
                self.cues.entry(kind).or_default().started += 1;
            }
            CueKind::Confirmed { .. } => {
                self.open.remove(&key);
            }
            CueKind::Cancelled => {
                if let Some(kind) = self.open.remove(&key) {
                    self.cues.entry(kind).or_default().cancelled += 1;
                }
            }
        }
    }

    pub(crate) fn cues(&self) -> BTreeMap<&'static str, CueCounts> {
        let named = |(kind, counts): (&usize, &CueCounts)| {
            (self.kinds.name(*kind).unwrap_or("all"), *counts)
        };
        self.cues.iter().map(named).collect()
    }

    /// Replays the journal. Returns the variants that never occurred, and the growth of the world.
    pub(crate) fn replay(&self, match_: &Match<S>) -> Result<(Vec<String>, Option<Growth>), Wrong> {
        let (rules, _) = match_.origin();
        let fault = |error: &dyn fmt::Display| {
            let text = format!("the match's journal, played again: {error}");
            Wrong::new(FailureKind::Diverged, text)
        };
        let opened = Replay::<S>::open(&self.journal[..], &rules);
        let mut replay = opened.map_err(|error| fault(&error))?;
        let mut tally = VariantTally::<S>::default();
        let end = match_.world().tick();
        let mut middle = None;
        while replay.step().map_err(|error| fault(&error))? {
            let effects = replay.effects();
            tally.record(replay.frame(), effects.asks(), effects.cues());
            if middle.is_none() && replay.world().tick().0 >= end.0 / 2 {
                middle = Some(replay.world().clone());
            }
        }
        let grown = middle.and_then(|middle| Growth::between(&middle, replay.world()));
        Ok((tally.unused(), grown))
    }
}

impl Growth {
    /// Returns `None` if the world grew by less than a quarter or 512 bytes. All players must be present in both.
    fn between<S: Simulation>(middle: &World<S>, end: &World<S>) -> Option<Growth> {
        let size = |world| codec::size(world).unwrap_or(0);
        let bytes = (size(middle), size(end));
        let gained = bytes.1.saturating_sub(bytes.0);
        if gained < GROWN_BYTES_MIN || gained * 4 < bytes.0 {
            return None;
        }
        let before = lengths(&middle.digested());
        let gains = lengths(&end.digested()).into_iter().map(|(path, len)| {
            let was = before.get(&path).copied().unwrap_or(0);
            (len.saturating_sub(was), (path, was, len))
        });
        let field = gains.max_by_key(|(gained, _)| *gained);
        Some(Growth {
            field: field
                .filter(|(gained, _)| *gained > 0)
                .map(|(_, field)| field),
            bytes,
            within: end.tick_length() * (end.tick() - middle.tick()),
        })
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.bytes;
        let seconds = self.within.as_secs_f64();
        let hourly = (after - before) as f64 / seconds * 3_600.0 / 1e6;
        write!(
            f,
            "THE WORLD GROWS: {before} to {after} B in {seconds:.0} s, {hourly:.1} MB an hour"
        )?;
        match &self.field {
            None => Ok(()),
            Some((path, was, len)) => write!(f, "; {path} from {was} to {len} elements"),
        }
    }
}

/// The lines about cues. A kind with mostly wrong guesses gets its own line.
pub(crate) struct CueLines<'a>(pub(crate) &'a BTreeMap<&'static str, CueCounts>);

impl fmt::Display for CueLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let counted = self.0.iter().map(|(kind, counts)| {
            format!("{kind} {}, {} cancelled", counts.started, counts.cancelled)
        });
        writeln!(f, "  cues: {}", Vec::from_iter(counted).join("; "))?;
        for (kind, CueCounts { started, cancelled }) in self.0 {
            // A cue that is always guessed wrong starts twice: the guess, which is cancelled, and the correct one.
            if *cancelled >= CANCELLED_MIN && 5 * cancelled > 2 * started {
                writeln!(
                    f,
                    "  MOST GUESSES OF THESE CUES WERE WRONG: {kind}, {cancelled} cancelled of {started}. Look for a value or a \
                     key that depends on the screen, the phase or a shared counter; emit what is rarely guessed right \
                     with `cue_when_confirmed`"
                )?;
            }
        }
        Ok(())
    }
}

/// The rebuilds of all clients, per cause.
pub(crate) struct Causes(pub(crate) TimelineStats);

impl Causes {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a TimelineStats>) -> Causes {
        let mut sum = TimelineStats::default();
        for one in all {
            sum.rebuilds += one.rebuilds;
            sum.by_roster += one.by_roster;
            sum.by_outcome += one.by_outcome;
            sum.by_own_command += one.by_own_command;
            sum.by_command += one.by_command;
            sum.by_withheld += one.by_withheld;
            sum.items_taken += one.items_taken;
            sum.items_run += one.items_run;
            for (sum, one) in sum.by_input.iter_mut().zip(&one.by_input) {
                *sum += one;
            }
        }
        Causes(sum)
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimelineStats {
            rebuilds,
            by_roster,
            by_outcome,
            by_own_command,
            by_command,
            by_withheld,
            by_input,
            items_taken,
            items_run,
            ..
        } = self.0;
        let inputs: u64 = by_input.iter().sum();
        write!(
            f,
            "  {rebuilds} rebuilds: {inputs} by an input, {by_command} by a command of others, {by_own_command} by an own \
             command that came late, {by_outcome} by an outcome, {by_roster} by the roster, {by_withheld} by a withheld \
             effect"
        )?;
        let players = (0..).map(PlayerId).zip(by_input);
        match players.max_by_key(|(_, count)| *count) {
            Some((player, most)) if most > 0 => writeln!(f, "; most inputs of {player}: {most}")?,
            _ => writeln!(f)?,
        }
        let items = items_taken + items_run;
        if items > 0 {
            let share = items_run as f64 / items as f64 * 100.0;
            writeln!(
                f,
                "  loops: {share:.1} % of {items} items in repeated ticks were run again"
            )?;
        }
        Ok(())
    }
}
