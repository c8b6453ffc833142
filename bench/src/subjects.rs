//! What is measured: parties of both sides under the same circumstances, and what needs no party.
//!
//! Each subject adds itself to the [`Bench`] and remembers where its readings will be.

use std::hint::black_box;

use twinstep_core::Tick;
use twinstep_core::digest::digest;
use twinstep_core::world::World;

use crate::measure::{Bench, Meters, Part, Place};
use crate::peer_ggrs::{Checksums, SyncTest};
use crate::simulation::{Blob, ONE_WAY_TICKS, PLAYERS, Pad, Sticks};
use crate::{ours, peer_ggrs};

/// Frames of a chunk: a multiple of 4, so that every chunk has as many turns of each kind.
pub(crate) const CHUNK_FRAMES: usize = 300;
/// Blocks of a chunk for what has no frames.
const CHUNK_BLOCKS: usize = 15;
/// Laps of such a block: some take nanoseconds.
const SHORT_LAPS: u32 = 20;

/// One state size and kind of sticks, four times.
pub(crate) struct Case {
    pub(crate) label: String,
    pub(crate) size: usize,
    pub(crate) sticks: Sticks,
    /// Turns of two ticks, as in the action preset.
    pub(crate) two: ours::Party,
    /// Turns of one tick: a rebuild at every frame, as ggrs does it.
    pub(crate) one: ours::Party,
    pub(crate) ggrs: peer_ggrs::Party,
    pub(crate) ggrs_checksums: peer_ggrs::Party,
}

impl Case {
    pub(crate) fn new(
        (size, size_label): (usize, &str),
        (sticks, sticks_label): (Sticks, &str),
    ) -> Self {
        Case {
            label: format!("{size_label}, {sticks_label}"),
            size,
            sticks,
            two: ours::Party::new(size, 2, sticks),
            one: ours::Party::new(size, 1, sticks),
            ggrs: peer_ggrs::Party::new(size, sticks, Checksums::Off),
            ggrs_checksums: peer_ggrs::Party::new(size, sticks, Checksums::EverySecondFrame),
        }
    }

    pub(crate) fn add<'a>(&'a mut self, bench: &mut Bench<'a>) -> CasePlaces {
        let frames = |meters: &mut Meters, frame: &mut dyn FnMut(&mut Meters)| {
            (0..CHUNK_FRAMES).for_each(|_| frame(meters));
        };
        let (two, one) = (&mut self.two, &mut self.one);
        let (off, on) = (&mut self.ggrs, &mut self.ggrs_checksums);
        CasePlaces {
            two: bench.add(move |meters| frames(meters, &mut |meters| two.frame(meters))),
            ggrs: bench.add(move |meters| frames(meters, &mut |meters| off.frame(meters))),
            one: bench.add(move |meters| frames(meters, &mut |meters| one.frame(meters))),
            ggrs_checksums: bench.add(move |meters| frames(meters, &mut |meters| on.frame(meters))),
        }
    }
}

impl Case {
    /// Only the action preset's turns, and ggrs as it is by default.
    pub(crate) fn add_pair<'a>(&'a mut self, bench: &mut Bench<'a>) -> (Place, Place) {
        let (two, off) = (&mut self.two, &mut self.ggrs);
        let ours = bench.add(move |meters| (0..CHUNK_FRAMES).for_each(|_| two.frame(meters)));
        let theirs = bench.add(move |meters| (0..CHUNK_FRAMES).for_each(|_| off.frame(meters)));
        (ours, theirs)
    }

    /// That what was measured is what the report says.
    pub(crate) fn check(&self) {
        self.check_of(&[&self.two, &self.one], &[&self.ggrs, &self.ggrs_checksums]);
    }

    /// The same, of what [`add_pair`](Case::add_pair) added.
    pub(crate) fn check_pair(&self) {
        self.check_of(&[&self.two], &[&self.ggrs]);
    }

    fn check_of(&self, ours: &[&ours::Party], theirs: &[&peer_ggrs::Party]) {
        for party in ours {
            let counts = party.counts();
            let rebuilds = match self.sticks {
                Sticks::Still => 0,
                Sticks::Moving => counts.turns,
            };
            assert_eq!(counts.rebuilds, rebuilds, "rebuilds of {}", self.label);
            assert_eq!((counts.fills, counts.desyncs), (0, 0), "{}", self.label);
        }
        for party in theirs {
            let counts = party.counts();
            let rollbacks = match self.sticks {
                Sticks::Still => 0,
                Sticks::Moving => counts.frames,
            };
            assert_eq!(counts.rollbacks, rollbacks, "rollbacks of {}", self.label);
            assert_eq!(counts.desyncs, 0, "{}", self.label);
        }
    }
}

/// Where a case's readings are.
#[derive(Clone, Copy)]
pub(crate) struct CasePlaces {
    pub(crate) two: Place,
    pub(crate) one: Place,
    pub(crate) ggrs: Place,
    pub(crate) ggrs_checksums: Place,
}

/// What needs no party, for one state size.
pub(crate) struct Alone {
    pub(crate) label: &'static str,
    rebuild: ours::Rebuild,
    rolling: SyncTest,
    straight: SyncTest,
    world: World<Blob>,
    copy: World<Blob>,
    state: Blob,
    bytes: Vec<u8>,
    stepped: Blob,
}

impl Alone {
    pub(crate) fn new((size, label): (usize, &'static str)) -> Self {
        let world = World::new(Blob::new(size), Tick(0));
        Alone {
            label,
            rebuild: ours::Rebuild::new(size),
            rolling: SyncTest::new(size, ONE_WAY_TICKS as usize),
            straight: SyncTest::new(size, 0),
            copy: world.clone(),
            world,
            state: Blob::new(size),
            bytes: vec![7; size],
            stepped: Blob::new(size),
        }
    }

    pub(crate) fn add<'a>(&'a mut self, bench: &mut Bench<'a>) -> AlonePlaces {
        let Alone {
            rebuild,
            rolling,
            straight,
            world,
            copy,
            state,
            bytes,
            stepped,
            ..
        } = self;
        let world = &*world;
        let mut add = |mut work: Box<dyn FnMut() + 'a>| {
            bench.add(move |meters| {
                for _ in 0..CHUNK_BLOCKS {
                    meters[Part::Whole].laps(SHORT_LAPS, &mut *work);
                }
            })
        };
        AlonePlaces {
            rebuild: add(Box::new(|| rebuild.rebuild())),
            rolling: add(Box::new(|| rolling.frame())),
            straight: add(Box::new(|| straight.frame())),
            clone_from: add(Box::new(|| {
                copy.clone_from(world);
                black_box(&*copy);
            })),
            clone: add(Box::new(|| drop(black_box(state.clone())))),
            digest: add(Box::new(|| drop(black_box(world.digest())))),
            digest_bytes: add(Box::new(|| drop(black_box(digest(&*bytes))))),
            step: add(Box::new(|| {
                stepped.play((0..PLAYERS as u32).map(|n| Pad(black_box(n))));
            })),
        }
    }
}

/// Where the readings of an [`Alone`] are.
#[derive(Clone, Copy)]
pub(crate) struct AlonePlaces {
    pub(crate) rebuild: Place,
    pub(crate) rolling: Place,
    pub(crate) straight: Place,
    pub(crate) clone_from: Place,
    pub(crate) clone: Place,
    pub(crate) digest: Place,
    pub(crate) digest_bytes: Place,
    pub(crate) step: Place,
}
