//! A match that waits for its players: every start condition, the rules chosen by its host, and guests that misbehave.
//! In virtual time, in lockstep and with prediction.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{CommandRefusal, Event, Session, SessionEnd};
use twinstep_core::bounds::{PACKET_BYTES_MAX, RULES_BYTES_MAX};
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_rig::direct::no_queries;
use twinstep_server::config::{ConfigError, StartWhen, TurnLength};
use twinstep_server::peer::SessionStage;
use twinstep_server::{
    Admission, CloseCode, HookContext, Match, MatchConfig, MatchRequest, MatchStartError, Referee,
    StartCondition,
};

use crate::party::{Client, Isle, MS, Map, Party, SECOND, action, holder, modes, taker};

/// Row 82.
#[test]
fn a_match_starts_when_enough_players_are_there_and_all_are_ready() {
    for policies in modes(StartWhen::Players(2)) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        party.come("anna", LinkProfile::WAN, holder(&map));
        party.clients[0].session.ready(true);
        party.run(5 * SECOND);
        assert!(party.waits(), "Anna is alone");
        let ben = party.come("ben", LinkProfile::WAN, holder(&map));
        party.run(5 * SECOND);
        assert!(party.waits(), "Ben is not ready");
        let lobby = party.clients[0].session.lobby().unwrap();
        assert_eq!(lobby.start, StartCondition::Players(2));
        let seen: Vec<_> = lobby
            .players
            .iter()
            .map(|p| (p.player.0, p.name.as_str(), p.has_rules, p.ready))
            .collect();
        assert_eq!(seen, [(0, "anna", true, true), (1, "ben", true, false)]);
        let names = |party: &Party| {
            let presence = party.clients[0].session.presence();
            let name = |player| presence.name(player).map(str::to_owned);
            let here = presence.here().iter().map(name);
            let listed = presence.players().map(name);
            (Vec::from_iter(here), Vec::from_iter(listed))
        };
        let both = vec![Some("anna".to_owned()), Some("ben".to_owned())];
        assert_eq!(names(&party), (both.clone(), both.clone()), "in the lobby");
        let presence = party.clients[0].session.presence();
        assert_eq!(presence.link(PlayerId(1)), None);
        assert_eq!(presence.link(PlayerId(255)), None, "no such player");
        assert_eq!(party.stage(ben), Some(SessionStage::Lobby));
        assert_eq!(
            party.clients[ben].session.seats(),
            [twinstep_core::PlayerId(1)]
        );
        party.clients[ben].session.ready(true);
        let took = party.until_it_runs();
        assert!(took < 2 * SECOND, "{took:?}");
        party.run(5 * SECOND);
        assert_eq!(party.came(), [0, 0], "all join in the first frame");
        assert!(party.clients.iter().all(|client| client.joined));
        assert!(party.clients[0].session.lobby().is_none());
        assert_eq!(names(&party), (both.clone(), both), "in the match");
        party.check_equal();
    }
}

// A referee that admits only requests of the first player, who hosts the game.
struct FirstDecides;

impl Referee<Isle> for FirstDecides {
    fn admit(
        &mut self,
        _: &HookContext<'_, Isle>,
        _: PlayerId,
        _: &twinstep_core::Never,
        _: bool,
    ) -> Admission {
        Admission::Admitted
    }

    fn admit_request(
        &mut self,
        _: &HookContext<'_, Isle>,
        by: PlayerId,
        _: MatchRequest,
    ) -> Admission {
        (by == PlayerId(0)).into()
    }
}

fn refused(request: MatchRequest, why: CommandRefusal) -> Event {
    Event::RequestRefused { request, why }
}

