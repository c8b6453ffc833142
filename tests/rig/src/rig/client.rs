//! One client of the rig: a real session, its line, and who plays it.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::{Event, Rebuild, Session};
use twinstep_core::Tick;
use twinstep_core::simnet::LinkProfile;
use twinstep_core::world::World;
use twinstep_server::PeerId;
use twinstep_testing::scene::{Place, Seated};

use super::play::{Play, Role};

/// One client of the rig.
pub struct RigClient<S: Play> {
    /// Its session.
    pub session: Session<S, S::Show>,
    /// Its line, its frames, and until when it stands still.
    pub place: Place,
    /// Who it is.
    pub identity: String,
    /// How many seats it has; none: it watches.
    pub seats: usize,
    /// Commands that it gave, with their seats and sequences.
    pub sent: Vec<(usize, u32, S::Command)>,
    /// Whether a desync was planted in it, so that its digest may differ until it is healed.
    pub flipped: bool,
    /// What its last desync report said.
    pub desync: Option<String>,
    /// What its session told, beside desyncs.
    pub events: Vec<Event>,
    /// Tickets to return with that it was handed.
    pub tickets: usize,
    /// Whether its process began anew, so that it does not know what the one before gave.
    pub restarted: bool,
    pub(super) drivers: Vec<S::Driver>,
    /// What it is up to.
    pub role: Role,
    /// How far its clock is ahead of the world's, and by how much it runs faster or slower.
    pub(super) ahead: Duration,
    pub(super) drift_ppm: i32,
    /// What befell it excuses so much waiting.
    pub(super) excuse: Duration,
    /// Since when it has not been in the match, and what was excused by then.
    pub(super) left_out_since: (Duration, Duration),
    /// When the server heard it last, for the last seconds.
    pub(super) heard_at: VecDeque<Duration>,
    /// When each order was given whose fate is open, what was excused by then, and how many fates are known.
    pub given_at: VecDeque<(Duration, Duration)>,
    pub(super) settled: u64,
    /// The authority that was compared last: its tick, and how often it had been healed.
    pub(super) compared: Option<(Tick, u64)>,
    /// The prediction's next tick, and the first one without an input, when they were last looked at.
    pub(super) gone_to: (u32, u32),
    /// When its present session began.
    pub(super) arrived_at: Duration,
    /// Packets that it sent since.
    pub(super) said: u64,
    /// Whether its line is so bad that its inputs may come late though it speaks.
    pub(super) is_doubtful: bool,
    /// Whether it was dropped when it was looked at last.
    pub(super) was_dropped: bool,
    /// What it holds instead of what its driver decides.
    pub(super) held: Option<S::Input>,
    pub(super) decided: Option<Vec<S::Input>>,
    pub(super) busy: Duration,
    pub(super) busy_since: Duration,
    /// What a step costs its machine.
    pub step_cost: Duration,
    /// What is rebuilt elsewhere, and the frames until it comes back.
    pub(super) rebuild: Option<(u32, Box<Rebuild<S>>)>,
    pub(super) commanding: bool,
    pub(super) healed: u64,
}

impl<S: Play> Seated for RigClient<S> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn place_mut(&mut self) -> &mut Place {
        &mut self.place
    }
}

impl<S: Play> RigClient<S> {
    /// Its session's number at the server.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        self.place.peer
    }

    /// Draws so many frames a second from now on.
    pub fn draws(&mut self, fps: u32) {
        self.place.frame = Duration::from_secs(1) / fps;
    }

    /// One frame of its session, and of whoever rebuilds for it.
    pub(super) fn play_frame(
        &mut self,
        theirs: Duration,
        budget: u32,
        late: Option<u32>,
        mut input: impl FnMut(usize) -> S::Input,
    ) {
        if let Some((frames, _)) = &mut self.rebuild {
            *frames -= 1;
        }
        if let Some((_, mut rebuild)) = self.rebuild.take_if(|(frames, _)| *frames == 0) {
            rebuild.run();
            self.session.hand_back(rebuild);
        }
        // Who is put out stays silent.
        let _ = self.session.advance(theirs, budget, &mut input);
        let Some(mut rebuild) = self.session.poll_rebuild() else {
            return;
        };
        match late {
            Some(0) => {
                rebuild.run();
                self.session.hand_back(rebuild);
                let _ = self.session.advance(theirs, budget, input);
            }
            Some(frames) => self.rebuild = Some((frames, rebuild)),
            None => unreachable!("it rebuilds by itself"),
        }
    }

    pub(super) fn authority_tick(&self) -> Tick {
        self.session.authority().map_or(Tick(0), World::tick)
    }

    /// What its player holds next, decided once for each sampled tick, and what it orders.
    pub(super) fn decide(
        &mut self,
        (now, excuse): (Duration, Duration),
        rules: &S::Rules,
        given: &mut Vec<S::Command>,
    ) {
        if self.decided.is_some() {
            return;
        }
        if let Some(held) = &self.held {
            self.decided = Some(vec![held.clone(); self.drivers.len()]);
            return;
        }
        let Some(world) = self.session.prediction() else {
            return;
        };
        if self.session.seats().is_empty() {
            return;
        }
        let (mut inputs, mut orders) = (Vec::with_capacity(self.drivers.len()), Vec::new());
        let seats = self.session.seats().iter().zip(&mut self.drivers);
        for (seat, (&me, driver)) in seats.enumerate() {
            let (input, order) = world.sim().drive(driver, rules, me, world.tick());
            inputs.push(input);
            orders.extend(order.map(|order| (seat, order)));
            while let Some(order) = world.sim().drive_more(driver, rules) {
                orders.push((seat, order));
            }
        }
        self.decided = Some(inputs);
        for (seat, command) in orders.into_iter().filter(|_| self.commanding) {
            if let Ok(seq) = self.session.command(seat, command.clone()) {
                given.push(command.clone());
                self.sent.push((seat, seq, command));
                self.given_at.push_back((now, self.excuse + excuse));
            }
        }
    }

    /// What its own clock says.
    pub(super) fn time(&self, now: Duration) -> Duration {
        let drift = now.as_nanos() as i128 * i128::from(self.drift_ppm) / 1_000_000;
        let drifted = now.as_nanos() as i128 + drift;
        self.ahead + Duration::from_nanos(drifted.max(0) as u64)
    }

    /// Each cue starts once and is settled once.
    pub(super) fn read_cues(&mut self, observed: bool) {
        while let Some(event) = self.session.poll_cue() {
            assert!(
                !observed || self.place.book_cue(&event),
                "{}: cue {:?} started or settled twice",
                self.identity,
                event.id
            );
        }
    }
}

/// Whether inputs may come late over such a line though nobody is silent.
pub(super) fn is_doubtful(link: &LinkProfile) -> bool {
    let up = link.up;
    up.delay * 2 + up.jitter > Duration::from_millis(200) || up.loss_ppm > 50_000
}
