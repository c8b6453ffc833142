//! [`Sprite`]: the name, size and layers of each picture in the atlas.

/// The sprites, each with its width and height in pixels at scale 1.
macro_rules! sprites {
    ($($(#[$about:meta])* $name:ident: $width:literal x $height:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Sprite {
            $($(#[$about])* $name,)*
        }

        impl Sprite {
            pub(crate) const ALL: [Sprite; [$(Sprite::$name),*].len()] = [$(Sprite::$name),*];

            pub(crate) const fn pixels(self) -> (usize, usize) {
                match self {
                    $(Sprite::$name => ($width, $height),)*
                }
            }
        }
    };
}

sprites! {
    /// One opaque colour, for boxes and lines.
    White: 4 x 4,
    /// A rounded box, drawn as a nine-slice.
    Panel: 24 x 24,
    Frame: 24 x 24,
    Dot: 48 x 48,
    Wall: 32 x 32,
    PlayerHull: 72 x 72,
    PlayerTrim: 72 x 72,
    Gunner: 64 x 64,
    Urchin: 64 x 64,
    Spinner: 64 x 64,
    Sapper: 64 x 64,
    Charger: 64 x 64,
    GunnerHull: 64 x 64,
    GunnerTrim: 64 x 64,
    UrchinHull: 64 x 64,
    UrchinTrim: 64 x 64,
    SpinnerHull: 64 x 64,
    SpinnerTrim: 64 x 64,
    SapperHull: 64 x 64,
    SapperTrim: 64 x 64,
    ChargerHull: 64 x 64,
    ChargerTrim: 64 x 64,
    BossHull: 208 x 208,
    BossTrim: 208 x 208,
    Barrel: 56 x 56,
    BarrelTrim: 56 x 56,
    Crate: 56 x 56,
    CrateTrim: 56 x 56,
    Capsule: 56 x 56,
    IconBlaster: 32 x 32,
    IconScatter: 32 x 32,
    IconLance: 32 x 32,
    IconThumper: 32 x 32,
    IconHeart: 32 x 32,
    IconShield: 32 x 32,
    IconLife: 32 x 32,
    IconDash: 32 x 32,
    IconReady: 32 x 32,
    Crosshair: 40 x 40,
    Pointer: 24 x 24,
    Glow: 64 x 64,
    Shadow: 64 x 64,
    Ring: 96 x 96,
    /// A very thin circle, which shows a range.
    Reach: 224 x 224,
    /// A wide, soft circle, for the front of a blast.
    Wave: 96 x 96,
    /// A dashed circle, for ghosts of the authority.
    Dashes: 72 x 72,
    Streak: 64 x 12,
    Smoke: 48 x 48,
    Shard: 12 x 12,
    Flash: 48 x 48,
    Shot: 40 x 14,
    Bolt: 72 x 16,
    Shell: 24 x 24,
    Bullet: 24 x 24,
    Bubble: 96 x 96,
}

impl Sprite {
    pub(crate) const fn layers(self) -> Option<(Sprite, Sprite, u32)> {
        use Sprite::*;
        Some(match self {
            Gunner => (GunnerHull, GunnerTrim, 0xff_74_2e),
            Urchin => (UrchinHull, UrchinTrim, 0xb5_52_2a),
            Spinner => (SpinnerHull, SpinnerTrim, 0xc8_32_96),
            Sapper => (SapperHull, SapperTrim, 0xd5_5e_00),
            Charger => (ChargerHull, ChargerTrim, 0xe8_30_4a),
            _ => return None,
        })
    }
}