#[test]
fn a_player_in_the_lobby_starts_the_match_if_the_referee_admits_it() {
    // Row 82. A player without access to the server starts the match, if the referee admits it.
    for policies in modes(StartWhen::HostSays) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        for identity in ["anna", "ben"] {
            party.come(identity, LinkProfile::BAD, holder(&map));
        }
        let start = MatchRequest::Start;
        let asked = party.clients[0].session.request(0, start);
        assert!(asked.is_err(), "it does not know a lobby yet: {asked:?}");
        party.run(2 * SECOND);
        party.clients[0].session.request(0, start).unwrap();
        assert!(party.clients[0].session.request(1, start).is_err());
        party.run(2 * SECOND);
        let by_default = refused(start, CommandRefusal::Referee(0));
        assert_eq!(party.clients[0].events, std::slice::from_ref(&by_default));
        assert!(party.waits() && party.clients[1].events.is_empty());

        party.match_.set_referee(FirstDecides);
        party.clients[1].session.request(0, start).unwrap();
        party.run(2 * SECOND);
        assert_eq!(party.clients[1].events, [by_default]);
        // A decided request is not repeated after a reconnect, when the referee might decide differently.
        party.redial(0, LinkProfile::WAN, true);
        party.run(2 * SECOND);
        assert!(party.waits());
        party.ready();
        party.clients[0].session.request(0, start).unwrap();
        party.until_it_runs();
        party.run(5 * SECOND);
        let by = Some(PlayerId(0));
        let started = Event::Request { by, request: start };
        for client in &party.clients {
            assert_eq!(client.events.last(), Some(&started), "{}", client.identity);
        }
        assert_eq!(party.came(), [0, 0]);
        party.check_equal();
        party.clients[0].session.request(0, start).unwrap();
        party.run(2 * SECOND);
        let again = refused(start, CommandRefusal::Unavailable);
        assert_eq!(party.clients[0].events.last(), Some(&again));
    }
}

#[test]
fn a_flood_of_start_requests_is_cut_off_and_disturbs_no_other_guest() {
    let map = Map::new("isle", 100);
    let mut party = Party::new(action(), map.clone());
    party.match_ = {
        let policies = MatchConfig {
            start_when: StartWhen::HostSays,
            ..action()
        };
        let start = Isle::default();
        Match::new(policies, start, Arc::new(map.clone()), no_queries()).unwrap()
    };
    for identity in ["anna", "ben"] {
        party.come(identity, LinkProfile::LAN, holder(&map));
    }
    party.run(2 * SECOND);
    for _ in 0..400 {
        let asked = party.clients[1].session.request(0, MatchRequest::Start);
        asked.unwrap();
        party.run(party.step);
    }
    let stats = party.match_.stats();
    assert!(stats.requests_refused > 60, "{stats:?}");
    let of_referee = refused(MatchRequest::Start, CommandRefusal::Referee(0));
    let requests = &party.clients[1].events;
    let asked = requests.iter().filter(|event| **event == of_referee);
    assert_eq!(asked.count(), 20, "in ten seconds");
    let too_many = refused(MatchRequest::Start, CommandRefusal::Bounds);
    assert!(requests.contains(&too_many));
    party.match_.set_referee(FirstDecides);
    party.clients[0]
        .session
        .request(0, MatchRequest::Start)
        .unwrap();
    party.until_it_runs();
    party.run(5 * SECOND);
    party.check_equal();
}

// A lobby, a pause and a crash in one match.
#[test]
fn a_match_started_by_a_player_is_paused_and_resumed_like_any_other() {
    for policies in modes(StartWhen::HostSays) {
        let map = Arc::new(Map::new("isle", 100));
        let mut party = Party::new(policies, (*map).clone());
        party.match_.set_referee(FirstDecides);
        for identity in ["anna", "ben"] {
            party.come(identity, LinkProfile::WAN, holder(&map));
        }
        party.run(2 * SECOND);
        let pause = party.clients[0].session.request(0, MatchRequest::Pause);
        assert!(pause.is_err(), "nothing runs yet");
        // The host can neither save a match that has not started, nor start it twice.
        assert!(party.match_.request(MatchRequest::Save).is_err());
        party.match_.request(MatchRequest::Start).unwrap();
        assert!(party.match_.request(MatchRequest::Start).is_err());
        party.until_it_runs();
        party.run(3 * SECOND);
        let ask = |party: &mut Party, request| {
            party.clients[0].session.request(0, request).unwrap();
            party.run(2 * SECOND);
        };
        ask(&mut party, MatchRequest::Pause);
        let paused = party.tick();
        assert!(party.match_.is_paused());
        party.run(60 * SECOND);
        party.crash(map);
        party.match_.set_referee(FirstDecides);
        party.run(8 * SECOND);
        assert!(party.match_.is_paused());
        assert_eq!(party.tick(), paused);
        ask(&mut party, MatchRequest::Resume);
        party.run(3 * SECOND);
        assert!(party.tick() > paused + 20);
        party.check_equal();
    }
}

