//! What is seen and heard of *Powderkeg*, and the hands that play it.
//!
//! | module | what is in it |
//! |---|---|
//! | [`feed`] | what a view draws from: a match that is played, or one that was |
//! | [`window`], [`terminal`] | the views in a window and on a terminal |
//! | [`summary`] | what a match that was shown came to |
//! | [`rehearsal`] | a whole match in one process and virtual time |
//! | [`say`], [`stop`], [`time`] | what is printed; whether the process was asked to end; the time of day |

pub mod feed;
pub mod rehearsal;
pub mod say;
pub mod stop;
pub mod summary;
pub mod terminal;
pub mod time;
pub mod window;
