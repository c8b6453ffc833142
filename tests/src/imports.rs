//! Which file of a package imports which, read from their text: for the rule that imports have no circles.
//!
//! ```text
//!  text ─▶ words ─▶ uses (trees unfolded) and paths in the code ─▶ names ─▶ the files that define them ─▶ circles
//! ```
//!
//! What a file's own `#[cfg(test)]` modules import is not looked at: a test of small things may use large ones. A name that a
//! file passes on (`use a::B` where others say `super::B`) leads to the file that defines it, and to the one that passes it on
//! if the path names it. A `mod` line and a
//! `pub use` are no imports: the one says where a file is, the other what others may call it.

use std::collections::{BTreeMap, BTreeSet};

/// A path in a source: its segments, and the module that it is said in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    module: Vec<String>,
    path: Vec<String>,
    /// What it is called from here on; `*`: all that is in it. `None`: it is no `use`.
    alias: Option<String>,
    /// It is passed on to others.
    public: bool,
}

/// One file: its module, what it says, what it defines.
struct File {
    path: String,
    module: Vec<String>,
    said: Vec<Said>,
    defines: BTreeSet<String>,
}

/// The circles of imports in a package, each as the files along it, given the path of each file from the package's
/// source folder (`session/config.rs`) and its text. None is told twice.
#[must_use]
pub fn circles(sources: &[(String, String)]) -> Vec<Vec<String>> {
    let files: Vec<File> = sources
        .iter()
        .map(|(path, text)| file(path, text))
        .collect();
    let homes: BTreeMap<&[String], usize> = (files.iter().enumerate())
        .map(|(at, file)| (&file.module[..], at))
        .collect();
    let package = Package {
        files: &files,
        homes,
    };
    let imports: Vec<BTreeSet<usize>> = (0..files.len()).map(|at| package.imports(at)).collect();
    let mut circles = Vec::new();
    let mut done = vec![false; files.len()];
    for start in 0..files.len() {
        if done[start] {
            continue;
        }
        if let Some(circle) = way(&imports, start, start) {
            circle.iter().for_each(|at| done[*at] = true);
            circles.push(circle.iter().map(|at| files[*at].path.clone()).collect());
        }
    }
    circles
}

/// The shortest way over imports from one file to another, without the last.
fn way(imports: &[BTreeSet<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut layer = vec![from];
    while !layer.is_empty() {
        let mut next = Vec::new();
        for at in layer {
            for import in &imports[at] {
                if *import == to {
                    let mut way = vec![at];
                    while let Some(earlier) = before.get(way.last()?) {
                        way.push(*earlier);
                    }
                    way.reverse();
                    return Some(way);
                }
                if *import != from && !before.contains_key(import) {
                    before.insert(*import, at);
                    next.push(*import);
                }
            }
        }
        layer = next;
    }
    None
}

struct Package<'a> {
    files: &'a [File],
    homes: BTreeMap<&'a [String], usize>,
}

impl Package<'_> {
    fn imports(&self, at: usize) -> BTreeSet<usize> {
        let said = self.files[at].said.iter();
        said.filter(|said| said.alias.is_none() || !said.public)
            .flat_map(|said| self.homes_of(said))
            .filter(|home| *home != at)
            .collect()
    }

    /// The file that defines what the path names, and the file whose name stands in the path. A reader opens the latter,
    /// so an import through a file that only passes a name on may close a circle. (Not so through a parent or the root.)
    fn homes_of(&self, said: &Said) -> Vec<usize> {
        let Some(path) = absolute(said) else {
            return Vec::new();
        };
        let named = self.named(&path).map(|(_, home)| home);
        named
            .filter(|home| !said.module.starts_with(&self.files[*home].module))
            .into_iter()
            .chain(self.resolve(&path, 8))
            .collect()
    }

    /// The deepest file that a path goes through, and how many segments lead to it.
    fn named(&self, path: &[String]) -> Option<(usize, usize)> {
        (0..=path.len())
            .rev()
            .find_map(|deep| Some((deep, *self.homes.get(&path[..deep])?)))
    }

    /// The file that defines what a path from the root names.
    fn resolve(&self, path: &[String], patience: u32) -> Option<usize> {
        let (deep, home) = self.named(path)?;
        let Some(name) = path.get(deep).filter(|name| *name != "*") else {
            return Some(home);
        };
        let file = &self.files[home];
        if patience == 0 || file.defines.contains(name) {
            return Some(home);
        }
        let passed_on = |alias: &str| {
            let uses = file.said.iter().filter(move |said| {
                said.module == file.module && said.alias.as_deref() == Some(alias)
            });
            uses.filter_map(absolute).collect::<Vec<_>>()
        };
        if let Some(mut there) = passed_on(name).into_iter().next() {
            there.extend_from_slice(&path[deep + 1..]);
            return self.resolve(&there, patience - 1);
        }
        for mut all in passed_on("*") {
            all.pop();
            all.extend_from_slice(&path[deep..]);
            if let Some(found) = self.resolve(&all, patience - 1)
                && self.files[found].defines.contains(name)
            {
                return Some(found);
            }
        }
        Some(home)
    }
}

