//! Golden files: results under `tests/golden/` that must not change unnoticed. After an intended change,
//! `UPDATE_GOLDEN=1` rewrites them, and their difference is part of that change.

use std::fs;
use std::path::Path;

/// Compares `now` with the file's content. The message shows `also`, a further step for an intended change.
///
/// # Panics
/// If they differ. The message contains both.
pub fn check(file: &str, now: &str, also: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, now).expect("the golden file can be written");
        return;
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let kept = kept.replace('\r', "");
    assert!(
        kept == now,
        "golden/{file} changed; if that is meant, {also}run with UPDATE_GOLDEN=1\nwas:\n{kept}\nis:\n{now}"
    );
}
