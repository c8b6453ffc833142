//! A flag that asks this process to end. Every wait checks it.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

pub fn ask() {
    ASKED.store(true, Ordering::Relaxed);
}

#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
