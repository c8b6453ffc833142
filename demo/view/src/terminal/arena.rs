//! The arena: a braille canvas of square dots for all that has a size or flies, and letters for who is there.
//!
//! | mark | what |
//! |---|---|
//! | `@1`, `p2` | the player here, the others; the line shows where they aim |
//! | `▲` `☼` `◊` `♦` `►` `☠` | gunner, urchin, spinner, sapper, charger, boss; dots while waking |
//! | `■` `▦` | a barrel (once lit it blinks, and dots mark how far its blast will reach); a crate |
//! | `✚` `◈` `♥` `S` `L` `T` | health, shield, a life; scatter, lance, thumper |
//! | sparse ring, full ring | a blast as guessed, as confirmed by the server |

use core::f32::consts::TAU;
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{
    BarrelStage, EnemyKind, Heading, Item, Pad, Rules, ShowKey, Wall, Weapon, direction,
};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;
use ratatui::widgets::canvas::{self, Canvas, Circle, Context, Painter, Points, Shape};

use super::effects::{CueFate, FlashKind, TerminalFlash};
use super::hud::color_of;
use super::round::boss_bar;
use super::scene::{TerminalScene, TerminalThing};

/// The keys of a second player at the same terminal.
const SECOND_HANDS: &str = " second: ←↑↓→ Enter fire  , . turn  / dash  - light ";
/// How long the line is that shows where a player aims, in units.
const AIM: f32 = 2.5;
/// Half of the period with which lit barrels blink.
const BLINK: Duration = Duration::from_millis(120);

/// Draws the arena, its border included.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, scene: &TerminalScene) {
    let half = scene.rules.half.as_dvec2();
    let mut block = Block::bordered()
        .title(Line::from(vec![
            " POWDERKEG ".bold(),
            scene.round.title(scene.score).into(),
        ]))
        .title_bottom(held(&scene.pad));
    if scene.team.iter().filter(|member| member.is_local).count() > 1 {
        block = block.title_bottom(Line::from(SECOND_HANDS).right_aligned().dark_gray());
    }
    if let Some(bar) = boss_bar(&scene.round) {
        block = block.title(bar.right_aligned());
    }
    // Marks are printed on as many rows, the first one at the upper edge.
    let rows = block.inner(area).height.max(2) - 1;
    let row = 2.0 * scene.rules.half.y / f32::from(rows);
    let canvas = Canvas::default()
        .block(block.border_style(Style::new().gray()))
        .marker(Marker::Braille)
        .x_bounds([-half.x, half.x])
        .y_bounds([-half.y, half.y])
        .paint(|ctx| {
            // One layer: dots of one cell add up, and the last one gives it its colour.
            paint_dots(ctx, scene);
            print_marks(ctx, scene, row);
        });
    frame.render_widget(canvas, area);
}

/// What the keys hold, in words: on terminals without releases one would not know otherwise.
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

fn paint_dots(ctx: &mut Context<'_>, scene: &TerminalScene) {
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
    for (at, _) in barrels(scene).filter(|(_, stage)| *stage == BarrelStage::Lit) {
        sparse_ring(ctx, at, scene.rules.tuning.blast_radius, Color::DarkGray);
    }
    let flying = |wanted: fn(&ShowKey) -> Option<Color>| {
        let things = scene.things.iter();
        things.filter_map(move |thing| Some((thing.at, wanted(&thing.key)?)))
    };
    let bullets = flying(|key| matches!(key, ShowKey::Bullet { .. }).then_some(Color::LightRed));
    let shots = flying(|key| match key {
        ShowKey::Shot { owner, .. } => Some(color_of(*owner)),
        _ => None,
    });
    for (at, color) in bullets.chain(shots) {
        dot(ctx, at, color);
    }
    for flash in &scene.flashes {
        paint_flash(ctx, flash, scene);
    }
    for thing in &scene.things {
        if let ShowKey::Player { id, .. } = thing.key {
            let end = thing.at + direction(thing.angle) * AIM;
            let (from, to) = (thing.at.as_dvec2(), end.as_dvec2());
            ctx.draw(&canvas::Line::new(from.x, from.y, to.x, to.y, color_of(id)));
        }
    }
}

