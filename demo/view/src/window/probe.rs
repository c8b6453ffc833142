//! Checks before a window is opened: is there a display, does it respond, and are the libraries loaded at run time
//! installed? A missing library is named with its package.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use macroquad::miniquad::conf::LinuxBackend;

const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoWindow {
    #[error("there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set")]
    NoDisplay,
    #[error("the display {display} does not respond ({why}); check DISPLAY, or start it")]
    Silent { display: String, why: String },
    #[error(
        "{library} is missing: install the package {package} (on Debian: apt-get install {package})"
    )]
    Missing {
        library: &'static str,
        package: &'static str,
    },
    #[error(
        "cannot open a window: {0}; if the error is about GLX or EGL, install the package libgl1-mesa-dri"
    )]
    Refused(String),
}

struct Library {
    names: &'static [&'static str],
    package: &'static str,
}

const XKB: Library = Library {
    names: &["libxkbcommon.so.0", "libxkbcommon.so"],
    package: "libxkbcommon0",
};
const X11: [Library; 4] = [
    Library {
        names: &["libX11.so.6", "libX11.so"],
        package: "libx11-6",
    },
    Library {
        names: &["libXi.so.6", "libXi.so"],
        package: "libxi6",
    },
    XKB,
    // Any of them is enough.
    Library {
        names: &["libGL.so.1", "libGL.so", "libEGL.so.1", "libEGL.so"],
        package: "libgl1",
    },
];
const WAYLAND: [Library; 4] = [
    Library {
        names: &["libwayland-client.so.0", "libwayland-client.so"],
        package: "libwayland-client0",
    },
    Library {
        names: &["libwayland-egl.so.1", "libwayland-egl.so"],
        package: "libwayland-egl1",
    },
    XKB,
    Library {
        names: &["libEGL.so.1", "libEGL.so"],
        package: "libegl1",
    },
];

pub fn display() -> Result<LinuxBackend, NoWindow> {
    if !cfg!(target_os = "linux") {
        // Windows and macOS always have a display and the libraries.
        return Ok(LinuxBackend::X11Only);
    }
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    choose(set("DISPLAY"), set("WAYLAND_DISPLAY"), answers, loads)
}

/// Prefers X11: Wayland desktops also offer it, and the library's Wayland backend is younger.
fn choose(
    x11: Option<String>,
    wayland: Option<String>,
    answers: impl Fn(&str) -> Result<(), String>,
    loads: impl Fn(&str) -> bool,
) -> Result<LinuxBackend, NoWindow> {
    let missing = |libraries: &[Library]| {
        let missing = libraries
            .iter()
            .find(|library| !library.names.iter().any(|name| loads(name)));
        missing.map_or(Ok(()), |library| {
            Err(NoWindow::Missing {
                library: library.names[0],
                package: library.package,
            })
        })
    };
    let by_x11 = x11.map(|display| match answers(&display) {
        Ok(()) => missing(&X11),
        Err(why) => Err(NoWindow::Silent { display, why }),
    });
    let by_wayland = wayland.map(|_| missing(&WAYLAND));
    match (by_x11, by_wayland) {
        (Some(Ok(())), _) => Ok(LinuxBackend::X11Only),
        (_, Some(Ok(()))) => Ok(LinuxBackend::WaylandOnly),
        (Some(Err(error)), _) | (None, Some(Err(error))) => Err(error),
        (None, None) => Err(NoWindow::NoDisplay),
    }
}

