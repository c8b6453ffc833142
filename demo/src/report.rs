//! The report of a run: as JSON for programs, as text for people, and a list of faults.
//!
//! A *stall* is time in which the pace asked for a tick, but the prediction or the inputs could lead no farther. A
//! *fill* is a sealed tick whose input of this player did not reach the server in time. *Others* is the 95th percentile
//! of the distance, in player radii, between another player as drawn and that player's final position at the drawn
//! time.
//!
//! The window of the rates starts 60 ticks after the last player joined, and ends with the inputs. It covers rebuilds,
//! ticks simulated again, cancelled cues a minute, bytes and packets, and all drawn values ([`SeenReport`]). Everything
//! else is counted from the start. Bytes include IP and UDP headers; downstream bytes are counted as the server sent
//! them.

use std::fmt;
use std::time::Duration;

use powderkeg_game::PLAYER_RADIUS;
use serde::Serialize;
use twinstep_client::{PictureStats, SessionStats, TimelineStats};
use twinstep_protocol::packet::ByteCounts;

#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    pub version: &'static str,
    pub wire_version: u16,
    pub seed: u64,
    pub link: String,
    pub seconds: u32,
    // The length of the window for the rates.
    pub window_s: f64,
    /// Ticks that the server sealed, from its start until all clients were settled.
    pub ticks: u32,
    pub tick_hz: u32,
    pub turns: u64,
    pub queries: u64,
    pub outcomes: u64,
    pub commands_sent: u64,
    /// The number of commands that the server put into a frame.
    pub commands_accepted: u64,
    pub commands_refused: u64,
    /// The clients' own commands that ran in their authorities.
    pub commands_executed: u64,
    pub desyncs: u64,
    pub server_digest: String,
    pub server_tick: u32,
    pub score: u32,
    pub clients: Vec<ClientReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClientReport {
    pub player: String,
    pub authority_tick: u32,
    /// Whether the digest of the client's authority equals the server's at that tick.
    pub digest_matches: bool,
    pub rebuilds: u64,
    pub rebuilds_by_cause: RebuildCauses,
    pub resim_ticks: u64,
    /// Sealed ticks without an input of this player.
    pub fills: u64,
    pub stall_ms: f64,
    /// The time for which the local player stood still because the server had stood still.
    pub held_ms: f64,
    /// The client's ticks skipped by a clock jump.
    pub skipped_ticks: u64,
    // The part of `skipped_ticks` skipped by a leap, after inputs had come more than 12 ticks too late.
    pub leapt_ticks: u64,
    // The longest run of consecutive fills.
    pub fills_run_max: u32,
    pub clock_off_ms: f64,
    /// Time in which the prediction was shorter than requested, because of the budget.
    pub shed_ms: f64,
    /// The total lateness of `advance` calls.
    pub late_ms: f64,
    /// The mean distance from the authority to the prediction.
    pub lead_ticks_mean: f64,
    /// The mean distance from the authority to the newest input.
    pub reach_ticks_mean: f64,
    /// The tick of the newest input at the server minus the tick that the server seals next.
    pub margin_ticks_p50: i32,
    pub rtt_ms_p50: i32,
    pub seen: SeenReport,
    pub cues_cancelled_per_min: f64,
    pub cues_started: u64,
    pub cues_confirmed: u64,
    pub cues_cancelled: u64,
    pub cues_open: u64,
    pub bytes_up_per_s: f64,
    pub bytes_down_per_s: f64,
    pub packets_up_per_s: f64,
    pub packets_down_per_s: f64,
    pub bytes_up_by_kind: Kinds,
    /// Bytes that the server sent to the client per second, by purpose.
    pub bytes_down_by_kind: Kinds,
    pub returns: u64,
    /// Server silences that were long enough to redial, but ended before the dial succeeded.
    pub silences: u64,
    /// Time in which the server was silent or lost.
    pub away_ms: f64,
    /// The number of heals: desyncs after which the client continued from the server's world.
    pub heals: u64,
    /// The reason why the session ended before the end of the run; `null` if it did not.
    pub ended: Option<String>,
}

