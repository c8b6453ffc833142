//! Runs a measured server in its own process, so that its time, memory and allocations are counted separately.
//!
//! ```text
//!  this process ──starts──▶ serve --kind … ◀── UDP ── players, in this process or elsewhere
//!       └──── a line ────▶ a sample of the server's resources and work, as one JSON line
//! ```

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use twinstep_testing::Counting;
use twinstep_udp::TicketKey;

use crate::game::PLAYERS;
use crate::host::Hosted;
use crate::peers::PeerServer;
use crate::process::{Cpu, Failed, cores, cpu, pin, resident_kb};
use crate::subject::{Done, Server};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Our host, with tickets and encryption.
    Twinstep,
    /// renet with renet_netcode, with its tokens and encryption.
    Renet,
    /// A UDP socket that replies: only the kernel's part.
    Echo,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The server's processor time when the sample was requested and when it was ready. The sample itself takes some
    /// processor time.
    asked: Cpu,
    answered: Cpu,
    pub(crate) resident_kb: u64,
    /// The heap allocations of all server threads at the same two moments.
    asked_allocations: u64,
    answered_allocations: u64,
    pub(crate) done: Done,
}

impl Sample {
    /// The server's processor time since an earlier sample, not counting the sampling itself.
    pub(crate) fn cpu_since(&self, earlier: &Sample) -> Cpu {
        self.asked - earlier.answered
    }

    pub(crate) fn allocations_since(&self, earlier: &Sample) -> u64 {
        self.asked_allocations - earlier.answered_allocations
    }
}

/// Serves matches of four players until standard input ends. Prints the listen address, then a [`Sample`] for each line
/// of input.
pub(crate) fn serve(
    kind: Kind,
    (listen, public): (SocketAddr, Option<SocketAddr>),
    matches: usize,
    key_file: &Path,
) -> Result<(), Failed> {
    let key = TicketKey::load(key_file)?;
    if public.is_some() && kind != Kind::Twinstep {
        return Err("only Twinstep's tickets name a public address: leave --public out".into());
    }
    let mut server: Box<dyn Server> = match kind {
        Kind::Twinstep => Box::new(Hosted::start((listen, public), matches, key)?),
        Kind::Renet => Box::new(PeerServer::renet(listen, matches * PLAYERS)?),
        Kind::Echo => Box::new(PeerServer::echo(listen)?),
    };
    println!("{}", server.address());
    for line in std::io::stdin().lines() {
        line?;
        let (asked, asked_allocations) = (cpu()?, Counting::of_all_threads());
        let mut sample = Sample {
            asked,
            asked_allocations,
            done: server.done()?,
            resident_kb: resident_kb()?,
            ..Sample::default()
        };
        (sample.answered, sample.answered_allocations) = (cpu()?, Counting::of_all_threads());
        let before = Counting::allocations();
        drop(serde_json::to_string(&sample)?);
        // The allocations made to write this sample must not count towards the next one.
        sample.answered_allocations += 2 * (Counting::allocations() - before);
        println!("{}", serde_json::to_string(&sample)?);
    }
    Ok(())
}

pub(crate) struct Served {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
    /// Taken before the first player joined.
    pub(crate) empty: Sample,
}

impl Served {
    /// Starts a server on its own core if the machine has two, and pins the calling thread to the other.
    pub(crate) fn start(kind: Kind, players: usize, key_file: &Path) -> Result<Served, Failed> {
        let cores = cores();
        if let Some((server, _)) = cores {
            pin(server);
        }
        let kind = kind.to_possible_value().expect("each kind has a name");
        let started = Command::new(std::env::current_exe()?)
            .args(["serve", "--kind", kind.get_name()])
            .args(["--matches", &players.div_ceil(PLAYERS).to_string()])
            .arg("--key-file")
            .arg(key_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        if let Some((_, players)) = cores {
            pin(players);
        }
        let mut child = started?;
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = lines.next().ok_or("the server ended at once")??;
        let mut served = Served {
            address: first.parse()?,
            child,
            input,
            lines,
            empty: Sample::default(),
        };
        served.empty = served.sample()?;
        Ok(served)
    }

    pub(crate) fn sample(&mut self) -> Result<Sample, Failed> {
        self.ask()?;
        self.answer()
    }

    pub(crate) fn ask(&mut self) -> Result<(), Failed> {
        Ok(writeln!(self.input.as_mut().ok_or("it is being ended")?)?)
    }

    pub(crate) fn answer(&mut self) -> Result<Sample, Failed> {
        let line = self.lines.next().ok_or("the server ended")??;
        Ok(serde_json::from_str(&line)?)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(mut self) -> Result<(), Failed> {
        drop(self.input.take());
        let ended = self.child.wait()?;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("the server ended with {ended}").into()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Closing its input stops the server. A hung server must not outlive its report.
        drop(self.input.take());
        if matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
