//! Servers that are measured, each a process of its own: what is counted is theirs alone.
//!
//! ```text
//!  this process ──starts──▶ serve --kind … ◀── UDP ── players, in this process (or elsewhere)
//!       └──── a line ────▶ a sample of what the server has used up and done
//! ```

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::cores;
use crate::process::{Cpu, Failed, Usage};

/// What serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Our host, with tickets and encryption.
    Twinstep,
    /// renet with renet_netcode, with its tokens and encryption.
    Renet,
    /// A socket and nothing else: what the kernel takes at least.
    Echo,
}

/// What a server of any kind has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Ticks of all players: of a server without matches, what players said.
    pub(crate) player_ticks: u64,
    /// Datagrams that came and went; 0 where the server cannot tell.
    pub(crate) datagrams: u64,
    /// Inputs that did not come in time.
    pub(crate) fills: u64,
    /// Turns that clients found different.
    pub(crate) desyncs: u64,
    /// How late ticks were sealed since the last sample, where that is measured.
    pub(crate) lateness: Option<Lateness>,
}

/// By how much ticks were sealed after the earliest moment of their match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lateness {
    pub(crate) seals: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) worst_us: f64,
}

/// A server while it runs.
pub(crate) trait Server {
    fn address(&self) -> SocketAddr;

    fn done(&mut self) -> Result<Done, Failed>;
}

/// What a server process has used up and done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Its time on processors when it was asked, and when it had answered: looking costs some.
    pub(crate) asked: Cpu,
    pub(crate) answered: Cpu,
    pub(crate) usage: Usage,
    /// Heap allocations of all its threads; likewise.
    pub(crate) asked_allocations: u64,
    pub(crate) answered_allocations: u64,
    pub(crate) done: Done,
}

impl Sample {
    /// What it used up since an earlier sample, the samples themselves left out.
    pub(crate) fn cpu_since(&self, earlier: &Sample) -> Cpu {
        self.asked - earlier.answered
    }

    /// How often it allocated since an earlier sample, likewise.
    pub(crate) fn allocations_since(&self, earlier: &Sample) -> u64 {
        self.asked_allocations - earlier.answered_allocations
    }
}

/// A server process.
pub(crate) struct Served {
    child: Child,
    ask: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
    /// What it had used before anybody came.
    pub(crate) empty: Sample,
}

impl Served {
    /// Starts one, on a core of its own if there are two; whoever calls this goes to the other one.
    pub(crate) fn start(kind: Kind, players: usize, key_file: &Path) -> Result<Served, Failed> {
        let cores = cores::two();
        if let Some((server, _)) = cores {
            cores::pin(server);
        }
        let kind = kind.to_possible_value().expect("each has a name");
        let started = Command::new(std::env::current_exe()?)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--kind",
                kind.get_name(),
            ])
            .args(["--matches", &players.div_ceil(4).to_string()])
            .arg("--key-file")
            .arg(key_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        if let Some((_, players)) = cores {
            cores::pin(players);
        }
        let mut child = started?;
        let ask = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().ok_or("the server ended at once")??;
        let mut served = Served {
            address: first.parse()?,
            child,
            ask,
            lines,
            empty: Sample::default(),
        };
        served.empty = served.sample()?;
        Ok(served)
    }

    /// What it has used up and done by now.
    pub(crate) fn sample(&mut self) -> Result<Sample, Failed> {
        self.ask()?;
        self.answer()
    }

    /// Asks for a sample.
    pub(crate) fn ask(&mut self) -> Result<(), Failed> {
        Ok(writeln!(self.ask.as_mut().ok_or("it is being ended")?)?)
    }

    /// Waits for the sample that was asked for.
    pub(crate) fn answer(&mut self) -> Result<Sample, Failed> {
        let line = self.lines.next().ok_or("the server ended")??;
        Ok(serde_json::from_str(&line)?)
    }

    /// Its number among the machine's processes.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it.
    pub(crate) fn end(mut self) -> Result<(), Failed> {
        drop(self.ask.take());
        let ended = self.child.wait()?;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("the server ended with {ended}").into()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Its input ends, and so does it; one that hangs must not outlive its report.
        drop(self.ask.take());
        if matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
