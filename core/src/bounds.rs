//! Law **Bounded**: every queue, size and rate has a number. It stands here, or beside what it bounds.
//!
//! Values are proposals tuned by measurement; that each is *some* number is the law. The assertions at the
//! end tie together those that depend on each other.

use core::time::Duration;

/// Players of one match.
pub const PLAYERS_MAX: usize = 16;
/// Local players ("seats") of one session.
pub const SEATS_MAX: usize = 4;

/// How far the prediction may run ahead of the authority, in ticks: lead = P − A. What rings are made for; at a given
/// length of ticks it is [`lead_max`].
pub const LEAD_MAX: u32 = 223;
/// The lead that even long ticks allow, in ticks.
pub const LEAD_MIN: u32 = 64;
/// What a line may be silent for before a player's picture stands still, where that is more ticks than [`LEAD_MIN`].
/// With one second, bots on the preset `awful` stood still for up to 1.04 % of a minute; the aim is 1 %.
pub const LEAD_TIME: Duration = Duration::from_millis(1_200);
/// The largest input delay, in ticks.
pub const DELAY_MAX: u32 = 32;
/// How far inputs may run ahead of the authority, in ticks: reach = I − A. What rings are made for, and the server's
/// acceptance window; what a client allows itself at a given length of ticks is [`input_window`]. It fits into a byte.
pub const INPUT_WINDOW: u32 = 255;
/// How far back the server tells what its world was, in ticks: for resolvers that look back and for desync reports.
pub const HISTORY: u32 = 64;
/// Sealed frames that the server keeps in memory for joiners, in ticks, at least: more where these last for less than
/// [`BACKLOG_TIME`], see [`backlog`].
pub const BACKLOG: u32 = 1_800;
/// Sealed frames that the server keeps at most, in ticks: [`BACKLOG_TIME`] at 240 Hz.
pub const BACKLOG_MAX: u32 = 7_200;
/// For so long the server keeps sealed frames, if these are no more than [`BACKLOG_MAX`].
pub const BACKLOG_TIME: Duration = Duration::from_secs(30);

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
/// A player without any input for so long is dropped...
pub const DROP_AFTER: Duration = Duration::from_secs(2);
/// ...but not before so many ticks, for which its last input is repeated.
pub const DROP_AFTER_TICKS_MIN: u32 = 2 * INPUT_REPEAT_TICKS;

/// An encoded input, in bytes.
pub const INPUT_BYTES_MAX: usize = 16;
/// An encoded command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 128;
/// An encoded outcome, in bytes.
pub const OUTCOME_BYTES_MAX: usize = 256;
/// An encoded frame, in bytes, while there is much to tell; what does not fit waits for a later tick. Only where the
/// inputs alone take most of it a frame is larger: see [`FRAME_ROOM_MIN`].
pub const FRAME_BYTES: usize = 512;
/// Bytes of a frame that are neither an input, a roster change nor an entry of a list: masks, flags, counts, a cadence.
pub const FRAME_HEAD_BYTES: usize = 24;
/// A change of the roster in a frame, in bytes.
pub const ROSTER_CHANGE_BYTES: usize = 2;
/// A command or claim in a frame, in bytes: with its player and sequence.
pub const ORDER_BYTES_MAX: usize = COMMAND_BYTES_MAX + ORDER_HEAD_BYTES;
/// What an order takes beside the command.
pub const ORDER_HEAD_BYTES: usize = 6;
/// An outcome in a frame, in bytes: with the tick asked and the key.
pub const ANSWER_BYTES_MAX: usize = OUTCOME_BYTES_MAX + ANSWER_HEAD_BYTES;
/// What an answer takes beside the outcome: when it was asked, its key, whether there is an outcome.
pub const ANSWER_HEAD_BYTES: usize = 5 + 9 + 5 + 1;
/// What is kept of each frame for each kind of entry (outcomes, claims, commands) that waits for one, whatever the
/// others want. What a kind does not use is the others'.
pub const FRAME_SHARE_BYTES: usize = 48;
/// Entries of a frame have at least so much room, whatever its inputs take: the largest outcome fits beside what is
/// kept for the two other kinds, and so do two of the largest commands or claims.
pub const FRAME_ROOM_MIN: usize = ANSWER_BYTES_MAX + 2 * FRAME_SHARE_BYTES;
/// The largest frame, in bytes: one in which everybody's inputs are as large as they may be, everybody's presence
/// changes, and all of its room is used.
pub const FRAME_BYTES_MAX: usize = FRAME_HEAD_BYTES
    + ROSTER_CHANGE_BYTES * PLAYERS_MAX
    + INPUT_BYTES_MAX * PLAYERS_MAX
    + FRAME_ROOM_MIN;
