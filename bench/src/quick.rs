//! `quick`: everything that is measured in one run, and what it does not cover.

use std::fmt::{self, Write};

use twinstep_core::packet::OUTER_BYTES;

use crate::frames;
use crate::measure::{BLOCK_LAPS, Bench, Effort, Part, Place, Reading, Results};
use crate::ours;
use crate::peer_ggrs::{Checksums, Codec, PREDICTION_WINDOW, Party};
use crate::simulation::{ONE_WAY_TICKS, PLAYERS, Sticks};
use crate::subjects::{Alone, AlonePlaces, CHUNK_FRAMES, Case, CasePlaces};
use crate::table::{Format, Table, list, load, machine, number, ratio};

const EFFORT: Effort = Effort {
    rounds: 3,
    chunks: 20,
};
/// Ticks a second, for bytes a second.
const TICK_HZ: f64 = 60.0;
/// IP and UDP.
const UDP_BYTES: f64 = 28.0;

const SIZES: [(usize, &str); 2] = [(4 << 10, "4 KB"), (64 << 10, "64 KB")];
const STICKS: [(Sticks, &str); 2] = [
    (Sticks::Still, "no rebuild"),
    (Sticks::Moving, "rebuild at every turn"),
];

/// Measures everything and writes the report. `date` is the caller's: nothing here asks what day it is.
pub(crate) fn run(format: Format, date: Option<&str>, out: &mut impl Write) -> fmt::Result {
    let load_before = load();
    let mut cases: Vec<Case> = SIZES
        .into_iter()
        .flat_map(|size| STICKS.map(|sticks| Case::new(size, sticks)))
        .collect();
    let mut alone = SIZES.map(Alone::new);
    let mut sampled = Party::new(SIZES[0].0, Sticks::Moving, Checksums::Off);
    let codec = Codec::new(sampled.sample_messages());

    let mut bench = Bench::default();
    let case_places: Vec<CasePlaces> = cases.iter_mut().map(|case| case.add(&mut bench)).collect();
    let alone_places = alone.each_mut().map(|alone| alone.add(&mut bench));
    let codec_place = bench.add(|meters| codec.run(meters));
    let results = bench.run(EFFORT);

    cases.iter().for_each(Case::check);
    let cases: Vec<(&Case, CasePlaces)> = cases.iter().zip(case_places).collect();
    let alone: Vec<(&Alone, AlonePlaces)> = alone.iter().zip(alone_places).collect();
    head(format, date, &load_before, results.timer_ns, out)?;
    for table in [
        session_frames(&cases, &results),
        allocations(&cases, &results),
        simulated_again(&cases),
        rebuilds(&alone, &results),
        matches(&cases, &results),
        packets(&cases, &results, codec_place),
        bytes(&cases),
        parts(&cases, &results),
        states(&alone, &results),
    ] {
        table.write(format, out)?;
    }
    match frames::table() {
        Ok(table) => table.write(format, out)?,
        Err(why) => {
            let line = format!("Pictures of Powderkeg: skipped. {why}");
            list(format, [line.as_str()].into_iter(), out)?;
            writeln!(out)?;
        }
    }
    foot(format, out)
}

