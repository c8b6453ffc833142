//! Savings on lossless links: inputs and frames in flight are not sent again, and a client whose inputs do not change
//! skips packets. The tests check the savings, and that play gets no worse because of them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::{Controls, Effects, Frame, Never, Simulation};
use twinstep_protocol::packet::{ByteCounts, Parts, RareUp, UpKind, UpPart};
use twinstep_protocol::simnet::{LegProfile, LinkProfile};
use twinstep_rig::direct::{Direct, Heavy};
use twinstep_rig::game_types;
use twinstep_rig::history::History;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::MatchConfig;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn world(link: &str, input_pattern: InputPattern) -> Rig<History> {
    let mut config = RigConfig::new(3, link.parse().expect("a link"));
    config.input_pattern = input_pattern;
    config.verify = false;
    let mut rig = Rig::new(config);
    rig.run(15 * SECOND);
    assert!(rig.all_play());
    rig
}

fn ten_seconds(rig: &mut Rig<History>) -> (ByteCounts, ByteCounts) {
    let before = (rig.stats(0).up, rig.bytes_down(0));
    rig.run(10 * SECOND);
    (rig.stats(0).up - before.0, rig.bytes_down(0) - before.1)
}

#[test]
fn a_client_with_steady_controls_sends_half_of_the_packets_and_misses_no_tick() {
    for link in ["lan", "rtt=40", "rtt=53", "rtt=100", "rtt=267"] {
        let mut rig = world(link, InputPattern::Still);
        let (fills, before) = (rig.match_.stats().fills, rig.stats(0));
        let (up, _) = ten_seconds(&mut rig);
        assert!((290..=330).contains(&up.packets), "{link}: {}", up.packets);
        assert_eq!(rig.match_.stats().fills, fills, "{link}");
        let stats = rig.stats(0);
        assert_eq!(stats.fills, before.fills, "{link}");
        // Resting does not make inputs later: the margin equals the margin of a client that sends every tick.
        let mut busy = world(link, InputPattern::Analog);
        ten_seconds(&mut busy);
        let busy = busy.stats(0);
        assert_eq!(
            stats.margin_ticks_target, busy.margin_ticks_target,
            "{link}"
        );
        assert!(
            stats.lead_ticks_mean <= busy.lead_ticks_mean + 0.1,
            "{link}"
        );
        let (ours, theirs) = (rig.stats(0).margin_ticks_now, busy.margin_ticks_now);
        assert!((ours - theirs).abs() < 0.3, "{link}: {ours}, {theirs}");
        rig.converge();
    }
}

#[test]
fn a_client_with_changing_inputs_or_a_bad_link_sends_every_tick() {
    for (link, input_pattern) in [
        ("rtt=100", InputPattern::Analog),
        ("wan", InputPattern::Still),
        ("bad", InputPattern::Still),
        ("awful", InputPattern::Still),
    ] {
        let (up, _) = ten_seconds(&mut world(link, input_pattern));
        assert!((570..=630).contains(&up.packets), "{link}: {}", up.packets);
    }
}

#[test]
fn inputs_and_frames_in_flight_are_not_repeated() {
    let (up, down) = ten_seconds(&mut world("rtt=267", InputPattern::Analog));
    let (short_up, short_down) = ten_seconds(&mut world("rtt=100", InputPattern::Analog));
    let each = |bytes: u64, packets: u64| bytes as f64 / packets as f64;
    let (long, short) = (
        each(up.inputs, up.packets),
        each(short_up.inputs, short_up.packets),
    );
    println!("up {long:.1} B of inputs a packet over the long way, {short:.1} over the short one");
    // With repeats it would be twice as much. A packet has at least six inputs.
    assert!(long <= short * 1.3, "{long} B, {short} over the short way");
    assert!(long >= 6.0, "{long} B");
    let (long, short) = (
        each(down.inputs, down.packets),
        each(short_down.inputs, short_down.packets),
    );
    println!("down {long:.1} B, {short:.1}");
    assert!(long <= short * 1.4, "{long} B, {short} over the short way");
    assert!(long >= short * 0.8, "{long} B, {short} over the short way");
}

/// On a lossy link each packet repeats all unacknowledged frames: a lost frame arrives with the next packet.
#[test]
fn a_client_losing_packets_is_resent_every_frame_until_it_acknowledges() {
    let inputs = |link: &str| {
        let (_, down) = ten_seconds(&mut world(link, InputPattern::Analog));
        down.inputs as f64 / down.packets as f64
    };
    let (clean, lossy) = (inputs("rtt=267"), inputs("rtt=267,loss=2"));
    println!("{clean:.1} B of inputs a packet, {lossy:.1} where some are lost");
    assert!(lossy >= clean * 1.4, "{lossy} B, {clean} without loss");
}

