//! Rounds of one match, called directly: the end, the next due time, and the orders to the I/O task.

use std::path::PathBuf;

use tokio::sync::mpsc;
use twinstep_core::testing::doc::Counter;

use super::*;
use crate::io::RESERVED;
use crate::journal_file::Durability;
use crate::logged::CountedLines;
use crate::match_inbox::{InboxSender, match_inbox};
use crate::routes::tests::ticket;
use crate::tickets::{TicketOffice, TicketPrint};
use crate::waker::waker;
use crate::workers::Workers;
use twinstep_server::config::{MatchConfig, TurnLength};
use twinstep_server::hooks::{Decision, HookContext};

const MS: Duration = Duration::from_millis(1);
const BACK_AFTER: Duration = Duration::from_secs(7);

/// A match without a worker, and the other ends of all its channels.
struct Rig {
    runner: Runner<Counter>,
    clock: HostClock,
    sender: InboxSender,
    told: mpsc::Receiver<ToIo>,
    closing: watch::Sender<Option<Ending>>,
    operator_orders: mpsc::Sender<MatchOrder>,
    errand: mpsc::Sender<Errand<Counter>>,
}

impl Rig {
    fn new(tick: Duration, turn: u8, journal: Option<Journal>) -> Rig {
        let config = MatchConfig {
            tick,
            turn: TurnLength::Fixed(turn),
            ..MatchConfig::action()
        };
        let nobody = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
        let mut match_ = Match::new(config, Counter::default(), Arc::new(()), nobody).unwrap();
        if journal.is_some() {
            match_.keep_journal().unwrap();
        }
        let clock = HostClock::start();
        // The workers have no threads, so no round runs unless the test calls it.
        let workers = Workers::new("rig", 1, clock);
        let slot = workers.slot();
        let (waker, listening) = waker(workers, slot);
        let (sender, inbox) = match_inbox(waker, listening);
        let (errand, errands) = mpsc::channel(4);
        let (to_io, told) = mpsc::channel(RESERVED + 64);
        let (wish, operator_orders) = mpsc::channel(4);
        let closing = watch::Sender::new(None);
        let ends = Ends {
            clock,
            inbox,
            errands,
            to_io,
            closing: closing.subscribe(),
            pulse: Arc::default(),
            observer: Arc::new(()),
            operator_orders,
            back_after: BACK_AFTER,
            pool: ThreadPool::new(),
            encoders: Limited::new(ThreadPool::new(), 1),
            saves: None,
            load_monitor: LoadMonitor::default(),
            phase: Phase::of(slot),
        };
        let tickets = TicketOffice::start(TicketPrint::of_a_test(Counter::NAME), None);
        let files = IncidentFiles {
            id: MatchId(1),
            folder: None,
            journal: None,
            about: String::new(),
            recent: Arc::default(),
            observer: Arc::new(()),
        };
        Rig {
            runner: Runner::new(MatchId(1), match_, journal, tickets, files, ends),
            clock,
            sender,
            told,
            closing,
            operator_orders: wish,
            errand,
        }
    }

    fn round(&mut self) -> Result<Duration, Option<CloseCode>> {
        match self.runner.round() {
            Next::At(due) => Ok(due),
            Next::Over(code) => Err(code),
        }
    }

    fn play(&mut self, mut done: impl FnMut(&Match<Counter>) -> bool) -> Option<CloseCode> {
        loop {
            match self.round() {
                Err(code) => return Some(code.expect("it was not abandoned")),
                Ok(_) if done(&self.runner.match_) => return None,
                Ok(due) => std::thread::sleep(due.saturating_sub(self.clock.now())),
            }
        }
    }

    /// Runs a round, then sleeps until the next due time minus `before`. Returns the time taken beyond that sleep.
    fn sleep_until_due(&mut self, before: Duration) -> Duration {
        let began = self.clock.now();
        let due = self.round().unwrap().saturating_sub(before);
        let sleep = due.saturating_sub(self.clock.now());
        std::thread::sleep(sleep);
        self.clock.now() - began - sleep
    }

