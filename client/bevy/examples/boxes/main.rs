//! Boxes without a window: `cargo run -p twinstep-bevy --example boxes -- --frames 600 [TICKET]`
mod rules;
use bevy_app::{ScheduleRunnerPlugin, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use rules::{Boxes, Cubes, DOWN, LEFT, RIGHT, UP};
use std::{env::args, sync::Arc, time::Duration};
use twinstep_bevy::prelude::*;

fn main() -> AppExit {
    let frame = ScheduleRunnerPlugin::run_loop(Duration::from_micros(16_667));
    App::new()
        .add_plugins((TimePlugin, frame))
        .add_plugins(TwinstepPlugin::<Boxes, Cubes>::default())
        .add_systems(Startup, join)
        .add_systems(ReadInputs, drive)
        .add_systems(Update, end)
        .run()
}
fn join(mut commands: Commands) -> Result {
    let smooths = Smoothing::new(2.0, Duration::ZERO);
    let config = SessionConfig::new(Arc::new(())).show(Cubes, smooths);
    commands.insert_resource(match args().nth(3) {
        Some(path) => Play::join(&Ticket::load(path)?, config)?,
        None => Play::alone(LocalMatch::action(Boxes::default(), ()), config)?,
    });
    Ok(())
}
fn drive(mut frames: Local<usize>, mut pads: ResMut<Pads<Boxes>>) {
    *frames += 1;
    *pads.seat(0) |= [LEFT | UP, RIGHT, DOWN][*frames / 100 % 3];
}
fn end(mut frames: Local<usize>, play: Res<Play<Boxes, Cubes>>, mut exit: MessageWriter<AppExit>) {
    *frames += 1;
    if args().nth(2).is_some_and(|text| text == frames.to_string()) || play.over().is_some() {
        let cubes: Vec<_> = play.session().shown().collect();
        println!("{} frames, {cubes:?}, {:?}", *frames, play.over());
        exit.write(AppExit::Success);
    }
}
