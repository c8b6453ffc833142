//! Deserted matches created on demand: how long they are kept, what they leave behind, and how they are created again.

use std::path::Path;
use std::time::Duration;

use twinstep_client::{Client, SessionEnd};
use twinstep_core::Tick;
use twinstep_core::testing::doc::Counter;
use twinstep_host::StoredJournal;
use twinstep_ops::Checkup;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::replay::Index;

use crate::demand::{beside, counters, server};
use crate::players::{client, play, plays, tick};

async fn leave(mut party: Vec<Client<Counter>>) {
    for client in &mut party {
        client.leave();
    }
    for mut client in party {
        for _ in 0..20 {
            if client.advance(|_| 0).is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn journals(folder: &Path) -> Vec<String> {
    let paths = twinstep_host::journals(folder).unwrap();
    let mut names: Vec<String> = paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[cfg(target_os = "linux")]
fn open_below(folder: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    targets.filter(|path| path.starts_with(folder)).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deserted_match_ends_without_leftover_files_and_can_be_created_again() {
    let server = server("deserted", |folder| {
        let a_second = Duration::from_secs(1);
        counters().deserted_after(a_second).journals(&folder.0)
    })
    .await;
    let ended = "twinstep_matches_ended_total{reason=\"deserted\"}";
    for round in 1..=2 {
        let mut party = vec![server.client("anna", 7), server.client("bob", 7)];
        plays(&mut party).await;
        let bob = party.pop().unwrap();
        leave(vec![bob]).await;
        // Anna is still there.
        let since = tick(&party[0]);
        play(&mut party, |party| tick(&party[0]) > since + 120)
            .await
            .unwrap();
        assert_eq!(server.listed().await, [7]);
        assert!(journals(&server.folder.0).contains(&"match-7.journal".to_owned()));
        assert_eq!(open_below(&server.folder.0), 1);
        leave(party).await;
        server.until_number_is(ended, f64::from(round)).await;
        assert_eq!(server.listed().await, [] as [u64; 0]);
        assert_eq!(open_below(&server.folder.0), 0);
        let done = format!("match-7.{round}.journal");
        assert!(journals(&server.folder.0).contains(&done));
    }
    // Each is the journal of one match, complete to its end.
    for name in ["match-7.1.journal", "match-7.2.journal"] {
        let path = server.folder.file(name);
        let bytes = StoredJournal::open(&path).unwrap();
        let checkup = Checkup::check_file::<Counter>(&path).unwrap();
        assert_eq!(checkup.harm, None);
        // A compressed journal is not cut.
        let compressed = server.folder.file("compressed.gz");
        let to = std::fs::File::create(&compressed).unwrap();
        let mut to = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
        std::io::copy(&mut std::fs::File::open(&path).unwrap(), &mut to).unwrap();
        to.finish().unwrap();
        let packed = Checkup::check_file::<Counter>(&compressed).unwrap();
        let refused = packed.repair(&compressed).unwrap_err();
        assert!(refused.to_string().contains("gunzip"), "{refused}");
        let index = Index::scan(bytes).unwrap();
        assert_eq!(index.ended.as_deref(), Some("the match is over"), "{name}");
        assert_eq!(index.worlds[0].tick, Tick(0), "{name}");
    }
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deserted_match_is_kept_for_the_configured_time() {
    let server = server("kept", |_| {
        counters().deserted_after(Duration::from_secs(6))
    })
    .await;
    // The time starts again with each player who leaves.
    for name in ["anna", "bob"] {
        let mut party = vec![server.client(name, 7)];
        plays(&mut party).await;
        let seen = tick(&party[0]) + 60;
        play(&mut party, |party| tick(&party[0]) > seen)
            .await
            .unwrap();
        leave(party).await;
        tokio::time::sleep(Duration::from_millis(3_200)).await;
        assert_eq!(server.listed().await, [7], "{name}");
    }
    let ended = "twinstep_matches_ended_total{reason=\"deserted\"}";
    server.until_number_is(ended, 1.0).await;
    assert_eq!(server.number("twinstep_matches_started_total").await, 1.0);
    server.host.shutdown(CloseCode::Draining).await;
}

/// A player who came just when a match was about to end was refused because it was over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_arrives_as_a_match_ends_plays_in_it_or_in_the_next() {
    let server = server("edge", |folder| {
        let a_second = Duration::from_secs(1);
        let matches = counters().deserted_after(a_second).per_second(1_000);
        matches.journals(&folder.0)
    })
    .await;
    let mut party: Vec<_> = (0..24).map(|id| server.client("anna", id)).collect();
    plays(&mut party).await;
    leave(party).await;
    // Matches are checked four times a second.
    let mut late = Vec::new();
    for id in 0..24 {
        let ticket = server.ticket("bob", id);
        late.push(tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(900 + 20 * id)).await;
            let mut tries = 60;
            loop {
                let mut party = [client::<Counter>(&ticket)];
                let played = play(&mut party, |party| tick(&party[0]) > Tick(0)).await;
                // On a busy machine, the server may refuse players because its ticks are late.
                let busy = matches!(
                    played,
                    Err(SessionEnd::Server(CloseCode::ServerBusy { .. }))
                );
                if !busy || tries == 0 {
                    return played;
                }
                tries -= 1;
                // A server ignores the dials of one identity that come faster than 32 in 20 s.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }));
    }
    for (id, late) in late.into_iter().enumerate() {
        assert_eq!(late.await.unwrap(), Ok(()), "match {id}");
    }
    server.host.shutdown(CloseCode::Draining).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_or_drained_match_resumes_when_a_player_joins() {
    let mut server = server("killed", |folder| counters().journals(&folder.0)).await;
    let mut seen = Tick(0);
    for drains in [false, true, false] {
        let mut party = vec![server.client("anna", 7)];
        play(&mut party, |party| tick(&party[0]) > seen + 90)
            .await
            .unwrap();
        seen = tick(&party[0]);
        let next = beside(&server, counters().journals(&server.folder.0)).await;
        let old = std::mem::replace(&mut server, next);
        match drains {
            true => old.host.shutdown(CloseCode::Draining).await,
            false => drop(old.host),
        }
        assert_eq!(journals(&server.folder.0), ["match-7.journal"]);
    }
    let bytes = std::fs::read(server.folder.file("match-7.journal")).unwrap();
    assert_eq!(Index::scan(&bytes).unwrap().resumes, 2);
    server.host.shutdown(CloseCode::Draining).await;
}
