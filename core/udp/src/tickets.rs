//! Tickets: a player's credentials for a match, until a newer ticket is safe.
//!
//! ```text
//! twinstep-ticket-3:<hex of:>
//!   length, game · wire version · protocol id · id · stamp · timeout · number, addresses · sealed · secret · more
//!                                                                                            │        │       │
//!      read by the server: the claims (id, stamp, identity, match, seats), addresses, secret ╯        │       │
//!      proves that the holder holds it, so hand a ticket out over a safe channel ─────────────────────╯       │
//!      further fields (kind, length, bytes): where browsers dial. Unknown kinds are kept and passed on ───────╯
//! ```
//!
//! A ticket opens a session, or takes over its identity's current one, any number of times and from any address, until
//! it expires or the server knows that a newer ticket is safe: used, or stored where the client's next process finds
//! it. So no crash locks a player out, and a copy of an old ticket is soon useless. The order of tickets follows from
//! the [stamp](Stamp) and from the tickets that the server saw: see [`twinstep_protocol::lineage`].
//!
//! Invariant: a ticket's [claims](TicketClaims) about a player can be read only with the server's key; the server does
//! not trust fields outside the seal, which are for the holder's convenience.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use twinstep_protocol::identity::{Identity, MatchId, Role};
use twinstep_protocol::lineage::{NextTicket, Stamp, TICKET_LIFE_MAX};
use twinstep_protocol::text;

use crate::address::ServerAddress;
use crate::aead::KEY_BYTES;
use crate::claims::{
    IDENTITY_MAX_BYTES, Pass, SEALED_BYTES, SEATS_MAX, SERVERS_MAX, TicketClaims, is_identity,
};
use crate::keys::TicketKey;
use crate::secrets::{self, Guard, from_hex, random, random_u64, to_hex};
use crate::web_address::WebAddress;

/// The session timeout in the tickets that this workspace issues. The value is part of each ticket, so other makers may
/// choose another one.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest game id, in bytes.
pub const GAME_MAX_BYTES: usize = 64;

const PREFIX: &str = "twinstep-ticket-";
const VERSION: &str = "3";
/// The maximum number of bytes in additional fields.
const MORE_MAX_BYTES: usize = 1_024;
/// The additional field with the parts of a [`WebAddress`]. A field holds 255 bytes, so there may be several.
const WEB: u8 = 1;
const FILE_MAX_BYTES: u64 = 16 * 1_024;

/// The content of a new ticket.
#[derive(Clone, Debug)]
pub struct TicketSpec<'a> {
    /// The game's id, at most [`GAME_MAX_BYTES`]. The server must run the same game.
    pub game: &'a str,
    /// The version of the wire format. The server must use the same version.
    pub wire_version: u32,
    /// The player's identity: 1 to [`IDENTITY_MAX_BYTES`] bytes, no invisible characters.
    pub identity: &'a str,
    /// The match for which the ticket is valid.
    pub match_id: MatchId,
    /// The number of local players, 0..=[`SEATS_MAX`]. 0 for a spectator.
    pub seats: u8,
    /// The server's public addresses, 1..=[`SERVERS_MAX`], tried in order.
    pub servers: &'a [ServerAddress],
    /// The ticket's lifetime, 1 s to [`TICKET_LIFE_MAX`].
    pub life: Duration,
    /// A session with this ticket ends after this much silence: whole seconds, 1..=60 (5 is a good value).
    pub timeout: Duration,
    /// The current wall-clock time since the Unix epoch.
    pub now_unix: Duration,
}

/// A ticket, which admits its holder until a newer one of the same identity is safe.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    game: String,
    wire_version: u32,
    protocol_id: u64,
    id: u64,
    stamp: Stamp,
    timeout_s: u8,
    servers: Vec<ServerAddress>,
    sealed: Box<[u8; SEALED_BYTES]>,
    secret: [u8; KEY_BYTES],
    more: Vec<u8>,
}

impl Ticket {
    /// Issues a ticket of a new lineage. The server accepts it until it expires or is revoked, or, once it has been
    /// used, until a newer ticket is safe: one of its lineage, or the first of another lineage. Until it is used, other
    /// tickets of the identity do not affect it. Its expiry, and the revocations that include it, depend on the maker's
    /// clock. If an unused ticket leaks, the first client that uses it ends the owner's session: give tickets a short
    /// lifetime.
    ///
    /// # Errors
    /// [`TicketError::Identity`], [`TicketError::Seats`] or [`TicketError::Range`] if the spec is out of its ranges.
    ///
    /// # Panics
    /// If the operating system has no random bytes.
    pub fn issue(key: &TicketKey, spec: &TicketSpec<'_>) -> Result<Ticket, TicketError> {
        Ticket::issue_next(key, spec, &NextTicket::default())
    }

