//! [`Effects::each`]: a loop of a step whose items are not run again when a prediction is rebuilt.
//!
//! ```text
//!  memo of tick t    [ a  b  c  d ]    of each item: its bytes with what it reads, the item after the tick, its outputs
//!  rebuild, tick t   [ a  b' c  d ]    equal bytes: the result is taken over;  b' differs: its function is run
//! ```
//!
//! A wrong guess about one player changes few of a thousand agents, so few are run again. This is a memo by value: bytes
//! are compared, never identities, and an author declares nothing that could be wrong. Equal bytes give an equal result,
//! because an item's function is a function pointer: besides the item and its reads it sees the tick and the rules alone.
//! So it does not matter which prediction of a tick made its memo.
//!
//! Law **One way**: only predictions have memos. In the authority, on the server, in journals and in replays `each` is a
//! plain loop, and the confirmed state never depends on a memo.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;
use core::{iter, mem};

use serde::Serialize;

use crate::bounds::{LEAD_MAX, MEMO_BYTES_MAX};
use crate::{Effects, Frame, Simulation, Tick, codec};

/// The number of entries that are searched for an item: items that left a list move the others by a few places.
const SEARCH: usize = 8;
/// One in this many taken results is checked by running the function.
const CHECKED: u32 = 256;

/// What the function of [`Effects::each`] sees besides the item and its reads.
pub struct Given<'a, S: Simulation> {
    /// The tick being stepped.
    pub tick: Tick,
    /// See [`Frame::tick_length`].
    pub tick_length: Duration,
    /// The match's rules.
    pub rules: &'a S::Rules,
}

/// Collects the outputs of one item, such as new bullets, hits or cues. They cannot be read back.
pub struct Outputs<'a, O>(&'a mut Vec<O>);

impl<O> Outputs<'_, O> {
    /// Adds an output.
    pub fn push(&mut self, output: O) {
        self.0.push(output);
    }
}

/// The number of items of one loop in repeated ticks, those that a memo of the same tick existed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopStats {
    /// The loop's name.
    pub name: &'static str,
    /// Items whose result was taken over.
    pub taken: u64,
    /// Items that were run.
    pub run: u64,
}

/// The results of all items of one loop in one tick.
struct Results<T, O> {
    /// Item and reads of each entry before the tick, encoded.
    bytes: Vec<u8>,
    byte_ends: Vec<usize>,
    after: Vec<T>,
    outputs: Vec<O>,
    output_ends: Vec<usize>,
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

fn part<'v, V>(values: &'v [V], ends: &[usize], nth: usize) -> &'v [V] {
    let from = nth.checked_sub(1).map_or(0, |before| ends[before]);
    &values[from..ends[nth]]
}

impl<T, O> Results<T, O> {
    fn clear(&mut self) {
        self.bytes.clear();
        self.byte_ends.clear();
        self.outputs.clear();
        self.output_ends.clear();
    }

    fn find(&self, from: usize, bytes: &[u8]) -> Option<usize> {
        let end = self.byte_ends.len().min(from + SEARCH);
        (from..end).find(|nth| part(&self.bytes, &self.byte_ends, *nth) == bytes)
    }

    fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
            + size_of::<usize>() * (self.byte_ends.capacity() + self.output_ends.capacity())
            + size_of::<T>() * self.after.capacity()
            + size_of::<O>() * self.outputs.capacity()
    }
}

struct Loop {
    name: &'static str,
    /// The loop began in the memo's tick.
    is_used: bool,
    /// All items of the memo's tick have an entry.
    is_whole: bool,
    taken: u32,
    run: u32,
    bytes: usize,
    results: Box<dyn Any + Send + Sync>,
}

/// The results of the loops of one predicted tick.
#[derive(Default)]
struct Memo {
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

    /// Returns the loop's entry, or `None` if the name was used in this tick, or for items of another type.
    fn open<T, O>(&mut self, name: &'static str) -> Option<&mut Loop>
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

    fn results<T: 'static, O: 'static>(&self, name: &'static str) -> Option<&Results<T, O>> {
        let mut whole = self.loops.iter().filter(|of| of.is_whole);
        whole.find(|of| of.name == name)?.results.downcast_ref()
    }

    fn bytes(&self) -> usize {
        self.loops.iter().map(|of| of.bytes).sum()
    }
}

/// The memos that one step reads and writes, and the buffers of plain loops.
#[derive(Default)]
pub(crate) struct Lent {
    old: Option<Box<Memo>>,
    new: Option<Box<Memo>>,
    plain: Memo,
    taken: u32,
    impure: Option<&'static str>,
}

impl Lent {
    /// Prepares a step without memos.
    pub(crate) fn begin_plain(&mut self) {
        (self.old, self.new) = (None, None);
        self.plain.begin(Tick(0));
    }
}

/// The memos of a prediction, one for each tick of its lead.
pub struct Memos {
    of_ticks: Vec<Option<Box<Memo>>>,
    spare: Vec<Box<Memo>>,
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
            spare: Vec::new(),
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

