use super::*;
use crate::Key;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use core::fmt;
use core::marker::PhantomData;

use proptest::prelude::*;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::bounds::OUTCOME_BYTES_MAX;

#[test]
fn a_value_survives_a_round_trip_with_its_length() {
    let mut buffer = [0; 32];
    let value = (7u32, -3i16, Some(300u16));
    let used = encode(&value, &mut buffer).unwrap();
    assert_eq!(used, size(&value).unwrap());
    assert_eq!(
        decode_prefix::<(u32, i16, Option<u16>)>(&buffer).unwrap(),
        (value, used)
    );
    let mut bytes = vec![9];
    append(&value, &mut bytes).unwrap();
    assert_eq!(&bytes[1..], &buffer[..used]);
}

#[test]
fn bytes_left_over_after_a_lone_value_are_an_error() {
    assert_eq!(
        decode_whole::<u8>(&[1, 2]),
        Err(CodecError::Trailing { left: 1 })
    );
    assert_eq!(decode_whole::<u8>(&[]), Err(CodecError::Truncated));
}

#[test]
fn a_length_bomb_is_an_error_not_an_allocation() {
    // A list that claims 2^40 elements.
    let bomb = [253, 0, 0, 0, 0, 0, 1, 0, 0];
    assert!(decode_whole::<Vec<u8>>(&bomb).is_err());
    assert!(decode_prefix::<String>(&bomb).is_err());
    assert!(decode_prefix::<BTreeMap<u8, u8>>(&bomb).is_err());
}

#[test]
fn a_value_that_does_not_fit_is_an_error() {
    assert_eq!(
        encode(&[1u8; 8], &mut [0; 4]),
        Err(CodecError::TooLarge { limit: 4 })
    );
}

// Finding K1: a decoder that counts in-memory widths refuses values accepted by an encoder that counts bytes.
#[test]
fn every_client_reads_an_outcome_within_its_bound() {
    let keys = Some(
        (0..91)
            .map(|n| Key::new(n % 7, n as u32))
            .collect::<Vec<_>>(),
    );
    let mut buffer = [0; 1_100];
    let used = encode(&keys, &mut buffer).unwrap();
    assert!(used <= OUTCOME_BYTES_MAX, "{used} B");
    assert_eq!(decode_prefix(&buffer), Ok((keys, used)));
}

// Finding K1.
#[test]
fn a_world_of_millions_of_small_numbers_is_read() {
    let world: Vec<u32> = (0..2_200_000).map(|n| n % 200).collect();
    let mut bytes = Vec::new();
    append(&world, &mut bytes).unwrap();
    assert!(bytes.len() < WORLD_BYTES_MAX / 3);
    assert!(decode_whole::<Vec<u32>>(&bytes) == Ok(world));
}

/// Records the size hint that a list's visitor receives, without taking an element.
struct Hint(Option<usize>);

impl<'de> Deserialize<'de> for Hint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Ask;
        impl<'de> Visitor<'de> for Ask {
            type Value = Hint;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Hint, A::Error> {
                Ok(Hint(list.size_hint()))
            }
        }
        from.deserialize_seq(Ask)
    }
}

// Finding K20: with the claimed length as a size hint, lists reserved up to 1 MiB before the first element failed.
#[test]
fn size_hints_never_exceed_the_bytes_present() {
    let mut bytes = vec![252, 0, 0, 16, 0];
    bytes.extend([0; 10]);
    match decode_prefix::<Hint>(&bytes) {
        Ok((Hint(hint), _)) => assert!(hint.is_some_and(|hint| hint <= 10), "{hint:?}"),
        Err(error) => assert_eq!(error, CodecError::Truncated),
    }
    bytes[3] = 0;
    bytes[1] = 255;
    let (Hint(hint), _) = decode_prefix::<Hint>(&bytes).expect("short enough to be tried");
    assert_eq!(hint, Some(10));
}

// Finding K20: a string of the wire's maximum length was allocated before any of its bytes was present.
#[test]
fn a_text_without_its_bytes_is_truncated() {
    // The text claims 1,000 bytes, then 2^40.
    for claim in [&[251, 232, 3][..], &[253, 0, 0, 0, 0, 0, 1, 0, 0]] {
        assert_eq!(decode_prefix::<String>(claim), Err(CodecError::Truncated));
        assert_eq!(decode_prefix::<Box<str>>(claim), Err(CodecError::Truncated));
    }
}