fn head(
    format: Format,
    date: Option<&str>,
    load_before: &str,
    timer_ns: f64,
    out: &mut impl Write,
) -> fmt::Result {
    let date = date.unwrap_or("date not given (--date)");
    match format {
        Format::Text => writeln!(out, "twinstep-bench quick · {date}")?,
        Format::Markdown => writeln!(out, "`twinstep-bench quick`, {date}\n")?,
    }
    let lines = [
        format!("Machine: {}; load before {load_before}, after {}.", machine(), load()),
        format!(
            "{PLAYERS} players, packets {ONE_WAY_TICKS} ticks one way, no loss, 4 bytes of controls, everything in one \
             thread and in memory."
        ),
        format!(
            "Each number: the lowest of {} rounds, each the median of blocks of {BLOCK_LAPS} frames out of {}; all \
             subjects take turns, {CHUNK_FRAMES} frames each. The clock's {} ns a reading are taken off.",
            EFFORT.rounds,
            EFFORT.chunks * CHUNK_FRAMES,
            number(timer_ns)
        ),
        format!(
            "ggrs 0.13 as published, its in-memory socket encoding as its UDP socket does; prediction window \
             {PREDICTION_WINDOW}, the smallest with which nobody waits, because its cost grows with the window."
        ),
        "Ratios are ggrs ÷ Twinstep: above 1, Twinstep is cheaper.".to_owned(),
        "Twinstep compares a digest of the world at every turn, of one over 64 KB four times a second and less; it cannot \
         be turned off and is in all its numbers. \
         ggrs is measured with desync detection off (its default) and, as \"+ checksums\", with every save hashed \
         (by the same digest) and every second frame compared."
            .to_owned(),
        "The two do not do the same: a ggrs peer talks to 3 others, half a round trip away, and rolls 8 frames back; \
         a Twinstep client talks to one server, predicts over a whole round trip and steps two worlds, and a match \
         runs beside it."
            .to_owned(),
    ];
    list(format, lines.iter().map(String::as_str), out)?;
    writeln!(out)
}