/// The link is down while the server is frozen. The server has sealed no tick in that time, and the first packet that
/// arrives afterwards contains all lost inputs.
#[test]
fn packets_lost_during_a_server_stall_are_resent_in_time() {
    for (rtt, outage) in [(100, 60), (100, 240), (267, 120), (267, 480)] {
        let link = format!("rtt={rtt}");
        let mut rig = world(&link, InputPattern::Analog);
        rig.observe(false);
        // The server resumes when the first packets after the outage have arrived.
        rig.stall(rig.now + MS(20 + outage + rtt / 2 + 50));
        rig.run(MS(20));
        let fills = rig.match_.stats().fills;
        for client in 0..4 {
            rig.relink(client, LinkProfile::both(LegProfile::BLACKOUT));
        }
        rig.run(MS(outage));
        for client in 0..4 {
            rig.relink(client, link.parse().unwrap());
        }
        rig.run(SECOND);
        let lost = rig.match_.stats().fills - fills;
        println!("{rtt} ms, {outage} ms of outage: {lost} inputs of 4 clients were missing");
        assert_eq!(lost, 0, "{rtt} ms, {outage} ms of outage");
        rig.run(SECOND);
        rig.converge();
    }
}

/// A burst of downstream loss on a link that was lossless before: no client pauses, and the confirmed tick soon catches
/// up.
#[test]
fn a_client_recovers_from_a_burst_of_loss_on_a_clean_link() {
    for (rtt, burst) in [(100, 120), (267, 150), (267, 240), (400, 380)] {
        let link = format!("rtt={rtt}");
        let mut rig = world(&link, InputPattern::Analog);
        rig.observe(false);
        let behind = |rig: &Rig<History>| rig.match_.world().tick().0 - rig.stats(0).authority_tick;
        let (before, was) = (rig.stats(0), behind(&rig));
        let clean: LinkProfile = link.parse().unwrap();
        let down = LegProfile::BLACKOUT;
        rig.relink(0, LinkProfile { down, ..clean });
        rig.run(MS(burst));
        rig.relink(0, clean);
        // A lost frame is sent again immediately or, if it has been sent often, when the client reports it as missing.
        rig.run(MS(2 * rtt + 120));
        let is = behind(&rig);
        println!("{rtt} ms there and back, {burst} ms lost: {was} ticks behind before, {is} after");
        assert!(is <= was + 4, "{is} ticks behind, {was} before");
        assert_eq!(rig.stats(0).stall_ms, before.stall_ms);
        assert_eq!(rig.stats(0).heals, 0);
        rig.run(SECOND);
        rig.converge();
    }
}

fn table() -> Direct<Heavy> {
    let config = || {
        let mut config = SessionConfig::new(Arc::new(()));
        config.verify = false;
        config
    };
    let sessions = vec![config(), config()];
    let (policies, sim) = (MatchConfig::action(), Heavy::of(64));
    let mut table = Direct::of(policies, sim, sessions);
    table.run(900, |_, _| 0);
    table
}

fn packets_in_flight<S: Simulation>(table: &Direct<S>) -> usize {
    table.up.iter().filter(|(client, _)| *client == 0).count()
}

fn counted(table: &Direct<Heavy>) -> u8 {
    table.match_.world().sim().byte(0)
}

#[test]
fn a_changed_input_is_sent_immediately_and_arrives_in_time() {
    let mut silent = 0;
    for phase in 0..4 {
        let mut table = table();
        table.run(phase, |_, _| 0);
        // Counts the phases in which a resting client sends nothing in this frame.
        table.frame(|_, _| 0);
        silent += usize::from(packets_in_flight(&table) == 0);
        table.serve();
        let (fills, before) = (table.match_.stats().fills, counted(&table));
        for press in 0..5 {
            table.frame(|client, _| u8::from(client == 0));
            assert_eq!(
                packets_in_flight(&table),
                1,
                "phase {phase}, tick {press} of the press"
            );
            table.serve();
        }
        table.run(60, |_, _| 0);
        assert_eq!(counted(&table) - before, 5, "phase {phase}");
        assert_eq!(table.match_.stats().fills, fills, "phase {phase}");
    }
    assert_eq!(silent, 2, "it sends at every second tick");
}

