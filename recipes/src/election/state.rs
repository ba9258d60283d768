//! The state of an election's own candidates.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use futures::future::OptionFuture;
use lockkeeper_core::{
    ConnectionManager, Error, FencingToken, Hold, HoldExt, LossReason, NodeMonitor, WatchSource,
};
use tokio::sync::watch;

/// The state of a participant, as [`Election::state`](super::Election::state) shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateState {
    /// No campaign is under way, and the last leadership, if there was one, was resigned.
    Idle,
    /// A campaign waits.
    Waiting {
        /// How many candidates are ahead, by the last list. Some of them may have gone since. `None` until
        /// the first list, and without a session.
        position: Option<u32>,
    },
    /// The participant leads.
    Leading {
        /// The fencing token of the leadership.
        fencing_token: FencingToken,
    },
    /// The last leadership was lost, and no campaign is under way.
    Lost {
        /// The reason of the loss.
        reason: LossReason,
    },
    /// A shutdown of the manager has begun, and the participant does not lead.
    Closed,
}

/// The candidates of an election object and of its clones: one for each campaign and each leadership.
#[derive(Debug)]
pub(super) struct LocalCandidates {
    by_number: BTreeMap<u64, LocalCandidate>,
    next: u64,
    /// How the last one ended.
    ended: CandidateState,
}

#[derive(Debug)]
enum LocalCandidate {
    Waiting(Option<u32>),
    Leading(FencingToken, NodeMonitor),
}

impl Default for LocalCandidates {
    fn default() -> Self {
        Self { by_number: BTreeMap::new(), next: 0, ended: CandidateState::Idle }
    }
}

impl LocalCandidate {
    fn state(&self) -> CandidateState {
        match self {
            Self::Waiting(position) => CandidateState::Waiting { position: *position },
            Self::Leading(token, monitor) => match monitor.check() {
                Ok(()) => CandidateState::Leading { fencing_token: *token },
                Err(lost) => CandidateState::Lost { reason: lost.reason },
            },
        }
    }
}

impl LocalCandidates {
    fn state(&self, is_closing: bool) -> CandidateState {
        combined(self.by_number.values().map(LocalCandidate::state), &self.ended, is_closing)
    }

    /// The monitor of the leadership. All others are lost already.
    fn monitor(&self) -> Option<NodeMonitor> {
        self.by_number.values().find_map(|candidate| match candidate {
            LocalCandidate::Leading(_, monitor) if monitor.check().is_ok() => Some(monitor.clone()),
            _ => None,
        })
    }
}

/// The state of several candidates together: the one that leads counts, then the one that is nearest to it,
/// then a lost leadership whose guard still exists, then how the last one ended.
fn combined(
    candidates: impl Iterator<Item = CandidateState>,
    ended: &CandidateState,
    is_closing: bool,
) -> CandidateState {
    let rank = |state: &CandidateState| match state {
        CandidateState::Leading { .. } => (2, Reverse(0)),
        CandidateState::Waiting { position } => (1, Reverse(position.unwrap_or(u32::MAX))),
        CandidateState::Idle | CandidateState::Lost { .. } | CandidateState::Closed => (0, Reverse(0)),
    };
    let state = candidates.max_by_key(rank).unwrap_or_else(|| ended.clone());
    let leads = matches!(state, CandidateState::Leading { .. });
    if is_closing && !leads { CandidateState::Closed } else { state }
}

/// A campaign, and then its leadership. Its end is that of the candidate.
#[derive(Debug)]
pub(super) struct Candidacy {
    candidates: watch::Sender<LocalCandidates>,
    number: u64,
}

impl Candidacy {
    pub(super) fn begin(candidates: &watch::Sender<LocalCandidates>) -> Self {
        let mut number = 0;
        candidates.send_modify(|all| {
            number = all.next;
            all.next += 1;
            all.by_number.insert(number, LocalCandidate::Waiting(None));
        });
        Self { candidates: candidates.clone(), number }
    }

