//! [`Scene`]: a match, clients and the lines between them in virtual time, moment by moment; and [`Passing`], which
//! lets the time pass. [`arena`](crate::arena()) plays on it, and so does the rig that Twinstep itself is tested with:
//! build yours here if your game needs misfortunes that the arena does not have.
//!
//! ```text
//!   the next moment at which anything is due: a packet, a tick, a job, a frame
//!     └─▶ serve(): hear ─▶ jobs ─▶ Match::advance ─▶ drain          unless the server stands still
//!     └─▶ step_client(i): hear ─▶ draws? Session::advance ─▶ send     unless this client stands still
//! ```
//!
//! Invariant: nothing in here draws chance or reads a clock, so that what is built on it follows from its own seed.

use std::collections::BTreeSet;
use std::ops::DerefMut;
use std::time::Duration;

use twinstep_client::{CueEvent, CueId, CueKind};
use twinstep_core::Simulation;
use twinstep_protocol::datagrams::{CUT_BYTES_MAX, Datagrams};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{Leg, SimLink};
use twinstep_server::{JobId, Match, Output, SessionId};

/// Time never moves by less than this, so that it always does.
const MOMENT_MIN: Duration = Duration::from_micros(50);
/// Nor by more, so that what has no moment of its own is looked at.
const MOMENT_MAX: Duration = Duration::from_millis(5);

/// Where a client sits: its line, its frames, and until when its process stands still.
pub struct Place {
    /// Its session's number at the server.
    pub peer: SessionId,
    /// Its two legs.
    pub line: SimLink,
    /// What passes between two frames that it draws.
    pub frame: Duration,
    /// When it draws next.
    pub next_frame: Duration,
    /// Until then its process stands still; what comes meanwhile waits.
    pub frozen_until: Duration,
    /// Packets of both directions, kept since this was set: what the client sent, and what was sent to it.
    pub recorded: Option<Recorded>,
    /// The line passes only small datagrams: what a real transport does about that.
    narrow: Option<Box<Narrow>>,
    open_cues: BTreeSet<CueId>,
}

/// Packets that crossed a client's line for a while.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Of the client.
    pub up: Vec<Vec<u8>>,
    /// Of the server.
    pub down: Vec<Vec<u8>>,
}

impl Place {
    /// A place whose client draws every `frame` from `now` on, in a phase by its number: no two neighbours draw at once.
    ///
    /// # Panics
    /// If a frame takes no time.
    #[must_use]
    pub fn new(peer: SessionId, line: SimLink, frame: Duration, now: Duration) -> Self {
        assert!(!frame.is_zero(), "a frame takes time");
        Place {
            peer,
            line,
            frame,
            next_frame: now + frame * (peer.0 as u32 % 7) / 7,
            frozen_until: Duration::ZERO,
            recorded: None,
            narrow: None,
            open_cues: BTreeSet::new(),
        }
    }

    /// Whether it draws a frame now; frames that it missed are not made up for.
    pub fn draws(&mut self, now: Duration) -> bool {
        let is_due = now >= self.next_frame;
        while self.next_frame <= now {
            self.next_frame += self.frame.max(Duration::from_nanos(1));
        }
        is_due
    }

    /// Enters a cue event into the books; `false`: its cue has started twice, or was settled twice or without a start.
    pub fn book_cue<C>(&mut self, event: &CueEvent<C>) -> bool {
        match event.kind {
            CueKind::Started { .. } => self.open_cues.insert(event.id),
            CueKind::Confirmed { .. } | CueKind::Cancelled => self.open_cues.remove(&event.id),
        }
    }

    /// The client begins anew: of no cue is anything known.
    pub fn forget_cues(&mut self) {
        self.open_cues.clear();
    }

    /// Puts another line in place of this one. The largest datagrams that pass up and down may be small; then packets go in
    /// parts, as over a real transport.
    pub fn relink(&mut self, line: SimLink, passes: Option<[usize; 2]>) {
        self.line = line;
        self.narrow = passes.map(|passes| Box::new(Narrow::new(passes)));
    }

    /// A packet of the client goes on the line.
    pub fn send_up(&mut self, now: Duration, bytes: &[u8]) {
        match &mut self.narrow {
            Some(narrow) => narrow.client.send(now, bytes, &mut self.line.up),
            None => self.line.up.send(now, bytes),
        }
    }

