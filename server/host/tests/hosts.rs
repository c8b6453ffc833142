//! Hosts with sockets, threads and files, in this process. The tests share `loopback`, `players`, `folder` and
//! `scrape`.

mod actions;
mod admin_port;
mod background;
mod banning;
#[cfg(feature = "web")]
mod browsers;
mod demand;
mod deserted;
mod disks;
mod draining;
mod ends;
mod faults;
mod fleet_news;
mod folder;
mod fragile;
mod host;
mod isolation;
mod journals;
mod loopback;
mod overload;
mod players;
mod releasing;
mod saves;
mod scrape;
mod sessions;
mod several;
mod shutdowns;
mod status;
