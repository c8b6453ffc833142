//! Powderkeg's campaign over a network: lobby, waves and all server decisions, on all screens.

use std::collections::BTreeMap;
use std::time::Duration;

use powderkeg_game::{Game, Outcome, PLAYER_RADIUS, RoundPhase};
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::powderkeg::CAMPAIGN;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);

fn campaign(seed: u64, link: LinkProfile) -> Rig<Game> {
    let mut config = RigConfig::new(seed, link);
    config.crowd = CAMPAIGN;
    Rig::new(config)
}

fn decided(journal: &[u8]) -> (BTreeMap<&'static str, u32>, usize) {
    let rules = Game::rules(CAMPAIGN);
    let mut replay = Replay::<Game>::open(journal, &rules).unwrap();
    let (mut kinds, mut busiest) = (BTreeMap::new(), 0);
    while replay.step().unwrap() {
        let outcomes = &replay.frame().outcomes;
        let mut asked: BTreeMap<Tick, usize> = BTreeMap::new();
        for answer in outcomes {
            *asked.entry(answer.asked).or_default() += 1;
            let kind = match answer.outcome {
                Some(Outcome::Blast { .. }) => "blast",
                Some(Outcome::Toss { .. }) => "toss",
                Some(Outcome::Loot(_)) => "loot",
                Some(Outcome::Crit(_)) => "crit",
                None => "nothing",
            };
            *kinds.entry(kind).or_default() += 1;
        }
        busiest = busiest.max(asked.into_values().max().unwrap_or(0));
    }
    (kinds, busiest)
}

/// Row 72: four bots play the campaign over a bad link. The rig compares every kept prediction and all worlds, and at
/// the end all clients have the same round, score and lives. The run exercises every kind of server decision.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_campaign_is_identical_on_all_screens() {
    let mut rig = campaign(80, LinkProfile::BAD);
    rig.run(SECOND * 100);
    let game = rig.match_.world().sim();
    println!(
        "{:?} of wave {}, score {}",
        game.phase, game.wave, game.score
    );
    assert!(game.round == 1 && game.wave >= 3 && game.score > 500);
    rig.converge();
    let (kinds, busiest) = decided(&rig.journal);
    println!("{kinds:?}, at most {busiest} in a tick");
    assert!(kinds["blast"] > 20 && kinds["toss"] > 3 && kinds["loot"] > 3);
    assert_eq!(kinds.get("nothing"), None);
}

/// Rows 37 and 38: eight players over a bad link. No client pauses, every cue is settled, and moving objects are drawn
/// near their true places. Other players are drawn late, from their known inputs.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn eight_players_are_drawn_near_their_true_places_over_a_bad_link() {
    let mut config = RigConfig::new(83, LinkProfile::BAD);
    config.crowd = CAMPAIGN;
    config.clients = 8;
    config.input_pattern = InputPattern::Human;
    config.verify = false;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 60);
    assert!(rig.match_.world().sim().wave >= 1);
    for i in 0..8 {
        let stats = rig.stats(i);
        let off = stats.picture.others_off_p95 / PLAYER_RADIUS;
        println!("p95 in player radii: {off:.2}");
        assert_eq!(stats.stall_ms, 0.0, "client {i}");
        assert!(off < 0.5, "client {i}: {off} radii");
        let rebuilds = stats.timeline.rebuilds;
        assert!(rebuilds > 500, "client {i}: {rebuilds} wrong predictions");
    }
    rig.converge();
    for i in 0..8 {
        let stats = rig.stats(i);
        let settled = stats.cues_confirmed + stats.cues_cancelled;
        assert_eq!(stats.cues_started, settled + stats.cues_open, "client {i}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn players_join_and_leave_in_the_middle_of_a_round() {
    let mut rig = campaign(81, LinkProfile::WAN);
    rig.run(SECOND * 12);
    assert_eq!(rig.match_.world().sim().phase, RoundPhase::Wave);
    let late = rig.join("late");
    rig.run(SECOND * 6);
    let id = rig.clients[late].session.seats()[0];
    let player = |rig: &Rig<Game>, id: PlayerId| rig.match_.world().sim().players.get(&id).copied();
    assert!(
        player(&rig, id).is_some_and(|player| player.shots > 0),
        "it fights"
    );
    rig.leave(0);
    rig.run(SECOND * 20);
    assert_eq!(rig.match_.world().sim().players.len(), 4);
    rig.converge();
}
