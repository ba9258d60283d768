//! What a layer knows of ZooKeeper's absence.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::error::{ErrorKind, Phase, RateLimiterError};
use parking_lot::Mutex;
use tracing::{error, info, warn};

/// Why a call of a recipe did not grant.
#[derive(Debug)]
pub(crate) enum Denial {
    /// Other requests are ahead, or have used up what there is. The time after which another try can
    /// succeed, if it is known.
    Busy(Option<Duration>),
    /// Nothing was decided: no answer of the servers, or an error that another call changes nothing about.
    Undecided,
}

/// The meaning of an error for a layer.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    /// The servers answered that there is no room.
    NoRoom(Duration),
    /// The time was over behind other contenders. It is not known whether the servers still answer.
    Queued,
    /// No server answers.
    Outage,
    /// The servers answer, and something else is wrong: access lists, another recipe at the path.
    Fault,
}

impl Cause {
    fn of(error: &Error) -> Self {
        if let Some(RateLimiterError::NoRoom { retry_after, .. }) = error.recipe() {
            return Self::NoRoom(*retry_after);
        }
        if let Error::Timeout { phase: Phase::Queued { .. } | Phase::Recipe(_), .. } = error {
            return Self::Queued;
        }
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Disconnected | ErrorKind::Unknown | ErrorKind::Closed => {
                Self::Outage
            }
            _ if error.is_transient() => Self::Outage,
            _ => Self::Fault,
        }
    }
}

/// The outage that a layer is in, if it is in one: shared by all clones of the layer.
///
/// During an outage one request at a time asks the servers. All others are answered at once, so that they do
/// not wait for an answer that does not come.
#[derive(Debug)]
pub(crate) struct Outage {
    /// For the log.
    layer: &'static str,
    state: Mutex<OutageState>,
    has_reported_fault: AtomicBool,
}

#[derive(Debug)]
enum OutageState {
    None,
    Known {
        /// A request asks the servers now.
        is_probed: bool,
        /// The requests that were answered without the servers.
        undecided: u64,
    },
}

/// What a request does.
enum Way<'a> {
    Ask,
    Probe(Probe<'a>),
    /// Another request probes.
    Undecided,
}

/// The one request that asks the servers during an outage. Its drop lets another one ask.
struct Probe<'a>(&'a Outage);

impl Outage {
    pub(crate) fn new(layer: &'static str) -> Self {
        Self { layer, state: Mutex::new(OutageState::None), has_reported_fault: AtomicBool::new(false) }
    }

    /// Makes a call of a recipe: `attempt`, and during an outage first `probe`, which does not wait for other
    /// requests. `None` says that other requests are ahead.
    pub(crate) async fn ask<T>(
        &self,
        attempt: impl Future<Output = Result<Option<T>, Error>>,
        probe: impl Future<Output = Result<Option<T>, Error>>,
    ) -> Result<T, Denial> {
        match self.way() {
            Way::Undecided => return Err(Denial::Undecided),
            Way::Probe(_probe) => match self.judge(probe.await) {
                // The servers answer. Other requests ask them from here on, while this one waits.
                Err(Denial::Busy(_)) => {}
                decided => return decided,
            },
            Way::Ask => {}
        }
        self.judge(attempt.await)
    }

    fn way(&self) -> Way<'_> {
        match &mut *self.state.lock() {
            OutageState::None => Way::Ask,
            OutageState::Known { is_probed: true, undecided } => {
                *undecided += 1;
                Way::Undecided
            }
            OutageState::Known { is_probed, .. } => {
                *is_probed = true;
                Way::Probe(Probe(self))
            }
        }
    }

    fn judge<T>(&self, result: Result<Option<T>, Error>) -> Result<T, Denial> {
        let error = match result {
            Ok(granted) => {
                self.answered();
                return granted.ok_or(Denial::Busy(None));
            }
            Err(error) => error,
        };
        match Cause::of(&error) {
            Cause::NoRoom(retry_after) => {
                self.answered();
                Err(Denial::Busy(Some(retry_after)))
            }
            Cause::Queued => Err(Denial::Busy(None)),
            Cause::Outage => {
                self.unanswered(&error);
                Err(Denial::Undecided)
            }
            Cause::Fault => {
                self.answered();
                if !self.has_reported_fault.swap(true, Ordering::Relaxed) {
                    error!(layer = self.layer, %error, "a layer cannot decide on a request");
                }
                Err(Denial::Undecided)
            }
        }
    }

    fn answered(&self) {
        let mut state = self.state.lock();
        if let OutageState::Known { undecided, .. } = std::mem::replace(&mut *state, OutageState::None) {
            drop(state);
            info!(layer = self.layer, undecided, "ZooKeeper answers a layer again");
        }
    }

    fn unanswered(&self, error: &Error) {
        let mut state = self.state.lock();
        match &mut *state {
            OutageState::Known { undecided, .. } => *undecided += 1,
            OutageState::None => {
                *state = OutageState::Known { is_probed: false, undecided: 1 };
                drop(state);
                warn!(layer = self.layer, %error, "ZooKeeper does not answer a layer");
            }
        }
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        if let OutageState::Known { is_probed, .. } = &mut *self.0.state.lock() {
            *is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    fn timeout(phase: Phase) -> Error {
        Error::Timeout { phase, path: "/calls".into(), waited: Duration::ZERO }
    }

    async fn ask(outage: &Outage, result: Result<Option<u32>, Error>) -> Result<u32, Denial> {
        outage.ask(ready(result.clone()), ready(result)).await
    }

    fn is_known(outage: &Outage) -> bool {
        matches!(&*outage.state.lock(), OutageState::Known { .. })
    }

    #[tokio::test]
    async fn only_an_answer_of_the_servers_ends_an_outage() {
        let outage = Outage::new("test");
        assert!(matches!(ask(&outage, Err(timeout(Phase::Connecting))).await, Err(Denial::Undecided)));
        assert!(is_known(&outage));
        // The servers may have answered before the outage only.
        let queued = Phase::Queued {
            predecessor: "lock-1".to_owned(),
            predecessor_data: String::new(),
            ahead: 1,
            held_here: None,
        };
        assert!(matches!(ask(&outage, Err(timeout(queued))).await, Err(Denial::Busy(None))));
        assert!(is_known(&outage));
        assert!(matches!(ask(&outage, Ok(None)).await, Err(Denial::Busy(None))));
        assert!(!is_known(&outage));
        assert!(matches!(ask(&outage, Err(Error::Closed)).await, Err(Denial::Undecided)));
        assert_eq!(ask(&outage, Ok(Some(7))).await.ok(), Some(7));
        assert!(!is_known(&outage));
    }

    #[tokio::test]
    async fn one_request_at_a_time_asks_the_servers_during_an_outage() {
        let outage = Outage::new("test");
        ask(&outage, Err(timeout(Phase::Answer))).await.unwrap_err();
        let mut probe = Box::pin(outage.ask(ready(Ok(Some(1))), std::future::pending()));
        assert!(futures::poll!(&mut probe).is_pending());
        assert!(matches!(ask(&outage, Ok(Some(2))).await, Err(Denial::Undecided)));
        // A request that is dropped lets another one ask.
        drop(probe);
        assert_eq!(ask(&outage, Ok(Some(3))).await.ok(), Some(3));
    }
}
