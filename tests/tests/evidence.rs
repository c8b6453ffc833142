//! Desync reports contain evidence: the tick, the field, and the side at fault.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::bounds::{PACKET_BYTES_MAX, REPORT_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec;
use twinstep_core::testing::doc::Counter;
use twinstep_core::world::World;
use twinstep_core::{Effects, Frame, Simulation, Tick};
use twinstep_protocol::lane::{self, LaneReceiver, LaneSender};
use twinstep_protocol::link::{LINK_BYTES, LinkState};
use twinstep_protocol::packet::{DownKind, Parts, RareUp, UpKind, UpPart, chunk, message};
use twinstep_protocol::replay::{Replay, ReplayError};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_protocol::wire::Writer;
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::game_types;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::Folded;
use twinstep_server::config::TurnLength;
use twinstep_server::{Match, MatchConfig, Output, SessionId, Trouble};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_diverged_client_is_reported_with_its_field_and_the_server_is_not_blamed() {
    let mut rig = Rig::<History>::new(RigConfig::new(31, LinkProfile::LAN));
    rig.run(SECOND * 15);
    rig.flip(2);
    rig.run(SECOND * 4);
    let stats = rig.match_.stats();
    assert_eq!((stats.desyncs, stats.server_faults), (1, 0));
    let reports = rig.match_.take_reports();
    assert_eq!(reports.len(), 1);
    assert!(!reports[0].server_at_fault);
    let report = rig.clients[2].desync.as_deref().expect("a report");
    assert!(
        report.starts_with("tick ") && report.contains("sim.asked: "),
        "{report}"
    );
    assert_eq!(
        reports[0].text, report,
        "the server keeps the client's word"
    );
    assert_eq!(rig.match_.take_incidents(), []);
    assert_eq!(
        (rig.stats(2).heals, rig.stats(0).heals),
        (1, 0),
        "others play on"
    );
    rig.converge();
}

/// Finding A3-2: a client diverges again while the server's world for the first difference is in flight. The reports of
/// both sides name the field, and the first world is compared.
#[test]
fn a_client_diverging_again_immediately_is_reported_with_its_field() {
    let mut rig = Rig::<History>::new(RigConfig::new(36, "rtt=120".parse().unwrap()));
    rig.run(SECOND * 15);
    rig.flip(2);
    let (mut waited, flipped_at) = (0, rig.match_.stats().desyncs);
    while rig.stats(2).heals == 0 {
        rig.run(Duration::from_millis(1));
        waited += 1;
        assert!(waited < 5_000, "it is healed");
    }
    assert!(rig.match_.stats().desyncs > flipped_at && rig.clients[2].desync.is_none());
    rig.flip(2);
    rig.run(SECOND * 14);
    assert_eq!(rig.stats(2).heals, 2);
    let reported = rig.clients[2].desync.clone().expect("a report");
    assert!(reported.contains("asked"), "{reported}");
    let reports = rig.match_.take_reports();
    assert!(!reports.is_empty());
    for report in reports {
        assert!(report.text.contains("asked"), "{}", report.text);
    }
}

#[test]
fn a_server_diverging_from_its_own_journal_is_reported_at_fault() {
    let mut rig = Rig::<History>::new(RigConfig::new(32, LinkProfile::LAN));
    rig.run(SECOND * 15);
    rig.match_.corrupt().asked ^= 1;
    for client in 0..4 {
        rig.flip_excuse(client);
    }
    rig.observe(false);
    rig.run(SECOND * 5);
    let stats = rig.match_.stats();
    assert!(stats.desyncs > 0);
    assert!(stats.server_faults > 0, "{stats:?}");
    let reports = rig.match_.take_reports();
    assert!(
        reports.iter().any(|report| report.server_at_fault),
        "{reports:?}"
    );
    let incidents = rig.match_.take_incidents();
    let ours = incidents
        .iter()
        .filter(|i| i.trouble == Trouble::ServerDiffers);
    assert!(ours.count() > 0, "{incidents:?}");
}

#[test]
fn evidence_for_any_tick_comes_from_the_journal() {
    let mut rig = Rig::<History>::new(RigConfig::new(33, LinkProfile::LAN));
    rig.run(SECOND * 30);
    let (rules, _) = rig.match_.origin();
    let index = || rig.match_.last_worlds();
    let end = rig.match_.world().tick();
    for back in [2, 64, 65, 600, 1_500] {
        let tick = end.back(back);
        let folded = Folded::compute::<History>(&rig.journal, &rules, index(), tick).unwrap();
        assert_eq!(
            (folded.tick, Some(folded.digest)),
            (tick, rig.match_.digest_at(tick))
        );
    }
    let beyond = Folded::compute::<History>(&rig.journal, &rules, index(), end + 1_000).unwrap();
    assert!(beyond.tick <= end, "it reports its last tick");
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Leaky {
    ticks: u32,
    favourite: u32,
}

impl Simulation for Leaky {
    game_types!("leaky");

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.ticks += 1;
        if self.ticks == 100 {
            #[expect(clippy::disallowed_types, reason = "the bug that is planted")]
            let crowd: std::collections::HashSet<u32> = (0..1_000).collect();
            self.favourite = crowd.iter().next().copied().unwrap_or_default();
        }
    }
}

