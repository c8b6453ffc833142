use serde::Deserialize;

use super::*;
use crate::perspective::Learned;
use crate::testing::Solo;
use crate::testing::doc::Echo;

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

#[derive(Clone, Serialize, Deserialize)]
struct Shot(Option<bool>);

impl Simulation for Shot {
    const NAME: &'static str = "shot";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;
    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 = Some(frame.is_ghost(PlayerId(1), Tick(0)));
    }
}

/// Rows 68 and 70.
#[test]
fn a_remote_shot_is_a_ghost_until_the_authority_reaches_the_tick_at_which_it_was_learned() {
    let is_ghost = |local: u8, confirmed: u32, learned: bool| {
        let mut known = Learned::new();
        if learned {
            known.note(PlayerId(1), Tick(0), Tick(8));
        }
        let mut solo = Solo::new(Shot(None), ());
        let locals = [PlayerId(local)].into_iter().collect();
        solo.predict(locals, Tick(confirmed), known).step();
        solo.sim().0.unwrap()
    };
    assert!(is_ghost(0, 0, false), "guessed");
    assert!(is_ghost(0, 7, true));
    assert!(!is_ghost(0, 8, true), "promoted");
    assert!(!is_ghost(1, 0, false), "fired here");
    let mut solo = Solo::new(Shot(None), ());
    solo.step();
    assert_eq!(solo.sim().0, Some(false), "confirmed");
}

#[test]
#[cfg_attr(
    debug_assertions,
    should_panic(expected = "got 1.1 twice: derive it from its cause")
)]
fn asking_twice_under_one_key_panics_in_debug_and_is_reported_in_release() {
    let mut fx = Effects::<Echo>::new();
    fx.ask(crate::Key::new(1, 1), 5);
    assert_eq!(fx.asked_twice(), None);
    fx.ask(crate::Key::new(1, 1), 6);
    assert_eq!(fx.asked_twice(), Some(crate::Key::new(1, 1)));
    assert_eq!(fx.asks().len(), 1);
    fx.reset(Phase::Authority, PlayerSet::default());
    assert_eq!(fx.asked_twice(), None);
}
