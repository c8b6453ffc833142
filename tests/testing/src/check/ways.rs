//! The ways to step a tick that must agree, one after the other: those that presume that others agree come after these.

use std::sync::mpsc::{Receiver, Sender};

use twinstep_core::codec;
use twinstep_core::diff::Difference;
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId, Simulation};

use crate::cause::{self, is_reordered};
use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::keys::{Keys, otherwise};
use crate::line::Line;
use crate::steps::{Steps, differences};

/// A stray world is brought back by `clone_from` in one tick of so many.
const REBUILD_IN: u32 = 4;
/// Every so many ticks it is the start that is brought up to now.
const FROM_START_TICKS: u32 = 50;
/// How far ahead of the authority predictions are.
const LEADS: [u32; 3] = [1, 8, 40];
/// Floats that differ by less than this part are the same, written with less.
const ROUNDED: f64 = 1e-3;

/// A step that is to be done on another thread, and what came of it.
pub(super) type Job<S> = (World<S>, FrameData<S>);
pub(super) type Done<S> = Result<World<S>, String>;

/// The other thread.
pub(super) fn elsewhere<S: Simulation>(
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

/// The ways that are compared at each tick.
pub(super) struct Ways<S: Simulation> {
    luck: Mwc,
    pub(super) keys: Keys<S>,
    /// What match began with.
    first: World<S>,
    /// A prediction that goes astray, until it is brought back.
    stray: World<S>,
    nothing_learned: Learned,
    all_learned: Learned,
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
            bytes: Vec::new(),
            give,
            take,
        }
    }

    /// Looks at the tick that was just stepped; the bytes of the world before it.
    pub(super) fn look(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        let tick = line.frame.tick;
        for (player, _) in line.frame.inputs.iter() {
            self.all_learned.note(player, tick, tick);
        }
        let bytes = match self.disagree(line) {
            Ok(bytes) => bytes,
            // Each of these presumes that the step agrees with itself.
            Err(found) => {
                let (rules, before, frame) = (line.steps.rules, &line.before, &line.frame);
                let impure = cause::if_impure(rules, before, frame, &line.world);
                return Err(impure.unwrap_or(found));
            }
        };
        let Line {
            before,
            frame,
            said,
            steps,
            values,
            ..
        } = line;
        self.keys
            .note(before, frame, said, (steps, values), &mut self.stray)?;
        Ok(bytes)
    }

    /// The ways that compare one tick; the bytes of the world before it.
    fn disagree(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        self.again(line)?;
        let bytes = self.through_serde(line)?;
        self.over_a_stray(line)?;
        self.as_predictions(line)?;
        self.on_another_thread(line)?;
        Ok(bytes)
    }

    /// Once more.
    fn again(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let mut world = line.before.clone();
        if let Err(words) = line.steps.confirmed(&mut world, &line.frame) {
            let text = format!("a step != the same step once more, which panics: {words}");
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

    /// As one that joins late, returns or is healed.
    fn through_serde(&mut self, line: &mut Line<'_, S>) -> Result<usize, Found> {
        let tick = line.frame.tick;
        self.bytes.clear();
        let found = |kind, text: String| Found::new(kind, tick, text);
        if let Err(error) = codec::append(&line.before, &mut self.bytes) {
            let size = codec::size(&line.before).unwrap_or(usize::MAX);
            return Err(match error {
                codec::CodecError::TooLarge { limit } => found(
                    Kind::TooLarge,
                    format!("a world of {size} bytes; its bound is {limit}"),
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
            let text = "the state != the state as it comes back from its bytes".to_owned();
            return Err(found(kind, text).at(fields));
        }
        if let Err(words) = line.steps.confirmed(&mut world, &line.frame) {
            let text = format!("a step of the state as it comes back from its bytes: {words}");
            return Err(found(Kind::LostField, text));
        }
        if let Some(mut fields) = differences(&line.world, &world, 8 * FIELDS_MAX) {
            let kind = if is_reordered(&fields) {
                Kind::HashOrder
            } else {
                lost(&fields)
            };
            fields.truncate(FIELDS_MAX);
            let text = "a step != the step of the same state as it came back from its bytes";
            return Err(found(kind, text.to_owned()).at(fields));
        }
        Ok(self.bytes.len())
    }

    /// A prediction went another way, and is brought back.
    fn over_a_stray(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        let from_start = tick.0 % FROM_START_TICKS == FROM_START_TICKS - 1;
        if from_start {
            self.stray = self.first.clone();
        }
        let astray = self.stray.tick() == tick;
        if astray && !from_start && self.luck.below(REBUILD_IN) > 0 {
            return self.stray_on(line);
        }
        self.stray.clone_from(&line.before);
        let text = "the state != what `clone_from` made of another state";
        if let Some(fields) = differences(&line.before, &self.stray, FIELDS_MAX) {
            return Err(Found::new(Kind::CloneFrom, tick, text).at(fields));
        }
        if let Err(words) = line.steps.confirmed(&mut self.stray, &line.frame) {
            let text = format!("a step of what `clone_from` made of another state: {words}");
            return Err(Found::new(Kind::CloneFrom, tick, text));
        }
        match differences(&line.world, &self.stray, FIELDS_MAX) {
            None => Ok(()),
            Some(fields) => {
                let text = "a step != the step of what `clone_from` made of another state";
                Err(Found::new(Kind::CloneFrom, tick, text).at(fields))
            }
        }
    }

    /// A tick in which everybody did something else.
    fn stray_on(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let frame = &line.frame;
        let everybody: Vec<PlayerId> = frame.inputs.iter().map(|(player, _)| player).collect();
        let turn = frame.tick.0 as usize;
        let assumed = otherwise(frame, &self.stray, &everybody, &line.values, turn);
        let view = Perspective::prediction(
            frame.tick.back(LEADS[1]),
            PlayerSet::default(),
            &self.nothing_learned,
        );
        let stepped = line
            .steps
            .step(&mut self.stray, &assumed, view, PlayerSet::default());
        stepped.map(|_| ()).map_err(|words| {
            let text = format!("in a prediction in which all held something else: {words}");
            Found::new(Kind::Panic, assumed.tick, text)
        })
    }

    /// As it is shown on several screens before it is confirmed.
    fn as_predictions(&mut self, line: &mut Line<'_, S>) -> Result<(), Found> {
        let tick = line.frame.tick;
        let found = |what: &str, fields: Vec<Difference>| {
            let text = format!("a step of the authority != the same step as a prediction, {what}");
            Err(Found::new(Kind::Phase, tick, text).at(fields))
        };
        if !line.withheld
            && let Some(fields) = differences(&line.world, &line.predicted, FIELDS_MAX)
        {
            return found("on the screen of all players", fields);
        }
        let turn = tick.0 as usize;
        let present: Vec<PlayerId> = line.frame.inputs.iter().map(|(player, _)| player).collect();
        let (locals, whose): (PlayerSet, _) = match turn % 3 {
            0 => (PlayerSet::default(), "on the screen of nobody".to_owned()),
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
        let nobody = PlayerSet::default();
        match line.steps.step(&mut world, &line.frame, view, nobody) {
            Err(words) => {
                let text = format!("as a prediction {whose}: {words}");
                Err(Found::new(Kind::Panic, tick, text))
            }
            Ok(fx) if fx.withheld() => {
                line.withheld_ticks += u32::from(!line.withheld);
                Ok(())
            }
            Ok(_) => match differences(&line.world, &world, FIELDS_MAX) {
                None => Ok(()),
                Some(fields) => found(&whose, fields),
            },
        }
    }

    /// Where a client's background rebuilds and a server's matches are.
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

/// What serde did to a field: took it away, or only rounded it.
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
