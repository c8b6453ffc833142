//! The page of a match shows the contents of its journal and of a client's tape.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use powderkeg_game::Game;
use serde_json::Value;
use twinstep_core::diff::ValueTree;
use twinstep_core::{PlayerId, Tick};
use twinstep_ops::{INSPECT_TICKS_MAX, InspectError, Inspector};
use twinstep_protocol::replay::{CursorItem, Frames, Index, Replay};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::recorded::recorded;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);
// A name that would run as a script if it were inserted as markup.
const EVIL: &str = "</script><script>throw 1</script>";

// The data of a page, separated by the class of its elements.
struct Page {
    head: Value,
    blocks: Vec<Value>,
}

impl Page {
    fn read(page: &[u8]) -> Page {
        let text = std::str::from_utf8(page).unwrap();
        let data = |class: &str| -> Vec<Value> {
            let begin = format!("<script type=\"text/plain\" class=\"{class}\">");
            let found = text.split(begin.as_str()).skip(1);
            found
                .map(|rest| {
                    let packed = STANDARD.decode(rest.split('<').next().unwrap()).unwrap();
                    let mut json = String::new();
                    GzDecoder::new(packed.as_slice())
                        .read_to_string(&mut json)
                        .unwrap();
                    serde_json::from_str(&json).unwrap()
                })
                .collect()
        };
        let [head] = data("head").try_into().unwrap();
        Page {
            head,
            blocks: data("block"),
        }
    }

    fn flags(&self, player: PlayerId) -> Vec<u8> {
        let players = self.head["players"].as_array().unwrap();
        let row = players.iter().find(|row| row["id"] == player.0).unwrap();
        STANDARD.decode(row["flags"].as_str().unwrap()).unwrap()
    }

    // The lines of a tick, with their texts.
    fn lines(&self, tick: Tick) -> Vec<(u64, Vec<String>)> {
        let from = self.head["from"].as_u64().unwrap();
        let size = self.head["block_ticks"].as_u64().unwrap();
        let at = u64::from(tick.0) - from;
        let block = &self.blocks[(at / size) as usize];
        let lines = block["t"][(at % size) as usize].as_array().unwrap();
        lines
            .iter()
            .map(|line| {
                let cells: Vec<i64> = serde_json::from_value(line.clone()).unwrap();
                let word = cells[0] as u64;
                let text = |(place, cell): (usize, &i64)| {
                    let is_text = match word {
                        1 => place == 1,
                        0 | 6 => place == 2,
                        3 | 4 => place == 3,
                        7 | 8 => place > 0,
                        9 => place > 0,
                        11 | 14 => place == 4,
                        13 => place > 2,
                        2 => place != 2 && *cell >= 0,
                        _ => false,
                    };
                    match is_text {
                        true => block["s"][*cell as usize].as_str().unwrap().to_owned(),
                        false => cell.to_string(),
                    }
                };
                (word, cells.iter().enumerate().map(text).collect())
            })
            .collect()
    }
}

// Writes a page for `ci/inspect.sh`.
fn keep(name: &str, page: &[u8]) {
    if let Some(dir) = std::env::var_os("TWINSTEP_PAGE") {
        std::fs::write(std::path::Path::new(&dir).join(name), page).unwrap();
    }
}

// Compares each tick of a page with the frames of the journal. Returns the counts of commands, fills and answers.
fn agrees<S: Play>(page: &Page, journal: &[u8]) -> [usize; 3] {
    let index = Index::scan(journal).unwrap();
    let mut frames = Frames::<S>::at(journal, &index.worlds[0]);
    let mut counts = [0; 3];
    let mut held: BTreeMap<u8, String> = BTreeMap::new();
    let mut before = BTreeMap::new();
    let flags: Vec<Vec<u8>> = (0..16)
        .map(|n| {
            let rows = page.head["players"].as_array().unwrap();
            let is_shown = rows.iter().any(|row| row["id"] == n);
            if is_shown {
                page.flags(PlayerId(n))
            } else {
                Vec::new()
            }
        })
        .collect();
    while let Some(found) = frames.next().unwrap() {
        if !matches!(found, CursorItem::Frame) {
            continue;
        }
        let frame = frames.frame();
        let lines = page.lines(frame.tick);
        let of = |word: u64| lines.iter().filter(move |line| line.0 == word);
        assert_eq!(
            of(0).count(),
            frame.roster.len(),
            "roster of {}",
            frame.tick
        );
        assert_eq!(of(2).count(), frame.outcomes.len());
        let commands: Vec<_> = of(4).map(|line| line.1[1..].to_vec()).collect();
        let expected = frame.commands.iter().map(|order| {
            let text = ValueTree::of(&order.command).text();
            vec![order.player.0.to_string(), order.seq.to_string(), text]
        });
        assert_eq!(commands, expected.collect::<Vec<_>>());
        let filled: Vec<_> = of(5).map(|line| line.1[1].clone()).collect();
        let expected = frame.filled.iter().map(|player| player.0.to_string());
        assert_eq!(filled, expected.collect::<Vec<_>>());
        for (_, line) in of(6) {
            held.insert(line[1].parse().unwrap(), line[2].clone());
        }
        let at = frame.tick - index.worlds[0].tick;
        for (player, input) in frame.inputs.iter() {
            let text = ValueTree::of(input).text();
            assert_eq!(held[&player.0], text);
            let changed = before.insert(player.0, text.clone()) != Some(text);
            let flags = flags[player.index()][at as usize];
            assert_eq!((flags & 1, flags >> 1 & 1), (1, u8::from(changed)));
        }
        counts[0] += frame.commands.len();
        counts[1] += filled.len();
        counts[2] += frame.outcomes.len();
    }
    counts
}

