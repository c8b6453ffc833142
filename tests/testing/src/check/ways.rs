//! The comparisons of one tick. A comparison runs after the comparisons on which it relies.

use std::sync::mpsc::{Receiver, Sender};

use twinstep_core::codec;
use twinstep_core::diff::Difference;
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::memo::Memos;
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId, Simulation};

use crate::cause::{self, is_reordered};
use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::keys::{Keys, otherwise};
use crate::line::{Emitted, Line};
use crate::steps::{Steps, differences};

/// `clone_from` replaces the stray world in one of this many ticks.
const REBUILD_IN: u32 = 4;
/// Every this many ticks, `clone_from` replaces the start state instead of a later one.
const FROM_START_TICKS: u32 = 50;
/// The number of times that a comparison must find a fault again before that comparison's verdict is reported.
const CONFIRMED_BY: usize = 8;
const LEADS: [u32; 3] = [1, 8, 40];
/// Floats whose relative difference is below this count as rounded.
const ROUNDED: f64 = 1e-3;

/// A step for the other thread: the world and its next frame.
pub(super) type Job<S> = (World<S>, FrameData<S>);
pub(super) type Done<S> = Result<World<S>, String>;

pub(super) fn run_jobs<S: Simulation>(
    rules: &S::Rules,
    work: &Receiver<Job<S>>,
    done: &Sender<Done<S>>,
) {
    let mut steps = Steps::new(rules);
    while let Ok((mut world, frame)) = work.recv() {
        let stepped = steps.confirmed(&mut world, &frame).map(|_| ());
        if done.send(stepped.map(|()| world)).is_err() {
            return;
        }
    }
}

pub(super) struct Ways<S: Simulation> {
    luck: Mwc,
    pub(super) keys: Keys<S>,
    first: World<S>,
    /// A prediction with wrong inputs, until `clone_from` replaces it.
    stray: World<S>,
    nothing_learned: Learned,
    all_learned: Learned,
    memos: Memos,
    foreseen: Emitted<S>,
    bytes: Vec<u8>,
    give: Sender<Job<S>>,
    take: Receiver<Done<S>>,
}

impl<S: Simulation> Ways<S> {
    pub(super) fn new(
        first: &World<S>,
        seed: u64,
        give: Sender<Job<S>>,
        take: Receiver<Done<S>>,
    ) -> Self {
        Ways {
            luck: Mwc::seed(seed).fork(Key::new(3, 0)),
            keys: Keys::new(first),
            first: first.clone(),
            stray: first.clone(),
            nothing_learned: Learned::new(),
            all_learned: Learned::new(),
            memos: Memos::default(),
            foreseen: Emitted::new(),
            bytes: Vec::new(),
            give,
            take,
        }
    }

    /// Compares the tick that was just stepped. Returns the size of the world before it, in bytes.
    pub(super) fn compare(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        let tick = line.frame.tick;
        for (player, _) in line.frame.inputs.iter() {
            self.all_learned.note(player, tick, tick);
        }
        let bytes = match self.disagree(line) {
            Ok(bytes) => bytes,
            // The comparisons assume that the step agrees with itself; check that first.
            Err(found) => {
                let (rules, before, frame) = (line.steps.rules, &line.before, &line.frame);
                if let Some(impure) = cause::if_impure(rules, before, frame, &line.world) {
                    return Err(impure);
                }
                if !self.is_confirmed(&found, line) {
                    let (before, frame) = (&line.before, &line.frame);
                    return Err(cause::of_a_rare_one(rules, before, frame, found.fields));
                }
                return Err(found);
            }
        };
        if !line.predicts() {
            return Ok(bytes);
        }
        let Line {
            before,
            frame,
            emitted,
            steps,
            values,
            ..
        } = line;
        self.keys
            .record(before, frame, emitted, (steps, values), &mut self.stray)?;
        Ok(bytes)
    }

