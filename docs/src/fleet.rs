//! Chapter 13: from one machine to a fleet. systemd, containers, Agones; another build; what to keep copies of.
//!
//! # One machine
//!
//! `server/ops/systemd` has a unit and a file of settings. The unit runs the server as a user of its own that sees little of the
//! machine, gives it the key as a credential, keeps its state in `/var/lib/powderkeg`, and limits its memory and descriptors.
//! It asks `--check` before each start, and does not try again when a setting will not do (exit code 2).
//!
//! - `systemctl reload` sends SIGHUP: [keys and bans are read again](super::configuring#another-key-without-a-restart).
//! - `systemctl stop` sends SIGTERM: a match with a journal is kept, and its clients hear when to come back.
//!
//! Several servers on one machine need a port, an admin address and a folder for journals each. They may share a key file: then
//! they share its bans and its list of tickets that are out of date, and a ban by one of them holds at the others when they
//! are sent SIGHUP.
//!
//! # A rolling restart
//!
//! Several servers with [matches on demand](super::operating#many-matches) can be restarted in turn while their matches are played.
//! They share a key file and a folder of journals, on one machine or on storage with file locks, and each names the others behind
//! its own address:
//!
//! ```sh
//! powderkeg serve --matches 100 --key-file match.key --journal journals --listen 0.0.0.0:7777 \
//!     --public 203.0.113.7:7777,203.0.113.7:7778 --admin 127.0.0.1:7701
//! powderkeg serve --matches 100 --key-file match.key --journal journals --listen 0.0.0.0:7778 \
//!     --public 203.0.113.7:7778,203.0.113.7:7777 --admin 127.0.0.1:7702
//! ```
//!
//! A server that ends (SIGTERM) writes each match's last world and end to its journal, and sends its players on. They dial the next
//! address of their tickets; the server there resumes the match from the journal. There is nothing to order: restart one server
//! after the other. To move a single match, release it:
//!
//! ```sh
//! powderkeg admin --to 127.0.0.1:7701 matches
//! powderkeg admin --to 127.0.0.1:7701 --token-file match.key.admin release 7
//! ```
//!
//! Players see their match stand still for a moment. `cargo test -p powderkeg --test processes rolling -- --nocapture` moves six
//! matches of two bots each through three servers and prints the pauses. On two cores that had other work, half of the players
//! waited for at most 190 ms where their match was released and 230 ms where their server ended, and none for more than 290 ms. Where
//! their server was killed, all waited for 1.2 s.
//!
//! - The journal belongs to one process at a time. Whoever comes to another server meanwhile makes no second match there
//!   (`elsewhere` in `twinstep_matches_not_made_total`).
//! - A released match lets in who is on the way first, for up to 5 s, and is not resumed by the same server within 5 s.
//! - A server that is killed sends nobody on: its players notice the silence after 0.7 s, and dial the same addresses.
//! - A match without a journal cannot be released: the answer says so, and it plays on.
//! - A server that does not fit the match (other rules, another version, fewer seats) does not resume it: see
//!   [another build](#another-build).
//!
//! # A container
//!
//! `server/ops/docker/Dockerfile` makes an image with the program and nothing else: no shell, no root, nothing to write but two
//! folders. Settings are variables (`TWINSTEP_LISTEN`); secrets are mounted as files under `$CREDENTIALS_DIRECTORY`. The admin
//! port is a Unix socket in a folder that only this container has.
//!
//! # Agones
//!
//! With `--fleet agones` a server speaks to Agones' sidecar, at the port that `AGONES_SDK_HTTP_PORT` names. In a program of your
//! own: [`OpsConfig::fleet`](twinstep_ops::OpsConfig::fleet).
//!
//! | what the fleet hears | when |
//! |---|---|
//! | `/health` | every 2 s while the I/O loop beats: what `/livez` says. A server that stands still is replaced |
//! | `/ready` | once, when newcomers find a place there: what `/readyz` says |
//! | label `wire`, annotation `game` | then; Agones adds `agones.dev/sdk-` before their names |
//! | label `matches` | when the number of matches changes |
//! | counter `players` | when somebody comes or goes: how many there are, and how many there may be. It must be in the manifest; where it is not, the server asks again once a minute |
//! | `/allocate` | when somebody plays on a server that nobody allocated, so that it is not scaled away |
//! | `/shutdown` | when the match is over or was released, and when the server was asked to end |
//!
//! What an allocation put into labels and annotations is [`RunningOps::fleet_news`](twinstep_ops::RunningOps::fleet_news).
//! `--public auto` takes the address and the first port that Agones gives; the server waits up to 30 s for them.
//!
//! The game never waits for the sidecar. One that is late, slow, dead or talks nonsense is asked again every half second to two
//! seconds, and costs a line of the log a minute. It can hold up the end of a server by 7 s. But a sidecar that hears no
//! `/health` for longer than the manifest says has Agones replace the server: that is Agones' choice, not the server's.
//!
//! `server/ops/agones` has a fleet and its autoscaler. Change the image and the name, and make the secret as the file says.
//! Agones' own rolling update leaves allocated servers alone, so a new build comes with new matches.
//!
//! `demo/examples/allocate.rs` is the other side: it asks Agones' allocator for a server, makes a ticket for each player with
//! the key of the fleet, and prints them. Whoever logs players in does that, and nobody else needs the key but the servers.
//!
//! # Another build
//!
//! Stop the old server and start the new one on the same journals, or let another server resume them
//! ([a rolling restart](#a-rolling-restart)).
//!
//! What a new build can go on with:
//!
//! | what changed | a running match | a journal | clients |
//! |---|---|---|---|
//! | nothing of the game: hooks, policies, a library | goes on | is taken up | stay |
//! | [`VERSION`](twinstep_core::Simulation::VERSION) of the simulation, or its rules | needs the old program | is left alone | must be of the new version |
//! | fewer seats | needs the old program | is taken up if its players' seats are there | stay |
//! | the wire version | needs the old program | is taken up | must be of the new version |
//! | the format of journals | needs the old program | is refused, and names its format | stay |
//!
//! The build's own name is never compared. A server leaves a journal alone that it cannot go on with, and its log says why. So
//! keep the old program as long as a match of it may have to go on. Tickets of another wire version open nothing: give players
//! new ones.
//!
//! Roll back as you roll out: a server that does not start writes to no journal, so the old program can resume them all.
//!
//! # Copies
//!
//! | file | if it is lost | copy it |
//! |---|---|---|
//! | key file | nobody gets in by tickets that were made; make a new one, and new tickets | once, where no other user reads it |
//! | `KEYFILE.bans` | whoever was banned gets in again | daily; it is replaced whole, so a copy at any moment is sound |
//! | `KEYFILE.lineages` | old tickets of those who had newer ones are good again, until they expire | not needed |
//! | `KEYFILE.admin` | another one is made at the next start | not needed |
//! | journals | matches that were cut off cannot go on, nor be watched | while a match runs: `powderkeg admin save` copies its journal beside it, under a name that no server takes up; the others at any time |
//!
//! A copy of a journal that was made while it was written may end in the middle of a record: whoever reads it goes on to the
//! last whole one. Never give one journal to two servers.
