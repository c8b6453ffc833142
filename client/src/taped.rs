//! [`SessionTape`]: a session's wrong guesses, corrections and events, as bytes for a file
//! ([`twinstep_protocol::tape`]).
//!
//! ```text
//!  Timeline   wrong guesses, corrections ─┐
//!  Events     desyncs, heals, refusals ───┼─▶ SessionTape ──take──▶ the program's file ──▶ `Inspector`
//!  SessionStats, before and after ────────┘
//! ```
//!
//! Bound: at most [`TAPE_BYTES_MAX`] bytes wait for the program. Records that do not fit are dropped and counted.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::diff::ValueTree;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::tape::{FramePart, LoopShare, MAGIC, TapeEvent, TapeRecord};

use crate::picture::Show;
use crate::session::events::Event;
use crate::session::playing::Playing;
use crate::stats::{SessionStats, TimelineStats};

/// The maximum number of bytes waiting for [`Session::take_tape`](crate::Session::take_tape).
pub const TAPE_BYTES_MAX: usize = 4 << 20;
// The number of advances between two records of the loops.
const LOOPS_EVERY: u32 = 60;

pub(crate) struct SessionTape {
    bytes: Vec<u8>,
    lost: u64,
    seats: Vec<PlayerId>,
    // The next sequence number to record, for each player.
    given: [u32; PLAYERS_MAX],
    before: TimelineStats,
    ticks: (u32, u32),
    advances: u32,
    items: u64,
}

impl SessionTape {
    pub(crate) fn new(hello: &Hello) -> SessionTape {
        let mut tape = SessionTape {
            bytes: MAGIC.to_vec(),
            lost: 0,
            seats: Vec::new(),
            given: [0; PLAYERS_MAX],
            before: TimelineStats::default(),
            ticks: (0, 0),
            advances: 0,
            items: 0,
        };
        tape.push(&TapeRecord::Start {
            game: hello.game.clone(),
            sim_version: hello.version,
            rules_digest: hello.rules,
            build: hello.build.clone(),
        });
        tape
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        if self.lost > 0 {
            let records = std::mem::take(&mut self.lost);
            self.push(&TapeRecord::Lost { records });
        }
        bytes
    }

    fn push(&mut self, record: &TapeRecord) {
        if self.bytes.len() > TAPE_BYTES_MAX || !record.append(&mut self.bytes) {
            self.lost += 1;
        }
    }

    // Records an `advance`: the ticks after it, and what happened in it.
    pub(crate) fn look<S: Simulation, V: Show<S>>(
        &mut self,
        playing: &mut Playing<S, V>,
        stats: &SessionStats,
        events: Vec<Event>,
    ) {
        let replica = &mut playing.replica;
        let seats = replica.timeline.local_actions().seats();
        if seats != self.seats {
            self.seats = seats.to_vec();
            self.push(&TapeRecord::Seats(seats.to_vec()));
        }
        for open in replica.timeline.local_actions().commands() {
            let order = &open.order;
            let next = &mut self.given[order.player.index()];
            if order.seq < *next {
                continue;
            }
            *next = order.seq + 1;
            let text = ValueTree::of(&order.command).text();
            self.push(&TapeRecord::Event {
                at: open.stamp,
                kind: TapeEvent::Given,
                text: format!("{} issued command {}: {text}", order.player, order.seq),
            });
        }
        let notes = replica.timeline.take_notes();
        let ticks = (stats.authority_tick, stats.prediction_tick);
        let after = stats.timeline;
        if ticks != self.ticks || !notes.is_empty() || after.rebuilds != self.before.rebuilds {
            self.ticks = ticks;
            self.push(&TapeRecord::Advanced {
                authority: Tick(ticks.0),
                shown: Tick(ticks.1),
                margin: replica.meter.margins.last(),
            });
        }
        notes.iter().for_each(|note| self.push(note));
        self.rebuilt(&after);
        let at = replica.timeline.authority().tick();
        for event in events {
            let (at, kind, text) = words(event, at);
            self.push(&TapeRecord::Event { at, kind, text });
        }
        self.advances += 1;
        let items = after.items_taken + after.items_run;
        if self.advances.is_multiple_of(LOOPS_EVERY) && items != self.items {
            self.items = items;
            let loops = replica.timeline.loops().iter().map(|of| LoopShare {
                name: of.name.to_owned(),
                taken: of.taken,
                run: of.run,
            });
            self.push(&TapeRecord::Loops(loops.collect()));
        }
    }

    fn rebuilt(&mut self, after: &TimelineStats) {
        let before = std::mem::replace(&mut self.before, *after);
        let inputs = before.by_input.iter().zip(&after.by_input).enumerate();
        let inputs = inputs.map(|(player, (before, after))| {
            let player = PlayerId(player as u8);
            (FramePart::Input, Some(player), *before, *after)
        });
        let mut ticks = after.resim_ticks - before.resim_ticks;
        for (part, player, before, after) in [
            (FramePart::Roster, before.by_roster, after.by_roster),
            (FramePart::Outcome, before.by_outcome, after.by_outcome),
            (
                FramePart::OwnCommand,
                before.by_own_command,
                after.by_own_command,
            ),
            (FramePart::Command, before.by_command, after.by_command),
            (FramePart::Withheld, before.by_withheld, after.by_withheld),
        ]
        .map(|(part, before, after)| (part, None, before, after))
        .into_iter()
        .chain(inputs)
        {
            if after > before {
                self.push(&TapeRecord::Rebuilt {
                    part,
                    player,
                    rebuilds: (after - before) as u32,
                    // The ticks of an advance are not known per cause, so all of them count for the first cause.
                    ticks: std::mem::take(&mut ticks) as u32,
                });
            }
        }
    }
}

fn words(event: Event, now: Tick) -> (Tick, TapeEvent, String) {
    match event {
        Event::Joined(players) => (now, TapeEvent::Joined, format!("joined with {players:?}")),
        Event::Differs { at } => {
            let text = format!(
                "the confirmed world of tick {} differs from the server's",
                at.0
            );
            (at, TapeEvent::Differs, text)
        }
        Event::Healed { at } => {
            let text = format!("healed: continues from the server's world of tick {}", at.0);
            (at, TapeEvent::Healed, text)
        }
        Event::Desync(text) => (now, TapeEvent::Desync, text),
        Event::CommandRefused { seat, seq, why } => {
            let text = format!("command {seq} of seat {seat} was refused: {why:?}");
            (now, TapeEvent::Refused, text)
        }
        Event::RequestRefused { request, why } => {
            let text = format!("{request:?} was refused: {why:?}");
            (now, TapeEvent::Refused, text)
        }
        Event::StepFault(text) => (now, TapeEvent::Fault, text.chars().take(1_000).collect()),
        other => (now, TapeEvent::Connection, format!("{other:?}")),
    }
}
