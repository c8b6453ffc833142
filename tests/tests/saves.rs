//! Saved games: a match started from a save knows the owner of each player (rows 20 and 83).

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{CommandRefusal, Event, SessionConfig};
use twinstep_core::digest::digest;
use twinstep_core::testing::doc::Counter;
use twinstep_core::world::Presence;
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, Simulation, Tick};
use twinstep_protocol::journal::{JournalWriter, Record, records};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::config::{ConfigError, SealWhen};
use twinstep_server::{
    CloseCode, Decision, HookContext, LoadError, Match, MatchConfig, MatchRequest, OldSave,
    SAVE_INFO_BYTES_MAX, SaveFormatError, SaveInfo, SeatError, SessionId,
};

const SECOND: Duration = Duration::from_secs(1);
const ANNA: PlayerId = PlayerId(0);
const BEN: PlayerId = PlayerId(1);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Town<const V: u32> {
    gold: [u32; 16],
    silver: Vec<u64>,
    asked: u32,
    // The numbers of queries answered with an outcome, and with `None`.
    answered: (u32, u32),
    left: u32,
    asks: bool,
    label: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Earn(u32);

impl<const V: u32> Simulation for Town<V> {
    const NAME: &'static str = "town";
    const VERSION: u32 = V;
    type Rules = u8;
    type Input = u8;
    type Command = Earn;
    type Query = u32;
    type Outcome = u32;
    type Cue = Never;

    fn save_label(&self, rules: &u8) -> String {
        match self.label.is_empty() {
            true => String::new(),
            false => format!("map {rules}, {}", self.label),
        }
    }

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, change) in frame.roster() {
            self.left += u32::from(change == twinstep_core::RosterChange::Left);
        }
        for (player, Earn(gold)) in frame.commands() {
            self.gold[player.index()] += gold;
        }
        for (_, _, outcome) in frame.outcomes() {
            match outcome {
                Some(_) => self.answered.0 += 1,
                None => self.answered.1 += 1,
            }
        }
        if self.asks {
            fx.ask(Key::new(1, self.asked), self.asked);
            self.asked += 1;
        }
    }
}

type Now = Town<2>;

fn answers<const V: u32>(_: &HookContext<'_, Town<V>>, _: Key, query: &u32) -> Decision<u32> {
    Decision::Now(*query)
}

