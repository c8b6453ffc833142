//! Checks of sources and documents, and tests of the test helpers. No world is played here.

mod imports;
mod plain;
mod seed_rows;
mod shapes;
mod structure;
mod surface;
