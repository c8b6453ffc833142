//! Law **Bounded**: every queue, size and rate has a limit, defined here or next to its use.
//!
//! The values are proposals, tuned by measurement; the law only requires that each limit exists. The assertions at the
//! end check the limits that depend on each other.

use core::time::Duration;

/// The maximum number of players in a match.
pub const PLAYERS_MAX: usize = 16;
/// The maximum number of local players ("seats") per session.
pub const SEATS_MAX: usize = 4;

/// The maximum number of ticks that the prediction may run ahead of the authority: lead = P − A. Ring buffers have this
/// size; the limit at a given tick length is [`lead_max`].
pub const LEAD_MAX: u32 = 223;
/// A lead of this many ticks is always allowed, however long the ticks are.
pub const LEAD_MIN: u32 = 64;
/// A player's picture freezes once its lead has grown to this time, within [`LEAD_MIN`] to [`LEAD_MAX`] ticks: see
/// [`lead_max`]. With one second, bots on the preset `awful` saw a frozen picture for up to 1.04 % of a minute; the
/// target is 1 %.
pub const LEAD_TIME: Duration = Duration::from_millis(1_200);
/// Once the memos of [`Effects::each`](crate::Effects::each) in a prediction take this many bytes, no new memo is
/// added. A tick for which no earlier memo is free is rebuilt without one.
pub const MEMO_BYTES_MAX: usize = 16 << 20;
/// The largest input delay, in ticks.
pub const DELAY_MAX: u32 = 32;
/// The maximum number of ticks that inputs may run ahead of the authority: reach = I − A. It is the size of ring
/// buffers and the server's acceptance window; a client's own limit at a given tick length is [`input_window`]. It fits
/// into a byte.
pub const INPUT_WINDOW: u32 = 255;
/// The number of past ticks whose worlds the server can still reconstruct, for resolvers that look back and for desync
/// reports.
pub const HISTORY: u32 = 64;
/// The minimum number of sealed frames that the server keeps in memory for joining clients. It keeps more if these
/// cover less than [`BACKLOG_TIME`]: see [`backlog`].
pub const BACKLOG: u32 = 1_800;
/// The maximum of [`backlog`]: [`BACKLOG_TIME`] at 240 Hz. While worlds are sent, [`load_ticks`] is the limit.
pub const BACKLOG_MAX: u32 = 7_200;
/// The minimum time for which the server keeps sealed frames, up to [`BACKLOG_MAX`] frames.
pub const BACKLOG_TIME: Duration = Duration::from_secs(30);

/// The maximum number of ticks in a turn.
pub const TURN_TICKS_MAX: u8 = 20;
/// The shortest tick.
pub const TICK_MIN: Duration = Duration::from_millis(1);
/// The longest tick.
pub const TICK_MAX: Duration = Duration::from_secs(1);
/// The largest command delay m, in turns: a batch closed in turn n runs in turn n + m.
pub const COMMAND_DELAY_MAX: u8 = 4;

/// By default, a missing input is assumed to equal the last one for this many ticks. After that it is neutral.
pub const INPUT_REPEAT_TICKS: u32 = 10;
/// A player without input for this long is dropped, but not before [`DROP_AFTER_TICKS_MIN`].
pub const DROP_AFTER: Duration = Duration::from_secs(2);
/// A player without input is dropped after this many ticks at the earliest. Its input is held for half of them, unless
/// the game repeats it differently.
pub const DROP_AFTER_TICKS_MIN: u32 = 2 * INPUT_REPEAT_TICKS;

