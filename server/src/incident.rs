//! Faults inside a match, survived or fatal, reported so that an author or operator can fix them.
//!
//! Law **Bounded**: texts are clipped, and a match keeps few incidents until its host takes them.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::text::line;

/// The maximum number of incidents for each reader. A full log gets no more; a full author's list drops its oldest.
pub const INCIDENTS_MAX: usize = 16;
/// The longest text of an incident, in bytes.
const TEXT_MAX: usize = 1 << 10;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum Trouble {
    #[error(
        "the game's step panicked; the tick was repeated without the cause, and the match continues"
    )]
    Step,
    #[error(
        "the game's step panicked, even without the commands, answers and inputs of the tick; the match is over"
    )]
    StepAgain,
    #[error(
        "the game's state had a NaN or could not be serialised; the tick was repeated without the cause, and the \
         match continues"
    )]
    Nan,
    #[error(
        "the game's state has a NaN or cannot be serialised, even without the commands, answers and inputs of the tick; the \
         match is over"
    )]
    Digest,
    #[error("the referee panicked; the order or answer is refused, and the match continues")]
    Referee,
    #[error(
        "the game's guess of a missing input (`Controls::repeat`) panicked; a neutral input is used, and the match continues"
    )]
    Repeat,
    #[error(
        "the answer to a query is too large or cannot be encoded; the query stays unanswered, and the match continues"
    )]
    Outcome,
    #[error(
        "the step asked too many queries at once; those above the limit get no answer, and the match continues (authors: \
         ask fewer per tick)"
    )]
    Asks,
    #[error(
        "the world is larger than half of its limit; beyond the limit clients cannot join or be healed"
    )]
    WorldLarge,
    /// The world is too large. Clients cannot join or be healed, and the match cannot be resumed from its journal.
    #[error(
        "the world is too large to be sent or written: the match continues, but clients cannot join it, and its journal gets no \
         further worlds, so it can no longer be resumed"
    )]
    WorldTooLarge,
    #[error("the resolver panicked; its query stays unanswered, and the match continues")]
    Resolver,
    #[error("a job of the resolver panicked; its query stays unanswered, and the match continues")]
    Job,
    /// A job of the resolver does not return. Its query stayed unanswered, and its thread is abandoned.
    #[error(
        "a job of the resolver does not return; its query stays unanswered, and the match continues"
    )]
    JobHangs,
    #[error(
        "a job of the resolver could not be started; its query stays unanswered, and the match continues; check the thread \
         limit (TasksMax)"
    )]
    JobUnstarted,
    #[error(
        "the match panicked; it is stopped, and can be resumed from its journal, if it has one"
    )]
    Match,
    /// A step, a hook or the disk does not return. The match's thread is abandoned.
    #[error(
        "the match hangs: a step, a hook or the disk does not return; it is stopped, and can be resumed from its journal, if \
         it has one"
    )]
    MatchHangs,
    /// The journal cannot be written. The match stops writing it.
    #[error("the journal cannot be written")]
    Journal,
    #[error(
        "this server's own world differs from its journal: the server is at fault, not the client"
    )]
    ServerDiffers,
    #[error(
        "the step is not pure: the same frames gave different worlds. The game's code is at fault, not a client or \
         memory; look for a clock, randomness, hash order or a field that is not serialised"
    )]
    Impure,
}

impl Trouble {
    /// The number of kinds.
    pub const COUNT: usize = Trouble::Impure as usize + 1;
    /// The metrics' label of each kind, in the order of the kinds.
    pub const NAMES: [&str; Self::COUNT] = [
        "step",
        "step_again",
        "nan",
        "digest",
        "referee",
        "repeat",
        "outcome",
        "asks",
        "world_large",
        "world_too_large",
        "resolver",
        "job",
        "job_hangs",
        "job_unstarted",
        "match",
        "match_hangs",
        "journal",
        "server_differs",
        "impure",
    ];

    /// Returns `true` if this kind ends the match; for [`Trouble::Journal`], only if the host's policy says so.
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

    /// The fatal kind to report when this kind of step fault cannot be survived.
    pub fn fatal(self) -> Trouble {
        match self {
            Trouble::Nan => Trouble::Digest,
            _ => Trouble::StepAgain,
        }
    }
}

/// An order that may have caused a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The player that gave the order.
    pub player: PlayerId,
    /// The identity of that player.
    pub identity: String,
    /// Whether the order is a claim, made by the player's client or by the referee.
    pub claim: bool,
    /// The order's sequence number; for a claim, the tick that claimed it.
    pub seq: u32,
    /// The order's `Debug` text, clipped to 1 KB.
    pub order: String,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The tick in progress.
    pub tick: Tick,
    /// The kind of fault.
    pub trouble: Trouble,
    /// The message of the panic or from the system, clipped to 1 KB.
    pub message: String,
    /// The orders that may have caused the fault: those left out of the frame, or all of them if the match is over.
    pub suspects: Vec<Suspect>,
}

