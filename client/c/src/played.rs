//! [`CMatch`]: a match played by a C program, over the network or alone, with its state, events and last error text.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use twinstep_client::{Client, CueKind, EVENTS_MAX, Event, Session, SessionConfig, Ticket};
use twinstep_core::Simulation;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_local::LocalGame;

use crate::game::CGame;
use crate::structs::Unused;

type Input<G> = <<G as CGame>::Sim as Simulation>::Input;

/// The states of a match, as the header numbers them.
pub(crate) mod state {
    pub(crate) const OVER: i32 = 0;
    pub(crate) const CONNECTING: i32 = 1;
    pub(crate) const PLAYING: i32 = 2;
    pub(crate) const RECONNECTING: i32 = 3;
}

/// An entity to draw.
#[doc(hidden)]
#[repr(C)]
pub struct CEntity<P> {
    key: u64,
    is_local: u32,
    pose: P,
}

/// A cue to play, or to stop.
#[doc(hidden)]
#[repr(C)]
pub struct CCue<C> {
    id: u64,
    kind: u32,
    cue: C,
}

/// An event without its text.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CEvent {
    kind: u32,
    seat: u32,
    number: u32,
}

const _: () = assert!(size_of::<CEntity<Unused>>() == 16 && size_of::<CEvent>() == 12);

enum EngineMatch<G: CGame> {
    Online(Box<Client<G::Sim, G::Show>>),
    Local(Box<LocalGame<G::Sim, G::Show>>),
}

pub(crate) struct CMatch<G: CGame> {
    /// `None` if the match never started, or if the game's code panicked.
    game: Option<EngineMatch<G>>,
    state: i32,
    why: String,
    now: Duration,
    pads: [Option<G::Pad>; SEATS_MAX],
    is_refused: [bool; SEATS_MAX],
    events: VecDeque<(CEvent, String)>,
}

impl<G: CGame> CMatch<G> {
    pub(crate) fn join(ticket: &str) -> Result<Self, String> {
        let ticket: Ticket = ticket.parse().map_err(|error| format!("{error}"))?;
        let client = Client::connect(&ticket, G::config()).map_err(|error| error.to_string())?;
        Ok(CMatch::of(EngineMatch::Online(Box::new(client))))
    }

    pub(crate) fn alone(seats: u32) -> Result<Self, String> {
        let game = G::alone().ok_or("this game is not played alone: join a server's match")?;
        let config: SessionConfig<G::Sim, G::Show> = G::config();
        let game = game.seats(seats as usize).play(config);
        let game = game.map_err(|error| error.to_string())?;
        Ok(CMatch::of(EngineMatch::Local(Box::new(game))))
    }

    fn of(game: EngineMatch<G>) -> Self {
        CMatch {
            game: Some(game),
            state: state::CONNECTING,
            ..CMatch::failed(String::new())
        }
    }

    pub(crate) fn failed(why: String) -> Self {
        CMatch {
            game: None,
            state: state::OVER,
            why,
            now: Duration::ZERO,
            pads: [None; SEATS_MAX],
            is_refused: [false; SEATS_MAX],
            events: VecDeque::new(),
        }
    }

    /// Ends the match after a panic of the game's code. Its state is no longer used.
    pub(crate) fn end_by_panic(&mut self, why: String) {
        self.over(why);
        // Taken first, because leaving also runs the game's code.
        if let Some(EngineMatch::Online(mut client)) = self.game.take() {
            client.leave();
        }
    }

