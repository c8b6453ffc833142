//! The drawn part of a page: a few bytes per tick, and a bounded list of marks.

use std::collections::BTreeSet;

use serde::Serialize;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::diff::ValueTree;
use twinstep_core::frame::{FrameData, RosterChange};
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::journal::Record;
use twinstep_protocol::replay::Replay;
use twinstep_protocol::text::line;

use super::words::{LISTED_MAX, Word, Words, bytes};

pub(super) const MARKS_MAX: usize = 4_096;

#[derive(Clone, Copy)]
pub(super) enum Mark {
    Joined,
    Dropped,
    Returned,
    Left,
    Paused,
    Differs,
    Resumed,
    Ended,
}

#[derive(Default)]
pub(super) struct Lanes {
    pub(super) from: Tick,
    names: [BTreeSet<String>; PLAYERS_MAX],
    flags: [Vec<u8>; PLAYERS_MAX],
    // The numbers of queries, answers, cues and changed fields, per tick.
    pub(super) counts: [Vec<u8>; 4],
    pub(super) cadences: Vec<TurnsRow>,
    cadence: Option<Cadence>,
    pub(super) marks: PageMarks,
}

const PRESENT: u8 = 1;
const CHANGED: u8 = 2;
const FILLED: u8 = 4;
const COMMAND: u8 = 8;
const CLAIM: u8 = 16;

#[derive(Serialize)]
pub(super) struct TurnsRow {
    tick: u32,
    turn_ticks: u8,
    tick_ns: u32,
    paused: bool,
}

#[derive(Default)]
pub(super) struct PageMarks {
    pub(super) list: Vec<(u32, u8, Option<u8>, String)>,
    pub(super) left_out: u64,
}

impl PageMarks {
    pub(super) fn push(&mut self, tick: Tick, mark: Mark, player: Option<PlayerId>, text: String) {
        if self.list.len() == MARKS_MAX {
            self.left_out += 1;
        } else {
            self.list
                .push((tick.0, mark as u8, player.map(|player| player.0), text));
        }
    }

    pub(super) fn record(&mut self, tick: Tick, record: &Record<'_>) {
        match record {
            Record::Resumed { build, .. } => {
                let text = format!("resumed by build {}", line(build));
                self.push(tick, Mark::Resumed, None, text);
            }
            Record::End { reason } => {
                self.push(tick, Mark::Ended, None, line(reason).to_string());
            }
            _ => {}
        }
    }
}

impl Lanes {
    pub(super) fn name(&mut self, player: PlayerId, name: &str) {
        let names = &mut self.names[player.index()];
        if !name.is_empty() && names.len() < 8 {
            names.insert(line(name).to_string());
        }
    }

