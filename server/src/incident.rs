//! What went wrong inside a match and was survived, or was not: told so that somebody can mend it.
//!
//! Law **Bounded**: texts are clipped, and a match keeps few of them until its host takes them.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::text::line;

/// Incidents that wait to be taken; more are only counted.
pub const INCIDENTS_MAX: usize = 16;
/// Bytes of one text.
const TEXT_MAX: usize = 1 << 10;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The tick was sealed again without what made it panic.
    #[error(
        "the step panicked; the tick was sealed again without what brought it about, and the match plays on"
    )]
    Step,
    /// It panicked without any orders too.
    #[error("the step panicked without orders too, whatever else was left out; the match is over")]
    StepAgain,
    /// The step brought a NaN into the state; the tick was sealed again without what brought it there.
    #[error(
        "the state had no digest; the tick was sealed again without what brought it about, and the match plays on"
    )]
    Nan,
    /// The state holds a NaN, or cannot be serialised.
    #[error("the state has no digest, whatever is left out of the frame; the match is over")]
    Digest,
    /// What the referee was asked about was not admitted.
    #[error("the referee panicked; the order or answer is refused, and the match plays on")]
    Referee,
    /// The player's controls were taken to be neutral.
    #[error("`Controls::repeat` panicked; the missing input is neutral, and the match plays on")]
    Repeat,
    /// The query stayed unanswered.
    #[error(
        "an outcome is none that can be sent: its query stays unanswered, and the match plays on"
    )]
    Outcome,
    /// A warning: it has more than half of the bytes that a world may have.
    #[error("the world has grown large: beyond its bound nobody can join or be healed")]
    WorldLarge,
    /// Nobody can join, be healed or look at it, and no journal can be taken up from it.
    #[error("the world is too large to be sent or written; the match plays on without")]
    WorldTooLarge,
    /// The query stayed unanswered.
    #[error("the resolver panicked; its query stays unanswered, and the match plays on")]
    Resolver,
    /// The query stayed unanswered.
    #[error("a job of the resolver panicked; its query stays unanswered, and the match plays on")]
    Job,
    /// The query stayed unanswered; its thread is given up.
    #[error(
        "a job of the resolver does not return; its query stays unanswered, and the match plays on"
    )]
    JobHangs,
    /// Something else panicked in the match.
    #[error("the match panicked; it is over")]
    Match,
    /// A step, a hook or the disk does not return; its thread is given up.
    #[error("the match stands still: a step, a hook or the disk does not return; it is over")]
    MatchHangs,
    /// Nothing is written any more.
    #[error("the journal cannot be written")]
    Journal,
    /// A client differed, and the journal says that it was right.
    #[error(
        "this server's own world differs from what its journal says: the fault is the server's, not the client's"
    )]
    ServerDiffers,
    /// A client differed, and so does the journal from itself: its frames lead somewhere else each time.
    #[error(
        "the step is not pure: the same frames lead to another world each time; nobody's client is at fault, and no \
         server's memory (see the law Pure: a clock, randomness, hash order, a field that is not serialised)"
    )]
    Impure,
}

impl Trouble {
    /// How many kinds there are.
    pub const COUNT: usize = Trouble::Impure as usize + 1;
    /// What metrics call each kind, in the order of the kinds.
    pub const NAMES: [&str; Self::COUNT] = [
        "step",
        "step_again",
        "nan",
        "digest",
        "referee",
        "repeat",
        "outcome",
        "world_large",
        "world_too_large",
        "resolver",
        "job",
        "job_hangs",
        "match",
        "match_hangs",
        "journal",
        "server_differs",
        "impure",
    ];

    /// Whether the match is over because of it.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        matches!(
            self,
            Trouble::StepAgain
                | Trouble::Digest
                | Trouble::Match
                | Trouble::MatchHangs
                | Trouble::Journal
        )
    }

    /// What the match cannot survive, of what a step may run into.
    pub fn fatal(self) -> Trouble {
        match self {
            Trouble::Nan => Trouble::Digest,
            _ => Trouble::StepAgain,
        }
    }
}

/// An order that it came of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Whose.
    pub player: PlayerId,
    /// Who that is.
    pub identity: String,
    /// Whether its client's simulation claimed it.
    pub claim: bool,
    /// Its sequence, or the tick that claimed it.
    pub seq: u32,
    /// What, as its `Debug` says, clipped to 1 KB.
    pub order: String,
}

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The tick being worked on.
    pub tick: Tick,
    /// What it was.
    pub trouble: Trouble,
    /// What the panic or the system said, clipped to 1 KB.
    pub message: String,
    /// The orders that it came of: those that were left out of the frame then; if the match is over, all that it held.
    pub suspects: Vec<Suspect>,
}

impl Incident {
    /// An incident with nobody to suspect.
    #[must_use]
    pub fn new(tick: Tick, trouble: Trouble, message: &str) -> Incident {
        Incident {
            tick,
            trouble,
            message: clip(&message),
            suspects: Vec::new(),
        }
    }

    /// Says one more thing.
    pub fn add(&mut self, more: &dyn fmt::Display) {
        self.message = clip(&format_args!("{}; left out: {more}", self.message));
    }