    pub(crate) fn lend(&mut self, tick: Tick, lent: &mut Lent) {
        let mut old = self.slot(tick).take();
        let mut new = self.spare.pop();
        if let Some(outdated) = old.take_if(|old| old.tick != tick) {
            match new {
                None => new = Some(outdated),
                Some(_) => self.spare.push(outdated),
            }
        }
        if new.is_none() && self.bytes < MEMO_BYTES_MAX {
            new = Some(Box::default());
        }
        // A step that panics does not give them back.
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

    pub(crate) fn take_back(&mut self, tick: Tick, lent: &mut Lent) {
        let (old, new) = (lent.old.take(), lent.new.take());
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
            self.spare.push(old);
        }
        *self.slot(tick) = Some(new);
    }

    /// Frees the memo of a confirmed tick for another tick.
    pub fn forget(&mut self, tick: Tick) {
        let confirmed = self.slot(tick).take_if(|memo| memo.tick <= tick);
        self.spare.extend(confirmed);
    }

    /// Takes over the memos of later ticks that `others` has.
    pub fn absorb(&mut self, others: &mut Memos) {
        let slots = self.of_ticks.iter_mut().zip(&mut others.of_ticks);
        for (slot, theirs) in slots {
            let Some(memo) = theirs.take() else { continue };
            others.bytes -= memo.bytes();
            self.bytes += memo.bytes();
            let is_newer = slot.as_ref().is_none_or(|ours| ours.tick < memo.tick);
            match is_newer {
                true => self.spare.extend(slot.replace(memo)),
                false => self.spare.push(memo),
            }
        }
    }

    /// Adds the counts since the last call to those of `loops`.
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

    /// Returns the number of ticks since the last call that were stepped without a memo, because memos held
    /// [`MEMO_BYTES_MAX`] bytes.
    pub fn take_without(&mut self) -> u64 {
        mem::take(&mut self.without)
    }