/// The maximum size of an encoded input, in bytes.
pub const INPUT_BYTES_MAX: usize = 16;
/// The maximum size of an encoded command, in bytes. A command of more than [`COMMAND_INLINE_MAX`] bytes is *large*:
/// frames contain it in fragments, so it runs some ticks later, and other clients do not receive it in advance.
pub const COMMAND_BYTES_MAX: usize = 4_096;
/// The maximum size of an encoded outcome, in bytes. An outcome of more than [`OUTCOME_INLINE_MAX`] bytes is *large*,
/// like a large command.
pub const OUTCOME_BYTES_MAX: usize = 4_096;
/// The maximum size of a command that a single frame contains whole, and of any claim, in encoded bytes.
pub const COMMAND_INLINE_MAX: usize = 128;
/// The maximum size of an outcome that a single frame contains whole, in encoded bytes.
pub const OUTCOME_INLINE_MAX: usize = 256;
/// The number of bytes of a large entry that a frame carries when it is the entry's turn. It carries more if space is
/// left.
pub const FRAGMENT_BYTES: usize = COMMAND_INLINE_MAX;
/// The overhead of a fragment in a frame, in bytes: its kind, the tick asked and the key, the offset in the entry, the
/// number of bytes that follow later, and a length.
pub const FRAGMENT_HEAD_BYTES: usize = 1 + 5 + 9 + 3 + 3 + 3;
/// The maximum number of fragments in a frame: for each player and for the outcomes, one that ends an entry and one
/// that starts an entry.
pub const FRAGMENTS_MAX: usize = 2 * (PLAYERS_MAX + 1);
/// The maximum number of a player's large commands in flight, at either end. Any more are refused.
pub const LARGE_COMMANDS_OPEN_MAX: usize = 2;
/// The maximum size of an encoded frame, in bytes, when many entries wait; entries that do not fit wait for a later
/// tick. A frame is larger only if its inputs take most of it: see [`FRAME_ROOM_MIN`].
pub const FRAME_BYTES: usize = 512;
/// The overhead of a frame, in bytes: everything except inputs, roster changes and list entries, that is, masks, flags,
/// counts and a cadence.
pub const FRAME_HEAD_BYTES: usize = 24;
/// The size of a roster change in a frame, in bytes.
pub const ROSTER_CHANGE_BYTES: usize = 2;
/// The maximum size of a command or claim in a frame, in bytes, including its player and sequence number.
pub const ORDER_BYTES_MAX: usize = COMMAND_INLINE_MAX + ORDER_HEAD_BYTES;
/// The size of an order without its command, in bytes.
pub const ORDER_HEAD_BYTES: usize = 6;
/// The maximum size of an outcome in a frame, in bytes, including the tick asked and the key.
pub const ANSWER_BYTES_MAX: usize = OUTCOME_INLINE_MAX + ANSWER_HEAD_BYTES;
/// The size of an answer without its outcome, in bytes: the tick asked, the key, and a flag that an outcome exists.
pub const ANSWER_HEAD_BYTES: usize = 5 + 9 + 5 + 1;
/// The number of bytes that each frame reserves for each kind of entry (outcomes, claims, commands) that has entries
/// waiting. Bytes that a kind does not use go to the other kinds.
pub const FRAME_SHARE_BYTES: usize = 48;
/// The minimum space for entries in a frame, however large its inputs are: the largest outcome fits next to the
/// reserved bytes of the two other kinds, and so do two of the largest commands or claims.
pub const FRAME_ROOM_MIN: usize = ANSWER_BYTES_MAX + 2 * FRAME_SHARE_BYTES;
/// The largest frame, in bytes: every player's input has the maximum size, every player's presence changes, and all
/// space for entries is used.
pub const FRAME_BYTES_MAX: usize = FRAME_HEAD_BYTES
    + ROSTER_CHANGE_BYTES * PLAYERS_MAX
    + INPUT_BYTES_MAX * PLAYERS_MAX
    + FRAME_ROOM_MIN;
