//! A match for friends: a server, and an invite for each screen.
//!
//! ```text
//!   key, new for this match or given ─▶ server
//!            └─▶ invites/player-1.invite ... one for each screen, 0600 ─▶ powderkeg join FILE, or pasted: join -
//! ```
//!
//! An invite is a ticket: it admits one screen, until that screen has stored newer tickets for reconnecting. The host
//! can type a player's name to create another invite for that player, even during the match. If the key is new for this
//! match, its invites cannot be used afterwards, and are removed at the end.

use std::fmt::Write;
use std::io::BufRead;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use twinstep_udp::ServerAddress;

use powderkeg_game::{Game, terms};
use powderkeg_view::say;
use powderkeg_view::time::unix_now;
use twinstep_host::{MatchHandle, SaveFileError, Server, TicketIssuer, WebCertificate, WebConfig};
use twinstep_udp::{SERVERS_MAX, TicketKey};

use crate::args::HostArgs;
use crate::failure::Failure;
use crate::serve::{self, TICKET_LIFE, beside, web_beside};
use crate::wiring;

pub(crate) fn host(args: &HostArgs) -> Result<ExitCode, Failure> {
    if !args.players.is_multiple_of(args.seats) {
        return Err(Failure::Flag {
            flag: "players",
            reason: format!(
                "expected a multiple of {} (--seats), got {}",
                args.seats, args.players
            ),
        });
    }
    let key = match &args.key_file {
        Some(file) => TicketKey::load(file)?,
        None => TicketKey::generate(),
    };
    let rules = terms::rules(args.enemies);
    let seed = args.seed.unwrap_or(unix_now().as_secs());
    let mut server = wiring::server(&rules, seed, args.players.into()).keys(key, None);
    if let Some(file) = &args.key_file {
        server = server.host(|host| host.lineages_file = Some(beside(file)));
    }
    if let Some(listen) = args.web {
        let kept = args.key_file.as_deref().map(web_beside);
        server = server.web(WebConfig {
            certificate: WebCertificate::Made { kept },
            ..WebConfig::new(listen)
        });
    }
    if let Some(folder) = &args.journal {
        server = server.journal(serve::new_journal(folder)?);
    }
    if let Some(file) = &args.load {
        server = server.load(file);
    }
    let server = reachable(server, args).listen(&args.listen.to_string())?;
    let dialled = server.public_addresses().to_vec();
    let is_new_folder = make_private_folder(&args.invites)?;
    let inviter = Inviter {
        issuer: server.issuer(),
        match_: server.handle(),
        folder: args.invites.clone(),
        page: args.page.clone(),
        screens: args.players / args.seats,
        seats: args.seats,
        made: Arc::default(),
    };
    for n in 1..=inviter.screens {
        inviter.invite(&format!("player-{n}"))?;
    }
    let invites = inviter.made();
    let web = server.web_address();
    let web = web.and_then(|web| web.servers().first().map(ServerAddress::port));
    say::out(words(args, server.local_addr(), web, &dialled, &invites))?;
    inviter.clone().listen();
    let ended = serve::end_of(server.run_until_stopped());
    if args.key_file.is_none() {
        // The invites are worthless now. The host may have removed some already.
        for invite in inviter.made() {
            let _ = std::fs::remove_file(invite.file);
        }
        if is_new_folder {
            let _ = std::fs::remove_dir(&args.invites);
        }
    }
    ended
}

#[derive(Clone)]
struct Inviter {
    issuer: TicketIssuer,
    match_: MatchHandle<Game>,
    folder: PathBuf,
    page: Option<String>,
    screens: u8,
    seats: u8,
    made: Arc<Mutex<Vec<Invite>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Invite {
    file: PathBuf,
    link: Option<String>,
}

impl std::fmt::Display for Invite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        match &self.link {
            Some(link) => write!(f, "\n    or in a browser: {link}"),
            None => Ok(()),
        }
    }
}

impl Inviter {
    fn invite(&self, player: &str) -> Result<Invite, Failure> {
        let file = free_file(&self.folder, player)?;
        let ticket = self.issuer.issue(player, self.seats, TICKET_LIFE)?;
        ticket.save(&file)?;
        let link = self.page.as_ref().map(|page| serve::link(page, &ticket));
        let invite = Invite { file, link };
        let mut made = self.made.lock().expect("no panic under this lock");
        made.push(invite.clone());
        Ok(invite)
    }

    fn made(&self) -> Vec<Invite> {
        let made = self.made.lock().expect("no panic under this lock");
        made.clone()
    }

