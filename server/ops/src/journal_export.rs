//! A journal as text, for programs outside of this framework: one JSON object per line, without simulation.
//!
//! ```text
//!  {"start":{"game":"counter","sim_version":1,"rules_digest":"…","build":"…","started_unix_s":0,"by":"server"}}
//!  {"world":{"tick":0,"bytes":12}}
//!  {"seat":{"player":0,"identity":"anna"}}
//!  {"tick":{"tick":0,"roster":[[0,"Joined"]],"inputs":{"0":5}}}
//!  {"tick":{"tick":1,"inputs":{"0":6},"filled":[0],"commands":[{"player":0,"seq":1,"command":…}]}}
//!  {"digest":{"tick":60,"digest":"8f3c…"}}
//!  {"end":{"reason":"…"}}
//! ```
//!
//! Empty fields are left out. Inputs, commands, claims and outcomes are in the form of the game's own `Serialize`;
//! digests are 16 hexadecimal digits, because numbers in other languages lose the last bits of 64; keys are as logs
//! print them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{RosterChange, Simulation};
use twinstep_protocol::identity::Role;
use twinstep_protocol::journal::{JournalError, JournalSource, Record, UpTo, WrittenBy};
use twinstep_protocol::lineage::Ruling;
use twinstep_protocol::replay::{About, CursorItem, Frames, Index, ReplayError};
use twinstep_protocol::text::line;

/// The reason why a journal was not exported to its end.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ExportError {
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The journal belongs to another game, or to another version of its simulation: inputs may have other types there.
    #[error(
        "the journal is of {:?} version {}, and this program is {game:?} version {version}: export it with the build that wrote it, {:?}",
        line(&about.game), about.sim_version, line(&about.build)
    )]
    Other {
        about: Box<About>,
        game: &'static str,
        version: u32,
    },
    /// The export cannot be written, or a game value cannot be expressed in JSON, such as a map whose keys are neither
    /// text nor numbers.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
}

/// The result of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The number of lines written.
    pub lines: u64,
    /// The number of exported ticks.
    pub ticks: u64,
    /// The damage at which the export stopped, if any; everything before it is exported.
    pub stopped: Option<JournalError>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OutdatedRow {
    Lineage {
        lineage: String,
        below_generation: u32,
        until_unix_s: u64,
    },
    Revoked {
        made_before_unix_ms: u64,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Row<'a, S: Simulation> {
    Start {
        game: &'a str,
        sim_version: u32,
        rules_digest: String,
        build: &'a str,
        started_unix_s: u64,
        by: &'static str,
    },
    World {
        tick: u32,
        bytes: usize,
    },
    Tick(TickRow<'a, S>),
    Digest {
        tick: u32,
        digest: String,
    },
    Seat {
        player: u8,
        identity: String,
    },
    Reserved {
        player: u8,
        identity: String,
    },
    Outdated {
        identity: String,
        watches: bool,
        #[serde(flatten)]
        tickets: OutdatedRow,
    },
    Resumed {
        at_unix_s: u64,
        build: &'a str,
    },
    End {
        reason: &'a str,
    },
    Other {
        kind: u8,
        bytes: usize,
    },
}

#[derive(Serialize)]
#[serde(bound = "")]
struct TickRow<'a, S: Simulation> {
    tick: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cadence: Option<CadenceRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roster: Vec<(u8, RosterChange)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<u8, &'a S::Input>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    filled: Vec<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outcomes: Vec<AnswerRow<'a, S>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    claims: &'a [Order<S::Command>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    commands: &'a [Order<S::Command>],
}

#[derive(Serialize)]
struct CadenceRow {
    turn_ticks: u8,
    tick_ns: u32,
    delay_ticks: u8,
    paused: bool,
    paused_by: Option<u8>,
}

#[derive(Serialize)]
#[serde(bound = "")]
struct AnswerRow<'a, S: Simulation> {
    asked: u32,
    key: String,
    outcome: Option<&'a S::Outcome>,
}

