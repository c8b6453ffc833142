//! One client of the rig: a real session, its line, and who plays it.

use twinstep_client::cues::CueKind;

use super::*;

/// One client of the rig.
pub struct RigClient<S: Play> {
    /// Its session.
    pub session: Session<S, S::Show>,
    /// Its session's number at the server.
    pub peer: PeerId,
    /// Who it is.
    pub identity: String,
    /// How many seats it has; none: it watches.
    pub seats: usize,
    /// Its two legs.
    pub net: Link,
    /// Commands that it gave, with their sequences.
    pub sent: Vec<(u32, S::Command)>,
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
    pub(super) driver: S::Driver,
    /// What it holds instead of what its driver decides.
    pub(super) held: Option<S::Input>,
    pub(super) decided: Option<S::Input>,
    pub(super) open_cues: BTreeSet<CueId>,
    pub(super) frame: Duration,
    pub(super) next_frame: Duration,
    pub(super) frozen_until: Duration,
    pub(super) busy: Duration,
    pub(super) busy_since: Duration,
    /// What a step costs its machine.
    pub step_cost: Duration,
    pub(super) commanding: bool,
    pub(super) healed: u64,
}

impl<S: Play> RigClient<S> {
    /// Draws so many frames a second from now on.
    pub fn draws(&mut self, fps: u32) {
        self.frame = Duration::from_secs(1) / fps;
    }

    pub(super) fn authority_tick(&self) -> Tick {
        self.session.authority().map_or(Tick(0), World::tick)
    }

    /// What its player holds next, decided once for each sampled tick, and what it orders.
    pub(super) fn decide(&mut self, rules: &S::Rules, given: &mut Vec<S::Command>) {
        if self.decided.is_some() {
            return;
        }
        if let Some(held) = &self.held {
            self.decided = Some(held.clone());
            return;
        }
        let Some(world) = self.session.prediction() else {
            return;
        };
        let Some(&me) = self.session.seats().first() else {
            return;
        };
        let (input, order) = world.sim().drive(&mut self.driver, rules, me, world.tick());
        self.decided = Some(input);
        if let Some(command) = order.filter(|_| self.commanding)
            && let Ok(seq) = self.session.command(0, command.clone())
        {
            given.push(command.clone());
            self.sent.push((seq, command));
        }
    }

    /// Each cue starts once and is settled once.
    pub(super) fn read_cues(&mut self, observed: bool) {
        while let Some(event) = self.session.poll_cue() {
            if !observed {
                continue;
            }
            let fresh = match event.kind {
                CueKind::Started { .. } => self.open_cues.insert(event.id),
                CueKind::Confirmed { .. } | CueKind::Cancelled => self.open_cues.remove(&event.id),
            };
            assert!(
                fresh,
                "{}: cue {:?} started or settled twice",
                self.identity, event.id
            );
        }
    }
}
