//! Output on Linux: the socket of PulseAudio, which PipeWire also offers. The crate `pulseaudio` speaks its protocol.
//! The usual crate for sound, `cpal`, needs ALSA's headers to build.

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, PlaybackStreamParams, SampleFormat, SampleSpec, stream::BufferAttr,
};
use pulseaudio::{AsPlaybackSource, Client, ClientError, PlaybackStream};

use super::mixer::Mixer;
use super::synth::RATE;

/// The maximum number of bytes that the sound server may buffer: 46 ms, because a shot must sound immediately.
const LATENCY_BYTES: u32 = 8_192;

pub(super) struct SoundOutput {
    _stream: PlaybackStream,
}

/// Opens a stream; the sound server asks for samples when it needs them.
pub(super) fn open(mut mixer: Mixer) -> Result<SoundOutput, ClientError> {
    let client = Client::from_env(c"Powderkeg")?;
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
        mixer.apply_orders();
        block.resize(bytes.len() / 4 * 2, 0);
        mixer.mix(&mut block);
        for (pair, sample) in bytes.chunks_exact_mut(2).zip(&block) {
            pair.copy_from_slice(&sample.to_le_bytes());
        }
        block.len() * 2
    };
    let stream = client.create_playback_stream(params, source.as_playback_source());
    // The client's own thread responds, so a minimal runtime is enough to wait for it.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let stream = runtime.block_on(stream)?;
    Ok(SoundOutput { _stream: stream })
}
