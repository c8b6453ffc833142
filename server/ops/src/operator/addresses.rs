//! Addresses on a command line, for a server's settings and a game's own flags: clap's value parsers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use twinstep_udp::{NotAnAddress, ServerAddress};

/// Parses a listen address: a numeric IP address and a port.
///
/// # Errors
/// If the text is not an address. The message gives the expected form.
pub fn listened(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected IP:PORT, such as 192.168.1.5:7777 or [::1]:7777".to_owned())
}

/// Parses an address to dial: the IP address of one machine, or a host name, and a port that is not 0.
///
/// # Errors
/// If the text is not an address. The message gives the expected form and the reason.
pub fn dialled(text: &str) -> Result<ServerAddress, String> {
    let dialled: ServerAddress = text
        .parse()
        .map_err(|error: NotAnAddress| error.to_string())?;
    if dialled.port() == 0 {
        return Err("port 0 cannot be dialled: expected the listening port".to_owned());
    }
    let Some(socket) = dialled.socket() else {
        return Ok(dialled);
    };
    match socket.ip() {
        ip if ip.is_unspecified() => Err(
            "0.0.0.0 and [::] cannot be dialled; give the address of one machine, such as \
             192.168.1.5:7777"
                .to_owned(),
        ),
        ip if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) => {
            Err("expected the address of one machine, such as 192.168.1.5:7777".to_owned())
        }
        _ => Ok(dialled),
    }
}
