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
    Busy(Option<Duration>),
    /// No server answers.
    Outage,
    /// The servers answer, and something else is wrong: access lists, another recipe at the path.
    Fault,
}

impl Cause {
    fn of(error: &Error) -> Self {
        if let Some(RateLimiterError::NoRoom { retry_after, .. }) = error.recipe() {
            return Self::Busy(Some(*retry_after));
        }
        if let Error::Timeout { phase: Phase::Queued { .. } | Phase::Recipe(_), .. } = error {
            return Self::Busy(None);
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
            Cause::Busy(retry_after) => {
                self.answered();
                Err(Denial::Busy(retry_after))
            }
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