/// The kinds of entries take turns at being served first, and within a kind the players do; so after so many ticks
/// everybody was first with everything once: whatever the others want, the largest order got its place.
pub const FRAME_TURNS_TICKS: u32 = 3 * PLAYERS_MAX as u32;
/// A session packet, in bytes, before the transport's own headers.
pub const PACKET_BYTES_MAX: usize = 1_100;
/// What a packet down holds beside frames, in bytes: acks, margins, fates, links.
pub const PLAY_HEAD_BYTES_MAX: usize = 400;
/// Refused orders that one packet tells; the others wait until these are heard.
pub const REFUSALS_PER_PACKET: usize = 32;
/// Datagrams that one send may be split over; each is decodable alone.
pub const PACKETS_PER_SEND_MAX: usize = 4;
/// Datagrams down that one send may be split over where so much was never told: a turn of 20 frames of [`FRAME_BYTES`]
/// and the first that the client lacks. One more says something again, where the client
/// does not say what it lacks.
pub const NEWS_PER_SEND_MAX: usize = 12;
/// Datagrams down of one send that say again what the client says it lacks.
pub const GAP_PACKETS_PER_SEND_MAX: usize = PACKETS_PER_SEND_MAX;
/// Frames beyond the first one that a client lacks that it is told of before it has that one: four seconds at 240 Hz.
pub const FRAMES_AHEAD_MAX: u32 = 1_024;
/// A snapshot of a world, in bytes.
pub const WORLD_BYTES_MAX: usize = 8 << 20;
/// Words of an operator to players, in bytes.
pub const NOTICE_BYTES_MAX: usize = 200;
/// A client's desync report, in bytes.
pub const REPORT_BYTES_MAX: usize = 1_000;

/// Lineages of tickets that one match remembers. Only what was let in by a ticket of the operator's is remembered.
pub const MATCH_LINEAGES_MAX: usize = 65_536;

/// Commands of one player in one tick.
pub const COMMANDS_PER_TICK: usize = 4;
/// Commands of one player in one tick, in bytes of the frame. Both ends know it: so a client alone with its orders
/// knows in which tick each will run.
pub const COMMANDS_PER_TICK_BYTES: usize = 2 * ORDER_BYTES_MAX;
/// Orders of one player that may always wait for room in a frame, in bytes: at 60 Hz they run within 1.6 s, whatever
/// the others order ([`FRAME_TURNS_TICKS`] twice).
pub const WAITING_BYTES_MIN: usize = 4 * ORDER_BYTES_MAX;
/// Orders of all players that wait for room in a frame, in bytes. What is more is refused at once: the newest of
/// whoever has most of them waiting. So 20 commands per second are granted as far as frames hold them: to each of 16
/// players at 60 Hz at least 335 bytes of them per second (a command and 6 bytes each), and whatever the others leave.
pub const WAITING_BYTES_MAX: usize = PLAYERS_MAX * WAITING_BYTES_MIN;
/// Commands of one player per second, counted where they arrive, and the burst allowed. What a line held up for longer than
/// a second arrives at once, so of as many commands as are granted some are refused then.
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
/// A query unanswered for so many ticks is answered `None`; for 2 s where these are more: see [`answer_ticks`].
pub const ANSWER_TICKS: u32 = 120;
/// A resolver has at least so long.
pub const ANSWER_TIME: Duration = Duration::from_secs(2);
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

