//! Control over time in a local match.

use std::time::Duration;

use twinstep_client::Event;
use twinstep_core::PlayerId;
use twinstep_local::{Local, LocalGame};
use twinstep_server::{Admission, HookContext, MatchRequest, Referee};

use crate::tale::{FRAME, RULES, Tale, begun, config, frames, hundred, input_tick, local, ticks};

/// At any frame rate, a key press shows in its own frame, no input is late, and a single player has no misprediction.
#[test]
fn a_local_input_shows_in_its_own_tick_at_any_frame_rate() {
    for frame_us in [1_000, 4_166, 8_333, 16_667, 20_000, 33_333, 50_000, 100_000] {
        let mut game = local();
        let mut now = Duration::ZERO;
        let mut play = |game: &mut LocalGame<Tale>, held: u8| {
            now += Duration::from_micros(frame_us);
            game.advance_at(now, |_, _| held).expect("it plays on");
        };
        for _ in 0..3_000_000 / frame_us {
            play(&mut game, 0);
        }
        let before = game.session(0).stats();
        for n in 0..1_000_000 / frame_us {
            let held = 1 + (n % 5) as u8;
            let sampled = input_tick(game.session(0));
            let so_far = game.session(0).prediction().unwrap().sim().held[0];
            play(&mut game, held);
            let more = input_tick(game.session(0)) - sampled;
            let seen = game.session(0).prediction().unwrap().sim().held[0];
            assert_eq!(
                seen,
                so_far + more * u32::from(held),
                "frames of {frame_us} us"
            );
        }
        let after = game.session(0).stats();
        assert_eq!(after.fills, before.fills, "frames of {frame_us} us");
        assert_eq!(
            after.timeline.rebuilds, before.timeline.rebuilds,
            "frames of {frame_us} us"
        );
        let [server, authority, prediction] = ticks(&mut game);
        assert_eq!(server, authority, "each tick is confirmed at once");
        assert!(
            prediction - authority <= 5,
            "frames of {frame_us} us: {}",
            prediction - authority
        );
    }
}

#[test]
fn a_pause_stops_ticks_inputs_and_the_picture() {
    let mut game = local();
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 100, 1);
    game.pause();
    assert!(game.is_paused());
    let (before, time) = (ticks(&mut game), game.time());
    let sim = game.session(0).prediction().unwrap().sim().clone();
    game.session_mut(0)
        .command(0, 3)
        .expect("orders are taken meanwhile");
    for n in 0..1_000 {
        now += FRAME * (n % 7);
        game.advance_at(now, |_, _| panic!("no input is sampled"))
            .expect("it is only paused");
    }
    assert_eq!((ticks(&mut game), game.time()), (before, time));
    assert_eq!(*game.session(0).prediction().unwrap().sim(), sim);
    game.resume();
    game.advance_at(now, |_, _| 0).expect("it plays on");
    assert_eq!(ticks(&mut game), before, "the pause is not made up for");
    frames(&mut game, &mut now, 10, 0);
    assert_eq!(ticks(&mut game), before.map(|tick| tick + 10));
    assert_eq!(game.server().world().sim().orders, [3], "it ran afterwards");
}

#[test]
fn a_step_advances_all_clients_by_exactly_one_tick() {
    // The pause may start at any time between two ticks.
    for phase_us in [0, 1, 5_000, 11_111, 16_000] {
        let mut game = local();
        game.join(config(), 2).expect("a second client");
        let mut now = Duration::ZERO;
        frames(&mut game, &mut now, 300, 0);
        now += Duration::from_micros(phase_us);
        game.advance_at(now, |_, _| 0).expect("it plays on");
        for _ in 0..500 {
            let before = ticks(&mut game);
            let held = game.session(0).prediction().unwrap().sim().held;
            game.step(|_, _| 2).expect("it plays on");
            assert!(game.is_paused(), "before and after");
            assert_eq!(
                ticks(&mut game),
                before.map(|tick| tick + 1),
                "paused at {phase_us} us"
            );
            let seen = game.session(0).prediction().unwrap().sim().held[0];
            assert_eq!(seen, held[0] + 2, "the own input is in it");
        }
    }
}

#[test]
fn a_time_scale_changes_only_the_tick_rate() {
    for (scale, expected) in [(0.25, 60), (0.5, 120), (1.0, 240), (2.0, 480), (4.0, 960)] {
        let mut game = local();
        let mut now = Duration::ZERO;
        frames(&mut game, &mut now, 200, 0);
        game.set_time_scale(scale).expect("in range");
        let (before, stats) = (ticks(&mut game), game.session(0).stats());
        frames(&mut game, &mut now, 240, 1);
        let passed = ticks(&mut game)[0] - before[0];
        assert!(passed.abs_diff(expected) <= 1, "{passed} ticks at {scale}");
        let after = game.session(0).stats();
        assert_eq!(after.fills, stats.fills, "at {scale}");
        assert_eq!(
            after.timeline.rebuilds, stats.timeline.rebuilds,
            "at {scale}"
        );
    }
    let mut game = local();
    let error = game.set_time_scale(f64::NAN).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected a time scale of 0.25 to 4, got NaN")
    );
    assert_eq!(game.time_scale(), 1.0);
}