#[cfg(target_os = "linux")]
fn loads(name: &str) -> bool {
    macroquad::miniquad::native::module::Module::load(name).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn loads(_: &str) -> bool {
    true
}

/// Returns `Ok` if a server listens at a display: `[host]:number[.screen]`.
fn answers(display: &str) -> Result<(), String> {
    let (host, number) = display_parts(display).ok_or("expected host:number, such as :0")?;
    if !host.is_empty() && host != "unix" {
        let places = (host, 6_000 + number).to_socket_addrs();
        return any_answers(places.map_err(|error| error.to_string())?);
    }
    local(number)
}

/// Returns `Ok` if a server listens at one of a host's addresses: `localhost` has one of each family, and a server may
/// listen at either.
fn any_answers(places: impl Iterator<Item = SocketAddr>) -> Result<(), String> {
    let mut why = "the host has no address".to_owned();
    for place in places {
        match TcpStream::connect_timeout(&place, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => why = format!("{place}: {error}"),
        }
    }
    Err(why)
}

fn display_parts(display: &str) -> Option<(&str, u16)> {
    let (host, rest) = display.rsplit_once(':')?;
    let number = rest.split('.').next()?;
    // The port is 6,000 + number, which must fit into 16 bits.
    Some((host, number.parse().ok().filter(|number| *number < 59_000)?))
}

#[cfg(unix)]
fn local(number: u16) -> Result<(), String> {
    use std::os::unix::net::UnixStream;
    let path = format!("/tmp/.X11-unix/X{number}");
    UnixStream::connect(&path)
        .map(drop)
        .map_err(|error| format!("{path}: {error}"))
}

#[cfg(not(unix))]
fn local(_: u16) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn x11_is_preferred_and_wayland_is_the_fallback() {
        let fine = |_: &str| Ok(());
        let silent = |_: &str| Err("no answer".to_owned());
        let all = |_: &str| true;
        assert_eq!(
            choose(some(":0"), some("wayland-0"), fine, all),
            Ok(LinuxBackend::X11Only)
        );
        assert_eq!(
            choose(some(":0"), some("wayland-0"), silent, all),
            Ok(LinuxBackend::WaylandOnly)
        );
        assert_eq!(
            choose(None, some("wayland-0"), silent, all),
            Ok(LinuxBackend::WaylandOnly)
        );
        assert_eq!(choose(None, None, fine, all), Err(NoWindow::NoDisplay));
    }

    #[test]
    fn a_missing_library_is_named_with_its_package() {
        for (gone, package) in [
            ("libX11", "libx11-6"),
            ("libXi", "libxi6"),
            ("libxkbcommon", "libxkbcommon0"),
        ] {
            let error =
                choose(some(":0"), None, |_| Ok(()), |name| !name.starts_with(gone)).unwrap_err();
            assert!(error.to_string().contains(package), "{error}");
        }
        let without_gl = |name: &str| !name.starts_with("libGL") && !name.starts_with("libEGL");
        let error = choose(some(":0"), None, |_| Ok(()), without_gl).unwrap_err();
        assert!(error.to_string().contains("libgl1"), "{error}");
        // One of the two is enough.
        assert!(
            choose(
                some(":0"),
                None,
                |_| Ok(()),
                |name| !name.starts_with("libGL.")
            )
            .is_ok()
        );
        let error = choose(
            None,
            some("wayland-0"),
            |_| Ok(()),
            |name| !name.starts_with("libEGL"),
        )
        .unwrap_err();
        assert!(error.to_string().contains("libegl1"), "{error}");
    }

    #[test]
    fn a_host_responds_if_any_of_its_addresses_does() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let answers = listener.local_addr().unwrap();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let deaf = silent.local_addr().unwrap();
        drop(silent);
        assert_eq!(any_answers([deaf, answers].into_iter()), Ok(()));
        let error = any_answers([deaf].into_iter()).unwrap_err();
        assert!(error.starts_with(&deaf.to_string()), "{error}");
        assert!(any_answers(std::iter::empty()).is_err());
    }

    #[test]
    fn an_unresponsive_display_is_named() {
        assert_eq!(display_parts(":77"), Some(("", 77)));
        assert_eq!(display_parts("far:1.0"), Some(("far", 1)));
        assert_eq!(display_parts("nonsense"), None);
        let error = choose(some(":4711"), None, answers, |_| true).unwrap_err();
        assert!(error.to_string().contains(":4711"), "{error}");
    }
}
