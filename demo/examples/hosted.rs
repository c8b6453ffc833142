//! A game that a player hosts: `-- host 192.168.1.5:7777 ben carla`. Ben joins with `-- join ben.ticket`.

use std::{error::Error, sync::Arc, thread, time::Duration};

use serde::{Deserialize, Serialize};
use twinstep_client::prelude::*;
use twinstep_core::prelude::*;
use twinstep_host::prelude::*;

#[derive(Clone, Default, Serialize, Deserialize)]
struct Town(u32); // its gold

impl Simulation for Town {
    const NAME: &'static str = "town";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = ();
    type Command = u16; // the gold that its player found
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += frame
            .commands()
            .map(|(_, gold)| u32::from(*gold))
            .sum::<u32>();
    }
}

// Plays until two players have found 25 each. The host calls it as its friends do.
fn play(ticket: &Ticket, patience: Duration) -> Result<u32, Box<dyn Error>> {
    let config = SessionConfig::new(Arc::new(())).start(Town::default());
    let mut client = Client::connect(ticket, config)?;
    let mut gold = 0;
    while gold < 50 && client.now() < patience {
        client.advance(|_seat| ())?; // once a drawn frame
        let session = client.session_mut();
        while let Some(event) = session.poll_event() {
            if let Event::Joined(_) = event {
                session.command(0, 25)?;
            }
        }
        gold = session.authority().map_or(0, |world| world.sim().0); // draw it
        thread::sleep(Duration::from_millis(8));
    }
    client.leave();
    Ok(gold)
}

fn main() -> Result<(), Box<dyn Error>> {
    let evening = Duration::from_secs(4 * 3_600);
    match &Vec::from_iter(std::env::args())[1..] {
        [join, file] if join == "join" => play(&Ticket::load(file)?, evening).map(drop),
        [host, address, friends @ ..] if host == "host" => {
            let server = Server::strategy(Town::default(), ()).public(address.parse()?);
            let server = server.public("127.0.0.1:7777".parse()?); // for the host itself
            let server = server.listen("0.0.0.0:7777")?;
            for friend in friends {
                server.ticket(friend)?.save(format!("{friend}.ticket"))?; // a secret: for this friend
            }
            play(&server.ticket("host")?, evening)?;
            server.run_until_deserted()?; // its friends play on
            Ok(())
        }
        _ => Err("expected: host ADDRESS:7777 FRIEND.., or: join FILE".into()),
    }
}

#[test]
fn a_host_and_a_friend_find_gold() {
    let server = Server::strategy(Town::default(), ())
        .listen("127.0.0.1:0")
        .unwrap();
    let [ticket, bens] = ["host", "ben"].map(|name| server.ticket(name).unwrap());
    let patience = Duration::from_secs(30);
    thread::scope(|scope| {
        let ben = scope.spawn(|| play(&bens, patience).unwrap());
        assert_eq!(play(&ticket, patience).unwrap(), 50);
        assert_eq!(ben.join().unwrap(), 50);
    });
}
