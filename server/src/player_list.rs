//! The names and link qualities of players, as they are sent to each session.
//!
//! ```text
//!  hello ── wished names ─▶ PlayerList ── changed ──▶ lane: Names, to each session once
//!  links of the sessions ─────▶ └── every second ─▶ a block of 3 B a player, in each session's next Play
//! ```
//!
//! Frames and journals do not contain names or link qualities. Memory is allocated only when a name changes.
//!
//! A delayed spectator gets names and link qualities with the same delay as frames: each version is kept with the tick
//! from which it was sent, until every session may see the next version.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::PlayerSet;
use twinstep_core::{PlayerId, Tick, codec};
use twinstep_protocol::packet::hello::Names;
use twinstep_protocol::packet::presence::PresenceUpdate;
use twinstep_protocol::{names::Name, packet::presence::LinkQuality};
use unicode_security::skeleton;

/// The interval at which link qualities are measured and sent.
const EVERY: Duration = Duration::from_secs(1);

/// The maximum number of versions of the names, and of the link qualities, that are kept for delayed spectators: 17
/// minutes of link qualities. When there are more, the oldest are dropped unsent.
const NAMES_KEPT: usize = 64;
const BLOCKS_KEPT: usize = 1_024;

/// The versions of a value with their ticks and numbers, oldest first.
struct Versions<T> {
    states: VecDeque<(Tick, u32, T)>,
    kept_max: usize,
}

impl<T> Versions<T> {
    fn new(kept_max: usize) -> Self {
        Versions {
            states: VecDeque::new(),
            kept_max,
        }
    }

    /// Adds a version, valid from `tick` onwards. Drops versions older than the newest one visible to a session limited
    /// to `shown`.
    fn push(&mut self, tick: Tick, number: u32, state: T, shown: Tick) {
        let is_old =
            |states: &VecDeque<(Tick, u32, T)>| states.get(1).is_some_and(|s| s.0 <= shown);
        self.states.push_back((tick, number, state));
        while is_old(&self.states) || self.states.len() > self.kept_max {
            self.states.pop_front();
        }
    }

    /// The newest version that a session may see, if the session may see all frames before `shown`.
    fn at(&self, shown: Tick) -> Option<(u32, &T)> {
        let newest = self.states.iter().rev().find(|state| state.0 <= shown);
        newest.map(|(_, number, state)| (*number, state))
    }
}

pub(super) struct PlayerList {
    wished: [Name; PLAYERS_MAX],
    /// The seats for which [`names`](PlayerList::names) was computed; empty after a player asked for a new name.
    of: Vec<(String, PlayerId)>,
    names: Names,
    /// Versions of [`names`](PlayerList::names) as they are sent; the first number is 1.
    name_versions: Versions<Arc<[u8]>>,
    names_number: u32,
    block_versions: Versions<PresenceUpdate>,
    blocks_number: u32,
    due: Duration,
}

impl Default for PlayerList {
    fn default() -> Self {
        PlayerList {
            wished: Default::default(),
            of: Vec::new(),
            names: Names::default(),
            name_versions: Versions::new(NAMES_KEPT),
            names_number: 0,
            block_versions: Versions::new(BLOCKS_KEPT),
            blocks_number: 0,
            due: Duration::ZERO,
        }
    }
}

impl PlayerList {
    pub(super) fn wish(&mut self, player: PlayerId, name: Name) {
        self.wished[player.index()] = name;
        // Forces new names at the next update.
        self.of.clear();
        self.due = Duration::ZERO;
    }

    /// The newest version of the link qualities that a session may see, if it may see all frames before `shown`; with
    /// the version's number. Each version is sent to a session once.
    pub(super) fn block(&self, shown: Tick) -> Option<(u32, &PresenceUpdate)> {
        self.block_versions.at(shown)
    }

    /// Like [`block`](Self::block), for the encoded names.
    pub(super) fn names(&self, shown: Tick) -> Option<(u32, &Arc<[u8]>)> {
        self.name_versions.at(shown)
    }

    /// The current name of a player; empty if the player has no name yet.
    pub(super) fn name_of(&self, player: PlayerId) -> String {
        let named = self.names.iter().find(|(named, _)| *named == player);
        named.map_or_else(String::new, |(_, name)| name.as_str().to_owned())
    }

    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + EVERY;
        }
        is_due
    }

    /// Records the link qualities of the players that are `here`, at `tick`. All sessions may see the frames before
    /// `shown`.
    pub(super) fn record_links(
        &mut self,
        here: PlayerSet,
        links: &[LinkQuality; PLAYERS_MAX],
        tick: Tick,
        shown: Tick,
    ) {
        let block = PresenceUpdate {
            here,
            links: *links,
        };
        self.blocks_number += 1;
        let number = self.blocks_number;
        self.block_versions.push(tick, number, block, shown);
    }

    /// Names the players at `tick`. All sessions may see the frames before `shown`.
    ///
    /// An earlier player keeps its name; a later player whose name looks the same gets a number appended. A player that
    /// did not ask for a name is named after its identity, or after its seat if the identity has no visible character.
    pub(super) fn name(&mut self, identities: &[(String, PlayerId)], tick: Tick, shown: Tick) {
        if self.of == identities {
            return;
        }
        self.of = identities.to_vec();
        let mut names = Names::new();
        let mut looks: Vec<String> = Vec::new();
        for (n, (identity, player)) in identities.iter().enumerate().take(PLAYERS_MAX) {
            let wished = self.wished[player.index()];
            let name = match (wished, Name::new(identity)) {
                (wished, _) if !wished.is_empty() => wished,
                (_, known) if known.is_empty() => Name::new(&format!("p{}", player.0)),
                (_, known) => match nth_of(identities, n) {
                    0 => known,
                    nth => known.numbered(nth as u8 + 1),
                },
            };
            let numbered = (2..).map(|number| name.numbered(number));
            // More numbers are tried than players exist, so one is free.
            let (name, look) = std::iter::once(name)
                .chain(numbered)
                .map(|name| (name, look_of(&name)))
                .find(|(_, look)| !looks.contains(look))
                .unwrap_or_default();
            looks.push(look);
            names.push((*player, name));
        }
        names.sort_unstable_by_key(|(player, _)| *player);
        if names != self.names {
            let mut bytes = Vec::new();
            if codec::append(&names, &mut bytes).is_ok() {
                self.names_number += 1;
                let number = self.names_number;
                self.name_versions.push(tick, number, bytes.into(), shown);
            }
            self.names = names;
        }
    }
}

