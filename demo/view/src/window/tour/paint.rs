//! Painting a tour: four panes with their keys, numbers and sentences, on a page of a fixed shape that fits the window.

use glam::{Vec2, vec2};
use powderkeg_game::{BARREL_RADIUS, PLAYER_RADIUS, ShowKey};

use super::animation::COLORS_MAX;
use super::frame::{
    AUTO, Body, FRAMES_PER_SECOND, FRIEND, KeyMark, LOCKSTEP, RAW, SMOOTHED, TourFrame,
};
use super::script::CHAPTERS;
use super::{HALF, KEY_LOST, Tour};
use crate::scene::Sprite;
use crate::scene::palette::{
    ACCENT, BAD, ColorMode, DIM, EDGE, FAINT, GOOD, INK, PANEL, Tint, WARN, WHITE,
};
use crate::window::atlas::{Atlas, Type};
use crate::window::batch::Batch;
use crate::window::paint::ui::{Align, Ui};
use crate::window::rect::Rect;
use crate::window::text;

// In pixels at scale 1.
pub(super) const PAGE: Vec2 = vec2(840.0, 640.0);
const STRIP: u32 = 4 * FRAMES_PER_SECOND;
const GAP: u32 = FRAMES_PER_SECOND / 4;
const TRAIL_EVERY: u32 = 3;

pub(super) const GROUND: Tint = Tint::new(0x12_18_20);
const OWN: Tint = Tint::new(0x56_b4_e9);
const THEIRS: Tint = Tint::new(0xf0_e4_42);
const KEG: Tint = Tint::new(0xb5_52_2a);
/// The colours of a page, and two for edges.
pub(super) const COLORS: [Tint; COLORS_MAX] = [
    GROUND,
    PANEL,
    OWN,
    THEIRS,
    WHITE,
    INK,
    FAINT,
    DIM,
    EDGE,
    GOOD,
    WARN,
    BAD,
    KEG,
    Tint::new(0x34_66_84),
    Tint::new(0x81_7e_31),
];

const LOOKS: [(&str, Tint); 4] = [
    ("plain lockstep", FAINT),
    ("raw prediction", BAD),
    ("smoothed", WARN),
    ("Twinstep: Auto", GOOD),
];

pub(super) fn scale_for(size: Vec2) -> f32 {
    let fits = (size / PAGE).min_element();
    ((fits * 4.0).floor() / 4.0).clamp(0.5, 3.0)
}

pub(super) fn paint(batch: &mut Batch, size: Vec2, tour: &Tour, note: &str) {
    batch.clear();
    let scale = batch.atlas.scale;
    let page = Rect::new(0.0, 0.0, size.x, size.y).middle_part(PAGE * scale);
    let Some(frame) = tour.shown() else {
        let mut ui = Ui::new(batch, page);
        ui.body(page, Align::Middle, FAINT, "the players join ..");
        return;
    };
    let mut rest = page.shrunk(6.0 * scale);
    let top = rest.cut_top(50.0 * scale);
    let foot = rest.cut_bottom(20.0 * scale);
    let gap = 8.0 * scale;
    let half = (rest.size - gap) * 0.5;
    let places = [0, 1, 2, 3].map(|at: usize| Rect {
        at: rest.at + (half + gap) * vec2((at % 2) as f32, (at / 2) as f32),
        size: half,
    });
    for at in [LOCKSTEP, RAW, SMOOTHED, AUTO] {
        pane(batch, places[at], tour, frame, at);
    }
    head(batch, top, tour, frame);
    let mut ui = Ui::new(batch, page);
    let seconds = frame.n / FRAMES_PER_SECOND;
    let words = format!("powderkeg tour --seed {} · {seconds} s · {note}", tour.seed);
    ui.small(foot, Align::Left, FAINT, &words);
}

