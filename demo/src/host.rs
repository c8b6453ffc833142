//! A match for friends: a server, and an invite for each screen.
//!
//! ```text
//!   key, made for this match or given ─▶ server
//!            └─▶ invites/player-1.invite ... one for each screen, 0600 ─▶ powderkeg join FILE, or pasted: join -
//! ```
//!
//! An invite is a ticket: it lets one screen in, once; after that the client keeps tickets to return with. Invites of a
//! key that was made for this match are worthless after it, and are removed at its end.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use twinstep_server::host::Server;
use twinstep_udp::Key;

use crate::cli::{Failure, HostArgs};
use crate::game::Game;
use crate::serve::{self, beside};
use crate::wiring::{self, unix_now};

/// Runs a match for friends until it is asked to end.
pub(crate) fn host(args: &HostArgs) -> Result<ExitCode, Failure> {
    if args.players < args.seats {
        return Err(Failure::Flag {
            flag: "players",
            reason: format!(
                "expected at least one screen of --seats {}, got {} players",
                args.seats, args.players
            ),
        });
    }
    let key = match &args.key_file {
        Some(file) => Key::load(file)?,
        None => Key::generate(),
    };
    let rules = wiring::rules(args.enemies);
    let seed = args.seed.unwrap_or(unix_now().as_secs());
    let mut server = wiring::server(&rules, seed, args.players.into()).key(key.clone());
    if let Some(file) = &args.key_file {
        server = server.consumed_file(beside(file));
    }
    if let Some(folder) = &args.journal {
        server = server.journal(serve::new_journal(folder)?);
    }
    let server = reachable(server, args).listen(&args.listen.to_string())?;
    let dialled = server.public_addresses().to_vec();
    make_private_folder(&args.invites)?;
    let mut invites = Vec::new();
    for n in 1..=args.players / args.seats {
        let file = args.invites.join(format!("player-{n}.invite"));
        serve::issue(&key, &format!("player-{n}"), args.seats, &dialled)?.save(&file)?;
        invites.push(file);
    }
    print!("{}", words(args, server.local_addr(), &dialled, &invites));
    server
        .run_until_stopped()
        .map_err(|source| Failure::System {
            doing: "cannot listen for the signal to stop",
            source,
        })?;
    if args.key_file.is_none() {
        // Worthless now; who has removed one already may.
        invites.iter().for_each(|file| {
            let _ = std::fs::remove_file(file);
        });
        let _ = std::fs::remove_dir(&args.invites);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what players dial: what was told, or where this machine is on its network, and on itself.
fn reachable(server: Server<Game>, args: &HostArgs) -> Server<Game> {
    let (ip, port) = (args.listen.ip(), args.listen.port());
    match args.public {
        Some(public) => server.public(public),
        None if ip.is_unspecified() && port != 0 => {
            let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
            match address_on_network().filter(|ip| !ip.is_loopback()) {
                Some(ip) => server.public(SocketAddr::new(ip, port)).public(here),
                None => server.public(here),
            }
        }
        None => server,
    }
}

/// This machine's address on the network that leads outward, if there is one. Nothing is sent: the operating system
/// only says from where it would.
fn address_on_network() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is kept for documents (RFC 5737).
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// A folder that only its owner can look into; one that is there stays as it is.
fn make_private_folder(folder: &Path) -> Result<(), Failure> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| Failure::Invites {
        path: folder.to_owned(),
        source,
    })
}

/// What the host is told.
fn words(
    args: &HostArgs,
    listens: SocketAddr,
    dialled: &[SocketAddr],
    invites: &[PathBuf],
) -> String {
    let mut out = String::new();
    let list: Vec<String> = dialled.iter().map(SocketAddr::to_string).collect();
    let screens = match args.seats {
        1 => "one player".to_owned(),
        seats => format!("{seats} players at one screen"),
    };
    let _ = writeln!(
        out,
        "listening on {listens}; players dial {}\n\n{} invites, each for {screens}, good once. They are secrets: give \
         each to one friend.",
        list.join(" or "),
        invites.len()
    );
    for file in invites {
        let _ = writeln!(out, "  {}", file.display());
    }
    let first = invites.first().map(|file| file.display().to_string());
    let _ = writeln!(
        out,
        "\nYou:          powderkeg join {}\nYour friends: powderkeg join FILE, or powderkeg join - and paste the \
         file's line",
        first.unwrap_or_default()
    );
    if args.public.is_none() {
        let _ = writeln!(
            out,
            "From outside of your network: forward UDP port {} of your router to this machine, and give --public \
             ADDRESS:PORT",
            listens.port()
        );
    }
    let _ = writeln!(out, "Ctrl-C ends the match.");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_invites_is_its_owners_alone() {
        let folder = std::env::temp_dir().join(format!("powderkeg-private-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        make_private_folder(&folder).unwrap();
        make_private_folder(&folder).unwrap();
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
}