fn paint_flash(ctx: &mut Context<'_>, flash: &TerminalFlash, scene: &TerminalScene) {
    let age = flash.age(scene.now);
    // Fast at first, then slower.
    let growth = 1.0 - (1.0 - age) * (1.0 - age);
    let blast = scene.rules.tuning.blast_radius * growth;
    match (flash.kind, flash.fate) {
        (FlashKind::Blast, CueFate::Confirmed { .. }) => {
            for (part, color) in [
                (0.4, Color::Red),
                (0.7, Color::LightRed),
                (1.0, Color::LightYellow),
            ] {
                circle(ctx, flash.at, blast * part, color);
            }
        }
        (FlashKind::Blast, _) => {
            sparse_ring(ctx, flash.at, blast, Color::Yellow);
            sparse_ring(ctx, flash.at, blast * 0.5, Color::Yellow);
        }
        (FlashKind::Smoke, _) => sparse_ring(ctx, flash.at, 2.0 * growth, Color::DarkGray),
        (FlashKind::Death, _) => sparse_ring(ctx, flash.at, 2.5 * growth, Color::White),
        (FlashKind::Spark, _) => circle(ctx, flash.at, 0.8, Color::White),
    }
}

/// `row`: how many units a row of the terminal is high.
fn print_marks(ctx: &mut Context<'_>, scene: &TerminalScene, row: f32) {
    let is_bright = (scene.now.as_millis() / BLINK.as_millis()).is_multiple_of(2);
    for (at, stage) in barrels(scene) {
        let mark = match stage {
            BarrelStage::Whole => Span::from("■").fg(Color::Indexed(172)),
            BarrelStage::Lit if is_bright => Span::from("■").light_yellow().bold(),
            BarrelStage::Lit => Span::from("*").red().bold(),
            BarrelStage::Blasting | BarrelStage::Gone => continue,
        };
        print(ctx, &scene.rules, at, mark);
    }
    for thing in &scene.things {
        let mark = match thing.key {
            ShowKey::Enemy { kind, .. } => enemy_mark(kind, thing),
            ShowKey::Crate { .. } => Span::from("▦").fg(Color::Indexed(137)),
            ShowKey::Pickup { item, .. } => item_mark(item),
            _ => continue,
        };
        print(ctx, &scene.rules, thing.at, mark);
    }
    // The player here last, on top of all.
    for is_local in [false, true] {
        let members = scene
            .team
            .iter()
            .filter(|member| member.is_local == is_local);
        for member in members {
            let thing = scene
                .things
                .iter()
                .find(|thing| matches!(thing.key, ShowKey::Player { id, .. } if id == member.id));
            let Some(thing) = thing else { continue };
            let name = match is_local {
                true => format!("@{}", member.id.0),
                false => member.id.to_string(),
            };
            let mut mark = Span::from(name).fg(color_of(member.id)).bold();
            if is_local {
                mark = mark.reversed();
            }
            if thing.is_faint {
                mark = mark.dim();
            }
            print(ctx, &scene.rules, thing.at, mark);
            let above = thing.at + Vec2::new(0.0, row);
            let name = Span::from(member.name.clone())
                .fg(color_of(member.id))
                .dim();
            print(ctx, &scene.rules, above, name);
        }
    }
}

fn item_mark(item: Item) -> Span<'static> {
    match item {
        Item::Weapon(Weapon::Scatter) => Span::from("S").light_cyan().bold(),
        Item::Weapon(Weapon::Lance) => Span::from("L").light_cyan().bold(),
        Item::Weapon(Weapon::Thumper) => Span::from("T").light_cyan().bold(),
        Item::Weapon(Weapon::Blaster) => Span::from("B").light_cyan().bold(),
        Item::Health => Span::from("✚").light_green().bold(),
        Item::Shield => Span::from("◈").light_blue().bold(),
        Item::Life => Span::from("♥").light_red().bold(),
    }
}

fn enemy_mark(kind: EnemyKind, thing: &TerminalThing) -> Span<'static> {
    if thing.is_faint {
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

fn barrels(scene: &TerminalScene) -> impl Iterator<Item = (Vec2, BarrelStage)> + '_ {
    scene.barrels.iter().copied()
}

/// A mark at a place; what an error or a correction has outside of the arena is drawn at its edge.
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

/// A wall, filled.
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
    fn what_is_held_is_told_in_words() {
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
