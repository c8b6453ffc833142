//! What each session is told of the others: names, and once a second who is connected how well.
//!
//! ```text
//!  hello ── wished names ─▶ PlayerList ── changed ──▶ lane: Names, to each session once
//!  links of the sessions ─────▶ └── every second ─▶ a block of 3 B a player, in everybody's next Play
//! ```
//!
//! Nothing of it enters a frame or the journal. No allocation but when a name changes.
//!
//! Who watches from a distance in time hears of names and links from the same distance: each state is kept with the tick
//! at which it was told, until none is shown less than the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::PlayerSet;
use twinstep_core::{PlayerId, Tick, codec};
use twinstep_protocol::company::{LinkQuality, Name};
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::hello::Names;
use unicode_security::skeleton;

/// Connections are looked at and told so often.
const EVERY: Duration = Duration::from_secs(1);

/// States of the names, and of the links, that are kept for those who are told later: links for 17 minutes. Of more,
/// the oldest are told to nobody.
const NAMES_KEPT: usize = 64;
const BLOCKS_KEPT: usize = 1_024;

/// What was told at which tick, oldest first; each with its number.
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

    /// A new state, told from `tick` on; what lies before the newest state of `shown` is not told any more.
    fn push(&mut self, tick: Tick, number: u32, state: T, shown: Tick) {
        let is_old =
            |states: &VecDeque<(Tick, u32, T)>| states.get(1).is_some_and(|s| s.0 <= shown);
        self.states.push_back((tick, number, state));
        while is_old(&self.states) || self.states.len() > self.kept_max {
            self.states.pop_front();
        }
    }

    /// The newest state that may be told to whom all frames before `shown` may be.
    fn at(&self, shown: Tick) -> Option<(u32, &T)> {
        let told = self.states.iter().rev().find(|state| state.0 <= shown);
        told.map(|(_, number, state)| (*number, state))
    }
}

/// See the [module](self).
pub(super) struct PlayerList {
    wished: [Name; PLAYERS_MAX],
    /// Whom [`names`](PlayerList::names) are of; none when somebody wishes for another one.
    of: Vec<(String, PlayerId)>,
    names: Names,
    /// [`names`](PlayerList::names) as they are sent; the first number is 1.
    names_told: Versions<Arc<[u8]>>,
    names_number: u32,
    blocks_told: Versions<CompanyTold>,
    blocks_number: u32,
    due: Duration,
}

impl Default for PlayerList {
    fn default() -> Self {
        PlayerList {
            wished: Default::default(),
            of: Vec::new(),
            names: Names::default(),
            names_told: Versions::new(NAMES_KEPT),
            names_number: 0,
            blocks_told: Versions::new(BLOCKS_KEPT),
            blocks_number: 0,
            due: Duration::ZERO,
        }
    }
}

impl PlayerList {
    /// What the player of a seat wants to be called, until another one says so.
    pub(super) fn wish(&mut self, player: PlayerId, name: Name) {
        self.wished[player.index()] = name;
        self.of.clear();
        self.due = Duration::ZERO;
    }

    /// What is told of the connections to whom all frames before `shown` may be told, and its number: a session is
    /// told each number once.
    pub(super) fn block(&self, shown: Tick) -> Option<(u32, &CompanyTold)> {
        self.blocks_told.at(shown)
    }

    /// The names as a message, and their number, in the same way.
    pub(super) fn names(&self, shown: Tick) -> Option<(u32, &Arc<[u8]>)> {
        self.names_told.at(shown)
    }

    /// What a player was last named; empty if it was not yet.
    pub(super) fn name_of(&self, player: PlayerId) -> String {
        let named = self.names.iter().find(|(named, _)| *named == player);
        named.map_or_else(String::new, |(_, name)| name.as_str().to_owned())
    }

    /// Whether who is there is to be looked at now; if so, the next time is set.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + EVERY;
        }
        is_due
    }

    /// How well those who are here are connected now, before `tick`; others are shown all frames before `shown`, or more.
    pub(super) fn note_links(
        &mut self,
        here: PlayerSet,
        links: &[LinkQuality; PLAYERS_MAX],
        tick: Tick,
        shown: Tick,
    ) {
        let block = CompanyTold {
            here,
            links: *links,
        };
        self.blocks_number += 1;
        let number = self.blocks_number;
        self.blocks_told.push(tick, number, block, shown);
    }

    /// Names who is there now, before `tick`; others are shown all frames before `shown`, or more.
    ///
    /// Who came first keeps its name; who looks like somebody else gets a number. Who wishes for nothing is called by
    /// its identity, and who has nothing that can be seen by its place.
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
                (_, known) if known.is_empty() => Name::new(&player.to_string()),
                (_, known) => match nth_of(identities, n) {
                    0 => known,
                    nth => known.numbered(nth as u8 + 1),
                },
            };
            let numbered = (2..).map(|number| name.numbered(number));
            // Of so many different numbers one is free.
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
                self.names_told.push(tick, number, bytes.into(), shown);
            }
            self.names = names;
        }
    }
}

/// How many players of the same identity, at the same screen, stand before this one.
fn nth_of(identities: &[(String, PlayerId)], n: usize) -> usize {
    let same = |(identity, _): &&(String, PlayerId)| *identity == identities[n].0;
    identities[..n].iter().filter(same).count()
}

/// Equal for names that a player may take for each other: by Unicode's table of look-alikes (UTS 39), in whatever case,
/// with gaps or without.
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
    fn who_wishes_for_nothing_is_called_by_its_identity() {
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

    /// Finding C9: whoever comes later and looks like somebody gets a number.
    #[test]
    fn no_two_names_look_alike() {
        let mut list = PlayerList::default();
        // Cyrillic, another case, digits for letters, invisible letters, a name that has the number already.
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
    fn sixteen_equal_names_are_told_apart() {
        let mut list = PlayerList::default();
        let identities: Vec<_> = (0..16).map(|n| (n, "sixteen letters!")).collect();
        let names = named(&mut list, &identities);
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), 16, "{names:?}");
    }

    #[test]
    fn a_state_is_told_from_its_tick_on_and_forgotten_when_nobody_is_shown_it() {
        let mut told = Versions::new(3);
        for (n, tick) in [10, 20, 30].into_iter().enumerate() {
            told.push(Tick(tick), n as u32, tick, Tick(0));
        }
        assert_eq!(told.at(Tick(9)), None);
        assert_eq!(told.at(Tick(10)), Some((0, &10)));
        assert_eq!(told.at(Tick(29)), Some((1, &20)));
        told.push(Tick(40), 3, 40, Tick(25));
        assert_eq!(told.states.len(), 3, "nobody is shown the first any more");
        told.push(Tick(50), 4, 50, Tick(25));
        assert_eq!(told.at(Tick(25)), None, "no room: it is told to nobody");
        assert_eq!(told.at(Tick(30)), Some((2, &30)));
    }
}
