//! The map on a terminal, and a few keys.
//!
//! What is drawn is the authority: in lockstep there is nothing else. A key becomes an order at once; the
//! order runs, for everybody, two turns later.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEventKind};
use powderkeg::skirmish::{Command, Cue, Kind, Point, Rules, STEPS, Skirmish, TOWN_HEALTH};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};
use twinstep_client::Client;
use twinstep_client::client::Ended;
use twinstep_client::cues::CueKind;
use twinstep_core::{PlayerId, Tick};

const COLORS: [Color; 4] = [
    Color::Green,
    Color::LightRed,
    Color::LightBlue,
    Color::Yellow,
];
/// How long a blast is shown, in ticks.
const FLASH_TICKS: u32 = 6;
const FRAME: Duration = Duration::from_millis(33);
const KEYS: [&str; 6] = [
    "arrows  aim",
    "v       train a villager, 20",
    "s       train a soldier, 30",
    "g       send all soldiers",
    "b       bomb, 40",
    "q       quit",
];

struct View<'a> {
    rules: &'a Rules,
    cursor: (i16, i16),
    blasts: Vec<(Tick, Point)>,
    words: String,
}

/// Plays on this terminal until the player quits or the session ends.
pub(crate) fn run(client: &mut Client<Skirmish>, rules: &Rules) -> io::Result<Option<Ended>> {
    let mut terminal = ratatui::try_init()?;
    let (width, height) = rules.fields;
    let mut view = View {
        rules,
        cursor: (width / 2, height / 2),
        blasts: Vec::new(),
        words: "joining".to_owned(),
    };
    let mut next_frame = Duration::ZERO;
    let ended = loop {
        if let Err(ended) = client.advance(|_| ()) {
            break Ok(Some(ended));
        }
        view.listen(client);
        if client.now() >= next_frame {
            next_frame = client.now() + FRAME;
            if let Err(error) = terminal.draw(|frame| view.draw(frame, client)) {
                break Err(error);
            }
        }
        match view.read_keys(client) {
            Ok(false) => {}
            Ok(true) => break Ok(None),
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    ended
}

impl View<'_> {
    /// Takes what the session has to tell.
    fn listen(&mut self, client: &mut Client<Skirmish>) {
        while let Some(event) = client.session.poll_cue() {
            let CueKind::Started { tick, cue, .. } = event.kind else {
                continue;
            };
            match cue {
                Cue::Blast(at) => self.blasts.push((tick, at)),
                Cue::Razed(player) => self.words = format!("the town of {player} is razed"),
                Cue::Fell(_) => {}
            }
        }
        while let Some(event) = client.session.poll_event() {
            if let twinstep_client::Event::CommandRefused { .. } = event {
                self.words = "the order was refused".to_owned();
            }
        }
    }

    /// Whether the player quits.
    fn read_keys(&mut self, client: &mut Client<Skirmish>) -> io::Result<bool> {
        let mut patience = Duration::from_millis(4);
        while event::poll(patience)? {
            patience = Duration::ZERO;
            let Event::Key(key) = event::read()? else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let (width, height) = self.rules.fields;
            let (x, y) = self.cursor;
            let aim = Point::field(x, y);
            let order = match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                KeyCode::Left => return self.aim((x - 1).max(0), y),
                KeyCode::Right => return self.aim((x + 1).min(width - 1), y),
                KeyCode::Up => return self.aim(x, (y - 1).max(0)),
                KeyCode::Down => return self.aim(x, (y + 1).min(height - 1)),
                KeyCode::Char('v') => Command::Train(Kind::Villager),
                KeyCode::Char('s') => Command::Train(Kind::Soldier),
                KeyCode::Char('g') => Command::Send(aim),
                KeyCode::Char('b') => Command::Bomb(aim),
                _ => continue,
            };
            self.words = match client.session.command(0, order) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
        }
        Ok(false)
    }

    fn aim(&mut self, x: i16, y: i16) -> io::Result<bool> {
        self.cursor = (x, y);
        Ok(false)
    }

    fn draw(&mut self, frame: &mut Frame<'_>, client: &Client<Skirmish>) {
        let (width, height) = self.rules.fields;
        let size = (width as u16 + 2, height as u16 + 2);
        let area = Rect::new(0, 0, size.0, size.1).intersection(frame.area());
        frame.render_widget(Block::bordered().title(" Skirmish "), area);
        let session = &client.session;
        let Some(world) = session.authority() else {
            return;
        };
        let (now, game) = (world.tick(), world.sim());
        self.blasts.retain(|(began, _)| now - *began < FLASH_TICKS);
        let map = frame.buffer_mut();
        self.rules
            .mines
            .iter()
            .for_each(|at| put(map, *at, '$', Color::White));
        for (&id, town) in game.towns.iter().filter(|(_, town)| town.is_open) {
            let sign = if town.stands() { '#' } else { 'x' };
            put(map, self.rules.town(id), sign, color(id));
        }
        for (id, unit) in &game.units {
            let sign = match unit.kind {
                Kind::Villager => 'v',
                Kind::Soldier => 's',
            };
            put(map, unit.trip.at(now), sign, color(id.owner));
        }
        game.bombs()
            .for_each(|(_, at)| put(map, at, '*', Color::White));
        self.blasts
            .iter()
            .for_each(|(_, at)| put(map, *at, '@', Color::LightYellow));
        put(
            map,
            Point::field(self.cursor.0, self.cursor.1),
            '+',
            Color::LightCyan,
        );
        let me = session.seats().first();
        let mut lines: Vec<Line<'_>> = vec![Line::default()];
        for (&id, town) in game.towns.iter().filter(|(_, town)| town.is_open) {
            let count = |kind| {
                let own = game.units.iter().filter(|(unit, _)| unit.owner == id);
                own.filter(|(_, unit)| unit.kind == kind).count()
            };
            let (v, s) = (count(Kind::Villager), count(Kind::Soldier));
            let name = if Some(&id) == me { "you" } else { "bot" };
            let health = 100 * i32::from(town.health) / i32::from(TOWN_HEALTH);
            let text = format!("{name} {health:>3}% {:>4} $  {v:>2} v  {s:>2} s", town.gold);
            lines.push(Line::from(text).style(Style::new().fg(color(id))));
            let deeds = format!("     {} kills, {} towns", town.kills, town.razed);
            lines.push(Line::from(deeds).dim());
        }
        lines.push(Line::default());
        lines.extend(KEYS.iter().map(|key| Line::from(*key)));
        let stats = session.stats();
        lines.push(Line::default());
        let ping = format!("{now}, orders take {} ms", stats.confirmed_ms_p50);
        lines.push(Line::from(ping).dim());
        let waiting: Vec<String> = session.waiting().iter().map(|id| id.to_string()).collect();
        if !waiting.is_empty() {
            lines.push(Line::from(format!("waiting for {}", waiting.join(", "))).bold());
        }
        lines.push(Line::from(self.words.clone()));
        let side = Rect::new(size.0 + 1, 0, 40, 40).intersection(frame.area());
        frame.render_widget(Paragraph::new(lines), side);
    }
}

fn color(player: PlayerId) -> Color {
    COLORS[player.index() % COLORS.len()]
}

fn put(map: &mut Buffer, at: Point, sign: char, color: Color) {
    let place = Position::new((at.x / STEPS) as u16 + 1, (at.y / STEPS) as u16 + 1);
    if let Some(cell) = map.cell_mut(place) {
        cell.set_char(sign).set_style(Style::new().fg(color));
    }
}
