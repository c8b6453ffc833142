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
//! A flag wins over the environment, that over the file, and that over the default. A name that is not known is an error that
//! names the nearest one, in the file and among variables that begin with `TWINSTEP_`. An error about a value says where it stands,
//! what was expected and what came; all errors are listed at once. Paths are seen from the folder in which the server was started.
//!
//! Variables that begin with `TWINSTEP_` and are near no setting are a warning, and so are those that Kubernetes sets for a Service
//! that is called `twinstep` (`TWINSTEP_SERVICE_HOST`, `TWINSTEP_PORT_7777_UDP`): they stop no server. `enableServiceLinks: false` in
//! a pod's `spec`, as in `server/ops/agones/fleet.yml`, keeps them out.
//!
//! - `--check` does all that a start does before it takes an address: it reads settings, policies, secrets and journals, and tries to
//!   write into each folder. It binds nothing and leaves nothing behind. It exits with 0 or 2, so a unit can run it before a restart
//!   (`ExecStartPre`).
//! - `--print-config` prints all settings and where each comes from, as a file of settings. Secrets are not in it, only the names of
//!   their files.
//!
//! # The settings of every server
//!
//! | setting | what it means | range | if nothing is said |
//! |---|---|---|---|
//! | `config` | A TOML file with any of these settings; the environment and flags win over it | a file | - |
//! | `check` | Only look whether all settings and files will do: exits with 0 or 2 | true or false | - |
//! | `print-config` | Only print all settings, and where each comes from | true or false | - |
//! | `listen` | Where to listen, such as 0.0.0.0:7777 | ADDR | - |
//! | `public` | What players dial, if it is another address; auto: what the manager of the fleet says | ADDR\[,ADDR] | - |
//! | `max-players` | How many may play | 1 to 16 players | 8 |
//! | `key-file` | The key whose tickets are good | a file of mode 0600 | - |
//! | `old-key-file` | The key before: its tickets are still good | a file of mode 0600 | KEY-FILE.old, if it is there |
//! | `state` | Where it is kept which tickets are out of date, who is banned, and the admin port's token | a folder | beside the key file; for a credential, $STATE_DIRECTORY |
//! | `journal` | Where to keep the match's journal; the newest match there that was cut off goes on | a folder | - |
//! | `new-match` | Begin a new match, even if one was cut off | true or false | - |
//! | `durability` | What the journal is to survive | process, power | process |
//! | `on-journal-failure` | What becomes of the match when the journal cannot be written | end, go-on | end |
//! | `keep-days` | For how long the journal of a match that is over is kept | 0 to 36500 days | for ever |
//! | `keep-megabytes` | How much the journals of matches that are over may take; the oldest go first | 0 to 1000000000 MB | all that there is |
//! | `incidents` | Where incident files go | a folder | beside the journal |
//! | `spectators` | How many may watch; more than 16 need a delay | 0 to 512 spectators | 0 |
//! | `spectator-delay` | How many seconds behind the match they are: 0, or 3 to 15 | SECONDS | 0 |
//! | `drain` | For how long whoever plays may play on when the server is asked to end; nobody new is let in then | 0 to 86400 seconds | 0 |
//! | `lateness-limit` | From which lateness of ticks on (the 99th percentile of 5 s) players are spared what they miss least, then newcomers are refused | 1 to 1000 milliseconds | 20 |
//! | `memory-limit` | From how much memory on newcomers are refused | 1 to 1000000000 MB | 85 % of what the cgroup or the machine has |
//! | `disk-limit` | Below how much free disk for journals newcomers are refused | 0 to 1000000000 MB | 256 |
//! | `admin` | Where this machine's operators may ask, such as 127.0.0.1:7700, unix:/run/game/admin.sock, or both with a comma | ADDR\|unix:PATH | - |
//! | `admin-token-file` | The token of whoever may change something there; made if it is not there | a file of mode 0600 | in the folder of --state |
//! | `fleet` | Which manager of a fleet hears how this server is | none, agones | none |
//! | `matches` | Make matches when somebody with a ticket comes for them, up to so many at once, instead of one match | 1 to 1000 matches | - |
//! | `deserted-after` | When a match is over that nobody is in | 1 to 86400 seconds | 60 |
//! | `matches-per-second` | How many matches are made in a second; who comes too early is told to come back in a moment | 1 to 1000 matches a second | 20 |
//!
//! The last three are there where the game's server can have many matches ([`Operator::many`](twinstep_ops::operator::Operator::many)).
//!
//! A game adds its own ([`Operator::setting`](twinstep_ops::operator::Operator::setting)); `powderkeg serve --help` lists Powderkeg's.
//! [The module](twinstep_ops::operator) shows a whole server with settings in ten lines.
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
//! kill -HUP $(pidof powderkeg)        # the log says "keys changed", and which are alive
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
//! port's token again. It reads the file of settings again and says in the log which other settings changed: they hold from the
//! next start on. What cannot be read changes nothing, and the log says why.
//!
//! A terminal that is closed sends SIGHUP too. So a server that was started by hand goes on when its window is closed, and says so
//! at its start: Ctrl-C or SIGTERM ends it.