#[test]
fn the_number_of_zero_byte_elements_is_bounded() {
    let mut few = Vec::new();
    append(&vec![(); 1_000], &mut few).unwrap();
    assert_eq!(
        decode_whole::<Vec<()>>(&few).map(|list| list.len()),
        Ok(1_000)
    );
    let bomb = [253, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(decode_prefix::<Vec<()>>(&bomb).is_err());
    assert!(decode_prefix::<Vec<PhantomData<u8>>>(&bomb).is_err());
    // Many small bombs are as bad as one large bomb.
    let claim = [251, 0, 128]; // 32,768
    let mut many = vec![100];
    (0..100).for_each(|_| many.extend(claim));
    assert!(decode_prefix::<Vec<Vec<()>>>(&many).is_err());
}

#[derive(Debug, serde::Serialize, Deserialize)]
enum Chain {
    End,
    Link(Box<Chain>),
}

#[test]
fn endless_nesting_is_an_error_not_a_stack_overflow() {
    assert!(matches!(
        decode_prefix(&[1, 1, 1, 0]),
        Ok((Chain::Link(_), 4))
    ));
    let deep = vec![1; 4 << 20];
    assert_eq!(
        decode_whole::<Chain>(&deep).err(),
        Some(CodecError::Malformed)
    );
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, Deserialize)]
enum Any<T> {
    Nothing,
    Small(u8),
    Wide(u64),
    Signed(i64),
    Widest(u128, i128),
    Sign(char),
    Real(f32, f64),
    Truth(bool),
    Text(String),
    List(Vec<T>),
    Numbers(Vec<u32>),
    Maybe(Option<Option<T>>),
    Map(BTreeMap<u16, T>),
    Pair(Box<(T, T)>),
    Named { of: T, n: Option<u32> },
    Units(Vec<()>, ()),
    Array([u64; 12]),
}

fn any_of<T>(inner: impl Strategy<Value = T> + Clone + 'static) -> BoxedStrategy<Any<T>>
where
    T: Clone + fmt::Debug + 'static,
{
    let number = prop_oneof![0..251u64, any::<u64>()];
    let finite = any::<f64>().prop_filter("equal to itself", |x| !x.is_nan());
    let pair = (inner.clone(), inner.clone());
    prop_oneof![
        Just(Any::Nothing),
        any::<u8>().prop_map(Any::Small),
        number.clone().prop_map(Any::Wide),
        any::<i64>().prop_map(Any::Signed),
        any::<(u128, i128)>().prop_map(|(a, b)| Any::Widest(a, b)),
        any::<char>().prop_map(Any::Sign),
        finite.prop_map(|x| Any::Real(x as f32, x)),
        any::<bool>().prop_map(Any::Truth),
        ".{0,300}".prop_map(Any::Text),
        prop::collection::vec(inner.clone(), 0..12).prop_map(Any::List),
        prop::collection::vec(0..251u32, 0..900).prop_map(Any::Numbers),
        prop::option::of(prop::option::of(inner.clone())).prop_map(Any::Maybe),
        prop::collection::btree_map(any::<u16>(), inner.clone(), 0..12).prop_map(Any::Map),
        pair.prop_map(|pair| Any::Pair(Box::new(pair))),
        (inner, any::<Option<u32>>()).prop_map(|(of, n)| Any::Named { of, n }),
        (0..300usize).prop_map(|n| Any::Units(vec![(); n], ())),
        prop::array::uniform12(number).prop_map(Any::Array),
    ]
    .boxed()
}

proptest! {
    // Finding K1: every value that one side can write, of any shape, can be read by the other.
    #[test]
    fn every_encoded_value_decodes(value in any_of(any_of(any_of(any::<u8>())))) {
        let mut packet = [0; crate::bounds::PACKET_BYTES_MAX];
        if let Ok(used) = encode(&value, &mut packet) {
            prop_assert_eq!(size(&value), Ok(used));
            prop_assert_eq!(decode_prefix(&packet), Ok((value.clone(), used)));
        }
        let mut bytes = Vec::new();
        append(&value, &mut bytes).unwrap();
        prop_assert_eq!(decode_whole(&bytes), Ok(value));
        for cut in [0, bytes.len() / 2, bytes.len() - 1] {
            prop_assert!(decode_whole::<Any<Any<Any<u8>>>>(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn any_bytes_decode_to_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        type Deep = Any<Any<Any<u8>>>;
        let _ = decode_prefix::<Deep>(&bytes);
        let _ = decode_prefix::<Vec<Deep>>(&bytes);
        let _ = decode_whole::<Vec<String>>(&bytes);
    }
}
