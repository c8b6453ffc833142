//! Tests of [`Workers`] on real threads, with matches that tick, hang, panic and wait. A test never waits forever, and
//! checks the workers while it waits, as the I/O task does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const MS: Duration = Duration::from_millis(1);

struct Game<F>(F);

impl<F: FnMut() -> Next + Send> Playable for Game<F> {
    fn round(&mut self) -> Next {
        self.0()
    }
}

fn run(
    workers: &Workers,
    round: impl FnMut() -> Next + Send + 'static,
) -> (SlotId, oneshot::Receiver<Ended>) {
    let slot = workers.slot();
    let end = workers.run(slot, Box::new(Game(round))).unwrap();
    (slot, end)
}

fn wait(workers: &Workers, what: &str, mut done: impl FnMut() -> bool) {
    let clock = workers.0.clock;
    let until = clock.now() + PATIENCE;
    while !done() {
        assert!(clock.now() < until, "{what}: not within {PATIENCE:?}");
        workers.check();
        sleep(MS * 5);
    }
}

fn ticking(workers: &Workers) -> Arc<AtomicUsize> {
    let (count, clock) = (Arc::<AtomicUsize>::default(), workers.0.clock);
    let counts = count.clone();
    run(workers, move || {
        counts.fetch_add(1, Ordering::Relaxed);
        Next::At(clock.now() + MS * 5)
    });
    count
}

#[test]
fn few_threads_run_many_matches() {
    let workers = Workers::new("small", 4, HostClock::start());
    let games: Vec<_> = (0..20).map(|_| ticking(&workers)).collect();
    wait(&workers, "ticks", || {
        games.iter().all(|game| game.load(Ordering::Relaxed) > 20)
    });
    // More than one is started only if the machine is busy with something else.
    let threads = workers.0.lock().threads;
    assert!((1..=4).contains(&threads), "{threads}");
    // A match that is over is removed, and the others stay.
    let (_, mut end) = run(&workers, || Next::Over(Some(CloseCode::MatchOver)));
    wait(&workers, "its end", || match end.try_recv() {
        Ok(ended) => {
            assert_eq!(ended, Ok(Some(CloseCode::MatchOver)));
            true
        }
        Err(_) => false,
    });
}

#[test]
fn threads_end_with_the_last_match() {
    let workers = Workers::new("ends", 3, HostClock::start());
    let asked = Arc::<AtomicUsize>::default();
    for _ in 0..9 {
        let (asked, clock) = (asked.clone(), workers.0.clock);
        run(&workers, move || match asked.load(Ordering::Relaxed) {
            0 => Next::At(clock.now() + Duration::from_secs(3_600)),
            _ => Next::Over(None),
        });
    }
    sleep(MS * 20);
    assert!(!workers.is_done());
    asked.store(1, Ordering::Relaxed);
    workers.shut_down();
    wait(&workers, "the end", || {
        workers.is_done() && workers.0.lock().threads == 0
    });
}

#[test]
fn hung_matches_do_not_delay_others_and_are_removed() {
    let workers = Workers::new("hangs", 2, HostClock::start());
    let well = ticking(&workers);
    let (release, wait_for_it) = std::sync::mpsc::channel::<()>();
    let wait_for_it = Arc::new(Mutex::new(wait_for_it));
    let hung = Arc::<AtomicUsize>::default();
    for _ in 0..5 {
        let (wait_for_it, hung) = (wait_for_it.clone(), hung.clone());
        run(&workers, move || {
            hung.fetch_add(1, Ordering::Relaxed);
            drop(wait_for_it.lock().map(|wait| wait.recv()));
            Next::Over(None)
        });
    }
    wait(&workers, "all hang", || hung.load(Ordering::Relaxed) == 5);
    let before = well.load(Ordering::Relaxed);
    wait(&workers, "the other one", || {
        well.load(Ordering::Relaxed) > before + 50
    });
    assert!(workers.0.lock().threads >= 6);
    drop(release);
    wait(&workers, "as many threads as before", || {
        let state = workers.0.lock();
        state.slots.len() == 1 && state.threads <= 2
    });
    let before = well.load(Ordering::Relaxed);
    wait(&workers, "playing on", || {
        well.load(Ordering::Relaxed) > before + 20
    });
}

