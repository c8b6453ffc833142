//! Checks of sources and documents, and tests of the test helpers. This program runs no worlds.

mod imports;
mod plain;
mod seed_rows;
mod shapes;
mod structure;
mod surface;
