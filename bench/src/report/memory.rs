//! The part without sockets: frames and rebuilds beside ggrs, allocations, bytes, and how fast a whole world is played.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::Reconcile;
use twinstep_core::simnet::LinkProfile;
use twinstep_rig::rig::{Rig, RigConfig, Sticks as Moves};

use super::effort::Effort;
use crate::crowd;
use crate::measure::{Bench, Effort as Laps, Part};
use crate::ours::Counts;
use crate::process::{Failed, cpu};
use crate::simulation::Sticks;
use crate::subjects::{Alone, Case};

/// A state size with its name, and whether sticks move.
const CASES: [(usize, &str, Sticks, &str); 4] = [
    (4 << 10, "4 KB", Sticks::Still, "no rebuild"),
    (4 << 10, "4 KB", Sticks::Moving, "rebuild at every turn"),
    (64 << 10, "64 KB", Sticks::Still, "no rebuild"),
    (64 << 10, "64 KB", Sticks::Moving, "rebuild at every turn"),
];

/// Nanoseconds of both sides, round by round.
pub(super) struct Pair {
    pub(super) label: String,
    pub(super) ours: Vec<f64>,
    pub(super) theirs: Vec<f64>,
}

/// What one client's packets take in a second, in bytes.
pub(super) struct Bytes {
    pub(super) headers: f64,
    pub(super) inside: f64,
    pub(super) packets_up: f64,
    pub(super) packets_down: f64,
}

pub(super) struct Beside {
    pub(super) frames: Vec<Pair>,
    pub(super) again: Vec<Pair>,
    /// Allocations of a client's frame and of a match's tick: the most of all cases.
    pub(super) allocations: (f64, f64),
    pub(super) held: Bytes,
    pub(super) changing: Bytes,
}

impl Bytes {
    fn of(counts: &Counts) -> Bytes {
        let (headers, inside) = counts.bytes_a_second();
        let a_tick = |packets: u64| packets as f64 / (counts.frames as f64 * 4.0) * 60.0;
        Bytes {
            headers,
            inside,
            packets_up: a_tick(counts.packets_up),
            packets_down: a_tick(counts.packets_down),
        }
    }

    pub(super) fn kb(&self) -> f64 {
        (self.headers + self.inside) / 1_000.0
    }
}

/// Clients and rebuilds beside ggrs, all in turns.
pub(super) fn beside_ggrs(effort: &Effort) -> Beside {
    let mut cases =
        CASES.map(|(size, label, sticks, guesses)| Case::new((size, label), (sticks, guesses)));
    let mut alone = [(4 << 10, "4 KB"), (64 << 10, "64 KB")].map(Alone::new);
    let mut bench = Bench::default();
    let places = cases.each_mut().map(|case| case.add_pair(&mut bench));
    let alone_places = alone.each_mut().map(|alone| alone.add(&mut bench));
    let results = bench.run(Laps {
        rounds: effort.rounds,
        chunks: effort.chunks,
    });
    cases.iter().for_each(Case::check_pair);
    let frames = cases.iter().zip(places).map(|(case, (ours, theirs))| Pair {
        label: case.label.clone(),
        ours: results.rounds(ours, Part::Whole),
        theirs: results.rounds(theirs, Part::Whole),
    });
    let again = alone.iter().zip(alone_places).map(|(alone, places)| {
        let rolling = results.rounds(places.rolling, Part::Whole);
        let straight = results.rounds(places.straight, Part::Whole);
        let theirs = rolling.iter().zip(straight);
        Pair {
            label: alone.label.to_owned(),
            ours: results.rounds(places.rebuild, Part::Whole),
            theirs: theirs
                .map(|(rolling, straight)| rolling - straight)
                .collect(),
        }
    });
    let most = |part| {
        let of = places
            .iter()
            .map(|(ours, _)| results[*ours][part].allocations);
        of.fold(0.0, f64::max)
    };
    Beside {
        frames: frames.collect(),
        again: again.collect(),
        allocations: (most(Part::Whole), most(Part::Match)),
        held: Bytes::of(&cases[0].two.counts()),
        changing: Bytes::of(&cases[1].two.counts()),
    }
}

/// Virtual seconds that a second of this core plays of a Powderkeg world: a server, four clients, their lines.
pub(super) fn worlds(effort: &Effort) -> Result<Vec<f64>, Failed> {
    let round = |seed| -> Result<f64, Failed> {
        let mut config = RigConfig::new(seed, LinkProfile::WAN);
        config.sticks = Moves::Sticky;
        config.fps = 60;
        config.verify = false;
        let mut rig = Rig::<Game>::new(config);
        rig.observe(false);
        rig.run(Duration::from_secs(5));
        // By the time on a processor: it is one thread, and others' work must not count.
        let before = cpu()?;
        rig.run(effort.world);
        let spent = cpu()? - before;
        Ok(effort.world.as_secs_f64() * 1e6 / spent.total_us().max(1) as f64)
    };
    (1..=effort.rounds as u64).map(round).collect()
}

/// Frames of a game's thread at a wrong guess a turn: a label, where it is rebuilt, what each round came to.
pub(super) fn game_thread(effort: &Effort) -> Vec<(&'static str, Vec<crowd::Round>)> {
    let (inline, away) = (Reconcile::Inline, Reconcile::Background);
    let ms = Duration::from_millis;
    let rows = [
        (
            "as it is, in the background",
            away,
            ms(0),
            effort.rounds.min(3),
        ),
        ("as it is, inline", inline, ms(0), 1),
        ("2 ms, in the background", away, ms(2), 1),
        ("2 ms, inline", inline, ms(2), 1),
        ("5 ms, in the background", away, ms(5), 1),
        ("5 ms, inline", inline, ms(5), 1),
    ];
    let rows = rows.into_iter().take(effort.crowd_rows);
    let round = |how, extra| crowd::round(how, extra, effort.crowd_frames);
    rows.map(|(label, how, extra, rounds)| {
        (label, (0..rounds).map(|_| round(how, extra)).collect())
    })
    .collect()
}