// Owners join the lobby of a saved match in any order, may leave and rejoin it, and lose nothing.
#[test]
fn a_saved_match_resumes_from_a_lobby() {
    // Rows 82 and 83.
    for policies in modes(StartWhen::Players(3)) {
        let map = Arc::new(Map::new("isle", 100));
        let link = LinkProfile::WAN;
        let at_once = MatchConfig {
            start_when: StartWhen::Immediately,
            ..policies.clone()
        };
        let mut first = Party::new(at_once, (*map).clone());
        for identity in ["anna", "ben"] {
            first.come(identity, link, holder(&map));
            first.run(3 * SECOND);
        }
        let save = first.match_.save().unwrap();
        let loaded = Match::load(policies.clone(), &save, map.clone(), no_queries(), None);
        let mut party = Party::of(policies, loaded.unwrap());
        let saved_at = party.tick();
        let chosen = party.match_.choose(Isle::default(), map.clone());
        assert!(matches!(chosen, Err(MatchStartError::Loaded)), "{chosen:?}");
        let ben = party.come("ben", link, holder(&map));
        party.run(2 * SECOND);
        assert_eq!(party.clients[ben].session.seats(), [PlayerId(1)]);
        party.clients[ben].session.leave();
        party.run(20 * SECOND);
        party.clients.clear();
        for (identity, seat) in [("carl", 2), ("ben", 1), ("anna", 0)] {
            assert!(party.match_.lobby().is_some() && party.tick() == saved_at);
            let client = party.come(identity, link, taker());
            party.run(2 * SECOND);
            assert_eq!(party.clients[client].session.seats(), [PlayerId(seat)]);
            party.ready();
        }
        party.run(5 * SECOND);
        assert!(party.match_.lobby().is_none() && party.tick() > saved_at + 40);
        party.check_equal();
        let came = party.came();
        assert_eq!((came.len(), came[2]), (3, saved_at.0), "Carl alone is new");
        party.crash(map);
        party.run(8 * SECOND);
        party.check_equal();
        assert_eq!(party.match_.seat_holders().count(), 3);
    }
}

#[test]
fn clients_of_a_killed_server_return_to_the_lobby_of_its_save() {
    for policies in modes(StartWhen::Players(2)) {
        let map = Arc::new(Map::new("isle", 100));
        let link = LinkProfile::WAN;
        let at_once = MatchConfig {
            start_when: StartWhen::Immediately,
            ..policies.clone()
        };
        let mut party = Party::new(at_once, (*map).clone());
        for identity in ["anna", "ben"] {
            party.come(identity, link, holder(&map));
            party.run(3 * SECOND);
        }
        let save = party.match_.save().unwrap();
        party.run(5 * SECOND);
        let loaded = Match::load(policies, &save, map, no_queries(), None);
        party.match_ = loaded.unwrap();
        let saved_at = party.tick();
        // Ben returns first, over two paths.
        for client in [1, 1, 0] {
            party.redial(client, link, false);
            party.run(2 * SECOND);
            let session = &party.clients[client].session;
            let lobby = session.lobby().expect("it is in the lobby");
            assert!(lobby.players.iter().all(|player| !player.ready));
            assert_eq!(session.seats(), [PlayerId(client as u8)]);
        }
        party.run(20 * SECOND);
        assert_eq!(party.tick(), saved_at);
        party.ready();
        party.run(5 * SECOND);
        assert!(party.match_.lobby().is_none() && party.tick() > saved_at + 40);
        let in_lobby = |client: &Client| client.session.lobby().is_some();
        assert!(!party.clients.iter().any(in_lobby));
        party.check_equal();
    }
}

