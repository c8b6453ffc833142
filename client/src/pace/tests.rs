//! A small server and a bad link in virtual time, in steps of half a millisecond.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

const TICK: Duration = Duration::from_nanos(16_666_667);
const CONFIG: PaceConfig = PaceConfig {
    tick: TICK,
    turn_ticks: 2,
};
const STEP: Duration = Duration::from_micros(500);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[derive(Clone, Copy)]
struct Leg {
    delay: Duration,
    jitter: Duration,
    loss: f64,
}

struct Report {
    margin: i32,
    newest: Tick,
    known: Tick,
}

struct World {
    now: Duration,
    seed: u64,
    up: Leg,
    down: Leg,
    frame: Duration,
    next_frame: Duration,
    frozen_until: Duration,
    calls: usize,
    // The server.
    next_seal_at: Duration,
    to_seal: u32,
    held: BTreeSet<u32>,
    newest: u32,
    fills: Vec<Duration>,
    margins: Vec<(Duration, i32)>,
    uplink: VecDeque<(Duration, Vec<u32>)>,
    downlink: VecDeque<(Duration, Report)>,
    // The client.
    pace: Pace,
    known: Tick,
    unsealed: VecDeque<u32>,
    rates: Vec<(Duration, f64)>,
    capped: Duration,
}

impl World {
    fn new(up: Leg, down: Leg, seed: u64) -> World {
        World {
            now: ms(0),
            seed,
            up,
            down,
            frame: Duration::from_micros(6_940),
            next_frame: ms(0),
            frozen_until: ms(0),
            calls: 1,
            next_seal_at: Duration::from_micros(7_300),
            to_seal: 1_000 + (down.delay.as_nanos() / TICK.as_nanos()) as u32,
            held: BTreeSet::new(),
            newest: 0,
            fills: Vec::new(),
            margins: Vec::new(),
            uplink: VecDeque::new(),
            downlink: VecDeque::new(),
            pace: Pace::start(CONFIG, ms(0), Tick(1_000), up.delay + down.delay),
            known: Tick(1_000),
            unsealed: VecDeque::new(),
            rates: Vec::new(),
            capped: ms(0),
        }
    }