    /// Like [`issue`](Ticket::issue), for a reconnect ticket: the next one of a session, or one issued after a
    /// revocation.
    ///
    /// # Errors
    /// The errors of [`issue`](Ticket::issue).
    ///
    /// # Panics
    /// The panics of [`issue`](Ticket::issue).
    pub fn issue_next(
        key: &TicketKey,
        spec: &TicketSpec<'_>,
        next: &NextTicket,
    ) -> Result<Ticket, TicketError> {
        check(spec)?;
        let issued_unix_ms = u64::try_from(spec.now_unix.as_millis()).unwrap_or(u64::MAX);
        let expires_unix_s = spec.now_unix.as_secs().saturating_add(spec.life.as_secs());
        let claims = TicketClaims {
            ticket_id: random_u64(),
            stamp: Stamp {
                lineage: next.lineage.unwrap_or_else(random_u64),
                generation: next.generation,
                issued_unix_ms: issued_unix_ms.max(next.issued_since_unix_ms),
                expires_unix_s: expires_unix_s.max(next.expires_unix_s_min),
            },
            identity: Identity::new(spec.identity, Role::of_seats(spec.seats.into())),
            match_id: spec.match_id,
            seats: spec.seats,
        };
        let pass = Pass {
            timeout_s: spec.timeout.as_secs() as u8,
            servers: spec.servers.iter().map(ServerAddress::hash).collect(),
            secret: random(),
            claims,
        };
        Ok(Ticket {
            game: spec.game.to_string(),
            wire_version: spec.wire_version,
            protocol_id: key.protocol_id(spec.game, spec.wire_version),
            id: pass.claims.ticket_id,
            stamp: pass.claims.stamp,
            timeout_s: pass.timeout_s,
            sealed: Box::new(pass.seal(key.secret())),
            servers: spec.servers.to_vec(),
            secret: pass.secret,
            more: Vec::new(),
        })
    }

    /// Reads a ticket file.
    ///
    /// The file's mode is not checked: a player may have downloaded it with a browser.
    ///
    /// # Errors
    /// [`TicketError`] if the file is missing, cannot be read, or contains no ticket.
    pub fn load(path: impl AsRef<Path>) -> Result<Ticket, TicketError> {
        let path = path.as_ref().to_path_buf();
        match secrets::read(&path, FILE_MAX_BYTES, Guard::Itself) {
            Ok((text, _)) => text.parse(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(TicketError::Missing { path }),
            Err(source) => Err(TicketError::Unreadable { path, source }),
        }
    }

    /// Writes the ticket to a file of mode 0600, atomically replacing an existing one.
    ///
    /// # Errors
    /// [`TicketError::Unwritable`] if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), TicketError> {
        let path = path.as_ref();
        secrets::replace_file(path, format!("{}\n", self.to_line())).map_err(|source| {
            TicketError::Unwritable {
                path: path.to_path_buf(),
                source,
            }
        })
    }

    /// The ticket as one line of text, which [`str::parse`] can read. The line is a secret.
    #[must_use]
    pub fn to_line(&self) -> String {
        format!("{PREFIX}{VERSION}:{}", to_hex(&self.to_bytes()))
    }

