//! The kit's own tests, as one program.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the planted bugs are what the lints forbid"
)]

/// Lets reports show the allocations per step.
#[global_allocator]
static ALLOCATOR: twinstep_testing::Counting = twinstep_testing::Counting;

mod arenas;
mod clean;
mod planted;
mod planted_caches;
mod planted_causes;
mod planted_names;
mod planted_processes;
mod planted_states;
mod planted_values;
mod planting;
mod scenes;
