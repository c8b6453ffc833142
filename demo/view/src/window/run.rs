//! The loop around a [`WindowStage`]. It owns everything that a stage lacks: the window, the frame clock, the devices
//! (keyboard, mouse, gamepads, speaker), and the files (settings, pictures).

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

use glam::{Vec2, vec2};
use macroquad::miniquad::conf::{Conf, LinuxBackend, Platform};
use macroquad::prelude::{
    is_quit_requested, next_frame, prevent_quit, screen_height, screen_width, set_fullscreen,
    show_mouse,
};
use twinstep_client::SessionEnd;

use super::gpu::{CALL_CAPACITY, Gpu};
use super::input::{self, Board, Gamepads, Stick};
use super::probe::NoWindow;
use super::screens::Wish;
use super::screenshot::Screenshot;
use super::settings::SettingsFile;
use super::sound::Speaker;
use super::stage::{StageInput, WindowStage};
use crate::feed::Feed;
use crate::scene::palette::{GOOD, WARN};
use crate::stop;
use crate::summary::Summary;
use crate::time::{Instant, now, unix_now};

// The minimum time per frame if the driver does not wait for the screen: 250 frames a second.
#[cfg(not(target_arch = "wasm32"))]
const FRAME_MIN: Duration = Duration::from_millis(4);
/// The time for which the reason for the match's end stays on screen, if the player does not close it.
const CLOSING_MAX: Duration = Duration::from_secs(20);
/// A key pressed earlier than this was meant for the match, and does not close the reason.
const CLOSING_MIN: Duration = Duration::from_millis(800);
/// The longest step of animations, in seconds; after a longer pause they do not jump.
const DT_MAX: f32 = 0.1;

#[derive(Clone, Copy, Debug)]
pub struct WindowOptions {
    pub backend: LinuxBackend,
    pub size: (u16, u16),
    pub fullscreen: bool,
    pub mute: bool,
    // Whether each frame waits for the screen.
    pub vsync: bool,
}

/// The window could not be opened; the match may continue in another view.
pub struct WindowRefused {
    pub why: NoWindow,
    /// The feed, if it was not shown. `None` if the window was open and was closed from outside.
    pub feed: Option<Box<Feed>>,
}

/// Shows `feed` until the player quits or the match is over. Takes over the calling thread, which must be the
/// process's main thread. A process can open one window in its life.
///
/// # Errors
/// If a window cannot be opened.
pub fn run(feed: Feed, options: WindowOptions) -> Result<Summary, WindowRefused> {
    // An unusable file is reported once the window is open.
    let settings = SettingsFile::of_user().load().unwrap_or_default();
    let vsync = options.vsync && settings.vsync;
    let options = WindowOptions { vsync, ..options };
    let title = feed.title().to_owned();
    let feed = Rc::new(RefCell::new(Some(Box::new(feed))));
    let summary = Rc::new(RefCell::new(None));
    let (lent, out) = (Rc::clone(&feed), Rc::clone(&summary));
    let opened = open(&title, options, move || async move {
        // Before the feed is taken, because without graphics the match continues in another view.
        let gpu = match Gpu::new() {
            Ok(gpu) => gpu,
            Err(error) => {
                *out.borrow_mut() = Some(Err(NoWindow::Refused(error.to_string())));
                return;
            }
        };
        let Some(feed) = lent.borrow_mut().take() else {
            return;
        };
        let summary = play(gpu, *feed, options).await;
        *out.borrow_mut() = Some(Ok(summary));
    });
    let why = match (opened, summary.take()) {
        (_, Some(Ok(summary))) => return Ok(summary),
        (Err(why), _) | (Ok(()), Some(Err(why))) => why,
        (Ok(()), None) => NoWindow::Refused("it was closed before it was drawn".to_owned()),
    };
    Err(WindowRefused {
        why,
        feed: feed.take(),
    })
}