#[test]
fn a_loaded_match_started_by_its_host_does_not_wait_for_absent_owners() {
    for policies in modes(StartWhen::HostSays) {
        let map = Arc::new(Map::new("isle", 100));
        let link = LinkProfile::WAN;
        let at_once = MatchConfig {
            start_when: StartWhen::Immediately,
            ..policies.clone()
        };
        let mut first = Party::new(at_once, (*map).clone());
        for identity in ["anna", "ben"] {
            first.come(identity, link, holder(&map));
            first.run(3 * SECOND);
        }
        let save = first.match_.save().unwrap();
        let loaded = Match::load(policies.clone(), &save, map.clone(), no_queries(), None);
        let mut party = Party::of(policies, loaded.unwrap());
        let saved_at = party.tick();
        party.come("anna", link, holder(&map));
        party.run(2 * SECOND);
        assert!(party.match_.start());
        party.run(SECOND);
        let ran = party.tick() - saved_at;
        assert!(ran >= 10, "{ran} ticks in the second after the start");
        // Ben is late, and gets the saved player back.
        let ben = party.come("ben", link, holder(&map));
        party.run(4 * SECOND);
        assert_eq!(party.clients[ben].session.seats(), [PlayerId(1)]);
        party.check_equal();
    }
}

// A seat is kept free for each identity until the start, however many others come first.
#[test]
fn a_match_that_waits_for_identities_reserves_their_seats() {
    let awaited = vec!["anna".to_owned(), "ben".to_owned(), "cleo".to_owned()];
    for policies in modes(StartWhen::Identities(awaited)) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        for identity in ["stranger", "cleo", "anna"] {
            party.come(identity, LinkProfile::LAN, holder(&map));
            party.ready();
            party.run(SECOND);
        }
        assert_eq!(party.dial("another").unwrap_err(), CloseCode::Full);
        assert!(party.waits(), "Ben is missing");
        assert_eq!(party.match_.free_seats(), 0);
        party.come("ben", LinkProfile::LAN, holder(&map));
        party.ready();
        party.until_it_runs();
        party.run(3 * SECOND);
        assert_eq!(party.came(), [0, 0, 0, 0]);
        party.check_equal();
    }
}

#[test]
fn the_host_starts_a_match_before_all_are_ready() {
    for policies in modes(StartWhen::HostSays) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        party.come("anna", LinkProfile::WAN, holder(&map));
        party.come("ben", LinkProfile::WAN, holder(&map));
        party.clients[0].session.ready(true);
        party.run(20 * SECOND);
        assert!(party.waits());
        assert!(party.match_.start());
        assert!(!party.match_.start(), "it has started");
        let (none, chosen) = (Isle::default(), Arc::new(Map::new("other", 9)));
        let chosen = party.match_.choose(none, chosen);
        assert!(matches!(chosen, Err(MatchStartError::Started)));
        party.until_it_runs();
        party.run(5 * SECOND);
        assert_eq!(party.came(), [0, 0], "Ben was not ready, and plays");
        party.check_equal();
    }
}

