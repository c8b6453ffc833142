//! Before players are sent to an address, it is asked whether a server of this game is there that would take them.
//!
//! ```text
//!  old   knock: magic · digest of the game's name · nonce ──▶ new
//!  new   the same with the answer's magic           ──▶ old
//! ```
//!
//! The first byte is none that netcode begins a datagram with. A knock costs whoever answers one datagram of the same
//! length, so nobody is worth being flooded through it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use twinstep_udp::Key;

const KNOCK: [u8; 8] = *b"\xffTwknoc?";
const ANSWER: [u8; 8] = *b"\xffTwknoc!";
/// Magic, and what makes it this game's and this very knock.
const BYTES: usize = 8 + 8 + 8;
/// An answer is waited for so long, so many times.
const PATIENCE: Duration = Duration::from_millis(200);
const TRIES: usize = 4;

/// The answer to a datagram, if it is a knock for this game.
pub(super) fn answer(datagram: &[u8], game: &str) -> Option<[u8; BYTES]> {
    let knock: [u8; BYTES] = datagram.try_into().ok()?;
    let is_ours = knock[..8] == KNOCK && knock[8..16] == name_of(game);
    let mut answer = knock;
    answer[..8].copy_from_slice(&ANSWER);
    is_ours.then_some(answer)
}

fn name_of(game: &str) -> [u8; 8] {
    // FNV-1a: it only tells games apart.
    let hash = game.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}

/// Whether a server of this game answers at an address. Takes at most 0.8 s.
pub(super) fn is_there(at: SocketAddr, game: &str) -> bool {
    ask(at, game).unwrap_or(false)
}

fn ask(at: SocketAddr, game: &str) -> io::Result<bool> {
    let socket = match at {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }?;
    socket.connect(at)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut knock = [0; BYTES];
    knock[..8].copy_from_slice(&KNOCK);
    knock[8..16].copy_from_slice(&name_of(game));
    // Whoever does not see it cannot answer.
    knock[16..].copy_from_slice(&Key::generate().generation().to_le_bytes());
    let expected = answer(&knock, game);
    for _ in 0..TRIES {
        let _ = socket.send(&knock);
        let mut heard = [0; BYTES + 1];
        if let Ok(length) = socket.recv(&mut heard)
            && expected.is_some_and(|expected| heard[..length] == expected)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Answers knocks at a socket whose server does not run yet, until it is dropped.
pub(super) struct Doorkeeper {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    socket: UdpSocket,
}

impl Doorkeeper {
    pub(super) fn at(socket: &UdpSocket, game: &'static str) -> io::Result<Doorkeeper> {
        let (kept, ours) = (socket.try_clone()?, socket.try_clone()?);
        kept.set_nonblocking(false)?;
        kept.set_read_timeout(Some(PATIENCE))?;
        let ends = Arc::new(AtomicBool::new(false));
        let until = ends.clone();
        let thread = std::thread::Builder::new()
            .name("twinstep-door".to_owned())
            .spawn(move || {
                let mut heard = [0; BYTES + 1];
                while !until.load(Ordering::Relaxed) {
                    if let Ok((length, from)) = kept.recv_from(&mut heard)
                        && let Some(answer) = answer(&heard[..length], game)
                    {
                        let _ = kept.send_to(&answer, from);
                    }
                }
            })?;
        Ok(Doorkeeper {
            ends,
            thread: Some(thread),
            socket: ours,
        })
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = self.socket.set_read_timeout(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_the_same_game_answers_and_nobody_else() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let door = Doorkeeper::at(&socket, "ours").unwrap();
        assert!(is_there(at, "ours"));
        assert!(!is_there(at, "theirs"));
        drop(door);
        assert!(!is_there(at, "ours"));
        assert_eq!(answer(b"", "ours"), None);
        assert_eq!(answer(&[0xff; BYTES], "ours"), None);
    }
}
