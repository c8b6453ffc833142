//! Anna hosts a town in her process, Ben is her guest. Their game continues on another evening, from a save or a
//! journal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Client, CommandRefusal, Event, SessionConfig};
use twinstep_core::{Effects, Frame, Never, PlayerId, Simulation};
use twinstep_host::{HostError, Running, SaveFileError, Server, read_save, write_save};
use twinstep_ops::{Ops, OpsConfig};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::config::StartWhen;
use twinstep_server::{
    Admission, HookContext, LoadError, MatchConfig, MatchRequest, OldSave, Referee,
};

use crate::folder::{Folder, token};
use crate::loopback::loopback;
use crate::players::{closed_by, is_in, play_blocking};
use crate::scrape::ask_by_hand;

/// The number of rounds of each kind that the suite plays. `TWINSTEP_EVENINGS` sets a different number.
const EVENINGS: u32 = 1;

#[derive(Clone, Default, Serialize, Deserialize)]
struct Town {
    gold: [u32; 16],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Earn(u32);

impl Simulation for Town {
    const NAME: &'static str = "town";
    const VERSION: u32 = 3;
    type Rules = ();
    type Input = u8;
    type Command = Earn;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, Earn(gold)) in frame.commands() {
            self.gold[player.index()] += gold;
        }
    }
}

fn server() -> Server<Town> {
    Server::strategy(Town::default(), ()).players(2)
}

fn join(running: &Running<Town>, identity: &str) -> Client<Town> {
    let ticket = running.ticket(identity).unwrap();
    Client::connect(&ticket, SessionConfig::new(Arc::new(()))).unwrap()
}

fn gold(client: &Client<Town>, player: u8) -> u32 {
    let world = client.session().authority();
    world.map_or(0, |world| world.sim().gold[usize::from(player)])
}

fn plays(client: &Client<Town>) -> bool {
    client.session().progress().is_none() && is_in(client)
}

fn player(client: &Client<Town>) -> PlayerId {
    client.session().seats()[0]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    Save,
    Journal,
}

/// Plays the first evening, which ends at a different moment in each round: right after the last order, or when Ben or
/// Anna has seen that order run. Returns the gold that a client was shown by then.
fn first_evening(n: u32, keeps: Keeps, file: &Path) -> u32 {
    let running = match keeps {
        Keeps::Save => server().listen("127.0.0.1:0"),
        Keeps::Journal => server().journal(file).listen("127.0.0.1:0"),
    };
    let running = running.unwrap();
    let mut anna = join(&running, "anna");
    play_blocking("anna", &mut [&mut anna], |one| plays(one[0])).unwrap();
    let mut ben = join(&running, "ben");
    play_blocking("ben", &mut [&mut anna, &mut ben], |all| plays(all[1])).unwrap();
    assert_eq!((player(&anna), player(&ben)), (PlayerId(0), PlayerId(1)));
    let order = |client: &mut Client<Town>, gold| {
        client.session_mut().command(0, Earn(gold)).unwrap();
    };
    order(&mut anna, 1_000);
    order(&mut ben, 7);
    let mut party = [anna, ben];
    play_blocking("gold", &mut party, |all| {
        all.iter()
            .all(|one| (gold(one, 0), gold(one, 1)) == (1_000, 7))
    })
    .unwrap();
    order(&mut party[0], 500);
    let mut frames = 10 * n;
    play_blocking("the last order", &mut party, |all| match n % 3 {
        0 => {
            frames = frames.saturating_sub(1);
            frames == 0
        }
        sees => gold(&all[sees as usize - 1], 0) == 1_500,
    })
    .unwrap();
    let shown = party.iter().map(|one| gold(one, 0)).max().unwrap();
    if keeps == Keeps::Save {
        let bytes = running.save(file).unwrap();
        assert_eq!(bytes as u64, std::fs::metadata(file).unwrap().len());
    }
    // As if the process had been killed.
    drop(running);
    shown
}

fn next_evening(n: u32, keeps: Keeps, file: &Path, shown: u32) {
    let what = format!("evening {n} by {keeps:?}, with {shown} gold shown");
    let running = match keeps {
        Keeps::Save => server().load(file).listen("127.0.0.1:0"),
        Keeps::Journal => server().resume(file).listen("127.0.0.1:0"),
    };
    let running = running.unwrap();
    let mut party = Vec::new();
    // A saved world has its players from the first moment, before their clients may give orders.
    let came = |all: &mut [Client<Town>]| all.iter().all(plays);
    for guest_first in ["ben", "anna"] {
        party.push(join(&running, guest_first));
        // A resumed match waits for both.
        if keeps == Keeps::Save {
            play_blocking(&what, &mut party, came).unwrap();
        }
    }
    play_blocking(&what, &mut party, came).unwrap();
    let seats = party.iter().map(player).collect::<Vec<_>>();
    assert_eq!(seats, [PlayerId(1), PlayerId(0)], "{what}");
    let kept = gold(&party[0], 0);
    assert!(
        kept >= shown && [1_000, 1_500].contains(&kept),
        "{what}: {kept}"
    );
    assert_eq!(gold(&party[0], 1), 7, "{what}");
    party[0].session_mut().command(0, Earn(1)).unwrap();
    party[1].session_mut().command(0, Earn(2)).unwrap();
    play_blocking(&what, &mut party, |all| {
        all.iter()
            .all(|one| (gold(one, 0), gold(one, 1)) == (kept + 2, 8))
    })
    .unwrap();
    running.shutdown();
}