fn policies() -> [(&'static str, MatchConfig); 3] {
    let two = |config| MatchConfig {
        players_max: 2,
        ..config
    };
    let by_deadline = MatchConfig {
        sealing: SealWhen::Deadline,
        ..MatchConfig::strategy()
    };
    [
        ("action", two(MatchConfig::action())),
        ("waiting for all", two(MatchConfig::strategy())),
        ("by deadline", two(by_deadline)),
    ]
}

fn begun<const V: u32>(config: MatchConfig, sim: Town<V>) -> Direct<Town<V>> {
    Direct::around(Match::new(config, sim, Arc::new(0), answers).unwrap(), 60)
}

fn loaded(config: MatchConfig, save: &[u8]) -> Result<Direct<Now>, LoadError> {
    let match_ = Match::load(config, save, Arc::new(0), answers, None)?;
    Ok(Direct::around(match_, 60))
}

fn enter<const V: u32>(all: &mut Direct<Town<V>>, identity: &str) -> Result<SessionId, CloseCode> {
    all.connect(identity, 1, SessionConfig::new(Arc::new(0)))
}

fn player<const V: u32>(all: &Direct<Town<V>>, peer: SessionId) -> PlayerId {
    all.sessions[peer.0 as usize].seats()[0]
}

// Anna has 1,000 gold, Ben 7.
fn evening<const V: u32>(config: &MatchConfig) -> Direct<Town<V>> {
    let mut all = begun::<V>(config.clone(), Town::default());
    for (identity, gold) in [("anna", 1_000), ("ben", 7)] {
        let peer = enter(&mut all, identity).unwrap();
        all.gather();
        all.sessions[peer.0 as usize]
            .command(0, Earn(gold))
            .unwrap();
    }
    all.rest(2 * SECOND);
    assert_eq!(all.match_.world().sim().gold[..2], [1_000, 7]);
    all
}

/// Row 83.
#[test]
fn each_owner_gets_its_player_back_in_any_order_and_under_any_policy() {
    for (way, config) in policies() {
        let before = evening::<2>(&config);
        let save = before.match_.save().unwrap();
        let mut all = loaded(config, &save).unwrap();
        assert_eq!(
            all.match_.world().sim(),
            before.match_.world().sim(),
            "{way}"
        );
        assert!(
            !all.match_.was_joined() && all.match_.is_deserted(),
            "{way}"
        );
        // The match stands still until its first player plays.
        let saved_at = all.match_.world().tick();
        all.rest(60 * SECOND);
        assert_eq!(all.match_.world().tick(), saved_at, "{way}");
        assert_eq!(enter(&mut all, "carl"), Err(CloseCode::Full), "{way}");
        let ben = enter(&mut all, "ben").unwrap();
        all.rest(3 * SECOND);
        assert_eq!(player(&all, ben), BEN, "{way}");
        let anna = enter(&mut all, "anna").unwrap();
        all.gather();
        assert_eq!(player(&all, anna), ANNA, "{way}");
        all.sessions[anna.0 as usize].command(0, Earn(500)).unwrap();
        all.sessions[ben.0 as usize].command(0, Earn(1)).unwrap();
        all.rest(2 * SECOND);
        assert_eq!(all.match_.world().sim().gold[..2], [1_500, 8], "{way}");
        assert_eq!(all.match_.world().sim().left, 0, "{way}");
        for session in &all.sessions {
            let authority = session.authority().unwrap();
            assert_eq!(
                all.match_.digest_at(authority.tick()),
                authority.digest().ok()
            );
        }
    }
}

#[test]
fn an_absent_seat_owner_is_neither_kicked_nor_waited_for_nor_replaced() {
    for (way, config) in policies() {
        let save = evening::<2>(&config).match_.save().unwrap();
        let mut all = loaded(config, &save).unwrap();
        let anna = enter(&mut all, "anna").unwrap();
        all.gather();
        all.rest(300 * SECOND);
        let world = all.match_.world();
        assert_eq!(world.presence(BEN), Presence::Dropped, "{way}");
        assert_eq!(enter(&mut all, "carl"), Err(CloseCode::Full), "{way}");
        assert_eq!(all.match_.free_seats(), 0, "{way}");
        let ticks = world_ticks(&mut all, 10 * SECOND);
        assert!(ticks >= 195, "{way}: {ticks} ticks in 10 s");
        let ben = enter(&mut all, "ben").unwrap();
        all.gather();
        assert_eq!(
            (player(&all, anna), player(&all, ben)),
            (ANNA, BEN),
            "{way}"
        );
        assert_eq!(all.match_.world().presence(BEN), Presence::Present, "{way}");
        assert_eq!(all.match_.world().sim().left, 0, "{way}");
        // From now on the seat is an ordinary one.
        all.match_.kick(ben, CloseCode::Left);
        all.rest(2 * SECOND);
        assert_eq!(all.match_.world().sim().left, 1, "{way}");
        assert_eq!(all.match_.free_seats(), 1, "{way}");
    }
}

fn world_ticks(all: &mut Direct<Now>, time: Duration) -> u32 {
    let before = all.match_.world().tick();
    all.rest(time);
    all.match_.world().tick() - before
}

#[test]
fn a_player_that_left_before_the_save_belongs_to_its_owner_again() {
    let (_, config) = policies().into_iter().next().unwrap();
    let mut before = evening::<2>(&config);
    before.match_.kick(SessionId(1), CloseCode::Left);
    before.rest(SECOND);
    assert_eq!(before.match_.world().presence(BEN), Presence::Absent);
    let save = before.match_.save().unwrap();
    let mut all = loaded(config, &save).unwrap();
    assert_eq!(enter(&mut all, "carl"), Err(CloseCode::Full));
    let ben = enter(&mut all, "ben").unwrap();
    all.gather();
    assert_eq!(player(&all, ben), BEN);
}

#[test]
fn the_host_can_give_an_absent_owners_seat_to_another_identity() {
    let (_, config) = policies().into_iter().nth(1).unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    let mut all = loaded(config, &save).unwrap();
    enter(&mut all, "anna").unwrap();
    all.gather();
    let played = all.match_.give_seat(ANNA, "carl");
    assert!(
        matches!(played, Err(SeatError::Played { .. })),
        "{played:?}"
    );
    let plays = all.match_.give_seat(BEN, "anna");
    assert!(matches!(plays, Err(SeatError::Plays { .. })), "{plays:?}");
    let beyond = all.match_.give_seat(PlayerId(2), "carl");
    assert!(
        matches!(beyond, Err(SeatError::NoSeat { .. })),
        "{beyond:?}"
    );
    let empty = all.match_.give_seat(BEN, "");
    assert_eq!(empty, Err(SeatError::Identity { bytes: 0 }));
    all.match_.give_seat(BEN, "carl").unwrap();
    assert_eq!(enter(&mut all, "ben"), Err(CloseCode::Full));
    let carl = enter(&mut all, "carl").unwrap();
    all.gather();
    assert_eq!(player(&all, carl), BEN);
    assert_eq!(all.match_.world().sim().gold[1], 7);
    assert_eq!(all.match_.world().sim().left, 0);
}

/// A crash while an owner is still away must not cost its seat.
#[test]
fn seats_stay_reserved_in_a_match_resumed_from_its_journal() {
    for (way, config) in policies() {
        let save = evening::<2>(&config).match_.save().unwrap();
        let mut all = loaded(config.clone(), &save).unwrap();
        all.match_.keep_journal().unwrap();
        enter(&mut all, "anna").unwrap();
        all.gather();
        all.rest(30 * SECOND);
        let journal = std::mem::take(&mut all.journal);
        let resumed = Match::<Now>::resume(config, journal, Arc::new(0), answers).unwrap();
        let mut all = Direct::around(resumed.match_, 60);
        let anna = enter(&mut all, "anna").unwrap();
        all.gather();
        all.rest(200 * SECOND);
        assert_eq!(enter(&mut all, "carl"), Err(CloseCode::Full), "{way}");
        let ben = enter(&mut all, "ben").unwrap();
        all.gather();
        assert_eq!(
            (player(&all, anna), player(&all, ben)),
            (ANNA, BEN),
            "{way}"
        );
        assert_eq!(all.match_.world().sim().gold[..2], [1_000, 7], "{way}");
    }
}

#[test]
fn a_kick_ends_the_reservation_of_an_owner() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    let mut all = loaded(config, &save).unwrap();
    enter(&mut all, "anna").unwrap();
    all.gather();
    assert!(all.match_.remove_identity("ben", CloseCode::Kicked));
    all.rest(SECOND);
    let carl = enter(&mut all, "carl").unwrap();
    all.gather();
    assert_eq!(player(&all, carl), BEN);
}

