//! [`Memos`]: the results of loops in predicted ticks, which [`each`](crate::Effects::each) reuses in a rebuild.
//!
//! ```text
//!  memo of tick t    [ a  b  c  d ]    of each item: its bytes with what it reads, the item after the tick, its outputs
//!  rebuild, tick t   [ a  b' c  d ]    equal bytes: the result is reused;  b' differs: its function is run
//! ```
//!
//! A wrong guess about one player changes few of a thousand agents, so few are run again. This is a memo by value:
//! bytes are compared, never identities, so an author does not declare anything that could be wrong. Equal bytes yield
//! an equal result, because an item's function is a function pointer: besides the item and its reads it receives only
//! the tick, the tick length and the rules. So it does not matter which prediction of a tick recorded the memo.
//!
//! Law **One way**: only predictions have memos. In the authority, on the server, in journals and in replays `each` is
//! a plain loop, and the confirmed state never depends on a memo.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;
use core::{iter, mem};

use crate::bounds::{LEAD_MAX, MEMO_BYTES_MAX};
use crate::ids::Tick;

/// The number of entries searched for an item. When items leave a list, the others move by a few positions.
const SEARCH: usize = 8;

/// Memos are created this many at a time and used in turn, so that memos with allocated buffers are ready when the lead
/// grows by a few ticks.
const SPARE: usize = 4;

/// The tick, the tick length and the rules, which a loop passes to its function.
pub struct LoopContext<'a, R> {
    /// The tick being stepped.
    pub tick: Tick,
    /// See [`Frame::tick_length`](crate::Frame::tick_length).
    pub tick_length: Duration,
    /// The match's rules.
    pub rules: &'a R,
}

/// Collects the outputs of one item, such as new bullets, hits or cues. They cannot be read back.
pub struct Outputs<'a, O>(pub(crate) &'a mut Vec<O>);

impl<O> Outputs<'_, O> {
    /// Adds an output.
    pub fn push(&mut self, output: O) {
        self.0.push(output);
    }
}

/// Counts one loop's items in rebuilt ticks that had a memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopStats {
    /// The loop's name.
    pub name: &'static str,
    /// Items whose result was reused.
    pub taken: u64,
    /// Items that were run.
    pub run: u64,
}

pub(crate) struct Results<T, O> {
    /// The encoded item and reads of each entry, before the tick.
    pub(crate) bytes: Vec<u8>,
    pub(crate) byte_ends: Vec<usize>,
    pub(crate) after: Vec<T>,
    pub(crate) outputs: Vec<O>,
    pub(crate) output_ends: Vec<usize>,
}

impl<T, O> Default for Results<T, O> {
    fn default() -> Self {
        Results {
            bytes: Vec::new(),
            byte_ends: Vec::new(),
            after: Vec::new(),
            outputs: Vec::new(),
            output_ends: Vec::new(),
        }
    }
}

pub(crate) fn part<'v, V>(values: &'v [V], ends: &[usize], nth: usize) -> &'v [V] {
    let from = nth.checked_sub(1).map_or(0, |before| ends[before]);
    &values[from..ends[nth]]
}

impl<T, O> Results<T, O> {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.byte_ends.clear();
        self.outputs.clear();
        self.output_ends.clear();
    }

    pub(crate) fn reserve(&mut self, [bytes, items, outputs]: [usize; 3]) {
        self.bytes.reserve(bytes);
        self.byte_ends.reserve(items);
        self.after.reserve(items.saturating_sub(self.after.len()));
        self.outputs.reserve(outputs);
        self.output_ends.reserve(items);
    }

    pub(crate) fn find(&self, from: usize, bytes: &[u8]) -> Option<usize> {
        let end = self.byte_ends.len().min(from + SEARCH);
        (from..end).find(|nth| part(&self.bytes, &self.byte_ends, *nth) == bytes)
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
            + size_of::<usize>() * (self.byte_ends.capacity() + self.output_ends.capacity())
            + size_of::<T>() * self.after.capacity()
            + size_of::<O>() * self.outputs.capacity()
    }
}

pub(crate) struct Loop {
    name: &'static str,
    /// Whether the loop has started in the memo's tick.
    is_used: bool,
    /// Whether all items of the memo's tick have an entry.
    pub(crate) is_whole: bool,
    pub(crate) taken: u32,
    pub(crate) run: u32,
    pub(crate) bytes: usize,
    pub(crate) results: Box<dyn Any + Send + Sync>,
}

