//! [`SealingDesk`]: the frame of the tick that is sealed, and who builds and admits what stands in it.

use twinstep_core::bounds::ANNOUNCE_TICKS;
use twinstep_core::frame::{Answer, FrameData, Order};
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::share::{CommandShare, order_bytes};

use crate::caught::{Caught, Panics};
use crate::config::MatchConfig;
use crate::hooks::{AdmitAll, HookContext, Referee};
use crate::sealer::{Queries, Sealer};
use crate::seat::{Outlook, Seat};

/// See the [module](self).
pub(super) struct SealingDesk<S: Simulation> {
    pub(super) sealer: Sealer<S>,
    referee: Box<dyn Referee<S>>,
    /// The frame that was sealed last.
    pub(super) frame: FrameData<S>,
}

impl<S: Simulation> SealingDesk<S> {
    /// Of a match that begins with this tick; all within the bounds is admitted.
    pub(super) fn new(start: Tick) -> Self {
        SealingDesk {
            sealer: Sealer::default(),
            referee: Box::new(AdmitAll),
            frame: FrameData::roomy(start),
        }
    }

    /// Sets who admits commands and claims.
    pub(super) fn set_referee(&mut self, referee: impl Referee<S>) {
        self.referee = Box::new(referee);
    }

    /// Builds the frame of the world's next tick from what is held; `cadence`: how ticks are clocked from it on, if that
    /// changes.
    pub(super) fn seal(
        &mut self,
        cadence: Option<Cadence>,
        context: HookContext<'_, S>,
        seats: &mut [Seat<S>],
        queries: &mut Queries<S>,
        panics: &mut Panics,
        config: &MatchConfig,
    ) {
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics,
        };
        self.sealer.seal(
            &mut self.frame,
            &context,
            seats,
            queries,
            &mut referee,
            config,
        );
        self.frame.cadence = cadence;
    }

    /// Finds the commands that are announced and the tick that each is due at, as frames will take them. What the referee refuses
    /// now is announced to nobody. Whether a command runs is asked when it is sealed, and a panic is reported then.
    pub(super) fn review(&mut self, context: &HookContext<'_, S>, seats: &mut [Seat<S>]) {
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics: &mut Panics::default(),
        };
        let end = context.tick() + ANNOUNCE_TICKS;
        for seat in seats {
            let (mut due, mut share) = (context.tick(), CommandShare::default());
            for held in &mut seat.commands {
                // Commands run in their sequence: one that is stamped far ahead holds up those behind it.
                if held.stamp > due {
                    (due, share) = (held.stamp, CommandShare::default());
                }
                if held.outlook == Outlook::Refused {
                    continue;
                }
                held.outlook = Outlook::Unasked;
                if due >= end {
                    continue;
                }
                let Order {
                    player, command, ..
                } = &held.order;
                if referee.admit(context, *player, command, false).is_err() {
                    held.outlook = Outlook::Refused;
                    continue;
                }
                let bytes = order_bytes(command);
                if !share.take(bytes) {
                    (due, share) = (due + 1, CommandShare::default());
                    share.take(bytes);
                }
                if due < end {
                    held.outlook = Outlook::Admitted(due);
                }
            }
        }
    }

    /// Whether the referee admits what a player's client answered to what that player's simulation asked.
    pub(super) fn admits_answer(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        answer: &Answer<S::Outcome>,
        panics: &mut Panics,
    ) -> bool {
        let open = context.world.open_queries();
        let query = open
            .iter()
            .find(|o| (o.asked, o.key) == (answer.asked, answer.key));
        let (Some(open), Some(outcome)) = (query, &answer.outcome) else {
            return false;
        };
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics,
        };
        referee.admit_answer(context, by, answer.key, &open.query, outcome)
    }
}