/// Row 83: a resumed game has the right seat owners, and every order that a client was shown.
#[test]
fn a_two_player_game_resumes_with_its_seat_owners_and_every_order_shown_to_a_client() {
    let rounds = std::env::var("TWINSTEP_EVENINGS").ok();
    let rounds = rounds.map_or(EVENINGS, |rounds| rounds.parse().unwrap());
    let folder = Folder::new("evenings");
    for n in 1..=rounds {
        for keeps in [Keeps::Save, Keeps::Journal] {
            let file = folder.file(&format!("{n}-{keeps:?}"));
            let shown = first_evening(n, keeps, &file);
            next_evening(n, keeps, &file, shown);
        }
    }
}

#[test]
fn a_stranger_gets_no_saved_seat_until_the_host_assigns_it() {
    let folder = Folder::new("given");
    let file = folder.file("town.save");
    first_evening(1, Keeps::Save, &file);
    let running = server().load(&file).listen("127.0.0.1:0").unwrap();
    let mut carl = join(&running, "carl");
    let refused = play_blocking("carl", &mut [&mut carl], |_| false).unwrap_err();
    assert_eq!(refused, closed_by(CloseCode::Full));
    let give = |match_: &mut twinstep_server::Match<Town>| match_.give_seat(PlayerId(1), "carl");
    running.inspect(give).unwrap().unwrap();
    let mut carl = join(&running, "carl");
    play_blocking("carl", &mut [&mut carl], |one| plays(one[0])).unwrap();
    assert_eq!((player(&carl), gold(&carl, 1)), (PlayerId(1), 7));
    running.shutdown();
}

#[test]
fn a_server_can_reserve_seats_without_a_save() {
    let running = server().seat("anna", PlayerId(0)).listen("127.0.0.1:0");
    let running = running.unwrap();
    let mut ben = join(&running, "ben");
    play_blocking("ben", &mut [&mut ben], |one| plays(one[0])).unwrap();
    let mut anna = join(&running, "anna");
    play_blocking("anna", &mut [&mut anna, &mut ben], |all| plays(all[0])).unwrap();
    assert_eq!((player(&anna), player(&ben)), (PlayerId(0), PlayerId(1)));
    running.shutdown();
}

#[test]
fn an_unloadable_file_is_refused_before_the_server_starts() {
    let folder = Folder::new("unloadable");
    let file = folder.file("town.save");
    let none = server().load(&file).listen("127.0.0.1:0").err().unwrap();
    assert!(
        matches!(none, HostError::Save(SaveFileError::Read { .. })),
        "{none}"
    );
    first_evening(2, Keeps::Save, &file);
    let save = read_save(&file).unwrap();
    write_save(&file, &save[..save.len() - 1]).unwrap();
    let torn = server().load(&file).check(loopback()).err().unwrap();
    assert!(torn.to_string().contains("torn at byte"), "{torn}");
    write_save(&file, &save).unwrap();
    // An upgrade function is called only for other versions and rules.
    fn refuse(_: OldSave<'_>) -> Result<Town, String> {
        Err("too old".into())
    }
    server()
        .load(&file)
        .upgrade(refuse)
        .check(loopback())
        .unwrap();
    let few = server().players(1).load(&file).check(loopback());
    let few = few.err().unwrap();
    let HostError::Save(SaveFileError::Load { source, .. }) = few else {
        panic!("{few}");
    };
    assert!(matches!(source, LoadError::Seats { seats: 1, .. }));
}

/// The admin port writes only into its folder.
#[test]
fn an_operator_saves_a_named_game_in_the_saves_folder() {
    let folder = Folder::new("operator");
    let ops = Ops::open(OpsConfig {
        admin: Some(loopback()),
        admin_token: Some(folder.file("token")),
        saves: Some(folder.file("saves")),
        ..OpsConfig::default()
    })
    .unwrap();
    let running = server().host(|host| ops.attach(host)).listen("127.0.0.1:0");
    let running = running.unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let within = runtime.enter();
    let ops = ops.start(running.control()).unwrap();
    drop(within);
    let bearer = format!("Authorization: Bearer {}", token(&folder.file("token")));
    let ask = |query: &str| {
        let request = format!("POST /save-game?{query} HTTP/1.1\r\n{bearer}");
        ask_by_hand(ops.admin_addr().unwrap(), &request, "")
    };
    for name in ["..%2Fout", "", ".hidden", "a%2Fb", "a.b", &"a".repeat(65)] {
        let refused = ask(&format!("match=1&name={name}"));
        assert!(refused.starts_with("HTTP/1.1 400"), "{name}: {refused}");
    }
    assert!(ask("match=9&name=town").starts_with("HTTP/1.1 404"));
    assert!(!folder.file("saves").exists());
    let _anna = join(&running, "anna");
    let saved = ask("match=1&name=town-1");
    assert!(saved.starts_with("HTTP/1.1 200"), "{saved}");
    let path = folder.file("saves").join("town-1.save");
    server().load(path).check(loopback()).unwrap();
    running.shutdown();
    drop(ops);
}

