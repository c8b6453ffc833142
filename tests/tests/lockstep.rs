//! Lockstep with a command delay: turns, batches and waits, as in Return to the Roots and Stone Monarch.

use std::time::Duration;

use twinstep_client::SessionEnd;
use twinstep_core::{PlayerId, PlayerSet, Presence, Tick};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LegProfile, LinkProfile};
use twinstep_rig::history::{Command, History};
use twinstep_rig::rig::{DEAF, InputPattern, MUTE, Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::{ConfigError, SealWhen, TurnLength};

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn config(seed: u64, link: LinkProfile, m: u8) -> RigConfig {
    let mut config = RigConfig::strategy(seed, link);
    config.policies.command_delay = m;
    config
}

fn quiet(seed: u64, link: LinkProfile, m: u8) -> Rig<History> {
    let mut config = config(seed, link, m);
    config.input_pattern = InputPattern::Still;
    let mut rig = Rig::new(config);
    rig.run(SECOND * 5);
    assert!(rig.all_play());
    rig
}

fn both(delay_ms: u64) -> LinkProfile {
    LinkProfile::both(LegProfile {
        delay: MS(delay_ms),
        ..LegProfile::PERFECT
    })
}

fn turn(rig: &Rig<History>) -> u32 {
    rig.match_.world().turn().number
}

/// Row 8: the match stops at the turn with the missing batch, and every client sees the missing player.
#[test]
fn the_match_waits_for_a_missing_batch_and_reports_its_player() {
    let mut rig = quiet(3, LinkProfile::LAN, 2);
    let silent = rig.clients[2].session.seats()[0];
    rig.relink(2, MUTE);
    rig.run(SECOND);
    let stopped = turn(&rig);
    rig.run(SECOND * 3);
    assert_eq!(turn(&rig), stopped, "it went on without a batch");
    let only: PlayerSet = [silent].into_iter().collect();
    assert_eq!(rig.match_.waiting(), only);
    assert_eq!(
        rig.clients[0].session.waiting(),
        only,
        "clients do not see the wait"
    );
    assert!(rig.match_.seat_stats(silent).awaited > 0);
    rig.relink(2, LinkProfile::LAN);
    rig.run(SECOND * 2);
    assert!(turn(&rig) > stopped + 10);
    assert_eq!(rig.match_.waiting(), PlayerSet::default());
    rig.converge();
}

/// A client whose state differs does not run turns, so it does not close batches, and the match waits for it. The heal
/// is a world that is ahead: the client never runs the turns in between, but must close their batches.
#[test]
fn the_wait_for_a_healing_client_is_bounded() {
    let mut rig = quiet(17, LinkProfile::WAN, 2);
    rig.flip(1);
    rig.run(SECOND * 3);
    assert_eq!(rig.stats(1).heals, 1);
    // A second difference within ten seconds is healed late. By then the match has sealed all turns for which it has
    // batches, and waits.
    rig.flip(1);
    rig.run(SECOND * 3);
    let differing = rig.clients[1].session.seats()[0];
    assert!(rig.match_.waiting().contains(differing));
    rig.run(SECOND * 8);
    assert_eq!(rig.stats(1).heals, 2);
    let healed = turn(&rig);
    rig.run(SECOND * 5);
    assert!(
        turn(&rig) > healed + 25,
        "the match stopped at {}",
        turn(&rig)
    );
    rig.converge();
}

/// Row 9: an idle player sends an empty batch for every turn, which is not the same as a missing batch.
#[test]
fn an_idle_player_does_not_count_as_missing() {
    let mut rig = quiet(4, LinkProfile::LAN, 2);
    let before = turn(&rig);
    rig.watch(SECOND * 10, |rig| {
        assert_eq!(rig.match_.waiting(), PlayerSet::default());
    });
    // Ten seconds of 150 ms turns, without a command.
    assert!((65..=67).contains(&(turn(&rig) - before)));
    assert!(rig.match_.world().sim().log.is_empty());
}

/// Rows 11, 41 and 75: a command issued before turn n runs is sent immediately and runs in turn n + m, not earlier. The
/// owner's client also runs it only with the server's turn.
#[test]
fn a_command_runs_m_turns_after_its_batch_is_closed() {
    for m in 1..=4u8 {
        let mut rig = quiet(5, LinkProfile::LAN, m);
        let now = rig.now;
        let client = &mut rig.clients[0];
        let at = client.session.authority().expect("it plays");
        let (next, me) = (at.turn(), client.session.seats()[0]);
        let closes = next.number + u32::from(at.tick() > next.began);
        client
            .session
            .command(0, Command::Note(777))
            .expect("it plays");
        let mut buffer = [0; 1_200];
        let sent = client.session.poll_transmit(now, &mut buffer);
        let sent = sent.expect("row 41: it leaves in its own frame");
        client.place.line.up.send(now, &buffer[..sent]);
        rig.run(SECOND * 3);
        let log = &rig.match_.world().sim().log;
        let [(ran, player, Command::Note(777))] = log[..] else {
            panic!("expected one note, got {log:?}");
        };
        assert_eq!(player, me);
        assert_eq!(ran, Tick((closes + u32::from(m)) * 3), "m = {m}");
    }
}

/// Row 75: a client runs its own command only when it receives the command in the server's turn.
#[test]
fn a_clients_own_command_does_not_run_before_the_servers_turn() {
    let mut rig = quiet(6, LinkProfile::LAN, 2);
    rig.relink(0, DEAF);
    rig.clients[0]
        .session
        .command(0, Command::Note(1))
        .expect("it plays");
    rig.run(SECOND * 2);
    let own = rig.clients[0].session.authority().expect("it plays");
    assert!(own.sim().log.is_empty(), "it ran from its own copy");
    let others = rig.clients[1].session.authority().expect("it plays");
    let ran = |log: &[(Tick, PlayerId, Command)]| log.iter().any(|c| c.2 == Command::Note(1));
    // The server waits for a batch that the owner cannot close, but it has received the command.
    assert!(ran(&others.sim().log) || ran(&rig.match_.world().sim().log));
    rig.relink(0, LinkProfile::LAN);
    rig.run(SECOND * 2);
    let own = rig.clients[0].session.authority().expect("it plays");
    assert!(ran(&own.sim().log));
}

/// Row 12: the command delay never changes during a match.
#[test]
fn a_different_command_delay_is_refused_during_a_match() {
    let mut rig = quiet(7, LinkProfile::LAN, 2);
    let other = MatchConfig {
        command_delay: 3,
        ..rig.match_.config().clone()
    };
    let refused = rig.match_.reconfigure(other);
    assert_eq!(refused, Err(ConfigError::Fixed("the command delay")));
    assert_eq!(rig.match_.config().command_delay, 2);
}

/// Rows 13 and 17: at most m of a player's batches wait at the server, and at most m sealed turns at a client. While no
/// packet is late, a client always has the next turn.
#[test]
fn queues_are_bounded_by_the_delay_and_never_empty() {
    for m in 1..=4u8 {
        let mut rig = Rig::<History>::new(config(8, LinkProfile::LAN, m));
        rig.run(SECOND * 5);
        let (mut most_up, mut most_down) = (0, 0);
        rig.watch(SECOND * 10, |rig| {
            for client in &rig.clients {
                let up = rig.match_.open_batches(client.session.seats()[0]);
                let down = client.session.turns_ahead().expect("lockstep");
                most_up = most_up.max(up);
                most_down = most_down.max(down);
                assert!(down >= 1, "no turn to continue with");
            }
        });
        assert!(most_up <= u32::from(m), "{most_up} batches at m = {m}");
        // The running turn also counts.
        assert!(most_down <= u32::from(m) + 1, "{most_down} at m = {m}");
        assert_eq!(rig.stats(0).late_turns, 0);
    }
}

/// Row 13: if one client does not receive packets while the others continue, m sealed turns of each player are on the
/// way to it, and m more batches wait at the server. No player ever has more orders in flight.
#[test]
fn a_player_has_at_most_two_command_delays_of_orders_in_flight() {
    for m in 1..=4u8 {
        let mut rig = quiet(8, LinkProfile::PERFECT, m);
        rig.relink(0, DEAF);
        let mut most = 0;
        rig.watch(SECOND * 5, |rig| {
            let deaf = rig.clients[0].session.authority().expect("it plays");
            let other = rig.clients[1].session.seats()[0];
            // The turn that the deaf client has started is no longer in flight.
            let began = deaf.turn().number + u32::from(deaf.tick() > deaf.turn().began);
            let sealed = turn(rig) - began;
            most = most.max(sealed + rig.match_.open_batches(other));
        });
        assert_eq!(most, 2 * u32::from(m), "m = {m}");
    }
}

/// Row 16: turn n + m is sealed when turn n is due, on a schedule without drift: always the same time after a client
/// started turn n. The two directions share the slack of m turns, so on a perfect link that time is half of the slack.
#[test]
fn turn_n_plus_m_is_sealed_when_turn_n_is_due() {
    for m in 1..=4u8 {
        let mut config = config(9, LinkProfile::PERFECT, m);
        (config.input_pattern, config.fps) = (InputPattern::Still, 500);
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 10);
        let at = |rig: &Rig<History>| {
            let running = rig.clients[0].session.authority().expect("it plays");
            let begun = u32::from(running.tick() > running.turn().began);
            (turn(rig), running.turn().number + begun)
        };
        let (mut sealed, mut begun) = (Vec::new(), Vec::new());
        let (first, mut last) = (at(&rig), at(&rig));
        rig.watch(SECOND * 6, |rig| {
            let now = at(rig);
            assert!(now.0 <= last.0 + 1 && now.1 <= last.1 + 1, "one at a time");
            sealed.extend((now.0 > last.0).then_some(rig.now));
            begun.extend((now.1 > last.1).then_some(rig.now));
            last = now;
        });
        let turns = sealed.len() as u32 - 1;
        let off = (sealed[turns as usize] - sealed[0]).abs_diff(MS(150) * turns);
        assert!(off < MS(6), "{off:?} off in {turns} turns");
        // `sealed[0]` is turn `first.0`, and `begun[0]` is turn `first.1`.
        for (i, began) in begun.iter().enumerate() {
            let n = first.1 + i as u32;
            let Some(i) = (n + u32::from(m)).checked_sub(first.0) else {
                continue;
            };
            let Some(sealed) = sealed.get(i as usize) else {
                break;
            };
            let after = sealed.saturating_sub(*began);
            let slack = MS(75) * u32::from(m);
            assert!(after.abs_diff(slack) < MS(15), "m = {m}: {after:?}");
        }
    }
}

