//! Pucks as a library for engines: `cargo build -p twinstep-c --example pucks` builds `libpucks.so`, next to `pucks.h`.
#![allow(missing_docs, unreachable_pub, reason = "an example")]

use std::sync::Arc;
use std::time::Duration;

use rules::{Bump, Jump, Picture, Pucks};
use twinstep_c::CGame;
use twinstep_client::{Session, SessionConfig, Smoothing};
use twinstep_core::PlayerId;
use twinstep_local::Local;

pub mod rules;

twinstep_c::c_struct! {
    pub struct Pad {
        /// The sum of PUCKS_LEFT, PUCKS_RIGHT, PUCKS_DOWN and PUCKS_UP.
        pub held: u8,
    }

    pub struct Command {
        /// PUCKS_JUMP: jumps to a place on the table.
        pub kind: u32,
        /// The place in mm, to the right and upwards, each from -2000 to 2000.
        pub at_mm: [i16; 2],
    }

    pub struct Pose {
        /// In m, to the right.
        pub x: f32,
        /// In m, upwards.
        pub y: f32,
    }

    pub struct Cue {
        /// The key of the puck that bumps against the edge.
        pub bump_of: u64,
    }

    pub struct Hud {
        /// The total number of bumps, over all pucks on the table.
        pub bumps: u32,
    }
}

pub struct PucksForC;

const JUMP: u32 = 1;

impl CGame for PucksForC {
    type Sim = Pucks;
    type Show = Picture;
    type Pad = Pad;
    type Command = Command;
    type Pose = Pose;
    type Cue = Cue;
    type Hud = Hud;

    const CONSTANTS: &'static [(&'static str, i32)] = &[
        ("LEFT", rules::LEFT as i32),
        ("RIGHT", rules::RIGHT as i32),
        ("DOWN", rules::DOWN as i32),
        ("UP", rules::UP as i32),
        ("JUMP", JUMP as i32),
    ];

    fn config() -> SessionConfig<Pucks, Picture> {
        let smoothing = Smoothing::new(1.0, Duration::ZERO);
        SessionConfig::new(Arc::new(()))
            .start(Pucks::default())
            .show(Picture, smoothing)
    }

    fn alone() -> Option<Local<Pucks>> {
        Some(Local::action(Pucks::default(), ()))
    }

    fn input(pad: &Pad) -> Result<u8, String> {
        match pad.held {
            held @ 0..=15 => Ok(held),
            held => Err(format!("held is {held}, but at most 15")),
        }
    }

    fn merge(earlier: &Pad, later: &Pad) -> Pad {
        Pad {
            held: earlier.held | later.held,
        }
    }

    fn command(command: &Command) -> Result<Jump, String> {
        match (command.kind, command.at_mm) {
            (JUMP, at) if at.iter().all(|mm| (-2000..=2000).contains(mm)) => Ok(Jump(at)),
            (JUMP, at) => Err(format!("at_mm is {at:?}, outside of the table")),
            (kind, _) => Err(format!("kind {kind} is no command")),
        }
    }

    fn key(PlayerId(player): PlayerId) -> u64 {
        player.into()
    }

    fn pose([x, y]: [f32; 2]) -> Pose {
        Pose { x, y }
    }

    fn cue(Bump(player): &Bump) -> Cue {
        let bump_of = PucksForC::key(*player);
        Cue { bump_of }
    }

    fn hud(session: &Session<Pucks, Picture>) -> Option<Hud> {
        let sim = session.prediction()?.sim();
        let bumps = sim.pucks.values().map(|puck| puck.bumps).sum();
        Some(Hud { bumps })
    }
}

twinstep_c::library!(PucksForC, "pucks");
