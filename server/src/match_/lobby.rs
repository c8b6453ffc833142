//! A match that waits for its players: its guests, the rules that its host chooses, and its start.
//!
//! ```text
//!  connect ─▶ hello ─▶ guest ── Lobby, each second ──▶ shows who is there
//!                        │  └── rules, if it lacks the chosen ones ◀── choose: another map
//!                        │◀── has these rules; ready
//!                        ▼
//!      all ready, and `StartWhen` holds, or `start` ─▶ journal ─▶ welcome, world ─▶ all play ─▶ first tick: all join
//! ```
//!
//! Until the start the clock does not run: no tick is sealed, no player is dropped or charged, and the journal is
//! empty. So a crash before the start loses only the lobby. A seat becomes free as soon as its session is gone, unless
//! a loaded match keeps it for its owner.
//!
//! Invariant: each choice of rules is sent to a session at most once, and rules for an identity are rate-limited like
//! its joins.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::KEEP_ALIVE;
use twinstep_core::frame::PlayerSet;
use twinstep_core::world::{Presence, World};
use twinstep_core::{PlayerId, Simulation, codec};
use twinstep_protocol::lobby::{Lobby, LobbyMessage, pack_rules};
use twinstep_protocol::names::Name;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::packet::message;

use super::resume::EXCUSED;
use super::{Gathering, Match, Start};
use crate::config::StartWhen;
use crate::errors::MatchStartError;
use crate::history::History;
use crate::incident::{Incident, Trouble};
use crate::journal::JournalOut;
use crate::outbox::{Outbox, Output};
use crate::peer::{Guest, Peer};
use crate::server_world::ServerWorld;

// A guest is sent the lobby at this interval, and when it changes.
const SHOW_EVERY: Duration = Duration::from_secs(1);
/// After the start, the first tick waits this long for the guests' worlds. Guests with slower connections join later.
const LOADING_MAX: Duration = Duration::from_secs(30);

impl<S: Simulation> Match<S> {
    /// The lobby of a match that waits for its players. Returns `None` once the match has started.
    #[must_use]
    pub fn lobby(&self) -> Option<&Lobby> {
        self.gathering().map(|gathering| &gathering.shown)
    }

    fn gathering(&self) -> Option<&Gathering> {
        let gathering = self.gathering.as_ref();
        gathering.filter(|gathering| gathering.started.is_none())
    }

    /// Starts a match that waits for its players, whether they are ready or not. The rules can no longer change. The
    /// first tick is sealed when the connected players have their worlds, at most 30 s later. Returns `true` if the
    /// match was waiting.
    pub fn start(&mut self) -> bool {
        let now = self.clock.now;
        let waits = self.closed.is_none() && self.gathering().is_some();
        let Some(gathering) = self.gathering.as_mut().filter(|_| waits) else {
            return false;
        };
        gathering.started = Some(now);
        let keeps_journal = gathering.keeps_journal;
        // The departure of a player that is not in the world needs no frame.
        let world = &self.world.current;
        let is_absent = |player| world.presence(player) == Presence::Absent;
        self.sealer.forget_changes(is_absent);
        if keeps_journal {
            self.begin_journal();
        }
        self.snapshots
            .weigh(now, &self.world, &mut self.diagnostics);
        for peer in self.people.iter_mut() {
            if let Some(greeting) = peer.greeting_mut() {
                greeting.ask(now);
            }
        }
        true
    }

    /// Replaces the rules, and the simulation with which the match starts, while the match waits for its players.
    /// Afterwards, no player counts as ready. A guest that lacks the rules gets them if it accepts rules
    /// (`SessionConfig::without_rules`), and is removed otherwise. Costs a pass over both, and the compression of the
    /// rules: about ten milliseconds per megabyte. To resume the match later, pass the chosen rules: the journal names
    /// them by their digest.
    ///
    /// # Errors
    /// If the match has started, or was loaded from a save; if the rules take more than 1 MiB; if rules or simulation
    /// hold a NaN, or cannot be journalled. In that case, the previous choice stays.
    pub fn choose(&mut self, sim: S, rules: Arc<S::Rules>) -> Result<(), MatchStartError> {
        let Some(gathering) = self.gathering() else {
            return Err(MatchStartError::Started);
        };
        if self.origin.start.is_none() {
            return Err(MatchStartError::Loaded);
        }
        let (keeps_journal, choice) = (gathering.keeps_journal, gathering.shown.choice + 1);
        let hello = Hello::of::<S>(&rules, &self.config.build)?;
        let packed = pack_rules(&*rules, hello.rules)
            .map_err(|bytes| MatchStartError::RulesTooLarge { bytes })?;
        let world = World::new(sim, self.config.start).clocked(self.config.cadence());
        let start = Start::of(&world)?;
        if keeps_journal {
            JournalOut::start(&hello, &self.config, &world, &mut Outbox::new())?;
        }
        let mut history = History::new(self.config.start);
        history.keep_world(&world, false);
        self.world = ServerWorld::new(world, history, rules)?;
        self.origin.hello = hello;
        self.origin.start = Some(start);
        self.origin.packed_rules = Some(packed).into();
        if let Some(gathering) = &mut self.gathering {
            (gathering.shown.choice, gathering.shown.rules) = (choice, self.origin.hello.rules);
            gathering.number += 1;
        }
        let digest = self.origin.hello.rules;
        let mut at = 0;
        while at < self.people.len() {
            let guest = self.people[at].guest_mut();
            if guest.is_none_or(|guest| guest.takes(choice, digest)) {
                at += 1;
            } else {
                self.leave_unseated(at, CloseCode::WrongRules);
            }
        }
        Ok(())
    }

