//! Compares a timeline with background rebuilds to one that rebuilds inline.

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::{Order, RosterChange};
use twinstep_core::{Controls, Frame, Mwc, Never};

use super::*;
use crate::hooks::{Repeat, Wait};

const ME: PlayerId = PlayerId(0);
const OTHER: PlayerId = PlayerId(1);
const LEAD: u32 = 10;

/// A game whose state depends on all events and their order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Mix {
    all: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stick(u8);

impl Controls for Stick {}

impl Simulation for Mix {
    const NAME: &'static str = "mix";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = Stick;
    type Command = u32;
    type Query = Never;
    type Outcome = Never;
    type Cue = u64;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        let mut mix = |n: u64| self.all = (self.all.rotate_left(9) ^ n).wrapping_mul(0x9e37_79b1);
        mix(u64::from(frame.tick().0));
        for (player, stick) in frame.inputs() {
            mix(u64::from(player.0) << 8 | u64::from(stick.0));
        }
        for (player, command) in frame.commands() {
            mix(u64::from(player.0) << 40 | u64::from(*command));
        }
        let all = self.all;
        if all.is_multiple_of(5) {
            fx.cue(Key::new(all, 0), all);
        }
        let acts = frame
            .inputs()
            .any(|(player, stick)| player == ME && stick.0 == 2);
        if acts && frame.is_local(ME) && all.is_multiple_of(3) {
            fx.claim(ME, all as u32);
        }
    }
}

#[derive(Default)]
struct Seen {
    rebuilt: u32,
}

impl Watch<Mix> for Seen {
    fn confirmed(&mut self, _: &World<Mix>, _: &Effects<Mix>, _: bool) {}
    fn predicted(&mut self, _: &World<Mix>, _: &Effects<Mix>) {}
    fn resimulated(&mut self, _: &World<Mix>, _: bool) {}
    fn rebuilt(
        &mut self,
        _: Tick,
        _: &World<Mix>,
        _: &mut dyn Iterator<Item = (Tick, &[(Key, u64)])>,
    ) {
        self.rebuilt += 1;
    }
}

fn timeline(how: Reconcile) -> Timeline<Mix> {
    let seats: ArrayVec<PlayerId, 4> = [ME].into_iter().collect();
    let world = World::new(Mix::default(), Tick(0));
    let (guess, speculate) = (Box::new(Repeat), Box::new(Wait));
    let actions = LocalActions::new(seats, &[0]);
    Timeline::new(Arc::new(()), world, actions, guess, speculate, true).with_reconcile(how)
}

/// The events of a match, derived from a seed, so that they are the same for each timeline.
struct Script {
    luck: Mwc,
    next: u32,
    theirs: Vec<u8>,
    mine: Vec<u8>,
    next_seq: u32,
    quiet: bool,
}

impl Script {
    fn new(seed: u64) -> Self {
        Script {
            luck: Mwc::seed(seed),
            next: 0,
            theirs: Vec::new(),
            mine: Vec::new(),
            next_seq: 0,
            quiet: false,
        }
    }

    fn stick(&mut self) -> u8 {
        if self.quiet {
            0
        } else {
            self.luck.below(3) as u8
        }
    }

    fn reach(&mut self, tick: u32) {
        while self.theirs.len() <= tick as usize {
            let (mine, theirs) = (self.stick(), self.stick());
            self.mine.push(mine);
            self.theirs.push(theirs);
        }
    }

    fn frame(&mut self, actions: &LocalActions<Mix>) -> FrameData<Mix> {
        let tick = self.next;
        self.reach(tick);
        let mut frame = FrameData::empty(Tick(tick));
        if tick == 0 {
            frame
                .roster
                .extend([ME, OTHER].map(|p| (p, RosterChange::Joined)));
        }
        let at = tick as usize;
        frame.inputs.set(ME, Some(Stick(self.mine[at])));
        frame.inputs.set(OTHER, Some(Stick(self.theirs[at])));
        // The client's own claims are refused, and its own commands run a few ticks late.
        for due in actions.commands().filter(|p| p.stamp + 2 <= Tick(tick)) {
            if due.order.seq >= self.next_seq {
                self.next_seq = due.order.seq + 1;
                frame.commands.push(due.order.clone());
            }
        }
        self.next += 1;
        frame
    }
}

