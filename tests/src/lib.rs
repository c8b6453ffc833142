//! What the test programs read beside worlds: golden files, documents that cite tests, and who imports whom.

pub mod cited;
pub mod golden;
pub mod imports;
