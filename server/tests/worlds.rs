//! Worlds that outgrow their bound, and steps that are not pure: told by their names, and nobody's panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use twinstep_client::{Closed, Session, SessionConfig};
use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::{Effects, Frame, Key, Never, Simulation, Tick};
use twinstep_server::config::Spectators;
use twinstep_server::game::{Folded, Unfolded};
use twinstep_server::{Look, MatchConfig, PeerId, Resolution, Trouble};

mod table;

use table::{SECOND, Table};

fn nothing<S: Simulation>(_: &Look<'_, S>, _: Key, _: &S::Query) -> Resolution<S::Outcome> {
    Resolution::Unanswered
}

/// A state that is as large as its player orders, in MiB.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Large {
    rubble: String,
}

impl Simulation for Large {
    const NAME: &'static str = "large";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = u8;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (_, mib) in frame.commands() {
            self.rubble = ".".repeat(usize::from(*mib) << 20);
        }
    }
}

// Finding K5: a world above 8 MiB panicked the match at the next journal world, join and delayed spectator, and the
// client at its tape's next world.
#[test]
fn a_world_that_outgrows_its_bound_is_told_of_and_the_match_plays_on() {
    let config = MatchConfig {
        spectators: Spectators {
            max: 4,
            delay_ticks: 180,
        },
        ..MatchConfig::action()
    };
    let set = |_| SessionConfig {
        verify: false,
        ..SessionConfig::new(Arc::new(())).recorded(1)
    };
    let mut table = Table::new(config, Large::default(), nothing, 1, set);
    table.game.keep_journal().unwrap();
    table.gather();
    table.sessions[0].command(0, 5).unwrap();
    table.run(SECOND * 11);
    let incidents = table.game.take_incidents();
    let troubles: Vec<Trouble> = incidents.iter().map(|i| i.trouble).collect();
    assert_eq!(troubles, [Trouble::WorldLarge]);
    table.sessions[0].command(0, 9).unwrap();
    table.run(SECOND * 11);
    assert_eq!(table.game.closed(), None);
    let stats = table.game.stats();
    assert!(stats.world_bytes > WORLD_BYTES_MAX && stats.worlds_too_large > 1);
    let incidents = table.game.take_incidents();
    let troubles: Vec<Trouble> = incidents.iter().map(|i| i.trouble).collect();
    assert_eq!(troubles, [Trouble::WorldTooLarge], "once");
    // Who comes now hears why it cannot.
    table
        .game
        .connect(table.now, PeerId(1), "late", 1)
        .expect("a free seat");
    table.sessions.push(Session::new(set(1)).unwrap());
    table.run(SECOND * 6);
    let refused = Closed::Server(CloseCode::WorldTooLarge);
    assert_eq!(table.sessions[1].closed(), Some(refused));
}

static STEPS: AtomicU32 = AtomicU32::new(0);

/// A state that depends on what is not in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Impure {
    ticks: u32,
    of_all: u32,
    sum: u32,
    #[serde(skip)]
    hidden: u32,
}

impl Simulation for Impure {
    const NAME: &'static str = "impure";
    const VERSION: u32 = 1;
    type Rules = u8;
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.ticks += 1;
        match frame.rules() {
            0 => self.of_all = STEPS.fetch_add(1, Ordering::Relaxed),
            1 => {
                self.hidden += 1;
                self.sum = self.sum.wrapping_add(self.hidden);
            }
            _ => {}
        }
    }
}

fn folded(rules: u8) -> Result<Folded, Unfolded> {
    let mut game = twinstep_server::Match::new(
        MatchConfig::action(),
        Impure::default(),
        Arc::new(rules),
        nothing,
    )
    .unwrap();
    game.keep_journal().unwrap();
    let mut journal = Vec::new();
    for n in 0..300u32 {
        game.advance(SECOND / 60 * n);
        while let Some(output) = game.poll() {
            if let twinstep_server::Output::Journal(bytes) = output {
                journal.extend_from_slice(bytes);
            }
        }
    }
    let (rules, hello) = game.origin();
    Folded::of::<Impure>(&journal, &rules, &hello, Tick(40))
}

// Finding A6: what was not pure was called the server's fault.
#[test]
fn a_step_that_is_not_pure_is_called_so() {
    for rules in [0, 1] {
        let folded = folded(rules);
        assert!(
            matches!(folded, Err(Unfolded::Impure { .. })),
            "rules {rules}: {folded:?}"
        );
    }
    assert_eq!(folded(2).map(|folded| folded.tick).ok(), Some(Tick(40)));
}
