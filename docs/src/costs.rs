//! Chapter 8: sizes and costs. What fits, what it takes, and what to measure.
//!
//! # Bounds
//!
//! | what | at most |
//! |---|---|
//! | players, of these at one screen | 16, 4 |
//! | spectators | 16 live, or 512 who are 3 to 15 s behind |
//! | an input, a command, an outcome | 16, 128 and 256 bytes |
//! | commands of a player | 20 a second, 64 on their way; claims: 8 a second |
//! | queries | 16 a tick, 64 open |
//! | cues that are neither confirmed nor cancelled | 1,024 |
//! | the world | 8 MiB encoded; an incident warns from half of it on |
//! | ticks | 1 to 1,000 a second; presets: 60 and 20 |
//! | how far a prediction runs ahead | 1.2 s, at least 64 and at most 223 ticks |
//!
//! All are constants of [`twinstep_core::bounds`]; what exceeds one is an error where it is given, never a silent cut.
//!
//! # Time of a client
//!
//! ```text
//!   frame  =  1 or 2 new ticks  +  (a wrong guess?)  copy of the world  +  lead × step
//!   lead   =  ticks on the way to the server and back, some 2 for jitter: 8 at 100 ms and 60 Hz, 14 at 200 ms
//! ```
//!
//! | if a step takes | a rebuild at 100 ms | verdict |
//! |---|---|---|
//! | 20 us | 0.2 ms | fine |
//! | 200 us | 1.6 ms | fine; `Reconcile::Background` takes it off the game's thread |
//! | 1 ms | 8 ms | in the background, or at 30 Hz |
//! | 5 ms | 40 ms | lockstep |
//!
//! A client that cannot keep up predicts less far before it does anything else: own inputs are never dropped, and the truth is
//! never skipped. `SessionStats::shed_ms` says for how long.
//!
//! `check` of `twinstep-testing` prints what a step, a copy and a digest of *your* state cost, how many bytes each of your types
//! takes of its bound, and how many ticks of lead that leaves at 60 Hz.
//!
//! # A cheap state
//!
//! The world is copied by [`Clone::clone_from`] at each rebuild. While it is small (64 KB) the server keeps a copy and takes a
//! digest at each tick, and clients take one each turn. Of a larger one digests are taken four times to once a second, and one
//! tick in 16 is kept: then a part of the state that nobody touches costs next to nothing, but for a look at each float of it,
//! which must not be NaN; a hook that [looks back](twinstep_server::hooks::HookContext::at) pays for a copy and up to 15 steps. So: flat `Vec`s of plain structs,
//! indices instead of boxes, no `String`s, no trees. `#[derive(Clone)]` gives a `clone_from` that allocates anew at every
//! rebuild; [`clone_fields!`](twinstep_core::clone_fields) writes one that keeps the buffers. Level and tuning belong into
//! the rules, which are never copied.
//!
//! A map that can be dug up, a voxel world, ground that burns: a million tiles of which a few change in a tick belong into a
//! [`Chunked`](twinstep_core::Chunked) list. Copies share what neither has changed, and a digest hashes what has: so that with
//! a few million of them the world is still digested at each turn, as what is small, and its rebuilds cost microseconds.
//! For who joins and for the journal all of it is encoded, on a thread of its own where it has more than 128 KiB.
//!
//! # A slow line
//!
//! A world comes at up to 512 KiB/s, and a join goes on for as long as its world comes on: 16 KiB of it in 13 s, so that an outage of
//! 10 s ends no join of one session. The frames since are kept meanwhile, for 400 s at most (at less than 60 Hz for longer: 24,000
//! ticks), within 16 MiB: so 8 MiB need a line of 168 kbit/s, and 4 MiB half of that. What takes longer ends with
//! [`JoinTooSlow`](twinstep_server::CloseCode::JoinTooSlow). Two worlds are on their way at once; one that takes less than 128 KiB/s makes room for
//! the next one after 5 s. A load that is cut off goes on where it ended if its client is back within a minute
//! ([`CUT_OFF_TIME`](twinstep_core::bounds::CUT_OFF_TIME)); for that a match keeps at most 16 MiB of encoded worlds. `Session::progress` says how much has come, and how long the rest takes.
//!
//! # Measured
//!
//! Four players, 60 Hz, in memory, `twinstep-bench quick` on a 2-core virtual machine (`bench/REPORT.md` has more):
//!
//! | state | client's frame, all guesses right | wrong at every turn | match, a client and tick | digest |
//! |---|--:|--:|--:|--:|
//! | 4 KB | 1.4 us | 2.1 us | 1.0 us | 0.6 us |
//! | 64 KB | 1.9 us | 3.7 us | 1.1 us | 7.1 us |
//!
//! No heap allocation in any of them. On the wire a player costs 5.1 KB/s both ways with all headers while controls are held,
//! 13.0 KB/s while they change at every tick, on a line that loses nothing; a journal of an idle match grows by 2 bytes a turn.
//!
//! Next: [what other genres and engines would choose](super::choices).
