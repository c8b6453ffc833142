//! [`Hasher`]: the serializer that turns a value into its canonical bytes and hashes them.
//!
//! Invariant: the bytes are those described in [`digest`](super), no matter where the buffer was flushed.

use serde::ser::{self, Serialize, Serializer};
use xxhash_rust::xxh3::Xxh3Default;

use super::asking::NAME;
use crate::refused::SerializeError;

pub(super) const BUFFER: usize = 1_024;

pub(super) struct Fed {
    /// `None` if the value contains a NaN.
    pub(super) digest: Option<u64>,
    pub(super) bytes: u64,
}

impl Fed {
    #[inline]
    pub(super) fn of(value: &impl Serialize) -> Result<Fed, SerializeError> {
        let mut gathered = Gathered::new();
        let mut hasher = Hasher::new(&mut gathered);
        value.serialize(&mut hasher)?;
        let saw_nan = hasher.saw_nan();
        let (digest, bytes) = hasher.finish();
        Ok(Fed {
            digest: (!saw_nan).then_some(digest),
            bytes,
        })
    }
}

/// The buffer, and the hash of all bytes before it.
pub(super) struct Gathered {
    xxh3: Xxh3Default,
    buffer: [u8; BUFFER],
    /// The number of hashed bytes, without the bytes in the buffer.
    hashed: u64,
}

impl Gathered {
    pub(super) fn new() -> Gathered {
        Gathered {
            xxh3: Xxh3Default::new(),
            buffer: [0; BUFFER],
            hashed: 0,
        }
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self, used: usize) {
        self.xxh3.update(&self.buffer[..used]);
        self.hashed += used as u64;
    }
}

#[derive(Clone, Copy, Default)]
struct Reached {
    used: usize,
    saw_nan: bool,
}

/// The serializer. It is small, so that a list can have a separate serializer, which the loop over the elements keeps
/// in registers: three times as fast as a shared serializer that each number reads back from memory.
pub(super) struct Hasher<'g> {
    gathered: &'g mut Gathered,
    reached: Reached,
}