// Finding R8.
#[test]
fn the_hosts_notice_pause_and_speed_apply_in_a_lobby() {
    for policies in modes(StartWhen::HostSays) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        for identity in ["anna", "ben"] {
            party.come(identity, LinkProfile::WAN, holder(&map));
        }
        party.run(2 * SECOND);
        assert_eq!(party.match_.notify("we start at nine"), 2);
        let (slow, pause) = (MatchRequest::Tick(100 * MS), MatchRequest::Pause);
        for request in [slow, pause] {
            party.match_.request(request).unwrap();
        }
        party.run(2 * SECOND);
        let by_host = |request| Event::Request { by: None, request };
        let notice = Event::Notice("we start at nine".to_owned());
        for client in &party.clients {
            assert_eq!(
                client.events,
                [notice.clone(), by_host(slow), by_host(pause)]
            );
        }
        party.ready();
        party.match_.start();
        party.run(5 * SECOND);
        assert!(party.match_.is_paused());
        let paused_at = party.tick();
        party.run(2 * SECOND);
        assert_eq!(party.tick(), paused_at);
        party.match_.request(MatchRequest::Resume).unwrap();
        party.run(5 * SECOND);
        let ticks = party.tick() - paused_at;
        // Lockstep seals up to two turns of three ticks ahead.
        assert!((45..=56).contains(&ticks), "{ticks}");
        party.check_equal();
    }
}

/// Rows 26 and 82: a common start. Guests without rules get the largest map, chosen in the lobby, and play with it.
#[test]
fn guests_without_rules_get_a_chosen_map_and_play_to_equal_digests() {
    for (n, link) in [LinkProfile::WAN, LinkProfile::BAD].into_iter().enumerate() {
        for policies in modes(StartWhen::Players(3)) {
            let mut party = Party::new(policies, Map::new("first", 100));
            for identity in ["anna", "ben", "cleo"] {
                party.come(identity, link, taker());
            }
            party.run(3 * SECOND);
            let chosen = Map::largest("second");
            party
                .match_
                .choose(Isle::default(), Arc::new(chosen.clone()))
                .unwrap();
            party.run(2 * SECOND);
            for client in &mut party.clients {
                assert_eq!(client.session.lobby().map(|lobby| lobby.choice), Some(2));
                client.session.ready(true);
            }
            let took = party.until_it_runs();
            assert!(took < (6 + 12 * n as u32) * SECOND, "{took:?}");
            party.run(10 * SECOND);
            assert_eq!(party.came(), [0, 0, 0]);
            party.check_equal();
            for client in &party.clients {
                assert_eq!(client.session.rules().map(|rules| &**rules), Some(&chosen));
                let bulk = party.match_.bytes_down(client.id).unwrap().bulk;
                assert!(bulk < 800_000 * (1 + n as u64), "compressed, once: {bulk}");
            }
        }
    }
}

/// Row 82: the first turn follows from the round trips of all, measured in the lobby. A client that is alone in the
/// lobby knows only its own round trip.
#[test]
fn the_first_turn_is_as_long_as_the_longest_round_trip() {
    let map = Map::new("isle", 100);
    let policies = MatchConfig {
        turn: TurnLength::adaptive(2, 20),
        ..modes(StartWhen::Players(3))[1].clone()
    };
    let mut party = Party::new(policies, map.clone());
    for (identity, link) in [("anna", "rtt=20"), ("ben", "rtt=60"), ("cleo", "rtt=480")] {
        party.come(identity, link.parse().unwrap(), holder(&map));
    }
    party.run(10 * SECOND);
    party.ready();
    party.until_it_runs();
    let ticks = party.match_.world().turn().cadence.turn_ticks;
    assert!(
        (9..=12).contains(&ticks),
        "480 ms and frames, in ticks of 50 ms: {ticks}"
    );
    party.run(10 * SECOND);
    party.check_equal();
}

