//! F3: the state of the link, and the client's response to it, plotted over ten seconds.

use glam::vec2;
use powderkeg_game::PLAYER_RADIUS;

use super::picture::WindowPicture;
use super::ui::Align::{Left, Right};
use super::ui::Ui;
use crate::scene::NetSample;
use crate::scene::palette::{ACCENT, BAD, EDGE, FAINT, GOOD, INK, PANEL, Tint, WARN};
use crate::window::rect::Rect;

struct Plot {
    name: &'static str,
    unit: &'static str,
    /// The minimum value at the top of the axis; a larger sample raises it.
    top: f32,
    tint: Tint,
    value: fn(&NetSample) -> f32,
}

const PLOTS: [Plot; 6] = [
    plot_of("round trip", "ms", 100.0, ACCENT, |sample| sample.rtt_ms),
    plot_of("loss", "%", 10.0, BAD, |sample| sample.loss_percent),
    plot_of("lead", "ticks", 12.0, GOOD, |sample| sample.lead_ticks),
    plot_of("margin", "ticks", 6.0, YELLOW, |sample| {
        sample.margin_ticks.max(0.0)
    }),
    plot_of("re-simulated", "ticks/s", 120.0, WARN, |sample| {
        sample.resim_ticks
    }),
    plot_of("traffic", "KiB/s", 16.0, PINK, |sample| sample.kbytes),
];

const YELLOW: Tint = Tint::new(0xf0_e4_42);
const PINK: Tint = Tint::new(0xe3_8f_c0);

const fn plot_of(
    name: &'static str,
    unit: &'static str,
    top: f32,
    tint: Tint,
    value: fn(&NetSample) -> f32,
) -> Plot {
    Plot {
        name,
        unit,
        top,
        tint,
        value,
    }
}

// The height of the numbers alone, and with the plots.
const HEIGHTS: [f32; 2] = [232.0, 392.0];

// The possible places, best first: with plots on the right, with plots on the left, then without plots.
fn places(screen: Rect, scale: f32) -> [Rect; 4] {
    let mut inside = screen.shrunk(14.0 * scale);
    inside.cut_bottom(80.0 * scale);
    let [short, mut full] = HEIGHTS.map(|height| vec2(388.0, height) * scale);
    // Plots are shown only where the banner and the news fit above.
    if inside.size.y < full.y + 200.0 * scale {
        full = short;
    }
    [(full, true), (full, false), (short, true), (short, false)].map(|(size, is_right)| {
        let mut rows = inside;
        let mut row = rows.cut_bottom(size.y);
        match is_right {
            true => row.cut_right(size.x),
            false => row.cut_left(size.x),
        }
    })
}

// The place `at` if it hides none of the local players, otherwise the first place that does not. In a window without
// such a place, the netgraph is not drawn.
pub(crate) fn free_place(at: usize, screen: Rect, scale: f32, own: &[Rect]) -> usize {
    let places = places(screen, scale);
    let is_free = |n: &usize| own.iter().all(|own| !own.overlaps(&places[*n]));
    let mut all = std::iter::once(at.min(3)).chain(0..places.len());
    all.find(is_free).unwrap_or(places.len())
}

pub(super) fn place(picture: &WindowPicture<'_>, scale: f32) -> Option<Rect> {
    let is_shown = picture.screens.netgraph && picture.scene.stats.is_some();
    let places = places(picture.screen, scale);
    let place = places.get(picture.screens.netgraph_at);
    place.copied().filter(|_| is_shown)
}

