//! Compact runs of frames, as sent down and as written to the journal; and the announcements after a run.
//!
//! ```text
//! run   [first tick: 16][frames: 8][players present: varint] frame…
//! frame [bit 0: more; a change bit per present player: varint]
//!       [more: flags, then cadence · presence · roster · outcomes · claims · commands · fragments · filled]
//!       [changed inputs, in player order]
//! ```
//!
//! The first frame is encoded against neutral inputs, the others against their predecessor in the run. For the
//! receiving client's own seats a zero bit means "as you sent it": its own input is sent back only if the server did
//! not use it. An announcement continues the run beyond the sealed ticks, with two bits per player: whether its input
//! is known, and whether it changed.

use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ByteCounts;
use crate::wire::{Reader, WireError, Writer};
use twinstep_core::bounds::{
    ANNOUNCE_TICKS, COMMANDS_PER_TICK, COUNT_MAX, FRAGMENTS_MAX, PLAYERS_MAX, QUERIES_OPEN_MAX,
};
use twinstep_core::frame::{Answer, FrameData, Inputs, LargeEntry, Order, PlayerSet};
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};

const ROSTER: u8 = 1;
const OUTCOMES: u8 = 2;
const CLAIMS: u8 = 4;
const COMMANDS: u8 = 8;
const FILLED: u8 = 16;
const PRESENCE: u8 = 32;
const CADENCE: u8 = 64;
const FRAGMENTS: u8 = 128;

/// The maximum number of frames in one run.
pub const RUN_FRAMES_MAX: usize = u8::MAX as usize;

/// The position in a packet of a run's frame count, which is filled in at the end of the run.
pub struct RunStart {
    count_at: usize,
}

/// Starts a run. The inputs of `first` are encoded against neutral.
pub fn begin<S: Simulation>(
    out: &mut Writer<'_>,
    first: &FrameData<S>,
) -> Result<RunStart, WireError> {
    out.tick16(first.tick)?;
    // `end` overwrites it with the count.
    let count_at = out.len();
    out.u8(0)?;
    out.varint(u32::from(first.inputs.players().0))?;
    Ok(RunStart { count_at })
}

pub fn end(out: &mut Writer<'_>, run: &RunStart, frames: usize) {
    assert!(frames <= RUN_FRAMES_MAX, "a run of {frames} frames");
    out.patch(run.count_at, frames as u8);
}

/// Writes one frame of a run. `previous` is the frame before it in the run, if any. `own` are the receiver's players,
/// and `as_sent` is the subset with an input in this frame equal to the one that the receiver sent.
///
/// # Errors
/// [`WireError::Full`] if the packet is full. In that case it is left unchanged.
pub fn write<S: Simulation>(
    out: &mut Writer<'_>,
    previous: Option<&FrameData<S>>,
    frame: &FrameData<S>,
    own: PlayerSet,
    as_sent: PlayerSet,
    spent: &mut ByteCounts,
) -> Result<(), WireError> {
    let start = out.len();
    let mut bytes = ByteCounts::default();
    let written = write_frame(out, previous, frame, own, as_sent, &mut bytes);
    match written {
        Ok(()) => *spent += bytes,
        Err(_) => out.truncate(start),
    }
    written
}