/// Writes a journal, e.g. a [`StoredJournal`](twinstep_host::StoredJournal), as lines of JSON: its sealed frames, not
/// the resulting worlds. Cost per tick, for four players with small inputs: about 200 bytes and 10 µs.
///
/// # Errors
/// [`ExportError`] if the journal cannot be read, has no intact start or world, belongs to another game or version, or
/// cannot be decoded, or if a line cannot be written. Lines already written remain. Damage after the first world is not
/// an error: see [`Exported::stopped`].
pub fn export_journal<S: Simulation>(
    mut journal: impl JournalSource,
    out: &mut impl Write,
) -> Result<Exported, ExportError> {
    let index = Index::scan(&mut journal).map_err(ReplayError::from)?;
    let about = &index.about;
    if (about.game.as_str(), about.sim_version) != (S::NAME, S::VERSION) {
        return Err(ExportError::Other {
            about: Box::new(about.clone()),
            game: S::NAME,
            version: S::VERSION,
        });
    }
    let first = index.worlds.first().ok_or(ReplayError::NoWorld)?;
    let mut exported = Exported {
        lines: 0,
        ticks: 0,
        stopped: index.stopped,
    };
    let mut write = |row: Row<'_, S>| -> Result<(), io::Error> {
        exported.lines += 1;
        exported.ticks += u64::from(matches!(row, Row::Tick(_)));
        serde_json::to_writer(&mut *out, &row)?;
        out.write_all(b"\n")
    };
    write(Row::Start {
        game: &about.game,
        sim_version: about.sim_version,
        rules_digest: hex(about.rules_digest),
        build: &about.build,
        started_unix_s: about.started_unix_s,
        by: match about.by {
            WrittenBy::Server => "server",
            WrittenBy::Client => "client",
            WrittenBy::Save => "save",
        },
    })?;
    let end = index.sound_bytes();
    let mut frames = Frames::<S>::at(UpTo { journal, end }, first);
    while let Some(found) = frames.next()? {
        match found {
            CursorItem::Frame => write(Row::Tick(tick_row(frames.frame())))?,
            CursorItem::Record(entry) => {
                if let Some(row) = row_of(entry.record) {
                    write(row)?;
                }
            }
        }
    }
    Ok(exported)
}

fn tick_row<S: Simulation>(frame: &FrameData<S>) -> TickRow<'_, S> {
    let outcomes = frame.outcomes.iter().map(|answer| AnswerRow {
        asked: answer.asked.0,
        key: answer.key.to_string(),
        outcome: answer.outcome.as_ref(),
    });
    let inputs = frame.inputs.iter().map(|(player, input)| (player.0, input));
    TickRow {
        tick: frame.tick.0,
        cadence: frame.cadence.map(|cadence| CadenceRow {
            turn_ticks: cadence.turn_ticks,
            tick_ns: cadence.tick_ns,
            delay_ticks: cadence.delay_ticks,
            paused: cadence.paused,
            paused_by: cadence.paused_by.map(|by| by.0),
        }),
        roster: frame
            .roster
            .iter()
            .map(|(who, how)| (who.0, *how))
            .collect(),
        inputs: inputs.collect(),
        filled: frame.filled.iter().map(|player| player.0).collect(),
        outcomes: outcomes.collect(),
        claims: &frame.claims,
        commands: &frame.commands,
    }
}