#[test]
fn a_reserved_seat_is_taken_only_by_its_identity() {
    let config = |config: MatchConfig| config.reserve("anna", ANNA).reserve("ben", PlayerId(2));
    let three = MatchConfig {
        players_max: 3,
        ..MatchConfig::action()
    };
    let mut all = begun::<2>(config(three.clone()), Town::default());
    let carl = enter(&mut all, "carl").unwrap();
    assert_eq!(enter(&mut all, "dora"), Err(CloseCode::Full));
    let ben = enter(&mut all, "ben").unwrap();
    let anna = enter(&mut all, "anna").unwrap();
    all.gather();
    assert_eq!(player(&all, carl), BEN);
    assert_eq!(player(&all, ben), PlayerId(2));
    assert_eq!(player(&all, anna), ANNA);
    for wrong in [
        three.clone().reserve("anna", PlayerId(3)),
        three.clone().reserve("", ANNA),
        three.clone().reserve(&"a".repeat(257), ANNA),
        three.reserve("anna", ANNA).reserve("ben", ANNA),
    ] {
        assert!(matches!(wrong.check(), Err(ConfigError::Reserved(_))));
    }
}

#[test]
fn the_new_configuration_may_name_another_owner() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    let mut all = loaded(config.reserve("carl", BEN), &save).unwrap();
    assert_eq!(enter(&mut all, "ben"), Err(CloseCode::Full));
    let carl = enter(&mut all, "carl").unwrap();
    all.gather();
    assert_eq!(player(&all, carl), BEN);
}

