//! The game's view of its session: worlds, the picture, cues, events, and the state of the match.
//!
//! Invariant: no method here changes the confirmed match or the packets sent.

use std::sync::Arc;

use twinstep_core::memo::LoopStats;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick};
use twinstep_protocol::lobby::Lobby;
use twinstep_protocol::packet::message;

use super::Session;
use super::events::{Event, Progress, SessionEnd};
use super::playing::Mode;
use super::stage::{Returning, Stage};
#[cfg(feature = "udp")]
use crate::budget::StepCounts;
use crate::budget::{NEW_STEP, REPEATED_MIN};
use crate::cues::CueEvent;
use crate::match_status::PresenceView;
use crate::picture::{PictureErrors, Show};
use crate::stats::SessionStats;
use crate::timeline::Timeline;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// The confirmed world. Returns `None` before the session is in its match, and once it is over.
    #[must_use]
    pub fn authority(&self) -> Option<&World<S>> {
        self.stage
            .playing()
            .map(|playing| playing.replica.timeline.authority())
    }

    /// The world that is shown: the predicted one, or the confirmed one in lockstep. Returns `None` when
    /// [`authority`](Session::authority) does.
    #[must_use]
    pub fn prediction(&self) -> Option<&World<S>> {
        self.stage
            .playing()
            .map(|playing| playing.replica.timeline.prediction())
    }

    /// The players of this session's seats. Empty outside a match or lobby, and for a spectator.
    #[must_use]
    pub fn seats(&self) -> &[PlayerId] {
        match &self.stage {
            Stage::Joining(joining) => joining.lobby.seats(),
            stage => stage.playing().map_or(&[], |playing| {
                playing.replica.timeline.local_actions().seats()
            }),
        }
    }

    /// The lobby, while the match waits for its players: their names, whether they are ready, and the condition for the
    /// start. A reconnecting session may also be in the lobby, if the match was loaded from a save during its absence.
    /// Returns `None` before the server responds, and once the match has started.
    #[must_use]
    pub fn lobby(&self) -> Option<&Lobby> {
        self.stage.antechamber()?.view()
    }

    /// The rules of the session's match, now or once it starts, unless its host chooses other rules. Returns `None`
    /// until the server has sent them to a client [without rules](super::SessionConfig::without_rules), and once the
    /// session is over.
    #[must_use]
    pub fn rules(&self) -> Option<&Arc<S::Rules>> {
        match &self.stage {
            Stage::Joining(joining) => joining.rules.as_ref(),
            stage => stage.playing().map(|playing| &playing.replica.rules),
        }
    }

    /// The progress of joining, or of reconnecting with a world download. Returns `None` before the world starts to
    /// arrive, while the session plays, and once it is over.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let world = self
            .lane_in
            .progress()
            .filter(|arriving| arriving.kind == message::WORLD);
        let Some(playing) = self.stage.playing().filter(|_| world.is_none()) else {
            return world.map(|arriving| Progress::World {
                received_bytes: arriving.received_bytes,
                total_bytes: arriving.total_bytes,
                rest: self.download.rest(arriving.total_bytes),
            });
        };
        playing.is_catching_up().then(|| {
            let tick = playing.replica.timeline.authority().tick();
            let (done_ticks, total_ticks) = self.match_status.caught_up(tick);
            Progress::CatchingUp {
                done_ticks,
                total_ticks,
            }
        })
    }

    /// The key and the smoothed pose of each entity to draw, in key order.
    pub fn shown(&self) -> impl Iterator<Item = (V::Key, V::Pose)> + '_ {
        self.shown_with_local().map(|(key, (pose, _))| (key, pose))
    }

    /// The time at which a player's entities are drawn, in ticks: at 7.5, they are halfway between the worlds of ticks
    /// 7 and 8. See [`When`](crate::When). Returns `None` outside a match.
    #[must_use]
    pub fn drawn_at(&self, player: PlayerId) -> Option<f64> {
        let replica = &self.stage.playing()?.replica;
        let predicted = f64::from(replica.timeline.prediction().tick().0);
        let alpha = f64::from(replica.view.alpha);
        if replica.timeline.local_actions().players().contains(player) {
            return Some(predicted + alpha);
        }
        let between = predicted - 1.0 + alpha;
        let other = replica.view.others.time(player);
        Some(other.map_or(between, |(time, _)| time))
    }

    /// The entities of [`shown`](Session::shown), each with `true` if it is local: put by
    /// [`put_local`](crate::Poses::put_local), or a local player's.
    pub fn shown_with_local(&self) -> impl Iterator<Item = (V::Key, (V::Pose, bool))> + '_ {
        let view = self.stage.playing().map(|playing| &playing.replica.view);
        view.into_iter().flat_map(|view| {
            let mut own = view
                .picture
                .shown_with_local(view.alpha, view.now)
                .peekable();
            let others = view.others.drawn().iter();
            let mut others = others.map(|(key, pose)| (*key, (*pose, false))).peekable();
            std::iter::from_fn(move || match (own.peek(), others.peek()) {
                (Some((own_key, _)), Some((key, _))) if key < own_key => others.next(),
                (None, _) => others.next(),
                _ => own.next(),
            })
        })
    }

    /// Turns the smoothing of corrections on (the default) or off, to show the uncorrected errors. Has no effect before
    /// the session plays.
    pub fn set_smooths(&mut self, smooths: bool) {
        if let Some(playing) = self.stage.playing_mut() {
            playing.replica.view.picture.set_smooths(smooths);
            playing.replica.view.others.set_smooths(smooths);
        }
    }

    /// The drawn pose of one entity.
    #[must_use]
    pub fn pose(&self, key: V::Key) -> Option<V::Pose> {
        let view = &self.stage.playing()?.replica.view;
        let other = || {
            let drawn = view.others.drawn();
            let at = drawn.binary_search_by_key(&key, |(key, _)| *key).ok()?;
            Some(drawn[at].1)
        };
        view.picture.pose(key, view.alpha, view.now).or_else(other)
    }

    /// pDiff of one entity: the distance between its drawn and its simulated pose, in the unit of
    /// [`Pose::length`](crate::Pose::length). A correction sets it, and it is 0 again after the lead (at least 6
    /// ticks), or after 12 ticks for another player's entity. `None` if the entity is not drawn.
    #[must_use]
    pub fn error(&self, key: V::Key) -> Option<f32> {
        let view = &self.stage.playing()?.replica.view;
        let mut pictures = std::iter::once(&view.picture).chain(view.others.pictures());
        pictures.find_map(|picture| picture.error(key, view.now))
    }

    /// The entities that a correction removed, so that they can fade out: the key, the last drawn pose, and the
    /// remaining opacity, which falls from 1 to 0 over the lead (at least 6 ticks), or 12 ticks for another player's
    /// entity. Entities that end in a predicted tick are not included.
    pub fn fading(&self) -> impl Iterator<Item = (V::Key, V::Pose, f32)> + '_ {
        let view = self.stage.playing().map(|playing| &playing.replica.view);
        view.into_iter().flat_map(|view| {
            let pictures = std::iter::once(&view.picture).chain(view.others.pictures());
            pictures.flat_map(|picture| picture.fading(view.now))
        })
    }

    /// Returns the next cue to start, confirm or stop.
    pub fn poll_cue(&mut self) -> Option<CueEvent<S::Cue>> {
        let playing = self.stage.playing_mut()?;
        playing.replica.view.cues.poll()
    }

    /// Returns the next event. Only the newest [`EVENTS_MAX`](super::EVENTS_MAX) unpolled events are kept; the dropped
    /// ones are counted in [`SessionStats::events_dropped`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The number of turns that have arrived completely but have not ended. It is at least 1 as long as no turn is
    /// late. Returns `None` unless the session is in lockstep.
    #[must_use]
    pub fn turns_ahead(&self) -> Option<u32> {
        let playing = self.stage.playing()?;
        let Mode::Lockstep(lockstep) = &playing.mode else {
            return None;
        };
        let arriving = lockstep.arriving_turn();
        Some(arriving.saturating_sub(playing.replica.timeline.authority().turn().number))
    }

    /// The players for which the match waits, to mark their names on the screen.
    #[must_use]
    pub fn waiting(&self) -> PlayerSet {
        self.match_status.waiting()
    }

    /// The players of the lobby or match: their names, and the quality of their connections.
    #[must_use]
    pub fn presence(&self) -> &PresenceView {
        self.match_status.presence()
    }

    /// The confirmed match as a journal. It starts with the world that the last join, heal or reconnect brought, and
    /// ends with the newest complete turn. A long recording starts with a later world instead. Returns `None` if
    /// the session does not [record a journal](super::SessionConfig::record_journal), or has not started to play.
    #[must_use]
    pub fn recording(&self) -> Option<&[u8]> {
        let tape = match &self.stage {
            Stage::Joining(joining) => joining.tape.as_ref(),
            Stage::Playing(playing) | Stage::Returning(Returning { playing, .. }) => {
                playing.replica.tape.as_ref()
            }
            Stage::Closed(over) => over.tape.as_ref(),
        };
        tape?.journal()
    }

    /// The reason why the session is over. Returns `None` if it is not.
    #[must_use]
    pub fn closed(&self) -> Option<SessionEnd> {
        match &self.stage {
            Stage::Closed(over) => Some(over.why),
            _ => None,
        }
    }

    /// The tick at which the authority was found to differ from the server's. Returns `None` if they do not differ.
    /// Until it is healed, a predicting session continues with a nearly correct world.
    #[must_use]
    pub fn desynced_since(&self) -> Option<Tick> {
        self.stage.playing()?.replica.divergence.since()
    }

    /// The number of steps of both simulations so far, without background rebuilds; none once the session is over.
    #[cfg(feature = "udp")]
    pub(crate) fn steps(&self) -> StepCounts {
        let timeline = self
            .stage
            .playing()
            .map(|playing| &playing.replica.timeline);
        timeline.map_or(StepCounts::default(), Timeline::steps)
    }

    /// Sets the cost of a repeated step (a step of a rebuild in a tick that was predicted before) in
    /// [`advance`](Session::advance)'s budget, in 256ths of a new step, clamped to 4..=256. The default is 256.
    /// [`Client`](crate::Client) measures it: where loops reuse results
    /// ([`Effects::each`](twinstep_core::Effects::each)), a rebuild costs little, and the prediction keeps its lead.
    /// Has no effect before the session plays.
    pub fn set_repeated_step_cost(&mut self, cost: u32) {
        if let Some(playing) = self.stage.playing_mut() {
            let cost = cost.clamp(REPEATED_MIN, NEW_STEP);
            playing.replica.timeline.set_repeated_step_cost(cost);
        }
    }

    /// The counts of each loop of [`Effects::each`](twinstep_core::Effects::each) in repeated ticks: the items run, and
    /// the results reused.
    #[must_use]
    pub fn loops(&self) -> &[LoopStats] {
        let timeline = self
            .stage
            .playing()
            .map(|playing| &playing.replica.timeline);
        timeline.map_or(&[], Timeline::loops)
    }

    /// The drawn picture, compared with the final match, since the session joined. Two copies and
    /// [`PictureErrors::since`] give the errors within a window.
    #[must_use]
    pub fn picture_errors(&self) -> PictureErrors {
        let playing = self.stage.playing();
        playing.map_or_else(PictureErrors::default, |playing| {
            playing.replica.view.errors()
        })
    }

    /// The session's counters and measurements, since it joined unless the field's documentation names another time.
    #[must_use]
    pub fn stats(&self) -> SessionStats {
        let mut stats = self.counters();
        if let Some(playing) = self.stage.playing() {
            stats.picture = playing.replica.view.errors().stats();
        }
        stats
    }

    /// The [`stats`](Session::stats), except that `picture` is empty. It costs a fifth as much, for frequent reading.
    #[must_use]
    pub fn counters(&self) -> SessionStats {
        let mut stats = SessionStats {
            rtt_ms: self.link.rtt().unwrap_or_default().as_secs_f64() * 1e3,
            jitter_ms: self.link.jitter().as_secs_f64() * 1e3,
            loss: self.link.loss(),
            events_dropped: self.events.dropped(),
            ..match &self.stage {
                Stage::Closed(over) => over.stats,
                _ => SessionStats::default(),
            }
        };
        self.traffic.fill_stats(&mut stats);
        self.outages.fill_stats(self.now, &mut stats);
        if let Some(playing) = self.stage.playing() {
            playing.fill_stats(&mut stats);
        }
        stats
    }
}
