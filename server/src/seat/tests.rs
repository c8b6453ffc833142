//! A seat's inputs and orders: commands in sequence, one batch a turn.

use super::*;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Never};

/// Rows 10 and 13: a batch may be repeated, but not changed; and no more than m are open.
#[test]
fn a_batch_may_be_repeated_but_not_changed() {
    let pad = |n: u8| <Counter as Simulation>::Input::from(n);
    for m in 1..=4u8 {
        let mut seat = Seat::<Counter>::new();
        let next = 100;
        for turn in next..next + u32::from(m) {
            assert_eq!(offer_batch(&mut seat, next, m, turn, &pad(1)), Ok(true));
            assert_eq!(offer_batch(&mut seat, next, m, turn, &pad(1)), Ok(false));
            let changed = offer_batch(&mut seat, next, m, turn, &pad(2));
            assert_eq!(changed, Err(BatchError::Changed));
        }
        let beyond = offer_batch(&mut seat, next, m, next + u32::from(m), &pad(1));
        assert_eq!(beyond, Err(BatchError::TooFar), "m = {m}");
        seat.forget_batches(next + 1);
        assert!(seat.batch(next).is_none());
        let sealed = offer_batch(&mut seat, next + 1, m, next + u32::from(m), &pad(1));
        assert_eq!(sealed, Ok(true), "a turn was sealed: there is room again");
    }
}

