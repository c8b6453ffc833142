//! [`diff`]: the places where two values differ, field by field, for reports of desyncs.
//!
//! ```text
//!   left  ─serde─▶ tree ─┐
//!                        ├─ walked together ─▶ sim.enemies[3].hp: 20 != 19
//!   right ─serde─▶ tree ─┘
//! ```
//!
//! Invariant: two values of one type have no difference if and only if their digests are equal.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use crate::tree::{Node, Path};

const ABSENT: &str = "(absent)";

/// One place where two values differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The path, like `sim.enemies[3].hp`: fields by name, elements and map entries in brackets, tuple structs' fields
    /// by number, variants by name. `len()` after a sequence is its length, `keys()[2]` after a map is its third key in
    /// the order given. At most 256 bytes.
    pub path: String,
    /// The left value: at most 128 bytes, truncated with "...", strings escaped to ASCII.
    pub left: String,
    /// The right value, in the same form.
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} != {}", self.path, self.left, self.right)
    }
}

/// The first `max` places where two values of one type differ, in the order of their fields.
///
/// For sequences of different length, the lengths and the common part are compared; for maps, the entries by key, and
/// the order of the keys if only that differs. Floats are compared by their bits.
///
/// Builds both values as trees: about 32 bytes of heap and 50 ns per number. Use it only for reports; to check
/// *whether* two values differ, compare their [digests](crate::digest::digest).
///
/// ```
/// use twinstep_core::diff::diff;
/// let server = ("bear", [20, 40]);
/// let client = ("bear", [20, 41]);
/// let found = diff(&server, &client, 16);
/// assert_eq!(found[0].to_string(), "[1][1]: 40 != 41");
/// ```
#[must_use]
pub fn diff(left: &impl Serialize, right: &impl Serialize, max: usize) -> Vec<Difference> {
    ValueTree::of(left).diff(&ValueTree::of(right), max)
}

/// A value as a tree, for several comparisons.
///
/// ```
/// use twinstep_core::diff::ValueTree;
/// let [one, two] = [[1, 2], [1, 3]].map(|state| ValueTree::of(&state));
/// assert_eq!(one.diff(&two, 16)[0].path, "[1]");
/// assert_eq!(two.text(), "[1, 3]");
/// ```
pub struct ValueTree(Node);

impl ValueTree {
    /// Builds the tree of a value.
    #[must_use]
    pub fn of(value: &(impl Serialize + ?Sized)) -> ValueTree {
        ValueTree(Node::of(value))
    }

    /// The first `max` places where this value and one of the same type differ: see [`diff`].
    #[must_use]
    pub fn diff(&self, right: &ValueTree, max: usize) -> Vec<Difference> {
        let mut walk = Walk {
            path: Path::default(),
            found: Vec::new(),
            max,
        };
        walk.node(&self.0, &right.0);
        walk.found
    }

    /// The value as text, in the form of [`Difference::left`].
    #[must_use]
    pub fn text(&self) -> String {
        self.0.text()
    }
}

/// The number of elements of each list and map in a value, and the number of bytes of each string or byte array, keyed
/// by path. Paths contain no indices: `sim.rooms[].doors` counts the doors of all rooms. Use it only for reports, like
/// [`diff`].
///
/// ```
/// use twinstep_core::diff::lengths;
/// let found = lengths(&("bear", vec![vec![1, 2], vec![3]]));
/// assert_eq!(found["[][]"], 3);
/// ```
#[must_use]
pub fn lengths(value: &impl Serialize) -> BTreeMap<String, u64> {
    fn count(node: &Node, path: &mut Path, found: &mut BTreeMap<String, u64>) {
        let mut below = |path: &mut Path, name: &str, node: &Node| {
            let back = path.len();
            match name {
                "[]" => path.elements(),
                name => path.field(name),
            }
            count(node, path, found);
            path.back_to(back);
        };
        let elements = match node {
            Node::Some(inner) => return count(inner, path, found),
            Node::Variant(name, inner) => return below(path, name, inner),
            Node::Struct(fields) => {
                return fields
                    .iter()
                    .for_each(|(name, node)| below(path, name, node));
            }
            Node::Tuple(nodes) => {
                return nodes.iter().for_each(|node| below(path, "()", node));
            }
            Node::Seq(nodes) => {
                nodes.iter().for_each(|node| below(path, "[]", node));
                nodes.len()
            }
            Node::Map(entries) => {
                entries.iter().for_each(|(_, node)| below(path, "[]", node));
                entries.len()
            }
            Node::Text(text) => text.len(),
            Node::Bytes(bytes) => bytes.len(),
            _ => return,
        };
        *found.entry(path.text()).or_default() += elements as u64;
    }
    let mut found = BTreeMap::new();
    count(&Node::of(value), &mut Path::default(), &mut found);
    found
}

