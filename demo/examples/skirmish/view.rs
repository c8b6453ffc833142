//! The map on a terminal, and a few keys.
//!
//! What is drawn is the authority: in lockstep there is nothing else. A key becomes an order at once; the
//! order runs, for everybody, two turns later.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind};
use powderkeg_game::skirmish::{Command, FieldPoint, Rules, STEPS, Skirmish, UnitKind};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use twinstep_client::prelude::{Client, Ended, Session};
use twinstep_core::prelude::PlayerId;

const COLORS: [Color; 4] = [Color::Green, Color::Red, Color::Blue, Color::Yellow];
const FRAME: Duration = Duration::from_millis(33);
/// How long a key is waited for.
const PATIENCE: Duration = Duration::from_millis(4);
const KEYS: [&str; 6] = [
    "arrows  aim",
    "v       villager, 20 gold",
    "s       soldier, 30 gold",
    "g       all soldiers go there",
    "b       bomb, 40 gold",
    "q       quit",
];

/// Plays on this terminal until the player quits or the session ends.
pub(crate) fn run(client: &mut Client<Skirmish>, rules: &Rules) -> io::Result<Option<Ended>> {
    let mut cursor = FieldPoint::field(rules.fields.0 / 2, rules.fields.1 / 2);
    let mut next_frame = Duration::ZERO;
    // Whatever ends the loop, the terminal is given back.
    ratatui::run(|terminal| {
        loop {
            if let Err(ended) = client.advance(|_| ()) {
                return Ok(Some(ended));
            }
            while client.session.poll_cue().is_some() {}
            while client.session.poll_event().is_some() {}
            if client.now() >= next_frame {
                next_frame = client.now() + FRAME;
                terminal.draw(|frame| draw(frame, &client.session, rules, cursor))?;
            }
            if !event::poll(PATIENCE)? {
                continue;
            }
            let Event::Key(key) = event::read()? else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let (right, down) = match key.code {
                KeyCode::Left => (-STEPS, 0),
                KeyCode::Right => (STEPS, 0),
                KeyCode::Up => (0, -STEPS),
                KeyCode::Down => (0, STEPS),
                _ => (0, 0),
            };
            let (x, y) = (cursor.x + right, cursor.y + down);
            cursor = rules.clamp(FieldPoint { x, y });
            let order = match key.code {
                KeyCode::Char('q') => return Ok(None),
                KeyCode::Char('v') => Command::Train(UnitKind::Villager),
                KeyCode::Char('s') => Command::Train(UnitKind::Soldier),
                KeyCode::Char('g') => Command::Send(cursor),
                KeyCode::Char('b') => Command::Bomb(cursor),
                _ => continue,
            };
            // An order too many is an order not given.
            let _ = client.session.command(0, order);
        }
    })
}

fn draw(frame: &mut Frame<'_>, session: &Session<Skirmish>, rules: &Rules, cursor: FieldPoint) {
    let (width, height) = (rules.fields.0 as u16 + 2, rules.fields.1 as u16 + 2);
    let area = Rect::new(0, 0, width, height).intersection(frame.area());
    let block = Block::bordered().title(" Skirmish ");
    frame.render_widget(block, area);
    let Some(world) = session.authority() else {
        return;
    };
    let (now, game) = (world.tick(), world.sim());
    let map = frame.buffer_mut();
    for mine in &rules.mines {
        put(map, *mine, '$', Color::White);
    }
    let mut lines = Vec::new();
    for (&id, town) in game.towns.iter().filter(|(_, town)| town.is_open) {
        put(map, rules.town(id), '#', color(id));
        let name = if session.seats().contains(&id) {
            "you"
        } else {
            "bot"
        };
        let text = format!("{name} {:>5} gold {:>4} kills", town.gold, town.kills);
        lines.push(Line::from(text).style(Style::new().fg(color(id))));
    }
    for (id, unit) in &game.units {
        let sign = match unit.kind {
            UnitKind::Villager => 'v',
            UnitKind::Soldier => 's',
        };
        put(map, unit.trip.at(now), sign, color(id.owner));
    }
    for bomb in game.bombs() {
        put(map, bomb, '*', Color::White);
    }
    put(map, cursor, '+', Color::Cyan);
    let waiting = session
        .waiting()
        .iter()
        .map(|id| format!("waiting for {id}"));
    lines.extend(waiting.map(Line::from));
    let latency = session.stats().confirmed_ms_p50;
    lines.push(Line::from(format!("an order takes {latency} ms")));
    lines.push(Line::default());
    lines.extend(KEYS.map(Line::from));
    let side = Rect::new(width + 1, 1, 29, height).intersection(frame.area());
    frame.render_widget(Paragraph::new(lines), side);
}

fn color(player: PlayerId) -> Color {
    COLORS[player.index() % COLORS.len()]
}

fn put(map: &mut Buffer, at: FieldPoint, sign: char, color: Color) {
    let place = Position::new((at.x / STEPS) as u16 + 1, (at.y / STEPS) as u16 + 1);
    if let Some(cell) = map.cell_mut(place) {
        cell.set_char(sign).set_fg(color);
    }
}