/// Shows `feed` in a browser's page, which drives the frames after this call.
#[cfg(target_arch = "wasm32")]
pub(crate) fn show(feed: Feed) {
    let options = WindowOptions {
        backend: LinuxBackend::X11Only,
        size: (1_280, 720),
        fullscreen: false,
        mute: false,
        vsync: true,
    };
    let opened = open("Powderkeg", options, move || async move {
        // The library's own hook prints to the console only.
        panic::set_hook(Box::new(|panic| {
            crate::page::end(&format!("this page has failed: {panic}"))
        }));
        let gpu = match Gpu::new() {
            Ok(gpu) => gpu,
            Err(error) => return crate::page::end(&error.to_string()),
        };
        let summary = play(gpu, feed, options).await;
        crate::page::end(&match summary.ended {
            Some(ended) => ended.to_string(),
            None => format!("you left with {} points", summary.score),
        });
    });
    if let Err(why) = opened {
        crate::page::end(&why.to_string());
    }
}

#[cfg(target_arch = "wasm32")]
fn note(feed: &Feed) {
    crate::page::note(feed.stats().map(|stats| crate::page::PageState {
        stats,
        seat: feed.seats().first().map(|seat| seat.0),
        wave: feed.game().map_or(0, |game| game.wave),
        players: feed.game().map_or(0, |game| game.players.iter().count()),
    }));
}

/// Opens a window and runs the future of `play` in it, until the future ends.
pub(super) fn open<F, P>(title: &str, options: WindowOptions, play: P) -> Result<(), NoWindow>
where
    F: Future<Output = ()> + 'static,
    P: FnOnce() -> F + 'static,
{
    let conf = macroquad::conf::Conf {
        miniquad_conf: Conf {
            window_title: title.to_owned(),
            window_width: options.size.0.into(),
            window_height: options.size.1.into(),
            fullscreen: options.fullscreen,
            platform: Platform {
                linux_backend: options.backend,
                linux_wm_class: "powderkeg",
                // A page drives each frame itself, because it also sends and receives.
                blocking_event_loop: cfg!(target_arch = "wasm32"),
                swap_interval: Some(i32::from(options.vsync)),
                ..Platform::default()
            },
            ..Conf::default()
        },
        draw_call_vertex_capacity: CALL_CAPACITY.0,
        draw_call_index_capacity: CALL_CAPACITY.1,
        ..macroquad::conf::Conf::default()
    };
    // Without a driver the library panics, which becomes an ordinary error here.
    let is_open = Rc::new(Cell::new(false));
    let opens = Rc::clone(&is_open);
    let quiet = Quiet::begin();
    let opened = panic::catch_unwind(AssertUnwindSafe(|| {
        macroquad::Window::from_config(conf, async move {
            opens.set(true);
            quiet.end();
            play().await;
        });
    }));
    let is_open = is_open.get();
    match opened {
        Ok(()) => Ok(()),
        // A panic after the window has opened is a bug.
        Err(panic) if is_open => panic::resume_unwind(panic),
        Err(panic) => Err(NoWindow::Refused(panic_message(&*panic))),
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Silences panics on the thread that created it, until it is dropped. Panics on other threads, such as those of a
/// match in this process, are reported as usual.
struct Quiet {
    /// Not `Send`, because it must end on the thread where it started.
    _here: PhantomData<*const ()>,
}

impl Quiet {
    fn begin() -> Quiet {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let told = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !IS_QUIET.get() {
                    told(info);
                }
            }));
        });
        IS_QUIET.set(true);
        Quiet { _here: PhantomData }
    }

    fn end(self) {}
}

impl Drop for Quiet {
    fn drop(&mut self) {
        IS_QUIET.set(false);
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned());
    words
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason was given".to_owned())
}

pub(super) fn window_size() -> Vec2 {
    vec2(screen_width(), screen_height()).max(Vec2::splat(64.0))
}