    /// Encodes the ticket: at most about 980 bytes in this version, and 1,700 in later ones. It contains secrets: send
    /// it only in an encrypted session.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.game.len() as u8];
        bytes.extend_from_slice(self.game.as_bytes());
        bytes.extend_from_slice(&self.wire_version.to_le_bytes());
        let stamp = &self.stamp;
        for number in [self.protocol_id, self.id, stamp.lineage] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&stamp.generation.to_le_bytes());
        bytes.extend_from_slice(&stamp.issued_unix_ms.to_le_bytes());
        bytes.extend_from_slice(&stamp.expires_unix_s.to_le_bytes());
        bytes.extend_from_slice(&[self.timeout_s, self.servers.len() as u8]);
        for server in &self.servers {
            server.write(&mut bytes);
        }
        bytes.extend_from_slice(&self.sealed[..]);
        bytes.extend_from_slice(&self.secret);
        bytes.extend_from_slice(&self.more);
        bytes
    }

    /// Reads a ticket written by [`to_bytes`](Ticket::to_bytes).
    ///
    /// # Errors
    /// [`TicketError::Damaged`] if the bytes are not a whole ticket.
    pub fn from_bytes(bytes: &[u8]) -> Result<Ticket, TicketError> {
        parse(bytes).ok_or(TicketError::Damaged)
    }

    /// Checks that the ticket is for this program. (The server also checks, but can only ignore a wrong ticket.)
    ///
    /// # Errors
    /// [`TicketError::OtherProgram`] if the ticket is for another game or wire version.
    pub fn check_program(&self, game: &str, wire_version: u32) -> Result<(), TicketError> {
        if (self.game.as_str(), self.wire_version) == (game, wire_version) {
            return Ok(());
        }
        Err(TicketError::OtherProgram {
            game: self.game.clone(),
            wire_version: self.wire_version,
            our_game: game.to_string(),
            our_wire_version: wire_version,
        })
    }

    /// The ticket's id. It distinguishes tickets and grants no access.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The ticket's position in the order of its holder's tickets.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The time at which the ticket expires, in seconds since the Unix epoch. Only the server's clock counts.
    #[must_use]
    pub fn expires_unix_s(&self) -> u64 {
        self.stamp.expires_unix_s
    }

    /// The server's addresses, in the order in which they are tried.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = ServerAddress> + '_ {
        self.servers.iter().copied()
    }

    /// The same ticket, to be dialled first at the `n`th of its addresses (modulo their number), and at no more than
    /// `at_most` of them. The server checks only the sealed part, which stays the same.
    #[must_use]
    pub fn with_first_address(&self, n: usize, at_most: usize) -> Ticket {
        let around = self.servers.iter().cycle();
        let count = self.servers.len();
        Ticket {
            servers: around
                .skip(n % count)
                .take(count.min(at_most.max(1)))
                .copied()
                .collect(),
            ..self.clone()
        }
    }

    /// The same ticket, which browsers can dial at this address.
    #[must_use]
    pub fn with_web(mut self, web: &WebAddress) -> Ticket {
        let others = fields(&self.more).filter(|(kind, _)| *kind != WEB);
        let mut more = Vec::new();
        let mut add = |kind: u8, bytes: &[u8]| {
            more.extend([kind, bytes.len() as u8]);
            more.extend_from_slice(bytes);
        };
        others.for_each(|(kind, bytes)| add(kind, bytes));
        let mut bytes = Vec::new();
        web.write(&mut bytes);
        bytes
            .chunks(usize::from(u8::MAX))
            .for_each(|part| add(WEB, part));
        self.more = more;
        self
    }

    /// The address at which browsers dial the server. Returns `None` if the server does not accept browsers.
    #[must_use]
    pub fn web(&self) -> Option<WebAddress> {
        let parts = fields(&self.more).filter(|(kind, _)| *kind == WEB);
        WebAddress::read(
            &parts
                .flat_map(|(_, bytes)| bytes)
                .copied()
                .collect::<Vec<_>>(),
        )
    }

    /// The same ticket with the addresses to which its names were resolved.
    pub(crate) fn looked_up(&self, servers: Vec<ServerAddress>) -> Ticket {
        Ticket {
            servers,
            ..self.clone()
        }
    }

    pub(crate) fn protocol_id(&self) -> u64 {
        self.protocol_id
    }

    pub(crate) fn timeout_s(&self) -> u8 {
        self.timeout_s
    }

    pub(crate) fn sealed(&self) -> &[u8; SEALED_BYTES] {
        &self.sealed
    }

    pub(crate) fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }
}

/// Removes characters that other programs add to a ticket's line: a byte order mark, quotes, line breaks and quotation
/// marks from an email, invisible spaces. If UTF-16 was read as UTF-8, each character is next to a NUL, and invalid
/// UTF-8 became U+FFFD. None of these characters is ever part of a ticket.
fn unwrapped(text: &str) -> String {
    let wraps = |char: char| {
        char.is_whitespace()
            || char.is_control()
            || matches!(char,
                '"' | '\'' | '`' | '´' | '<' | '>' | '«' | '»' | '‹' | '›' | '\u{2018}'..='\u{201f}'
                | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
                | '\u{feff}' | '\u{fffd}')
    };
    text.chars().filter(|char| !wraps(*char)).collect()
}

/// Ignores quotes, line breaks and marks that other programs add to an invite.
impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let text = unwrapped(text);
        let (version, digits) = text
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once(':'))
            .ok_or(TicketError::NotATicket)?;
        if version != VERSION {
            // Only a number is repeated: other text may be a part of a secret.
            return Err(match version.parse::<u16>() {
                Ok(version) => TicketError::Version { version },
                Err(_) => TicketError::Damaged,
            });
        }
        from_hex(digits)
            .and_then(|bytes| parse(&bytes))
            .ok_or(TicketError::Damaged)
    }
}

/// Prints the id, the servers and the stamp, never the keys.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &format_args!("{:016x}", self.id()))
            .field("servers", &self.servers)
            .field("stamp", &self.stamp)
            .finish_non_exhaustive()
    }
}

