//! A display where there is none: Xvfb, an X server that draws into memory.
//!
//! The process runs itself again as a child with that display, since a program should not change its own environment.
//! Own code: it is one command, which tells the number of its display by itself (`-displayfd`).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

/// No display could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoDisplay {
    /// Xvfb cannot be run.
    #[error(
        "there is no display, and Xvfb cannot be run ({0}); install the package xvfb (on Debian: apt-get install xvfb libgl1-mesa-dri)"
    )]
    Xvfb(std::io::Error),
    /// It ran and told no display.
    #[error("Xvfb ended before it offered a display; run `Xvfb -displayfd 1` to see why")]
    Silent,
    /// This program cannot be run again.
    #[error("cannot run this program again with a display: {0}")]
    Again(std::io::Error),
}

/// An X server that ends with this value.
struct Xvfb {
    server: Child,
    display: String,
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn start(size: (u16, u16)) -> Result<Xvfb, NoDisplay> {
    let screen = format!("{}x{}x24", size.0, size.1);
    let server = Command::new("Xvfb")
        .args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            &screen,
            "-nolisten",
            "tcp",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(NoDisplay::Xvfb)?;
    let mut xvfb = Xvfb {
        server,
        display: String::new(),
    };
    let out = xvfb.server.stdout.take().ok_or(NoDisplay::Silent)?;
    let mut line = String::new();
    let told = BufReader::new(out).read_line(&mut line);
    let number = line.trim();
    if told.is_err() || number.is_empty() {
        return Err(NoDisplay::Silent);
    }
    xvfb.display = format!(":{number}");
    Ok(xvfb)
}

/// Runs this very command again on a display of its own.
///
/// # Errors
/// There is no Xvfb, or it does not work.
pub fn run_again(size: (u16, u16)) -> Result<ExitCode, NoDisplay> {
    let xvfb = start(size)?;
    let program = std::env::current_exe().map_err(NoDisplay::Again)?;
    let status = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env("DISPLAY", &xvfb.display)
        .env("LIBGL_ALWAYS_SOFTWARE", "1")
        .status()
        .map_err(NoDisplay::Again)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