/// Within this many ticks, each player is first in line once for each kind of entry, so the largest order finds space
/// even if other orders wait. The kinds take turns at being first, and so do the players within a kind.
pub const FRAME_TURNS_TICKS: u32 = 3 * PLAYERS_MAX as u32;
/// The maximum size of a session packet, in bytes, without the transport's own headers.
pub const PACKET_BYTES_MAX: usize = 1_100;
/// The maximum size of a downstream packet without its frames, in bytes: acks, margins, results of orders, links.
pub const PLAY_HEAD_BYTES_MAX: usize = 400;
/// The maximum number of refused orders in a packet. The rest wait until the client has acknowledged these.
pub const REFUSALS_PER_PACKET: usize = 32;
/// The maximum number of datagrams in one send, unless new or missing frames need more: see [`NEWS_PER_SEND_MAX`]. Each
/// can be decoded on its own.
pub const PACKETS_PER_SEND_MAX: usize = 4;
/// The maximum number of datagrams in one send to a client if they contain frames never sent before: enough for a turn
/// of 20 frames of [`FRAME_BYTES`], and for the first frame that the client lacks. One more datagram repeats frames if
/// the client does not report which ones it lacks.
pub const NEWS_PER_SEND_MAX: usize = 12;
/// The maximum number of datagrams in one send that repeat frames that the client reported missing.
pub const GAP_PACKETS_PER_SEND_MAX: usize = PACKETS_PER_SEND_MAX;
/// The maximum number of frames sent after the first frame that a client lacks: four seconds at 240 Hz.
pub const FRAMES_AHEAD_MAX: u32 = 1_024;
/// The maximum size of a world snapshot, in bytes.
pub const WORLD_BYTES_MAX: usize = 8 << 20;
/// The maximum size of the rules that a server sends to clients, in bytes before compression.
pub const RULES_BYTES_MAX: usize = 1 << 20;
/// The maximum size of an operator's message to players, in bytes.
pub const NOTICE_BYTES_MAX: usize = 200;
/// The maximum size of a client's desync report, in bytes.
pub const REPORT_BYTES_MAX: usize = 1_000;
/// The maximum size of a client's message on the lane, in bytes: a large command or answer with its header, or a
/// report.
pub const LANE_UP_BYTES_MAX: usize = COMMAND_BYTES_MAX + 32;

/// The maximum number of ticket lineages that a match keeps: those of admitted sessions with an operator's ticket.
pub const MATCH_LINEAGES_MAX: usize = 65_536;

/// The maximum number of a player's commands per tick.
pub const COMMANDS_PER_TICK: usize = 4;
/// The maximum number of bytes that one player's commands take in a frame. Both sides use this limit, so if only one
/// client issues orders, it can compute the tick in which each will run.
pub const COMMANDS_PER_TICK_BYTES: usize = 2 * ORDER_BYTES_MAX;
/// A player's commands of up to this many bytes can always wait for space in a frame. At 60 Hz they run within 1.6 s
/// (twice [`FRAME_TURNS_TICKS`]), even if the other players issue as many orders as they can.
pub const WAITING_BYTES_MIN: usize = 4 * ORDER_BYTES_MAX;
/// The maximum total size of all players' commands waiting for space in a frame, in bytes; a large one counts as
/// [`ORDER_BYTES_MAX`]. Above this, the newest command of the player with the most waiting bytes is refused
/// immediately. So 20 commands per second are accepted as long as frames have space for them: at 60 Hz, each of 16
/// players gets at least 335 bytes per second for commands (each takes its own size plus 6 bytes), and the space that
/// other players leave unused.
pub const WAITING_BYTES_MAX: usize = PLAYERS_MAX * WAITING_BYTES_MIN;
/// The maximum number of commands per second from a player, counted on arrival, and the allowed burst. Commands that a
/// connection delayed for more than a second arrive together, so some of them are refused even if the player kept to
/// its rate.
pub const COMMANDS_PER_SECOND: u32 = 20;
/// The maximum number of bytes per second in a player's large commands, counted on arrival: a 4 KB command every 1.6 s.
pub const LARGE_COMMAND_BYTES_PER_SECOND: u32 = COMMANDS_PER_SECOND * COMMAND_INLINE_MAX as u32;
/// The allowed burst of large commands, in bytes: two of the largest ones.
pub const LARGE_COMMAND_BYTES_BURST: u32 = (LARGE_COMMANDS_OPEN_MAX * COMMAND_BYTES_MAX) as u32;
/// The limit of turn, repetition and command counters. Adding a small number to them never wraps. No match lasts this
/// long; larger values from a file or a peer are rejected.
pub const COUNT_MAX: u32 = u32::MAX / 2;

