//! [`TimelineNotes`]: the wrong guesses and corrections of one `advance`, for a session's tape.

use twinstep_core::diff::ValueTree;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, PlayerSet, Simulation};
use twinstep_protocol::tape::{FramePart, ShownField, TapeRecord};

use crate::stats::Misprediction;

// The maximum number of notes within one `advance`.
const NOTES_MAX: usize = 256;
// The maximum number of fields per correction.
const FIELDS_MAX: usize = 12;

// A timeline's notes for a tape, kept until the end of the `advance`.
#[derive(Default)]
pub(crate) struct TimelineNotes(Vec<TapeRecord>);

impl TimelineNotes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TapeRecord> {
        self.0.iter()
    }

    fn push(&mut self, note: TapeRecord) {
        if self.0.len() < NOTES_MAX {
            self.0.push(note);
        }
    }

    // Records the first wrongly assumed part of a confirmed frame, and each wrong input.
    pub(crate) fn compare<S: Simulation>(
        &mut self,
        assumed: &FrameData<S>,
        withheld: bool,
        truth: &FrameData<S>,
        own: PlayerSet,
    ) {
        let Some(first) = Misprediction::between(assumed, withheld, truth, own) else {
            return;
        };
        let tick = truth.tick;
        let mut note = |part, player, assumed: String| {
            self.push(TapeRecord::Assumed {
                tick,
                part,
                player,
                assumed,
            });
        };
        let text = |differs: bool, value: &dyn Fn() -> String| match differs {
            true => value(),
            false => String::new(),
        };
        let (part, player) = part_of(first);
        match part {
            FramePart::Input => {}
            FramePart::Roster => {
                let roster = text(true, &|| ValueTree::of(&assumed.roster).text());
                note(part, player, roster);
            }
            FramePart::Outcome => {
                note(part, player, ValueTree::of(&assumed.outcomes).text());
            }
            FramePart::OwnCommand | FramePart::Command => {
                let claims = text(assumed.claims != truth.claims, &|| {
                    ValueTree::of(&assumed.claims).text()
                });
                let commands = text(assumed.commands != truth.commands, &|| {
                    ValueTree::of(&assumed.commands).text()
                });
                note(part, player, [claims, commands].join(" "));
            }
            FramePart::Withheld => note(part, player, String::new()),
        }
        for (player, held) in truth.inputs.iter() {
            let guess = assumed.inputs.get(player);
            if guess != Some(held) {
                let guess = guess.map_or_else(String::new, |guess| ValueTree::of(guess).text());
                note(FramePart::Input, Some(player), guess);
            }
        }
    }

    // Records the fields that a rebuild changed in the shown world.
    pub(crate) fn correct<S: Simulation>(&mut self, shown: &World<S>, rebuilt: &World<S>) {
        let tick = shown.tick();
        if tick != rebuilt.tick() {
            return;
        }
        let [before, after] = [shown, rebuilt].map(|world| ValueTree::of(&world.digested()));
        let fields: Vec<ShownField> = before
            .diff(&after, FIELDS_MAX)
            .into_iter()
            .map(|field| ShownField {
                path: field.path,
                shown: field.left,
                rebuilt: field.right,
            })
            .collect();
        if !fields.is_empty() {
            self.push(TapeRecord::Corrected { tick, fields });
        }
    }
}

fn part_of(difference: Misprediction) -> (FramePart, Option<PlayerId>) {
    match difference {
        Misprediction::Roster => (FramePart::Roster, None),
        Misprediction::Outcome => (FramePart::Outcome, None),
        Misprediction::OwnCommand => (FramePart::OwnCommand, None),
        Misprediction::Command(player) => (FramePart::Command, Some(player)),
        Misprediction::Input(player) => (FramePart::Input, Some(player)),
        Misprediction::Withheld => (FramePart::Withheld, None),
    }
}
