//! When a match's ticks are due, also after its process stood still; and whether anybody hears of it.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::SessionConfig;
use twinstep_core::testing::doc::Counter;
use twinstep_server::{Decision, Look, Match, MatchConfig, PeerId};

use crate::table::{SECOND, Table};

const MS: Duration = Duration::from_millis(1);

fn game() -> Match<Counter> {
    let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
    let config = MatchConfig::action();
    Match::new(config, Counter::default(), Arc::new(()), nobody).unwrap()
}

/// A match with one player, at a table.
fn table() -> Table<Counter> {
    let nobody = |_: &Look<'_, Counter>, _, _: &_| Decision::Unanswered;
    let set = |_| SessionConfig::new(Arc::new(()));
    Table::new(MatchConfig::action(), Counter::default(), nobody, 1, set)
}

/// Where its next tick is due within one, in nanoseconds. It may be due before, to say again what was not heard.
fn due_within_a_tick(game: &Match<Counter>) -> u128 {
    game.next_due().as_nanos() % game.world().turn().cadence.tick().as_nanos()
}

/// All matches of a process that stood still were due at one moment ever after.
#[test]
fn matches_stay_apart_though_their_process_stood_still() {
    for stood in [200, 333, 1_000, 60_001] {
        for began in [3, 5, 11] {
            let mut game = game();
            game.advance(began * MS);
            let (due, tick) = (due_within_a_tick(&game), game.world().tick());
            let back = (began + stood) * MS;
            game.advance(back);
            assert_eq!(due_within_a_tick(&game), due, "{began}, {stood}");
            let length = game.world().turn().cadence.tick();
            assert!(game.next_due() > back && game.next_due() - back <= length);
            assert_eq!(game.world().tick(), tick + 1, "the rest is not made up for");
            let slipped = game.stats().slipped;
            assert!(slipped <= stood * MS && slipped + 2 * length > stood * MS);
        }
    }
}

#[test]
fn a_match_is_unheard_when_nobody_is_there_or_all_are_silent_and_not_while_somebody_comes() {
    let mut game = game();
    game.advance(MS);
    assert!(game.is_unheard());
    game.connect(2 * MS, PeerId(1), "anna", 1).unwrap();
    assert!(!game.is_unheard(), "she is about to say hello");
    game.disconnect(PeerId(1));
    assert!(game.is_unheard());
}

/// A client whose line broke dials by another path: its second connection hears of the match as soon as it says hello.
#[test]
fn a_match_whose_players_are_silent_is_unheard_but_not_while_one_of_them_dials_again() {
    let mut table = table();
    table.gather();
    assert!(!table.game.is_unheard());
    let (game, mut now) = (&mut table.game, table.now);
    let silent_until = now + 2 * SECOND;
    while now < silent_until {
        now += table.frame;
        game.advance(now);
        while game.poll().is_some() {}
    }
    assert!(game.is_unheard(), "she has said nothing for two seconds");
    game.connect(now, PeerId(9), "player 0", 1).unwrap();
    assert!(!game.is_unheard(), "she dials again");
    game.disconnect(PeerId(9));
    assert!(game.is_unheard());
}