struct Walk {
    path: Path,
    found: Vec<Difference>,
    max: usize,
}

impl Walk {
    fn node(&mut self, left: &Node, right: &Node) {
        match (left, right) {
            (Node::Some(left), Node::Some(right)) => self.node(left, right),
            (Node::Variant(name, left), Node::Variant(other, right)) if name == other => {
                self.below(|path| path.field(name), |walk| walk.node(left, right));
            }
            (Node::Seq(left), Node::Seq(right)) => self.elements(left, right, Path::index),
            (Node::Tuple(left), Node::Tuple(right)) => self.elements(left, right, Path::position),
            (Node::Struct(left), Node::Struct(right)) => self.fields(left, right),
            (Node::Map(left), Node::Map(right)) => self.entries(left, right),
            _ if left != right => self.report(Some(left), Some(right)),
            _ => {}
        }
    }

    fn elements(&mut self, left: &[Node], right: &[Node], step: fn(&mut Path, usize)) {
        if left.len() != right.len() {
            let [left, right] = [left.len(), right.len()].map(|len| Node::Uint(len as u64));
            self.below(
                |path| path.field("len()"),
                |walk| walk.report(Some(&left), Some(&right)),
            );
        }
        for (index, (left, right)) in left.iter().zip(right).enumerate() {
            self.below(|path| step(path, index), |walk| walk.node(left, right));
        }
    }

