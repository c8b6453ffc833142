//! The start of a match, and one tick: each line of [`Game::step`] calls into one file.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{Effects, Frame, Schedule, Simulation, Table, Tick};

use super::cue::Cue;
use super::order::Command;
use super::pad::Pad;
use super::query::{Outcome, Query};
use super::rules::Rules;
use super::state::{Game, RoundPhase, Timer};

impl Game {
    #[must_use]
    pub fn new(rules: &Rules, seed: u64) -> Game {
        let mut game = Game {
            round: 0,
            phase: if rules.is_campaign() {
                RoundPhase::Lobby
            } else {
                RoundPhase::Endless
            },
            phase_since: Tick(0),
            half_ready_since: None,
            wave: 0,
            lives: 0,
            score: 0,
            players: Table::new(),
            former: Table::with_capacity(PLAYERS_MAX),
            enemies: Vec::new(),
            shots: Vec::new(),
            bullets: Vec::new(),
            barrels: Vec::new(),
            crates: Vec::new(),
            flights: Vec::new(),
            pickups: Vec::new(),
            timers: Schedule::new(),
            seed,
        };
        game.place_barrels(rules);
        game.place_crates(rules);
        game.make_slots(rules);
        game
    }
}

impl Simulation for Game {
    const NAME: &'static str = "powderkeg";
    const VERSION: u32 = 3;

    type Rules = Rules;
    type Input = Pad;
    type Command = Command;
    type Query = Query;
    type Outcome = Outcome;
    type Cue = Cue;

    /// Steps one tick. Cost, in a release build on one core of a 2-core cloud machine, medians with 8 players: 4 µs in
    /// the campaign, 10 µs with 300 enemies as they play (1,040 bullets), 14 µs when the players fight them and one is
    /// local, 35 µs with 1,000 enemies (3,400 bullets). Linear in enemies and in bullets, except for shots × enemies
    /// and, with crates, bullets × crates. Allocates only while a list grows beyond its largest size so far.
    fn step(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        // Only the first step of a copy grows its lists; later steps do not allocate.
        self.make_room(self.enemies.len());
        self.follow_roster(frame, fx);
        self.apply_outcomes(frame, fx);
        self.run_orders(frame, fx);
        self.wake(frame, fx);
        self.advance_round(frame, fx);
        // Flights before players, because a landed thing is solid for this tick's walk.
        self.move_flights(frame);
        self.move_players(frame, fx);
        self.pick_up(frame, fx);
        self.move_enemies(frame, fx);
        self.light_by_sappers(frame, fx);
        self.move_bullets(frame.tick());
        self.move_shots(frame, fx);
        // Last, so that each screen judges its players by the picture that this tick shows.
        self.claim_harm(frame, fx);
    }
}

impl Game {
    fn wake(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        while let Some((_, timer)) = self.timers.pop_due(frame.tick()) {
            match timer {
                Timer::Fuse(n) => self.burst(n, frame, fx),
                Timer::Barrel(n) => self.return_barrel(n, frame),
                Timer::Crate(n) => self.return_crate(n, frame),
                Timer::Enemy(slot) => self.arrive(slot, frame),
                Timer::Player(id) => self.return_player(id, frame, fx),
            }
        }
    }
}
