//! [`TwinstepPlugin`]: the systems that advance and draw the match, in frame order.

use std::marker::PhantomData;

use bevy_app::{App, MainScheduleOrder, Plugin, PreUpdate};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{ScheduleLabel, SingleThreadedExecutor};
use bevy_time::{Real, Time};
use twinstep_client::{Event, NoPicture, Show};
use twinstep_core::Simulation;

use crate::drawn::{DrawnEntities, draw};
use crate::messages::{CueMessage, PlayOver, SessionMessage};
use crate::netgraph::NetGraph;
use crate::pads::{Pads, ReadInputs};
use crate::play::{Play, PlayState};

/// Advances the match and draws it, every frame after [`ReadInputs`] and before `Update`.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub struct AdvanceMatch;

/// Plays matches of the game `S` in a Bevy app, and draws its picture `V`.
///
/// Add it after `DefaultPlugins` or `MinimalPlugins`.
pub struct TwinstepPlugin<S, V = NoPicture> {
    more: fn(&mut App),
    of: PhantomData<fn() -> (S, V)>,
}

impl<S, V> Default for TwinstepPlugin<S, V> {
    fn default() -> Self {
        TwinstepPlugin {
            more: |_| {},
            of: PhantomData,
        }
    }
}

#[cfg(feature = "transform")]
impl<S: Simulation, V: Show<S, Pose: crate::TransformPose>> TwinstepPlugin<S, V> {
    /// Gives each [`Drawn`](crate::Drawn) entity a `Transform`, and moves it to its pose.
    #[must_use]
    pub fn moving_transforms(mut self) -> Self {
        use crate::places::move_transforms;
        use bevy_transform::components::Transform;

        self.more = |app| {
            app.register_required_components::<crate::Drawn<S, V>, Transform>()
                .add_systems(AdvanceMatch, move_transforms::<S, V>.after(draw::<S, V>));
        };
        self
    }
}

impl<S: Simulation, V: Show<S>> Plugin for TwinstepPlugin<S, V> {
    fn build(&self, app: &mut App) {
        app.init_resource::<PlayState>()
            .init_resource::<NetGraph>()
            .init_resource::<Pads<S>>()
            .init_resource::<DrawnEntities<S, V>>()
            .add_message::<CueMessage<S>>()
            .add_message::<SessionMessage>()
            .add_message::<PlayOver>()
            .init_schedule(ReadInputs)
            .init_schedule(AdvanceMatch)
            .edit_schedule(AdvanceMatch, |schedule| {
                // The systems follow each other, so threads would only cost time.
                schedule.set_executor(SingleThreadedExecutor::new());
            })
            .add_systems(AdvanceMatch, (advance::<S, V>, draw::<S, V>).chain());
        let mut order = app.world_mut().resource_mut::<MainScheduleOrder>();
        order.insert_after(PreUpdate, ReadInputs);
        order.insert_after(ReadInputs, AdvanceMatch);
        (self.more)(app);
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "a system's arguments are what it uses"
)]
fn advance<S: Simulation, V: Show<S>>(
    play: Option<ResMut<Play<S, V>>>,
    time: Res<Time<Real>>,
    mut pads: ResMut<Pads<S>>,
    mut state: ResMut<PlayState>,
    mut netgraph: ResMut<NetGraph>,
    mut cues: MessageWriter<CueMessage<S>>,
    mut events: MessageWriter<SessionMessage>,
    mut overs: MessageWriter<PlayOver>,
) {
    let Some(mut play) = play else {
        if state.set_if_neq(PlayState::Absent) {
            *netgraph = NetGraph::default();
        }
        return;
    };
    if play.over().is_some() {
        return;
    }
    // `Time<Virtual>` may be paused, but the match goes on.
    let (now, startup) = (time.elapsed(), time.startup());
    let advanced = pads.sampled(|input| play.advance(now, || startup.elapsed(), input));

    let session = play.session_mut();
    while let Some(cue) = session.poll_cue() {
        cues.write(CueMessage(cue));
    }
    let mut is = match *state {
        PlayState::Absent | PlayState::Over => PlayState::Connecting,
        state => state,
    };
    while let Some(event) = session.poll_event() {
        is = match event {
            Event::Joined(_) | Event::Recovered | Event::Reconnected { .. } => PlayState::Playing,
            Event::Reconnecting => PlayState::Reconnecting,
            _ => is,
        };
        events.write(SessionMessage(event));
    }
    if netgraph.is_due(now) {
        netgraph.sample(now, session.stats());
    }
    if let Err(why) = advanced {
        is = PlayState::Over;
        overs.write(PlayOver(why));
    }
    state.set_if_neq(is);
}
