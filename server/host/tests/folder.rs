//! A temporary folder for one test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is empty at first, and removed when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct Folder(
    pub(crate) PathBuf,
    #[expect(dead_code, reason = "the folder goes with it")] Arc<RemoveOnDrop>,
);

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Creates an empty folder. Each call gets its own, even for the same name.
    pub(crate) fn new(name: &str) -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, n) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{process}-{n}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path.clone(), Arc::new(RemoveOnDrop(path)))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

pub(crate) fn token(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().last().unwrap().to_owned()
}
