//! Whether this process was asked to end; whoever waits for something looks here.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks it to end.
pub fn ask() {
    ASKED.store(true, Ordering::Relaxed);
}

/// Whether this process was asked to end.
#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
