//! A caller's memory: every pointer that crosses the C boundary is read or written here.
//!
//! Invariant: a null pointer and a length of zero are allowed everywhere. In all other cases, the header requires
//! memory of the stated size from the caller; C cannot check this.
#![expect(unsafe_code, reason = "pointers of a C program")]

use std::ffi::{CStr, c_char};

/// Reads a 0-terminated string.
///
/// # Errors
/// If there is no text, or it is not UTF-8.
///
/// # Safety
/// `text` must be null, or point to a 0-terminated string.
pub(crate) unsafe fn read_text<'a>(text: *const c_char) -> Result<&'a str, String> {
    if text.is_null() {
        return Err("expected a text, but the pointer is NULL".to_owned());
    }
    // SAFETY: not null, and the caller guarantees that it ends with 0.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.map_err(|_| "expected a text in UTF-8".to_owned())
}

/// Reads an element of a list, which need not be aligned. Returns `None` if `list` is null.
///
/// # Safety
/// `list` must be null, or point to more than `at` values.
pub(crate) unsafe fn read<T: crate::CStruct>(list: *const T, at: usize) -> Option<T> {
    if list.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees that the element is in the list, and every bit pattern is a valid `CStruct`.
    Some(unsafe { list.add(at).read_unaligned() })
}

/// Writes an element of a list, which need not be aligned. Has no effect if `list` is null.
///
/// # Safety
/// `list` must be null, or point to space for more than `at` values.
pub(crate) unsafe fn write<T>(list: *mut T, at: usize, value: T) {
    if !list.is_null() {
        // SAFETY: the caller guarantees that the element is in the list.
        unsafe { list.add(at).write_unaligned(value) };
    }
}

/// Writes `text` and a 0, cut at a character if the space is too small. Returns the length of the whole text in bytes.
///
/// # Safety
/// `to` must be null, or point to space for `room` bytes.
pub(crate) unsafe fn write_text(text: &str, to: *mut c_char, room: usize) -> usize {
    if to.is_null() || room == 0 {
        return text.len();
    }
    let cut = text.floor_char_boundary(room - 1);
    // SAFETY: `cut` bytes and the 0 fit into the space.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), cut);
        to.add(cut).write(0);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_and_ends_with_0() {
        for (room, expected) in [
            (0, None),
            (1, Some("")),
            (2, Some("a")),
            (3, Some("a")),
            (4, Some("a\u{e4}")),
            (9, Some("a\u{e4}")),
        ] {
            let mut memory = [0x7f_u8; 9];
            // SAFETY: at most 9 bytes.
            let len = unsafe { write_text("a\u{e4}", memory.as_mut_ptr().cast(), room) };
            assert_eq!(len, 3);
            let text =
                CStr::from_bytes_until_nul(&memory).map(|text| text.to_str().expect("UTF-8"));
            assert_eq!(text.ok(), expected, "{room}");
            assert!(memory[room..].iter().all(|byte| *byte == 0x7f), "{room}");
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { write_text("a", std::ptr::null_mut(), 7) }, 1);
    }

    #[test]
    fn invalid_text_is_an_error() {
        let cut = [0xc3_u8, 0];
        for (text, expected) in [
            (std::ptr::null(), "expected a text, but the pointer is NULL"),
            (cut.as_ptr().cast(), "expected a text in UTF-8"),
        ] {
            // SAFETY: null, or a 0-terminated string.
            assert_eq!(unsafe { read_text(text) }, Err(expected.to_owned()));
        }
    }
}
