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
    /// The one whose frame is due next is the first.
    players: VecDeque<Seat>,
    /// Whether the others go on when one cannot.
    goes_on: bool,
    lost: usize,
}

/// One of them.
struct Seat {
    n: usize,
    player: Box<dyn Player>,
    /// When its next frame is due.
    due: Duration,
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
    /// Frames that were not played, because they would have begun more than a frame late.
    pub(crate) left_out: u64,
}

impl Played {
    /// Of all frames that were due, those that were late or left out.
    pub(crate) fn late_share(&self) -> f64 {
        let due = self.frames + self.left_out;
        (self.late + self.left_out) as f64 / due.max(1) as f64
    }

    /// The same in words.
    pub(crate) fn lateness(&self) -> String {
        format!(
            "{} of {} frames began late, and {} were left out",
            self.late, self.frames, self.left_out
        )
    }
}

impl Crowd {
    /// So many players, whose frames are spread over the length of one.
    pub(crate) fn new(
        players: usize,
        dial: impl Fn(usize) -> Result<Box<dyn Player>, Failed>,
    ) -> Result<Crowd, Failed> {
        let seat = |n| {
            let player = dial(n).map_err(|why| format!("player {n}: {why}"))?;
            let due = FRAME * n as u32 / players as u32;
            Ok(Seat { n, player, due })
        };
        let players = (0..players).map(seat).collect::<Result<_, Failed>>()?;
        Ok(Crowd {
            players,
            // Not before: to dial takes longer than a frame.
            began: Instant::now(),
            goes_on: false,
            lost: 0,
        })
    }

    /// The others go on when one cannot, which is told at once. What is measured then says nothing of so many players.
    pub(crate) fn going_on(mut self) -> Crowd {
        self.goes_on = true;
        self
    }

    /// How many could not go on.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }

    /// Plays for so long, or until nobody is left.
    pub(crate) fn play(&mut self, time: Duration) -> Result<Played, Failed> {
        let before = cpu()?;
        let mut played = Played::default();
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until && !self.players.is_empty() {
            self.turn(self.began.elapsed(), &mut played)?;
            thread::sleep(NAP);
        }
        played.cpu = cpu()? - before;
        Ok(played)
    }

    /// A frame of all whose time has come by `now`.
    fn turn(&mut self, now: Duration, played: &mut Played) -> Result<(), Failed> {
        self.leave_out(now, played);
        while let Some(mut seat) = self.players.pop_front_if(|seat| seat.due <= now) {
            played.frames += 1;
            played.late += u64::from(now - seat.due > FRAME / 2);
            match seat.player.frame(now) {
                Ok(()) => {
                    seat.due += FRAME;
                    self.players.push_back(seat);
                }
                Err(why) => {
                    let why = format!("player {}: {why}", seat.n);
                    if !self.goes_on {
                        return Err(why.into());
                    }
                    eprintln!("{why}");
                    self.lost += 1;
                }
            }
        }
        Ok(())
    }

    /// Who is late by more than a frame does not hurry after: as many frames of everybody are left out, so that each keeps its
    /// moment.
    fn leave_out(&mut self, now: Duration, played: &mut Played) {
        let due = self.players.front().map_or(now, |seat| seat.due);
        let frames = now.saturating_sub(due).as_nanos() / FRAME.as_nanos();
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        for seat in &mut self.players {
            seat.due += FRAME * frames;
            played.left_out += u64::from(frames);
        }
    }