    /// Returns the name of a loop whose function gave two results for equal items and reads, once.
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

impl<S: Simulation> Effects<S> {
    /// Runs `run` once for each item, in order, and then passes all outputs to `tell`, in the same order. When a
    /// prediction is rebuilt, an item that is what it was at this tick, and that reads what it read then, is not run:
    /// its result is taken over.
    ///
    /// This pays for items that cost more than some 200 ns: agents that think, search paths or cast rays. It adds some
    /// 60 ns to each item of a predicted tick, and next to nothing to the authority and the server.
    ///
    /// `name` is the loop's own within a step. `reads` returns all that `run` needs besides the item, as a small value:
    /// the positions of the players in sight rather than the list of players, because an item is run again whenever its
    /// reads differ. `run` must not look at a global variable or at a clock; a `static` cannot be kept from it.
    ///
    /// ```
    /// # use twinstep_core::prelude::*;
    /// # use twinstep_core::memo::{Given, Outputs};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Default, Serialize, Deserialize)]
    /// struct Agent {
    ///     at: i32,
    /// }
    ///
    /// impl Agent {
    ///     /// Walks towards `goal`, and reports its arrival.
    ///     fn walk(&mut self, goal: &i32, _: &Given<'_, Town>, out: &mut Outputs<'_, i32>) {
    ///         self.at += (goal - self.at).signum();
    ///         if self.at == *goal {
    ///             out.push(self.at);
    ///         }
    ///     }
    /// }
    ///
    /// #[derive(Clone, Default, Serialize, Deserialize)]
    /// struct Town {
    ///     agents: Vec<Agent>,
    ///     goal: i32,
    ///     arrived: u32,
    /// }
    ///
    /// impl Simulation for Town {
    ///     # const NAME: &'static str = "town";
    ///     # const VERSION: u32 = 1;
    ///     # type Rules = ();
    ///     # type Input = i8;
    ///     # type Command = Never;
    ///     # type Query = Never;
    ///     # type Outcome = Never;
    ///     # type Cue = Never;
    ///     fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
    ///         let (goal, arrived) = (self.goal, &mut self.arrived);
    ///         fx.each("walk", frame, &mut self.agents, |_, _| goal, Agent::walk, |_, _| *arrived += 1);
    ///     }
    /// }
    /// ```
    ///
    /// # Panics
    /// In debug builds, if two loops of a step have the same name. In release builds the second one is a plain loop.
    #[track_caller]
    pub fn each<'i, T, R, O>(
        &mut self,
        name: &'static str,
        frame: &Frame<'_, S>,
        items: impl IntoIterator<Item = &'i mut T>,
        reads: impl Fn(usize, &T) -> R,
        run: fn(&mut T, &R, &Given<'_, S>, &mut Outputs<'_, O>),
        mut tell: impl FnMut(&mut Effects<S>, O),
    ) where
        T: Clone + Serialize + Send + Sync + 'static,
        R: Serialize,
        O: Clone + Send + Sync + 'static,
    {
        let given = Given {
            tick: frame.tick(),
            tick_length: frame.tick_length(),
            rules: frame.rules(),
        };
        // Taken out, so that `tell` may use these effects.
        let mut lent = mem::take(self.lent_mut());
        let Lent {
            old,
            new,
            plain,
            taken,
            impure,
        } = &mut lent;
        let keeps = new.is_some();
        let old = old
            .as_ref()
            .and_then(|old| old.results::<T, O>(name))
            .filter(|_| keeps);
        let memo = new.as_deref_mut().unwrap_or(plain);
        let Some(of) = memo.open::<T, O>(name) else {
            debug_assert!(
                false,
                "expected a name of its own for each loop of a step, got {name:?} twice"
            );
            let mut outputs = Vec::new();
            for (n, item) in items.into_iter().enumerate() {
                run(item, &reads(n, item), &given, &mut Outputs(&mut outputs));
            }
            *self.lent_mut() = lent;
            return outputs.into_iter().for_each(|output| tell(self, output));
        };
        let results: &mut Results<T, O> =
            of.results.downcast_mut().expect("`open` checked the type");
        results.clear();
        let (mut is_whole, mut count, mut next) = (keeps, 0, 0);
        for item in items {
            let read = reads(count, item);
            count += 1;
            if !keeps {
                run(item, &read, &given, &mut Outputs(&mut results.outputs));
                continue;
            }
            let from = results.bytes.len();
            is_whole &= codec::append(&(&*item, &read), &mut results.bytes).is_ok();
            let found = old.filter(|_| is_whole).and_then(|old| {
                let nth = old.find(next, &results.bytes[from..])?;
                Some((old, nth))
            });
            results.byte_ends.push(results.bytes.len());
            match found {
                Some((old, nth)) => {
                    next = nth + 1;
                    of.taken += 1;
                    *taken = taken.wrapping_add(1);
                    if taken.is_multiple_of(CHECKED) {
                        run(item, &read, &given, &mut Outputs(&mut results.outputs));
                        if !are_equal(item, &old.after[nth]) {
                            *impure = Some(name);
                        }
                    } else {
                        item.clone_from(&old.after[nth]);
                        results.outputs.extend_from_slice(part(
                            &old.outputs,
                            &old.output_ends,
                            nth,
                        ));
                    }
                }
                None => {
                    next += 1;
                    of.run += 1;
                    run(item, &read, &given, &mut Outputs(&mut results.outputs));
                }
            }
            results.output_ends.push(results.outputs.len());
            match results.after.get_mut(count - 1) {
                Some(after) => after.clone_from(item),
                None => results.after.push(item.clone()),
            }
        }
        of.is_whole = is_whole;
        of.bytes = results.capacity_bytes();
        if keeps {
            results.after.truncate(count);
            results
                .outputs
                .iter()
                .for_each(|output| tell(self, output.clone()));
        } else {
            results
                .outputs
                .drain(..)
                .for_each(|output| tell(self, output));
        }
        *self.lent_mut() = lent;
    }
}

/// Whether two items have the same bytes.
fn are_equal<T: Serialize>(a: &T, b: &T) -> bool {
    let mut bytes = [Vec::new(), Vec::new()];
    for (value, out) in [a, b].into_iter().zip(&mut bytes) {
        // Values that cannot be encoded have no entry.
        let _ = codec::append(value, out);
    }
    bytes[0] == bytes[1]
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicI32, Ordering};

    use serde::Deserialize;

    use super::*;
    use crate::frame::{FrameData, Perspective, PlayerSet};
    use crate::prelude::{Never, World};
    use crate::world::Stepper;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Agent {
        at: f32,
        pushed: Vec<u8>,
    }

    static SECRET: AtomicI32 = AtomicI32::new(0);

    impl Agent {
        fn walk(&mut self, goal: &f32, given: &Given<'_, Town>, out: &mut Outputs<'_, f32>) {
            self.at = (self.at + goal) / 2.0;
            self.pushed.push(given.tick.0 as u8);
            if self.at < *goal {
                out.push(self.at);
                out.push(*goal);
            }
        }

