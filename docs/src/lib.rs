#![doc = include_str!("../guide/index.md")]

pub mod alone {
    #![doc = include_str!("../guide/alone.md")]
}

pub mod asking {
    #![doc = include_str!("../guide/asking.md")]
}

pub mod bevy {
    #![doc = include_str!("../guide/bevy.md")]
}

pub mod bots {
    #![doc = include_str!("../guide/bots.md")]
}

pub mod choices {
    #![doc = include_str!("../guide/choices.md")]
}

pub mod configuring {
    #![doc = include_str!("../guide/configuring.md")]
}

pub mod costs {
    #![doc = include_str!("../guide/costs.md")]
}

pub mod desync {
    #![doc = include_str!("../guide/desync.md")]
}

pub mod determinism {
    #![doc = include_str!("../guide/determinism.md")]
}

pub mod engines {
    #![doc = include_str!("../guide/engines.md")]
}

pub mod first_game {
    #![doc = include_str!("../guide/first_game.md")]
}

pub mod fleet {
    #![doc = include_str!("../guide/fleet.md")]
}

pub mod hosting {
    #![doc = include_str!("../guide/hosting.md")]
}

pub mod often_asked {
    #![doc = include_str!("../guide/often_asked.md")]
}

pub mod operating {
    #![doc = include_str!("../guide/operating.md")]
}

pub mod own_loop {
    #![doc = include_str!("../guide/own_loop.md")]
}

pub mod physics {
    #![doc = include_str!("../guide/physics.md")]
}

pub mod rts {
    #![doc = include_str!("../guide/rts.md")]
}

pub mod saving {
    #![doc = include_str!("../guide/saving.md")]
}

pub mod shooting {
    #![doc = include_str!("../guide/shooting.md")]
}

pub mod strategy {
    #![doc = include_str!("../guide/strategy.md")]
}

pub mod tab {
    #![doc = include_str!("../guide/tab.md")]
}

pub mod testing {
    #![doc = include_str!("../guide/testing.md")]
}
