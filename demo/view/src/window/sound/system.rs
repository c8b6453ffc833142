//! [`System`]: plays sounds with the system's own mixer, which Windows and macOS always have.

use macroquad::audio::{PlaySoundParams, Sound as Loaded, load_sound_from_bytes, play_sound};

use super::synth::{self, RATE};
use super::{NoSound, SoundOrder};
use crate::scene::Sound;

pub(super) struct System {
    bank: Vec<Loaded>,
    volume: f32,
}

impl System {
    pub(super) async fn open() -> Result<System, NoSound> {
        let mut bank = Vec::with_capacity(Sound::ALL.len());
        for sound in Sound::ALL {
            let loaded = load_sound_from_bytes(&wav(&synth::make(*sound))).await;
            bank.push(loaded.map_err(|error| NoSound(error.to_string()))?);
        }
        Ok(System { bank, volume: 1.0 })
    }

    /// Panning is not available here. A playing sound is not stopped, because it is short.
    pub(super) fn apply(&mut self, order: SoundOrder) {
        match order {
            SoundOrder::Play { sound, volume, .. } => {
                let params = PlaySoundParams {
                    looped: false,
                    volume: volume * self.volume * 0.5,
                };
                play_sound(&self.bank[sound as usize], params);
            }
            SoundOrder::Hush(_) => {}
            SoundOrder::Volume(volume) => self.volume = volume,
        }
    }
}

fn wav(samples: &[f32]) -> Vec<u8> {
    let bytes = samples.len() as u32 * 2;
    let mut file = Vec::with_capacity(44 + bytes as usize);
    file.extend(b"RIFF");
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    // PCM, one channel.
    file.extend([1, 0, 1, 0]);
    file.extend(RATE.to_le_bytes());
    file.extend((RATE * 2).to_le_bytes());
    file.extend([2, 0, 16, 0]);
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    file.extend(
        samples
            .iter()
            .flat_map(|sample| ((sample * 32_000.0) as i16).to_le_bytes()),
    );
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_file_contains_its_own_length() {
        let file = wav(&[0.0, 0.5, -0.5]);
        assert_eq!(file.len(), 50);
        assert_eq!(file[4..8], 42_u32.to_le_bytes());
        assert_eq!(file[40..44], 6_u32.to_le_bytes());
        assert_eq!(file[46..48], 16_000_i16.to_le_bytes());
    }
}
