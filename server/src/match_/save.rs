//! Saves a match, and loads a save into a new match. The seats of the new match wait for their owners.
//!
//! ```text
//!  save: the world at the beginning of its turn, and the owner of each seat ─▶ one file
//!  load: the file ─▶ world ─▶ a new match ─▶ waits for its first player ─▶ plays
//!                    │ seats: each waits for its owner, however long; others cannot take it
//!                    ╰ give_seat: the host names another owner
//! ```
//!
//! A save holds every command whose result a client can have seen: clients see only complete turns, and the save holds
//! all complete turns. Orders for a later turn are not saved.
//!
//! Invariant: only its owner takes a reserved seat. The match waits at most 5 s for an owner that never connects, and
//! does not kick it: after [`EXCUSED`](super::resume) its player counts as dropped, and stays in the world.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use twinstep_core::bounds::{COUNT_MAX, drop_after_ticks};
use twinstep_core::world::{Presence, World};
use twinstep_core::{Key, PlayerId, Simulation, Tick, codec};
use twinstep_protocol::journal::IDENTITY_BYTES_MAX;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::save::{self, Save, SaveWriteError};

use super::resume::EXCUSED;
use super::{Gathering, Match};
use crate::clock::Return;
use crate::config::MatchConfig;
use crate::encoding::Saving;
use crate::errors::{LoadError, MatchStartError, SeatError};
use crate::history::History;
use crate::hooks::Resolver;

/// A saved state from an older version of the game, or with different rules.
#[derive(Clone, Copy, Debug)]
pub struct OldSave<'a> {
    /// The [`VERSION`](Simulation::VERSION) that saved it, at most the current one.
    pub version: u32,
    /// The digest of the rules used in that match.
    pub rules_digest: u64,
    /// The encoded state, as the old version's type: see [`read`](OldSave::read).
    pub sim: &'a [u8],
    /// Queries that do not get an answer, not even `None`: the tick whose step asked, and the key. A state that waits
    /// for one of them must stop waiting.
    pub unanswered: &'a [(Tick, Key)],
}

impl OldSave<'_> {
    /// Decodes the state as a type of the old version.
    ///
    /// # Errors
    /// If the bytes are not a value of this type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let version = self.version;
        codec::decode_whole(self.sim)
            .map_err(|error| format!("the state of version {version} cannot be read: {error}"))
    }
}

