//! [`CMatches`]: the open matches of a library by number, and the bodies of the exported functions.
//!
//! A C program holds a number, not a pointer. The number of a match that was left, or of another load of the library,
//! names no match; a pointer would lead to memory with a different owner.
//!
//! Invariant: no panic leaves a function. If a game's code panics, its match is over.
#![expect(unsafe_code, reason = "the functions take pointers of a C program")]

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::boundary::{read, read_text, write, write_text};
use crate::game::CGame;
use crate::header::abi;
use crate::played::{CCue, CEntity, CEvent, CMatch, state};

const NO_MATCH: &str = "there is no such match: it was left, or the number is of another library";

/// The matches of a library.
#[doc(hidden)]
pub struct CMatches<G: CGame>(Mutex<OpenMatches<G>>);

struct OpenMatches<G: CGame> {
    last: u64,
    by_number: BTreeMap<u64, Arc<Mutex<CMatch<G>>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the game panicked: {}", text.unwrap_or("no text"))
}

/// Runs the game's code. Returns its result, or the message of its panic.
fn guarded<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panicked(&*panic))
}

/// Each function has the safety conditions of [`boundary`](crate::boundary): pointers are null, or as the header
/// requires.
#[expect(clippy::missing_safety_doc, reason = "hidden; see the line above")]
impl<G: CGame> CMatches<G> {
    #[expect(clippy::new_without_default, reason = "for a static")]
    pub const fn new() -> Self {
        CMatches(Mutex::new(OpenMatches {
            last: 0,
            by_number: BTreeMap::new(),
        }))
    }

    pub unsafe fn join(&self, program: u32, ticket: *const c_char) -> u64 {
        // SAFETY: guaranteed by the caller.
        let ticket = unsafe { read_text(ticket) };
        self.open(program, || CMatch::join(ticket?))
    }

    pub fn alone(&self, program: u32, seats: u32) -> u64 {
        self.open(program, || CMatch::alone(seats))
    }

    fn open(&self, program: u32, begin: impl FnOnce() -> Result<CMatch<G>, String>) -> u64 {
        let began = if program == abi::<G>() {
            guarded(begin).and_then(|began| began)
        } else {
            Err(
                "the program was compiled with the header of another build of this library: \
                 take the header that belongs to it"
                    .to_owned(),
            )
        };
        let begun = began.unwrap_or_else(CMatch::failed);
        let mut open = lock(&self.0);
        if open.last == 0 {
            // Random, so that no number of an earlier load names a match of this one. 52 bits fit into a `double`.
            open.last = RandomState::new().hash_one(()) >> 12;
        }
        open.last += 1;
        let number = open.last;
        open.by_number.insert(number, Arc::new(Mutex::new(begun)));
        number
    }

    fn with<R>(&self, number: u64, act: impl FnOnce(&mut CMatch<G>) -> R) -> Option<R> {
        let found = lock(&self.0).by_number.get(&number).cloned();
        let found = found?;
        let mut played = lock(&found);
        match guarded(|| act(&mut played)) {
            Ok(done) => Some(done),
            Err(why) => {
                // Dropping the game's values also runs the game's code.
                let _ = guarded(|| played.end_by_panic(why));
                None
            }
        }
    }

    pub unsafe fn advance(&self, number: u64, now_s: f64, pads: *const G::Pad, seats: u32) -> i32 {
        // SAFETY: the caller guarantees this many pads.
        let pads = (0..seats as usize).map_while(|seat| unsafe { read(pads, seat) });
        let state = self.with(number, |played| played.advance(now_s, pads));
        state.unwrap_or(state::OVER)
    }

    pub unsafe fn send(&self, number: u64, seat: u32, command: *const G::Command) -> i64 {
        // SAFETY: guaranteed by the caller.
        let command = unsafe { read(command, 0) };
        let sent = self.with(number, |played| played.send(seat, command));
        sent.unwrap_or(-1)
    }

    pub unsafe fn shown(&self, number: u64, out: *mut CEntity<G::Pose>, room: usize) -> usize {
        let shown = self.with(number, |played| {
            let entities = played.shown().enumerate().map(|(at, entity)| {
                if at < room {
                    // SAFETY: the caller guarantees space for this many.
                    unsafe { write(out, at, entity) };
                }
            });
            entities.count()
        });
        shown.unwrap_or(0)
    }

    pub unsafe fn hud(&self, number: u64, out: *mut G::Hud) -> i32 {
        let hud = self.with(number, |played| played.hud()).flatten();
        // SAFETY: guaranteed by the caller.
        hud.map_or(0, |hud| unsafe { one(out, hud) })
    }

    pub unsafe fn poll_cue(&self, number: u64, out: *mut CCue<G::Cue>) -> i32 {
        let cue = self.with(number, CMatch::poll_cue).flatten();
        // SAFETY: guaranteed by the caller.
        cue.map_or(0, |cue| unsafe { one(out, cue) })
    }

    pub unsafe fn poll_event(
        &self,
        number: u64,
        out: *mut CEvent,
        text: *mut c_char,
        room: usize,
    ) -> i32 {
        let event = self.with(number, CMatch::poll_event).flatten();
        event.map_or(0, |(event, says)| {
            // SAFETY: guaranteed by the caller.
            unsafe {
                write_text(&says, text, room);
                one(out, event)
            }
        })
    }

    pub unsafe fn why(&self, number: u64, text: *mut c_char, room: usize) -> usize {
        let why = self.with(number, |played| played.why().to_owned());
        let why = why.unwrap_or_else(|| NO_MATCH.to_owned());
        // SAFETY: guaranteed by the caller.
        unsafe { write_text(&why, text, room) }
    }

    pub fn leave(&self, number: u64) {
        self.with(number, CMatch::leave);
        let left = lock(&self.0).by_number.remove(&number);
        let _ = guarded(|| drop(left));
    }

    pub fn leave_all(&self) {
        let numbers: Vec<u64> = lock(&self.0).by_number.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.leave(number));
    }
}

/// Writes a value, and returns 1.
///
/// # Safety
/// `out` must be null, or have space for the value.
unsafe fn one<T>(out: *mut T, value: T) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { write(out, 0, value) };
    1
}
