//! Hosts with sockets, threads and files, in this process.

mod acting;
mod asking;
mod demand;
mod disks;
mod drain;
mod ends;
mod faults;
mod handover;
mod host;
mod isolation;
mod journals;
mod sessions;
mod settings;
mod strain;
mod taking;
mod telling;
