//! [`Keys`]: checks whether cues and queries are named by their causes. A stretch of ticks is repeated as a prediction
//! in which one player acts differently. A cue or query with the same value at the same tick must have the same key.
//!
//! ```text
//!   confirmed     ── p1 fires ── p2 fires ──▶  cue Shot(p2) under key 8
//!   predicted     ──── … ─────── p2 fires ──▶  cue Shot(p2) under key 7     renamed: the key counts all players' shots
//! ```
//!
//! Law **Stable names**. A few renamed keys may be chance, because two causes can have the same value. Many renamed
//! keys mean a counter.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::{FrameData, Learned, Perspective, PlayerSet};
use twinstep_core::world::World;
use twinstep_core::{Key, PlayerId, Simulation, Tick};

use crate::fault::{Found, Kind};
use crate::line::Emitted;
use crate::steps::Steps;
use crate::values::Values;

const STRETCH_TICKS: usize = 10;
/// Fewer renamed keys than this are not a fault.
const RENAMED_MIN: u32 = 3;
/// Renamed keys are a fault if there is at least one for every this many unchanged keys.
const RENAMED_IN: u32 = 8;

pub(crate) struct Keys<S: Simulation> {
    start: World<S>,
    frames: Vec<FrameData<S>>,
    emitted: Vec<Emitted<S>>,
    learned: Learned,
    stretches: usize,
    kept: u32,
    renamed: u32,
    first: Option<Found>,
}

impl<S: Simulation> Keys<S> {
    pub(crate) fn new(start: &World<S>) -> Self {
        Keys {
            start: start.clone(),
            frames: Vec::new(),
            emitted: Vec::new(),
            learned: Learned::new(),
            stretches: 0,
            kept: 0,
            renamed: 0,
            first: None,
        }
    }

    /// Records a stepped tick. If the stretch is full, checks it, and leaves the world of the wrong prediction in
    /// `stray`.
    pub(crate) fn record(
        &mut self,
        before: &World<S>,
        frame: &FrameData<S>,
        emitted: &Emitted<S>,
        (steps, values): (&mut Steps<'_, S>, &Values<S>),
        stray: &mut World<S>,
    ) -> Result<(), Found> {
        if self.frames.is_empty() {
            self.start = before.clone();
        }
        self.frames.push(frame.clone());
        self.emitted.push(Emitted {
            cues: emitted.cues.clone(),
            asks: emitted.asks.clone(),
        });
        if self.frames.len() < STRETCH_TICKS {
            return Ok(());
        }
        let (frames, emitted) = (
            std::mem::take(&mut self.frames),
            std::mem::take(&mut self.emitted),
        );
        self.stretches += 1;
        let Some(other) = other_player(&frames[0], self.stretches) else {
            return Ok(());
        };
        *stray = self.start.clone();
        for (frame, emitted) in frames.iter().zip(&emitted) {
            let assumed = otherwise(frame, stray, &[other], values, self.stretches);
            let players = assumed.inputs.iter().map(|(player, _)| player);
            let locals: PlayerSet = players.filter(|player| *player != other).collect();
            let view = Perspective::prediction(self.start.tick(), locals, &self.learned);
            let fx = match steps.step(stray, &assumed, view, PlayerSet::default()) {
                Ok(fx) => fx,
                Err(words) => {
                    let text = format!("in a prediction with other inputs of {other}: {words}");
                    return Err(Found::new(Kind::Panic, frame.tick, text));
                }
            };
            self.compare(frame.tick, "cue", &emitted.cues, fx.cues());
            self.compare(frame.tick, "query", &emitted.asks, fx.asks());
        }
        let many = self.renamed >= RENAMED_MIN && self.renamed * RENAMED_IN >= self.kept;
        match self.first.take_if(|_| many) {
            Some(found) => Err(found),
            None => Ok(()),
        }
    }

    /// Counts cues or queries with the same key in both runs, and those with a different key.
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        tick: Tick,
        what: &str,
        confirmed: &[(Key, T)],
        predicted: &[(Key, T)],
    ) {
        let alone = |mine: &'_ [(Key, T)], theirs: &[(Key, T)]| {
            let mut alone: Vec<usize> = (0..mine.len()).collect();
            alone.retain(|at| !theirs.contains(&mine[*at]));
            alone
        };
        let gone = alone(confirmed, predicted);
        let mut fresh = alone(predicted, confirmed);
        self.kept += (confirmed.len() - gone.len()) as u32;
        for (key, value) in gone.into_iter().map(|at| &confirmed[at]) {
            let Some(at) = fresh.iter().position(|at| predicted[*at].1 == *value) else {
                continue;
            };
            let (other, _) = predicted[fresh.remove(at)];
            self.renamed += 1;
            self.first.get_or_insert_with(|| {
                let text = format!(
                    "the key of the {what} {value:?}: {key}, as confirmed, != {other} in a prediction in which another \
                     player acted differently before"
                );
                Found::new(Kind::SharedKeys, tick, text)
            });
        }
    }

    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.kept, self.renamed)
    }
}

/// Picks one of the players present, the next one for each `turn`; `None` if there are fewer than two.
fn other_player<S: Simulation>(frame: &FrameData<S>, turn: usize) -> Option<PlayerId> {
    let present: Vec<PlayerId> = frame.inputs.iter().map(|(player, _)| player).collect();
    (present.len() > 1).then(|| present[turn % present.len()])
}

/// The frame as it might have been guessed: the players `who` hold a different input and do not issue orders. It is
/// adapted to `world`, because the earlier ticks of that world may differ.
pub(crate) fn otherwise<S: Simulation>(
    frame: &FrameData<S>,
    world: &World<S>,
    who: &[PlayerId],
    values: &Values<S>,
    turn: usize,
) -> FrameData<S> {
    let mut assumed = frame.clone();
    let open = world.open_queries();
    // A frame can only answer queries that are open in `world`.
    assumed.outcomes.retain(|answer| {
        open.iter()
            .any(|o| (o.asked, o.key) == (answer.asked, answer.key))
    });
    assumed
        .commands
        .retain(|order| !who.contains(&order.player));
    assumed.claims.retain(|order| !who.contains(&order.player));
    for player in who {
        let Some(held) = frame.inputs.get(*player) else {
            continue;
        };
        let other = values.other_input(held, turn * PLAYERS_MAX + player.index());
        assumed.inputs.set(*player, other.or(Some(held.clone())));
    }
    assumed
}
