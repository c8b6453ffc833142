//! A serialisable value as a tree with names: the basis of reports about a state.
//!
//! Not on the fast path (about 32 bytes of heap per number): a tree is built only for a report, a tape or an inspector,
//! or if a digest found a NaN.
//!
//! Invariants: two values of one type have equal trees if and only if they have equal digests. No text returned by this
//! module is longer than its bound, and text from the state's strings is printable ASCII, because it may end up in
//! other people's logs.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use serde::ser::{self, Serialize, Serializer};

use crate::digest::asking::NAME;
use crate::refused::SerializeError;

/// The maximum length of a value's text, in bytes.
const TEXT_MAX: usize = 128;
/// The maximum length of a map key in a path, in bytes.
const KEY_MAX: usize = 64;
/// The maximum length of a path, in bytes.
const PATH_MAX: usize = 256;

/// A value. Floats are compared by their bits.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Unit,
    None,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Int128(Box<i128>),
    Uint128(Box<u128>),
    F32(u32),
    F64(u64),
    Char(char),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Some(Box<Node>),
    /// Elements are named by index in brackets. Includes arrays and tuples, which serde does not distinguish.
    Seq(Vec<Node>),
    /// Fields are named by index after a dot.
    Tuple(Vec<Node>),
    Struct(Vec<(&'static str, Node)>),
    Map(Vec<(Node, Node)>),
    Variant(&'static str, Box<Node>),
    /// The type's own `Serialize` failed with this reason.
    SerializeError(Box<str>),
}

impl Node {
    pub(crate) fn of(value: &(impl Serialize + ?Sized)) -> Node {
        value
            .serialize(Grow)
            .unwrap_or_else(|SerializeError(reason)| Node::SerializeError(reason.into()))
    }

    /// The value in at most [`TEXT_MAX`] bytes, escaped.
    pub(crate) fn text(&self) -> String {
        self.short(TEXT_MAX)
    }

    fn short(&self, max: usize) -> String {
        let mut short = Short {
            text: String::new(),
            max,
        };
        // An error means that the bound was reached: the text so far is the result.
        let _ = self.write(&mut short);
        short.text
    }

    fn write(&self, out: &mut Short) -> fmt::Result {
        match self {
            Node::Unit => out.write_str("()"),
            Node::None => out.write_str("None"),
            Node::Bool(flag) => write!(out, "{flag}"),
            Node::Int(number) => write!(out, "{number}"),
            Node::Uint(number) => write!(out, "{number}"),
            Node::Int128(number) => write!(out, "{number}"),
            Node::Uint128(number) => write!(out, "{number}"),
            Node::F32(bits) if f32::from_bits(*bits).is_nan() => write!(out, "NaN({bits:#x})"),
            Node::F64(bits) if f64::from_bits(*bits).is_nan() => write!(out, "NaN({bits:#x})"),
            Node::F32(bits) => write!(out, "{:?}", f32::from_bits(*bits)),
            Node::F64(bits) => write!(out, "{:?}", f64::from_bits(*bits)),
            Node::Char(character) => write!(out, "'{}'", character.escape_default()),
            Node::Text(text) => {
                out.write_char('"')?;
                text.chars()
                    .try_for_each(|character| write!(out, "{}", character.escape_default()))?;
                out.write_char('"')
            }
            Node::Bytes(bytes) => {
                write!(out, "{} bytes ", bytes.len())?;
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            Node::Some(inner) => {
                out.write_str("Some(")?;
                inner.write(out)?;
                out.write_char(')')
            }
            Node::Seq(nodes) => list(out, '[', nodes, ']', |node, out| node.write(out)),
            Node::Tuple(nodes) => list(out, '(', nodes, ')', |node, out| node.write(out)),
            Node::Struct(fields) => list(out, '{', fields, '}', |(name, node), out| {
                write!(out, "{name}: ")?;
                node.write(out)
            }),
            Node::Map(entries) => list(out, '{', entries, '}', |(key, node), out| {
                key.write(out)?;
                out.write_str(": ")?;
                node.write(out)
            }),
            Node::Variant(name, inner) => {
                out.write_str(name)?;
                match **inner {
                    Node::Unit => Ok(()),
                    Node::Struct(_) | Node::Tuple(_) => inner.write(out),
                    _ => {
                        out.write_char('(')?;
                        inner.write(out)?;
                        out.write_char(')')
                    }
                }
            }
            Node::SerializeError(reason) => {
                write!(out, "not serialisable: {}", reason.escape_default())
            }
        }
    }

    fn find_nan(&self, path: &mut Path) -> bool {
        match self {
            Node::F32(bits) => f32::from_bits(*bits).is_nan(),
            Node::F64(bits) => f64::from_bits(*bits).is_nan(),
            Node::Some(inner) => inner.find_nan(path),
            Node::Variant(name, inner) => {
                path.found(|path| path.field(name), |path| inner.find_nan(path))
            }
            Node::Seq(nodes) => nodes.iter().enumerate().any(|(index, node)| {
                path.found(|path| path.index(index), |path| node.find_nan(path))
            }),
            Node::Tuple(nodes) => nodes.iter().enumerate().any(|(index, node)| {
                path.found(|path| path.position(index), |path| node.find_nan(path))
            }),
            Node::Struct(fields) => fields.iter().any(|(name, node)| {
                path.found(|path| path.field(name), |path| node.find_nan(path))
            }),
            Node::Map(entries) => entries.iter().any(|(key, node)| {
                path.found(
                    |path| path.key(key),
                    // The NaN can also be in a key.
                    |path| key.find_nan(path) || node.find_nan(path),
                )
            }),
            _ => false,
        }
    }
}

fn list<T>(
    out: &mut Short,
    open: char,
    items: &[T],
    close: char,
    mut write: impl FnMut(&T, &mut Short) -> fmt::Result,
) -> fmt::Result {
    out.write_char(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write(item, out)?;
    }
    out.write_char(close)
}

pub(crate) fn path_of_nan(value: &impl Serialize) -> String {
    let mut path = Path::default();
    Node::of(value).find_nan(&mut path);
    path.text()
}

/// A path to a part of a value, like `sim.enemies[3].pos.x`.
#[derive(Default)]
pub(crate) struct Path(String);

impl Path {
    /// The path in at most [`PATH_MAX`] bytes.
    pub(crate) fn text(&self) -> String {
        let mut short = Short {
            text: String::new(),
            max: PATH_MAX,
        };
        let _ = short.write_str(if self.0.is_empty() { "(root)" } else { &self.0 });
        short.text
    }

    pub(crate) fn field(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(name);
    }

    pub(crate) fn index(&mut self, index: usize) {
        self.push(format_args!("[{index}]"));
    }

    pub(crate) fn elements(&mut self) {
        self.push(format_args!("[]"));
    }

    pub(crate) fn position(&mut self, index: usize) {
        self.push(format_args!(".{index}"));
    }

    pub(crate) fn key(&mut self, key: &Node) {
        self.push(format_args!("[{}]", key.short(KEY_MAX)));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn back_to(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Appends one step to the path. Removes it again unless `search` returns `true`.
    fn found(
        &mut self,
        step: impl FnOnce(&mut Path),
        search: impl FnOnce(&mut Path) -> bool,
    ) -> bool {
        let back = self.len();
        step(self);
        let found = search(self);
        if !found {
            self.back_to(back);
        }
        found
    }

    fn push(&mut self, step: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(step);
    }
}

/// Text of limited length. At the limit it ends in "..." and further writes fail.
struct Short {
    text: String,
    max: usize,
}

impl Write for Short {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        // The last three bytes are reserved for the dots.
        let room = self.max - "...".len() - self.text.len();
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        self.text.push_str(&part[..part.floor_char_boundary(room)]);
        self.text.push_str("...");
        Err(fmt::Error)
    }
}

struct Grow;

struct Growing<T> {
    children: Vec<T>,
    wrap: fn(Vec<T>) -> Node,
    variant: Option<&'static str>,
}

impl<T> Growing<T> {
    fn new(
        wrap: fn(Vec<T>) -> Node,
        variant: Option<&'static str>,
        len: usize,
    ) -> Result<Growing<T>, SerializeError> {
        Ok(Growing {
            children: Vec::with_capacity(len),
            wrap,
            variant,
        })
    }

    fn grown(self) -> Result<Node, SerializeError> {
        let node = (self.wrap)(self.children);
        Ok(match self.variant {
            Some(name) => Node::Variant(name, Box::new(node)),
            None => node,
        })
    }
}

macro_rules! grow_leaves {
    ($($method:ident($value:ident: $of:ty) => $node:expr),* $(,)?) => {$(
        fn $method(self, $value: $of) -> Result<Node, SerializeError> {
            Ok($node)
        }
    )*};
}

impl Serializer for Grow {
    type Ok = Node;
    type Error = SerializeError;
    type SerializeSeq = Growing<Node>;
    type SerializeTuple = Growing<Node>;
    type SerializeTupleStruct = Growing<Node>;
    type SerializeTupleVariant = Growing<Node>;
    type SerializeMap = Growing<(Node, Node)>;
    type SerializeStruct = Growing<(&'static str, Node)>;
    type SerializeStructVariant = Growing<(&'static str, Node)>;

    grow_leaves!(
        serialize_bool(flag: bool) => Node::Bool(flag),
        serialize_i8(number: i8) => Node::Int(number.into()),
        serialize_i16(number: i16) => Node::Int(number.into()),
        serialize_i32(number: i32) => Node::Int(number.into()),
        serialize_i64(number: i64) => Node::Int(number),
        serialize_i128(number: i128) => Node::Int128(Box::new(number)),
        serialize_u8(number: u8) => Node::Uint(number.into()),
        serialize_u16(number: u16) => Node::Uint(number.into()),
        serialize_u32(number: u32) => Node::Uint(number.into()),
        serialize_u64(number: u64) => Node::Uint(number),
        serialize_u128(number: u128) => Node::Uint128(Box::new(number)),
        serialize_f32(number: f32) => Node::F32(number.to_bits()),
        serialize_f64(number: f64) => Node::F64(number.to_bits()),
        serialize_char(character: char) => Node::Char(character),
        serialize_str(text: &str) => Node::Text(text.into()),
        serialize_bytes(bytes: &[u8]) => Node::Bytes(bytes.into()),
        serialize_unit_struct(_name: &'static str) => Node::Unit,
    );

    fn serialize_none(self) -> Result<Node, SerializeError> {
        Ok(Node::None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, SerializeError> {
        Ok(Node::Some(Box::new(value.serialize(Grow)?)))
    }

    fn serialize_unit(self) -> Result<Node, SerializeError> {
        Ok(Node::Unit)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Node, SerializeError> {
        value.serialize(Grow)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Node, SerializeError> {
        Ok(Node::Variant(variant, Box::new(Node::Unit)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Node, SerializeError> {
        Ok(Node::Variant(variant, Box::new(value.serialize(Grow)?)))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Growing<Node>, SerializeError> {
        Growing::new(Node::Seq, None, len.unwrap_or(0))
    }

    fn serialize_tuple(self, len: usize) -> Result<Growing<Node>, SerializeError> {
        Growing::new(Node::Seq, None, len)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<Growing<Node>, SerializeError> {
        Growing::new(Node::Tuple, None, len)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Growing<Node>, SerializeError> {
        Growing::new(Node::Tuple, Some(variant), len)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Growing<(Node, Node)>, SerializeError> {
        Growing::new(Node::Map, None, len.unwrap_or(0))
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Growing<(&'static str, Node)>, SerializeError> {
        // For a list with one digest per part, show the list, because authors know only the list.
        let list = |mut fields: Vec<(_, Node)>| fields.pop().map_or(Node::Unit, |(_, list)| list);
        let wrap = if name == NAME { list } else { Node::Struct };
        Growing::new(wrap, None, len)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Growing<(&'static str, Node)>, SerializeError> {
        Growing::new(Node::Struct, Some(variant), len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! grow_elements {
    ($($compound:ident :: $method:ident),*) => {$(
        impl ser::$compound for Growing<Node> {
            type Ok = Node;
            type Error = SerializeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
                self.children.push(value.serialize(Grow)?);
                Ok(())
            }

            fn end(self) -> Result<Node, SerializeError> {
                self.grown()
            }
        }
    )*};
}

macro_rules! grow_fields {
    ($($compound:ident),*) => {$(
        impl ser::$compound for Growing<(&'static str, Node)> {
            type Ok = Node;
            type Error = SerializeError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), SerializeError> {
                self.children.push((name, value.serialize(Grow)?));
                Ok(())
            }

            fn end(self) -> Result<Node, SerializeError> {
                self.grown()
            }
        }
    )*};
}

grow_elements!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);
grow_fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Growing<(Node, Node)> {
    type Ok = Node;
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.children.push((key.serialize(Grow)?, Node::Unit));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        match self.children.last_mut() {
            Some((_, last)) => *last = value.serialize(Grow)?,
            None => {
                return Err(SerializeError(
                    "a map's value came before its key".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Node, SerializeError> {
        self.grown()
    }
}
