//! [`WindowStage`]: one frame of the view: inputs come in, the match advances, cues become effects, and a picture is
//! painted. It has no window and no clock, so the window, the pictures for documents, the measurements and the tests
//! all use it.
//!
//! ```text
//!   StageInput ──▶ screens, hands ──▶ Feed::advance ──▶ cues ──▶ effects ──▶ ViewScene ──▶ camera ──▶ Batch
//! ```
//!
//! The stage owns everything that one frame keeps for the next: the feed, the inputs, effects, camera, open screens,
//! settings.
//!
//! Invariant: a frame's inputs show in that frame's picture.

use glam::Vec2;
use powderkeg_game::{Command, PLAYER_RADIUS, Pad, RoundPhase};
use twinstep_client::SessionEnd;
use twinstep_core::{Key, Mwc, PlayerId, Tick};
use twinstep_protocol::simnet::LinkProfile;

use super::atlas::Atlas;
use super::batch::Batch;
use super::camera::{Camera, Focus};
use super::input::{Board, Hands, MouseView, SeatOrder, Stick, WindowAct};
use super::paint::{self, WindowPicture, reel_bar};
use super::rect::Rect;
use super::screens::{Screens, Wish};
use super::settings::Settings;
use super::sound::Speaker;
use crate::feed::Feed;
use crate::scene::effects::{HeardCue, ViewEffects};
use crate::scene::palette::{FAINT, INK, Tint, WARN};
use crate::scene::{Sound, ViewMember, ViewScene};

/// The distance beyond which sounds are not played, in units.
const EARSHOT: f32 = 34.0;

pub(crate) struct StageInput<'a> {
    pub(crate) board: &'a Board,
    pub(crate) sticks: &'a [Stick],
    pub(crate) size: Vec2,
    pub(crate) dt: f32,
    /// The inputs of a script or a test, which replace the hands.
    pub(crate) pads: Option<&'a [Pad]>,
}

pub(crate) struct WindowStage {
    pub(crate) feed: Feed,
    pub(crate) scene: ViewScene,
    pub(crate) effects: ViewEffects,
    pub(crate) camera: Camera,
    pub(crate) screens: Screens,
    pub(crate) settings: Settings,
    pub(crate) batch: Batch,
    pub(crate) has_new_atlas: bool,
    is_muted: bool,
    pub(crate) vsync: bool,
    rate: FrameRate,
    followed_player: Option<PlayerId>,
    hands: Hands,
    speaker: Speaker,
    luck: Mwc,
    tick: Tick,
    followed: Vec<Vec2>,
}

impl WindowStage {
    pub(crate) fn new(feed: Feed, speaker: Speaker, size: Vec2) -> WindowStage {
        let rules = feed.rules().clone();
        let scene = ViewScene::new(rules);
        let is_live = feed.replay().is_none();
        let settings = Settings::default();
        let mut stage = WindowStage {
            effects: ViewEffects::default(),
            camera: Camera::new(),
            screens: Screens {
                title: is_live,
                ..Screens::default()
            },
            batch: Batch::new(Atlas::new(settings.scale(size), settings.colors)),
            has_new_atlas: true,
            is_muted: false,
            vsync: true,
            rate: FrameRate::default(),
            followed_player: None,
            hands: Hands::default(),
            luck: Mwc::seed(1).fork(Key::new(1, 1)),
            tick: Tick(0),
            followed: Vec::new(),
            scene,
            feed,
            settings,
            speaker,
        };
        stage.set_settings(Settings::default());
        stage
    }

