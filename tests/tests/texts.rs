//! What can be read off the sources and documents, and what the tests themselves lean on: no world is played here.

mod imports;
mod plain;
mod seed_rows;
mod shapes;
mod structure;
mod surface;
