//! [`Effects::each`]: a loop of a step whose items are not run again when a prediction is rebuilt.

use alloc::vec::Vec;
use core::mem;

use serde::Serialize;

use crate::codec;
use crate::memo::{LoopContext, Outputs, Results, StepMemos, part};
use crate::simulation::{Effects, Frame, Simulation};

/// One in this many taken results is checked by running the function.
const CHECKED: u32 = 256;

impl<S: Simulation> Effects<S> {
    /// Runs `run` once for each item, in order, and then passes all outputs to `tell`, in the same order. When a
    /// prediction is rebuilt, an item that is what it was at this tick, and that reads what it read then, is not run:
    /// its result is taken over.
    ///
    /// This pays for items that cost more than some 200 ns: agents that think, search paths or cast rays. It adds some
    /// 60 ns to each item of a predicted tick, and less than 10 ns in the authority and the server.
    ///
    /// `name` is the loop's own within a step. `reads` returns all that `run` needs besides the item, as a small value:
    /// the positions of the players in sight rather than the list of players, because an item is run again whenever its
    /// reads differ. `run` must not look at a global variable or at a clock; a `static` cannot be kept from it.
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
    /// In debug builds, if two loops of a step have the same name. In release builds the second one is a plain loop.
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
        let StepMemos {
            old,
            new,
            plain,
            rooms,
            taken,
            impure,
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
}

/// Returns `true` if the two items have the same bytes. Uses the end of `scratch`.
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

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicI32, Ordering};

    use serde::Deserialize;

    use super::*;
    use crate::Tick;
    use crate::bounds::MEMO_BYTES_MAX;
    use crate::frame::{FrameData, Perspective, PlayerSet};
    use crate::memo::Memos;
    use crate::prelude::{Never, World};
    use crate::world::Stepper;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Agent {
        at: f32,
        pushed: Vec<u8>,
    }

    static SECRET: AtomicI32 = AtomicI32::new(0);

    impl Agent {
        fn walk(&mut self, goal: &f32, given: &LoopContext<'_, ()>, out: &mut Outputs<'_, f32>) {
            self.at = (self.at + goal) / 2.0;
            self.pushed.push(given.tick.0 as u8);
            if self.at < *goal {
                out.push(self.at);
                out.push(*goal);
            }
        }

        fn peek(&mut self, _: &f32, _: &LoopContext<'_, ()>, _: &mut Outputs<'_, f32>) {
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
        assert_eq!(theirs.bytes(), 0);
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
            assert!(
                memos.bytes() < MEMO_BYTES_MAX + (4 << 20),
                "{}",
                memos.bytes()
            );
        }
        assert!(memos.take_without() > 0);
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
