//! Boxes in a browser page. `bash ci/browser.sh` builds it, and plays it in Chromium; `page/index.html` is the page.
#![expect(unsafe_code, reason = "a name that the page calls counts as unsafe")]

#[path = "../../../bevy/examples/boxes/rules.rs"]
#[allow(dead_code, reason = "the page knows the keys")]
mod rules;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rules::{Boxes, Cubes};
use twinstep_client::{Client, Event, SessionConfig, SessionEnd, Smoothing};
use twinstep_web::{WebLine, page};

#[derive(Default)]
struct Game {
    client: Option<Client<Boxes, Cubes, WebLine>>,
    why: String,
    /// The number of reconnects that needed a new world, and of those that did not.
    returns: [u32; 2],
    lost: u32,
}

thread_local! {
    static GAME: RefCell<Game> = RefCell::default();
}

/// Joins with the page's ticket. Returns 0 if that failed; see [`boxes_why`].
#[unsafe(no_mangle)]
extern "C" fn boxes_join() -> u32 {
    let config = SessionConfig::new(Arc::new(())).show(Cubes, Smoothing::new(2.0, Duration::ZERO));
    GAME.with_borrow_mut(|game| {
        let Some(ticket) = twinstep_web::ticket() else {
            return 0;
        };
        match twinstep_web::join(&ticket, config) {
            Ok(client) => game.client = Some(client),
            Err(why) => game.why = why.to_string(),
        }
        game.client.is_some().into()
    })
}

/// Plays a frame at this time on the page's clock, in milliseconds. Returns 0 if the match is over; see [`boxes_why`].
#[unsafe(no_mangle)]
extern "C" fn boxes_frame(now_ms: f64, held: u32) -> u32 {
    let now = Duration::from_secs_f64(now_ms.max(0.0) / 1e3);
    GAME.with_borrow_mut(|game| {
        let Some(client) = &mut game.client else {
            return 0;
        };
        // The game imports no clock, so the cost of steps is not measured.
        let played = client.advance_at(now, || Duration::ZERO, |_seat| held as u8);
        while client.session_mut().poll_cue().is_some() {}
        while let Some(event) = client.session_mut().poll_event() {
            match event {
                Event::Reconnected { resumed, .. } => game.returns[usize::from(resumed)] += 1,
                Event::ControlsLost { .. } => game.lost += 1,
                _ => {}
            }
        }
        if let Err(why) = &played {
            game.why = sentence(why);
        }
        played.is_ok().into()
    })
}

fn sentence(why: &SessionEnd) -> String {
    let mut text = why.to_string();
    text.push('.');
    text
}

/// Passes the cubes to the page: player, x and y of each, as f32. Returns the number of bytes.
#[unsafe(no_mangle)]
extern "C" fn boxes_shown() -> usize {
    GAME.with_borrow(|game| {
        let shown = game
            .client
            .iter()
            .flat_map(|client| client.session().shown());
        let numbers = shown.flat_map(|(player, [x, y])| [f32::from(player.0), x, y]);
        page::answer(&numbers.flat_map(f32::to_le_bytes).collect::<Vec<_>>())
    })
}

#[unsafe(no_mangle)]
extern "C" fn boxes_why() -> usize {
    GAME.with_borrow(|game| page::answer(game.why.as_bytes()))
}

/// The state as JSON, for the test.
#[unsafe(no_mangle)]
extern "C" fn boxes_report() -> usize {
    GAME.with_borrow(|game| {
        let Some(client) = &game.client else {
            return page::answer(b"{}");
        };
        let (session, stats) = (client.session(), client.session().stats());
        let seat = session.seats().first().map_or(255, |seat| seat.0);
        let authority = session.authority();
        let digest = authority.map_or(0, |world| world.digest().unwrap_or(0));
        let tick = authority.map_or(0, |world| world.tick().0);
        let text = format!(
            "{{\"seat\":{seat},\"tick\":{tick},\"digest\":\"{digest:016x}\",\"heals\":{},\"stall_ms\":{:.0},\"rtt_ms\":{:.1},\
             \"returns\":{},\"resumed\":{},\"lost\":{},\"over\":\"{}\"}}",
            stats.heals,
            stats.stall_ms,
            stats.rtt_ms,
            game.returns[0] + game.returns[1],
            game.returns[1],
            game.lost,
            game.why
        );
        page::answer(text.as_bytes())
    })
}
