//! Every failure in an author's code is caught before a client sees the frame. The player that caused it is identified,
//! and no other player is affected.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::SessionConfig;
use twinstep_core::{Effects, Frame, Key, Never, PlayerId, Simulation};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_rig::direct::{Direct, serves};
use twinstep_rig::game_types;
use twinstep_server::Admission;
use twinstep_server::config::{AnsweredBy, Claims};
use twinstep_server::{Decision, HookContext, MatchConfig, Referee, SessionId, Trouble};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    Note,
    Poison,
    Nan,
    Half(bool),
    Curse,
    Puzzle,
    Ask(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Outcome {
    Fine,
    Poison,
    Huge,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Fragile {
    notes: [u32; 16],
    noted: u32,
    temperature: f32,
    cursed: bool,
    answered: u32,
    unanswered: u32,
    rubble: Vec<u8>,
}

const POISON: u8 = 66;

impl Simulation for Fragile {
    game_types!("fragile", (), u8, Order, Outcome, Vec<u8>, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let breaks = serves();
        for (_, query, outcome) in frame.outcomes() {
            assert!(
                !breaks || outcome.is_none() || *query != Outcome::Poison,
                "planted: outcome"
            );
            match outcome {
                Some(_) => self.answered += 1,
                None => self.unanswered += 1,
            }
        }
        assert!(!breaks || !self.cursed, "planted: curse");
        for (player, held) in frame.inputs() {
            assert!(!breaks || held != &POISON, "planted: input of {player}");
        }
        let mut halves = [false; 2];
        let mut noted = false;
        for (player, order) in frame.commands() {
            match order {
                Order::Note => {
                    self.notes[player.index()] += 1;
                    noted = true;
                }
                Order::Poison if breaks => panic!("planted: poison"),
                Order::Nan if breaks => self.temperature = f32::NAN,
                Order::Curse if breaks => self.cursed = true,
                Order::Half(half) => halves[usize::from(*half)] = true,
                Order::Ask(outcome) => fx.ask(Key::player(player, frame.tick().0), *outcome),
                _ => {}
            }
        }
        self.noted += u32::from(noted);
        assert!(!breaks || halves != [true; 2], "planted: two halves");
    }
}

fn resolver(_: &HookContext<'_, Fragile>, _: Key, query: &Outcome) -> Decision<Vec<u8>> {
    Decision::Now(match query {
        Outcome::Huge => vec![7; 5_000],
        _ => vec![7],
    })
}

fn fragile(clients: usize, config: MatchConfig) -> Direct<Fragile> {
    large(clients, config, 0)
}

fn large(clients: usize, config: MatchConfig, bytes: usize) -> Direct<Fragile> {
    let set = |_| SessionConfig::new(Arc::new(())).verify(false);
    let sim = Fragile {
        rubble: vec![3; bytes],
        ..Fragile::default()
    };
    let mut table = Direct::answered(config, sim, resolver, (0..clients).map(set));
    table.gather();
    table
}

fn is_in(table: &Direct<Fragile>, client: u64) -> bool {
    table.match_.stage(SessionId(client)).is_some()
}

/// One of three players sends `poison` in the same ticks in which the other two issue commands.
fn attack(poison: Order, bytes: usize) -> Direct<Fragile> {
    let mut table = large(3, MatchConfig::action(), bytes);
    for _ in 0..12 {
        for client in [0, 2] {
            table.sessions[client].command(0, Order::Note).unwrap();
        }
        let _ = table.sessions[1].command(0, poison);
        table.rest(SECOND / 5);
    }
    table
}

/// A large world is not digested or copied every tick. Instead, it is scanned for NaNs and recomputed from frames.
///
/// Findings K4 and K6: every author of the frame was struck, no command ran, and a NaN ended the match.
#[test]
fn only_the_author_of_a_poison_command_is_struck_and_other_commands_run() {
    let poisons = [Order::Poison, Order::Nan];
    for (poison, bytes) in poisons
        .map(|poison| [(poison, 0), (poison, 200_000)])
        .concat()
    {
        let mut table = attack(poison, bytes);
        let sim = table.match_.world().sim().clone();
        let notes = sim.notes[0] + sim.notes[2];
        assert_eq!(notes, 24, "{poison:?}, {bytes} B");
        assert_eq!(sim.noted, 12, "the ticks were not torn apart");
        assert_eq!(table.match_.closed(), None);
        assert!(is_in(&table, 0) && is_in(&table, 2), "innocent");
        assert!(!is_in(&table, 1), "{:?}", table.match_.stats());
        let incidents = table.match_.take_incidents();
        assert!(!incidents.is_empty());
        for incident in incidents {
            let suspects: Vec<_> = incident.suspects.iter().map(|s| s.player).collect();
            assert_eq!(suspects, [PlayerId(1)], "{incident}");
        }
        assert_eq!(table.match_.seat_stats(PlayerId(0)).refused, 0);
    }
}

// Finding K4: if several players had one strike too many, only the last one was removed.
#[test]
fn all_authors_of_poison_commands_are_removed() {
    let mut table = fragile(3, MatchConfig::action());
    for _ in 0..12 {
        let _ = table.sessions[0].command(0, Order::Poison);
        let _ = table.sessions[1].command(0, Order::Nan);
        let _ = table.sessions[2].command(0, Order::Note);
        table.rest(SECOND / 5);
        let both = (is_in(&table, 0), is_in(&table, 1));
        assert_eq!(both.0, both.1, "struck in the same ticks");
    }
    assert!(!is_in(&table, 0) && !is_in(&table, 1) && is_in(&table, 2));
    assert_eq!(table.match_.world().sim().notes[2], 12);
}

#[test]
fn commands_failing_only_together_strike_no_player() {
    let mut table = fragile(4, MatchConfig::action());
    for _ in 0..12 {
        for (client, order) in [
            (0, Order::Half(false)),
            (1, Order::Note),
            (2, Order::Half(true)),
        ] {
            table.sessions[client].command(0, order).unwrap();
        }
        table.rest(SECOND / 5);
    }
    assert!((0..4).all(|client| is_in(&table, client)));
    assert_eq!(table.match_.world().sim().notes[1], 12);
    let refused = |player| table.match_.seat_stats(PlayerId(player)).refused;
    assert_eq!(refused(0) + refused(2), 12, "one half is left out");
    assert_eq!(refused(1), 0);
}

#[test]
fn an_outcome_breaking_the_step_is_dropped() {
    let mut table = fragile(2, MatchConfig::action());
    for outcome in [Outcome::Poison, Outcome::Fine] {
        table.sessions[0].command(0, Order::Ask(outcome)).unwrap();
        table.sessions[1].command(0, Order::Note).unwrap();
        table.rest(SECOND / 5);
    }
    let sim = table.match_.world().sim();
    assert_eq!((sim.answered, sim.unanswered, sim.notes[1]), (1, 1, 2));
    assert!(is_in(&table, 0) && is_in(&table, 1));
    assert_eq!(table.match_.take_incidents().len(), 1);
}

#[test]
fn an_input_breaking_the_step_is_made_neutral_and_its_player_is_removed() {
    let mut table = fragile(3, MatchConfig::action());
    table.run(120, |client, _| if client == 1 { POISON } else { 1 });
    assert!(is_in(&table, 0) && !is_in(&table, 1) && is_in(&table, 2));
    assert_eq!(table.match_.closed(), None);
}

#[test]
fn a_failure_without_a_guilty_command_ends_the_match_with_an_incident() {
    let mut table = fragile(2, MatchConfig::action());
    table.sessions[0].command(0, Order::Curse).unwrap();
    table.rest(SECOND / 5);
    assert_eq!(table.match_.closed(), Some(CloseCode::Fault));
    let incidents = table.match_.take_incidents();
    let last = incidents.last().expect("an incident");
    assert_eq!(last.trouble, Trouble::StepAgain);
    assert_eq!(last.message, "planted: curse");
}

struct Puzzled;

impl Referee<Fragile> for Puzzled {
    fn admit(
        &mut self,
        _: &HookContext<'_, Fragile>,
        _: PlayerId,
        order: &Order,
        _: bool,
    ) -> Admission {
        assert_ne!(*order, Order::Puzzle, "planted: admit");
        Admission::Admitted
    }

    fn owed(&mut self, look: &HookContext<'_, Fragile>, player: PlayerId, _: u32) -> Option<Order> {
        assert!(look.sim().notes[player.index()] != 1, "planted: owed");
        None
    }
}

// Finding K9: a panic of `admit` or `owed` ended the match.
#[test]
fn a_panic_of_the_referee_refuses_the_command_and_the_match_continues() {
    let config = MatchConfig {
        claims: Claims::OwnerWithin(10),
        ..MatchConfig::action()
    };
    let mut table = fragile(2, config);
    table.match_.set_referee(Puzzled);
    table.sessions[0].command(0, Order::Note).unwrap();
    table.rest(SECOND / 5);
    table.sessions[0].command(0, Order::Note).unwrap();
    for _ in 0..12 {
        table.sessions[1].command(0, Order::Puzzle).unwrap();
        table.rest(SECOND / 5);
    }
    assert_eq!(table.match_.closed(), None);
    assert!(
        is_in(&table, 0) && is_in(&table, 1),
        "no order was proved to be wrong"
    );
    assert_eq!(table.match_.world().sim().notes[0], 2);
    assert_eq!(table.match_.seat_stats(PlayerId(1)).refused, 12);
    assert!(table.match_.stats().panics >= 12 + 5);
    let text: Vec<_> = table.match_.take_incidents();
    assert!(text.iter().any(|i| i.message.contains("planted: owed")));
}

// Finding K9: a panic of `admit_answer` was not reported.
#[test]
fn a_referee_panicking_on_an_answer_is_reported() {
    struct Doubts;
    impl Referee<Fragile> for Doubts {
        fn admit(
            &mut self,
            _: &HookContext<'_, Fragile>,
            _: PlayerId,
            _: &Order,
            _: bool,
        ) -> Admission {
            Admission::Admitted
        }
        fn admit_answer(
            &mut self,
            _: &HookContext<'_, Fragile>,
            _: PlayerId,
            _: Key,
            _: &Outcome,
            _: &Vec<u8>,
        ) -> bool {
            panic!("planted: answer")
        }
    }
    let mut table = owners_answer();
    table.match_.set_referee(Doubts);
    table.sessions[0]
        .command(0, Order::Ask(Outcome::Fine))
        .unwrap();
    table.rest(SECOND / 5);
    assert_eq!(table.match_.world().sim().answered, 1, "by the server");
    assert_eq!(table.match_.stats().panics, 1);
    let incidents = table.match_.take_incidents();
    assert_eq!(incidents.len(), 1);
    assert!(incidents[0].message.contains("planted: answer"));
}

fn owners_answer() -> Direct<Fragile> {
    let config = MatchConfig {
        answered_by: AnsweredBy::Owner,
        ..MatchConfig::action()
    };
    let forge = |_: &Fragile, (): &(), _: Key, _: &Outcome| Some(vec![99; 9]);
    let set = |_| SessionConfig::new(Arc::new(())).resolve(forge);
    let mut table = Direct::answered(config, Fragile::default(), resolver, (0..1).map(set));
    table.gather();
    table
}

// Finding K19: without a check by the game, every client answer was used.
#[test]
fn an_answer_is_used_only_if_the_game_accepts_it() {
    let mut table = owners_answer();
    for _ in 0..5 {
        table.sessions[0]
            .command(0, Order::Ask(Outcome::Fine))
            .unwrap();
        table.rest(SECOND / 5);
    }
    let stats = table.match_.stats();
    assert_eq!((stats.owner_answers, stats.outcomes), (0, 5), "{stats:?}");
}

// Finding A8: an outcome over its bound was silently dropped.
#[test]
fn an_unencodable_outcome_is_reported_and_panics_in_debug_builds() {
    let mut table = fragile(1, MatchConfig::action());
    table.sessions[0]
        .command(0, Order::Ask(Outcome::Huge))
        .unwrap();
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        table.rest(SECOND / 5);
    }));
    assert_eq!(played.is_err(), cfg!(debug_assertions));
    let incidents = table.match_.take_incidents();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    assert!(
        incidents[0].message.contains("4096 bytes"),
        "{}",
        incidents[0]
    );
}
