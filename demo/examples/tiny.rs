//! A whole game, server and client: press the button, and the server throws a die for you.

use std::hash::{BuildHasher, RandomState};
use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use twinstep_client::prelude::*;
use twinstep_core::prelude::*;
use twinstep_host::prelude::*;

#[derive(Clone, Default, Serialize, Deserialize)]
struct Race {
    pawns: Table<PlayerId, Pawn>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Pawn {
    square: u32,
    throws: u32,
    pressed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    player: PlayerId,
    square: u32,
}

impl Simulation for Race {
    const NAME: &'static str = "race";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8; // 1 while the button is down
    type Command = Never;
    type Query = PlayerId; // whose die?
    type Outcome = u32; // what it shows
    type Cue = Moved;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, _) in frame.roster() {
            self.pawns.get_or_insert_with(player, Pawn::default);
        }
        for (key, &player, face) in frame.outcomes() {
            let pawn = self.pawns.get_mut(&player).expect("its player joined");
            pawn.square += face.unwrap_or(&0);
            let square = pawn.square;
            fx.cue(key, Moved { player, square });
        }
        for (player, &button) in frame.inputs() {
            let pawn = self.pawns.get_mut(&player).expect("its player joined");
            if button == 1 && !pawn.pressed {
                fx.ask(Key::player(player, pawn.throws), player);
                pawn.throws += 1;
            }
            pawn.pressed = button == 1;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Real chance: two simulations would throw two dice, so the server throws for all.
    let die = |_: &HookContext<'_, Race>, _: Key, _: &PlayerId| {
        Decision::Now(RandomState::new().hash_one("die") as u32 % 6 + 1)
    };
    let game = Server::action(Race::default(), ()).resolver(die);
    let server = game.listen("127.0.0.1:0")?;
    let config = SessionConfig::new(Arc::new(())).start(Race::default());
    let mut anna = Client::connect(&server.ticket("anna")?, config)?;
    while anna.now() < Duration::from_secs(5) {
        let button = u8::from(anna.now().subsec_millis() < 500);
        anna.advance(|_seat| button)?;
        while let Some(event) = anna.session_mut().poll_cue() {
            println!("{:?}", event.kind);
        }
        std::thread::sleep(Duration::from_millis(8));
    }
    anna.leave();
    server.shutdown();
    Ok(())
}
