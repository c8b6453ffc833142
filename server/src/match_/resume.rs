//! Resuming a match from its journal, after its server was killed or handed it over.
//!
//! ```text
//!  journal ──▶ world about 400 ticks before the end ─frames─▶ world at the end
//!                 │ worlds, frames, digests                       │ seats, sequences, open queries
//!                 ▼                                               ▼
//!              history (for returning clients)                 the match continues, in the same file
//! ```
//!
//! Law **Journal first**: everything that a client can have seen is in the journal, so no client has to roll back a
//! confirmed tick. Outcomes come from the journal's frames and are never resolved again; only open queries are asked
//! again.
//!
//! After a resume the clock waits until all previously present players play again, but at most [`HOLD_MAX`], so that
//! players do not lose the game because of a crash. For [`EXCUSED`], silent players are not dropped, even if the wait
//! has ended.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::{HISTORY, PLAYERS_MAX, drop_after_ticks};
use twinstep_core::frame::PlayerSet;
use twinstep_core::world::{Presence, World};
use twinstep_core::{PlayerId, RosterChange, Simulation, codec};
use twinstep_protocol::journal::{JournalError, JournalSource, UpTo, WrittenBy};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::{Index, Replay, ReplayError};

use super::{Match, Resumed, Start};
use crate::clock::Return;
use crate::config::{MatchConfig, Spectators};
use crate::digests::SMALL_BYTES;
use crate::errors::{MatchStartError, ResumeError};
use crate::history::History;
use crate::hooks::Resolver;
use crate::journal::{JournalOut, is_over};
use crate::snapshots::Watched;

