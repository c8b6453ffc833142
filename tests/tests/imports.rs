//! Tests of the definition of an import circle. `structure.rs` searches every package for circles.

use twinstep_tests::imports::circles;

fn found(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    circles(&sources.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn two_files_importing_each_other_are_a_circle() {
    let a = "use crate::b::{self, Two};\nstruct One;";
    for b in [
        "use crate::a::One;\nstruct Two;",
        "use super::a::One as Uno;\nstruct Two;",
        "struct Two(crate::a::One);",
        "mod inner { use super::super::a::One; }\nstruct Two;",
    ] {
        let circle = [["a.rs".to_owned(), "b.rs".to_owned()]];
        assert_eq!(found(&[("a.rs", a), ("b.rs", b)]), circle, "{b}");
    }
    let b = "struct Two;\n#[cfg(test)]\nmod tests { use crate::a::One; fn f() {} }";
    assert!(found(&[("a.rs", a), ("b.rs", b)]).is_empty());
    let b = "// use crate::a::One;\nstruct Two;";
    assert!(found(&[("a.rs", a), ("b.rs", b)]).is_empty());
}

#[test]
fn a_name_leads_to_its_definition_through_any_reexport() {
    let lib = "mod a; mod b; mod c; pub use a::One; pub use b::*;";
    let (a, c) = ("use crate::Two;\npub struct One;", "pub struct Three;");
    let b = "use crate::c::Three;\npub struct Two;";
    assert!(found(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", c)]).is_empty());
    let c = "use crate::One;\npub struct Three;";
    let circle = found(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", c)]);
    assert_eq!(circle, [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn a_child_may_import_a_parent_without_a_back_import() {
    let parent = "mod child;\npub(crate) use child::Small;\npub struct Large;";
    let child = "use super::Large;\npub(crate) struct Small;";
    assert!(found(&[("parent.rs", parent), ("parent/child.rs", child)]).is_empty());
    let parent = "mod child;\nuse child::Small;\npub struct Large(Small);";
    let circles = found(&[("parent.rs", parent), ("parent/child.rs", child)]);
    assert_eq!(circles, [["parent.rs", "parent/child.rs"]]);
}

#[test]
fn a_reexporting_file_is_part_of_the_circle() {
    let a = "use super::b::Small;\npub struct Large(Small);";
    let b = "mod child;\npub use child::Small;\nuse super::a::Large;\nstruct Two(Large);";
    let sources = [
        ("a.rs", a),
        ("b.rs", b),
        ("b/child.rs", "pub struct Small;"),
    ];
    assert_eq!(found(&sources), [["a.rs", "b.rs"]]);
    let a = "pub struct Large;";
    let sources = [
        ("a.rs", a),
        ("b.rs", b),
        ("b/child.rs", "pub struct Small;"),
    ];
    assert!(found(&sources).is_empty());
}
