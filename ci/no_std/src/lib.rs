//! Links twinstep-core and twinstep-protocol into a static library without std, with its own panic handler and
//! allocator, so that a dependency on std fails to build (two panic handlers).
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Never, PlayerId, RosterChange, Simulation, Tick};
use twinstep_protocol as _;

const HEAP_BYTES: usize = 1 << 20;

/// A bump allocator: it never frees memory.
struct Bump {
    heap: UnsafeCell<[u8; HEAP_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `used` hands each byte of `heap` out once.
unsafe impl Sync for Bump {}

// SAFETY: blocks are aligned, within the heap and never overlap.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = self.heap.get().cast::<u8>();
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let pad = (heap as usize + used).wrapping_neg() & (layout.align() - 1);
            let Some(end) = used
                .checked_add(pad)
                .and_then(|n| n.checked_add(layout.size()))
            else {
                return ptr::null_mut();
            };
            if end > HEAP_BYTES {
                return ptr::null_mut();
            }
            let taken = self
                .used
                .compare_exchange(used, end, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                // SAFETY: `used + pad` is below HEAP_BYTES.
                Ok(_) => return unsafe { heap.add(used + pad) },
                Err(now) => used = now,
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: Bump = Bump {
    heap: UnsafeCell::new([0; HEAP_BYTES]),
    used: AtomicUsize::new(0),
};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Presses {
    count: u64,
}

impl Simulation for Presses {
    const NAME: &'static str = "presses";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.count += frame
            .inputs()
            .map(|(_, held)| u64::from(*held))
            .sum::<u64>();
    }
}

/// Steps a world of one player by `ticks` ticks in which it holds `held`. Returns the digest, or 0 if a step or the
/// digest fails.
#[unsafe(no_mangle)]
pub extern "C" fn twinstep_fold(ticks: u32, held: u8) -> u64 {
    let player = PlayerId(0);
    let mut world = World::new(Presses::default(), Tick(0));
    let mut stepper = Stepper::default();
    let mut frame = FrameData::preallocated(Tick(0));
    for tick in 0..ticks {
        frame.reset(Tick(tick));
        if tick == 0 {
            frame.roster.push((player, RosterChange::Joined));
        }
        frame.inputs.set(player, Some(held));
        let perspective = Perspective::authority(Tick(tick));
        let stepped = stepper.step(&mut world, &frame, &(), perspective, PlayerSet::default());
        if stepped.is_err() {
            return 0;
        }
    }
    world.digest().unwrap_or(0)
}