    pub(crate) fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.set_volume();
    }

    fn set_volume(&mut self) {
        let volume = if self.is_muted {
            0.0
        } else {
            self.settings.volume()
        };
        self.speaker.set_volume(volume);
    }

    pub(crate) fn background(&self) -> Tint {
        self.settings.colors.floor()
    }

    /// Runs one frame. Returns the wishes that only the window can fulfil.
    ///
    /// # Errors
    /// If the match is over for this screen. The picture is still painted, and shows the reason.
    pub(crate) fn frame(&mut self, input: &StageInput<'_>) -> Result<Vec<Wish>, SessionEnd> {
        let screen = Rect::new(0.0, 0.0, input.size.x, input.size.y);
        self.rate.count(input.dt);
        self.fit(input.size);
        let taken = self.screens.takes_keys();
        let wishes = self
            .screens
            .handle(input.board, input.sticks, &mut self.settings, screen);
        // A key that closed the title or a setting must not also be a dash.
        let taken = taken || self.screens.takes_keys();
        self.read_hands(input, taken);
        if self.feed.replay().is_some() && !taken {
            self.control_replay(input, screen);
        }
        let is_read = self.screens.overlay.is_some();
        let is_hunted = self.screens.title && self.scene.phase == RoundPhase::Endless;
        self.feed.hold(is_read || is_hunted);
        let neutral = [Pad::default(); 2];
        let held: &[Pad] = if taken { &neutral } else { &self.hands.pads };
        let played = self.feed.advance(input.pads.unwrap_or(held));
        if let Err(ended) = &played {
            self.screens
                .closing
                .get_or_insert_with(|| ended.to_string());
        }
        // Before the scene is gathered, because a cue's subject may be gone in the new picture.
        self.take_outputs();
        self.scene.gather(&self.feed, self.screens.ghosts);
        self.look(input.dt, screen);
        self.sound();
        let left = wishes
            .into_iter()
            .filter(|wish| !self.fulfil(*wish))
            .collect();
        self.paint(input, screen);
        played.map(|()| left)
    }

    fn fit(&mut self, size: Vec2) {
        let scale = self.settings.scale(size);
        let mode = self.settings.colors;
        if scale != self.batch.atlas.scale || mode != self.batch.atlas.mode {
            self.batch = Batch::new(Atlas::new(scale, mode));
            self.has_new_atlas = true;
        }
    }

    fn read_hands(&mut self, input: &StageInput<'_>, taken: bool) {
        let seats = self.feed.seats();
        let me = seats.first().and_then(|id| self.scene.player(*id));
        let view = MouseView {
            player: me.map(|thing| self.camera.to_screen(thing.at)),
            seats: seats.len(),
        };
        self.hands.read(input.board, input.sticks, view);
        if taken {
            return;
        }
        for (seat, order) in &self.hands.orders {
            match order {
                SeatOrder::Dash => self.feed.order(*seat, Command::Dash),
                SeatOrder::Light => self.feed.light(*seat),
                // The round waits for players to be ready only in some phases.
                SeatOrder::Ready if self.scene.phase.is_waiting() => {
                    self.feed.order(*seat, Command::Ready)
                }
                SeatOrder::Ready => {}
            }
        }
    }

    fn control_replay(&mut self, input: &StageInput<'_>, screen: Rect) {
        let board = input.board;
        if board.pressed(WindowAct::Light) {
            let next =
                |player: &&ViewMember| self.followed_player.is_none_or(|now| player.id > now);
            self.followed_player = self.scene.team.iter().find(next).map(|player| player.id);
        }
        let Some(reel) = self.feed.replay_mut() else {
            return;
        };
        let bar = reel_bar(screen, self.batch.atlas.scale);
        if board.pressed(WindowAct::Dash) {
            reel.toggle_pause();
        }
        for (acts, seconds) in [
            ([WindowAct::Left, WindowAct::SecondLeft], -5),
            ([WindowAct::Right, WindowAct::SecondRight], 5),
        ] {
            if acts.into_iter().any(|act| board.pressed(act)) {
                reel.skip_seconds(seconds);
            }
        }
        if board.pressed(WindowAct::Up) || board.pressed(WindowAct::SecondUp) {
            reel.set_speed(reel.speed().faster());
        }
        if board.pressed(WindowAct::Down) || board.pressed(WindowAct::SecondDown) {
            reel.set_speed(reel.speed().slower());
        }
        // A short click may be over within one frame.
        if (board.button || board.clicked) && bar.contains(board.mouse) {
            reel.seek_part((board.mouse.x - bar.at.x) / bar.size.x);
        }
    }

    fn take_outputs(&mut self) {
        let (now, tick) = (self.feed.now(), self.feed.tick());
        // After a seek, running effects belong to another time.
        if self.feed.replay().is_some() && (tick < self.tick || tick.0 > self.tick.0 + 120) {
            self.effects.clear();
        }
        self.tick = tick;
        self.effects.advance(now);
        while let Some(event) = self.feed.poll_cue() {
            self.effects
                .handle(now, &event, &self.scene, self.settings.colors);
        }
        while let Some(note) = self.feed.poll_note() {
            self.effects.note(now, note.tick, note.words, FAINT);
        }
    }

    fn look(&mut self, dt: f32, screen: Rect) {
        let locals = self.scene.locals();
        let followed = self.followed_player.and_then(|id| self.scene.player(id));
        if !locals.is_empty() {
            self.followed = locals;
        } else if let Some(thing) = followed {
            self.followed = vec![thing.at];
        } else if self.feed.replay().is_some() {
            self.followed.clear();
        }
        let whom: &[Vec2] = if self.screens.title {
            &[]
        } else {
            &self.followed
        };
        let aim = match (self.hands.pads.first(), whom) {
            (Some(pad), [_]) => pad.aim.unit() * 14.0,
            _ => Vec2::ZERO,
        };
        let middle = self.camera.at();
        for (at, strength) in self.effects.quakes.drain(..) {
            let near = at.map_or(1.0, |at| 1.0 - (at.distance(middle) / EARSHOT).min(1.0));
            self.camera.shake(strength * near);
        }
        let focus = Focus {
            whom,
            aim,
            half: self.scene.rules.half,
            screen: screen.size,
        };
        self.camera
            .follow(&focus, dt, self.settings.shake(), &mut self.luck);
        let (camera, scale) = (&self.camera, self.batch.atlas.scale);
        let half = Vec2::splat(camera.zoom() * PLAYER_RADIUS * 2.0);
        let own = self.scene.locals().into_iter();
        let own: Vec<Rect> = own
            .map(|at| Rect::around(camera.to_screen(at), half))
            .collect();
        let at = self.screens.netgraph_at;
        self.screens.netgraph_at = paint::free_place(at, screen, scale, &own);
    }

    fn sound(&mut self) {
        let middle = self.camera.at();
        for HeardCue { cue, sound, at } in self.effects.heard.drain(..) {
            let (volume, pan) = match at {
                None => (1.0, 0.0),
                Some(at) => {
                    let way = at - middle;
                    let near = 1.0 - (way.length() / EARSHOT).min(1.0);
                    (near * near, way.x / EARSHOT * 1.6)
                }
            };
            if volume > 0.02 {
                self.speaker.play(Some(cue), sound, volume, pan);
            }
        }
        for cue in self.effects.hushed.drain(..) {
            self.speaker.hush(cue);
        }
    }

    fn fulfil(&mut self, wish: Wish) -> bool {
        let is_about_prediction = matches!(
            wish,
            Wish::NextLink | Wish::Prediction | Wish::Smoothing | Wish::Ghosts | Wish::Netgraph
        );
        if is_about_prediction && self.feed.replay().is_some() {
            self.show_note(
                "F2 to F6 need a live match: a replay has no prediction",
                WARN,
            );
            return true;
        }
        match wish {
            Wish::NextLink => {
                let presets = LinkProfile::PRESETS;
                let Some(link) = self.feed.link().map(str::to_owned) else {
                    self.show_note("this link is real and cannot be switched", WARN);
                    return true;
                };
                let at = presets.iter().position(|(name, _)| *name == link);
                let next = at.map_or(0, |at| (at + 1) % presets.len());
                self.feed.set_link(next);
                self.show_note(&format!("link: {}", presets[next].0), INK);
            }
            Wish::Prediction => {
                let predicts = !self.feed.predicts();
                self.feed.set_predicts(predicts);
                let words = match predicts {
                    true => "prediction on: your keys show at once",
                    false => "prediction off: your keys show when the server's response arrives",
                };
                self.show_note(words, INK);
            }
            Wish::Smoothing => {
                let smooths = !self.feed.smooths();
                self.feed.set_smooths(smooths);
                let words = match smooths {
                    true => "smoothing on: wrong guesses fade",
                    false => "smoothing off: look at other players when they turn",
                };
                self.show_note(words, INK);
            }
            Wish::Ghosts | Wish::Netgraph => {}
            Wish::Mute => {
                self.is_muted = !self.is_muted;
                self.set_volume();
                let words = if self.is_muted {
                    "sound off"
                } else {
                    "sound on"
                };
                self.show_note(words, INK);
            }
            Wish::Click => self.speaker.play(None, Sound::Click, 0.6, 0.0),
            Wish::Settings => {
                self.set_volume();
                self.speaker.play(None, Sound::Click, 0.6, 0.0);
            }
            Wish::Pause => self.feed.pause(),
            Wish::Save => self.feed.keep_replay(),
            Wish::Screenshot | Wish::Fullscreen | Wish::Quit => return false,
        }
        true
    }

    pub(crate) fn show_note(&mut self, words: &str, tint: Tint) {
        let (now, tick) = (self.feed.now(), self.feed.tick());
        self.effects.note(now, tick, words.to_owned(), tint);
    }

    fn paint(&mut self, input: &StageInput<'_>, screen: Rect) {
        let points = self.screens.points() || self.feed.replay().is_some();
        let has_mouse = self.hands.aims_by_mouse();
        let aims = !self.feed.seats().is_empty() && !points;
        let picture = WindowPicture {
            scene: &self.scene,
            effects: &self.effects,
            camera: &self.camera,
            screens: &self.screens,
            settings: &self.settings,
            screen,
            frames: (self.rate.shown, self.vsync),
            is_alone: self.feed.is_alone(),
            crosshair: (aims && has_mouse).then_some(input.board.mouse),
            pointer: (points && has_mouse).then_some(input.board.mouse),
        };
        paint::paint(&mut self.batch, &picture);
    }
}

