//! The flags of each subcommand.

use std::net::SocketAddr;
use std::path::PathBuf;
use twinstep_udp::{MatchId, ServerAddress, WebAddress};

use clap::{Args, ValueEnum};
use twinstep_ops::operator::{dialled, listened};
use twinstep_protocol::names::{NAME_BYTES_MAX, NAME_CHARS_MAX, Name};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_protocol::text::is_plain;

use crate::failure::Failure;
use crate::policies::PolicyArgs;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ViewArgs {
    /// Draw on the terminal, even if there is a display
    #[arg(long, conflicts_with_all = ["windowed", "fullscreen"])]
    pub(crate) terminal: bool,
    /// Open a window of this size [default: 1280x720]
    #[arg(long, value_name = "WxH", conflicts_with = "fullscreen")]
    pub(crate) windowed: Option<WindowSize>,
    /// Use the whole screen
    #[arg(long)]
    pub(crate) fullscreen: bool,
    /// Play no sound
    #[arg(long)]
    pub(crate) mute: bool,
}

impl ViewArgs {
    pub(crate) fn asks_for_window(&self) -> bool {
        self.windowed.is_some() || self.fullscreen
    }
}

/// The size of a window in pixels, such as `1280x720`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSize {
    pub(crate) width: u16,
    pub(crate) height: u16,
}

/// The smallest window in which all text fits, in pixels.
const WINDOW_MIN: WindowSize = WindowSize {
    width: 640,
    height: 360,
};
const WINDOW_PIXELS_MAX: u16 = 8_192;

impl std::str::FromStr for WindowSize {
    type Err = String;

    fn from_str(text: &str) -> Result<WindowSize, String> {
        let pixels = |text: &str, min: u16| {
            let number = text.parse().ok();
            number.filter(|pixels| (min..=WINDOW_PIXELS_MAX).contains(pixels))
        };
        let size = text.split_once('x');
        size.and_then(|(width, height)| {
            Some(WindowSize {
                width: pixels(width, WINDOW_MIN.width)?,
                height: pixels(height, WINDOW_MIN.height)?,
            })
        })
        .ok_or_else(|| {
            format!(
                "expected width and height in pixels, from {}x{} to {WINDOW_PIXELS_MAX}x{WINDOW_PIXELS_MAX}, such as \
                 1280x720",
                WINDOW_MIN.width, WINDOW_MIN.height
            )
        })
    }
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NameArgs {
    /// The name that others see, up to 16 characters; give it once for each player at this screen
    #[arg(long = "name", value_name = "NAME", value_parser = name)]
    pub(crate) names: Vec<Name>,
}

fn name(text: &str) -> Result<Name, String> {
    let name = Name::new(text);
    if name.is_empty() || !is_plain(text) {
        return Err("expected a name of visible characters".to_owned());
    }
    // `Name` silently cuts what is too long. A player should rather choose a shorter name.
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.join(" ") != name.as_str() {
        return Err(format!(
            "expected at most {NAME_CHARS_MAX} characters, {NAME_BYTES_MAX} bytes and two combining marks on a letter"
        ));
    }
    Ok(name)
}

pub(crate) fn link(text: &str) -> Result<LinkProfile, Failure> {
    text.parse().map_err(|error| Failure::Flag {
        flag: "link",
        reason: format!("{error}"),
    })
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Players at this screen, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) seats: u8,
    /// Simulated network: perfect, lan, wan, bad, awful, or settings such as rtt=120,jitter=20,loss=5
    #[arg(long, default_value = "wan")]
    pub(crate) link: String,
    /// Seconds to play if there is neither a display nor a terminal
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Seed of the match, the bots and the network
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Play an endless arena with this many enemies instead of the campaign
    #[arg(long)]
    pub(crate) enemies: Option<u16>,
    /// Bots that play along, 0 to 7
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) bots: u8,
    /// Record the predictions and the picture of this screen to this new file, for `powderkeg inspect`
    #[arg(long, value_name = "FILE")]
    pub(crate) tape: Option<PathBuf>,
    /// Let others join this match: the address to listen on, such as 0.0.0.0:7777
    #[arg(long, value_name = "ADDR", value_parser = listened, requires = "key_file")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address that others dial, if different from --listen
    #[arg(long, value_name = "ADDR", value_parser = dialled, requires = "listen")]
    pub(crate) public: Option<ServerAddress>,
    /// The key file for tickets of other players: `powderkeg key` makes it, `powderkeg ticket` makes tickets with it
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) key_file: Option<PathBuf>,
    /// When this screen has left the match, keep serving until all players have left
    #[arg(long, requires = "listen")]
    pub(crate) stay: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HostArgs {
    /// The UDP address to listen on
    #[arg(long, value_name = "ADDR", value_parser = listened, default_value = "0.0.0.0:7777")]
    pub(crate) listen: SocketAddr,
    /// The address that players dial [default: the --listen address; for 0.0.0.0 or :: up to three
    /// addresses of this machine, and 127.0.0.1]
    #[arg(long, value_name = "ADDR", value_parser = dialled)]
    pub(crate) public: Option<ServerAddress>,
    /// Accept browsers too, on this UDP address, such as 0.0.0.0:7778; needs a build with --features web
    #[arg(long, value_name = "ADDR", value_parser = listened)]
    pub(crate) web: Option<SocketAddr>,
    /// The https address of the game's page; with it, each invite is printed as a link, too
    #[arg(long, value_name = "URL", requires = "web", value_parser = page)]
    pub(crate) page: Option<String>,
    /// Maximum number of players, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) players: u8,
    /// Players per invite, on one screen: 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) seats: u8,
    /// The directory for the invites, one file for each screen
    #[arg(long, value_name = "DIR", default_value = "invites")]
    pub(crate) invites: PathBuf,
    /// The key file for tickets [default: a new key for this match, which is not saved]
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The directory for the match's journal, which `powderkeg replay` plays
    #[arg(long, value_name = "DIR")]
    pub(crate) journal: Option<PathBuf>,
    /// Start from a saved game, created by `admin save-game` or by typing `save FILE` in a running host. Each identity
    /// (player-1, ...) gets its seat again
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Play an endless arena with this many enemies instead of the campaign; players must join with the same number
    #[arg(long, value_name = "N")]
    pub(crate) enemies: Option<u16>,
    /// Seed of the match [default: taken from the clock]
    #[arg(long, value_name = "K")]
    pub(crate) seed: Option<u64>,
}