    // Adds the last stepped tick.
    pub(super) fn tick<S: Simulation>(&mut self, replay: &Replay<'_, S>, words: &mut Words) {
        let frame = replay.frame();
        let at = (frame.tick - self.from) as usize;
        self.roster(frame, words);
        self.cadence(replay, words);
        for answer in &frame.outcomes {
            let key = words.text(&answer.key.to_string());
            let outcome = match &answer.outcome {
                Some(outcome) => words.value(outcome),
                None => -1,
            };
            words.line(Word::Answer, &[key, i64::from(answer.asked.0), outcome]);
        }
        for (orders, word) in [
            (&frame.claims, Word::Claim),
            (&frame.commands, Word::Command),
        ] {
            for order in orders {
                let value = words.value(&order.command);
                let cells = [i64::from(order.player.0), i64::from(order.seq), value];
                words.line(word, &cells);
            }
        }
        for player in frame.filled.iter() {
            words.line(Word::Filled, &[i64::from(player.0)]);
        }
        for flags in &mut self.flags {
            flags.push(0);
        }
        let mut flag = |player: PlayerId, flag: u8| {
            if let Some(flags) = self.flags.get_mut(player.index()) {
                flags[at] |= flag;
            }
        };
        for (player, input) in frame.inputs.iter() {
            flag(player, PRESENT);
            let text = ValueTree::of(input).text();
            let is_new = words.held[player.index()].as_ref() != Some(&text);
            if is_new {
                flag(player, CHANGED);
            }
            // Each block starts with all inputs, so that it can be read alone.
            if is_new || words.ticks.len() == 1 {
                let number = words.text(&text);
                words.line(Word::Input, &[i64::from(player.0), number]);
                words.held[player.index()] = Some(text);
            }
        }
        frame.filled.iter().for_each(|player| flag(player, FILLED));
        for order in &frame.commands {
            flag(order.player, COMMAND);
        }
        for order in &frame.claims {
            flag(order.player, CLAIM);
        }
        let opened = replay.world().just_opened();
        for open in opened {
            let (key, query) = (words.text(&open.key.to_string()), words.value(&open.query));
            words.line(Word::Asked, &[key, query]);
        }
        let cues = replay.effects().cues();
        for (key, cue) in cues.iter().take(LISTED_MAX) {
            let (key, cue) = (words.text(&key.to_string()), words.value(cue));
            words.line(Word::Cue, &[key, cue]);
        }
        let sizes = [
            opened.len(),
            frame.outcomes.len(),
            cues.len(),
            words.changed(replay),
        ];
        for (counts, size) in self.counts.iter_mut().zip(sizes) {
            counts.push(size.min(255) as u8);
        }
    }

    fn roster<S: Simulation>(&mut self, frame: &FrameData<S>, words: &mut Words) {
        for (player, change) in &frame.roster {
            let (mark, how) = match change {
                RosterChange::Joined => (Mark::Joined, "joined"),
                RosterChange::Dropped => (Mark::Dropped, "is dropped: no input arrives"),
                RosterChange::Returned => (Mark::Returned, "returned"),
                RosterChange::Left => (Mark::Left, "left"),
            };
            self.marks
                .push(frame.tick, mark, Some(*player), how.to_owned());
            let how = words.text(how);
            words.line(Word::Roster, &[i64::from(player.0), how]);
        }
    }

    fn cadence<S: Simulation>(&mut self, replay: &Replay<'_, S>, words: &mut Words) {
        let tick = replay.frame().tick;
        let cadence = replay.frame().cadence.unwrap_or(match self.cadence {
            Some(cadence) => cadence,
            None => replay.world().turn().cadence,
        });
        if self.cadence.replace(cadence) == Some(cadence) {
            return;
        }
        let ms = f64::from(cadence.tick_ns) / 1e6;
        let mut text = format!("turns of {} ticks of {ms:.2} ms", cadence.turn_ticks);
        if cadence.paused {
            text += match cadence.paused_by {
                Some(_) => "; a player pauses the match",
                None => "; the server pauses the match",
            };
            self.marks
                .push(tick, Mark::Paused, cadence.paused_by, "paused".to_owned());
        }
        let text = words.text(&text);
        words.line(Word::Cadence, &[text]);
        if self.cadences.len() < MARKS_MAX {
            self.cadences.push(TurnsRow {
                tick: tick.0,
                turn_ticks: cadence.turn_ticks,
                tick_ns: cadence.tick_ns,
                paused: cadence.paused,
            });
        }
    }

    pub(super) fn players(&self) -> Vec<PlayerRow> {
        let seen = |n: &usize| self.flags[*n].iter().any(|flags| *flags != 0);
        (0..PLAYERS_MAX)
            .filter(seen)
            .map(|n| PlayerRow {
                id: n as u8,
                names: self.names[n].iter().cloned().collect(),
                flags: bytes(&self.flags[n]),
            })
            .collect()
    }
}

#[derive(Serialize)]
pub(super) struct PlayerRow {
    id: u8,
    names: Vec<String>,
    flags: String,
}
