//! Which tickets of an identity still let it in: those whose serial is not below the highest that is safe.
//!
//! ```text
//!  ticket 5 opens a session ───▶ plays ───▶ 5 is safe        (1..5 let nobody in any more)
//!  ticket 6 is handed down ──stored──▶ told ──▶ 6 is safe    (nor does 5)
//!  ticket 7 is handed down ── the client is killed           (6 lets it in, as often as it is shown; so would 7)
//! ```
//!
//! Invariant: a serial that is safe only rises, and only to one that the identity's client holds where a new process
//! finds it, or was let in with. So there is always a ticket that lets it in, whatever crashes.

use std::collections::BTreeMap;

/// Identities whose serials are remembered. Who has a ticket has it from the operator, so nobody else can fill this.
const IDENTITIES_MAX: usize = 65_536;

/// The safe serials of one match, by identity and whether it watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serials {
    safe: BTreeMap<(String, bool), u64>,
}

impl Serials {
    /// The lowest serial that lets an identity in, if any is refused.
    pub(crate) fn safe(&self, identity: &str, watches: bool) -> Option<u64> {
        self.safe.get(&(identity.to_owned(), watches)).copied()
    }

    /// All that are known: identity, whether it watches, serial.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, bool, u64)> + '_ {
        let safe = self.safe.iter();
        safe.map(|((identity, watches), serial)| (&**identity, *watches, *serial))
    }

    /// Raises what is safe; whether that changed anything.
    pub(crate) fn raise(&mut self, identity: &str, watches: bool, serial: u64) -> bool {
        let known = self.safe(identity, watches);
        if known.is_some_and(|known| known >= serial) {
            return false;
        }
        if known.is_none() && self.safe.len() >= IDENTITIES_MAX {
            // The lowest is the oldest: its tickets have expired before all others'.
            let oldest = self.safe.iter().min_by_key(|(_, serial)| **serial);
            if let Some(oldest) = oldest.map(|(of, _)| of.clone()) {
                self.safe.remove(&oldest);
            }
        }
        self.safe.insert((identity.to_owned(), watches), serial);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_only_rises_and_who_watches_is_counted_apart() {
        let mut serials = Serials::default();
        assert_eq!(serials.safe("anna", false), None);
        assert!(serials.raise("anna", false, 5));
        assert!(!serials.raise("anna", false, 5) && !serials.raise("anna", false, 4));
        assert!(serials.raise("anna", true, 4));
        assert_eq!(serials.safe("anna", false), Some(5));
        assert_eq!(serials.safe("anna", true), Some(4));
        assert_eq!(serials.safe("bob", false), None);
    }

    #[test]
    fn the_oldest_identity_is_forgotten_when_there_are_too_many() {
        let mut serials = Serials::default();
        for n in 0..=IDENTITIES_MAX as u64 {
            serials.raise(&format!("player {n}"), false, 1_000 + n);
        }
        assert_eq!(serials.safe.len(), IDENTITIES_MAX);
        assert_eq!(serials.safe("player 0", false), None);
        assert_eq!(serials.safe("player 1", false), Some(1_001));
    }
}
