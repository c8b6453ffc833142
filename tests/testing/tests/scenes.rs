//! An author's own test rig on a scene: freezes, stalls, waiting packets, and records of cues.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{CueEvent, CueId, CueKind, Session, SessionConfig};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Key, Never, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_server::{Decision, HookContext, Match, MatchConfig, SessionId};
use twinstep_testing::scene::{Passing, Place, Recorded, Scene, Seated};

const FRAME: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

/// A player that holds 1 in every frame.
struct Player {
    place: Place,
    session: Session<Counter>,
    frames: u32,
}

impl Seated for Player {
    fn place(&self) -> &Place {
        &self.place
    }

    fn place_mut(&mut self) -> &mut Place {
        &mut self.place
    }
}

struct Small {
    scene: Scene<Counter, Player>,
    served: u32,
}

impl Deref for Small {
    type Target = Scene<Counter, Player>;

    fn deref(&self) -> &Self::Target {
        &self.scene
    }
}

impl DerefMut for Small {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.scene
    }
}

impl Passing for Small {
    type Game = Counter;
    type Client = Player;
    type Wrong = Infallible;

    fn serve(&mut self) -> Result<(), Infallible> {
        self.served += 1;
        let Scene {
            match_,
            clients,
            now,
            ..
        } = &mut self.scene;
        for player in clients {
            while let Some(bytes) = player.place.line.up.poll(*now) {
                match_.handle(*now, player.place.peer, bytes);
            }
        }
        match_.advance(*now);
        self.scene.drain(|never| match *never {}, |_| ());
        Ok(())
    }

    fn step_client(&mut self, client: usize) -> Result<(), Infallible> {
        let Scene { clients, now, .. } = &mut self.scene;
        let (now, player) = (*now, &mut clients[client]);
        while let Some(bytes) = player.place.line.down.poll(now) {
            player.session.handle(now, bytes);
        }
        if player.place.draws(now) {
            player.frames += 1;
            player.session.advance(now, 32, |_| 1).expect("it is in");
        }
        let mut buffer = [0; PACKET_BYTES_MAX];
        while let Some(len) = player.session.poll_transmit(now, &mut buffer) {
            player.place.line.up.send(now, &buffer[..len]);
        }
        Ok(())
    }
}

impl Small {
    fn run(&mut self, time: Duration) {
        let Ok(()) = self.pass(time, |_| ());
    }

    fn authority(&self, player: usize) -> Tick {
        let authority = self.clients[player].session.authority();
        authority.map_or(Tick(0), |world| world.tick())
    }
}

fn two() -> Small {
    let rules = Arc::new(());
    let resolver = |_: &HookContext<'_, Counter>, _: Key, query: &Never| -> Decision<Never> {
        match *query {}
    };
    let match_ = Match::new(
        MatchConfig::action(),
        Counter::default(),
        rules.clone(),
        resolver,
    );
    let mut scene = Scene::new(match_.expect("it starts"));
    for n in 1..=2 {
        let peer = SessionId(n);
        scene
            .connect(peer, &format!("player {n}"), 1)
            .expect("a seat");
        let line = SimLink::new(LinkProfile::LAN, n);
        let config = SessionConfig::new(rules.clone()).start(Counter::default());
        scene.clients.push(Player {
            place: Place::new(peer, line, FRAME, scene.now),
            session: Session::new(config).expect("no NaN"),
            frames: 0,
        });
    }
    let mut world = Small { scene, served: 0 };
    world.run(SECOND);
    assert!((0..2).all(|player| world.authority(player) > Tick(30)));
    world
}

#[test]
fn a_stalled_client_draws_no_frame_and_handles_its_packets_later() {
    let mut world = two();
    let (stood, frames) = (world.authority(0), world.clients[0].frames);
    world.clients[0].place.frozen_until = world.now + SECOND;
    world.run(SECOND - FRAME);
    assert_eq!(
        (world.authority(0), world.clients[0].frames),
        (stood, frames)
    );
    assert!(world.authority(1) > Tick(80), "the other client plays on");
    world.run(SECOND / 2);
    let (here, there) = (world.authority(0), world.authority(1));
    assert!(here + 8 > there, "it caught up: {here}, {there}");
    let drawn = world.clients[0].frames - frames;
    assert!(
        (50..=52).contains(&drawn),
        "missed frames are not made up for: {drawn}"
    );
}

#[test]
fn a_stalled_server_serves_its_clients_when_it_resumes() {
    let mut world = two();
    let (tick, served) = (world.match_.world().tick(), world.served);
    world.stalled_until = world.now + SECOND;
    world.run(SECOND - FRAME);
    assert_eq!((world.match_.world().tick(), world.served), (tick, served));
    world.run(SECOND);
    assert!(world.match_.world().tick() > tick + 50);
    let total = world.match_.world().sim().total;
    assert!(total > 60, "their inputs count: {total}");
    assert!((0..2).all(|player| world.authority(player) + 8 > world.match_.world().tick()));
}

#[test]
fn time_advances_in_small_steps_from_one_deadline_to_the_next() {
    let mut world = two();
    let mut last = world.now;
    let mut moments = 0;
    let end = world.now + SECOND;
    let Ok(()) = world.pass(SECOND, |world| {
        let passed = world.now - last;
        let is_last = world.now == end;
        assert!(passed <= Duration::from_millis(5), "{passed:?}");
        assert!(is_last || passed >= Duration::from_micros(50), "{passed:?}");
        (last, moments) = (world.now, moments + 1);
    });
    assert_eq!(last, end);
    // 60 ticks, 2 x 100 frames and their packets: no packet waits for a frame of another client.
    assert!((300..=1_500).contains(&moments), "{moments}");
}

#[test]
fn packets_of_a_place_are_recorded_on_request() {
    let mut world = two();
    world.clients[1].place.recorded = Some(Recorded::default());
    world.run(SECOND);
    let kept = world.clients[1].place.recorded.take().expect("it was set");
    assert!(kept.down.len() > 25, "{}", kept.down.len());
    assert!(world.clients[0].place.recorded.is_none());
}

#[test]
fn a_cue_starts_once_and_is_settled_once() {
    let started = |id| CueEvent {
        id: CueId(id),
        kind: CueKind::Started {
            tick: Tick(1),
            key: Key::new(1, 1),
            cue: (),
        },
    };
    let cancelled = |id| CueEvent {
        id: CueId(id),
        kind: CueKind::<()>::Cancelled,
    };
    let line = SimLink::new(LinkProfile::PERFECT, 1);
    let mut place = Place::new(SessionId(1), line, FRAME, Duration::ZERO);
    assert!(!place.book_cue(&cancelled(1)), "settled without a start");
    assert!(place.book_cue(&started(1)));
    assert!(!place.book_cue(&started(1)), "started twice");
    assert!(place.book_cue(&cancelled(1)));
    assert!(!place.book_cue(&cancelled(1)), "settled twice");
    assert!(place.book_cue(&started(2)));
    place.forget_cues();
    assert!(place.book_cue(&started(2)), "its process began anew");
}