#[derive(Default)]
pub(crate) struct Memo {
    tick: Tick,
    loops: Vec<Loop>,
}

impl Memo {
    fn begin(&mut self, tick: Tick) {
        self.tick = tick;
        for of in &mut self.loops {
            (of.is_used, of.is_whole, of.taken, of.run) = (false, false, 0, 0);
        }
    }

    /// Returns the loop's entry, or `None` if the name was already used in this tick, or is used for items of another
    /// type.
    pub(crate) fn open<T, O>(&mut self, name: &'static str) -> Option<&mut Loop>
    where
        T: Send + Sync + 'static,
        O: Send + Sync + 'static,
    {
        let at = self.loops.iter().position(|of| of.name == name);
        let at = at.unwrap_or_else(|| {
            self.loops.push(Loop {
                name,
                is_used: false,
                is_whole: false,
                taken: 0,
                run: 0,
                bytes: 0,
                results: Box::new(Results::<T, O>::default()),
            });
            self.loops.len() - 1
        });
        let of = &mut self.loops[at];
        let is_free = !of.is_used && of.results.is::<Results<T, O>>();
        of.is_used = true;
        is_free.then_some(of)
    }

    pub(crate) fn results<T: 'static, O: 'static>(
        &self,
        name: &'static str,
    ) -> Option<&Results<T, O>> {
        let mut whole = self.loops.iter().filter(|of| of.is_whole);
        whole.find(|of| of.name == name)?.results.downcast_ref()
    }

    fn bytes(&self) -> usize {
        self.loops.iter().map(|of| of.bytes).sum()
    }
}

/// The memos that one step reads and writes, and the buffers of plain loops.
#[derive(Default)]
pub(crate) struct StepMemos {
    pub(crate) old: Option<Box<Memo>>,
    pub(crate) new: Option<Box<Memo>>,
    pub(crate) plain: Memo,
    /// The space that each memo reserves for each loop. If a tick needs more, this becomes twice the tick's need, so
    /// that few memos grow.
    pub(crate) rooms: Vec<(&'static str, [usize; 3])>,
    pub(crate) taken: u32,
    pub(crate) impure: Option<&'static str>,
    /// The running loop, or the one in which the step panicked.
    pub(crate) running: Option<&'static str>,
}

impl StepMemos {
    /// Prepares a step without memos. Free for a game without loops.
    pub(crate) fn begin_plain(&mut self) {
        if !self.rooms.is_empty() {
            (self.old, self.new, self.running) = (None, None, None);
            self.plain.begin(Tick(0));
        }
    }
}

/// The memos of a prediction, one for each tick of its lead.
pub struct Memos {
    of_ticks: Vec<Option<Box<Memo>>>,
    spare: VecDeque<Box<Memo>>,
    is_used: bool,
    /// The capacity of all memos, in bytes.
    bytes: usize,
    without: u64,
    stats: Vec<LoopStats>,
    impure: Option<&'static str>,
}

impl Default for Memos {
    fn default() -> Self {
        Memos {
            of_ticks: iter::repeat_with(|| None)
                .take(LEAD_MAX as usize + 1)
                .collect(),
            spare: VecDeque::new(),
            is_used: false,
            bytes: 0,
            without: 0,
            stats: Vec::new(),
            impure: None,
        }
    }
}

impl Memos {
    fn slot(&mut self, tick: Tick) -> &mut Option<Box<Memo>> {
        let at = tick.0 as usize % self.of_ticks.len();
        &mut self.of_ticks[at]
    }

