//! Every byte format that server and client share: packets, reliable messages, journals. Internal to Twinstep: games
//! use the items that `twinstep-client` and `twinstep-server` re-export, and its version follows theirs.
//!
//! | module | contents |
//! |---|---|
//! | [`packet`] | the kinds of packets and their parts: each part's writer next to its reader |
//! | [`wire`], [`varint`] | integers and bit lists as bytes |
//! | [`link`], [`lane`], [`datagrams`] | acks and round trips; reliable messages; packets split for small datagrams |
//! | [`repeats`], [`share`] | which repeats a packet can leave out; a player's share of a frame for its commands |
//! | [`lobby`] | the players and rules of a match that has not started |
//! | [`names`], [`text`] | display names of players; foreign text made safe to show |
//! | [`identity`], [`lineage`] | session ids; which tickets are out of date |
//! | [`journal`], [`replay`] | the record format of a match's file; recording and replaying a match |
//! | [`save`] | saved games |
//! | [`tape`] | what a client assumed and showed |
//! | [`simnet`] | a simulated bad network, driven by a seed |
//!
//! Law **Hostile wire**: every reader here returns a value or an error for any bytes. The limits are in
//! [`twinstep_core::bounds`]. This crate owns no clock, socket, thread or file; `no_std` + alloc enforces that.
#![allow(missing_docs, reason = "internal: no author of a game imports it")]
#![no_std]

extern crate alloc;

pub mod datagrams;
pub mod identity;
pub mod journal;
pub mod lane;
pub mod lineage;
pub mod link;
pub mod lobby;
pub mod names;
pub mod packet;
pub mod repeats;
pub mod replay;
pub mod save;
pub mod share;
pub mod simnet;
pub mod tape;
pub mod text;
pub mod varint;
pub mod wire;
