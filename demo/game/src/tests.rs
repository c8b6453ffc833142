//! Whole matches: the same frames produce the same game, on every copy and after every save.

use glam::Vec2;
use twinstep_core::frame::{Learned, PlayerSet};
use twinstep_core::{Key, Mwc, PlayerId, Tick, codec};

use super::testing::SoloGame;
use super::{
    Arbiter, Bot, Game, Luck, Outcome, PIERCED_MAX, Query, RoundPhase, Rules, Shot, Sticks, Victim,
    Weapon, speculate,
};

struct Match {
    game: SoloGame,
    rules: Rules,
    bots: Vec<(PlayerId, Bot)>,
    arbiter: Arbiter,
    blasts: usize,
}

impl Match {
    fn new(bots: u8, enemies: u16) -> Match {
        Match::by(Rules::arena(enemies), bots, 99)
    }

    fn by(rules: Rules, bots: u8, seed: u64) -> Match {
        let mut game = SoloGame::new(Game::new(&rules, seed), rules.clone());
        let luck = Mwc::seed(seed);
        let bots = (0..bots).map(PlayerId).map(|id| {
            game.join(id);
            let luck = luck.fork(Key::player(id, 0));
            (id, Bot::new(Sticks::Analog, luck))
        });
        let bots = bots.collect();
        Match {
            bots,
            arbiter: Arbiter::new(&rules, Luck::Seeded(seed)).unwrap(),
            game,
            rules,
            blasts: 0,
        }
    }

    /// Plays one tick: the bots choose inputs and orders from the current state, queries are answered, then the game
    /// steps.
    fn step(&mut self) {
        let Match {
            game,
            rules,
            bots,
            arbiter,
            blasts,
        } = self;
        let tick = game.world().tick();
        if tick.0 > 0 {
            for (id, bot) in bots {
                let (pad, order) = bot.think(game.sim(), rules, *id, tick);
                game.hold(*id, pad);
                if let Some(order) = order {
                    game.command(*id, order);
                }
            }
        }
        let open = game
            .world()
            .open_queries()
            .iter()
            .map(|open| (open.key, open.query));
        for (key, query) in open.collect::<Vec<_>>() {
            let outcome = arbiter.decide(game.sim(), rules, key, &query).unwrap();
            *blasts += usize::from(matches!(outcome, Outcome::Blast { .. }));
            game.answer(key, outcome);
        }
        game.step();
        let claims = game.effects().claims().to_vec();
        for (id, harm) in claims {
            game.claim(id, harm);
        }
    }

    /// Makes all players local on one screen that knows all inputs and claims all harm.
    fn screens(&mut self) {
        let locals: PlayerSet = self.bots.iter().map(|(id, _)| *id).collect();
        self.game.predict(locals, Tick(0), Learned::new());
    }

    fn run(&mut self, ticks: u32) -> &mut Self {
        for _ in 0..ticks {
            self.step();
        }
        self
    }

    /// Returns the digest; its codec also rejects NaN anywhere in the state.
    fn digest(&self) -> u64 {
        self.game.world().digest().unwrap()
    }
}

#[test]
fn the_same_frames_produce_the_same_match() {
    let (mut one, mut two) = (Match::new(4, 24), Match::new(4, 24));
    for tick in 0..3_000 {
        one.step();
        two.step();
        assert_eq!(one.digest(), two.digest(), "after tick {tick}");
    }
    assert!(one.blasts > 10, "{} blasts", one.blasts);
    assert!(one.game.sim().score > 100, "score {}", one.game.sim().score);
}

#[test]
fn a_match_continues_identically_from_a_save() {
    let (mut saved, mut played) = (Match::new(3, 40), Match::new(3, 40));
    for _ in 0..8 {
        saved.run(150);
        played.run(150);
        let mut bytes = Vec::new();
        codec::append(saved.game.sim(), &mut bytes).unwrap();
        let copy: Game = codec::decode_whole(&bytes).unwrap();
        assert!(copy == *saved.game.sim());
        *saved.game.sim_mut() = copy;
        assert_eq!(saved.digest(), played.digest());
    }
}

#[test]
fn cloning_into_an_old_copy_gives_an_equal_state_and_keeps_its_buffers() {
    let mut game = Match::new(4, 60);
    let mut copy = game.run(900).game.sim().clone();
    let buffers = |game: &Game| {
        [
            game.bullets.as_ptr().cast::<u8>(),
            game.enemies.as_ptr().cast(),
            game.shots.as_ptr().cast(),
        ]
    };
    copy.bullets.reserve(4_096);
    copy.shots.reserve(256);
    let before = buffers(&copy);
    for _ in 0..20 {
        copy.clone_from(game.run(13).game.sim());
        assert!(copy == *game.game.sim());
    }
    assert_eq!(buffers(&copy), before);
}

#[test]
fn a_prediction_with_all_inputs_equals_the_authority() {
    let (mut authority, mut prediction) = (Match::new(2, 24), Match::new(2, 24));
    authority.run(400);
    prediction.run(400);
    // All players are local on this screen, so no shot is a ghost.
    let locals = PlayerSet::from_iter([PlayerId(0), PlayerId(1)]);
    let confirmed = prediction.game.world().tick();
    prediction.game.predict(locals, confirmed, Learned::new());
    for _ in 0..40 {
        authority.step();
        prediction.step();
        assert!(!prediction.game.effects().withheld());
        assert_eq!(authority.digest(), prediction.digest());
    }
}

#[test]
fn a_match_runs_with_a_thousand_enemies() {
    let mut game = Match::new(8, 1_000);
    game.run(1_200);
    let sim = game.game.sim();
    assert!(sim.enemies.iter().filter(|enemy| enemy.is_alive()).count() > 500);
    assert!(sim.bullets.len() <= game.rules.tuning.bullets_max as usize);
    game.digest();
}

