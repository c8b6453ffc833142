//! [`Sound`]: the sounds, and the layers of each. The window turns layers into samples.

use powderkeg_game::Weapon;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waveform {
    Sine,
    Triangle,
    Square,
    Saw,
}

/// A part of a sound: its start and duration in milliseconds, its pitch or brightness at both ends, and its loudness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Layer {
    /// A tone that glides from one pitch to another, in hertz, and fades out.
    Tone(Waveform, u32, u32, [f32; 2], f32),
    /// Noise whose brightness (from 0, which is dark, to 1) changes from one value to another.
    Noise(u32, u32, [f32; 2], f32),
}

/// The sounds. Each has a length in milliseconds, and layers: kind, start, duration, pitch or brightness at both ends,
/// loudness. A note is a triangle wave and, more softly, its octave.
macro_rules! sounds {
    ($($name:ident $ms:literal [$($kind:ident $at:literal $long:literal $from:literal $to:literal $loud:literal),*])*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sound {
            $($name,)*
        }

        impl Sound {
            pub(crate) const ALL: &[Sound] = &[$(Sound::$name),*];

            pub(crate) fn layers(self) -> (u32, Vec<Layer>) {
                match self {
                    $(Sound::$name => ($ms, [$(layer!($kind $at $long $from $to $loud)),*].concat()),)*
                }
            }
        }
    };
}

macro_rules! layer {
    (Noise $at:literal $long:literal $from:literal $to:literal $loud:literal) => {
        vec![Layer::Noise($at, $long, [$from, $to], $loud)]
    };
    (Note $at:literal $long:literal $from:literal $to:literal $loud:literal) => {
        vec![
            Layer::Tone(Waveform::Triangle, $at, $long, [$from, $to], $loud),
            Layer::Tone(
                Waveform::Sine,
                $at,
                $long,
                [2.0 * $from, 2.0 * $to],
                $loud / 3.0,
            ),
        ]
    };
    ($wave:ident $at:literal $long:literal $from:literal $to:literal $loud:literal) => {
        vec![Layer::Tone(
            Waveform::$wave,
            $at,
            $long,
            [$from, $to],
            $loud,
        )]
    };
}

sounds! {
    Blaster   90 [Square 0 80 1150.0 420.0 0.28, Noise 0 25 0.9 0.5 0.12]
    Scatter  180 [Noise 0 170 0.7 0.12 0.55, Saw 0 90 260.0 90.0 0.25]
    Lance    380 [Saw 0 360 1900.0 190.0 0.26, Sine 0 320 960.0 95.0 0.4, Noise 0 60 1.0 0.4 0.2]
    Thumper  220 [Sine 0 200 190.0 55.0 0.8, Noise 0 50 0.35 0.1 0.25]
    Hit       60 [Noise 0 45 0.8 0.4 0.28, Triangle 0 40 700.0 380.0 0.22]
    Crit     240 [Square 0 110 1320.0 1320.0 0.2, Square 60 170 1980.0 1980.0 0.2, Noise 0 60 1.0 0.5 0.25]
    Pop      210 [Noise 0 190 0.55 0.08 0.45, Triangle 0 160 420.0 90.0 0.4]
    Hurt     240 [Saw 0 220 330.0 110.0 0.4, Noise 0 90 0.5 0.2 0.3]
    Shield   330 [Sine 0 310 1480.0 620.0 0.3, Triangle 0 260 2220.0 930.0 0.2, Noise 0 120 1.0 0.7 0.12]
    Death    750 [Saw 0 720 520.0 45.0 0.4, Noise 0 600 0.4 0.03 0.45]
    Dash     190 [Noise 0 180 0.15 0.8 0.3]
    Pickup   280 [Triangle 0 120 660.0 660.0 0.4, Triangle 80 190 990.0 990.0 0.4]
    Ready    200 [Sine 0 190 880.0 880.0 0.35, Sine 0 150 1320.0 1320.0 0.15]
    Fuse     420 [Noise 0 410 1.0 0.75 0.16]
    Blast   1000 [Noise 0 960 0.3 0.015 0.85, Sine 0 600 110.0 32.0 0.9, Noise 0 70 1.0 0.4 0.35]
    Crack    210 [Noise 0 60 0.9 0.3 0.5, Noise 50 140 0.5 0.1 0.4, Triangle 0 80 240.0 120.0 0.3]
    Wave     900 [Note 0 560 392.0 392.0 0.3, Note 150 560 523.3 523.3 0.3, Note 300 560 784.0 784.0 0.3]
    Cleared 1000 [Note 0 700 523.3 523.3 0.3, Note 120 700 659.3 659.3 0.3, Note 240 700 784.0 784.0 0.3]
    Boss    1400 [Saw 0 1350 73.4 69.3 0.4, Saw 0 1350 110.0 103.8 0.3, Square 0 700 220.0 207.7 0.15, Noise 0 900 0.05 0.02 0.3]
    Won     2000 [Note 0 900 523.3 523.3 0.3, Note 180 900 659.3 659.3 0.3, Note 360 900 784.0 784.0 0.3,
                  Note 540 900 1046.5 1046.5 0.3, Note 900 900 784.0 784.0 0.3, Note 1080 900 1046.5 1046.5 0.3]
    Lost    1800 [Note 0 900 392.0 392.0 0.3, Note 280 900 370.0 370.0 0.3, Note 560 900 349.2 349.2 0.3,
                  Note 840 900 261.6 261.6 0.3]
    Click     40 [Triangle 0 36 1200.0 900.0 0.25]
}

impl Sound {
    pub(crate) const fn of_weapon(weapon: Weapon) -> Sound {
        match weapon {
            Weapon::Blaster => Sound::Blaster,
            Weapon::Scatter => Sound::Scatter,
            Weapon::Lance => Sound::Lance,
            Weapon::Thumper => Sound::Thumper,
        }
    }

    pub(crate) const fn is_everywhere(self) -> bool {
        use Sound::*;
        matches!(self, Wave | Cleared | Boss | Won | Lost | Click | Ready)
    }
}