    fn chance(&mut self) -> f64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as f64 / (1u64 << 31) as f64
    }

    /// The arrival time of a packet sent now. Returns `None` if the packet is lost.
    fn travel(&mut self, leg: Leg) -> Option<Duration> {
        let lost = self.chance() < leg.loss;
        let jitter = leg.jitter.mul_f64(self.chance());
        (!lost).then_some(self.now + leg.delay + jitter)
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.serve();
            if self.now >= self.next_frame && self.now >= self.frozen_until {
                self.next_frame = self.now.max(self.next_frame + self.frame);
                self.play();
            }
        }
    }

    fn serve(&mut self) {
        let now = self.now;
        let (newest, held, to_seal) = (&mut self.newest, &mut self.held, self.to_seal);
        self.uplink.retain(|(at, inputs)| {
            if *at <= now {
                *newest = inputs
                    .iter()
                    .fold(*newest, |newest, tick| newest.max(*tick));
                held.extend(inputs.iter().filter(|tick| **tick >= to_seal));
            }
            *at > now
        });
        if now < self.next_seal_at {
            return;
        }
        self.next_seal_at += TICK;
        if !self.held.remove(&self.to_seal) {
            self.fills.push(now);
        }
        self.to_seal += 1;
        let margin = self.newest as i32 - self.to_seal as i32;
        self.margins.push((now, margin));
        if self.to_seal.is_multiple_of(2)
            && let Some(at) = self.travel(self.down)
        {
            let report = Report {
                margin,
                newest: Tick(self.newest),
                known: Tick(self.to_seal),
            };
            self.downlink.push_back((at, report));
        }
    }

    fn play(&mut self) {
        let (now, rtt) = (self.now, self.up.delay + self.down.delay);
        let (pace, known) = (&mut self.pace, &mut self.known);
        self.downlink.retain(|(at, report)| {
            if *at <= now {
                *known = report.known.max(*known);
                pace.report(now, report.margin, report.newest, rtt);
            }
            *at > now
        });
        let input = self.pace.input_tick();
        let beat = self.pace.advance(now, self.known, self.known);
        for _ in 1..self.calls {
            let again = self.pace.advance(now, self.known, self.known);
            assert_eq!((again.first, again.end), (beat.end, beat.end));
        }
        assert!(
            beat.first >= input && beat.end >= beat.first,
            "sampled in order and once"
        );
        assert!(beat.end <= self.known + input_window(TICK));
        assert_eq!(beat.end, self.pace.input_tick());
        assert!((0.0..1.0).contains(&self.pace.alpha()));
        let rate = self.pace.rate();
        assert!(
            rate == 0.0 || (0.9..=1.1).contains(&rate),
            "the clock never leaves ±10 %: {rate}"
        );
        self.rates.push((now, rate));
        if beat.capped {
            self.capped += self.frame;
        }
        self.unsealed.extend(beat.first.0..beat.end.0);
        while self
            .unsealed
            .front()
            .is_some_and(|tick| *tick < self.known.0)
        {
            self.unsealed.pop_front();
        }
        if beat.end > beat.first
            && let Some(at) = self.travel(self.up)
        {
            self.uplink
                .push_back((at, self.unsealed.iter().copied().collect()));
        }
    }

    fn stall_server(&mut self, time: Duration) {
        self.next_seal_at += time;
        self.run(time);
    }

    fn freeze_client(&mut self, time: Duration) {
        self.frozen_until = self.now + time;
        self.run(time);
    }

    fn fills_since(&self, since: Duration) -> usize {
        self.fills.iter().filter(|at| **at >= since).count()
    }

    fn margin(&self) -> f64 {
        let since = self.now.saturating_sub(ms(250));
        let recent = self
            .margins
            .iter()
            .rev()
            .take_while(|(at, _)| *at >= since)
            .map(|(_, margin)| *margin);
        let (sum, n) = recent.fold((0, 0), |(sum, n), margin| (sum + margin, n + 1));
        f64::from(sum) / f64::from(n)
    }

    #[track_caller]
    fn assert_on_target(&self) {
        let (margin, target) = (self.margin(), self.pace.target());
        assert!(
            (margin - target).abs() <= 1.0,
            "margin {margin}, target {target}, at {:?}",
            self.now
        );
    }
}

fn leg(delay_ms: u64) -> Leg {
    Leg {
        delay: ms(delay_ms),
        jitter: ms(0),
        loss: 0.0,
    }
}

fn rough(delay_ms: u64, jitter_ms: u64, loss: f64) -> Leg {
    Leg {
        delay: ms(delay_ms),
        jitter: ms(jitter_ms),
        loss,
    }
}

fn settled(up: Leg, down: Leg, seed: u64) -> World {
    let mut world = World::new(up, down, seed);
    world.run(ms(6_000));
    world.assert_on_target();
    world
}

#[test]
fn the_clock_settles_at_rate_one_without_fills_on_a_perfect_link() {
    for delay in [0, 5, 20, 50, 83, 150, 250] {
        let mut world = settled(leg(delay), leg(delay), 1);
        let (since, input, sealed) = (world.now, world.pace.input_tick(), world.to_seal);
        world.run(ms(20_000));
        assert_eq!(world.fills_since(since), 0);
        assert!(
            world
                .rates
                .iter()
                .filter(|(at, _)| *at > since)
                .all(|(_, rate)| *rate == 1.0)
        );
        let (sampled, sealed) = (world.pace.input_tick() - input, world.to_seal - sealed);
        assert!(
            sampled.abs_diff(sealed) <= 1,
            "{sampled} sampled, {sealed} sealed"
        );
        assert!(
            world.pace.target() <= 2.0 && world.margin() <= 3.0,
            "small on a perfect link"
        );
        assert_eq!((world.pace.jumps(), world.pace.holds()), (0, 0));
    }
}

