//! Sleds on a hill, seen from the side: the server's rapier2d moves them, and their players steer.
//!
//! ```sh
//! cargo run --release -p powderkeg --example sleds -- wan   # or perfect, lan, bad, awful, rtt=120,loss=5
//! ```
//!
//! ```text
//!   step ──every 6 ticks: a question──▶ resolver: where do all sleds go in the next half second?
//!    ▲                                     │ rapier2d, from each sled's place, speed and jets
//!    └──follows the newest path────────────┘
//! ```
//!
//! A client guesses each answer with its own rapier2d, so its own steering shows at the next query. Where a guess was
//! wrong (another player steered, or another machine rounds differently), the server's path replaces it.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use physics::{GROUND, Physics, to_units};
use rules::{LEFT, RIGHT, Sleds, UP};
use twinstep_client::UdpClient;
use twinstep_client::prelude::*;
use twinstep_client::simnet::LinkProfile;
use twinstep_core::prelude::*;
use twinstep_host::prelude::*;

mod physics;
mod rules;

// The hill as text, a column for each unit.
fn picture(game: &Sleds) -> String {
    let mut rows = vec![vec![' '; 60]; 18];
    for ends in GROUND.windows(2).skip(1).take(7) {
        let (from, to) = (ends[0], ends[1]);
        for x in from.x as i32..to.x as i32 {
            let y = from.y + (to.y - from.y) * (x as f32 - from.x) / (to.x - from.x);
            rows[y as usize][(x + 30) as usize] = '^';
        }
    }
    for (player, sled) in game.sleds.iter() {
        let at = to_units(&sled.at);
        let row = rows.get_mut(at.y as usize);
        let column = row.and_then(|row| row.get_mut((at.x + 30.0) as usize));
        if let Some(sign) = column {
            *sign = (b'A' + player.0) as char;
        }
    }
    let lines = rows
        .iter()
        .rev()
        .map(|row| row.iter().collect::<String>() + "\n");
    lines.collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let link: LinkProfile = std::env::args()
        .nth(1)
        .unwrap_or("wan".to_owned())
        .parse()?;
    let server = Server::action(Sleds::default(), ())
        .players(2)
        .resolver(Physics::new())
        .listen("127.0.0.1:0")?;
    let mut players = Vec::new();
    for n in 0..2 {
        let physics = Physics::new();
        let config = SessionConfig::new(Arc::new(()))
            .start(Sleds::default())
            .speculate(move |game: &Sleds, _: &(), _: Key, _: &()| physics.paths(game));
        let ticket = server.ticket(&format!("player {n}"))?;
        let through = move |udp: UdpClient| udp.with_conditioner(link, n);
        players.push((
            Client::connect_through(&ticket, config, through)?,
            Mwc::seed(n),
            UP,
        ));
    }
    let mut drawn = Duration::ZERO;
    while drawn < Duration::from_secs(20) {
        for (client, luck, jets) in &mut players {
            if luck.below(40) == 0 {
                *jets = [0, LEFT, RIGHT, UP, UP | LEFT, UP | RIGHT][luck.below(6) as usize];
            }
            client.advance(|_seat| *jets)?;
            while client.session_mut().poll_event().is_some() {}
        }
        let client = &players[0].0;
        if let Some(world) = client
            .session()
            .prediction()
            .filter(|_| client.now() > drawn)
        {
            drawn += Duration::from_millis(500);
            println!("{}", picture(world.sim()));
        }
        thread::sleep(Duration::from_millis(8));
    }
    for (client, ..) in &mut players {
        println!("{:?}", client.session().stats().timeline);
        client.leave();
    }
    server.shutdown();
    Ok(())
}
