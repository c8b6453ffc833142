//! The author's source files, searched for what no run shows: names of environment variables, and fields that serde
//! skips.
//!
//! Invariant: a name found here widens a run or completes a text. A fault is found by a run alone.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The maximum number of files read.
const FILES_MAX: usize = 4_000;
/// The maximum size of a file read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The number of skipped fields named.
const NAMED_MAX: usize = 4;
/// Parts of the names of variables that make tests write files.
const WRITES: [&str; 10] = [
    "BLESS",
    "CLEAN",
    "DELETE",
    "EXPECT",
    "GOLDEN",
    "OVERWRITE",
    "RECORD",
    "RESET",
    "SNAP",
    "UPDATE",
];

/// The names in quotes that look like environment variables, in files under `src` that read some variable. Names of
/// switches that make tests write files are left out.
pub(crate) fn variables() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = BTreeSet::new();
        each_file(&mut |path, text| {
            let in_src = path.components().any(|part| part.as_os_str() == "src");
            if in_src && (text.contains("env::var") || text.contains("var_os(")) {
                names.extend(variables_in(text));
            }
        });
        names.into_iter().collect()
    })
}

fn variables_in(text: &str) -> impl Iterator<Item = String> {
    let is_name = |word: &&str| {
        (3..64).contains(&word.len())
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word
                .bytes()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
            && !WRITES.iter().any(|part| word.contains(part))
    };
    text.split('"').filter(is_name).map(str::to_owned)
}

/// The fields that serde skips in this type and in the types of its fields, each written as "`cooldown` of `Pawn`".
pub(crate) fn skipped_fields(type_name: &str) -> Vec<String> {
    let mut files = Vec::new();
    each_file(&mut |_, text| {
        if text.contains("struct ") || text.contains("enum ") {
            files.push(text.to_owned());
        }
    });
    let plain = type_name.split('<').next().unwrap_or_default();
    let start = plain.rsplit("::").next().unwrap_or_default();
    skipped_in(&files, start)
}

fn skipped_in(files: &[String], start: &str) -> Vec<String> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![start.to_owned()]);
    let mut skipped = Vec::new();
    while let Some(name) = left.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        for body in files.iter().filter_map(|text| body_of(text, &name)) {
            let fields = body.split("serde(skip").skip(1).filter_map(field_after);
            skipped.extend(fields.map(|field| format!("`{field}` of `{name}`")));
            let words = body.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let types = words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
            left.extend(types.map(str::to_owned));
        }
    }
    skipped.sort();
    skipped.dedup();
    skipped.truncate(NAMED_MAX);
    skipped
}

/// The fields of a struct or an enum, as text.
fn body_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let is_whole =
        |end: &usize| !text[*end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let begins = ["struct", "enum"].iter().find_map(|word| {
        let head = format!("{word} {name}");
        let ends = text.match_indices(&head).map(|(at, _)| at + head.len());
        ends.into_iter().find(is_whole)
    })?;
    let rest = &text[begins..];
    let open = rest.find(['{', '(', ';'])?;
    let mut depth = 0_u32;
    for (at, c) in rest[open..].char_indices() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(&rest[open..open + at]);
        }
    }
    None
}

/// The name of the field after the rest of its attribute.
fn field_after(rest: &str) -> Option<&str> {
    // `skip_serializing_if` is another matter: such bytes cannot be read back.
    if rest.starts_with("_serializing_if") {
        return None;
    }
    let (_, after) = rest.split_once(']')?;
    let lines = after.lines().map(str::trim);
    let mut fields = lines.filter(|line| !line.starts_with('#') && !line.starts_with("//"));
    let (field, _) = fields.find_map(|line| line.split_once(':'))?;
    field.split_whitespace().last()
}

/// Visits the Rust files of the workspace that contains the test's package.
fn each_file(visit: &mut dyn FnMut(&Path, &str)) {
    let Some(package) = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from) else {
        return;
    };
    let is_workspace = |folder: &&Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains("[workspace]"))
    };
    let root = package.ancestors().find(is_workspace).unwrap_or(&package);
    let (mut folders, mut left) = (vec![root.to_owned()], FILES_MAX);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && meta.len() <= FILE_BYTES_MAX {
                let Some(rest) = left.checked_sub(1) else {
                    return;
                };
                left = rest;
                if let Ok(text) = fs::read_to_string(&path) {
                    visit(path.strip_prefix(root).unwrap_or(&path), &text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_quotes_except_those_that_make_tests_write() {
        let text = r#"if env::var_os("TOWN_HARD").is_some() { f("A thing", "X2", "UPDATE_GOLDEN", "OK_1") }"#;
        assert_eq!(
            variables_in(text).collect::<Vec<_>>(),
            ["TOWN_HARD", "OK_1"]
        );
    }

    #[test]
    fn skipped_fields_are_found_in_the_types_of_a_state() {
        let files = [
            "struct Town { purses: Table<PlayerId, Purse>, at: Spot }\nstruct Towns { x: Other }".to_owned(),
            "pub struct Purse {\n gold: u32,\n #[serde(skip)]\n /// Kept.\n #[cfg(a)]\n pub income: Option<f32>,\n #[serde(skip)] mood: u8 }
            struct Other {\n #[serde(skip)]\n y: u8,\n}
            enum Spot { At {\n #[serde(skip, default = \"none\")]\n seen: u8 }, No }".to_owned(),
        ];
        assert_eq!(
            skipped_in(&files, "Town"),
            [
                "`income` of `Purse`",
                "`mood` of `Purse`",
                "`seen` of `Spot`"
            ]
        );
        assert!(skipped_in(&files, "Absent").is_empty());
    }
}
