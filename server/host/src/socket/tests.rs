use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket as Peer};
use std::time::Duration;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(50);

/// The modes of a socket: in batches or one by one, with wake-ups or without.
const WAYS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

async fn socket(at: &str, (takes_many, rouses): (bool, bool)) -> (Socket, SocketAddr) {
    let socket = tokio::net::UdpSocket::bind(at).await.unwrap();
    let address = socket.local_addr().unwrap();
    let mut socket = Socket::new(socket);
    socket.takes_many = takes_many;
    socket.refusals = if takes_many { 0 } else { REFUSALS_MAX };
    socket.rouse(rouses);
    (socket, address)
}

fn peer(at: &str) -> (Peer, SocketAddr) {
    let peer = Peer::bind(at).unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = peer.local_addr().unwrap();
    (peer, address)
}

/// Waits for datagrams and receives them. Returns them, and whether no more are waiting.
async fn taken(socket: &mut Socket, at_most: usize) -> (Vec<(Vec<u8>, SocketAddr)>, bool) {
    let (contents, paths, is_empty) = taken_whole(socket, at_most).await;
    let from = paths.into_iter().map(|path| path.peer);
    (contents.into_iter().zip(from).collect(), is_empty)
}

#[cfg(target_os = "linux")]
async fn taken_by(socket: &mut Socket, at_most: usize) -> (Vec<Vec<u8>>, Vec<AddressPair>) {
    let (contents, paths, _) = taken_whole(socket, at_most).await;
    (contents, paths)
}