fn round(script: &mut Script, all: &mut [(Timeline<Mix>, Seen)]) -> (Vec<FrameData<Mix>>, Tick) {
    let confirmed = match script.quiet {
        true => 1,
        false => script.luck.below(3),
    };
    let frames: Vec<FrameData<Mix>> = (0..confirmed)
        .map(|_| script.frame(all[0].0.local_actions()))
        .collect();
    let target = Tick(script.next + LEAD);
    script.reach(target.0);
    let announced = script.next + script.luck.below(LEAD);
    let orders = (!script.quiet && script.luck.below(6) == 0).then(|| script.luck.next_u32());
    for (timeline, _) in all.iter_mut() {
        while timeline.local_actions().next() < target {
            let at = timeline.local_actions().next().0 as usize;
            timeline
                .local_actions_mut()
                .sample(|_| Stick(script.mine[at]));
        }
        let input = Stick(script.theirs[announced as usize]);
        timeline.announce(OTHER, Tick(announced), &input);
        if let Some(order) = orders {
            timeline.local_actions_mut().command(0, order);
        }
        let claims = timeline
            .local_actions()
            .claims()
            .map(|claim| claim.order.seq);
        for seq in claims.filter(|seq| *seq < script.next).collect::<Vec<_>>() {
            timeline.local_actions_mut().refused_claim(0, seq);
        }
    }
    (frames, target)
}

fn play(timeline: &mut Timeline<Mix>, seen: &mut Seen, frames: &[FrameData<Mix>], target: Tick) {
    for frame in frames {
        timeline.confirm(frame, seen).unwrap();
    }
    timeline.predict(target, 128, seen);
}

fn assert_same(a: &Timeline<Mix>, b: &Timeline<Mix>) {
    assert_eq!(a.is_stale(), b.is_stale());
    assert_eq!(a.prediction().tick(), b.prediction().tick());
    assert_eq!(a.prediction().digest(), b.prediction().digest());
    for tick in a.authority().tick().0..a.prediction().tick().0 {
        let (a, b) = (a.shown.slot(Tick(tick)), b.shown.slot(Tick(tick)));
        assert!(a.data == b.data && a.cues == b.cues && a.withheld == b.withheld);
    }
    let claims = |timeline: &Timeline<Mix>| -> Vec<_> {
        timeline.local_actions().claims().cloned().collect()
    };
    assert_eq!(claims(a), claims(b));
    assert_eq!(a.frontier, b.frontier);
}

/// Finding K7: a background rebuild equals the inline rebuild bit for bit.
#[test]
fn a_background_rebuild_equals_the_inline_one() {
    for seed in 0..20 {
        let mut script = Script::new(seed);
        let mut all =
            [Reconcile::Inline, Reconcile::Background].map(|how| (timeline(how), Seen::default()));
        let mut sent = 0;
        for _ in 0..400 {
            let (frames, target) = round(&mut script, &mut all);
            let [(inline, watched), (away, seen)] = &mut all;
            play(inline, watched, &frames, target);
            play(away, seen, &frames, target);
            if let Some(mut rebuild) = away.poll_rebuild() {
                sent += 1;
                rebuild.run();
                away.hand_back(rebuild);
                let back = away.take_back(128, seen);
                assert!(back.shown && !back.overtaken, "{back:?}");
            }
            assert_same(inline, away);
        }
        let [(inline, watched), (away, seen)] = &all;
        assert!(sent > 100, "{sent} rebuilds went out");
        let rebuilds = inline.stats().rebuilds;
        assert_eq!(rebuilds, away.stats().rebuilds);
        assert_eq!(watched.rebuilt, seen.rebuilt);
        assert_eq!(inline.stats().resim_ticks, away.stats().resim_ticks);
        assert!(away.stats().away_steps > 0 && away.stats().overtaken == 0);
    }
}

#[test]
fn no_prediction_costs_more_than_its_budget() {
    for cost in [4, 100, 200, 256] {
        let mut script = Script::new(u64::from(cost));
        let mut all = [(timeline(Reconcile::Inline), Seen::default())];
        all[0].0.set_repeated_step_cost(cost);
        let mut rebuilt = 0;
        for _ in 0..400 {
            let (frames, target) = round(&mut script, &mut all);
            let budget = 1 + script.luck.below(12);
            let (timeline, seen) = &mut all[0];
            for frame in &frames {
                timeline.confirm(frame, seen).unwrap();
            }
            rebuilt += u32::from(timeline.is_stale());
            assert!(timeline.predict(target, budget, seen) <= budget);
        }
        assert!(rebuilt > 40, "{rebuilt}");
    }
}

