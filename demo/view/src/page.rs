//! Clocks, settings, files and gamepads of a browser's page. The script `demo/page/powderkeg.js` provides them through
//! the functions below.

#![expect(unsafe_code, reason = "names that the linker sees count as unsafe")]

use std::cell::Cell;
use std::ops::Sub;
use std::time::Duration;

use twinstep_client::SessionStats;
use twinstep_web::page::answer;

/// The maximum number of gamepads. `PAD_NUMBERS` values describe each: two sticks, and the buttons as bits.
const PADS: usize = 4;
const PAD_NUMBERS: usize = 5;

// Lengths count bytes, which the script finds with `twinstep_buffer`.
unsafe extern "C" {
    /// Milliseconds since the page was opened.
    safe fn powderkeg_now() -> f64;
    /// Milliseconds since 1970.
    safe fn powderkeg_date() -> f64;
    /// Shows a sentence, and stops drawing frames.
    safe fn powderkeg_end(len: usize);
    /// Downloads a file. Its name comes first, then its content.
    safe fn powderkeg_download(name: usize, len: usize);
    /// Stores the settings. Returns `false` if the browser refuses.
    safe fn powderkeg_keep(len: usize) -> bool;
    /// Writes the stored settings. Returns their length.
    safe fn powderkeg_kept(to: &mut [u8; 4_096]) -> usize;
    /// Writes the connected gamepads. Returns their number.
    safe fn powderkeg_pads(to: &mut [f32; PADS * PAD_NUMBERS]) -> usize;
}

thread_local! {
    static STATE: Cell<Option<PageState>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
pub(crate) struct PageState {
    pub(crate) stats: SessionStats,
    pub(crate) seat: Option<u8>,
    pub(crate) wave: u8,
    pub(crate) players: usize,
}

pub(crate) fn note(state: Option<PageState>) {
    STATE.set(state);
}

#[unsafe(no_mangle)]
extern "C" fn powderkeg_report() -> usize {
    let text = STATE.get().map_or_else(String::new, |state| {
        let PageState {
            stats,
            seat,
            wave,
            players,
        } = state;
        let seat = seat.map_or(-1, i32::from);
        format!(
            "{{\"seat\":{seat},\"wave\":{wave},\"players\":{players},\"tick\":{},\"heals\":{},\"stall_ms\":{:.0},\"rtt_ms\":{:.1}}}",
            stats.authority_tick, stats.heals, stats.stall_ms, stats.rtt_ms
        )
    });
    answer(text.as_bytes())
}

pub(crate) fn now() -> Duration {
    Duration::from_secs_f64(powderkeg_now() / 1e3)
}

#[must_use]
pub fn unix_now() -> Duration {
    Duration::from_secs_f64(powderkeg_date() / 1e3)
}

/// Replaces the standard library's type, which has no clock here.
#[derive(Clone, Copy, Debug)]
pub struct Instant(Duration);

#[must_use]
pub fn instant() -> Instant {
    Instant(now())
}

impl Instant {
    #[must_use]
    pub fn elapsed(self) -> Duration {
        instant() - self
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

pub(crate) fn end(sentence: &str) {
    powderkeg_end(answer(sentence.as_bytes()));
}

pub(crate) fn download(name: &str, bytes: &[u8]) {
    let len = answer(&[name.as_bytes(), bytes].concat());
    powderkeg_download(name.len(), len);
}

pub(crate) fn keep_settings(text: &str) -> bool {
    powderkeg_keep(answer(text.as_bytes()))
}

pub(crate) fn kept_settings() -> Option<String> {
    let mut text = [0; 4_096];
    let len = powderkeg_kept(&mut text);
    let text = String::from_utf8_lossy(text.get(..len)?);
    (len > 0).then(|| text.into_owned())
}

/// Passes each gamepad to `put`: its number, its sticks as x, y, x, y, and its buttons as the bits of a standard
/// gamepad.
pub(crate) fn gamepads(mut put: impl FnMut(usize, [f32; 4], u32)) {
    let mut numbers = [0.0; PADS * PAD_NUMBERS];
    let count = powderkeg_pads(&mut numbers);
    for (n, pad) in numbers.chunks_exact(PAD_NUMBERS).take(count).enumerate() {
        put(n, [pad[0], pad[1], pad[2], pad[3]], pad[4] as u32);
    }
}
