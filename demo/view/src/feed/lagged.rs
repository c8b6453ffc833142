//! [`Lagged`]: what plain lockstep would show of the same match, for whoever wants to feel the difference.
//!
//! ```text
//!   authority ── newest tick ──▶ Picture, one turn behind        cues: Started is held back until Confirmed
//! ```
//!
//! The prediction goes on meanwhile, unseen: switching back costs nothing.

use std::time::Duration;

use powderkeg_game::{Cue, Game, GameShow, ShowKey};
use twinstep_client::cues::{CueEvent, CueKind};
use twinstep_client::picture::Picture;
use twinstep_client::smooth::Placed;
use twinstep_client::{Poses, Show};
use twinstep_core::bounds::CUES_OPEN_MAX;
use twinstep_core::world::World;
use twinstep_core::{PlayerSet, Tick};

/// See the [module](self).
pub(super) struct Lagged {
    show: GameShow,
    picture: Picture<ShowKey, Placed>,
    poses: Poses<ShowKey, Placed>,
    tick: Tick,
    began: Duration,
    over: Duration,
    /// Guessed, not confirmed: not to be shown yet.
    held: Vec<CueEvent<Cue>>,
}

impl Lagged {
    pub(super) fn new(show: GameShow) -> Lagged {
        Lagged {
            show,
            picture: Picture::new(GameShow::SMOOTHING),
            poses: Poses::new(),
            tick: Tick(0),
            began: Duration::ZERO,
            over: Duration::ZERO,
            held: Vec::new(),
        }
    }

    /// Follows the authority: what came at once is moved through in the time that it took to play.
    pub(super) fn advance(&mut self, now: Duration, authority: &World<Game>) {
        let tick = authority.tick();
        if tick == self.tick {
            return;
        }
        // Nobody is local: what is confirmed is drawn between two turns, own players too.
        self.poses.begin(PlayerSet::default());
        self.show.poses(authority.sim(), &mut self.poses);
        self.picture.ticked(&mut self.poses, now);
        let turn = authority.turn().cadence;
        self.over = turn.tick() * (tick - self.tick).clamp(1, turn.turn_ticks.into());
        self.began = now;
        self.tick = tick;
    }

    pub(super) fn shown(&self, now: Duration) -> impl Iterator<Item = (ShowKey, Placed)> + '_ {
        const LAST: f32 = 0.999;
        let passed = now.saturating_sub(self.began).as_secs_f32();
        let alpha = (passed / self.over.as_secs_f32().max(1e-6)).min(LAST);
        self.picture.shown(alpha, now)
    }

    /// Hands on of a cue's story what the authority tells: nothing that is only guessed.
    pub(super) fn hear(&mut self, event: CueEvent<Cue>, mut tell: impl FnMut(CueEvent<Cue>)) {
        let held = self.held.iter().position(|held| held.id == event.id);
        match (&event.kind, held) {
            (CueKind::Started { .. }, _) if self.held.len() < CUES_OPEN_MAX => {
                self.held.push(event);
            }
            (CueKind::Cancelled, Some(at)) => {
                self.held.remove(at);
            }
            (CueKind::Confirmed { .. }, Some(at)) => {
                tell(self.held.remove(at));
                tell(event);
            }
            // Shown before the prediction was switched off.
            _ => tell(event),
        }
    }

    /// The prediction is shown again, and with it all that it guesses.
    pub(super) fn release(&mut self, tell: impl FnMut(CueEvent<Cue>)) {
        self.held.drain(..).for_each(tell);
    }
}
