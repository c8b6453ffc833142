//! The server's side of a measurement: a process that serves, and tells what that takes.

use std::net::SocketAddr;
use std::path::Path;

use twinstep_testing::Counting;
use twinstep_udp::TicketKey;

use crate::process::{Failed, cpu, usage};
use crate::served::{Kind, Sample, Server};
use crate::{echo, host, peer_renet};

/// Serves for matches of four until its input ends: prints its address, then a [`Sample`] for each line that it reads.
pub(crate) fn serve(
    kind: Kind,
    (listen, public): (SocketAddr, Option<SocketAddr>),
    matches: usize,
    key_file: &Path,
) -> Result<(), Failed> {
    let key = TicketKey::load(key_file)?;
    if public.is_some() && !matches!(kind, Kind::Twinstep) {
        return Err("only Twinstep's tickets name a public address: leave --public out".into());
    }
    let mut server: Box<dyn Server> = match kind {
        Kind::Twinstep => Box::new(host::Hosted::start(listen, public, matches, key)?),
        Kind::Renet => Box::new(peer_renet::Serving::start(listen, matches)?),
        Kind::Echo => Box::new(echo::Echoing::start(listen)?),
    };
    println!("{}", server.address());
    for line in std::io::stdin().lines() {
        line?;
        let (asked, asked_allocations) = (cpu()?, Counting::of_all_threads());
        let done = server.done()?;
        let mut sample = Sample {
            asked,
            asked_allocations,
            done,
            usage: usage()?,
            ..Sample::default()
        };
        (sample.answered, sample.answered_allocations) = (cpu()?, Counting::of_all_threads());
        let before = Counting::so_far();
        drop(serde_json::to_string(&sample)?);
        // What writing it takes must not count for what comes next.
        sample.answered_allocations += 2 * (Counting::so_far() - before);
        println!("{}", serde_json::to_string(&sample)?);
    }
    Ok(())
}
