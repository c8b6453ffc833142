use super::*;
use crate::secrets::tests::Folder;

fn spec<'a>(servers: &'a [ServerAddress]) -> TicketSpec<'a> {
    TicketSpec {
        game: "powder",
        wire_version: 3,
        identity: "Zoë",
        match_id: MatchId(9),
        seats: 2,
        servers,
        life: Duration::from_secs(600),
        timeout: Duration::from_secs(5),
        now_unix: Duration::from_secs(1_700_000_000),
    }
}

fn server() -> [ServerAddress; 1] {
    ["127.0.0.1:7777".parse().unwrap()]
}

pub(crate) fn ticket() -> Ticket {
    Ticket::issue(&TicketKey::generate(), &spec(&server())).unwrap()
}

#[test]
fn a_ticket_survives_a_round_trip_through_its_line_and_its_file() {
    let ticket = ticket();
    assert!(ticket.to_line().starts_with("twinstep-ticket-3:"));
    assert_eq!(ticket.to_line().parse::<Ticket>().unwrap(), ticket);
    let bytes = ticket.to_bytes();
    assert_eq!(Ticket::from_bytes(&bytes).unwrap(), ticket);
    assert!(bytes.len() <= 400, "{} bytes", bytes.len());
    let cut = Ticket::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
    assert!(matches!(cut, TicketError::Damaged));

    let folder = Folder::new();
    let path = folder.file("ticket");
    ticket.save(&path).unwrap();
    ticket.save(&path).unwrap();
    assert_eq!(Ticket::load(&path).unwrap(), ticket);
    assert_eq!(ticket.servers().collect::<Vec<_>>(), server());
    assert_eq!(ticket.expires_unix_s(), 1_700_000_600);
}

