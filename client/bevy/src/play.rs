//! [`Play`]: the match of an app, joined or played alone, behind one type.

use std::time::Duration;

use bevy_ecs::prelude::*;
use twinstep_client::{
    Client, ClientStartError, CommandError, NoPicture, Session, SessionConfig, SessionEnd, Show,
    Ticket,
};
use twinstep_core::Simulation;
use twinstep_local::{Local, LocalGame, LocalGameEnd, LocalStartError};

/// The match of an app, as a resource. Insert it to play, and remove it to leave.
///
/// `into()` creates one from a [`Client`] or a [`LocalGame`] with your own settings.
#[derive(Resource)]
pub struct Play<S: Simulation, V: Show<S> = NoPicture> {
    game: PlayedMatch<S, V>,
    over: Option<PlayEnd>,
    pub(crate) is_cleared: bool,
}

enum PlayedMatch<S: Simulation, V: Show<S>> {
    Online(Box<Client<S, V>>),
    Local(Box<LocalGame<S, V>>),
}

/// The reason why a match is over for this app, as a sentence for the player.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum PlayEnd {
    #[error(transparent)]
    Session(#[from] SessionEnd),
    #[error(transparent)]
    Local(#[from] LocalGameEnd),
}

impl<S: Simulation, V: Show<S>> Play<S, V> {
    /// Joins the match of a ticket over UDP. A later refusal by the server is a [`PlayOver`](crate::PlayOver) message.
    ///
    /// # Errors
    /// The errors of [`Client::connect`].
    pub fn join(ticket: &Ticket, config: SessionConfig<S, V>) -> Result<Self, ClientStartError> {
        Client::connect(ticket, config).map(Play::from)
    }

    /// Plays alone: the match runs in this app, tick by tick in Bevy's real time.
    ///
    /// # Errors
    /// The errors of [`Local::play`].
    pub fn alone(game: Local<S>, config: SessionConfig<S, V>) -> Result<Self, LocalStartError> {
        game.play(config).map(Play::from)
    }

    /// The session: worlds, players, progress, statistics.
    #[must_use]
    pub fn session(&self) -> &Session<S, V> {
        match &self.game {
            PlayedMatch::Online(client) => client.session(),
            PlayedMatch::Local(game) => game.session(0),
        }
    }

    /// The session, to make requests. The plugin polls its cues and events.
    pub fn session_mut(&mut self) -> &mut Session<S, V> {
        match &mut self.game {
            PlayedMatch::Online(client) => client.session_mut(),
            PlayedMatch::Local(game) => game.session_mut(0),
        }
    }

    /// Issues a command as the player of a seat; see [`Session::command`].
    ///
    /// # Errors
    /// The errors of [`Session::command`].
    pub fn command(&mut self, seat: usize, command: S::Command) -> Result<u32, CommandError> {
        self.session_mut().command(seat, command)
    }

    /// The client of a joined match. Returns `None` if the match is local.
    pub fn client(&mut self) -> Option<&mut Client<S, V>> {
        match &mut self.game {
            PlayedMatch::Online(client) => Some(client),
            PlayedMatch::Local(_) => None,
        }
    }

    /// The local match, to pause it, to change its speed or to save it. Returns `None` if the match is online.
    pub fn local(&mut self) -> Option<&mut LocalGame<S, V>> {
        match &mut self.game {
            PlayedMatch::Online(_) => None,
            PlayedMatch::Local(game) => Some(game),
        }
    }

    /// The reason why the match is over. Returns `None` while it is not.
    #[must_use]
    pub fn over(&self) -> Option<&PlayEnd> {
        self.over.as_ref()
    }

    pub(crate) fn advance(
        &mut self,
        now: Duration,
        stopwatch: impl FnMut() -> Duration,
        input: &mut dyn FnMut(usize) -> S::Input,
    ) -> Result<(), PlayEnd> {
        let advanced = match &mut self.game {
            PlayedMatch::Online(client) => client
                .advance_at(now, stopwatch, input)
                .map_err(PlayEnd::from),
            PlayedMatch::Local(game) => game
                .advance_at(now, |client, seat| match client {
                    0 => input(seat),
                    _ => S::Input::default(),
                })
                .map_err(PlayEnd::from),
        };
        if let Err(why) = &advanced {
            self.over = Some(why.clone());
        }
        advanced
    }
}

impl<S: Simulation, V: Show<S>> From<Client<S, V>> for Play<S, V> {
    fn from(client: Client<S, V>) -> Self {
        Play {
            game: PlayedMatch::Online(Box::new(client)),
            over: None,
            is_cleared: false,
        }
    }
}

impl<S: Simulation, V: Show<S>> From<LocalGame<S, V>> for Play<S, V> {
    fn from(game: LocalGame<S, V>) -> Self {
        Play {
            game: PlayedMatch::Local(Box::new(game)),
            over: None,
            is_cleared: false,
        }
    }
}

impl<S: Simulation, V: Show<S>> Drop for Play<S, V> {
    fn drop(&mut self) {
        if let PlayedMatch::Online(client) = &mut self.game {
            client.leave();
        }
    }
}

/// The state of the app's match. Its associated functions are run conditions:
/// `hear.run_if(PlayState::is_in_match)`.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlayState {
    /// There is no [`Play`].
    #[default]
    Absent,
    /// The server has not responded yet, or its world is being loaded, or the match waits in its lobby.
    Connecting,
    /// The local players are in the match.
    Playing,
    /// The server is silent or closed the path, and the client dials it again. The prediction continues within its
    /// limits.
    Reconnecting,
    /// The match is over; [`Play::over`] has the reason. Remove or replace the [`Play`].
    Over,
}

impl PlayState {
    /// Run condition: there is no match.
    pub fn is_absent(state: Res<PlayState>) -> bool {
        *state == PlayState::Absent
    }

    /// Run condition: the match is being joined.
    pub fn is_connecting(state: Res<PlayState>) -> bool {
        *state == PlayState::Connecting
    }

    /// Run condition: the local players are in the match, and the connection does not seem lost.
    pub fn is_playing(state: Res<PlayState>) -> bool {
        *state == PlayState::Playing
    }

    /// Run condition: the connection seems lost, and the client redials.
    pub fn is_reconnecting(state: Res<PlayState>) -> bool {
        *state == PlayState::Reconnecting
    }

    /// Run condition: the match is shown, even if the server does not respond.
    pub fn is_in_match(state: Res<PlayState>) -> bool {
        matches!(*state, PlayState::Playing | PlayState::Reconnecting)
    }

    /// Run condition: the match is over.
    pub fn is_over(state: Res<PlayState>) -> bool {
        *state == PlayState::Over
    }
}
