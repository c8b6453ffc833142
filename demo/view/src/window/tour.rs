//! `powderkeg tour`: one session, drawn in four ways at the same moment.
//!
//! ```text
//!                       ┌─▶ authority at its confirmed tick     plain lockstep
//!   Rehearsal: packets, ├─▶ mirror, smoothing off               raw prediction
//!   inputs, time        ├─▶ mirror, When::Predicted             smoothed
//!                       └─▶ the session itself, When::Auto      as the game draws it
//!                                   │
//!   server's world of each tick ────┴──▶ TourFrame (delayed) ──▶ measured, painted
//! ```
//!
//! All four get the same packets and inputs, and would send the same bytes ([`Rehearsal::add_mirror`]). All numbers are
//! measured from the drawn positions.
//!
//! A prediction shows ticks that the server has not played yet, so the true state is known only later. Therefore
//! pictures and keys are shown [`AHEAD`] frames late. While the player steers there is no delay, and no ring is drawn
//! where the true state is unknown.

mod animation;
mod frame;
mod measure;
mod paint;
mod play;
mod script;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use glam::{Vec2, vec2};
use powderkeg_game::{BarrelStage, Command, Cue, Game, GameShow, Heading, Pad, Rules, ShowKey};
use twinstep_client::{CueId, CueKind, Placed, Session, SessionEnd, Show, When};
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId};

use crate::feed::Lagged;
use crate::rehearsal::{Rehearsal, Setup};
use frame::{
    AUTO, Body, FRAMES_PER_SECOND, FRIEND, KeyMark, LOCKSTEP, OWN, PaneShot, RAW, SMOOTHED,
    TourFrame, Truth,
};
use measure::Meter;
pub use play::{TourError, tour, tour_picture};
use script::{Act, CHAPTERS, Chapter};

const AHEAD: usize = 50;
/// The length of the friend's trail in a pane, in frames.
const TRAIL: usize = 40;
/// The number of frames for which barrels have rings after a blast.
const BLAST: u32 = 75;
/// A key press that is not visible after this many frames counts as lost.
const KEY_LOST: u32 = 90;
const KEYS_KEPT: u32 = 10 * FRAMES_PER_SECOND;
const HALF: Vec2 = vec2(15.0, 5.25);
/// No player has this number, so it stands for things without an owner when their time is read.
const NO_PLAYER: PlayerId = PlayerId(15);

struct Walker {
    way: Vec2,
    turns_at: u32,
    hold_frames: [u32; 2],
}

impl Walker {
    fn new(hold_frames: [u32; 2]) -> Walker {
        let (way, turns_at) = (Vec2::ZERO, 0);
        Walker {
            way,
            turns_at,
            hold_frames,
        }
    }

    fn turn(&mut self, frame: u32, at: Vec2, step: f32, luck: &mut Mwc) -> Option<Vec2> {
        if frame < self.turns_at {
            return None;
        }
        let [from, to] = self.hold_frames;
        let frames = from + luck.below(to - from);
        self.turns_at = frame + frames;
        let has_room = |way: &Vec2| {
            let end = at + *way * step * frames as f32;
            *way != self.way && end.abs().cmple(HALF - 1.0).all()
        };
        let ways = [Vec2::X, Vec2::NEG_X, Vec2::Y, Vec2::NEG_Y];
        let free: Vec<Vec2> = ways.into_iter().filter(has_room).collect();
        match free.len() {
            0 => Some(vec2(-at.x.signum(), 0.0)),
            n => Some(free[luck.below(n as u32) as usize]),
        }
    }

    fn pad(&self) -> Pad {
        let walk = Heading::toward(self.way);
        Pad {
            walk,
            aim: walk,
            buttons: 0,
        }
    }
}

