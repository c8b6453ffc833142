//! [`Live`]: a match that is played, and what may be switched while it is.

use std::time::Duration;

use powderkeg_game::{Command, Game, GameShow, Pad, Rules, Stage};
use twinstep_client::client::Ended;
use twinstep_client::stats::SessionStats;
use twinstep_client::{Client, Event, Progress, Session};
use twinstep_core::simnet::LinkProfile;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, PlayerSet};

use super::companion::Companion;
use super::frame::Frame;
use super::lagged::Lagged;
use super::notice::{Note, Notice, Surplus};

/// A silence of the server that is longer is told.
const SILENCE: Duration = Duration::from_millis(1_500);

/// A session in play, whatever carries its packets.
pub trait Line {
    /// Lets all happen that is due; `pad` tells what a seat's player holds.
    ///
    /// # Errors
    /// Playing is over; it says so from then on.
    fn advance(&mut self, pad: &dyn Fn(usize) -> Pad) -> Result<(), Ended>;
    /// Time since it began.
    fn now(&self) -> Duration;
    /// The session.
    fn session(&self) -> &Session<Game, GameShow>;
    /// The session.
    fn session_mut(&mut self) -> &mut Session<Game, GameShow>;
    /// Plays over such a link from now on, if the link is a simulated one.
    fn set_link(&mut self, profile: LinkProfile);
    /// Says goodbye.
    fn leave(&mut self);
    /// The client, for whoever plays on without a view; none: it is no client.
    fn into_client(self: Box<Self>) -> Option<Client<Game, GameShow>> {
        None
    }
}

impl Line for Client<Game, GameShow> {
    fn advance(&mut self, pad: &dyn Fn(usize) -> Pad) -> Result<(), Ended> {
        Client::advance(self, pad)
    }

    fn now(&self) -> Duration {
        Client::now(self)
    }

    fn session(&self) -> &Session<Game, GameShow> {
        &self.session
    }

    fn session_mut(&mut self) -> &mut Session<Game, GameShow> {
        &mut self.session
    }

    fn set_link(&mut self, profile: LinkProfile) {
        self.transport().set_profile(profile);
    }

    fn leave(&mut self) {
        Client::leave(self);
    }

    fn into_client(self: Box<Self>) -> Option<Client<Game, GameShow>> {
        Some(*self)
    }
}

/// A match that is played.
pub struct Live {
    line: Box<dyn Line>,
    lagged: Lagged,
    /// The simulated link, by name; none: the link is real.
    link: Option<String>,
    predicts: bool,
    smooths: bool,
    unused: Surplus,
}

impl Live {
    /// Plays over `line`. `link` names its simulated link; `None`: the link is real, and cannot be switched.
    #[must_use]
    pub fn new(line: impl Line + 'static, show: GameShow, link: Option<String>) -> Live {
        Live {
            line: Box::new(line),
            lagged: Lagged::new(show),
            link,
            predicts: true,
            smooths: true,
            unused: Surplus::default(),
        }
    }

    /// With so many names given for this screen: if it has fewer seats, that is told.
    #[must_use]
    pub fn with_names(self, names: usize) -> Live {
        let unused = Surplus::of(names);
        Live { unused, ..self }
    }

    pub(super) fn into_client(self) -> Option<Client<Game, GameShow>> {
        self.line.into_client()
    }