fn write_frame<S: Simulation>(
    out: &mut Writer<'_>,
    previous: Option<&FrameData<S>>,
    frame: &FrameData<S>,
    own: PlayerSet,
    as_sent: PlayerSet,
    bytes: &mut ByteCounts,
) -> Result<(), WireError> {
    let here = frame.inputs.players();
    // The presence of the first frame is in the head of the run.
    let before = previous.map_or(here, |p| p.inputs.players());
    let neutral = S::Input::default();
    let mut changes = PlayerSet::default();
    for (player, input) in frame.inputs.iter() {
        let predecessor = previous
            .and_then(|p| p.inputs.get(player))
            .unwrap_or(&neutral);
        // A zero bit means "as you sent it" for the receiver's own players, and "as before" for others.
        let same = if own.contains(player) {
            as_sent.contains(player)
        } else {
            input == predecessor
        };
        changes.set(player, !same);
    }
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    // A large entry is written as its fragments.
    let outcomes = || {
        let small = |a: &&Answer<_>| !frame.ends(large_outcome(a));
        frame.outcomes.iter().filter(small)
    };
    let commands = || {
        let small = |o: &&Order<_>| !frame.ends(large_command(o));
        frame.commands.iter().filter(small)
    };
    let more = flag(!frame.roster.is_empty(), ROSTER)
        | flag(outcomes().next().is_some(), OUTCOMES)
        | flag(!frame.claims.is_empty(), CLAIMS)
        | flag(commands().next().is_some(), COMMANDS)
        | flag(!frame.filled.is_empty(), FILLED)
        | flag(here != before, PRESENCE)
        | flag(frame.cadence.is_some(), CADENCE)
        | flag(!frame.fragments.is_empty(), FRAGMENTS);
    let mut at = out.len();
    let mut count = |out: &Writer<'_>, kind: &mut u64| {
        *kind += (out.len() - at) as u64;
        at = out.len();
    };
    out.varint(pack(here, changes) << 1 | u32::from(more != 0))?;
    if more != 0 {
        out.u8(more)?;
    }
    if let Some(cadence) = frame.cadence {
        out.value(&cadence)?;
    }
    if more & PRESENCE != 0 {
        out.varint(u32::from(here.0))?;
    }
    if more & ROSTER != 0 {
        write_list(out, frame.roster.iter())?;
    }
    count(out, &mut bytes.inputs);
    if more & OUTCOMES != 0 {
        out.u8(outcomes().count() as u8)?;
        for answer in outcomes() {
            out.varint(frame.tick - answer.asked)?;
            out.value(&answer.key)?;
            out.value(&answer.outcome)?;
        }
    }
    count(out, &mut bytes.outcomes);
    if more & CLAIMS != 0 {
        write_list(out, frame.claims.iter())?;
    }
    if more & COMMANDS != 0 {
        write_list(out, commands())?;
    }
    if more & FRAGMENTS != 0 {
        write_list(out, frame.fragments.iter())?;
    }
    count(out, &mut bytes.commands);
    if more & FILLED != 0 {
        out.varint(u32::from(frame.filled.0))?;
    }
    for input in changes.iter().filter_map(|player| frame.inputs.get(player)) {
        out.value(input)?;
    }
    count(out, &mut bytes.inputs);
    Ok(())
}

fn write_list<'i, T: Serialize + 'i>(
    out: &mut Writer<'_>,
    mut list: impl Iterator<Item = &'i T> + Clone,
) -> Result<(), WireError> {
    out.u8(list.clone().count() as u8)?;
    list.try_for_each(|item| out.value(item))
}

fn large_outcome<O>(answer: &Answer<O>) -> LargeEntry {
    let (asked, key) = (answer.asked, answer.key);
    LargeEntry::Outcome { asked, key }
}

fn large_command<C>(order: &Order<C>) -> LargeEntry {
    let (player, seq) = (order.player, order.seq);
    LargeEntry::Command { player, seq }
}

fn read_list<T: DeserializeOwned>(
    packet: &mut Reader<'_>,
    most: usize,
    list: &mut Vec<T>,
) -> Result<(), WireError> {
    let count = usize::from(packet.u8()?);
    // Check this before reading any element.
    if count > most {
        return Err(WireError::Malformed("a list over its limit"));
    }
    for _ in 0..count {
        list.push(packet.value()?);
    }
    Ok(())
}

/// The bits of `set` for the members of `among`, without gaps.
fn pack(among: PlayerSet, set: PlayerSet) -> u32 {
    among
        .iter()
        .enumerate()
        .map(|(i, player)| u32::from(set.contains(player)) << i)
        .sum()
}

fn unpack(among: PlayerSet, bits: u32) -> PlayerSet {
    if bits == 0 {
        return PlayerSet::default();
    }
    among
        .iter()
        .enumerate()
        .filter(|(i, _)| bits >> i & 1 != 0)
        .map(|(_, player)| player)
        .collect()
}

/// Reads the frames of a run one by one into a single buffer.
pub struct RunReader<S: Simulation> {
    frame: FrameData<S>,
    left: usize,
}

impl<S: Simulation> Default for RunReader<S> {
    fn default() -> Self {
        RunReader {
            frame: FrameData::empty(Tick(0)),
            left: 0,
        }
    }
}

impl<S: Simulation> RunReader<S> {
    /// Reads the start of a run. The run's first tick is near `near`.
    ///
    /// # Errors
    /// If the bytes are not the start of a run.
    pub fn begin(&mut self, packet: &mut Reader<'_>, near: Tick) -> Result<(), WireError> {
        let first = packet.tick16(near)?;
        self.left = usize::from(packet.u8()?);
        let here = read_set(packet)?;
        self.frame.reset(first);
        for player in here.iter() {
            self.frame.inputs.set(player, Some(S::Input::default()));
        }
        Ok(())
    }

