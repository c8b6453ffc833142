use super::*;
use twinstep_core::testing::doc::Echo;

fn hello() -> Hello {
    Hello::of::<Echo>(&(), "test build").unwrap()
}

#[test]
fn a_mismatch_is_refused_with_its_reason() {
    type Change = fn(&mut Hello);
    let changes: [(Change, Option<CloseCode>); 6] = [
        (|_| (), None),
        // The build is informative and not compared.
        (|theirs| theirs.build = "other".into(), None),
        (|theirs| theirs.wire += 1, Some(CloseCode::WrongWire)),
        (
            |theirs| theirs.game = "chess".into(),
            Some(CloseCode::WrongGame),
        ),
        (|theirs| theirs.version = 2, Some(CloseCode::WrongVersion)),
        (|theirs| theirs.rules ^= 1, Some(CloseCode::WrongRules)),
    ];
    for (change, refused) in changes {
        let mut theirs = hello();
        change(&mut theirs);
        assert_eq!(hello().refusal(&theirs), refused);
    }
}

#[test]
fn a_hello_of_another_wire_version_is_still_a_hello() {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    out.u16(999).unwrap();
    out.bytes(b"who knows what").unwrap();
    let theirs = Hello::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(hello().refusal(&theirs), Some(CloseCode::WrongWire));
}

/// Finding K13: a client used a server's numbers as indices and counts without checking them.
#[test]
fn a_welcome_beyond_its_bounds_is_not_sound() {
    fn world(tick: u32, from: u32) -> Basis {
        let world = WorldId::of(Tick(tick), b"a world");
        Basis::World { world, from }
    }
    let welcome = || Welcome {
        seats: [PlayerId(3), PlayerId(15)].into_iter().collect(),
        next_seq: [0, COUNT_MAX].into_iter().collect(),
        command_delay: COMMAND_DELAY_MAX,
        owners_answer: false,
        basis: Basis::Start(Tick(COUNT_MAX), Cadence::DEFAULT),
    };
    assert!(welcome().is_sound());
    let spoils: [fn(&mut Welcome); 9] = [
        |spoiled| spoiled.seats[1] = PlayerId(16),
        |spoiled| spoiled.seats[1] = PlayerId(3),
        |spoiled| spoiled.next_seq[0] = COUNT_MAX + 1,
        |spoiled| spoiled.next_seq.truncate(1),
        |spoiled| spoiled.command_delay += 1,
        |spoiled| spoiled.basis = Basis::Start(Tick(COUNT_MAX + 1), Cadence::DEFAULT),
        |spoiled| {
            let turn_ticks = 0;
            let cadence = Cadence {
                turn_ticks,
                ..Cadence::DEFAULT
            };
            spoiled.basis = Basis::Start(Tick(0), cadence);
        },
        |spoiled| spoiled.basis = world(COUNT_MAX + 1, 0),
        |spoiled| spoiled.basis = world(0, WORLD_BYTES_MAX as u32),
    ];
    for spoil in spoils {
        let mut spoiled = welcome();
        spoil(&mut spoiled);
        assert!(!spoiled.is_sound(), "{spoiled:?}");
    }
}

#[test]
fn a_hello_survives_a_round_trip() {
    let mut hello = hello();
    hello.names.push(Name::new("Anna"));
    let all = [
        Holds::Nothing,
        Holds::Authority {
            tick: Tick(70_000),
            digest: u32::MAX,
            agreed: Some((Tick(69_990), 1)),
        },
        Holds::Start(7),
        Holds::Part {
            world: WorldId::of(Tick(COUNT_MAX), b"a world"),
            bytes: u32::MAX,
        },
    ];
    for holds in all {
        hello.holds = holds;
        let mut bytes = [0; 128];
        let mut out = Writer::new(&mut bytes);
        hello.write(&mut out).unwrap();
        let len = out.len();
        let read = Hello::read(&mut Reader::new(&bytes[..len]));
        assert_eq!(read.as_ref(), Ok(&hello));
    }
}