/// The match's clock waits at most this long for its players to return.
const HOLD_MAX: Duration = Duration::from_secs(5);
/// After a resume, silent players are kept for this long.
pub(super) const EXCUSED: Duration = Duration::from_secs(30);
/// The minimum number of frames kept for reconnecting clients.
const BACKLOG_MIN: u32 = 400;
const _: () = assert!(BACKLOG_MIN > crate::seat::CLAIM_AGE_MAX);
const _: () = assert!(BACKLOG_MIN > HISTORY);
impl<S: Simulation> Match<S> {
    /// Resumes a match at the last turn of its journal. `config.start` and `config.command_delay` are ignored, because
    /// Resumes a match at the last turn of its journal. `config.start` and `config.command_delay` are ignored, because
    /// the journal has them, and its start time; `config.unix_time` is the time of the resume.
    ///
    /// Costs the steps of about 400 to 1,000 ticks at 60 Hz (or of the spectators' delay, if that
    /// is more), for a match of any length, and a pass over the journal to check it. The pass needs the memory of the
    /// largest record.
    ///
    /// The journal is continued: [`poll`](Match::poll) returns the bytes to append at [`Resumed::keep_bytes`].
    ///
    /// # Errors
    /// If the journal cannot be played, its match is over, or the configuration does not fit: see [`ResumeError`].
    pub fn resume(
        mut config: MatchConfig,
        mut journal: impl JournalSource + Send,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<Resumed<S>, ResumeError> {
        let hello = Hello::of::<S>(&rules, &config.build).map_err(MatchStartError::from)?;
        let index = Index::scan(&mut journal).map_err(ReplayError::from)?;
        index.check(&hello)?;
        match index.about.by {
            WrittenBy::Server => {}
            WrittenBy::Client => return Err(ResumeError::Recording),
            WrittenBy::Save => return Err(ResumeError::Saved),
        }
        if let Some(reason) = is_over(&index) {
            let reason = reason.to_owned();
            return Err(ResumeError::Over { reason });
        }
        match index.stopped {
            None | Some(JournalError::Torn { .. }) => {}
            Some(damage) => return Err(ReplayError::from(damage).into()),
        }
        let keep_bytes = index.sound_bytes();
        let sound = UpTo {
            journal,
            end: keep_bytes,
        };
        // The command delay is fixed for the match, even if this process was started with a different one.
        let asked_delay = config.command_delay;
        config.command_delay = index.about.command_delay;
        // Saves name their match by its start.
        let now_unix_s = std::mem::replace(&mut config.unix_time, index.about.started_unix_s);
        config.check().map_err(MatchStartError::from)?;
        // The match's own first tick, because a crash must not let a delayed spectator see more.
        let first = index.worlds.first().ok_or(ReplayError::NoWorld)?;
        config.start = first.tick;
        let past = Past::<S>::of(sound, &rules, &index, config.spectators)?;
        let mut match_ = Match::begin(config, hello, past.world, past.history, rules, resolver)?;
        match_.snapshots.watched = past.watched;
        match_.origin.start = past.start;
        match_.origin.asked_delay = Some(asked_delay);
        match_.resume_requests();
        match_.take_seats(&index)?;
        for (seat, next_claim) in match_.seats.iter_mut().zip(past.next_claims) {
            seat.expect_claims_from(next_claim);
        }
        match_.journal = JournalOut::resume(
            &index,
            &match_.origin.hello,
            now_unix_s,
            &match_.world.current,
            &mut match_.outbox,
        )
        .map_err(MatchStartError::from)?;
        let turn = match_.world.current.turn().cadence.turn();
        match_.clock.resume(turn);
        match_
            .snapshots
            .weigh(match_.clock.now, &match_.world, &mut match_.diagnostics);
        match_.open_queries(World::open_queries);
        match_.know_rulings(index.lineages.iter());
        Ok(Resumed { match_, keep_bytes })
    }

    fn take_seats(&mut self, index: &Index) -> Result<(), ResumeError> {
        let next = self.world.current.tick();
        let tick = self.world.current.turn().cadence.tick();
        let excused = (EXCUSED.as_nanos() / tick.as_nanos()) as u32;
        if let Some(player) = self
            .world
            .current
            .seated()
            .iter()
            .find(|p| p.index() >= self.seats.len())
        {
            let seats = self.seats.len();
            return Err(ResumeError::Seats { seats, player });
        }
        // Sequences continue when a number gets another owner, so the sequences of empty seats also matter.
        for (n, seat) in self.seats.iter_mut().enumerate() {
            seat.expect_commands_from(self.world.current.next_seq(PlayerId(n as u8)));
        }
        for player in self.world.current.seated().iter() {
            let seat = &mut self.seats[player.index()];
            // Silence counts from `given`, which is set ahead of the match so that no player is dropped for `EXCUSED`.
            seat.given = next + excused.saturating_sub(drop_after_ticks(tick));
            seat.awaited_from = self.world.current.turn().number;
            self.people.views[player.index()] = next;
        }
        // The last identity that got a number owns it, if its player is still in the match.
        for (at, (player, identity)) in index.seats.iter().enumerate() {
            let is_last = index.seats[at + 1..].iter().all(|(p, _)| p != player);
            if is_last && player.index() < PLAYERS_MAX {
                self.people.record_owner(*player, identity);
            }
            if is_last && self.world.current.presence(*player) != Presence::Absent {
                self.people.seat(*player, identity);
            }
        }
        // These players left during a pause, so no frame before the crash holds their departure.
        let mut players = self.world.current.present();
        for player in self.world.current.seated().iter() {
            if index.left.contains(player) {
                self.sealer.change(player, RosterChange::Left);
                let _ = self.people.unseat(player);
                players.set(player, false);
            }
        }
        let seats = self.seats.len();
        let reserved = index.reserved.iter();
        for (player, identity) in reserved.filter(|(player, _)| player.index() < seats) {
            self.people.expect(*player, Some(identity));
            players.set(*player, false);
            let is_in = self.world.current.presence(*player) != Presence::Absent;
            if is_in && !index.left.contains(*player) {
                let _ = self.people.unseat(*player);
                self.people.seat(*player, identity);
            }
        }
        self.clock.returning = Some(Return {
            players,
            since: None,
            from_first: false,
        });
        Ok(())
    }

    pub(super) fn missing_after_restart(&self) -> PlayerSet {
        let Some(returning) = &self.clock.returning else {
            return PlayerSet::default();
        };
        let mut missing = returning.players;
        for peer in self.people.playing() {
            for player in &peer.players {
                missing.set(*player, false);
            }
        }
        missing
    }

    // Ends the pause after a crash or a load, when all previously present players play again, or after [`HOLD_MAX`].
    pub(super) fn end_return(&mut self, now: Duration) {
        let missing = self.missing_after_restart();
        if let Some(returning) = &mut self.clock.returning {
            if returning.from_first && self.people.playing().next().is_none() {
                return;
            }
            if returning.since.is_none() {
                self.clock.excused_until = now + EXCUSED;
            }
            let since = *returning.since.get_or_insert(now);
            if missing.is_empty() || now.saturating_sub(since) >= HOLD_MAX {
                self.clock.returning = None;
            }
        }
    }
}

// The state that results from a journal's frames.
struct Past<S: Simulation> {
    world: World<S>,
    history: History<S>,
    // Worlds for delayed spectators, if the configuration allows them.
    watched: Watched,
    /// The match's first world, if all later frames are kept.
    start: Option<Start>,
    next_claims: [u32; PLAYERS_MAX],
}

impl<S: Simulation> Past<S> {
    fn of(
        journal: impl JournalSource + Send,
        rules: &S::Rules,
        index: &Index,
        spectators: Spectators,
    ) -> Result<Self, ReplayError> {
        let Spectators { max, delay_ticks } = spectators;
        let delayed = max > 0 && delay_ticks > 0;
        let backlog = if delayed {
            BACKLOG_MIN.max(delay_ticks)
        } else {
            BACKLOG_MIN
        };
        let from = index.at_or_before(index.newest.back(backlog));
        let from = from.ok_or(ReplayError::NoWorld)?;
        let mut replay = Replay::<S>::open_at(journal, rules, index.clone(), from)?;
        let first = index.worlds.first().map(|first| first.tick);
        let start = (first == Some(replay.world().tick()))
            .then(|| Start::of_empty(replay.world()))
            .flatten();
        let mut history = History::new(replay.world().tick());
        history.keep_world(replay.world(), false);
        let mut watched = Watched::default();
        let mut next_claims = [0; PLAYERS_MAX];
        // All digests, including unsent ones: a client may reconnect with any digest that it compared.
        let digest = |replay: &Replay<'_, S>| replay.world().sized_digest().ok();
        let mut before = digest(&replay);
        // As in play, the encoded size counts: a chunked list hashes less than its copy takes.
        let mut is_small = false;
        loop {
            let turn_began = replay.world().turn().began;
            // Measured rarely, because it costs a pass over the world.
            if history.next().0.is_multiple_of(HISTORY) || history.next() == history.first() {
                is_small =
                    codec::size(replay.world()).is_ok_and(|bytes| bytes <= SMALL_BYTES as usize);
            }
            if delayed {
                // A world that is too large is left out, as in play.
                let _ = watched.keep(replay.world(), delay_ticks);
            }
            if !replay.step()? {
                break;
            }
            let frame = replay.frame();
            for claim in &frame.claims {
                next_claims[claim.player.index()] = claim.seq.saturating_add(1);
            }
            let taken = before.map(|sized_digest| sized_digest.digest);
            history.keep_frame(frame, taken, turn_began);
            before = digest(&replay);
            let hashes_few = before.is_some_and(|sized_digest| sized_digest.bytes <= SMALL_BYTES);
            history.keep_world(replay.world(), is_small && hashes_few);
        }
        Ok(Past {
            world: replay.world().clone(),
            history,
            watched,
            start,
            next_claims,
        })
    }
}
