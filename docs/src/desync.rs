//! Chapter 7: reading a desync report.
//!
//! # What happens
//!
//! Packets of the server carry digests of its world: of each turn's while the world is small (64 KB), at least once a second of
//! any other. A client whose own differs stops its authority there, tells
//! `Event::Differs`, and is healed: it goes on from the server's world (`Event::Healed`), while its picture goes on. Nobody
//! else notices. Then it fetches the server's world of the very tick at which it differed, compares both field by field, and
//! tells `Event::Desync`:
//!
//! ```text
//! tick t1043: client != server
//! sim.enemies[3].hp: 20 != 19
//! sim.enemies[3].stunned_until: 1042 != 1070
//! ```
//!
//! At most 1,000 bytes: the first 16 fields. The server keeps the same text as that client's word
//! ([`Running::take_reports`](twinstep_host::Running::take_reports)); a folder for
//! [`incidents`](twinstep_host::HostConfig::incidents) gets it as a file.
//!
//! # Whose fault is it?
//!
//! The server answers this by itself: it plays its journal again to that tick, twice.
//!
//! | the journal's frames lead to | then | it says |
//! |---|---|---|
//! | the server's world, each time | the client differs: another platform, another build, broken memory, a modified client | the report, with nothing added |
//! | another world than the server's, the same each time | the server's memory was changed otherwise: a bug outside of the step, broken memory | `server_at_fault`, an incident |
//! | another world each time | the step is not pure | `step_impure`, an incident: the step is at fault, no machine |
//!
//! # From the fields to the cause
//!
//! The first field in the list is the first in the *state's* order, not in time. Ask which of them could be wrong alone.
//!
//! | what is seen | where to look |
//! |---|---|
//! | only on clients that joined late, returned or were healed | `#[serde(skip)]`; a field that is rounded when it is serialised |
//! | only on one kind of machine, in the last digits of floats | a transcendental that is not `libm`'s; see [determinism](super::determinism) |
//! | only where a list is in another order: `keys()[0]` | a map in hash order |
//! | after somebody else's wrong guess | ids or keys from a shared counter |
//! | at once, at tick 0 or 1 | other rules, or another build under the same `VERSION` |
//! | `Event::StepFault` beside it | the step itself, on that client: it says whether it differs by phase, or is not pure |
//!
//! Then make it small: `check` of `twinstep-testing` with a script that does what happened, or the journal played again
//! (`powderkeg replay FILE --verify` shows how: it is [`twinstep_server::replay`]) with a build that has the suspect changed.
//!
//! Next: [sizes and costs](super::costs).
