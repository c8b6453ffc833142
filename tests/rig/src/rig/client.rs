//! One client of the rig: a real session, its link, and its drivers.

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
/// Waiting times are summed up over intervals of this length.
const PART: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// The players of the client's last session that had seats.
    pub(super) players: Vec<PlayerId>,
    /// The start of each interval and the waiting time within it, oldest first.
    parts: VecDeque<(Duration, Duration)>,
    since: Option<Duration>,
    /// The end and the length of the last completed wait.
    last: (Duration, Duration),
    /// When the client was removed as too slow. `None` if it is in the match or joining.
    pub(super) out_since: Option<Duration>,
    /// For each removal: its time, the longest single wait, and the sum of the waits within the window.
    pub(super) times_out: Vec<(Duration, Duration, Duration)>,
}

impl Awaited {
    /// Adds a wait since `since` that lasts until `now`; the client's share of it is `share`.
    pub(super) fn wait(&mut self, now: Duration, since: Duration, share: Duration) {
        self.since.get_or_insert(since);
        match self.parts.back_mut() {
            Some((began, sum)) if now < *began + PART => *sum += share,
            _ => self.parts.push_back((now, share)),
        }
    }

    /// Ends the current wait: the match no longer waits for this client, or waits for it at a different turn.
    pub(super) fn end(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.last = (now, now - since);
        }
    }

    pub(super) fn forget(&mut self) {
        self.parts.clear();
        self.since = None;
    }

    /// The longest recent single wait for the client, and the sum of its waits within `window`.
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

#[derive(Clone, Copy, Debug)]
pub struct GivenCommand {
    pub at: Duration,
    pub(super) excuse: Duration,
    pub(super) open: usize,
}

pub struct RigClient<S: Play> {
    pub session: Session<S, S::Show>,
    /// The client's link and frame clock, and when it is frozen.
    pub place: Place,
    pub identity: String,
    /// The number of seats; 0 for a spectator.
    pub seats: usize,
    /// The commands issued by the client, each with its seat and sequence number.
    pub sent: Vec<(usize, u32, S::Command)>,
    /// Whether a desync was planted, so that the client's digest may differ until a heal.
    pub flipped: bool,
    pub desync: Option<String>,
    pub events: Vec<Event>,
    pub tickets: usize,
    /// Whether the client's process was restarted, so that it does not know the previous process's commands.
    pub restarted: bool,
    pub(super) drivers: Vec<S::Driver>,
    pub role: Role,
    /// The offset of the client's clock from the world's clock.
    pub(super) ahead: Duration,
    pub(super) drift_ppm: i32,
    /// Waiting time excused by faults injected into this client.
    pub(super) excuse: Duration,
    pub(super) cut_at: Option<Duration>,
    pub(super) heals_since: Option<Duration>,
    pub(super) awaited: Awaited,
    /// When the client was last in the match, and the waiting time excused by then.
    pub(super) left_out_since: (Duration, Duration),
    /// The times at which the server received the client's packets in the last few seconds.
    pub(super) received_at: VecDeque<Duration>,
    pub given_at: VecDeque<GivenCommand>,
    pub(super) settled: u64,
    pub(super) malformed: u64,
    /// The last compared confirmed state: its tick, and the number of heals by then.
    pub(super) compared: Option<(Tick, u64)>,
    /// The prediction's next tick, and the first tick without an input, at the last check.
    pub(super) gone_to: (u32, u32),
    pub(super) arrived_at: Duration,
    pub(super) packets_sent: u64,
    /// Whether the link is so bad that inputs may be late without an outage.
    pub(super) is_doubtful: bool,
    pub(super) was_dropped: bool,
    pub(super) held: Option<S::Input>,
    pub(super) decided: Option<Vec<S::Input>>,
    pub(super) busy: Duration,
    pub(super) busy_since: Duration,
    /// Whether the client does not draw frames: its session is called only when it is [due](Session::next_due) or a
    /// packet arrived.
    pub sleeps: bool,
    pub calls: u64,
    pub step_cost: Duration,
    /// A background rebuild, and the number of frames until it is handed back.
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
    #[must_use]
    pub fn peer(&self) -> SessionId {
        self.place.peer
    }

    pub fn draws(&mut self, fps: u32) {
        self.place.frame = Duration::from_secs(1) / fps;
    }

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
        // A closed session returns an error, and sends nothing.
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

    pub(super) fn mark_alive(&mut self, now: Duration) {
        if let Some(cut_at) = self.cut_at.take() {
            self.excuse += now - cut_at;
        }
    }

    pub(super) fn authority_tick(&self) -> Tick {
        self.session.authority().map_or(Tick(0), World::tick)
    }

    pub(super) fn decide(
        &mut self,
        given_now: GivenCommand,
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
                self.given_at.push_back(GivenCommand { open, ..given_now });
            }
        }
    }

    pub(super) fn time(&self, now: Duration) -> Duration {
        let drift = now.as_nanos() as i128 * i128::from(self.drift_ppm) / 1_000_000;
        let drifted = now.as_nanos() as i128 + drift;
        self.ahead + Duration::from_nanos(drifted.max(0) as u64)
    }

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

/// Returns `true` if inputs may be late over this link although their client is not silent.
pub(super) fn is_doubtful(link: &LinkProfile) -> bool {
    let up = link.up;
    up.delay * 2 + up.jitter > Duration::from_millis(200) || up.loss_ppm > 50_000
}
