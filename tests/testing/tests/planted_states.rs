//! Tiny games each with one planted bug in its state: a clone or the serialised form is incomplete.

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, presses, sum};

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Skips {
    shots: u32,
    #[serde(skip)]
    cooldown: u32,
}
game!(Skips, frame, _fx, me => {
    me.cooldown = me.cooldown.saturating_sub(1);
    if sum(frame) > 0 && me.cooldown == 0 {
        me.shots += 1;
        me.cooldown = 50;
    }
});

#[test]
fn a_field_skipped_by_serde_is_reported() {
    let found = check(Skips::default(), (), presses());
    let fault = expect(found, Kind::LostField, "sim.shots");
    assert_eq!(
        (
            fault.fields[0].left.as_str(),
            fault.fields[0].right.as_str()
        ),
        ("1", "2")
    );
}

#[derive(Serialize, Deserialize)]
struct Copies {
    score: u32,
    health: u32,
}
impl Clone for Copies {
    fn clone(&self) -> Self {
        Copies { ..*self }
    }
    fn clone_from(&mut self, other: &Self) {
        self.health = other.health;
    }
}
game!(Copies, frame, _fx, me => {
    me.score += sum(frame);
    me.health = me.score / 2;
});

#[test]
fn a_clone_from_that_omits_a_field_is_reported() {
    let start = Copies {
        score: 0,
        health: 0,
    };
    let fault = expect(check(start, (), presses()), Kind::CloneFrom, "sim.score");
    assert_eq!(fault.fields.len(), 1, "{fault}");
}

#[derive(Serialize, Deserialize)]
struct Clones {
    score: u32,
}
impl Clone for Clones {
    fn clone(&self) -> Self {
        Clones { score: 0 }
    }
}
game!(Clones, frame, _fx, me => {
    me.score += sum(frame);
});

#[test]
fn a_clone_that_omits_a_field_is_reported() {
    expect(
        check(Clones { score: 0 }, (), presses()),
        Kind::Clone,
        "sim.score",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Rounds {
    #[serde(with = "short")]
    x: f64,
}
mod short {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f32(*x as f32)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        f32::deserialize(from).map(f64::from)
    }
}
game!(Rounds, frame, _fx, me => {
    me.x = (me.x + f64::from(sum(frame)) * 0.1) * 1.01;
});

#[test]
fn a_float_serialised_with_less_precision_is_reported() {
    expect(
        check(Rounds::default(), (), presses()),
        Kind::Lossy,
        "sim.x",
    );
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Round(u8),
    Long(u8, u8),
}
#[derive(Clone, Serialize, Deserialize)]
struct Untagged {
    shape: Shape,
}
game!(Untagged, frame, _fx, me => {
    me.shape = match sum(frame) {
        0 => Shape::Round(1),
        _ => Shape::Long(1, 2),
    };
});

#[test]
fn a_state_that_cannot_be_read_back_is_reported() {
    let start = Untagged {
        shape: Shape::Round(0),
    };
    expect(check(start, (), presses()), Kind::Unreadable, "");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Divides {
    mean: f32,
}
game!(Divides, frame, _fx, me => {
    let players = frame.inputs().filter(|(_, held)| **held > 0).count();
    me.mean = sum(frame) as f32 / players as f32;
});

#[test]
fn a_nan_is_reported() {
    let fault = expect(check(Divides::default(), (), presses()), Kind::Nan, "");
    assert!(fault.what.contains("sim.mean"), "{fault}");
}
