//! The floor: a UDP socket that answers, and players who send plain datagrams of the same sizes and rates. No stack can
//! cost less, unless it hands the kernel several at once.
#![allow(
    clippy::disallowed_methods,
    reason = "a server that is measured has a thread of its own"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::peer_renet::{DOWN_BYTES, UP_BYTES};
use crate::players::Player;
use crate::process::Failed;
use crate::served::{Done, Server};
use crate::socket::bind;

/// What tickets and encryption add to a datagram of renet.
const SEAL_BYTES: usize = 28;

/// The server.
pub(crate) struct Echoing {
    address: SocketAddr,
    heard: Arc<AtomicU64>,
    told: Arc<AtomicU64>,
}

impl Echoing {
    pub(crate) fn start(listen: SocketAddr) -> Result<Echoing, Failed> {
        let socket = bind(listen)?;
        let address = socket.local_addr()?;
        let (heard, told) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = (heard.clone(), told.clone());
        thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                // A player counts its datagrams: every second one is answered, as a turn of two ticks is.
                let answers = len > 0 && buffer[0] % 2 == 0;
                if answers {
                    let _ = socket.send_to(&buffer[..DOWN_BYTES + SEAL_BYTES], from);
                }
                counted.0.fetch_add(1, Ordering::Relaxed);
                counted.1.fetch_add(answers.into(), Ordering::Relaxed);
            }
        });
        Ok(Echoing {
            address,
            heard,
            told,
        })
    }
}

impl Server for Echoing {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn done(&mut self) -> Result<Done, Failed> {
        let heard = self.heard.load(Ordering::Relaxed);
        Ok(Done {
            player_ticks: heard,
            datagrams: heard + self.told.load(Ordering::Relaxed),
            ..Done::default()
        })
    }
}

/// A player.
pub(crate) struct Echoed {
    socket: UdpSocket,
    sent: u8,
    heard: bool,
}

impl Echoed {
    pub(crate) fn dial(server: SocketAddr) -> Result<Echoed, Failed> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Echoed {
            socket,
            sent: 0,
            heard: false,
        })
    }
}

impl Player for Echoed {
    fn frame(&mut self, _: Duration) -> Result<(), Failed> {
        let mut buffer = [0; 2_048];
        while self.socket.recv(&mut buffer).is_ok() {
            self.heard = true;
        }
        self.sent = self.sent.wrapping_add(1);
        // A full buffer is loss, as on any line.
        let _ = self.socket.send(&[self.sent; UP_BYTES + SEAL_BYTES]);
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.heard
    }
}