    pub(crate) fn leave(&mut self) {
        match &mut self.game {
            Some(EngineMatch::Online(client)) => client.leave(),
            Some(EngineMatch::Local(game)) => game.leave(0),
            None => {}
        }
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    fn over(&mut self, why: String) {
        if self.state != state::OVER {
            (self.state, self.why) = (state::OVER, why);
        }
    }

    /// Records the reason of a refusal. A match that is over keeps the reason of its end.
    fn refuse(&mut self, why: String) {
        if self.state != state::OVER {
            self.why = why;
        }
    }

    fn session(&self) -> Option<&Session<G::Sim, G::Show>> {
        Some(match self.game.as_ref()? {
            EngineMatch::Online(client) => client.session(),
            EngineMatch::Local(game) => game.session(0),
        })
    }

    fn session_mut(&mut self) -> Option<&mut Session<G::Sim, G::Show>> {
        Some(match self.game.as_mut()? {
            EngineMatch::Online(client) => client.session_mut(),
            EngineMatch::Local(game) => game.session_mut(0),
        })
    }

    /// Advances to `now_s`, with the pads by seat. Returns the state.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: the stopwatch runs while code runs, unlike the engine's time"
    )]
    pub(crate) fn advance(&mut self, now_s: f64, pads: impl Iterator<Item = G::Pad>) -> i32 {
        if self.state == state::OVER {
            return state::OVER;
        }
        // Not a number, below zero, too large, or earlier than before: no time has passed.
        let now = Duration::try_from_secs_f64(now_s).unwrap_or(self.now);
        self.now = self.now.max(now);
        let mut inputs: [Input<G>; SEATS_MAX] = Default::default();
        for (seat, pad) in pads.take(SEATS_MAX).enumerate() {
            inputs[seat] = self.hold(seat, pad);
        }
        let mut is_sampled = false;
        let mut input = |seat: usize| {
            is_sampled = true;
            inputs.get(seat).cloned().unwrap_or_default()
        };
        let began = Instant::now();
        let (now, stopwatch) = (self.now, || began.elapsed());
        let advanced = match &mut self.game {
            Some(EngineMatch::Online(client)) => {
                let advanced = client.advance_at(now, stopwatch, input);
                advanced.map_err(|end| end.to_string())
            }
            Some(EngineMatch::Local(game)) => {
                let advanced = game.advance_at(now, |_, seat| input(seat));
                advanced.map_err(|end| end.to_string())
            }
            None => Ok(()),
        };
        if is_sampled {
            self.pads = [None; SEATS_MAX];
        }
        self.take_events();
        if let Err(why) = advanced {
            self.over(why);
        }
        let is_loading = |session: &Session<_, _>| session.progress().is_some();
        match self.state {
            // The session steps through the ticks since its world, and takes no commands yet.
            state::PLAYING if self.session().is_some_and(is_loading) => state::CONNECTING,
            state => state,
        }
    }

    /// Adds a frame's pad to those since the last tick, and reads the result as an input.
    fn hold(&mut self, seat: usize, pad: G::Pad) -> Input<G> {
        let held = match &self.pads[seat] {
            Some(earlier) => G::merge(earlier, &pad),
            None => pad,
        };
        match G::input(&held) {
            Ok(input) => {
                (self.pads[seat], self.is_refused[seat]) = (Some(held), false);
                input
            }
            Err(why) => {
                let why = format!("the pad of seat {seat} is refused: {why}");
                // Once, not every frame.
                if !std::mem::replace(&mut self.is_refused[seat], true) {
                    self.push(PAD_REFUSED, seat, 0, why.clone());
                }
                self.refuse(why);
                Input::<G>::default()
            }
        }
    }

    /// Issues a command. Returns its number, or -1.
    pub(crate) fn send(&mut self, seat: u32, command: Option<G::Command>) -> i64 {
        let sent = match command.map(|command| G::command(&command)) {
            None => Err("expected a command, but the pointer is NULL".to_owned()),
            Some(Err(why)) => Err(why),
            Some(Ok(command)) => match self.session_mut() {
                None => return -1, // It is over, and has its reason.
                Some(session) => session
                    .command(seat as usize, command)
                    .map_err(|error| error.to_string()),
            },
        };
        match sent {
            Ok(number) => number.into(),
            Err(why) => {
                self.refuse(format!("the command of seat {seat} is refused: {why}"));
                -1
            }
        }
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = CEntity<G::Pose>> {
        let session = self.session().into_iter();
        let shown = session.flat_map(Session::shown_with_local);
        shown.map(|(key, (pose, is_local))| CEntity {
            key: G::key(key),
            is_local: is_local.into(),
            pose: G::pose(pose),
        })
    }

    pub(crate) fn hud(&self) -> Option<G::Hud> {
        self.session().and_then(G::hud)
    }

    pub(crate) fn poll_cue(&mut self) -> Option<CCue<G::Cue>> {
        let event = self.session_mut()?.poll_cue()?;
        let (kind, cue) = match &event.kind {
            CueKind::Started { cue, .. } => (0, G::cue(cue)),
            CueKind::Confirmed { .. } => (1, G::Cue::default()),
            CueKind::Cancelled => (2, G::Cue::default()),
        };
        let id = event.id.0;
        Some(CCue { id, kind, cue })
    }

    pub(crate) fn poll_event(&mut self) -> Option<(CEvent, String)> {
        self.events.pop_front()
    }

    fn push(&mut self, kind: u32, seat: usize, number: u32, text: String) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        let seat = seat as u32;
        self.events.push_back((CEvent { kind, seat, number }, text));
    }

    /// Takes the session's events at once, because the state follows from them.
    fn take_events(&mut self) {
        while let Some(event) = self.session_mut().and_then(Session::poll_event) {
            self.state = match &event {
                Event::Joined(_) | Event::Recovered | Event::Reconnected { .. } => state::PLAYING,
                Event::Reconnecting => state::RECONNECTING,
                _ => self.state,
            };
            let (kind, seat, number, text) = describe(event);
            self.push(kind, seat, number, text);
        }
    }
}