#[test]
fn a_new_choice_reaches_guests_still_loading_the_old_one_and_resets_readiness() {
    let mut party = Party::new(modes(StartWhen::Players(2))[0].clone(), Map::largest("one"));
    party.come("anna", LinkProfile::WAN, taker());
    party.come("ben", LinkProfile::WAN, taker());
    party.ready();
    party.run(700 * MS);
    assert!(party.clients[0].session.rules().is_none(), "under way");
    for name in ["four", "of them", "at last"] {
        let map = Arc::new(Map::new(name, 1_000));
        party.match_.choose(Isle::default(), map).unwrap();
        party.run(300 * MS);
    }
    party.run(10 * SECOND);
    assert!(party.waits(), "ready for another map is not ready");
    let lobby = party.match_.lobby().unwrap();
    assert!(lobby.players.iter().all(|p| p.has_rules && !p.ready));
    party.ready();
    party.until_it_runs();
    party.run(3 * SECOND);
    party.check_equal();
    assert_eq!(party.clients[1].session.rules().unwrap().name, "at last");
}

// A client that already has the chosen rules is not sent any of them. A client that has different rules and does not
// accept new ones is refused, at its hello or when the host chooses later.
#[test]
fn rules_are_sent_only_to_clients_that_lack_and_accept_them() {
    let (one, two) = (Map::largest("one"), Map::largest("second"));
    let mut party = Party::new(modes(StartWhen::HostSays)[0].clone(), one.clone());
    let has = party.come("anna", LinkProfile::LAN, holder(&one));
    let takes = party.come("ben", LinkProfile::LAN, holder(&two).takes_rules());
    let stays = party.come("cleo", LinkProfile::LAN, holder(&two));
    party.run(4 * SECOND);
    let wrong = Some(SessionEnd::Server(CloseCode::WrongRules));
    assert_eq!(party.clients[stays].session.closed(), wrong);
    let bulk = |party: &Party, at: usize| party.match_.bytes_down(party.clients[at].id);
    assert!(bulk(&party, has).unwrap().bulk < 2_000);
    assert!(bulk(&party, takes).unwrap().bulk > 400_000);
    // Ben had the second map once, but has the first now.
    party.match_.choose(Isle::default(), Arc::new(two)).unwrap();
    party.run(4 * SECOND);
    assert_eq!(party.clients[has].session.closed(), wrong);
    assert_eq!(party.clients[takes].session.rules().unwrap().name, "second");
    party
        .clients
        .retain(|client| client.session.closed().is_none());
    party.match_.start();
    party.until_it_runs();
    party.run(3 * SECOND);
    party.check_equal();
}

#[test]
fn a_late_joiner_gets_the_rules_with_its_world() {
    for start_when in [StartWhen::Players(1), StartWhen::Immediately] {
        for policies in modes(start_when) {
            let map = Map::largest("isle");
            let mut party = Party::new(policies, map.clone());
            party.come("anna", LinkProfile::LAN, holder(&map));
            party.ready();
            party.run(5 * SECOND);
            let late = party.come("ben", LinkProfile::WAN, taker());
            party.run(10 * SECOND);
            assert_eq!(party.stage(late), Some(SessionStage::Playing));
            party.check_equal();
            // The client now has the rules, and reconnects with its world.
            party.redial(late, LinkProfile::WAN, true);
            party.run(5 * SECOND);
            let bulk = party
                .match_
                .bytes_down(party.clients[late].id)
                .unwrap()
                .bulk;
            assert!(bulk < 2_000, "{bulk}");
            party.check_equal();
        }
    }
}

// A seat is free when its session has ended by a goodbye, a kick, a lost transport, or silence.
#[test]
fn a_leaving_guest_frees_its_seat() {
    let map = Map::new("isle", 100);
    let mut party = Party::new(modes(StartWhen::HostSays)[1].clone(), map.clone());
    for identity in ["anna", "ben", "cleo", "dora"] {
        party.come(identity, LinkProfile::LAN, holder(&map));
    }
    party.run(2 * SECOND);
    assert_eq!(party.match_.free_seats(), 0);
    party.clients[0].session.leave();
    assert!(party.match_.remove_identity("ben", CloseCode::Kicked));
    party.match_.disconnect(party.clients[2].id);
    party.run(SECOND);
    assert_eq!(party.match_.free_seats(), 3);
    assert_eq!(party.dial("ben").unwrap_err(), CloseCode::Kicked);
    party.clients[3].line = SimLink::new(twinstep_rig::rig::MUTE, 1);
    party.run(12 * SECOND);
    assert_eq!(party.match_.free_seats(), 4);
    party.clients.clear();
    for identity in ["cleo", "emil"] {
        party.come(identity, LinkProfile::LAN, holder(&map));
    }
    party.run(2 * SECOND);
    party.match_.start();
    party.until_it_runs();
    party.run(3 * SECOND);
    assert_eq!(party.came(), [0, 0]);
    party.check_equal();
}

