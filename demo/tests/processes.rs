//! Powderkeg as its users run it: as processes that start, exchange data, are killed and exit.

mod come_and_go;
mod command_line;
mod common;
mod ends;
mod fleet;
mod host;
mod kill;
mod manifests;
mod many;
mod operating;
mod rolling;
mod scrape;
mod settings;
mod tiny;
