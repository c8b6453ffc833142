//! What can be read off the sources and documents: no world is played here.

mod seed_rows;
mod structure;