/// The number of players of the same identity before this one.
fn nth_of(identities: &[(String, PlayerId)], n: usize) -> usize {
    let same = |(identity, _): &&(String, PlayerId)| *identity == identities[n].0;
    identities[..n].iter().filter(same).count()
}

/// A key that is equal for names that players may confuse, according to Unicode's table of look-alikes (UTS 39),
/// ignoring case and spaces.
fn look_of(name: &Name) -> String {
    let lower = skeleton(name.as_str()).collect::<String>().to_lowercase();
    let again = skeleton(&lower);
    again.filter(|char| !char.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(list: &mut PlayerList, identities: &[(u8, &str)]) -> Vec<String> {
        let identities: Vec<_> = identities
            .iter()
            .map(|(n, name)| ((*name).to_owned(), PlayerId(*n)))
            .collect();
        list.name(&identities, Tick(7), Tick(7));
        let names = list.names.iter();
        names.map(|(_, name)| name.as_str().to_owned()).collect()
    }

    #[test]
    fn a_player_without_a_requested_name_is_named_after_its_identity() {
        let mut list = PlayerList::default();
        list.wish(PlayerId(2), Name::new("Robert"));
        let identities = [
            (0, "anna"),
            (3, "anna"),
            (1, "a very long identity of 32 B"),
            (2, "bob"),
            (4, "\u{3164}"),
        ];
        let names = named(&mut list, &identities);
        assert_eq!(
            names,
            ["anna", "a very long iden", "Robert", "anna 2", "p4"]
        );
        let number = list.names_number;
        named(&mut list, &identities);
        assert_eq!(list.names_number, number, "nothing changed");
        named(&mut list, &identities[..2]);
        assert_eq!(list.names_number, number + 1);
    }

    /// Finding C9: a later player whose name looks like another one's gets a number.
    #[test]
    fn names_that_look_alike_get_numbers() {
        let mut list = PlayerList::default();
        // Cyrillic, another case, digits for letters, invisible letters, a name that already has the number.
        let wishes = [
            "Paypal",
            "P\u{430}yp\u{430}l",
            "paypaI",
            "PAYPA1",
            "Pay\u{200b}pal\u{3164}",
            "Paypal 2",
            "Pay pal",
            "Anna",
        ];
        let identities: Vec<_> = (0..8).map(|n| (n, "someone")).collect();
        for (n, wish) in (0..).zip(wishes) {
            list.wish(PlayerId(n), Name::new(wish));
        }
        let names = named(&mut list, &identities);
        assert_eq!(names[0], "Paypal");
        assert_eq!(names[7], "Anna");
        for (n, name) in names.iter().enumerate() {
            let look = look_of(&Name::new(name));
            let before = names[..n].iter().map(|other| look_of(&Name::new(other)));
            assert!(before.into_iter().all(|other| other != look), "{names:?}");
        }
        assert!(
            names[1].ends_with(" 2") && names[3].ends_with(" 4"),
            "{names:?}"
        );
    }

    #[test]
    fn sixteen_equal_names_become_different() {
        let mut list = PlayerList::default();
        let identities: Vec<_> = (0..16).map(|n| (n, "sixteen letters!")).collect();
        let names = named(&mut list, &identities);
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), 16, "{names:?}");
    }

    #[test]
    fn a_version_is_sent_starting_at_its_tick_and_dropped_when_no_session_needs_it() {
        let mut versions = Versions::new(3);
        for (n, tick) in [10, 20, 30].into_iter().enumerate() {
            versions.push(Tick(tick), n as u32, tick, Tick(0));
        }
        assert_eq!(versions.at(Tick(9)), None);
        assert_eq!(versions.at(Tick(10)), Some((0, &10)));
        assert_eq!(versions.at(Tick(29)), Some((1, &20)));
        versions.push(Tick(40), 3, 40, Tick(25));
        assert_eq!(versions.states.len(), 3, "no session needs the first one");
        versions.push(Tick(50), 4, 50, Tick(25));
        assert_eq!(versions.at(Tick(25)), None, "dropped, as there is no room");
        assert_eq!(versions.at(Tick(30)), Some((2, &30)));
    }
}
