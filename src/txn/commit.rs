use super::prepared::Prepared;
use super::transaction::{Txn, TxnResult};
use crate::error::TxnError;
use crate::telemetry::timers::TxnTimer;
use crate::time::deadline::Deadline;

impl Txn<'_> {
    /// Commits the writes, if the nodes of all holds that they rest on still exist. One round trip. Without
    /// writes and holds nothing is sent.
    ///
    /// # Errors
    ///
    /// [`TxnError::Lost`] and [`TxnError::Refused`], which names the write: nothing was written.
    /// [`TxnError::Failed`] with an
    /// [unknown outcome](TxnError::outcome_unknown) when no answer came within the
    /// [operation timeout](crate::ConnectionManager::with_operation_timeout), or the connection broke before:
    /// read before you retry, or use [`once`](Self::once). [`TxnError::Failed`] with
    /// [`Error::Config`](crate::Error::Config), before anything is sent, when the holds have different
    /// managers, a path is no path, or the request would be too large.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the transaction of a dropped commit may be applied.
    pub async fn commit(self) -> Result<Vec<TxnResult>, TxnError> {
        let timer = TxnTimer::begin(self.manager.environment(), self.path());
        let committed = self.send().await;
        timer.end(&committed, |_| "committed");
        committed
    }

    async fn send(self) -> Result<Vec<TxnResult>, TxnError> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        let prepared = Prepared::of(self, None)?;
        if prepared.is_empty() {
            return Ok(Vec::new());
        }
        prepared.settle().map_err(TxnError::Lost)?;
        let session = prepared.session(deadline).await?;
        let in_flight = prepared.begin();
        let sent = prepared.send(&session, deadline).await;
        let committed = sent.map_err(|refused| prepared.error_of(refused));
        if committed.as_ref().map_or_else(|error| !error.outcome_unknown(), |_| true) {
            in_flight.settle();
        }
        committed
    }
}