// A hostile client that repeatedly reconnects and requests the rules gets them as rarely as a world.
#[test]
fn a_hundred_reconnects_get_the_rules_rarely_and_change_no_seat() {
    let mut party = Party::new(modes(StartWhen::HostSays)[0].clone(), Map::largest("isle"));
    party.come("anna", LinkProfile::LAN, taker());
    let again = party.come("ben", LinkProfile::LAN, taker());
    for n in 0..100 {
        party.run(100 * MS);
        let identity = party.clients[again].identity.clone();
        if n % 2 == 0 {
            party.match_.disconnect(party.clients[again].id);
        }
        let id = party.dial(&identity).unwrap();
        party.clients[again].id = id;
        party.clients[again].line = SimLink::new(LinkProfile::LAN, id.0);
        // A new process does not have the rules.
        party.clients[again].session = Session::new(taker()).unwrap();
    }
    let bytes = party.match_.bytes_down_to("ben").bulk;
    assert!(bytes < 3 * 600_000, "three times in ten seconds: {bytes}");
    party.run(8 * SECOND);
    let lobby = party.match_.lobby().unwrap();
    let seats: Vec<u8> = lobby.players.iter().map(|p| p.player.0).collect();
    assert_eq!(seats, [0, 1]);
    assert!(lobby.players.iter().all(|p| p.has_rules));
    party.match_.start();
    party.until_it_runs();
    party.run(3 * SECOND);
    party.check_equal();
}

// No player is dropped or charged during an hour in the lobby, and the match sends few bytes.
#[test]
fn an_hour_in_the_lobby_over_bad_links_loses_no_guest() {
    for policies in modes(StartWhen::Players(3)) {
        let map = Map::new("isle", 100);
        let mut party = Party::new(policies, map.clone());
        for identity in ["anna", "ben", "cleo"] {
            party.come(identity, LinkProfile::BAD, holder(&map));
        }
        party.clients[0].session.ready(true);
        party.step = 100 * MS;
        party.run(1_800 * SECOND);
        party.redial(1, LinkProfile::BAD, false);
        party.run(1_800 * SECOND);
        assert!(party.waits());
        assert_eq!(party.match_.lobby().unwrap().players.len(), 3);
        let bytes = party.match_.bytes_down_to("anna").total();
        assert!(bytes < 3_600 * 400, "{} B/s", bytes / 3_600);
        party.step = 20 * MS;
        party.ready();
        party.until_it_runs();
        party.run(5 * SECOND);
        assert_eq!(party.came(), [0, 0, 0]);
        party.check_equal();
        for player in 0..3 {
            let stats = party.match_.seat_stats(twinstep_core::PlayerId(player));
            assert!(stats.waited < SECOND, "{:?}", stats.waited);
        }
        assert!(party.match_.stats().slipped < SECOND);
    }
}

// A guest with a connection that is too slow for its world does not keep the others from playing.
#[test]
fn the_first_tick_waits_for_worlds_only_for_a_bounded_time() {
    let map = Map::new("isle", 100);
    let mut party = Party::new(modes(StartWhen::HostSays)[0].clone(), map.clone());
    party.come("anna", LinkProfile::LAN, holder(&map));
    let mute = party.come("ben", LinkProfile::LAN, holder(&map));
    party.run(2 * SECOND);
    party.clients[mute].line = SimLink::new(twinstep_rig::rig::DEAF, 1);
    party.match_.start();
    let took = party.until_it_runs();
    assert!(took > SECOND && took < 31 * SECOND, "{took:?}");
    party.clients.truncate(1);
    party.run(3 * SECOND);
    party.check_equal();
}

