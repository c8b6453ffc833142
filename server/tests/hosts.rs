//! Hosts with sockets, threads and files, in this process.

mod acting;
mod asking;
mod demand;
mod disks;
mod drain;
mod draining;
mod ends;
mod faults;
mod fleet_news;
mod handover;
mod host;
mod isolation;
mod journals;
mod sessions;
mod settings;
mod several;
mod strain;
mod taking;
mod telling;
