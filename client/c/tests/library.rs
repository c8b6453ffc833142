//! A game's library as a C program sees it: compiled programs that play with it, and calls of its functions from here.

#![expect(
    unsafe_code,
    clippy::disallowed_methods,
    reason = "calls C functions; real servers take real time"
)]
#![allow(unreachable_pub, reason = "the example's modules")]

use std::ffi::{CStr, CString, c_char};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::{null, null_mut};
use std::thread;
use std::time::{Duration, Instant};

use pucks::rules::{LEFT, Picture, Pucks, RIGHT};
use pucks::{Cue, Hud, Pad, Pose, PucksForC};
use serde::{Deserialize, Serialize};
use twinstep_c::{CGame, Unused};
use twinstep_client::{Session, SessionConfig};
use twinstep_core::prelude::*;
use twinstep_host::{Running, Server};
use twinstep_local::Local;

#[path = "../examples/pucks/lib.rs"]
mod pucks;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Entity {
    key: u64,
    is_local: u32,
    pose: Pose,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CueEvent {
    id: u64,
    kind: u32,
    cue: Cue,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct GameEvent {
    kind: u32,
    seat: u32,
    number: u32,
}

const OVER: i32 = 0;
const PLAYING: i32 = 2;

/// The functions of a library, as its header declares them.
macro_rules! functions {
    ($name:ident, $prefix:literal, $command:ty) => {
        #[allow(dead_code, reason = "no test needs all of both libraries")]
        mod $name {
            use super::*;

            unsafe extern "C" {
                #[link_name = concat!($prefix, "_join")]
                pub fn join(abi: u32, ticket: *const c_char) -> u64;
                #[link_name = concat!($prefix, "_alone")]
                pub safe fn alone(abi: u32, seats: u32) -> u64;
                #[link_name = concat!($prefix, "_advance")]
                pub fn advance(at: u64, now_s: f64, pads: *const Pad, seats: u32) -> i32;
                #[link_name = concat!($prefix, "_send")]
                pub fn send(at: u64, seat: u32, command: *const $command) -> i64;
                #[link_name = concat!($prefix, "_shown")]
                pub fn shown(at: u64, entities: *mut Entity, room: usize) -> usize;
                #[link_name = concat!($prefix, "_get_hud")]
                pub fn get_hud(at: u64, hud: *mut Hud) -> i32;
                #[link_name = concat!($prefix, "_poll_cue")]
                pub fn poll_cue(at: u64, cue: *mut CueEvent) -> i32;
                #[link_name = concat!($prefix, "_poll_event")]
                pub fn poll_event(
                    at: u64,
                    event: *mut GameEvent,
                    text: *mut c_char,
                    room: usize,
                ) -> i32;
                #[link_name = concat!($prefix, "_why")]
                pub fn why(at: u64, text: *mut c_char, room: usize) -> usize;
                #[link_name = concat!($prefix, "_leave")]
                pub safe fn leave(at: u64);
                #[link_name = concat!($prefix, "_leave_all")]
                pub safe fn leave_all();
            }

            pub fn frame(at: u64, now_s: f64, pads: &[Pad]) -> i32 {
                // SAFETY: a list of this length.
                unsafe { advance(at, now_s, pads.as_ptr(), pads.len() as u32) }
            }

            pub fn sentence(at: u64) -> String {
                let mut text = [0x7f_u8; 1024];
                // SAFETY: space for this many bytes.
                let len = unsafe { why(at, text.as_mut_ptr().cast(), text.len()) };
                let text = CStr::from_bytes_until_nul(&text).expect("it ends with 0");
                let text = text.to_str().expect("UTF-8");
                assert_eq!(text.len(), len);
                text.to_owned()
            }
        }
    };
}

functions!(c, "pucks", pucks::Command);
functions!(faulty, "faulty", pucks::Command);

fn abi(header: &str) -> u32 {
    let line = header.lines().find(|line| line.contains("_ABI 0x"));
    let number = line.and_then(|line| line.split("0x").nth(1));
    let number = number.expect("a number").trim_end_matches('u');
    u32::from_str_radix(number, 16).expect("a number")
}

fn join(ticket: &str) -> u64 {
    let ticket = CString::new(ticket).expect("no 0");
    // SAFETY: a 0-terminated string.
    unsafe { c::join(abi(&pucks::header()), ticket.as_ptr()) }
}

fn alone(seats: u32) -> u64 {
    c::alone(abi(&pucks::header()), seats)
}

fn shown(at: u64) -> Vec<Entity> {
    let mut entities = [Entity::default(); 8];
    // SAFETY: space for this many.
    let count = unsafe { c::shown(at, entities.as_mut_ptr(), entities.len()) };
    entities[..count].to_vec()
}

fn next_event(at: u64) -> Option<(GameEvent, String)> {
    let (mut event, mut text) = (GameEvent::default(), [0_u8; 1024]);
    // SAFETY: space for an event, and for this many bytes.
    let is = unsafe { c::poll_event(at, &raw mut event, text.as_mut_ptr().cast(), text.len()) };
    let text = CStr::from_bytes_until_nul(&text).expect("it ends with 0");
    (is == 1).then(|| (event, text.to_str().expect("UTF-8").to_owned()))
}

fn serve() -> Running<Pucks> {
    let server = Server::action(Pucks::default(), ()).players(4);
    server.listen("127.0.0.1:0").expect("a free port")
}

// ---- Programs.

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the example's library, as it is now. Returns its path.
fn library() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // With all packages, as the check builds it: other features would rebuild everything.
    cargo.args(["build", "--workspace", "--example", "pucks", "--quiet"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    // Removes the variables of this test's package. Build scripts that read them would count as changed, and this build
    // and the next one would rebuild all dependent crates.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    assert!(cargo.status().expect("cargo runs").success());
    let program = std::env::current_exe().expect("a path");
    let profile = program.ancestors().nth(2).expect("a profile's folder");
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = profile
        .join("examples")
        .join(format!("{prefix}pucks{suffix}"));
    assert!(library.exists(), "{library:?}");
    library
}

/// Reports that something was not tested. Unlike `eprintln`, it is printed even if the test passes.
fn skip(what: &str, missing: &str) {
    let line = format!("SKIPPED: {what}: {missing} is missing here\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("it prints");
}

fn is_there(program: &str) -> bool {
    // The tests' programs are for Unix.
    let output = Command::new(program).arg("--version").output();
    !cfg!(windows) && output.is_ok_and(|output| output.status.success())
}

/// Compiles a program against the library. Returns `None`, and prints a message, if there is no such compiler.
fn compile(compiler: &str, flags: &[&str], source: &str) -> Option<Vec<PathBuf>> {
    if !is_there(compiler) {
        skip(source, compiler);
        return None;
    }
    let library = library();
    let home = library.parent().expect("a folder");
    let name = source.rsplit('/').next().expect("a name").replace('.', "-");
    let program = home.join(format!("{name}-{compiler}"));
    let status = Command::new(compiler)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(folder().join("examples/pucks"))
        .arg(folder().join(source))
        .arg("-o")
        .arg(&program)
        .args(["-x", "none", "-L"])
        .arg(home)
        .arg(format!("-Wl,-rpath,{}", home.display()))
        .args(["-lpucks", "-ldl"])
        .status();
    assert!(
        status.expect("it runs").success(),
        "{compiler} {flags:?} {source}"
    );
    Some(vec![program])
}

fn compile_csharp() -> Option<Vec<PathBuf>> {
    let source = "examples/pucks/Pucks.cs";
    if let Some(missing) = ["mcs", "mono"].into_iter().find(|tool| !is_there(tool)) {
        skip(source, missing);
        return None;
    }
    let program = library().with_file_name("Pucks.exe");
    let status = Command::new("mcs")
        .arg("-warnaserror")
        .arg(format!("-out:{}", program.display()))
        .arg(folder().join(source))
        .status();
    assert!(status.expect("it runs").success(), "mcs {source}");
    Some(vec!["mono".into(), program])
}

const C: [&str; 3] = ["-std=c99", "-x", "c"];
const CPP: [&str; 3] = ["-std=c++11", "-x", "c++"];

fn start(program: &[PathBuf], args: &[&str]) -> Child {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).args(args);
    command.stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Waits for a program. Returns whether it succeeded, and its output.
fn end(program: Child) -> (bool, String) {
    let output = program.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    println!("{text}");
    (output.status.success(), text)
}

fn cues(text: &str) -> Vec<u32> {
    let numbers = text.split("cues ").nth(1).expect("it says its cues");
    let numbers = numbers.split([' ', ',']).take(3);
    numbers.map(|n| n.parse().expect("a number")).collect()
}

#[test]
fn programs_in_c_cpp_and_csharp_play_on_a_real_server() {
    let server = serve();
    let main = "examples/pucks/main.c";
    let compiled = [
        compile("cc", &C, main),
        compile("c++", &CPP, main),
        compile_csharp(),
    ];
    let programs: Vec<_> = compiled.into_iter().flatten().collect();
    let playing: Vec<_> = programs
        .iter()
        .zip(["anna", "bert", "cleo"])
        .map(|(program, name)| {
            let ticket = server.ticket(name).expect("a ticket").to_line();
            start(program, &["5", &ticket])
        })
        .collect();
    let many = playing.len();
    for program in playing {
        let (is_good, text) = end(program);
        assert!(is_good && text.contains("state 2,"), "{text}");
        assert!(
            text.contains("event 1: joined the match with 1 player(s)\n"),
            "{text}"
        );
        assert!(
            text.contains("jumped 1\n") && !text.contains("refused"),
            "{text}"
        );
        let [started, confirmed, cancelled] = cues(&text)[..] else {
            panic!("{text}");
        };
        let open = started - confirmed - cancelled;
        assert!(started > 3 && confirmed > 3 && open <= 2, "{text}");
        // The other programs may have come later and left earlier.
        let pucks = text.matches("\npuck ").count();
        assert!((1..=many).contains(&pucks), "{text}");
        assert_eq!(text.matches(" local 1 ").count(), 1, "{text}");
    }
    assert_eq!(
        server.take_reports().expect("it runs").len(),
        0,
        "no desync"
    );
    server.shutdown();

    for program in &programs {
        let (is_good, text) = end(start(program, &["2"]));
        assert!(
            is_good && text.contains("state 2,") && text.contains("local 1"),
            "{text}"
        );
        let (is_good, text) = end(start(program, &["2", "anna.ticket"]));
        assert!(!is_good && text.contains("over: "), "{text}");
    }
}

#[test]
fn a_program_that_loads_and_unloads_the_library_survives() {
    let server = serve();
    let Some(program) = compile("cc", &C, "tests/reload.c") else {
        return;
    };
    let ticket = server.ticket("anna").expect("a ticket").to_line();
    let library = library();
    let (is_good, text) = end(start(
        &program,
        &[library.to_str().expect("UTF-8"), &ticket],
    ));
    assert!(is_good && text.contains("round 2: states 2 2"), "{text}");
    server.shutdown();
}

#[test]
fn the_header_is_the_librarys() {
    let path = folder().join("examples/pucks/pucks.h");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    if before != pucks::header() {
        std::fs::write(&path, pucks::header()).expect("a file");
        panic!("{path:?} was out of date, and is renewed");
    }
    // The same number, written there by hand.
    let csharp = std::fs::read_to_string(path.with_file_name("Pucks.cs")).expect("a file");
    let number = format!("Abi = {:#010x};", abi(&before));
    assert!(csharp.contains(&number), "Pucks.cs must say {number}");
}

// ---- The functions.

#[derive(Clone, Default, Serialize, Deserialize)]
struct NewerPucks(Pucks);

impl Simulation for NewerPucks {
    const NAME: &'static str = "pucks";
    const VERSION: u32 = 2;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct OtherGame;

impl Simulation for OtherGame {
    const NAME: &'static str = "other";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

#[test]
fn a_match_that_cannot_start_ends_with_a_reason() {
    let gone = serve();
    let to_nobody = gone.ticket("anna").expect("a ticket").to_line();
    gone.shutdown();
    let newer = Server::action(NewerPucks::default(), ()).listen("127.0.0.1:0");
    let newer = newer.expect("a free port");
    let other = Server::action(OtherGame, ()).listen("127.0.0.1:0");
    let other = other.expect("a free port");
    let ticket_of_other = other.ticket("anna").expect("a ticket").to_line();
    let abi = abi(&pucks::header());
    let cut = c"\xc3";
    // SAFETY: texts that end with 0, or null.
    let (nothing, no_text, another) = unsafe {
        (
            c::join(abi, null()),
            c::join(abi, cut.as_ptr()),
            c::join(abi + 1, c"".as_ptr()),
        )
    };
    for (at, expected) in [
        (nothing, "NULL"),
        (no_text, "UTF-8"),
        (another, "header of another build"),
        (join("no ticket"), "ticket"),
        (join(&ticket_of_other), "other"),
        (join(&to_nobody), "no answer: "),
        (
            join(&newer.ticket("anna").expect("a ticket").to_line()),
            "version",
        ),
        (alone(0), "seats"),
        (alone(5), "seats"),
        (0, "no such match"),
        (77_777, "no such match"),
    ] {
        let began = Instant::now();
        while c::frame(at, began.elapsed().as_secs_f64(), &[Pad { held: 1 }]) != OVER {
            assert!(began.elapsed() < Duration::from_secs(20), "{expected}");
            thread::sleep(Duration::from_millis(8));
        }
        println!("{}", c::sentence(at));
        assert!(
            c::sentence(at).contains(expected),
            "{expected}: {}",
            c::sentence(at)
        );
        assert_eq!(shown(at).len(), 0);
        assert_eq!(next_event(at), None);
        // SAFETY: space for each, or null.
        unsafe {
            assert_eq!(c::get_hud(at, null_mut()), 0);
            assert_eq!(c::poll_cue(at, null_mut()), 0);
            assert_eq!(c::send(at, 0, &pucks::Command::default()), -1);
        }
        assert!(c::sentence(at).contains(expected), "the reason stays");
        c::leave(at);
        c::leave(at);
        assert!(c::sentence(at).contains("no such match"));
    }
    newer.shutdown();
    other.shutdown();
}

#[test]
fn a_lone_match_uses_the_given_time_and_keeps_a_tap_between_two_ticks() {
    for frame_ms in [1, 5, 16] {
        let at = alone(1);
        let mut now_ms = 0;
        let mut pass = |ms: u32, pad: Pad| {
            for _ in 0..ms / frame_ms {
                now_ms += frame_ms;
                assert_eq!(c::frame(at, f64::from(now_ms) / 1000.0, &[pad]), PLAYING);
            }
        };
        pass(96, Pad::default());
        let [puck] = shown(at)[..] else { panic!() };
        assert_eq!((puck.is_local, puck.pose.x, puck.pose.y), (1, 0.0, 0.0));
        // A tap of one frame.
        pass(frame_ms, Pad { held: RIGHT });
        pass(480, Pad::default());
        let x = shown(at)[0].pose.x;
        // A tick's acceleration, until friction has used it up.
        assert!((0.05..0.075).contains(&x), "{x} m at {frame_ms} ms a frame");
        // A time that stands still, is not a finite number, or goes back.
        for now_s in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300] {
            assert_eq!(c::frame(at, now_s, &[Pad { held: LEFT }]), PLAYING);
        }
        assert_eq!(shown(at)[0].pose.x, x);
        pass(480, Pad { held: LEFT });
        assert!(shown(at)[0].pose.x < -0.1);
        c::leave(at);
    }
}

#[test]
fn a_pad_or_command_that_does_not_decode_is_refused_by_name() {
    let at = alone(2);
    assert_eq!(c::frame(at, 0.0, &[]), PLAYING);
    let (joined, text) = next_event(at).expect("it joined");
    assert_eq!((joined.kind, joined.number), (1, 2), "{text}");
    assert_eq!(c::sentence(at), "");

    let mut now_s = 0.0;
    for (held, expected) in [
        (16, Some("held is 16")),
        (3, None),
        (255, Some("held is 255")),
    ] {
        for _ in 0..9 {
            now_s += 0.016;
            let pads = [Pad { held: 1 }, Pad { held }];
            assert_eq!(c::frame(at, now_s, &pads), PLAYING);
        }
        let event = next_event(at);
        assert_eq!(event.is_some(), expected.is_some(), "{event:?}");
        if let (Some((event, text)), Some(expected)) = (event, expected) {
            assert_eq!((event.kind, event.seat), (3, 1));
            assert_eq!(
                text,
                format!("the pad of seat 1 is refused: {expected}, but at most 15")
            );
            assert_eq!(c::sentence(at), text);
        }
        assert_eq!(next_event(at), None, "once");
    }

    let jump = |kind, x| pucks::Command {
        kind,
        at_mm: [x, 0],
    };
    for (seat, command, expected) in [
        (
            0,
            jump(9, 0),
            "the command of seat 0 is refused: kind 9 is no command",
        ),
        (
            1,
            jump(1, 2_001),
            "the command of seat 1 is refused: at_mm is [2001, 0], outside of the table",
        ),
        (
            2,
            jump(1, 0),
            "the command of seat 2 is refused: there is no such seat in this session",
        ),
    ] {
        // SAFETY: a command.
        assert_eq!(unsafe { c::send(at, seat, &raw const command) }, -1);
        assert_eq!(c::sentence(at), expected);
    }
    // SAFETY: null is allowed.
    assert_eq!(unsafe { c::send(at, 0, null()) }, -1);
    assert!(c::sentence(at).contains("NULL"));
    // SAFETY: a command.
    assert_eq!(unsafe { c::send(at, 1, &jump(1, 1_500)) }, 0);
    for _ in 0..9 {
        now_s += 0.016;
        c::frame(at, now_s, &[]);
    }
    assert!((1.4..1.6).contains(&shown(at)[1].pose.x), "{:?}", shown(at));
    c::leave(at);
}

#[test]
fn null_is_allowed_everywhere_and_a_short_buffer_is_not_exceeded() {
    let at = alone(2);
    // SAFETY: null, or the stated space.
    unsafe {
        for now_s in [0.0, 0.5, 1.0] {
            assert_eq!(c::advance(at, now_s, null(), 4), PLAYING);
        }
        assert_eq!(c::shown(at, null_mut(), 9), 2);
        let mut one = [Entity {
            key: 99,
            ..Entity::default()
        }; 2];
        assert_eq!(c::shown(at, one.as_mut_ptr(), 1), 2);
        assert_eq!((one[0].key, one[1].key), (0, 99));
        assert_eq!(c::get_hud(at, null_mut()), 1);
        let mut text = [0x7f_u8; 4];
        assert_eq!(
            c::poll_event(at, null_mut(), text.as_mut_ptr().cast(), 3),
            1
        );
        assert_eq!(text, *b"jo\0\x7f");
        assert_eq!(c::poll_event(at, null_mut(), null_mut(), 0), 0);
        assert_eq!(c::poll_cue(at, null_mut()), 0);
        assert_eq!(c::why(99, null_mut(), 9), c::sentence(99).len());
    }
    c::leave(at);
}

#[test]
fn threads_may_call_at_once_and_a_match_left_meanwhile_is_over() {
    let at = alone(1);
    let elsewhere = alone(1);
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut frames = 0.0;
                while c::frame(at, frames, &[Pad { held: seed }]) == PLAYING {
                    frames += 0.004;
                    let mut hud = Hud::default();
                    // SAFETY: space for each.
                    unsafe { c::get_hud(at, &raw mut hud) };
                    assert!(shown(at).len() <= 1);
                    next_event(at);
                }
            });
        }
        thread::sleep(Duration::from_millis(200));
        c::leave(at);
    });
    assert!(c::sentence(at).contains("no such match"));
    assert_eq!(c::frame(elsewhere, 0.0, &[]), PLAYING);
    c::leave(elsewhere);
}