/// Row 18: a new length of ticks and turns takes effect at the same turn for all clients.
#[test]
fn a_new_cadence_starts_at_the_same_turn_for_all() {
    let mut rig = quiet(10, LinkProfile::WAN, 2);
    let slower = MatchConfig {
        tick: MS(80),
        turn: TurnLength::Fixed(5),
        ..rig.match_.config().clone()
    };
    rig.match_
        .reconfigure(slower)
        .expect("it may change in play");
    let mut began = [None; 4];
    rig.watch(SECOND * 5, |rig| {
        for (i, client) in rig.clients.iter().enumerate() {
            let turn = client.session.authority().expect("it plays").turn();
            if turn.cadence.turn_ticks == 5 && began[i].is_none() {
                assert_eq!(turn.cadence.tick(), MS(80));
                began[i] = Some((turn.number, turn.began));
            }
        }
    });
    assert!(began[0].is_some() && began.iter().all(|b| *b == began[0]));
    rig.converge();
}

/// Row 21: m turns are sealed without a batch of a joining player: the turn in which the player joins, and the m − 1
/// turns after it, for which the server supplies empty batches. Then the match waits for the player.
#[test]
fn a_joiner_gets_empty_batches_for_its_first_turns() {
    for m in 1..=4u8 {
        let mut config = config(11, LinkProfile::PERFECT, m);
        config.clients = 1;
        config.input_pattern = InputPattern::Still;
        let mut rig = Rig::<History>::new(config);
        let mut joined = None;
        rig.watch(SECOND * 5, |rig| {
            let world = rig.match_.world();
            if joined.is_none() && world.presence(PlayerId(0)) == Presence::Present {
                // The turn with the roster change has just been sealed.
                joined = Some(world.turn().number - 1);
                rig.relink(0, MUTE);
            }
        });
        let joined = joined.expect("it joins");
        assert_eq!(turn(&rig), joined + u32::from(m), "m = {m}");
        assert!(rig.match_.waiting().contains(PlayerId(0)));
        rig.relink(0, LinkProfile::PERFECT);
        rig.run(SECOND);
        assert!(turn(&rig) > joined + u32::from(m));
    }
}