/// An author's function that turns an older state into the current one, or explains why it cannot. Players keep their
/// seats; their inputs become neutral.
pub type Upgrade<S> = fn(OldSave<'_>) -> Result<S, String>;

impl<S: Simulation> Match<S> {
    /// Saves the match: its world, the owner of each seat, its game, version, the digest of its rules, and the game's
    /// [label](Simulation::save_label). Another match can [start](Match::load) from it. This match continues. In the
    /// middle of a turn, the save holds the state at the start of the turn.
    ///
    /// Costs one encoding of the world, during which the match waits (about 4 ms for 1 MB), and memory for its bytes.
    ///
    /// # Errors
    /// If the world exceeds 8 MB, or its [label](Simulation::save_label) 256 bytes.
    pub fn save(&self) -> Result<Vec<u8>, SaveWriteError> {
        save::write(
            &self.origin.hello,
            &*self.world.rules,
            self.config.unix_time,
            self.config.command_delay,
            self.world.of_turn(),
            self.owners(),
        )
    }

    // The same as `save`, to be encoded elsewhere. Costs a copy of the world.
    pub(super) fn saving(&self, by: Option<PlayerId>) -> Saving {
        let (hello, world) = (self.origin.hello.clone(), self.world.of_turn().clone());
        let rules = self.world.rules.clone();
        let (began, delay) = (self.config.unix_time, self.config.command_delay);
        let owners: Vec<(PlayerId, String)> = self
            .owners()
            .map(|(player, owner)| (player, owner.to_owned()))
            .collect();
        Saving::new(by, move || {
            let owners = owners.iter().map(|(player, owner)| (*player, &**owner));
            save::write(&hello, &*rules, began, delay, &world, owners)
        })
    }

    fn owners(&self) -> impl Iterator<Item = (PlayerId, &str)> {
        let world = self.world.of_turn();
        let seats = (0..self.seats.len() as u8).map(PlayerId);
        seats.filter_map(move |player| {
            let is_in = world.presence(player) != Presence::Absent;
            let owner = self.people.identity_of(player).filter(|_| is_in);
            let owner = owner.or(self.people.expected(player));
            Some((player, owner.or(self.people.last_owner(player))?))
        })
    }

    /// Creates a match that starts from a [save](Match::save), without sessions. Identities get their former players
    /// back, even players that had left, in any order of arrival, with any valid ticket, even years later: see
    /// [`give_seat`](Match::give_seat). The match waits for its first player, and then up to 5 s for the others. With a
    /// [`start_when`](MatchConfig::start_when), it first waits in a lobby, with the rules of the save.
    ///
    /// The world comes from the save, with its tick, its roster, and the tick length that its steps simulate. All
    /// policies come from `config`, including the command delay; `config.start` is ignored, and
    /// [`reserved`](MatchConfig::reserved) seats take precedence.
    ///
    /// `upgrade` is used if the save has an older version or different rules. Without it, such a save is refused.
    ///
    /// # Errors
    /// If the bytes are not a whole save, or a save that this program cannot continue: see [`LoadError`].
    pub fn load(
        mut config: MatchConfig,
        save: &[u8],
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
        upgrade: Option<Upgrade<S>>,
    ) -> Result<Self, LoadError> {
        config.check().map_err(MatchStartError::from)?;
        let hello = Hello::of::<S>(&rules, &config.build).map_err(MatchStartError::from)?;
        let save = save::read(save)?;
        // Drops the pause and the speed that players requested.
        let world = world_of(&save, &hello, upgrade)?.paced(config.cadence());
        let seats = config.players_max;
        let owners = save.owners.iter().map(|(player, _)| *player);
        if let Some(player) = world
            .seated()
            .iter()
            .chain(owners)
            .find(|player| player.index() >= seats)
        {
            return Err(LoadError::Seats { seats, player });
        }
        config.start = world.tick();
        let command_delay = config.command_delay;
        let mut history = History::new(world.tick());
        history.keep_world(&world, false);
        let mut match_ = Match::begin(config, hello, world, history, rules, resolver)?;
        match_.origin.asked_delay = Some(command_delay);
        match_.await_owners(&save.owners);
        match_.gathering = Gathering::of(&match_.config, &match_.origin.hello);
        match_
            .snapshots
            .weigh(match_.clock.now, &match_.world, &mut match_.diagnostics);
        match_.open_queries(World::open_queries);
        Ok(match_)
    }

    fn await_owners(&mut self, owners: &[(PlayerId, String)]) {
        let next = self.world.current.tick();
        let tick = self.world.current.turn().cadence.tick();
        let excused = (EXCUSED.as_nanos() / tick.as_nanos()) as u32;
        for (n, seat) in self.seats.iter_mut().enumerate() {
            seat.expect_commands_from(self.world.current.next_seq(PlayerId(n as u8)));
            seat.expect_claims_from(next.0);
            seat.given = next + excused.saturating_sub(drop_after_ticks(tick));
        }
        for (player, identity) in owners {
            let identity = match self.config.reserved_for(*player) {
                Some(reserved) => reserved.to_owned(),
                None => identity.clone(),
            };
            self.people.views[player.index()] = next;
            self.people.expect(*player, Some(&identity));
            if self.world.current.presence(*player) != Presence::Absent {
                self.people.seat(*player, &identity);
            }
        }
        self.clock.returning = Some(Return {
            players: self.world.current.present(),
            since: None,
            from_first: true,
        });
    }

    pub(super) fn reserved_for(&self, player: PlayerId) -> Option<&str> {
        let expected = self.people.expected(player);
        expected.or_else(|| self.config.reserved_for(player))
    }

    pub(super) fn is_free_for(&self, player: PlayerId, identity: &str) -> bool {
        let reserved = self.reserved_for(player);
        self.people.identity_of(player).is_none() && reserved.is_none_or(|own| own == identity)
    }

    /// Assigns a seat to an identity, which takes it when it connects. No session may be playing the seat. Until then,
    /// other identities cannot take the seat. The world keeps all data of the seat's player. The former owner, if any,
    /// loses the seat.
    ///
    /// # Errors
    /// If the seat does not exist or is played, or the identity has a session: see [`SeatError`].
    pub fn give_seat(&mut self, player: PlayerId, identity: &str) -> Result<(), SeatError> {
        let seats = self.seats.len();
        if player.index() >= seats {
            return Err(SeatError::NoSeat { player, seats });
        }
        if !(1..=IDENTITY_BYTES_MAX).contains(&identity.len()) {
            let bytes = identity.len();
            return Err(SeatError::Identity { bytes });
        }
        if let Some(at) = self.people.find(|p| p.players.contains(&player)) {
            let identity = self.people[at].identity.name.clone();
            return Err(SeatError::Played { player, identity });
        }
        if let Some(at) = self.people.find(|p| p.plays_as(identity)) {
            let player = self.people[at].players.first().copied();
            let (identity, player) = (identity.to_owned(), player.unwrap_or(PlayerId(0)));
            return Err(SeatError::Plays { identity, player });
        }
        if self.people.identity_of(player).is_some() {
            self.pass_on(player, identity);
        }
        self.people.expect(player, Some(identity));
        self.write_reserved(player, identity);
        Ok(())
    }

    fn pass_on(&mut self, player: PlayerId, identity: &str) {
        let refused = self.seats[player.index()].purge();
        self.seats[player.index()].expect_new_claims();
        let former = self.people.unseat(player).unwrap_or_default();
        self.people.seat(player, identity);
        for refused in refused {
            self.people.away.refuse(self.clock.now, &former, refused);
        }
        self.report_unseated(&former);
    }

    /// Ends all reservations for an identity. Returns `true` if there was one.
    pub(super) fn stop_expecting(&mut self, identity: &str) -> bool {
        let theirs: Vec<PlayerId> = self
            .people
            .all_expected()
            .filter(|(_, expected)| *expected == identity)
            .map(|(player, _)| player)
            .collect();
        for player in &theirs {
            self.people.expect(*player, None);
            self.write_reserved(*player, "");
        }
        !theirs.is_empty()
    }

    fn write_reserved(&mut self, player: PlayerId, identity: &str) {
        self.journal.write(&mut self.outbox, |recorder, out| {
            recorder.reserved(player, identity, out)
        });
    }

    pub(super) fn record_reserved(&mut self) {
        let expected: Vec<(PlayerId, String)> = self
            .people
            .all_expected()
            .map(|(player, identity)| (player, identity.to_owned()))
            .collect();
        for (player, identity) in expected {
            self.write_reserved(player, &identity);
        }
    }
}

fn world_of<S: Simulation>(
    save: &Save<'_>,
    ours: &Hello,
    upgrade: Option<Upgrade<S>>,
) -> Result<World<S>, LoadError> {
    let about = &save.about;
    if about.game != ours.game {
        let (expected, got) = (ours.game.clone(), about.game.clone());
        return Err(LoadError::Game { expected, got });
    }
    let (saved, version) = (about.sim_version, ours.version);
    if saved > version {
        return Err(LoadError::Newer { saved, version });
    }
    let has_our_rules = about.rules_digest == ours.rules;
    let world = if saved == version && has_our_rules {
        codec::decode_whole::<World<S>>(save.world).map_err(|_| LoadError::State { version })?
    } else {
        let Some(upgrade) = upgrade else {
            return Err(match has_our_rules || saved < version {
                true => LoadError::Older { saved, version },
                false => LoadError::Rules,
            });
        };
        let old = OldSave {
            version: saved,
            rules_digest: about.rules_digest,
            sim: save.sim,
            unanswered: &save.shell.unanswered,
        };
        World::in_shell(upgrade(old).map_err(LoadError::Upgrade)?, &save.shell)
    };
    let is_sound = world.tick().0 <= COUNT_MAX
        && world.is_sound()
        && world.tick() == save.shell.tick()
        && world.turn().began == world.tick();
    is_sound
        .then_some(world)
        .ok_or(LoadError::State { version })
}
