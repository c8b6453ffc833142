//! Runs an author's code so that a panic in it ends nothing.
//!
//! A prediction steps what no server has stepped yet: another player's announced order, a guess, a world that will never
//! be. So no step, hook or decoder of the game may unwind into the game's main loop. On the good way this costs nothing
//! but that the call is not inlined. Where panics abort (`panic = "abort"`, which is all that wasm has) nothing is caught.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns what `work` returns, or the words that it panicked with. What `work` was changing is then half changed: the
/// caller throws it away.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(&*panic).to_owned())
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}
