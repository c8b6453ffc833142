//! Who plays on a server that is measured: from one thread, each at moments of its own, as the players of many machines
//! are.
//!
//! ```text
//!  a frame of 16.7 ms:  1 ▪▪ 2 ▪▪ 3 ▪▪ …   a turn of the loop every 2 ms: whose frame is due plays it
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing that it measures does"
)]

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Cpu, Failed, cpu};
use crate::served::{Sample, Served};

/// Frames and ticks are so long.
pub(crate) const FRAME: Duration = Duration::from_nanos(16_666_667);

/// Between two turns of the loop. To wake costs this process as much as to play a frame, and servers take the same whether it
/// wakes every millisecond or every second one (NOTES.md).
const NAP: Duration = Duration::from_millis(2);

/// A player of any of the stacks that are compared.
pub(crate) trait Player {
    /// A frame: read what came, say what is held. `now` is the time since the first player was dialled.
    fn frame(&mut self, now: Duration) -> Result<(), Failed>;

    /// Whether the server has let it in.
    fn is_in(&self) -> bool;
}

/// Until all should be in.
pub(crate) const JOIN_PATIENCE: Duration = Duration::from_secs(20);

/// Players on a server, in turns.
pub(crate) struct Crowd {
    began: Instant,
    /// With the moments at which their next frames are due, the next one first.
    players: VecDeque<(Box<dyn Player>, Duration)>,
    /// Whether the others go on when one cannot.
    goes_on: bool,
    /// Why some could not go on.
    lost: Vec<Failed>,
}

/// How that went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    /// What this process used up: the players, with what the kernel did for them.
    pub(crate) cpu: Cpu,
    /// Frames that were played.
    pub(crate) frames: u64,
    /// Frames that began more than half a frame late.
    pub(crate) late: u64,
}

impl Crowd {
    /// So many players, whose frames are spread over the length of one.
    pub(crate) fn new(
        players: usize,
        dial: impl Fn(usize) -> Result<Box<dyn Player>, Failed>,
    ) -> Result<Crowd, Failed> {
        let began = Instant::now();
        let due = |n: usize| FRAME * n as u32 / players as u32;
        let dial = |n| dial(n).map_err(|why| Failed::from(format!("player {n}: {why}")));
        let players = (0..players).map(|n| Ok((dial(n)?, due(n))));
        let players = players.collect::<Result<_, Failed>>()?;
        Ok(Crowd {
            began,
            players,
            goes_on: false,
            lost: Vec::new(),
        })
    }

    /// The others go on when one cannot. What is measured then says nothing of so many players.
    pub(crate) fn going_on(mut self) -> Crowd {
        self.goes_on = true;
        self
    }

    /// Why some could not go on, the first one first.
    pub(crate) fn lost(&self) -> &[Failed] {
        &self.lost
    }

    /// Plays for so long.
    pub(crate) fn play(&mut self, time: Duration) -> Result<Played, Failed> {
        let before = cpu()?;
        let mut played = Played::default();
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until {
            self.turn(&mut played)?;
            thread::sleep(NAP);
        }
        played.cpu = cpu()? - before;
        Ok(played)
    }

    /// A frame of all whose time has come.
    fn turn(&mut self, played: &mut Played) -> Result<(), Failed> {
        let now = self.began.elapsed();
        // At most one frame of each, also of those whose next one is due already.
        for _ in 0..self.players.len() {
            let Some((mut player, due)) = self.players.pop_front_if(|(_, due)| *due <= now) else {
                break;
            };
            played.frames += 1;
            played.late += u64::from(now - due > FRAME / 2);
            match player.frame(now) {
                // Who was late by more than a frame does not hurry after.
                Ok(()) => self.players.push_back((player, (due + FRAME).max(now))),
                Err(why) if self.goes_on => self.lost.push(why),
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// What a server has used up and done by now. Everybody plays on while it answers: players that stand still say
    /// nothing, which costs it nothing, and their inputs are missing.
    pub(crate) fn sample(&mut self, served: &mut Served) -> Result<Sample, Failed> {
        served.ask()?;
        thread::scope(|scope| {
            let answer = scope.spawn(|| served.answer().map_err(|error| error.to_string()));
            while !answer.is_finished() {
                self.play(NAP)?;
            }
            let answer = answer.join().map_err(|_| "whoever listened panicked")?;
            Ok(answer?)
        })
    }

    /// Plays until all are in, at most for so long; how many are in.
    pub(crate) fn join(&mut self, patience: Duration) -> Result<usize, Failed> {
        let until = self.began.elapsed() + patience;
        let mut inside = 0;
        while inside < self.players.len() && self.began.elapsed() < until {
            self.play(Duration::from_millis(100))?;
            inside = self.players.iter().filter(|one| one.0.is_in()).count();
        }
        Ok(inside)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Plays so many frames, then cannot go on.
    struct Ends {
        left: u32,
        played: Rc<Cell<u32>>,
    }

    impl Player for Ends {
        fn frame(&mut self, _: Duration) -> Result<(), Failed> {
            self.left = self.left.checked_sub(1).ok_or("it ended")?;
            self.played.set(self.played.get() + 1);
            Ok(())
        }

        fn is_in(&self) -> bool {
            true
        }
    }

    /// Two players, the second of whom ends at once.
    fn two(played: &Rc<Cell<u32>>) -> Crowd {
        let dial = |n| -> Result<Box<dyn Player>, Failed> {
            Ok(Box::new(Ends {
                left: if n == 0 { u32::MAX } else { 0 },
                played: played.clone(),
            }))
        };
        Crowd::new(2, dial).expect("no dial fails")
    }

    #[test]
    fn who_measures_hears_of_a_player_that_ends_and_a_load_goes_on_without_it() {
        let played = Rc::default();
        let ended = two(&played).play(FRAME * 5).expect_err("one ends");
        assert_eq!(ended.to_string(), "it ended");

        let mut crowd = two(&played).going_on();
        let before = played.get();
        crowd.play(FRAME * 5).expect("the other goes on");
        assert!(played.get() > before);
        assert_eq!(crowd.lost().len(), 1);
        assert_eq!(crowd.join(Duration::ZERO).expect("no frame"), 0);
        assert_eq!(crowd.join(FRAME).expect("the other goes on"), 1);
    }

    #[test]
    fn a_dial_that_fails_says_whose_it_was() {
        let failed = Crowd::new(3, |n| Err(format!("no socket for {n}").into()));
        let why = failed.err().expect("nobody was dialled").to_string();
        assert_eq!(why, "player 0: no socket for 0");
    }
}