impl<'g> Hasher<'g> {
    pub(super) fn new(gathered: &'g mut Gathered) -> Hasher<'g> {
        Hasher {
            gathered,
            reached: Reached::default(),
        }
    }

    pub(super) fn saw_nan(&self) -> bool {
        self.reached.saw_nan
    }

    pub(super) fn finish(self) -> (u64, u64) {
        self.gathered.flush(self.reached.used);
        (self.gathered.xxh3.digest(), self.gathered.hashed)
    }

    /// Flushes the buffer unless it has space for `width` bytes. `width` is at most [`BUFFER`].
    #[inline]
    fn make_room(&mut self, width: usize) {
        if self.reached.used > BUFFER - width {
            self.gathered.flush(self.reached.used);
            self.reached.used = 0;
        }
    }

    /// `WIDTH` is known at compile time, so this is one comparison and one store.
    #[inline]
    fn put<const WIDTH: usize>(&mut self, bytes: [u8; WIDTH]) {
        self.make_room(WIDTH);
        let used = self.reached.used;
        self.gathered.buffer[used..used + WIDTH].copy_from_slice(&bytes);
        self.reached.used += WIDTH;
    }

    #[inline]
    fn put_len(&mut self, len: usize) {
        self.put((len as u64).to_le_bytes());
    }

    fn put_slice(&mut self, bytes: &[u8]) {
        self.put_len(bytes.len());
        if bytes.len() > BUFFER {
            // Longer than the buffer, so hash it directly.
            self.gathered.flush(self.reached.used);
            self.reached.used = 0;
            self.gathered.xxh3.update(bytes);
            self.gathered.hashed += bytes.len() as u64;
        } else {
            self.make_room(bytes.len());
            let used = self.reached.used;
            self.gathered.buffer[used..used + bytes.len()].copy_from_slice(bytes);
            self.reached.used += bytes.len();
        }
    }
}

macro_rules! put_numbers {
    ($($method:ident: $number:ty),*) => {$(
        #[inline]
        fn $method(self, number: $number) -> Result<(), SerializeError> {
            self.put(number.to_le_bytes());
            Ok(())
        }
    )*};
}

impl<'a, 'g> Serializer for &'a mut Hasher<'g> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Elements<'a>;
    type SerializeMap = Elements<'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    put_numbers!(
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128
    );

    #[inline]
    fn serialize_f32(self, number: f32) -> Result<(), SerializeError> {
        self.reached.saw_nan |= number.is_nan();
        self.put(number.to_bits().to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, number: f64) -> Result<(), SerializeError> {
        self.reached.saw_nan |= number.is_nan();
        self.put(number.to_bits().to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_bool(self, flag: bool) -> Result<(), SerializeError> {
        self.put([flag as u8]);
        Ok(())
    }

    fn serialize_char(self, character: char) -> Result<(), SerializeError> {
        self.put(u32::from(character).to_le_bytes());
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), SerializeError> {
        self.put_slice(text.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), SerializeError> {
        self.put_slice(bytes);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), SerializeError> {
        self.put([0]);
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), SerializeError> {
        self.put([1]);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), SerializeError> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerializeError> {
        Ok(())
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
    ) -> Result<(), SerializeError> {
        self.put(index.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        self.put(index.to_le_bytes());
        value.serialize(self)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, SerializeError> {
        self.put(index.to_le_bytes());
        Ok(self)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, SerializeError> {
        self.put(index.to_le_bytes());
        Ok(self)
    }

    // No length is written for tuples and structs: the type determines it.
    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Self, SerializeError> {
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, SerializeError> {
        Ok(self)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, SerializeError> {
        Ok(self)
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Elements<'a>, SerializeError> {
        Ok(Elements::new(self, len))
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Elements<'a>, SerializeError> {
        Ok(Elements::new(self, len))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a sequence or the entries of a map. If their number is not known in advance, it is encoded as
/// `u64::MAX`, with a 1 before each element and a 0 at the end.
pub(super) struct Elements<'a> {
    hasher: Hasher<'a>,
    /// The outer hasher's progress, updated at the end of the list.
    back: &'a mut Reached,
    counted: bool,
}

impl<'a> Elements<'a> {
    #[inline]
    fn new(before: &'a mut Hasher<'_>, len: Option<usize>) -> Elements<'a> {
        before.put(len.map_or(u64::MAX, |len| len as u64).to_le_bytes());
        Elements {
            hasher: Hasher {
                gathered: before.gathered,
                reached: before.reached,
            },
            back: &mut before.reached,
            counted: len.is_some(),
        }
    }

    #[inline]
    fn announce(&mut self, more: bool) {
        if !self.counted {
            self.hasher.put([more as u8]);
        }
    }

    #[inline]
    fn finish(mut self) {
        self.announce(false);
        *self.back = self.hasher.reached;
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = SerializeError;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(
        &mut self,
        element: &T,
    ) -> Result<(), SerializeError> {
        self.announce(true);
        element.serialize(&mut self.hasher)
    }

    #[inline]
    fn end(self) -> Result<(), SerializeError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeMap for Elements<'_> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.announce(true);
        key.serialize(&mut self.hasher)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        value.serialize(&mut self.hasher)
    }

    #[inline]
    fn end(self) -> Result<(), SerializeError> {
        self.finish();
        Ok(())
    }
}

macro_rules! put_in_order {
    ($($compound:ident :: $method:ident),*) => {$(
        impl ser::$compound for &mut Hasher<'_> {
            type Ok = ();
            type Error = SerializeError;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), SerializeError> {
                Ok(())
            }
        }
    )*};
}

macro_rules! put_fields {
    ($($compound:ident),*) => {$(
        impl ser::$compound for &mut Hasher<'_> {
            type Ok = ();
            type Error = SerializeError;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), SerializeError> {
                value.serialize(&mut **self)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), SerializeError> {
                // Accepts the cached digests of a list: see `asking`.
                if name == NAME {
                    return Err(SerializeError::default());
                }
                self.put_slice(name.as_bytes());
                Ok(())
            }

            fn end(self) -> Result<(), SerializeError> {
                Ok(())
            }
        }
    )*};
}

put_in_order!(
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);
put_fields!(SerializeStruct, SerializeStructVariant);