#[test]
fn a_changed_input_in_a_lost_packet_is_repeated_in_the_next_one() {
    for phase in 0..4 {
        let mut table = table();
        table.run(phase, |_, _| 0);
        let before = counted(&table);
        for press in 0..5 {
            table.frame(|client, _| u8::from(client == 0));
            assert_eq!(packets_in_flight(&table), 1);
            if press == 0 {
                table.up.clear();
            }
            table.serve();
        }
        table.run(60, |_, _| 0);
        assert_eq!(counted(&table) - before, 5, "phase {phase}");
    }
}

/// After a tick of rest, packets arrive late. That tick is sealed with the held input before they arrive. It does not
/// count as a missing input, but the ticks after it do.
#[test]
fn a_skipped_send_does_not_count_as_a_missing_input() {
    let mut sealed_before = 0;
    for late_frames in 1..=5 {
        let mut table = table();
        let server = table.match_.stats().fills;
        let client = table.sessions[0].stats().fills;
        // Runs up to a resting frame of the first client.
        loop {
            table.frame(|_, _| 0);
            let is_silent = packets_in_flight(&table) == 0;
            table.serve();
            if is_silent {
                break;
            }
        }
        let mut late = Vec::new();
        for _ in 0..late_frames {
            table.frame(|_, _| 0);
            let (theirs, others) = table.up.drain(..).partition(|(client, _)| *client == 0);
            table.up = others;
            late.extend::<Vec<_>>(theirs);
            table.serve();
        }
        table.up.append(&mut late);
        table.serve();
        table.run(30, |_, _| 0);
        let sealed = table.sessions[0].stats().fills - client;
        let missing = table.match_.stats().fills - server;
        println!("{late_frames} late: {sealed} sealed before they arrived, {missing} missing");
        assert_eq!(missing, sealed.saturating_sub(1), "{late_frames} late");
        sealed_before += sealed;
    }
    assert!(sealed_before > 0, "no packet was late enough");
}

/// A server that does not receive an input for a tick must know that this is intended.
#[test]
fn a_client_rests_only_after_announcing_it() {
    let mut rig = world("rtt=150", InputPattern::Sticky);
    let packets = rig.record(10 * SECOND).up;
    // From the header of a `Play`: the last tick of its inputs, and the flag that its client rests.
    let reported = packets.iter().filter_map(|packet| {
        let (kind, parts) = UpKind::read(packet[0]).expect("a packet");
        if kind != UpKind::Play || !parts.has(UpPart::Inputs) {
            return None;
        }
        let wanted = u16::from_le_bytes([packet[6], packet[7]]);
        let end = wanted.wrapping_add(u16::from(packet[10]) + u16::from(packet[11]));
        let rests = Parts::default().with(RareUp::Rests).bits();
        let rests = parts.has(UpPart::Rare) && packet.last().is_some_and(|last| last & rests != 0);
        Some((end, rests))
    });
    let reported: Vec<(u16, bool)> = reported.collect();
    let mut silences = 0;
    for pair in reported.windows(2) {
        let ((end, rests), (next, _)) = (pair[0], pair[1]);
        let ticks = next.wrapping_sub(end);
        let is_meant = ticks == 1 || ticks == 2 && rests;
        assert!(is_meant, "{ticks} ticks after {end}, rests: {rests}");
        silences += u32::from(ticks == 2);
    }
    assert!(
        silences >= 20,
        "{silences} silences in {} packets",
        reported.len()
    );
}

/// Controls that the server resets as soon as an input is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Springs(u8);

impl Controls for Springs {
    fn repeat(&self, _: u32) -> Self {
        Springs(0)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Springy(u32);

impl Simulation for Springy {
    game_types!("springy", (), Springs, Never, Never, Never, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += frame
            .inputs()
            .map(|(_, held)| u32::from(held.0))
            .sum::<u32>();
    }
}

#[test]
fn a_client_does_not_rest_if_a_fill_would_change_its_input() {
    for (held, frames_silent) in [(0, 30), (1, 0)] {
        let config = SessionConfig::new(Arc::new(()));
        let mut table: Direct<Springy> =
            Direct::of(MatchConfig::action(), Springy::default(), [config]);
        let hold = |_: usize, _: &Session<Springy>| Springs(held);
        table.run(900, hold);
        let mut silent = 0;
        for _ in 0..60 {
            table.frame(hold);
            silent += usize::from(packets_in_flight(&table) == 0);
            table.serve();
        }
        assert_eq!(silent, frames_silent, "held: {held}");
    }
}
