//! No heap allocation in the steady state: counted per thread, between entry to and exit from `handle`,
//! `advance` and drain of client and match, with fire, blasts, rebuilds and journal worlds.
//!
//! The game's resolver is excluded and stated apart.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::SessionConfig;
use twinstep_core::journal::{Record, records};
use twinstep_core::simnet::LinkProfile;
use twinstep_core::testing::doc::Counter;
use twinstep_rig::powderkeg::CAMPAIGN;
use twinstep_rig::rig::{Rig, RigConfig, Sticks};
use twinstep_server::local::Local;
use twinstep_testing::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_steady_state_of_powderkeg_allocates_nothing() {
    a_minute_allocates(0, 0, None);
}

/// The rebuild that goes out and comes back is the same one again and again.
#[test]
fn rebuilding_elsewhere_allocates_nothing() {
    a_minute_allocates(0, 0, Some(1));
}

/// Waves come and go, weapons are found, things are thrown about. Each wave is larger than the one before, so what
/// a picture draws grows a few times yet; states and frames do not.
#[test]
fn a_campaign_allocates_only_for_larger_pictures_after_its_first_waves() {
    a_minute_allocates(CAMPAIGN, 40, None);
}

/// Match, session and what lies between them, in one process.
#[test]
fn a_frame_of_local_play_allocates_nothing() {
    let config = SessionConfig {
        verify: false,
        ..SessionConfig::new(Arc::new(()))
    };
    let local = Local::action(Counter::default(), ()).seats(2);
    let mut game = local.play(config).expect("it starts");
    let mut now = Duration::ZERO;
    let mut frames = |frames: u32| {
        for n in 0..frames {
            now += Duration::from_millis(7);
            let held = |_, seat| (n / 50 + seat as u32) as u8;
            game.advance_at(now, held).expect("it plays on");
        }
    };
    // Until every list has its size.
    frames(3_000);
    let before = Counting::so_far();
    frames(6_000);
    assert_eq!(Counting::so_far() - before, 0, "allocations in 42 s");
}

/// At most so many allocations of all clients, and none of the match.
fn a_minute_allocates(crowd: u16, of_clients_max: u64, rebuilds_late: Option<u32>) {
    let mut config = RigConfig::new(5, LinkProfile::WAN);
    config.sticks = Sticks::Sticky;
    config.crowd = crowd;
    config.rebuilds_late = rebuilds_late;
    config.verify = false;
    // One in ten seconds, and a message of the lane: that is no steady state.
    config.tickets = false;
    let mut rig = Rig::<Game>::new(config);
    rig.observe(false);
    rig.count_with(Counting::so_far);
    // Until every list, such as that of what is drawn, has seen about its largest size, in each copy of the world.
    rig.run(Duration::from_secs(60));
    let (before, journal) = (rig.counts(), rig.journal.len());
    let (queries, rebuilds) = (rig.game.stats().queries, rig.stats(0).timeline.rebuilds);
    rig.run(Duration::from_secs(60));
    let after = rig.counts();
    assert!(
        rig.game.stats().queries > queries + 10,
        "blasts were asked for"
    );
    assert!(
        rig.stats(0).timeline.rebuilds > rebuilds + 100,
        "predictions were rebuilt"
    );
    let worlds = records(&rig.journal).filter(|entry| {
        entry.as_ref().is_ok_and(|entry| {
            entry.offset as usize > journal && matches!(entry.record, Record::World { .. })
        })
    });
    assert!(worlds.count() >= 5, "worlds were journalled");
    println!(
        "resolver: {} allocations in 60 s",
        after.resolver - before.resolver
    );
    let of_clients = after.client - before.client;
    assert!(
        of_clients <= of_clients_max,
        "{of_clients} allocations of 4 clients in 60 s"
    );
    assert_eq!(
        after.server - before.server,
        0,
        "allocations of the match in 60 s"
    );
}
