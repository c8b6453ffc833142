//! One player's commands and queries never keep another player's commands out of the frames.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::{Controls, Effects, Frame, Key, Never, PlayerId, Simulation};
use twinstep_rig::direct::Direct;
use twinstep_rig::game_types;
use twinstep_server::{Decision, HookContext, MatchConfig};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    Write(Vec<u8>),
    /// Makes the game ask this many queries a tick, with outcomes of this many bytes.
    Ask {
        queries: u8,
        bytes: u16,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hold([u8; 16]);

impl Controls for Hold {}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Board {
    written: [u32; 16],
    asks: u8,
    bytes: u16,
    answered: u32,
    unanswered: u32,
    waited: u32,
}

impl Simulation for Board {
    game_types!("board", (), Hold, Order, (u16, u32), Vec<u8>, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, (_, asked), outcome) in frame.outcomes() {
            self.waited = self.waited.max(frame.tick().0 - asked);
            match outcome {
                Some(_) => self.answered += 1,
                None => self.unanswered += 1,
            }
        }
        for (player, order) in frame.commands() {
            match order {
                Order::Write(_) => self.written[player.index()] += 1,
                Order::Ask { queries, bytes } => (self.asks, self.bytes) = (*queries, *bytes),
            }
        }
        for n in 0..u32::from(self.asks) {
            let key = Key::player(PlayerId(0), frame.tick().0 * 16 + n);
            fx.ask(key, (self.bytes, frame.tick().0));
        }
    }
}

fn board(clients: usize, busy: bool) -> Direct<Board> {
    let config = MatchConfig {
        players_max: 16,
        ..MatchConfig::action()
    };
    let resolver = |_: &HookContext<'_, Board>, _: Key, (bytes, _): &(u16, u32)| {
        Decision::Now(vec![7; usize::from(*bytes)])
    };
    let set = |_| SessionConfig::new(Arc::new(())).verify(false);
    let mut table = Direct::answered(config, Board::default(), resolver, (0..clients).map(set));
    table.gather();
    if busy {
        table.run(1, hold);
    }
    table
}

/// In the worst case, every byte of the controls would change every tick. The sealer reserves space for that case.
fn hold(client: usize, _: &Session<Board>) -> Hold {
    Hold([client as u8 + 1; 16])
}

// Finding K2: canonical order gave priority to low numbers: of 16 players with 20 commands a second each, ten never had
// a command run.
#[test]
fn players_using_their_full_grant_get_equal_shares() {
    let mut table = board(16, true);
    let before = table.match_.world().sim().written;
    for _ in 0..20 * 10 {
        for session in &mut table.sessions {
            let _ = session.command(0, Order::Write(vec![1; 94]));
        }
        table.run(3, hold);
    }
    let sim = table.match_.world().sim();
    let written: Vec<u32> = (0..16).map(|i| sim.written[i] - before[i]).collect();
    let (least, most) = (written.iter().min().unwrap(), written.iter().max().unwrap());
    assert!(
        *least >= 25,
        "each player gets 2.5 commands a second: {written:?}"
    );
    assert!(most - least <= most / 10, "{written:?}");
    let refused: u64 = (0..16)
        .map(|p| table.match_.seat_stats(PlayerId(p)).refused)
        .sum();
    assert!(refused > 0, "what is too much is refused, not left to wait");
}

// Finding K3: outcomes took all the space, and one player's command waited for as long as another player's queries were
// answered.
#[test]
fn an_order_runs_even_if_queries_fill_all_frames() {
    for bytes in [88, 250] {
        let mut table = board(2, true);
        let ask = Order::Ask { queries: 16, bytes };
        table.sessions[0].command(0, ask).unwrap();
        table.rest(SECOND);
        for (size, ticks) in [(8, 4), (120, 60)] {
            let before = table.match_.world().sim().written[1];
            let order = Order::Write(vec![1; size]);
            table.sessions[1].command(0, order).unwrap();
            table.run(ticks, hold);
            let sim = table.match_.world().sim();
            assert_eq!(
                sim.written[1] - before,
                1,
                "{size} B next to outcomes of {bytes} B"
            );
        }
    }
}

// Finding K21: next to 16 inputs with 16 bytes each, the largest outcome never fitted, and was silently dropped.
#[test]
fn the_largest_outcome_fits_next_to_the_largest_inputs() {
    let mut table = board(16, true);
    let ask = Order::Ask {
        queries: 1,
        bytes: 253,
    };
    table.sessions[3].command(0, ask).unwrap();
    table.run(10, hold);
    let stop = Order::Ask {
        queries: 0,
        bytes: 0,
    };
    table.sessions[3].command(0, stop).unwrap();
    table.run(60, hold);
    let sim = table.match_.world().sim();
    assert!(sim.answered >= 9 && sim.unanswered == 0, "{sim:?}");
    assert!(sim.waited <= 3, "no other player had entries: {sim:?}");
}

/// A lone client's commands run at the assumed ticks, however many and large they are, so no tick is stepped again.
#[test]
fn a_lone_client_predicts_when_its_orders_run() {
    let mut table = board(1, true);
    let rebuilt = table.sessions[0].stats().timeline.resim_ticks;
    for n in 0..30 {
        for _ in 0..n % 5 {
            let _ = table.sessions[0].command(0, Order::Write(vec![1; 120]));
        }
        table.run(20, hold);
    }
    assert!(table.match_.world().sim().written[0] > 40);
    assert_eq!(table.sessions[0].stats().timeline.resim_ticks, rebuilt);
}
