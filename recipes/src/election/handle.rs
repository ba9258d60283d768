use std::panic::Location;
use std::time::Duration;

use lockkeeper_core::{
    ConnectionManager, Deadline, Error, HoldEvents, IntoPath, Kind, Label, LockQueue, Rule, Watch,
    WatchSource, WholePath, ZnodePath,
};
use tokio::sync::watch;

use super::leadership::Leadership;
use super::state::{Candidacy, CandidateSource, CandidateState, LocalCandidates};
use crate::lock::AcquiredAt;
use crate::participant_id::check_holder;

/// Each candidate waits for every candidate ahead.
const LATCH: Rule = Rule::blocked_by(&[Kind::LATCH]);

/// An election over all processes: at most one participant leads at a time.
///
/// [`campaign`](Self::campaign) waits until this participant leads, and returns its [`Leadership`]: it is
/// over when it is dropped or lost. A participant campaigns again with the same object, or by
/// [`lead`](Self::lead), which runs work in one term after the other. [`observe`](Self::observe) follows the
/// leader from outside, and [`state`](Self::state) this participant.
///
/// Each campaign is a candidate of its own, also for the same object and the same id. A clone is cheap. The
/// path belongs to the election alone: create no other node below it.
///
/// # Ordering and fairness
///
/// First in, first out across processes, in the order in which the server committed the candidates' nodes. A
/// resignation wakes one candidate.
///
/// # Cost
///
/// As a [`Mutex`](crate::Mutex): a campaign without other candidates takes one round trip, and a resignation
/// one.
///
/// # Session loss
///
/// The leadership of an expired session is lost. Its [`lost()`](crate::Guard::lost) resolves before the
/// server can let another candidate lead. A candidate queues again in the next session, at the end of the
/// queue. If the path is deleted, by hand or because an empty container was removed, the leadership is lost,
/// and candidates create the path again.
///
/// # Layout
///
/// [`new`](Self::new) has the layout of Curator's `LeaderLatch`: `<path>/_c_<uuid>-latch-<sequence>`, with
/// the id as data. A Java service with the same path takes part in the same election, and each shows the id
/// of the other (`getLeader`, `getParticipants`). For the layout of `LeaderSelector` use
/// [`in_selector_layout`](Self::in_selector_layout).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::znodes::Version;
/// use lockkeeper::{ConnectionManager, Election};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// # manager.znodes().create("/plan", b"", lockkeeper::znodes::CreateMode::Persistent).await?;
/// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
///
/// let leadership = election.campaign().await?;
/// assert_eq!(election.candidates().await?, ["planner-3"]);
/// // Committed only if this participant still leads.
/// leadership.txn().set("/plan", b"by planner-3".to_vec(), Version::Any).commit().await?;
/// leadership.resign().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    pub(super) queue: LockQueue,
    id: String,
    candidates: watch::Sender<LocalCandidates>,
}

