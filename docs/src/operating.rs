//! Chapter 11: operating a server. What it tells, what each alert means, and what you can do.
//!
//! # The admin port
//!
//! A server with [`admin`](twinstep_ops::OpsConfig::admin) (`powderkeg serve --admin 127.0.0.1:7700`) listens on loopback for
//! whoever runs it. Numbers are for everybody on the machine:
//!
//! | request | what it answers |
//! |---|---|
//! | `GET /livez` | 200 while the I/O loop beats and matches are run; 503: restart the process |
//! | `GET /readyz` | 200 while a newcomer finds a place; 503 and why not: the server is full or draining, or its I/O stands still |
//! | `GET /metrics` | what was counted, in Prometheus' text format 0.0.4 |
//! | `GET /matches` | id, players, spectators, tick and lateness of each match |
//!
//! Tell your orchestrator to restart a server for `/livez` alone. A server that is not ready is busy, not broken: send
//! newcomers elsewhere and leave it running. A match whose seats are all taken is full, and so is a server of full
//! matches. A server without a match is ready for one. One that [makes matches on demand](#many-matches) is ready while it may
//! make another one.
//!
//! What names people or changes something needs the token: the last line of the server's
//! [token file](twinstep_ops::OpsConfig::admin_token) (`powderkeg serve` makes it beside the key file, as `KEYFILE.admin`), in the
//! header `Authorization: Bearer TOKEN`.
//!
//! | request | fields | what it does | `powderkeg admin` |
//! |---|---|---|---|
//! | `GET /matches/ID` | | lists who is there: seat, identity, name, state and for how long, margin, round trip | `players ID` |
//! | `POST /kick` | `match`, `identity` | out of that match, and kept out of it | `kick NAME` |
//! | `POST /ban` | `identity`; `for_s` or `until_unix_s`; `reason` | out of all matches, and kept out whatever ticket it shows | `ban NAME --for 7d` |
//! | `POST /unban` | `identity` | lets in again who was banned or kicked | `unban NAME` |
//! | `GET /bans` | | lists the bans that hold | `bans` |
//! | `POST /revoke` | `identity`; `match` | its tickets so far are revoked | `revoke NAME` |
//! | `POST /message` | `words`; `match` | all who are there read a line of text (`Event::Notice` of the client) | `message WORDS` |
//! | `POST /end` | `match`, `words` | ends a match for good | `end ID` |
//! | `POST /save` | `match` | copies the journal of a match as it is now, beside it | `save ID` |
//! | `POST /release` | `match` | ends a match here; another server resumes its journal: [a rolling restart](super::fleet#a-rolling-restart) | `release ID` |
//!
//! A server can also listen at a Unix socket ([`admin_socket`](twinstep_ops::OpsConfig::admin_socket), `powderkeg serve --admin
//! unix:/run/game/admin.sock`, or `--admin 127.0.0.1:7700,unix:PATH` for both). The file is made for its owner alone, so whoever
//! can open it needs no token. What a killed server left there is replaced; a socket at which somebody listens is not.
//!
//! Fields stand in the query, or in a JSON object as the body. A field that is not known is an error, so a misspelt `for_s` is
//! no ban for good. An answer is JSON with status 200, or words: 400 says what was expected and what came, 401 or 403 that the
//! token is missing, 404 who or what is not here, 503 that a match does not answer; the others have done it then. From a program of your own,
//! [`AdminClient`](twinstep_ops::AdminClient) asks.
//!
//! ```sh
//! powderkeg admin --to 127.0.0.1:7700 --token-file match.key.admin players
//! powderkeg admin --to 127.0.0.1:7700 --token-file match.key.admin ban anna --for 7d --reason "an aimbot"
//! ```
//!
//! # Kick, ban or revoke?
//!
//! An *identity* is the name on a ticket. It is what your own login knows of a player, not what the player is called in the
//! game: `players` lists both.
//!
//! - **Kick** somebody who spoils this match. It is told
//!   [`Kicked`](twinstep_server::CloseCode::Kicked), its seat is free at once, and it stays out of this match, also
//!   as a spectator, until the match ends or `unban` forgives it. A server that restarts has forgotten kicks.
//! - **Ban** somebody whom you do not want on the server. It is told
//!   [`Banned`](twinstep_server::CloseCode::Banned) and for how long, now and whenever it dials, by tickets that it
//!   has and by those that you make later. Bans stand in a [file](twinstep_ops::OpsConfig::bans_file) (`KEYFILE.bans`) that is
//!   replaced whole, and are there after a restart. Servers that share the file read it when they start
//!   and when they change it. If the disk takes no more, or another process keeps `KEYFILE.bans.lock` locked for more than 3 s, the
//!   answer says so, and the ban holds until the server ends. A server does not start with a damaged file: mend it, it is JSON.
//! - **Revoke** the tickets of somebody whose ticket was stolen. All that were made so far let nobody in. Who is connected plays
//!   on and is handed a new one, so kick it too if the thief is the one who plays; then `unban` and give the owner a new ticket.
//! - **End** a match that cannot be saved. Players are told that it is over, your words stand in its journal and in the log, and
//!   it is not taken up again. `powderkeg serve` without `--matches` has one match, and ends with it.
//!
//! # Many matches
//!
//! A server makes its matches [on demand](twinstep_host::OnDemand) (`powderkeg serve --matches 100`): a ticket names its match, and
//! the first good ticket of a player for it makes it. So whoever makes tickets decides who plays with whom, and tells the server
//! nothing. A ticket that is forged, out of date, revoked or of somebody banned makes nothing, and neither does that of somebody
//! who only watches. Which ids there are says the closure that the game's author gave.
//!
//! There are at most [`at_once`](twinstep_host::OnDemand::at_once) matches, and at most
//! [`per_second`](twinstep_host::OnDemand::per_second) are made in a second. Whoever comes beyond that is told
//! [`ServerFull`](twinstep_server::CloseCode::ServerFull): come back in so many seconds, or with a ticket for another
//! server. Its ticket stays good. Players of matches that run are not concerned.
//!
//! A match that nobody is in ends after [`deserted_after`](twinstep_host::OnDemand::deserted_after). A player who was cut off has its
//! seat for a minute more, and the match with it. Then its memory, its open journal and its line in `GET /matches` go, and its id
//! is free: the next ticket for it makes a new match.
//!
//! With a [folder](twinstep_host::OnDemand::journals), match 7 writes `match-7.journal`. When it is over that becomes
//! `match-7.1.journal`, or the next number that is free. While it has no number it can go on: after a crash, a `kill -9` or a
//! restart in order, the first ticket for match 7 takes it up there, and nothing needs to be done at the start. What went on
//! could not be found by its id if it had another name while it is played, so only the number says that a match is over. A
//! journal that is damaged refuses its match alone: the log says so, and `powderkeg journal repair` mends it.
//!
//! A match that hangs is ended after 5 s, and its journal is free at once: the next ticket for it makes it again from there. One
//! that hangs three times within an hour is not made again in this process, which each time loses a thread; the log says so.
//! Several servers may share the folder: the one that writes a journal has it alone, and none overwrites or removes what
//! another one has played.
//!
//! Journals, copies of them and files of incidents are made for their owner alone (mode 0600). Links, pipes and devices are not
//! followed: name the file itself.
//!
//! `powderkeg replay` and `powderkeg journal check` read journals that were compressed with `gzip` as they are, and so does
//! [`StoredJournal`](twinstep_host::StoredJournal).
//! All of them read a journal piece by piece, so one of any length takes a few megabytes of memory, and about as long as the disk
//! takes to give it. To take a match up is one pass over its journal. A compressed file that unpacks to more than 100 times its
//! length (and more than 256 MiB) is refused: unpack it with `gunzip` if it is yours.
//! `powderkeg journal export` ([`export_journal`](twinstep_ops::export_journal)) writes one as lines of JSON, for programs of your own: who
//! came and went, what each player held and ordered at each tick, what was answered.
//! Journals of ended matches are kept by age and by bytes of all, the oldest go first ([`KeepJournals`](twinstep_ops::KeepJournals),
//! `--keep-days`, `--keep-megabytes`); that of a match that can go on never goes, nor does a file with another name. If nothing is
//! said, all are kept. A file that cannot be removed is logged, and keeps the bounds from nothing else. Of a server of one match
//! the last record of `match-1-TIME.journal` says that its match is over.
//!
//! # Tickets: which one counts, and one that leaked
//!
//! A fresh ticket of any maker lets its player in, whatever the maker's clock says: the clocks decide only when it expires, by the
//! server's. Which of a player's tickets is newer follows from what the server saw. A player that used a ticket, or stored one that the
//! server handed it to return with, has no use for the older ones; neither has a thief.
//!
//! | ticket | what it is good for |
//! |---|---|
//! | made, and used by nobody yet | it lets its holder in, and ends what the player had before: session and older tickets |
//! | used | it lets its holder in again and again, until a newer one is used or stored |
//! | used, and a newer one used or stored since | nothing: "out of date" |
//! | revoked (`powderkeg admin revoke`) | nothing: all that the server has seen, and what was made before, or within 5 s after it by the maker's clock |
//!
//! So **a ticket that leaks before anybody has used it is good until it expires**, even if its player has used newer ones since. Give
//! tickets that travel (by mail, by a chat) short lives, revoke if you know of a leak, and ban whom you know. A revocation goes by the
//! maker's word: it misses a ticket that nobody has used, of a maker whose clock is ahead by more than 5 s, and it refuses what a maker
//! makes whose clock is behind, for as long as it is behind. A replaced key ([below](super::configuring)) misses nothing.
//!
//! A ticket to return with lives for twenty minutes, or as long as the ticket by which its player came: an invite for a month brings its
//! player back for a month. If the server's clock is set forward, that counts for tickets after twenty minutes, so that nobody who plays is
//! locked out by it.
//!
//! Give the server a [file of what is out of date](twinstep_host::HostConfig::lineages_file) (`powderkeg serve` does): it knows that also of
//! matches that do not run. It has a line for each ticket that is alive and for a day more, some 100 bytes each; the server remembers
//! 500,000 of them, and warns if that is too few.
//!
//! # How large a machine
//!
//! Measured with a state of 64 bytes, matches of 4 at 60 Hz, controls that change all the time, on one core of a virtual machine
//! (`bench/REPORT.md`; the journal is Powderkeg's, of four bots). Add what your step takes, times 60, for each match: `check` of
//! `twinstep-testing` measures it, and `twinstep_step_seconds` while it is played.
//!
//! | what | for each player | 1,000 players, one core |
//! |---|--:|--:|
//! | processor | 9 to 13 µs a tick, by what else the machine does | 54 to 80 % of the core |
//! | memory | 80 KB at first, 130 KB once the history of half a minute is full | 130 MB, and what is kept of your states: [more than one of each](super::costs#a-cheap-state) |
//! | network, both ways, with all headers | 5.1 KB/s while controls are held, 13.0 while they change at every tick; 18 to 47 MB an hour | 41 to 104 Mbit/s |
//! | disk, if there is a journal | 2.1 MB an hour in Powderkeg; a third of that once it is compressed | 2.1 GB an hour |
//!
//! Leave half of a core free: a process says "full" by lateness, and what else runs on a machine makes ticks late too. Few players
//! cost more each (12 of them 23 to 66 µs), because threads that sleep and wake are most of it. On machines of the report's kind ticks were
//! late by less than 2 ms at p99.9 up to 1,000 players in one report, up to 300, 500 and 600 in others, and in one not even with 12: a thread
//! that only slept was late by 0.8 to 3.5 ms there by itself. A match whose four players say nothing costs 3 to 5 µs a tick.
//!
//! # How to build a server that ships
//!
//! Two settings of cargo make a server cheaper. A library cannot set them, so they belong into your game's own files:
//!
//! ```toml
//! # Cargo.toml: a client's frame takes 2 to 6 % less, a match 3 to 10 %.
//! [profile.release]
//! codegen-units = 1
//!
//! # .cargo/config.toml: a server of 400 players takes 10.0 us of processor for each player and tick instead of 13.6.
//! [target.'cfg(target_arch = "x86_64")']
//! rustflags = ["--cfg", "poly1305_force_soft"]
//! ```
//!
//! The second setting chooses the portable code of the crate `poly1305` 0.8, a part of the cipher. Without it that crate takes its AVX2
//! code wherever the processor has AVX2. rustc 1.95 does not inline that code. Sealing a packet of 80 bytes takes 1.68 us with AVX2
//! and 0.44 us with the portable code, and 1,000 bytes take 2.5 us and 1.6 us. The bytes on the wire are the same, so a server with
//! the setting serves players without it. The variable `RUSTFLAGS` replaces what the file says; the Dockerfile sets the variable.
//! All numbers are of 2026-11-25; `bench/NOTES.md` has the main ones.
//!
//! # When there is too much to do
//!
//! Once a second a process looks at how it is, and says "full" before players feel it. Its limits are
//! [`HostConfig::limits`](twinstep_host::HostConfig::limits):
//!
//! | what is measured | limit if nothing is said | what happens | until |
//! |---|---|---|---|
//! | lateness of ticks: the 99th percentile of 5 s, in half of two matches or more | 20 ms | after 3 looks above it (above 80 ms: after each) one step more is taken | 10 looks below 10 ms: one step back |
//! | memory (Linux) | 85 % of what its cgroup or machine has | no newcomers | 95 % of the limit |
//! | free disk where journals are (unix) | 256 MiB | no newcomers | 110 % of the limit |
//!
//! A process holds some 0.5 MB for each match of 4 with a small state, and what its journal and its history of half a minute grow to.
//! Memory that matches have given back stays with the process for the next ones. glibc keeps it in several arenas, and does
//! not give back what lies below something that is still there, so by default a process goes on growing for long. With
//! `MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536` in its environment it levels off: 200 matches of 4, of
//! which one was left and made anew with each 4 joins, took 99 MB after 100 joins, 104 after 1,000, 109 after 3,000 and 110 after
//! 4,000 (1.6 KB a join from the 1,000th on, 0.9 in the last thousand), while 99 of 100 ticks were late by at most 2 ms. The systemd
//! unit and the Dockerfile set both. Nothing leaks: what is in use does not grow with the joins, and when all had left, the process
//! had 13 descriptors, as at its start.
//!
//! The steps, in an order that players feel last:
//!
//! 1. **Spectators**: who watches is let go, and nobody comes to watch.
//! 2. **Announcements**: inputs are told with their frames only, so others are guessed a little worse.
//! 3. **Newcomers**: who has no seat gets none, and no match is made. `/readyz` answers 503 from here on.
//! 4. **Turns** are twice as long, up to 20 ticks: half the packets, and everybody hears of everything a little later.
//!
//! Sessions that are refused or closed because ticks are late get
//! [`ServerBusy`](twinstep_server::CloseCode::ServerBusy); for memory and disk it is
//! [`ServerFull`](twinstep_server::CloseCode::ServerFull). Both carry the time after which another try is worth it.
//! When newcomers begin to be refused, and when they are let in again, the log has one warning, with the value, the limit and the
//! setting; `/readyz` says the same. A seat holder comes back at any time, also to a match that must be taken up from its journal
//! for that.
//!
//! A process in which one match runs takes no step: late ticks say nothing about its load there. Its machine may hitch, or its own
//! code is slow. Nor is it load when the process stood still as a whole, for example in a virtual machine that was paused.
//!
//! A match that is late by itself, because its own step or resolver is slow, counts as one: the process takes a step when half of
//! its matches are late. Beside a match that hangs, one that panics, one whose resolver takes 150 ms each time, two on a full disk and
//! a dead sidecar, 4 matches of 2 had ticks that were late by 1.9 ms (median), 26 ms (99th percentile) and 46 ms at most; before all
//! that it was 2.8, 33 and 47 ms (2 shared cores that other programs wanted too; `cargo test -p twinstep-server --test hosts faults`).
//!
//! # A disk that is full, or slow
//!
//! Newcomers are refused long before a disk is full. If it is full all the same, a match finds that out when it has to write: a turn,
//! or the world that is written every 10 s. Then it does what `on-journal-failure` says:
//!
//! | | `end` | `go-on` |
//! |---|---|---|
//! | the match | ends; players are told that there was a fault | goes on without a journal; the log says so once a minute |
//! | its journal | holds all that its players saw | is called `match-7.journal.incomplete`, and nobody takes it up |
//! | told | an incident, `twinstep_journal_errors_total` | the same |
//! | a crash now | costs nothing more | costs the match |
//! | when there is room again | the next ticket takes the match up where its players saw it last | it has none until it is over; the next match of that id has one |
//!
//! Newcomers are let in again within a second or two of there being room.
//!
//! A disk that stands still (a network's, say) holds up the matches that write to it and no others: for up to 5 s their players wait
//! and then play on, after that such a match is over, as any that hangs. With `durability = power` each turn waits for the disk; a disk
//! that is slow at that shows in `twinstep_seal_to_send_seconds`.
//!
//! # Ending a server
//!
//! SIGTERM (or Ctrl-C) ends a server in order. `/readyz` answers 503 at once, no match is made any more, and nobody is let in who
//! has no seat; who has one comes back, also by a new connection. Whoever plays plays on, for at most
//! [`drain_within`](twinstep_host::HostConfig::drain_within) (`powderkeg serve --drain SECONDS`; 0 if nothing is said). When everybody
//! has left, or then, each match ends its turn, writes its world and its end to its journal and waits for the disk. Its players
//! hear [`Restarting`](twinstep_server::CloseCode::Restarting): in how many seconds to come back
//! ([`back_after`](twinstep_host::HostConfig::back_after)), to the addresses of their ticket. Clients do that by themselves. Players of
//! a match without a journal hear that the server is shutting down.
//!
//! A second signal ends the process at once, as `kill -9` would: nobody is told, and journals can be taken up all the same. The
//! exit status is 0 for an end in order, 1 if the match had died of a fault, 130 after a second signal. Give an orchestrator some
//! 5 s more than `--drain` before it kills: `terminationGracePeriodSeconds`, or systemd's `TimeoutStopSec`.
//!
//! # Metrics
//!
//! No label names a player or a match. Counters belong to the process: they never go down while it lives, also when a match
//! ends, and begin at 0 with the next process. A match shows its numbers at each tick, or when it is looked at, the socket's
//! task at least ten times a second. Nothing of it takes a lock or allocates while a match runs.
//!
//! | metric | what it means |
//! |---|---|
//! | `twinstep_build_info` | always 1; labels `version`, `wire`, `game` |
//! | `twinstep_ready` | 1 while `/readyz` answers 200 |
//! | `twinstep_matches` | matches that run |
//! | `twinstep_matches_max` | how many there may be at once, where they are [made on demand](#many-matches); else 0 |
//! | `twinstep_players` | players in a match, also while they are away for a moment |
//! | `twinstep_spectators` | sessions that watch |
//! | `twinstep_seats_free` | seats that newcomers could take |
//! | `twinstep_sessions` | connections, whatever their stage |
//! | `twinstep_sessions_max` | how many there may be |
//! | `twinstep_relief_steps` | what matches [do without](#when-there-is-too-much-to-do) because ticks are late: 0 nothing, 1 spectators, 2 announcements, 3 newcomers, 4 short turns |
//! | `twinstep_memory_bytes` | memory of this process (resident); 0 where it is not known |
//! | `twinstep_journal_disk_free_bytes` | what is free on the fullest disk with a journal; 0 where it is not known |
//! | `twinstep_tick_lateness_seconds` | by how much a match was late when it looked at what was due; a healthy machine: below 2 ms at p99.9. A match that nobody is in, or whose players have said nothing for a second, is looked at every 100 ms (after four seconds, and where its ticks are cheap, twice a second), and not counted here |
//! | `twinstep_step_seconds` | one step of the game, with its digest |
//! | `twinstep_seal_to_send_seconds` | from the seal of a turn until the socket had its last datagram: step, resolver, journal and queues are in it |
//! | `twinstep_resolver_seconds` | one answer of the resolver, at once or in a job |
//! | `twinstep_ticks_total` | ticks sealed |
//! | `twinstep_turns_total` | turns sent |
//! | `twinstep_fills_total` | inputs that were missing at their deadline, one for each player and tick |
//! | `twinstep_queries_total` | queries asked |
//! | `twinstep_unanswered_total` | queries that stayed without an answer |
//! | `twinstep_desyncs_total` | players whose clients differed, each at most once an hour in a match: one that makes it up does not set off the alarm alone |
//! | `twinstep_server_faults_total` | of these, where the journal says that the server was wrong |
//! | `twinstep_heals_total` | worlds sent to clients that differed, or were too far behind |
//! | `twinstep_malformed_packets_total` | packets of sessions that could not be read |
//! | `twinstep_panics_total` | panics of a step, hook, job or match |
//! | `twinstep_journal_bytes_total` | bytes handed to journals |
//! | `twinstep_journal_writes_total` | records of these |
//! | `twinstep_journal_errors_total` | journals that could not be written any more |
//! | `twinstep_matches_made_total` | matches made for a ticket, or taken up again for one |
//! | `twinstep_matches_not_made_total` | by `reason`: tickets for which none was made (`matches`, `rate`, `lateness`, `memory`, `disk`: full; `id`: the game knows no such match; `superseded`: an old or revoked ticket; `draining`; `elsewhere`: another process has its journal; `failed`: see the log) |
//! | `twinstep_matches_ended_total` | by `how`: `deserted`, `over`, `kept` (it can go on), `fault` |
//! | `twinstep_joins_total` | by `result`: `playing` for each session that came into a match; else why it ended before |
//! | `twinstep_kicks_total` | by `reason`: who was removed (`operator`: kicked by you) |
//! | `twinstep_incidents_total` | by `kind`: what was written down as an [`Incident`](twinstep_server::Incident) |
//! | `twinstep_datagrams_received_total` | datagrams through the socket |
//! | `twinstep_received_bytes_total` | bytes of these, without headers of UDP and IP |
//! | `twinstep_datagrams_sent_total` | datagrams that the socket took |
//! | `twinstep_sent_bytes_total` | bytes of these, without headers of UDP and IP |
//! | `twinstep_packets_received_total` | packets of sessions, decrypted |
//! | `twinstep_packets_sent_total` | packets that matches sent |
//! | `twinstep_datagrams_dropped_total` | by `reason`: what led to nothing |
//!
//! `server/ops/dashboard.json` shows all of it in Grafana: import it and choose your Prometheus. `server/ops/alerts.yml`
//! goes into Prometheus' `rule_files`. A test of this crate holds that both name only what is told.
//!
//! # Alerts
//!
//! | alert | what happened | what to do |
//! |---|---|---|
//! | `TwinstepNotReady` | no newcomer finds a place for five minutes | ask `/readyz`; if it is full, start another server |
//! | `TwinstepTicksLate` | the machine is too busy: matches wake up late | run fewer matches there, or give them cores of their own |
//! | `TwinstepRelief` | ticks are so late that players are spared something, which costs least: spectators first, then more | run fewer matches there; look whether something else keeps the machine busy |
//! | `TwinstepDiskFull` | the disk with journals is nearly full | make room, or keep less: `keep-days`, `keep-megabytes` |
//! | `TwinstepStepsSlow` | the game's step has become slow | look at the size of its state: see [the chapter on costs](super::costs); clients feel it several times over |
//! | `TwinstepResolverSlow` | answers take long | look at what the resolver waits for; after 2 s a query stays unanswered |
//! | `TwinstepFills` | inputs do not come in time | many players: look at this server's network; one player: that line is bad, and nobody else suffers |
//! | `TwinstepServerFault` | the running world was not what its journal says | drain the server, test its memory; keep the journal for the authors |
//! | `TwinstepDesyncs` | clients of more than three players compute something else | [read the report](super::desync): a step that is not deterministic, or changed clients |
//! | `TwinstepPanics` | the game's code panicked | give the incident file and the journal to the authors; the match plays on if it can |
//! | `TwinstepMatchDied` | a match is over because of a fault | the same; players were told |
//! | `TwinstepJournalLost` | the disk is full or broken | make room; without a journal a crash ends that match |
//! | `TwinstepRefusals` | sessions do not get in | `full`: more servers; `wrong_game`: an old client or server; `too_slow`: their lines, or yours |
//! | `TwinstepDrops` | a match or the socket does not keep up | as for late ticks; larger socket buffers help against bursts |
//! | `TwinstepStrangers` | somebody floods the socket | players are hardly hurt; block the source before this machine |
//!
//! # Logs
//!
//! The libraries log through `tracing`, a line for each event, never one for each packet of a stranger. `powderkeg serve
//! --log-format json` writes one object a line, for whoever collects them; `--log` says how much.
//!
//! Players and strangers cannot fill a disk with log lines: of each kind of line at most 100 come at once, and then one a second. Lines beyond
//! that are counted, and a line says how many were left out (`lines were left out of the log kind="session closed" left_out=657`).
//! Text from outside is quoted and escaped, so that it never looks like another field; no key of an object stands twice.