#[test]
fn each_tick_of_time_samples_exactly_one_tick_at_rate_one() {
    let mut pace = Pace::start(CONFIG, ms(0), Tick(0), ms(100));
    for n in 1..100_000u32 {
        let beat = pace.advance(TICK * n, Tick(n), Tick(n));
        assert_eq!(beat.end - beat.first, 1);
    }
}

/// Finding W5: a client that had been stopped for seconds could resume exactly at its server's tick. All ticks that it
/// sampled were already sealed, so no input was sent, no report about an input came back, and the player's controls no
/// longer had an effect.
#[test]
fn a_clock_that_samples_only_sealed_ticks_jumps_ahead() {
    let mut pace = Pace::start(CONFIG, ms(0), Tick(0), ms(2));
    let ahead = pace.input_tick();
    for n in 1..60 {
        let _ = pace.advance(TICK * n, ahead + n, ahead + n);
        pace.report_nothing(TICK * n, ms(2));
    }
    assert!(pace.input_tick() > ahead + 60, "{}", pace.input_tick());
}

/// Returns a clock that waits at the end of its window for turns, and the current time. The tests then let turns arrive
/// in real time.
fn waited(rtt: Duration) -> (Pace, Duration) {
    let mut pace = Pace::start(CONFIG, ms(0), Tick(0), rtt);
    let window = input_window(TICK);
    for n in 1..=2 * window {
        let _ = pace.advance(TICK * n, Tick(0), Tick(0));
    }
    assert_eq!(pace.input_tick(), Tick(window), "it waits");
    (pace, TICK * (2 * window))
}

/// Finding W8: after a crash, a server reported from its journal that inputs arrived in time, while the clock still
/// waited at the end of its window. That distance was recorded as usual, and no later input was within the window.
#[test]
fn the_distance_of_a_waiting_clock_is_not_recorded() {
    let (mut pace, since) = waited(ms(100));
    let reach = pace.reach();
    for n in 1..60 {
        let now = since + TICK * n;
        let newest = pace.input_tick() - Tick(1);
        pace.report(now, 2, Tick(newest), ms(100));
        let _ = pace.advance(now, Tick(n), Tick(n));
        assert!(pace.reach() < reach + 3.0, "{} after {n}", pace.reach());
    }
}

/// Finding W9: the usual distance was as long as the window, so each turn made the clock jump to the window's end and
/// wait there again. Inputs between two jumps do not measure the route, so the clock jumped forever.
#[test]
fn a_clock_that_would_wait_again_does_not_jump() {
    let (mut pace, since) = waited(TICK * (input_window(TICK) - 2));
    assert!(pace.reach() >= f64::from(input_window(TICK)));
    for turn in 1..60 {
        let _ = pace.advance(since + TICK * (2 * turn), Tick(2 * turn), Tick(2 * turn));
    }
    assert_eq!(pace.jumps(), 0);
}

#[test]
fn sealed_ticks_are_skipped_after_a_late_end_of_a_pause() {
    let window = input_window(TICK);
    let mut pace = Pace::start(CONFIG, ms(0), Tick(0), ms(100));
    let stood = pace.input_tick();
    // All turns since the pause arrive at once, and are not stepped yet.
    let known = Tick(2 * window);
    let beat = pace.stand_still(TICK, Tick(10), known, 4);
    assert_eq!((beat.first, beat.end), (stood, stood), "beyond the window");
    let beat = pace.stand_still(TICK * 2, known, known, 4);
    assert_eq!((beat.first, beat.end), (known, known + 4));
}

