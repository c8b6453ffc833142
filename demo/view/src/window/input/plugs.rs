//! [`Gamepads`]: which gamepads are connected, without any library: Linux offers each as a file of events
//! (`/dev/input/js0` and so on).
//!
//! ```text
//!            once a second           events, until there are none
//!   Empty ──────────────────▶ Open ─────────────────────────────▶ Stick
//!     ▲  └──▶ Refused ──────▶  │
//!     └────── pulled out ──────┘  what it held, it holds no more
//! ```
//!
//! Own code: `gilrs` needs the headers of libudev to build. `evdev` needs none and knows buttons by name, but it asks
//! each device by system calls that no file of a test can answer, and it finds gamepads by opening every input device.
//!
//! Invariant: what becomes of one gamepad changes nothing for another one.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::gamepad::Stick;
use super::layout::Layout;

/// Files that are looked for.
const SLOTS: usize = 8;
/// So often somebody may have connected one.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A file of a new gamepad is not readable at once: it is said when it still is not after so many looks.
const PATIENCE_LOOKS: u8 = 2;

/// What the player is told of gamepads, each once.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GamepadNews {
    /// One came while the match was on.
    #[error("gamepad connected: {0}")]
    Connected(String),
    /// One went.
    #[error("gamepad disconnected: its buttons are released")]
    Disconnected,
    /// One is there that cannot be read.
    #[error(
        "a gamepad cannot be used: {path} cannot be read ({source}); add yourself to the group `input`, or play with \
         keys or another gamepad"
    )]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No gamepad can be read on this system.
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "for other systems"))]
    #[error("gamepads are read on Linux only: play with keyboard and mouse")]
    Unsupported,
}

enum Slot {
    Empty,
    /// Looked at so often.
    Refused(u8),
    Open(OpenPad),
}

struct OpenPad {
    file: File,
    layout: Layout,
    stick: Stick,
}

/// See the [module](self).
pub(crate) struct Gamepads {
    slots: [Slot; SLOTS],
    sticks: Vec<Stick>,
    /// Where files of events are, and where what they are of is told.
    events: PathBuf,
    about: PathBuf,
    open: fn(&Path) -> std::io::Result<File>,
    looked: Option<Duration>,
    news: Vec<GamepadNews>,
}

impl Gamepads {
    /// Those of this system; they are looked for when they are read.
    pub(crate) fn of_system() -> Gamepads {
        let gamepads = Gamepads::of("/dev/input".as_ref(), "/sys/class/input".as_ref());
        #[cfg(not(target_os = "linux"))]
        let gamepads = Gamepads {
            news: vec![GamepadNews::Unsupported],
            ..gamepads
        };
        gamepads
    }

    fn of(events: &Path, about: &Path) -> Gamepads {
        Gamepads {
            slots: [const { Slot::Empty }; SLOTS],
            sticks: Vec::with_capacity(SLOTS),
            events: events.to_owned(),
            about: about.to_owned(),
            open: open_without_waiting,
            looked: None,
            news: Vec::new(),
        }
    }

    /// All that are connected, in the order of their files.
    pub(crate) fn sticks(&self) -> &[Stick] {
        &self.sticks
    }

    /// What is to be told next.
    pub(crate) fn poll_news(&mut self) -> Option<GamepadNews> {
        (!self.news.is_empty()).then(|| self.news.remove(0))
    }

    /// Reads what has happened since the last frame.
    pub(crate) fn read(&mut self, now: Duration) {
        if self.looked.is_none_or(|then| now >= then + LOOK_AGAIN) && cfg!(target_os = "linux") {
            self.look();
            self.looked = Some(now);
        }
        self.sticks.clear();
        for slot in &mut self.slots {
            let Slot::Open(pad) = slot else {
                continue;
            };
            pad.stick.begin();
            if drain(&mut pad.file, &mut pad.stick, &pad.layout) {
                self.sticks.push(pad.stick.clone());
            } else {
                *slot = Slot::Empty;
                self.news.push(GamepadNews::Disconnected);
            }
        }
    }

    /// Opens those that are there and are not open.
    fn look(&mut self) {
        let is_first = self.looked.is_none();
        for (n, slot) in self.slots.iter_mut().enumerate() {
            let looks = match slot {
                Slot::Open(_) => continue,
                Slot::Refused(looks) => *looks,
                Slot::Empty => 0,
            };
            let path = self.events.join(format!("js{n}"));
            let about = self.about.join(format!("js{n}/device"));
            *slot = match (self.open)(&path) {
                Ok(file) => match layout(&about) {
                    Some(layout) => {
                        if !is_first {
                            self.news.push(GamepadNews::Connected(name(&about)));
                        }
                        Slot::Open(OpenPad {
                            file,
                            layout,
                            stick: Stick::default(),
                        })
                    }
                    // Some keyboards and mice have such a file too.
                    None => Slot::Empty,
                },
                Err(source) if source.kind() == ErrorKind::PermissionDenied => {
                    let looks = looks.saturating_add(1);
                    if looks == PATIENCE_LOOKS {
                        self.news.push(GamepadNews::Unreadable { path, source });
                    }
                    Slot::Refused(looks)
                }
                Err(_) => Slot::Empty,
            };
        }
    }
}

/// What it has; none: it is no gamepad.
fn layout(about: &Path) -> Option<Layout> {
    let has = |what| std::fs::read_to_string(about.join("capabilities").join(what));
    match (has("key"), has("abs")) {
        (Ok(keys), Ok(axes)) => Layout::of(&keys, &axes),
        _ => Some(Layout::usual()),
    }
}

