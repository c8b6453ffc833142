//! Computes each sound from its layers: oscillators, noise, and their loudness over time.
//!
//! Own code: libraries for this (`fundsp`) build graphs of sound that change while they play. Here each sound is
//! computed once, as a short list of numbers.
//!
//! Invariant: no sample is beyond ±1, and each sound starts and ends in silence; otherwise it would click.

use core::f32::consts::TAU;

use twinstep_core::Mwc;

use crate::scene::{Layer, Sound, Waveform};

pub(crate) const RATE: u32 = 44_100;

const fn samples(ms: u32) -> usize {
    (RATE * ms / 1_000) as usize
}

fn swing(wave: Waveform, phase: f32) -> f32 {
    let phase = phase - libm::floorf(phase);
    match wave {
        Waveform::Sine => libm::sinf(phase * TAU),
        Waveform::Triangle => 1.0 - 4.0 * (phase - 0.5).abs(),
        Waveform::Square if phase < 0.5 => 0.7,
        Waveform::Square => -0.7,
        Waveform::Saw => 2.0 * phase - 1.0,
    }
}

pub(super) fn make(sound: Sound) -> Vec<f32> {
    let (ms, layers) = sound.layers();
    let mut tape = vec![0.0; samples(ms)];
    let mut luck = Mwc::seed(sound as u64 + 1);
    for layer in layers {
        let (Layer::Tone(_, at, long, ends, volume) | Layer::Noise(at, long, ends, volume)) = layer;
        let count = samples(long);
        let (mut phase, mut smooth) = (0.0, 0.0);
        for (n, sample) in tape.iter_mut().skip(samples(at)).take(count).enumerate() {
            let part = n as f32 / count as f32;
            // Full at the start, silent at the end.
            let volume = volume * (1.0 - part) * (1.0 - part);
            *sample += volume
                * match layer {
                    Layer::Tone(wave, ..) => {
                        let swung = swing(wave, phase);
                        // Pitch changes by equal ratios, which sound like equal steps.
                        phase += ends[0] * libm::powf(ends[1] / ends[0], part) / RATE as f32;
                        swung
                    }
                    Layer::Noise(..) => {
                        let white = luck.below(65_536) as f32 / 32_768.0 - 1.0;
                        let bright = ends[0] + (ends[1] - ends[0]) * part;
                        smooth += (white - smooth) * bright;
                        // Dark noise is quiet, so it is amplified.
                        smooth / libm::sqrtf(bright.max(0.02))
                    }
                };
        }
    }
    // Soft at both ends, and never too loud.
    let (ramp, count) = (samples(2), tape.len());
    for n in 0..ramp {
        let part = n as f32 / ramp as f32;
        tape[n] *= part;
        tape[count - 1 - n] *= part;
    }
    tape.iter().map(|sample| libm::tanhf(*sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_differ_and_neither_clip_nor_click() {
        let all: Vec<Vec<f32>> = Sound::ALL.iter().map(|sound| make(*sound)).collect();
        for (n, samples) in all.iter().enumerate() {
            let sound = Sound::ALL[n];
            let loudest = |loudest: f32, sample: &f32| loudest.max(sample.abs());
            let loudest = samples.iter().fold(0.0, loudest);
            assert!((0.08..1.0).contains(&loudest), "{sound:?}: {loudest}");
            let last = samples[samples.len() - 1];
            assert!(samples[0] == 0.0 && last.abs() < 1e-3, "{sound:?}");
            assert!(all[..n].iter().all(|other| other != samples));
            assert_eq!(*samples, make(sound), "the same every time");
        }
    }
}
