//! The order of tickets in isolation: a server that crashes, makers with their own clocks, and clients that lose their
//! tickets.

use alloc::string::String;
use alloc::vec;

use proptest::prelude::*;

use super::*;

const NOW_S: u64 = 1_700_000_000;

fn stamp(lineage: u64, generation: u32) -> Stamp {
    Stamp {
        lineage,
        generation,
        issued_unix_ms: NOW_S * 1_000,
        expires_unix_s: NOW_S + 600,
    }
}

fn below(lineage: u64, generation: u32) -> Ruling {
    Ruling::Below {
        lineage,
        generation,
        until_unix_s: NOW_S + 600 + HEADROOM_S,
    }
}

#[test]
fn a_safe_generation_ends_lower_ones_and_a_first_use_ends_earlier_lineages() {
    let mut known = Lineages::default();
    assert_eq!(known.make_safe(&stamp(1, 0)), [below(1, 0)]);
    assert_eq!(
        known.make_safe(&stamp(1, 0)),
        [],
        "a repeat changes nothing"
    );
    assert_eq!(known.make_safe(&stamp(1, 3)), [below(1, 3)]);
    assert!(known.refuses(&stamp(1, 2)) && !known.refuses(&stamp(1, 3)));
    assert_eq!(known.make_safe(&stamp(1, 2)), [], "it is out of date");
    assert!(!known.refuses(&stamp(2, 0)), "not seen yet");
    assert_eq!(
        known.make_safe(&stamp(2, 0)),
        [below(1, WHOLE), below(2, 0)]
    );
    assert!(known.refuses(&stamp(1, 3)) && known.refuses(&stamp(1, 99)));
    assert!(!known.refuses(&stamp(2, 0)));
}

/// Findings O4, K3-D: the order depended on the clocks of makers and servers.
#[test]
fn the_date_of_a_ticket_is_ignored_without_a_revocation() {
    let mut known = Lineages::default();
    for (lineage, issued_unix_ms) in [(1, u64::MAX), (2, NOW_S * 1_000), (3, 0)] {
        let fresh = Stamp {
            issued_unix_ms,
            ..stamp(lineage, 0)
        };
        assert!(!known.refuses(&fresh));
        known.make_safe(&fresh);
    }
    assert!(known.refuses(&Stamp {
        issued_unix_ms: u64::MAX,
        ..stamp(1, 0)
    }));
}

#[test]
fn a_revocation_covers_only_seen_lineages_and_earlier_tickets() {
    let mut known = Lineages::default();
    known.make_safe(&stamp(1, 0));
    let at = NOW_S * 1_000 + REVOKE_SLACK_MS;
    let revoked = Ruling::MadeBefore { unix_ms: at };
    assert_eq!(known.revoke(at), [below(1, WHOLE), revoked]);
    assert_eq!(known.revoke(at - 1), [], "what is known only rises");
    let later = Stamp {
        issued_unix_ms: at,
        ..stamp(3, 0)
    };
    assert!(known.refuses(&stamp(2, 0)) && !known.refuses(&later));
    assert_eq!(
        known.make_safe(&stamp(2, 0)),
        [],
        "it ends no other lineage"
    );
    // A connected session gets tickets of a new lineage, dated after the revocation.
    let next = known.next(Some(&stamp(1, 0)), Some(&stamp(1, 4)));
    assert_eq!((next.lineage, next.generation), (None, 0));
    assert_eq!(next.issued_since_unix_ms, at);
    assert_eq!(next.expires_unix_s_min, NOW_S + 600);
    let handed = Stamp {
        issued_unix_ms: at,
        ..stamp(7, 0)
    };
    let next = known.next(Some(&stamp(1, 0)), Some(&handed));
    assert_eq!((next.lineage, next.generation), (Some(7), 1));
}

#[test]
fn generations_rise_across_the_sessions_of_a_lineage() {
    let mut known = Lineages::default();
    known.make_safe(&stamp(1, 0));
    for generation in 1..=5 {
        let next = known.next(Some(&stamp(1, 0)), Some(&stamp(1, 0)));
        assert_eq!((next.lineage, next.generation), (Some(1), generation));
        // The client is killed before it stores the ticket, and reconnects with the first one.
        known.note_handed(&stamp(1, generation));
    }
}

