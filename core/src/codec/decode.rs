//! The decoder, bounded only by the bytes present.
//!
//! bincode's own decoder counts the in-memory widths of numbers against its limit, so it refuses values that its
//! encoder produced within the same limit; and it allocates a string before any of its bytes is present. Here a claimed
//! length is trusted only as far as there are bytes for it. Numbers are still decoded by bincode, so there is only one
//! format.
//!
//! Functions that run for each number are marked `#[inline]`: a result returned through memory costs three times as
//! much as the decoding itself.
//!
//! Invariant: time and memory are linear in the number of bytes, not in the lengths that they claim. So elements
//! without bytes are counted ([`EMPTY_MAX`]), and the nesting of values is limited ([`NESTING_MAX`]).

use bincode::config::Configuration;
use bincode::de::read::{BorrowReader, Reader};
use bincode::de::{BorrowDecode, Decode, Decoder, DecoderImpl};
use bincode::error::DecodeError;
use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// The maximum number of zero-byte list and map elements in one value.
const EMPTY_MAX: usize = 1 << 16;
/// The deepest nesting of values. Non-recursive types stay far below it.
const NESTING_MAX: usize = 128;

struct Rest<'de>(&'de [u8]);

impl Reader for Rest<'_> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), DecodeError> {
        bytes.copy_from_slice(self.take_bytes(bytes.len())?);
        Ok(())
    }

    #[inline]
    fn peek_read(&mut self, n: usize) -> Option<&[u8]> {
        self.0.get(..n)
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.0 = self.0.get(n..).unwrap_or_default();
    }
}

impl<'de> BorrowReader<'de> for Rest<'de> {
    #[inline]
    fn take_bytes(&mut self, length: usize) -> Result<&'de [u8], DecodeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(DecodeError::UnexpectedEnd { additional: 1 })?;
        self.0 = rest;
        Ok(taken)
    }
}

pub(super) struct Decoding<'de> {
    from: DecoderImpl<Rest<'de>, Configuration, ()>,
    empty: usize,
    nesting: usize,
}

impl<'de> Decoding<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Decoding {
            from: DecoderImpl::new(Rest(bytes), bincode::config::standard(), ()),
            empty: 0,
            nesting: 0,
        }
    }

    #[inline]
    pub(super) fn left(&mut self) -> usize {
        self.from.reader().0.len()
    }

    #[inline]
    fn number<T: Decode<()>>(&mut self) -> Result<T, DecodeError> {
        T::decode(&mut self.from)
    }

    #[inline]
    fn length(&mut self) -> Result<usize, DecodeError> {
        let length: usize = self.number()?;
        let left = self.left();
        // A length may exceed the remaining bytes, because elements may take no bytes.
        if length > left.saturating_add(EMPTY_MAX) {
            return Err(DecodeError::UnexpectedEnd {
                additional: length - left,
            });
        }
        Ok(length)
    }

    #[inline]
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.nesting == NESTING_MAX {
            return Err(DecodeError::custom("values are nested too deeply"));
        }
        self.nesting += 1;
        let value = read(self);
        self.nesting -= 1;
        value
    }

    #[inline]
    fn element<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let before = self.left();
        let value = read(self)?;
        if self.left() == before {
            self.empty += 1;
            if self.empty > EMPTY_MAX {
                return Err(DecodeError::custom("too many zero-byte elements"));
            }
        }
        Ok(value)
    }
}

macro_rules! numbers {
    ($($deserialize:ident $visit:ident),* $(,)?) => {$(
        #[inline]
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(self.number()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Decoding<'de> {
    type Error = DecodeError;

    numbers! {
        deserialize_bool visit_bool,
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_i128 visit_i128,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
        deserialize_u128 visit_u128,
        deserialize_f32 visit_f32,
        deserialize_f64 visit_f64,
        deserialize_char visit_char,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, DecodeError> {
        Err(DecodeError::custom("the format is not self-describing"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, DecodeError> {
        Err(DecodeError::custom("the format is not self-describing"))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, DecodeError> {
        Err(DecodeError::custom("the format has no field names"))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_borrowed_str(<&str>::borrow_decode(&mut self.from)?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_borrowed_bytes(<&[u8]>::borrow_decode(&mut self.from)?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.number::<u8>()? {
            0 => visitor.visit_none(),
            1 => self.nested(|within| visitor.visit_some(within)),
            _ => Err(DecodeError::custom("an option tag other than 0 and 1")),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.nested(|within| visitor.visit_newtype_struct(within))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let elements = self.length()?;
        self.nested(|of| visitor.visit_seq(LengthPrefixed::new(of, elements)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let elements = self.length()?;
        self.nested(|of| visitor.visit_map(LengthPrefixed::new(of, elements)))
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        fields: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.nested(|of| visitor.visit_seq(FixedLength { of, left: fields }))
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(fields, visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.nested(|within| visitor.visit_enum(within))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct LengthPrefixed<'a, 'de> {
    of: &'a mut Decoding<'de>,
    left: usize,
    /// The maximum number of elements for which memory is reserved. An element takes at least one byte, or no memory.
    room: usize,
}

impl<'a, 'de> LengthPrefixed<'a, 'de> {
    #[inline]
    fn new(of: &'a mut Decoding<'de>, left: usize) -> Self {
        let room = left.min(of.left());
        LengthPrefixed { of, left, room }
    }
}

impl<'de> SeqAccess<'de> for LengthPrefixed<'_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.of.element(|within| seed.deserialize(within)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.room))
    }
}

impl<'de> MapAccess<'de> for LengthPrefixed<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        seed.deserialize(&mut *self.of)
    }

    fn size_hint(&self) -> Option<usize> {
        SeqAccess::size_hint(self)
    }
}

struct FixedLength<'a, 'de> {
    of: &'a mut Decoding<'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for FixedLength<'_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.of).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> EnumAccess<'de> for &mut Decoding<'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), DecodeError> {
        let variant: U32Deserializer<DecodeError> = self.number::<u32>()?.into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Decoding<'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        fields: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(fields, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}
