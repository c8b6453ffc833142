//! Chapter 12: setting a server up. Flags, environment, a file; secrets and their rotation.
//!
//! # Three ways to say it
//!
//! Each setting of a server is a flag, a variable of the environment, and a key of a TOML file. The name is the same:
//!
//! ```text
//! powderkeg serve --max-players 4
//! TWINSTEP_MAX_PLAYERS=4 powderkeg serve
//! powderkeg serve --config server.toml        # or TWINSTEP_CONFIG=server.toml; in it: max-players = 4
//! ```
//!
//! A flag wins over the environment, that over the file, and that over the default. A key of the file that is not known is an error
//! that names the nearest one. An error about a value says where it stands, what was expected and what came. Paths are seen from
//! the folder in which the server was started.
//!
//! A variable that begins with `TWINSTEP_` and is no setting is a warning: Kubernetes sets such ones for a Service that is called
//! `twinstep` (`TWINSTEP_SERVICE_HOST`). `enableServiceLinks: false` in a pod's `spec`, as in `server/ops/agones/fleet.yml`, keeps
//! them out. `--check` names them.
//!
//! - `--check` does all that a start does before it takes an address: it reads settings, policies, secrets and journals, and tries to
//!   write into each folder. It binds nothing and leaves nothing behind. It exits with 0 or 2, so a unit can run it before a restart
//!   (`ExecStartPre`).
//! - `--print-config` prints all settings and where each comes from, as a file of settings. Secrets are not in it, only the names of
//!   their files.
//!
//! # The settings of every server
//!
//! | setting | what it means | default |
//! |---|---|---|
//! | `config` | A TOML file with any of these settings; the environment and flags win over it | - |
//! | `check` | Only check whether all settings and files will do: exits with 0 or 2 | false |
//! | `print-config` | Only print all settings, and where each comes from | false |
//! | `listen` | The address to listen at, such as 0.0.0.0:7777 | - |
//! | `public` | The addresses that players dial, if they are others; auto: the one that the fleet manager gives | - |
//! | `max-players` | How many may play | 8 |
//! | `key-file` | The key whose tickets are good | - |
//! | `old-key-file` | The key before: its tickets are still good \[default: KEY-FILE.old, if it is there] | - |
//! | `state` | Folder for state: revoked tickets, bans, admin token \[default: beside the key file; for a credential, $STATE_DIRECTORY] | - |
//! | `journal` | Folder for journals; the newest match there that was cut off goes on | - |
//! | `new-match` | Begin a new match, even if one was cut off | false |
//! | `durability` | How safe the journal is: process (a crash) or power (a power cut; waits for the disk each turn) | process |
//! | `on-journal-failure` | What happens when the journal cannot be written: end (the match ends) or go-on (it goes on without one) | end |
//! | `keep-days` | Remove journals of matches that ended more than so many days ago \[default: never] | - |
//! | `keep-megabytes` | Remove the oldest journals of ended matches beyond so many MB \[default: none] | - |
//! | `incidents` | Folder for incident files \[default: beside the journal] | - |
//! | `spectators` | How many may watch; more than 16 need a delay | 0 |
//! | `spectator-delay` | How many seconds spectators are behind: 0, or 3 to 15 | 0 |
//! | `drain` | On SIGTERM, let players finish for so many seconds; newcomers are refused | 0 |
//! | `lateness-limit` | Shed load when ticks are later than this (ms, p99 of 5 s): spectators first, newcomers last | 20 |
//! | `memory-limit` | Refuse newcomers beyond so many MB of memory \[default: 85 % of what the cgroup or the machine has] | - |
//! | `disk-limit` | Refuse newcomers when fewer MB are free for journals | 256 |
//! | `admin` | The admin port on this machine, such as 127.0.0.1:7700, unix:/run/game/admin.sock, or both with a comma | - |
//! | `admin-token-file` | The token for changes through the admin port; made if it is not there \[default: in the folder of --state] | - |
//! | `fleet` | Fleet manager to report to: agones is its sidecar, at the port that AGONES_SDK_HTTP_PORT names | none |
//! | `matches` | Make matches on demand, at most N at once | - |
//! | `deserted-after` | End a match after so many seconds without players | 60 |
//! | `matches-per-second` | Matches made in a second; who comes too early is told to come back in a moment | 20 |
//!
//! The last three are there where the game's server can have many matches
//! ([`ManySettings`](twinstep_ops::operator::ManySettings)).
//!
//! A game adds its own to the same command; `powderkeg serve --help` lists Powderkeg's.
//! [The module](twinstep_ops::operator) shows a whole server with settings in twenty lines.
//!
//! # Secrets
//!
//! A secret is the name of a file, never a value: whoever lists processes sees flags and environments. The file must be of mode
//! 0600 or stricter, and belong to root or to the server's user. `powderkeg key FILE` makes such a file.
//!
//! If no file is named, the server looks into `$CREDENTIALS_DIRECTORY` for one with the setting's name. systemd makes that folder for
//! `LoadCredential=key-file:/etc/powderkeg/match.key`. In a container, mount a secret as a folder and set the variable to it. Such a
//! folder keeps others out by itself, so its files may belong to root, and their group may read them.
//!
//! The files that the server must find again lie beside the key file: `KEYFILE.lineages` (which tickets are out of date), `KEYFILE.bans`,
//! `KEYFILE.admin`. `--state DIR` moves it; with a credential it is `$STATE_DIRECTORY`, which systemd makes for `StateDirectory=`.
//!
//! # Another key, without a restart
//!
//! Two keys can be alive: the new one makes tickets, both let in.
//!
//! ```sh
//! mv match.key match.key.old          # its tickets stay good: --old-key-file is KEYFILE.old if that is there
//! powderkeg key match.key             # tickets that you make from now on
//! kill -HUP $(pidof powderkeg)        # the log says "keys reloaded", and which are alive
//! # later, when the last ticket of the old key has expired (`powderkeg ticket` makes them for a day)
//! rm match.key.old && kill -HUP $(pidof powderkeg)
//! ```
//!
//! Nobody is put out by any of this. Who plays goes on, whichever key let it in, and is handed tickets of the new key to return
//! with, within a minute. Bans and tickets that are out of date hold for both keys.
//!
//! If a key was stolen, make a new one, do not keep the old one as `match.key.old`, and send SIGHUP: no ticket of the old key
//! lets anybody in from then on, those to return with included.
//!
//! SIGHUP also reads bans again: whoever was banned by another server that has the same file is put out. It reads the admin
//! port's token again. Other settings hold from the next start on. What cannot be read changes nothing, and the log says why.
//!
//! A terminal that is closed sends SIGHUP too. So a server that was started by hand goes on when its window is closed, and says so
//! at its start: Ctrl-C or SIGTERM ends it.