async fn taken_whole(
    socket: &mut Socket,
    at_most: usize,
) -> (Vec<Vec<u8>>, Vec<AddressPair>, bool) {
    let came = async {
        loop {
            if matches!(socket.inner, Inner::Rousing(_)) {
                poll_fn(|context| socket.poll_ready(context)).await;
            }
            // Windows drops a datagram that is too large, with an error.
            let is_empty = match socket.receive(at_most) {
                Err(_) if cfg!(windows) => false,
                took => took.unwrap(),
            };
            let came = socket.came().map(|(bytes, path)| (bytes.to_vec(), path));
            let (contents, paths): (Vec<_>, Vec<_>) = came.unzip();
            if !contents.is_empty() {
                return (contents, paths, is_empty);
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, came).await.unwrap()
}

#[tokio::test]
async fn queued_datagrams_are_received_in_order_with_their_sender() {
    for way in WAYS {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (mut socket, address) = socket(at, way).await;
            let peers = [peer(at), peer(at)];
            let sent = Vec::from_iter((0..70).map(|n| {
                let (peer, from) = &peers[n % 2];
                let datagram = vec![n as u8; 20 * n];
                peer.send_to(&datagram, address).unwrap();
                (datagram, *from)
            }));
            let mut all = Vec::new();
            while all.len() < sent.len() {
                let (came, _) = taken(&mut socket, 50).await;
                assert!(came.len() <= BATCH_MAX, "{way:?}");
                all.extend(came);
            }
            assert!(all == sent, "{way:?} {at}");
            assert!(socket.receive(1).unwrap(), "the socket is empty");
            assert_eq!(socket.came().len(), 0, "nor is anything read twice");
        }
    }
}

#[tokio::test]
async fn a_receive_takes_at_most_the_requested_number() {
    for way in WAYS {
        let (mut socket, address) = socket("127.0.0.1:0", way).await;
        let (peer, _) = peer("127.0.0.1:0");
        for n in 0..8 {
            peer.send_to(&[n], address).unwrap();
        }
        let (came, is_empty) = taken(&mut socket, 3).await;
        assert_eq!((came.len(), is_empty), (3, false), "{way:?}");
        let (came, is_empty) = taken(&mut socket, 5).await;
        assert_eq!(
            (came.len(), is_empty),
            (5, false),
            "{way:?}: it cannot know"
        );
        assert!(socket.receive(5).unwrap(), "{way:?}");
    }
}

/// A batch that was not full has emptied the socket: the task is not woken before the next datagram.
#[tokio::test]
async fn after_emptying_the_socket_a_task_is_woken_only_by_the_next_datagram() {
    for takes_many in [true, false] {
        let (mut socket, address) = socket("127.0.0.1:0", (takes_many, true)).await;
        let (peer, _) = peer("127.0.0.1:0");
        for round in 0..20 {
            peer.send_to(b"one", address).unwrap();
            peer.send_to(b"two", address).unwrap();
            let mut count = 0;
            while count < 2 {
                count += taken(&mut socket, 9).await.0.len();
            }
            if round == 0 {
                let more = poll_fn(|context| socket.poll_ready(context));
                let more = tokio::time::timeout(SOON, more).await;
                assert!(more.is_err(), "by the batch: {takes_many}");
            }
        }
    }
}

#[tokio::test]
async fn empty_and_too_large_datagrams_are_distinguished_from_valid_ones() {
    for way in WAYS {
        let (mut socket, address) = socket("127.0.0.1:0", way).await;
        let (peer, _) = peer("127.0.0.1:0");
        let sizes = [0, 1, DATAGRAM_MAX, DATAGRAM_MAX + 1, 9_000, 7];
        for size in sizes {
            peer.send_to(&vec![5; size], address).unwrap();
        }
        let mut seen = Vec::from_iter(sizes.map(|size| size.min(DATAGRAM_MAX + 1)));
        if cfg!(windows) {
            seen.retain(|size| *size <= DATAGRAM_MAX);
        }
        let mut lengths = Vec::new();
        while lengths.len() < seen.len() {
            let (came, _) = taken(&mut socket, 9).await;
            let sizes = came.iter().map(|(bytes, _)| bytes.len());
            // Windows drops what is too large; Wine cuts it.
            lengths.extend(sizes.filter(|size| !cfg!(windows) || *size <= DATAGRAM_MAX));
        }
        assert_eq!(lengths, seen, "{way:?}");
    }
}

/// Sends all datagrams, as the listener does. Returns the number lost.
fn send_all(socket: &mut Socket, datagrams: &[(SocketAddr, Vec<u8>)]) -> usize {
    let along = datagrams
        .iter()
        .map(|(to, bytes)| ((*to).into(), bytes.clone()));
    send_along(socket, &Vec::from_iter(along))
}

fn send_along(socket: &mut Socket, datagrams: &[(AddressPair, Vec<u8>)]) -> usize {
    let (mut at, mut lost) = (0, 0);
    while at < datagrams.len() {
        let rest = datagrams[at..]
            .iter()
            .map(|(path, bytes)| (*path, &bytes[..]));
        match socket.send_some(rest) {
            Ok(sent) => {
                assert!(sent > 0, "each call must make progress");
                at += sent;
            }
            Err(_) => {
                lost += 1;
                at += 1;
            }
        }
    }
    lost
}

#[tokio::test]
async fn a_failed_datagram_does_not_lose_other_datagrams() {
    for way in WAYS {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let (mut socket, address) = socket(at, way).await;
            let peers = [peer(at), peer(at)];
            let nowhere = SocketAddr::new(address.ip(), 0);
            // More datagrams than one call sends. Those to port 0 cannot be sent: the first, two in a row, and the
            // last.
            let datagrams = Vec::from_iter((0..100).map(|n: usize| {
                let to = match n {
                    0 | 40 | 41 | 99 => nowhere,
                    _ => peers[n % 2].1,
                };
                (to, vec![n as u8; n])
            }));
            assert_eq!(send_all(&mut socket, &datagrams), 4, "{way:?} {at}");
            // Such datagrams are no reason to give up batches.
            if cfg!(target_os = "linux") {
                assert_eq!(socket.refusals < REFUSALS_MAX, way.0);
            }
            let mut buffer = [0; 200];
            for (to, datagram) in datagrams.iter().filter(|(to, _)| *to != nowhere) {
                let (peer, _) = peers.iter().find(|(_, own)| own == to).unwrap();
                let (bytes, from) = peer.recv_from(&mut buffer).unwrap();
                assert_eq!((&buffer[..bytes], from), (&datagram[..], address));
            }
        }
    }
}

/// tokio learns that a socket is writable only a while after registering it.
#[tokio::test]
async fn datagrams_sent_while_wakeups_are_switched_are_not_lost() {
    for takes_many in [true, false] {
        let (mut socket, _) = socket("127.0.0.1:0", (takes_many, true)).await;
        let (peer, at) = peer("127.0.0.1:0");
        for rouses in [false, true, false, true] {
            socket.rouse(rouses);
            socket.send(b"alone", at.into()).unwrap();
            let datagrams = [(at, b"with".to_vec()), (at, b"others".to_vec())];
            assert_eq!(send_all(&mut socket, &datagrams), 0, "{takes_many}");
            for _ in 0..3 {
                peer.recv_from(&mut [0; 9]).unwrap();
            }
        }
    }
}

/// An old kernel, or a sandbox: batches are tried once for receiving and a few times for sending, and no datagram is
/// lost.
#[tokio::test]
async fn refused_batches_are_sent_and_received_one_by_one() {
    for reason in [ErrorKind::Unsupported, ErrorKind::PermissionDenied] {
        for rouses in [true, false] {
            let (mut socket, address) = socket("127.0.0.1:0", (true, rouses)).await;
            socket.refuses = Some(reason);
            let (peer, at) = peer("127.0.0.1:0");
            for n in 0..5 {
                peer.send_to(&[n], address).unwrap();
            }
            let mut count = 0;
            while count < 5 {
                count += taken(&mut socket, 9).await.0.len();
            }
            assert!(!socket.takes_many);
            let datagrams = Vec::from_iter((0..40).map(|n| (at, vec![n])));
            assert_eq!(send_all(&mut socket, &datagrams), 0, "{reason:?}");
            assert_eq!(socket.refusals, REFUSALS_MAX);
            for (_, datagram) in datagrams {
                let mut buffer = [0; 9];
                let (bytes, _) = peer.recv_from(&mut buffer).unwrap();
                assert_eq!(buffer[..bytes], datagram, "each once, in order");
            }
        }
    }
}

