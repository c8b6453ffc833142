//! The cost of an in-memory client, beside ggrs: frames, rebuilds, allocations, bytes.

use twinstep_protocol::packet::OUTER_BYTES;

use crate::effort::Effort;
use crate::game::{PLAYERS, Sticks};
use crate::ours::{Table, rebuilds_due};
use crate::peer_ggrs::{Checksums, Mesh};
use crate::rows::{Row, Section};
use crate::turns::{self, Counts, MATCH, Party, Results, WHOLE};

const UDP_BYTES: f64 = 28.0;
const SIZES: [(usize, &str); 2] = [(4 << 10, "4 KB"), (64 << 10, "64 KB")];

/// The number of parties per state size and kind of sticks: two-tick turns, as in the action preset; one-tick turns;
/// ggrs; ggrs with checksums.
const PARTIES: usize = 4;

fn parties(size: usize, sticks: Sticks) -> [Box<dyn Party>; PARTIES] {
    [
        Box::new(Table::new(size, 2, sticks)),
        Box::new(Table::new(size, 1, sticks)),
        Box::new(Mesh::new(size, sticks, Checksums::Off)),
        Box::new(Mesh::new(size, sticks, Checksums::EverySecondFrame)),
    ]
}

pub(crate) fn measure(effort: &Effort) -> Section {
    let both = |(size, _)| [Sticks::Still, Sticks::Moving].map(|sticks| parties(size, sticks));
    let all = SIZES.into_iter().flat_map(both).flatten();
    let mut all: Vec<Box<dyn Party>> = all.collect();
    let results = turns::run(&mut all, effort.rounds, effort.chunks);
    for (at, counts) in all.iter().map(|party| party.counts()).enumerate() {
        let is_still = (at / PARTIES).is_multiple_of(2);
        let due = match at % PARTIES {
            _ if is_still => 0..=0,
            0 | 1 => rebuilds_due(counts.turns),
            _ => counts.turns..=counts.turns,
        };
        let does_its_rows = counts.faults == 0 && due.contains(&counts.rebuilds);
        assert!(does_its_rows, "party {at}: {counts:?}");
    }
    let mut section = Section::new(
        "A client beside ggrs, in memory",
        "Four players, packets 8 ticks on their way, no loss, 4 bytes of controls, turns of two ticks if not said otherwise. A frame \
         reads what arrived, advances and writes what is due. With a wrong guess at every turn Twinstep simulates 18 ticks again in five of \
         nine turns (the rest waits for the next turn), ggrs 8 at every frame.",
    );
    let rows = &mut section.rows;
    for (at, (_, size)) in SIZES.iter().enumerate() {
        let (still, moving) = (2 * at * PARTIES, (2 * at + 1) * PARTIES);
        frames(&format!("{size}, no rebuild"), still, &results, rows);
        let label = format!("{size}, wrong guess at every turn");
        frames(&label, moving, &results, rows);
        let added = |party: usize| {
            let [with, without] = [moving, still].map(|first| results.ns(first + party, WHOLE));
            let rounds = with.iter().zip(without);
            rounds.map(|(with, without)| with - without).collect()
        };
        let name = format!("client frame, added by rebuilds, {size}");
        rows.push(Row::new(name, "ns", added(0)).beside("ggrs", added(2)));
    }
    let most = |party: usize, meter| {
        let parties = (party..all.len()).step_by(PARTIES);
        let counts = parties.map(|party| results.allocations(party, meter));
        counts.fold(0.0, f64::max)
    };
    let row = Row::one("allocations of a client frame", "", most(0, WHOLE));
    rows.push(row.beside("ggrs", vec![most(2, WHOLE)]));
    let game = most(0, MATCH);
    rows.push(Row::one("allocations of a match's tick", "", game));
    let [ours, theirs] = [0, 2].map(|party| all[party].counts());
    counts("controls held", ours, theirs, rows);
    let [ours, theirs] = [0, 2].map(|party| all[PARTIES + party].counts());
    counts("controls change at every tick", ours, theirs, rows);
    section
}

fn frames(label: &str, first: usize, results: &Results, rows: &mut Vec<Row>) {
    let [two, one, ggrs, checksums] = [0, 1, 2, 3].map(|party| results.ns(first + party, WHOLE));
    let game = results.ns(first, MATCH);
    let players = PLAYERS as f64;
    let both = two.iter().zip(&game);
    let all = both.map(|(client, game)| players * client + game).collect();
    let peers = ggrs.iter().map(|frame| players * frame).collect();
    let each = game.iter().map(|tick| tick / players).collect();
    let row = |name: &str, ours| Row::new(format!("{name}, {label}"), "ns", ours);
    rows.extend([
        row("client frame", two.clone()).beside("ggrs", ggrs.clone()),
        row("client frame, checksums", two).beside("ggrs + checksums", checksums),
        row("client frame, turns of 1 tick", one).beside("ggrs", ggrs),
        row("all machines, a tick", all).beside("ggrs", peers),
        row("match, per client and tick", each),
    ]);
}

fn counts(label: &str, ours: Counts, theirs: Counts, rows: &mut Vec<Row>) {
    let second = |counts: Counts, n: u64| n as f64 * 60.0 / (counts.frames as f64 * PLAYERS as f64);
    let kb = |counts: Counts, outer_bytes: f64| {
        let packets = second(counts, counts.sent + counts.received);
        (second(counts, counts.bytes) + packets * outer_bytes) / 1e3
    };
    let mut row = |name: &str, unit, of: &dyn Fn(Counts, f64) -> f64| {
        let row = Row::one(
            format!("{name}, {label}"),
            unit,
            of(ours, OUTER_BYTES as f64),
        );
        rows.push(row.beside("ggrs", vec![of(theirs, UDP_BYTES)]));
    };
    row("ticks simulated again a frame", "", &|counts, _| {
        counts.again_ticks as f64 / counts.frames as f64
    });
    row("traffic of a client", "KB/s", &kb);
    row("traffic without headers", "KB/s", &|counts, _| {
        kb(counts, 0.0)
    });
    row("packets sent", "1/s", &|counts, _| {
        second(counts, counts.sent)
    });
    row("packets received", "1/s", &|counts, _| {
        second(counts, counts.received)
    });
}