#[test]
fn the_check_fails_only_while_a_due_match_is_not_run() {
    let workers = Workers(Arc::new(Shared {
        name: "nobody".to_owned(),
        most: 0,
        clock: HostClock::start(),
        state: Mutex::default(),
        work: Condvar::new(),
        rested: Notify::new(),
        is_starved: Default::default(),
    }));
    assert!(workers.check(), "no match is due");
    let (end, _ended) = oneshot::channel();
    let slot = workers.slot();
    let waits = Slot {
        match_: Some(Box::new(Game(|| Next::Over(None)))),
        due: MS,
        is_woken: false,
        usual: MS,
        end,
    };
    workers.0.lock().slots.insert(slot, waits);
    workers.0.lock().push_due(MS, slot);
    sleep(UNSERVED_MAX / 2);
    assert!(workers.check());
    let until = UNSERVED_MAX + MS * 50;
    sleep(until);
    assert!(!workers.check(), "it was not run");
    // A match is run.
    assert!(workers.0.lock().take(until * 2).is_some());
    assert!(workers.check());
}

#[test]
fn a_panicking_match_reports_its_message_and_does_not_end_other_matches() {
    let workers = Workers::new("panics", 1, HostClock::start());
    let well = ticking(&workers);
    let (_, mut end) = run(&workers, || {
        std::panic::resume_unwind(Box::new("planted"));
    });
    wait(&workers, "its end", || match end.try_recv() {
        Ok(ended) => {
            assert_eq!(ended, Err("planted".to_owned()));
            true
        }
        Err(_) => false,
    });
    let before = well.load(Ordering::Relaxed);
    wait(&workers, "playing on", || {
        well.load(Ordering::Relaxed) > before + 20
    });
}

#[test]
fn a_woken_match_runs_again_immediately_even_if_it_was_running() {
    let workers = Workers::new("woken", 2, HostClock::start());
    let rounds = Arc::<AtomicUsize>::default();
    let (inside, gate) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (counts, enters, opens) = (rounds.clone(), inside.clone(), gate.clone());
    let clock = workers.0.clock;
    let (slot, _end) = run(&workers, move || {
        let round = counts.fetch_add(1, Ordering::Relaxed);
        if round == 1 {
            enters.store(1, Ordering::Relaxed);
            while opens.load(Ordering::Relaxed) == 0 {
                sleep(MS);
            }
        }
        Next::At(clock.now() + Duration::from_secs(3_600))
    });
    let is = |count: &AtomicUsize, n| count.load(Ordering::Relaxed) == n;
    wait(&workers, "its first round", || {
        is(&rounds, 1) && workers.0.lock().idle > 0
    });
    workers.wake(slot);
    wait(&workers, "it is running", || is(&inside, 1));
    workers.wake(slot);
    gate.store(1, Ordering::Relaxed);
    wait(&workers, "the round after", || is(&rounds, 3));
}

/// Waits until `done` without watching the workers, which must be in time without help.
fn wait_alone(workers: &Workers, what: &str, mut done: impl FnMut() -> bool) {
    let clock = workers.0.clock;
    let until = clock.now() + PATIENCE;
    while !done() {
        assert!(clock.now() < until, "{what}: not within {PATIENCE:?}");
        sleep(MS);
    }
}

/// Starts a match that has no work for an hour after each round. Returns its slot and its round count.
fn sleeping(workers: &Workers) -> (SlotId, Arc<AtomicUsize>) {
    let (count, clock) = (Arc::<AtomicUsize>::default(), workers.0.clock);
    let counts = count.clone();
    let (slot, _) = run(workers, move || {
        counts.fetch_add(1, Ordering::Relaxed);
        Next::At(clock.now() + Duration::from_secs(3_600))
    });
    (slot, count)
}

#[test]
fn due_woken_and_new_matches_run_without_a_watcher() {
    let workers = Workers::new("alone", 2, HostClock::start());
    let has = |count: &AtomicUsize, n| count.load(Ordering::Relaxed) >= n;
    let (slot, slept) = sleeping(&workers);
    wait_alone(&workers, "its first round", || {
        has(&slept, 1) && workers.0.lock().idle > 0
    });
    workers.wake(slot);
    wait_alone(&workers, "its round when it is woken", || {
        has(&slept, 2) && workers.0.lock().idle > 0
    });
    let (_, other) = sleeping(&workers);
    wait_alone(&workers, "a new match", || has(&other, 1));
    let ticks = ticking(&workers);
    wait_alone(&workers, "ticks", || has(&ticks, 20));
}

