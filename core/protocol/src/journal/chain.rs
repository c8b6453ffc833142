//! The chain of checks: its start, and its bits in the file.

pub(super) const CHAIN_START: u64 = u64::from_le_bytes(*b"twinstep");

pub(super) fn head_check(chain: u64) -> u8 {
    chain as u8
}

pub(super) fn payload_check(chain: u64) -> u32 {
    chain as u32
}
