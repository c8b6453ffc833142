//! Whole worlds in virtual time, and sessions by hand: one program, so that all of them share two cores and are built
//! once.

mod background;
mod cadence;
mod client_bounds;
mod company;
mod costs;
mod encoding;
mod evidence;
mod golden_packets;
mod joins;
mod kit;
mod laws;
mod numbers;
mod policies;
mod replay;
mod response;
mod returns;
mod seed_core;
mod seed_determinism;
mod seed_shooter;
mod sessions;
mod sparing;
mod spectators;
mod start;
mod tiny;
mod tiny_checked;