/// The maximum number of a player's commands waiting for their tick, at either end.
pub const COMMANDS_OPEN_MAX: usize = 64;
/// The maximum number of claims per second from a player, at most one per tick; also the allowed burst.
pub const CLAIMS_PER_SECOND: u32 = 8;

/// The maximum number of queries opened per tick. The rest wait, and are opened in later ticks: the oldest step's
/// first, and in key order within a step.
pub const ASKS_PER_TICK: usize = 16;
/// The maximum number of a world's queries waiting for their answer.
pub const QUERIES_OPEN_MAX: usize = 64;
/// The maximum number of a world's queries waiting to be opened. Any more are dropped, counted and reported.
pub const QUERIES_WAITING_MAX: usize = 256;
/// A query not answered within this many ticks, or within 2 s if that is more ticks, is answered with
/// `None`: see [`answer_ticks`].
pub const ANSWER_TICKS: u32 = 120;
/// The minimum of [`answer_ticks`], as a time.
pub const ANSWER_TIME: Duration = Duration::from_secs(2);
/// The number of large answers that a client can upload at a time, in addition to its large commands. The others wait.
pub const ANSWERS_MAX: usize = ASKS_PER_TICK;

/// The maximum number of cues waiting for the authority.
pub const CUES_OPEN_MAX: usize = 1_024;
/// A cue that moves by at most this time between a guess and the confirmed frame still counts as the same cue: see
/// [`cue_drift_ticks`].
pub const CUE_DRIFT: Duration = Duration::from_millis(200);
/// The minimum of [`cue_drift_ticks`], in ticks.
pub const CUE_DRIFT_TICKS_MIN: u32 = 2;
/// Inputs and commands are announced for at most this many ticks after the newest frame sent.
pub const ANNOUNCE_TICKS: u32 = 8;

/// The maximum number of spectators that watch a match without delay.
pub const SPECTATORS_LIVE_MAX: usize = 16;
/// The maximum number of spectators that watch a match with a delay.
pub const SPECTATORS_DELAYED_MAX: usize = 512;
/// The shortest delay of a delayed spectator, in ticks.
pub const SPECTATOR_DELAY_MIN: u32 = 180;
/// The longest delay of a delayed spectator, in ticks. The spectator's first world may be 300 ticks older, so 600 ticks
/// of [`BACKLOG`] remain for loading that world: 10 s at 60 Hz, 5 MiB at [`BULK_BYTES_PER_SECOND`].
pub const SPECTATOR_DELAY_MAX: u32 = 900;

