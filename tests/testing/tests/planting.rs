//! Helpers for tiny games with planted bugs.

use twinstep_core::{Frame, Simulation};
use twinstep_testing::{Fault, Kind, Script};

/// Implements `Simulation` with this step. By default, inputs are bytes, and there are no rules or other types.
macro_rules! game {
    ($name:ident, $frame:ident, $fx:ident, $me:ident => $step:block) => {
        game!($name, (), u8, Never, Never, Never, Never, $frame, $fx, $me => $step);
    };
    ($name:ident, $rules:ty, $input:ty, $command:ty, $query:ty, $outcome:ty, $cue:ty,
     $frame:ident, $fx:ident, $me:ident => $step:block) => {
        impl Simulation for $name {
            const NAME: &'static str = stringify!($name);
            const VERSION: u32 = 1;
            type Rules = $rules;
            type Input = $input;
            type Command = $command;
            type Query = $query;
            type Outcome = $outcome;
            type Cue = $cue;

            fn step(&mut self, $frame: &Frame<'_, Self>, $fx: &mut Effects<Self>) {
                let ($me, _) = (self, &$fx);
                $step
            }
        }
    };
}
pub(crate) use game;

/// A state with these fields, a step with a planted bug, and a test that [`check`](twinstep_testing::check) finds the
/// bug.
macro_rules! planted {
    ($test:ident, $kind:ident at $($rest:tt)*) => {
        planted!($test, $kind without libfaketime $kind at $($rest)*);
    };
    ($test:ident, $kind:ident without libfaketime $other:ident at $path:literal:
     $name:ident { $($field:ident: $type:ty),* }, $frame:ident, $me:ident => $step:block) => {
        #[derive(Clone, Default, Serialize, Deserialize)]
        struct $name {
            $($field: $type),*
        }
        game!($name, $frame, _fx, $me => $step);

        #[test]
        fn $test() {
            let kind = match $crate::planting::has_libfaketime() {
                true => Kind::$kind,
                false => Kind::$other,
            };
            expect(check($name::default(), (), presses()), kind, $path);
        }
    };
}
pub(crate) use planted;

// Without libfaketime no clock can be stopped, so the last digits of a clock look like chance.
pub(crate) fn has_libfaketime() -> bool {
    let folders = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    let mut libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    libraries.any(|path| path.is_file())
}

pub(crate) fn sum<S: Simulation<Input = u8>>(frame: &Frame<'_, S>) -> u32 {
    frame.inputs().map(|(_, held)| u32::from(*held)).sum()
}

/// Expects a fault of this kind, reported with its tick, fields and advice.
#[track_caller]
pub(crate) fn expect<R>(found: Result<R, Fault>, kind: Kind, path: &str) -> Fault {
    let Err(fault) = found else {
        panic!("expected `{kind}`, but no fault was found");
    };
    assert_eq!(fault.kind, kind, "{fault}");
    let chapter = include_str!("../src/lib.rs");
    assert!(
        chapter.contains(&format!("| {} |", kind.name())),
        "a row of the table for {kind:?}"
    );
    let paths: Vec<&str> = fault.fields.iter().map(|f| f.path.as_str()).collect();
    assert!(
        path.is_empty() || paths.iter().any(|found| found.starts_with(path)),
        "expected {path}, got {fault}"
    );
    let text = fault.to_string();
    assert!(text.contains(kind.advice()) && text.contains("again: TWINSTEP_SEED=1"));
    println!("{fault}");
    fault
}

pub(crate) fn presses<S: Simulation<Input = u8>>() -> Script<S> {
    Script::inputs([0, 1, 2]).ticks(300)
}
