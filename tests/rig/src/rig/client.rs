//! One client of the rig: a real session, its line, and who plays it.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_client::{Event, Rebuild, Session};
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_server::SessionId;
use twinstep_testing::scene::{Place, Seated};

use super::play::{Play, Role};

/// An identity that was too slow is barred for this long.
pub(super) const BAR: Duration = Duration::from_secs(30);
/// Times for which the match waited are summed up for each of these.
const PART: Duration = Duration::from_secs(1);

/// For how long the match has stood still for one client.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The players of its last session that had any.
    pub(super) players: Vec<PlayerId>,
    /// When each part began, and how long the match stood still in it; oldest first.
    parts: VecDeque<(Duration, Duration)>,
    /// Since when the match has been waiting for it at this turn.
    since: Option<Duration>,
    /// The last wait for it that is over: when it ended, and how long it was.
    last: (Duration, Duration),
    /// When the client was put out for that; `None`: it is in the match, or on its way.
    pub(super) out_since: Option<Duration>,
    /// Each time that it was put out: when, what the match had waited for it at once, and what within the window.
    pub(super) times_out: Vec<(Duration, Duration, Duration)>,
}

impl Awaited {
    /// The match waited for the client until `now`, and `share` of that time is its own.
    pub(super) fn wait(&mut self, now: Duration, since: Duration, share: Duration) {
        self.since.get_or_insert(since);
        match self.parts.back_mut() {
            Some((began, sum)) if now < *began + PART => *sum += share,
            _ => self.parts.push_back((now, share)),
        }
    }

    /// The match does not wait for the client any more, or at another turn.
    pub(super) fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.last = (now, now - since);
        }
    }

    /// The server has begun anew, and knows of no debt.
    pub(super) fn forget(&mut self) {
        self.parts.clear();
        self.since = None;
    }

    /// The longest that the match has waited for the client at once, lately; and all that it has waited within `window`.
    pub(super) fn spent(&self, now: Duration, window: Duration) -> (Duration, Duration) {
        let (ended, last) = self.last;
        let last = if now <= ended + BAR {
            last
        } else {
            Duration::ZERO
        };
        let at_once = self.since.map_or(last, |since| last.max(now - since));
        let within = self.parts.iter().filter(|(began, _)| now < *began + window);
        (at_once, within.map(|(_, time)| *time).sum())
    }
}

/// An order whose fate is open.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// When it was given.
    pub at: Duration,
    /// The waiting that was excused by then.
    pub(super) excuse: Duration,
    /// How many orders of all clients were open then.
    pub(super) open: usize,
}

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
    /// Since when its transport is dead.
    pub(super) cut_at: Option<Duration>,
    /// For how long the match has stood still for it.
    pub(super) awaited: Awaited,
    /// Since when it has not been in the match, and what was excused by then.
    pub(super) left_out_since: (Duration, Duration),
    /// When the server heard it last, for the last seconds.
    pub(super) heard_at: VecDeque<Duration>,
    /// Each order whose fate is open.
    pub given_at: VecDeque<Given>,
    /// How many fates are known.
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
    /// It draws nothing: its session is called when it is [due](Session::next_due) or a packet came, and at no other moment.
    pub sleeps: bool,
    /// How often its session was advanced.
    pub calls: u64,
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
    pub fn peer(&self) -> SessionId {
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

    /// Its transport is not dead any more; for as long as it was, nobody could do anything for its player.
    pub(super) fn note_alive(&mut self, now: Duration) {
        if let Some(cut_at) = self.cut_at.take() {
            self.excuse += now - cut_at;
        }
    }

    pub(super) fn authority_tick(&self) -> Tick {
        self.session.authority().map_or(Tick(0), World::tick)
    }

    /// What its player holds next, decided once for each sampled tick, and what it orders.
    pub(super) fn decide(
        &mut self,
        given_now: Given,
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
                let open = given_now.open + self.given_at.len();
                self.given_at.push_back(Given { open, ..given_now });
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