/// Packets a second that a client says new inputs in, however fast it draws and however short ticks are; those of
/// ticks between ride along.
pub const INPUT_PACKETS_PER_SECOND: u32 = 120;
/// Every client sends at least this often, in every state.
pub const KEEP_ALIVE: Duration = Duration::from_millis(100);
/// Without progress of a client's acks for so long, it is sent something at most 10 times a second, and no frames but the
/// first ones that it lacks.
pub const ACK_SLOW_AFTER: Duration = Duration::from_secs(1);
/// Without progress of a client's acks for so long, it is sent that, and its lane, every [`SPARSE_EVERY`]: its seat counts as dropped for a
/// while, and who speaks again is answered at once. If it says nothing at all, it is sent no frames either.
pub const SPARSE_AFTER: Duration = Duration::from_secs(4);
/// See [`SPARSE_AFTER`].
pub const SPARSE_EVERY: Duration = Duration::from_millis(490);
/// Without progress of a client's acks for so long, its session is closed.
pub const ACK_CLOSE_AFTER: Duration = Duration::from_secs(10);
/// A session says hello within this, or it ends: as long as a transport waits for a client that is silent. A client says
/// it ten times a second.
pub const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// A world makes progress each time this many more bytes of it are acknowledged, and with its last byte.
pub const JOIN_STEP_BYTES: u64 = 16 << 10;
/// Each [`JOIN_STEP_BYTES`] of a world that others wait behind take at most this long, and four round trips more.
pub const JOIN_STEP_WITHIN: Duration = Duration::from_secs(3);
/// A join without progress for this long, and four round trips more, ends: [`JOIN_STEP_WITHIN`], and an outage of 10 s. Its
/// progress is a world's on its way; then, that it is a second of the match's ticks nearer to now than ever before. So
/// 8 MiB take at most 512 times that, if the frames since are kept for so long ([`load_ticks`]).
pub const JOIN_STALL_MAX: Duration = Duration::from_secs(13);
/// A world under way for this long, and two round trips more, at less than 128 KiB/s gives its place to the next joiner.
pub const JOIN_PLACE_TIME: Duration = Duration::from_secs(1);
/// Snapshots on their way to joiners at once, per match; those that come more slowly than that, and gave their place away, go
/// on beside them at 128 KiB/s each.
pub const JOINS_AT_ONCE: usize = 2;
/// For this time, at most, the frames since a world are kept that is on its way: 8 MiB come at 168 kbit/s in it.
pub const LOAD_TIME: Duration = Duration::from_secs(400);
/// Those frames, in ticks, at least: more where these last for less than [`LOAD_TIME`], see [`load_ticks`].
pub const LOAD_TICKS: u32 = 24_000;
/// Those frames at most, in ticks: [`LOAD_TIME`] at 240 Hz.
pub const LOAD_TICKS_MAX: u32 = 96_000;
/// A client is told that the server seals at most this many ticks beyond the frame that it wants: packets have 16 bits of a tick.
pub const SEALING_AHEAD_MAX: u32 = 1 << 14;
/// The most memory of those frames on the server, in bytes; heap of the game's own types is not counted.
pub const LOAD_FRAMES_BYTES_MAX: usize = 16 << 20;
/// What a join needs that was cut off is kept for this time, as long as a client tries to return: the rest of its world, and
/// the frames since.
pub const CUT_OFF_TIME: Duration = Duration::from_secs(60);
/// Worlds of joins that were cut off and are kept, per match, in bytes: two of the largest.
pub const CUT_OFF_BYTES_MAX: usize = 2 * WORLD_BYTES_MAX;
/// Joins that were cut off and are kept, per match.
pub const CUT_OFF_MAX: usize = 32;
/// A player is healed at most once in so long.
pub const HEAL_EVERY: Duration = Duration::from_secs(10);
/// Heals of one player within [`HEALS_WINDOW`]; the next one closes its session.
pub const HEALS_MAX: usize = 4;
/// A heal is forgotten after this time, so a match of a week forgives a memory error now and then.
pub const HEALS_WINDOW: Duration = Duration::from_secs(3_600);
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

