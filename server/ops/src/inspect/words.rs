//! The text of a page: the lines of each tick, in blocks with numbered texts.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use twinstep_core::Simulation;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::diff::ValueTree;
use twinstep_protocol::replay::Replay;

// The maximum numbers of changed fields searched for, and listed, per tick.
const FIELDS_MAX: usize = 1_024;
pub(super) const LISTED_MAX: usize = 32;
// The kinds of field whose changes are counted. Fields that change seldom are listed first.
const FIELD_KINDS_MAX: usize = 1 << 14;

// The kinds of lines. The page uses the same numbers.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Roster,
    Cadence,
    Answer,
    Claim,
    Command,
    Filled,
    Input,
    Asked,
    Cue,
    Changed,
    MoreChanged,
    Assumed,
    Rebuilt,
    Corrected,
    Event,
}

// The lines of a block's ticks. A text is written once per block, and lines refer to it by number.
pub(super) struct Words {
    texts: BTreeMap<String, i64>,
    list: Vec<String>,
    pub(super) ticks: Vec<Vec<Vec<i64>>>,
    state: ValueTree,
    pub(super) held: [Option<String>; PLAYERS_MAX],
    changes: BTreeMap<String, u32>,
}

#[derive(Serialize)]
pub(super) struct Block<'a> {
    s: &'a [String],
    t: &'a [Vec<Vec<i64>>],
}

impl Words {
    pub(super) fn new<S: Simulation>(replay: &Replay<'_, S>) -> Words {
        Words {
            texts: BTreeMap::new(),
            list: Vec::new(),
            ticks: Vec::new(),
            state: ValueTree::of(&replay.world().digested()),
            held: Default::default(),
            changes: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self) {
        self.ticks.push(Vec::new());
    }

    pub(super) fn text(&mut self, text: &str) -> i64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.texts.insert(text.to_owned(), number);
        number
    }

    pub(super) fn value(&mut self, value: &impl Serialize) -> i64 {
        let text = ValueTree::of(value).text();
        self.text(&text)
    }

    pub(super) fn line(&mut self, word: Word, cells: &[i64]) {
        let cells = [&[word as i64], cells].concat();
        if let Some(tick) = self.ticks.last_mut() {
            tick.push(cells);
        }
    }

    // Adds the fields that the last step changed. Returns their number.
    pub(super) fn changed<S: Simulation>(&mut self, replay: &Replay<'_, S>) -> usize {
        let state = ValueTree::of(&replay.world().digested());
        let mut found = self.state.diff(&state, FIELDS_MAX);
        self.state = state;
        let all = found.len();
        for field in &found {
            let kind = kind_of(&field.path);
            if self.changes.len() < FIELD_KINDS_MAX || self.changes.contains_key(&kind) {
                *self.changes.entry(kind).or_default() += 1;
            }
        }
        if all > 1 {
            let changes = &self.changes;
            // A stable sort, so fields of one kind keep their order.
            found.sort_by_cached_key(|field| {
                changes
                    .get(&kind_of(&field.path))
                    .copied()
                    .unwrap_or(u32::MAX)
            });
        }
        for field in found.iter().take(LISTED_MAX) {
            let cells = [&field.path, &field.left, &field.right].map(|text| self.text(text));
            self.line(Word::Changed, &cells);
        }
        if all > LISTED_MAX {
            self.line(Word::MoreChanged, &[(all - LISTED_MAX) as i64]);
        }
        all
    }

    pub(super) fn block(&self) -> Block<'_> {
        Block {
            s: &self.list,
            t: &self.ticks,
        }
    }

    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.list.clear();
        self.ticks.clear();
    }
}

// The path without its numbers: `players[].x` for every player.
pub(super) fn kind_of(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

pub(super) fn bytes(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