#[derive(Default)]
struct FrameRate {
    frames: f32,
    seconds: f32,
    shown: f32,
}

impl FrameRate {
    fn count(&mut self, dt: f32) {
        (self.frames, self.seconds) = (self.frames + 1.0, self.seconds + dt);
        if self.seconds >= 0.5 {
            self.shown = self.frames / self.seconds;
            (self.frames, self.seconds) = (0.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use powderkeg_game::Rules;

    use super::*;
    use crate::rehearsal::{Rehearsal, Setup};

    #[test]
    fn a_key_that_changes_the_picture_or_sound_shows_a_line_about_it() {
        let setup = Setup::new(Arc::new(Rules::arena(0)), 1);
        let feed = Feed::rehearsal(Rehearsal::new(&setup), None);
        let size = glam::vec2(1_280.0, 720.0);
        let mut stage = WindowStage::new(feed, Speaker::silent(), size);
        stage.screens.title = false;
        let mut press = |act| {
            let input = StageInput {
                board: &Board::with(&[act]),
                sticks: &[],
                size,
                dt: 0.016,
                pads: None,
            };
            stage.frame(&input).unwrap();
            let newest = stage.effects.lines.back();
            (
                newest.map(|line| line.words.clone()).unwrap_or_default(),
                stage.is_muted,
            )
        };
        for (act, words, is_muted) in [
            (WindowAct::Prediction, "prediction off", false),
            (WindowAct::Smoothing, "smoothing off", false),
            (WindowAct::Mute, "sound off", true),
            (WindowAct::Mute, "sound on", false),
        ] {
            let (newest, muted) = press(act);
            assert!(newest.starts_with(words), "{act:?}: {newest}");
            assert_eq!(muted, is_muted, "{act:?}");
        }
    }
}
