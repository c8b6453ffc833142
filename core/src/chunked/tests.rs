use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use proptest::prelude::*;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, SeqDeserializer};

use core::ops::Range;

use super::*;
use crate::codec::{self, CodecError};
use crate::diff::diff;
use crate::digest::{digest, scan, sized_digest};

type Few<T> = Chunked<T, 4>;

const DIGEST: u64 = 0xb2c0_ddf6_43c8_52cd;

fn few(elements: Range<u32>) -> Few<u32> {
    elements.collect()
}

fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::append(value, &mut bytes).unwrap();
    bytes
}

fn decoded(bytes: &[u8]) -> Result<Few<u32>, CodecError> {
    codec::decode_whole(bytes)
}

/// For each chunk, whether the two lists share it in memory.
fn shared<T, const N: usize>(one: &Chunked<T, N>, two: &Chunked<T, N>) -> Vec<bool> {
    let pairs = one.chunks.iter().zip(&two.chunks);
    pairs.map(|(one, two)| Arc::ptr_eq(one, two)).collect()
}

fn known<T, const N: usize>(list: &Chunked<T, N>) -> Vec<bool> {
    let is_known = |chunk: &Arc<Chunk<T>>| chunk.known.is_known();
    list.chunks.iter().map(is_known).collect()
}

#[test]
fn copies_share_all_unchanged_chunks() {
    let mut list = few(0..10);
    let copy = list.clone();
    assert_eq!(shared(&list, &copy), [true; 3]);
    list[5] = 99;
    assert_eq!(shared(&list, &copy), [true, false, true]);
    assert_eq!((list[5], copy[5]), (99, 5));
    let mut other = copy.clone();
    let places = other.chunks.as_ptr();
    other.clone_from(&list);
    assert_eq!(shared(&list, &other), [true; 3]);
    assert_eq!(other.chunks.as_ptr(), places, "its room is used again");
    // Also for lists of different length.
    other.clone_from(&few(0..3));
    assert_eq!(other, few(0..3));
    other.clone_from(&list);
    assert_eq!(shared(&list, &other), [true; 3]);
    assert_eq!(other.len(), 10);
}

#[test]
fn a_list_ends_at_the_first_none_of_its_iterator() {
    let mut goes_on = [Some(1), None, Some(2)].into_iter();
    let list: Few<i32> = core::iter::from_fn(|| goes_on.next().flatten()).collect();
    assert!(list.iter().eq(&[1]) && list.len() == 1);
}

/// The digest must be the same on every machine.
#[test]
fn a_digest_has_a_fixed_value() {
    let mut list: Chunked<u16> = (0..5_000).collect();
    list[1_500] = 7;
    assert_eq!(digest(&list), Ok(DIGEST), "{:#x}", digest(&list).unwrap());
}

#[test]
fn a_filled_list_has_one_chunk_in_memory() {
    let mut list = Few::filled(7, 11);
    assert_eq!((list.len(), list.iter().sum::<i32>()), (11, 77));
    assert!(Arc::ptr_eq(&list.chunks[0], &list.chunks[1]));
    list[6] = 0;
    assert_eq!((list[2], list[6]), (7, 0), "the other chunk stays");
    for len in [0, 1, 4, 8] {
        let list = Few::filled('x', len);
        assert!(list.iter().eq(&vec!['x'; len]) && list.len() == len);
    }
}

#[test]
fn only_changed_chunks_are_hashed_again() {
    let mut list = few(0..12);
    assert_eq!(known(&list), [false; 3]);
    let before = digest(&list).unwrap();
    let copy = list.clone();
    assert_eq!((known(&list), known(&copy)), (vec![true; 3], vec![true; 3]));
    list[4] = 0;
    assert_eq!(known(&list), [true, false, true]);
    assert_eq!(known(&copy), [true; 3], "the copy is unchanged");
    assert_ne!(digest(&list), Ok(before));
    assert_eq!(digest(&copy), Ok(before));
    list[4] = 4;
    assert_eq!(digest(&list), Ok(before));
    // Also for a list whose chunks are not shared.
    drop(copy);
    list[4] = 5;
    assert_ne!(digest(&list), Ok(before));
    // A check for NaN caches the digests that a later digest needs.
    list[0] = 1;
    scan(&list).unwrap();
    assert_eq!(known(&list), [true; 3]);
}

/// The server takes the cost of a world's digest as its size, so that cost must not depend on cached digests.
#[test]
fn a_digest_counts_eight_bytes_per_chunk_cached_or_not() {
    let fresh = few(0..9);
    let of_it = sized_digest(&fresh).unwrap();
    assert_eq!(of_it.bytes, 8 + 3 * 8);
    assert_eq!(sized_digest(&fresh), Ok(of_it));
    let large = Chunked::<u8>::filled(0, 8 << 20);
    assert_eq!(sized_digest(&large).unwrap().bytes, 8 + (8 << 10) * 8);
}

#[test]
fn digests_distinguish_lists() {
    let lists = [
        few(0..0),
        few(0..1),
        few(1..2),
        few(0..4),
        few(0..5),
        [0, 1, 2, 3, 0].into_iter().collect(),
        [4, 5, 6, 7, 0, 1, 2, 3].into_iter().collect(),
        few(0..8),
    ];
    let mut digests = lists.each_ref().map(|list| digest(list).unwrap());
    digests.sort_unstable();
    assert!(
        digests.windows(2).all(|pair| pair[0] != pair[1]),
        "{digests:x?}"
    );
    // Data after the list is distinguished from data within it.
    assert_ne!(digest(&(few(0..4), 4_u32)), digest(&few(0..5)));
    let pair = (few(0..4), few(4..8));
    assert_ne!(digest(&pair), digest(&(few(4..8), few(0..4))));
}

