//! The arena: a braille canvas of square dots for everything that flies or has a size, and letters for players and
//! things.
//!
//! | mark | what |
//! |---|---|
//! | `@1`, `p2` | a local player, a remote player; a line shows the aim |
//! | `▲` `☼` `◊` `♦` `►` `☠` | gunner, urchin, spinner, sapper, charger, boss; dots while waking |
//! | `■` `▦` | a barrel (once lit it blinks, and dots mark how far its blast will reach); a crate |
//! | `✚` `◈` `♥` `S` `L` `T` | health, shield, a life; scatter, lance, thumper |
//! | sparse ring, full ring | a blast as guessed, as confirmed by the server |

use core::f32::consts::TAU;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{
    EnemyKind, Heading, Item, Pad, RoundPhase, Rules, ShowKey, Wall, Weapon, direction,
};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;
use ratatui::widgets::canvas::{self, Canvas, Circle, Context, Painter, Points, Shape};

use super::TerminalView;
use super::hud::{bar, color_of, paint};
use crate::scene::bursts::item_tint;
use crate::scene::palette::ColorMode;
use crate::scene::particles::VisibleParticle;
use crate::scene::{Sprite, ThingLook, ViewScene, ViewThing};

const SECOND_HANDS: &str = " second: ←↑↓→ Enter fire  , . turn  / dash  - light ";
const AIM: f32 = 2.5;
const BOSS_CELLS: usize = 24;
const BLINK: Duration = Duration::from_millis(120);

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &TerminalView) {
    let scene = &view.scene;
    let half = scene.rules.half.as_dvec2();
    let mut block = Block::bordered()
        .title(Line::from(vec![" POWDERKEG ".bold(), title(scene).into()]))
        .title_bottom(held(&view.keys[0].pad()));
    if scene.team.iter().filter(|member| member.is_local).count() > 1 {
        block = block.title_bottom(Line::from(SECOND_HANDS).right_aligned().dark_gray());
    }
    if let Some(boss) = scene.boss {
        let bar = bar(boss.health, BOSS_CELLS).light_magenta();
        let line = Line::from(vec![" BOSS ".bold(), bar, " ".into()]);
        block = block.title(line.right_aligned());
    }
    // Marks are printed on all rows, the first one at the upper edge.
    let rows = block.inner(area).height.max(2) - 1;
    let row = 2.0 * scene.rules.half.y / f32::from(rows);
    let canvas = Canvas::default()
        .block(block.border_style(Style::new().gray()))
        .marker(Marker::Braille)
        .x_bounds([-half.x, half.x])
        .y_bounds([-half.y, half.y])
        .paint(|ctx| {
            // One layer: the dots of a cell add up, and the last dot sets the cell's colour.
            paint_dots(ctx, view);
            print_marks(ctx, scene, row);
        });
    frame.render_widget(canvas, area);
}

fn title(scene: &ViewScene) -> String {
    let (wave, waves, score) = (scene.wave, scene.rules.waves.len(), scene.score);
    match scene.phase {
        RoundPhase::Endless => format!("{score} points "),
        RoundPhase::Lobby | RoundPhase::Countdown => "lobby ".to_owned(),
        _ => format!(
            "wave {wave} of {waves} · lives {} · {score} points ",
            scene.lives
        ),
    }
}

/// The held inputs as words: on terminals that do not report releases, a player could not see them otherwise.
fn held(pad: &Pad) -> String {
    let arrow = |heading: Heading| {
        let eighth = (heading.angle() / TAU * 8.0).round() as usize % 8;
        ['→', '↗', '↑', '↖', '←', '↙', '↓', '↘'][eighth]
    };
    let mut words = String::new();
    for (name, heading) in [("walk", pad.walk), ("aim", pad.aim)] {
        if heading != Heading::NONE {
            words += &format!(" {name} {} ", arrow(heading));
        }
    }
    if pad.fires() {
        words += " FIRE ";
    }
    words
}

fn paint_dots(ctx: &mut Context<'_>, view: &TerminalView) {
    let scene = &view.scene;
    for wall in &scene.rules.walls {
        ctx.draw(&Solid(wall));
    }
    for (key, at) in &scene.ghosts {
        let radius = match key {
            ShowKey::Player { .. } => 1.2,
            _ => 0.7,
        };
        circle(ctx, *at, radius, Color::DarkGray);
    }
    for thing in &scene.things {
        match thing.key {
            ShowKey::Barrel { .. } if is_lit(thing) => {
                let reach = scene.rules.tuning.blast_radius;
                sparse_ring(ctx, thing.at, reach, Color::DarkGray);
            }
            ShowKey::Bullet { .. } => dot(ctx, thing.at, Color::LightRed),
            ShowKey::Shot { owner, .. } => dot(ctx, thing.at, color_of(owner)),
            _ => {}
        }
    }
    for seen in view.effects.particles.seen(scene.now) {
        particle(ctx, &seen);
    }
    for thing in &scene.things {
        if let ShowKey::Player { id, .. } = thing.key {
            let end = thing.at + direction(thing.angle) * AIM;
            let (from, to) = (thing.at.as_dvec2(), end.as_dvec2());
            ctx.draw(&canvas::Line::new(from.x, from.y, to.x, to.y, color_of(id)));
        }
    }
}

/// Draws a particle. A wave or ring is sparse until the server has confirmed its cue.
fn particle(ctx: &mut Context<'_>, seen: &VisibleParticle) {
    let color = paint(seen.tint);
    match seen.sprite {
        Sprite::Wave | Sprite::Ring if seen.is_confirmed => {
            circle(ctx, seen.at, seen.half.x, color)
        }
        Sprite::Wave | Sprite::Ring | Sprite::Bubble => {
            sparse_ring(ctx, seen.at, seen.half.x, color)
        }
        Sprite::Streak | Sprite::Shard | Sprite::Smoke => dot(ctx, seen.at, color),
        _ => {}
    }
}

