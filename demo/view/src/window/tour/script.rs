//! The tour's chapters: a link, events, and a sentence with a number for each pane.

use twinstep_protocol::simnet::LinkProfile;

use super::measure::Measure::{self, BarrelOff, BlastLate, Jump, KeyLate, Off, Stood};

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Packets of the local player's link wait for this many ms, then arrive at once.
    Hold(u64),
    Light(u8),
    /// The server is killed, and started again after this many ms.
    Kill(u64),
}

type Caption = (Measure, &'static str);

pub(super) struct Chapter {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    pub(super) link: LinkProfile,
    pub(super) seconds: u32,
    /// The part that the animated picture shows, in tenths of a second.
    pub(super) filmed: [u32; 2],
    /// An event, and its time in tenths of a second.
    pub(super) act: Option<(u32, Act)>,
    pub(super) captions: [Caption; 4],
}

const LOCKSTEP: Caption = (
    KeyLate,
    "late: your key shows when\nthe server's response arrives",
);
const RAW: Caption = (
    Jump,
    "radii: your friend's longest jump.\nYour own key shows at once",
);
const SMOOTHED: Caption = (
    Off,
    "radii: your friend is that far from\nthe ring; no jumps, but detours",
);
const AUTO: Caption = (
    Off,
    "radii: your friend is on the ring,\nand shown as he was {ago} ms ago",
);

const LINE: Chapter = Chapter {
    name: "WAN",
    words: "100 ms of round trip, 2 % lost. Watch the keys below each pane.",
    link: LinkProfile::WAN,
    seconds: 11,
    filmed: [72, 98],
    act: None,
    captions: [LOCKSTEP, RAW, SMOOTHED, AUTO],
};

pub(super) const CHAPTERS: [Chapter; 8] = [
    Chapter {
        name: "LAN",
        words: "2 ms. Lockstep is late already; the other three look alike.",
        link: LinkProfile::LAN,
        filmed: [45, 60],
        captions: [
            LOCKSTEP,
            RAW,
            SMOOTHED,
            (
                Off,
                "radii: your friend is predicted,\nbecause little is guessed",
            ),
        ],
        ..LINE
    },
    LINE,
    Chapter {
        name: "BAD",
        words: "200 ms, 5 % lost. Watch the yellow friend leave his ring.",
        link: LinkProfile::BAD,
        seconds: 14,
        filmed: [86, 138],
        ..LINE
    },
    Chapter {
        name: "AWFUL",
        words: "300 ms, 10 % lost in bursts. Your keys still act at once.",
        link: LinkProfile::AWFUL,
        seconds: 12,
        filmed: [85, 111],
        ..LINE
    },
    Chapter {
        name: "HICCUP",
        words: "Wi-Fi pauses for half a second, then all packets arrive at once.",
        filmed: [62, 91],
        act: Some((65, Act::Hold(500))),
        captions: [
            (Stood, "you stand still,\nas long as the pause"),
            (Stood, "you walk on. Your friend\njumps when it is over"),
            (
                Stood,
                "you walk on. Your friend\nglides back when it is over",
            ),
            (
                Stood,
                "you walk on. Your friend is shown\nwhere he is known, {ago} ms ago",
            ),
        ],
        ..LINE
    },
    Chapter {
        name: "BLAST",
        words: "Only the server knows how a blast throws barrels. You see a guess.",
        link: LinkProfile::BAD,
        filmed: [74, 107],
        act: Some((65, Act::Light(0))),
        captions: [
            (
                BlastLate,
                "late: the blast shows when\nthe server's response arrives",
            ),
            (
                BarrelOff,
                "radii: the guess was that far off;\nbarrels jump to the answer",
            ),
            (
                BarrelOff,
                "radii: the guess was that far off;\nbarrels glide to the answer",
            ),
            (
                BarrelOff,
                "radii: the same. Only players and\ntheir shots have their own time",
            ),
        ],
        ..LINE
    },
    Chapter {
        name: "CRASH",
        words: "kill -9 of the server; another one resumes from its journal.",
        seconds: 13,
        filmed: [57, 104],
        act: Some((60, Act::Kill(1_500))),
        captions: [
            (Stood, "you stand still until the\nnew server responds"),
            (
                Stood,
                "you play on for a second, then wait:\na prediction has a limit",
            ),
            (
                Stood,
                "you play on for a second, then wait;\nthen all are in their seats again",
            ),
            (
                Stood,
                "you play on for a second, then wait;\nthen all are in their seats again",
            ),
        ],
        ..LINE
    },
    Chapter {
        name: "THE SAME WORLD",
        words: "Four pictures of one session: same packets in, same bytes out.",
        seconds: 6,
        filmed: [30, 46],
        ..LINE
    },
];
