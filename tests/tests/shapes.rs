//! The values in the edge-case game have the requested sizes.

use twinstep_core::codec;
use twinstep_rig::edges::Shape;

#[test]
fn shapes_fill_the_requested_size_and_no_more() {
    for number in 0..Shape::KINDS {
        for bytes in [0, 4, 20, 97, 128, 256] {
            let size = codec::size(&Shape::made(number, bytes)).unwrap();
            assert!(
                size <= bytes.max(1),
                "kind {number} takes {size} of {bytes}"
            );
            // Options may be shorter.
            let full = number == 0 || number == 3 || bytes < 20 || size + 10 >= bytes * 3 / 4;
            assert!(full, "kind {number} takes only {size} of {bytes}");
        }
    }
}
