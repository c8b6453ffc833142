//! Large worlds are encoded on threads other than those that run matches.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize, Serializer};
use twinstep_core::{Effects, Frame, Key, Never, Simulation, Tick};
use twinstep_host::{Journal, MatchId};
use twinstep_protocol::replay::Index;
use twinstep_server::{Decision, HookContext, Match, MatchConfig};

use crate::loopback::LoopbackHost;
use crate::players::play;

static ENCODED_BY: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Clone, Debug, Deserialize)]
struct Bulk(Vec<u8>);

impl Serialize for Bulk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Digests, NaN checks and measurements of its size do not encode it.
        if std::any::type_name::<S>().contains("append") {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default().to_owned();
            ENCODED_BY.lock().unwrap().push(name);
        }
        self.0.serialize(serializer)
    }
}

impl Simulation for Bulk {
    const NAME: &'static str = "bulk";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, held) in frame.inputs() {
            self.0[player.index()] ^= *held;
        }
    }
}

/// The numbers of encodings on match threads and on job threads.
fn encoded() -> (usize, usize) {
    let by = ENCODED_BY.lock().unwrap();
    let jobs = by.iter().filter(|name| *name == "match-job").count();
    let all = by.iter().filter(|name| name.starts_with("match-")).count();
    (all - jobs, jobs)
}

#[tokio::test(flavor = "multi_thread")]
async fn large_worlds_for_journals_and_joiners_are_not_encoded_on_match_threads() {
    let server = LoopbackHost::<Bulk>::start("aside", |_| {}).await;
    let no_resolver = |_: &HookContext<'_, Bulk>, _: Key, _: &Never| Decision::Unanswered;
    let sim = Bulk(vec![1; 300_000]);
    let match_ = Match::new(MatchConfig::action(), sim, Arc::new(()), no_resolver).unwrap();
    let path = server.folder.file("7.journal");
    let journal = Journal::create(&path).unwrap();
    let match_ = server
        .host
        .add_match(MatchId(7), match_, Some(journal))
        .await
        .unwrap();
    while match_
        .inspect(|match_| match_.world().tick())
        .await
        .unwrap()
        < Tick(2)
    {
        tokio::task::yield_now().await;
    }
    // The first world of the journal, encoded by the thread that started it.
    assert_eq!(ENCODED_BY.lock().unwrap().len(), 1);
    let (began, _) = encoded();
    let mut party = vec![server.player("anna", 7), server.player("bob", 7)];
    play(&mut party, |party| {
        party.iter().all(|player| player.is_in())
    })
    .await
    .unwrap();
    let (by_match, by_jobs) = encoded();
    assert!(by_match == began && (1..=2).contains(&by_jobs), "{by_jobs}");
    // The next world of the journal is due after ten seconds.
    play(&mut party, |party| party[0].tick() > Tick(660))
        .await
        .unwrap();
    let index = Index::scan(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(index.worlds.len(), 2, "{:?}", index.worlds);
    let (by_match, by_jobs) = encoded();
    println!("{by_match} by the match, {by_jobs} beside it");
    // On a machine that stalls, the encoded world may repeatedly come too late, until the match encodes it itself.
    assert!(by_jobs >= 2 && by_match <= began + 1);
    let stats = match_.inspect(|match_| match_.stats()).await.unwrap();
    assert_eq!((stats.desyncs, stats.heals), (0, 0));
}