/// At any moment, a save holds every order that any client has run.
#[test]
fn a_save_holds_every_order_run_by_a_client() {
    for (way, config) in policies() {
        let mut all = evening::<2>(&config);
        let mut pending = 0;
        for round in 0..240 {
            if round % 7 == 0 {
                all.sessions[0].command(0, Earn(1)).unwrap();
            }
            all.run(1, |_, _| 0);
            let save = all.match_.save().unwrap();
            let loaded = loaded(config.clone(), &save).unwrap();
            let saved = loaded.match_.world().sim().gold[0];
            let seen = all
                .sessions
                .iter()
                .map(|it| it.authority().unwrap().sim().gold[0]);
            assert!(seen.max().unwrap() <= saved, "{way}, frame {round}");
            pending = pending.max(all.match_.world().sim().gold[0] - saved);
            assert_eq!(
                loaded.match_.world().turn().began,
                loaded.match_.world().tick()
            );
        }
        assert!(
            pending <= 1,
            "{way}: at most the unfinished turn is missing"
        );
    }
}

#[test]
fn each_query_gets_one_entry_across_a_save() {
    let (_, config) = policies().into_iter().next().unwrap();
    let asking = Town {
        asks: true,
        ..Town::default()
    };
    let mut all = begun::<2>(config.clone(), asking);
    enter(&mut all, "anna").unwrap();
    all.gather();
    let save = all.match_.save().unwrap();
    let mut all = loaded(config, &save).unwrap();
    assert!(!all.match_.world().open_queries().is_empty());
    enter(&mut all, "anna").unwrap();
    all.gather();
    let world = all.match_.world();
    let (some, none) = world.sim().answered;
    let open = world.open_queries().len() as u32;
    assert_eq!((some + open, none), (world.sim().asked, 0));
}

fn upgrade(old: OldSave<'_>) -> Result<Now, String> {
    let Town {
        gold,
        asked,
        answered,
        ..
    } = old.read::<Town<1>>()?;
    if gold[0] == 0 {
        return Err("no gold".into());
    }
    let lost = old.unanswered.len() as u32;
    Ok(Town {
        gold,
        silver: vec![u64::from(old.version); 3],
        asked,
        answered: (answered.0, answered.1 + lost),
        ..Town::default()
    })
}

#[test]
fn an_older_save_is_refused_with_a_reason_or_upgraded() {
    let (_, config) = policies().into_iter().nth(1).unwrap();
    let mut all = evening::<1>(&config);
    let save = all.match_.save().unwrap();
    let refused = loaded(config.clone(), &save).err().unwrap().to_string();
    for words in ["version 1", "version 2", "upgrade function"] {
        assert!(refused.contains(words), "{refused}");
    }
    let load = |save: &[u8], rules, upgrade| {
        Match::<Now>::load(config.clone(), save, Arc::new(rules), answers, upgrade)
    };
    let mut new = Direct::around(load(&save, 0, Some(upgrade as _)).unwrap(), 60);
    assert_eq!(new.match_.world().sim().silver, [1, 1, 1]);
    let ben = enter(&mut new, "ben").unwrap();
    enter(&mut new, "anna").unwrap();
    new.gather();
    assert_eq!(player(&new, ben), BEN);
    new.sessions[0].command(0, Earn(1)).unwrap();
    new.rest(SECOND);
    assert_eq!(new.match_.world().sim().gold[..2], [1_000, 8]);
    // Its own save is of the new version, so the old program refuses it.
    let newer = new.match_.save().unwrap();
    let newer = Match::<Town<1>>::load(config.clone(), &newer, Arc::new(0), answers, None);
    assert!(matches!(
        newer,
        Err(LoadError::Newer {
            saved: 2,
            version: 1
        })
    ));
    // Different rules also require an upgrade function.
    let same = evening::<2>(&config).match_.save().unwrap();
    assert!(matches!(load(&same, 1, None), Err(LoadError::Rules)));
    assert!(load(&same, 1, Some(upgrade as _)).is_ok());
    // The author's own error message.
    let poor = begun::<1>(config.clone(), Town::default());
    let poor = load(&poor.match_.save().unwrap(), 0, Some(upgrade as _));
    assert_eq!(
        poor.err().unwrap().to_string(),
        "the saved game cannot be upgraded: no gold"
    );
    all.rest(SECOND);
}