/// Row 22: a player that is silent for too long is removed, and the other players continue at the tick at which they
/// stopped.
#[test]
fn a_player_silent_for_too_long_is_removed_and_the_match_continues() {
    let mut config = config(12, LinkProfile::LAN, 2);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 2,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let silent = rig.clients[1].session.seats()[0];
    rig.relink(1, MUTE);
    rig.run(SECOND);
    let stopped = rig.match_.world().tick();
    rig.run(SECOND);
    assert_eq!(rig.match_.world().tick(), stopped);
    rig.run(SECOND * 2);
    assert!(rig.match_.world().tick() > stopped + 10);
    assert_eq!(rig.match_.world().presence(silent), Presence::Absent);
    assert_eq!(
        rig.clients[1].session.closed(),
        Some(SessionEnd::Server(CloseCode::TooSlow)),
        "it reads why"
    );
    rig.clients.remove(1);
    rig.converge();
}

/// Rows 30 and 91: in lockstep, too, players join and leave at any turn without a pause for the others, whether turns
/// are sealed at a deadline or when all batches have arrived.
#[test]
fn guests_come_and_go_in_lockstep_without_a_pause_for_the_others() {
    for (waits, rtt_ms) in [(true, 60), (true, 200), (false, 60), (false, 200)] {
        let mut config = RigConfig::strategy(13, both(rtt_ms / 2));
        config.clients = 2;
        if !waits {
            config.policies.sealing = SealWhen::Deadline;
        }
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 6);
        let seen =
            |rig: &Rig<History>| [0, 1].map(|i| (rig.stats(i).late_turns, rig.stats(i).paused_ms));
        let before = seen(&rig);
        for n in 0..8 {
            let guest = rig.join(&format!("guest {n}"));
            let mut players = PlayerSet::default();
            rig.watch(MS(1_300 + 37 * n), |rig| {
                players = rig.clients[guest].session.seats().iter().copied().collect();
                let is_awaited = players.iter().any(|p| rig.match_.waiting().contains(p));
                assert!(!is_awaited, "{rtt_ms} ms: the match waits for {players:?}");
            });
            let is_in = |p| rig.match_.world().presence(p) == Presence::Present;
            assert!(!players.is_empty() && players.iter().all(is_in));
            rig.leave(guest);
            rig.watch(MS(211), |rig| {
                let is_awaited = players.iter().any(|p| rig.match_.waiting().contains(p));
                assert!(
                    !is_awaited,
                    "{rtt_ms} ms: the match waits for {players:?}, who left"
                );
            });
        }
        assert_eq!(seen(&rig), before, "waits for all: {waits}, {rtt_ms} ms");
        rig.converge();
    }
}