#[test]
fn matches_end_even_if_all_workers_hang() {
    let workers = Workers::new("all", 1, HostClock::start());
    let (rounds, clock) = (Arc::<AtomicUsize>::default(), workers.0.clock);
    let slept = rounds.clone();
    run(&workers, move || {
        match rounds.fetch_add(1, Ordering::Relaxed) {
            0 => Next::At(clock.now() + Duration::from_secs(3_600)),
            _ => Next::Over(None),
        }
    });
    wait_alone(&workers, "its first round", || {
        slept.load(Ordering::Relaxed) == 1 && workers.0.lock().idle > 0
    });
    let (release, hangs) = std::sync::mpsc::channel::<()>();
    let (entered, inside) = std::sync::mpsc::channel();
    run(&workers, move || {
        let _ = entered.send(());
        let _ = hangs.recv();
        Next::Over(None)
    });
    inside.recv_timeout(PATIENCE).unwrap();
    workers.shut_down();
    wait_alone(&workers, "its last round", || {
        slept.load(Ordering::Relaxed) > 1
    });
    drop(release);
}

/// A match that hangs until it is released, and then has no work for an hour.
fn hanging(workers: &Workers, what: &str) -> std::sync::mpsc::Sender<()> {
    let (release, hangs) = std::sync::mpsc::channel::<()>();
    let (enters, entered) = std::sync::mpsc::channel();
    let clock = workers.0.clock;
    run(workers, move || {
        let _ = enters.send(());
        let _ = hangs.recv();
        Next::At(clock.now() + Duration::from_secs(3_600))
    });
    wait(workers, what, || entered.try_recv().is_ok());
    release
}

/// A lost worker returns while its replacement is also lost, so it is the only one left.
#[test]
fn a_recovered_worker_is_reused_while_its_replacement_is_lost() {
    let workers = Workers::new("back", 1, HostClock::start());
    let first = hanging(&workers, "the first one hangs");
    let _second = hanging(&workers, "the one in its place hangs");
    sleep(LOST * 2);
    assert_eq!(workers.0.lock().threads, 2);
    drop(first);
    wait_alone(&workers, "it rests", || workers.0.lock().idle == 1);
    let ticks = ticking(&workers);
    wait_alone(&workers, "ticks", || ticks.load(Ordering::Relaxed) > 20);
    assert_eq!(workers.0.lock().threads, 2, "no further thread was needed");
}

#[test]
fn a_match_is_refused_without_a_thread_and_runs_when_there_is_one() {
    let workers = Workers::new("starved", 1, HostClock::start());
    workers.starve(true);
    let game = || Box::new(Game(|| Next::Over(None)));
    let refused = workers.run(workers.slot(), game());
    assert!(
        refused.is_err() && workers.is_done(),
        "no thread would run it"
    );
    workers.starve(false);
    let mut end = workers.run(workers.slot(), game()).unwrap();
    wait(&workers, "its end", || end.try_recv() == Ok(Ok(None)));
}

/// The watcher checks again at the due time if no event wakes it before.
#[test]
fn the_watcher_is_notified_of_a_due_match_that_no_worker_can_take() {
    let workers = Workers::new("busy", 1, HostClock::start());
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    let is_told = |within: Duration| {
        runtime.block_on(async { tokio::time::timeout(within, workers.rested()).await.is_ok() })
    };
    let (go, gate) = crossbeam_channel::bounded::<()>(1);
    let began = Arc::<AtomicUsize>::default();
    let begins = began.clone();
    run(&workers, move || {
        begins.fetch_add(1, Ordering::Relaxed);
        let _ = gate.recv();
        Next::Over(None)
    });
    wait(&workers, "its round", || began.load(Ordering::Relaxed) == 1);
    is_told(MS);
    assert_eq!(workers.next_due(), None, "it is with a worker");
    assert!(!is_told(MS));
    run(&workers, || Next::Over(None));
    assert_eq!(workers.next_due(), Some(Duration::ZERO));
    assert!(is_told(PATIENCE));
    go.send(()).unwrap();
}