fn parse(bytes: &[u8]) -> Option<Ticket> {
    let (&game_bytes, rest) = bytes.split_first()?;
    let (game, rest) = rest.split_at_checked(usize::from(game_bytes))?;
    let (wire_version, mut rest) = rest.split_first_chunk::<4>()?;
    let mut number = || {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_le_bytes(*number))
    };
    let [protocol_id, id, lineage] = [number()?, number()?, number()?];
    let (generation, behind) = rest.split_first_chunk()?;
    rest = behind;
    let mut number = || {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        rest = behind;
        Some(u64::from_le_bytes(*number))
    };
    let stamp = Stamp {
        lineage,
        generation: u32::from_le_bytes(*generation),
        issued_unix_ms: number()?,
        expires_unix_s: number()?,
    };
    let (&[timeout_s, count], mut rest) = rest.split_first_chunk::<2>()?;
    let sound = (1..=SERVERS_MAX).contains(&usize::from(count)) && (1..=60).contains(&timeout_s);
    if !sound {
        return None;
    }
    let servers = (0..count).map(|_| ServerAddress::read(&mut rest));
    let servers = servers.collect::<Option<Vec<_>>>()?;
    let (sealed, rest) = rest.split_first_chunk::<SEALED_BYTES>()?;
    let (secret, more) = rest.split_first_chunk()?;
    Some(Ticket {
        game: String::from_utf8(game.to_vec()).ok()?,
        wire_version: u32::from_le_bytes(*wire_version),
        protocol_id,
        id,
        stamp,
        timeout_s,
        servers,
        sealed: Box::new(*sealed),
        secret: *secret,
        more: is_more(more).then(|| more.to_vec())?,
    })
}

/// Returns `true` if these are whole additional fields, each of a kind, a length and that many bytes.
fn is_more(bytes: &[u8]) -> bool {
    let whole: usize = fields(bytes).map(|(_, field)| 2 + field.len()).sum();
    bytes.len() <= MORE_MAX_BYTES && whole == bytes.len()
}

/// The whole additional fields at the start of `bytes`: kind and content.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[kind, len], rest) = bytes.split_first_chunk()?;
        let (field, behind) = rest.split_at_checked(usize::from(len))?;
        bytes = behind;
        Some((kind, field))
    })
}

fn check(spec: &TicketSpec<'_>) -> Result<(), TicketError> {
    if !is_identity(spec.identity) {
        return Err(TicketError::Identity {
            got: spec.identity.to_string(),
        });
    }
    let life_s = spec.life.as_secs();
    let (game_bytes, servers) = (spec.game.len() as u64, spec.servers.len() as u64);
    let ranges = [
        ("a game id", "bytes", game_bytes, GAME_MAX_BYTES as u64),
        ("a list", "server addresses", servers, SERVERS_MAX as u64),
        ("a life", "s", life_s, TICKET_LIFE_MAX.as_secs()),
        ("a timeout", "s", spec.timeout.as_secs(), 60),
    ];
    if spec.seats > SEATS_MAX {
        return Err(TicketError::Seats { got: spec.seats });
    }
    for (what, unit, got, most) in ranges {
        if !(1..=most).contains(&got) {
            return Err(TicketError::Range {
                what,
                unit,
                most,
                got,
            });
        }
    }
    Ok(())
}

/// The reason why a ticket could not be issued, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum TicketError {
    #[error(
        "expected an identity of 1 to {IDENTITY_MAX_BYTES} bytes of visible characters, got {:?}",
        text::line(got)
    )]
    Identity { got: String },
    #[error("ticket: expected {what} of 1 to {most} {unit}, got {got}")]
    Range {
        what: &'static str,
        unit: &'static str,
        most: u64,
        got: u64,
    },
    #[error(
        "expected 1 to {SEATS_MAX} seats for a player's ticket, or 0 for a spectator's, got {got}"
    )]
    Seats { got: u8 },
    #[error("expected a ticket at {path}, but there is none; ask the server's operator for one")]
    Missing { path: PathBuf },
    #[error("cannot read the ticket {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot write the ticket {path}: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error(
        "expected a ticket (one line that starts with {PREFIX}{VERSION}:), but this is something else"
    )]
    NotATicket,
    #[error(
        "expected a ticket of version {VERSION}, but this one is of version {version}; update this program, or ask \
         for a new ticket"
    )]
    Version { version: u16 },
    /// The ticket is of the right version, but truncated or changed.
    #[error("the ticket is cut off or damaged; copy the whole line again, or ask for a new one")]
    Damaged,
    #[error(
        "the ticket is for {game:?} with protocol {wire_version}, and this program is {our_game:?} with protocol \
         {our_wire_version}; use the build that the server runs"
    )]
    OtherProgram {
        game: String,
        wire_version: u32,
        our_game: String,
        our_wire_version: u32,
    },
}

#[cfg(test)]
pub(crate) mod tests;
