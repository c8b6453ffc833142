//! The tapes of clients on a page: each has a lane, and lines in the texts of its ticks.

use serde::Serialize;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::replay::About;
use twinstep_protocol::tape::{self, FramePart, LoopShare, TapeError, TapeEvent, TapeRecord};
use twinstep_protocol::text::line;

use super::lanes::MARKS_MAX;
use super::words::{Word, Words, bytes};

// The value of a tick without a margin or lead.
const NONE: u8 = 255;

pub(super) struct ClientTape {
    pub(super) name: String,
    about: Option<(String, u32, u64)>,
    players: Vec<PlayerId>,
    loops: Vec<LoopShare>,
    lost: u64,
    records: Vec<(Tick, TapeRecord)>,
}

impl ClientTape {
    pub(super) fn read(name: String, file: &[u8]) -> Result<ClientTape, TapeError> {
        let mut tape = ClientTape {
            name,
            about: None,
            players: Vec::new(),
            loops: Vec::new(),
            lost: 0,
            records: Vec::new(),
        };
        let mut now = Tick(0);
        for record in tape::records(file)? {
            let record = record?;
            let at = match &record {
                TapeRecord::Advanced { authority, .. } => {
                    now = *authority;
                    now
                }
                TapeRecord::Assumed { tick, .. } => *tick,
                _ => now,
            };
            match record {
                TapeRecord::Start {
                    game,
                    sim_version,
                    rules_digest,
                    ..
                } => tape.about = Some((game, sim_version, rules_digest)),
                TapeRecord::Seats(players) => tape.players = players,
                TapeRecord::Loops(loops) => tape.loops = loops,
                TapeRecord::Lost { records } => tape.lost = tape.lost.saturating_add(records),
                record => tape.records.push((at, record)),
            }
        }
        // The sort is stable: records of one tick keep their order. A client that reconnected may have gone back in
        // time.
        tape.records.sort_by_key(|(at, _)| *at);
        match &tape.about {
            Some(_) => Ok(tape),
            None => Err(TapeError::NotATape),
        }
    }

    // Returns the game and the version of a tape from another game or with other rules.
    pub(super) fn foreign(&self, ours: &About) -> Option<(String, u32)> {
        let about = self.about.as_ref()?;
        let ours = (&ours.game, &ours.sim_version, &ours.rules_digest);
        let is_ours = (&about.0, &about.1, &about.2) == ours;
        (!is_ours).then(|| (about.0.clone(), about.1))
    }

    pub(super) fn lane(&self, from: Tick) -> Lane<'_> {
        let next = self.records.partition_point(|(at, _)| *at < from);
        Lane {
            tape: self,
            next,
            lead: Vec::new(),
            margin: Vec::new(),
            wrong: Vec::new(),
            rebuilt: Vec::new(),
            rebuilds: [0; 6],
            marks: Vec::new(),
        }
    }
}

// The drawn part of a tape.
pub(super) struct Lane<'t> {
    tape: &'t ClientTape,
    next: usize,
    lead: Vec<u8>,
    margin: Vec<u8>,
    // The wrongly assumed part of the tick's frame, plus one.
    wrong: Vec<u8>,
    // The part that caused rebuilds at this tick, plus one.
    rebuilt: Vec<u8>,
    rebuilds: [u64; 6],
    marks: Vec<(u32, u8, String)>,
}

impl Lane<'_> {
    pub(super) fn tick(&mut self, tick: Tick, number: usize, words: &mut Words) {
        // If a tick was confirmed in the same advance as the next one, it has the values of that advance.
        self.lead.push(NONE);
        self.margin.push(NONE);
        self.wrong.push(0);
        self.rebuilt.push(0);
        let here = self.lead.len() - 1;
        let who = |player: &Option<PlayerId>| player.map_or(-1, |player| i64::from(player.0));
        let tape = number as i64;
        while let Some((_, record)) = self
            .tape
            .records
            .get(self.next)
            .filter(|(at, _)| *at <= tick)
        {
            self.next += 1;
            match record {
                TapeRecord::Advanced {
                    authority,
                    shown,
                    margin,
                } => {
                    self.lead[here] = shown.0.saturating_sub(authority.0).min(254) as u8;
                    if let Some(margin) = margin {
                        self.margin[here] = (margin + 127).clamp(0, 254) as u8;
                    }
                }
                TapeRecord::Assumed {
                    part,
                    player,
                    assumed,
                    ..
                } => {
                    self.wrong[here] = *part as u8 + 1;
                    let assumed = words.text(assumed);
                    let cells = [tape, *part as i64, who(player), assumed];
                    words.line(Word::Assumed, &cells);
                }
                TapeRecord::Rebuilt {
                    part,
                    player,
                    rebuilds,
                    ticks,
                } => {
                    self.rebuilt[here] = *part as u8 + 1;
                    self.rebuilds[*part as usize] += u64::from(*rebuilds);
                    let [rebuilds, ticks] = [*rebuilds, *ticks].map(i64::from);
                    let cells = [tape, *part as i64, who(player), rebuilds, ticks];
                    words.line(Word::Rebuilt, &cells);
                }
                TapeRecord::Corrected { tick, fields } => {
                    for field in fields {
                        let texts = [&field.path, &field.shown, &field.rebuilt];
                        let [path, shown, rebuilt] = texts.map(|text| words.text(text));
                        let cells = [tape, i64::from(tick.0), path, shown, rebuilt];
                        words.line(Word::Corrected, &cells);
                    }
                }
                TapeRecord::Event { at, kind, text } => {
                    let text = text.lines().map(|row| line(row).to_string());
                    let text = text.collect::<Vec<_>>().join("\n");
                    let cells = [tape, *kind as i64, i64::from(at.0), words.text(&text)];
                    words.line(Word::Event, &cells);
                    let is_marked = !matches!(kind, TapeEvent::Given);
                    if is_marked && self.marks.len() < MARKS_MAX {
                        self.marks.push((tick.0, *kind as u8, text));
                    }
                }
                TapeRecord::Start { .. }
                | TapeRecord::Seats(_)
                | TapeRecord::Loops(_)
                | TapeRecord::Lost { .. } => {}
            }
        }
    }

    pub(super) fn row(&self) -> LaneRow<'_> {
        LaneRow {
            name: &self.tape.name,
            players: self.tape.players.iter().map(|player| player.0).collect(),
            lead: bytes(&self.lead),
            margin: bytes(&self.margin),
            wrong: bytes(&self.wrong),
            rebuilt: bytes(&self.rebuilt),
            rebuilds: self.rebuilds,
            marks: &self.marks,
            loops: self
                .tape
                .loops
                .iter()
                .map(|of| (line(&of.name).to_string(), of.taken, of.run))
                .collect(),
            lost: self.tape.lost,
        }
    }
}

#[derive(Serialize)]
pub(super) struct LaneRow<'a> {
    name: &'a str,
    players: Vec<u8>,
    lead: String,
    margin: String,
    wrong: String,
    rebuilt: String,
    rebuilds: [u64; 6],
    marks: &'a [(u32, u8, String)],
    loops: Vec<(String, u64, u64)>,
    lost: u64,
}

const _: () = assert!(
    FramePart::Withheld as usize == 5,
    "an array counts the parts"
);
