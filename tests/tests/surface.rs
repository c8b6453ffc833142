//! The public items of the published crates, one per line, in `tests/golden/public/`. A change appears in the commit's
//! diff, and its author decides whether it breaks users (a new major version) or only adds items (a minor one).
//!
//! Items are read from rustfmt-formatted sources, so items created by macros are missing.

use std::collections::BTreeSet;

use twinstep_tests::{cited, golden};

use crate::structure::sources;

/// Published packages with items for users. `twinstep-protocol` is internal.
const PACKAGES: [(&str, &str); 12] = [
    ("core", "core/src"),
    ("udp", "core/udp/src"),
    ("client", "client/src"),
    ("bevy", "client/bevy/src"),
    ("c", "client/c/src"),
    ("web", "client/web/src"),
    ("server", "server/src"),
    ("host", "server/host/src"),
    ("ops", "server/ops/src"),
    ("local", "server/local/src"),
    ("rapier2d", "server/physics/src"),
    ("testing", "tests/testing/src"),
];

/// The public items of a source: lines without indentation, and the contents of types and `impl`s.
fn items(source: &str, items: &mut BTreeSet<String>) {
    let own = source.find("\nmod tests {").unwrap_or(source.len());
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.is_empty();
    let mut lines = source[..own].lines().filter(is_code);
    // The open type, trait or `impl`, and whether all its content is public.
    let mut open = None::<(String, bool)>;
    let mut marks = String::new();
    while let Some(line) = lines.next() {
        let inner = line.trim_start();
        if line == "}" {
            open = None;
        } else if inner.starts_with("#[") {
            let counts = ["#[non_exhaustive]", "#[cfg(feature", "#[deprecated"];
            if counts.iter().any(|mark| inner.starts_with(mark)) {
                marks = format!("{marks}{inner} ");
            }
            if !inner.ends_with(']') {
                lines.find(|line| line.ends_with(']'));
            }
            continue;
        } else if line.starts_with("pub ") || line.starts_with("impl") {
            let head = statement(line, &mut lines);
            let kind = |word| head.contains(&format!("{word} "));
            if line.starts_with("pub ") {
                items.insert(format!("{marks}{}", head.trim_end_matches(" {")));
            }
            let is_open = head.ends_with('{') && !head.contains(" fn ") && !kind("mod");
            let name = head.trim_start_matches("pub ").trim_end_matches(" {");
            let all = kind("pub enum") || kind("pub trait");
            open = is_open.then(|| (name.to_owned(), all));
        } else if let Some((name, all)) = &open {
            let is_inner = line.len() - inner.len() == 4 && !inner.starts_with('}');
            if is_inner && (*all || inner.starts_with("pub ")) {
                let mut head = statement(inner, &mut lines);
                if name.starts_with("enum ") && head.ends_with('{') {
                    let fields = lines.by_ref().take_while(|line| !line.starts_with("    }"));
                    let fields: Vec<&str> = fields.map(str::trim).collect();
                    head = format!("{head} {} }}", fields.join(" "));
                }
                let head = head.trim_end_matches(['{', ',', ' ']);
                items.insert(format!("{name} :: {marks}{head}"));
            }
        }
        marks.clear();
    }
}

fn statement<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut whole = first.to_owned();
    let ends = |text: &str| {
        text.ends_with(['{', ';', '}'])
            || text.ends_with(',') && text.matches('(').count() == text.matches(')').count()
    };
    while !ends(&whole) {
        let Some(line) = lines.next() else { break };
        whole = format!("{whole} {}", line.trim());
    }
    let is_value = whole.contains("const ") && !whole.contains("fn ");
    let until = whole.find(" = ").filter(|_| is_value);
    whole.truncate(until.unwrap_or(whole.len()));
    whole
}

/// Ignored by default, so that a rename does not need an update of the golden files in the same step.
#[test]
#[ignore = "the check runs it"]
fn the_public_items_are_unchanged() {
    for (name, folder) in PACKAGES {
        let mut all = BTreeSet::new();
        for path in sources(folder) {
            if !path.contains("/tests") {
                items(&cited::read(&path), &mut all);
            }
        }
        let now = Vec::from_iter(all).join("\n") + "\n";
        golden::check(&format!("public/{name}.txt"), &now, "");
    }
}

#[test]
fn items_are_parsed_as_written() {
    let source = "pub struct A<T> {\n    /// Doc.\n    pub a: u8,\n    b: u8,\n}\n#[non_exhaustive]\npub enum B {\n    #[error(\n        \"e\"\n    )]\n    C {\n        d: u8,\n    },\n}\n\
                  impl A<u8> {\n    pub fn e(\n        &self,\n    ) -> u8 {\n        1\n    }\n    fn f() {}\n}\npub const G: u8 = 7;\n\
                  pub trait H {\n    fn i(&self);\n}\npub(crate) fn j() {}\nmod tests {\n    pub struct K;\n}\n";
    let mut found = BTreeSet::new();
    items(source, &mut found);
    let expected = [
        "#[non_exhaustive] pub enum B",
        "enum B :: C { d: u8, }",
        "impl A<u8> :: pub fn e( &self, ) -> u8",
        "pub const G: u8",
        "pub struct A<T>",
        "pub trait H",
        "struct A<T> :: pub a: u8",
        "trait H :: fn i(&self);",
    ];
    assert_eq!(Vec::from_iter(found), expected);
}