        fn peek(&mut self, _: &f32, _: &Given<'_, Town>, _: &mut Outputs<'_, f32>) {
            self.at += SECRET.load(Ordering::Relaxed) as f32;
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Town {
        agents: Vec<Agent>,
        goals: Vec<f32>,
        reached: Vec<f32>,
        peeks: bool,
        twice: bool,
    }

    impl Simulation for Town {
        const NAME: &'static str = "town";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
            let run = if self.peeks { Agent::peek } else { Agent::walk };
            for _ in 0..1 + u8::from(self.twice) {
                let (goals, reached) = (&self.goals, &mut self.reached);
                let goal = |n: usize, _: &Agent| goals[n % goals.len()];
                let tell = |_: &mut Effects<Town>, at| reached.push(at);
                fx.each("walk", frame, &mut self.agents, goal, run, tell);
            }
        }
    }

    fn town(count: usize) -> Town {
        let agent = |n| Agent {
            at: n as f32,
            pushed: Vec::new(),
        };
        Town {
            agents: (0..count).map(agent).collect(),
            goals: Vec::from([0.0, 50.0, 7.0]),
            ..Town::default()
        }
    }

    /// Steps a world of this town once, as a prediction with these memos. Returns the town, and the number of items
    /// whose result was taken over and that were run in a repeated tick.
    fn step(town: &Town, memos: &mut Memos) -> (Town, [u64; 2]) {
        step_at(town, memos, Tick(5))
    }

    fn step_at(town: &Town, memos: &mut Memos, tick: Tick) -> (Town, [u64; 2]) {
        let mut world = World::new(town.clone(), tick);
        let mut frame = FrameData::roomy(tick);
        frame.reset(tick);
        let perspective = Perspective::authority(tick);
        let mut stepper = Stepper::default();
        let mut plain = world.clone();
        let nobody = PlayerSet::default();
        let stepped = stepper.step_with(&mut world, &frame, &(), perspective, nobody, memos);
        stepped.unwrap();
        if !town.peeks {
            let stepped = stepper.step(&mut plain, &frame, &(), perspective, nobody);
            stepped.unwrap();
            assert_eq!(world.sim(), plain.sim(), "differs from a plain loop");
        }
        let mut loops = Vec::new();
        memos.take_stats(&mut loops);
        let counts = loops.first().map_or([0, 0], |of| [of.taken, of.run]);
        (world.sim().clone(), counts)
    }

    #[test]
    fn equal_items_are_taken_over_and_others_run() {
        let mut memos = Memos::default();
        let mut town = town(100);
        assert_eq!(step(&town, &mut memos).1, [0, 0], "a new tick");
        assert_eq!(step(&town, &mut memos).1, [100, 0]);
        town.agents[3].at += 1.0;
        assert_eq!(step(&town, &mut memos).1, [99, 1], "another item");
        town.goals[1] = 51.0;
        assert_eq!(step(&town, &mut memos).1, [67, 33], "other reads");
        town.agents[0].at = -0.0;
        assert_eq!(step(&town, &mut memos).1, [99, 1], "bytes count, not `==`");
        town.agents.drain(30..33);
        assert_eq!(
            step(&town, &mut memos).1,
            [97, 0],
            "three items left the list"
        );
        assert_eq!(step_at(&town, &mut memos, Tick(6)).1, [0, 0]);
        memos.forget(Tick(6));
        assert_eq!(step_at(&town, &mut memos, Tick(6)).1, [0, 0]);
    }

    #[test]
    fn memos_of_new_ticks_are_absorbed() {
        let (mut ours, mut theirs) = (Memos::default(), Memos::default());
        let town = town(10);
        step_at(&town, &mut ours, Tick(1));
        step_at(&town, &mut theirs, Tick(2));
        ours.absorb(&mut theirs);
        assert_eq!(theirs.bytes, 0);
        for tick in [1, 2] {
            assert_eq!(step_at(&town, &mut ours, Tick(tick)).1, [10, 0]);
        }
    }

    #[test]
    fn memos_take_at_most_their_limit() {
        let mut memos = Memos::default();
        let town = town(20_000);
        for tick in 0..40 {
            step_at(&town, &mut memos, Tick(tick));
            assert!(memos.bytes < MEMO_BYTES_MAX + (4 << 20), "{}", memos.bytes);
        }
        assert!(memos.take_without() > 0);
        let held = memos
            .of_ticks
            .iter()
            .chain([&None])
            .flatten()
            .chain(&memos.spare);
        assert_eq!(memos.bytes, held.map(|memo| memo.bytes()).sum::<usize>());
    }

    #[test]
    fn a_function_that_reads_a_static_is_found() {
        let mut memos = Memos::default();
        let town = Town {
            peeks: true,
            ..town(300)
        };
        for secret in 0..4 {
            SECRET.store(secret, Ordering::Relaxed);
            step(&town, &mut memos);
        }
        assert_eq!(memos.take_impure(), Some("walk"));
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "a name of its own"))]
    fn two_loops_of_one_name_are_an_error() {
        let town = Town {
            twice: true,
            ..town(3)
        };
        step(&town, &mut Memos::default());
    }
}
