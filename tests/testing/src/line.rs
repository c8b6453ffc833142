//! [`Line`]: the reference run of a check, tick by tick: frames from the script, one authority, and a prediction that
//! makes the claims.
//!
//! Invariant: two processes with the same script step the same frames, unless the step or the script is at fault.

use serde::Serialize;
use twinstep_core::digest::{DigestError, digest};
use twinstep_core::frame::{FrameData, Learned, Perspective};
use twinstep_core::world::World;
use twinstep_core::{Effects, Key, Simulation, Tick};

use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::script::Script;
use crate::seal::{Happened, Sealer};
use crate::steps::{Steps, differences};
use crate::values::Values;

/// The lead of the prediction that makes claims.
const LEAD_TICKS: u32 = 6;
/// Rules up to this size are digested after every step; larger rules are digested after one step in 16.
const SMALL_RULES_BYTES: usize = 64 << 10;

pub(crate) struct Emitted<S: Simulation> {
    pub(crate) cues: Vec<(Key, S::Cue)>,
    pub(crate) asks: Vec<(Key, S::Query)>,
}

impl<S: Simulation> Emitted<S> {
    pub(crate) fn new() -> Self {
        Emitted {
            cues: Vec::new(),
            asks: Vec::new(),
        }
    }

    pub(crate) fn take_from(&mut self, fx: &Effects<S>) {
        self.cues.clear();
        self.cues.extend_from_slice(fx.cues());
        self.asks.clear();
        self.asks.extend_from_slice(fx.asks());
    }

    /// Returns the first cue or query that `other` lacks, as text.
    pub(crate) fn beyond(&self, other: &Emitted<S>) -> Option<String> {
        // A cue may be emitted by the confirmed step alone, but not by the prediction alone.
        let cue = self.cues.iter().find(|it| !other.cues.contains(it));
        let ask = self.asks.iter().find(|it| !other.asks.contains(it));
        match (cue, ask) {
            (Some((key, cue)), _) => Some(format!("the cue {cue:?} under the key {key}")),
            (None, Some((key, query))) => Some(format!("the query {query:?} under the key {key}")),
            (None, None) => None,
        }
    }
}

pub(crate) struct Line<'r, S: Simulation> {
    pub(crate) script: Script<S>,
    pub(crate) values: Values<S>,
    pub(crate) steps: Steps<'r, S>,
    pub(crate) world: World<S>,
    pub(crate) before: World<S>,
    pub(crate) frame: FrameData<S>,
    pub(crate) emitted: Emitted<S>,
    /// The world after the tick, stepped as a prediction on a screen with all players.
    pub(crate) predicted: World<S>,
    /// The cues and queries of that prediction.
    pub(crate) foreseen: Emitted<S>,
    /// Whether that prediction withheld an effect.
    pub(crate) withheld: bool,
    pub(crate) withheld_ticks: u32,
    pub(crate) cues: u64,
    sealer: Sealer<S>,
    learned: Learned,
    rules_digest: u64,
    rules_every: u32,
}

impl<'r, S: Simulation> Line<'r, S> {
    pub(crate) fn new(start: S, rules: &'r S::Rules, script: Script<S>) -> Result<Self, Found> {
        let world = script.world(start);
        let nan = |what: &str, error: DigestError| {
            Found::new(Kind::Nan, Tick(0), format!("{what}: {error}"))
        };
        let rules_digest = digest(rules).map_err(|error| nan("the rules", error))?;
        world.digest().map_err(|error| nan("the start", error))?;
        let bytes = twinstep_core::codec::size(rules).unwrap_or(usize::MAX);
        Ok(Line {
            values: Values::new(),
            steps: Steps::new(rules),
            before: world.clone(),
            predicted: world.clone(),
            world,
            frame: FrameData::empty(Tick(0)),
            emitted: Emitted::new(),
            foreseen: Emitted::new(),
            withheld: false,
            withheld_ticks: 0,
            cues: 0,
            sealer: Sealer::new(script.seed),
            learned: Learned::new(),
            rules_digest,
            rules_every: if bytes <= SMALL_RULES_BYTES { 1 } else { 16 },
            script,
        })
    }

    pub(crate) fn rules_digest(&self) -> u64 {
        self.rules_digest
    }

    pub(crate) fn happened(&self) -> Happened {
        self.sealer.happened
    }

