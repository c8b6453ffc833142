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

/// Players on a server, in turns.
pub(crate) struct Crowd {
    began: Instant,
    players: Vec<(Box<dyn Player>, Duration)>,
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
        let players = (0..players).map(|n| Ok((dial(n)?, due(n))));
        let players = players.collect::<Result<_, Failed>>()?;
        Ok(Crowd { began, players })
    }

    /// Plays for so long.
    pub(crate) fn play(&mut self, time: Duration) -> Result<Played, Failed> {
        let before = cpu()?;
        let mut played = Played::default();
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until {
            let now = self.began.elapsed();
            for (player, due) in &mut self.players {
                if *due <= now {
                    played.frames += 1;
                    played.late += u64::from(now - *due > FRAME / 2);
                    // Who was late by more than a frame does not hurry after.
                    *due = (*due + FRAME).max(now);
                    player.frame(now)?;
                }
            }
            thread::sleep(NAP);
        }
        played.cpu = cpu()? - before;
        Ok(played)
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