struct Faulty;

impl CGame for Faulty {
    type Sim = Pucks;
    type Show = Picture;
    type Pad = Pad;
    type Command = pucks::Command;
    type Pose = Pose;
    type Cue = Cue;
    type Hud = Unused;

    fn config() -> SessionConfig<Pucks, Picture> {
        PucksForC::config()
    }

    fn alone() -> Option<Local<Pucks>> {
        PucksForC::alone()
    }

    fn input(pad: &Pad) -> Result<u8, String> {
        assert!(pad.held < 16, "a panic in input");
        Ok(pad.held)
    }

    fn command(_: &pucks::Command) -> Result<pucks::rules::Jump, String> {
        panic!("a panic in command");
    }

    fn key(player: PlayerId) -> u64 {
        PucksForC::key(player)
    }

    fn pose(pose: [f32; 2]) -> Pose {
        assert!(pose[0] <= 0.0, "a panic in pose");
        PucksForC::pose(pose)
    }

    fn cue(_: &pucks::rules::Bump) -> Cue {
        panic!("a panic in cue");
    }

    fn hud(_: &Session<Pucks, Picture>) -> Option<Unused> {
        panic!("a panic in hud");
    }
}

mod of_faulty {
    use super::Faulty;

    twinstep_c::library!(Faulty, "faulty");
}

