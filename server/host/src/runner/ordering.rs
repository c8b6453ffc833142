//! Executes an operator's orders between two steps of a match.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_protocol::identity::{Identity, Role};
use twinstep_protocol::lineage::REVOKE_SLACK_MS;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;

use super::Runner;
use crate::clock::{unix_now, utc};
use crate::journal_file::Journal;
use crate::logged;
use crate::orders::{MatchOrder, PersonLine};
use twinstep_server::SessionId;
use twinstep_server::internal::{ConnectionState, Present};

const NO_JOURNAL: &str =
    "the match has no journal (the server runs without one, or could not write it)";
/// The maximum time for which a released match continues, so that clients finish joining, reconnecting or being healed.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

impl<S: Simulation> Runner<S> {
    pub(super) fn apply(&mut self, order: MatchOrder) {
        // An order is executed even if the operator's tool no longer waits for the response.
        match order {
            MatchOrder::People(answer) => {
                let people = self.match_.participants().into_iter().map(person_line);
                let _ = answer.send(people.collect());
            }
            MatchOrder::Kick(identity, answer) => {
                let was_here = self.match_.remove_identity(&identity, CloseCode::Kicked);
                let (id, name) = (self.id.0, line(&identity));
                match was_here {
                    true => {
                        logged::info!("match" = id, identity = ?name, "player kicked by an operator")
                    }
                    false => {
                        logged::info!("match" = id, identity = ?name, "player not kicked: not in the match")
                    }
                }
                let _ = answer.send(was_here);
            }
            MatchOrder::Pardon(identity, answer) => {
                let _ = answer.send(self.match_.pardon(&identity));
            }
            MatchOrder::Revoke(identity, answer) => {
                let _ = answer.send(self.revoke(&identity));
            }
            MatchOrder::Notify(words, answer) => {
                let _ = answer.send(self.match_.notify(&words));
            }
            MatchOrder::Request(request, answer) => {
                let accepted = self.match_.request(request);
                match &accepted {
                    Ok(()) => {
                        logged::info!("match" = self.id.0, %request, "operator's request accepted")
                    }
                    Err(error) => {
                        logged::info!("match" = self.id.0, %request, %error, "operator's request refused")
                    }
                }
                let _ = answer.send(accepted);
            }
            MatchOrder::End(words, answer) => {
                let given = (!words.is_empty()).then(|| tracing::field::debug(line(&words)));
                logged::info!(
                    "match" = self.id.0,
                    reason = given,
                    "match ended by an operator"
                );
                let reason = match words.as_str() {
                    "" => "ended by an operator".to_owned(),
                    words => format!("ended by an operator: {words}"),
                };
                self.match_.end_journal_saying(&reason);
                // The journal first, so that the close code is true when clients receive it.
                self.carry_out();
                self.match_.close(CloseCode::MatchOver);
                let _ = answer.send(());
            }
            MatchOrder::Save(answer) => {
                let _ = answer.send(self.match_.save());
            }
            MatchOrder::Journal(answer) => {
                let journal = self.journal.as_ref().map(Journal::found_from_anywhere);
                let _ = answer.send(journal.ok_or(NO_JOURNAL));
            }
            MatchOrder::Release(answer) => match (&self.journal, &self.released) {
                (None, _) => drop(answer.send(Err(NO_JOURNAL))),
                (_, Some(_)) => drop(answer.send(Err("another request is releasing it"))),
                (Some(_), None) if self.match_.lobby().is_some() => {
                    let _ = answer.send(Err("it waits for its players: it has no journal yet"));
                }
                (Some(_), None) => {
                    let within_s = RELEASE_PATIENCE.as_secs();
                    logged::info!(
                        "match" = self.id.0,
                        within_s,
                        "releasing the match for an operator; joining clients may finish first"
                    );
                    let by = self.ends.clock.now() + RELEASE_PATIENCE;
                    self.released = Some((by, answer));
                }
            },
            MatchOrder::EndDeserted(answer) => {
                let is_deserted = self.match_.is_deserted();
                if is_deserted {
                    self.close(CloseCode::MatchOver);
                }
                let _ = answer.send(is_deserted);
            }
        }
    }

    /// Revokes all tickets of an identity. Its current sessions get a new ticket immediately.
    fn revoke(&mut self, identity: &str) -> u64 {
        let sessions: Vec<SessionId> = self.match_.sessions_of(identity);
        let made_before_unix_ms = unix_now().as_millis() as u64 + REVOKE_SLACK_MS;
        for role in Role::ALL {
            self.match_
                .revoke(&Identity::new(identity, role), made_before_unix_ms);
        }
        for peer in sessions {
            self.hand_ticket(peer);
        }
        // The host gets the ruling before the operator makes a new ticket.
        self.carry_out();
        logged::info!("match" = self.id.0, identity = ?line(identity), made_before = %utc(made_before_unix_ms / 1_000), "tickets revoked by an operator");
        made_before_unix_ms
    }
}

fn person_line(present: Present) -> PersonLine {
    PersonLine {
        seat: present.seat.map(|player| player.0),
        identity: present.identity,
        name: present.name,
        state: match present.connection {
            ConnectionState::Playing => "playing",
            ConnectionState::Joining => "joining",
            ConnectionState::Away => "away",
        },
        connected: present.connection != ConnectionState::Away,
        since_s: tenths(present.lasts.as_secs_f64()),
        margin_ticks: present.margin_ticks,
        round_trip_ms: present
            .round_trip
            .map(|time| tenths(time.as_secs_f64() * 1e3)),
    }
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
