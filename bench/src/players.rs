//! [`Players`]: the players on a measured server. One thread runs them all, each at its own moment of a frame, as if
//! they were on many machines.
//!
//! ```text
//!  a 16.7 ms frame:  1 ▪▪ 2 ▪▪ 3 ▪▪ …   a turn of the loop every 2 ms plays the frames due
//! ```

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Cpu, Failed, cpu};
use crate::served::{Sample, Served};
use crate::subject::{FRAME, Player};

/// The pause between two iterations of the loop. A wake-up costs this process as much as a frame, and servers cost the
/// same with wake-ups every millisecond.
const NAP: Duration = Duration::from_millis(2);

pub(crate) const JOIN_PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Players {
    began: Instant,
    seats: VecDeque<Seat>,
    on_loss: OnLoss,
    pub(crate) lost: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLoss {
    /// The measurement fails, because the numbers would be for fewer players.
    Fail,
    PlayOn,
}

struct Seat {
    n: usize,
    player: Box<dyn Player>,
    due: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    /// The CPU time of this process: the players, and the kernel's work for them.
    pub(crate) cpu: Cpu,
    pub(crate) frames: u64,
    pub(crate) late: u64,
    /// The number of frames skipped after pauses of a frame or more, of all players.
    pub(crate) left_out: u64,
}

impl Played {
    pub(crate) fn late_share(&self) -> f64 {
        let due = self.frames + self.left_out;
        (self.late + self.left_out) as f64 / due.max(1) as f64
    }

    pub(crate) fn us_a_frame(&self) -> f64 {
        self.cpu.total_us() as f64 / self.frames.max(1) as f64
    }
}

impl Players {
    pub(crate) fn new(
        players: usize,
        on_loss: OnLoss,
        dial: impl Fn(usize) -> Result<Box<dyn Player>, Failed>,
    ) -> Result<Players, Failed> {
        let seat = |n| {
            let player = dial(n).map_err(|why| format!("player {n}: {why}"))?;
            let due = FRAME * n as u32 / players as u32;
            Ok(Seat { n, player, due })
        };
        let seats = (0..players).map(seat).collect::<Result<_, Failed>>()?;
        Ok(Players {
            seats,
            // After the dials, because they take longer than a frame.
            began: Instant::now(),
            on_loss,
            lost: 0,
        })
    }

    pub(crate) fn play(&mut self, time: Duration) -> Result<Played, Failed> {
        let before = cpu()?;
        let mut played = Played::default();
        let until = self.began.elapsed() + time;
        while self.began.elapsed() < until && !self.seats.is_empty() {
            self.turn(self.began.elapsed(), &mut played)?;
            thread::sleep(NAP);
        }
        played.cpu = cpu()? - before;
        Ok(played)
    }

    fn turn(&mut self, now: Duration, played: &mut Played) -> Result<(), Failed> {
        self.leave_out(now, played);
        while let Some(mut seat) = self.seats.pop_front_if(|seat| seat.due <= now) {
            played.frames += 1;
            played.late += u64::from(now - seat.due > FRAME / 2);
            match seat.player.frame(now) {
                Ok(()) => {
                    seat.due += FRAME;
                    self.seats.push_back(seat);
                }
                Err(why) if self.on_loss == OnLoss::Fail => {
                    return Err(format!("player {}: {why}", seat.n).into());
                }
                Err(why) => {
                    eprintln!("player {}: {why}", seat.n);
                    self.lost += 1;
                }
            }
        }
        Ok(())
    }

    /// Skips the same number of frames for all players after a pause of a frame or more, so that each keeps its
    /// moment.
    fn leave_out(&mut self, now: Duration, played: &mut Played) {
        let due = self.seats.front().map_or(now, |seat| seat.due);
        let frames = now.saturating_sub(due).as_nanos() / FRAME.as_nanos();
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        for seat in &mut self.seats {
            seat.due += FRAME * frames;
            played.left_out += u64::from(frames);
        }
    }

    /// Takes a sample of the server. The players keep playing until it responds, because silent players would not load
    /// the server, and their inputs would be missing.
    pub(crate) fn sample(&mut self, served: &mut Served) -> Result<Sample, Failed> {
        served.ask()?;
        thread::scope(|scope| {
            let answer = scope.spawn(|| served.answer().map_err(|error| error.to_string()));
            while !answer.is_finished() {
                self.play(NAP)?;
            }
            let answer = answer
                .join()
                .map_err(|_| "the thread that listens panicked")?;
            Ok(answer?)
        })
    }

    /// Plays until all players have joined, at most for `patience`. Returns the number that have joined.
    pub(crate) fn join(&mut self, patience: Duration) -> Result<usize, Failed> {
        let until = self.began.elapsed() + patience;
        let mut inside = 0;
        while inside < self.seats.len() && self.began.elapsed() < until {
            self.play(Duration::from_millis(100))?;
            let is_in = |seat: &&Seat| seat.player.is_in();
            inside = self.seats.iter().filter(is_in).count();
        }
        Ok(inside)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    type Log = Rc<RefCell<Vec<(usize, Duration)>>>;

    /// Plays `left` frames, then fails.
    struct Ends {
        n: usize,
        left: u32,
        log: Log,
    }

    impl Player for Ends {
        fn frame(&mut self, now: Duration) -> Result<(), Failed> {
            self.left = self.left.checked_sub(1).ok_or("it ended")?;
            self.log.borrow_mut().push((self.n, now));
            Ok(())
        }

        fn is_in(&self) -> bool {
            true
        }
    }

    fn players(lefts: &[u32], on_loss: OnLoss) -> (Players, Log) {
        let log = Log::default();
        let dial = |n: usize| -> Result<Box<dyn Player>, Failed> {
            let (left, log) = (lefts[n], log.clone());
            Ok(Box::new(Ends { n, left, log }))
        };
        let players = Players::new(lefts.len(), on_loss, dial).expect("no dial fails");
        (players, log)
    }

    #[test]
    fn each_player_keeps_its_moment_within_a_frame_across_a_pause() {
        const PLAYERS: usize = 5;
        let ms = Duration::from_millis;
        let (mut crowd, log) = players(&[u32::MAX; PLAYERS], OnLoss::Fail);
        let mut played = Played::default();
        // The process is suspended several times; once it wakes between two players' moments.
        for (from, to) in [(0, 400), (447, 900), (1_213, 1_500), (9_999, 10_400)] {
            for now in from..to {
                crowd.turn(ms(now), &mut played).expect("all go on");
            }
        }
        let log = log.borrow();
        assert_eq!(played.frames, log.len() as u64);
        // Each due frame is played or skipped.
        let due = 10_400 * 60 / 1_000 * PLAYERS as u64;
        let told = played.frames + played.left_out;
        assert!((due - 5..=due + 5).contains(&told), "{played:?} of {due}");
        assert!(played.late_share() < 1.0 && played.late > 0 && played.left_out > 0);
        let frame = FRAME.as_secs_f64();
        for (n, now) in log.iter().filter(|(_, now)| *now > ms(10_020)) {
            let moment = now.as_secs_f64() / frame - *n as f64 / PLAYERS as f64;
            assert!(moment.rem_euclid(1.0) < 0.07, "player {n} at {now:?}");
        }
    }

    #[test]
    fn a_lost_player_fails_a_measurement_but_a_load_continues_without_it() {
        let (mut strict, _) = players(&[u32::MAX, 0], OnLoss::Fail);
        let failed = strict.play(FRAME * 5).expect_err("one ends");
        assert_eq!(failed.to_string(), "player 1: it ended");

        let (mut load, log) = players(&[u32::MAX, 0], OnLoss::PlayOn);
        load.play(FRAME * 5).expect("the other goes on");
        assert!(!log.borrow().is_empty());
        let joined = load.join(FRAME).expect("the other goes on");
        assert_eq!((load.lost, joined), (1, 1));
    }

    #[test]
    fn a_load_without_players_ends() {
        let (mut load, _) = players(&[3, 1, 2], OnLoss::PlayOn);
        let played = load.play(Duration::from_secs(86_400)).expect("it ends");
        assert_eq!((load.lost, played.frames), (3, 9));
    }
}
