//! [`Mixer`]: mixes the playing sounds into blocks of stereo.
//!
//! Own code: `kira` and `rodio` also mix, but their output to a device needs ALSA's headers to build. Without that part
//! they would still need our output, and would replace only a hundred lines.

use std::sync::mpsc::Receiver;

use twinstep_client::CueId;

use super::{SoundOrder, synth};
use crate::scene::Sound;

/// The maximum number of simultaneous sounds; the oldest is replaced (law *Bounded*).
const VOICES_MAX: usize = 24;
const HUSH_SAMPLES: f32 = 900.0;
const HEADROOM: f32 = 0.5;

struct Voice {
    cue: Option<CueId>,
    sound: Sound,
    next: usize,
    left: f32,
    right: f32,
    /// Falls to 0 after a hush.
    gain: f32,
    is_hushed: bool,
}

pub(super) struct Mixer {
    orders: Receiver<SoundOrder>,
    bank: Vec<Vec<f32>>,
    voices: Vec<Voice>,
    volume: f32,
}

impl Mixer {
    pub(super) fn new(orders: Receiver<SoundOrder>) -> Mixer {
        Mixer {
            orders,
            bank: Sound::ALL.iter().map(|sound| synth::make(*sound)).collect(),
            voices: Vec::with_capacity(VOICES_MAX),
            volume: 1.0,
        }
    }

    pub(super) fn apply_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.apply(order);
        }
    }

    fn apply(&mut self, order: SoundOrder) {
        match order {
            SoundOrder::Play {
                cue,
                sound,
                volume,
                pan,
            } => {
                if self.voices.len() == VOICES_MAX {
                    self.voices.remove(0);
                }
                // Never wholly on one side.
                let pan = pan.clamp(-1.0, 1.0) * 0.7;
                self.voices.push(Voice {
                    cue,
                    sound,
                    next: 0,
                    left: volume * (1.0 - pan.max(0.0)),
                    right: volume * (1.0 + pan.min(0.0)),
                    gain: 1.0,
                    is_hushed: false,
                });
            }
            SoundOrder::Hush(cue) => {
                for voice in self
                    .voices
                    .iter_mut()
                    .filter(|voice| voice.cue == Some(cue))
                {
                    voice.is_hushed = true;
                }
            }
            SoundOrder::Volume(volume) => self.volume = volume.clamp(0.0, 1.0),
        }
    }

    /// Fills a block: left, right, left, right.
    pub(super) fn mix(&mut self, block: &mut [i16]) {
        for pair in block.chunks_exact_mut(2) {
            let (mut left, mut right) = (0.0, 0.0);
            for voice in &mut self.voices {
                let samples = &self.bank[voice.sound as usize];
                let Some(sample) = samples.get(voice.next) else {
                    continue;
                };
                voice.next += 1;
                if voice.is_hushed {
                    voice.gain = (voice.gain - 1.0 / HUSH_SAMPLES).max(0.0);
                }
                left += sample * voice.left * voice.gain;
                right += sample * voice.right * voice.gain;
            }
            let level = self.volume * HEADROOM;
            // Saturates softly instead of clipping when many play at once.
            pair[0] = (libm::tanhf(left * level) * 32_000.0) as i16;
            pair[1] = (libm::tanhf(right * level) * 32_000.0) as i16;
        }
        let bank = &self.bank;
        self.voices
            .retain(|voice| voice.gain > 0.0 && voice.next < bank[voice.sound as usize].len());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    fn mixer() -> (Sender<SoundOrder>, Mixer) {
        let (orders, inbox) = channel();
        (orders, Mixer::new(inbox))
    }

    fn play(cue: u64, sound: Sound, pan: f32) -> SoundOrder {
        SoundOrder::Play {
            cue: Some(CueId(cue)),
            sound,
            volume: 1.0,
            pan,
        }
    }

    fn loudest(block: &[i16]) -> i16 {
        block.iter().map(|sample| sample.abs()).max().unwrap()
    }

    #[test]
    fn a_sound_plays_from_its_side_until_it_ends() {
        let (orders, mut mixer) = mixer();
        orders.send(play(1, Sound::Blaster, -1.0)).unwrap();
        mixer.apply_orders();
        let mut block = vec![0; 4_000];
        mixer.mix(&mut block);
        let side = |first: usize| -> i64 {
            block
                .iter()
                .skip(first)
                .step_by(2)
                .map(|sample| i64::from(sample.abs()))
                .sum()
        };
        assert!(side(0) > 2 * side(1), "{} {}", side(0), side(1));
        (0..10).for_each(|_| mixer.mix(&mut block));
        assert_eq!(loudest(&block), 0);
    }

    #[test]
    fn many_sounds_stay_bounded_and_do_not_clip_and_follow_the_volume() {
        let (orders, mut mixer) = mixer();
        (0..100).for_each(|cue| orders.send(play(cue, Sound::Blast, 0.0)).unwrap());
        mixer.apply_orders();
        assert_eq!(mixer.voices.len(), VOICES_MAX);
        let mut block = vec![0; 8_000];
        mixer.mix(&mut block);
        assert!(loudest(&block) > 10_000 && loudest(&block) <= 32_000);
        orders.send(SoundOrder::Volume(0.0)).unwrap();
        mixer.apply_orders();
        mixer.mix(&mut block);
        assert_eq!(loudest(&block), 0);
    }

    #[test]
    fn a_cancelled_cue_falls_silent_within_some_milliseconds() {
        let (orders, mut mixer) = mixer();
        orders.send(play(1, Sound::Blast, 0.0)).unwrap();
        mixer.apply_orders();
        let mut block = vec![0; 4_000];
        mixer.mix(&mut block);
        orders.send(SoundOrder::Hush(CueId(1))).unwrap();
        mixer.apply_orders();
        mixer.mix(&mut block);
        mixer.mix(&mut block);
        assert_eq!(loudest(&block), 0);
    }
}
