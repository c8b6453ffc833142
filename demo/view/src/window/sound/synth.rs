//! How each sound is made: oscillators, noise, and how loud they are over time.
//!
//! Own code: libraries for this (`fundsp`) build graphs of sound that change while they play. Here each sound is made
//! once, as a short list of numbers.
//!
//! Invariant: no sample is beyond ±1, and each sound begins and ends in silence, or it would click.

use core::f32::consts::TAU;

use twinstep_core::Mwc;

use crate::scene::Sound;

/// Samples per second.
pub(crate) const RATE: u32 = 44_100;

/// A sound in the making.
struct Tape {
    samples: Vec<f32>,
    luck: Mwc,
}

/// What swings.
#[derive(Clone, Copy)]
enum Waveform {
    Sine,
    Triangle,
    Square,
    Saw,
}

impl Waveform {
    fn at(self, phase: f32) -> f32 {
        let phase = phase - libm::floorf(phase);
        match self {
            Waveform::Sine => libm::sinf(phase * TAU),
            Waveform::Triangle => 1.0 - 4.0 * (phase - 0.5).abs(),
            Waveform::Square => {
                if phase < 0.5 {
                    0.7
                } else {
                    -0.7
                }
            }
            Waveform::Saw => 2.0 * phase - 1.0,
        }
    }
}

impl Tape {
    fn new(ms: u32, sound: Sound) -> Tape {
        Tape {
            samples: vec![0.0; (RATE * ms / 1_000) as usize],
            luck: Mwc::seed(sound as u64 + 1),
        }
    }

    /// A tone from `from_ms` for `ms`, that glides from one pitch to another and dies away.
    fn tone(
        mut self,
        wave: Waveform,
        from_ms: u32,
        ms: u32,
        hertz: (f32, f32),
        volume: f32,
    ) -> Tape {
        let first = (RATE * from_ms / 1_000) as usize;
        let count = (RATE * ms / 1_000) as usize;
        let mut phase = 0.0;
        for (n, sample) in self.samples.iter_mut().skip(first).take(count).enumerate() {
            let part = n as f32 / count as f32;
            *sample += wave.at(phase) * volume * decay(part);
            // Pitches glide evenly to the ear.
            phase += hertz.0 * libm::powf(hertz.1 / hertz.0, part) / RATE as f32;
        }
        self
    }

    /// Noise, darker the smaller `bright` is (0 ..= 1), from one to another.
    fn noise(mut self, from_ms: u32, ms: u32, bright: (f32, f32), volume: f32) -> Tape {
        let first = (RATE * from_ms / 1_000) as usize;
        let count = (RATE * ms / 1_000) as usize;
        let mut smooth = 0.0;
        for (n, sample) in self.samples.iter_mut().skip(first).take(count).enumerate() {
            let part = n as f32 / count as f32;
            let white = self.luck.below(65_536) as f32 / 32_768.0 - 1.0;
            let bright = bright.0 + (bright.1 - bright.0) * part;
            smooth += (white - smooth) * bright;
            // Dark noise is quiet: make up for it.
            *sample += smooth * volume * decay(part) / libm::sqrtf(bright.max(0.02));
        }
        self
    }

    /// Soft at both ends, and nowhere too loud.
    fn done(mut self) -> Vec<f32> {
        let ramp = (RATE / 500) as usize;
        let count = self.samples.len();
        for n in 0..ramp.min(count) {
            let part = n as f32 / ramp as f32;
            self.samples[n] *= part;
            self.samples[count - 1 - n] *= part;
        }
        for sample in &mut self.samples {
            *sample = libm::tanhf(*sample);
        }
        self.samples
    }
}

/// Full at the beginning, nothing at the end.
fn decay(part: f32) -> f32 {
    let left = 1.0 - part;
    left * left
}