// [`PictureStats`] of one player: lengths in player radii, times in ms.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SeenReport {
    pub own_off_p50: f32,
    pub own_off_p95: f32,
    pub others_off_p50: f32,
    pub others_off_p95: f32,
    pub things_off_p50: f32,
    pub things_off_p95: f32,
    pub own_pdiff_p95: f32,
    pub others_pdiff_p95: f32,
    pub things_pdiff_p95: f32,
    // Radii a tick.
    pub jerk_p99: f32,
    // Shares of ticks, 0 to 1.
    pub too_fast: f32,
    pub standing: f32,
    pub age_ms_p50: f32,
    pub age_ms_p95: f32,
    pub key_ms_p50: f32,
    pub key_ms_p95: f32,
}

impl SeenReport {
    #[must_use]
    pub fn of(seen: &PictureStats, tick: Duration) -> SeenReport {
        let radii = |length: f32| length / PLAYER_RADIUS;
        let ms = |ticks: f32| ticks * tick.as_secs_f32() * 1e3;
        SeenReport {
            own_off_p50: radii(seen.own_off_p50),
            own_off_p95: radii(seen.own_off_p95),
            others_off_p50: radii(seen.others_off_p50),
            others_off_p95: radii(seen.others_off_p95),
            things_off_p50: radii(seen.things_off_p50),
            things_off_p95: radii(seen.things_off_p95),
            own_pdiff_p95: radii(seen.own_pdiff_p95),
            others_pdiff_p95: radii(seen.others_pdiff_p95),
            things_pdiff_p95: radii(seen.things_pdiff_p95),
            jerk_p99: radii(seen.jerk_p99),
            too_fast: seen.too_fast,
            standing: seen.standing,
            age_ms_p50: ms(seen.age_ticks_p50),
            age_ms_p95: ms(seen.age_ticks_p95),
            key_ms_p50: ms(seen.key_ticks_p50),
            key_ms_p95: ms(seen.key_ticks_p95),
        }
    }
}