async fn play(mut gpu: Gpu, feed: Feed, options: WindowOptions) -> Summary {
    prevent_quit();
    show_mouse(false);
    let (speaker, silence) = match options.mute {
        true => (Speaker::silent(), None),
        false => match Speaker::open().await {
            Ok(speaker) => (speaker, None),
            Err(why) => (Speaker::silent(), Some(why.to_string())),
        },
    };
    let mut gamepads = Gamepads::of_system();
    let mut stage = WindowStage::new(feed, speaker, window_size());
    stage.vsync = options.vsync;
    // A missing device is reported once, in the window and on standard error.
    if let Some(words) = silence {
        say(&mut stage, &words);
    }
    let mut file = SettingsFile::of_user();
    match file.load() {
        Ok(settings) => stage.set_settings(settings),
        Err(why) => say(&mut stage, &why.to_string()),
    }
    let mut board = Board::default();
    let mut last = now();
    let mut is_fullscreen = options.fullscreen;
    let mut over: Option<(SessionEnd, Instant)> = None;
    let ended = loop {
        let began = now();
        let dt = (began - last).as_secs_f32().min(DT_MAX);
        last = began;
        input::read(&mut board);
        let sticks = gamepads.read();
        let played = stage.frame(&StageInput {
            board: &board,
            sticks,
            size: window_size(),
            dt,
            pads: None,
        });
        #[cfg(target_arch = "wasm32")]
        note(&stage.feed);
        draw(&mut gpu, &mut stage);
        if !stage.screens.is_settling() {
            keep(&mut file, &mut stage);
        }
        let pressed = board.is_touched || board.clicked || sticks.iter().any(Stick::begins);
        let wishes = played.unwrap_or_else(|ended| {
            over.get_or_insert((ended, began));
            Vec::new()
        });
        if let Some((ended, _)) = over.take_if(|(_, since)| {
            closes(began - *since, pressed) || is_quit_requested() || stop::asked()
        }) {
            break Some(ended);
        }
        for wish in &wishes {
            if *wish == Wish::Fullscreen {
                is_fullscreen = !is_fullscreen;
                set_fullscreen(is_fullscreen);
            }
            fulfil(*wish, &mut stage);
        }
        if wishes.contains(&Wish::Quit) || is_quit_requested() || stop::asked() {
            break None;
        }
        next_frame().await;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(rest) = FRAME_MIN.checked_sub(now() - began) {
            std::thread::sleep(rest);
        }
    };
    keep(&mut file, &mut stage);
    leave(stage, ended)
}

fn say(stage: &mut WindowStage, words: &str) {
    crate::say::err(words);
    stage.show_note(words, WARN);
}

fn keep(file: &mut SettingsFile, stage: &mut WindowStage) {
    if let Err(why) = file.keep(&stage.settings) {
        say(stage, &why.to_string());
    }
}

fn closes(shown: Duration, pressed: bool) -> bool {
    shown >= CLOSING_MAX || pressed && shown >= CLOSING_MIN
}

fn leave(mut stage: WindowStage, ended: Option<SessionEnd>) -> Summary {
    stage.feed.leave();
    Summary::of(&stage.feed, ended)
}

fn draw(gpu: &mut Gpu, stage: &mut WindowStage) {
    if std::mem::take(&mut stage.has_new_atlas) {
        gpu.load(&stage.batch.atlas);
    }
    gpu.draw(&stage.batch, stage.background());
}

fn fulfil(wish: Wish, stage: &mut WindowStage) {
    let (what, done) = match wish {
        Wish::Screenshot => {
            let path = file("powderkeg", "png");
            let shot = Screenshot::of(&stage.batch, stage.background(), window_size());
            let saved = shot.save(&path).map_err(|error| error.to_string());
            ("the picture", saved.map(|()| path))
        }
        _ => return,
    };
    match done {
        Ok(path) => stage.show_note(&format!("{what} is saved as {}", path.display()), GOOD),
        Err(why) => stage.show_note(&format!("{what} was not saved: {why}"), WARN),
    }
}

fn file(stem: &str, ending: &str) -> PathBuf {
    PathBuf::from(format!("{stem}-{}.{ending}", unix_now().as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_the_end_stays_until_a_key_or_a_timeout() {
        let shown = Duration::from_millis;
        assert!(!closes(shown(0), true), "this key was meant for the match");
        assert!(!closes(shown(5_000), false) && closes(shown(5_000), true));
        assert!(closes(CLOSING_MAX, false));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about threads")]
    fn panics_are_silenced_only_on_the_thread_that_opens_the_window() {
        let is_quiet = || std::thread::spawn(|| IS_QUIET.get()).join().unwrap();
        let quiet = Quiet::begin();
        assert!(IS_QUIET.get() && !is_quiet());
        // Either the window opens, or a panic refuses it.
        quiet.end();
        assert!(!IS_QUIET.get());
        let refused = panic::catch_unwind(|| {
            let _quiet = Quiet::begin();
            panic!("refused");
        });
        assert!(refused.is_err() && !IS_QUIET.get());
    }
}
