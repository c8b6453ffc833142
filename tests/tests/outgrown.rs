//! Worlds that outgrow their bound, and impure steps: each is reported separately, and neither panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Session, SessionConfig, SessionEnd};
use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::{Chunked, Effects, Frame, Key, Never, Simulation, Tick};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Replay;
use twinstep_rig::direct::Direct;
use twinstep_rig::game_types;
use twinstep_server::config::Spectators;
use twinstep_server::{Decision, HookContext, Match, MatchConfig, SessionId, Trouble};
use twinstep_server::{FoldError, Folded};

const SECOND: Duration = Duration::from_secs(1);

fn unanswered<S: Simulation>(_: &HookContext<'_, S>, _: Key, _: &S::Query) -> Decision<S::Outcome> {
    Decision::Unanswered
}

/// A state that grows to the size in MiB that its player commands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Large {
    rubble: String,
}

impl Simulation for Large {
    game_types!("large", (), u8, u8, Never, Never, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (_, mib) in frame.commands() {
            self.rubble = ".".repeat(usize::from(*mib) << 20);
        }
    }
}

// Finding K5: with a world above 8 MiB, the match panicked at the next journal world, join or delayed spectator, and
// the client at the next world of its tape.
#[test]
fn a_world_outgrowing_its_bound_is_reported_and_the_match_continues() {
    let config = MatchConfig {
        spectators: Spectators {
            max: 4,
            delay_ticks: 180,
        },
        ..MatchConfig::action()
    };
    let set = |_| {
        SessionConfig::new(Arc::new(()))
            .record_journal(1)
            .verify(false)
    };
    let mut table = Direct::answered(config, Large::default(), unanswered, (0..1).map(set));
    table.match_.keep_journal().unwrap();
    table.gather();
    table.sessions[0].command(0, 5).unwrap();
    table.rest(SECOND * 11);
    let incidents = table.match_.take_incidents();
    let troubles: Vec<Trouble> = incidents.iter().map(|i| i.trouble).collect();
    assert_eq!(troubles, [Trouble::WorldLarge]);
    table.sessions[0].command(0, 9).unwrap();
    table.rest(SECOND * 11);
    assert_eq!(table.match_.closed(), None);
    let stats = table.match_.stats();
    assert!(stats.world_bytes > WORLD_BYTES_MAX && stats.worlds_too_large > 1);
    let incidents = table.match_.take_incidents();
    let troubles: Vec<Trouble> = incidents.iter().map(|i| i.trouble).collect();
    assert_eq!(troubles, [Trouble::WorldTooLarge], "once");
    // A client that joins now is refused with the reason.
    table
        .match_
        .connect(table.now, SessionId(1), "late", 1)
        .expect("a free seat");
    table.sessions.push(Session::new(set(1)).unwrap());
    table.rest(SECOND * 6);
    let refused = SessionEnd::Server(CloseCode::WorldTooLarge);
    assert_eq!(table.sessions[1].closed(), Some(refused));
}

/// Finding W7: a match whose world is in no record of the journal could not be resumed after a crash, and was lost.
#[test]
fn a_match_with_an_outgrown_world_is_resumed_and_replayed() {
    let set = |_| SessionConfig::new(Arc::new(())).verify(false);
    let mut table = Direct::answered(
        MatchConfig::action(),
        Large::default(),
        unanswered,
        (0..1).map(set),
    );
    table.match_.keep_journal().unwrap();
    table.gather();
    table.sessions[0].command(0, 9).unwrap();
    // A reader that continues after a crash must not reuse values cached before it.
    let play = |table: &mut Direct<Large>| _ = table.run(120, |_, _| 3);
    play(&mut table);
    for crash in 1..=2u8 {
        let (journal, rules) = (&table.journal, Arc::new(()));
        let taken = Match::<Large>::resume(MatchConfig::action(), journal, rules, unanswered);
        let taken = taken.unwrap_or_else(|error| panic!("crash {crash}: {error}"));
        assert_eq!(taken.keep_bytes as usize, table.journal.len());
        let digest = table.match_.digest_at(taken.match_.world().tick());
        assert_eq!(Some(taken.match_.digest()), digest, "crash {crash}");
        table.match_ = taken.match_;
        // Its player reconnects, needs only the missing frames, and continues in a world of another size.
        let (now, peer) = (table.now, SessionId(0));
        table
            .match_
            .connect(now, peer, "player 0", 1)
            .expect("its seat");
        table.sessions[0].reconnect(now);
        play(&mut table);
        table.sessions[0].command(0, 9 + crash).unwrap();
        play(&mut table);
        let bytes = table.match_.world().sim().rubble.len();
        assert_eq!(bytes, usize::from(9 + crash) << 20);
    }
    let mut replay = Replay::<Large>::open(&table.journal, &()).unwrap();
    let verified = replay.verify();
    assert!(verified.fault.is_none(), "{:?}", verified.fault);
}

static STEPS: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Impure {
    ticks: u32,
    of_all: u32,
    sum: u32,
    #[serde(skip)]
    hidden: u32,
}

impl Simulation for Impure {
    game_types!("impure", u8, u8, Never, Never, Never, Never);

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

fn folded(rules: u8) -> Result<Folded, FoldError> {
    let (policies, rules) = (MatchConfig::action(), Arc::new(rules));
    let mut table: Direct<Impure> = Direct::new(
        policies,
        Impure::default(),
        rules.clone(),
        unanswered,
        Vec::new(),
        60,
    );
    table.match_.keep_journal().unwrap();
    table.run(300, |_, _| 0);
    Folded::compute::<Impure>(&table.journal, &rules, table.match_.last_worlds(), Tick(40))
}

// Finding A6: an impure step was reported as the server's fault.
#[test]
fn an_impure_step_is_reported_as_impure() {
    for rules in [0, 1] {
        let folded = folded(rules);
        assert!(
            matches!(folded, Err(FoldError::Impure { .. })),
            "rules {rules}: {folded:?}"
        );
    }
    assert_eq!(folded(2).map(|folded| folded.tick).ok(), Some(Tick(40)));
}

/// A state that changes little. `COPIES` counts its clones.
#[derive(Debug, Serialize, Deserialize)]
struct Ground {
    tiles: Chunked<u8>,
    ticks: u32,
}

static COPIES: AtomicU32 = AtomicU32::new(0);

impl Clone for Ground {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Ground {
            tiles: self.tiles.clone(),
            ticks: self.ticks,
        }
    }
}

impl Simulation for Ground {
    game_types!("ground", (), u8, u8, Never, Never, Never);

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.ticks += 1;
    }
}

/// Finding K3-L1: a large world with a cheap digest was copied every tick while a match was resumed.
#[test]
fn a_resume_keeps_few_copies_of_a_large_chunked_world() {
    let ground = Ground {
        tiles: (0..256 << 10).map(|at: u32| at as u8).collect(),
        ticks: 0,
    };
    let config = MatchConfig::action();
    let mut table: Direct<Ground> = Direct::answered(config.clone(), ground, unanswered, []);
    table.match_.keep_journal().unwrap();
    table.rest(SECOND * 10);
    COPIES.store(0, Ordering::Relaxed);
    let resumed =
        Match::resume(config, &table.journal, Arc::new(()), unanswered::<Ground>).unwrap();
    let ticks = resumed.match_.world().tick().0;
    assert!(ticks > 500);
    // One copy for every sixteen ticks, and a few more.
    let copies = COPIES.load(Ordering::Relaxed);
    assert!(copies < ticks / 10, "{copies} copies in {ticks} ticks");
}
