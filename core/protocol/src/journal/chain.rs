//! The chain of checks: its start, and the bits of it that are in the file.

/// The chain before the first record.
pub(super) const CHAIN_START: u64 = u64::from_le_bytes(*b"twinstep");

/// The check that follows a record's head.
pub(super) fn head_check(chain: u64) -> u8 {
    chain as u8
}

/// The check that follows a record's payload.
pub(super) fn payload_check(chain: u64) -> u32 {
    chain as u32
}