/// Finding P3-M1: clients that dialled the second address of a server could not join, because its responses were sent
/// from the first.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_response_is_sent_from_the_dialled_address() {
    for way in WAYS {
        for (at, dialled) in [
            ("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"][..]),
            ("[::]:0", &["127.0.0.2", "::1", "127.0.0.1"]),
        ] {
            let (mut socket, address) = socket(at, way).await;
            let peers = Vec::from_iter(dialled.iter().map(|ip| {
                let to = SocketAddr::new(ip.parse().unwrap(), address.port());
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let (peer, _) = peer(any);
                // A connected peer takes datagrams from that address only.
                peer.connect(to).unwrap();
                peer
            }));
            for round in 0..3 {
                for peer in &peers {
                    peer.send(b"knock").unwrap();
                    peer.send(b"knock").unwrap();
                }
                let mut paths = Vec::new();
                while paths.len() < 2 * peers.len() {
                    let (_, path) = taken_by(&mut socket, 9).await;
                    paths.extend(path);
                }
                match round {
                    // One by one, or as many as one call sends.
                    0 => {
                        for path in &paths {
                            assert_eq!(socket.send(b"answer", *path).unwrap(), 6);
                        }
                    }
                    _ => {
                        let answers = Vec::from_iter(paths.iter().map(|path| (*path, vec![1; 6])));
                        assert_eq!(send_along(&mut socket, &answers), 0);
                    }
                }
                for peer in &peers {
                    for _ in 0..2 {
                        let answer = peer.recv(&mut [0; 9]);
                        assert_eq!(answer.unwrap(), 6, "{way:?} {at}");
                    }
                    peer.set_nonblocking(true).unwrap();
                    assert!(peer.recv(&mut [0; 9]).is_err(), "each once");
                    peer.set_nonblocking(false).unwrap();
                }
            }
        }
    }
}

/// Finding P3-M1: a socket bound to all addresses and one bound to a single address share a thread, and must not mix up
/// their headers.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn sockets_sharing_a_thread_report_their_own_addresses() {
    let (mut all, wild) = socket("0.0.0.0:0", (true, true)).await;
    let (mut one, single) = socket("127.0.0.1:0", (true, true)).await;
    let (peer, _) = peer("127.0.0.1:0");
    for _ in 0..3 {
        peer.send_to(b"one", single).unwrap();
        assert_eq!(taken_by(&mut one, 9).await.1[0].local, None);
        peer.send_to(b"two", ("127.0.0.3", wild.port())).unwrap();
        let local = taken_by(&mut all, 9).await.1[0].local;
        assert_eq!(local, Some("127.0.0.3".parse().unwrap()));
    }
}

/// Finding P3-M3: IPv4 players of a server at `[::]` got no response if the system keeps the families apart.
#[tokio::test]
async fn a_socket_at_all_ipv6_addresses_receives_ipv4_on_every_system() {
    let everywhere = "[::]:0".parse().unwrap();
    let apart = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None).unwrap();
    apart.set_only_v6(true).unwrap();
    crate::config::accept_both_families(&apart, everywhere);
    assert!(!apart.only_v6().unwrap());
    let socket = crate::config::bind(everywhere).unwrap();
    assert!(!SockRef::from(&socket).only_v6().unwrap());
    let at = socket.local_addr().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (peer, from) = peer("127.0.0.1:0");
    peer.send_to(b"hello", ("127.0.0.1", at.port())).unwrap();
    let (_, heard) = socket.recv_from(&mut [0; 9]).unwrap();
    assert_eq!(heard.port(), from.port());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_call_receives_and_one_call_sends_a_whole_batch() {
    for rouses in [true, false] {
        let (mut socket, address) = socket("127.0.0.1:0", (true, rouses)).await;
        let (peer, at) = peer("127.0.0.1:0");
        for n in 0..BATCH_MAX {
            peer.send_to(&[n as u8], address).unwrap();
        }
        let (came, _) = taken(&mut socket, 100).await;
        assert_eq!(came.len(), BATCH_MAX);
        let back = came.iter().map(|(bytes, _)| (at.into(), &bytes[..]));
        assert_eq!(socket.send_some(back).unwrap(), BATCH_MAX);
        assert!(socket.takes_many && socket.refusals == 0);
    }
}