    /// Handles a typed line: creates another invite for the named player, or saves the match. Returns the text to
    /// print; `None` for an empty line.
    fn answer(&self, line: &str) -> Option<String> {
        let player = line.trim();
        if let Some(file) = player.strip_prefix("save ") {
            return Some(match self.save(file.trim()) {
                Ok(bytes) => {
                    format!(
                        "saved {file} ({bytes} bytes): `powderkeg host --load {file}` starts a new match from it"
                    )
                }
                Err(failure) => failure.to_string(),
            });
        }
        let known = (1..=self.screens).any(|n| player == format!("player-{n}"));
        match known.then(|| self.invite(player)) {
            Some(Ok(invite)) => Some(format!(
                "new invite for {player}: {invite}\nEarlier invites for this player work until the new one is used."
            )),
            Some(Err(failure)) => Some(failure.to_string()),
            None if player.is_empty() => None,
            None => Some(format!(
                "not understood: type player-1 to player-{} for a new invite, or `save FILE` to save the match",
                self.screens
            )),
        }
    }

    fn save(&self, file: &str) -> Result<usize, SaveFileError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|source| SaveFileError::Write {
            path: file.into(),
            source,
        })?;
        runtime.block_on(self.match_.save(file))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "reading standard input blocks, and this thread is never joined"
    )]
    fn listen(self) {
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let answer = self.answer(&line);
                if answer.is_some_and(|answer| say::out(answer).is_err()) {
                    return;
                }
            }
        });
    }
}

fn reachable(server: Server<Game>, args: &HostArgs) -> Server<Game> {
    let dialled = dialled(args.listen, args.public, own_addresses);
    dialled.into_iter().fold(server, Server::public)
}

