//! Replays of whole matches: they are small, equal the original, and can be searched and verified quickly.

use std::time::{Duration, Instant};

use powderkeg_game::Game;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::replay::{Replay, Survey};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::{Command, History};
use twinstep_rig::recorded::{Recorded, recorded};
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::{Match, MatchConfig};

const SECOND: Duration = Duration::from_secs(1);

fn open<S: Play>(played: &Recorded<S>) -> Replay<'_, S> {
    Replay::open(&played.journal, &played.rules).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn timed<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let began = Instant::now();
    let done = run();
    (done, began.elapsed())
}

/// Law One door: a resolver's random decisions are in the frames and nowhere else, so the journal alone reproduces the
/// server's world.
///
/// Row 2: a match over a bad network, replayed from its journal, ends with the live match's digest, with the same
/// commands at the same ticks.
#[test]
fn a_replay_of_a_live_match_ends_on_its_final_digest() {
    let mut rig = Rig::<History>::new(RigConfig::new(21, LinkProfile::BAD));
    rig.run(SECOND * 30);
    assert!(rig.match_.stats().outcomes > 10, "something was decided");
    let mut replay = Replay::<History>::open(&rig.journal, &7).unwrap();
    let verified = replay.verify();
    assert_eq!(verified.fault, None);
    assert!(verified.digests > 10, "digests were compared on the way");
    let world = replay.world();
    assert_eq!(world.digest().ok(), rig.match_.digest_at(world.tick()));
    let live = &rig.match_.world().sim().log;
    let replayed = &world.sim().log;
    assert!(replayed.len() > 20);
    assert_eq!(*replayed, live[..replayed.len()]);
    assert!(live.len() - replayed.len() < 2);
}

/// Row 3: players that are idle for ten minutes leave no command in the journal, and each command in it has its tick.
#[test]
fn a_replay_has_no_commands_of_idle_players_and_each_order_has_its_tick() {
    let idle = recorded::<History>(3, 4, 36_000, InputPattern::Still);
    let replay = open(&idle);
    let survey = Survey::of::<History>(&idle.journal, replay.index());
    assert_eq!((survey.ticks, survey.length.as_secs()), (36_000, 600));
    assert!(survey.players.iter().all(|p| p.commands + p.claims == 0));
    let index = replay.index();
    let per_turn = (index.bytes.idle + index.bytes.turns) as f64 / index.turns as f64;
    assert!(per_turn < 2.1, "{per_turn} B for an idle turn");

    let busy = recorded::<History>(3, 2, 3_000, InputPattern::Analog);
    let mut replay = open(&busy);
    let mut reported = Vec::new();
    while replay.step().unwrap() {
        let frame = replay.frame();
        let orders = frame.commands.iter();
        reported.extend(orders.map(|order| (frame.tick, order.player, order.command)));
    }
    assert!(reported.len() > 50);
    let log = busy.world.sim().log.iter();
    let ran: Vec<(Tick, PlayerId, Command)> = log.copied().collect();
    assert_eq!(reported, ran);
}

/// Four players for a quarter of an hour: the journal's size, the speed of seeking and verifying, and the time to
/// repair a crashed match of that length.
///
/// `TWINSTEP_MINUTES` sets another length. The limits are loose enough for busy machines.
#[test]
fn a_long_match_of_four_players_seeks_verifies_and_is_repaired_quickly() {
    let minutes = std::env::var("TWINSTEP_MINUTES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(15);
    let (played, took) = timed(|| recorded::<Game>(11, 4, minutes * 3_600, InputPattern::Analog));
    println!("recorded {minutes} min in {took:?}");
    let (mut replay, opening) = timed(|| open(&played));
    let survey = Survey::of::<Game>(&played.journal, replay.index());
    let player_minutes = f64::from(minutes * 4);
    let kb = |bytes: u64| bytes as f64 / 1_000.0 / player_minutes;
    let bytes = replay.index().bytes;
    println!(
        "{} B; a player and minute: {:.1} KB (turns {:.1}, worlds {:.1}), raw inputs {:.1} KB",
        bytes.total(),
        kb(bytes.total()),
        kb(bytes.turns + bytes.idle),
        kb(bytes.worlds),
        kb(survey.raw_bytes)
    );
    let mut seeks = Vec::new();
    let end = played.world.tick().0;
    for n in 0..40 {
        // Seeks go backwards, so that each one starts at a stored world.
        let to = Tick(end - 1 - n * (end / 41));
        let (reached, took) = timed(|| replay.seek(to).unwrap());
        assert_eq!(reached, to);
        seeks.push(took);
    }
    seeks.sort();
    // The median, because the slowest seek mainly measures other load on the machine.
    let (median, worst) = (seeks[seeks.len() / 2], seeks[seeks.len() - 1]);
    println!("opened in {opening:?}, half of all seeks {median:?}, worst {worst:?}");
    assert!(
        median < Duration::from_millis(100),
        "half of all seeks took {median:?}"
    );
    let (verified, took) = timed(|| open(&played).verify());
    assert_eq!((verified.fault, verified.ticks), (None, end));
    let speed = survey.length.as_secs_f64() / took.as_secs_f64();
    println!(
        "verified {} digests at {speed:.0} x real time",
        verified.digests
    );
    assert!(speed >= 100.0, "{speed:.0} x real time");
    let rules = std::sync::Arc::new(Game::rules(0));
    let resolver = Game::resolver(&rules, 0);
    let (resumed, took) = timed(|| {
        Match::resume(
            MatchConfig::action(),
            &played.journal,
            rules.clone(),
            resolver,
        )
        .unwrap()
    });
    println!("repaired in {took:?}");
    assert_eq!(resumed.match_.digest(), played.world.digest().unwrap());
    let most = Duration::from_secs(5).mul_f64(f64::from(minutes.max(12)) / 60.0);
    assert!(took < most, "repaired in {took:?}");
}