impl Election {
    /// Makes the election at `path`, below the manager's chroot, for the participant `id`, in the layout of
    /// Curator's `LeaderLatch`. Sends nothing.
    ///
    /// Others read the id ([`candidates`](Self::candidates)), so each participant should have an id of its
    /// own, such as its address. The election does not rely on it.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, and if the id is longer than 1024 bytes,
    /// or is `__REVOKE__` or begins with that and a space, by which a candidate is asked to resign.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        id: impl Into<String>,
    ) -> Result<Self, Error> {
        Self::with(manager, path, id.into(), Label::LATCH, LATCH)
    }

    /// Makes the election at `path` in the layout of Curator's `LeaderSelector`, and takes part in one
    /// election with that class. Sends nothing.
    ///
    /// It is the layout of a [`Mutex`](crate::Mutex): a mutex on the same path takes part as well. A path
    /// that has candidates of the other layout is refused as [`Error::ConflictingKind`]; Curator's own
    /// classes ignore each other.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn in_selector_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        id: impl Into<String>,
    ) -> Result<Self, Error> {
        Self::with(manager, path, id.into(), Label::LOCK, Rule::MUTEX)
    }

    fn with(
        manager: &ConnectionManager,
        path: impl IntoPath,
        id: String,
        label: Label,
        rule: Rule,
    ) -> Result<Self, Error> {
        check_holder(&id)?;
        let path = path.into_path()?;
        let queue = LockQueue::new(manager, path, label, rule)?.with_metric_name("election");
        let candidates = watch::Sender::new(LocalCandidates::default());
        Ok(Self { queue: queue.with_node_data(id.as_bytes()), id, candidates })
    }

    /// The path of the election, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.queue.directory()
    }

    /// The id of this participant.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until this participant leads, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses the node (access list, quota). [`Error::ConflictingKind`] if
    /// another kind of lock, or an election in the other layout, uses the path. [`Error::Closed`] after a
    /// shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    #[track_caller]
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.campaign_until(Deadline::never()).await?.acquired_at(place)) }
    }

    /// Waits until this participant leads, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. With a `timeout` of zero, it means that another
    /// candidate is ahead. Otherwise as [`campaign`](Self::campaign).
    ///
    /// # Cancel safety
    ///
    /// As [`campaign`](Self::campaign).
    #[track_caller]
    pub fn campaign_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Leadership, Error>> + Send {
        let place = Location::caller();
        async move { Ok(self.campaign_until(Deadline::after(timeout)).await?.acquired_at(place)) }
    }

    /// Leads if there is no other candidate. Returns `None` if any candidate is ahead, including another
    /// `try_campaign` in progress.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`campaign`](Self::campaign).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind.
    #[track_caller]
    pub fn try_campaign(&self) -> impl Future<Output = Result<Option<Leadership>, Error>> + Send {
        let place = Location::caller();
        async move {
            let limit = Deadline::after(self.queue.manager().operation_timeout());
            let candidacy = Candidacy::begin(&self.candidates);
            let hold = self.queue.try_acquire(limit).await?;
            Ok(hold.map(|hold| Leadership::new(candidacy, hold).acquired_at(place)))
        }
    }

    pub(super) async fn campaign_until(&self, deadline: Deadline) -> Result<Leadership, Error> {
        let candidacy = Candidacy::begin(&self.candidates);
        let queue = self.queue.clone().with_position_report(candidacy.position_report());
        let hold = queue.acquire(deadline).await?;
        Ok(Leadership::new(candidacy, hold))
    }

    /// For errors and logs.
    pub(crate) fn whole_path(&self) -> WholePath {
        self.queue.whole_path()
    }

    /// Whether a participant of this process leads: by this manager, with any id. Costs no request.
    #[must_use]
    pub fn is_led_here(&self) -> bool {
        self.queue.is_held()
    }

    /// Follows this participant: whether it waits, and at which position, leads, or has lost. It shows the
    /// campaigns and the leadership of this object and of its clones, which [`lead`](Self::lead) begins as
    /// well. If there are several at once, it shows the one that leads, or else the nearest one to that.
    ///
    /// Costs no request, and no task. [`Watch::state`] reads the clock at each call: after a pause that was
    /// too long, a leadership is lost at once. The watch keeps the manager alive. It ends after
    /// [`CandidateState::Closed`], and when the election, its clones and its leaderships are dropped.
    ///
    /// # Ordering and fairness
    ///
    /// `Leading` ends before another participant can lead, as
    /// [`Guard::is_valid`](crate::Guard::is_valid) does. It begins when the campaign returns.
    ///
    /// # Session loss
    ///
    /// A leadership becomes `Lost`. A campaign continues in the next session, and is `Waiting` all the time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::Election;
    /// use lockkeeper::election::CandidateState;
    ///
    /// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
    /// let mut state = election.state();
    /// assert_eq!(state.changed().await?, CandidateState::Idle);
    ///
    /// let leadership = election.campaign().await?;
    /// let fencing_token = leadership.fencing_token();
    /// assert_eq!(state.changed().await?, CandidateState::Leading { fencing_token });
    /// leadership.resign().await?;
    /// assert_eq!(state.state(), CandidateState::Idle);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn state(&self) -> Watch<CandidateState> {
        let receiver = self.candidates.subscribe();
        CandidateSource::new(receiver, self.queue.manager().clone()).into_watch()
    }

    /// The events of the leaderships of this manager's participants from now on: granted, given up, lost.
    #[must_use]
    pub fn events(&self) -> HoldEvents {
        self.queue.events()
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::ConfigError;
    use lockkeeper_testserver::TestServer;

    use super::*;
    use crate::participant_id::{ID_BYTES_MAX, REVOKE};

    #[tokio::test]
    async fn a_bad_id_is_refused_before_any_request() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        for id in ["x".repeat(ID_BYTES_MAX + 1), REVOKE.to_owned(), format!("{REVOKE} a")] {
            for election in
                [Election::new(&manager, "/e", id.clone()), Election::in_selector_layout(&manager, "/e", id)]
            {
                let refused = election.unwrap_err();
                assert!(
                    matches!(refused, Error::Config(ConfigError::Setting { name: "id", .. })),
                    "{refused}"
                );
            }
        }
        for id in [String::new(), "x".repeat(ID_BYTES_MAX), "größe".to_owned()] {
            assert_eq!(Election::new(&manager, "/e", id.clone()).unwrap().id(), id);
        }
    }
}
