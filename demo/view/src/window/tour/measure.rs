//! [`Meter`]: the numbers of each pane, over the chapter so far.

use std::collections::VecDeque;

use powderkeg_game::{PLAYER_RADIUS, ShowKey};

use super::frame::{FRAMES_PER_SECOND, FRIEND, KeyMark, OWN, PaneShot, TourFrame, Truth};

/// The first frames of a chapter, which are not measured because the clock settles on the new link.
const SETTLE_FRAMES: u32 = 2 * FRAMES_PER_SECOND;
/// A shorter movement in a frame counts as standing still: the local player always walks, at 0.16 units a tick.
const STANDS: f32 = 0.03;
/// A longer movement in a frame, more than two ticks of walking, counts as a jump.
const JUMPS: f32 = 0.35;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The median time from a key to the picture, in ms.
    KeyLate,
    /// The longest movement of the friend in one frame, if it is a jump, in radii.
    Jump,
    /// In 95 of 100 frames, the friend is drawn at most this far from its position, in radii.
    Off,
    /// The longest time that the local player stood still, in ms.
    Stood,
    /// The time from the first pane that showed a blast to this one, in ms.
    BlastLate,
    /// The largest distance of a barrel as drawn from its position, in radii.
    BarrelOff,
}

#[derive(Clone, Debug, Default)]
struct PaneMeter {
    key_frames: Vec<u32>,
    off: Vec<f32>,
    jump: f32,
    stands: u32,
    stood: u32,
    barrel_off: f32,
    blast: Option<u32>,
    /// The delay at which the friend is drawn behind things without an owner, in ticks, averaged over about a second.
    behind: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    chapter: usize,
    panes: [PaneMeter; 4],
}

impl Meter {
    /// Measures a frame, and the movement from it to the next one.
    pub(super) fn measure(
        &mut self,
        [frame, next]: [&TourFrame; 2],
        truth: &Truth,
        keys: &VecDeque<KeyMark>,
    ) {
        if frame.chapter != self.chapter {
            let chapter = frame.chapter;
            *self = Meter {
                chapter,
                ..Meter::default()
            };
        }
        if frame.age < SETTLE_FRAMES {
            return;
        }
        for (at, pane) in self.panes.iter_mut().enumerate() {
            let shot = &frame.panes[at];
            pane.measure(shot, &next.panes[at], truth);
            let seen = keys.iter().filter(|key| key.seen[at] == Some(frame.n));
            pane.key_frames
                .extend(seen.map(|key| frame.n - key.pressed));
            let began = shot.blasts.iter().any(|(_, since)| *since == frame.n);
            pane.blast = pane.blast.or(began.then_some(frame.n));
        }
    }

    pub(super) fn value(&self, pane: usize, measure: Measure) -> Option<f32> {
        let it = &self.panes[pane];
        let ms = |frames: u32| (frames * 1_000 / FRAMES_PER_SECOND) as f32;
        match measure {
            Measure::KeyLate => part(&it.key_frames, 0.5).map(ms),
            Measure::Off => part(&it.off, 0.95),
            Measure::Jump => (!it.off.is_empty()).then_some(it.jump),
            Measure::Stood => (!it.off.is_empty()).then(|| ms(it.stood)),
            Measure::BarrelOff => it.blast.map(|_| it.barrel_off),
            Measure::BlastLate => {
                let first = self.panes.iter().filter_map(|pane| pane.blast).min();
                it.blast.zip(first).map(|(own, first)| ms(own - first))
            }
        }
    }

    /// The delay at which the friend is drawn behind the prediction, in ms.
    pub(super) fn ago_ms(&self, pane: usize) -> f64 {
        self.panes[pane].behind * 1_000.0 / f64::from(FRAMES_PER_SECOND)
    }

    pub(super) fn words(&self, pane: usize, measure: Measure) -> String {
        match (self.value(pane, measure), measure) {
            (None, _) => "..".to_owned(),
            (Some(ms), Measure::KeyLate | Measure::Stood | Measure::BlastLate) => {
                format!("{ms:.0} ms")
            }
            (Some(radii), _) => format!("{radii:.1}"),
        }
    }
}

impl PaneMeter {
    fn measure(&mut self, shot: &PaneShot, next: &PaneShot, truth: &Truth) {
        for body in &shot.bodies {
            let to = next.bodies.iter().find(|to| to.key == body.key);
            let way = to.map(|to| to.at.distance(body.at));
            let off = |time| Some(truth.at(time, body.key)?.distance(body.at) / PLAYER_RADIUS);
            match body.key {
                ShowKey::Player { id: OWN, .. } => {
                    let stands = way.is_some_and(|way| way < STANDS);
                    self.stands = if stands { self.stands + 1 } else { 0 };
                    // Uneven frames do not count as a pause.
                    self.stood = self.stood.max(self.stands * u32::from(self.stands > 2));
                }
                ShowKey::Player { id: FRIEND, .. } => {
                    let jump = way.filter(|way| *way > JUMPS).unwrap_or_default();
                    self.jump = self.jump.max(jump / PLAYER_RADIUS);
                    if let Some(off) = off(shot.friend_time) {
                        self.off.push(off);
                        let behind = shot.thing_time - shot.friend_time;
                        self.behind += (behind - self.behind) / 40.0;
                    }
                }
                ShowKey::Barrel { .. } => {
                    self.barrel_off = self
                        .barrel_off
                        .max(off(shot.thing_time).unwrap_or_default());
                }
                _ => {}
            }
        }
    }
}

fn part<T: Copy + PartialOrd>(values: &[T], part: f32) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    sorted.get((sorted.len() as f32 * part) as usize).copied()
}