/// A time in nanoseconds, at most 584 years of them. The 128 bits of [`Duration::as_nanos`] take a function call to divide.
#[must_use]
#[inline]
pub const fn nanos(time: Duration) -> u64 {
    let nanos = time.as_nanos();
    if nanos > u64::MAX as u128 {
        u64::MAX
    } else {
        nanos as u64
    }
}

/// A time in ticks of this length, to the nearest.
#[must_use]
#[inline]
pub const fn ticks_in(time: Duration, tick: Duration) -> u32 {
    let tick = nanos(tick);
    let ticks = nanos(time).saturating_add(tick / 2) / tick;
    if ticks > u32::MAX as u64 {
        u32::MAX
    } else {
        ticks as u32
    }
}

const fn within(ticks: u32, min: u32, max: u32) -> u32 {
    if ticks < min {
        min
    } else if ticks > max {
        max
    } else {
        ticks
    }
}

/// How far the prediction may run ahead at this length of ticks: [`LEAD_TIME`], within [`LEAD_MIN`]..=[`LEAD_MAX`] ticks.
#[must_use]
#[inline]
pub const fn lead_max(tick: Duration) -> u32 {
    within(ticks_in(LEAD_TIME, tick), LEAD_MIN, LEAD_MAX)
}

/// How far inputs may run ahead at this length of ticks: what the prediction may, and the largest input delay.
#[must_use]
#[inline]
pub const fn input_window(tick: Duration) -> u32 {
    lead_max(tick) + DELAY_MAX
}

/// How many sealed frames the server keeps at this length of ticks.
#[must_use]
pub const fn backlog(tick: Duration) -> u32 {
    within(ticks_in(BACKLOG_TIME, tick), BACKLOG, BACKLOG_MAX)
}

/// How many frames the server keeps at most, at this length of ticks, since a world that is on its way.
#[must_use]
pub const fn load_ticks(tick: Duration) -> u32 {
    within(ticks_in(LOAD_TIME, tick), LOAD_TICKS, LOAD_TICKS_MAX)
}

/// After how many ticks of this length without any input a player is dropped.
#[must_use]
pub const fn drop_after_ticks(tick: Duration) -> u32 {
    within(ticks_in(DROP_AFTER, tick), DROP_AFTER_TICKS_MIN, u32::MAX)
}

/// After how many ticks of this length a query is answered `None`.
#[must_use]
pub const fn answer_ticks(tick: Duration) -> u32 {
    within(ticks_in(ANSWER_TIME, tick), ANSWER_TICKS, u32::MAX)
}

/// Where owners answer, the server answers itself after so many ticks of this length without their word: half of what
/// there is, so that a slow resolver has the other half.
#[must_use]
pub const fn owner_ticks(tick: Duration) -> u32 {
    answer_ticks(tick) / 2
}

const _: () = assert!(INPUT_WINDOW <= u8::MAX as u32, "a reach is told in a byte");
const _: () = assert!(BACKLOG <= BACKLOG_MAX && BACKLOG_MAX <= LOAD_TICKS);
const _: () = assert!(INPUT_WINDOW >= LEAD_MAX + DELAY_MAX);
const _: () = assert!(INPUT_BYTES_MAX * PLAYERS_MAX <= FRAME_BYTES / 2);
const _: () = assert!(FRAME_BYTES * 2 <= PACKET_BYTES_MAX);
// A packet has a frame in it, whatever else it must tell: so there is always progress.
const _: () = assert!(FRAME_BYTES_MAX + PLAY_HEAD_BYTES_MAX <= PACKET_BYTES_MAX);
// Whoever is first, of whatever kind, fits; and of orders two of the largest.
const _: () = assert!(ANSWER_BYTES_MAX + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
const _: () = assert!(2 * ORDER_BYTES_MAX + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
const _: () = assert!(COMMANDS_PER_TICK_BYTES + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
// What may always wait runs within two rounds of turns: two of the largest orders run in each.
const _: () = assert!(WAITING_BYTES_MIN <= 2 * 2 * ORDER_BYTES_MAX);
const _: () = assert!(PLAYERS_MAX <= 16, "player sets are 16-bit masks");
