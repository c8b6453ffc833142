//! Prints the digests that must be equal on every machine, and exits with 1 if one differs:
//!
//! ```sh
//! cargo run --release -p twinstep-rig --bin digests          # the digests that are kept in tests/golden/digests.txt
//! cargo run --release -p twinstep-rig --bin digests system   # functions that belong to the system, and may differ
//! ```

use std::process::ExitCode;

use twinstep_rig::machines::{GOLDEN, differences, system_functions, table};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("system") {
        print!("{}", system_functions());
        return ExitCode::SUCCESS;
    }
    let table = table();
    print!("{table}");
    let differences = differences(&GOLDEN.replace('\r', ""), &table);
    for line in &differences {
        eprintln!("{line}");
    }
    ExitCode::from(u8::from(!differences.is_empty()))
}

/// Returns the text that `main` prints, zero-terminated, for targets without an output: `ci/machines/digests.mjs` reads
/// it from the module's memory.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "a name to call it by from outside")]
#[unsafe(no_mangle)]
pub extern "C" fn digests(of_the_system: bool) -> *const std::ffi::c_char {
    let text = if of_the_system {
        system_functions()
    } else {
        table()
    };
    // Never freed: the module ends after the text has been read.
    std::ffi::CString::new(text)
        .expect("no zero in it")
        .into_raw()
}