fn head(batch: &mut Batch, mut rect: Rect, tour: &Tour, frame: &TourFrame) {
    let scale = batch.atlas.scale;
    let chapter = &CHAPTERS[frame.chapter];
    let mut ui = Ui::new(batch, rect);
    let mut top = rect.cut_top(28.0 * scale);
    let steps = top.cut_right(12.0 * scale * CHAPTERS.len() as f32);
    let width = 20.0 * scale + text::width(Type::Head, scale, chapter.name);
    ui.head(top.cut_left(width), Align::Left, ACCENT, chapter.name);
    ui.body(top, Align::Left, INK, chapter.words);
    for n in 0..CHAPTERS.len() {
        let at = steps.at + vec2(12.0 * n as f32 + 6.0, 14.0) * scale;
        let tint = if n == frame.chapter { ACCENT } else { EDGE };
        ui.batch
            .fill(Rect::around(at, Vec2::splat(4.0 * scale)), tint);
    }
    let mut x = rect.at.x;
    let words = [
        (OWN, "blue: you"),
        (THEIRS, "yellow: a friend"),
        (WHITE, "ring: where he really was then"),
    ];
    for (tint, words) in words {
        let at = vec2(x, rect.middle().y + 5.0 * scale);
        x += ui.batch.text(at, Type::Body, tint, words) + 18.0 * scale;
    }
    if frame.is_killed {
        ui.body(rect, Align::Right, BAD, "the server is dead");
    } else if frame.chapter + 1 == CHAPTERS.len() {
        let [compared, differed] = tour.compared;
        let words = format!("{compared} worlds compared, {differed} differed");
        ui.body(rect, Align::Right, GOOD, &words);
    } else {
        ui.body(
            rect,
            Align::Right,
            OWN,
            "letters: your keys, and when they show",
        );
    }
}

fn pane(batch: &mut Batch, mut rect: Rect, tour: &Tour, frame: &TourFrame, at: usize) {
    let scale = batch.atlas.scale;
    let (name, tint) = LOOKS[at];
    let title = rect.cut_top(22.0 * scale);
    let mut foot = rect.cut_bottom(46.0 * scale);
    let strip = rect.cut_bottom(38.0 * scale);
    arena(batch, rect, tour, frame, at);
    // Covers everything drawn outside of the arena.
    let mut ui = Ui::new(batch, rect);
    ui.batch.fill(title, PANEL);
    ui.batch.fill(strip, PANEL);
    ui.batch.fill(foot, GROUND);
    let mark = Rect::new(title.at.x, title.at.y, 5.0 * scale, title.size.y);
    ui.batch.fill(mark, tint);
    let place = title.at + vec2(12.0, 16.0) * scale;
    ui.batch.text(place, Type::Body, tint, name);
    keys(ui.batch, strip, tour, frame, at);
    let (_, words) = CHAPTERS[frame.chapter].captions[at];
    foot.cut_top(4.0 * scale);
    let number = foot.cut_left(104.0 * scale);
    let [value, ago] = &tour.captions[at];
    ui.head(number, Align::Left, tint, value);
    let lines = [foot.cut_top(20.0 * scale), foot];
    for (line, words) in lines.into_iter().zip(words.lines()) {
        ui.body(line, Align::Left, INK, &words.replace("{ago}", ago));
    }
}

/// Draws the keys of the last seconds, and a line from each to the moment at which it appeared in this pane. The newest
/// frame moves through the strip from left to right, and starts again at the left.
fn keys(batch: &mut Batch, strip: Rect, tour: &Tour, frame: &TourFrame, at: usize) {
    let scale = batch.atlas.scale;
    let now = frame.n;
    let place = |n: u32| strip.at.x + strip.size.x * (n % STRIP) as f32 / STRIP as f32;
    let (top, bottom) = (strip.at.y, strip.bottom() - 16.0 * scale);
    let width = 2.0 * scale;
    let cursor = place(now);
    batch.line(vec2(cursor, top), vec2(cursor, strip.bottom()), scale, EDGE);
    let since = now.saturating_sub(STRIP - GAP);
    let shown = tour
        .keys
        .iter()
        .filter(|key| key.pressed <= now && key.pressed >= since);
    for KeyMark {
        turn,
        pressed,
        seen,
    } in shown
    {
        let x = place(*pressed);
        let text = vec2(x - 4.0 * scale, strip.bottom() - 2.0 * scale);
        batch.text(text, Type::Body, OWN, letter(turn[1]));
        let arrived = seen[at].filter(|seen| *seen <= now);
        let is_lost = now > pressed + KEY_LOST;
        let (to, tint) = match arrived {
            Some(seen) => (seen, LOOKS[at].1),
            None if is_lost => continue,
            None => (now, DIM),
        };
        // A line that would leave the strip on the right ends there.
        let end = if to % STRIP < pressed % STRIP {
            strip.right()
        } else {
            place(to)
        };
        batch.line(vec2(x, bottom), vec2(end, top), width, tint);
        if arrived.is_some() {
            let dot = Rect::around(vec2(end, top + 2.0 * scale), Vec2::splat(2.5 * scale));
            batch.fill(dot, tint);
        }
    }
}