    /// The bytes of the world before the last compared tick.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn disagree(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        self.again(line)?;
        let bytes = self.through_serde(line)?;
        self.over_a_stray(line)?;
        if line.predicts() {
            self.as_predictions(line)?;
            self.with_memos(line)?;
        }
        self.on_another_thread(line)?;
        Ok(bytes)
    }

    /// Returns `true` if the comparison that found this fault finds it each time.
    fn is_confirmed(&mut self, found: &Found, line: &mut Line<'_, S>) -> bool {
        let mut finds_it = |ways: &mut Self| -> bool {
            let again = match found.kind {
                Kind::Phase | Kind::Effects => {
                    line.predict_again();
                    ways.as_predictions(line)
                }
                Kind::Thread => ways.on_another_thread(line),
                Kind::CloneFrom => ways.over_another(line),
                Kind::Reads => ways.with_memos(line),
                Kind::LostField | Kind::Lossy => ways.through_serde(line).map(|_| ()),
                // Each decoding draws a new hash seed, and threads may keep their order by chance.
                Kind::HashOrder => {
                    let (rules, before) = (line.steps.rules, &line.before);
                    return !cause::starts_threads(rules, before, &line.frame);
                }
                _ => return true,
            };
            again.is_err()
        };
        (0..CONFIRMED_BY).all(|_| finds_it(self))
    }

    fn again(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let mut world = line.before.clone();
        if let Err(words) = line.steps.confirmed(&mut world, &line.frame) {
            let text = format!("a step != the same step again, which panics: {words}");
            return Err(Found::new(Kind::Impure, line.frame.tick, text));
        }
        match differences(&line.world, &world, 1) {
            None => Ok(()),
            Some(_) => {
                let (rules, before, frame) = (line.steps.rules, &line.before, &line.frame);
                Err(cause::of(rules, before, frame, &line.world, &world))
            }
        }
    }

    /// Compares the step with one after a round trip through serde, as for clients that load the world.
    fn through_serde(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        let tick = line.frame.tick;
        self.bytes.clear();
        let found = |kind, text: String| Found::new(kind, tick, text);
        if let Err(error) = codec::append(&line.before, &mut self.bytes) {
            let size = codec::size(&line.before).unwrap_or(usize::MAX);
            return Err(match error {
                codec::CodecError::TooLarge { limit } => found(
                    Kind::TooLarge,
                    format!("a world of {size} bytes; the limit is {limit}"),
                ),
                error => found(Kind::Unreadable, error.to_string()),
            });
        }
        let mut world = match codec::decode_whole::<World<S>>(&self.bytes) {
            Ok(world) => world,
            Err(error) => return Err(found(Kind::Unreadable, error.to_string())),
        };
        if let Some(mut fields) = differences(&line.before, &world, 8 * FIELDS_MAX) {
            let kind = if is_reordered(&fields) {
                Kind::HashOrder
            } else {
                lost(&fields)
            };
            fields.truncate(FIELDS_MAX);
            let text = "the state != the state after a round trip through serde".to_owned();
            return Err(found(kind, text).at(fields));
        }
        if let Err(words) = line.steps.confirmed(&mut world, &line.frame) {
            let text =
                format!("a step of the state after a round trip through serde panics: {words}");
            return Err(found(Kind::LostField, text));
        }
        if let Some(mut fields) = differences(&line.world, &world, 8 * FIELDS_MAX) {
            let kind = if is_reordered(&fields) {
                Kind::HashOrder
            } else {
                lost(&fields)
            };
            fields.truncate(FIELDS_MAX);
            let text = "a step != the same step of the state after a round trip through serde";
            return Err(found(kind, text.to_owned()).at(fields));
        }
        Ok(self.bytes.len())
    }

    /// Regularly overwrites a diverged world with `clone_from`, steps it, and compares the result with the
    /// confirmed world: finds fields that `clone_from` omits.
    fn over_a_stray(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        let from_start = tick.0 % FROM_START_TICKS == FROM_START_TICKS - 1;
        if from_start {
            self.stray = self.first.clone();
        }
        let is_stray = line.predicts() && self.stray.tick() == tick;
        if is_stray && !from_start && self.luck.below(REBUILD_IN) > 0 {
            return self.step_stray(line);
        }
        // In lockstep there is no prediction, so `clone_from` overwrites an older state.
        if !line.predicts() && !from_start && self.luck.below(REBUILD_IN) > 0 {
            return Ok(());
        }
        self.over_another(line)
    }

    fn over_another(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        self.stray.clone_from(&line.before);
        let text = "the state != its copy by `clone_from` over another state";
        if let Some(fields) = differences(&line.before, &self.stray, FIELDS_MAX) {
            return Err(Found::new(Kind::CloneFrom, tick, text).at(fields));
        }
        if let Err(words) = line.steps.confirmed(&mut self.stray, &line.frame) {
            let text =
                format!("a step of a copy by `clone_from` over another state panics: {words}");
            return Err(Found::new(Kind::CloneFrom, tick, text));
        }
        match differences(&line.world, &self.stray, FIELDS_MAX) {
            None => Ok(()),
            Some(fields) => {
                let text = "a step != the same step of a copy by `clone_from` over another state";
                Err(Found::new(Kind::CloneFrom, tick, text).at(fields))
            }
        }
    }

    fn step_stray(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let frame = &line.frame;
        let players: Vec<PlayerId> = frame.inputs.iter().map(|(player, _)| player).collect();
        let turn = frame.tick.0 as usize;
        let assumed = otherwise(frame, &self.stray, &players, &line.values, turn);
        let view = Perspective::prediction(
            frame.tick.back(LEADS[1]),
            PlayerSet::default(),
            &self.nothing_learned,
        );
        let stepped = line
            .steps
            .step(&mut self.stray, &assumed, view, PlayerSet::default());
        stepped.map(|_| ()).map_err(|words| {
            let text = format!("in a prediction with other inputs of all players: {words}");
            Found::new(Kind::Panic, assumed.tick, text)
        })
    }

    /// Compares the authority's step with predictions of the same tick on several screens.
    fn as_predictions(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        let verdict = |what: &str, fields: Option<Vec<Difference>>, effect: Option<String>| {
            // Open queries are part of the world, but they count as emitted effects.
            let is_state = |field: &Difference| !field.path.starts_with("open");
            match (fields, effect) {
                (None, None) => Ok(()),
                (Some(fields), effect) if effect.is_none() || fields.iter().any(is_state) => {
                    let text = "a step of the authority != the same step as a prediction";
                    Err(Found::new(Kind::Phase, tick, format!("{text}, {what}")).at(fields))
                }
                (_, effect) => {
                    let effect = effect.unwrap_or_default();
                    let text = format!("only as a prediction, {what}: {effect}");
                    Err(Found::new(Kind::Effects, tick, text))
                }
            }
        };
        if !line.withheld {
            let fields = differences(&line.world, &line.predicted, FIELDS_MAX);
            let effect = line.foreseen.beyond(&line.emitted);
            verdict("on a screen with all players", fields, effect)?;
        }
        let turn = tick.0 as usize;
        let present: Vec<PlayerId> = line.frame.inputs.iter().map(|(player, _)| player).collect();
        let (locals, whose): (PlayerSet, _) = match turn % 3 {
            0 => (
                PlayerSet::default(),
                "on a screen without players".to_owned(),
            ),
            _ if present.is_empty() => return Ok(()),
            _ => {
                let one = present[turn / 3 % present.len()];
                (
                    [one].into_iter().collect(),
                    format!("on the screen of {one}"),
                )
            }
        };
        let lead = LEADS[turn / 2 % LEADS.len()];
        let learned = match turn % 2 {
            0 => &self.nothing_learned,
            _ => &self.all_learned,
        };
        let view = Perspective::prediction(tick.back(lead), locals, learned);
        let mut world = line.before.clone();
        let no_claimants = PlayerSet::default();
        match line.steps.step(&mut world, &line.frame, view, no_claimants) {
            Err(words) => {
                let text = format!("as a prediction {whose}: {words}");
                Err(Found::new(Kind::Panic, tick, text))
            }
            Ok(fx) if fx.withheld() => {
                line.withheld_ticks += u32::from(!line.withheld);
                Ok(())
            }
            Ok(fx) => {
                self.foreseen.take_from(fx);
                let fields = differences(&line.world, &world, FIELDS_MAX);
                verdict(&whose, fields, self.foreseen.beyond(&line.emitted))
            }
        }
    }

    /// Compares the step with a rebuild whose loops reuse results of a prediction with other inputs for this tick.
    fn with_memos(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let (frame, tick) = (&line.frame, line.frame.tick);
        let players: Vec<PlayerId> = frame.inputs.iter().map(|(player, _)| player).collect();
        let wrong = otherwise(frame, &line.before, &players, &line.values, tick.0 as usize);
        let mut world = line.before.clone();
        let guessed = line.steps.with_memos(&mut world, &wrong, &mut self.memos);
        if let Err(words) = guessed {
            let text = format!("in a prediction with other inputs of all players: {words}");
            return Err(Found::new(Kind::Panic, tick, text));
        }
        world = line.before.clone();
        let rebuilt = line.steps.with_memos(&mut world, frame, &mut self.memos);
        let rebuilt = rebuilt.map(|_| ());
        self.memos.forget(tick);
        let found = |text: String| Found::new(Kind::Reads, tick, text);
        rebuilt.map_err(|words| found(format!("a rebuild of the step panics: {words}")))?;
        if let Some(fields) = differences(&line.world, &world, FIELDS_MAX) {
            return Err(found("a step != its rebuild".to_owned()).at(fields));
        }
        match self.memos.take_impure() {
            None => Ok(()),
            Some(name) => Err(found(format!(
                "two results for equal items in the loop {name:?}"
            ))),
        }
    }

    /// Repeats the step on another thread and compares the results: background rebuilds and a server's matches also run
    /// on other threads.
    fn on_another_thread(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        let job = (line.before.clone(), line.frame.clone());
        let done = self
            .give
            .send(job)
            .ok()
            .and_then(|()| self.take.recv().ok());
        let text = "a step != the same step on another thread";
        match done.unwrap_or_else(|| Err("the thread ended".to_owned())) {
            Err(words) => Err(Found::new(Kind::Thread, tick, format!("{text}: {words}"))),
            Ok(world) => match differences(&line.world, &world, FIELDS_MAX) {
                None => Ok(()),
                Some(fields) => Err(Found::new(Kind::Thread, tick, text).at(fields)),
            },
        }
    }
}

/// Distinguishes fields that serde lost from fields that it only rounded.
fn lost(fields: &[Difference]) -> Kind {
    let rounded = |field: &Difference| {
        let is_float = field.left.contains(['.', 'e']);
        let (Ok(left), Ok(right)) = (field.left.parse::<f64>(), field.right.parse::<f64>()) else {
            return false;
        };
        is_float && (left - right).abs() <= left.abs().max(right.abs()) * ROUNDED
    };
    match !fields.is_empty() && fields.iter().all(rounded) {
        true => Kind::Lossy,
        false => Kind::LostField,
    }
}
