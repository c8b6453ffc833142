//! [`MatchHandle`]: access to a running match for the rest of the process.

use std::collections::VecDeque;
use std::future::ready;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};
use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;

use super::mailbox::Mailbox;
use super::runner::Errand;
use twinstep_server::Match;
use twinstep_server::incident::Incident;

/// The match is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the match is over")]
pub struct MatchEnded;

/// A handle to a running match.
pub struct MatchHandle<S: Simulation> {
    pub(super) errands: Mailbox<Errand<S>>,
    pub(super) over: watch::Receiver<Option<CloseCode>>,
    pub(super) incidents: Arc<Mutex<VecDeque<Incident>>>,
}

impl<S: Simulation> Clone for MatchHandle<S> {
    fn clone(&self) -> Self {
        MatchHandle {
            errands: self.errands.clone(),
            over: self.over.clone(),
            incidents: self.incidents.clone(),
        }
    }
}

impl<S: Simulation> MatchHandle<S> {
    /// Runs `look` on the match between two steps. The match waits for `look`, so it must be short. A panic in `look`
    /// ends the match.
    ///
    /// # Errors
    /// If the match is over.
    pub async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Match<S>) -> R + Send + 'static,
    ) -> Result<R, MatchEnded> {
        let (answer, answered) = oneshot::channel();
        let errand: Errand<S> = Box::new(move |match_| {
            let _ = answer.send(look(match_));
        });
        let asked = async {
            self.errands.send(errand).await.map_err(|_| MatchEnded)?;
            answered.await.map_err(|_| MatchEnded)
        };
        let mut asked = pin!(asked);
        let mut over = self.over.clone();
        tokio::select! {
            biased;
            answer = &mut asked => return answer,
            _ = over.wait_for(Option::is_some) => {}
        }
        // Checks for the response once more: a closure that closes the match responds before the end is reported. A
        // hung match never responds.
        tokio::select! {
            biased;
            answer = asked => answer,
            () = ready(()) => Err(MatchEnded),
        }
    }

    /// Takes the incidents of the match since the last call, at most the newest 64, even after it has ended: panics, a
    /// NaN, a full disk. [`Match::take_reports`] returns the desyncs that clients report. Both are also logged.
    #[must_use]
    pub fn take_incidents(&self) -> Vec<Incident> {
        let mut incidents = self
            .incidents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        incidents.drain(..).collect()
    }

    /// Returns `true` if the match is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.errands.is_closed() || self.over.borrow().is_some()
    }

    /// Waits for the end of the match. Returns its close code, or `None` if the host was dropped.
    pub async fn ended(&self) -> Option<CloseCode> {
        let mut over = self.over.clone();
        let ended = over.wait_for(Option::is_some).await;
        ended.ok().and_then(|code| *code)
    }
}