    // Checks that a journal can be kept, and keeps it from the start of the match. Returns `false` if the match has
    // started.
    pub(super) fn keep_journal_later(&mut self) -> Result<bool, MatchStartError> {
        if self.gathering().is_none() {
            return Ok(false);
        }
        let (hello, world) = (&self.origin.hello, &self.world.current);
        JournalOut::<S>::start(hello, &self.config, world, &mut Outbox::new())?;
        if let Some(gathering) = &mut self.gathering {
            gathering.keeps_journal = true;
        }
        Ok(true)
    }

    pub(super) fn forgo_journal_later(&mut self) {
        if let Some(gathering) = &mut self.gathering {
            gathering.keeps_journal = false;
        }
    }

    fn begin_journal(&mut self) {
        let (hello, world) = (&self.origin.hello, &self.world.current);
        match JournalOut::start(hello, &self.config, world, &mut self.outbox) {
            Ok(journal) => self.journal = journal,
            Err(error) => {
                let tick = self.world.current.tick();
                let incident = Incident::new(tick, Trouble::Journal, &error.to_string());
                self.diagnostics.report(incident);
                return self.forgo_journal();
            }
        }
        for (identity, ruling) in self.people.lineages.iter() {
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.ruling(ruling, identity, out)
            });
        }
        self.record_reserved();
    }

    pub(super) fn refusal(&self, hello: &Hello) -> Option<CloseCode> {
        let lacks_rules = || hello.rules != self.origin.hello.rules;
        self.origin.hello.refusal(hello).or_else(|| {
            (lacks_rules() && self.packed_rules().is_none()).then_some(CloseCode::WrongRules)
        })
    }

    // The message with the rules; `None` if they are too large to be sent.
    fn packed_rules(&self) -> Option<&Arc<[u8]>> {
        let pack = || pack_rules(&*self.world.rules, self.origin.hello.rules).ok();
        self.origin.packed_rules.get_or_init(pack).as_ref()
    }

    // The message with the rules, if a joining session lacks them and was not sent them.
    pub(super) fn rules_for(&self, at: usize, hello: &Hello) -> Option<Arc<[u8]>> {
        let choice = self.gathering.as_ref().map_or(0, |g| g.shown.choice);
        let is_sent = match self.people[at].guest() {
            Some(guest) => guest.has(choice) || guest.sent == choice,
            None => hello.rules == self.origin.hello.rules,
        };
        (!is_sent).then(|| self.packed_rules().cloned()).flatten()
    }

    // Takes a session into the lobby, unless it is already there. Returns `false` if the match has started.
    pub(super) fn take_guest(&mut self, now: Duration, at: usize, hello: &Hello) -> bool {
        let Some(gathering) = self.gathering() else {
            return false;
        };
        let choice = gathering.shown.choice;
        let has = hello.rules == self.origin.hello.rules;
        let peer = &mut self.people[at];
        let (id, players) = (peer.id, peer.players.clone());
        if let Some(greeting) = peer.greeting_mut()
            && greeting.guest.is_none()
        {
            let guest = Guest::new(hello.clone(), if has { choice } else { 0 }, now);
            greeting.guest = Some(Box::new(guest));
            for (n, player) in players.iter().enumerate() {
                let name = hello.names.get(n).copied().unwrap_or_default();
                self.player_list.wish(*player, name);
            }
            self.outbox.push(Output::Settled { peer: id });
        }
        true
    }

    pub(super) fn gather(&mut self, now: Duration) {
        if self.gathering().is_some() {
            self.free_lost_seats();
            self.show_lobby(now);
            if !self.is_start_due() {
                return;
            }
            self.start();
        }
        self.join_guests(now);
        let is_late = |since| now.saturating_sub(since) >= LOADING_MAX;
        if let Some(gathering) = &self.gathering
            && (self.loading_players().is_empty() || gathering.started.is_some_and(is_late))
        {
            self.gathering = None;
            // For a loaded match, the lobby was also the wait for its players.
            if self.clock.returning.take().is_some() {
                self.clock.excused_until = now + EXCUSED;
            }
        }
    }

    // The players for which the first tick waits. `None` once the match runs.
    pub(super) fn awaited_at_start(&self) -> Option<PlayerSet> {
        match (&self.gathering, self.gathering()) {
            (None, _) => None,
            (Some(_), None) => Some(self.loading_players()),
            (_, Some(gathering)) => {
                let players = gathering.shown.players.iter();
                let unready = players.filter(|player| !player.ready);
                Some(unready.map(|player| player.player).collect())
            }
        }
    }

    fn loading_players(&self) -> PlayerSet {
        let joins = |peer: &&Peer| peer.joins() || peer.guest().is_some();
        let joining = self.people.iter().filter(joins);
        joining.flat_map(|peer| peer.players.clone()).collect()
    }

    fn free_lost_seats(&mut self) {
        for player in (0..self.seats.len() as u8).map(PlayerId) {
            let is_held = self.people.iter().any(|p| p.players.contains(&player));
            let is_taken = self.people.identity_of(player).is_some();
            if !is_held && is_taken && self.people.expected(player).is_none() {
                self.free(player);
            }
        }
    }

    fn show_lobby(&mut self, now: Duration) {
        let digest = self.origin.hello.rules;
        let lacks = |peer: &Peer| {
            peer.guest()
                .is_some_and(|guest| guest.hello.rules != digest)
        };
        let packed = match self.people.iter().any(lacks) {
            true => self.packed_rules().cloned(),
            false => None,
        };
        let Some(gathering) = &mut self.gathering else {
            return;
        };
        let choice = gathering.shown.choice;
        let mut lobby = Lobby::new(choice, digest, gathering.shown.start.clone());
        for player in (0..self.seats.len() as u8).map(PlayerId) {
            let own = |p: &&Peer| p.players.contains(&player);
            if let Some(guest) = self.people.iter().find(own).and_then(Peer::guest) {
                let name = Name::new(&self.player_list.name_of(player));
                lobby.add(player, name, guest.has(choice), guest.is_ready(choice));
            }
        }
        if lobby != gathering.shown {
            gathering.shown = lobby;
            gathering.number += 1;
        }
        for peer in self.people.iter_mut() {
            let is_idle = peer.lane_out.is_idle();
            let Some(guest) = peer.guest_mut() else {
                continue;
            };
            guest.settle(choice, digest);
            if !is_idle {
                continue;
            }
            let (lacks, is_first) = (!guest.has(choice), guest.sent == 0);
            let shown_for = now.saturating_sub(guest.shown_at);
            let is_changed = guest.shown != gathering.number && shown_for >= KEEP_ALIVE;
            let is_due = guest.shown == 0 || is_changed || shown_for >= SHOW_EVERY;
            // Rules count as a join of the identity, unless older ones are still on their way.
            let rules = match lacks && guest.sent != choice && (!is_first || peer.count_rules(now))
            {
                true => packed.clone(),
                false => None,
            };
            if is_due || rules.is_some() {
                let shown = LobbyMessage {
                    seats: peer.players.clone(),
                    lobby: gathering.shown.clone(),
                };
                let mut bytes = Vec::new();
                if codec::append(&shown, &mut bytes).is_ok() {
                    // The lane was idle, so it has space.
                    let _ = peer.lane_out.push(message::LOBBY, bytes.into());
                }
            }
            let is_sent = rules.is_some_and(|it| peer.lane_out.push(message::RULES, it).is_ok());
            if let Some(guest) = peer.guest_mut() {
                if is_due || is_sent {
                    (guest.shown, guest.shown_at) = (gathering.number, now);
                }
                if is_sent {
                    guest.sent = choice;
                }
            }
        }
    }

    // In the lobby of a loaded match, owners come and go, and keep their seats.
    pub(super) fn keeps_seat(&self, player: PlayerId) -> bool {
        self.gathering().is_some() && self.people.expected(player).is_some()
    }

    fn is_start_due(&self) -> bool {
        let Some(lobby) = self.lobby() else {
            return false;
        };
        let all_ready = lobby.players.iter().all(|player| player.ready);
        let is_there = |name: &String| {
            let mut guests = self.people.iter().filter(|p| p.guest().is_some());
            guests.any(|p| p.plays_as(name))
        };
        all_ready
            && match &self.config.start_when {
                StartWhen::Immediately => true,
                StartWhen::Players(players) => lobby.players.len() >= *players,
                StartWhen::Identities(identities) => identities.iter().all(is_there),
                StartWhen::HostSays => false,
            }
    }

    fn join_guests(&mut self, now: Duration) {
        let mut at = 0;
        while at < self.people.len() {
            let id = self.people[at].id;
            if let Some(guest) = self.people[at].guest() {
                let hello = guest.hello.clone();
                self.join(now, at, &hello);
            }
            at += usize::from(self.people.position(id) == Some(at));
        }
    }

    // The number of seats that this identity may not take, because they are kept for awaited identities.
    pub(super) fn reserved_seats(&self, identity: &str) -> usize {
        let StartWhen::Identities(awaited) = &self.config.start_when else {
            return 0;
        };
        let is_missing = |name: &&String| self.people.seats_of(name).next().is_none();
        match self.gathering().is_none() || awaited.iter().any(|name| name == identity) {
            true => 0,
            false => awaited.iter().filter(is_missing).count(),
        }
    }
}
