//! Finds circles in the imports between the files of a package, from their text.
//!
//! ```text
//!  text ─▶ code ─▶ paths (`use` trees unfolded) ─▶ the file that a path names, the file that defines its name ─▶ circles
//! ```
//!
//! A reader of an import opens both the named file and the file that defines the name, so both count as imported. A
//! `mod` line and a `pub use` are not imports: a `mod` line gives a file's place, and a `pub use` gives an item a
//! public name. Tests at the end of a file are ignored, because they may import files that depend on the tested one.

use std::collections::{BTreeMap, BTreeSet};

struct File {
    module: Vec<String>,
    paths: Vec<Vec<String>>,
    defines: BTreeSet<String>,
}

/// The circles of imports in a package, each as the files along it. `sources` has each file's path relative to the
/// package's source folder (`session/config.rs`), and its text. No file is in two circles.
#[must_use]
pub fn circles(sources: &[(String, String)]) -> Vec<Vec<String>> {
    let files: Vec<File> = sources
        .iter()
        .map(|(path, text)| file(path, text))
        .collect();
    let imports: Vec<BTreeSet<usize>> = (0..files.len()).map(|at| imports(&files, at)).collect();
    let mut circles = Vec::new();
    let mut done = BTreeSet::new();
    for start in 0..files.len() {
        if !done.contains(&start)
            && let Some(circle) = circle(&imports, start)
        {
            circles.push(circle.iter().map(|at| sources[*at].0.clone()).collect());
            done.extend(circle);
        }
    }
    circles
}

fn circle(imports: &[BTreeSet<usize>], start: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut next = std::collections::VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for import in &imports[at] {
            if *import == start {
                let mut way = vec![at];
                while let Some(earlier) = before.get(way.last()?) {
                    way.push(*earlier);
                }
                way.reverse();
                return Some(way);
            }
            before.entry(*import).or_insert_with(|| {
                next.push_back(*import);
                at
            });
        }
    }
    None
}

fn imports(files: &[File], at: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for path in &files[at].paths {
        let length = |home: &usize| files[*home].module.len();
        let on_the_way = (0..files.len()).filter(|home| path.starts_with(&files[*home].module));
        let Some(home) = on_the_way.max_by_key(length) else {
            continue;
        };
        let name = path.get(length(&home));
        let defines = |file: &usize| name.is_some_and(|name| files[*file].defines.contains(name));
        let definers: Vec<usize> = match defines(&home) {
            true => vec![home],
            false => (0..files.len()).filter(defines).collect(),
        };
        match definers[..] {
            [definer] => found.insert(definer),
            [] => found.insert(home),
            // Only a compiler could determine which file it is.
            [..] => false,
        };
        // A parent re-exports the items of its children, so a path through it is no dependency.
        if !files[at].module.starts_with(&files[home].module) {
            found.insert(home);
        }
    }
    found.remove(&at);
    found
}

fn file(path: &str, text: &str) -> File {
    let module = path.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut module: Vec<String> = module.collect();
    module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    let text = text.replace('\r', "");
    let own = text.find("\nmod tests {").unwrap_or(text.len());
    let lines = text[..own].lines();
    let code: Vec<&str> = lines
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect();
    let named = paths(&code.join(" "));
    File {
        paths: named.iter().map(|path| absolute(path, &module)).collect(),
        defines: code.iter().filter_map(|line| defined(line)).collect(),
        module,
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn defined(line: &str) -> Option<String> {
    const KINDS: [&str; 8] = [
        "struct",
        "enum",
        "trait",
        "type",
        "static",
        "const",
        "fn",
        "macro_rules",
    ];
    let words = line.split(|c| !is_name(c)).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| !KINDS.contains(word));
    let name = words.find(|word| !KINDS.contains(word));
    // Methods and items in a body are indented.
    name.filter(|_| line.starts_with(is_name))
        .map(str::to_owned)
}

fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let statement = format!(" {statement}");
        let (code, tree) = statement.split_once(" use ").unwrap_or((&statement, ""));
        if !code.ends_with("pub") && !code.ends_with(')') {
            unfold(tree, "", &mut found);
        }
        for root in ["crate::", "super::", "self::"] {
            for (at, _) in code.match_indices(root) {
                let is_root = !code[..at].ends_with(|c| is_name(c) || c == ':');
                let path = code[at..].split(|c| !is_name(c) && c != ':').next();
                found.extend(path.filter(|_| is_root).map(str::to_owned));
            }
        }
    }
    found
}

fn unfold(tree: &str, before: &str, found: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        found.push(format!("{before}{}", path.trim()));
        return;
    };
    let before = format!("{before}{}", head.trim());
    let mut depth = 0;
    let parts = rest.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        (depth == 0 && c == ',') || depth < 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.for_each(|part| unfold(part, &before, found));
}

fn absolute(path: &str, module: &[String]) -> Vec<String> {
    let mut absolute = module.to_vec();
    for segment in path.split("::").filter(|segment| !segment.is_empty()) {
        match segment {
            "crate" => absolute.clear(),
            "super" => drop(absolute.pop()),
            "self" => {}
            name => absolute.push(name.to_owned()),
        }
    }
    absolute
}