fn session_frames(cases: &[(&Case, CasePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "One client's frame, ns",
        "read what came, advance, write what is due; k: ticks in a turn. At k=2, the action preset, every other frame \
         rebuilds; at k=1 every frame does, as every frame of ggrs rolls back",
        &[
            "state, guesses",
            "Twinstep k=2",
            "Twinstep k=1",
            "ggrs",
            "ggrs + checksums",
            "ggrs ÷ k=2",
            "ggrs ÷ k=1",
            "+ checksums ÷ k=2",
        ],
    );
    for (case, places) in cases {
        let ns = |place: Place| results[place][Part::Whole].ns;
        let (two, one) = (ns(places.two), ns(places.one));
        let (off, on) = (ns(places.ggrs), ns(places.ggrs_checksums));
        table.row([
            case.label.clone(),
            number(two),
            number(one),
            number(off),
            number(on),
            ratio(off, two),
            ratio(off, one),
            ratio(on, two),
        ]);
    }
    table
}

fn allocations(cases: &[(&Case, CasePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "Heap allocations, exact",
        "per client frame, and per tick of a match with all its clients; k=2",
        &[
            "state, guesses",
            "Twinstep frame",
            "Twinstep match",
            "ggrs frame",
            "ggrs + checksums",
        ],
    );
    for (case, places) in cases {
        let count = |place: Place, part| number(results[place][part].allocations);
        table.row([
            case.label.clone(),
            count(places.two, Part::Whole),
            count(places.two, Part::Match),
            count(places.ggrs, Part::Whole),
            count(places.ggrs_checksums, Part::Whole),
        ]);
    }
    table
}

fn simulated_again(cases: &[(&Case, CasePlaces)]) -> Table {
    let mut table = Table::new(
        "What was done again, per frame",
        "rebuilds or rollbacks / ticks simulated again; a rebuild spans the whole way to the server and back",
        &["state, guesses", "Twinstep k=2", "Twinstep k=1", "ggrs"],
    );
    for (case, _) in cases {
        let ours = |party: &ours::Party| {
            let counts = party.counts();
            pair(counts.rebuilds, counts.resim_ticks, counts.frames)
        };
        let theirs = case.ggrs.counts();
        table.row([
            case.label.clone(),
            ours(&case.two),
            ours(&case.one),
            pair(theirs.rollbacks, theirs.resim_frames, theirs.frames),
        ]);
    }
    table
}

fn pair(times: u64, ticks: u64, frames: u64) -> String {
    let per_frame = |count: u64| count as f64 / frames as f64;
    format!("{:.2} / {:.1}", per_frame(times), per_frame(ticks))
}

fn rebuilds(alone: &[(&Alone, AlonePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "8 ticks simulated again, alone, ns",
        "Twinstep: 1 clone, 8 guessed frames, 8 steps; ggrs: 1 load, 8 saves, 8 steps (sync test of 8 less one of 0)",
        &["state", "Twinstep", "ggrs", "ggrs ÷ Twinstep"],
    );
    for (alone, places) in alone {
        let ns = |place: Place| results[place][Part::Whole].ns;
        let (ours, theirs) = (ns(places.rebuild), ns(places.rolling) - ns(places.straight));
        table.row([
            alone.label.to_owned(),
            number(ours),
            number(theirs),
            ratio(theirs, ours),
        ]);
    }
    table
}

fn matches(cases: &[(&Case, CasePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "The match, and the whole game",
        "ns of the match per client and tick (seal, step, keep, digest, tell); then of all machines together per \
         tick: 4 clients and the match, or 4 peers",
        &[
            "state, guesses",
            "match k=2",
            "match k=1",
            "all, Twinstep k=2",
            "all, ggrs",
            "ggrs ÷ k=2",
        ],
    );
    for (case, places) in cases {
        let ns = |place: Place, part| results[place][part].ns;
        let players = PLAYERS as f64;
        let ours = players * ns(places.two, Part::Whole) + ns(places.two, Part::Match);
        let theirs = players * ns(places.ggrs, Part::Whole);
        table.row([
            case.label.clone(),
            number(ns(places.two, Part::Match) / players),
            number(ns(places.one, Part::Match) / players),
            number(ours),
            number(theirs),
            ratio(theirs, ours),
        ]);
    }
    table
}

fn packets(cases: &[(&Case, CasePlaces)], results: &Results, codec: Place) -> Table {
    let mut table = Table::new(
        "Packets, ns each",
        "4 KB, controls change at every tick, k=2; ours with acks, packing and unpacking; of ggrs bincode alone, its \
         packing cannot be reached, so there is no ratio",
        &["what", "encode", "decode"],
    );
    let places = cases
        .iter()
        .find(|(case, _)| case.size == SIZES[0].0 && case.sticks == Sticks::Moving);
    if let Some((_, places)) = places {
        let ns = |part| results[places.two][part].ns;
        let told = (ns(Part::TurnTick) - ns(Part::PlainTick)) / PLAYERS as f64;
        table.row([
            "Twinstep up: client, match".to_owned(),
            number(ns(Part::Encode)),
            number(ns(Part::MatchDecode)),
        ]);
        table.row([
            "Twinstep down: match (a tick that ends a turn less one that does not, ÷ 4), client"
                .to_owned(),
            number(told),
            number(ns(Part::Decode)),
        ]);
    }
    table.row([
        "ggrs: inputs, acks; bincode alone".to_owned(),
        number(results[codec][Part::Encode].ns),
        number(results[codec][Part::Decode].ns),
    ]);
    table
}

fn bytes(cases: &[(&Case, CasePlaces)]) -> Table {
    let mut table = Table::new(
        "Bytes and packets of one client",
        "bytes of a packet without headers; packets up and down a tick; KB/s at 60 Hz up and down with headers: ggrs \
         28 (IP, UDP), Twinstep 53 (and laminar's 5, netcode's 20)",
        &[
            "controls",
            "bytes up",
            "bytes down",
            "ggrs bytes",
            "packets",
            "ggrs packets",
            "KB/s",
            "ggrs KB/s",
            "ggrs ÷ Twinstep",
        ],
    );
    for (case, _) in cases.iter().filter(|(case, _)| case.size == SIZES[0].0) {
        let (ours, theirs) = (case.two.counts(), case.ggrs.counts());
        let mean = |bytes: u64, packets: u64| bytes as f64 / packets as f64;
        let client_ticks = |frames: u64| frames as f64 * PLAYERS as f64;
        let packets = (ours.packets_up + ours.packets_down) as f64 / client_ticks(ours.frames);
        // Each packet of a peer goes up at one player and down at another.
        let ggrs_packets = 2.0 * theirs.packets as f64 / client_ticks(theirs.frames);
        let payload = (ours.bytes_up + ours.bytes_down) as f64 / client_ticks(ours.frames);
        let ggrs_payload = 2.0 * theirs.bytes as f64 / client_ticks(theirs.frames);
        let rate = |payload: f64, packets: f64, outer: f64| {
            (payload + packets * outer) * TICK_HZ / 1_000.0
        };
        let ours_rate = rate(payload, packets, OUTER_BYTES as f64);
        let ggrs_rate = rate(ggrs_payload, ggrs_packets, UDP_BYTES);
        let label = match case.sticks {
            Sticks::Still => "held",
            Sticks::Moving => "change at every tick",
        };
        table.row([
            label.to_owned(),
            number(mean(ours.bytes_up, ours.packets_up)),
            number(mean(ours.bytes_down, ours.packets_down)),
            number(mean(theirs.bytes, theirs.packets)),
            number(packets),
            number(ggrs_packets),
            number(ours_rate),
            number(ggrs_rate),
            ratio(ggrs_rate, ours_rate),
        ]);
    }
    table
}

fn parts(cases: &[(&Case, CasePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "Where Twinstep's time goes, ns, k=2",
        "of a client: read a packet (every other frame), advance, write a packet; of the match: read a packet, a tick \
         that ends no turn, one that does",
        &[
            "state, guesses",
            "read",
            "advance",
            "write",
            "match reads",
            "plain tick",
            "turn's tick",
        ],
    );
    for (case, places) in cases {
        let ns = |part| number(results[places.two][part].ns);
        table.row([
            case.label.clone(),
            ns(Part::Decode),
            ns(Part::Advance),
            ns(Part::Encode),
            ns(Part::MatchDecode),
            ns(Part::PlainTick),
            ns(Part::TurnTick),
        ]);
    }
    table
}

fn states(alone: &[(&Alone, AlonePlaces)], results: &Results) -> Table {
    let mut table = Table::new(
        "The state, ns",
        "clone of the world into a used buffer, clone as ggrs's save does it (a new buffer), digest of the world in \
         8-byte fields, of as many bytes in 1-byte fields, the step alone",
        &[
            "state",
            "Twinstep clone",
            "ggrs clone",
            "ggrs ÷ Twinstep",
            "digest",
            "1-byte fields",
            "step",
        ],
    );
    for (alone, places) in alone {
        let reading = |place: Place| -> Reading { results[place][Part::Whole] };
        let (ours, theirs) = (reading(places.clone_from).ns, reading(places.clone).ns);
        table.row([
            alone.label.to_owned(),
            number(ours),
            number(theirs),
            ratio(theirs, ours),
            number(reading(places.digest).ns),
            number(reading(places.digest_bytes).ns),
            number(reading(places.step).ns),
        ]);
    }
    table
}

/// What a reader must not conclude.
const NOT_COVERED: [&str; 11] = [
    "Encryption, tickets, laminar and UDP: none is in any time here, on either side. Twinstep's real transport \
     encrypts every packet (renetcode alone: over 1 µs for a small one); ggrs sends plaintext.",
    "Loss, jitter, reordering, duplicates, stalls: the delay is fixed.",
    "A game: the step takes nanoseconds. With a real one a rebuild costs what its ticks cost, and Twinstep's, which \
     span the way to the server and back, cost more of them than a rollback between peers.",
    "Announcements, speculation, commands, queries, cues, claims, pictures, journal: not used here. (Announcements \
     exist to make rebuilds rarer; they are off so that every guess is wrong.)",
    "Other sizes of parties: what ggrs does grows with the peers of each client, what a match does with its clients.",
    "Cold caches and single slow frames: these are medians in a tight loop, not a frame every 16 ms.",
    "Joining, healing, memory.",
    "ggrs's sparse saving, and saves that a game makes cheaper than a clone. Its timers follow the system's clock, \
     so some packets that it sends 5 times a second at 60 Hz are rarer here.",
    "Games that derive `Clone`: the blob here reuses its buffer in `clone_from`, a derived one allocates anew.",
    "The allocation counter costs about a nanosecond an allocation, on both sides.",
    "One machine, one build, one run; other peers (lightyear, renet, naia) are not measured.",
];

fn foot(format: Format, out: &mut impl Write) -> fmt::Result {
    match format {
        Format::Text => writeln!(out, "Not covered")?,
        Format::Markdown => writeln!(out, "Not covered:\n")?,
    }
    list(format, NOT_COVERED.into_iter(), out)
}
