//! Sound: computed at start-up, mixed in its own thread, and played by any available output.
//!
//! ```text
//!   cue ──▶ HeardCue ──▶ Speaker::play ──channel──▶ Mixer (thread) ──blocks of stereo──▶ output
//!                            │                       Linux: PulseAudio's or PipeWire's socket
//!                            └──▶ system: Windows and macOS, whose own mixers are linked with every program
//! ```
//!
//! On Linux no system library is needed, at build time or at run time: the program speaks the sound server's protocol.
//! Without a device there is no sound, which is reported once.

#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod mixer;
#[cfg(target_os = "linux")]
mod output;
mod synth;
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod system;

#[cfg(target_os = "linux")]
use std::sync::mpsc::{Sender, channel};

use twinstep_client::CueId;

use crate::scene::Sound;

/// The receiver of all sounds; silent if there is no output.
pub(crate) struct Speaker(SpeakerKind);

enum SpeakerKind {
    Silent,
    #[cfg(target_os = "linux")]
    Mixer {
        orders: Sender<SoundOrder>,
        _output: output::SoundOutput,
    },
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "for other systems"))]
    System(system::System),
}

impl Speaker {
    pub(crate) fn silent() -> Speaker {
        Speaker(SpeakerKind::Silent)
    }

    #[cfg(target_os = "linux")]
    pub(crate) async fn open() -> Result<Speaker, NoSound> {
        let (orders, inbox) = channel();
        let output =
            output::open(mixer::Mixer::new(inbox)).map_err(|error| NoSound(error.to_string()))?;
        Ok(Speaker(SpeakerKind::Mixer {
            orders,
            _output: output,
        }))
    }

    /// Opens the system's mixer. Needs the window.
    ///
    /// # Errors
    /// If there is no audio output.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn open() -> Result<Speaker, NoSound> {
        let system = system::System::open().await?;
        Ok(Speaker(SpeakerKind::System(system)))
    }

    pub(crate) fn play(&mut self, cue: Option<CueId>, sound: Sound, volume: f32, pan: f32) {
        self.send(SoundOrder::Play {
            cue,
            sound,
            volume,
            pan,
        });
    }

    pub(crate) fn hush(&mut self, cue: CueId) {
        self.send(SoundOrder::Hush(cue));
    }

    pub(crate) fn set_volume(&mut self, volume: f32) {
        self.send(SoundOrder::Volume(volume));
    }

    fn send(&mut self, order: SoundOrder) {
        match &mut self.0 {
            SpeakerKind::Silent => {}
            // If the device has been removed, the sound is dropped.
            #[cfg(target_os = "linux")]
            SpeakerKind::Mixer { orders, .. } => drop(orders.send(order)),
            SpeakerKind::System(system) => system.apply(order),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SoundOrder {
    Play {
        cue: Option<CueId>,
        sound: Sound,
        /// From 0 to 1.
        volume: f32,
        /// From −1 (left) to 1 (right).
        pan: f32,
    },
    Hush(CueId),
    Volume(f32),
}

/// The reason why there is no sound.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(
    target_os = "linux",
    error("no sound: PulseAudio or PipeWire does not respond ({0}); start it, or use --mute")
)]
#[cfg_attr(
    not(target_os = "linux"),
    error("no sound: the system refuses it: {0}; use --mute")
)]
pub(crate) struct NoSound(String);
