//! Powderkeg in a browser's tab. `demo/page/powderkeg.js` loads this program, calls [`powderkeg_begin`], and then draws
//! its frames.
//!
//! ```text
//!   a link's ticket ──▶ twinstep_web::join ──▶ Client over WebTransport ─┐
//!                                                                        ├─▶ Feed ──▶ window
//!   no link ──▶ Rehearsal: match, physics and bots, simulated links ─────┘
//! ```

#![expect(unsafe_code, reason = "a name that the page calls counts as unsafe")]

use powderkeg_game::terms;
use twinstep_protocol::simnet::LinkProfile;

use crate::feed::Feed;
use crate::page::end;
use crate::rehearsal::{Rehearsal, Setup};
use crate::time::unix_now;
use crate::window;

#[unsafe(no_mangle)]
extern "C" fn powderkeg_begin() {
    let rules = terms::rules(None);
    let Some(ticket) = twinstep_web::ticket() else {
        let mut setup = Setup::new(rules, unix_now().as_millis() as u64);
        (setup.frame, setup.link) = (None, LinkProfile::WAN);
        let feed = Feed::rehearsal(Rehearsal::new(&setup), Some("wan".to_owned()));
        return window::show(feed);
    };
    let session = terms::session(&rules).record_journal(unix_now().as_secs());
    match twinstep_web::join(&ticket, session) {
        Ok(client) => window::show(Feed::client(client, rules, None)),
        Err(why) => end(&why.to_string()),
    }
}