/// A player drags the window for a minute.
#[test]
fn a_long_frame_plays_at_most_a_quarter_of_a_second() {
    let mut game = local();
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 60, 0);
    let before = ticks(&mut game);
    let fills = game.session(0).stats().fills;
    now += Duration::from_secs(60);
    game.advance_at(now, |_, _| 1).expect("it plays on");
    let passed = ticks(&mut game)[0] - before[0];
    assert!((14..=15).contains(&passed), "{passed} ticks");
    assert_eq!(ticks(&mut game), before.map(|tick| tick + passed));
    assert_eq!(
        game.session(0).stats().fills,
        fills,
        "every input came in time"
    );
}

struct Anyone;

impl Referee<Tale> for Anyone {
    fn admit(&mut self, _: &HookContext<'_, Tale>, _: PlayerId, _: &u8, _: bool) -> Admission {
        Admission::Admitted
    }

    fn admit_request(
        &mut self,
        _: &HookContext<'_, Tale>,
        _: PlayerId,
        _: MatchRequest,
    ) -> Admission {
        Admission::Admitted
    }
}

/// Row 81: as online, the default referee refuses, the author's referee may admit, and the host may always pause.
#[test]
fn a_local_match_is_paused_by_the_same_requests_as_online() {
    let mut now = Duration::ZERO;
    let mut strict = local();
    frames(&mut strict, &mut now, 60, 0);
    let asked = strict.session_mut(0).request(0, MatchRequest::Pause);
    assert_eq!(asked, Ok(()));
    frames(&mut strict, &mut now, 10, 0);
    assert!(!strict.server().is_paused(), "its referee does not let it");
    strict.request(MatchRequest::Pause).expect("in range");
    frames(&mut strict, &mut now, 10, 0);
    assert!(strict.server().is_paused());

    let game = Local::action(Tale::default(), RULES).resolver(hundred);
    let mut game = begun(game.referee(Anyone));
    let mut now = Duration::ZERO;
    frames(&mut game, &mut now, 60, 0);
    let fills = game.session(0).stats().fills;
    let request = |game: &mut LocalGame<Tale>, request| {
        game.session_mut(0).request(0, request).expect("it plays");
    };
    request(&mut game, MatchRequest::Pause);
    frames(&mut game, &mut now, 10, 0);
    let paused = ticks(&mut game);
    frames(&mut game, &mut now, 100, 0);
    assert_eq!(ticks(&mut game), paused);
    game.join(config(), 1)
        .expect("it is let in after the pause");
    request(&mut game, MatchRequest::Step(1));
    frames(&mut game, &mut now, 10, 0);
    assert_eq!(ticks(&mut game), paused.map(|tick| tick + 1));
    request(&mut game, MatchRequest::Tick(FRAME / 2));
    request(&mut game, MatchRequest::Resume);
    frames(&mut game, &mut now, 60, 0);
    let passed = ticks(&mut game)[0] - paused[0];
    assert!((100..=122).contains(&passed), "{passed} ticks in 60 frames");
    assert_eq!(game.session(0).stats().fills, fills);
    assert_eq!(game.server().world().present().len(), 2);
}

#[test]
fn a_player_saves_a_local_match_and_continues_from_the_save() {
    // Row 83: saves work in a local match as online.
    let game = || Local::action(Tale::default(), RULES).resolver(hundred);
    let mut before = begun(game().referee(Anyone));
    let mut now = Duration::ZERO;
    frames(&mut before, &mut now, 60, 1);
    before.session_mut(0).command(0, 5).expect("it plays");
    frames(&mut before, &mut now, 10, 1);
    assert!(before.take_save().is_none());
    let save = MatchRequest::Save;
    before.session_mut(0).request(0, save).expect("it plays");
    frames(&mut before, &mut now, 10, 2);
    let saved = before.take_save().expect("its referee admits it");
    assert!(before.take_save().is_none(), "once");
    let by = Some(PlayerId(0));
    let heard = std::iter::from_fn(|| before.session_mut(0).poll_event());
    assert!(Vec::from_iter(heard).contains(&Event::Request { by, request: save }));

    let mut after = begun(game().load(saved, None));
    let sim = after.server().world().sim();
    assert_eq!(sim.orders, [5]);
    assert!(sim.held[0] >= 60 && sim.held[0] < before.server().world().sim().held[0]);
    let mut now = Duration::ZERO;
    after.session_mut(0).command(0, 6).expect("it plays");
    frames(&mut after, &mut now, 10, 1);
    assert_eq!(after.server().world().sim().orders, [5, 6]);
    // Its referee is the default one.
    after.session_mut(0).request(0, save).expect("it plays");
    frames(&mut after, &mut now, 10, 1);
    assert!(after.take_save().is_none());
}
