//! [`NoSound`]: why nothing can be heard.

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