pub(crate) struct Tour {
    rehearsal: Rehearsal,
    lagged: Lagged,
    truth: Truth,
    frames: VecDeque<TourFrame>,
    keys: VecDeque<KeyMark>,
    trail: VecDeque<(u32, [Option<Vec2>; 4])>,
    walkers: [Walker; 2],
    luck: Mwc,
    seed: u64,
    n: u32,
    chapter: usize,
    began: u32,
    meter: Meter,
    /// The number below each pane, and the age of its friend; updated twice a second, so that they can be read.
    captions: [[String; 2]; 4],
    guessed: Vec<(CueId, u8)>,
    barrels: [[Vec2; 4]; 4],
    /// The number of the session's worlds compared with the server's, and the number that differed.
    compared: [u32; 2],
    is_steered: bool,
}

impl Tour {
    pub(crate) fn new(seed: u64) -> Tour {
        let setup = Setup {
            bots: 1,
            link: CHAPTERS[0].link,
            ..Setup::new(Arc::new(rules()), seed)
        };
        let mut rehearsal = Rehearsal::new(&setup);
        rehearsal.add_mirror(When::Predicted);
        rehearsal.add_mirror(When::Predicted);
        Tour {
            rehearsal,
            lagged: Lagged::new(GameShow),
            truth: Truth::default(),
            frames: VecDeque::new(),
            keys: VecDeque::new(),
            trail: VecDeque::new(),
            walkers: [Walker::new([44, 70]), Walker::new([34, 60])],
            luck: Mwc::seed(seed).fork(Key::new(7, 7)),
            seed,
            n: 0,
            chapter: 0,
            began: 0,
            meter: Meter::default(),
            captions: Default::default(),
            guessed: Vec::new(),
            barrels: Default::default(),
            compared: [0, 0],
            is_steered: false,
        }
    }