// Law Journal first. A crash before the start loses only the lobby; the journal starts with the chosen rules.
#[test]
fn the_journal_starts_with_the_match_and_has_the_chosen_rules() {
    for policies in modes(StartWhen::Players(2)) {
        let mut party = Party::new(policies, Map::new("first", 100));
        party.come("anna", LinkProfile::WAN, taker());
        party.come("ben", LinkProfile::WAN, taker());
        party.run(3 * SECOND);
        let chosen = Map::new("second", 50_000);
        let rules = Arc::new(chosen.clone());
        party.match_.choose(Isle::default(), rules.clone()).unwrap();
        party.run(3 * SECOND);
        assert!(party.journal.is_empty(), "nothing was played");
        party.ready();
        party.until_it_runs();
        party.run(5 * SECOND);
        let mut replay = Replay::<Isle>::open(&party.journal, &chosen).unwrap();
        assert_eq!(replay.world().tick(), Tick(0));
        assert!(replay.verify().fault.is_none());
        drop(replay);
        // Another server resumes the match without a lobby.
        party.crash(rules);
        party.run(8 * SECOND);
        assert_eq!(party.came(), [0, 0]);
        party.check_equal();
    }
}

// Law Hostile wire: rules of a hostile server.
#[test]
fn damaged_oversized_or_mismatched_rules_end_the_session() {
    let good = twinstep_protocol::lobby::pack_rules(&Map::new("isle", 100), 7).unwrap();
    let cut = good[..good.len() / 2].to_vec();
    for message in [good.to_vec(), cut, vec![1; 8], Vec::new()] {
        let mut session = Session::<Isle>::new(taker()).unwrap();
        let mut link = twinstep_protocol::link::LinkState::default();
        let mut lane = twinstep_protocol::lane::LaneSender::new(1 << 20);
        lane.push(twinstep_protocol::packet::message::RULES, message.into())
            .unwrap();
        let mut chunk = [0; twinstep_protocol::lane::FRAME_BYTES_MAX];
        while let Some(len) = lane.poll(Duration::ZERO, MS, &mut chunk) {
            let mut bytes = [0; PACKET_BYTES_MAX];
            let mut packet = twinstep_protocol::wire::Writer::new(&mut bytes);
            twinstep_protocol::packet::chunk::write_down(
                Duration::ZERO,
                &mut link,
                &chunk[..len],
                &mut packet,
            )
            .unwrap();
            let len = packet.len();
            session.handle(Duration::ZERO, &bytes[..len]);
        }
        assert_eq!(session.closed(), Some(SessionEnd::UnreadableRules));
    }
}

#[test]
fn a_match_waits_for_at_most_as_many_players_as_it_has_seats() {
    for (start_when, awaited) in [
        (StartWhen::Players(0), 0),
        (StartWhen::Players(5), 5),
        (StartWhen::Identities(Vec::new()), 0),
    ] {
        let policies = MatchConfig {
            start_when,
            ..action()
        };
        let seats = 4;
        assert_eq!(
            policies.check(),
            Err(ConfigError::StartWhen { awaited, seats })
        );
    }
    let mut party = Party::new(modes(StartWhen::HostSays)[0].clone(), Map::new("isle", 9));
    let map = Arc::new(Map::new("isle", RULES_BYTES_MAX));
    let chosen = party.match_.choose(Isle::default(), map);
    let Err(MatchStartError::RulesTooLarge { bytes }) = chosen else {
        panic!("{chosen:?}");
    };
    assert!(bytes > RULES_BYTES_MAX);
    assert_eq!(
        party.match_.lobby().unwrap().choice,
        1,
        "the old choice stays"
    );
}
