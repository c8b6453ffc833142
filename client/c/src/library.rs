//! [`library!`](crate::library!): the functions that a game's library exports.

/// Exports a game to C: `library!(Pucks, "pucks")` exports `pucks_join`, `pucks_advance` and the rest, and declares
/// `pub fn header() -> String`, which returns the text of `pucks.h`.
///
/// Use it once, in a crate with `crate-type = ["cdylib"]` (or `staticlib`, for iOS). The prefix must be a C name in
/// lower case. A profile with `panic = "abort"` does not compile: a panic would end the engine.
#[macro_export]
macro_rules! library {
    ($game:ty, $prefix:literal) => {
        /// The text of the library's C header.
        #[must_use]
        pub fn header() -> String {
            $crate::header::<$game>($prefix)
        }

        #[cfg(not(panic = "unwind"))]
        compile_error!("a library for C needs panic = \"unwind\": a panic must not end the engine");

        #[allow(
            unsafe_code,
            clippy::missing_safety_doc,
            reason = "the header has the contract"
        )]
        const _: () = {
            use ::std::ffi::c_char;
            use $crate::{CCue, CEntity, CEvent, CGame, CMatches};

            static MATCHES: CMatches<$game> = CMatches::new();

            type Pad = <$game as CGame>::Pad;
            type Command = <$game as CGame>::Command;
            type Entity = CEntity<<$game as CGame>::Pose>;
            type Hud = <$game as CGame>::Hud;
            type Cue = CCue<<$game as CGame>::Cue>;

            // SAFETY, for all of them: the header requires of callers what the library's functions require, and the
            // names start with the game's prefix, so that no other symbol has them.

            #[unsafe(export_name = concat!($prefix, "_join"))]
            unsafe extern "C" fn join(abi: u32, ticket: *const c_char) -> u64 {
                unsafe { MATCHES.join(abi, ticket) }
            }

            #[unsafe(export_name = concat!($prefix, "_alone"))]
            extern "C" fn alone(abi: u32, seats: u32) -> u64 {
                MATCHES.alone(abi, seats)
            }

            #[unsafe(export_name = concat!($prefix, "_advance"))]
            unsafe extern "C" fn advance(at: u64, now_s: f64, pads: *const Pad, seats: u32) -> i32 {
                unsafe { MATCHES.advance(at, now_s, pads, seats) }
            }

            #[unsafe(export_name = concat!($prefix, "_send"))]
            unsafe extern "C" fn send(at: u64, seat: u32, command: *const Command) -> i64 {
                unsafe { MATCHES.send(at, seat, command) }
            }

            #[unsafe(export_name = concat!($prefix, "_shown"))]
            unsafe extern "C" fn shown(at: u64, entities: *mut Entity, room: usize) -> usize {
                unsafe { MATCHES.shown(at, entities, room) }
            }

            #[unsafe(export_name = concat!($prefix, "_get_hud"))]
            unsafe extern "C" fn get_hud(at: u64, hud: *mut Hud) -> i32 {
                unsafe { MATCHES.hud(at, hud) }
            }

            #[unsafe(export_name = concat!($prefix, "_poll_cue"))]
            unsafe extern "C" fn poll_cue(at: u64, cue: *mut Cue) -> i32 {
                unsafe { MATCHES.poll_cue(at, cue) }
            }

            #[unsafe(export_name = concat!($prefix, "_poll_event"))]
            unsafe extern "C" fn poll_event(
                at: u64,
                event: *mut CEvent,
                text: *mut c_char,
                room: usize,
            ) -> i32 {
                unsafe { MATCHES.poll_event(at, event, text, room) }
            }

            #[unsafe(export_name = concat!($prefix, "_why"))]
            unsafe extern "C" fn why(at: u64, text: *mut c_char, room: usize) -> usize {
                unsafe { MATCHES.why(at, text, room) }
            }

            #[unsafe(export_name = concat!($prefix, "_leave"))]
            extern "C" fn leave(at: u64) {
                MATCHES.leave(at);
            }

            #[unsafe(export_name = concat!($prefix, "_leave_all"))]
            extern "C" fn leave_all() {
                MATCHES.leave_all();
            }
        };
    };
}
