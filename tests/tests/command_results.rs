//! Each command has a result that its owner receives: executed once, or refused, even after an absence, a crash or a
//! removal.

use std::time::Duration;

use twinstep_client::Event;
use twinstep_core::PlayerId;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::world::Presence;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::{Command, History};
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::Admission;
use twinstep_server::config::SealWhen;
use twinstep_server::{HookContext, Referee};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// The server keeps accepted commands, and the client resends unacknowledged ones. The rig checks that each command
/// runs once.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn commands_run_once_and_in_order_despite_many_reconnects() {
    for seed in 0..6 {
        let mut rig = Rig::<History>::new(RigConfig::new(seed, LinkProfile::WAN));
        rig.run(6 * SECOND);
        for round in 0..12 {
            let client = round % 4;
            rig.cut(client);
            rig.run((100 + 300 * (round as u32 % 7)) * MS);
            rig.redial(client);
            rig.run(400 * MS);
        }
        rig.converge();
        let ran: u64 = (0..4).map(|i| rig.stats(i).commands_executed).sum();
        assert!(ran > 20, "{ran} commands");
        let returns: usize = (0..4).map(|i| rig.returns(i).0).sum();
        assert_eq!(returns, 12, "seed {seed}: all by frames");
    }
}

struct Never;

impl Referee<History> for Never {
    fn admit(
        &mut self,
        _: &HookContext<'_, History>,
        _: PlayerId,
        _: &Command,
        _: bool,
    ) -> Admission {
        Admission::Refused(7)
    }
}

/// The referee refuses a command while the owner is away: the server holds the command when the session ends, and
/// judges it at the tick of the command. The owner learns of the refusal when it reconnects.
#[test]
fn a_reconnecting_client_gets_the_refusals_it_missed() {
    let mut rig = Rig::<History>::new(RigConfig::new(5, "rtt=100".parse().unwrap()));
    rig.command(false);
    rig.run(4 * SECOND);
    rig.match_.set_referee(Never);
    let before = rig.stats(0).commands_refused;
    let mut away = 0;
    // The session ends while the command is in flight, held or sealed.
    for frames in 0..12 {
        let command = Command::Note(900 + frames);
        rig.clients[0].session.command(0, command).expect("a seat");
        rig.run(15 * MS * frames);
        rig.cut(0);
        rig.hang_up(0);
        rig.run(300 * MS);
        let refused = rig.stats(0).commands_refused;
        rig.redial(0);
        rig.run(2 * SECOND);
        away += u64::from(rig.stats(0).commands_refused > refused);
        assert_eq!(
            rig.stats(0).commands_refused - before,
            u64::from(frames) + 1,
            "the fate of a command that was given {frames} frames before its session ended is not reported"
        );
    }
    assert!(away > 2, "only {away} were refused without a session");
    let why = |event: &Event| match event {
        Event::CommandRefused { why, .. } => Some(*why),
        _ => None,
    };
    let whys: Vec<_> = rig.clients[0].events.iter().filter_map(why).collect();
    assert_eq!(whys, [CommandRefusal::Referee(7); 12]);
}

/// A journal does not contain refusals, so a resumed match does not know of them. But the owner sees that a later
/// command ran, and a player's commands run in order.
#[test]
fn a_refusal_lost_in_a_crash_is_inferred_from_later_commands() {
    let (refused, admitted) = (
        |n: u32| Command::Note(3 + 17 * n),
        |n: u32| Command::Note(4 + 17 * n),
    );
    let mut rig = Rig::<History>::new(RigConfig::new(6, "rtt=100".parse().unwrap()));
    rig.command(false);
    rig.run(4 * SECOND);
    let events = |rig: &Rig<History>| {
        let reported = |event: &&Event| matches!(event, Event::CommandRefused { .. });
        rig.clients[0].events.iter().filter(reported).count() as u64
    };
    for n in 0..6 {
        let session = &mut rig.clients[0].session;
        session.command(0, refused(900 + n)).expect("a seat");
        session.command(0, admitted(900 + n)).expect("a seat");
        // The command is still held when the transport dies, and its turn is sealed before the server is killed.
        rig.run(15 * MS * (2 + n));
        rig.cut(0);
        rig.run(500 * MS);
        rig.crash(100 * MS);
        for client in 0..4 {
            rig.redial(client);
        }
        rig.run(3 * SECOND);
        let stats = rig.stats(0);
        let fates = (
            stats.commands_executed,
            stats.commands_refused,
            events(&rig),
        );
        let each = u64::from(n) + 1;
        assert_eq!(fates, (each, each, each), "after {n} kills");
    }
}