fn letter(way: Vec2) -> &'static str {
    match way {
        way if way.x > 0.5 => "D",
        way if way.x < -0.5 => "A",
        way if way.y > 0.5 => "W",
        _ => "S",
    }
}

fn arena(batch: &mut Batch, rect: Rect, tour: &Tour, frame: &TourFrame, at: usize) {
    let zoom = (rect.size / (HALF * 2.0)).min_element();
    let to_screen = |at: Vec2| rect.middle() + vec2(at.x, -at.y) * zoom;
    batch.fill(rect, GROUND);
    let floor = Rect::around(rect.middle(), HALF * zoom);
    for (n, line) in [(0, HALF.x), (1, HALF.y)] {
        for place in (-3..=3)
            .map(|step| step as f32 * 5.0)
            .filter(|place| place.abs() < line)
        {
            let [from, to] = [-1.0, 1.0].map(|end| match n {
                0 => to_screen(vec2(place, end * HALF.y)),
                _ => to_screen(vec2(end * HALF.x, place)),
            });
            batch.line(from, to, batch.atlas.scale, PANEL);
        }
    }
    edge(batch, floor);
    let shot = &frame.panes[at];
    let trail = tour
        .trail
        .iter()
        .filter(|(n, _)| *n < frame.n && n.is_multiple_of(TRAIL_EVERY));
    for place in trail.filter_map(|(_, places)| places[at]) {
        let half = Vec2::splat(batch.atlas.scale * 1.5);
        batch.fill(Rect::around(to_screen(place), half), THEIRS.alpha(0.55));
    }
    for (middle, began) in &shot.blasts {
        let part = ((frame.n - began) as f32 / 30.0).min(1.0);
        let radius = zoom * (1.0 + 5.0 * part);
        batch.disc(
            Sprite::Ring,
            to_screen(*middle),
            radius,
            WARN.alpha(1.0 - part),
        );
        if part < 0.3 {
            batch.disc(Sprite::Dot, to_screen(*middle), zoom * 1.2, WARN);
        }
    }
    for Body { key, at, is_lit } in &shot.bodies {
        let middle = to_screen(*at);
        match key {
            ShowKey::Barrel { .. } => {
                let tint = if *is_lit { BAD } else { KEG };
                batch.disc(Sprite::Dot, middle, zoom * BARREL_RADIUS * 0.9, tint);
            }
            ShowKey::Player { id, .. } => {
                let tint = if *id == FRIEND { THEIRS } else { OWN };
                batch.disc(Sprite::Dot, middle, zoom * PLAYER_RADIUS * 1.3, tint);
            }
            _ => {}
        }
        let (time, is_ringed) = match key {
            ShowKey::Player { id: FRIEND, .. } => (shot.friend_time, true),
            ShowKey::Barrel { .. } => (shot.thing_time, !shot.blasts.is_empty()),
            _ => (shot.thing_time, false),
        };
        if is_ringed && let Some(was) = tour.truth.at(time, *key) {
            batch.disc(
                Sprite::Ring,
                to_screen(was),
                zoom * PLAYER_RADIUS * 1.9,
                WHITE,
            );
        }
    }
}

fn edge(batch: &mut Batch, rect: Rect) {
    let [a, b, c, d] = rect.corners();
    for (from, to) in [(a, b), (b, c), (c, d), (d, a)] {
        batch.line(from, to, batch.atlas.scale, EDGE);
    }
}

pub(super) fn batch(size: Vec2) -> Batch {
    Batch::new(Atlas::new(scale_for(size), ColorMode::Safe))
}