    /// Starts a run of unlimited length, as in a journal: the bytes contain only the set of present players.
    ///
    /// # Errors
    /// If the bytes are not a set of players.
    pub fn restart(&mut self, first: Tick, packet: &mut Reader<'_>) -> Result<(), WireError> {
        let here = read_set(packet)?;
        // A journal's run ends at its next world.
        self.left = usize::MAX;
        self.frame.reset(first);
        for player in here.iter() {
            self.frame.inputs.set(player, Some(S::Input::default()));
        }
        Ok(())
    }

    /// The next frame of an idle turn: without entries, and with unchanged inputs. [`skip`](RunReader::skip) consumes
    /// it.
    #[must_use]
    pub fn repeated(&mut self) -> &FrameData<S> {
        let tick = self.frame.tick;
        let inputs = core::mem::take(&mut self.frame.inputs);
        self.frame.reset(tick);
        self.frame.inputs = inputs;
        &self.frame
    }

    pub fn skip(&mut self) {
        self.frame.tick += 1;
    }

    #[must_use]
    pub fn tick(&self) -> Tick {
        self.frame.tick
    }

    /// Reads the next frame and passes it to `each`. Returns `false` at the end of the run. `sent` returns the inputs
    /// that this client sent for its own players.
    ///
    /// # Errors
    /// If the bytes are not a frame, which ends the run.
    pub fn next<'s>(
        &mut self,
        packet: &mut Reader<'_>,
        own: PlayerSet,
        sent: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
        each: impl FnOnce(&FrameData<S>),
    ) -> Result<bool, WireError> {
        if self.left == 0 {
            return Ok(false);
        }
        let read = self.read_frame(packet, own, sent);
        self.left = if read.is_ok() { self.left - 1 } else { 0 };
        read?;
        each(&self.frame);
        self.frame.tick += 1;
        Ok(true)
    }

    fn read_frame<'s>(
        &mut self,
        packet: &mut Reader<'_>,
        own: PlayerSet,
        sent: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
    ) -> Result<(), WireError> {
        let frame = &mut self.frame;
        let tick = frame.tick;
        frame.roster.clear();
        frame.outcomes.clear();
        frame.claims.clear();
        frame.commands.clear();
        frame.fragments.clear();
        frame.filled = PlayerSet::default();
        frame.cadence = None;
        let head = packet.varint()?;
        let more = if head & 1 != 0 { packet.u8()? } else { 0 };
        if more & CADENCE != 0 {
            frame.cadence = Some(packet.value()?);
        }
        if more & PRESENCE != 0 {
            set_presence(&mut frame.inputs, read_set(packet)?);
        }
        if more & ROSTER != 0 {
            read_list::<(PlayerId, RosterChange)>(packet, PLAYERS_MAX, &mut frame.roster)?;
        }
        if more & OUTCOMES != 0 {
            let count = usize::from(packet.u8()?);
            if count > QUERIES_OPEN_MAX {
                return Err(WireError::Malformed(
                    "more outcomes than queries can be open",
                ));
            }
            for _ in 0..count {
                let asked = tick.back(packet.varint()?);
                frame.outcomes.push(Answer {
                    asked,
                    key: packet.value()?,
                    outcome: packet.value()?,
                });
            }
        }
        if more & CLAIMS != 0 {
            read_list(packet, PLAYERS_MAX * COMMANDS_PER_TICK, &mut frame.claims)?;
        }
        if more & COMMANDS != 0 {
            read_list(packet, PLAYERS_MAX * COMMANDS_PER_TICK, &mut frame.commands)?;
        }
        if more & FRAGMENTS != 0 {
            read_list(packet, FRAGMENTS_MAX, &mut frame.fragments)?;
        }
        if more & FILLED != 0 {
            frame.filled = read_set(packet)?;
        }
        let here = frame.inputs.players();
        let changes = unpack(here, head >> 1);
        for player in here.iter() {
            // An unchanged input of another player is already in the reused frame.
            if changes.contains(player) {
                frame.inputs.set(player, Some(packet.input()?));
            } else if own.contains(player) {
                let input = sent(player, tick).ok_or(WireError::Malformed(
                    "an input marked as sent that the client did not send",
                ))?;
                frame.inputs.set(player, Some(input.clone()));
            }
        }
        Ok(())
    }

    /// Reads the announcements after a run and passes on the inputs and commands of other players for ticks that are
    /// not sealed yet.
    ///
    /// # Errors
    /// If the bytes are not announcements. Inputs and commands already passed on are not withdrawn.
    pub fn announced(
        &mut self,
        packet: &mut Reader<'_>,
        own: PlayerSet,
        mut input: impl FnMut(PlayerId, Tick, &S::Input),
        mut command: impl FnMut(Tick, Order<S::Command>),
    ) -> Result<(), WireError> {
        let ticks = u32::from(packet.u8()?);
        if ticks > ANNOUNCE_TICKS {
            return Err(WireError::Malformed("announcements too far ahead"));
        }
        let others = self.frame.inputs.players().without(own);
        for _ in 0..ticks {
            let tick = self.frame.tick;
            let mut head = packet.varint()?;
            let commands = head & 1 != 0;
            head >>= 1;
            for player in others.iter() {
                let (known, changed) = (head & 1 != 0, head & 2 != 0);
                head >>= 2;
                if known && changed {
                    self.frame.inputs.set(player, Some(packet.input()?));
                }
                if known && let Some(held) = self.frame.inputs.get(player) {
                    input(player, tick, held);
                }
            }
            if commands {
                let count = usize::from(packet.u8()?);
                for _ in 0..count {
                    let order: Order<S::Command> = packet.value()?;
                    if !others.contains(order.player) {
                        return Err(WireError::Malformed(
                            "an announced command of an absent player",
                        ));
                    }
                    if order.seq >= COUNT_MAX {
                        return Err(WireError::Malformed(
                            "an announced command beyond the limit",
                        ));
                    }
                    command(tick, order);
                }
            }
            self.frame.tick += 1;
        }
        Ok(())
    }
}