fn offer_batch(
    seat: &mut Seat<Counter>,
    next: u32,
    m: u8,
    turn: u32,
    pad: &u8,
) -> Result<bool, BatchError> {
    seat.check_batch(next, m, turn, pad)?;
    Ok(seat.offer_batch(next, turn, pad))
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Ordered;

impl Simulation for Ordered {
    const NAME: &'static str = "ordered";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = u8;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

#[test]
fn a_reconnecting_client_may_skip_commands_within_a_limit() {
    let mut seat = Seat::<Ordered>::new();
    assert!(
        offer(&mut seat, 1, true).is_empty(),
        "its client did not return"
    );
    seat.expect_commands_from(10);
    seat.expect_gaps();
    assert!(
        offer(&mut seat, 14, false).is_empty(),
        "earlier ones may come"
    );
    assert_eq!(offer(&mut seat, 13, true), [13, 14]);
    assert!(offer(&mut seat, 12, true).is_empty(), "it is too late");
    let last = 10 + SKIP_MAX - 1;
    assert_eq!(offer(&mut seat, last, true), [last]);
    assert!(offer(&mut seat, last + 2, true).is_empty());
    let both = [last + 1, last + 2];
    assert_eq!(offer(&mut seat, last + 1, true), both, "the next one");
    seat.expect_commands_from(COUNT_MAX);
    seat.expect_gaps();
    assert!(offer(&mut seat, COUNT_MAX + 1, false).is_empty());
    for _ in 0..2 {
        assert_eq!(offer(&mut seat, COUNT_MAX, true), [COUNT_MAX]);
        assert_eq!(seat.next_seq, COUNT_MAX);
        assert_eq!(seat.stats.accepted, 0);
    }
}

fn offer(seat: &mut Seat<Ordered>, seq: u32, is_oldest: bool) -> Vec<u32> {
    offer_settled(seat, if is_oldest { 0 } else { seq }, seq)
}

fn offer_settled(seat: &mut Seat<Ordered>, settled_from: u32, seq: u32) -> Vec<u32> {
    let given = CommandUp {
        seat: 0,
        stamp: Tick(0),
        seq,
        settled_from,
        command: 7,
    };
    seat.offer_command(PlayerId(0), given);
    let mut taken = Vec::new();
    while let Some((seq, _)) = seat.take_command(Duration::ZERO) {
        taken.push(seq);
    }
    taken
}

/// Finding HW8: after a restart, a large command waited forever for commands that had been refused before it.
#[test]
fn a_command_sent_only_once_does_not_wait_for_settled_ones() {
    let mut seat = Seat::<Ordered>::new();
    seat.expect_commands_from(25);
    seat.expect_gaps();
    // Commands 27 to 199 were refused before a restart. Command 200 is the first one that arrives.
    assert!(offer_settled(&mut seat, 27, 200).is_empty());
    assert!(offer_settled(&mut seat, 202, 202).is_empty());
    assert_eq!(offer(&mut seat, 25, true), [25], "26 is open");
    assert_eq!(offer(&mut seat, 26, true), [26, 200]);
    assert_eq!(offer(&mut seat, 201, true), [201, 202]);
    // An attacker's gaps are bounded, and so is their number.
    for seq in (COUNT_MAX - 200)..COUNT_MAX {
        assert!(offer_settled(&mut seat, 203, seq).is_empty());
    }
    assert!(seat.early.is_empty(), "beyond the largest gap");
    for seq in 1_000..1_200 {
        assert!(offer_settled(&mut seat, seq, seq).is_empty());
    }
    assert_eq!(seat.early.len(), COMMANDS_OPEN_MAX);
}

/// Finding W1: the same few commands were repeated, and the other commands waited for 14 s.
#[test]
fn commands_that_arrive_early_wait_for_earlier_ones() {
    let mut seat = Seat::<Ordered>::new();
    for seq in [3, 1, 3, 2, 1, 63, 64, 65] {
        assert!(offer(&mut seat, seq, false).is_empty());
    }
    assert_eq!(seat.early.len(), 4, "each once, and none beyond 64 open");
    assert_eq!(offer(&mut seat, 0, true), [0, 1, 2, 3]);
    let held: Vec<u32> = seat.commands.iter().map(|held| held.order.seq).collect();
    assert_eq!(held, [0, 1, 2, 3]);
    // Another client of the same player may use the same sequence numbers for other commands.
    seat.expect_gaps();
    assert_eq!(offer(&mut seat, 4, true), [4]);
    assert_eq!(seat.next_seq, 5);
    assert!(seat.early.is_empty());
}

#[test]
fn a_resting_client_counts_as_if_it_sent_an_input_every_tick() {
    let ms = Duration::from_millis;
    let mut seat = Seat::<Counter>::new();
    seat.record_rest(Some(ms(10)));
    assert_eq!(seat.newest_by(ms(10)), None, "no input to continue");
    seat.offer_input(Tick(5), Tick(7), &0);
    seat.record_rest(Some(ms(27)));
    assert_eq!(seat.newest_by(ms(26)), Some(Tick(7)));
    assert_eq!(seat.newest_by(ms(27)), Some(Tick(8)));
    assert_eq!(seat.newest_by(ms(99)), Some(Tick(8)), "for one tick only");
    assert!(seat.rests_over(Tick(8)) && !seat.rests_over(Tick(9)));
    // The skipped tick has no input yet, so an input that arrives later counts.
    assert_eq!((seat.input(Tick(8)), seat.unbroken(Tick(7))), (None, 1));
    assert!(seat.offer_input(Tick(5), Tick(8), &1));
    seat.record_rest(None);
    assert!(!seat.rests_over(Tick(8)));
    assert_eq!(seat.input(Tick(8)), Some(&1));
    seat.record_rest(Some(ms(50)));
    seat.forget_inputs();
    assert!(!seat.rests_over(Tick(9)));
}

#[test]
fn a_batch_for_a_sealed_turn_counts_as_late_and_is_not_kept() {
    let pad = <Counter as Simulation>::Input::default();
    let mut seat = Seat::<Counter>::new();
    assert_eq!(seat.check_batch(10, 2, 8, &pad), Ok(()));
    assert!(seat.offer_batch(10, 8, &pad));
    assert_eq!(seat.stats.late_batches, 1);
    assert!(seat.batch(8).is_none());
}
