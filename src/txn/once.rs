use super::prepared::{NotCommitted, Prepared};
use super::transaction::{Txn, TxnResult};
use crate::error::{Error, Operation, Phase, Refusal, TxnError};
use crate::session::{ParentLifetime, Session, Stop, make_directory};
use crate::telemetry::timers::TxnTimer;
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, WriteOp};
use crate::znode::path::{IntoPath, PathError, ZnodePath};

/// A transaction that is committed at most once: made by [`Txn::once`].
#[derive(Debug)]
#[must_use = "nothing is written before commit()"]
pub struct OnceTxn<'a> {
    txn: Txn<'a>,
    marker: Result<ZnodePath, PathError>,
    data: Vec<u8>,
}

/// The result of a transaction that is committed at most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// It was committed now. The results of its writes, in their order.
    Committed(Vec<TxnResult>),
    /// It was committed before: by an earlier try, whose answer may have been lost, or by another process.
    Before,
}

impl<'a> Txn<'a> {
    /// Makes the transaction one that is committed at most once, however often it is tried, in whichever
    /// process: it also creates the persistent node `marker`, and is not committed if that node exists. The
    /// marker is empty, unless it gets [data](OnceTxn::with_data).
    ///
    /// So an operation whose outcome is [unknown](TxnError::outcome_unknown) can be tried again, under the
    /// same hold, another one, or none. `marker` names the *operation*, as `/transfers/done/4711`: choose it
    /// before the first try, and take the same one for each try.
    ///
    /// The marker stays until the application deletes it. Delete it when no process can try the operation
    /// again, or keep it as the record that the operation was done. Missing parents are created.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # use lockkeeper_core::{ConnectionManager, Deadline, Label, LockQueue, Once, Rule};
    /// # let manager = ConnectionManager::connect(&server.connect_string()).await?;
    /// # let queue = LockQueue::new(&manager, "/locks/7", Label::LOCK, Rule::MUTEX)?;
    /// # let held = queue.acquire(Deadline::never()).await?;
    /// let sell = || held.txn().create_sequential("/sale-", "seat 42").once("/sold/order-4711");
    /// assert!(matches!(sell().commit().await?, Once::Committed(_)));
    /// assert!(matches!(sell().commit().await?, Once::Before));
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(self, marker: impl IntoPath) -> OnceTxn<'a> {
        let marker = marker.into_path().and_then(|marker| self.manager.full_path(&marker));
        OnceTxn { txn: self, marker, data: Vec::new() }
    }
}

impl<'a> OnceTxn<'a> {
    /// Sets the data of the marker: what a reader of the marker learns of the operation. Default: none.
    ///
    /// After [`Once::Before`] the marker has the data of the try that was committed.
    pub fn with_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into(), ..self }
    }

    /// Commits the writes and the marker, if the hold's nodes still exist and the marker does not. One round
    /// trip. A request without an answer is sent again until there is one, within the [operation
    /// timeout](crate::ConnectionManager::with_operation_timeout): it cannot be applied twice.
    ///
    /// # Errors
    ///
    /// As [`Txn::commit`]. After an [unknown outcome](TxnError::outcome_unknown) it is safe to try the
    /// operation again with the same marker.
    ///
    /// # Session loss
    ///
    /// If the session ends before the answer, a transaction without holds is sent again in the next session.
    /// The outcome of one that rests on a hold is unknown. The next try, under a new hold, finds out.
    ///
    /// # Cancel safety
    ///
    /// A dropped commit may be applied. A later try with the same marker finds out.
    pub async fn commit(self) -> Result<Once, TxnError> {
        let timer = TxnTimer::begin(self.txn.manager.environment(), self.txn.path());
        let committed = self.send().await;
        timer.end(&committed, |once| match once {
            Once::Committed(_) => "committed",
            Once::Before => "before",
        });
        committed
    }

    async fn send(self) -> Result<Once, TxnError> {
        let marker = self.marker.map_err(Error::from)?;
        let deadline = Deadline::after(self.txn.manager.operation_timeout());
        let (path, mode) = (marker.to_string(), CreateMode::Persistent);
        let prepared = Prepared::of(self.txn, Some(WriteOp::Create { path, data: self.data, mode }))?;
        prepared.settle().map_err(TxnError::Lost)?;
        let in_flight = prepared.begin();
        let committed = commit(&prepared, &marker, deadline).await;
        if committed.as_ref().map_or_else(|error| !error.outcome_unknown(), |_| true) {
            in_flight.settle();
        }
        committed
    }
}

