//! A match of boxes for the page, with native bots: `cargo run -p twinstep-web --example boxes_server -- SECONDS
//! PROFILE`
//!
//! Prints the ticket for the page's link, then digests, and finally the statistics of the bots.

#[cfg(not(target_arch = "wasm32"))]
#[path = "../../bevy/examples/boxes/rules.rs"]
#[allow(dead_code, reason = "bots do not draw")]
mod rules;

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "a program has a clock")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use rules::Boxes;
    use twinstep_client::{Client, SessionConfig};
    use twinstep_host::{Server, WebConfig};
    use twinstep_udp::UdpClient;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, profile) = match &arguments[..] {
        [seconds, profile] => (seconds.parse()?, profile.parse()?),
        _ => return Err("expected SECONDS PROFILE, such as 60 wan".into()),
    };
    let server = Server::action(Boxes::default(), ())
        .players(8)
        .web(WebConfig::new("127.0.0.1:0".parse()?))
        .listen("127.0.0.1:0")?;
    println!("TICKET {}", server.ticket("page")?.to_line());
    let bots = (0..3).map(|n| {
        let ticket = server.ticket(&format!("bot {n}"))?;
        let config = SessionConfig::<Boxes>::new(Arc::new(()));
        let through = move |line: UdpClient| line.with_conditioner(profile, n);
        Ok(Client::connect_through(&ticket, config, through)?)
    });
    let mut bots = bots.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let (began, mut printed) = (Instant::now(), None);
    while began.elapsed() < Duration::from_secs(seconds) {
        for (n, bot) in bots.iter_mut().enumerate() {
            let held = 1 << ((began.elapsed().as_millis() as usize / 700 + n) % 4);
            bot.advance(|_| held)?;
            while bot.session_mut().poll_cue().is_some() {}
            while bot.session_mut().poll_event().is_some() {}
        }
        let (tick, digest) = server.inspect(|match_| {
            let world = match_.world();
            (world.tick(), world.digest())
        })?;
        if printed != Some(tick) {
            println!("DIGEST {} {:016x}", tick.0, digest?);
            printed = Some(tick);
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    for bot in &bots {
        let stats = bot.session().stats();
        println!(
            "BOT heals {} stall {:.0} ms rtt {:.1} ms",
            stats.heals, stats.stall_ms, stats.rtt_ms
        );
    }
    Ok(())
}