/// Returns the addresses that players dial, in order: the given one; then the listening address or, if it is
/// unspecified, this machine's addresses on its networks and loopback. With port 0, only the given one.
fn dialled(
    listen: SocketAddr,
    public: Option<ServerAddress>,
    own_addresses: impl FnOnce() -> Vec<IpAddr>,
) -> Vec<ServerAddress> {
    let port = listen.port();
    let mut all = Vec::from_iter(public);
    if port != 0 {
        let own = match listen.ip() {
            ip if !ip.is_unspecified() => vec![ip],
            any => {
                let hears = |ip: &IpAddr| any.is_ipv6() || ip.is_ipv4();
                own_addresses().into_iter().filter(hears).collect()
            }
        };
        // The host also plays, and many routers do not route their public address back into the network.
        let here = match listen.ip().is_unspecified() {
            true => IpAddr::from(Ipv4Addr::LOCALHOST),
            false => listen.ip(),
        };
        let own = own
            .into_iter()
            // One place is left for `here`.
            .take(SERVERS_MAX - 1 - all.len())
            .chain([here]);
        for address in own.map(|ip| SocketAddr::new(ip, port).into()) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    all
}

fn own_addresses() -> Vec<IpAddr> {
    // Even if the list cannot be read, the outward addresses remain.
    let listed = if_addrs::get_if_addrs().unwrap_or_default();
    let listed = listed.into_iter().filter(|one| one.is_oper_up());
    let listed = listed.map(|one| (one.ip(), one.name));
    let outward = [
        outward_from(
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        outward_from(
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    ];
    in_order(
        &outward
            .map(Option::into_iter)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>(),
        listed,
    )
}

/// Returns this machine's source address on the way to `to`, if there is a route. `to` is an address reserved for
/// documentation (RFC 5737, RFC 3849). Connecting a UDP socket does not send a packet; the system only chooses a source
/// address.
fn outward_from(any: IpAddr, to: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Name prefixes of network interfaces that exist only within a machine.
const WITHIN: [&str; 8] = [
    "docker", "br-", "veth", "virbr", "vboxnet", "vmnet", "cni", "podman",
];

/// Returns the addresses that others may dial: first those with a route outward, then private IPv4 ones, then the rest,
/// then link-local IPv4 ones, and last those of networks within this machine. IPv4 comes first in each group.
fn in_order(outward: &[IpAddr], listed: impl Iterator<Item = (IpAddr, String)>) -> Vec<IpAddr> {
    let rank = |(ip, name): &(IpAddr, String)| {
        let group = match ip {
            _ if outward.contains(ip) => 0,
            _ if WITHIN.iter().any(|within| name.starts_with(within)) => 4,
            IpAddr::V4(ip) if ip.is_private() => 1,
            IpAddr::V4(ip) if ip.is_link_local() => 3,
            _ => 2,
        };
        (group, ip.is_ipv6())
    };
    let can_be_dialled = |ip: &IpAddr| match ip {
        // An IPv6 link-local address is valid only together with its interface.
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        IpAddr::V4(_) => true,
    } && !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast();
    let outward_too = outward.iter().map(|ip| (*ip, String::new()));
    let mut all: Vec<_> = listed.chain(outward_too).collect();
    all.retain(|(ip, _)| can_be_dialled(ip));
    all.sort_by_key(rank);
    let mut ips: Vec<IpAddr> = all.into_iter().map(|(ip, _)| ip).collect();
    let mut seen = std::collections::BTreeSet::new();
    ips.retain(|ip| seen.insert(*ip));
    ips
}

/// Creates a new file, because another match's invites may be in the same folder.
fn free_file(folder: &Path, stem: &str) -> Result<PathBuf, Failure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut name = format!("{stem}.invite");
    for n in 2.. {
        let path = folder.join(name);
        // Creating the file reserves its name, even if two hosts use one folder.
        match options.open(&path) {
            Ok(_) => return Ok(path),
            Err(taken) if taken.kind() == std::io::ErrorKind::AlreadyExists => {
                name = format!("{stem}-{n}.invite");
            }
            Err(source) => return Err(Failure::Invites { path, source }),
        }
    }
    unreachable!("no folder has so many files")
}

/// Creates a folder that only its owner can read. An existing folder stays unchanged. Returns `true` if the folder is
/// new.
fn make_private_folder(folder: &Path) -> Result<bool, Failure> {
    let is_new = !folder.exists();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| Failure::Invites {
        path: folder.to_owned(),
        source,
    })?;
    Ok(is_new)
}

fn words(
    args: &HostArgs,
    listens: SocketAddr,
    web: Option<u16>,
    dialled: &[ServerAddress],
    invites: &[Invite],
) -> String {
    let mut out = String::new();
    let list: Vec<String> = dialled.iter().map(ServerAddress::to_string).collect();
    let screens = match args.seats {
        1 => "one player".to_owned(),
        seats => format!("{seats} players at one screen"),
    };
    let _ = writeln!(
        out,
        "listening on {listens}; players dial {}\n\n{} invites, each for {screens}. They are secrets: keep the first, \
         and give each of the others to one friend.",
        list.join(" or "),
        invites.len()
    );
    for invite in invites {
        let _ = writeln!(out, "  {invite}");
    }
    let first = invites
        .first()
        .map(|invite| invite.file.display().to_string());
    let _ = writeln!(
        out,
        "\nYou:          powderkeg join {}\nYour friends: powderkeg join FILE, or powderkeg join - and paste the \
         file's line",
        first.unwrap_or_default()
    );
    let is_here = |at: &ServerAddress| at.socket().is_some_and(|at| at.ip().is_loopback());
    if dialled.iter().all(is_here) && args.listen.ip().is_unspecified() {
        let _ = writeln!(
            out,
            "\nWARNING: this machine has no address on any network, so these invites work on this machine alone. Connect it \
             to a network and start again, or give --public ADDRESS:PORT"
        );
    }
    if args.web.is_some() && args.page.is_none() {
        let _ = writeln!(
            out,
            "For links that open in a browser: give --page URL, the https address of the game's page"
        );
    }
    if args.public.is_none() && !args.listen.ip().is_loopback() {
        let ports = match web {
            Some(web) => format!("ports {} and {web}", listens.port()),
            None => format!("port {}", listens.port()),
        };
        let _ = writeln!(
            out,
            "For players outside of your network: forward UDP {ports} of your router to this machine, and start again with \
             --public ADDRESS:PORT"
        );
    }
    let _ = writeln!(
        out,
        "If a friend has lost an invite: type the player's name here, such as player-2, and press \
         Enter.\nTo save the match: type save FILE; `powderkeg host --load FILE` starts a new match from it.\nCtrl-C ends the match."
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_invites_is_readable_only_by_its_owner() {
        let folder = std::env::temp_dir().join(format!("powderkeg-private-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        assert!(make_private_folder(&folder).unwrap(), "it was not there");
        assert!(!make_private_folder(&folder).unwrap(), "now it was");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        std::fs::write(folder.join("file"), "").unwrap();
        let refused = make_private_folder(&folder.join("file"));
        assert!(matches!(refused, Err(Failure::Invites { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding O1: there was no second invite for a player.
    #[test]
    fn a_typed_name_creates_an_invite_with_a_new_lineage_and_save_saves_the_match() {
        let folder = std::env::temp_dir().join(format!("powderkeg-again-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        make_private_folder(&folder).unwrap();
        let server = wiring::server(&terms::rules(Some(0)), 1, 2);
        let server = server.listen("127.0.0.1:0").unwrap();
        let inviter = Inviter {
            issuer: server.issuer(),
            match_: server.handle(),
            folder: folder.clone(),
            page: Some("https://example.org/".to_owned()),
            screens: 2,
            seats: 1,
            made: Arc::default(),
        };
        let first = inviter.invite("player-2").unwrap();
        assert_eq!(inviter.answer("  "), None);
        for unknown in ["player-3", "player-0", "../player-1", "anna"] {
            let answer = inviter.answer(unknown).unwrap();
            assert!(answer.contains("player-1 to player-2"), "{answer}");
        }
        let answer = inviter.answer(" player-2\r").unwrap();
        let second = folder.join("player-2-2.invite");
        assert!(answer.contains(second.to_str().unwrap()), "{answer}");
        let files = inviter.made().into_iter().map(|invite| invite.file);
        assert!(files.eq([first.file.clone(), second.clone()]));
        let ticket = |file| twinstep_udp::Ticket::load(file).unwrap();
        let second = ticket(second);
        assert_ne!(second.stamp().lineage, ticket(first.file).stamp().lineage);
        let link = format!("https://example.org/#{}", second.to_line());
        assert!(answer.contains(&link), "{answer}");
        let file = folder.join("evening.save");
        let answer = inviter.answer(&format!("save {}", file.display())).unwrap();
        assert!(answer.starts_with("saved "), "{answer}");
        let server = wiring::server(&terms::rules(Some(0)), 1, 2).load(&file);
        server.check(([127, 0, 0, 1], 0).into()).unwrap();
        let answer = inviter
            .answer(&format!("save {}", folder.display()))
            .unwrap();
        assert!(answer.starts_with("cannot save"), "{answer}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn invites_of_another_match_are_not_changed() {
        let folder = std::env::temp_dir().join(format!("powderkeg-invites-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        make_private_folder(&folder).unwrap();
        let first = free_file(&folder, "player-1").unwrap();
        std::fs::write(&first, "theirs").unwrap();
        let second = free_file(&folder, "player-1").unwrap();
        assert_eq!(second, folder.join("player-1-2.invite"));
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "theirs");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding P3-M5: many routers do not route their public address back, so a host that also plays must find an
    /// address in its own network among those it dials.
    #[test]
    fn the_host_can_always_dial_its_own_server() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let any = at("0.0.0.0:7777");
        let public: ServerAddress = "play.example.org:7777".parse().unwrap();
        let here = at("127.0.0.1:7777");
        let network = || vec![IpAddr::from([192, 168, 1, 5])];
        let lan = at("192.168.1.5:7777");
        let public_lan_here = [public, lan.into(), here.into()];
        assert_eq!(dialled(any, Some(public), network), public_lan_here);
        assert_eq!(dialled(any, None, network), [lan, here]);
        assert_eq!(dialled(any, None, Vec::new), [here]);
        assert_eq!(dialled(lan, Some(public), network), [public, lan.into()]);
        assert_eq!(dialled(here, Some(here.into()), network), [here]);
        assert!(dialled(at("127.0.0.1:0"), None, network).is_empty());
        // A ticket holds a limited number of addresses, and only addresses in the families on which the server listens.
        let many = || {
            let lans = (1..=5).map(|n| IpAddr::from([10, 0, n, 1]));
            let v6 = "2001:db8::5".parse::<IpAddr>().unwrap();
            [v6].into_iter().chain(lans).collect()
        };
        let four = dialled(any, None, many);
        assert!(
            four.iter()
                .all(|at| at.socket().is_some_and(|at| at.is_ipv4())),
            "{four:?}"
        );
        assert_eq!((four.len(), four[3]), (4, here.into()));
        let both = dialled(at("[::]:7777"), None, many);
        assert_eq!(
            (both[0], both[3]),
            (at("[2001:db8::5]:7777").into(), here.into())
        );
        assert_eq!(dialled(any, Some(public), many).len(), 4);
    }

    /// Finding P3-M5: invites named only loopback if there was no route outward.
    #[test]
    fn a_machine_offers_the_addresses_of_all_its_networks_in_order() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let listed = [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("docker0", "172.17.0.1"),
            ("eth1", "169.254.7.7"),
            ("eth0", "fe80::1"),
            ("eth0", "2001:db8::5"),
            ("wg0", "100.64.0.9"),
            ("eth0", "10.99.0.1"),
            ("tun0", "10.8.0.2"),
        ];
        let listed = || {
            listed
                .map(|(name, at)| (ip(at), name.to_owned()))
                .into_iter()
        };
        let without_a_way_out = in_order(&[], listed());
        let expected = [
            "10.99.0.1",
            "10.8.0.2",
            "100.64.0.9",
            "2001:db8::5",
            "169.254.7.7",
            "172.17.0.1",
        ];
        assert_eq!(without_a_way_out, expected.map(ip));
        // The address with a route outward is first, even if the list cannot be read.
        assert_eq!(
            in_order(&[ip("10.8.0.2")], listed())[..2],
            [ip("10.8.0.2"), ip("10.99.0.1")]
        );
        assert_eq!(
            in_order(&[ip("10.8.0.2")], std::iter::empty()),
            [ip("10.8.0.2")]
        );
        // Reads the real list of this system, which may contain any addresses.
        assert!(own_addresses().iter().all(|ip| !ip.is_loopback()));
    }
}