#[test]
fn a_nan_is_reported_by_its_index_until_it_is_overwritten() {
    let mut list: Few<f32> = (0..10).map(|n| n as f32).collect();
    let whole = digest(&(1, &list));
    list[6] = f32::NAN;
    for _ in 0..2 {
        for error in [
            scan(&(1, &list)).unwrap_err(),
            digest(&(1, &list)).unwrap_err(),
        ] {
            assert!(error.to_string().contains("`[1][6]`"), "{error}");
        }
    }
    list[6] = 6.0;
    assert_eq!(digest(&(1, &list)), whole);
}

#[test]
fn a_failed_serialize_is_reported_with_its_reason() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("borrowed"))
        }
    }
    let list: Few<Refuses> = (0..5).map(|_| Refuses).collect();
    for error in [scan(&list).unwrap_err(), digest(&list).unwrap_err()] {
        assert!(error.to_string().contains("borrowed"), "{error}");
    }
    assert_eq!(
        codec::append(&list, &mut Vec::new()),
        Err(CodecError::Unencodable)
    );
}

#[test]
fn differences_are_named_by_index() {
    let (one, mut two) = (few(0..10), few(0..10));
    two[7] = 70;
    let report = diff(&(true, &one), &(true, &two), 9);
    assert!(format!("{report:?}").contains("[1][7]"), "{report:?}");
}

#[test]
fn a_chunked_list_encodes_as_a_vec() {
    for len in [0, 1, 3, 4, 5, 9] {
        let list = few(300..300 + len);
        let plain: Vec<u32> = (300..300 + len).collect();
        assert_eq!(bytes(&(1_u8, &list, 2_u8)), bytes(&(1_u8, &plain, 2_u8)));
        assert_eq!(decoded(&bytes(&plain)).unwrap(), list);
        assert_eq!(codec::size(&list), codec::size(&plain));
    }
}

#[test]
fn hostile_lengths_reserve_no_memory() {
    let claims_4_g = [252, 255, 255, 255, 255, 1, 2, 3];
    assert!(decoded(&claims_4_g).is_err());
    let claims_4_g = codec::decode_whole::<Chunked<[u64; 9], 1_000_000_000>>(&claims_4_g);
    assert!(claims_4_g.is_err());
    assert_eq!(decoded(&[]), Err(CodecError::Truncated));
    assert_eq!(decoded(&[2, 1]), Err(CodecError::Truncated));
    assert_eq!(decoded(&[1, 1, 1]), Err(CodecError::Trailing { left: 1 }));
}

#[test]
fn human_readable_formats_see_a_plain_list() {
    let plain: SeqDeserializer<_, ValueError> = vec![5_u32, 6, 7, 8, 9].into_deserializer();
    assert_eq!(Few::deserialize(plain).unwrap(), few(5..10));
}

#[test]
fn an_index_out_of_range_gives_none() {
    let mut list = few(0..6);
    assert_eq!((list.get(6), list.get(99)), (None, None));
    assert_eq!(list.get_mut(6), None);
}

#[test]
#[should_panic(expected = "expected an index below 6, got 6")]
fn indexing_out_of_range_panics() {
    few(0..6)[6] = 0;
}

#[derive(Clone, Debug)]
enum Op {
    Set(usize, u32),
    RoundTrip,
    /// A new copy (`true`), or `clone_from` into the existing one.
    Copy(bool),
    Digest,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Op::Set(at, value)),
        1 => Just(Op::RoundTrip),
        4 => any::<bool>().prop_map(Op::Copy),
        3 => Just(Op::Digest),
    ]
}

proptest! {
    /// Also checks that a copy keeps its contents while the list changes.
    #[test]
    fn a_chunked_list_behaves_like_a_vec(len in 0..20_u32, ops in prop::collection::vec(op(), 0..80)) {
        let (mut list, mut model) = (few(0..len), Vec::from_iter(0..len));
        let (mut copy, mut copied) = (few(0..0), Vec::new());
        for op in ops {
            match op {
                Op::Set(at, value) => {
                    prop_assert_eq!(list.get(at % 24), model.get(at % 24));
                    if let (Some(own), Some(of)) = (list.get_mut(at % 24), model.get_mut(at % 24)) {
                        (*own, *of) = (value, value);
                    }
                }
                Op::RoundTrip => list = decoded(&bytes(&list)).unwrap(),
                Op::Copy(anew) => {
                    match anew {
                        true => copy = list.clone(),
                        false => copy.clone_from(&list),
                    }
                    copied.clone_from(&model);
                }
                Op::Digest => {
                    let fresh: Few<u32> = model.iter().copied().collect();
                    prop_assert_eq!(digest(&list), digest(&fresh));
                }
            }
            prop_assert!(list.iter().eq(&model) && copy.iter().eq(&copied));
            prop_assert_eq!(list == copy, model == copied);
        }
        prop_assert_eq!(digest(&copy), digest(&copied.into_iter().collect::<Few<u32>>()));
    }
}
