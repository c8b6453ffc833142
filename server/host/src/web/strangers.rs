//! [`Strangers`]: the connections whose client has not presented a valid ticket yet.
//!
//! Invariant: there are at most [`STRANGERS_MAX`] such connections in total, and [`FROM_ONE_MAX`] from one address.
//! They take at most 64 kB each, so at most 32 MB.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const STRANGERS_MAX: usize = 512;
/// The maximum number of unauthenticated connections from one IPv4 address, or one IPv6 network: enough for several
/// players behind one router.
pub(super) const FROM_ONE_MAX: usize = 32;
/// If there are this many connections, a dial must first prove that its address is real.
const PROOF_FROM: usize = 64;

/// Clones share the count.
#[derive(Clone, Default)]
pub(super) struct Strangers(Arc<Mutex<StrangerCounts>>);

#[derive(Default)]
struct StrangerCounts {
    all: usize,
    from: BTreeMap<u64, usize>,
}

pub(super) struct StrangerPlace {
    strangers: Strangers,
    network: u64,
}

impl Strangers {
    pub(super) fn want_proof(&self) -> bool {
        self.lock().all >= PROOF_FROM
    }

    /// A slot for a dial from this address. Returns `None` if there is none.
    pub(super) fn take(&self, from: IpAddr) -> Option<StrangerPlace> {
        let network = network(from);
        let mut counts = self.lock();
        if counts.all >= STRANGERS_MAX {
            return None;
        }
        let own = counts.from.entry(network).or_default();
        if *own >= FROM_ONE_MAX {
            return None;
        }
        *own += 1;
        counts.all += 1;
        let strangers = self.clone();
        Some(StrangerPlace { strangers, network })
    }

    fn lock(&self) -> MutexGuard<'_, StrangerCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StrangerPlace {
    fn drop(&mut self) {
        let mut counts = self.strangers.lock();
        counts.all -= 1;
        if let Some(own) = counts.from.get_mut(&self.network) {
            *own -= 1;
            if *own == 0 {
                counts.from.remove(&self.network);
            }
        }
    }
}

/// Returns the IPv4 address, or the network of an IPv6 address: one host can use every address in its network.
fn network(from: IpAddr) -> u64 {
    match from.to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        // The number of an IPv6 network is never that small.
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_address_has_its_own_limit_and_a_dropped_slot_is_free_again() {
        let strangers = Strangers::default();
        let take = |from: &str| strangers.take(ip(from));
        let mut held = Vec::from_iter((0..FROM_ONE_MAX).map(|_| take("192.0.2.1").unwrap()));
        assert!(take("192.0.2.1").is_none() && take("::ffff:192.0.2.1").is_none());
        held.push(take("192.0.2.2").unwrap());
        held.swap_remove(0);
        held.push(take("192.0.2.1").unwrap());
        let one = |n| format!("2001:db8::{n:x}");
        held.extend((0..FROM_ONE_MAX).map(|n| take(&one(n)).unwrap()));
        assert!(take("2001:db8::77").is_none(), "one network");
        assert!(take("2001:db8:0:1::77").is_some(), "another one");
    }

    #[test]
    fn unauthenticated_connections_are_limited_and_must_prove_their_address_when_there_are_many() {
        let strangers = Strangers::default();
        let mut held = Vec::new();
        for n in 0..STRANGERS_MAX {
            assert_eq!(strangers.want_proof(), n >= PROOF_FROM);
            let from = IpAddr::from([10, 0, (n / 250) as u8, (n % 250) as u8]);
            held.push(strangers.take(from).unwrap());
        }
        assert!(strangers.take(ip("192.0.2.1")).is_none());
        drop(held);
        assert!(strangers.take(ip("192.0.2.1")).is_some());
        assert!(strangers.lock().from.is_empty() && !strangers.want_proof());
    }
}