/// Sends the request until there is an answer.
///
/// A request without an answer may be applied, and may still be, after the answer to a later one. Two answers
/// decide about all of them. The marker exists: one of them was applied, or an earlier try. The marker is the
/// first operation, so this answer comes whatever has become of the hold since. The hold's node does not
/// exist: none was applied, and none will be, because all of them rest on that node.
///
/// Without a hold the request goes on in the next session: the marker decides there as well, and a request of
/// the earlier session that is applied later finds it.
async fn commit(prepared: &Prepared<'_>, marker: &ZnodePath, deadline: Deadline) -> Result<Once, TxnError> {
    // The error of an earlier request that may be applied.
    let (mut in_doubt, mut has_made_parent) = (None, false);
    loop {
        let opened = prepared.session(deadline).await;
        let session = &opened.map_err(|error| in_doubt.clone().unwrap_or(error))?;
        let error = match prepared.send(session, deadline).await {
            Ok(results) => return Ok(Once::Committed(results)),
            Err(NotCommitted::Marker(Refusal::NodeExists)) => return Ok(Once::Before),
            Err(NotCommitted::Marker(Refusal::NoNode)) => {
                let made = make_parent(prepared, session, marker, deadline).await;
                made.map_err(|error| in_doubt.clone().unwrap_or(error))?;
                if deadline.has_passed() {
                    return Err(in_doubt.unwrap_or_else(|| no_time_left(marker, deadline)));
                }
                if has_made_parent {
                    // It was deleted at once.
                    session.backoff(deadline).await;
                }
                has_made_parent = true;
                continue;
            }
            Err(refused) => prepared.error_of(refused),
        };
        if error.is_lost() {
            return Err(error);
        }
        if error.outcome_unknown() {
            in_doubt = Some(error.clone());
        } else if !error.is_transient() {
            return Err(in_doubt.unwrap_or(error));
        }
        session.backoff(deadline).await;
        if deadline.has_passed() {
            return Err(in_doubt.unwrap_or(error));
        }
        if let Err(lost) = prepared.settle() {
            return Err(in_doubt.unwrap_or(TxnError::Lost(lost)));
        }
    }
}

/// The error if there is no time for another request.
fn no_time_left(marker: &ZnodePath, deadline: Deadline) -> TxnError {
    let (path, waited) = (marker.as_str().into(), deadline.waited());
    TxnError::Failed(Error::Timeout { phase: Phase::Connecting, path, waited })
}

/// Creates the missing parents of the marker, which is harmless to repeat. An error means that nothing is
/// committed by the requests since: the servers refused them for want of the parent.
async fn make_parent(
    prepared: &Prepared<'_>,
    session: &Session,
    marker: &ZnodePath,
    deadline: Deadline,
) -> Result<(), TxnError> {
    let Some(parent) = marker.parent() else { return Ok(()) };
    loop {
        match make_directory(session, &parent, ParentLifetime::ForEver, deadline).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                let retry = session.retry_after(&error, Operation::Create, parent.as_str(), deadline);
                match (retry.await, prepared.first()) {
                    (Ok(()), _) => {}
                    (Err(Stop::SessionEnded(reason)), Some(hold)) => {
                        return Err(TxnError::Lost(hold.loss_by(reason)));
                    }
                    // The next session goes on.
                    (Err(Stop::SessionEnded(_)), None) => return Ok(()),
                    (Err(Stop::Failed(error)), _) => return Err(TxnError::Failed(error)),
                }
            }
        }
    }
}
