//! [`NanScan`]: the serializer that only searches for NaN.
//!
//! A server must know that its state contains no NaN before it sends a tick, but it does not digest a large world every
//! tick. This scan visits the same fields as the [`Hasher`](super::Hasher). A float costs one comparison. Strings,
//! bytes and lists of numbers that cannot be NaN are skipped as a whole.

use serde::ser::{self, Serialize, Serializer};

use super::asking::NAME;
use crate::refused::SerializeError;

#[derive(Default)]
pub(super) struct NanScan {
    saw_nan: bool,
}

impl NanScan {
    pub(super) fn saw_nan(&self) -> bool {
        self.saw_nan
    }
}

macro_rules! pass {
    ($($method:ident($($argument:ty),*)),* $(,)?) => {$(
        #[inline]
        fn $method(self, $(_: $argument),*) -> Result<(), SerializeError> {
            Ok(())
        }
    )*};
}

macro_rules! walk {
    ($($method:ident($($argument:ty),*)),* $(,)?) => {$(
        #[inline]
        fn $method(self, $(_: $argument),*) -> Result<Self, SerializeError> {
            Ok(self)
        }
    )*};
}

impl Serializer for &mut NanScan {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Self;
    type SerializeMap = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    pass!(
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_bool(bool),
        serialize_char(char),
        serialize_str(&str),
        serialize_bytes(&[u8]),
        serialize_none(),
        serialize_unit(),
        serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str),
    );

    walk!(
        serialize_seq(Option<usize>),
        serialize_map(Option<usize>),
        serialize_tuple(usize),
        serialize_tuple_struct(&'static str, usize),
        serialize_tuple_variant(&'static str, u32, &'static str, usize),
        serialize_struct(&'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize),
    );

    #[inline]
    fn serialize_f32(self, number: f32) -> Result<(), SerializeError> {
        self.saw_nan |= number.is_nan();
        Ok(())
    }

    #[inline]
    fn serialize_f64(self, number: f64) -> Result<(), SerializeError> {
        self.saw_nan |= number.is_nan();
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), SerializeError> {
        value.serialize(self)
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
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        value.serialize(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! walk_parts {
    ($($compound:ident: $($method:ident),*);* $(;)?) => {$(
        impl ser::$compound for &mut NanScan {
            type Ok = ();
            type Error = SerializeError;

            $(
                #[inline]
                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
                    value.serialize(&mut **self)
                }
            )*

            #[inline]
            fn end(self) -> Result<(), SerializeError> {
                Ok(())
            }
        }
    )*};
}

macro_rules! walk_fields {
    ($($compound:ident),*) => {$(
        impl ser::$compound for &mut NanScan {
            type Ok = ();
            type Error = SerializeError;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), SerializeError> {
                value.serialize(&mut **self)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), SerializeError> {
                // Accepts the cached digests of a list: see `asking`.
                match name == NAME {
                    true => Err(SerializeError::default()),
                    false => Ok(()),
                }
            }

            #[inline]
            fn end(self) -> Result<(), SerializeError> {
                Ok(())
            }
        }
    )*};
}

walk_parts!(
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
    SerializeTupleVariant: serialize_field;
    SerializeMap: serialize_key, serialize_value;
);
walk_fields!(SerializeStruct, SerializeStructVariant);