#[test]
fn a_page_shows_each_tick_of_a_journal_and_what_a_client_assumed_and_showed() {
    let mut rig = Rig::<Game>::new(RigConfig {
        taped: true,
        ..RigConfig::new(5, LinkProfile::BAD)
    });
    rig.run(SECOND * 6);
    rig.join(EVIL);
    rig.run(SECOND * 2);
    rig.flip(1);
    rig.run(SECOND * 5);
    rig.leave(3);
    rig.run(SECOND);
    let client = &mut rig.clients[1].session;
    let (stats, tape) = (client.stats(), client.take_tape());
    assert!(client.take_tape().is_empty(), "each byte is taken once");
    assert_eq!(stats.heals, 1);
    let rules = Game::rules_for(&rig.config);
    let mut page = Vec::new();
    let inspector = Inspector::<Game>::new(&rules)
        .tape("anna.tape", &tape)
        .unwrap();
    let inspected = inspector.write(rig.journal.as_slice(), &mut page).unwrap();
    assert_eq!(inspected.stopped, None);
    assert_eq!(inspected.bytes, page.len() as u64);
    keep("tape.html", &page);
    let text = std::str::from_utf8(&page).unwrap();
    assert!(!text.contains("throw 1"), "a name is never markup");
    let page = Page::read(&page);
    let scripts = page.blocks.len() + 2;
    assert_eq!(text.matches("<script").count(), scripts);
    let [commands, fills, answers] = agrees::<Game>(&page, &rig.journal);
    println!(
        "{commands} commands, {fills} fills, {answers} answers, {} B",
        text.len()
    );
    assert!(commands > 10 && fills > 0 && answers > 0);

    let players = page.head["players"].to_string();
    assert!(players.contains("throw 1"), "the name is shown: {players}");
    let marks = page.head["marks"].as_array().unwrap();
    let of = |kind: u8| marks.iter().filter(move |mark| mark[1] == kind).count();
    assert_eq!((of(0), of(3), of(5)), (5, 1, 0), "joined, left, differs");

    let tape = &page.head["tapes"][0];
    let kinds: Vec<u64> = tape["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark[1].as_u64().unwrap())
        .collect();
    let place = |kind: u64| kinds.iter().position(|one| *one == kind).unwrap();
    assert!(place(1) < place(3), "differs, then healed: {kinds:?}");
    let rebuilds = tape["rebuilds"].as_array().unwrap();
    let rebuilds: u64 = rebuilds.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(rebuilds, stats.timeline.rebuilds, "each with its cause");
    let lead = STANDARD.decode(tape["lead"].as_str().unwrap()).unwrap();
    let last = lead.iter().rev().find(|lead| **lead != 255);
    assert_eq!(
        last.copied().map(u32::from),
        Some(stats.prediction_tick - stats.authority_tick)
    );
    let margins = STANDARD.decode(tape["margin"].as_str().unwrap()).unwrap();
    assert!(margins.iter().filter(|margin| **margin != 255).count() > 300);
    let run = tape["loops"].as_array().unwrap();
    assert!(
        run.iter()
            .all(|of| of[1].as_u64().unwrap() <= stats.timeline.items_taken)
    );

    // Assumed inputs of other players differ from the true ones, and shown values were corrected.
    let (mut assumed, mut corrected, mut given) = (0, 0, 0);
    for tick in (inspected.ticks.start.0..inspected.ticks.end.0).map(Tick) {
        let lines = page.lines(tick);
        for (word, line) in &lines {
            given += u64::from(*word == 14 && line[2] == "5");
            if *word == 11 && line[2] == "4" {
                assumed += 1;
                let truth = lines
                    .iter()
                    .find(|(word, of)| *word == 6 && of[1] == line[3]);
                assert!(truth.is_none_or(|(_, of)| of[2] != line[4]), "{lines:?}");
            }
            if *word == 13 {
                corrected += 1;
                assert!(line[4] != line[5] && !line[3].is_empty(), "{line:?}");
            }
        }
    }
    assert!(assumed > 20 && corrected > 20, "{assumed}, {corrected}");
    // The last command may be newer than the last tick.
    let sent = stats.commands_sent;
    assert!(given + 1 >= sent && given <= sent, "{given} of {sent}");
}

#[test]
fn a_page_names_the_fields_changed_by_a_tick() {
    let played = recorded::<History>(3, 2, 600, InputPattern::Analog);
    let mut page = Vec::new();
    let inspector = Inspector::<History>::new(&played.rules).ticks(Tick(200)..Tick(330));
    let inspected = inspector
        .write(played.journal.as_slice(), &mut page)
        .unwrap();
    assert_eq!(inspected.ticks, Tick(200)..Tick(330));
    let page = Page::read(&page);
    assert_eq!(
        page.head["counts"][3].as_str().unwrap().len(),
        176,
        "130 bytes"
    );
    let mut replay = Replay::<History>::open(&played.journal, &played.rules).unwrap();
    replay.seek(Tick(200)).unwrap();
    while replay.world().tick() < Tick(330) {
        let before = ValueTree::of(&replay.world().digested());
        replay.step().unwrap();
        let after = ValueTree::of(&replay.world().digested());
        let mut expected: Vec<_> = before
            .diff(&after, 1_000)
            .into_iter()
            .map(|field| [field.path, field.left, field.right])
            .collect();
        let lines = page.lines(replay.frame().tick);
        let shown = lines.iter().filter(|line| line.0 == 9);
        let mut shown: Vec<_> = shown
            .map(|line| [1, 2, 3].map(|n| line.1[n].clone()))
            .collect();
        expected.sort();
        shown.sort();
        assert_eq!(shown, expected, "tick {}", replay.frame().tick);
    }
}

#[test]
fn a_match_that_cannot_be_shown_as_a_page_is_refused_with_a_reason() {
    let played = recorded::<History>(3, 2, 120, InputPattern::Still);
    let refused = |inspector: Inspector<'_, History>, journal: &[u8]| {
        let error = inspector.write(journal, &mut Vec::new()).unwrap_err();
        error.to_string()
    };
    let new = || Inspector::<History>::new(&played.rules);
    let journal = played.journal.as_slice();
    for (said, words) in [
        (
            refused(new().ticks(Tick(9)..Tick(9)), journal),
            "a first tick before the end",
        ),
        (
            refused(new().ticks(Tick(500)..Tick(900)), journal),
            "below 120, where the journal ends",
        ),
        (refused(new(), b"hello"), "journal"),
    ] {
        assert!(said.contains(words), "{said}");
    }
    let tape = new()
        .tape("a\u{1b}[2J", b"hello")
        .err()
        .unwrap()
        .to_string();
    assert!(
        tape.contains("expected a tape") && !tape.contains('\u{1b}'),
        "{tape}"
    );
    let mut other = Rig::<Game>::new(RigConfig {
        taped: true,
        ..RigConfig::new(1, LinkProfile::PERFECT)
    });
    let other = new().tape("other", &other.clients[0].session.take_tape());
    let said = refused(other.unwrap(), journal);
    assert!(
        said.contains("powderkeg") && said.contains("tape of this match"),
        "{said}"
    );
    let long = recorded::<History>(3, 1, INSPECT_TICKS_MAX + 10, InputPattern::Still);
    let inspector = Inspector::<History>::new(&long.rules);
    let refused = inspector.write(long.journal.as_slice(), &mut Vec::new());
    assert!(matches!(refused, Err(InspectError::TooLong)));
    let part = Inspector::<History>::new(&long.rules).ticks(Tick(200_000)..Tick(200_050));
    let inspected = part
        .write(long.journal.as_slice(), &mut Vec::new())
        .unwrap();
    assert_eq!(inspected.ticks, Tick(200_000)..Tick(200_050));
    // The rest of a torn journal is on the page.
    let torn = &journal[..journal.len() - 3];
    let mut page = Vec::new();
    let inspected = new().write(torn, &mut page).unwrap();
    assert!(inspected.stopped.is_some() && inspected.ticks.end > Tick(60));
    assert!(
        Page::read(&page).head["stopped"]
            .as_str()
            .unwrap()
            .contains("byte")
    );
}

// `TWINSTEP_PAGE=DIR` writes the page of ten minutes there.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_page_of_many_players_takes_a_few_hundred_bytes_per_tick() {
    let is_kept = std::env::var_os("TWINSTEP_PAGE").is_some();
    let ticks = if is_kept { 36_000 } else { 1_200 };
    let played = recorded::<Game>(11, 8, ticks, InputPattern::Analog);
    let mut page = Vec::new();
    let inspector = Inspector::<Game>::new(&played.rules);
    let inspected = inspector
        .write(played.journal.as_slice(), &mut page)
        .unwrap();
    let per_tick = inspected.bytes / u64::from(ticks);
    println!("{} B, {per_tick} B a tick", inspected.bytes);
    assert!(per_tick < 500, "{per_tick} B a tick");
    keep("match.html", &page);
}
