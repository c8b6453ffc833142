//! Helpers of the test programs that play no world: golden files, documents that cite tests, and import circles.

pub mod cited;
pub mod golden;
pub mod imports;
