//! [`SoundOutput`]: where blocks of sound go on Linux. First the sound server's socket (PulseAudio; PipeWire offers the
//! same), else a player that reads samples from its input.
//!
//! ```text
//!   order ──▶ Mixer ──block, 6 ms──▶ pipe, 23 ms ──▶ aplay's buffer, 40 ms ──▶ heard      (at most, together 69 ms)
//! ```
//!
//! The socket is spoken to by the crate `pulseaudio`. The usual crate for sound, `cpal`, needs ALSA's headers to build.
//!
//! A player takes samples as fast as they are heard. So new sounds wait for all that lies in the pipe, and a pipe of
//! the usual size holds 372 ms.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, PlaybackStreamParams, SampleFormat, SampleSpec, stream::BufferAttr,
};
use pulseaudio::{AsPlaybackSource, Client, ClientError, PlaybackStream};

use super::NoSound;
use super::mixer::Mixer;
use super::synth::RATE;

/// Samples of both sides that are mixed at once for a player: 6 ms.
const BLOCK: usize = 512;
/// Bytes that may wait for a player: 23 ms. A page, the least that a pipe can hold.
const PIPE_BYTES: usize = 4_096;
/// Bytes that the server may hold: 46 ms. A shot must not be heard late.
const LATENCY_BYTES: u32 = 8_192;

/// Plays while it is held.
pub(super) enum SoundOutput {
    #[expect(dead_code, reason = "plays while it is held")]
    Server(PlaybackStream),
    /// A thread feeds the player until the speaker is gone.
    Player,
}

impl SoundOutput {
    /// Opens what there is.
    pub(super) fn open(mixer: Mixer) -> Result<SoundOutput, NoSound> {
        let server = match Client::from_env(c"Powderkeg") {
            Ok(client) => {
                return serve(&client, mixer).map_err(|error| NoSound::System(error.to_string()));
            }
            Err(error) => error.to_string(),
        };
        let rate = RATE.to_string();
        let player = Command::new("aplay")
            .args(["-q", "-t", "raw", "-f", "S16_LE", "-c", "2", "-r", &rate])
            // In µs: four periods, so that one may be late.
            .args(["--buffer-time=40000", "--period-time=10000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut player = match player {
            Ok(player) => player,
            Err(player) => return Err(NoSound::NoOutput { server, player }),
        };
        let thread = thread::Builder::new().name("sound".to_owned());
        let pumped = thread.spawn(move || {
            let Some(mut input) = player.stdin.take() else {
                return;
            };
            narrow(&input);
            let fed = pump(mixer, &mut input);
            drop(input);
            if let (Ok(status), Err(_)) = (player.wait(), fed) {
                crate::say::err(NoSound::PlayerEnded { server, status });
            }
        });
        pumped.map_err(|error| NoSound::System(error.to_string()))?;
        Ok(SoundOutput::Player)
    }
}

/// Lets little wait in a pipe. Where that is refused, sounds come later.
fn narrow(pipe: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

/// Feeds a player, which takes samples as fast as they are heard, until the speaker is gone.
///
/// # Errors
/// The player takes no more.
fn pump(mut mixer: Mixer, input: &mut impl Write) -> std::io::Result<()> {
    let mut block = [0; BLOCK];
    let mut bytes = Vec::with_capacity(BLOCK * 2);
    while mixer.listen() {
        mixer.mix(&mut block);
        bytes.clear();
        bytes.extend(block.iter().flat_map(|sample| sample.to_le_bytes()));
        input.write_all(&bytes)?;
    }
    Ok(())
}

/// Lets the server ask for samples whenever it needs some.
fn serve(client: &Client, mut mixer: Mixer) -> Result<SoundOutput, ClientError> {
    let params = PlaybackStreamParams {
        sample_spec: SampleSpec {
            format: SampleFormat::S16Le,
            channels: 2,
            sample_rate: RATE,
        },
        channel_map: ChannelMap::stereo(),
        cvolume: Some(ChannelVolume::norm(2)),
        buffer_attr: BufferAttr {
            target_length: LATENCY_BYTES,
            ..BufferAttr::default()
        },
        ..PlaybackStreamParams::default()
    };
    let mut block = Vec::new();
    let source = move |bytes: &mut [u8]| {
        mixer.listen();
        block.resize(bytes.len() / 4 * 2, 0);
        mixer.mix(&mut block);
        for (pair, sample) in bytes.chunks_exact_mut(2).zip(&block) {
            pair.copy_from_slice(&sample.to_le_bytes());
        }
        block.len() * 2
    };
    let stream = client.create_playback_stream(params, source.as_playback_source());
    // Answered by the client's own thread: nothing else is needed to wait for it.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    Ok(SoundOutput::Server(runtime.block_on(stream)?))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::scene::Sound;
    use crate::window::sound::SoundOrder;

    const BLAST: SoundOrder = SoundOrder::Play {
        cue: None,
        sound: Sound::Blaster,
        volume: 1.0,
        pan: 0.0,
    };

    #[test]
    fn a_player_is_fed_until_the_speaker_is_gone() {
        let (orders, inbox) = channel();
        orders.send(BLAST).unwrap();
        struct Ear(Vec<u8>, Option<std::sync::mpsc::Sender<SoundOrder>>);
        impl Write for Ear {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.extend(bytes);
                if self.0.len() > BLOCK * 8 {
                    self.1 = None;
                }
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut ear = Ear(Vec::new(), Some(orders));
        pump(Mixer::new(inbox), &mut ear).unwrap();
        assert_eq!(ear.0.len() % (BLOCK * 2), 0);
        assert!(ear.0.iter().any(|byte| *byte != 0));
    }

    /// A sound that is ordered while a player plays silence is heard after no more than what the pipe holds.
    #[test]
    fn a_sound_does_not_queue_behind_silence() {
        let (orders, inbox) = channel();
        let (mut heard, mut fed) = std::io::pipe().unwrap();
        narrow(&fed);
        let fed = thread::Builder::new().spawn(move || pump(Mixer::new(inbox), &mut fed));
        // Until the pipe is full, and so the mixer waits; however long its thread takes to begin.
        let full = (0..4_000).any(|_| {
            thread::sleep(std::time::Duration::from_millis(5));
            rustix::io::ioctl_fionread(&heard).unwrap() >= PIPE_BYTES as u64
        });
        assert!(full, "the pipe is never full");
        orders.send(BLAST).unwrap();
        let mut bytes = [0; 1 << 16];
        heard.read_exact(&mut bytes).unwrap();
        let silent = bytes.iter().take_while(|byte| **byte == 0).count();
        let late_ms = silent as u32 * 1_000 / (RATE * 4);
        println!("the first sound comes {late_ms} ms behind its order");
        assert!(silent >= PIPE_BYTES, "the player was not kept waiting");
        assert!(late_ms <= 35, "{late_ms} ms");
        drop(heard);
        assert!(
            fed.unwrap().join().unwrap().is_err(),
            "told that nobody listens"
        );
    }

    #[test]
    fn a_player_that_has_ended_is_told_while_somebody_would_listen() {
        struct Deaf;
        impl Write for Deaf {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (_orders, inbox) = channel();
        assert!(pump(Mixer::new(inbox), &mut Deaf).is_err());
    }
}
