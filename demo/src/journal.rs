//! `powderkeg journal`: checks, repairs and exports journals.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use powderkeg_game::Game;
use powderkeg_view::say;
use twinstep_host::StoredJournal;
use twinstep_ops::{Checkup, ExportError, Exported, Harm, export_journal};
use twinstep_protocol::text::line;

use crate::failure::Failure;

pub(crate) fn check(path: &Path) -> Result<ExitCode, Failure> {
    let checkup = Checkup::check_file::<Game>(path)?;
    let mut said = words(&checkup);
    if let Some((_, harm)) = &checkup.harm {
        let _ = writeln!(said, "{}", advice(harm, path));
    }
    say::out(said)?;
    Ok(ExitCode::from(u8::from(checkup.harm.is_some())))
}

pub(crate) fn repair(path: &Path) -> Result<ExitCode, Failure> {
    let checkup = Checkup::check_file::<Game>(path)?;
    let mut said = words(&checkup);
    if checkup.harm.is_some() {
        let kept = checkup.repair(path)?;
        let _ = writeln!(
            said,
            "cut to {} bytes; the original is kept as {}",
            checkup.index.sound_bytes(),
            kept.display()
        );
    } else {
        let _ = writeln!(said, "there is nothing to repair");
    }
    say::out(said)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a journal as lines of JSON; exits with 1 if it is damaged.
pub(crate) fn export(path: &Path, out: Option<&Path>) -> Result<ExitCode, Failure> {
    let mut journal = crate::replay::open(path)?;
    let failed = |source| Failure::Export {
        path: path.to_owned(),
        source,
    };
    let exported = match out {
        None => write(&mut journal, io::stdout().lock()),
        Some(out) => {
            let file = File::create_new(out).map_err(|source| Failure::NewFile {
                path: out.to_owned(),
                source,
            })?;
            let written = write(&mut journal, file);
            if written.is_err() {
                // An incomplete file would be in the way of the next attempt.
                let _ = std::fs::remove_file(out);
            }
            written
        }
    };
    let exported = match exported {
        // The reader has closed the pipe, so it has read enough.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(source @ ExportError::Write(_)) if out.is_some() => {
            let path = out.unwrap_or(path).to_owned();
            return Err(Failure::Export { path, source });
        }
        exported => exported.map_err(failed)?,
    };
    let Exported { lines, ticks, .. } = exported;
    say::err(format_args!("exported {lines} lines with {ticks} ticks"));
    if let Some(stopped) = &exported.stopped {
        let path = path.display();
        say::err(format_args!(
            "{stopped}; everything before that was exported. `powderkeg journal check {path}` shows what is lost"
        ));
    }
    Ok(ExitCode::from(u8::from(exported.stopped.is_some())))
}

fn write(journal: &mut StoredJournal, to: impl Write) -> Result<Exported, ExportError> {
    let mut to = BufWriter::new(to);
    let exported = export_journal::<Game>(journal, &mut to)?;
    to.flush()?;
    Ok(exported)
}

fn words(checkup: &Checkup) -> String {
    let mut out = String::new();
    let index = &checkup.index;
    let _ = writeln!(
        out,
        "{:?} version {}, recorded by build {:?}: intact up to tick {} ({:.1} s of play), {} of {} bytes",
        line(&index.about.game),
        index.about.sim_version,
        line(&index.about.build),
        checkup.next.0,
        checkup.length.as_secs_f64(),
        index.sound_bytes(),
        checkup.file_bytes
    );
    let Some((error, harm)) = &checkup.harm else {
        return out;
    };
    let _ = writeln!(out, "{error}");
    let behind = checkup.file_bytes - index.sound_bytes();
    let _ = match harm {
        Harm::Torn => writeln!(
            out,
            "lost: no data that a player saw; the last record is incomplete ({behind} bytes)"
        ),
        Harm::Junk => writeln!(
            out,
            "lost: at most the newest records; the last {behind} bytes are zeros or junk, as after a power cut"
        ),
        Harm::Middle { remains, ticks } => writeln!(
            out,
            "lost: about {ticks} ticks ({:.1} s): the file is damaged in the middle, and the {} records after \
             the damage cannot be checked ({behind} bytes)",
            seconds(checkup.tick, *ticks),
            remains.records
        ),
    };
    out
}

fn seconds(tick: Duration, ticks: u32) -> f64 {
    tick.as_secs_f64() * f64::from(ticks)
}

fn advice(harm: &Harm, path: &Path) -> String {
    let path = path.display();
    match harm {
        Harm::Torn => {
            "a server that resumes the journal cuts off the incomplete record itself".to_owned()
        }
        Harm::Junk => {
            format!("`powderkeg journal repair {path}` cuts off these bytes, and keeps a copy")
        }
        Harm::Middle { .. } => format!(
            "restore a complete copy if you have one; otherwise `powderkeg journal repair {path}` cuts off the \
             damaged part and all after it, and keeps a copy"
        ),
    }
}
