//! [`Scene`]: a match, clients and the links between them in virtual time, moment by moment; and [`Passing`], which
//! advances the time. [`arena`](crate::arena()) and Twinstep's own test rig are built on it. Build your own test rig on
//! it if your game needs failures that the arena does not simulate.
//!
//! ```text
//!   the next moment at which work is due: a packet, a tick, a job, a frame
//!     └─▶ serve(): receive ─▶ jobs ─▶ Match::advance ─▶ drain            unless the server is stalled
//!     └─▶ step_client(i): receive ─▶ draws? Session::advance ─▶ send     unless this client is frozen
//! ```
//!
//! Invariant: this module has no randomness and no clock, so a world built on it depends only on its own seed.

use std::collections::BTreeSet;
use std::ops::DerefMut;
use std::time::Duration;

use twinstep_client::{CueEvent, CueId, CueKind};
use twinstep_core::Simulation;
use twinstep_protocol::datagrams::{CUT_BYTES_MAX, Datagrams};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{Leg, SimLink};
use twinstep_server::{JobId, Match, Output, SessionId};

/// The minimum time step, which keeps time advancing.
const MOMENT_MIN: Duration = Duration::from_micros(50);
/// The maximum time step. Work without a due time is done in these steps.
const MOMENT_MAX: Duration = Duration::from_millis(5);

/// A client's place in a scene: the link, the times of frames, and a freeze of the process.
pub struct Place {
    /// The id of the client's session at the server.
    pub peer: SessionId,
    /// The link to the server, with a leg for each direction.
    pub line: SimLink,
    /// The time between two frames drawn by the client.
    pub frame: Duration,
    /// The time of the next frame.
    pub next_frame: Duration,
    /// The end of the client process's freeze; packets wait until then.
    pub frozen_until: Duration,
    /// Recorded packets, or `None`. `send_down` adds the server's packets; the client's program must add its own.
    pub recorded: Option<Recorded>,
    /// The ends of a link that carries only small datagrams; they send larger packets in parts, like a real transport.
    narrow: Option<Box<Narrow>>,
    open_cues: BTreeSet<CueId>,
}

/// Packets that crossed a client's link.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Packets from the client.
    pub up: Vec<Vec<u8>>,
    /// Packets from the server.
    pub down: Vec<Vec<u8>>,
}

impl Place {
    /// Creates a place whose client draws every `frame`, starting at `now`. The session's number sets the phase, so
    /// that clients do not all draw at the same time.
    ///
    /// # Panics
    /// If `frame` is zero.
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

    /// Returns `true` if a frame is due. Missed frames are skipped.
    pub fn draws(&mut self, now: Duration) -> bool {
        let is_due = now >= self.next_frame;
        while self.next_frame <= now {
            self.next_frame += self.frame.max(Duration::from_nanos(1));
        }
        is_due
    }

    /// Records a cue event. Returns `false` if its cue was started twice, settled twice, or settled without a start.
    pub fn book_cue<C>(&mut self, event: &CueEvent<C>) -> bool {
        match event.kind {
            CueKind::Started { .. } => self.open_cues.insert(event.id),
            CueKind::Confirmed { .. } | CueKind::Cancelled => self.open_cues.remove(&event.id),
        }
    }

    /// Forgets all open cues, as when the client's process restarts.
    pub fn forget_cues(&mut self) {
        self.open_cues.clear();
    }

    /// Replaces the link. `passes` limits the size of datagrams up and down; larger packets are sent in parts, as over
    /// a real transport.
    pub fn relink(&mut self, line: SimLink, passes: Option<[usize; 2]>) {
        self.line = line;
        self.narrow = passes.map(|passes| Box::new(Narrow::new(passes)));
    }

    /// Sends a packet from the client.
    pub fn send_up(&mut self, now: Duration, bytes: &[u8]) {
        match &mut self.narrow {
            Some(narrow) => narrow.client.send(now, bytes, &mut self.line.up),
            None => self.line.up.send(now, bytes),
        }
    }