    fn fields(&mut self, left: &[(&'static str, Node)], right: &[(&'static str, Node)]) {
        // Two values of one type differ in their fields only because of skip_serializing_if. The search is linear
        // because structs have few fields.
        let get = |fields: &'_ [(&'static str, Node)], name| {
            fields.iter().position(|field| field.0 == name)
        };
        for (name, node) in left {
            let other = get(right, *name).map(|index| &right[index].1);
            self.below(
                |path| path.field(name),
                |walk| walk.either(Some(node), other),
            );
        }
        for (name, node) in right.iter().filter(|field| get(left, field.0).is_none()) {
            self.below(
                |path| path.field(name),
                |walk| walk.either(None, Some(node)),
            );
        }
    }

    fn entries(&mut self, left: &[(Node, Node)], right: &[(Node, Node)]) {
        // Equal keys in equal order, the usual case, need no maps.
        if left
            .iter()
            .map(|entry| &entry.0)
            .eq(right.iter().map(|entry| &entry.0))
        {
            for ((key, left), (_, right)) in left.iter().zip(right) {
                self.below(|path| path.key(key), |walk| walk.node(left, right));
            }
            return;
        }
        let by_key: BTreeMap<&Node, &Node> = right.iter().map(|(key, node)| (key, node)).collect();
        let known: BTreeSet<&Node> = left.iter().map(|entry| &entry.0).collect();
        for (key, node) in left {
            self.below(
                |path| path.key(key),
                |walk| walk.either(Some(node), by_key.get(key).copied()),
            );
        }
        for (key, node) in right.iter().filter(|entry| !known.contains(&entry.0)) {
            self.below(|path| path.key(key), |walk| walk.either(None, Some(node)));
        }
        // The keys are the same, so their order or their duplicates differ.
        if known.iter().eq(by_key.keys()) {
            self.below(
                |path| path.field("keys()"),
                |walk| walk.first_other_key(left, right),
            );
        }
    }

    fn first_other_key(&mut self, left: &[(Node, Node)], right: &[(Node, Node)]) {
        for index in 0..left.len().max(right.len()) {
            let [mine, theirs] =
                [left, right].map(|entries| entries.get(index).map(|entry| &entry.0));
            if mine != theirs {
                return self.below(|path| path.index(index), |walk| walk.report(mine, theirs));
            }
        }
    }

    fn either(&mut self, left: Option<&Node>, right: Option<&Node>) {
        match (left, right) {
            (Some(left), Some(right)) => self.node(left, right),
            _ => self.report(left, right),
        }
    }

    fn below(&mut self, step: impl FnOnce(&mut Path), visit: impl FnOnce(&mut Walk)) {
        if self.found.len() < self.max {
            let back = self.path.len();
            step(&mut self.path);
            visit(self);
            self.path.back_to(back);
        }
    }

    fn report(&mut self, left: Option<&Node>, right: Option<&Node>) {
        if self.found.len() < self.max {
            let [left, right] = [left, right].map(|node| node.map_or(ABSENT.into(), Node::text));
            self.found.push(Difference {
                path: self.path.text(),
                left,
                right,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;
    use serde::Serializer;
    use serde::ser::SerializeMap;

    use super::*;
    use crate::digest::digest;
    use crate::{Key, Schedule, Table, Tick};

    #[derive(Clone, Serialize)]
    struct Enemy {
        hp: i16,
        speed: f32,
        mood: Mood,
    }

    #[derive(Clone, Serialize)]
    enum Mood {
        Idle,
        Chasing { target: Key },
        Lost(u8, u8),
    }

    #[derive(Clone, Serialize)]
    struct Sim {
        enemies: Vec<Enemy>,
        ammo: Table<Key, u32>,
        note: Option<String>,
    }

    #[derive(Clone, Serialize)]
    struct Root {
        sim: Sim,
    }

    fn world() -> Root {
        let enemy = Enemy {
            hp: 20,
            speed: 0.1,
            mood: Mood::Chasing {
                target: Key::new(7, 1),
            },
        };
        let ammo = [(Key::new(1, 0), 30), (Key::new(2, 0), 12)]
            .into_iter()
            .collect();
        Root {
            sim: Sim {
                enemies: vec![enemy; 4],
                ammo,
                note: None,
            },
        }
    }

    fn check(change: fn(&mut Sim), expected: &[&str]) {
        let left = world();
        let mut right = left.clone();
        change(&mut right.sim);
        let found: Vec<String> = diff(&left, &right, 16)
            .iter()
            .map(Difference::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn differences_are_named_by_field_path_in_field_order() {
        check(|_| (), &[]);
        check(
            |sim| {
                sim.enemies[3].hp = -1;
                sim.enemies[1].speed = 1e-9;
                sim.enemies[2].mood = Mood::Chasing {
                    target: Key::new(7, 2),
                };
            },
            &[
                "sim.enemies[1].speed: 0.1 != 1e-9",
                "sim.enemies[2].mood.Chasing.target.n: 1 != 2",
                "sim.enemies[3].hp: 20 != -1",
            ],
        );
    }

    #[test]
    fn differing_variants_and_options_are_shown_whole() {
        check(
            |sim| {
                sim.enemies[0].mood = Mood::Idle;
                sim.enemies[1].mood = Mood::Lost(1, 2);
                sim.note = Some("hi".into());
            },
            &[
                "sim.enemies[0].mood: Chasing{target: {of: 7, n: 1}} != Idle",
                "sim.enemies[1].mood: Chasing{target: {of: 7, n: 1}} != Lost(1, 2)",
                "sim.note: None != Some(\"hi\")",
            ],
        );
    }

    #[test]
    fn sequences_of_different_length_report_the_lengths_and_the_common_part() {
        check(
            |sim| {
                sim.enemies.pop();
                sim.enemies[2].hp = 19;
            },
            &["sim.enemies.len(): 4 != 3", "sim.enemies[2].hp: 20 != 19"],
        );
    }

    #[test]
    fn map_entries_are_compared_by_key() {
        check(
            |sim| {
                sim.ammo.remove(&Key::new(1, 0));
                sim.ammo.insert(Key::new(2, 0), 11);
                sim.ammo.insert(Key::new(3, 0), 9);
            },
            &[
                "sim.ammo[{of: 1, n: 0}]: 30 != (absent)",
                "sim.ammo[{of: 2, n: 0}]: 12 != 11",
                "sim.ammo[{of: 3, n: 0}]: (absent) != 9",
            ],
        );
    }

    #[test]
    fn a_different_order_within_a_tick_is_a_difference() {
        let [mut left, mut right] = [Schedule::new(), Schedule::new()];
        for of in [1, 2] {
            left.at(Tick(5), Key::new(of, 0), ());
            right.at(Tick(5), Key::new(3 - of, 0), ());
        }
        let found = diff(&left, &right, 16);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "keys()[0]: {of: 1, n: 0} != {of: 2, n: 0}"
        );
    }

    #[test]
    fn a_map_with_a_duplicate_key_differs_from_one_without() {
        let found = diff(&Pairs(vec![(1, 0), (1, 0)]), &Pairs(vec![(1, 0)]), 16);
        assert_eq!(found[0].to_string(), "keys()[1]: 1 != (absent)");
    }

    #[test]
    fn at_most_max_differences_are_found() {
        let [left, right] = [vec![0; 100], vec![1; 100]];
        for max in [0, 1, 16, 100, 200] {
            assert_eq!(diff(&left, &right, max).len(), max.min(100));
        }
    }

    #[test]
    fn floats_differ_by_their_bits() {
        assert_eq!(
            diff(&0.0_f32, &-0.0_f32, 1)[0].to_string(),
            "(root): 0.0 != -0.0"
        );
        let odd = f32::from_bits(0x7fc0_0001);
        assert_eq!(
            diff(&f32::NAN, &odd, 1)[0].to_string(),
            "(root): NaN(0x7fc00000) != NaN(0x7fc00001)"
        );
        assert!(diff(&f32::NAN, &f32::NAN, 1).is_empty());
    }

    #[test]
    fn long_untrusted_text_is_cut_and_escaped_but_compared_in_full() {
        let long = "\u{1b}[31m\n\"ö".repeat(100_000);
        let found = diff(&long, &(long.clone() + "x"), 16);
        assert!(
            found[0].left.starts_with("\"\\u{1b}[31m\\n\\\"\\u{f6}"),
            "{}",
            found[0].left
        );
        assert!(found[0].left.len() <= 128 && found[0].left.ends_with("..."));
        let keyed: Table<String, u8> = [(long.clone() + "1", 1), (long + "2", 2)]
            .into_iter()
            .collect();
        let found = diff(&keyed, &Table::<String, u8>::new(), 16);
        assert_eq!(found.len(), 2);
        assert!(
            found
                .iter()
                .all(|one| one.path.len() <= 256 && one.path.is_ascii()),
            "{found:?}"
        );
    }

    #[test]
    fn a_failed_serialize_is_reported_as_the_value() {
        let cell = core::cell::RefCell::new(1);
        let _borrowed = cell.borrow_mut();
        let found = diff(&cell, &core::cell::RefCell::new(1), 16);
        assert_eq!(
            found[0].to_string(),
            "(root): not serialisable: already mutably borrowed != 1"
        );
    }

    /// A map in any order, possibly with repeated keys.
    #[derive(Clone, Debug)]
    struct Pairs<V>(Vec<(u8, V)>);

    impl<V: Serialize> Serialize for Pairs<V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (key, value) in &self.0 {
                map.serialize_entry(key, value)?;
            }
            map.end()
        }
    }

    #[derive(Clone, Debug, Serialize)]
    enum Any {
        Nothing,
        Number(u8),
        Float(f32),
        Text(String),
        Maybe(Option<Option<u8>>),
        Two(Box<Any>, i8),
        List(Vec<Any>),
        Map(Pairs<Any>),
        Sparse {
            #[serde(skip_serializing_if = "Option::is_none")]
            a: Option<u8>,
            #[serde(skip_serializing_if = "Option::is_none")]
            b: Option<u8>,
        },
    }

    /// Values from a small domain, so that equal values and near misses are frequent.
    fn any() -> impl Strategy<Value = Any> {
        let leaf = prop_oneof![
            Just(Any::Nothing),
            (0..2_u8).prop_map(Any::Number),
            prop_oneof![Just(0.0), Just(-0.0), Just(1.5)].prop_map(Any::Float),
            "[a\n]{0,2}".prop_map(Any::Text),
            prop_oneof![Just(None), Just(Some(None)), Just(Some(Some(0)))].prop_map(Any::Maybe),
            (prop::option::of(0..1_u8), prop::option::of(0..1_u8))
                .prop_map(|(a, b)| Any::Sparse { a, b }),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                (inner.clone(), 0..2_i8).prop_map(|(one, two)| Any::Two(Box::new(one), two)),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Any::List),
                prop::collection::vec((0..2_u8, inner), 0..3)
                    .prop_map(|pairs| Any::Map(Pairs(pairs))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn diff_is_empty_if_and_only_if_digests_are_equal(left in any(), right in any()) {
            let found = diff(&left, &right, 1_000);
            prop_assert_eq!(found.is_empty(), digest(&left).unwrap() == digest(&right).unwrap(), "{:?}", found);
            prop_assert!(found.iter().all(|one| one.left != one.right), "{:?}", found);
            prop_assert!(diff(&left, &left, 1).is_empty());
        }
    }
}