#[test]
fn a_panic_of_the_game_ends_only_its_match() {
    let begin = || faulty::alone(abi(&of_faulty::header()), 1);
    let spared = begin();
    for (named, act) in [
        (
            "input",
            (|at| faulty::frame(at, 0.1, &[Pad { held: 16 }])) as fn(u64) -> i32,
        ),
        ("command", |at| {
            // SAFETY: a command.
            unsafe { faulty::send(at, 0, &pucks::Command::default()) as i32 }
        }),
        ("pose", |at| {
            for frame in 0..60 {
                faulty::frame(at, f64::from(frame) * 0.016, &[Pad { held: RIGHT }]);
            }
            // SAFETY: no space is stated.
            unsafe { faulty::shown(at, null_mut(), 0) as i32 }
        }),
        ("cue", |at| {
            for frame in 0..120 {
                faulty::frame(at, f64::from(frame) * 0.016, &[Pad { held: LEFT }]);
            }
            // SAFETY: null is allowed.
            unsafe { faulty::poll_cue(at, null_mut()) }
        }),
        ("hud", |at| {
            // SAFETY: null is allowed.
            unsafe { faulty::get_hud(at, null_mut()) }
        }),
    ] {
        let at = begin();
        assert_eq!(faulty::frame(at, 0.0, &[]), PLAYING);
        let returned = act(at);
        assert!(returned <= 0, "{named}: {returned}");
        assert_eq!(faulty::frame(at, 9.0, &[]), OVER, "{named}");
        let why = faulty::sentence(at);
        assert_eq!(why, format!("the game panicked: a panic in {named}"));
        faulty::leave(at);
    }
    assert_eq!(faulty::frame(spared, 0.0, &[]), PLAYING);
    faulty::leave_all();
    assert_eq!(faulty::frame(spared, 0.0, &[]), OVER);
}