#[test]
fn the_clock_follows_a_delay_step_within_two_seconds_without_oscillation() {
    for (jitter, loss) in [(0, 0.0), (20, 0.02)] {
        for (up, down) in [(150, 50), (50, 150)] {
            for back in [false, true] {
                let (near, far) = (
                    (rough(50, jitter, loss), rough(50, jitter, loss)),
                    (rough(up, jitter, loss), rough(down, jitter, loss)),
                );
                let (before, after) = if back { (far, near) } else { (near, far) };
                let mut world = settled(before.0, before.1, 3);
                (world.up, world.down) = after;
                let since = world.now;
                world.run(ms(2_000));
                world.assert_on_target();
                // From then on it stays on target, and the clock is calm.
                let since_settled = world.now;
                for _ in 0..20 {
                    world.run(ms(500));
                    world.assert_on_target();
                }
                let signs: Vec<bool> = world
                    .rates
                    .iter()
                    .filter(|(at, rate)| *at > since && *rate != 1.0)
                    .map(|(_, rate)| *rate > 1.0)
                    .collect();
                let turns = signs.windows(2).filter(|w| w[0] != w[1]).count();
                assert!(
                    turns <= if jitter == 0 { 1 } else { 8 },
                    "{turns} changes of direction"
                );
                let off = world
                    .rates
                    .iter()
                    .filter(|(at, rate)| *at > since_settled && (*rate - 1.0).abs() > 0.0501)
                    .count();
                assert_eq!(off, 0, "beyond ±5 % after it settled");
            }
        }
    }
}

#[test]
fn the_clock_holds_the_excess_after_a_server_stall_without_fills() {
    for stall in [500, 1_000, 3_000] {
        for seed in 0..4 {
            let mut world = settled(rough(45, 10, 0.01), rough(45, 10, 0.01), seed);
            world.stall_server(ms(stall));
            let since = world.now;
            // The longest hold is the window's length; its result is reported a round trip later, and averaged.
            world.run(TICK * input_window(TICK) + ms(600));
            world.assert_on_target();
            assert!(
                world.fills_since(since) <= 3,
                "{} fills after {stall} ms",
                world.fills_since(since)
            );
            assert!(world.pace.holds() >= 1);
            world.run(ms(3_000));
            world.assert_on_target();
            assert_eq!(world.capped > ms(0), stall == 3_000);
        }
    }
}

#[test]
fn fills_end_within_a_round_trip_and_a_few_ticks_after_a_client_freeze() {
    for freeze in [400, 1_000, 1_600, 2_000, 5_000] {
        for seed in 0..4 {
            let mut world = settled(rough(50, 10, 0.01), rough(50, 10, 0.01), seed);
            world.freeze_client(ms(freeze));
            let since = world.now;
            world.run(ms(5_000));
            let late = world.fills_since(since + ms(100) + TICK * 6);
            assert!(late <= 2, "{late} late fills after {freeze} ms");
            world.assert_on_target();
            assert!(
                world.pace.jumps() >= 1 && world.pace.jumps() <= 3,
                "{}",
                world.pace.jumps()
            );
        }
    }
}

#[test]
fn isolated_spikes_do_not_change_the_rate() {
    let mut world = settled(leg(50), leg(50), 1);
    let since = world.now;
    for n in 0..10 {
        let leg = if n % 2 == 0 {
            &mut world.up
        } else {
            &mut world.down
        };
        leg.delay += ms(200);
        world.run(ms(180));
        let leg = if n % 2 == 0 {
            &mut world.up
        } else {
            &mut world.down
        };
        leg.delay -= ms(200);
        world.run(ms(3_000));
    }
    assert!(
        world
            .rates
            .iter()
            .filter(|(at, _)| *at > since)
            .all(|(_, rate)| *rate == 1.0)
    );
    assert_eq!((world.pace.jumps(), world.pace.holds()), (0, 0));
    assert!(world.pace.target() <= 2.0);
}

#[test]
fn fills_are_rare_and_the_target_stays_small_with_jitter_and_loss() {
    for seed in 0..5 {
        let mut world = settled(rough(40, 20, 0.02), rough(40, 20, 0.02), seed);
        let since = world.now;
        world.run(ms(60_000));
        let fills = world.fills_since(since);
        assert!(fills <= 18, "{fills} of 3,600 ticks filled");
        assert!(world.pace.target() <= 5.0, "{}", world.pace.target());
        assert_eq!((world.pace.jumps(), world.pace.holds()), (0, 0));
    }
}