/// Makes a sound.
pub(super) fn make(sound: Sound) -> Vec<f32> {
    use Waveform::{Saw, Sine, Square, Triangle};
    let tape = |ms| Tape::new(ms, sound);
    let tape = match sound {
        Sound::Blaster => {
            tape(90)
                .tone(Square, 0, 80, (1_150.0, 420.0), 0.28)
                .noise(0, 25, (0.9, 0.5), 0.12)
        }
        Sound::Scatter => {
            tape(180)
                .noise(0, 170, (0.7, 0.12), 0.55)
                .tone(Saw, 0, 90, (260.0, 90.0), 0.25)
        }
        Sound::Lance => tape(380)
            .tone(Saw, 0, 360, (1_900.0, 190.0), 0.26)
            .tone(Sine, 0, 320, (960.0, 95.0), 0.4)
            .noise(0, 60, (1.0, 0.4), 0.2),
        Sound::Thumper => {
            tape(220)
                .tone(Sine, 0, 200, (190.0, 55.0), 0.8)
                .noise(0, 50, (0.35, 0.1), 0.25)
        }
        Sound::Hit => {
            tape(60)
                .noise(0, 45, (0.8, 0.4), 0.28)
                .tone(Triangle, 0, 40, (700.0, 380.0), 0.22)
        }
        Sound::Crit => tape(240)
            .tone(Square, 0, 110, (1_320.0, 1_320.0), 0.20)
            .tone(Square, 60, 170, (1_980.0, 1_980.0), 0.20)
            .noise(0, 60, (1.0, 0.5), 0.25),
        Sound::Pop => {
            tape(210)
                .noise(0, 190, (0.55, 0.08), 0.45)
                .tone(Triangle, 0, 160, (420.0, 90.0), 0.4)
        }
        Sound::Hurt => {
            tape(240)
                .tone(Saw, 0, 220, (330.0, 110.0), 0.4)
                .noise(0, 90, (0.5, 0.2), 0.3)
        }
        Sound::Shield => tape(330)
            .tone(Sine, 0, 310, (1_480.0, 620.0), 0.3)
            .tone(Triangle, 0, 260, (2_220.0, 930.0), 0.2)
            .noise(0, 120, (1.0, 0.7), 0.12),
        Sound::Death => {
            tape(750)
                .tone(Saw, 0, 720, (520.0, 45.0), 0.4)
                .noise(0, 600, (0.4, 0.03), 0.45)
        }
        Sound::Dash => tape(190).noise(0, 180, (0.15, 0.8), 0.30),
        Sound::Pickup => tape(280).tone(Triangle, 0, 120, (660.0, 660.0), 0.4).tone(
            Triangle,
            80,
            190,
            (990.0, 990.0),
            0.4,
        ),
        Sound::Ready => tape(200).tone(Sine, 0, 190, (880.0, 880.0), 0.35).tone(
            Sine,
            0,
            150,
            (1_320.0, 1_320.0),
            0.15,
        ),
        Sound::Fuse => tape(420).noise(0, 410, (1.0, 0.75), 0.16),
        Sound::Blast => tape(1_000)
            .noise(0, 960, (0.30, 0.015), 0.85)
            .tone(Sine, 0, 600, (110.0, 32.0), 0.9)
            .noise(0, 70, (1.0, 0.4), 0.35),
        Sound::Crack => tape(210)
            .noise(0, 60, (0.9, 0.3), 0.5)
            .noise(50, 140, (0.5, 0.1), 0.4)
            .tone(Triangle, 0, 80, (240.0, 120.0), 0.3),
        Sound::Wave => chord(tape(900), &[(0, 392.0), (150, 523.3), (300, 784.0)], 560),
        Sound::Cleared => chord(tape(1_000), &[(0, 523.3), (120, 659.3), (240, 784.0)], 700),
        Sound::Boss => tape(1_400)
            .tone(Saw, 0, 1_350, (73.4, 69.3), 0.4)
            .tone(Saw, 0, 1_350, (110.0, 103.8), 0.3)
            .tone(Square, 0, 700, (220.0, 207.7), 0.15)
            .noise(0, 900, (0.05, 0.02), 0.3),
        Sound::Won => chord(
            tape(2_000),
            &[
                (0, 523.3),
                (180, 659.3),
                (360, 784.0),
                (540, 1_046.5),
                (900, 784.0),
                (1_080, 1_046.5),
            ],
            900,
        ),
        Sound::Lost => chord(
            tape(1_800),
            &[(0, 392.0), (280, 370.0), (560, 349.2), (840, 261.6)],
            900,
        ),
        Sound::Click => tape(40).tone(Triangle, 0, 36, (1_200.0, 900.0), 0.25),
    };
    tape.done()
}

/// Notes, one after the other, each ringing on.
fn chord(tape: Tape, notes: &[(u32, f32)], ms: u32) -> Tape {
    notes.iter().fold(tape, |tape, (from_ms, hertz)| {
        tape.tone(Waveform::Triangle, *from_ms, ms, (*hertz, *hertz), 0.30)
            .tone(
                Waveform::Sine,
                *from_ms,
                ms,
                (hertz * 2.0, hertz * 2.0),
                0.10,
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sound_is_heard_does_not_clip_and_neither_begins_nor_ends_with_a_click() {
        for sound in Sound::ALL {
            let samples = make(sound);
            let loudest = samples
                .iter()
                .fold(0.0, |loudest: f32, sample| loudest.max(sample.abs()));
            assert!((0.08..1.0).contains(&loudest), "{sound:?}: {loudest}");
            assert!(
                samples[0] == 0.0 && samples[samples.len() - 1].abs() < 1e-3,
                "{sound:?}"
            );
            let seconds = samples.len() as f32 / RATE as f32;
            assert!((0.03..2.5).contains(&seconds), "{sound:?}: {seconds} s");
        }
    }

    #[test]
    fn no_two_sounds_are_alike_and_each_is_the_same_every_time() {
        let all: Vec<Vec<f32>> = Sound::ALL.into_iter().map(make).collect();
        for (n, samples) in all.iter().enumerate() {
            assert!(all[..n].iter().all(|other| other != samples));
            assert_eq!(*samples, make(Sound::ALL[n]));
        }
    }

    #[test]
    fn a_weapon_is_told_by_its_sound_alone() {
        let brightness = |sound| {
            let samples = make(sound);
            let crossings = samples
                .windows(2)
                .filter(|pair| pair[0] * pair[1] < 0.0)
                .count();
            crossings as f32 / samples.len() as f32
        };
        assert!(brightness(Sound::Blaster) > 3.0 * brightness(Sound::Thumper));
        assert!(make(Sound::Lance).len() > 3 * make(Sound::Blaster).len());
    }
}
