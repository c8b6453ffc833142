//! The kit's own tests, as one program.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the planted bugs are what the lints forbid"
)]

mod arenas;
mod clean;
mod planted;
mod planted_values;