    pub(super) fn advance(&mut self, pads: &[Pad], frame: &mut Frame) -> Result<(), Ended> {
        let pad = |seat: usize| pads.get(seat).copied().unwrap_or_default();
        self.line.advance(&pad)?;
        let now = self.line.now();
        let session = self.line.session_mut();
        // Said each time: the session has no picture before it plays.
        session.set_smooths(self.smooths);
        while let Some(event) = session.poll_cue() {
            if self.predicts {
                frame.cue(event);
            } else {
                self.lagged.hear(event, |event| frame.cue(event));
            }
        }
        while let Some(event) = session.poll_event() {
            if let Some(words) = words(&event) {
                let tick = session.prediction().map(|world| world.tick());
                frame.note(Note {
                    tick: tick.unwrap_or_default(),
                    words,
                });
            }
        }
        if let Some(words) = self.unused.noticed(session.seats().len()) {
            let tick = session.prediction().map(|world| world.tick());
            frame.note(Note {
                tick: tick.unwrap_or_default(),
                words,
            });
        }
        if let Some(authority) = session.authority() {
            self.lagged.advance(now, authority);
        }
        frame.shown.clear();
        if self.predicts {
            frame.shown.extend(session.shown());
        } else {
            frame.shown.extend(self.lagged.shown(now));
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.line.now()
    }

    /// The world that is shown.
    pub(super) fn world(&self) -> Option<&World<Game>> {
        let session = self.line.session();
        if self.predicts {
            session.prediction()
        } else {
            session.authority()
        }
    }

    pub(super) fn authority(&self) -> Option<&Game> {
        self.line.session().authority().map(|world| world.sim())
    }

    pub(super) fn seats(&self) -> &[PlayerId] {
        self.line.session().seats()
    }

    pub(super) fn waiting(&self) -> PlayerSet {
        self.line.session().waiting()
    }

    pub(super) fn recording(&self) -> Option<&[u8]> {
        self.line.session().recording()
    }

    pub(super) fn stats(&self) -> SessionStats {
        self.line.session().stats()
    }

    pub(super) fn company(&self) -> Vec<Companion> {
        let session = self.line.session();
        let Some(world) = session.authority() else {
            return Vec::new();
        };
        let (seats, company) = (session.seats(), session.company());
        let companion = |id: PlayerId| Companion {
            id,
            name: company
                .name(id)
                .map_or_else(|| id.to_string(), str::to_owned),
            is_local: seats.contains(&id),
            is_here: world.present().contains(id),
            is_late: session.waiting().contains(id),
            link: company.link(id),
        };
        world.seated().iter().map(companion).collect()
    }

    pub(super) fn notice(&self, silent: Duration) -> Option<Notice> {
        let session = self.line.session();
        let Some(world) = session.prediction() else {
            return Some(match session.progress() {
                Some(Progress::World {
                    received_bytes,
                    total_bytes,
                }) => Notice::Loading {
                    received_bytes,
                    total_bytes,
                },
                _ => Notice::Connecting,
            });
        };
        if session.is_returning() {
            return Some(Notice::Returning);
        }
        if let Some(Progress::CatchingUp {
            done_ticks,
            total_ticks,
        }) = session.progress()
        {
            return Some(Notice::CatchingUp {
                done_ticks,
                total_ticks,
            });
        }
        if silent > SILENCE {
            return Some(Notice::Silent(silent));
        }
        if session.differs().is_some() {
            return Some(Notice::Healing);
        }
        let is_in = |player: &PlayerId| world.sim().players.get(player).is_some();
        (!session.seats().iter().all(is_in)).then_some(Notice::Joining)
    }

    pub(super) fn order(&mut self, seat: usize, command: Command, frame: &mut Frame) {
        if let Err(error) = self.line.session_mut().command(seat, command) {
            self.tell(error.to_string(), frame);
        }
    }

    pub(super) fn light(&mut self, seat: usize, rules: &Rules, frame: &mut Frame) {
        let player = self.seats().get(seat).copied();
        let game = self.world().map(|world| world.sim());
        let nearest = player
            .zip(game)
            .and_then(|(player, game)| nearest_barrel(game, rules, player));
        match nearest {
            Some(barrel) => self.order(seat, Command::Light { barrel }, frame),
            None => self.tell("no barrel in reach".to_owned(), frame),
        }
    }

    fn tell(&self, words: String, frame: &mut Frame) {
        let tick = self.world().map(|world| world.tick()).unwrap_or_default();
        frame.note(Note { tick, words });
    }

    pub(super) fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    pub(super) fn set_link(&mut self, name: &str, profile: LinkProfile) {
        if let Some(link) = &mut self.link {
            name.clone_into(link);
            self.line.set_link(profile);
        }
    }

    pub(super) fn predicts(&self) -> bool {
        self.predicts
    }

    pub(super) fn set_predicts(&mut self, predicts: bool, frame: &mut Frame) {
        self.predicts = predicts;
        if predicts {
            self.lagged.release(|event| frame.cue(event));
        }
    }

    pub(super) fn smooths(&self) -> bool {
        self.smooths
    }

    pub(super) fn set_smooths(&mut self, smooths: bool) {
        self.smooths = smooths;
    }

    pub(super) fn leave(&mut self) {
        self.line.leave();
    }
}

/// What a player wants to hear of.
fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::CommandRefused { .. } => "the order was refused".to_owned(),
        Event::Healed { .. } => "healed by the server".to_owned(),
        Event::Reconnecting => "the server is lost".to_owned(),
        Event::Recovered => "the server is heard again".to_owned(),
        Event::Reconnected { .. } => "the server is found again".to_owned(),
        Event::ControlsLost { .. } => "the server lost your controls".to_owned(),
        Event::ControlsBack { .. } => "in control again".to_owned(),
        _ => return None,
    })
}

/// The nearest barrel that a player can light.
fn nearest_barrel(game: &Game, rules: &Rules, player: PlayerId) -> Option<u8> {
    let at = game.players.get(&player)?.at;
    let barrels = game.barrels.iter().zip(0..);
    barrels
        .filter(|(barrel, _)| barrel.stage == Stage::Whole)
        .map(|(barrel, n)| (barrel.at.distance(at), n))
        .filter(|(distance, _)| *distance <= rules.tuning.light_reach)
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, n)| n)
}