/// Writes announcements after a run that ended with `last`. For each of `ticks` ticks starting at `last.tick + 1`, it
/// writes the other players' inputs that `input` returns, and the `commands` due.
///
/// # Errors
/// [`WireError::Full`] if the packet is full. In that case it is left unchanged.
pub fn announce<'s, S: Simulation>(
    out: &mut Writer<'_>,
    last: &'s FrameData<S>,
    own: PlayerSet,
    ticks: u32,
    input: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
    commands: impl Fn(Tick, &mut dyn FnMut(&Order<S::Command>)),
) -> Result<(), WireError> {
    let start = out.len();
    let written = write_announced(out, last, own, ticks, &input, &commands);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_announced<'s, S: Simulation>(
    out: &mut Writer<'_>,
    last: &'s FrameData<S>,
    own: PlayerSet,
    ticks: u32,
    input: &impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
    commands: &impl Fn(Tick, &mut dyn FnMut(&Order<S::Command>)),
) -> Result<(), WireError> {
    let others = last.inputs.players().without(own);
    let mut held: [Option<&S::Input>; PLAYERS_MAX] =
        core::array::from_fn(|i| last.inputs.get(PlayerId(i as u8)));
    out.u8(ticks as u8)?;
    for tick in (1..=ticks).map(|ahead| last.tick + ahead) {
        // An announcement is only a hint: if there are more commands than a byte can count, the first 255 are enough.
        let mut count = 0u8;
        commands(tick, &mut |_| count = count.saturating_add(1));
        let mut head = u64::from(count > 0);
        for (i, player) in others.iter().enumerate() {
            if let Some(known) = input(player, tick) {
                let changed = held[player.index()] != Some(known);
                head |= (1 | u64::from(changed) << 1) << (1 + 2 * i);
            }
        }
        // A player has at most 15 others, so the flag and two bits for each fit. Spectators get no announcements.
        out.varint(head as u32)?;
        for player in others.iter() {
            if let Some(known) = input(player, tick) {
                if held[player.index()] != Some(known) {
                    out.value(known)?;
                }
                held[player.index()] = Some(known);
            }
        }
        if count > 0 {
            out.u8(count)?;
            let (mut written, mut left) = (Ok(()), count);
            commands(tick, &mut |order| {
                if left > 0 {
                    left -= 1;
                    written = written.and_then(|()| out.value(order));
                }
            });
            written?;
        }
    }
    Ok(())
}

fn read_set(packet: &mut Reader<'_>) -> Result<PlayerSet, WireError> {
    let bits = packet.varint()?;
    u16::try_from(bits)
        .map(PlayerSet)
        .map_err(|_| WireError::Malformed("a player beyond the limit"))
}

fn set_presence<I: Default>(inputs: &mut Inputs<I>, here: PlayerSet) {
    let before = inputs.players();
    for player in before.without(here).iter() {
        inputs.set(player, None);
    }
    for player in here.without(before).iter() {
        inputs.set(player, Some(I::default()));
    }
}
