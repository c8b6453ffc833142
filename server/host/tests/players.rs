//! Players for the tests: real clients, advanced until a condition holds, or for a given time. Every wait is bounded.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use twinstep_client::{Client, Event, SessionConfig, SessionEnd};
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::Ticket;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const FRAME: Duration = Duration::from_millis(2);

pub(crate) trait Plays {
    fn frame(&mut self) -> Result<(), SessionEnd>;
}

impl<S: Simulation<Input = u8>> Plays for Client<S> {
    fn frame(&mut self) -> Result<(), SessionEnd> {
        self.advance(|_| 1)
    }
}

impl<P: Plays> Plays for &mut P {
    fn frame(&mut self) -> Result<(), SessionEnd> {
        P::frame(self)
    }
}

pub(crate) struct Player<S: Simulation> {
    pub(crate) client: Client<S>,
    pub(crate) held: u8,
    pub(crate) events: Vec<Event>,
    pub(crate) ended: Option<SessionEnd>,
    /// The reconnect tickets that the player received and the test has not taken.
    pub(crate) tickets: mpsc::Receiver<Ticket>,
    newest: Option<Ticket>,
}

impl<S: Simulation<Input = u8>> Player<S> {
    pub(crate) fn of(client: Client<S>) -> Player<S> {
        Player {
            client,
            held: 0,
            events: Vec::new(),
            ended: None,
            tickets: mpsc::sync_channel(0).1,
            newest: None,
        }
    }

    pub(crate) fn holding(mut self, held: u8) -> Player<S> {
        self.held = held;
        self
    }

    pub(crate) fn tick(&self) -> Tick {
        tick(&self.client)
    }

    pub(crate) fn is_in(&self) -> bool {
        is_in(&self.client)
    }

    pub(crate) fn over(&self) -> Option<CloseCode> {
        match &self.ended {
            None => None,
            Some(SessionEnd::Server(code)) => Some(*code),
            Some(other) => panic!("{other:?}"),
        }
    }

    pub(crate) fn newest(&mut self) -> Option<Ticket> {
        self.newest = self.tickets.try_iter().last().or(self.newest.take());
        self.newest.clone()
    }

    /// Plays until `done` returns `true`. For tests without a runtime.
    pub(crate) fn play_until(
        &mut self,
        mut done: impl FnMut(&mut Player<S>) -> bool,
    ) -> Result<(), SessionEnd> {
        play_blocking("it", &mut [self], |one| done(one[0]))
    }
}

impl<S: Simulation<Rules = (), Input = u8>> Player<S> {
    pub(crate) fn join(ticket: &Ticket) -> Player<S> {
        // Bounded: a test takes the first ones.
        let (send, tickets) = mpsc::sync_channel(64);
        let client =
            client(ticket).keeping_tickets(move |ticket| send.try_send(ticket.clone()).is_ok());
        Player {
            tickets,
            ..Player::of(client)
        }
    }

    pub(crate) fn join_and_keep_nothing(ticket: &Ticket) -> Player<S> {
        Player::of(client(ticket))
    }
}

impl<S: Simulation<Input = u8>> Plays for Player<S> {
    fn frame(&mut self) -> Result<(), SessionEnd> {
        let held = self.held;
        let advanced = self.client.advance(|_| held);
        let events = std::iter::from_fn(|| self.client.session_mut().poll_event());
        self.events.extend(events);
        self.ended = advanced.err();
        advanced
    }
}

pub(crate) fn client<S: Simulation<Rules = ()>>(ticket: &Ticket) -> Client<S> {
    Client::connect(ticket, SessionConfig::new(Arc::new(()))).unwrap()
}

pub(crate) fn tick<S: Simulation>(client: &Client<S>) -> Tick {
    let world = client.session().authority();
    world.map_or(Tick(0), |world| world.tick())
}

/// Returns `true` if the client's player is present in the client's own world. For a spectator, returns `true` if its
/// world is past tick 0.
pub(crate) fn is_in<S: Simulation>(client: &Client<S>) -> bool {
    match (
        client.session().authority(),
        client.session().seats().first(),
    ) {
        (None, _) => false,
        (Some(world), None) => world.tick() > Tick(0),
        (Some(world), Some(own)) => world.present().contains(*own),
    }
}

pub(crate) fn closed_by(code: CloseCode) -> SessionEnd {
    SessionEnd::Server(code)
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) async fn play<P: Plays>(
    party: &mut [P],
    mut done: impl FnMut(&mut [P]) -> bool,
) -> Result<(), SessionEnd> {
    let began = Instant::now();
    while !done(party) {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        for one in &mut *party {
            one.frame()?;
        }
        tokio::time::sleep(FRAME).await;
    }
    Ok(())
}

pub(crate) async fn plays<S: Simulation<Input = u8>>(party: &mut [Client<S>]) {
    let all = |party: &mut [Client<S>]| party.iter().all(is_in);
    play(party, all).await.unwrap();
}

pub(crate) async fn plays_on<S: Simulation<Input = u8>>(client: &mut Client<S>) {
    let seen = tick(client);
    let later = |one: &mut [&mut Client<S>]| tick(one[0]) > seen + 60;
    play(&mut [client], later).await.unwrap();
}

pub(crate) async fn end_of(one: impl Plays) -> SessionEnd {
    play(&mut [one], |_| false).await.unwrap_err()
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) async fn play_remaining<S: Simulation<Input = u8>>(
    what: &str,
    party: &mut [Player<S>],
    mut done: impl FnMut(&mut [Player<S>]) -> bool,
) {
    let began = Instant::now();
    while !done(party) {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        for one in party.iter_mut().filter(|one| one.ended.is_none()) {
            let _ = one.frame();
        }
        tokio::time::sleep(FRAME).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) async fn play_for<S: Simulation<Input = u8>>(party: &mut [Player<S>], time: Duration) {
    let until = Instant::now() + time;
    play_remaining("a while", party, |_| Instant::now() >= until).await;
}

pub(crate) fn play_blocking<P: Plays>(
    what: &str,
    party: &mut [P],
    mut done: impl FnMut(&mut [P]) -> bool,
) -> Result<(), SessionEnd> {
    let mut ended = Ok(());
    wait_blocking(what, || {
        if done(party) {
            return true;
        }
        ended = party.iter_mut().try_for_each(Plays::frame);
        ended.is_err()
    });
    ended
}

pub(crate) async fn wait(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(FRAME * 5).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"));
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) fn wait_blocking(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        std::thread::sleep(FRAME);
    }
}
