//! A joining session: it waits for its welcome and for a world, or starts with its configured start state.
//!
//! ```text
//! hello ──▶ welcome: a world ──▶ its bytes, over the lane ──▶ it plays
//!       └─▶ welcome: the start that the client has ─────────▶ it plays
//! ```
//!
//! Law **Hostile wire**: an unreadable or unexpected message is counted and dropped, except that a world or rules that
//! cannot be used end the session, because the client cannot play without them.

use std::time::Duration;

use twinstep_core::world::World;
use twinstep_core::{Simulation, codec};
use twinstep_protocol::packet::hello::{Basis, Welcome};
use twinstep_protocol::packet::message;

use super::stage::Stage;
use super::{Event, Session, SessionEnd};
use crate::hooks::caught;
use crate::picture::Show;

/// A joining session gives up after this long without a welcome or download progress.
const DOWNLOAD_PATIENCE: Duration = Duration::from_secs(60);

impl<S: Simulation, V: Show<S>> Session<S, V> {
    pub(crate) fn welcome(&mut self, now: Duration, welcome: Option<Welcome>) {
        let Stage::Joining(joining) = &mut self.stage else {
            return;
        };
        // Rules that the client lacked were sent before the welcome.
        let welcome = welcome.filter(|welcome| welcome.is_sound() && joining.rules.is_some());
        if welcome.is_some() {
            joining.lobby.leave();
        }
        match welcome.as_ref().map(|welcome| welcome.basis) {
            Some(basis @ Basis::World { .. }) => match self.download.begin(basis) {
                Some(had) => {
                    self.lane_in.go_on_with(message::WORLD, had);
                    joining.welcome = welcome;
                }
                None => self.traffic.record_malformed(),
            },
            Some(Basis::Start(tick, cadence)) if joining.start.is_some() => {
                let world = joining
                    .start
                    .take()
                    .map(|sim| World::new(sim, tick).clocked(cadence));
                self.begin(now, welcome, world);
            }
            // The server named a basis that this client does not have.
            _ => self.traffic.record_malformed(),
        }
    }

    pub(crate) fn begin_with(&mut self, now: Duration, bytes: &[u8]) {
        let Stage::Joining(joining) = &mut self.stage else {
            return;
        };
        let welcome = joining.welcome.take();
        self.download.end();
        self.begin(now, welcome, read_world::<S>(bytes));
    }

    fn begin(&mut self, now: Duration, welcome: Option<Welcome>, world: Option<World<S>>) {
        let Stage::Joining(joining) = &mut self.stage else {
            return;
        };
        let rules = joining.rules.take();
        let (Some(world), Some(welcome), Some(rules)) = (world, welcome, rules) else {
            self.close(SessionEnd::UnreadableWorld);
            return;
        };
        self.events.hold(Event::Joined(welcome.seats.to_vec()));
        self.match_status.begin(world.tick());
        self.outgoing.needed = world.tick();
        self.outages.meet(now);
        self.stage.begin(welcome, world, rules);
        self.outgoing.urge();
    }

    /// Records the progress of the download. Closes a session that never played if the download stalls.
    pub(super) fn watch_download(&mut self, now: Duration) {
        let welcomed = match &self.stage {
            Stage::Joining(joining) => Some(joining.welcome.is_some()),
            Stage::Returning(returning) => Some(returning.welcome.is_some()),
            Stage::Playing(_) | Stage::Closed(_) => None,
        };
        let bytes = self.lane_in.progress().map_or(0, |p| p.received_bytes);
        self.download
            .watch(now, welcomed.map(|welcomed| (welcomed, bytes)));
        if matches!(self.stage, Stage::Joining(_)) && self.is_held_up(now, DOWNLOAD_PATIENCE) {
            self.close(SessionEnd::NoWorld);
        }
    }

    pub(crate) fn is_held_up(&self, now: Duration, patience: Duration) -> bool {
        self.download.is_held_up(now, patience)
    }

    #[cfg(feature = "udp")]
    pub(crate) fn is_progressing(&self) -> bool {
        self.download.is_progressing()
    }
}

pub(crate) fn read_world<S: Simulation>(bytes: &[u8]) -> Option<World<S>> {
    caught(|| codec::decode_whole::<World<S>>(bytes).ok())
        .ok()
        .flatten()
        .filter(World::is_sound)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrayvec::ArrayVec;
    use twinstep_core::Tick;
    use twinstep_core::bounds::{PACKET_BYTES_MAX, REPORT_BYTES_MAX};
    use twinstep_core::codec;
    use twinstep_core::testing::doc::Counter;
    use twinstep_protocol::lane::{self, LaneSender};
    use twinstep_protocol::link::LinkState;
    use twinstep_protocol::packet::hello::WorldId;
    use twinstep_protocol::packet::play_down::{DownStatus, PlayDownWriter};
    use twinstep_protocol::packet::{chunk, message};
    use twinstep_protocol::wire::Writer;

    use super::*;
    use crate::session::SessionConfig;

    const SECOND: Duration = Duration::from_secs(1);

    /// Simulates a server that sends ten packets a second, no world, and a welcome at second `welcome_at`. Returns the
    /// second in which the session ended, and the reason.
    fn ends(welcome_at: Option<u64>) -> (u64, SessionEnd) {
        let mut session = Session::<Counter>::new(SessionConfig::new(Arc::new(()))).unwrap();
        let (mut link, mut sender) = (LinkState::default(), LaneSender::new(REPORT_BYTES_MAX));
        for n in 0..2_000 {
            let now = SECOND * n / 10;
            let mut bytes = [0; PACKET_BYTES_MAX];
            let mut packet = Writer::new(&mut bytes);
            if welcome_at == Some(u64::from(n) / 10) && n % 10 == 0 {
                let welcome = Welcome {
                    seats: ArrayVec::from_iter([twinstep_core::PlayerId(0)]),
                    next_seq: ArrayVec::from_iter([0]),
                    command_delay: 0,
                    owners_answer: false,
                    basis: Basis::World {
                        world: WorldId::of(Tick(0), &[]),
                        from: 0,
                    },
                };
                let mut bytes = Vec::new();
                codec::append(&welcome, &mut bytes).unwrap();
                sender.push(message::WELCOME, bytes.into()).unwrap();
                let mut chunk = [0; lane::FRAME_BYTES_MAX];
                let len = sender.poll(now, SECOND / 10, &mut chunk).unwrap();
                chunk::write_down(now, &mut link, &chunk[..len], &mut packet).unwrap();
            } else {
                let status = DownStatus::default();
                let packet = PlayDownWriter::begin(now, &mut link, &status, &mut packet).unwrap();
                let _ = packet.end();
            }
            let len = packet.len();
            session.handle(now, &bytes[..len]);
            if let Err(closed) = session.advance(now, 1, |_| Default::default()) {
                return (now.as_secs(), closed);
            }
        }
        panic!("the join never ends");
    }

    /// Finding C7: a server that responded, but did not send a world, kept a client joining forever.
    #[test]
    fn a_stalled_join_ends_after_a_minute_with_a_reason() {
        assert_eq!(ends(None), (60, SessionEnd::NoWorld));
        assert_eq!(ends(Some(40)), (100, SessionEnd::NoWorld));
    }
}
