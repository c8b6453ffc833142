//! [`Effects::each`]: a loop in a step that reuses the results of unchanged items when a prediction is rebuilt.

use alloc::vec::Vec;
use core::{iter, mem};

use serde::{Serialize, Serializer};

use crate::codec;
use crate::memo::{LoopContext, Outputs, Results, StepMemos, part};
use crate::simulation::{Effects, Frame, Simulation};

/// One in this many reused results is checked by running the function.
const CHECKED: u32 = 256;

impl<S: Simulation> Effects<S> {
    /// Runs `run` once for each item, in order, and then passes all outputs to `tell`, in the same order. When a
    /// prediction is rebuilt, an item that equals its earlier value at this tick, with equal reads, is not run: its
    /// result is reused.
    ///
    /// This pays off for items that cost more than about 200 ns, such as agents that think, search paths or cast rays.
    /// It adds about 60 ns to each item of a predicted tick, and less than 10 ns in the authority and the server.
    ///
    /// `name` must be unique among the loops of a step. `reads` returns everything that `run` needs besides the item,
    /// as a small value: the positions of the players in sight rather than the list of players, because an item is run
    /// again whenever its reads differ. `run` must not read a global variable or a clock; the compiler cannot stop it
    /// from using a `static`.
    ///
    /// ```
    /// # use twinstep_core::prelude::*;
    /// # use twinstep_core::memo::{LoopContext, Outputs};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Default, Serialize, Deserialize)]
    /// struct Agent {
    ///     at: i32,
    /// }
    ///
    /// impl Agent {
    ///     /// Walks towards `goal`, and reports its arrival.
    ///     fn walk(&mut self, goal: &i32, _: &LoopContext<'_, ()>, out: &mut Outputs<'_, i32>) {
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
    /// In debug builds, if two loops of a step have the same name, or a predicted item or its reads cannot be encoded.
    /// In release builds such a loop runs as a plain loop. The report of a panic in `run` names the loop.
    #[track_caller]
    pub fn each<'i, T, R, O>(
        &mut self,
        name: &'static str,
        frame: &Frame<'_, S>,
        items: impl IntoIterator<Item = &'i mut T>,
        reads: impl Fn(usize, &T) -> R,
        run: fn(&mut T, &R, &LoopContext<'_, S::Rules>, &mut Outputs<'_, O>),
        mut tell: impl FnMut(&mut Effects<S>, O),
    ) where
        T: Clone + Serialize + Send + Sync + 'static,
        R: Serialize,
        O: Clone + Send + Sync + 'static,
    {
        let given = LoopContext {
            tick: frame.tick(),
            tick_length: frame.tick_length(),
            rules: frame.rules(),
        };
        // Taken out, so that `tell` may use these effects.
        let mut memos = mem::take(self.memos_mut());
        self.memos_mut().running = Some(name);
        let StepMemos {
            old,
            new,
            plain,
            rooms,
            taken,
            impure,
            running: _,
        } = &mut memos;
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
            *self.memos_mut() = memos;
            return outputs.into_iter().for_each(|output| tell(self, output));
        };
        let results: &mut Results<T, O> =
            of.results.downcast_mut().expect("`open` checked the type");
        results.clear();
        let room = match rooms.iter().position(|(loop_name, _)| *loop_name == name) {
            Some(at) => &mut rooms[at].1,
            None => {
                rooms.push((name, [0; 3]));
                let last = rooms.len() - 1;
                &mut rooms[last].1
            }
        };
        if keeps {
            results.reserve(*room);
        }
        let (mut is_whole, mut count, mut next) = (keeps, 0, 0);
        for item in items {
            let read = reads(count, item);
            count += 1;
            if !keeps {
                run(item, &read, &given, &mut Outputs(&mut results.outputs));
                continue;
            }
            let from = results.bytes.len();
            let appended = codec::append(&(&*item, &read), &mut results.bytes);
            if let Err(error) = &appended {
                debug_assert!(false, "item {} and its reads: {error}", count - 1);
            }
            is_whole &= appended.is_ok();
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
                        if !are_equal(item, &old.after[nth], &mut results.bytes) {
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
        let used = [results.bytes.len(), count, results.outputs.len()];
        for (room, used) in room.iter_mut().zip(used) {
            if used > *room {
                *room = 2 * used;
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
        *self.memos_mut() = memos;
    }

    /// Returns `run(input)`. When a prediction is rebuilt and the input equals its earlier value at this tick, the
    /// earlier result is reused. This is [`each`](Self::each) for one value, such as a flow field that depends on the
    /// walls.
    ///
    /// ```
    /// # use twinstep_core::prelude::*;
    /// # use twinstep_core::memo::LoopContext;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Clone, Default, Serialize, Deserialize)]
    /// # struct Maze {
    /// #     walls: Vec<bool>,
    /// #     ways: Vec<u16>,
    /// # }
    /// # fn flow(walls: &[bool], _: &LoopContext<'_, ()>) -> Vec<u16> {
    /// #     walls.iter().map(|&wall| u16::from(wall)).collect()
    /// # }
    /// # impl Simulation for Maze {
    /// #     const NAME: &'static str = "maze";
    /// #     const VERSION: u32 = 1;
    /// #     type Rules = ();
    /// #     type Input = i8;
    /// #     type Command = Never;
    /// #     type Query = Never;
    /// #     type Outcome = Never;
    /// #     type Cue = Never;
    /// fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
    ///     self.ways = fx.recall("flow", frame, &self.walls[..], flow);
    /// }
    /// # }
    /// ```
    ///
    /// # Panics
    /// The panics of [`each`](Self::each). The two methods share one set of names.
    #[track_caller]
    pub fn recall<I, O>(
        &mut self,
        name: &'static str,
        frame: &Frame<'_, S>,
        input: &I,
        run: fn(&I, &LoopContext<'_, S::Rules>) -> O,
    ) -> O
    where
        I: Serialize + ?Sized,
        O: Clone + Serialize + Send + Sync + 'static,
    {
        // The result is the item, so that the sampled checks compare it.
        let mut result = None;
        self.each(
            name,
            frame,
            iter::once(&mut result),
            |_, _| Call { input, run },
            |result: &mut Option<O>, call, given, _: &mut Outputs<'_, ()>| {
                *result = Some((call.run)(call.input, given));
            },
            |_, ()| {},
        );
        result.expect("a loop runs each item or reuses its result")
    }
}

struct Call<'c, I: ?Sized, R, O> {
    input: &'c I,
    run: fn(&I, &LoopContext<'_, R>) -> O,
}

impl<I: Serialize + ?Sized, R, O> Serialize for Call<'_, I, R, O> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        self.input.serialize(serializer)
    }
}

fn are_equal<T: Serialize>(a: &T, b: &T, scratch: &mut Vec<u8>) -> bool {
    let start = scratch.len();
    // Items that cannot be encoded have no entry.
    let _ = codec::append(a, scratch);
    let middle = scratch.len();
    let _ = codec::append(b, scratch);
    let (left, right) = scratch[start..].split_at(middle - start);
    let are_equal = left == right;
    scratch.truncate(start);
    are_equal
}
