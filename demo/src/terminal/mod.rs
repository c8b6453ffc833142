//! The terminal view: Powderkeg, playable wherever there is a terminal.
//!
//! ```text
//!   keys ──▶ Keys ──pad, orders──▶ Client ──▶ poses, cues, counters ──▶ Scene ──draw──▶ Screen
//!    keys.rs                                  effects.rs, gauges.rs    scene.rs  draw.rs  screen.rs
//!                                                                                arena.rs, hud.rs
//! ```
//!
//! Invariants: [`draw`] is a pure function of a [`Scene`]; only [`run`] touches a terminal and a clock; and
//! the terminal is given back as it was, whatever happens.
//!
//! A terminal tells of no key releases, so a press holds its direction until another one or the stop key;
//! where the kitty protocol is offered, releases are real. `NO_COLOR` is respected. Nobody else may write to
//! the terminal meanwhile: send logs to a file.

mod arena;
mod draw;
mod effects;
mod gauges;
mod hud;
mod keys;
mod scene;
mod screen;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{self, Event as Input};
use twinstep_client::client::Ended;
use twinstep_client::stats::SessionStats;
use twinstep_client::{Client, Event, Session};
use twinstep_core::simnet::LinkProfile;
use twinstep_core::{PlayerId, Tick};

use crate::game::{Command, Game, Rules, Stage};
use crate::game_show::GameShow;
pub use draw::{SIZE_MIN, draw};
pub use effects::{Effects, Fate, Flash, FlashKind, LogLine};
pub use gauges::{Gauges, Rates};
pub use keys::{Act, Keys};
pub use scene::{Member, Scene, Thing};
use screen::Screen;

/// The client is advanced at least so often: 200 times a second.
const PAUSE: Duration = Duration::from_millis(5);
/// The picture is drawn so often: 30 times a second.
const FRAME: Duration = Duration::from_millis(33);

/// How the view is to be.
#[derive(Clone, Debug)]
pub struct TerminalOptions {
    /// The name of the simulated link that the client plays over; the keys 1 to 5 switch it. `None`: the link
    /// is real, and no key changes it.
    pub link: Option<String>,
    /// Whether to use colours.
    pub color: bool,
}

impl TerminalOptions {
    /// Colours, unless the environment's `NO_COLOR` is set and not empty.
    #[must_use]
    pub fn new(link: Option<String>) -> TerminalOptions {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        TerminalOptions {
            link,
            color: !no_color,
        }
    }
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Summary {
    /// For how long the view ran.
    pub played: Duration,
    /// The session's counters at the end.
    pub stats: SessionStats,
    /// The team's points.
    pub score: u32,
    /// Who played at the end.
    pub team: Vec<Member>,
    /// Why it ended; `None`: the player quit.
    pub ended: Option<Ended>,
}

/// The view cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// Input or output is no terminal.
    #[error(
        "the view needs a terminal on standard input and output; run without one to play headless"
    )]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Io(#[from] io::Error),
}

/// Plays seat 0 of `client` on this terminal until the player quits or the session ends, then says goodbye.
/// `rules` are those of the session. Takes over the calling thread.
///
/// # Errors
/// There is no terminal, or it fails. It has been given back by then.
pub fn run(
    mut client: Client<Game, GameShow>,
    rules: Arc<Rules>,
    options: TerminalOptions,
) -> Result<Summary, TerminalError> {
    let mut screen = Screen::enter()?;
    let mut view = View::new(rules, options, screen.releases);
    let began = client.now();
    let ended = view.play(&mut client, &mut screen);
    let played = client.now().saturating_sub(began);
    client.leave();
    drop(screen);
    Ok(Summary {
        played,
        stats: view.scene.stats,
        score: view.scene.score,
        team: view.scene.team,
        ended: ended?,
    })
}

/// What the loop keeps.
struct View {
    keys: Keys,
    effects: Effects,
    gauges: Gauges,
    scene: Scene,
    quits: bool,
}

impl View {
    fn new(rules: Arc<Rules>, options: TerminalOptions, releases: bool) -> View {
        View {
            keys: Keys::new(releases),
            effects: Effects::default(),
            gauges: Gauges::default(),
            scene: Scene {
                link: options.link,
                color: options.color,
                releases,
                ..Scene::new(rules)
            },
            quits: false,
        }
    }