struct Anyone;

impl Referee<Town> for Anyone {
    fn admit(&mut self, _: &HookContext<'_, Town>, _: PlayerId, _: &Earn, _: bool) -> Admission {
        Admission::Admitted
    }

    fn admit_request(
        &mut self,
        _: &HookContext<'_, Town>,
        _: PlayerId,
        _: MatchRequest,
    ) -> Admission {
        Admission::Admitted
    }
}

// Sends a request as the first client. Returns the resulting event, which all clients get, or only the first one.
fn answered(party: &mut [Client<Town>], request: MatchRequest) -> Event {
    party[0].session_mut().request(0, request).unwrap();
    let mut answer = None;
    let is_answer = |event: &Event| match event {
        Event::Request { request: it, .. } | Event::RequestRefused { request: it, .. } => {
            *it == request
        }
        _ => false,
    };
    play_blocking("an answer", party, |all| {
        for client in all.iter_mut() {
            let events = std::iter::from_fn(|| client.session_mut().poll_event());
            answer = events.filter(is_answer).last().or(answer.take());
        }
        answer.is_some()
    })
    .unwrap();
    answer.unwrap()
}

#[test]
fn players_start_save_and_continue_a_game_without_access_to_its_server() {
    // Rows 82 and 83, over UDP: a lobby, a start, a save and the next evening, without access to the server.
    let folder = Folder::new("players");
    let saves = folder.file("saves");
    let waiting = |started: StartWhen| MatchConfig {
        start_when: started,
        ..MatchConfig::strategy()
    };
    let hosted = |saves: &Path| {
        let policies = waiting(StartWhen::HostSays);
        server().policies(policies).referee(Anyone).saves(saves)
    };
    let running = hosted(&saves).listen("127.0.0.1:0").unwrap();
    let mut party = [join(&running, "anna"), join(&running, "ben")];
    let is_here = |one: &Client<Town>| {
        let lobby = one.session().lobby();
        lobby.is_some_and(|lobby| lobby.players.len() == 2)
    };
    play_blocking("lobby", &mut party, |all| all.iter().all(is_here)).unwrap();
    let by = party[0].session().seats().first().copied();
    let started = Event::Request {
        by,
        request: MatchRequest::Start,
    };
    assert_eq!(answered(&mut party, MatchRequest::Start), started);
    play_blocking("start", &mut party, |all| all.iter().all(plays)).unwrap();
    party[0].session_mut().command(0, Earn(7)).unwrap();
    let me = player(&party[0]);
    play_blocking("gold", &mut party, |all| gold(&all[1], me.0) == 7).unwrap();
    let request = MatchRequest::Save;
    // Saves twice: the second save replaces the first.
    for _ in 0..2 {
        let saved = answered(&mut party, request);
        assert_eq!(saved, Event::Request { by, request });
    }
    assert_eq!(std::fs::read_dir(&saves).unwrap().count(), 1);
    running.shutdown();

    let file = saves.join("match-1.save");
    let evening = std::fs::read(&file).unwrap();
    // Saves from one second count as saves of one match.
    std::thread::sleep(Duration::from_millis(1_100));
    let next = server().referee(Anyone).saves(&saves).load(&file);
    let running = next.listen("127.0.0.1:0").unwrap();
    let mut party = [join(&running, "anna")];
    play_blocking("anna", &mut party, |all| plays(&all[0])).unwrap();
    assert_eq!((player(&party[0]), gold(&party[0], me.0)), (me, 7));
    // A save of a later match 1 does not replace a save of an earlier one.
    let saved = answered(&mut party, request);
    assert!(matches!(saved, Event::Request { .. }), "{saved:?}");
    assert_eq!(
        std::fs::read(saves.join("match-1.1.save")).unwrap(),
        evening
    );
    assert_eq!(std::fs::read_dir(&saves).unwrap().count(), 2);
    running.shutdown();

    // The configured folder is a file.
    let running = server().referee(Anyone).saves(&file).listen("127.0.0.1:0");
    let running = running.unwrap();
    let mut party = [join(&running, "anna")];
    play_blocking("anna", &mut party, |all| plays(&all[0])).unwrap();
    let why = CommandRefusal::Unavailable;
    let refused = Event::RequestRefused { request, why };
    assert_eq!(answered(&mut party, request), refused);
    running.shutdown();
}
