use super::*;
use crate::testing::Echo;

#[test]
fn equality_ignores_whether_an_input_was_filled() {
    let mut given = FrameData::<Echo>::empty(Tick(3));
    given.inputs.set(PlayerId(1), Some(7));
    let mut filled = given.clone();
    filled.filled.set(PlayerId(1), true);
    assert_eq!(given, filled);
    filled.inputs.set(PlayerId(1), None);
    assert_ne!(given, filled, "absent is not the same as held");
}

#[test]
fn canonical_order_forbids_duplicates_and_disorder() {
    let order = |player, seq| Order {
        player: PlayerId(player),
        seq,
        command: 0u8,
    };
    let mut frame = FrameData::<Echo>::empty(Tick(0));
    frame.commands = alloc::vec![order(0, 1), order(0, 2), order(1, 0)];
    assert!(frame.is_canonical());
    frame.commands.swap(0, 1);
    assert!(!frame.is_canonical());
    frame.commands = alloc::vec![order(0, 1), order(0, 1)];
    assert!(!frame.is_canonical());
}
