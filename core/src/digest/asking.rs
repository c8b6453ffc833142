//! Who serialises a value? A list whose parts' digests are known asks that.
//!
//! serde knows nothing of it, so the list serialises itself ([`serialize`]) like this:
//!
//! ```text
//!   a tuple struct NAME of two fields     the codec                a digest, a look for a NaN
//!     Question: a tuple of no elements     writes no bytes          refuses it, and goes on
//!     the list, or digests of its parts    the list's own bytes     the digests ◀─ it was refused
//! ```

use core::cell::Cell;
use core::fmt::Display;

use serde::ser::{Impossible, Serialize, SerializeTuple, SerializeTupleStruct, Serializer};

use crate::refused::SerializeError;

/// The name of the tuple struct that asks.
pub(crate) const NAME: &str = "twinstep::digest::Known";

/// Serialises `whole`; where that is digested, or looked through for a NaN, `digests` in its place.
pub(crate) fn serialize<S: Serializer>(
    serializer: S,
    whole: &impl Serialize,
    digests: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        return whole.serialize(serializer);
    }
    let is_digest = Cell::new(false);
    let mut fields = serializer.serialize_tuple_struct(NAME, 2)?;
    fields.serialize_field(&Question(&is_digest))?;
    match is_digest.get() {
        true => fields.serialize_field(digests)?,
        false => fields.serialize_field(whole)?,
    }
    fields.end()
}

/// A tuple of no elements, which notes whether it was refused.
struct Question<'a>(&'a Cell<bool>);

impl Serialize for Question<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.serialize_tuple(0) {
            Ok(nothing) => nothing.end(),
            Err(refused) => {
                self.0.set(true);
                Err(refused)
            }
        }
    }
}

/// The fields of a tuple struct, on their way through `S`; the first one may be a question.
pub(super) struct Fields<S> {
    through: S,
    asks: bool,
}

impl<S> Fields<S> {
    // Names are known at compile time, so this costs those nothing that ask nothing.
    #[inline]
    pub(super) fn new(through: S, name: &'static str) -> Fields<S> {
        Fields {
            through,
            asks: name == NAME,
        }
    }
}

impl<S> SerializeTupleStruct for Fields<&mut S>
where
    for<'s> &'s mut S: Serializer<Ok = (), Error = SerializeError>,
{
    type Ok = ();
    type Error = SerializeError;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &T) -> Result<(), SerializeError> {
        // The question is answered by a refusal.
        if core::mem::take(&mut self.asks) {
            let _ = field.serialize(Refusal);
            return Ok(());
        }
        field.serialize(&mut *self.through)
    }

    #[inline]
    fn end(self) -> Result<(), SerializeError> {
        Ok(())
    }
}

/// Serialises nothing.
struct Refusal;

macro_rules! refuse {
    ($($method:ident($($argument:ty),*) -> $ok:ty),* $(,)?) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$ok, SerializeError> {
            Err(SerializeError::default())
        }
    )*};
}

type Never = Impossible<(), SerializeError>;

impl Serializer for Refusal {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Never;
    type SerializeMap = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    refuse!(
        serialize_bool(bool) -> (),
        serialize_i8(i8) -> (),
        serialize_i16(i16) -> (),
        serialize_i32(i32) -> (),
        serialize_i64(i64) -> (),
        serialize_u8(u8) -> (),
        serialize_u16(u16) -> (),
        serialize_u32(u32) -> (),
        serialize_u64(u64) -> (),
        serialize_f32(f32) -> (),
        serialize_f64(f64) -> (),
        serialize_char(char) -> (),
        serialize_str(&str) -> (),
        serialize_bytes(&[u8]) -> (),
        serialize_none() -> (),
        serialize_unit() -> (),
        serialize_unit_struct(&'static str) -> (),
        serialize_unit_variant(&'static str, u32, &'static str) -> (),
        serialize_seq(Option<usize>) -> Never,
        serialize_map(Option<usize>) -> Never,
        serialize_tuple(usize) -> Never,
        serialize_tuple_struct(&'static str, usize) -> Never,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never,
        serialize_struct(&'static str, usize) -> Never,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never,
    );

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), SerializeError> {
        Err(SerializeError::default())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<(), SerializeError> {
        Err(SerializeError::default())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), SerializeError> {
        Err(SerializeError::default())
    }

    fn collect_str<T: Display + ?Sized>(self, _: &T) -> Result<(), SerializeError> {
        Err(SerializeError::default())
    }
}
