use super::*;
use crate::secrets::tests::Folder;

fn spec<'a>(servers: &'a [SocketAddr]) -> TicketSpec<'a> {
    TicketSpec {
        game: "powder",
        wire_version: 3,
        identity: "Zoë",
        match_id: 9,
        seats: 2,
        servers,
        life: Duration::from_secs(600),
        timeout: Duration::from_secs(5),
        now_unix: Duration::from_secs(1_700_000_000),
    }
}

fn server() -> [SocketAddr; 1] {
    ["127.0.0.1:7777".parse().unwrap()]
}

fn ticket() -> Ticket {
    Ticket::issue(&Key::generate(), &spec(&server())).unwrap()
}

#[test]
fn a_ticket_comes_back_from_its_line_and_from_its_file() {
    let ticket = ticket();
    assert!(ticket.to_line().starts_with("twinstep-ticket-1:"));
    assert_eq!(ticket.to_line().parse::<Ticket>().unwrap(), ticket);
    let bytes = ticket.to_bytes();
    assert_eq!(Ticket::from_bytes(&bytes).unwrap(), ticket);
    assert!(bytes.len() <= 1_250, "{} bytes", bytes.len());
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
fn a_ticket_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.file("ticket");
    ticket().save(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_is_no_ticket_is_refused_in_words() {
    let line = ticket().to_line();
    let parse = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert!(matches!(parse(""), TicketError::NotATicket));
    assert!(matches!(parse("twinstep-key-1"), TicketError::NotATicket));
    assert!(matches!(
        parse(&line.replace("ticket-1", "ticket-2")),
        TicketError::Version { version } if version == "2"
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

#[test]
fn mutated_tickets_never_panic() {
    let line = ticket().to_line();
    for at in PREFIX.len() + 2..line.len() {
        let mut bytes = line.clone().into_bytes();
        bytes[at] = if bytes[at] == b'f' { b'0' } else { b'f' };
        // Some changes still read as a ticket; the server's key is what tells.
        let _ = String::from_utf8(bytes).unwrap().parse::<Ticket>();
    }
}

#[test]
fn a_spec_out_of_range_is_refused() {
    let key = Key::generate();
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
        ("server addresses", |s| s.servers = &[]),
        ("seconds of life", |s| s.life = Duration::from_millis(999)),
        ("seconds of life", |s| s.life = TICKET_LIFE_MAX * 2),
        ("seconds of timeout", |s| s.timeout = Duration::ZERO),
        ("seconds of timeout", |s| {
            s.timeout = Duration::from_secs(61)
        }),
        ("bytes of game id", |s| s.game = ""),
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
fn a_ticket_tells_its_holder_when_it_is_of_no_use() {
    let ticket = ticket();
    assert!(ticket.check_program("powder", 3).is_ok());
    assert!(matches!(
        ticket.check_program("powder", 4),
        Err(TicketError::OtherProgram { .. })
    ));
    assert!(
        ticket
            .check_alive(Duration::from_secs(1_700_000_599))
            .is_ok()
    );
    assert!(matches!(
        ticket.check_alive(Duration::from_secs(1_700_000_603)),
        Err(TicketError::Expired { ago_s: 3 })
    ));
}

#[test]
fn debug_output_does_not_hold_the_session_keys() {
    let ticket = ticket();
    let line = ticket.to_line();
    let keys = &line[line.len() - 128..];
    assert!(!format!("{ticket:?}").contains(&keys[..16]));
    assert!(format!("{ticket:?}").len() < 200);
}