/// Row 54: undeclared nondeterminism, here a hash map's order, is reported with its tick and field.
#[test]
fn a_planted_hash_map_order_is_reported_with_tick_and_field() {
    let mut table = Direct::<Leaky>::of(MatchConfig::action(), Leaky::default(), []);
    table.match_.keep_journal().unwrap();
    table.run(1_000, |_, _| 0);
    let (rules, _) = table.match_.origin();
    let mut replay = Replay::<Leaky>::open(&table.journal, &rules).unwrap();
    let verified = replay.verify();
    let Some(ReplayError::Differs { tick, agreed, .. }) = verified.fault else {
        panic!("{:?}", verified.fault);
    };
    // The step from tick 99 to 100 is the cause.
    assert!(
        agreed.0 <= 99 && 100 <= tick.0 && tick - agreed <= 60,
        "{agreed} to {tick}"
    );
    let fields: Vec<&str> = verified.fields.iter().map(|d| d.path.as_str()).collect();
    assert_eq!(fields, ["sim.favourite"]);
}

/// A session floods the match with unrequested reports: they are counted, but not kept.
#[test]
fn an_unrequested_report_is_dropped_and_counted() {
    let mut rig = Rig::<History>::new(RigConfig::new(34, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let (peer, rtt) = (SessionId(9_999), Duration::from_millis(200));
    rig.connect(peer, "flooder", 1).unwrap();
    let (mut link, mut lane) = (LinkState::default(), LaneSender::new(REPORT_BYTES_MAX));
    for n in 0..8_u8 {
        lane.push(message::REPORT, Arc::from([b'a' + n; 5]))
            .unwrap();
    }
    let mut now = rig.now;
    for _ in 0..400 {
        now += Duration::from_millis(10);
        let mut chunk = [0; lane::FRAME_BYTES_MAX];
        let Some(len) = lane.poll(now, rtt, &mut chunk) else {
            continue;
        };
        let mut bytes = [0; 1_200];
        let mut packet = Writer::new(&mut bytes);
        chunk::write_up(now, &mut link, &chunk[..len], &mut packet).unwrap();
        let written = packet.len();
        rig.match_.handle(now, peer, &bytes[..written]);
    }
    let stats = rig.match_.stats();
    assert!(stats.reports_dropped > 0, "they arrived, and were decoded");
    assert_eq!(stats.malformed, 0);
    assert_eq!(rig.match_.take_report(), None);
}

/// Reports a desync, and requests evidence for the tick `ticks_into_turn` after the first tick of the newest turn.
/// Returns the tick of the evidence, and the turn's first tick.
fn evidence_of(ticks_into_turn: u32) -> (Option<Tick>, Tick) {
    let config = MatchConfig {
        turn: TurnLength::Fixed(8),
        ..MatchConfig::action()
    };
    let mut match_ = Match::new(config, Counter::default(), Arc::new(()), no_queries()).unwrap();
    let mallory = SessionId(0);
    match_
        .connect(Duration::ZERO, mallory, "mallory", 1)
        .unwrap();
    let mut session = Session::<Counter>::new(SessionConfig::new(Arc::new(()))).unwrap();
    let mut lane = LaneReceiver::new(WORLD_BYTES_MAX);
    let (mut asked, mut began) = (Vec::new(), Tick(0));
    let mut buffer = [0; PACKET_BYTES_MAX];
    for frame in 1..=400 {
        let now = SECOND * frame / 60;
        // The input changes, because a resting client would write a packet part that this test writes itself.
        session.advance(now, 64, |_| frame as u8).unwrap();
        while let Some(len) = session.poll_transmit(now, &mut buffer) {
            let mut packet = buffer[..len].to_vec();
            let (kind, parts) = UpKind::read(packet[0]).unwrap();
            let world = match_.world();
            let is_due = asked.len() == 1 || world.tick() - world.turn().began == 4;
            if frame > 200 && kind == UpKind::Play && !parts.has(UpPart::Rare) && is_due {
                let rare = match asked.len() {
                    0 => RareUp::Heal,
                    1 => RareUp::Evidence,
                    _ => continue,
                };
                if asked.is_empty() {
                    began = world.turn().began;
                }
                packet[0] = kind.head(parts.with(UpPart::Rare));
                let mut more = [0; 5];
                let mut out = Writer::new(&mut more);
                out.u8(Parts::default().with(rare).bits()).unwrap();
                out.u32((began + ticks_into_turn).0).unwrap();
                packet.extend_from_slice(&more);
                asked.push(rare);
            }
            match_.handle(now, mallory, &packet);
        }
        match_.advance(now);
        while let Some(output) = match_.poll() {
            let Output::Packet { bytes, .. } = output else {
                continue;
            };
            session.handle(now, bytes);
            if matches!(DownKind::read(bytes[0]), Ok((DownKind::Lane, _))) {
                lane.handle(&bytes[1 + LINK_BYTES..]).unwrap();
            }
        }
        while let Ok(Some(reported)) = lane.poll_message() {
            if reported.kind == message::EVIDENCE {
                let world: World<Counter> = codec::decode_whole(&reported.bytes).unwrap();
                return (Some(world.tick()), began);
            }
        }
    }
    assert_eq!((asked.len(), match_.stats().malformed), (2, 0));
    (None, began)
}

/// Finding K22: evidence for a tick in the middle of a turn revealed a world that was not written yet.
#[test]
fn a_mid_turn_tick_has_no_evidence() {
    let (shown, began) = evidence_of(0);
    assert_eq!(shown, Some(began));
    assert_eq!(evidence_of(2).0, None);
}

/// Finding O3-10: four heals of one player counted as four desyncs, and triggered an alarm meant for several players.
#[test]
fn repeated_desyncs_of_a_player_count_as_one() {
    let mut rig = Rig::<History>::new(RigConfig::new(34, LinkProfile::LAN));
    rig.run(SECOND * 5);
    for heal in 1..=3 {
        rig.flip(2);
        rig.run(SECOND * 12);
        assert_eq!(rig.stats(2).heals, heal);
    }
    rig.flip(1);
    rig.run(SECOND * 12);
    let stats = rig.match_.stats();
    assert_eq!((stats.desyncs, stats.heals), (2, 4), "two players");
}