/// Row 42: a command that the server receives while turn 1 plays is sealed and sent when turn 2 is due, and runs in
/// turn 3 (m = 1, sealed by deadline).
#[test]
fn a_command_of_one_turn_is_sent_in_the_next_and_runs_in_the_third() {
    let mut config = config(13, LinkProfile::PERFECT, 1);
    config.policies.sealing = SealWhen::Deadline;
    config.input_pattern = InputPattern::Still;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    // Wait for the middle of a turn.
    let mut given = None;
    rig.watch(SECOND, |rig| {
        let session = &mut rig.clients[0].session;
        let at = session.authority().expect("it plays");
        if given.is_none() && at.tick() == at.turn().began + 1 {
            given = Some(at.turn().number);
            session.command(0, Command::Note(9)).expect("it plays");
        }
    });
    rig.run(SECOND);
    let (ran, ..) = rig.match_.world().sim().log[0];
    assert_eq!(ran.0 / 3, given.expect("a turn has a middle") + 2);
}

/// Row 43: a late turn pauses its client for as long as it is late, give or take a frame, and no other client.
#[test]
fn a_late_turn_pauses_only_the_clients_still_waiting_for_it() {
    let frame = MS(17);
    for extra in [160, 200, 250, 400] {
        let mut config = config(14, LinkProfile::LAN, 1);
        config.policies.sealing = SealWhen::Deadline;
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 5);
        // Every packet to the first client now takes longer.
        let slow = LinkProfile {
            down: LegProfile {
                delay: MS(extra),
                fifo: true,
                ..LegProfile::PERFECT
            },
            ..LinkProfile::LAN
        };
        rig.relink(0, slow);
        let (mut at, mut ran_at) = (rig.clients[0].session.authority().unwrap().tick(), rig.now);
        let mut whole_at = rig.now;
        let (mut gap, mut late) = (Duration::ZERO, Duration::ZERO);
        rig.watch(SECOND, |rig| {
            let session = &rig.clients[0].session;
            if session.turns_ahead().unwrap() > 0 && whole_at < ran_at {
                whole_at = rig.now;
            }
            let tick = session.authority().unwrap().tick();
            if tick != at {
                let this = rig.now - ran_at;
                if this > gap && tick == at + 1 {
                    gap = this;
                    late = whole_at.saturating_sub(ran_at + MS(50));
                }
                (at, ran_at) = (tick, rig.now);
            }
        });
        let stats = rig.stats(0);
        assert!(stats.late_turns >= 1, "no turn was late by {extra} ms");
        let stood = gap - MS(50);
        assert!(
            stood.abs_diff(late) <= frame,
            "late by {late:?}, paused {stood:?}"
        );
        let reported = Duration::from_secs_f64(stats.pause_ms_max / 1e3);
        assert!(
            stood.abs_diff(reported) <= frame,
            "paused {stood:?}, reported {reported:?}"
        );
        for other in 1..4 {
            assert_eq!(rig.stats(other).late_turns, 0);
            assert_eq!(rig.stats(other).paused_ms, 0.0);
        }
    }
}