#[test]
fn heavy_jitter_raises_the_target_and_keeps_fills_rare() {
    let mut world = settled(rough(25, 50, 0.1), rough(25, 50, 0.1), 5);
    let since = world.now;
    world.run(ms(60_000));
    assert!(
        world.fills_since(since) <= 72,
        "{} of 3,600 ticks filled",
        world.fills_since(since)
    );
    assert!((1.5..=8.0).contains(&world.pace.target()));
}

#[test]
fn a_much_longer_route_causes_a_jump() {
    let mut world = settled(leg(30), leg(30), 1);
    world.up.delay += ms(400);
    let since = world.now;
    world.run(ms(3_000));
    world.assert_on_target();
    assert!(world.pace.jumps() >= 1);
    assert_eq!(world.fills_since(since + ms(1_800)), 0);
}

#[test]
fn a_wrong_initial_round_trip_is_corrected() {
    for claimed in [0, 400] {
        let mut world = World::new(leg(100), leg(100), 1);
        world.pace = Pace::start(CONFIG, ms(0), Tick(1_000), ms(claimed));
        world.run(ms(4_000));
        world.assert_on_target();
    }
}

#[test]
fn the_clock_follows_a_slightly_faster_server() {
    let mut world = settled(leg(50), leg(50), 1);
    let since = world.now;
    for _ in 0..100 {
        world.run(ms(200));
        world.next_seal_at -= Duration::from_micros(200); // 1,000 ppm
    }
    world.assert_on_target();
    assert_eq!(world.fills_since(since), 0);
}

#[test]
fn fills_are_rare_at_any_frame_rate() {
    for frame_ms in [2, 16, 33, 100] {
        let mut world = World::new(leg(50), leg(50), 1);
        world.frame = ms(frame_ms);
        world.run(ms(6_000));
        let since = world.now;
        world.run(ms(10_000));
        assert!(
            world.fills_since(since) <= 3,
            "{} fills at {frame_ms} ms",
            world.fills_since(since)
        );
    }
}

#[test]
fn a_new_tick_length_keeps_the_elapsed_fraction_of_a_tick() {
    let mut pace = Pace::start(CONFIG, ms(0), Tick(0), ms(100));
    let _ = pace.advance(TICK / 2, Tick(0), Tick(0));
    let alpha = pace.alpha();
    pace.set_config(PaceConfig {
        tick: TICK * 2,
        turn_ticks: 2,
    });
    assert!((pace.alpha() - alpha).abs() < 1e-4);
    let beat = pace.advance(TICK * 2, Tick(0), Tick(0));
    assert_eq!(beat.end - beat.first, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn the_margin_recovers_from_any_disturbance(
        seed: u64,
        events in prop::collection::vec((0u8..4, 20u64..2_500), 1..5),
        delay in 0u64..150, jitter in 0u64..30, loss in 0.0f64..0.05,
    ) {
        let mut world = World::new(rough(delay, jitter, loss), rough(delay, jitter, loss), seed);
        world.run(ms(2_000));
        for (kind, time) in events {
            match kind {
                0 => world.stall_server(ms(time)),
                1 => world.freeze_client(ms(time)),
                2 => world.up.delay = ms(time / 10),
                _ => world.down.delay = ms(time / 10),
            }
            world.run(ms(time));
        }
        world.run(ms(5_000));
        let since = world.now;
        world.run(ms(5_000));
        let (margin, target) = (world.margin(), world.pace.target());
        prop_assert!((margin - target).abs() <= 3.0, "margin {} target {}", margin, target);
        prop_assert!(world.fills_since(since) <= 9, "{}", world.fills_since(since));
    }
}

/// With background rebuilds, a client was advanced twice at one moment. So its clock was steered twice, and sometimes
/// sampled an input a frame apart from a client that was advanced once.
#[test]
fn repeated_advances_at_one_moment_have_no_effect() {
    for seed in 0..8 {
        let run = |calls| {
            let mut world = World::new(rough(60, 40, 0.02), rough(60, 40, 0.02), seed);
            world.calls = calls;
            world.run(ms(4_000));
            world.stall_server(ms(300));
            world.run(ms(4_000));
            (world.rates, world.margins, world.fills)
        };
        assert!(run(1) == run(3), "seed {seed}");
    }
}