/// What it calls itself.
fn name(about: &Path) -> String {
    let name = std::fs::read_to_string(about.join("name")).unwrap_or_default();
    match name.trim() {
        "" => "of no name".to_owned(),
        name => name.to_owned(),
    }
}

/// Takes all events that wait; whether there may come more.
fn drain(source: &mut impl Read, stick: &mut Stick, layout: &Layout) -> bool {
    let mut event = [0; 8];
    loop {
        match source.read(&mut event) {
            Ok(8) => stick.handle(event, layout),
            Ok(_) => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[cfg(target_os = "linux")]
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    const O_NONBLOCK: i32 = 0o4000;
    File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_without_waiting(_: &Path) -> std::io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use glam::Vec2;

    use super::*;
    use crate::window::input::layout::Button;

    /// A folder with a system's files in it.
    struct Desk(PathBuf);

    impl Desk {
        fn new(name: &str) -> Desk {
            let folder = format!("powderkeg-gamepads-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            Desk(folder)
        }

        fn gamepads(&self) -> Gamepads {
            Gamepads::of(&self.0, &self.0.join("about"))
        }

        /// Connects a gamepad; whoever drops the file pulls it out.
        fn connect(&self, n: u8) -> File {
            let path = self.0.join(format!("js{n}"));
            let made = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
            File::options().read(true).write(true).open(path).unwrap()
        }

        fn pull_out(&self, n: u8, file: File) {
            std::fs::remove_file(self.0.join(format!("js{n}"))).unwrap();
            drop(file);
        }

        fn describe(&self, n: u8, name: &str, keys: &str, axes: &str) {
            let about = self.0.join(format!("about/js{n}/device"));
            std::fs::create_dir_all(about.join("capabilities")).unwrap();
            std::fs::write(about.join("name"), name).unwrap();
            std::fs::write(about.join("capabilities/key"), keys).unwrap();
            std::fs::write(about.join("capabilities/abs"), axes).unwrap();
        }
    }

    impl Drop for Desk {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const PRESS_SOUTH: [u8; 8] = [0, 0, 0, 0, 1, 0, 1, 0];
    const PUSH_LEFT_STICK: [u8; 8] = [0, 0, 0, 0, 0xff, 0x7f, 2, 0];
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_gamepad_that_is_connected_in_play_works_and_one_that_is_pulled_out_holds_nothing() {
        let desk = Desk::new("plugs");
        let mut gamepads = desk.gamepads();
        gamepads.read(Duration::ZERO);
        assert!(gamepads.sticks().is_empty() && gamepads.poll_news().is_none());
        desk.describe(2, "Sofa pad\n", &usize_words(0x7cdb), "3003f");
        let mut wire = desk.connect(2);
        gamepads.read(SECOND / 2);
        assert!(gamepads.sticks().is_empty(), "nobody looks at every frame");
        gamepads.read(SECOND);
        let news = gamepads.poll_news().unwrap().to_string();
        assert_eq!(news, "gamepad connected: Sofa pad");
        wire.write_all(&[PRESS_SOUTH, PUSH_LEFT_STICK].concat())
            .unwrap();
        gamepads.read(SECOND);
        assert!(gamepads.sticks()[0].pressed(Button::South));
        assert_eq!(gamepads.sticks()[0].left, Vec2::X);
        gamepads.read(SECOND);
        assert!(!gamepads.sticks()[0].pressed(Button::South));
        assert!(gamepads.sticks()[0].holds(Button::South));
        desk.pull_out(2, wire);
        // A process that another test starts at this moment holds a copy of the wire until its program begins.
        for _ in 0..3_000 {
            gamepads.read(SECOND);
            if gamepads.sticks().is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gamepads.sticks().is_empty(), "it holds what it held");
        assert!(matches!(
            gamepads.poll_news(),
            Some(GamepadNews::Disconnected)
        ));
        let _wire = desk.connect(2);
        gamepads.read(SECOND * 2);
        assert!(
            !gamepads.sticks()[0].holds(Button::South),
            "it comes back at rest"
        );
    }

    #[test]
    fn one_that_cannot_be_read_is_said_once_and_the_others_work() {
        let desk = Desk::new("refused");
        let _wires = [desk.connect(0), desk.connect(1)];
        let mut gamepads = desk.gamepads();
        gamepads.open = |path| match path.ends_with("js0") {
            true => Err(ErrorKind::PermissionDenied.into()),
            false => open_without_waiting(path),
        };
        let mut news = Vec::new();
        for n in 0..10 {
            gamepads.read(SECOND * n);
            news.extend(std::iter::from_fn(|| gamepads.poll_news()));
        }
        assert_eq!(gamepads.sticks().len(), 1);
        let [GamepadNews::Unreadable { path, .. }] = &news[..] else {
            panic!("{news:?}");
        };
        assert!(path.ends_with("js0"));
        gamepads.open = open_without_waiting;
        gamepads.read(SECOND * 10);
        assert_eq!(gamepads.sticks().len(), 2, "somebody mended it");
    }

    #[test]
    fn what_is_no_gamepad_is_left_alone() {
        let desk = Desk::new("keyboard");
        let _wire = desk.connect(0);
        desk.describe(0, "Keyboard", "fffffffe", "1");
        let mut gamepads = desk.gamepads();
        gamepads.read(Duration::ZERO);
        assert!(gamepads.sticks().is_empty() && gamepads.poll_news().is_none());
    }

    /// The keys of a gamepad from 0x130 on, as sysfs writes them.
    fn usize_words(keys: u64) -> String {
        if usize::BITS == 64 {
            format!("{:x} 0 0 0 0", keys << 0x30)
        } else {
            format!("{:x} 0 0 0 0 0 0 0 0 0", keys << 0x10)
        }
    }
}
