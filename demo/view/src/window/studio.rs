//! A window of one known size, for making pictures and for measuring. If the window has another size, nothing is done
//! in it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use glam::{Vec2, vec2};
use macroquad::prelude::{next_frame, request_new_screen_size};

use super::gpu::Gpu;
use super::probe::{self, NoWindow};
use super::proof::Unseen;
use super::run::{self, WindowOptions};
use super::xvfb::NoDisplay;

/// In pixels.
pub const SIZE: (u16, u16) = (1_280, 720);
/// A window that has not its size after so many frames does not get it.
const FRAMES_MAX: u32 = 60;

/// No pictures came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShotsError {
    /// No display, and none could be made.
    #[error(transparent)]
    Display(#[from] NoDisplay),
    /// There is a display, and no window on it.
    #[error("{0}")]
    Window(String),
    /// The display gives the window another size.
    #[error(
        "expected a window of {} by {} pixels, got {width} by {height}; unset DISPLAY and WAYLAND_DISPLAY to use Xvfb \
         instead",
        SIZE.0,
        SIZE.1
    )]
    Size {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The folder or a file cannot be written.
    #[error("cannot write {path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// What was said.
        why: String,
    },
    /// A picture does not show what it should.
    #[error("the picture of {0}: {1}")]
    Unseen(&'static str, Unseen),
    /// The script waited for something that did not happen.
    #[error("the moment of {0} did not come within the script; choose another --seed")]
    Moment(&'static str),
}

impl From<NoWindow> for ShotsError {
    fn from(why: NoWindow) -> ShotsError {
        ShotsError::Window(why.to_string())
    }
}

/// What `work` makes in a window of [`SIZE`]; `None`: there is no display.
///
/// # Errors
/// There is a display, and no window of this size on it; or what `work` says.
pub(super) fn in_window<T, F>(
    work: impl FnOnce(Gpu) -> F + 'static,
) -> Result<Option<T>, ShotsError>
where
    T: 'static,
    F: Future<Output = Result<T, ShotsError>>,
{
    let backend = match probe::display() {
        Ok(backend) => backend,
        Err(NoWindow::NoDisplay) => return Ok(None),
        Err(why) => return Err(why.into()),
    };
    let options = WindowOptions {
        backend,
        size: SIZE,
        fullscreen: false,
        mute: true,
        waits: false,
    };
    let done = Rc::new(RefCell::new(None));
    let told = Rc::clone(&done);
    run::open(options, move || async move {
        let made = match prepared().await {
            Ok(gpu) => work(gpu).await,
            Err(error) => Err(error),
        };
        *told.borrow_mut() = Some(made);
    })?;
    match done.take() {
        Some(made) => made.map(Some),
        None => Err(ShotsError::Window("the window was closed".to_owned())),
    }
}

/// Graphics, once the window has its size: a window manager may take some frames over it, or may not obey.
async fn prepared() -> Result<Gpu, ShotsError> {
    let gpu = Gpu::new().map_err(|error| ShotsError::Window(error.to_string()))?;
    let wanted: Vec2 = vec2(SIZE.0.into(), SIZE.1.into());
    for _ in 0..FRAMES_MAX {
        if run::window_size() == wanted {
            return Ok(gpu);
        }
        request_new_screen_size(wanted.x, wanted.y);
        next_frame().await;
    }
    let size = run::window_size();
    Err(ShotsError::Size {
        width: size.x as u32,
        height: size.y as u32,
    })
}
