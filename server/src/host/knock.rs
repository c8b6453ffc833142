//! Before players are sent to an address, it is asked whether a server of this game is there that would take them.
//!
//! ```text
//!  old   knock: magic · digest of the game's name · nonce ──▶ new
//!  new   the same with the answer's magic           ──▶ old
//! ```
//!
//! The first byte is none that netcode begins a datagram with. A knock costs whoever answers one datagram of the same
//! length, so nobody is worth being flooded through it.
//!
//! Invariant: a server does not answer its own knocks. It knows them by their nonces, so it can tell an address that
//! leads back to itself, by whatever way, from one at which nobody is.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use twinstep_udp::TicketKey;

const KNOCK: [u8; 8] = *b"\xffTwknoc?";
const ANSWER: [u8; 8] = *b"\xffTwknoc!";
/// Magic, and what makes it this game's and this very knock.
const BYTES: usize = 8 + 8 + 8;
/// An answer is waited for so long, so many times.
const PATIENCE: Duration = Duration::from_millis(200);
const TRIES: usize = 4;

/// Who is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nobody who answers.
    Nobody,
    /// Another server of this game.
    Other,
    /// The server that knocked.
    Ourselves,
}

/// The knocks of this server that are under way, and whether each came back to it. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OwnKnocks(Arc<Mutex<BTreeMap<u64, bool>>>);

impl OwnKnocks {
    /// Whether a knock that came is an own one.
    fn hear(&self, nonce: u64) -> bool {
        let mut knocks = self.0.lock().expect("nothing panics under this lock");
        let own = knocks.get_mut(&nonce);
        own.map(|came_back| *came_back = true).is_some()
    }

    fn came_back(&self, nonce: u64) -> bool {
        let knocks = self.0.lock().expect("nothing panics under this lock");
        knocks.get(&nonce).copied().unwrap_or(false)
    }
}

/// An own knock that is under way until this is dropped.
struct UnderWay<'k> {
    own: &'k OwnKnocks,
    nonce: u64,
}

impl UnderWay<'_> {
    fn begin(own: &OwnKnocks, nonce: u64) -> UnderWay<'_> {
        let mut knocks = own.0.lock().expect("nothing panics under this lock");
        knocks.insert(nonce, false);
        UnderWay { own, nonce }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut knocks = self.own.0.lock().expect("nothing panics under this lock");
        knocks.remove(&self.nonce);
    }
}

/// A knock for the game that is served here.
pub(super) struct Knock([u8; BYTES]);

impl Knock {
    /// The knock in a datagram, if it is one for this game.
    pub(super) fn read(datagram: &[u8], game: &str) -> Option<Knock> {
        let knock: [u8; BYTES] = datagram.try_into().ok()?;
        let is_ours = knock[..8] == KNOCK && knock[8..16] == name_of(game);
        is_ours.then_some(Knock(knock))
    }

    fn new(game: &str, nonce: u64) -> Knock {
        let mut knock = [0; BYTES];
        knock[..8].copy_from_slice(&KNOCK);
        knock[8..16].copy_from_slice(&name_of(game));
        knock[16..].copy_from_slice(&nonce.to_le_bytes());
        Knock(knock)
    }

    /// Whether this very server sent it.
    pub(super) fn is_one_of(&self, own: &OwnKnocks) -> bool {
        let nonce = self.0.last_chunk().expect("longer than its nonce");
        own.hear(u64::from_le_bytes(*nonce))
    }

    pub(super) fn answer(&self) -> [u8; BYTES] {
        let mut answer = self.0;
        answer[..8].copy_from_slice(&ANSWER);
        answer
    }
}

fn name_of(game: &str) -> [u8; 8] {
    // FNV-1a: it only tells games apart.
    let hash = game.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}

/// Whether a server of this game answers at an address, and whether that is the one with these `own` knocks. Takes at
/// most 0.8 s.
pub(super) fn who_is(at: SocketAddr, game: &str, own: &OwnKnocks) -> Found {
    ask(at, game, own).unwrap_or(Found::Nobody)
}

fn ask(at: SocketAddr, game: &str, own: &OwnKnocks) -> io::Result<Found> {
    let socket = match at {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Whoever does not see it cannot answer.
    let nonce = TicketKey::generate().generation();
    let knock = Knock::new(game, nonce);
    let _under_way = UnderWay::begin(own, nonce);
    for _ in 0..TRIES {
        let _ = socket.send_to(&knock.0, at);
        let mut heard = [0; BYTES + 1];
        // From whichever of its addresses the other process answers: it alone knows the number.
        if let Ok((length, _)) = socket.recv_from(&mut heard)
            && heard[..length] == knock.answer()
        {
            return Ok(Found::Other);
        }
        if own.came_back(nonce) {
            return Ok(Found::Ourselves);
        }
    }
    Ok(Found::Nobody)
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
                        && let Some(knock) = Knock::read(&heard[..length], game)
                    {
                        let _ = kept.send_to(&knock.answer(), from);
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
        let own = OwnKnocks::default();
        assert_eq!(who_is(at, "ours", &own), Found::Other);
        assert_eq!(who_is(at, "theirs", &own), Found::Nobody);
        drop(door);
        assert_eq!(who_is(at, "ours", &own), Found::Nobody);
        assert!(Knock::read(b"", "ours").is_none());
        assert!(Knock::read(&[0xff; BYTES], "ours").is_none());
        assert!(own.0.lock().unwrap().is_empty(), "none is kept");
    }
}