    /// Returns the next packet that has arrived at the server.
    pub fn take_up(&mut self, now: Duration) -> Option<&[u8]> {
        let SimLink { up, down } = &mut self.line;
        match &mut self.narrow {
            Some(narrow) => narrow.server.take(now, up, down),
            None => up.poll(now),
        }
    }

    /// Returns the next packet that has arrived at the client.
    pub fn take_down(&mut self, now: Duration) -> Option<&[u8]> {
        let SimLink { up, down } = &mut self.line;
        match &mut self.narrow {
            Some(narrow) => narrow.client.take(now, down, up),
            None => down.poll(now),
        }
    }

    /// Sends a packet from the server.
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

struct Narrow {
    client: NarrowEnd,
    server: NarrowEnd,
}

struct NarrowEnd {
    datagrams: Datagrams,
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
        // A packet of a real transport starts with a byte for its kind.
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

/// A client of a [`Scene`].
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub trait Seated {
    fn place(&self) -> &Place;
    fn place_mut(&mut self) -> &mut Place;
}

/// The resolver's jobs in progress.
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
    /// Schedules a job's answer for `at`.
    pub fn answer_at(&mut self, at: Duration, id: JobId, outcome: S::Outcome) {
        self.due.push((at, id, outcome));
    }

    /// Passes all due answers to the match, in an order on which the match must not rely.
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

    /// Drops all jobs, as when the server's process ends.
    pub fn forget(&mut self) {
        self.due.clear();
    }

    fn next_due(&self) -> Duration {
        let due = self.due.iter().map(|job| job.0);
        due.min().unwrap_or(Duration::MAX)
    }
}

/// A match, its clients and the links between them, in virtual time. See the [module](self).
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Scene<S: Simulation, C> {
    pub match_: Match<S>,
    pub clients: Vec<C>,
    /// The virtual time.
    pub now: Duration,
    /// The jobs of the match's resolver.
    pub jobs: Jobs<S>,
    /// The end of the server process's stall; packets wait until then.
    pub stalled_until: Duration,
}

impl<S: Simulation, C: Seated> Scene<S, C> {
    /// Creates a scene with a match, at time 0, without clients.
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

    /// Returns the next moment with due work: at least 50 µs and at most 5 ms from now.
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

    /// Connects a transport to the match, now.
    ///
    /// # Errors
    /// The errors of [`Match::connect`].
    pub fn connect(
        &mut self,
        peer: SessionId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        self.match_.connect(self.now, peer, identity, seats)
    }

    /// Delivers a packet to the match now, without a link.
    pub fn deliver(&mut self, peer: SessionId, bytes: &[u8]) {
        self.match_.handle(self.now, peer, bytes);
    }

    /// Handles the match's outputs, in order. Packets are sent over their links. A job is run immediately, and its
    /// answer comes after the time that `takes` returns, or never for `None`. Other outputs go to `other`.
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

/// A world built on a [`Scene`], in which time can pass.
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub trait Passing: DerefMut<Target = Scene<Self::Game, Self::Client>> {
    type Game: Simulation;
    type Client: Seated;
    /// The error that ends a run.
    type Wrong;

    /// Does the server's work at the current moment.
    ///
    /// # Errors
    /// If a check failed.
    fn serve(&mut self) -> Result<(), Self::Wrong>;

    /// Does the client's work at the current moment.
    ///
    /// # Errors
    /// If a check failed.
    fn step_client(&mut self, client: usize) -> Result<(), Self::Wrong>;

    /// Lets `time` pass, and calls `watch` after each moment.
    ///
    /// # Errors
    /// If [`serve`](Passing::serve) or [`step_client`](Passing::step_client) fails. Returns the first error.
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
            // A client that leaves while it is stepped shortens the list.
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