#[test]
fn a_session_lasting_days_is_recorded_hourly_and_stays_known() {
    let mut known = Lineages::default();
    known.make_safe(&stamp(1, 0));
    let mut recorded = 0;
    for tens in 0..3 * 8_640 {
        let handed = Stamp {
            expires_unix_s: NOW_S + tens * 10 + 1_200,
            ..stamp(1, tens as u32 + 1)
        };
        recorded += u32::from(known.note_handed(&handed).is_some());
        known.forget(NOW_S + tens * 10);
    }
    assert!((60..=80).contains(&recorded), "{recorded} in three days");
    assert!(known.has_seen(1));
}

#[test]
fn a_clock_set_back_by_a_day_revives_no_ticket() {
    let mut known = Lineages::default();
    known.make_safe(&stamp(1, 0));
    known.make_safe(&stamp(1, 1));
    let forgets_at = NOW_S + 600 + HEADROOM_S + CLOCK_SLACK_S;
    known.forget(forgets_at - 1);
    assert!(known.refuses(&stamp(1, 0)));
    known.forget(forgets_at);
    assert!(!known.has_seen(1));
}

#[test]
fn rulings_can_be_merged_in_any_order_and_applied_twice() {
    let all = [
        below(1, 3),
        below(1, 1),
        Ruling::MadeBefore { unix_ms: 9 },
        Ruling::MadeBefore { unix_ms: 4 },
        below(2, WHOLE),
    ];
    let mut forth = Lineages::default();
    let mut back = Lineages::default();
    for n in 0..all.len() {
        forth.apply(&all[n]);
        back.apply(&all[all.len() - 1 - n]);
    }
    assert_eq!(forth, back);
    assert!(!forth.apply(&all[0]));
    let mut again = Lineages::default();
    forth
        .rulings()
        .for_each(|ruling| assert!(again.apply(&ruling)));
    assert_eq!(again, forth);
    for (one, other) in [(3, 5), (5, 3)] {
        assert_eq!(below(1, one).and(below(1, other)), below(1, 5));
    }
    let [early, late] = [4, 9].map(|unix_ms| Ruling::MadeBefore { unix_ms });
    assert_eq!(late.and(early), late);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// The error of a maker's clock and a ticket's lifetime, in seconds: the maker issues the player this ticket.
    Issue(i64, u64),
    Come,
    /// The player joins with a ticket that it once had.
    Copy(usize),
    /// The session gets a ticket. The flags: whether the client stores it, and whether its report reaches the server.
    Hand(bool, bool),
    Crash,
    Restart,
    Wait(u64),
    Set(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let day = 86_400;
    let clocks = prop_oneof![Just(-300), Just(0), Just(400 * day), -day..day];
    prop_oneof![
        2 => (clocks, 3 * 86_400..30 * 86_400_u64).prop_map(|(off, life)| Act::Issue(off, life)),
        4 => Just(Act::Come),
        3 => (0..30_usize).prop_map(Act::Copy),
        6 => any::<(bool, bool)>().prop_map(|(stored, reported)| Act::Hand(stored, reported)),
        2 => Just(Act::Crash),
        1 => Just(Act::Restart),
        2 => prop_oneof![Just(3), Just(1_500), Just(21_600)].prop_map(Act::Wait),
        1 => prop_oneof![Just(day), Just(-day), -3_600..3_600_i64].prop_map(Act::Set),
    ]
}

struct Scenario {
    table: LineageTable<String>,
    journal: Vec<Ruling>,
    /// True time, in seconds since the Unix epoch; the server's clock is off by `set_s`.
    now_s: u64,
    set_s: i64,
    drawn: u64,
    /// The ticket that the player would use: the last one given to it, or the newest one stored since.
    held: Option<Stamp>,
    /// The ticket that opened the session, and the ticket that the session got last.
    session: Option<(Stamp, Stamp)>,
    /// Tickets that opened sessions and have been replaced since.
    replaced: Vec<Stamp>,
    /// Tickets that opened sessions and have not been replaced.
    used: Vec<Stamp>,
}

impl Scenario {
    fn clock_s(&self) -> u64 {
        self.now_s.saturating_add_signed(self.set_s)
    }

    fn safe(&mut self, stamp: &Stamp) {
        let anna = String::from("anna");
        let rulings = self.table.change(&anna, |known| known.make_safe(stamp));
        self.journal.extend(rulings);
        let (is_it, others) = self.used.iter().partition(|used| *used == stamp);
        let _: &Vec<Stamp> = &is_it;
        self.replaced.extend::<Vec<Stamp>>(others);
        self.used = is_it;
    }

    fn lets_in(&self, stamp: &Stamp) -> bool {
        let expired = self.clock_s() >= stamp.expires_unix_s;
        !expired && !self.table.refuses(&String::from("anna"), stamp)
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        let anna = String::from("anna");
        match act {
            Act::Issue(off, life_s) => {
                self.drawn += 1;
                let maker_s = self.now_s.saturating_add_signed(off);
                self.held = Some(Stamp {
                    lineage: self.drawn,
                    generation: 0,
                    issued_unix_ms: maker_s * 1_000,
                    expires_unix_s: maker_s + life_s,
                });
            }
            Act::Come => {
                let Some(held) = self.held else { return Ok(()) };
                let expired = self.clock_s() >= held.expires_unix_s;
                prop_assert!(expired || self.lets_in(&held), "locked out: {held:?}");
                if !expired {
                    self.used.retain(|used| *used != held);
                    self.used.push(held);
                    self.session = Some((held, held));
                    self.safe(&held);
                }
            }
            Act::Copy(at) => {
                if let Some(old) = self.replaced.get(at % self.replaced.len().max(1)) {
                    prop_assert!(!self.lets_in(old), "let in: {old:?}");
                }
            }
            Act::Hand(is_stored, is_reported) => {
                let Some((came_by, newest)) = self.session else {
                    return Ok(());
                };
                let known = self.table.get(&anna).cloned().unwrap_or_default();
                let next = known.next(Some(&came_by), Some(&newest));
                let clock_s = self.clock_s();
                let handed = Stamp {
                    lineage: next.lineage.expect("nothing was revoked"),
                    generation: next.generation,
                    issued_unix_ms: clock_s * 1_000,
                    expires_unix_s: (clock_s + 1_200).max(next.expires_unix_s_min),
                };
                // A replacing ticket lives at least as long as the replaced one.
                prop_assert!(handed.expires_unix_s >= came_by.expires_unix_s);
                self.session = Some((came_by, handed));
                let ruling = self.table.change(&anna, |known| known.note_handed(&handed));
                self.journal.extend(ruling);
                // By now, the player may have a ticket of another lineage, which it would prefer.
                if is_stored && self.held.is_some_and(|held| held.lineage == handed.lineage) {
                    self.held = Some(handed);
                    if is_reported {
                        self.used.push(handed);
                        self.safe(&handed);
                    }
                }
            }
            Act::Crash => self.session = None,
            Act::Restart => {
                self.session = None;
                self.table = LineageTable::new(100);
                for ruling in &self.journal {
                    self.table.apply(&anna, ruling);
                }
            }
            Act::Wait(s) => self.now_s += s,
            // At most half a day from the true time, in total.
            Act::Set(s) => self.set_s = (self.set_s + s).clamp(-86_400 / 2, 86_400 / 2),
        }
        self.table.forget(self.clock_s());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The ticket that a player would use admits it until it expires, even after crashes and with wrong maker clocks. A
    /// used and replaced ticket does not.
    #[test]
    fn a_current_ticket_admits_its_holder_and_a_replaced_one_does_not(acts in prop::collection::vec(act(), 1..120)) {
        let mut world = Scenario {
            table: LineageTable::new(100),
            journal: vec![],
            now_s: NOW_S,
            set_s: 0,
            drawn: 0,
            held: None,
            session: None,
            replaced: vec![],
            used: vec![],
        };
        for act in acts {
            world.act(act)?;
        }
    }
}
