//! Statistics of a journal, counted from its frames without simulating.

use core::time::Duration;

use super::cursor::{CursorItem, Frames, decode};
use super::error::ReplayError;
use super::index::Index;
use crate::journal::{JournalSource, Record};
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::codec;
use twinstep_core::frame::FrameData;
use twinstep_core::turn::Cadence;
use twinstep_core::{Simulation, Tick};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayerSurvey {
    /// The number of ticks with an input of the player in the frame.
    pub ticks: u32,
    /// The total length of these ticks.
    pub played: Duration,
    /// The number of the player's inputs that the server filled.
    pub filled: u32,
    pub commands: u32,
    pub claims: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    pub first: Tick,
    pub ticks: u32,
    /// The match time of the sealed ticks, with the actual length of each tick.
    pub length: Duration,
    /// The length of the last tick.
    pub tick: Duration,
    pub players: [PlayerSurvey; PLAYERS_MAX],
    pub outcomes: u64,
    pub roster_changes: u64,
    /// The size of all inputs and orders if each tick were written in full: the baseline for the journal's size.
    pub raw_bytes: u64,
    /// Where and why reading ended, if it ended before the end of the file.
    pub fault: Option<ReplayError>,
}

impl Survey {
    /// Reads all frames of a journal.
    #[must_use]
    pub fn of<S: Simulation>(journal: impl JournalSource, index: &Index) -> Survey {
        let mut survey = Survey {
            first: index.worlds.first().map_or(Tick(0), |place| place.tick),
            ticks: 0,
            length: Duration::ZERO,
            tick: Cadence::DEFAULT.tick(),
            players: Default::default(),
            outcomes: 0,
            roster_changes: 0,
            raw_bytes: 0,
            fault: None,
        };
        let Some(first) = index.worlds.first() else {
            survey.fault = Some(ReplayError::NoWorld);
            return survey;
        };
        let mut frames = Frames::<S>::at(journal, first);
        loop {
            match frames.next() {
                Ok(Some(CursorItem::Frame)) => survey.count(frames.frame()),
                Ok(Some(CursorItem::Record(entry))) => {
                    // A world contains its cadence; later changes are in the frames.
                    if let Record::World { tick, bytes } = entry.record
                        && survey.ticks == 0
                        && let Ok(world) = decode::<S>(entry.offset, tick, bytes)
                    {
                        survey.tick = world.turn().cadence.tick();
                    }
                }
                Ok(None) => return survey,
                Err(fault) => {
                    survey.fault = Some(fault);
                    return survey;
                }
            }
        }
    }

    /// The sum of all players' playing times.
    #[must_use]
    pub fn played(&self) -> Duration {
        self.players.iter().map(|player| player.played).sum()
    }

    fn count<S: Simulation>(&mut self, frame: &FrameData<S>) {
        if let Some(cadence) = frame.cadence {
            self.tick = cadence.tick();
        }
        self.ticks += 1;
        self.length += self.tick;
        self.outcomes += frame.outcomes.len() as u64;
        self.roster_changes += frame.roster.len() as u64;
        for (player, input) in frame.inputs.iter() {
            // A value that was just decoded can be encoded.
            self.raw_bytes += codec::size(input).unwrap_or(0) as u64;
            let counts = &mut self.players[player.index()];
            counts.ticks += 1;
            counts.played += self.tick;
            counts.filled += u32::from(frame.filled.contains(player));
        }
        for order in frame.claims.iter().chain(&frame.commands) {
            self.raw_bytes += codec::size(&order.command).unwrap_or(0) as u64;
        }
        // A player beyond the limit is an error when the frame is stepped.
        for claim in &frame.claims {
            if let Some(counts) = self.players.get_mut(claim.player.index()) {
                counts.claims += 1;
            }
        }
        for command in &frame.commands {
            if let Some(counts) = self.players.get_mut(command.player.index()) {
                counts.commands += 1;
            }
        }
    }
}