    /// What a server has used up and done by now. Everybody plays on while it answers: players that stand still say
    /// nothing, which costs it nothing, and their inputs are missing.
    pub(crate) fn sample(&mut self, served: &mut Served) -> Result<Sample, Failed> {
        served.ask()?;
        thread::scope(|scope| {
            let answer = scope.spawn(|| served.answer().map_err(|error| error.to_string()));
            while !answer.is_finished() {
                self.play(NAP)?;
                if self.players.is_empty() {
                    thread::sleep(NAP);
                }
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
            inside = self
                .players
                .iter()
                .filter(|seat| seat.player.is_in())
                .count();
        }
        Ok(inside)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Plays so many frames, then cannot go on.
    struct Ends {
        n: usize,
        left: u32,
        /// Who played, and when.
        played: Rc<RefCell<Vec<(usize, Duration)>>>,
    }

    impl Player for Ends {
        fn frame(&mut self, now: Duration) -> Result<(), Failed> {
            self.left = self.left.checked_sub(1).ok_or("it ended")?;
            self.played.borrow_mut().push((self.n, now));
            Ok(())
        }

        fn is_in(&self) -> bool {
            true
        }
    }

    type Log = Rc<RefCell<Vec<(usize, Duration)>>>;

    /// Players of whom each can play as many frames as `lefts` says.
    fn crowd(lefts: &[u32]) -> (Crowd, Log) {
        let played = Log::default();
        let dial = |n: usize| -> Result<Box<dyn Player>, Failed> {
            Ok(Box::new(Ends {
                n,
                left: lefts[n],
                played: played.clone(),
            }))
        };
        let crowd = Crowd::new(lefts.len(), dial).expect("no dial fails");
        (crowd, played)
    }

    #[test]
    fn each_player_has_a_moment_of_its_own_and_keeps_it_over_a_pause() {
        const PLAYERS: usize = 5;
        let ms = Duration::from_millis;
        let (mut crowd, log) = crowd(&[u32::MAX; PLAYERS]);
        let mut played = Played::default();
        // The process stands still for some frames now and then; once it wakes between two players' moments.
        for (from, to) in [(0, 400), (447, 900), (1_213, 1_500), (9_999, 10_400)] {
            for now in from..to {
                crowd.turn(ms(now), &mut played).expect("all go on");
            }
        }
        let log = log.borrow();
        assert_eq!(played.frames, log.len() as u64);
        // All frames that were due are played or left out, and none is both.
        let due = 10_400 * 60 / 1_000 * PLAYERS as u64;
        let told = played.frames + played.left_out;
        assert!((due - 5..=due + 5).contains(&told), "{played:?} of {due}");
        assert!(played.late_share() < 1.0 && played.late > 0);
        for n in 0..PLAYERS {
            let moments = log
                .iter()
                .filter(|(who, now)| *who == n && *now > ms(10_020));
            let mut last = None;
            for (_, now) in moments {
                let off = (now.as_nanos() % FRAME.as_nanos()) as f64 / FRAME.as_nanos() as f64;
                let beyond = (off - n as f64 / PLAYERS as f64).rem_euclid(1.0);
                assert!(
                    beyond < 0.07,
                    "player {n} at {now:?}: {beyond} of a frame behind its moment"
                );
                assert!(last.is_none_or(|last| *now > last), "once a turn");
                last = Some(*now);
            }
            assert!(last.is_some());
        }
    }

    #[test]
    fn who_measures_hears_of_a_player_that_ends_and_a_load_goes_on_without_it() {
        let (mut strict, _) = crowd(&[u32::MAX, 0]);
        let ended = strict.play(FRAME * 5).expect_err("one ends");
        assert_eq!(ended.to_string(), "player 1: it ended");

        let (crowd, log) = crowd(&[u32::MAX, 0]);
        let mut crowd = crowd.going_on();
        crowd.play(FRAME * 5).expect("the other goes on");
        assert!(!log.borrow().is_empty());
        assert_eq!(crowd.lost(), 1);
        assert_eq!(crowd.join(FRAME).expect("the other goes on"), 1);
    }

    /// It would keep on waking until its time is over.
    #[test]
    fn a_load_with_nobody_left_ends() {
        let (crowd, _) = crowd(&[3, 1, 2]);
        let mut crowd = crowd.going_on();
        let played = crowd.play(Duration::from_secs(86_400)).expect("it ends");
        assert_eq!((crowd.lost(), played.frames), (3, 9));
    }

    #[test]
    fn a_dial_that_fails_says_whose_it_was() {
        let failed = Crowd::new(3, |n| Err(format!("no socket for {n}").into()));
        let why = failed.err().expect("nobody was dialled").to_string();
        assert_eq!(why, "player 0: no socket for 0");
    }
}