    /// The next packet that has come to the server.
    pub fn take_up(&mut self, now: Duration) -> Option<&[u8]> {
        let SimLink { up, down } = &mut self.line;
        match &mut self.narrow {
            Some(narrow) => narrow.server.take(now, up, down),
            None => up.poll(now),
        }
    }

    /// The next packet that has come to the client.
    pub fn take_down(&mut self, now: Duration) -> Option<&[u8]> {
        let SimLink { up, down } = &mut self.line;
        match &mut self.narrow {
            Some(narrow) => narrow.client.take(now, down, up),
            None => down.poll(now),
        }
    }

    /// A packet of the server goes on the line.
    pub fn send_down(&mut self, now: Duration, bytes: &[u8]) {
        match &mut self.narrow {
            Some(narrow) => narrow.server.send(now, bytes, &mut self.line.down),
            None => self.line.down.send(now, bytes),
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.down.push(bytes.to_vec());
        }
    }

    fn next_due(&self) -> Duration {
        let heard = self.line.down.next_due().unwrap_or(Duration::MAX);
        self.next_frame.min(heard).max(self.frozen_until)
    }
}

/// Both ends of a line that passes only small datagrams.
struct Narrow {
    client: NarrowEnd,
    server: NarrowEnd,
}

struct NarrowEnd {
    datagrams: Datagrams,
    /// The largest datagram that it gets through.
    passes: usize,
    packet: Vec<u8>,
}

impl Narrow {
    fn new([up, down]: [usize; 2]) -> Narrow {
        let end = |passes| NarrowEnd {
            datagrams: Datagrams::new(0, CUT_BYTES_MAX),
            passes,
            packet: Vec::new(),
        };
        Narrow {
            client: end(up),
            server: end(down),
        }
    }
}

impl NarrowEnd {
    fn send(&mut self, now: Duration, bytes: &[u8], leg: &mut Leg) {
        // A real transport's packets begin with a byte of its own.
        self.packet.clear();
        self.packet.push(0);
        self.packet.extend_from_slice(bytes);
        let passes = self.passes;
        self.datagrams.cut(now, &self.packet, |datagram| {
            if datagram.len() <= passes {
                leg.send(now, datagram);
            }
            true
        });
    }

    fn take(&mut self, now: Duration, from: &mut Leg, to: &mut Leg) -> Option<&[u8]> {
        let is_packet = loop {
            let Some(datagram) = from.poll(now) else {
                break false;
            };
            if let Some([_, packet @ ..]) = self.datagrams.join(datagram) {
                self.packet.clear();
                self.packet.extend_from_slice(packet);
                break true;
            }
        };
        let mut beside = [0; CUT_BYTES_MAX];
        while let Some(bytes) = self.datagrams.poll(now, &mut beside) {
            if bytes <= self.passes {
                to.send(now, &beside[..bytes]);
            }
        }
        is_packet.then_some(&self.packet[..])
    }
}

/// Who sits in a [`Scene`].
pub trait Seated {
    /// Its place.
    fn place(&self) -> &Place;
    /// Its place, to change.
    fn place_mut(&mut self) -> &mut Place;
}

/// A resolver's jobs that take their time.
pub struct Jobs<S: Simulation> {
    due: Vec<(Duration, JobId, S::Outcome)>,
}

impl<S: Simulation> Default for Jobs<S> {
    fn default() -> Self {
        Jobs {
            due: Vec::with_capacity(256),
        }
    }
}

impl<S: Simulation> Jobs<S> {
    /// A job is answered at `at`.
    pub fn answer_at(&mut self, at: Duration, id: JobId, outcome: S::Outcome) {
        self.due.push((at, id, outcome));
    }

    /// Tells the match what is due, in no order that it may rely on.
    pub fn complete(&mut self, now: Duration, match_: &mut Match<S>) {
        let mut at = 0;
        while at < self.due.len() {
            if self.due[at].0 <= now {
                let (_, id, outcome) = self.due.swap_remove(at);
                match_.complete(id, Some(outcome));
            } else {
                at += 1;
            }
        }
    }

    /// The server's process ends, and its jobs with it.
    pub fn forget(&mut self) {
        self.due.clear();
    }

