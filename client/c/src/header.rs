//! [`header`]: the C header of a game, written from the same declarations as its functions.

use twinstep_core::Simulation;

use crate::game::CGame;
use crate::structs::{CDeclaration, CStruct};

/// The version of the exported functions, and of the structs that all games share.
const FUNCTIONS: u32 = 1;

/// The header of a game. `@p` stands for the prefix, `@P` for the prefix in upper case.
const TEMPLATE: &str = include_str!("header.template.h");

fn declare<T: CStruct>() -> CDeclaration {
    let mut declaration = CDeclaration::default();
    T::declare(&mut declaration);
    declaration
}

/// The structs of a game by their names in the template.
fn structs<G: CGame>() -> [(&'static str, CDeclaration); 5] {
    [
        ("pad", declare::<G::Pad>()),
        ("command", declare::<G::Command>()),
        ("pose", declare::<G::Pose>()),
        ("cue", declare::<G::Cue>()),
        ("hud", declare::<G::Hud>()),
    ]
}

/// The FNV-1a hash of everything that crosses the C boundary.
pub(crate) fn abi<G: CGame>() -> u32 {
    let code = structs::<G>().map(|(name, structure)| format!("{name}{{{}}}", structure.code));
    let code = format!("{FUNCTIONS}{}", code.concat());
    code.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The text of a game's header. [`library!`](crate::library!) exports a function that returns it with the game's
/// prefix.
#[must_use]
pub fn header<G: CGame>(prefix: &str) -> String {
    let mut text = TEMPLATE.to_owned();
    for (name, structure) in structs::<G>() {
        let whole = format!(
            "typedef struct @p_{name} {{\n{}}} @p_{name};\n",
            structure.text
        );
        text = text.replace(&format!("@struct {name}\n"), &whole);
    }
    let constants = G::CONSTANTS.iter();
    let constants = constants.map(|(name, value)| format!("#define @P_{name} ({value})\n"));
    text.replace("@constants\n", &constants.collect::<String>())
        .replace("@abi", &format!("{:#010x}u", abi::<G>()))
        .replace("@game", G::Sim::NAME)
        .replace("@version", &G::Sim::VERSION.to_string())
        .replace("@p", prefix)
        .replace("@P", &prefix.to_uppercase())
}