#[test]
fn players_without_input_are_never_hurt_while_the_arena_is_busy() {
    let mut game = Match::new(4, 24);
    for (_, bot) in &mut game.bots {
        *bot = Bot::new(Sticks::Still, Mwc::seed(1));
    }
    game.run(2_400);
    let sim = game.game.sim();
    assert!(game.blasts >= 10, "{} blasts", game.blasts);
    assert!(
        sim.players
            .values()
            .all(|player| player.life == 1 && player.is_alive())
    );
}

#[test]
fn a_guess_at_the_tick_of_the_query_equals_the_servers_answer() {
    let mut game = Match::new(4, 24);
    let (mut asked, mut hit) = (0, 0);
    for _ in 0..3_000 {
        for open in game.game.world().open_queries() {
            let truth = game
                .arbiter
                .decide(game.game.sim(), &game.rules, open.key, &open.query)
                .unwrap();
            let Outcome::Blast { hits } = &truth else {
                continue;
            };
            hit += hits
                .iter()
                .filter(|hit| !matches!(hit.body, Victim::Barrel(_)))
                .count();
            assert_eq!(
                speculate(game.game.sim(), &game.rules, &open.query),
                Some(truth)
            );
            let Query::Blast { at, .. } = open.query else {
                continue;
            };
            assert_ne!(at.to_vec2(), Vec2::ZERO);
            asked += 1;
        }
        game.step();
    }
    assert!(asked > 10 && hit > 3, "{asked} blasts, {hit} hits");
}

/// Plays a round of bots to its end, for at most 600 s. Returns the last phase and the seconds played.
fn round(bots: u8, seed: u64) -> (RoundPhase, u32) {
    let mut game = Match::by(Rules::campaign(), bots, seed);
    game.screens();
    loop {
        game.step();
        let (phase, seconds) = (game.game.sim().phase, game.game.world().tick().0 / 60);
        if matches!(phase, RoundPhase::Won | RoundPhase::Lost) || seconds >= 600 {
            return (phase, seconds);
        }
    }
}

/// A round takes 3 to 8 minutes with any number of bots; they win some rounds and lose some.
#[test]
fn a_round_is_won_or_lost_within_minutes() {
    for bots in [1, 4, 8] {
        let mut ends = Vec::new();
        for seed in 1..=24 {
            let (phase, seconds) = round(bots, seed);
            assert!(
                matches!(phase, RoundPhase::Won | RoundPhase::Lost)
                    && (180..=480).contains(&seconds),
                "{bots} bots, seed {seed}: {phase:?} after {seconds} s"
            );
            ends.push(phase);
            if ends.contains(&RoundPhase::Won) && ends.contains(&RoundPhase::Lost) {
                break;
            }
        }
        assert!(ends.contains(&RoundPhase::Won), "{bots} bots never win");
        assert!(ends.contains(&RoundPhase::Lost), "{bots} bots never lose");
    }
}

#[test]
fn bots_play_round_after_round() {
    let mut game = Match::by(Rules::campaign(), 4, 1);
    game.screens();
    let mut rounds = Vec::new();
    for _ in 0..60 * 60 * 12 {
        let before = game.game.sim().phase;
        game.step();
        let sim = game.game.sim();
        if sim.phase != before && matches!(sim.phase, RoundPhase::Won | RoundPhase::Lost) {
            rounds.push(sim.round);
        }
    }
    assert!(
        rounds.len() >= 2 && rounds.iter().copied().eq(1..=rounds.len() as u32),
        "{rounds:?}"
    );
}

/// Finding O3-11: a crafted world with a valid checksum ended the program that played its replay.
#[test]
fn no_readable_state_makes_a_step_panic() {
    let mut played = Match::new(3, 12);
    let mut draw = Mwc::seed(7);
    let mut read = 0;
    for _ in 0..60 {
        (0..15).for_each(|_| played.step());
        let mut whole = Vec::new();
        codec::append(played.game.sim(), &mut whole).unwrap();
        for _ in 0..100 {
            let mut bytes = whole.clone();
            for _ in 0..=draw.below(3) {
                let at = draw.below(bytes.len() as u32) as usize;
                // Random bytes hardly ever reach the edges of a number's range, so put them there.
                bytes[at] = match draw.below(3) {
                    0 => 0xff,
                    1 => draw.below(16) as u8,
                    _ => draw.below(256) as u8,
                };
            }
            let Ok(state) = codec::decode_whole::<Game>(&bytes) else {
                continue;
            };
            read += 1;
            let mut crafted = SoloGame::new(state, played.rules.clone());
            for n in 0..3 {
                crafted.join(PlayerId(n));
            }
            for _ in 0..8 {
                crafted.step();
            }
        }
    }
    assert!(read > 1_000, "only {read} of them can be read");
    // Random bytes hardly ever produce this state, which indexed a shot's slots out of range.
    let rules = &played.rules;
    let mut shot = Shot::fired(
        PlayerId(0),
        0,
        Weapon::Lance,
        Vec2::ZERO,
        Vec2::X,
        Tick(0),
        rules,
    );
    for (pierced, can_be_read) in [(PIERCED_MAX as u8 - 1, true), (PIERCED_MAX as u8, false)] {
        shot.pierced = pierced;
        let mut bytes = Vec::new();
        codec::append(&shot, &mut bytes).unwrap();
        assert_eq!(
            codec::decode_whole::<Shot>(&bytes).is_ok(),
            can_be_read,
            "{pierced}"
        );
    }
}