/// Row 74: 150 ms turns and m = 2 hide up to 150 ms in each direction, without a pause. The time until a client next
/// reads the network adds to the latency: a frame, 17 ms at 60 frames a second. So 150 ms fit only if clients read
/// continuously.
#[test]
fn one_turn_of_latency_in_each_direction_causes_no_pause() {
    for (delay, fps) in [(5, 60), (50, 60), (100, 60), (133, 60), (150, 2_000)] {
        let mut config = config(15, both(delay), 2);
        config.fps = fps;
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 6);
        let before: Vec<_> = (0..4).map(|i| rig.stats(i)).collect();
        let began = turn(&rig);
        rig.watch(SECOND * 20, |rig| {
            assert_eq!(rig.match_.world().turn().cadence.turn_ticks, 3);
        });
        for (i, before) in before.iter().enumerate() {
            let paused = rig.stats(i).paused_ms - before.paused_ms;
            assert!(paused < 1.0, "{delay} ms each way: paused {paused} ms");
        }
        assert!(turn(&rig) - began >= 132, "{} turns", turn(&rig) - began);
    }
}

/// Row 76: a 100 ms spike within a turn of slack pauses no client.
#[test]
fn a_short_latency_spike_causes_no_pause() {
    let mut rig = Rig::<History>::new(config(16, both(10), 2));
    rig.run(SECOND * 6);
    let before: Vec<_> = (0..4).map(|i| rig.stats(i).late_turns).collect();
    for leg in [0, 1] {
        let mut spike = both(10);
        let slow = if leg == 0 {
            &mut spike.up
        } else {
            &mut spike.down
        };
        slow.delay = MS(110);
        rig.relink(0, spike);
        rig.run(MS(150));
        rig.relink(0, both(10));
        rig.run(SECOND * 3);
    }
    for (i, before) in before.iter().enumerate() {
        assert_eq!(rig.stats(i).late_turns, *before, "player {i} paused");
    }
}

