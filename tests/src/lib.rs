//! Helpers for test programs that run no world: golden files, documents that cite tests, and import circles.

#![allow(missing_docs, reason = "no author of a game imports it")]

pub mod cited;
pub mod golden;
pub mod imports;