/// The address of a page. A browser has WebTransport only in pages loaded over https, or from its own machine.
fn page(text: &str) -> Result<String, String> {
    let is_secure = ["https://", "http://127.0.0.1", "http://localhost"]
        .iter()
        .any(|start| text.starts_with(start));
    match is_secure && !text.contains('#') {
        true => Ok(text.to_owned()),
        false => Err(
            "expected an https URL without #, such as https://example.org/powderkeg/ (http only for 127.0.0.1 and localhost)"
                .to_owned(),
        ),
    }
}

// A server rejects a ticket that names none of its public addresses, so an address that can be dialled is not enough.
fn ticket_address(text: &str) -> Result<ServerAddress, String> {
    let hint = "the server must have the ticket's address as --public (`public=` in its log line \"listening\")";
    dialled(text).map_err(|error| format!("{error}; {hint}"))
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TicketArgs {
    /// The server's key file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// The server's addresses, separated by commas; at least one must be in `public=` of the server's log line "listening"
    #[arg(long, value_name = "ADDR", value_parser = ticket_address, value_delimiter = ',', required = true)]
    pub(crate) server: Vec<ServerAddress>,
    /// The address for browsers, and its hashes: the value of `public=` in the server's log line "accepting browsers"
    #[arg(long, value_name = "ADDR#HASH")]
    pub(crate) web: Option<WebAddress>,
    /// The https address of the game's page: prints a link instead of the ticket
    #[arg(long, value_name = "URL", requires = "web", conflicts_with = "out", value_parser = page)]
    pub(crate) page: Option<String>,
    /// The player's identity; the same name gets the same seat again
    #[arg(long, value_name = "NAME")]
    pub(crate) player: String,
    /// Players at that screen, 1 to 4
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    pub(crate) seats: u8,
    /// The match to join, if the server has several
    #[arg(long = "match", value_name = "ID", default_value_t = MatchId(1))]
    pub(crate) match_id: MatchId,
    /// Create a spectator ticket
    #[arg(long, conflicts_with = "seats")]
    pub(crate) spectate: bool,
    /// Write the ticket to this file, which only its owner may read, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// A file with an invite or ticket, or - for standard input. Newer tickets are saved as FILE.rejoin, which is tried
    /// first the next time (not with -)
    #[arg(value_name = "FILE")]
    pub(crate) ticket: PathBuf,
    /// Let a bot play, without a display
    #[arg(long, conflicts_with_all = ["terminal", "windowed", "fullscreen"])]
    pub(crate) bot: bool,
    /// The server plays an arena with this many enemies instead of the campaign
    #[arg(long)]
    pub(crate) enemies: Option<u16>,
    /// Record the predictions and the picture of this client to this new file, for `powderkeg inspect`
    #[arg(long, value_name = "FILE")]
    pub(crate) tape: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct InspectArgs {
    /// The journal of the match
    pub(crate) journal: PathBuf,
    /// Recordings of its clients, made with `join --tape` or `play --tape`
    pub(crate) tapes: Vec<PathBuf>,
    /// The HTML file to create; any browser opens it
    #[arg(long, value_name = "FILE", default_value = "match.html")]
    pub(crate) out: PathBuf,
    /// The first tick of the page
    #[arg(long, value_name = "TICK", default_value_t = 0)]
    pub(crate) from: u32,
    /// The end of the page: the first tick not shown [default: the end of the journal]
    #[arg(long, value_name = "TICK")]
    pub(crate) to: Option<u32>,
    /// The match was in an arena with this many enemies instead of the campaign
    #[arg(long, value_name = "N")]
    pub(crate) enemies: Option<u16>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    /// The journal to play
    pub(crate) file: PathBuf,
    /// Play it to its end, and compare every digest and every world with the recorded ones; exits with 1 if one
    /// differs or the file is damaged
    #[arg(long, conflicts_with_all = ["terminal", "windowed", "fullscreen"])]
    pub(crate) verify: bool,
    /// Only print a summary; this is the default if the output is not a terminal
    #[arg(long, conflicts_with_all = ["verify", "terminal", "windowed", "fullscreen"])]
    pub(crate) summary: bool,
    /// The match was in an arena with this many enemies instead of the campaign
    #[arg(long, value_name = "N")]
    pub(crate) enemies: Option<u16>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct BotsArgs {
    /// Number of bots, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) players: u8,
    /// Seconds to play
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Simulated network: perfect, lan, wan, bad, awful, or settings such as rtt=120,jitter=20,loss=5
    #[arg(long, value_name = "LINK", default_value = "wan")]
    pub(crate) link: String,
    /// Seed of the match, the bots and the network
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Play an endless arena with this many enemies instead of the campaign
    #[arg(long, value_name = "N")]
    pub(crate) enemies: Option<u16>,
    /// The bots' stick movements
    #[arg(long, value_enum, default_value = "keys")]
    pub(crate) sticks: SticksArg,
    /// The directory for the match's journal
    #[arg(long, value_name = "DIR")]
    pub(crate) journal: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// The format of the report
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) report: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SticksArg {
    /// Hold one of eight directions for a while, like keys; the aim changes every tick, like a mouse
    Keys,
    /// Both sticks change every tick, which is the hardest to predict
    Analog,
    /// Both sticks change every tenth tick
    Sticky,
    /// Neutral, no fire, no orders
    Still,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object on standard output
    Json,
    /// A table
    Text,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TourArgs {
    /// Write the tour as an animated PNG to this file, without a display, instead of showing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of the match, the bots and the network
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Use the whole screen
    #[arg(long, conflicts_with = "out")]
    pub(crate) fullscreen: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShotsArgs {
    /// The directory for the pictures
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Seed of the match, the bots and the network
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(crate) seed: u64,
}