fn row_of<S: Simulation>(record: Record<'_>) -> Option<Row<'_, S>> {
    Some(match record {
        Record::World { tick, bytes } => Row::World {
            tick: tick.0,
            bytes: bytes.len(),
        },
        Record::Digest { tick, digest } => Row::Digest {
            tick: tick.0,
            digest: hex(digest),
        },
        Record::Seat { player, identity } => Row::Seat {
            player: player.0,
            identity: text(identity),
        },
        Record::Reserved { player, identity } => Row::Reserved {
            player: player.0,
            identity: text(identity),
        },
        Record::Ruling {
            ruling,
            role,
            identity,
        } => Row::Outdated {
            identity: text(identity),
            watches: role == Role::Spectator,
            tickets: match ruling {
                Ruling::Below {
                    lineage,
                    generation,
                    until_unix_s,
                } => OutdatedRow::Lineage {
                    lineage: hex(lineage),
                    below_generation: generation,
                    until_unix_s,
                },
                Ruling::MadeBefore { unix_ms } => OutdatedRow::Revoked {
                    made_before_unix_ms: unix_ms,
                },
            },
        },
        Record::Resumed { at_unix_s, build } => Row::Resumed { at_unix_s, build },
        Record::End { reason } => Row::End { reason },
        Record::Other { kind, payload } => Row::Other {
            kind,
            bytes: payload.len(),
        },
        // The start was written before, and turns become ticks.
        _ => return None,
    })
}

fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

/// Identities in tickets are always text; other bytes are replaced.
fn text(identity: &[u8]) -> String {
    String::from_utf8_lossy(identity).into_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::{Effects, Frame, Never};
    use twinstep_protocol::replay::doc::journal;

    use super::*;

    #[derive(Clone, Serialize, Deserialize)]
    struct Chess;

    impl Simulation for Chess {
        const NAME: &'static str = "chess";
        const VERSION: u32 = 3;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
    }

    fn exported(file: &[u8]) -> (Exported, Vec<Value>) {
        let mut out = Vec::new();
        let exported = export_journal::<Counter>(file, &mut out).expect("it is sound");
        let text = String::from_utf8(out).expect("JSON is text");
        let rows = text
            .lines()
            .map(|row| serde_json::from_str(row).expect(row));
        (exported, rows.collect())
    }

    #[test]
    fn each_tick_is_exported_as_a_line_with_each_players_inputs() {
        let file = journal(120);
        let (exported, rows) = exported(&file);
        assert_eq!((exported.ticks, exported.stopped), (120, None));
        assert_eq!(exported.lines, rows.len() as u64);
        assert_eq!(rows[0]["start"]["game"], "counter");
        let ticks: Vec<&Value> = rows.iter().filter_map(|row| row.get("tick")).collect();
        assert_eq!(ticks[0]["roster"][0][1], "Joined");
        assert_eq!(ticks[0].get("commands"), None, "what is empty is left out");
        let mut frames = Frames::<Counter>::at(&file, &Index::scan(&file).unwrap().worlds[0]);
        for row in ticks {
            while frames.next().unwrap() != Some(CursorItem::Frame) {}
            let frame = frames.frame();
            assert_eq!(row["tick"], frame.tick.0);
            let held = frame
                .inputs
                .iter()
                .map(|(player, input)| (player.0, *input));
            let expected = row.get("inputs").and_then(Value::as_object);
            let expected = expected
                .into_iter()
                .flatten()
                .map(|(player, input)| (player.parse().unwrap(), input.as_u64().unwrap() as u8));
            assert_eq!(held.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_damaged_journal_is_exported_up_to_the_damage_with_a_report() {
        let file = journal(120);
        let (torn, rows) = exported(&file[..file.len() - 3]);
        assert!(torn.stopped.is_some());
        assert!((60..=120).contains(&torn.ticks), "{torn:?}");
        assert_eq!(torn.lines, rows.len() as u64);
    }

    #[test]
    fn a_foreign_journal_is_refused_with_a_reason() {
        let file = journal(2);
        let refused = |file: &[u8]| {
            let mut out = Vec::new();
            let refused = export_journal::<Chess>(file, &mut out);
            assert!(out.is_empty());
            refused.expect_err("it is none").to_string()
        };
        let message = refused(&file);
        assert!(message.contains("\"counter\" version 1"), "{message}");
        refused(b"no journal at all");
    }
}
