//! What each session is told of the others: names, and once a second who is connected how well.
//!
//! ```text
//!  hello ── wished names ─▶ Company ── changed ──▶ lane: Names, to each session once
//!  links of the sessions ─────▶ └── every second ─▶ a block of 3 B a player, in everybody's next Play
//! ```
//!
//! Nothing of it enters a frame or the journal. No allocation but when a name changes.

use arrayvec::ArrayString;
use twinstep_core::company::{LinkQuality, NAME_BYTES_MAX, Name};
use twinstep_core::packet::company;
use twinstep_core::packet::hello::Names;

use super::*;

/// Connections are looked at and told so often.
const EVERY: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Company {
    wished: [Name; PLAYERS_MAX],
    names: Names,
    /// [`names`](Company::names) as it is sent, and its number; 0: nobody was here yet.
    bytes: Arc<[u8]>,
    names_number: u32,
    block: ArrayVec<u8, { company::BYTES_MAX }>,
    block_number: u32,
    due: Duration,
}

impl Company {
    /// What the player of a seat wants to be called, until another one says so.
    pub(super) fn wish(&mut self, player: PlayerId, name: Name) {
        self.wished[player.index()] = name;
        self.due = Duration::ZERO;
    }

    /// What is told of the connections now, and its number: a session is told each number once.
    pub(super) fn block(&self) -> (u32, &[u8]) {
        (self.block_number, &self.block)
    }

    /// The names as a message, and their number.
    pub(super) fn names(&self) -> (u32, &Arc<[u8]>) {
        (self.names_number, &self.bytes)
    }

    fn name(&mut self, identities: &[(String, PlayerId)]) {
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
                self.bytes = bytes.into();
                self.names_number += 1;
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
        self.company.name(&self.identities);
        let mut links = [LinkQuality::default(); PLAYERS_MAX];
        let mut here = PlayerSet::default();
        let next = self.world.tick();
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
        self.company.block.clear();
        self.company.block.extend(block[..len].iter().copied());
        self.company.block_number += 1;
    }

    /// Tells the names to sessions that do not know them; not behind a world, which is dearer.
    pub(super) fn introduce(&mut self) {
        let (number, names) = self.company.names();
        let playing = |p: &&mut Peer| matches!(p.stage, Stage::CatchingUp | Stage::Playing);
        for peer in self.peers.iter_mut().filter(playing) {
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
        company.name(&identities);
        let names: Vec<&str> = company
            .names
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        assert_eq!(names, ["anna", "a very long iden", "Robert", "anna 2"]);
        let number = company.names_number;
        company.name(&identities);
        assert_eq!(company.names_number, number, "nothing changed");
        company.name(&identities[..2]);
        assert_eq!(company.names_number, number + 1);
    }
}
