//! A player's state for lists, and the display names of what players carry.

use powderkeg_game::{Item, Player, Rules, Weapon};
use twinstep_core::{PlayerId, Tick};
use twinstep_protocol::packet::presence::LinkQuality;

use crate::feed::Companion;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ViewMember {
    pub(crate) id: PlayerId,
    pub(crate) name: String,
    pub(crate) is_local: bool,
    pub(crate) is_here: bool,
    pub(crate) is_late: bool,
    pub(crate) link: Option<LinkQuality>,
    pub(crate) is_ready: bool,
    pub(crate) is_out: bool,
    pub(crate) has_shield: bool,
    /// The health as a fraction of the full health, from 0 (dead) to 1.
    pub(crate) health: f32,
    pub(crate) weapon: Weapon,
    pub(crate) ammo: Option<u16>,
    /// The progress of the dash cooldown, from 0 to 1.
    pub(crate) dash: f32,
    pub(crate) kills: u32,
    pub(crate) score: u32,
    pub(crate) lives: u32,
}

impl ViewMember {
    pub(crate) fn name_here(&self) -> String {
        if self.is_local && self.name != "you" {
            format!("{} (you)", self.name)
        } else {
            self.name.clone()
        }
    }
}

pub(super) fn member(
    id: PlayerId,
    player: &Player,
    companion: Option<&Companion>,
    tick: Tick,
    rules: &Rules,
) -> ViewMember {
    let rest = rules.tuning.dash_rest_ticks.max(1) as f32;
    ViewMember {
        id,
        name: companion.map_or_else(|| format!("player {}", id.0 + 1), |one| one.name.clone()),
        is_local: companion.is_some_and(|one| one.is_local),
        is_here: companion.is_none_or(|one| one.is_here) && !player.is_away,
        is_late: companion.is_some_and(|one| one.is_late),
        link: companion.and_then(|one| one.link),
        is_ready: player.is_ready,
        is_out: player.is_out,
        has_shield: player.has_shield,
        health: f32::from(player.health.max(0)) / f32::from(rules.tuning.player_health.max(1)),
        weapon: player.weapon,
        ammo: player.weapon.ammo().map(|_| player.ammo),
        dash: 1.0 - (player.dash_rest(tick) as f32 / rest).min(1.0),
        kills: player.kills,
        score: player.score,
        lives: player.life,
    }
}

pub(crate) fn item_name(item: Item) -> &'static str {
    match item {
        Item::Weapon(weapon) => weapon_name(weapon),
        Item::Health => "health",
        Item::Shield => "shield",
        Item::Life => "extra life",
    }
}

pub(crate) fn weapon_name(weapon: Weapon) -> &'static str {
    match weapon {
        Weapon::Blaster => "Blaster",
        Weapon::Scatter => "Scatter",
        Weapon::Lance => "Lance",
        Weapon::Thumper => "Thumper",
    }
}
