//! The I/O task with a fake listener.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::*;
use crate::logged::CountedLines;
use crate::routes::tests::ticket;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Default)]
struct Flood {
    comes: Arc<AtomicBool>,
    rouses: Arc<Mutex<Vec<bool>>>,
}

impl Flood {
    fn rouse_calls(&self) -> Vec<bool> {
        self.rouses.lock().unwrap().clone()
    }

    async fn is_told(&self, times: usize) -> Vec<bool> {
        let called = async {
            while self.rouse_calls().len() < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, called).await;
        assert!(in_time.is_ok(), "only {:?} so far", self.rouse_calls());
        self.rouse_calls()
    }
}

impl Listener for Flood {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
        match self.comes.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn rouse(&mut self, rouses: bool) {
        self.rouses.lock().unwrap().push(rouses);
    }

    fn receive(&mut self, _: Duration, at_most: usize, _: &mut Traffic) -> usize {
        match self.comes.load(Ordering::Relaxed) {
            true => at_most,
            false => 0,
        }
    }

    fn event(&mut self) -> Option<ServerEvent> {
        None
    }

    fn admit(&mut self, _: SessionId) {}

    fn send(&mut self, _: SessionId, _: &[u8]) -> bool {
        true
    }

    fn disconnect(&mut self, _: SessionId) {}

    fn transmit(&mut self, _: &mut Traffic) {}

    fn advance(&mut self, _: Duration, _: Duration) {}

    fn settle(&mut self, _: SessionId) {}

    fn set_keys(&mut self, _: &[TicketKey]) -> Result<(), ServerConfigError> {
        Ok(())
    }

    fn refuse_dials(&mut self) {}

    fn sessions(&self) -> usize {
        0
    }

    fn counters(&self) -> TransportCounters {
        TransportCounters::default()
    }
}

fn io_of(listener: &Flood) -> Io {
    let clock = HostClock::start();
    let around = Around {
        beat: Arc::default(),
        observer: Arc::new(()),
        admissions: Arc::new(()),
        workers: Workers::new("io", 1, clock),
        demand: Demand::default(),
        ledger: TicketLedger::new(Duration::ZERO, Duration::ZERO),
    };
    Io::new(
        Listeners::new(vec![Box::new(listener.clone())]),
        clock,
        around,
    )
}

/// Finding O3-3: ticket holders that kept dialling caused 657 log lines a second.
#[tokio::test]
async fn a_flood_of_dials_writes_a_bounded_log() {
    let mut io = io_of(&Flood::default());
    let lines = CountedLines::default();
    let began = io.clock.now();
    tracing::subscriber::with_default(lines.clone(), || {
        let dial = |io: &mut Io, n: u64| {
            io.handle_connected(
                SessionId(n),
                ticket(&format!("holder {}", n % 40), n as u32),
            );
        };
        (0..5_000).for_each(|n| dial(&mut io, n));
        io.draining = Some(CloseCode::Draining);
        (5_000..10_000).for_each(|n| dial(&mut io, n));
    });
    let took = io.clock.now() - began;
    let words = "too many waiting sessions of one identity: closed one with an older ticket, or else the oldest";
    lines.check_bound(words, took);
    lines.check_bound("session closed", took);
}

/// Under load, waking for each datagram would cost half of the process's time.
#[tokio::test]
async fn wakeups_are_off_under_load_and_on_again_afterwards() {
    let listener = Flood::default();
    let (_told, orders) = mpsc::channel(8);
    let io = tokio::spawn(io_of(&listener).run(orders));
    assert!(listener.rouse_calls().is_empty());
    listener.comes.store(true, Ordering::Relaxed);
    assert_eq!(listener.is_told(1).await, [false]);
    listener.comes.store(false, Ordering::Relaxed);
    assert_eq!(listener.is_told(2).await, [false, true]);
    io.abort();
}

/// One junk datagram a second wrote a line a second, forever (finding P3-L1).
#[test]
fn log_lines_about_dropped_datagrams_become_rarer_during_losses() {
    let mut lines = LossLines::new();
    let second = |n: u64| Duration::from_secs(n);
    let of_a_day = (0..86_400)
        .filter(|n| lines.is_due(second(*n), true))
        .count();
    assert!((140..160).contains(&of_a_day), "{of_a_day}");
    // After a while without losses, a new loss is reported within a second.
    (86_400..87_200).for_each(|n| assert!(!lines.is_due(second(n), false)));
    assert!(lines.is_due(second(87_200), true));
}
