//! The queries passed to resolvers. A query must not be resolved again if its outcome was written before a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use twinstep_core::{Key, Tick};

#[derive(Default)]
pub(super) struct Asked(Mutex<AskedKeys>);

#[derive(Default)]
struct AskedKeys {
    /// For each query, the tick after the one that last asked it.
    at: BTreeMap<Key, Tick>,
    settled: BTreeSet<Key>,
    again: Vec<Key>,
}

impl Asked {
    pub(super) fn count(&self) -> usize {
        let keys = self.0.lock().expect("no panic under this lock");
        keys.at.len()
    }

    pub(super) fn record(&self, key: Key, tick: Tick) {
        let mut keys = self.0.lock().expect("no panic under this lock");
        if keys.settled.contains(&key) {
            keys.again.push(key);
        }
        keys.at.insert(key, tick);
    }

    /// Records a crash: every query asked before `next` that is not open has its outcome in the journal.
    pub(super) fn crash(&self, next: Tick, open: &BTreeSet<Key>) {
        let mut keys = self.0.lock().expect("no panic under this lock");
        let AskedKeys { at, settled, .. } = &mut *keys;
        at.retain(|_, asked| *asked <= next);
        settled.extend(at.keys().filter(|key| !open.contains(key)));
    }

    pub(super) fn again(&self) -> Vec<Key> {
        let keys = self.0.lock().expect("no panic under this lock");
        keys.again.clone()
    }
}
