//! The leader, as others see it.

use std::time::SystemTime;

use lockkeeper_core::{
    ContenderInfo, Deadline, Error, FencingToken, LockQueue, ManagerExt, Phase, Watch, WatchSource,
};
use tokio::sync::watch;
use tracing::warn;

use super::handle::Election;
use super::inspect::id;

/// A leader, as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    id: String,
    token: FencingToken,
    since: SystemTime,
    candidate_since: SystemTime,
}

impl Leader {
    fn new(head: &ContenderInfo) -> Option<Self> {
        Some(Self {
            id: id(head.data()),
            token: head.fencing_token()?,
            since: SystemTime::now(),
            candidate_since: head.since(),
        })
    }

    /// The id of the participant, as its node had it when the observer first saw it. Bytes that are not UTF-8
    /// are replaced. It is `__REVOKE__` if the leader had been asked to resign before.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The fencing token of its leadership: greater than those of all earlier leaders.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// When the observer first saw it lead, by the time of day of the observer's machine. A leader that the
    /// observer found at its beginning may have led for longer: at most since
    /// [`candidate_since`](Self::candidate_since).
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// When it became a candidate, by the servers' clock.
    #[must_use]
    pub fn candidate_since(&self) -> SystemTime {
        self.candidate_since
    }
}

/// What an observer knows.
#[derive(Clone, Debug)]
enum Observed {
    /// Nothing yet.
    Unknown,
    /// The leader, if there is one.
    Leader(Option<Leader>),
    /// The observation has ended.
    Ended(Error),
}

/// The leader of an election, for a [`Watch`].
#[derive(Clone, Debug)]
struct LeaderSource {
    receiver: watch::Receiver<Observed>,
    /// What [`changed`](WatchSource::changed) returned last: a leader by its token, or that there is none.
    returned: Option<Option<FencingToken>>,
}

impl Election {
    /// Follows the leader of the election, without being a candidate. Waits for the first answer, within the
    /// manager's operation timeout.
    ///
    /// The leader is the first candidate in the queue, as the servers know it. It may not know yet that it
    /// leads. It may also have lost its leadership, if its node is not deleted yet. So an observation is for
    /// those who look for the leader, and grants nothing.
    ///
    /// A persistent node at the head, as tools that copy or restore trees leave it, belongs to no session:
    /// nobody leads, and the candidates wait until it is deleted. It is logged.
    ///
    /// # Ordering and fairness
    ///
    /// The tokens of the leaders that an observation shows grow: it never shows an earlier leader again. So
    /// after the ensemble was restored from a backup, make another observation.
    ///
    /// # Cost
    ///
    /// A task in the background with one watch, on the node of the leader. For each leader a list and a read.
    /// While there is no candidate, the watch is on the path of the election, or on the nearest parent that
    /// exists. It needs only the right to read.
    ///
    /// # Session loss
    ///
    /// The observation continues in the next session. While there is no connection, it shows the last known
    /// leader.
    ///
    /// # The watch
    ///
    /// The state is `None` while there is no leader, and after the end of the observation. Between two
    /// leaders, [`Watch::changed`] returns `None`. It ends by [`Error::Closed`] after a shutdown, and by
    /// [`Error::Refused`] if the right to read was lost. Clones share the requests. The observation ends with
    /// the last of them, and keeps the manager alive until then.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::Closed`] after a shutdown, and
    /// [`Error::Config`] without a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper::Election;
    ///
    /// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
    /// let mut leaders = election.observe().await?;
    /// assert_eq!(leaders.changed().await?, None);
    ///
    /// let leadership = election.campaign().await?;
    /// let leader = leaders.changed().await?.expect("a leader");
    /// assert_eq!((leader.id(), leader.fencing_token()), ("planner-3", leadership.fencing_token()));
    ///
    /// leadership.resign().await?;
    /// assert_eq!(leaders.changed().await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn observe(&self) -> Result<Watch<Option<Leader>>, Error> {
        self.queue.manager().ensure_runtime()?;
        let (sender, mut receiver) = watch::channel(Observed::Unknown);
        let queue = self.queue.clone();
        self.queue.manager().spawn(async move {
            let show = |head: Option<ContenderInfo>| {
                let head = head.filter(|head| head.session() != 0 || warn_of(&queue, head));
                sender.send_replace(Observed::Leader(head.as_ref().and_then(Leader::new)));
            };
            tokio::select! {
                biased;
                () = sender.closed() => {}
                error = queue.observe_head(show) => drop(sender.send_replace(Observed::Ended(error))),
            }
        });
        let limit = Deadline::after(self.queue.manager().operation_timeout());
        let is_known = |seen: &Observed| !matches!(seen, Observed::Unknown);
        let first = tokio::select! {
            biased;
            first = receiver.wait_for(is_known) => {
                first.map_or(Observed::Ended(Error::Closed), |seen| seen.clone())
            }
            () = limit.passed() => Observed::Unknown,
        };
        match first {
            Observed::Leader(_) => Ok(LeaderSource { receiver, returned: None }.into_watch()),
            Observed::Ended(error) => Err(error),
            Observed::Unknown => {
                let path = self.queue.manager().whole_path(self.path());
                let waited = limit.waited();
                Err(Error::Timeout { phase: Phase::Answer, path, waited })
            }
        }
    }
}

/// A node that belongs to no session leads nothing. The candidates wait behind it.
fn warn_of(queue: &LockQueue, head: &ContenderInfo) -> bool {
    let path = queue.manager().whole_path(head.path());
    warn!(%path, "a node that belongs to no session is ahead of all candidates: delete it");
    false
}

impl WatchSource for LeaderSource {
    type State = Option<Leader>;

    fn state(&self) -> Option<Leader> {
        match &*self.receiver.borrow() {
            Observed::Leader(leader) => leader.clone(),
            Observed::Unknown | Observed::Ended(_) => None,
        }
    }

    async fn changed(&mut self) -> Result<Option<Leader>, Error> {
        loop {
            let seen = self.receiver.borrow_and_update().clone();
            match seen {
                Observed::Ended(error) => return Err(error),
                Observed::Leader(leader)
                    if self.returned != Some(leader.as_ref().map(Leader::fencing_token)) =>
                {
                    let was_led = self.returned.flatten().is_some();
                    let leader = leader.filter(|_| !was_led);
                    self.returned = Some(leader.as_ref().map(Leader::fencing_token));
                    return Ok(leader);
                }
                Observed::Leader(_) | Observed::Unknown => {}
            }
            if self.receiver.changed().await.is_err() {
                return Err(Error::Closed);
            }
        }
    }
}
