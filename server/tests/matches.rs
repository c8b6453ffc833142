//! A match as its host drives it, without sockets.

mod blame;
mod schedule;
mod shares;
mod table;
mod worlds;