pub(super) fn paint(ui: &mut Ui<'_>, picture: &WindowPicture<'_>) {
    let scene = picture.scene;
    let Some(stats) = scene.stats else { return };
    let scale = ui.scale;
    let Some(rect) = place(picture, scale) else {
        return;
    };
    ui.panel(rect);
    let mut inside = rect.shrunk(12.0 * scale);
    let mut head = inside.cut_top(18.0 * scale);
    let link = scene.link.as_deref().unwrap_or("a real link");
    let left = head.cut_left(head.size.x * 0.5);
    ui.small(left, Left, INK, &format!("NETGRAPH · {link}"));
    ui.small(head, Right, FAINT, "the last 10 s");
    inside.cut_top(4.0 * scale);
    let mut numbers = inside.cut_bottom(186.0 * scale);
    numbers.cut_top(6.0 * scale);
    if rect.size.y > HEIGHTS[0] * scale + 1.0 {
        let height = inside.size.y / 3.0;
        for pair in PLOTS.chunks(2) {
            let mut row = inside.cut_top(height);
            let half = (row.size.x - 22.0 * scale) * 0.5;
            for one in pair {
                let mut cell = row.cut_left(half);
                row.cut_left(22.0 * scale);
                cell.cut_bottom(5.0 * scale);
                plot(ui, one, &scene.plots, cell);
            }
        }
    }
    let (window, seen) = (&scene.window, &scene.window.picture);
    let radii = |off: f32| off / PLAYER_RADIUS;
    let ms = |ticks: f32| ticks * window.tick_ms;
    let (frames, vsync) = picture.frames;
    let rows = [
        [
            (
                "round trip, jitter",
                format!("{:.0} ± {:.0} ms", stats.rtt_ms, stats.jitter_ms),
            ),
            ("loss", scene.loss()),
        ],
        [
            (
                "margin, target",
                format!(
                    "{:.1} of {:.1}",
                    stats.margin_ticks_now, stats.margin_ticks_target
                ),
            ),
            ("key to server", format!("{:.0} ms", window.key_ms)),
        ],
        [
            ("rebuilds /s", format!("{:.1}", scene.rates.rebuilds)),
            ("re-simulated /s", scene.resimulated()),
        ],
        [
            (
                "others off p50, p95",
                format!(
                    "{:.2}, {:.2} r",
                    radii(seen.others_off_p50),
                    radii(seen.others_off_p95)
                ),
            ),
            (
                "own, things p95",
                format!(
                    "{:.2}, {:.2} r",
                    radii(seen.own_off_p95),
                    radii(seen.things_off_p95)
                ),
            ),
        ],
        [
            (
                "others' age p50, p95",
                format!(
                    "{:.0}, {:.0} ms",
                    ms(seen.age_ticks_p50),
                    ms(seen.age_ticks_p95)
                ),
            ),
            (
                "others' key shown p50",
                format!("{:.0} ms", ms(seen.key_ticks_p50)),
            ),
        ],
        [
            (
                "others: too fast, stuck",
                format!(
                    "{:.1}, {:.1} %",
                    seen.too_fast * 100.0,
                    seen.standing * 100.0
                ),
            ),
            ("jerk p99", format!("{:.2} r/tick", radii(seen.jerk_p99))),
        ],
        [
            (
                "stalled, held",
                format!("{:.0}, {:.0} ms", window.stall_ms, window.held_ms),
            ),
            (
                "filled, skipped",
                format!("{}, {} t", window.fills, window.skipped_ticks),
            ),
        ],
        [
            (
                "clock off by over 2 %",
                format!("{:.0} ms", window.clock_off_ms),
            ),
            (
                "cancelled cues",
                format!("{:.1} /min", window.cancelled_per_min),
            ),
        ],
        [
            ("up", format!("{:.1} KiB/s", scene.rates.bytes_up / 1_024.0)),
            (
                "down",
                format!("{:.1} KiB/s", scene.rates.bytes_down / 1_024.0),
            ),
        ],
        [
            ("frames /s", format!("{frames:.0}")),
            ("vsync", if vsync { "on" } else { "off" }.to_owned()),
        ],
    ];
    let line = numbers.size.y / rows.len() as f32;
    for row in rows {
        let mut cells = numbers.cut_top(line);
        let left = cells.cut_left((cells.size.x - 16.0 * scale) * 0.56);
        cells.cut_left(16.0 * scale);
        for (cell, (name, value)) in [left, cells].into_iter().zip(row) {
            ui.pair(cell, name, &value, INK);
        }
    }
}

fn plot(ui: &mut Ui<'_>, plot: &Plot, samples: &[NetSample], mut rect: Rect) {
    let scale = ui.scale;
    let mut label = rect.cut_top(14.0 * scale);
    let now = samples.last().map_or(0.0, plot.value);
    let value = label.cut_right(label.size.x * 0.5);
    ui.small(value, Right, plot.tint, &format!("{now:.0} {}", plot.unit));
    ui.small(label, Left, FAINT, plot.name);
    ui.batch.fill(rect, PANEL.alpha(0.9));
    ui.batch.fill(
        Rect::new(
            rect.at.x,
            rect.bottom() - scale.max(1.0),
            rect.size.x,
            scale.max(1.0),
        ),
        EDGE,
    );
    let highest = samples.iter().map(plot.value).fold(plot.top, f32::max);
    // Space for the ten seconds of the gauges, with the newest at the right.
    let slots = 90.0;
    let width = rect.size.x / slots;
    for (n, sample) in samples.iter().rev().take(slots as usize).enumerate() {
        let height = (plot.value)(sample) / highest * rect.size.y;
        let height = height.clamp(0.0, rect.size.y);
        let x = rect.right() - (n + 1) as f32 * width;
        let bar = Rect::new(x, rect.bottom() - height, width.max(1.0), height);
        ui.batch.fill(bar, plot.tint.alpha(0.40));
        let tip = Rect::new(
            x,
            bar.at.y,
            width.max(1.0),
            (1.5 * scale).min(rect.bottom() - bar.at.y),
        );
        ui.batch.fill(tip, plot.tint);
    }
}
