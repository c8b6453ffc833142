//! Values of every shape that serde knows, with a given size: the contents of commands, queries and outcomes in the
//! edge-case game.
//!
//! Each value is generated from a number, so that a client can predict the server's answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twinstep_core::Key;

/// A value. The kinds differ as much as possible in their size in memory and on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    Nothing,
    /// Text with one-byte and four-byte characters.
    Text(String),
    /// Small numbers of a wide type: one byte each on the wire, eight in memory.
    Numbers(Vec<u64>),
    Nested(Vec<Option<Option<Option<bool>>>>),
    Map(BTreeMap<u16, Option<i32>>),
    Tags(Vec<Tag>),
    /// Keys: two bytes each while their numbers are small.
    Keys(Vec<Key>),
    Pairs(Vec<(char, Result<u8, ()>)>),
    /// Large numbers: more bytes on the wire than in memory.
    Large {
        /// Nine bytes each.
        numbers: Vec<u64>,
        rest: Option<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tag {
    T0,
    T1,
    T2,
    T3,
    T4,
    T5,
    T6,
    T7,
    T8,
    T9,
    T10,
    T11,
    T12,
    T13,
    T14,
    T15,
    Small(u8),
    Wide(i64),
    Named { flag: bool, text: char },
}

const PLAIN: [Tag; 16] = [
    Tag::T0,
    Tag::T1,
    Tag::T2,
    Tag::T3,
    Tag::T4,
    Tag::T5,
    Tag::T6,
    Tag::T7,
    Tag::T8,
    Tag::T9,
    Tag::T10,
    Tag::T11,
    Tag::T12,
    Tag::T13,
    Tag::T14,
    Tag::T15,
];

impl Shape {
    pub const KINDS: u32 = 9;

    /// Creates the value for a number. Its encoding takes at most `bytes` bytes; for most kinds, nearly as many.
    #[must_use]
    pub fn made(number: u32, bytes: usize) -> Shape {
        // The tag, and the length: three bytes above 250.
        let room = match bytes {
            0..4 => return Shape::Nothing,
            4..252 => bytes - 2,
            _ => bytes - 4,
        };
        let fill = |each: usize| 0..room / each;
        let small = |i: usize| ((number as usize + i) % 200) as u8;
        match number % Shape::KINDS {
            0 => Shape::Nothing,
            1 => Shape::Text(text(room)),
            2 => Shape::Numbers(fill(1).map(|i| u64::from(small(i))).collect()),
            3 => Shape::Nested(fill(4).map(|i| nested(i + number as usize)).collect()),
            4 => {
                let entry = |i: usize| (i as u16, i.is_multiple_of(2).then_some(i as i32 % 50));
                // Numbers above 250 take three bytes.
                let entries = (room / 3).min(250 + room.saturating_sub(750) / 5);
                Shape::Map((0..entries).map(entry).collect())
            }
            5 => Shape::Tags(fill(1).map(|i| PLAIN[i % PLAIN.len()]).collect()),
            6 => {
                let key = |i: usize| Key::new(u64::from(small(i)), u32::from(small(i + 1)));
                Shape::Keys(fill(2).map(key).collect())
            }
            7 => {
                let pair = |i: usize| {
                    (
                        'a',
                        if i.is_multiple_of(3) {
                            Err(())
                        } else {
                            Ok(small(i))
                        },
                    )
                };
                Shape::Pairs(fill(3).map(pair).collect())
            }
            _ => Shape::Large {
                numbers: (0..(room - 1) / 9).map(|i| u64::MAX - i as u64).collect(),
                rest: None,
            },
        }
    }
}

/// Every fourth character takes four bytes.
fn text(room: usize) -> String {
    let mut text = String::with_capacity(room);
    while text.len() + 7 <= room {
        text.push_str("abc\u{1f9ed}");
    }
    while text.len() < room {
        text.push('x');
    }
    text
}

fn nested(i: usize) -> Option<Option<Option<bool>>> {
    match i % 4 {
        0 => None,
        1 => Some(None),
        2 => Some(Some(None)),
        _ => Some(Some(Some(i % 8 == 3))),
    }
}