    fn tick(&self) -> u32 {
        self.runner.match_.world().tick().0
    }
}

struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("twinstep-rounds-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        File(path)
    }

    fn journal(&self) -> Journal {
        Journal::create(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_match_asked_to_end_finishes_its_turn_first() {
    for has_journal in [false, true] {
        let says = match has_journal {
            false => CloseCode::Draining,
            true => CloseCode::Restarting {
                after_s: BACK_AFTER.as_secs() as u16,
            },
        };
        // A busy machine may be too slow to play a turn within the patience.
        let is_in_time = || {
            let file = File::new("ends");
            let mut rig = Rig::new(10 * MS, 8, has_journal.then(|| file.journal()));
            assert_eq!(rig.play(|match_| match_.world().tick().0 % 8 == 2), None);
            let asked = rig.clock.now();
            rig.closing
                .send_replace(Some(Ending::Told(CloseCode::Draining)));
            assert_eq!(rig.play(|_| false), Some(says));
            let is_in_time = rig.clock.now() < asked + SEAL_PATIENCE;
            assert!(!is_in_time || rig.tick().is_multiple_of(8), "amid a turn");
            is_in_time
        };
        assert!((0..50).any(|_| is_in_time()));
    }
}

/// Finding K3-H: the disk of one match delayed the close codes of the others.
#[test]
fn a_match_sends_its_close_code_before_its_journal_is_finished() {
    let file = File::new("parting");
    let mut rig = Rig::new(20 * MS, 2, Some(file.journal()));
    let peer = SessionId(7);
    rig.runner
        .match_
        .connect(Duration::ZERO, peer, "anna", 1)
        .unwrap();
    rig.closing
        .send_replace(Some(Ending::Told(CloseCode::Draining)));
    let kept = CloseCode::Restarting {
        after_s: BACK_AFTER.as_secs() as u16,
    };
    let mut told = Vec::new();
    let due = loop {
        let due = rig.round().expect("it has not let go of its journal");
        let orders = std::iter::from_fn(|| rig.told.try_recv().ok());
        told.extend(orders.filter_map(|order| match order {
            ToIo::Close(peer, code) => Some((peer, code)),
            _ => None,
        }));
        if !told.is_empty() {
            break due;
        }
        std::thread::sleep(due.saturating_sub(rig.clock.now()));
    };
    assert_eq!(told, [(peer, kept)]);
    let wait = due.saturating_sub(rig.clock.now());
    assert!(wait > 20 * MS, "others say theirs meanwhile: {wait:?}");
    assert_eq!(rig.round(), Err(Some(kept)));
}

#[test]
fn a_match_with_long_turns_does_not_wait_for_the_end_of_a_turn() {
    let mut rig = Rig::new(1_000 * MS, 20, None);
    assert_eq!(rig.play(|match_| !match_.is_between_turns()), None);
    rig.closing
        .send_replace(Some(Ending::Told(CloseCode::Draining)));
    let asked = rig.clock.now();
    assert_eq!(rig.play(|_| false), Some(CloseCode::Draining));
    let took = rig.clock.now() - asked;
    assert!(took >= SEAL_PATIENCE, "{took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn an_abandoned_match_sends_no_close_code() {
    let mut rig = Rig::new(10 * MS, 2, None);
    rig.round().unwrap();
    rig.closing.send_replace(Some(Ending::Abandoned));
    assert_eq!(rig.round(), Err(None));
    rig.runner.ends.pulse.condemn();
    assert_eq!(
        rig.round(),
        Err(Some(CloseCode::Fault)),
        "it wakes too late"
    );
}

#[test]
fn a_match_handles_events_long_before_a_long_tick_is_due() {
    let mut rig = Rig::new(1_000 * MS, 1, None);
    rig.round().unwrap();
    let due = rig.round().unwrap();
    assert!(due <= rig.clock.now() + REST, "{due:?}");
    assert!(due > Duration::ZERO, "no round is due");
}

/// The match is run every few ticks, and catches up. A packet wakes it immediately.
#[test]
fn a_match_without_clients_rests_until_a_packet_arrives() {
    let mut rig = Rig::new(Duration::from_nanos(16_666_667), 2, None);
    let began = rig.clock.now();
    rig.round().unwrap();
    let late = rig.runner.ends.pulse.glance().lateness;
    let mut rounds = 0;
    while rig.tick() < 60 {
        rig.sleep_until_due(Duration::ZERO);
        // Each round runs late.
        std::thread::sleep(30 * MS);
        rounds += 1;
    }
    assert!(rounds <= 20, "{rounds} rounds for 60 ticks");
    assert!(rig.clock.now() - began > 800 * MS, "no tick is early");
    assert_eq!(rig.runner.ends.pulse.glance().lateness, late);
    // An inspection arrives after all events were handled, and before the rest.
    let looks = |rig: &Rig| rig.errand.try_send(Box::new(|_| {})).is_ok();
    assert!(looks(&rig));
    assert_eq!(rig.runner.next_round(false), Duration::ZERO);
    rig.round().unwrap();
    let hears = || rig.sender.send(FromIo::Gone(SessionId(1)));
    assert!(hears());
    assert_eq!(rig.runner.next_round(false), Duration::ZERO);
}

/// A round runs only when packets are due, twice a second. The match catches up as if it had not rested.
#[test]
fn a_match_with_silent_clients_wakes_rarely_and_loses_no_tick() {
    let mut rig = Rig::new(Duration::from_nanos(16_666_667), 2, None);
    rig.runner.catch_up_max = Duration::MAX;
    let began = rig.clock.now();
    let (mut rounds, mut overslept) = (0, Duration::ZERO);
    while rig.tick() < 150 {
        overslept += rig.sleep_until_due(Duration::ZERO);
        rounds += 1;
    }
    let took = rig.clock.now() - began;
    assert!(rounds <= 14, "{rounds} rounds for 150 ticks");
    assert!(took > 2_400 * MS, "no tick is early: {took:?}");
    assert!(rig.tick() < 150 + 31 + 8, "nor late: {}", rig.tick());
    let slipped = rig.runner.match_.stats().slipped;
    assert!(slipped <= overslept, "{slipped:?}, and {overslept:?}");
}

#[test]
fn a_match_woken_from_a_deep_rest_has_lost_no_tick() {
    let mut rig = Rig::new(Duration::from_nanos(16_666_667), 2, None);
    rig.runner.catch_up_max = Duration::MAX;
    let mut overslept = Duration::ZERO;
    while rig.tick() < 60 {
        overslept += rig.sleep_until_due(Duration::ZERO);
    }
    overslept += rig.sleep_until_due(50 * MS);
    let before = rig.tick();
    assert!(rig.sender.send(FromIo::Gone(SessionId(1))));
    rig.round().unwrap();
    assert!(rig.tick() > before + 12, "{} after {before}", rig.tick());
    let slipped = rig.runner.match_.stats().slipped;
    assert!(slipped <= overslept, "{slipped:?}, and {overslept:?}");
}

/// Holds for turns of any length, which end at any moment of a rest.
#[test]
fn a_silent_client_gets_packets_twice_a_second() {
    let on_a_thread = |turn| {
        let thread = std::thread::Builder::new();
        thread.spawn(move || silence_of(turn)).unwrap()
    };
    let playing = (1..=8).map(on_a_thread);
    for (turn, played) in Vec::from_iter(playing).into_iter().enumerate() {
        let (longest, lost) = played.join().unwrap();
        let most = 540 * MS + lost;
        assert!(longest <= most, "turns of {}: {longest:?}", turn + 1);
        assert!(longest >= 480 * MS, "and no more often: {longest:?}");
    }
}

/// Returns the longest time between two packets to a silent player, and the time lost to rounds and oversleeping.
fn silence_of(turn: u8) -> (Duration, Duration) {
    let mut rig = Rig::new(Duration::from_nanos(16_666_667), turn, None);
    rig.runner.catch_up_max = Duration::MAX;
    let set = twinstep_client::SessionConfig::new(Arc::new(()));
    let mut session = twinstep_client::Session::<Counter>::new(set).unwrap();
    let mut buffer = [0; twinstep_core::bounds::PACKET_BYTES_MAX];
    rig.round().unwrap();
    let peer = SessionId(1);
    let now = rig.clock.now();
    rig.runner.match_.connect(now, peer, "anna", 1).unwrap();
    let (mut told_at, mut longest, mut lost) = (Vec::new(), Duration::ZERO, Duration::ZERO);
    let plays_until = rig.clock.now() + 1_000 * MS;
    while rig.clock.now() < plays_until + 7_000 * MS {
        let now = rig.clock.now();
        if now < plays_until {
            session.advance(now, 64, |_| Default::default()).unwrap();
            while let Some(len) = session.poll_transmit(now, &mut buffer) {
                let packet = FromIo::Packet(now, peer, buffer[..len].to_vec().into());
                assert!(rig.sender.send_packet(packet));
            }
        }
        lost += rig.sleep_until_due(Duration::ZERO);
        let now = rig.clock.now();
        while let Ok(told) = rig.told.try_recv() {
            if let ToIo::Packets(packets) = told {
                for (_, bytes) in packets.iter() {
                    session.handle(now, bytes);
                }
                told_at.push(now);
            }
        }
    }
    assert!(session.authority().is_some(), "she played");
    assert_ne!(rig.runner.spare.waiting(), 0, "what was sent left no room");
    told_at.retain(|told| *told > plays_until + 4_500 * MS);
    for pair in told_at.windows(2) {
        longest = longest.max(pair[1] - pair[0]);
    }
    (longest, lost)
}

#[test]
fn a_match_with_expensive_ticks_does_not_rest_deeply() {
    let mut rig = Rig::new(Duration::from_nanos(16_666_667), 2, None);
    rig.round().unwrap();
    let looks_in = |rig: &mut Rig, cost| {
        rig.runner.tick_cost = cost;
        rig.runner.next_round(false).saturating_sub(rig.clock.now())
    };
    let soon = looks_in(&mut rig, CATCH_UP_MAX / 20);
    assert!(soon <= REST, "{soon:?}");
    let late = looks_in(&mut rig, CATCH_UP_MAX / 40);
    assert!(late > REST, "{late:?}");
    // With long ticks, a deep rest would save nothing.
    let mut slow = Rig::new(120 * MS, 2, None);
    slow.round().unwrap();
    let soon = looks_in(&mut slow, Duration::ZERO);
    assert!(soon <= REST, "{soon:?}");
    // A match that waits for another thread does not rest deeply.
    rig.runner.folding = true;
    let soon = looks_in(&mut rig, Duration::ZERO);
    assert!(soon <= REST, "{soon:?}");
}

#[test]
fn a_match_with_too_many_events_for_one_round_runs_again_immediately() {
    let mut rig = Rig::new(1_000 * MS, 1, None);
    rig.round().unwrap();
    for _ in 0..BATCH + 9 {
        assert!(rig.sender.send(FromIo::Gone(SessionId(1))));
    }
    assert_eq!(rig.round(), Ok(Duration::ZERO));
    assert!(rig.round().unwrap() > Duration::ZERO);
}

/// A session's close code may be lost, so a client that still sends gets it again.
#[test]
fn a_session_unknown_to_the_match_gets_the_close_code_again() {
    let mut rig = Rig::new(10 * MS, 1, None);
    rig.round().unwrap();
    let came = rig.clock.now();
    let packet = FromIo::Packet(came, SessionId(9), vec![1, 2, 3].into());
    assert!(rig.sender.send_packet(packet));
    rig.round().unwrap();
    let told: Vec<ToIo> = std::iter::from_fn(|| rig.told.try_recv().ok()).collect();
    let is_it =
        |told: &ToIo| matches!(told, ToIo::Close(peer, CloseCode::MatchOver) if peer.0 == 9);
    assert!(told.iter().any(is_it));
}

/// Finding H2: a silent client must not delay the hand-over of a released match to its next process.
#[test]
fn a_released_match_waits_at_most_five_seconds_for_silent_clients() {
    let file = File::new("released");
    let mut rig = Rig::new(10 * MS, 1, Some(file.journal()));
    rig.round().unwrap();
    let (answer, mut released) = tokio::sync::oneshot::channel();
    assert!(
        rig.operator_orders
            .try_send(MatchOrder::Release(answer))
            .is_ok()
    );
    let (began, mut dials) = (rig.clock.now(), 1_000);
    let ended = loop {
        // There is always a session that has dialled, but has not sent a hello yet.
        dials += 1;
        let now = rig.clock.now();
        let match_ = &mut rig.runner.match_;
        let _ = match_.connect(now, SessionId(dials), &format!("anna {dials}"), 1);
        match rig.round() {
            Ok(_) => std::thread::sleep(100 * MS),
            Err(code) => break code,
        }
        assert!(rig.clock.now() < began + Duration::from_secs(20));
    };
    assert_eq!(ended, Some(CloseCode::Moved));
    let next = rig.runner.match_.world().tick().0;
    assert_eq!(released.try_recv().unwrap(), Ok(next));
    let took = rig.clock.now() - began;
    assert!(took > Duration::from_secs(4), "it did not wait: {took:?}");
}

/// A journal that can be written until the other end of the pipe is dropped.
#[cfg(unix)]
fn over_a_pipe(path: &std::path::Path) -> (Journal, std::os::unix::net::UnixStream) {
    let (ours, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(ours));
    (Journal::from_file(path, file), reader)
}

/// Law: Journal first. Clients must not see what is not in the journal, unless the match continues without one.
#[cfg(unix)]
#[test]
fn unwritten_turns_are_sent_only_by_a_match_that_continues_without_a_journal() {
    for (on_failure, is_sent) in [
        (crate::journal_file::OnJournalFailure::End, false),
        (crate::journal_file::OnJournalFailure::Continue, true),
    ] {
        let file = File::new("unwritten");
        let (journal, reader) = over_a_pipe(&file.0);
        let mut rig = Rig::new(10 * MS, 1, Some(journal.on_failure(on_failure)));
        rig.round().unwrap();
        drop(reader);
        // The loop ends in the round that writes a record.
        let ended = loop {
            while rig.told.try_recv().is_ok() {}
            let mut batch = rig.runner.spare.next();
            batch.push(SessionId(1), b"a sealed turn");
            rig.runner.orders.push(ToIo::Packets(batch));
            match rig.round() {
                Err(code) => break code,
                Ok(_) if rig.runner.match_.stats().journal_lost.is_some() => break None,
                Ok(due) => std::thread::sleep(due.saturating_sub(rig.clock.now())),
            }
        };
        assert_eq!(ended, (!is_sent).then_some(CloseCode::Fault));
        let mut told = std::iter::from_fn(|| rig.told.try_recv().ok());
        assert_eq!(
            told.any(|told| matches!(told, ToIo::Packets(_))),
            is_sent,
            "{on_failure:?}"
        );
    }
}

/// If the journal must survive a power loss, a disk failure is a journal failure.
#[cfg(unix)]
#[test]
fn a_failed_sync_ends_only_a_match_that_must_survive_a_power_loss() {
    for (durability, ended) in [
        (Durability::Process, None),
        (Durability::Power, Some(CloseCode::Fault)),
    ] {
        let file = File::new("power");
        // A pipe has no disk: it can be written but not settled.
        let (journal, _reader) = over_a_pipe(&file.0);
        let mut rig = Rig::new(10 * MS, 1, Some(journal.durability(durability)));
        assert_eq!(rig.play(|match_| match_.world().tick().0 > 5), ended);
    }
}

#[test]
fn a_journal_without_a_record_is_removed() {
    let file = File::new("unbegun");
    std::fs::write(&file.0, b"").unwrap();
    let unwritable = std::fs::File::open(&file.0).unwrap();
    let journal = Journal::from_file(&file.0, unwritable);
    let mut rig = Rig::new(10 * MS, 1, Some(journal));
    assert_eq!(rig.play(|_| false), Some(CloseCode::Fault));
    assert!(!file.0.exists());
}

fn turns(told: &mut mpsc::Receiver<ToIo>) -> usize {
    let told = std::iter::from_fn(|| told.try_recv().ok());
    told.filter(|order| matches!(order, ToIo::Sealed(_)))
        .count()
}

/// A slow disk delays only its own match, even if one worker runs both matches.
#[test]
fn a_slow_disk_delays_only_the_packets_of_its_own_match() {
    let (file, clock) = (File::new("slow"), HostClock::start());
    let (enters, entered) = std::sync::mpsc::channel();
    let (release, waits) = std::sync::mpsc::channel::<()>();
    let syncs = std::cell::Cell::new(0);
    let journal = file
        .journal()
        .durability(Durability::Power)
        .on_disk(move |_| {
            syncs.set(syncs.get() + 1);
            // The first record and some turns are on the disk immediately.
            if syncs.get() == 5 {
                enters.send(()).unwrap();
                let _ = waits.recv();
            }
            Ok(())
        });
    let (mut slow, mut well) = (
        Rig::new(10 * MS, 1, Some(journal)),
        Rig::new(10 * MS, 1, None),
    );
    let workers = Workers::new("disk", 1, clock);
    let _ends = [slow.runner, well.runner].map(|runner| {
        let slot = workers.slot();
        workers.run(slot, Box::new(runner)).unwrap()
    });
    let wait = |what: &str, done: &mut dyn FnMut() -> bool| {
        let until = clock.now() + Duration::from_secs(20);
        while !done() {
            assert!(clock.now() < until, "{what}: not within 20 s");
            // As the I/O task does.
            workers.check();
            std::thread::sleep(MS);
        }
    };
    wait("the disk", &mut || entered.try_recv().is_ok());
    let told = turns(&mut slow.told);
    assert_eq!(
        told, 3,
        "of its beginning and four turns the disk has all but the last"
    );
    for _ in 0..8 {
        wait("the other match", &mut || turns(&mut well.told) > 0);
    }
    assert!(slow.told.is_empty(), "it sends what the disk does not have");
    drop(release);
    wait("its turn", &mut || turns(&mut slow.told) > 0);
    for closing in [&slow.closing, &well.closing] {
        closing.send_replace(Some(Ending::Abandoned));
    }
    workers.shut_down();
    wait("the end", &mut || workers.is_done());
}

/// Finding O3-3: each dial wrote two log lines.
#[test]
fn a_flood_of_sessions_writes_a_bounded_log() {
    let mut rig = Rig::new(MS * 10, 1, None);
    let lines = CountedLines::default();
    let began = rig.clock.now();
    tracing::subscriber::with_default(lines.clone(), || {
        for n in 0..5_000 {
            let ticket = ticket(&format!("holder {}", n % 40), n);
            rig.runner.connect(SessionId(n.into()), &ticket);
            while rig.told.try_recv().is_ok() {}
        }
    });
    lines.check_bound("session refused", rig.clock.now() - began);
}
