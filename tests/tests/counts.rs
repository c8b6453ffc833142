//! What equality does not see: a bad predictor heals itself, so here it is counted.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::Game;
use serde::{Deserialize, Serialize, Serializer};
use twinstep_client::SessionConfig;
use twinstep_core::{Effects, Frame, Simulation};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::game_types;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Play, Rig, RigConfig, Sticks};
use twinstep_server::MatchConfig;
use twinstep_server::config::{Announce, TurnLength};

/// 100 ms there and back, and nothing else wrong.
fn far() -> LinkProfile {
    "rtt=100".parse().expect("a link in words")
}

fn run<S: Play>(config: RigConfig, seconds: u64) -> Rig<S> {
    let mut rig = Rig::new(config);
    rig.run(Duration::from_secs(seconds));
    rig
}

/// Turns that brought what nobody had assumed: each has a rebuild, or is one that another turn's rebuild waits for.
fn surprises(announce: Announce) -> u64 {
    let mut config = RigConfig::new(5, far());
    config.policies.announce = announce;
    let rig = run::<Game>(config, 15);
    (0..rig.clients.len())
        .map(|i| rig.stats(i).timeline)
        .map(|stats| stats.rebuilds + stats.put_off)
        .sum()
}

/// Most announcements are of ticks that the prediction has passed. The next rebuild must remember them.
#[test]
fn a_late_announcement_is_not_predicted_again() {
    let (announced, guessed) = (surprises(Announce::Ahead), surprises(Announce::Never));
    println!("turns with a wrong guess: {announced} with announcements, {guessed} without");
    assert!(
        announced * 3 < guessed * 2,
        "{announced} turns with announcements, {guessed} without"
    );
}

/// A command is stamped with the input tick, which the server has not sealed yet when it arrives; the
/// prediction, five ticks of input delay behind, would be too late.
#[test]
fn a_command_runs_at_the_tick_that_its_owner_assumed() {
    let mut config = RigConfig::new(8, far());
    config.policies.delay_ticks = 5;
    config.sticks = Sticks::Sticky;
    let rig = run::<History>(config, 20);
    for i in 0..rig.clients.len() {
        let stats = rig.stats(i);
        let elsewhere = stats.timeline.by_own_command;
        println!("{elsewhere} of {} commands", stats.commands_sent);
        // Some are refused, and claims of an authority's own tick come late by nature.
        assert!(stats.commands_sent > 20);
        assert!(
            elsewhere * 3 < stats.commands_sent,
            "{elsewhere} of {} commands ran at another tick",
            stats.commands_sent
        );
    }
}

/// Questions that wait are part of the world: who joins must know them.
#[test]
fn a_joiner_knows_the_open_queries() {
    let mut config = RigConfig::new(13, far());
    config.clients = 2;
    let mut rig = run::<History>(config, 5);
    while rig.game.world().open_queries().is_empty() {
        rig.run(Duration::from_millis(20));
    }
    let joiner = rig.join("joiner");
    // The rig compares its authority with the server's after every frame.
    rig.run(Duration::from_secs(5));
    let stats = rig.stats(joiner);
    assert!(stats.authority_tick > 0, "it never played");
    assert_eq!(stats.heals, 0);
}

thread_local! {
    /// How often a [`Counted`] was serialised by this thread.
    static LOOKED_AT: Cell<u32> = const { Cell::new(0) };
}

/// A state that counts who looks at the whole of it.
#[derive(Clone, Debug, Deserialize)]
struct Counted;

impl Serialize for Counted {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        LOOKED_AT.set(LOOKED_AT.get() + 1);
        serializer.serialize_unit_struct("Counted")
    }
}

impl Simulation for Counted {
    game_types!("counted");

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

/// What a tick costs grows with the state by as often as all of it is looked at. Once a client did so at every tick, to
/// verify what nobody had asked it to verify.
#[test]
fn the_server_digests_the_state_once_a_tick_and_a_client_once_a_turn() {
    let policies = MatchConfig {
        turn: TurnLength::Fixed(4),
        ..MatchConfig::action()
    };
    let client = SessionConfig::new(Arc::new(())).verify(false);
    let mut table = Direct::of(policies, Counted, [client]);
    table.run(180, |_, _| 0);
    LOOKED_AT.set(0);
    let began = table.game.world().tick();
    table.run(960, |_, _| 0);
    let ticks = table.game.world().tick() - began;
    // One confirmed tick of 64 is stepped twice, and both results are compared.
    let wanted = ticks + ticks / 4 + 2 * ticks / 64;
    let looked_at = LOOKED_AT.get();
    assert!(
        looked_at.abs_diff(wanted) <= 8,
        "{looked_at} times in {ticks} ticks, not {wanted}"
    );
}

thread_local! {
    /// How often a [`Bulky`] was digested, encoded and cloned by this thread.
    static COSTS: Cell<[u32; 3]> = const { Cell::new([0; 3]) };
}

fn note_cost(which: usize) {
    let mut costs = COSTS.get();
    costs[which] += 1;
    COSTS.set(costs);
}

/// A megabyte that no step touches, and that counts what is done with it.
#[derive(Debug, Deserialize)]
struct Bulky(Vec<u8>);

impl Serialize for Bulky {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let by = std::any::type_name::<T>();
        // A look for a NaN passes bytes by.
        match by {
            _ if by.contains("NanScan") => {}
            _ if by.contains("Hasher") => note_cost(0),
            _ => note_cost(1),
        }
        serializer.serialize_bytes(&self.0)
    }
}

impl Clone for Bulky {
    fn clone(&self) -> Self {
        note_cost(2);
        Bulky(self.0.clone())
    }

    fn clone_from(&mut self, other: &Self) {
        note_cost(2);
        self.0.clone_from(&other.0);
    }
}

impl Simulation for Bulky {
    game_types!("bulky");

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

/// Digests, encodings and clones of a world of so many bytes in 16 s of a match with one client, which guesses right.
fn costs(bytes: usize) -> [u32; 3] {
    let client = SessionConfig::new(Arc::new(())).verify(false);
    let policies = MatchConfig {
        turn: TurnLength::Fixed(2),
        ..MatchConfig::action()
    };
    let sim = Bulky(vec![3; bytes]);
    let mut table = Direct::of(policies, sim, [client]);
    table.game.keep_journal().expect("a journal");
    table.run(300, |_, _| 0);
    COSTS.set([0; 3]);
    table.run(960, |_, _| 0);
    COSTS.get()
}

/// What is done with a whole world that is large is done a few times a second, whatever the rate of ticks: a second has
/// one digest of the server's and one of a client's, and four clones that the server keeps. 17 s have a client's check (a tick
/// in 1,024: two digests, two clones), ten a world for the journal, and the match is weighed.
#[test]
fn a_large_world_is_digested_once_a_second_and_copied_for_few_ticks() {
    let [digests, encodings, clones] = costs(1 << 20);
    println!("large: {digests} digests, {encodings} encodings, {clones} clones");
    assert!((16 + 16..=18 + 18 + 2).contains(&digests));
    assert!((58..=62 + 2).contains(&clones));
    assert!(encodings <= 5);
    // Of a small one the server has one at each tick, the client a digest at each turn, and a tick in 64 is checked.
    let [digests, _, clones] = costs(1 << 10);
    println!("small: {digests} digests, {clones} clones");
    assert!((960 + 470 + 28..=970 + 490 + 32).contains(&digests));
    assert!((950 + 28..=970 + 32).contains(&clones));
}
