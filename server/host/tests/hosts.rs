//! Hosts with sockets, threads and files, in this process. `loopback`, `players`, `folder` and `asking` are what the tests have
//! in common.

mod acting;
mod admin_port;
mod aside;
mod asking;
mod banning;
mod demand;
mod deserted;
mod disks;
mod draining;
mod ends;
mod faults;
mod fleet_news;
mod folder;
mod fragile;
mod goodbyes;
mod host;
mod isolation;
mod journals;
mod loopback;
mod overload;
mod players;
mod releasing;
mod sessions;
mod several;
mod telling;
