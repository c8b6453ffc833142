//! The chain of checks: where it begins, and which of its bits stand in the file.

/// The chain before the first record.
pub(super) const CHAIN_START: u64 = u64::from_le_bytes(*b"twinstep");

/// What stands behind a record's head.
pub(super) fn head_check(chain: u64) -> u8 {
    chain as u8
}

/// What stands behind a record's payload.
pub(super) fn payload_check(chain: u64) -> u32 {
    chain as u32
}
