//! [`Inspector`]: writes a match as one page for a browser, for inspection tick by tick.
//!
//! ```text
//!  journal ─ Replay ─┬─ each tick in words, the fields that changed ─▶ blocks of 512 ticks ─┐
//!  tapes ────────────┘                                                                      ├─▶ page.html
//!                    └─ flags and counts of each tick ─▶ head, which is drawn as lanes ─────┘
//! ```
//!
//! The page does not need other files or a network. Blocks and head are JSON, compressed and in base64, so no text of a
//! journal is ever markup (law *Hostile wire*); the page unpacks a block when one of its ticks is viewed or searched.
//! Blocks are written as they fill up: memory holds one block, a few bytes for each tick, and the tapes.

use std::io::{self, Write};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::journal::{JournalSource, WrittenBy};
use twinstep_protocol::replay::{Replay, ReplayError};
use twinstep_protocol::tape::TapeError;
use twinstep_protocol::text::line;

use lanes::{Lanes, Mark, PlayerRow, TurnsRow};
use tapes::ClientTape;
use words::{Words, bytes};

mod lanes;
mod tapes;
mod words;

/// The maximum number of ticks of a page: an hour at 60 Hz.
pub const INSPECT_TICKS_MAX: u32 = 216_000;
const PAGE_BYTES_MAX: u64 = 256 << 20;
const TAPE_BYTES_MAX: usize = 64 << 20;
const BLOCK_TICKS: usize = 512;

const PAGE: &str = include_str!("inspect/page.html");

/// The reason why a match cannot be shown as a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum InspectError {
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("expected a first tick before the end, got ticks {} to {}", from.0, to.0)]
    Range { from: Tick, to: Tick },
    #[error("expected a first tick below {}, where the journal ends, got {}", end.0, from.0)]
    NoTick { from: Tick, end: Tick },
    #[error(
        "a page has at most {INSPECT_TICKS_MAX} ticks, and more were chosen: choose a part of them"
    )]
    TooLong,
    #[error("the page takes more than {} MiB: choose fewer ticks", PAGE_BYTES_MAX >> 20)]
    TooLarge,
    #[error("{name}: {error}")]
    Tape { name: String, error: TapeError },
    #[error("{name}: expected a tape of at most {} MiB, got a larger one", TAPE_BYTES_MAX >> 20)]
    LargeTape { name: String },
    #[error(
        "{name}: recorded in {:?} version {version}, and the journal is of another game, version or rules: give a tape of \
         this match",
        line(game)
    )]
    OtherTape {
        name: String,
        game: String,
        version: u32,
    },
    #[error("the page cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// The result of an inspection.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Inspected {
    pub ticks: Range<Tick>,
    /// The size of the page, in bytes.
    pub bytes: u64,
    /// The error that stopped the replay before the end of the journal. The page shows everything before it.
    pub stopped: Option<ReplayError>,
}

/// Creates a page from a journal.
///
/// ```
/// use twinstep_core::Tick;
/// use twinstep_core::testing::doc::Counter;
/// use twinstep_ops::Inspector;
/// # let journal = twinstep_protocol::replay::doc::journal(300);
/// let mut page = Vec::new();
/// let inspected = Inspector::<Counter>::new(&()).write(journal.as_slice(), &mut page)?;
/// assert_eq!(inspected.ticks, Tick(0)..Tick(300));
/// assert!(page.starts_with(b"<!doctype html>"));
/// # Ok::<(), twinstep_ops::InspectError>(())
/// ```
pub struct Inspector<'r, S: Simulation> {
    rules: &'r S::Rules,
    ticks: Range<Tick>,
    tapes: Vec<ClientTape>,
}

impl<'r, S: Simulation> Inspector<'r, S> {
    /// Inspects matches with these rules.
    #[must_use]
    pub fn new(rules: &'r S::Rules) -> Self {
        Inspector {
            rules,
            ticks: Tick(0)..Tick::MAX,
            tapes: Vec::new(),
        }
    }

    /// Chooses the ticks of the page, for a long match. The page starts no earlier than the journal's first tick.
    #[must_use]
    pub fn ticks(mut self, ticks: Range<Tick>) -> Self {
        self.ticks = ticks;
        self
    }

    /// Adds a lane for a client's tape, recorded with `SessionConfig::record_tape`. The page shows the name.
    ///
    /// # Errors
    /// If the file is not a tape, is damaged, or is larger than 64 MiB.
    pub fn tape(mut self, name: &str, file: &[u8]) -> Result<Self, InspectError> {
        let name = line(name).to_string();
        if file.len() > TAPE_BYTES_MAX {
            return Err(InspectError::LargeTape { name });
        }
        let tape = ClientTape::read(name.clone(), file);
        self.tapes
            .push(tape.map_err(|error| InspectError::Tape { name, error })?);
        Ok(self)
    }