#[test]
fn an_upgrade_gets_the_unanswered_queries() {
    let (_, config) = policies().into_iter().next().unwrap();
    let asking = Town {
        asks: true,
        ..Town::default()
    };
    let mut all = begun::<1>(config.clone(), asking);
    enter(&mut all, "anna").unwrap();
    all.gather();
    all.sessions[0].command(0, Earn(1)).unwrap();
    all.rest(SECOND);
    let save = all.match_.save().unwrap();
    let match_ = Match::<Now>::load(config, &save, Arc::new(0), answers, Some(upgrade as _));
    let match_ = match_.unwrap();
    let sim = match_.world().sim();
    assert!(match_.world().open_queries().is_empty());
    assert!(sim.answered.1 > 0);
    assert_eq!(sim.answered.0 + sim.answered.1, sim.asked);
}

#[test]
fn unfit_saves_are_refused_with_a_reason() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    let other = |_: &HookContext<'_, Counter>, _, _: &Never| Decision::Unanswered;
    let other = Match::<Counter>::load(config.clone(), &save, Arc::new(()), other, None);
    let other = other.err().unwrap().to_string();
    assert!(
        other.contains("\"counter\"") && other.contains("\"town\""),
        "{other}"
    );
    let one = MatchConfig {
        players_max: 1,
        ..config.clone()
    };
    let few = loaded(one, &save).err().unwrap();
    assert!(
        matches!(
            few,
            LoadError::Seats {
                seats: 1,
                player: BEN
            }
        ),
        "{few}"
    );
    let mut all = begun::<2>(config.clone(), Town::default());
    all.match_.keep_journal().unwrap();
    all.serve();
    let journal = loaded(config.clone(), &all.journal).err().unwrap();
    assert!(
        matches!(journal, LoadError::Format(SaveFormatError::Journalled)),
        "{journal}"
    );
    let other = loaded(config.clone(), b"a picture").err().unwrap();
    assert!(
        matches!(other, LoadError::Format(SaveFormatError::NotASave)),
        "{other}"
    );
    let resumed = Match::<Now>::resume(config, save, Arc::new(0), answers)
        .err()
        .unwrap();
    assert!(resumed.to_string().contains("a saved game"), "{resumed}");
}

fn labelled(label: String) -> Direct<Now> {
    let (_, config) = policies().into_iter().next().unwrap();
    let sim = Town {
        label,
        silver: vec![7; 100_000],
        ..Town::default()
    };
    let mut all = begun::<2>(config, sim);
    for identity in ["anna", "ben"] {
        enter(&mut all, identity).unwrap();
        all.gather();
    }
    all
}