    pub(crate) fn lend(&mut self, tick: Tick, lent: &mut StepMemos) {
        // No loop has run yet: a game without loops pays nothing.
        if lent.rooms.is_empty() {
            return;
        }
        self.is_used = true;
        let mut old = self.slot(tick).take();
        self.spare.extend(old.take_if(|old| old.tick != tick));
        let may_grow = self.bytes < MEMO_BYTES_MAX;
        if self.spare.is_empty() && may_grow {
            let made = iter::repeat_with(Box::<Memo>::default);
            self.spare.extend(made.take(SPARE));
        }
        let mut spare = self.spare.iter();
        let at = spare.position(|memo| may_grow || memo.bytes() > 0);
        let mut new = at.and_then(|at| self.spare.remove(at));
        // If the step panics, the memos are not returned.
        self.bytes -= old
            .iter()
            .chain(&new)
            .map(|memo| memo.bytes())
            .sum::<usize>();
        match &mut new {
            Some(new) => new.begin(tick),
            None => self.without += 1,
        }
        lent.plain.begin(tick);
        (lent.old, lent.new) = (old, new);
    }

    pub(crate) fn take_back(&mut self, tick: Tick, lent: &mut StepMemos) {
        let (old, new) = (lent.old.take(), lent.new.take());
        if old.is_none() && new.is_none() {
            return;
        }
        self.bytes += old
            .iter()
            .chain(&new)
            .map(|memo| memo.bytes())
            .sum::<usize>();
        self.impure = self.impure.or(lent.impure.take());
        let Some(new) = new else {
            *self.slot(tick) = old;
            return;
        };
        if let Some(old) = old {
            for of in new.loops.iter().filter(|of| of.is_used) {
                add_loop(&mut self.stats, of.name, of.taken.into(), of.run.into());
            }
            self.spare.push_back(old);
        }
        *self.slot(tick) = Some(new);
    }

    /// Frees the memo of a confirmed tick for another tick.
    pub fn forget(&mut self, tick: Tick) {
        if !self.is_used {
            return;
        }
        let confirmed = self.slot(tick).take_if(|memo| memo.tick <= tick);
        self.spare.extend(confirmed);
    }

    /// Takes all memos from `others`. If both have a memo in a slot, the one of the later tick is kept.
    pub fn absorb(&mut self, others: &mut Memos) {
        if !others.is_used {
            return;
        }
        self.is_used = true;
        let slots = self.of_ticks.iter_mut().zip(&mut others.of_ticks);
        for (slot, theirs) in slots {
            let Some(memo) = theirs.take() else { continue };
            others.bytes -= memo.bytes();
            self.bytes += memo.bytes();
            let is_newer = slot.as_ref().is_none_or(|ours| ours.tick < memo.tick);
            match is_newer {
                true => self.spare.extend(slot.replace(memo)),
                false => self.spare.push_back(memo),
            }
        }
    }

    /// The memory of all memos, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the counts since the last call to the counts in `loops`.
    pub fn take_stats(&mut self, loops: &mut Vec<LoopStats>) {
        for of in &mut self.stats {
            add_loop(
                loops,
                of.name,
                mem::take(&mut of.taken),
                mem::take(&mut of.run),
            );
        }
    }

    /// Returns the number of ticks stepped without a memo since the last call, because memos had reached
    /// [`MEMO_BYTES_MAX`] bytes.
    pub fn take_without(&mut self) -> u64 {
        mem::take(&mut self.without)
    }

    /// Returns, once, the name of a loop whose function returned different results for equal items and reads.
    pub fn take_impure(&mut self) -> Option<&'static str> {
        self.impure.take()
    }
}

fn add_loop(loops: &mut Vec<LoopStats>, name: &'static str, taken: u64, run: u64) {
    match loops.iter_mut().find(|of| of.name == name) {
        Some(of) => {
            of.taken += taken;
            of.run += run;
        }
        None => loops.push(LoopStats { name, taken, run }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_without_loops_gets_no_memos() {
        let (mut memos, mut lent) = (Memos::default(), StepMemos::default());
        let step = |memos: &mut Memos, lent: &mut StepMemos, tick: u32| {
            memos.lend(Tick(tick), lent);
            let keeps = lent.new.is_some();
            memos.take_back(Tick(tick), lent);
            memos.forget(Tick(tick).back(1));
            memos.absorb(&mut Memos::default());
            keeps
        };
        let steps = (0..99).map(|tick| step(&mut memos, &mut lent, tick));
        assert_eq!(steps.filter(|keeps| *keeps).count(), 0);
        assert!(!memos.is_used && memos.spare.is_empty());
        // A game has memos from the step after its first loop onwards.
        lent.rooms.push(("agents", [0; 3]));
        assert!(step(&mut memos, &mut lent, 99) && memos.is_used);
    }
}