    pub(crate) fn tick(&mut self) -> Result<(), Found> {
        let tick = self.world.tick();
        let rules = self.steps.rules;
        let Line { script, values, .. } = self;
        self.frame = self.sealer.seal(&self.world, rules, script, values)?;
        self.before = self.world.clone();
        if let Some(fields) = differences(&self.world, &self.before, FIELDS_MAX) {
            let text = "the state != its clone";
            return Err(Found::new(Kind::Clone, tick, text).at(fields));
        }
        let stepped = self.steps.confirmed(&mut self.world, &self.frame);
        let fx = match stepped {
            Ok(fx) => fx,
            // In debug builds the step itself panics at a second query under one key.
            Err(words) => match self.steps.asked_twice() {
                Some(key) => return Err(asked_twice(tick, key)),
                None => return Err(self.panicked(&words)),
            },
        };
        self.cues += fx.cues().len() as u64;
        self.emitted.take_from(fx);
        if let Some(key) = fx.asked_twice() {
            return Err(asked_twice(tick, key));
        }
        if let Err(error) = self.world.digest() {
            return Err(Found::new(Kind::Nan, tick, error.to_string()));
        }
        if tick.0.is_multiple_of(self.rules_every) {
            self.look_at_rules(tick)?;
        }
        match self.script.lockstep {
            true => Ok(()),
            false => self.predict(),
        }
    }

    pub(crate) fn predicts(&self) -> bool {
        !self.script.lockstep
    }

    fn look_at_rules(&self, tick: Tick) -> Result<(), Found> {
        match digest(self.steps.rules) {
            Ok(now) if now == self.rules_digest => Ok(()),
            Ok(now) => {
                let text = format!(
                    "the digest of the rules before the first tick, {:016x} != after this one, {now:016x}",
                    self.rules_digest
                );
                Err(Found::new(Kind::RulesChanged, tick, text))
            }
            Err(error) => Err(Found::new(Kind::RulesChanged, tick, error.to_string())),
        }
    }

    /// Steps the tick as a prediction, on a screen with all players. Its claims are sealed in a later frame.
    fn predict(&mut self) -> Result<(), Found> {
        let tick = self.frame.tick;
        self.predicted = self.before.clone();
        let locals = self.frame.inputs.players();
        let view = Perspective::prediction(tick.back(LEAD_TICKS), locals, &self.learned);
        let (frame, rules) = (&self.frame, self.steps.rules);
        let fx = match self.steps.step(&mut self.predicted, frame, view, locals) {
            Ok(fx) => fx,
            Err(words) => {
                let text = format!("as a prediction: {words}");
                return Err(Found::new(Kind::Panic, tick, text));
            }
        };
        self.foreseen.take_from(fx);
        self.withheld = fx.withheld();
        self.withheld_ticks += u32::from(self.withheld);
        for (player, command) in fx.claims() {
            self.values.command(tick, command)?;
            let seen = (self.world.sim(), rules);
            self.sealer
                .claim(tick, *player, command, &self.script, seen);
        }
        Ok(())
    }

    /// Repeats the prediction of the tick.
    pub(crate) fn predict_again(&mut self) {
        let mut world = self.before.clone();
        let (tick, locals) = (self.frame.tick, self.frame.inputs.players());
        let view = Perspective::prediction(tick.back(LEAD_TICKS), locals, &self.learned);
        if let Ok(fx) = self.steps.step(&mut world, &self.frame, view, locals) {
            self.foreseen.take_from(fx);
            self.predicted = world;
        }
    }

    /// Finds the part of the frame that makes the step panic, by stepping the frame without some of its parts.
    fn panicked(&mut self, words: &str) -> Found {
        let tick = self.frame.tick;
        let frame = &self.frame;
        let mut answered = frame.clone();
        answered.outcomes.retain(|answer| answer.outcome.is_some());
        let mut unasked = frame.clone();
        unasked.outcomes.clear();
        let mut unordered = frame.clone();
        unordered.commands.clear();
        unordered.claims.clear();
        let tries = [
            (answered, Kind::PanicUnanswered, "if an outcome is `None`"),
            (unasked, Kind::Panic, "if an outcome arrives"),
            (unordered, Kind::Panic, "if a command or claim runs"),
        ];
        for (without, kind, of) in tries {
            if without == *frame {
                continue;
            }
            let mut world = self.before.clone();
            if self.steps.confirmed(&mut world, &without).is_ok() {
                return Found::new(kind, tick, format!("{of}: {words}"));
            }
        }
        Found::new(Kind::Panic, tick, words)
    }

    pub(crate) fn digests(&self) -> (u64, u64) {
        // A world with a NaN has already been reported.
        let world = self.world.digest().unwrap_or_default();
        (frame_digest(&self.frame), world)
    }
}

fn asked_twice(tick: Tick, key: Key) -> Found {
    let text = format!("two queries under the key {key}");
    Found::new(Kind::AskedTwice, tick, text)
}

fn frame_digest<S: Simulation>(frame: &FrameData<S>) -> u64 {
    let inputs: Vec<_> = frame.inputs.iter().collect();
    let orders = (&frame.roster, &frame.outcomes, &frame.claims);
    // Inputs, commands and outcomes hold no floats.
    hash(&(orders, &frame.commands, inputs, frame.filled))
}

fn hash(value: &impl Serialize) -> u64 {
    digest(value).unwrap_or_default()
}
