//! [`Counting`]: an allocator that counts, for reports of allocations per step.
#![allow(
    unsafe_code,
    reason = "a global allocator; it forwards everything to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The system's allocator, with a count of each thread's allocations. Put it into the test's file:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: twinstep_testing::Counting = twinstep_testing::Counting;
/// # fn main() {}
/// ```
///
/// Cost: about a nanosecond per allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static KEPT: Cell<i64> = const { Cell::new(0) };
}

/// Whether the shared counter is on. It is off until it is requested, because threads would contend for it.
static TOGETHER: AtomicBool = AtomicBool::new(false);
static ALL: AtomicU64 = AtomicU64::new(0);

fn count_one() {
    if TOGETHER.load(Ordering::Relaxed) {
        ALL.fetch_add(1, Ordering::Relaxed);
    }
    // The counter no longer exists while its thread ends.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

fn keep(bytes: usize) {
    let _ = KEPT.try_with(|kept| kept.set(kept.get() + bytes as i64));
}

fn give_back(bytes: usize) {
    let _ = KEPT.try_with(|kept| kept.set(kept.get() - bytes as i64));
}

// SAFETY: all calls are forwarded to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        keep(layout.size());
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give_back(layout.size());
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        give_back(layout.size());
        keep(size);
        // SAFETY: the caller's contract is the system's.
        unsafe { System.realloc(at, layout, size) }
    }
}

impl Counting {
    /// Allocations and reallocations of this thread so far; always 0 if this is not the program's allocator.
    #[must_use]
    pub fn allocations() -> u64 {
        COUNT.with(Cell::get)
    }

    /// Bytes that this thread allocated, minus those that it freed, whichever thread allocated them; always 0 if this
    /// is not the program's allocator.
    ///
    /// ```
    /// #[global_allocator]
    /// static ALLOCATOR: twinstep_testing::Counting = twinstep_testing::Counting;
    /// # fn main() {
    /// let before = twinstep_testing::Counting::live_bytes();
    /// let list = vec![7_u8; 100];
    /// assert_eq!(twinstep_testing::Counting::live_bytes(), before + 100);
    /// drop(list);
    /// assert_eq!(twinstep_testing::Counting::live_bytes(), before);
    /// # }
    /// ```
    #[must_use]
    pub fn live_bytes() -> i64 {
        KEPT.with(Cell::get)
    }

    /// Allocations and reallocations of all threads since the first call, which returns 0. From then on, each
    /// allocation costs a few nanoseconds more.
    ///
    /// ```
    /// #[global_allocator]
    /// static ALLOCATOR: twinstep_testing::Counting = twinstep_testing::Counting;
    /// # fn main() {
    /// assert_eq!(twinstep_testing::Counting::of_all_threads(), 0);
    /// std::thread::spawn(|| vec![7_u8; 100].len()).join().unwrap();
    /// assert!(twinstep_testing::Counting::of_all_threads() > 0);
    /// # }
    /// ```
    #[must_use]
    pub fn of_all_threads() -> u64 {
        TOGETHER.store(true, Ordering::Relaxed);
        ALL.load(Ordering::Relaxed)
    }
}

pub(crate) fn is_installed() -> bool {
    let before = Counting::allocations();
    drop(black_box(Box::new(0_u8)));
    Counting::allocations() > before
}
