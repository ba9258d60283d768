//! The record of a worker: the node by whose version a transaction without an answer is found out.

use std::time::Duration;

use lockkeeper_core::{
    ConnectionManager, CreateMode, Deadline, Error, Hold, ManagerExt, Operation, Refusal, Txn, TxnError,
    TxnResult, ZnodePath,
};
use tracing::debug;

use super::decide::{FencedRecord, TxnAnswer, TxnStep, after, after_fence};
/// The pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// The data that a transaction writes.
const COMMITTED: &[u8] = b"committed";

/// The data of a record that no earlier transaction can be applied after.
const FENCED: &[u8] = b"fenced";

/// The number of operations of a transaction that are not the caller's.
const OWN_WRITES: usize = 1;

/// A record. Dropping it deletes the node in the background: no transaction that is on its way is applied
/// after that.
#[derive(Debug)]
pub(super) struct WorkerRecord {
    manager: ConnectionManager,
    path: ZnodePath,
    version: i32,
    /// Another client has changed or deleted the node: no transaction can be committed by it any more.
    is_broken: bool,
}

/// A transaction that is applied.
pub(super) enum RecordedTxn {
    /// With the results of the caller's writes.
    Now(Vec<TxnResult>),
    /// By a request whose answer was lost.
    Before,
}

impl WorkerRecord {
    /// Creates the record at `path`, whose name is never used again.
    pub(super) async fn create(manager: &ConnectionManager, path: ZnodePath) -> Result<Self, Error> {
        // From here on a drop deletes the node.
        let record = Self { manager: manager.clone(), path, version: 0, is_broken: false };
        let deadline = Deadline::after(manager.operation_timeout());
        loop {
            match manager.znodes().create(&record.path, b"", CreateMode::Persistent).await {
                Ok(_) | Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => return Ok(record),
                Err(error @ (Error::Unknown { .. } | Error::NoAnswer { .. })) => {
                    pause(deadline, error).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Commits `writes` if the hold's node exists, exactly once, and finds out whether it is applied. An
    /// error that is not [of unknown outcome](Error::outcome_unknown) means that nothing is applied, and
    /// nothing will be.
    pub(super) async fn commit(
        &mut self,
        hold: &Hold,
        writes: impl FnOnce(Txn<'static>) -> Txn<'static>,
    ) -> Result<RecordedTxn, TxnError> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        // The caller's writes cannot come before the record, nor replace the check of the node.
        let txn = hold.txn().set(&self.path, COMMITTED, self.version).and(writes(self.manager.txn()));
        let mut in_doubt: Option<TxnError> = None;
        loop {
            let error = match txn.clone().commit().await {
                Ok(results) => {
                    self.version += 1;
                    return Ok(RecordedTxn::Now(results.into_iter().skip(OWN_WRITES).collect()));
                }
                Err(error) => error,
            };
            self.is_broken |= self.is_of_record(&error);
            match after(answer_of(&error), in_doubt.is_some()) {
                TxnStep::AppliedBefore => {
                    self.is_broken = false;
                    self.version += 1;
                    return Ok(RecordedTxn::Before);
                }
                TxnStep::NotApplied => return Err(of_caller(error)),
                TxnStep::Fence => {
                    debug!(path = %self.path, %error, "fencing the record of a transaction in doubt");
                    let fenced = self.fence().await.map_err(|_| unknown(hold, &error))?;
                    return match after_fence(fenced) {
                        true => Ok(RecordedTxn::Before),
                        false => Err(of_caller(error)),
                    };
                }
                TxnStep::Again if error.outcome_unknown() => {
                    debug!(path = %self.path, %error, "sending the transaction again");
                    in_doubt = Some(error.clone());
                }
                TxnStep::Again => {}
            }
            if deadline.has_passed() {
                return Err(in_doubt.unwrap_or(error));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn is_of_record(&self, error: &TxnError) -> bool {
        let TxnError::Refused { path, refusal, .. } = error else { return false };
        matches!(refusal, Refusal::BadVersion | Refusal::NoNode)
            && *path == self.manager.whole_path(&self.path)
    }

    /// Writes the record, so that no earlier transaction can be applied any more, and says whether one was.
    async fn fence(&mut self) -> Result<FencedRecord, Error> {
        let (znodes, deadline) = (self.manager.znodes(), Deadline::after(self.manager.operation_timeout()));
        loop {
            let error = match znodes.write(&self.path, FENCED, self.version).await {
                Ok(stat) => {
                    self.version = stat.version;
                    return Ok(FencedRecord::Written);
                }
                Err(Error::Refused { refusal: Refusal::BadVersion, .. }) => {
                    match znodes.read(&self.path).await {
                        Ok(Some((data, stat))) => {
                            self.version = stat.version;
                            let is_committed = data == COMMITTED;
                            return Ok(if is_committed {
                                FencedRecord::Committed
                            } else {
                                FencedRecord::Before
                            });
                        }
                        Ok(None) => return Err(self.missing()),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            match error {
                error @ (Error::Unknown { .. } | Error::NoAnswer { .. } | Error::Timeout { .. }) => {
                    pause(deadline, error).await?;
                }
                error if error.is_transient() => pause(deadline, error).await?,
                error => return Err(error),
            }
        }
    }

    fn missing(&self) -> Error {
        let (operation, path) = (Operation::Read, self.manager.whole_path(&self.path));
        Error::Unknown { operation, path, cause: "the record was deleted".to_owned() }
    }
}

impl Drop for WorkerRecord {
    fn drop(&mut self) {
        if self.manager.is_closing() {
            return;
        }
        let (manager, path) = (self.manager.clone(), self.path.clone());
        self.manager.spawn(async move {
            if let Err(error) = manager.znodes().delete(&path).await {
                debug!(%path, %error, "the record of a worker stays");
            }
        });
    }
}

/// Pauses before another try, or fails when there is no time for one.
async fn pause(deadline: Deadline, error: Error) -> Result<(), Error> {
    if deadline.has_passed() {
        return Err(error);
    }
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

fn answer_of(error: &TxnError) -> TxnAnswer {
    match error {
        TxnError::Lost(_) => TxnAnswer::Lost,
        TxnError::Refused { refusal, .. } if refusal.is_transient() => TxnAnswer::NotNow,
        // A record that is missing proves nothing.
        TxnError::Refused { index: 0, refusal: Refusal::BadVersion, .. } => TxnAnswer::RecordRefused,
        error if error.outcome_unknown() => TxnAnswer::Unknown,
        error if error.is_transient() => TxnAnswer::NotNow,
        _ => TxnAnswer::Refused,
    }
}

/// The error as the caller counts its writes.
fn of_caller(error: TxnError) -> TxnError {
    match error {
        TxnError::Refused { index, operation, path, refusal } => {
            TxnError::Refused { index: index.saturating_sub(OWN_WRITES), operation, path, refusal }
        }
        error => error,
    }
}

fn unknown(hold: &Hold, cause: &TxnError) -> TxnError {
    TxnError::Failed(Error::Unknown {
        operation: Operation::Commit,
        path: hold.whole_path(),
        cause: format!("an earlier request had no answer; then: {cause}"),
    })
}