fn is_lit(thing: &ViewThing) -> bool {
    matches!(thing.look, ThingLook::Prop { is_lit: true, .. })
}

/// Prints the marks; `row` is the height of a terminal row in units.
fn print_marks(ctx: &mut Context<'_>, scene: &ViewScene, row: f32) {
    let is_bright = (scene.now.as_millis() / BLINK.as_millis()).is_multiple_of(2);
    for thing in &scene.things {
        let mark = match thing.key {
            ShowKey::Barrel { .. } if !is_lit(thing) => Span::from("■").fg(Color::Indexed(172)),
            ShowKey::Barrel { .. } if is_bright => Span::from("■").light_yellow().bold(),
            ShowKey::Barrel { .. } => Span::from("*").red().bold(),
            ShowKey::Enemy { kind, .. } => enemy_mark(kind, thing.look),
            ShowKey::Crate { .. } => Span::from("▦").fg(Color::Indexed(137)),
            ShowKey::Pickup { item, .. } => item_mark(item),
            _ => continue,
        };
        print(ctx, &scene.rules, thing.at, mark);
    }
    // The local players last, on top of everything.
    let locals = scene.team.iter().filter(|member| member.is_local);
    let others = scene.team.iter().filter(|member| !member.is_local);
    for member in others.chain(locals) {
        let Some(thing) = scene.player(member.id) else {
            continue;
        };
        let mut mark = match member.is_local {
            true => Span::from(format!("@{}", member.id.0)).reversed(),
            false => Span::from(format!("p{}", member.id.0)),
        };
        if matches!(thing.look, ThingLook::Player { is_safe: true, .. }) {
            mark = mark.dim();
        }
        let color = color_of(member.id);
        print(ctx, &scene.rules, thing.at, mark.fg(color).bold());
        let name = Span::from(member.name.clone()).fg(color).dim();
        let above = thing.at + Vec2::new(0.0, row);
        print(ctx, &scene.rules, above, name);
    }
}

fn item_mark(item: Item) -> Span<'static> {
    let mark = match item {
        Item::Weapon(Weapon::Scatter) => "S",
        Item::Weapon(Weapon::Lance) => "L",
        Item::Weapon(Weapon::Thumper) => "T",
        Item::Weapon(Weapon::Blaster) => "B",
        Item::Health => "✚",
        Item::Shield => "◈",
        Item::Life => "♥",
    };
    let tint = item_tint(item, ColorMode::Safe);
    Span::from(mark).fg(paint(tint)).bold()
}

fn enemy_mark(kind: EnemyKind, look: ThingLook) -> Span<'static> {
    if matches!(look, ThingLook::Enemy { woken, .. } if woken < 1.0) {
        return Span::from("·").dark_gray();
    }
    match kind {
        EnemyKind::Gunner => Span::from("▲").red(),
        EnemyKind::Urchin => Span::from("☼").magenta(),
        EnemyKind::Spinner => Span::from("◊").light_red(),
        EnemyKind::Sapper => Span::from("♦").yellow(),
        EnemyKind::Charger => Span::from("►").light_yellow(),
        EnemyKind::Boss => Span::from("☠").light_magenta().bold(),
    }
}

fn print(ctx: &mut Context<'_>, rules: &Rules, at: Vec2, mark: Span<'static>) {
    let at = at.clamp(-rules.half, rules.half).as_dvec2();
    ctx.print(at.x, at.y, mark);
}

fn dot(ctx: &mut Context<'_>, at: Vec2, color: Color) {
    let at = at.as_dvec2();
    ctx.draw(&Points::new(&[(at.x, at.y)], color));
}

fn circle(ctx: &mut Context<'_>, at: Vec2, radius: f32, color: Color) {
    let at = at.as_dvec2();
    ctx.draw(&Circle::new(at.x, at.y, f64::from(radius), color));
}

fn sparse_ring(ctx: &mut Context<'_>, at: Vec2, radius: f32, color: Color) {
    const DOTS: u8 = 24;
    for n in 0..DOTS {
        let angle = TAU * f32::from(n) / f32::from(DOTS);
        dot(ctx, at + direction(angle) * radius, color);
    }
}

struct Solid<'a>(&'a Wall);

impl Shape for Solid<'_> {
    fn draw(&self, painter: &mut Painter<'_, '_>) {
        let (low, high) = (self.0.center - self.0.half, self.0.center + self.0.half);
        let corner = |at: Vec2| painter.get_point(f64::from(at.x), f64::from(at.y));
        let (Some((left, bottom)), Some((right, top))) = (corner(low), corner(high)) else {
            return;
        };
        for y in top..=bottom {
            for x in left..=right {
                painter.paint(x, y, Color::Gray);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_inputs_are_shown_as_words() {
        let toward = |x: f32, y: f32| Heading::toward(Vec2::new(x, y));
        let pad = Pad {
            walk: toward(1.0, 1.0),
            aim: toward(0.0, -1.0),
            buttons: Pad::FIRE,
        };
        assert_eq!(held(&pad), " walk ↗  aim ↓  FIRE ");
        assert_eq!(held(&Pad::default()), "");
        let east = Pad {
            walk: Heading::EAST.turned(-1),
            ..Pad::default()
        };
        assert_eq!(held(&east), " walk → ", "a little under a whole turn");
    }
}