    fn play(
        &mut self,
        client: &mut Client<Game, GameShow>,
        screen: &mut Screen,
    ) -> Result<Option<Ended>, io::Error> {
        let mut next_frame = Duration::ZERO;
        loop {
            let pad = self.keys.pad();
            if let Err(ended) = client.advance(|_| pad) {
                return Ok(Some(ended));
            }
            let now = client.now();
            self.listen(now, &mut client.session);
            if now >= next_frame {
                // A frame that is late is not made up for.
                next_frame = (next_frame + FRAME).max(now);
                self.effects.advance(now);
                self.scene.pad = pad;
                self.scene
                    .gather(now, &client.session, &self.gauges, &self.effects);
                screen.terminal.draw(|frame| draw(frame, &self.scene))?;
            }
            let mut patience = PAUSE;
            while event::poll(patience)? {
                patience = Duration::ZERO;
                match event::read()? {
                    Input::Key(key) => {
                        if let Some(act) = self.keys.handle(now, &key) {
                            self.act(act, client);
                        }
                    }
                    Input::FocusLost if self.keys.has_releases() => self.keys.release_all(),
                    Input::Resize(..) => next_frame = Duration::ZERO,
                    _ => {}
                }
            }
            if self.quits {
                return Ok(None);
            }
        }
    }

    /// Takes what the session has to tell.
    fn listen(&mut self, now: Duration, session: &mut Session<Game, GameShow>) {
        self.gauges.read(now, &session.stats());
        while let Some(cue) = session.poll_cue() {
            let scene = &self.scene;
            self.effects
                .handle(now, cue, &scene.rules, |cue| scene.place_of(cue));
        }
        let tick = session.prediction().map_or(Tick(0), |world| world.tick());
        while let Some(event) = session.poll_event() {
            match event {
                Event::CommandRefused { .. } => self.effects.note(tick, "the order was refused"),
                Event::Healed { .. } => self.effects.note(tick, "healed by the server"),
                _ => {}
            }
        }
        if let Some((me, world)) = me(session).zip(session.prediction())
            && let Some(player) = world.sim().players.get(&me)
        {
            self.keys.face(player.facing);
        }
    }

    fn act(&mut self, act: Act, client: &mut Client<Game, GameShow>) {
        match act {
            Act::Quit => self.quits = true,
            Act::Ghosts => self.scene.shows_ghosts ^= true,
            Act::Link(n) => {
                let preset = LinkProfile::PRESETS.get(n);
                if let (Some(link), Some((name, profile))) = (&mut self.scene.link, preset) {
                    *link = (*name).to_owned();
                    client.transport().set_profile(*profile);
                }
            }
            Act::Dash => self.order(&mut client.session, Command::Dash),
            Act::Light => match nearest_barrel(&client.session, &self.scene.rules) {
                Some(barrel) => self.order(&mut client.session, Command::Light { barrel }),
                None => self.note(&client.session, "no barrel in reach"),
            },
        }
    }

    fn order(&mut self, session: &mut Session<Game, GameShow>, command: Command) {
        if let Err(error) = session.command(0, command) {
            self.note(session, &error.to_string());
        }
    }

    fn note(&mut self, session: &Session<Game, GameShow>, words: &str) {
        let tick = session.prediction().map_or(Tick(0), |world| world.tick());
        self.effects.note(tick, words);
    }
}

fn me(session: &Session<Game, GameShow>) -> Option<PlayerId> {
    session.seats().first().copied()
}

/// The nearest barrel that the player here can light.
fn nearest_barrel(session: &Session<Game, GameShow>, rules: &Rules) -> Option<u8> {
    let game = session.prediction()?.sim();
    let at = game.players.get(&me(session)?)?.at;
    let barrels = game.barrels.iter().zip(&rules.barrels).zip(0..);
    barrels
        .filter(|((barrel, _), _)| barrel.stage == Stage::Whole)
        .map(|((_, place), n)| (place.distance(at), n))
        .filter(|(distance, _)| *distance <= rules.tuning.light_reach)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, n)| n)
}
