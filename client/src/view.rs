//! [`View`]: the cues to play and the poses to draw, from the events of the timeline. It never changes the simulation's
//! state.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX};
use twinstep_core::turn::Cadence;
use twinstep_core::{Effects, Key, PlayerId, PlayerSet, Simulation, Tick, World};

use crate::cues::CueLedger;
use crate::hooks::caught;
use crate::picture::{
    Moved, Others, OwnDrawn, Picture, PictureErrors, Poses, Scene, Show, Smoothing,
};
use crate::timeline::{Timeline, Watch};

/// The minimum duration of a correction in ticks, even if the lead is shorter.
const SMOOTH_TICKS_MIN: u32 = 6;
/// Space for the entities of a busy screen, without allocating.
const ROOM: usize = 256;

pub(crate) struct View<S: Simulation, V: Show<S>> {
    show: V,
    rules: Arc<S::Rules>,
    locals: PlayerSet,
    pub(crate) cues: CueLedger<S::Cue>,
    pub(crate) picture: Picture<V::Key, V::Pose>,
    pub(crate) others: Others<V::Key, V::Pose>,
    own_drawn: OwnDrawn<V::Key, V::Pose>,
    truth: Poses<V::Key, V::Pose>,
    moved_at: Duration,
    poses: [Poses<V::Key, V::Pose>; 2],
    captured: u32,
    /// The time passed, not counting pauses of the match. Corrections stand still during a pause.
    pub(crate) now: Duration,
    updated_at: Duration,
    pub(crate) alpha: f32,
    /// The position of the last drawn picture, in ticks after the newest tick; 0 if that tick was not drawn.
    pub(crate) drawn: f32,
    tick: Duration,
    lead: u32,
    /// Cues before this tick are from before this client joined, and are not played.
    pub(crate) mute_until: Tick,
    /// The unreported message of the first panic in the drawing code (`Show`).
    fault: Option<String>,
    pub(crate) has_failed: bool,
}

impl<S: Simulation, V: Show<S>> View<S, V> {
    pub(crate) fn own(&mut self, locals: PlayerSet) {
        self.locals = locals;
    }

    pub(crate) fn new(
        show: V,
        smoothing: Smoothing,
        locals: PlayerSet,
        rules: Arc<S::Rules>,
        tick: Duration,
    ) -> Self {
        let mut cues = CueLedger::new();
        cues.set_tick(tick);
        View {
            show,
            rules,
            locals,
            cues,
            picture: Picture::with_room(smoothing, None, ROOM),
            others: Others::new(smoothing),
            own_drawn: OwnDrawn::new(),
            truth: Poses::with_room(ROOM),
            moved_at: Duration::ZERO,
            poses: [Poses::with_room(ROOM), Poses::with_room(ROOM)],
            captured: 0,
            now: Duration::ZERO,
            updated_at: Duration::ZERO,
            alpha: 0.0,
            drawn: 0.0,
            tick,
            lead: 0,
            mute_until: Tick(0),
            fault: None,
            has_failed: false,
        }
    }

    fn over(&self) -> Duration {
        self.tick * self.lead.clamp(SMOOTH_TICKS_MIN, LEAD_MAX)
    }

    pub(crate) fn at(&mut self, now: Duration, lead: u32, cadence: Cadence) {
        if !cadence.paused {
            self.now += now.saturating_sub(self.updated_at);
        }
        self.updated_at = self.updated_at.max(now);
        if self.tick != cadence.tick() {
            self.tick = cadence.tick();
            self.cues.set_tick(self.tick);
        }
        self.lead = lead;
    }

    pub(crate) fn jump(&mut self, world: &World<S>) {
        let at = world.tick();
        self.cues.jump(at);
        self.captured = 0;
        // Captured as both the previous and the newest, so that the picture does not move from an old world to this
        // one.
        self.capture(world);
        self.capture(world);
        self.own_drawn.jump();
        self.others.jump(at.back(1));
        self.others.put(at.back(1), &mut self.poses[1]);
        self.others.put(at, &mut self.poses[1]);
        self.redraw();
    }

    /// Captures the poses of a tick as the newest poses. The previously newest poses become the previous poses. If the
    /// game's `Show` panics, the newest poses stay, and the previous ones are cleared.
    fn capture(&mut self, world: &World<S>) {
        self.poses.swap(0, 1);
        let locals = self.locals;
        // In lockstep no player is local, and all entities are drawn at one time.
        let begin = |poses: &mut Poses<_, _>| match locals == PlayerSet::default() {
            true => poses.begin(locals),
            false => poses.begin_apart(locals),
        };
        begin(&mut self.poses[1]);
        let (show, poses) = (&self.show, &mut self.poses[1]);
        let scene = Scene::new(world, &self.rules);
        if let Err(words) = caught(|| show.poses(&scene, poses)) {
            // The panic may have left incomplete poses, so drop them, and keep the newest complete ones.
            begin(&mut self.poses[1]);
            self.poses.swap(0, 1);
            self.record_fault(&words);
        }
        self.captured += 1;
    }

