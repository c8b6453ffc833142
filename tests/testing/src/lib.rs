//! Tests for games on Twinstep.

mod again;
mod cause;
mod check;
mod counting;
mod fault;
mod keys;
mod line;
mod measure;
mod process;
mod report;
mod script;
mod seal;
mod steps;
mod values;

pub use check::check;
pub use counting::Counting;
pub use fault::{Fault, Kind};
pub use measure::{Cost, Costs};
pub use report::{Report, Size, Tried};
pub use script::{Asked, Script, Seen};
pub use twinstep_core::Mwc;
