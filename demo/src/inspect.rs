//! `powderkeg inspect`: a journal and tapes as one page for a browser.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use powderkeg_game::{Game, GameShow, terms};
use powderkeg_view::say;
use twinstep_client::{Client, SessionConfig};
use twinstep_core::Tick;
use twinstep_ops::{InspectError, Inspected, Inspector};

use crate::args::InspectArgs;
use crate::failure::Failure;

// Above the limit for tapes, so that a larger file gets the error about its size, with its name.
const READ_BYTES_MAX: u64 = 65 << 20;

pub(crate) fn inspect(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let journal = crate::replay::open(&args.journal)?;
    let rules = terms::rules(args.enemies);
    let failed = |source| Failure::Inspect {
        path: args.journal.clone(),
        source,
        enemies: args.enemies,
    };
    let ticks = Tick(args.from)..args.to.map_or(Tick::MAX, Tick);
    let mut inspector = Inspector::<Game>::new(&rules).ticks(ticks);
    for path in &args.tapes {
        let bytes = read(path).map_err(|source| Failure::UnreadableTape {
            path: path.clone(),
            source,
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        inspector = inspector.tape(&name, &bytes).map_err(failed)?;
    }
    let mut out = new_file(&args.out)?;
    let inspected = match inspector.write(journal, &mut out) {
        Ok(inspected) => inspected,
        Err(source) => {
            // An incomplete page would be in the way of the next attempt.
            let _ = std::fs::remove_file(&args.out);
            return Err(match source {
                InspectError::Write(_) => Failure::Inspect {
                    path: args.out.clone(),
                    source,
                    enemies: args.enemies,
                },
                source => failed(source),
            });
        }
    };
    let Inspected { ticks, bytes, .. } = &inspected;
    say::out(format_args!(
        "{}: ticks {} to {}, {:.1} MB; open it in a browser",
        args.out.display(),
        ticks.start.0,
        ticks.end.0,
        *bytes as f64 / 1e6
    ))?;
    if let Some(stopped) = &inspected.stopped {
        say::err(format_args!(
            "{stopped}; everything before that is on the page"
        ));
    }
    Ok(ExitCode::from(u8::from(inspected.stopped.is_some())))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // Reading a pipe could block.
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(READ_BYTES_MAX)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn new_file(path: &Path) -> Result<BufWriter<File>, Failure> {
    let file = File::create_new(path).map_err(|source| Failure::NewFile {
        path: path.to_owned(),
        source,
    })?;
    Ok(BufWriter::new(file))
}

// Sets a session up for [`tape_to`], if there is a file.
pub(crate) fn taped(
    config: SessionConfig<Game, GameShow>,
    file: Option<&Path>,
) -> SessionConfig<Game, GameShow> {
    match file {
        Some(_) => config.record_tape(),
        None => config,
    }
}

// Lets a client write its tape to a new file, if one is given. The tape ends at the first write error.
pub(crate) fn tape_to(
    client: Client<Game, GameShow>,
    file: Option<&Path>,
) -> Result<Client<Game, GameShow>, Failure> {
    let Some(path) = file else {
        return Ok(client);
    };
    let path = path.to_owned();
    let mut file = Some(new_file(&path)?);
    Ok(client.tape_to(move |bytes| {
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_all(bytes)) {
            tracing::warn!(path = %path.display(), %error, "cannot write the tape: the recording ends here");
            file = None;
        }
    }))
}