/// After a power loss, a server resumes at an older turn. Clients have closed batches beyond that turn, which must
/// neither count as cheating nor leave older batches open.
#[test]
fn a_lockstep_match_continues_after_a_power_loss() {
    for lost in [SECOND, SECOND * 6] {
        let mut rig = Rig::<History>::new(config(18, LinkProfile::LAN, 2));
        rig.run(SECOND * 10);
        let kept = rig.journal.len();
        rig.run(lost);
        for client in 0..4 {
            // Until the client is back, the server does not know its confirmed state.
            rig.flip_excuse(client);
        }
        rig.lose_power(kept);
        let next = turn(&rig);
        (0..4).for_each(|client| rig.redial(client));
        rig.run(SECOND * 3);
        for client in &mut rig.clients {
            client.flipped = false;
        }
        rig.run(SECOND * 5);
        assert!(rig.all_play());
        assert!(turn(&rig) > next + 30, "it stopped at {}", turn(&rig));
    }
}

/// A server process that was frozen while the match waited does not blame the missing player.
#[test]
fn a_server_stall_removes_no_player() {
    let mut rig = quiet(19, LinkProfile::LAN, 2);
    rig.relink(1, MUTE);
    rig.run(SECOND);
    assert!(!rig.match_.waiting().is_empty());
    rig.relink(1, LinkProfile::LAN);
    // Longer than the match waits for any player.
    rig.stall(rig.now + SECOND * 30);
    rig.run(SECOND * 33);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    rig.converge();
}

/// Regression: a late batch was treated as missing, so a player with a link longer than the delay was dropped, and its
/// clock was never corrected.
#[test]
fn a_player_on_a_link_longer_than_the_delay_is_present_and_its_commands_run() {
    let mut config = config(9, both(60), 1);
    config.policies.sealing = SealWhen::Deadline;
    config.policies.turn = TurnLength::Fixed(1);
    config.policies.tick = MS(20);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 4);
    let before = rig.stats(0).commands_executed;
    rig.watch(SECOND * 10, |rig| {
        for client in &rig.clients {
            for player in client.session.seats() {
                let presence = rig.match_.world().presence(*player);
                assert_eq!(presence, Presence::Present, "{player}");
            }
        }
    });
    assert!(rig.stats(0).commands_executed > before + 5);
    assert!(rig.stats(0).fills > 0, "its inputs come too late");
    // Over a link that fits into the delay every batch is in time, whenever its client started.
    let mut fits = self::config(9, both(60), 4);
    fits.policies.sealing = SealWhen::Deadline;
    fits.policies.turn = TurnLength::Fixed(1);
    fits.policies.tick = MS(50);
    let mut rig = Rig::<History>::new(fits);
    rig.run(SECOND * 6);
    // Its clock is late, as after a pause of the machine.
    rig.freeze(0, rig.now + MS(400));
    rig.run(SECOND * 6);
    let fills = rig.stats(0).fills;
    rig.run(SECOND * 10);
    assert_eq!(rig.stats(0).fills, fills);
}