// The kinds of events, as the header numbers them.
const OTHER: u32 = 0;
const JOINED: u32 = 1;
const COMMAND_REFUSED: u32 = 2;
const PAD_REFUSED: u32 = 3;
const RECONNECTING: u32 = 4;
const BACK: u32 = 5;
const CONTROLS_LOST: u32 = 6;
const CONTROLS_BACK: u32 = 7;
const NOTICE: u32 = 8;
const FAULT: u32 = 9;

fn describe(event: Event) -> (u32, usize, u32, String) {
    match event {
        Event::Joined(players) => {
            let seats = players.len();
            let text = format!("joined the match with {seats} player(s)");
            (JOINED, 0, seats as u32, text)
        }
        Event::CommandRefused { seat, seq, why } => {
            let text = format!("the server refused command {seq} of seat {seat}: {why:?}");
            (COMMAND_REFUSED, seat, seq, text)
        }
        Event::Reconnecting => {
            let text = "connection lost: reconnecting".to_owned();
            (RECONNECTING, 0, 0, text)
        }
        Event::Recovered => (BACK, 0, 0, "connection restored".to_owned()),
        Event::Reconnected { lost_ticks, .. } => {
            let text = format!("reconnected; {lost_ticks} ticks were lost");
            (BACK, 0, lost_ticks, text)
        }
        Event::ControlsLost { seat } => {
            let text = format!("the server received no input of seat {seat} for two seconds");
            (CONTROLS_LOST, seat, 0, text)
        }
        Event::ControlsBack { seat } => {
            let text = format!("the input of seat {seat} counts again");
            (CONTROLS_BACK, seat, 0, text)
        }
        Event::Notice(text) => (NOTICE, 0, 0, text),
        Event::StepFault(text) => (FAULT, 0, 0, text),
        Event::Desync(text) => (FAULT, 0, 0, text),
        Event::Differs { at } => {
            let text = format!("the world differs from the server's since {at}");
            (FAULT, 0, at.0, text)
        }
        Event::Healed { at } => {
            let text = format!("the world is the server's again since {at}");
            (FAULT, 0, at.0, text)
        }
        other => (OTHER, 0, 0, format!("{other:?}")),
    }
}