/// The maximum number of packets per second that carry a client's new inputs, at any frame rate and tick length. A
/// packet carries all inputs since the last one.
pub const INPUT_PACKETS_PER_SECOND: u32 = 120;
/// Every client sends at least this often, in every stage of its session.
pub const KEEP_ALIVE: Duration = Duration::from_millis(100);
/// If a client's acks do not advance for this long, the server sends to it at most 10 times a second, and only the
/// first frames that it lacks.
pub const ACK_SLOW_AFTER: Duration = Duration::from_secs(1);
/// If a client's acks do not advance for this long, the server sends the first frames that it lacks only every
/// [`SPARSE_EVERY`], until they advance. A client that was also silent for this long gets no frames, and gets lane
/// chunks only at that interval.
pub const SPARSE_AFTER: Duration = Duration::from_secs(4);
/// The interval of sends to a client after [`SPARSE_AFTER`].
pub const SPARSE_EVERY: Duration = Duration::from_millis(490);
/// A session is closed if its client does not acknowledge a new frame for this long.
pub const ACK_CLOSE_AFTER: Duration = Duration::from_secs(10);
/// A session that does not send its hello within this time ends. A transport waits equally long for a silent client. A
/// client sends its hello ten times a second.
pub const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// A join makes progress when this many more bytes of a world are acknowledged. The last byte also counts as progress.
pub const JOIN_STEP_BYTES: u64 = 16 << 10;
/// While other joiners wait, each [`JOIN_STEP_BYTES`] of a world may take this long, plus four round trips.
pub const JOIN_STEP_WITHIN: Duration = Duration::from_secs(3);
/// A join ends after this long without progress, plus four round trips. This covers [`JOIN_STEP_WITHIN`] and a 10 s
/// outage. While the world is being sent, progress is measured in its bytes. After that, the client makes progress
/// whenever it is a second's worth of ticks nearer to the present than ever before. So 8 MiB take at most 512 times
/// this, provided that the frames since then are kept for that long ([`load_ticks`]).
pub const JOIN_STALL_MAX: Duration = Duration::from_secs(13);
/// A world transfer slower than 128 KiB/s loses its slot to the next joiner after this long, plus two round trips.
pub const JOIN_PLACE_TIME: Duration = Duration::from_secs(1);
/// The maximum number of snapshots sent to joining players at the same time, per match. Transfers that lost their slots
/// for being slow continue beside them, at 128 KiB/s each.
pub const JOINS_AT_ONCE: usize = 2;
/// While a world is being sent, the frames since that world are kept for at most this long, or [`LOAD_TICKS`] if that
/// is longer. At up to 240 Hz that is enough to send 8 MiB at 168 kbit/s.
pub const LOAD_TIME: Duration = Duration::from_secs(400);
/// The minimum of [`load_ticks`]. It is more if these ticks cover less than [`LOAD_TIME`].
pub const LOAD_TICKS: u32 = 24_000;
/// The maximum of [`load_ticks`]: [`LOAD_TIME`] at 240 Hz.
pub const LOAD_TICKS_MAX: u32 = 96_000;
/// A packet reports the next tick to seal as at most this many ticks after the frame that the client needs next,
/// because packets contain only 16 bits of a tick.
pub const SEALING_AHEAD_MAX: u32 = 1 << 14;
/// While a world is being sent, frames beyond the [`backlog`] are kept only up to this many bytes in total, not
/// counting the heap memory of the game's own types. The backlog itself is kept even above this limit.
pub const LOAD_FRAMES_BYTES_MAX: usize = 16 << 20;
/// The time for which the server keeps the state of an interrupted join while its client tries to reconnect: the rest
/// of the world, and the frames since then.
pub const CUT_OFF_TIME: Duration = Duration::from_secs(60);
/// The maximum number of world bytes kept for interrupted joins, per match: two of the largest worlds.
pub const CUT_OFF_BYTES_MAX: usize = 2 * WORLD_BYTES_MAX;
/// The maximum number of interrupted joins that keep their state, per match.
pub const CUT_OFF_MAX: usize = 32;
/// A player is healed at most once in this time.
pub const HEAL_EVERY: Duration = Duration::from_secs(10);
/// The maximum number of heals per player within [`HEALS_WINDOW`]. The next one closes its session.
pub const HEALS_MAX: usize = 4;
/// A heal no longer counts after this time, so a week-long match tolerates occasional memory errors.
pub const HEALS_WINDOW: Duration = Duration::from_secs(3_600);
/// More protocol errors than this in [`STRIKE_WINDOW`] close a session.
pub const STRIKES_MAX: u32 = 8;
/// The window in which strikes are counted.
pub const STRIKE_WINDOW: Duration = Duration::from_secs(10);
/// The maximum number of bytes of bulk data per second sent to a session.
pub const BULK_BYTES_PER_SECOND: u32 = 512 << 10;
/// The time per minute for which one identity may keep the other players waiting, unless one wait may last longer.
pub const WAIT_PER_MINUTE_MAX: Duration = Duration::from_secs(20);
/// Policies that depend on the round trip use at most this value.
pub const RTT_MAX: Duration = Duration::from_millis(500);

/// A time in nanoseconds, saturating at 584 years. The number is 64 bits wide because dividing the 128 bits of
/// [`Duration::as_nanos`] takes a function call.
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

/// A time in ticks of length `tick`, rounded to the nearest.
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

/// The number of ticks of this length by which the prediction may run ahead: [`LEAD_TIME`], within
/// [`LEAD_MIN`]..=[`LEAD_MAX`] ticks.
#[must_use]
#[inline]
pub const fn lead_max(tick: Duration) -> u32 {
    within(ticks_in(LEAD_TIME, tick), LEAD_MIN, LEAD_MAX)
}

