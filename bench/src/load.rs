//! `load`: plays on a server that was started elsewhere, on this machine or another one, for as long as it is told to.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use twinstep_udp::TicketKey;

use crate::players::{Crowd, JOIN_PATIENCE};
use crate::process::Failed;
use crate::seated::Seats;
use crate::simulation::{PLAYERS, Sticks};

/// Plays, and tells what that cost this process. Players that cannot go on are told of at once, and the others play on.
///
/// # Errors
/// Not all played to the end.
pub(crate) fn run(
    players: usize,
    server: SocketAddr,
    key_file: &Path,
    time: Duration,
) -> Result<(), Failed> {
    let key = TicketKey::load(key_file)?;
    let seats = Seats::new(server, &key, Sticks::Moving);
    let mut crowd = Crowd::new(players, |n| seats.dial(n))?.going_on();
    let seated = crowd.join(JOIN_PATIENCE)?;
    println!("{seated} of {players} players have a seat");
    if seated > 0 {
        let played = crowd.play(time)?;
        println!(
            "{:.1} µs of this process for each player and frame; {}",
            played.cpu.total_us() as f64 / played.frames.max(1) as f64,
            played.lateness()
        );
    }
    let ending = Ending {
        players,
        seated,
        lost: crowd.lost(),
    };
    ending.told(server).map_or(Ok(()), |why| Err(why.into()))
}

/// How a load went.
struct Ending {
    players: usize,
    /// Those that had a seat at first.
    seated: usize,
    /// Those that could not go on, before or after.
    lost: usize,
}

impl Ending {
    /// What is to be said of it; `None`: all played to the end.
    fn told(&self, server: SocketAddr) -> Option<String> {
        let Ending {
            players,
            seated,
            lost,
        } = *self;
        let expected = format!(
            "expected at {server} what `twinstep-bench serve` started with the same key file, with `--public {server}` if it \
             listens at another address than this one, and with a match for each {PLAYERS} players"
        );
        let out = players - seated;
        let patience_s = JOIN_PATIENCE.as_secs();
        match (out, lost) {
            (0, 0) => None,
            (0, _) => Some(format!(
                "{lost} of {players} players could not play to the end"
            )),
            _ if seated == 0 => Some(format!("nobody was let in: {expected}")),
            (_, 0) => Some(format!(
                "{out} of {players} players were not let in within {patience_s} s: {expected}"
            )),
            _ => Some(format!(
                "{out} of {players} players were not let in within {patience_s} s, and {lost} could not go on: {expected}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_not_all_played_to_the_end_says_what_was_expected() {
        let server = SocketAddr::from(([192, 0, 2, 1], 7_777));
        let told = |seated, lost| {
            let ending = Ending {
                players: 8,
                seated,
                lost,
            };
            ending.told(server).unwrap_or_default()
        };
        assert_eq!(told(8, 0), "");
        for (seated, lost) in [(0, 8), (0, 0)] {
            assert!(
                told(seated, lost).starts_with("nobody was let in: expected at 192.0.2.1:7777")
            );
        }
        assert!(told(6, 0).starts_with("2 of 8 players were not let in within 20 s: expected at "));
        assert_eq!(told(8, 3), "3 of 8 players could not play to the end");
        let both =
            "2 of 8 players were not let in within 20 s, and 3 could not go on: expected at ";
        assert!(told(6, 3).starts_with(both));
    }
}
