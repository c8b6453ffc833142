//! `load`: puts load on a separately started server, on this machine or another one.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use twinstep_udp::TicketKey;

use crate::game::{PLAYERS, Sticks};
use crate::players::{JOIN_PATIENCE, OnLoss, Players};
use crate::process::Failed;
use crate::seated::Seats;

/// Plays, and prints the cost of this process. A player that cannot continue is reported, and the others keep playing.
///
/// # Errors
/// If not all players played to the end.
pub(crate) fn run(
    players: usize,
    server: SocketAddr,
    key_file: &Path,
    time: Duration,
) -> Result<(), Failed> {
    let key = TicketKey::load(key_file)?;
    let seats = Seats::new(server, &key, Sticks::Moving);
    let mut crowd = Players::new(players, OnLoss::PlayOn, |n| seats.dial(n))?;
    let seated = crowd.join(JOIN_PATIENCE)?;
    println!("{seated} of {players} players have a seat");
    if seated > 0 {
        let played = crowd.play(time)?;
        println!(
            "{:.1} µs of this process for each player and frame; {} of {} frames started late, and {} were left out",
            played.us_a_frame(),
            played.late,
            played.frames,
            played.left_out
        );
    }
    let failure = failure(players, seated, crowd.lost, server);
    failure.map_or(Ok(()), |why| Err(why.into()))
}

/// Returns the failure, or `None` if all players played to the end. `seated` players joined; `lost` failed at any time.
fn failure(players: usize, seated: usize, lost: usize, server: SocketAddr) -> Option<String> {
    let expected = format!(
        "expected at {server} what `twinstep-bench serve` started with the same key file, with `--public {server}` if it \
         listens at another address than this one, and with a match for each {PLAYERS} players"
    );
    let (out, patience_s) = (players - seated, JOIN_PATIENCE.as_secs());
    match (out, lost) {
        (0, 0) => None,
        (0, _) => Some(format!(
            "{lost} of {players} players could not play to the end"
        )),
        _ => Some(format!(
            "{out} of {players} players could not join within {patience_s} s, {lost} could not continue: {expected}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_load_explains_what_was_expected() {
        let server = SocketAddr::from(([192, 0, 2, 1], 7_777));
        let told = |seated, lost| failure(8, seated, lost, server).unwrap_or_default();
        assert_eq!(told(8, 0), "");
        assert_eq!(told(8, 3), "3 of 8 players could not play to the end");
        let out = "2 of 8 players could not join within 20 s, 3 could not continue: expected at 192.0.2.1:7777";
        assert!(told(6, 3).starts_with(out));
    }
}
