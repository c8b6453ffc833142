//! A match on its way to another process, as the match sees that: see `host/drain.rs`.
//!
//! ```text
//!  can? ──▶ go: tickets that lead there ──▶ heard by all, or 5 s ──▶ the journal's end ──▶ "moved", over
//!                └───────── who asked is gone ──┴── it cannot be written ──▶ called off: tickets that lead here
//! ```
//!
//! Invariant: nobody is told that the match moved unless its journal says so, and somebody waits for it.

use std::path::PathBuf;
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::packet::hello::CloseCode;

use super::Runner;
use crate::host::logged;
use crate::host::moves::{Move, MoveOrder};

/// A match that is handed over plays on at most so long, for its clients to have their tickets, and for those who are
/// just joining, returning or being healed to arrive.
const MOVE_PATIENCE: Duration = Duration::from_secs(5);

impl<S: Simulation> Runner<S> {
    pub(super) fn hear_of_move(&mut self, asked: Move) {
        match asked {
            Move::Can(answer) => {
                let _ = answer.send(self.can_move());
            }
            Move::Go(order) => self.begin_to_move(order),
        }
    }

    /// The journal that another process can take up, as it can be found from any folder.
    fn can_move(&self) -> Result<PathBuf, &'static str> {
        match (&self.journal, &self.moving) {
            (None, _) => Err("it has no journal; start the server with one"),
            (_, Some(_)) => Err("it is being handed over already"),
            (Some(journal), None) => Ok(journal.found_from_anywhere()),
        }
    }

    /// The match is to go to another process: its clients get tickets that lead there, and play on until they have
    /// them.
    fn begin_to_move(&mut self, order: MoveOrder) {
        if let Err(why) = self.can_move() {
            let _ = order.done.send(Err(why));
            return;
        }
        self.home = std::mem::replace(&mut self.tickets.servers, order.to.clone());
        // Who is on its way into the match gets its ticket as soon as it plays.
        for peer in self.game.playing() {
            self.hand_ticket(peer);
        }
        let by = self.ends.clock.now() + MOVE_PATIENCE;
        self.moving = Some((by, order));
    }

    /// The match stays: whoever was told to go elsewhere is told to come here again.
    pub(super) fn call_off(&mut self, why: &'static str) {
        let Some((_, order)) = self.moving.take() else {
            return;
        };
        logged::warn!(id = self.id, why, "the match is not handed over");
        let _ = order.done.send(Err(why));
        self.tickets.servers = std::mem::take(&mut self.home);
        for peer in self.game.playing() {
            self.hand_ticket(peer);
        }
    }

    /// Ends the match for another process, unless its journal's end could not be written: nobody could take it up then, and
    /// it goes on here, or ends for that, as it was told.
    pub(super) fn move_away(&mut self) {
        self.game.end_journal(CloseCode::Moved);
        self.carry_out();
        if self.moving.is_some() {
            self.game.close(CloseCode::Moved);
        }
    }
}