    /// Replays the journal and writes the page. Cost per tick: a step, a tree of the state (about 50 ns for each number
    /// in it), and about 200 bytes of the page.
    ///
    /// # Errors
    /// [`InspectError`] if the journal cannot be read, a tape is of another game, the chosen ticks do not exist or are
    /// too many, or the page is too large or cannot be written. After an error, the page is incomplete.
    pub fn write(
        &self,
        journal: impl JournalSource + Send,
        out: &mut impl Write,
    ) -> Result<Inspected, InspectError> {
        let Range { start, end } = self.ticks.clone();
        if start >= end {
            let (from, to) = (start, end);
            return Err(InspectError::Range { from, to });
        }
        let mut replay = Replay::<S>::open(journal, self.rules)?;
        let about = replay.index().about.clone();
        for tape in &self.tapes {
            if let Some((game, version)) = tape.foreign(&about) {
                let name = tape.name.clone();
                return Err(InspectError::OtherTape {
                    name,
                    game,
                    version,
                });
            }
        }
        let mut pages = Pages::begin(out)?;
        let mut lanes = Lanes::default();
        for (player, name) in replay.index().seats.clone() {
            lanes.name(player, &name);
        }
        let from = start.max(replay.world().tick());
        let reached = replay.seek(from)?;
        if reached < from {
            let end = reached;
            return Err(InspectError::NoTick { from, end });
        }
        let newest = replay.index().newest.min(end);
        if newest.0.saturating_sub(from.0) > INSPECT_TICKS_MAX {
            return Err(InspectError::TooLong);
        }
        lanes.from = from;
        let mut tapes: Vec<_> = self.tapes.iter().map(|tape| tape.lane(from)).collect();
        let mut words = Words::new(&replay);
        let mut stopped = None;
        while replay.world().tick() < end {
            let tick = replay.world().tick();
            let (seen, marks) = (tick, &mut lanes.marks);
            match replay.step_inspecting(|record| marks.record(seen, record)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(ReplayError::Differs { tick, .. }) => {
                    let text = differing(&replay);
                    lanes.marks.push(tick, Mark::Differs, None, text);
                    continue;
                }
                Err(fault) => {
                    stopped = Some(fault);
                    break;
                }
            }
            if tick - from >= INSPECT_TICKS_MAX {
                return Err(InspectError::TooLong);
            }
            words.begin();
            lanes.tick(&replay, &mut words);
            for (n, tape) in tapes.iter_mut().enumerate() {
                tape.tick(tick, n, &mut words);
            }
            if words.ticks.len() == BLOCK_TICKS {
                pages.block(&mut words)?;
            }
        }
        let to = replay.world().tick();
        if to == from {
            let end = to;
            return Err(InspectError::NoTick { from, end });
        }
        pages.block(&mut words)?;
        let index = replay.index();
        let about = &index.about;
        let head = PageHead {
            game: line(&about.game).to_string(),
            version: about.sim_version,
            build: line(&about.build).to_string(),
            by: match about.by {
                WrittenBy::Server => "server",
                WrittenBy::Client => "client",
                WrittenBy::Save => "save",
            },
            started_unix_s: about.started_unix_s,
            from: from.0,
            to: to.0,
            block_ticks: BLOCK_TICKS,
            ended: index.ended.as_deref().map(|why| line(why).to_string()),
            stopped: stopped.as_ref().map(ReplayError::to_string),
            players: lanes.players(),
            counts: lanes.counts.iter().map(|counts| bytes(counts)).collect(),
            cadences: &lanes.cadences,
            marks: &lanes.marks.list,
            marks_left_out: lanes.marks.left_out,
            tapes: tapes.iter().map(tapes::Lane::row).collect(),
        };
        Ok(Inspected {
            ticks: from..to,
            bytes: pages.end(&head)?,
            stopped,
        })
    }
}

fn differing<S: Simulation>(replay: &Replay<'_, S>) -> String {
    let mut text =
        "this program's world differs from the recorded one: the step is not deterministic, or another build \
         recorded it"
            .to_owned();
    for field in replay.differing() {
        text += &format!("; {field}");
    }
    text
}

#[derive(Serialize)]
struct PageHead<'a> {
    game: String,
    version: u32,
    build: String,
    by: &'static str,
    started_unix_s: u64,
    from: u32,
    to: u32,
    block_ticks: usize,
    ended: Option<String>,
    stopped: Option<String>,
    players: Vec<PlayerRow>,
    counts: Vec<String>,
    cadences: &'a [TurnsRow],
    marks: &'a [(u32, u8, Option<u8>, String)],
    marks_left_out: u64,
    tapes: Vec<tapes::LaneRow<'a>>,
}

// The page as it is written: the template up to its data, the blocks, the head, and the rest of the template.
struct Pages<'w, W: Write> {
    out: &'w mut W,
    bytes: u64,
    after: &'static str,
}

impl<'w, W: Write> Pages<'w, W> {
    fn begin(out: &'w mut W) -> Result<Self, InspectError> {
        let (before, after) = PAGE
            .split_once("<!-- data -->")
            .expect("the template has a place for data");
        let mut pages = Pages {
            out,
            bytes: 0,
            after,
        };
        pages.text(before)?;
        Ok(pages)
    }

    fn text(&mut self, text: &str) -> Result<(), InspectError> {
        self.bytes += text.len() as u64;
        if self.bytes > PAGE_BYTES_MAX {
            return Err(InspectError::TooLarge);
        }
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }

    fn data(&mut self, class: &str, data: &impl Serialize) -> Result<(), InspectError> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut packed, data).map_err(io::Error::from)?;
        let packed = STANDARD.encode(packed.finish()?);
        self.text(&format!(
            "<script type=\"text/plain\" class=\"{class}\">{packed}</script>\n"
        ))
    }

    fn block(&mut self, words: &mut Words) -> Result<(), InspectError> {
        if !words.ticks.is_empty() {
            self.data("block", &words.block())?;
            words.clear();
        }
        Ok(())
    }

    fn end(mut self, head: &PageHead<'_>) -> Result<u64, InspectError> {
        self.data("head", head)?;
        self.text(self.after)?;
        self.out.flush()?;
        Ok(self.bytes)
    }
}