impl Incident {
    /// Creates an incident without suspects.
    #[must_use]
    pub fn new(tick: Tick, trouble: Trouble, message: &str) -> Incident {
        Incident {
            tick,
            trouble,
            message: clip(&message),
            suspects: Vec::new(),
        }
    }

    /// Appends another left-out entry to the message.
    pub fn add(&mut self, more: &dyn fmt::Display) {
        self.message = clip(&format_args!("{}; left out: {more}", self.message));
    }

    /// Adds, as suspects, the frame's orders from the players that `of` selects.
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

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}\n  {}",
            self.tick,
            self.trouble,
            line(&self.message).at_most(TEXT_MAX)
        )?;
        let about = match self.trouble.is_fatal() {
            true => "order of that tick",
            false => "left out as a possible cause",
        };
        for suspect in &self.suspects {
            writeln!(
                f,
                "  {about}: {} {:?}, {} #{}: {}",
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

/// Notices for two independent readers: the log, which gets all of them while there is space, and the author's own
/// code, which gets the newest ones if it reads rarely.
pub struct Notices<T> {
    most: usize,
    log: VecDeque<T>,
    author: VecDeque<T>,
}

impl<T: Clone> Notices<T> {
    /// Creates an empty list that keeps at most `most` notices for each reader.
    pub fn new(most: usize) -> Self {
        Notices {
            most,
            log: VecDeque::new(),
            author: VecDeque::new(),
        }
    }

    /// Adds a notice. A full log keeps its oldest notices; the author's list, when full, keeps the newest ones.
    pub fn push(&mut self, notice: T) {
        if self.log.len() < self.most {
            self.log.push_back(notice.clone());
        }
        if self.author.len() == self.most {
            self.author.pop_front();
        }
        self.author.push_back(notice);
    }

    /// Returns `true` if at least one reader can get another notice without losing one.
    pub fn has_room(&self) -> bool {
        self.log.len().min(self.author.len()) < self.most
    }

    /// Takes the oldest notice not logged yet.
    pub fn log(&mut self) -> Option<T> {
        self.log.pop_front()
    }

    /// Takes the oldest notice that the author has not taken.
    pub fn pop(&mut self) -> Option<T> {
        self.author.pop_front()
    }

    /// Takes all notices that the author has not taken.
    pub fn take(&mut self) -> Vec<T> {
        self.author.drain(..).collect()
    }
}

/// The message of a panic.
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "(no message)"
    }
}

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
            // An error stops the writer early, because the rest of the text is not needed.
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
    fn each_kind_of_incident_has_its_own_name_in_metrics() {
        for (trouble, name) in [
            (Trouble::Step, "step"),
            (Trouble::Nan, "nan"),
            (Trouble::Outcome, "outcome"),
            (Trouble::WorldTooLarge, "world_too_large"),
            (Trouble::JobHangs, "job_hangs"),
            (Trouble::JobUnstarted, "job_unstarted"),
            (Trouble::MatchHangs, "match_hangs"),
            (Trouble::Journal, "journal"),
            (Trouble::ServerDiffers, "server_differs"),
            (Trouble::Impure, "impure"),
        ] {
            assert_eq!(Trouble::NAMES[trouble as usize], name);
        }
    }

    #[test]
    fn texts_are_clipped_at_a_character_boundary() {
        assert_eq!(clip(&"short"), "short");
        let long = "ä".repeat(2_000);
        assert_eq!(clip(&long).len(), TEXT_MAX);
        assert_eq!(clip(&format_args!("x{long}")).len(), TEXT_MAX - 1);
    }

    /// Finding C6: an incident's file can be read in a terminal, even if a player sent control characters.
    #[test]
    fn an_incidents_text_holds_no_control_characters() {
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
    fn the_orders_of_a_fatal_incident_are_not_called_left_out() {
        let text = |trouble| {
            let suspect = Suspect {
                player: PlayerId(1),
                identity: "anna".to_owned(),
                claim: false,
                seq: 1,
                order: "Fire".to_owned(),
            };
            let mut incident = Incident::new(Tick(7), trouble, "why");
            incident.suspects.push(suspect);
            incident.to_string()
        };
        let fatal = text(Trouble::StepAgain);
        assert!(fatal.contains("  order of that tick: "), "{fatal}");
        let survived = text(Trouble::Step);
        assert!(
            survived.contains("  left out as a possible cause: "),
            "{survived}"
        );
    }

    #[test]
    fn a_panic_message_is_read_from_both_payload_types() {
        assert_eq!(panic_message(&"static"), "static");
        assert_eq!(panic_message(&String::from("made")), "made");
        assert_eq!(panic_message(&7_u8), "(no message)");
    }
}