    /// Notes each position of the campaign.
    pub(super) fn position_report(&self) -> impl Fn(Option<u32>) + Send + Sync + use<> {
        let (candidates, number) = (self.candidates.clone(), self.number);
        move |position| {
            candidates.send_if_modified(|all| match all.by_number.get_mut(&number) {
                Some(LocalCandidate::Waiting(known)) => std::mem::replace(known, position) != position,
                _ => false,
            });
        }
    }

    pub(super) fn leads(&self, hold: &Hold) {
        let leading = LocalCandidate::Leading(hold.fencing_token(), hold.monitor());
        self.candidates.send_modify(|all| drop(all.by_number.insert(self.number, leading)));
    }
}

impl Drop for Candidacy {
    fn drop(&mut self) {
        self.candidates.send_modify(|all| {
            all.ended = match all.by_number.remove(&self.number).map(|candidate| candidate.state()) {
                Some(lost @ CandidateState::Lost { .. }) => lost,
                _ => CandidateState::Idle,
            };
        });
    }
}

/// The state of an election's own participant, for a [`Watch`].
#[derive(Clone, Debug)]
pub(super) struct CandidateSource {
    receiver: watch::Receiver<LocalCandidates>,
    manager: ConnectionManager,
    /// What [`changed`](WatchSource::changed) returned last.
    returned: Option<CandidateState>,
}

impl CandidateSource {
    pub(super) fn new(receiver: watch::Receiver<LocalCandidates>, manager: ConnectionManager) -> Self {
        Self { receiver, manager, returned: None }
    }
}

impl WatchSource for CandidateSource {
    type State = CandidateState;

    fn state(&self) -> CandidateState {
        self.receiver.borrow().state(self.manager.is_closing())
    }

    async fn changed(&mut self) -> Result<CandidateState, Error> {
        loop {
            let is_closing = self.manager.is_closing();
            let (monitor, state) = {
                let candidates = self.receiver.borrow_and_update();
                (candidates.monitor(), candidates.state(is_closing))
            };
            if self.returned.as_ref() != Some(&state) {
                self.returned = Some(state.clone());
                return Ok(state);
            }
            if state == CandidateState::Closed {
                return Err(Error::Closed);
            }
            let lost = OptionFuture::from(monitor.as_ref().map(NodeMonitor::lost));
            tokio::select! {
                biased;
                Some(_) = lost => {}
                changed = self.receiver.changed() => changed.map_err(|_| Error::Closed)?,
                () = self.manager.closing(), if !is_closing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_candidate_counts_and_an_end_only_if_nothing_is_under_way() {
        let waiting = |position| CandidateState::Waiting { position };
        let leading = CandidateState::Leading { fencing_token: FencingToken::new(7) };
        let lost = CandidateState::Lost { reason: LossReason::NodeDeleted };
        let (idle, closed) = (CandidateState::Idle, CandidateState::Closed);
        let none: &[CandidateState] = &[];
        for (candidates, ended, state, in_shutdown) in [
            (none, &idle, &idle, &closed),
            (none, &lost, &lost, &closed),
            (&[waiting(None)], &lost, &waiting(None), &closed),
            (&[waiting(None), waiting(Some(3))], &idle, &waiting(Some(3)), &closed),
            (&[waiting(Some(3)), waiting(Some(1)), waiting(None)], &idle, &waiting(Some(1)), &closed),
            (&[waiting(Some(1)), leading.clone(), lost.clone()], &lost, &leading, &leading),
            (&[lost.clone(), waiting(Some(0))], &idle, &waiting(Some(0)), &closed),
            (std::slice::from_ref(&lost), &idle, &lost, &closed),
        ] {
            let combined = |is_closing| combined(candidates.iter().cloned(), ended, is_closing);
            assert_eq!((&combined(false), &combined(true)), (state, in_shutdown), "{candidates:?}");
        }
    }
}