/// A path from the root of its package; `None`: it leads out of it.
fn absolute(said: &Said) -> Option<Vec<String>> {
    let mut module = said.module.clone();
    let mut rest = &said.path[..];
    match rest.first()?.as_str() {
        "crate" => {
            module.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                module.pop();
                rest = &rest[1..];
            }
        }
        // A child of this module, or another package: the latter has no home here.
        _ => {}
    }
    module.extend(rest.iter().cloned());
    Some(module)
}

fn file(path: &str, text: &str) -> File {
    let mut module: Vec<String> = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if module
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        module.pop();
    }
    let words = words(text);
    let (said, defines) = read(&words, &module);
    File {
        path: path.to_owned(),
        module,
        said,
        defines,
    }
}

/// Identifiers and signs of a source, without comments, texts and characters.
fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut words, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let rest = &chars[at..];
        let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
        let len = match rest {
            ['/', '/', ..] => rest.iter().take_while(|c| **c != '\n').count(),
            ['/', '*', ..] => (rest.windows(2).position(|two| two == ['*', '/']))
                .map_or(rest.len(), |end| end + 2),
            ['r', '#', '"', ..] => (rest.windows(2).position(|two| two == ['"', '#']))
                .and_then(|first| {
                    Some(
                        first
                            + 2
                            + rest[first + 2..]
                                .windows(2)
                                .position(|two| two == ['"', '#'])?,
                    )
                })
                .map_or(rest.len(), |end| end + 2),
            ['"', ..] => text_len(rest),
            ['\'', '\\', ..] => 2 + rest[2..].iter().position(|c| *c == '\'').unwrap_or(0) + 1,
            ['\'', _, '\'', ..] => 3,
            [c, ..] if is_name(c) => {
                let len = rest.iter().take_while(|c| is_name(c)).count();
                words.push(rest[..len].iter().collect());
                len
            }
            [':', ':', ..] => {
                words.push("::".to_owned());
                2
            }
            [c, ..] => {
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
                1
            }
            [] => 1,
        };
        at += len;
    }
    words
}

fn text_len(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// What a file says, and what it defines.
fn read(words: &[String], module: &[String]) -> (Vec<Said>, BTreeSet<String>) {
    const DEFINES: [&str; 9] = [
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "static",
        "fn",
        "union",
        "macro_rules",
    ];
    let (mut said, mut defines) = (Vec::new(), BTreeSet::new());
    // The braces that are open, and the modules among them.
    let (mut inner, mut open) = (Vec::<(usize, String)>::new(), 0);
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let mut at = 0;
    while at < words.len() {
        let here: Vec<String> = (module.iter().cloned())
            .chain(inner.iter().map(|(_, name)| name.clone()))
            .collect();
        match word(at) {
            "{" => open += 1,
            "}" => {
                open = usize::saturating_sub(open, 1);
                inner.retain(|(depth, _)| *depth < open + 1);
            }
            "mod" if word(at + 2) == "{" && is_for_tests(&words[..at]) => {
                at = end_of(words, at + 2)
            }
            "mod" if word(at + 2) == "{" => {
                inner.push((open, word(at + 1).to_owned()));
            }
            "use" => {
                let end = at + words[at..].iter().position(|w| w == ";").unwrap_or(0);
                let before = at.checked_sub(1).map_or("", word);
                // `pub use`, `pub(crate) use`
                let public = before == "pub" || before == ")";
                unfold(&words[at + 1..end], &mut Vec::new(), &mut |path, alias| {
                    said.push(Said {
                        module: here.clone(),
                        path: path.to_vec(),
                        alias: Some(alias),
                        public,
                    });
                });
                at = end;
            }
            "crate" | "super" | "self" if word(at + 1) == "::" => {
                let mut path = vec![word(at).to_owned()];
                while word(at + 1) == "::" && word(at + 2) != "<" {
                    path.push(word(at + 2).to_owned());
                    at += 2;
                }
                said.push(Said {
                    module: here,
                    path,
                    alias: None,
                    public: false,
                });
            }
            define if DEFINES.contains(&define) => {
                let name = if word(at + 1) == "!" { at + 2 } else { at + 1 };
                defines.insert(word(name).to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    (said, defines)
}

/// Whether what follows is compiled for tests only.
fn is_for_tests(before: &[String]) -> bool {
    before.ends_with(&["#", "[", "cfg", "(", "test", ")", "]"].map(str::to_owned))
}

/// Where the brace that opens at `open` is closed.
fn end_of(words: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len()
}

/// The paths of a `use` tree, each with what it is called.
fn unfold(words: &[String], prefix: &mut Vec<String>, each: &mut impl FnMut(&[String], String)) {
    let long = prefix.len();
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "::" => at += 1,
            "{" => {
                let (mut depth, mut from) = (0, at + 1);
                for end in at..words.len() {
                    match words[end].as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && words[end] == ",") {
                        unfold(&words[from..end], &mut prefix.clone(), each);
                        from = end + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
                prefix.truncate(long);
                return;
            }
            "as" => {
                let alias = words.get(at + 1).cloned().unwrap_or_default();
                each(prefix, alias);
                prefix.truncate(long);
                return;
            }
            word => {
                prefix.push(word.to_owned());
                at += 1;
            }
        }
    }
    if prefix.len() > long {
        if prefix.last().is_some_and(|last| last == "self") {
            prefix.pop();
        }
        let alias = prefix.last().cloned().unwrap_or_default();
        each(prefix, alias);
    }
    prefix.truncate(long);
}