/// A match that waits for all removes a player that is silent for too long, and refuses its commands for the turn with
/// the missing batch. When the client reconnects as the same player, it gets that result, whether or not its session
/// had ended before.
#[test]
fn commands_of_a_client_removed_while_away_are_refused_when_it_reconnects() {
    for hung_up in [false, true] {
        let mut config = RigConfig::strategy(7, LinkProfile::LAN);
        config.input_pattern = InputPattern::Still;
        config.policies.sealing = SealWhen::WaitForAll {
            kick_after: 2 * SECOND,
        };
        let mut rig = Rig::<History>::new(config);
        rig.run(5 * SECOND);
        let now = rig.now;
        let client = &mut rig.clients[1];
        let (peer, session) = (client.peer(), &mut client.session);
        let player = session.seats()[0];
        let seq = session.command(0, Command::Note(5)).expect("a seat");
        let mut packet = [0; PACKET_BYTES_MAX];
        let len = session.poll_transmit(now, &mut packet);
        let packet = &packet[..len.expect("it leaves at once")];
        rig.deliver(peer, packet);
        rig.cut(1);
        if hung_up {
            rig.hang_up(1);
        }
        rig.run(4 * SECOND);
        assert_eq!(rig.match_.world().presence(player), Presence::Absent);
        // The client is barred for 30 s.
        rig.run(30 * SECOND);
        rig.redial(1);
        rig.until_it_plays(1);
        rig.run(SECOND);
        assert_eq!(rig.clients[1].session.seats(), [player]);
        let why = CommandRefusal::TooLate;
        let refused = Event::CommandRefused { seat: 0, seq, why };
        let reported = rig.clients[1].events.iter().filter(|e| **e == refused);
        assert_eq!(reported.count(), 1, "hung up: {hung_up}");
        assert!(rig.match_.world().sim().log.is_empty(), "it ran");
        let next = rig.clients[1].session.command(0, Command::Note(6));
        assert_eq!(next, Ok(seq + 1));
        rig.run(SECOND);
        assert_eq!(rig.stats(1).commands_executed, 1);
    }
}

/// After a power loss, a server resumes from an older world. Claims of undone ticks are dropped, so a player may
/// immediately make a claim in the new ticks.
#[test]
fn claims_are_dropped_with_the_ticks_undone_by_a_crash() {
    let mut claims = 0;
    for seed in 50..54 {
        let mut rig = Rig::<History>::new(RigConfig::new(seed, "rtt=200".parse().unwrap()));
        rig.command(false);
        rig.run(7 * SECOND);
        let kept = rig.journal.len();
        rig.run(20 * SECOND);
        // Until the clients are back, the server does not know their confirmed states.
        (0..4).for_each(|client| rig.flip_excuse(client));
        rig.lose_power(kept);
        (0..4).for_each(|client| rig.redial(client));
        rig.run(3 * SECOND);
        for client in &mut rig.clients {
            client.flipped = false;
        }
        rig.run(9 * SECOND);
        assert_eq!(rig.match_.stats().malformed, 0, "seed {seed}");
        assert!(rig.all_play(), "seed {seed}");
        let seats = (0..4).map(|n| rig.match_.seat_stats(PlayerId(n)).claims);
        claims += seats.sum::<u64>();
        rig.converge();
    }
    assert!(
        claims > 10,
        "only {claims} claims in ticks that were new once more"
    );
}
