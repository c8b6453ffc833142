//! [`Output`]: where blocks of sound go on Linux. First the sound server's socket (PulseAudio; PipeWire offers the
//! same), else a player that reads samples from its input.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, PlaybackStreamParams, SampleFormat, SampleSpec, stream::BufferAttr,
};
use pulseaudio::{AsPlaybackSource, Client, ClientError, PlaybackStream};

use super::mixer::Mixer;
use super::{NoSound, RATE};

/// Samples of both sides that are mixed at once: 12 ms.
const BLOCK: usize = 1_024;
/// Bytes that the server may hold: 46 ms. A shot must not be heard late.
const LATENCY_BYTES: u32 = 8_192;

/// Plays while it is held.
pub(super) enum Output {
    #[expect(dead_code, reason = "plays while it is held")]
    Server(PlaybackStream),
    /// A thread feeds the player until the speaker is gone.
    Player,
}

impl Output {
    /// Opens what there is.
    pub(super) fn open(mixer: Mixer) -> Result<Output, NoSound> {
        let server = match Client::from_env(c"Powderkeg") {
            Ok(client) => {
                return serve(&client, mixer).map_err(|error| NoSound::System(error.to_string()));
            }
            Err(error) => error.to_string(),
        };
        let rate = RATE.to_string();
        let player = Command::new("aplay")
            .args([
                "-q",
                "-t",
                "raw",
                "-f",
                "S16_LE",
                "-c",
                "2",
                "-r",
                &rate,
                "--buffer-time=60000",
            ])
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
            let fed = pump(mixer, &mut input);
            drop(input);
            if let (Ok(status), Err(_)) = (player.wait(), fed) {
                eprintln!("{}", NoSound::PlayerEnded { server, status });
            }
        });
        pumped.map_err(|error| NoSound::System(error.to_string()))?;
        Ok(Output::Player)
    }
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
fn serve(client: &Client, mut mixer: Mixer) -> Result<Output, ClientError> {
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
    Ok(Output::Server(runtime.block_on(stream)?))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::window::sound::{Order, Sound};

    #[test]
    fn a_player_is_fed_until_the_speaker_is_gone() {
        let (orders, inbox) = channel();
        let order = Order::Play {
            cue: None,
            sound: Sound::Blaster,
            volume: 1.0,
            pan: 0.0,
        };
        orders.send(order).unwrap();
        struct Ear(Vec<u8>, Option<std::sync::mpsc::Sender<Order>>);
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