/// Row 83: a list of saves is shown without loading worlds.
#[test]
fn the_header_of_a_save_has_its_label_and_owners() {
    let all = labelled("year 3".to_owned());
    let save = all.match_.save().unwrap();
    assert!(save.len() > SAVE_INFO_BYTES_MAX);
    let info = SaveInfo::read(&save[..SAVE_INFO_BYTES_MAX]).unwrap();
    assert_eq!(info, SaveInfo::read(&save).unwrap());
    assert_eq!((&*info.game, info.version), ("town", 2));
    assert_eq!(info.label, "map 0, year 3");
    assert_eq!(info.tick, all.match_.world().tick());
    let owners = info
        .owners
        .iter()
        .map(|(player, owner)| (*player, &**owner));
    assert!(owners.eq([(ANNA, "anna"), (BEN, "ben")]));
    // Terminal escapes in a foreign file.
    let foreign = labelled("\u{1b}[31mred\n".to_owned())
        .match_
        .save()
        .unwrap();
    let foreign = SaveInfo::read(&foreign).unwrap().label;
    assert_eq!(foreign, "map 0, \\u{1b}[31mred\\n");
    let unnamed = labelled(String::new()).match_.save().unwrap();
    assert_eq!(SaveInfo::read(&unnamed).unwrap().label, "");
}

#[test]
fn a_label_that_is_too_long_is_refused_with_a_reason() {
    let fits = labelled("x".repeat(256 - "map 0, ".len()));
    assert_eq!(
        SaveInfo::read(&fits.match_.save().unwrap())
            .unwrap()
            .label
            .len(),
        256
    );
    let refused = labelled("x".repeat(300)).match_.save();
    let refused = refused.unwrap_err().to_string();
    for words in ["at most 256 bytes", "got 307", "save_label", "shorter"] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_truncated_or_altered_header_is_refused_or_listed_without_a_panic() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = labelled("year 3".to_owned()).match_.save().unwrap();
    let world = records(&save)
        .map(|entry| entry.unwrap())
        .find(|entry| matches!(entry.record, Record::World { .. }))
        .unwrap();
    let head = world.offset as usize;
    let info = SaveInfo::read(&save).unwrap();
    for end in 0..=head {
        let read = SaveInfo::read(&save[..end]);
        assert_ne!(read.as_ref(), Ok(&info), "{end} bytes");
    }
    for end in head + 1..head + 50 {
        assert_eq!(
            SaveInfo::read(&save[..end]).as_ref(),
            Ok(&info),
            "{end} bytes"
        );
    }
    for at in 0..head {
        for bit in [0, 3, 7] {
            let mut other = save[..SAVE_INFO_BYTES_MAX].to_vec();
            other[at] ^= 1 << bit;
            assert!(SaveInfo::read(&other).is_err(), "bit {bit} of byte {at}");
        }
    }
    let mut luck = Mwc::seed(84);
    for _ in 0..2_000 {
        let _ = SaveInfo::read(&altered(&save[..], &mut luck));
    }
    let mut journalled = begun::<2>(config, Town::default());
    journalled.match_.keep_journal().unwrap();
    journalled.serve();
    assert_eq!(
        SaveInfo::read(&journalled.journal),
        Err(SaveFormatError::Journalled)
    );
    assert_eq!(SaveInfo::read(b"a picture"), Err(SaveFormatError::NotASave));
}

#[test]
fn a_truncated_or_altered_save_is_refused() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    for end in 0..save.len() {
        assert!(loaded(config.clone(), &save[..end]).is_err(), "{end} bytes");
    }
    let mut longer = save.clone();
    longer.push(0);
    assert!(loaded(config.clone(), &longer).is_err());
    for at in 0..save.len() {
        for bit in [0, 3, 7] {
            let mut other = save.clone();
            other[at] ^= 1 << bit;
            let read = loaded(config.clone(), &other);
            assert!(read.is_err(), "bit {bit} of byte {at}");
        }
    }
}

// A hostile file can have valid checksums, so here its records are altered and the checksums recomputed.
#[test]
fn an_altered_save_with_valid_checks_is_refused_or_plays_without_a_panic() {
    let (_, config) = policies().into_iter().next().unwrap();
    let save = evening::<2>(&config).match_.save().unwrap();
    let mut luck = Mwc::seed(83);
    let (mut refused, mut played) = (0, 0);
    for _ in 0..2_000 {
        let Ok(mut all) = loaded(config.clone(), &altered(&save, &mut luck)) else {
            refused += 1;
            continue;
        };
        played += 1;
        let _ = enter(&mut all, "anna");
        all.rest(SECOND / 4);
        let _ = all.match_.save();
    }
    assert!(refused > 100 && played > 100, "{refused}, {played}");
}