/// The number of ticks of this length by which inputs may run ahead: the prediction's limit plus the largest input
/// delay.
#[must_use]
#[inline]
pub const fn input_window(tick: Duration) -> u32 {
    lead_max(tick) + DELAY_MAX
}

/// The number of ticks of this length by which a cue may move and still count as the same cue.
#[must_use]
pub const fn cue_drift_ticks(tick: Duration) -> u32 {
    within(ticks_in(CUE_DRIFT, tick), CUE_DRIFT_TICKS_MIN, LEAD_MAX)
}

/// The number of sealed frames that the server keeps, with ticks of this length.
#[must_use]
pub const fn backlog(tick: Duration) -> u32 {
    within(ticks_in(BACKLOG_TIME, tick), BACKLOG, BACKLOG_MAX)
}

/// The largest number of frames that the server keeps while the world before them is being sent, with ticks of this
/// length.
#[must_use]
pub const fn load_ticks(tick: Duration) -> u32 {
    within(ticks_in(LOAD_TIME, tick), LOAD_TICKS, LOAD_TICKS_MAX)
}

/// The number of ticks of this length after which a player without input is dropped.
#[must_use]
pub const fn drop_after_ticks(tick: Duration) -> u32 {
    within(ticks_in(DROP_AFTER, tick), DROP_AFTER_TICKS_MIN, u32::MAX)
}

/// The number of ticks of this length after which a query is answered with `None`.
#[must_use]
pub const fn answer_ticks(tick: Duration) -> u32 {
    within(ticks_in(ANSWER_TIME, tick), ANSWER_TICKS, u32::MAX)
}

/// The number of ticks of this length after which the server answers a query itself if its owner has not: half of
/// [`answer_ticks`], so that a slow resolver has the other half.
#[must_use]
pub const fn owner_ticks(tick: Duration) -> u32 {
    answer_ticks(tick) / 2
}

const _: () = assert!(
    INPUT_WINDOW <= u8::MAX as u32,
    "a reach must fit into a byte"
);
const _: () = assert!(BACKLOG <= BACKLOG_MAX && BACKLOG_MAX <= LOAD_TICKS);
const _: () = assert!(INPUT_WINDOW >= LEAD_MAX + DELAY_MAX);
const _: () = assert!(INPUT_BYTES_MAX * PLAYERS_MAX <= FRAME_BYTES / 2);
const _: () = assert!(FRAME_BYTES * 2 <= PACKET_BYTES_MAX);
// A packet always has space for a frame after its head, so there is always progress.
const _: () = assert!(FRAME_BYTES_MAX + PLAY_HEAD_BYTES_MAX <= PACKET_BYTES_MAX);
// The largest answer fits by the definition of `FRAME_ROOM_MIN`; two of the largest orders must also fit.
const _: () = assert!(2 * ORDER_BYTES_MAX + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
const _: () = assert!(COMMANDS_PER_TICK_BYTES + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
// Orders that can always wait run within two rounds of turns, so they must fit into the space of two frames.
const _: () = assert!(WAITING_BYTES_MIN <= 2 * (FRAME_ROOM_MIN - 2 * FRAME_SHARE_BYTES));
const _: () = assert!(PLAYERS_MAX <= 16, "player sets are 16-bit masks");
const _: () =
    assert!(COMMAND_INLINE_MAX < COMMAND_BYTES_MAX && OUTCOME_INLINE_MAX < OUTCOME_BYTES_MAX);
const _: () =
    assert!(OUTCOME_BYTES_MAX <= COMMAND_BYTES_MAX && REPORT_BYTES_MAX <= LANE_UP_BYTES_MAX);
// At its turn, a large entry always finds space for a fragment.
const _: () = assert!(FRAGMENT_HEAD_BYTES + FRAGMENT_BYTES <= COMMANDS_PER_TICK_BYTES);
const _: () =
    assert!(FRAGMENT_HEAD_BYTES + FRAGMENT_BYTES + 2 * FRAME_SHARE_BYTES <= FRAME_ROOM_MIN);
