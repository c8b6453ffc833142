//! [`CGame`]: the description of a game for C, in addition to its rules and its picture.

use twinstep_client::{Session, SessionConfig, Show};
use twinstep_core::Simulation;
use twinstep_local::Local;

use crate::structs::CStruct;

/// A game exported to C: its types on both sides of the C boundary, and the conversions between them.
///
/// See [the crate](crate) for an example. A type that the game does not need is [`Unused`](crate::Unused).
pub trait CGame: 'static {
    /// The rules.
    type Sim: Simulation;
    /// The picture; [`NoPicture`](twinstep_client::NoPicture) for a client without a picture.
    type Show: Show<Self::Sim>;
    /// A player's controls.
    type Pad: CStruct;
    /// A player's command.
    type Command: CStruct;
    /// The pose of an entity.
    type Pose: CStruct;
    /// A sound or flash.
    type Cue: CStruct;
    /// The rest of what an engine shows: scores, phases, time left.
    type Hud: CStruct;

    /// Named values for fields of the structs above. The header defines each as a constant: the prefix in upper case,
    /// then the name as written here.
    const CONSTANTS: &'static [(&'static str, i32)] = &[];

    /// The configuration of a session.
    fn config() -> SessionConfig<Self::Sim, Self::Show>;

    /// The match played alone, without a server. Returns `None` if the game has none.
    #[must_use]
    fn alone() -> Option<Local<Self::Sim>> {
        None
    }

    /// Reads a player's controls.
    ///
    /// # Errors
    /// If the bytes are not valid controls. The text, which the C program receives, names the field, its value and the
    /// range.
    fn input(pad: &Self::Pad) -> Result<<Self::Sim as Simulation>::Input, String>;

    /// Merges the controls of two frames without a tick between them, so that a tap is not lost: the buttons of both,
    /// the sticks of the later one. By default, only the later frame counts.
    #[must_use]
    fn merge(earlier: &Self::Pad, later: &Self::Pad) -> Self::Pad {
        let _ = earlier;
        *later
    }

    /// Reads a player's command.
    ///
    /// # Errors
    /// The errors of [`input`](CGame::input).
    fn command(command: &Self::Command) -> Result<<Self::Sim as Simulation>::Command, String>;

    /// The number of an entity, for its whole life.
    fn key(key: <Self::Show as Show<Self::Sim>>::Key) -> u64;

    /// The pose of an entity for C.
    fn pose(pose: <Self::Show as Show<Self::Sim>>::Pose) -> Self::Pose;

    /// A sound or flash for C.
    fn cue(cue: &<Self::Sim as Simulation>::Cue) -> Self::Cue;

    /// The rest of what an engine shows, such as scores. Returns `None` before the first tick.
    fn hud(session: &Session<Self::Sim, Self::Show>) -> Option<Self::Hud>;
}