fn altered(save: &[u8], luck: &mut Mwc) -> Vec<u8> {
    let mut entries = records(save).map(|entry| entry.unwrap().record);
    let Some(Record::Start(start)) = entries.next() else {
        panic!("a save begins with its start");
    };
    let mut file = Vec::new();
    let mut writer = JournalWriter::start(&start, &mut file).unwrap();
    let victim = luck.below(5);
    for (n, record) in (0..).zip(entries) {
        let mut change = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            if n == victim && !bytes.is_empty() {
                let at = luck.below(bytes.len() as u32) as usize;
                match luck.below(4) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, 0xff),
                    _ => bytes[at] = luck.below(256) as u8,
                }
            }
            bytes
        };
        let changed;
        let record = match record {
            Record::Shell(shell) => {
                changed = change(shell);
                Record::Shell(&changed)
            }
            Record::World { tick, bytes } => {
                changed = change(bytes);
                let bytes = &changed;
                Record::World { tick, bytes }
            }
            Record::Reserved { identity, player } => {
                changed = change(&[player.0]);
                let number = changed.first().map_or(0, |number| number % 16);
                let player = PlayerId(number);
                Record::Reserved { player, identity }
            }
            Record::Label(label) => {
                changed = change(label.as_bytes());
                Record::Label(str::from_utf8(&changed).unwrap_or(label))
            }
            record => record,
        };
        writer.append(&record, &mut file).unwrap();
    }
    file
}

#[test]
fn a_paused_and_slowed_game_continues_at_the_speed_of_its_new_match() {
    let (_, config) = policies().into_iter().next().unwrap();
    let mut before = evening::<2>(&config);
    before
        .match_
        .request(MatchRequest::Tick(SECOND / 10))
        .unwrap();
    before.rest(SECOND);
    before.match_.request(MatchRequest::Pause).unwrap();
    before.rest(SECOND);
    let save = before.match_.save().unwrap();
    let mut all = loaded(config.clone(), &save).unwrap();
    enter(&mut all, "anna").unwrap();
    enter(&mut all, "ben").unwrap();
    all.gather();
    assert!(world_ticks(&mut all, 2 * SECOND) > 100);
    assert_eq!(all.match_.world().tick_length(), config.tick);
}

/// Row 20. A loaded match continues at the tick of its save, however late.
#[test]
fn a_loaded_match_continues_at_the_tick_of_the_save() {
    let (_, config) = policies().into_iter().next().unwrap();
    let before = evening::<2>(&config);
    let save = before.match_.save().unwrap();
    let mut all = loaded(config, &save).unwrap();
    all.now = 604_800 * SECOND;
    enter(&mut all, "ben").unwrap();
    enter(&mut all, "anna").unwrap();
    let began = all.match_.world().tick();
    assert!(began > Tick(0) && before.match_.world().tick() - began <= 2);
    all.rest(5 * SECOND);
    assert_eq!(all.match_.playing().len(), 2);
    assert_eq!(all.match_.world().sim().gold[..2], [1_000, 7]);
}

fn saved(by: u8) -> Event {
    let by = Some(PlayerId(by));
    let request = MatchRequest::Save;
    Event::Request { by, request }
}

fn refused(why: CommandRefusal) -> Event {
    let request = MatchRequest::Save;
    Event::RequestRefused { request, why }
}

fn received_events(rig: &Rig<History>, client: usize) -> Vec<Event> {
    let of_save = |event: &&Event| match event {
        Event::Request { request, .. } | Event::RequestRefused { request, .. } => {
            *request == MatchRequest::Save
        }
        _ => false,
    };
    rig.clients[client]
        .events
        .iter()
        .filter(of_save)
        .cloned()
        .collect()
}

