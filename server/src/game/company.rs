//! What each session is told of the others: names, and once a second who is connected how well.
//!
//! ```text
//!  hello ── wished names ─▶ Company ── changed ──▶ lane: Names, to each session once
//!  links of the sessions ─────▶ └── every second ─▶ a block of 3 B a player, in everybody's next Play
//! ```
//!
//! Nothing of it enters a frame or the journal. No allocation but when a name changes.
//!
//! Who watches from a distance in time hears of names and links from the same distance: each state is kept with the tick
//! at which it was told, until none is shown less than the next one.

use arrayvec::ArrayString;
use twinstep_core::company::{LinkQuality, NAME_BYTES_MAX, Name};
use twinstep_core::packet::company;
use twinstep_core::packet::hello::Names;

use super::*;

/// Connections are looked at and told so often.
const EVERY: Duration = Duration::from_secs(1);

/// States of the names, and of the links, that are kept for those who are told later: links for 17 minutes. Of more,
/// the oldest are told to nobody.
const NAMES_KEPT: usize = 64;
const BLOCKS_KEPT: usize = 1_024;

/// What was told at which tick, oldest first; each with its number.
struct Told<T> {
    states: VecDeque<(Tick, u32, T)>,
    kept_max: usize,
}

impl<T> Told<T> {
    fn new(kept_max: usize) -> Self {
        Told {
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

/// A block of links, as it is sent.
type Block = ArrayVec<u8, { company::BYTES_MAX }>;

/// See the [module](self).
pub(super) struct Company {
    wished: [Name; PLAYERS_MAX],
    names: Names,
    /// [`names`](Company::names) as they are sent; the first number is 1.
    names_told: Told<Arc<[u8]>>,
    names_number: u32,
    blocks_told: Told<Block>,
    blocks_number: u32,
    due: Duration,
}

impl Default for Company {
    fn default() -> Self {
        Company {
            wished: Default::default(),
            names: Names::default(),
            names_told: Told::new(NAMES_KEPT),
            names_number: 0,
            blocks_told: Told::new(BLOCKS_KEPT),
            blocks_number: 0,
            due: Duration::ZERO,
        }
    }
}

impl Company {
    /// What the player of a seat wants to be called, until another one says so.
    pub(super) fn wish(&mut self, player: PlayerId, name: Name) {
        self.wished[player.index()] = name;
        self.due = Duration::ZERO;
    }

    /// What is told of the connections to whom all frames before `shown` may be told, and its number: a session is
    /// told each number once.
    pub(super) fn block(&self, shown: Tick) -> Option<(u32, &[u8])> {
        let (number, block) = self.blocks_told.at(shown)?;
        Some((number, block))
    }

    /// The names as a message, and their number, in the same way.
    pub(super) fn names(&self, shown: Tick) -> Option<(u32, &Arc<[u8]>)> {
        self.names_told.at(shown)
    }

    /// Names who is there now, before `tick`; others are shown all frames before `shown`, or more.
    fn name(&mut self, identities: &[(String, PlayerId)], tick: Tick, shown: Tick) {
        let mut names = Names::new();
        for (n, (identity, player)) in identities.iter().enumerate().take(PLAYERS_MAX) {
            let wished = self.wished[player.index()];
            let name = match wished.is_empty() {
                false => wished,
                true => by_identity(identity, nth_of(identities, n)),
            };
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

/// How many players of the same identity stand before this one.
fn nth_of(identities: &[(String, PlayerId)], n: usize) -> usize {
    let same = |(identity, _): &&(String, PlayerId)| *identity == identities[n].0;
    identities[..n].iter().filter(same).count()
}

/// Who wishes for nothing is called by its identity, and a second one at the same screen gets a number.
fn by_identity(identity: &str, nth: usize) -> Name {
    if nth == 0 {
        return Name::new(identity);
    }
    let mut text = ArrayString::<{ NAME_BYTES_MAX + 4 }>::new();
    for char in identity.chars().take(NAME_CHARS_WITH_NUMBER) {
        text.push(char);
    }
    text.push(' ');
    text.push(char::from(b'1' + nth as u8));
    Name::new(&text)
}

/// Characters of an identity that leave room for a number.
const NAME_CHARS_WITH_NUMBER: usize = 12;

impl<S: Simulation> Match<S> {
    /// Looks at who is there, once a second.
    pub(super) fn look_around(&mut self, now: Duration) {
        if now < self.company.due {
            return;
        }
        self.company.due = now + EVERY;
        let next = self.world.tick();
        let shown = next.back(self.config.spectators.delay_ticks);
        self.company.name(&self.identities, next, shown);
        let mut links = [LinkQuality::default(); PLAYERS_MAX];
        let mut here = PlayerSet::default();
        for peer in self.peers.iter().filter(|p| p.stage == Stage::Playing) {
            let rtt = peer.link.rtt().unwrap_or_default();
            for player in &peer.players {
                here.set(*player, true);
                let newest = self.seats[player.index()].newest();
                let margin = newest.map_or(i64::from(i8::MIN), |newest| {
                    i64::from(newest.0) - i64::from(next.0)
                });
                links[player.index()] = LinkQuality {
                    rtt_ms: rtt.as_millis().min(u16::MAX.into()) as u16,
                    loss_percent: (peer.link.loss() * 100.0).round() as u8,
                    margin_ticks: match self.config.command_delay {
                        0 => margin.clamp(-128, 127) as i8,
                        _ => 0,
                    },
                };
            }
        }
        let mut block = [0; company::BYTES_MAX];
        let mut out = Writer::new(&mut block);
        let written = company::write(&mut out, here, |player| links[player.index()]);
        debug_assert!(written.is_ok(), "a block has room for everybody");
        let len = out.len();
        let block = block[..len].iter().copied().collect();
        self.company.blocks_number += 1;
        let number = self.company.blocks_number;
        self.company.blocks_told.push(next, number, block, shown);
    }

    /// Tells the names to sessions that do not know them; not behind a world, which is dearer.
    pub(super) fn introduce(&mut self) {
        for at in 0..self.peers.len() {
            let shown = self.shown_to(at);
            let peer = &mut self.peers[at];
            if !matches!(peer.stage, Stage::CatchingUp | Stage::Playing) {
                continue;
            }
            let Some((number, names)) = self.company.names(shown) else {
                continue;
            };
            if peer.names_told != number
                && peer.lane_out.is_idle()
                && peer.lane_out.push(message::NAMES, names.clone()).is_ok()
            {
                peer.names_told = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wishes_for_nothing_is_called_by_its_identity() {
        let mut company = Company::default();
        let identities = [
            (0, "anna"),
            (3, "anna"),
            (1, "a very long identity of 32 B"),
            (2, "bob"),
        ];
        let identities = identities.map(|(n, name)| (name.to_owned(), PlayerId(n)));
        company.wish(PlayerId(2), Name::new("Robert"));
        company.name(&identities, Tick(7), Tick(7));
        let names: Vec<&str> = company
            .names
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        assert_eq!(names, ["anna", "a very long iden", "Robert", "anna 2"]);
        let number = company.names_number;
        company.name(&identities, Tick(7), Tick(7));
        assert_eq!(company.names_number, number, "nothing changed");
        company.name(&identities[..2], Tick(9), Tick(9));
        assert_eq!(company.names_number, number + 1);
    }

    #[test]
    fn a_state_is_told_from_its_tick_on_and_forgotten_when_nobody_is_shown_it() {
        let mut told = Told::new(3);
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
