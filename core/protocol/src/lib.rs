//! Every byte that server and client both know: packets, reliable messages, journals. Internal to Twinstep: games use
//! what `twinstep-client` and `twinstep-server` export of it, and its version moves with theirs.
//!
//! | module | what is in it |
//! |---|---|
//! | [`packet`] | the kinds of packets and their parts: each part's writer beside its reader |
//! | [`wire`], [`varint`] | integers and bit lists as bytes |
//! | [`link`], [`lane`], [`datagrams`] | acks and round trips; reliable messages; packets cut for small datagrams |
//! | [`repeats`], [`share`] | which repeats a packet may leave out; how much of a frame one player's commands may take |
//! | [`company`], [`text`] | names and link quality of players; text from elsewhere made safe to show |
//! | [`identity`], [`lineage`] | sessions, matches and identities; which tickets are out of date |
//! | [`journal`], [`replay`] | the record format of a match's file; a match recorded, and played again |
//! | [`simnet`] | a bad network from a seed |
//!
//! Law **Hostile wire**: every reader here returns a value or an error, whatever the bytes. The bounds are in
//! [`twinstep_core::bounds`]. Nothing here owns a clock, a socket, a thread or a file; `no_std` + alloc keeps it so.
#![no_std]

extern crate alloc;

pub mod company;
pub mod datagrams;
pub mod identity;
pub mod journal;
pub mod lane;
pub mod lineage;
pub mod link;
pub mod packet;
pub mod repeats;
pub mod replay;
pub mod share;
pub mod simnet;
pub mod text;
pub mod varint;
pub mod wire;