fn played(seed: u64, command_delay: u8) -> Rig<History> {
    let policies = match command_delay {
        0 => MatchConfig::action(),
        command_delay => MatchConfig {
            command_delay,
            ..MatchConfig::strategy()
        },
    };
    let mut rig = Rig::<History>::new(RigConfig {
        policies,
        clients: 4,
        journal: true,
        ..RigConfig::new(seed, LinkProfile::WAN)
    });
    rig.run(SECOND * 8);
    assert!(rig.all_play());
    rig
}

#[test]
fn a_player_saves_the_match_and_all_clients_get_its_name() {
    // Row 83. The referee decides, the host writes the save, and all clients receive the name of the player that saved.
    // The match is not affected.
    for command_delay in [0, 2] {
        let mut rig = played(31, command_delay);
        let ask = |rig: &mut Rig<History>, client: usize, request| {
            rig.clients[client].session.request(0, request).unwrap();
            rig.run(SECOND);
        };
        ask(&mut rig, 0, MatchRequest::Save);
        assert_eq!(
            received_events(&rig, 0),
            [refused(CommandRefusal::Unavailable)]
        );
        assert!(rig.match_.request(MatchRequest::Save).is_err());
        rig.match_.offer_saves();
        // The rig's referee refuses the second player.
        ask(&mut rig, 1, MatchRequest::Save);
        assert_eq!(
            received_events(&rig, 1),
            [refused(CommandRefusal::Referee(7))]
        );
        assert!(rig.saves.is_empty());
        ask(&mut rig, 2, MatchRequest::Save);
        ask(&mut rig, 0, MatchRequest::Pause);
        ask(&mut rig, 3, MatchRequest::Save);
        rig.match_.request(MatchRequest::Save).unwrap();
        rig.run(SECOND);
        for client in 0..4 {
            let by_host = Event::Request {
                by: None,
                request: MatchRequest::Save,
            };
            let all = received_events(&rig, client);
            assert_eq!(all[all.len() - 3..], [saved(2), saved(3), by_host]);
        }
        let by: Vec<_> = rig.saves.iter().map(|(by, _)| *by).collect();
        assert_eq!(by, [Some(PlayerId(2)), Some(PlayerId(3)), None]);
        // Each save can be loaded, and holds a world of the match.
        let (rules, _) = rig.match_.origin();
        for (_, save) in &rig.saves {
            let config = rig.match_.config().clone();
            let resolver = History::resolver(&rules, 1);
            let loaded = Match::<History>::load(config, save, rules.clone(), resolver, None);
            let loaded = loaded.unwrap();
            let sim = loaded.world().sim();
            let tick = loaded.world().tick();
            let mut replay = Replay::<History>::open(&rig.journal, &rules).unwrap();
            replay.seek(tick).unwrap();
            assert_eq!(digest(replay.world().sim()), digest(sim), "{tick:?}");
            assert_eq!(loaded.seat_holders().count(), 4);
        }
        ask(&mut rig, 0, MatchRequest::Resume);
        rig.converge();
        rig.check_journal();
    }
}

#[test]
fn a_flood_of_saves_is_cut_off_for_its_player_only() {
    let mut rig = played(32, 0);
    rig.match_.offer_saves();
    for _ in 0..30 {
        rig.clients[0]
            .session
            .request(0, MatchRequest::Save)
            .unwrap();
        rig.run(SECOND);
    }
    assert_eq!(rig.saves.len(), 2, "in a minute");
    assert_eq!(received_events(&rig, 0).len(), 30);
    assert!(received_events(&rig, 0).contains(&refused(CommandRefusal::Bounds)));
    assert_eq!(received_events(&rig, 3), [saved(0), saved(0)]);
    rig.clients[2]
        .session
        .request(0, MatchRequest::Save)
        .unwrap();
    rig.run(SECOND);
    assert_eq!(received_events(&rig, 3).last(), Some(&saved(2)));
    rig.run(SECOND * 60);
    rig.clients[0]
        .session
        .request(0, MatchRequest::Save)
        .unwrap();
    rig.run(SECOND);
    assert_eq!(received_events(&rig, 3).last(), Some(&saved(0)));
    rig.converge();
}
