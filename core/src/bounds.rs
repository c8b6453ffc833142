//! Law **Bounded**: every queue, size and rate has a number, and it stands here.
//!
//! Values are proposals tuned by measurement; that each is *some* number is the law. The assertions at the
//! end tie together those that depend on each other.

use core::time::Duration;

/// Players of one match.
pub const PLAYERS_MAX: usize = 16;
/// Local players ("seats") of one session.
pub const SEATS_MAX: usize = 4;

/// How far the prediction may run ahead of the authority, in ticks: lead = P − A.
pub const LEAD_MAX: u32 = 64;
/// The largest input delay, in ticks.
pub const DELAY_MAX: u32 = 32;
/// How far inputs may run ahead of the authority, in ticks: reach = I − A. The same number is the client's
/// resend window and the server's acceptance window.
pub const INPUT_WINDOW: u32 = 96;
/// Worlds that the server keeps, in ticks: for resolvers that look back and for desync reports.
pub const HISTORY: u32 = 64;
/// Sealed frames that the server keeps in memory for joiners, in ticks (30 s at 60 Hz).
pub const BACKLOG: u32 = 1_800;

/// Ticks of a turn.
pub const TURN_TICKS_MAX: u8 = 20;
/// The shortest tick.
pub const TICK_MIN: Duration = Duration::from_millis(1);
/// The longest tick.
pub const TICK_MAX: Duration = Duration::from_secs(1);
/// The largest command delay m, in turns: a batch closed in turn n runs in turn n + m.
pub const COMMAND_DELAY_MAX: u8 = 4;

/// For how long a missing input is taken to be the last one, in ticks; then neutral.
pub const INPUT_REPEAT_TICKS: u32 = 10;
/// A player without any input for so many ticks is dropped.
pub const DROP_AFTER_TICKS: u32 = 120;

/// An encoded input, in bytes.
pub const INPUT_BYTES_MAX: usize = 16;
/// An encoded command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 128;
/// An encoded outcome, in bytes.
pub const OUTCOME_BYTES_MAX: usize = 256;
/// An encoded frame, in bytes; what does not fit waits for the next tick, in canonical order.
pub const FRAME_BYTES_MAX: usize = 512;
/// A session packet, in bytes, before the transport's own headers.
pub const PACKET_BYTES_MAX: usize = 1_100;
/// Datagrams that one send may be split over; each is decodable alone.
pub const PACKETS_PER_SEND_MAX: usize = 4;
/// A snapshot of a world, in bytes.
pub const WORLD_BYTES_MAX: usize = 8 << 20;
/// A client's desync report, in bytes.
pub const REPORT_BYTES_MAX: usize = 1_000;

/// Commands of one player in one tick.
pub const COMMANDS_PER_TICK: usize = 4;
/// Commands of one player per second, counted where they arrive, and the burst allowed.
pub const COMMANDS_PER_SECOND: u32 = 20;
/// Turns, repetitions and commands are counted up to here, so that a small sum with them never wraps: no match
/// lasts so long, and a file or peer that says so is not believed.
pub const COUNT_MAX: u32 = u32::MAX / 2;

/// Commands of one player that wait for their tick at either end.
pub const COMMANDS_OPEN_MAX: usize = 64;
/// Claims of one player per second, at most one a tick.
pub const CLAIMS_PER_SECOND: u32 = 8;

/// Queries asked in one tick; what is asked beyond is answered `None` at the next.
pub const ASKS_PER_TICK: usize = 16;
/// Queries that wait for their answer in one world.
pub const QUERIES_OPEN_MAX: usize = 64;
/// Refused queries that one tick may carry over; asks beyond these are dropped and counted.
pub const QUERIES_REFUSED_MAX: usize = 64;
/// A query unanswered for so many ticks is answered `None`.
pub const ANSWER_TICKS: u32 = 120;

/// Where owners answer, the server answers itself after so many ticks without their word.
pub const OWNER_TICKS: u32 = 60;
/// Answers of one session that wait to be looked at; the client says the others again.
pub const ANSWERS_MAX: usize = ASKS_PER_TICK;

/// Cues that wait for the authority.
pub const CUES_OPEN_MAX: usize = 1_024;
/// How far a cue may move between a guess and the truth and still be the same one, in ticks.
pub const CUE_DRIFT_TICKS: u32 = 12;
/// Announced inputs reach so many ticks beyond the next tick to seal.
pub const ANNOUNCE_TICKS: u32 = 8;

/// Spectators of one match who see it as it is played.
pub const SPECTATORS_LIVE_MAX: usize = 16;
/// Spectators of one match who see it later.
pub const SPECTATORS_DELAYED_MAX: usize = 512;
/// The shortest delay of a delayed spectator, in ticks.
pub const SPECTATOR_DELAY_MIN: u32 = 180;
/// The longest delay of a delayed spectator, in ticks. Its world may be 300 ticks older still, so that 600 of
/// [`BACKLOG`] are left to load that world: 10 s at 60 Hz, 5 MiB at [`BULK_BYTES_PER_SECOND`].
pub const SPECTATOR_DELAY_MAX: u32 = 900;

/// Every client sends at least this often, in every state.
pub const KEEP_ALIVE: Duration = Duration::from_millis(100);
/// Without progress of a client's acks for so long, it is sent 10 packets/s only.
pub const ACK_SLOW_AFTER: Duration = Duration::from_secs(1);
/// Without progress of a client's acks for so long, its session is closed.
pub const ACK_CLOSE_AFTER: Duration = Duration::from_secs(10);
/// A join takes at most so long, from when its world is on its way.
pub const JOIN_TIME_MAX: Duration = Duration::from_secs(30);
/// A world that others wait behind is given so long to get under way...
pub const JOIN_START: Duration = Duration::from_secs(3);
/// ...and from then on comes at least so fast, in bytes per second.
pub const JOIN_BYTES_PER_SECOND: u32 = 16 << 10;
/// Snapshots on their way to joiners at once, per match.
pub const JOINS_AT_ONCE: usize = 2;
/// A player is healed at most once in so long.
pub const HEAL_EVERY: Duration = Duration::from_secs(10);
/// Heals of one player in one match; the next one closes its session.
pub const HEALS_MAX: u32 = 4;
/// Protocol errors in [`STRIKE_WINDOW`] that close a session.
pub const STRIKES_MAX: u32 = 8;
/// The window in which strikes are counted.
pub const STRIKE_WINDOW: Duration = Duration::from_secs(10);
/// Bytes per second of bulk data down to one session.
pub const BULK_BYTES_PER_SECOND: u32 = 512 << 10;
/// What one identity may cost the others within a minute, in time that they wait for it.
pub const WAITED_PER_MINUTE: Duration = Duration::from_secs(20);
/// A round trip that steers a policy is clipped to this.
pub const RTT_MAX: Duration = Duration::from_millis(500);

const _: () = assert!(OWNER_TICKS < ANSWER_TICKS);
const _: () = assert!(INPUT_WINDOW >= LEAD_MAX + DELAY_MAX);
const _: () = assert!(INPUT_BYTES_MAX * PLAYERS_MAX <= FRAME_BYTES_MAX / 2);
const _: () = assert!(FRAME_BYTES_MAX * 2 <= PACKET_BYTES_MAX);
const _: () = assert!(PLAYERS_MAX <= 16, "player sets are 16-bit masks");