    /// With the orders of a frame that are `of` interest.
    pub fn with_orders<S: Simulation>(
        mut self,
        frame: &FrameData<S>,
        identities: &[(String, PlayerId)],
        of: impl Fn(PlayerId) -> bool,
    ) -> Incident {
        let who = |player: PlayerId| {
            let known = identities.iter().find(|(_, p)| *p == player);
            known.map(|(name, _)| name.clone()).unwrap_or_default()
        };
        let suspect = |order: &Order<S::Command>, claim| Suspect {
            player: order.player,
            identity: who(order.player),
            claim,
            seq: order.seq,
            order: clip(&format_args!("{:?}", order.command)),
        };
        self.suspects = frame
            .claims
            .iter()
            .filter(|claim| of(claim.player))
            .map(|claim| suspect(claim, true))
            .collect();
        let commands = frame.commands.iter().filter(|c| of(c.player));
        self.suspects
            .extend(commands.map(|command| suspect(command, false)));
        self
    }
}

/// For a file that people read.
impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}\n  {}",
            self.tick,
            self.trouble,
            line(&self.message).at_most(TEXT_MAX)
        )?;
        for suspect in &self.suspects {
            writeln!(
                f,
                "  left out: {} {:?}, {} #{}: {}",
                suspect.player,
                line(&suspect.identity),
                if suspect.claim {
                    "claim of tick"
                } else {
                    "command"
                },
                suspect.seq,
                line(&suspect.order).at_most(TEXT_MAX)
            )?;
        }
        Ok(())
    }
}

/// What is to be told, to two who do not wait for each other: a log, which misses none while there is room, and an
/// author's own code, which gets the newest if it asks rarely.
pub struct Notices<T> {
    most: usize,
    log: VecDeque<T>,
    author: VecDeque<T>,
}

impl<T: Clone> Notices<T> {
    /// Keeps so many for each.
    pub fn new(most: usize) -> Self {
        Notices {
            most,
            log: VecDeque::new(),
            author: VecDeque::new(),
        }
    }

    /// Adds one; a full log keeps its oldest, a full author's list its newest.
    pub fn push(&mut self, news: T) {
        if self.log.len() < self.most {
            self.log.push_back(news.clone());
        }
        if self.author.len() == self.most {
            self.author.pop_front();
        }
        self.author.push_back(news);
    }

    /// Whether anybody will hear of one more without missing another one.
    pub fn has_room(&self) -> bool {
        self.log.len().min(self.author.len()) < self.most
    }

    /// The oldest that is not logged.
    pub fn log(&mut self) -> Option<T> {
        self.log.pop_front()
    }

    /// The oldest that the author has not taken.
    pub fn pop(&mut self) -> Option<T> {
        self.author.pop_front()
    }

    /// All that the author has not taken.
    pub fn take(&mut self) -> Vec<T> {
        self.author.drain(..).collect()
    }
}

/// What a panic said.
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "(it said nothing)"
    }
}

/// The beginning of a text, however long it would become.
fn clip(text: &impl fmt::Display) -> String {
    struct Clipped(String);
    impl Write for Clipped {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = TEXT_MAX - self.0.len();
            if text.len() <= room {
                self.0.push_str(text);
                return Ok(());
            }
            let end = (0..=room).rev().find(|&i| text.is_char_boundary(i));
            self.0.push_str(&text[..end.unwrap_or(0)]);
            // Whoever writes need not go on.
            Err(fmt::Error)
        }
    }
    let mut clipped = Clipped(String::new());
    let _ = write!(clipped, "{text}");
    clipped.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_call_each_kind_by_its_own_name() {
        for (trouble, name) in [
            (Trouble::Step, "step"),
            (Trouble::Nan, "nan"),
            (Trouble::Outcome, "outcome"),
            (Trouble::WorldTooLarge, "world_too_large"),
            (Trouble::JobHangs, "job_hangs"),
            (Trouble::MatchHangs, "match_hangs"),
            (Trouble::Journal, "journal"),
            (Trouble::ServerDiffers, "server_differs"),
            (Trouble::Impure, "impure"),
        ] {
            assert_eq!(Trouble::NAMES[trouble as usize], name);
        }
    }

    #[test]
    fn texts_are_clipped_wherever_a_character_ends() {
        assert_eq!(clip(&"short"), "short");
        let long = "ä".repeat(2_000);
        assert_eq!(clip(&long).len(), TEXT_MAX);
        assert_eq!(clip(&format_args!("x{long}")).len(), TEXT_MAX - 1);
    }

    /// Finding C6: whatever a player sent, its file can be read in a terminal.
    #[test]
    fn what_an_incident_tells_steers_nothing() {
        let evil = "\u{1b}]0;owned\u{7}\u{202e}\u{200b}\n";
        let incident = Incident {
            suspects: vec![Suspect {
                player: PlayerId(1),
                identity: evil.to_owned(),
                claim: false,
                seq: 1,
                order: evil.to_owned(),
            }],
            ..Incident::new(Tick(7), Trouble::Step, evil)
        };
        let told = incident.to_string();
        assert_eq!(twinstep_protocol::text::plain(&told).to_string(), told);
        assert_eq!(told.lines().count(), 3, "{told}");
        assert_eq!(told.matches("\\u{1b}").count(), 3, "{told}");
    }

    #[test]
    fn a_panic_is_heard_in_both_of_its_forms() {
        assert_eq!(panic_message(&"static"), "static");
        assert_eq!(panic_message(&String::from("made")), "made");
        assert_eq!(panic_message(&7_u8), "(it said nothing)");
    }
}