/// Plays with rebuilds that come back `rounds` rounds late. In the end the prediction is up to date, and equal to the
/// inline one.
fn late(rounds: u32, seed: u64) -> Timeline<Mix> {
    let mut script = Script::new(seed);
    let mut all =
        [Reconcile::Inline, Reconcile::Background].map(|how| (timeline(how), Seen::default()));
    let mut out: Option<(u32, Box<Rebuild<Mix>>)> = None;
    for at in 0..600 {
        script.quiet = at >= 500;
        let (frames, target) = round(&mut script, &mut all);
        let [(inline, watched), (away, seen)] = &mut all;
        play(inline, watched, &frames, target);
        if let Some((due, mut rebuild)) = out.take() {
            if due == at {
                rebuild.run();
                away.hand_back(rebuild);
            } else {
                out = Some((due, rebuild));
            }
        }
        let base = away.authority().tick();
        let back = away.take_back(128, seen);
        if back.shown && rounds == 1 {
            assert!(
                !back.overtaken && away.shown.base == base,
                "rebuilds are not starved"
            );
        }
        play(away, seen, &frames, target);
        assert_eq!(away.prediction().tick(), inline.prediction().tick());
        assert_eq!(away.authority().digest(), inline.authority().digest());
        out = out.or(away.poll_rebuild().map(|rebuild| (at + rounds, rebuild)));
    }
    let [(inline, _), (away, _)] = all;
    assert_eq!(away.prediction().digest(), inline.prediction().digest());
    assert!(!away.is_stale());
    away
}

#[test]
fn late_background_rebuilds_reach_the_same_state_as_inline_ones() {
    for seed in 0..10 {
        let away = late(1, seed);
        assert_eq!(away.stats().overtaken, 0);
        let stats = late(4, seed).stats;
        assert!(stats.overtaken > 10, "{stats:?}");
        assert!(stats.rebuilds > 50, "wrong predictions are still rebuilt");
        // The authority passes a rebuild this late, but does not wait for it.
        assert!(late(30, seed).stats().overtaken > 0);
    }
}

/// A timeline whose prediction guesses the other player's next input wrongly, and the rebuild that follows.
fn wrong(guess: impl Guess<Mix>) -> (Timeline<Mix>, Box<Rebuild<Mix>>, Script) {
    let mut timeline = Timeline {
        game: Arc::new(Game {
            rules: Arc::new(()),
            guess: Arc::new(guess),
            speculate: Arc::new(Wait),
            verify: false,
        }),
        ..timeline(Reconcile::Inline)
    }
    .with_reconcile(Reconcile::Background);
    let mut script = Script::new(7);
    script.quiet = true;
    for at in 0..6 {
        let frame = script.frame(timeline.local_actions());
        timeline.confirm(&frame, &mut Seen::default()).unwrap();
        if at == 4 {
            let target = Tick(script.next + LEAD);
            script.reach(target.0);
            while timeline.local_actions().next() < target {
                timeline.local_actions_mut().sample(|_| Stick(0));
            }
            timeline.predict(target, 128, &mut Seen::default());
            script.theirs[5] = 2;
        }
    }
    assert!(timeline.is_stale());
    let target = timeline.prediction().tick();
    timeline.predict(target, 128, &mut Seen::default());
    let rebuild = timeline.poll_rebuild().expect("a wrong guess");
    (timeline, rebuild, script)
}

/// A panic of the author's code in a rebuild does not end the process: it is reported once, and the next rebuild leaves
/// out more entries.
#[test]
fn a_panic_in_a_rebuild_is_reported_and_the_rebuild_restarts_without_hooks() {
    let moody = |_: &Mix, _: &_, _: PlayerId, last: &Stick, _: u32| {
        assert!(last.0 != 2, "I cannot guess that");
        *last
    };
    let (mut timeline, mut rebuild, _) = wrong(moody);
    let shown = timeline.prediction().digest();
    rebuild.run();
    rebuild.run();
    timeline.hand_back(rebuild);
    let back = timeline.take_back(128, &mut Seen::default());
    assert_eq!(back, TakenBack::default());
    let fault = timeline.take_fault().expect("it is reported");
    assert!(fault.contains("panicked: I cannot guess that"), "{fault}");
    assert_eq!(timeline.stats().step_faults, 1);
    assert_eq!(timeline.prediction().digest(), shown);
    let target = timeline.prediction().tick();
    timeline.predict(target, 128, &mut Seen::default());
    let mut rebuild = timeline.poll_rebuild().expect("another try");
    rebuild.run();
    timeline.hand_back(rebuild);
    assert!(timeline.take_back(128, &mut Seen::default()).shown);
    assert!(!timeline.is_stale() && timeline.take_fault().is_none());
}

/// A heal or a reconnect happens during a rebuild, so the result of the rebuild no longer applies.
#[test]
fn a_rebuild_started_before_a_jump_is_dropped() {
    let (mut timeline, mut rebuild, _) = wrong(Repeat);
    let world = timeline.authority().clone();
    timeline.jump(world);
    let target = timeline.authority().tick() + LEAD;
    timeline.predict(target, 128, &mut Seen::default());
    let shown = timeline.prediction().digest();
    rebuild.run();
    timeline.hand_back(rebuild);
    let mut seen = Seen::default();
    assert_eq!(timeline.take_back(128, &mut seen), TakenBack::default());
    assert_eq!((timeline.prediction().digest(), seen.rebuilt), (shown, 0));
    // The rebuild's buffers can be used again.
    timeline.corrupt().all ^= 1;
    timeline.predict(target, 128, &mut seen);
    assert!(timeline.poll_rebuild().is_some());
}

