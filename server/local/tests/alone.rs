//! A match and its players in one process.

mod local;
mod local_time;
mod tale;
