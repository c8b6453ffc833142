//! The traces that a step leaves in its process: hashers that it creates, threads that it starts, and whether its
//! result depends on the addresses of its memory.
//!
//! Invariant: a trace that cannot be measured counts as not found, so the named cause does not depend on how the
//! standard library is built.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use twinstep_core::Mwc;

/// A step starts threads if it does so in each of this many runs; other code in the process may also start threads.
const RUNS: usize = 64;
/// The number of hashers created by one `next_hasher` call.
const HASHERS: u64 = 2;
/// The number of blocks that move the addresses of later allocations.
const BLOCKS: usize = 256;
/// The sizes of the blocks that fill a heap.
pub(crate) const SMALL_BYTES: Range<usize> = 16..1_040;
pub(crate) const LARGE_BYTES: Range<usize> = 1_040..64 << 10;
/// The number of blocks of each size.
const HOLES: usize = 16;
/// Locked while a check counts. Two checks at once would count each other's threads.
static COUNTING: Mutex<()> = Mutex::new(());
/// The distance by which a deeper call moves a step's own variables on the stack, up to [`DEPTHS`] times.
const DEEPER_BYTES: usize = 4_096 + 48;
const DEPTHS: u64 = 5;

/// The traces that a step leaves each time it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traces {
    pub(crate) hashes: bool,
    pub(crate) starts_threads: bool,
}

impl Traces {
    pub(crate) fn of(mut step: impl FnMut()) -> Traces {
        let _counts_alone = COUNTING.lock();
        let mut traces = Traces {
            hashes: true,
            starts_threads: true,
        };
        for _ in 0..RUNS {
            let (hashers, threads) = (next_hasher(), next_thread());
            step();
            traces.starts_threads &= passed(threads, next_thread()) > Some(1);
            traces.hashes &= passed(hashers, next_hasher()) > Some(HASHERS);
            if !traces.hashes && !traces.starts_threads {
                break;
            }
        }
        traces
    }
}

fn passed(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.wrapping_sub(before?))
}

/// The first key of this thread's next hasher. The standard library increments it, from a random start in each thread.
fn next_hasher() -> Option<u64> {
    let key = || number_after(&format!("{:?}", RandomState::new().build_hasher()), "k0: ");
    let (one, next) = (key()?, key()?);
    (next == one.wrapping_add(1)).then_some(next)
}

/// The number of the next thread. The standard library numbers all threads of a process.
fn next_thread() -> Option<u64> {
    let id = thread::scope(|scope| scope.spawn(|| thread::current().id()).join().ok())?;
    number_after(&format!("{id:?}"), "ThreadId(")
}

fn number_after(text: &str, mark: &str) -> Option<u64> {
    let (_, number) = text.split_once(mark)?;
    let end = number.find(|c: char| !c.is_ascii_digit())?;
    number[..end].parse().ok()
}

/// Runs `step` with its memory at other addresses: behind other blocks of the heap, and deeper in the stack.
pub(crate) fn elsewhere<T>(seed: u64, step: impl FnOnce() -> T) -> T {
    let held = stir(seed);
    let (mut step, mut done) = (Some(step), None);
    descend(1 + seed % DEPTHS, &mut || {
        done = step.take().map(|step| step());
    });
    drop(held);
    done.expect("`descend` runs it once")
}

/// Allocates blocks, and frees some of them in a different order, so that later allocations have other addresses.
/// Returns the blocks that stay.
pub(crate) fn stir(seed: u64) -> Vec<Vec<u8>> {
    let mut luck = Mwc::seed(seed);
    let size = |n: usize| 16 << (n % 8);
    let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|n| Vec::with_capacity(size(n))).collect();
    for _ in 0..BLOCKS / 2 {
        blocks.swap_remove(luck.below(blocks.len() as u32) as usize);
    }
    blocks
}

/// Allocates blocks of these sizes, which take the holes that earlier work left in the heap.
pub(crate) fn fill(sizes: Range<usize>) -> Vec<Vec<u8>> {
    // An allocator keeps small blocks by their exact size.
    let step = |size: usize| match size < SMALL_BYTES.end {
        true => 16,
        false => size / 8,
    };
    let mut blocks = Vec::with_capacity(1_024);
    let mut size = sizes.start;
    while size < sizes.end {
        blocks.extend((0..HOLES).map(|_| black_box(Vec::with_capacity(size))));
        size += step(size);
    }
    blocks
}

#[inline(never)]
fn descend(depth: u64, work: &mut dyn FnMut()) {
    let room = black_box([0_u8; DEEPER_BYTES]);
    match depth {
        0 => work(),
        _ => descend(depth - 1, work),
    }
    black_box(&room);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashers_and_threads_leave_traces() {
        let none = Traces::of(|| drop(black_box(vec![1, 2])));
        assert!(!none.hashes && !none.starts_threads, "{none:?}");
        let hashes = Traces::of(|| _ = black_box(RandomState::new()));
        assert!(hashes.hashes && !hashes.starts_threads, "{hashes:?}");
        let threads = Traces::of(|| thread::scope(|scope| drop(scope.spawn(|| ()))));
        assert!(threads.starts_threads && !threads.hashes, "{threads:?}");
    }

    #[test]
    fn the_seed_changes_the_addresses_of_a_steps_memory() {
        let at = |seed| {
            elsewhere(seed, || {
                let local = black_box(seed);
                (&raw const *black_box(&local)) as usize
            })
        };
        assert_ne!(at(1), at(2));
    }
}