#[cfg(unix)]
#[test]
fn a_ticket_file_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.file("ticket");
    ticket().save(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_text_that_is_not_a_ticket_is_refused_with_a_reason() {
    let line = ticket().to_line();
    let parse = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert!(matches!(parse(""), TicketError::NotATicket));
    assert!(matches!(parse("twinstep-key-1"), TicketError::NotATicket));
    assert!(matches!(
        parse(&line.replace("ticket-3", "ticket-2")),
        TicketError::Version { version: 2 }
    ));
    for cut in [19, 40, line.len() / 2, line.len() - 2, line.len() - 1] {
        assert!(
            matches!(parse(&line[..cut]), TicketError::Damaged),
            "cut at {cut}"
        );
    }
    assert!(matches!(
        Ticket::load("/nonexistent/ticket"),
        Err(TicketError::Missing { .. })
    ));
}

/// Finding P3-D1: an invite with a byte order mark, quotes or line breaks was refused.
#[test]
fn an_invite_changed_by_other_programs_is_still_read() {
    let ticket = ticket();
    let line = ticket.to_line();
    let pieces = |between: &str| {
        let pieces: Vec<_> = line
            .as_bytes()
            .chunks(76)
            .map(|piece| str::from_utf8(piece).unwrap())
            .collect();
        pieces.join(between)
    };
    let utf16 = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let text = format!("\u{feff}{line}\r\n");
        text.encode_utf16().flat_map(to_bytes).collect()
    };
    let folder = Folder::new();
    let path = folder.file("invite");
    for (what, bytes) in [
        (
            "a byte order mark",
            format!("\u{feff}{line}\n").into_bytes(),
        ),
        (
            "UTF-16, as Windows' shell writes it",
            utf16(u16::to_le_bytes),
        ),
        ("UTF-16, the other way round", utf16(u16::to_be_bytes)),
        ("quotes", format!("\"{line}\"").into_bytes()),
        (
            "a word processor's quotes",
            format!("\u{201e}{line}\u{201c}").into_bytes(),
        ),
        ("backticks", format!("```\n{line}\n```").into_bytes()),
        ("a mail's lines", pieces("\r\n").into_bytes()),
        (
            "a quoted mail",
            format!("> {}", pieces("\n> ")).into_bytes(),
        ),
        (
            "invisible spaces",
            format!("\u{a0}{}\u{200b}", pieces("\u{200b}")).into_bytes(),
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let read = Ticket::load(&path);
        assert_eq!(
            read.unwrap_or_else(|error| panic!("{what}: {error}")),
            ticket
        );
    }
    let other = line.replacen(':', "*", 1).parse::<Ticket>();
    assert!(
        matches!(other, Err(TicketError::NotATicket)),
        "added letters are not ignored"
    );
}

#[test]
fn mutated_tickets_never_panic() {
    let line = ticket().to_line();
    for at in PREFIX.len() + 2..line.len() {
        let mut bytes = line.clone().into_bytes();
        bytes[at] = if bytes[at] == b'f' { b'0' } else { b'f' };
        // Some changes still parse as a ticket; only the server's key detects them.
        let _ = String::from_utf8(bytes).unwrap().parse::<Ticket>();
    }
}

#[test]
fn a_spec_out_of_range_is_refused() {
    let key = TicketKey::generate();
    let servers = server();
    let identities = ["", "a\nb", "a name of more than thirty-two bytes"];
    for identity in identities {
        let wrong = TicketSpec {
            identity,
            ..spec(&servers)
        };
        let error = Ticket::issue(&key, &wrong).unwrap_err();
        assert!(matches!(error, TicketError::Identity { got } if got == identity));
    }

    type Break = fn(&mut TicketSpec<'_>);
    let crowded = TicketSpec {
        seats: 5,
        ..spec(&servers)
    };
    assert!(matches!(
        Ticket::issue(&key, &crowded),
        Err(TicketError::Seats { got: 5 })
    ));
    let breaks: [(&str, Break); 6] = [
        ("a list", |s| s.servers = &[]),
        ("a life", |s| s.life = Duration::from_millis(999)),
        ("a life", |s| s.life = TICKET_LIFE_MAX * 2),
        ("a timeout", |s| s.timeout = Duration::ZERO),
        ("a timeout", |s| s.timeout = Duration::from_secs(61)),
        ("a game id", |s| s.game = ""),
    ];
    for (expected, break_it) in breaks {
        let mut wrong = spec(&servers);
        break_it(&mut wrong);
        let error = Ticket::issue(&key, &wrong).unwrap_err();
        assert!(
            matches!(error, TicketError::Range { what, .. } if what == expected),
            "{error}"
        );
    }
}

#[test]
fn a_ticket_for_another_program_is_recognised_by_its_holder() {
    let ticket = ticket();
    assert!(ticket.check_program("powder", 3).is_ok());
    assert!(matches!(
        ticket.check_program("powder", 4),
        Err(TicketError::OtherProgram { .. })
    ));
}

/// Finding K3-C: a reconnect ticket lived for twenty minutes, and invalidated an invite for thirty days.
#[test]
fn a_reconnect_ticket_continues_its_lineage_and_lives_as_long_as_the_previous_one() {
    let (key, servers) = (TicketKey::generate(), server());
    let came = Ticket::issue(&key, &spec(&servers)).unwrap().stamp();
    assert_eq!(
        (came.generation, came.issued_unix_ms),
        (0, 1_700_000_000_000)
    );
    let spec = TicketSpec {
        life: Duration::from_secs(60),
        ..spec(&servers)
    };
    let next = NextTicket {
        lineage: Some(came.lineage),
        generation: 7,
        issued_since_unix_ms: 1_700_000_000_001,
        expires_unix_s_min: came.expires_unix_s,
    };
    let handed = Ticket::issue_next(&key, &spec, &next).unwrap().stamp();
    let expected = Stamp {
        generation: 7,
        issued_unix_ms: 1_700_000_000_001,
        ..came
    };
    assert_eq!(handed, expected);
    let other = Ticket::issue(&key, &spec).unwrap().stamp();
    assert_ne!(other.lineage, came.lineage);
    assert_eq!(other.expires_unix_s, 1_700_000_060);
}

/// A later version adds fields at the end, and this version passes them on.
#[test]
fn fields_of_later_versions_are_kept() {
    let ticket = ticket();
    let bytes = |more: &[u8]| [&ticket.to_bytes()[..], more].concat();
    for more in [&[9, 0][..], &[1, 2, 3, 4], &[1, 1, 0, 2, 0]] {
        let later = Ticket::from_bytes(&bytes(more)).unwrap();
        assert_eq!(later.to_bytes(), bytes(more));
        assert_eq!((later.id(), later.secret()), (ticket.id(), ticket.secret()));
    }
    for cut in [&[9][..], &[1, 2, 3], &[1, 1, 0, 2]] {
        assert!(Ticket::from_bytes(&bytes(cut)).is_err(), "{cut:?}");
    }
    assert!(
        Ticket::from_bytes(&bytes(&[0; 2_000])).is_err(),
        "it has a bound"
    );
}

#[test]
fn the_largest_ticket_has_the_documented_size() {
    let name = format!("{}.{}:7777", "a".repeat(32), "b".repeat(31));
    let servers = [name.parse().unwrap(); SERVERS_MAX];
    let game = "g".repeat(GAME_MAX_BYTES);
    let spec = TicketSpec {
        game: &game,
        ..spec(&servers)
    };
    let ticket = Ticket::issue(&TicketKey::generate(), &spec).unwrap();
    let bytes = ticket.to_bytes();
    assert!((600..=650).contains(&bytes.len()), "{}", bytes.len());
    assert_eq!(Ticket::from_bytes(&bytes).unwrap(), ticket);
}

#[test]
fn a_ticket_can_be_dialled_first_at_any_of_its_addresses() {
    let servers = ["192.0.2.1:7", "play.example.org:7", "[::1]:7"];
    let servers = servers.map(|server| server.parse::<ServerAddress>().unwrap());
    let ticket = Ticket::issue(&TicketKey::generate(), &spec(&servers)).unwrap();
    for n in 0..7 {
        let led = ticket.with_first_address(n, 1);
        assert_eq!(led.servers().collect::<Vec<_>>(), [servers[n % 3]]);
        let two = ticket.with_first_address(n, 2);
        let expected = [servers[n % 3], servers[(n + 1) % 3]];
        assert_eq!(two.servers().collect::<Vec<_>>(), expected);
        assert_eq!(
            ticket.with_first_address(n, 9).servers().count(),
            3,
            "each once"
        );
        assert_eq!((led.id(), led.sealed()), (ticket.id(), ticket.sealed()));
    }
}

/// Finding O3: no error repeats any part of a damaged ticket.
#[test]
fn no_error_contains_part_of_a_ticket() {
    let line = ticket().to_line();
    let digits = &line[PREFIX.len() + 2..];
    let told = |text: &str| match text.parse::<Ticket>() {
        Ok(_) => String::new(),
        Err(error) => format!("{error} {error:?}"),
    };
    let mut damaged: Vec<String> = vec![
        line.replace(':', ""),
        line.replace(':', " "),
        line.replace("-3:", &format!("-{digits}:")),
        line.replace("-3:", "-:"),
        line.replace("ticket-3:", "key-1 "),
        format!("{PREFIX}{digits}:{digits}"),
        digits.to_owned(),
        format!("{line}{line}"),
        format!("{line}\n{line}"),
    ];
    damaged.extend((0..line.len()).map(|at| line[at..].to_owned()));
    damaged.extend((0..line.len()).map(|at| line[..at].to_owned()));
    for n in 0..PREFIX.len() + 2 {
        let mut moved = line.clone();
        moved.remove(n);
        moved.insert_str(n, digits);
        damaged.push(moved);
    }
    for text in damaged {
        let told = told(&text);
        for part in digits.as_bytes().windows(8) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(!told.contains(part), "{told}");
        }
    }
}

#[test]
fn debug_output_does_not_contain_the_secret() {
    let ticket = ticket();
    let line = ticket.to_line();
    let keys = &line[line.len() - 64..];
    assert!(!format!("{ticket:?}").contains(&keys[..16]));
    assert!(format!("{ticket:?}").len() < 300);
}

#[test]
fn a_ticket_carries_a_web_address_beside_fields_of_later_versions() {
    let plain = ticket();
    assert_eq!(plain.web(), None);
    let later = Ticket::from_bytes(&[&plain.to_bytes()[..], &[9, 2, 5, 6]].concat()).unwrap();
    let hash = "a1".repeat(32);
    let longest = ["b"; 4].map(|letter| format!("{}.{}:7778", letter.repeat(60), "org"));
    for text in [
        "127.0.0.1:7778".to_owned(),
        format!("{}#{hash},{hash}", longest.join(",")),
    ] {
        let web: WebAddress = text.parse().unwrap();
        let ticket = later.clone().with_web(&plain_web()).with_web(&web);
        let line = ticket.to_line();
        let read: Ticket = line.parse().unwrap();
        assert_eq!((read.web(), &read), (Some(web), &ticket));
        assert!(read.to_bytes().windows(4).any(|four| four == [9, 2, 5, 6]));
        assert!(read.to_bytes().len() <= 980, "{}", read.to_bytes().len());
        assert_eq!(read.with_first_address(1, 1).web(), read.web());
    }
}

fn plain_web() -> WebAddress {
    "[2001:db8::1]:9".parse().unwrap()
}