    fn chapter(&self) -> &'static Chapter {
        &CHAPTERS[self.chapter]
    }

    pub(crate) fn is_over(&self) -> bool {
        let last = CHAPTERS.len() - 1;
        let frames = CHAPTERS[last].seconds * FRAMES_PER_SECOND;
        let is_last = |frame: &TourFrame| frame.chapter == last && frame.age + 1 >= frames;
        self.frames.front().is_some_and(is_last)
    }

    pub(crate) fn go_to(&mut self, chapter: usize) {
        self.chapter = chapter;
        self.began = self.n;
        self.rehearsal.set_link(self.chapter().link);
    }

    pub(crate) fn steer(&mut self) {
        self.is_steered = !self.is_steered;
    }

    /// Plays one frame. `way` is the held direction; it is used only while the player steers.
    pub(crate) fn step(&mut self, way: Vec2) -> Result<(), SessionEnd> {
        let age = self.n - self.began;
        if age >= self.chapter().seconds * FRAMES_PER_SECOND && self.chapter + 1 < CHAPTERS.len() {
            self.go_to(self.chapter + 1);
        }
        self.act();
        self.turn(way);
        self.rehearsal.steer_bot(0, self.walkers[1].pad());
        let (pad, truth) = (self.walkers[0].pad(), &mut self.truth);
        let watch = |world: &World<Game>| truth.record(world.tick().0, world.sim());
        self.rehearsal.advance_watched(|_| pad, watch)?;
        if let Some(agrees) = self.rehearsal.agrees() {
            self.compared[0] += 1;
            self.compared[1] += u32::from(!agrees);
        }
        let frame = self.capture();
        self.see_keys(&frame);
        let places = frame.panes.each_ref().map(|pane| pane.player(FRIEND));
        self.trail.push_back((self.n, places));
        self.frames.push_back(frame);
        self.n += 1;
        self.forget();
        if self.n.is_multiple_of(FRAMES_PER_SECOND / 2) {
            let shown = self.shown().map_or(0, |frame| frame.chapter);
            for (at, caption) in self.captions.iter_mut().enumerate() {
                let (measure, _) = CHAPTERS[shown].captions[at];
                let ago = format!("{:.0}", self.meter.ago_ms(at));
                *caption = [self.meter.words(at, measure), ago];
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        if self.frames.len() > AHEAD
            && let Some(frame) = self.frames.pop_front()
        {
            // The true state of this frame is known now, unless the server stood still.
            let frames = [&frame, &self.frames[0]];
            self.meter.measure(frames, &self.truth, &self.keys);
        }
        while self.trail.len() > AHEAD + TRAIL {
            self.trail.pop_front();
        }
        let oldest = self.n.saturating_sub(KEYS_KEPT);
        while self.keys.front().is_some_and(|key| key.pressed < oldest) {
            self.keys.pop_front();
        }
    }

    fn act(&mut self) {
        let age = self.n - self.began;
        let due = |(at, _): &(u32, Act)| age == at * FRAMES_PER_SECOND / 10;
        match self.chapter().act.filter(due).map(|(_, act)| act) {
            Some(Act::Hold(ms)) => self.rehearsal.hold(Duration::from_millis(ms)),
            Some(Act::Light(barrel)) => self.rehearsal.order(Command::Light { barrel }),
            Some(Act::Kill(ms)) => self.rehearsal.kill(Duration::from_millis(ms)),
            None => {}
        }
    }

    fn turn(&mut self, way: Vec2) {
        let step = self.rehearsal.rules().tuning.walk_speed;
        let newest = self.frames.back();
        let place = |id| newest.and_then(|frame| frame.panes[AUTO].player(id));
        let (own, friend) = (place(OWN), place(FRIEND));
        let (n, luck) = (self.n, &mut self.luck);
        let [mine, theirs] = &mut self.walkers;
        if let Some(way) = friend.and_then(|at| theirs.turn(n, at, step, luck)) {
            theirs.way = way;
        }
        let Some(at) = own else { return };
        let way = match self.is_steered {
            true => way,
            false => mine.turn(n, at, step, luck).unwrap_or(mine.way),
        };
        let before = std::mem::replace(&mut mine.way, way);
        if way == before {
            return;
        }
        // A key pressed between two ticks takes effect in its own frame, as in a match.
        self.rehearsal.sample_now();
        if way != Vec2::ZERO {
            self.keys.push_back(KeyMark {
                turn: [before, way],
                pressed: n,
                seen: [None; 4],
            });
        }
    }

    fn capture(&mut self) -> TourFrame {
        let (n, now) = (self.n, self.rehearsal.now());
        let mut panes: [PaneShot; 4] = Default::default();
        let mut blasts: Vec<(usize, u8)> = Vec::new();
        let [raw, smoothed] = self.rehearsal.mirrors_mut() else {
            unreachable!("two mirrors were added")
        };
        raw.set_smooths(false);
        for (at, session) in [(RAW, raw), (SMOOTHED, smoothed)] {
            panes[at] = predicted(session);
            while let Some(event) = session.poll_cue() {
                if let CueKind::Started {
                    cue: Cue::Blast(n), ..
                } = event.kind
                {
                    blasts.push((at, n));
                }
            }
            while session.poll_event().is_some() {}
        }
        let session = self.rehearsal.session_mut();
        panes[AUTO] = predicted(session);
        if let (Some(authority), Some(rules)) = (session.authority(), session.rules()) {
            self.lagged.advance(now, authority, rules);
            let time = self.lagged.time(now);
            panes[LOCKSTEP] = PaneShot {
                bodies: bodies(self.lagged.shown(now), Some(authority.sim())),
                friend_time: time,
                thing_time: time,
                blasts: Vec::new(),
            };
        }
        while let Some(event) = session.poll_cue() {
            let guess = self.guessed.iter().position(|(id, _)| *id == event.id);
            match (event.kind, guess) {
                (
                    CueKind::Started {
                        cue: Cue::Blast(n), ..
                    },
                    _,
                ) => {
                    blasts.push((AUTO, n));
                    self.guessed.push((event.id, n));
                }
                (CueKind::Started { .. }, _) | (_, None) => {}
                // Plain lockstep shows only this.
                (CueKind::Confirmed { .. }, Some(at)) => {
                    blasts.push((LOCKSTEP, self.guessed.swap_remove(at).1));
                }
                (CueKind::Cancelled, Some(at)) => drop(self.guessed.swap_remove(at)),
            }
        }
        while session.poll_event().is_some() {}
        for (at, pane) in panes.iter_mut().enumerate() {
            let before = self.frames.back().map_or(&[][..], |b| &b.panes[at].blasts);
            let young = before.iter().filter(|(_, since)| n < since + BLAST);
            pane.blasts.extend(young);
            let new = blasts.iter().filter(|(pane, _)| *pane == at);
            let places = &mut self.barrels[at];
            pane.blasts
                .extend(new.map(|(_, barrel)| (places[usize::from(*barrel)], n)));
            for body in &pane.bodies {
                if let ShowKey::Barrel { n, .. } = body.key {
                    places[usize::from(n)] = body.at;
                }
            }
        }
        TourFrame {
            n,
            chapter: self.chapter,
            age: n - self.began,
            panes,
            is_killed: self.rehearsal.is_killed(),
        }
    }

    /// Marks the panes in which the oldest unseen key is visible now: the player moves along the new direction rather
    /// than along the old one.
    fn see_keys(&mut self, frame: &TourFrame) {
        let Some(before) = self.frames.back() else {
            return;
        };
        for at in 0..4 {
            let own = |frame: &TourFrame| frame.panes[at].player(OWN);
            let Some((from, to)) = own(before).zip(own(frame)) else {
                continue;
            };
            let waits =
                |key: &&mut KeyMark| key.seen[at].is_none() && frame.n < key.pressed + KEY_LOST;
            if let Some(key) = self.keys.iter_mut().find(waits)
                && (to - from).dot(key.turn[1] - key.turn[0]) > 0.02
            {
                key.seen[at] = Some(frame.n);
            }
        }
    }

    fn shown(&self) -> Option<&TourFrame> {
        match self.is_steered {
            true => self.frames.back(),
            false => self.frames.front().filter(|_| self.frames.len() >= AHEAD),
        }
    }
}

fn predicted<V>(session: &Session<Game, V>) -> PaneShot
where
    V: Show<Game, Key = ShowKey, Pose = Placed>,
{
    let game = session.prediction().map(World::sim);
    PaneShot {
        bodies: bodies(session.shown(), game),
        friend_time: session.drawn_at(FRIEND).unwrap_or_default(),
        thing_time: session.drawn_at(NO_PLAYER).unwrap_or_default(),
        blasts: Vec::new(),
    }
}

fn bodies(shown: impl Iterator<Item = (ShowKey, Placed)>, game: Option<&Game>) -> Vec<Body> {
    let body = |(key, placed): (ShowKey, Placed)| {
        let is_lit = match key {
            ShowKey::Player { .. } => false,
            ShowKey::Barrel { n, .. } => {
                let barrel = game.and_then(|game| game.barrels.get(usize::from(n)));
                barrel.is_some_and(|barrel| barrel.stage == BarrelStage::Lit)
            }
            _ => return None,
        };
        Some(Body {
            key,
            at: placed.at,
            is_lit,
        })
    };
    shown.filter_map(body).collect()
}

/// An arena without walls and enemies, shown as a whole, with barrels that throw each other and do not hurt players.
fn rules() -> Rules {
    let mut rules = Rules::arena(0);
    rules.half = HALF;
    rules.walls.clear();
    let side = |n| if n % 2 == 0 { -6.0 } else { 6.0 };
    rules.spawns = (0..16).map(|n| vec2(side(n), 0.0)).collect();
    let barrels = [(0.0, 0.0), (-2.0, 1.0), (1.75, 1.5), (0.5, -2.25)];
    rules.barrels = barrels.map(Vec2::from).to_vec();
    let tuning = &mut rules.tuning;
    (tuning.blast_damage, tuning.light_reach) = (0, 40.0);
    (tuning.fuse_ticks, tuning.chain_fuse_ticks) = (60, 6_000);
    tuning.barrel_return_ticks = 90;
    rules
}
