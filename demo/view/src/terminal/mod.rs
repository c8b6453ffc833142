//! The terminal view: Powderkeg, playable wherever there is a terminal.
//!
//! ```text
//!   keys ──▶ Keys ──pads, orders──▶ Feed ──▶ ViewScene, ViewEffects ──draw──▶ Screen
//!    keys.rs                                                draw.rs, arena.rs, hud.rs
//! ```
//!
//! Invariants: a picture is a pure function of the `TerminalView`; only [`run`] touches a terminal and a clock; and
//! the terminal is always restored.
//!
//! Most terminals do not report key releases. There, a press holds its direction until another press or the stop key. A
//! terminal with the kitty protocol reports them. `NO_COLOR` is respected. While the view is open, no other code may
//! write to the terminal: send logs to a file.

mod arena;
mod controls;
mod draw;
mod hud;
mod keys;
mod screen;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use crossterm::event::{self, Event as Input, KeyEvent};
use powderkeg_game::Command;
use twinstep_client::SessionEnd;

use crate::feed::{Feed, Note};
use crate::scene::ViewScene;
use crate::scene::effects::ViewEffects;
use crate::scene::palette::{ColorMode, FAINT};
use crate::stop;
use crate::summary::Summary;
use keys::{KeyboardPart, Keys, TerminalAct};
use screen::Screen;
pub use screen::{TerminalError, give_back};

/// The longest wait for input before the feed is advanced again.
const PAUSE: Duration = Duration::from_millis(5);
/// The interval at which the terminal reader checks whether the view has ended.
const LOOK: Duration = Duration::from_millis(50);
const INPUTS_MAX: usize = 64;
const SEATS: usize = 2;
const FRAME: Duration = Duration::from_millis(33);

/// Shows `feed` on this terminal until the player quits or the match is over, then leaves the match. Takes over the
/// calling thread.
///
/// # Errors
/// If there is no terminal, or it fails. It has been restored by then.
pub fn run(mut feed: Feed) -> Result<Summary, TerminalError> {
    let mut screen = Screen::enter()?;
    let inputs = Inputs::read()?;
    let mut view = TerminalView::new(&feed, screen.releases);
    view.color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let ended = view.play(&mut feed, &inputs, &mut screen);
    feed.leave();
    drop(screen);
    Ok(Summary::of(&feed, ended?))
}

/// The typed keys, read on a separate thread, because the library's reader never returns from a closed terminal, and
/// the view must still notice other events, such as a signal or a failed drawing.
struct Inputs {
    typed: Receiver<io::Result<Input>>,
    is_over: Arc<AtomicBool>,
}

impl Inputs {
    fn read() -> io::Result<Inputs> {
        let (reads, typed) = sync_channel(INPUTS_MAX);
        let is_over = Arc::<AtomicBool>::default();
        let ends = is_over.clone();
        let read = move || {
            while !ends.load(Ordering::Relaxed) {
                let input = match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                let is_last = input.is_err();
                if reads.send(input).is_err() || is_last {
                    return;
                }
            }
        };
        Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(Inputs { typed, is_over })
    }

    /// Returns the next input, if one arrives within this time.
    fn next(&self, within: Duration) -> io::Result<Option<Input>> {
        match self.typed.recv_timeout(within) {
            Ok(input) => input.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct TerminalView {
    /// One for each seat; the second stays unused with a single player.
    keys: [Keys; SEATS],
    scene: ViewScene,
    effects: ViewEffects,
    ghosts: bool,
    releases: bool,
    color: bool,
    quits: bool,
}

impl TerminalView {
    fn new(feed: &Feed, releases: bool) -> TerminalView {
        TerminalView {
            keys: [Keys::new(releases), Keys::new(releases)],
            scene: ViewScene::new(feed.rules().clone()),
            effects: ViewEffects::default(),
            ghosts: false,
            releases,
            color: true,
            quits: false,
        }
    }

    fn play(
        &mut self,
        feed: &mut Feed,
        inputs: &Inputs,
        screen: &mut Screen,
    ) -> Result<Option<SessionEnd>, io::Error> {
        let mut next_frame = Duration::ZERO;
        loop {
            if let Err(ended) = self.advance(feed) {
                return Ok(Some(ended));
            }
            let now = feed.now();
            if now >= next_frame {
                // A late frame is skipped, not drawn later.
                next_frame = (next_frame + FRAME).max(now);
                self.look(feed);
                screen.terminal.draw(|frame| draw::draw(frame, self))?;
            }
            // Wait only for the first input, then take the others that have arrived.
            let mut patience = PAUSE;
            while let Some(input) = inputs.next(patience)? {
                patience = Duration::ZERO;
                match input {
                    Input::Key(key) => self.press(now, &key, feed),
                    // Keys released elsewhere are not reported here.
                    Input::FocusLost if self.releases => {
                        self.keys.iter_mut().for_each(Keys::release_all);
                    }
                    Input::Resize(..) => next_frame = Duration::ZERO,
                    _ => {}
                }
            }
            if self.quits || stop::asked() {
                return Ok(None);
            }
        }
    }

    fn advance(&mut self, feed: &mut Feed) -> Result<(), SessionEnd> {
        feed.advance(&self.keys.map(|keys| keys.pad()))?;
        let now = feed.now();
        self.effects.advance(now);
        while let Some(event) = feed.poll_cue() {
            self.effects
                .handle(now, &event, &self.scene, ColorMode::Safe);
        }
        while let Some(Note { tick, words }) = feed.poll_note() {
            self.effects.note(now, tick, words, FAINT);
        }
        if let Some(game) = feed.game() {
            for (keys, player) in self.keys.iter_mut().zip(feed.seats()) {
                if let Some(player) = game.players.get(player) {
                    keys.face(player.facing);
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, feed: &Feed) {
        self.scene.gather(feed, self.ghosts);
    }

    fn press(&mut self, now: Duration, key: &KeyEvent, feed: &mut Feed) {
        if let Some(replay) = feed.replay_mut() {
            self.quits |= controls::apply(key, replay);
            return;
        }
        let hands: &[KeyboardPart] = match feed.seats().len() {
            0 | 1 => &[KeyboardPart::Both],
            _ => &[KeyboardPart::Left, KeyboardPart::Right],
        };
        for (seat, hands) in hands.iter().enumerate() {
            if let Some(act) = self.keys[seat].handle(now, key, *hands) {
                self.act(act, seat, feed);
            }
        }
    }

    fn act(&mut self, act: TerminalAct, seat: usize, feed: &mut Feed) {
        match act {
            TerminalAct::Quit => self.quits = true,
            TerminalAct::Ghosts => self.ghosts ^= true,
            TerminalAct::Predicts => feed.set_predicts(!feed.predicts()),
            TerminalAct::Smooths => feed.set_smooths(!feed.smooths()),
            TerminalAct::Link(preset) => feed.set_link(preset),
            TerminalAct::Pause => feed.pause(),
            TerminalAct::Save => feed.keep_replay(),
            TerminalAct::Dash => feed.order(seat, Command::Dash),
            TerminalAct::Light => feed.light(seat),
            // One key for all local players.
            TerminalAct::Ready => {
                (0..feed.seats().len()).for_each(|seat| feed.order(seat, Command::Ready));
            }
        }
    }
}
