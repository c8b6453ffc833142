//! [`Sound`]: what can be heard; and [`SoundOrder`]: what is asked of whoever plays it.

use powderkeg_game::Weapon;
use twinstep_client::cues::CueId;

/// What can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    Blaster,
    Scatter,
    Lance,
    Thumper,
    Hit,
    Crit,
    Pop,
    Hurt,
    Shield,
    Death,
    Dash,
    Pickup,
    Ready,
    Fuse,
    Blast,
    Crack,
    Wave,
    Cleared,
    Boss,
    Won,
    Lost,
    Click,
}

impl Sound {
    pub(crate) const ALL: [Sound; 22] = {
        use Sound::*;
        [
            Blaster, Scatter, Lance, Thumper, Hit, Crit, Pop, Hurt, Shield, Death, Dash, Pickup,
            Ready, Fuse, Blast, Crack, Wave, Cleared, Boss, Won, Lost, Click,
        ]
    };

    /// The sound of a weapon.
    pub(crate) const fn of_weapon(weapon: Weapon) -> Sound {
        match weapon {
            Weapon::Blaster => Sound::Blaster,
            Weapon::Scatter => Sound::Scatter,
            Weapon::Lance => Sound::Lance,
            Weapon::Thumper => Sound::Thumper,
        }
    }

    /// Whether it comes from everywhere, since it concerns everybody.
    pub(crate) const fn is_everywhere(self) -> bool {
        use Sound::*;
        matches!(self, Wave | Cleared | Boss | Won | Lost | Click | Ready)
    }
}

/// What the mixer is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SoundOrder {
    Play {
        cue: Option<CueId>,
        sound: Sound,
        /// 0 ..= 1.
        volume: f32,
        /// −1: left, 1: right.
        pan: f32,
    },
    Hush(CueId),
    Volume(f32),
}
