//! A match as its host drives it, without sockets.

mod blame;
mod local;
mod local_time;
mod schedule;
mod shares;
mod table;
mod tale;
mod worlds;
