//! [`Screen`]: the terminal while the view uses it, always restored at the end.
//!
//! Invariant: however the view ends (the end of the match, an error, a panic on this thread, a signal), the terminal
//! leaves raw mode and the alternate screen before anything else is printed. Panic messages of other threads are kept
//! until then, so that they do not damage the picture.

use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{panic, thread};

use crossterm::event::{
    DisableFocusChange, EnableFocusChange, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::say;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    #[error(
        "--terminal needs a terminal as standard output; without the flag the match is shown in a window, if there is a display"
    )]
    NoTerminal,
    #[error("the terminal failed: {0}")]
    Io(#[from] io::Error),
}

/// The maximum number of panic messages kept from other threads; any more are dropped (law *Bounded*).
const KEPT_MAX: usize = 16;

/// Whether the terminal must be restored.
static IS_BORROWED: AtomicBool = AtomicBool::new(false);
/// Whether the terminal was asked to report releases.
static IS_KITTY: AtomicBool = AtomicBool::new(false);

/// A terminal in raw mode on its alternate screen, until dropped.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
    pub(super) releases: bool,
    hook_before: PanicHook,
    kept: Arc<Mutex<Vec<String>>>,
}

type PanicHook = Arc<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

impl Screen {
    pub(super) fn enter() -> Result<Screen, TerminalError> {
        // Keys are read from the terminal itself even if standard input is something else.
        if !io::stdout().is_terminal() {
            return Err(TerminalError::NoTerminal);
        }
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        IS_BORROWED.store(true, Ordering::Relaxed);
        enable_raw_mode()?;
        let kitty = terminal::supports_keyboard_enhancement().unwrap_or(false);
        IS_KITTY.store(kitty, Ordering::Relaxed);
        let kept = Arc::default();
        // From here on, the drop restores everything if a step fails.
        let screen = Screen {
            terminal,
            releases: kitty || cfg!(windows),
            hook_before: watch_panics(&kept),
            kept,
        };
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableFocusChange,
            cursor::Hide
        )?;
        if kitty {
            let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
                | KeyboardEnhancementFlags::REPORT_EVENT_TYPES
                | KeyboardEnhancementFlags::REPORT_ALL_KEYS_AS_ESCAPE_CODES;
            execute!(io::stdout(), PushKeyboardEnhancementFlags(flags))?;
        }
        Ok(screen)
    }
}

fn watch_panics(kept: &Arc<Mutex<Vec<String>>>) -> PanicHook {
    let owner = thread::current().id();
    let before: PanicHook = Arc::from(panic::take_hook());
    let (kept, inner) = (Arc::clone(kept), Arc::clone(&before));
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == owner {
            give_back();
            inner(info);
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(info.to_string());
        }
    }));
    before
}

impl Drop for Screen {
    fn drop(&mut self) {
        // During a panic the hook has already restored the terminal.
        if !thread::panicking() {
            give_back();
            let before = Arc::clone(&self.hook_before);
            panic::set_hook(Box::new(move |info| before(info)));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for words in kept.drain(..) {
            say::err(words);
        }
    }
}

/// Restores the terminal if the view has taken it over, from any thread. Ignores errors, because they cannot be shown.
pub fn give_back() {
    if !IS_BORROWED.swap(false, Ordering::Relaxed) {
        return;
    }
    let mut out = io::stdout();
    if IS_KITTY.load(Ordering::Relaxed) {
        let _ = execute!(out, PopKeyboardEnhancementFlags);
    }
    let _ = execute!(out, DisableFocusChange, LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}
