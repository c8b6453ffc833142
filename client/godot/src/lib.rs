//! Boxes for Godot 4: the node `BoxesMatch` plays a match, joined or alone, and keeps a child for each box.

use std::sync::Arc;
use std::time::{Duration, Instant};

use godot::classes::{ColorRect, Input, Node2D};
use godot::prelude::*;
use rules::{Boxes, Bump, Cubes, DOWN, LEFT, RIGHT, UP};
use twinstep_client::prelude::*;
use twinstep_core::PlayerId;
use twinstep_local::{Local, LocalGame};

// The same rules as in the example for Bevy.
#[path = "../../bevy/examples/boxes/rules.rs"]
mod rules;

struct Library;

#[gdextension]
unsafe impl ExtensionLibrary for Library {}

enum Played {
    Online(Box<Client<Boxes, Cubes>>),
    Alone(Box<LocalGame<Boxes, Cubes>>),
}

impl Played {
    fn session(&mut self) -> &mut Session<Boxes, Cubes> {
        match self {
            Played::Online(client) => client.session_mut(),
            Played::Alone(game) => game.session_mut(0),
        }
    }
}

/// A match as a node. A script calls `$Match.join(ticket)` or `$Match.play_alone()`, and connects to the node's
/// signals.
#[derive(GodotClass)]
#[class(init, base = Node2D)]
struct BoxesMatch {
    base: Base<Node2D>,
    played: Option<Played>,
    nodes: EntityMap<PlayerId, Gd<ColorRect>>,
    #[init(val = Instant::now())]
    began: Instant,
    /// The buttons pressed since the last tick, so that a tap between two ticks is not lost.
    held: u8,
}

fn config() -> SessionConfig<Boxes, Cubes> {
    let smoothing = Smoothing::new(2.0, Duration::ZERO);
    let config = SessionConfig::new(Arc::new(())).start(Boxes::default());
    config.show(Cubes, smoothing)
}

#[godot_api]
impl BoxesMatch {
    /// A box bumped into the edge.
    #[signal]
    fn bumped(player: i64);

    /// The match is over; `why` is the reason.
    #[signal]
    fn over(why: GString);

    /// Joins the match of a ticket. Returns the error, or an empty string.
    #[func]
    fn join(&mut self, ticket: String) -> GString {
        let joined = ticket.parse::<Ticket>().map_err(|error| error.to_string());
        let joined = joined.and_then(|ticket| {
            Client::connect(&ticket, config()).map_err(|error| error.to_string())
        });
        self.play(joined.map(|client| Played::Online(Box::new(client))))
    }

    /// Plays alone. Returns the error, or an empty string.
    #[func]
    fn play_alone(&mut self) -> GString {
        let game = Local::action(Boxes::default(), ()).play(config());
        let game = game.map_err(|error| error.to_string());
        self.play(game.map(|game| Played::Alone(Box::new(game))))
    }

    /// The number of boxes shown.
    #[func]
    fn boxes(&self) -> i64 {
        self.nodes.iter().count() as i64
    }

    fn play(&mut self, begun: Result<Played, String>) -> GString {
        self.leave();
        match begun {
            Ok(played) => {
                self.played = Some(played);
                GString::new()
            }
            Err(why) => GString::from(why.as_str()),
        }
    }

    fn leave(&mut self) {
        if let Some(Played::Online(client)) = &mut self.played {
            client.leave();
        }
        self.played = None;
        let mut spawner = Boxed(self.base().clone());
        self.nodes.show([], &mut spawner);
    }
}

#[godot_api]
impl INode2D for BoxesMatch {
    fn process(&mut self, _: f64) {
        let Some(played) = &mut self.played else {
            return;
        };
        let input = Input::singleton();
        for (action, bit) in [
            ("ui_left", LEFT),
            ("ui_right", RIGHT),
            ("ui_down", DOWN),
            ("ui_up", UP),
        ] {
            if input.is_action_pressed(action) || input.is_action_just_pressed(action) {
                self.held |= bit;
            }
        }
        let (began, held) = (self.began, self.held);
        let mut is_sampled = false;
        let mut pad = |_seat| {
            is_sampled = true;
            held
        };
        // Not `_delta`: a paused or slowed scene does not pause the match.
        let now = began.elapsed();
        let advanced = match played {
            Played::Online(client) => {
                let advanced = client.advance_at(now, || began.elapsed(), pad);
                advanced.map_err(|why| why.to_string())
            }
            Played::Alone(game) => {
                let advanced = game.advance_at(now, |_, seat| pad(seat));
                advanced.map_err(|why| why.to_string())
            }
        };
        if is_sampled {
            self.held = 0;
        }
        let session = played.session();
        let mut bumps = Vec::new();
        while let Some(cue) = session.poll_cue() {
            if let CueKind::Started {
                cue: Bump(PlayerId(player)),
                ..
            } = cue.kind
            {
                bumps.push(i64::from(player));
            }
        }
        while let Some(event) = session.poll_event() {
            godot_print!("{event:?}");
        }
        let shown: Vec<_> = session.shown().collect();
        let mut spawner = Boxed(self.base().clone());
        self.nodes.show(shown, &mut spawner);
        for player in bumps {
            self.signals().bumped().emit(player);
        }
        if let Err(why) = advanced {
            self.leave();
            self.signals().over().emit(&GString::from(why.as_str()));
        }
    }

    fn exit_tree(&mut self) {
        self.leave();
    }
}

/// Adds, moves and frees the children of a node.
struct Boxed(Gd<Node2D>);

impl Spawner<PlayerId, [f32; 2]> for Boxed {
    type Entity = Gd<ColorRect>;

    fn spawn(&mut self, key: PlayerId, at: [f32; 2]) -> Gd<ColorRect> {
        let mut node = ColorRect::new_alloc();
        node.set_size(Vector2::new(20.0, 20.0));
        self.0.add_child(&node);
        self.place(key, &mut node, at);
        node
    }

    fn place(&mut self, _: PlayerId, node: &mut Gd<ColorRect>, [x, y]: [f32; 2]) {
        // Godot's y grows downwards.
        node.set_position(Vector2::new(400.0 + 100.0 * x, 300.0 - 100.0 * y));
    }

    fn despawn(&mut self, _: PlayerId, mut node: Gd<ColorRect>) {
        node.queue_free();
    }
}