#[test]
fn another_timelines_rebuild_is_dropped() {
    let (mut timeline, _lost, _) = wrong(Repeat);
    let (_, mut foreign, _) = wrong(Repeat);
    foreign.run();
    timeline.hand_back(foreign);
    let back = timeline.take_back(128, &mut Seen::default());
    assert_eq!(back, TakenBack::default());
    assert!(timeline.is_stale(), "it waits for its own rebuild");
}

/// If a rebuild is never handed back, the authority continues, and the prediction continues from it.
#[test]
fn a_lost_rebuild_leaves_the_prediction_wrong_until_the_authority_passes_it() {
    let (mut timeline, lost, mut script) = wrong(Repeat);
    drop(lost);
    let end = timeline.prediction().tick();
    while timeline.authority().tick() < end {
        let frame = script.frame(timeline.local_actions());
        timeline.confirm(&frame, &mut Seen::default()).unwrap();
        let target = timeline.authority().tick().max(end);
        timeline.predict(target, 128, &mut Seen::default());
        assert!(timeline.prediction().tick() >= timeline.authority().tick());
    }
    assert!(!timeline.is_stale());
}

#[cfg(feature = "udp")]
#[test]
fn the_worker_runs_a_rebuild() {
    let (mut timeline, rebuild, _) = wrong(Repeat);
    let (mut inline, mut same, _) = wrong(Repeat);
    same.run();
    inline.hand_back(same);
    assert!(inline.take_back(128, &mut Seen::default()).shown);
    let mut background = crate::background::Background::default();
    assert!(background.poll().is_none());
    background.give(rebuild);
    let done = std::iter::repeat_with(|| {
        std::thread::yield_now();
        background.poll()
    });
    let done = done.flatten().next().expect("it comes back");
    timeline.hand_back(done);
    assert!(timeline.take_back(128, &mut Seen::default()).shown);
    assert_eq!(timeline.prediction().digest(), inline.prediction().digest());
}

/// Announced commands also stay as they were when the rebuild started.
#[test]
fn an_announcement_during_a_rebuild_applies_after_it() {
    let (mut timeline, mut rebuild, _) = wrong(Repeat);
    let at = timeline.authority().tick() + 1;
    let command = Order {
        player: OTHER,
        seq: 0,
        command: 9,
    };
    timeline.announce_command(at, command);
    rebuild.run();
    timeline.hand_back(rebuild);
    assert!(timeline.take_back(128, &mut Seen::default()).shown);
    assert!(timeline.shown.slot(at).data.commands.is_empty());
}

/// Finding O3-16: other players could cause a rebuild every turn. A difference in an action of the session itself is
/// still corrected in its own turn.
#[test]
fn a_flood_causes_five_rebuilds_in_nine_turns_and_local_actions_do_not_wait() {
    let (mut timeline, mut seen) = (timeline(Reconcile::Inline), Seen::default());
    let mut script = Script::new(1);
    script.quiet = true;
    let (mut was_stale, mut own) = (false, Vec::new());
    for tick in 0..400 {
        if tick == 100 {
            seen.rebuilt = 0;
        }
        let target = Tick(tick + 1 + LEAD);
        script.reach(target.0);
        script.theirs[tick as usize] = (tick % 3) as u8;
        while timeline.local_actions().next() < target {
            timeline.local_actions_mut().sample(|_| Stick(0));
        }
        if tick >= 200 && tick % 15 == 0 {
            timeline.local_actions_mut().command(0, tick).expect("room");
            let given = timeline
                .local_actions()
                .commands()
                .last()
                .expect("an order");
            // The command is assumed at its stamp, and runs two ticks later.
            own.extend([given.stamp, given.stamp + 2]);
        }
        let frame = script.frame(timeline.local_actions());
        play(&mut timeline, &mut seen, &[frame], target);
        let is_stale = timeline.is_stale();
        assert!(
            !(is_stale && was_stale),
            "{tick}: a rebuild waits for two turns"
        );
        assert!(
            !(is_stale && own.contains(&Tick(tick))),
            "{tick}: an own order waits"
        );
        was_stale = is_stale;
        if tick == 199 {
            assert!((50..=57).contains(&seen.rebuilt), "{} of 100", seen.rebuilt);
        }
    }
    assert!(own.len() > 20 && timeline.stats().by_own_command > 10);
}
