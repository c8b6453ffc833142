//! Sound: made of numbers at start-up, mixed in a thread of its own, and played by whatever is there.
//!
//! ```text
//!   cue ──▶ Heard ──▶ Speaker::play ──channel──▶ Mixer (thread) ──blocks of stereo──▶ output
//!                            │                       Linux: PulseAudio's or PipeWire's socket, else `aplay`
//!                            └──▶ system: Windows and macOS, whose own mixers are linked with every program
//! ```
//!
//! On Linux no system library is needed, at build time or later: the socket is spoken to in its own protocol. Without
//! a device nothing is heard, and it is said once.

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod mixer;
#[cfg(target_os = "linux")]
mod output;
mod synth;
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod system;

#[cfg(target_os = "linux")]
use std::sync::mpsc::{Sender, channel};

use twinstep_client::cues::CueId;

use crate::game::Weapon;

/// Samples per second.
pub(crate) const RATE: u32 = 44_100;

/// What can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    Blaster,
    Scatter,
    Lance,
    Thumper,
    Hit,
    Crit,
    Pop,
    Hurt,
    Shield,
    Death,
    Dash,
    Pickup,
    Ready,
    Fuse,
    Blast,
    Crack,
    Wave,
    Cleared,
    Boss,
    Won,
    Lost,
    Click,
}

impl Sound {
    pub(crate) const ALL: [Sound; 22] = {
        use Sound::*;
        [
            Blaster, Scatter, Lance, Thumper, Hit, Crit, Pop, Hurt, Shield, Death, Dash, Pickup,
            Ready, Fuse, Blast, Crack, Wave, Cleared, Boss, Won, Lost, Click,
        ]
    };

    /// The sound of a weapon.
    pub(crate) const fn of_weapon(weapon: Weapon) -> Sound {
        match weapon {
            Weapon::Blaster => Sound::Blaster,
            Weapon::Scatter => Sound::Scatter,
            Weapon::Lance => Sound::Lance,
            Weapon::Thumper => Sound::Thumper,
        }
    }

    /// Whether it comes from everywhere, since it concerns everybody.
    pub(crate) const fn is_everywhere(self) -> bool {
        use Sound::*;
        matches!(self, Wave | Cleared | Boss | Won | Lost | Click | Ready)
    }
}

/// What the mixer is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Play {
        cue: Option<CueId>,
        sound: Sound,
        /// 0 ..= 1.
        volume: f32,
        /// −1: left, 1: right.
        pan: f32,
    },
    Hush(CueId),
    Volume(f32),
}

/// Nothing can be heard, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NoSound {
    /// Neither a sound server nor a player of samples.
    #[cfg(target_os = "linux")]
    #[error(
        "no sound: no PulseAudio or PipeWire answers ({server}), and `aplay` cannot be run ({player}); start one, \
         or install the package alsa-utils, or say --mute"
    )]
    NoOutput {
        /// What became of the server's socket.
        server: String,
        /// What became of the player.
        player: std::io::Error,
    },
    /// The player of samples has ended: most often there is no device.
    #[cfg(target_os = "linux")]
    #[error(
        "no sound: no PulseAudio or PipeWire answers ({server}), and `aplay` has ended ({status}), as it does without a \
         device; start one, or say --mute"
    )]
    PlayerEnded {
        /// What became of the server's socket.
        server: String,
        /// How the player ended.
        status: std::process::ExitStatus,
    },
    /// The system's mixer refused a sound.
    #[error("no sound: the system refuses it: {0}")]
    System(String),
}

/// Where sounds are sent to; silent if it has to be.
pub(crate) struct Speaker(Voice);

enum Voice {
    Silent,
    #[cfg(target_os = "linux")]
    Mixer {
        orders: Sender<Order>,
        /// Plays while it is held.
        _output: output::Output,
    },
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "for other systems"))]
    System(system::System),
}

impl Speaker {
    /// One that says nothing.
    pub(crate) fn silent() -> Speaker {
        Speaker(Voice::Silent)
    }

    /// Opens the first output that there is. Needs the window.
    ///
    /// # Errors
    /// There is none.
    #[cfg(target_os = "linux")]
    pub(crate) async fn open() -> Result<Speaker, NoSound> {
        let (orders, inbox) = channel();
        let output = output::Output::open(mixer::Mixer::new(inbox))?;
        Ok(Speaker(Voice::Mixer {
            orders,
            _output: output,
        }))
    }

    /// Opens the first output that there is. Needs the window.
    ///
    /// # Errors
    /// There is none.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn open() -> Result<Speaker, NoSound> {
        let system = system::System::open().await?;
        Ok(Speaker(Voice::System(system)))
    }

    pub(crate) fn play(&mut self, cue: Option<CueId>, sound: Sound, volume: f32, pan: f32) {
        self.tell(Order::Play {
            cue,
            sound,
            volume,
            pan,
        });
    }

    /// What a cue started ends.
    pub(crate) fn hush(&mut self, cue: CueId) {
        self.tell(Order::Hush(cue));
    }

    /// How loud everything is, 0 ..= 1.
    pub(crate) fn set_volume(&mut self, volume: f32) {
        self.tell(Order::Volume(volume));
    }

    fn tell(&mut self, order: Order) {
        match &mut self.0 {
            Voice::Silent => {}
            // A device that was taken away plays nothing.
            #[cfg(target_os = "linux")]
            Voice::Mixer { orders, .. } => drop(orders.send(order)),
            Voice::System(system) => system.obey(order),
        }
    }
}