    fn next_due(&self) -> Duration {
        let due = self.due.iter().map(|job| job.0);
        due.min().unwrap_or(Duration::MAX)
    }
}

/// See the [module](self).
pub struct Scene<S: Simulation, C> {
    /// The server's match.
    pub match_: Match<S>,
    /// The clients.
    pub clients: Vec<C>,
    /// Virtual time.
    pub now: Duration,
    /// Jobs of the match's resolver.
    pub jobs: Jobs<S>,
    /// Until then the server's process stands still; what comes meanwhile waits.
    pub stalled_until: Duration,
}

impl<S: Simulation, C: Seated> Scene<S, C> {
    /// A match at time 0, and nobody there.
    #[must_use]
    pub fn new(match_: Match<S>) -> Self {
        Scene {
            match_,
            clients: Vec::new(),
            now: Duration::ZERO,
            jobs: Jobs::default(),
            stalled_until: Duration::ZERO,
        }
    }

    /// The next moment at which anything happens: at least 50 µs from now and at most 5 ms.
    #[must_use]
    pub fn next_moment(&self) -> Duration {
        let mut served = self.match_.next_due().min(self.jobs.next_due());
        let mut theirs = Duration::MAX;
        for place in self.clients.iter().map(Seated::place) {
            served = served.min(place.line.up.next_due().unwrap_or(Duration::MAX));
            theirs = theirs.min(place.next_due());
        }
        let next = served.max(self.stalled_until).min(theirs);
        next.clamp(self.now + MOMENT_MIN, self.now + MOMENT_MAX)
    }

    /// The match is told of a transport, now.
    ///
    /// # Errors
    /// As [`Match::connect`].
    pub fn connect(
        &mut self,
        peer: SessionId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        self.match_.connect(self.now, peer, identity, seats)
    }

    /// The match hears a packet now that no line carried.
    pub fn hear(&mut self, peer: SessionId, bytes: &[u8]) {
        self.match_.handle(self.now, peer, bytes);
    }

    /// Does what the match wants done, in its order. Packets go on their lines. A job is done at once and answered after
    /// what `takes` says; `None`: never. All else, `other` is told.
    pub fn drain(
        &mut self,
        mut takes: impl FnMut(&S::Outcome) -> Option<Duration>,
        mut other: impl FnMut(Output<'_, S::Outcome>),
    ) {
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let mut places = self.clients.iter_mut().map(Seated::place_mut);
                    if let Some(place) = places.find(|place| place.peer == peer) {
                        place.send_down(self.now, bytes);
                    }
                }
                Output::Job { id, work } => {
                    let outcome = work();
                    if let Some(time) = takes(&outcome) {
                        self.jobs.answer_at(self.now + time, id, outcome);
                    }
                }
                output => other(output),
            }
        }
    }
}

/// Something built on a [`Scene`], in which time can pass.
pub trait Passing: DerefMut<Target = Scene<Self::Game, Self::Client>> {
    /// What is played.
    type Game: Simulation;
    /// Who plays.
    type Client: Seated;
    /// What ends it early.
    type Wrong;

    /// The server's part of a moment.
    ///
    /// # Errors
    /// Whatever is checked did not hold.
    fn serve(&mut self) -> Result<(), Self::Wrong>;

    /// The part of the client with this place among the clients.
    ///
    /// # Errors
    /// Whatever is checked did not hold.
    fn step_client(&mut self, client: usize) -> Result<(), Self::Wrong>;

    /// Lets so much time pass; `watch` sees what there is after each moment.
    ///
    /// # Errors
    /// The first of [`serve`](Passing::serve) or [`step_client`](Passing::step_client).
    fn pass(
        &mut self,
        time: Duration,
        mut watch: impl FnMut(&mut Self),
    ) -> Result<(), Self::Wrong> {
        let end = self.now + time;
        while self.now < end {
            self.now = self.next_moment().min(end);
            if self.now >= self.stalled_until {
                self.serve()?;
            }
            let mut client = 0;
            // Whoever leaves in its part makes them fewer.
            while client < self.clients.len() {
                if self.now >= self.clients[client].place().frozen_until {
                    self.step_client(client)?;
                }
                client += 1;
            }
            watch(self);
        }
        Ok(())
    }
}