    fn capture_others(&mut self, world: &World<S>) {
        if !self.others.are_used() {
            return;
        }
        let Some(poses) = self.others.at(world.tick()) else {
            return;
        };
        poses.begin_others(self.locals);
        let (show, scene) = (&self.show, Scene::new(world, &self.rules));
        let captured = caught(|| {
            show.poses(&scene, poses);
            poses.order();
        });
        if let Err(words) = captured {
            poses.begin_others(self.locals);
            poses.order();
            self.record_fault(&words);
        }
    }

    /// Advances the pictures of other players, and the cues shown with them. Call it once the prediction is at its new
    /// tick.
    pub(crate) fn move_others(&mut self, timeline: &Timeline<S>) {
        let passed = self.now.saturating_sub(self.moved_at);
        self.moved_at = self.now;
        if !self.others.are_used() {
            return;
        }
        let moved = Moved {
            now: self.now,
            passed: passed.as_secs_f64() / self.tick.as_secs_f64(),
            tick: self.tick,
            authority: timeline.authority().tick(),
            prediction: timeline.prediction().tick(),
            alpha: self.alpha,
            known: &timeline.known(),
        };
        let (show, others) = (&self.show, &mut self.others);
        let scene = Scene::new(timeline.prediction(), &self.rules);
        if let Err(words) = caught(|| others.advance(&moved, |player| show.when(&scene, player))) {
            self.record_fault(&words);
        }
        for player in (0..PLAYERS_MAX as u8).map(PlayerId) {
            if let Some((_, due)) = self.others.time(player) {
                self.cues.show_until(player, due);
            }
        }
    }

    fn judge(&mut self, world: &World<S>) {
        let tick = world.tick();
        if !self.own_drawn.awaits(tick) {
            return;
        }
        let (show, truth, own_drawn) = (&self.show, &mut self.truth, &mut self.own_drawn);
        truth.begin_apart(self.locals);
        let scene = Scene::new(world, &self.rules);
        let judged = caught(|| {
            show.poses(&scene, truth);
            truth.order();
            own_drawn.judge(tick, truth);
        });
        if let Err(words) = judged {
            self.record_fault(&words);
        }
    }

    pub(crate) fn errors(&self) -> PictureErrors {
        let mut all = self.others.errors().clone();
        let (moved, own_moved) = (
            self.picture.corrections(),
            self.picture.corrections_of_own(),
        );
        all.own_off.add(&self.own_drawn.own_off);
        all.things_off.add(&self.own_drawn.things_off);
        all.own_pdiff.add(own_moved);
        all.things_pdiff.add(&moved.since(own_moved));
        for picture in self.others.pictures() {
            all.others_pdiff.add(picture.corrections());
        }
        all
    }

    fn redraw(&mut self) {
        let over = self.over();
        let [previous, newest] = &mut self.poses;
        let (picture, alpha, now) = (&mut self.picture, self.alpha, self.now);
        if let Err(words) = caught(|| picture.rebuilt(previous, newest, alpha, now, over)) {
            self.record_fault(&words);
        }
        self.captured = 0;
    }

    fn record_fault(&mut self, words: &str) {
        if !self.has_failed {
            self.has_failed = true;
            self.fault = Some(format!(
                "the picture (`Show::poses`, `Pose`) panicked: {words}"
            ));
        }
    }

    pub(crate) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }
}

impl<S: Simulation, V: Show<S>> Watch<S> for View<S, V> {
    fn confirmed(&mut self, world: &World<S>, fx: &Effects<S>, is_as_shown: bool) {
        let tick = world.tick().back(1);
        if tick >= self.mute_until {
            self.cues.confirmed(tick, fx.cues());
        }
        if !is_as_shown {
            self.capture_others(world);
        }
        self.judge(world);
    }

    fn predicted(&mut self, world: &World<S>, fx: &Effects<S>) {
        let tick = world.tick().back(1);
        if tick >= self.mute_until {
            self.cues.predicted(tick, fx.cues());
        }
        self.capture(world);
        let (picture, newest, now) = (&mut self.picture, &mut self.poses[1], self.now);
        if newest.is_empty() && picture.is_empty() && !self.others.are_used() {
            self.captured = 0;
            return;
        }
        let (others, own_drawn, rest) = (&mut self.others, &mut self.own_drawn, self.tick);
        let (last, over) = (
            std::mem::take(&mut self.drawn),
            self.tick * SMOOTH_TICKS_MIN,
        );
        let drawn = caught(|| {
            newest.order();
            picture.ticked_to(newest, last, now, over);
            own_drawn.record(tick + 1, picture.at_end(now, rest));
            others.put(tick + 1, newest);
        });
        if let Err(words) = drawn {
            self.record_fault(&words);
        }
        self.captured = 0;
    }

    fn resimulated(&mut self, world: &World<S>, is_last: bool) {
        if !is_last {
            return self.capture_others(world);
        }
        self.capture(world);
        self.others.put(world.tick(), &mut self.poses[1]);
    }

    fn rebuilt(
        &mut self,
        _from: Tick,
        world: &World<S>,
        ticks: &mut dyn Iterator<Item = (Tick, &[(Key, S::Cue)])>,
    ) {
        let mute_until = self.mute_until;
        self.cues
            .rebuilt(ticks.filter(|(tick, _)| *tick >= mute_until));
        // A rebuild without ticks captured only one world, which is both the previous and the newest.
        while self.captured < 2 {
            self.capture(world);
        }
        self.redraw();
    }
}