/// One line about a player's connection: stalls, inputs that the server filled in, reconnects, desyncs.
#[must_use]
pub fn line_of(stats: &SessionStats) -> String {
    format!(
        "picture stood still {:.1} s; server filled in {} inputs; outages: {} ({:.1} s), reconnects: {}, desyncs: {}",
        (stats.stall_ms + stats.held_ms) / 1e3,
        stats.fills,
        stats.silences + stats.returns,
        stats.away_ms / 1e3,
        stats.returns,
        stats.heals
    )
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct RebuildCauses {
    pub roster: u64,
    pub outcome: u64,
    /// A command or claim of this session ran at a different tick.
    pub own_command: u64,
    /// A command or claim of another player.
    pub command: u64,
    pub input: u64,
    pub withheld: u64,
}

impl RebuildCauses {
    #[must_use]
    pub fn between(before: &TimelineStats, now: &TimelineStats) -> RebuildCauses {
        let inputs = |stats: &TimelineStats| stats.by_input.iter().sum::<u64>();
        RebuildCauses {
            roster: now.by_roster - before.by_roster,
            outcome: now.by_outcome - before.by_outcome,
            own_command: now.by_own_command - before.by_own_command,
            command: now.by_command - before.by_command,
            input: inputs(now) - inputs(before),
            withheld: now.by_withheld - before.by_withheld,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Kinds {
    #[serde(skip)]
    packets: f64,
    pub headers: f64,
    pub acks: f64,
    pub inputs: f64,
    pub announcements: f64,
    pub commands: f64,
    pub outcomes: f64,
    /// Worlds and other messages of the lane.
    pub bulk: f64,
}

impl Kinds {
    #[must_use]
    pub fn per_second(counts: ByteCounts, seconds: f64) -> Kinds {
        let rate = |count: u64| (count as f64 / seconds).round();
        Kinds {
            packets: rate(counts.packets),
            headers: rate(counts.headers),
            acks: rate(counts.acks),
            inputs: rate(counts.inputs),
            announcements: rate(counts.announcements),
            commands: rate(counts.commands),
            outcomes: rate(counts.outcomes),
            bulk: rate(counts.bulk),
        }
    }

    #[must_use]
    pub fn total(&self) -> f64 {
        let payload = self.acks + self.inputs + self.announcements + self.commands;
        self.headers + payload + self.outcomes + self.bulk
    }

    #[must_use]
    pub fn packets(&self) -> f64 {
        self.packets
    }
}

impl RunReport {
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        let desyncs = self.desyncs;
        check(
            desyncs == 0,
            format!("{desyncs} clients differed from the server"),
        );
        let (sent, taken) = (self.commands_sent, self.commands_accepted);
        let (refused, ran) = (self.commands_refused, self.commands_executed);
        check(
            taken == ran,
            format!("{taken} commands were accepted, but {ran} executed"),
        );
        check(
            sent == taken + refused,
            format!("{sent} commands were sent, but {taken} accepted and {refused} refused"),
        );
        for client in &self.clients {
            let (player, tick) = (&client.player, client.authority_tick);
            check(
                client.digest_matches,
                format!("{player}: the digest at tick {tick} is not the server's"),
            );
            let settled = client.cues_confirmed + client.cues_cancelled;
            check(
                client.cues_open == 0 && client.cues_started == settled,
                format!(
                    "{player}: {} cues started, {settled} confirmed or cancelled, {} open",
                    client.cues_started, client.cues_open
                ),
            );
            if let Some(ended) = &client.ended {
                check(false, format!("{player}: the session ended early: {ended}"));
            }
        }
        faults
    }

    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report of numbers and strings")
    }
}

const HEAD: &str = "\
player       rtt    lead  margin redone  fills  stall rebuilt others    age   cues   cancelled      up    down
              ms   ticks   ticks  ticks  ticks     ms   times  radii     ms           a minute     B/s     B/s";

const KEY: &str = "\
lead: ticks that the prediction is ahead · margin: ticks that inputs arrive early · redone: ticks simulated again
fills: inputs that the server filled in · stall: waiting for the server · rebuilt: corrections of the prediction
others: distance of other players from their true positions, 95th percentile · age: of what is drawn · cues: sounds and flashes";

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} ticks at {} Hz in {} turns · {} points · world {} at tick {}",
            self.ticks, self.tick_hz, self.turns, self.score, self.server_digest, self.server_tick
        )?;
        writeln!(
            f,
            "{} queries, {} outcomes · commands: {} sent, {} accepted, {} refused, {} executed · {} desyncs",
            self.queries,
            self.outcomes,
            self.commands_sent,
            self.commands_accepted,
            self.commands_refused,
            self.commands_executed,
            self.desyncs
        )?;
        writeln!(f, "\n{HEAD}")?;
        for client in &self.clients {
            writeln!(
                f,
                "{:<10} {:>5} {:>7.1} {:>7} {:>6} {:>6} {:>6.0} {:>7} {:>6.2} {:>6.0} {:>6} {:>11.1} {:>7.0} {:>7.0}{}",
                client.player,
                client.rtt_ms_p50,
                client.lead_ticks_mean,
                client.margin_ticks_p50,
                client.resim_ticks,
                client.fills,
                client.stall_ms,
                client.rebuilds,
                client.seen.others_off_p95,
                client.seen.age_ms_p50,
                client.cues_started,
                client.cues_cancelled_per_min,
                client.bytes_up_per_s,
                client.bytes_down_per_s,
                if client.digest_matches {
                    "  in sync"
                } else {
                    "  OUT OF SYNC"
                }
            )?;
        }
        writeln!(f, "{KEY}")?;
        for client in &self.clients {
            if client.silences + client.returns + client.heals > 0 {
                writeln!(
                    f,
                    "{}: outages: {} ({:.1} s), reconnects: {}, desyncs: {}",
                    client.player,
                    client.silences + client.returns,
                    client.away_ms / 1e3,
                    client.returns,
                    client.heals
                )?;
            }
        }
        match self.faults().as_slice() {
            [] => write!(
                f,
                "\nOK: all worlds are equal, every command was executed or refused, every cue was confirmed or cancelled."
            ),
            faults => write!(f, "\nFAILED: {}", faults.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> RunReport {
        let kinds = Kinds::per_second(
            ByteCounts {
                packets: 120,
                headers: 6_360,
                inputs: 240,
                ..ByteCounts::default()
            },
            2.0,
        );
        let stats = TimelineStats::default();
        RunReport {
            version: "0.1.0",
            wire_version: 14,
            seed: 7,
            link: "wan".to_owned(),
            window_s: 2.0,
            seconds: 2,
            ticks: 130,
            tick_hz: 60,
            turns: 65,
            queries: 1,
            outcomes: 1,
            commands_sent: 3,
            commands_accepted: 2,
            commands_refused: 1,
            commands_executed: 2,
            desyncs: 0,
            server_digest: "00ff".to_owned(),
            server_tick: 130,
            score: 5,
            clients: vec![ClientReport {
                player: "bot-1".to_owned(),
                authority_tick: 128,
                digest_matches: true,
                rebuilds: 0,
                rebuilds_by_cause: RebuildCauses::between(&stats, &stats),
                resim_ticks: 0,
                fills: 0,
                stall_ms: 0.0,
                held_ms: 0.0,
                skipped_ticks: 0,
                leapt_ticks: 0,
                fills_run_max: 0,
                clock_off_ms: 0.0,
                shed_ms: 0.0,
                late_ms: 0.0,
                lead_ticks_mean: 8.0,
                reach_ticks_mean: 8.0,
                margin_ticks_p50: 2,
                rtt_ms_p50: 100,
                seen: SeenReport::default(),
                cues_cancelled_per_min: 30.0,
                cues_started: 9,
                cues_confirmed: 8,
                cues_cancelled: 1,
                cues_open: 0,
                bytes_up_per_s: kinds.total(),
                bytes_down_per_s: kinds.total(),
                packets_up_per_s: kinds.packets(),
                packets_down_per_s: kinds.packets(),
                bytes_up_by_kind: kinds,
                bytes_down_by_kind: kinds,
                returns: 0,
                silences: 0,
                away_ms: 0.0,
                heals: 0,
                ended: None,
            }],
        }
    }

    type Break = fn(&mut RunReport);

    #[test]
    fn a_good_run_has_no_faults_and_each_fault_is_named() {
        assert_eq!(report().faults(), Vec::<String>::new());
        let breaks: [(Break, &str); 6] = [
            (|r| r.desyncs = 1, "differed"),
            (|r| r.commands_executed = 1, "executed"),
            (|r| r.commands_refused = 0, "refused"),
            (|r| r.clients[0].digest_matches = false, "digest"),
            (|r| r.clients[0].cues_open = 1, "open"),
            (|r| r.clients[0].ended = Some("gone".to_owned()), "ended"),
        ];
        for (break_it, word) in breaks {
            let mut report = report();
            break_it(&mut report);
            let faults = report.faults();
            assert!(faults.len() == 1 && faults[0].contains(word), "{faults:?}");
        }
    }

    /// Finding O11: a summary did not mention a 40 s outage.
    #[test]
    fn a_summary_reports_outages() {
        let mut report = report();
        assert!(!report.to_string().contains("outages"));
        report.clients[0].returns = 1;
        report.clients[0].silences = 2;
        report.clients[0].away_ms = 40_300.0;
        let told = "bot-1: outages: 3 (40.3 s), reconnects: 1";
        assert!(report.to_string().contains(told), "{report}");
        let mut stats = SessionStats::default();
        stats.stall_ms = 39_100.0;
        stats.fills = 2_400;
        stats.returns = 1;
        stats.away_ms = 40_000.0;
        assert_eq!(
            line_of(&stats),
            "picture stood still 39.1 s; server filled in 2400 inputs; outages: 1 (40.0 s), reconnects: 1, desyncs: 0"
        );
    }

    #[test]
    fn kinds_sum_to_the_total() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        let client = &json["clients"][0];
        let kinds = client["bytes_up_by_kind"].as_object().unwrap();
        let sum: f64 = kinds.values().map(|v| v.as_f64().unwrap()).sum();
        assert_eq!(
            (sum, client["bytes_up_per_s"].as_f64()),
            (3_300.0, Some(3_300.0))
        );
        assert_eq!(client["packets_up_per_s"], 60.0);
        assert_eq!(
            (&json["seed"], &json["link"], &json["version"]),
            (&7.into(), &"wan".into(), &"0.1.0".into())
        );
        assert_eq!(client["seen"]["own_off_p50"], 0.0);
    }
}
